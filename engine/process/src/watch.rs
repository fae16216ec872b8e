//! Whether the other engines of a cluster are there. Connections that exchange rows do not tell: through a tunnel the kernel that
//! answers for the other end is that of this machine.

use crate::dial::{self, Purpose, LOST_AFTER};
use crate::meeting::Neighbours;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

/// How often it is asked.
const EVERY: Duration = Duration::from_secs(1);

/// Watches the engines in front of this one, which has those behind it watch it, as long as somebody has the neighbours. Says
/// which one is lost, and why.
pub(crate) fn watch(neighbours: &Arc<Neighbours>, lost: impl Fn(String) + Send + Sync + 'static) {
    let lost = Arc::new(lost);
    for address in &neighbours.place.addresses[..neighbours.place.process] {
        let (address, of) = (address.clone(), Arc::downgrade(neighbours));
        let told = Arc::clone(&lost);
        let watching = thread::Builder::new().name("watch".into()).spawn(move || {
            if let Err(error) = ask(&address, &of) {
                told(error.to_string());
            }
        });
        if let Err(error) = watching {
            lost(format!("could not start a thread: {error}"));
        }
    }
}

/// Asks until nobody wants to know any more.
fn ask(address: &str, of: &Weak<Neighbours>) -> io::Result<()> {
    let Some(neighbours) = of.upgrade() else { return Ok(()) };
    let mut stream = dial::connect(address, &neighbours.secret, Purpose::Watch)?;
    drop(neighbours);
    stream.set_read_timeout(Some(LOST_AFTER))?;
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
    while of.strong_count() > 0 {
        let mut said = [0];
        stream.write_all(&said).and_then(|()| stream.read_exact(&mut said)).map_err(named)?;
        thread::sleep(EVERY);
    }
    Ok(())
}

/// Answers another engine until it asks no more.
pub(crate) fn answer(mut stream: &TcpStream) -> io::Result<()> {
    let mut said = [0];
    loop {
        stream.read_exact(&mut said)?;
        stream.write_all(&said)?;
    }
}
