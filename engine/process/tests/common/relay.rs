//! What is between two machines: a relay that takes its time, says nothing any more, or cuts what it hands on.
#![allow(dead_code)] // Every test file uses its own part of it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How it hands on what comes.
#[derive(Default)]
pub struct Manner {
    /// After so many milliseconds.
    pub delay: AtomicU64,
    /// Not at all, on connections behind the first one, which is that of a host: none of them is closed.
    pub is_silent: AtomicBool,
    /// At most so many bytes of a connection that is made from now on, which is then closed; 0 for all.
    pub bytes: AtomicU64,
}

/// A relay to an address.
pub struct Relay {
    pub address: String,
    pub manner: Arc<Manner>,
}

impl Relay {
    pub fn start(target: &str) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address").to_string();
        let (manner, target) = (Arc::new(Manner::default()), target.to_owned());
        let of_all = Arc::clone(&manner);
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let (Ok(from), Ok(to)) = (stream, TcpStream::connect(&target)) else { continue };
                let limit = of_all.bytes.load(Ordering::Relaxed);
                for (from, to) in [(&from, &to), (&to, &from)] {
                    let (from, to) = (from.try_clone(), to.try_clone());
                    let (from, to) = (from.expect("a socket"), to.expect("a socket"));
                    to.set_nodelay(true).expect("a socket");
                    let manner = Arc::clone(&of_all);
                    thread::spawn(move || hand_on(from, to, &manner, number > 0, limit));
                }
            }
        });
        Relay { address, manner }
    }
}

fn hand_on(
    mut from: TcpStream,
    mut to: TcpStream,
    manner: &Manner,
    may_be_silent: bool,
    limit: u64,
) {
    let mut buffer = [0; 1 << 14];
    let mut handed = 0;
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        thread::sleep(Duration::from_millis(manner.delay.load(Ordering::Relaxed)));
        while may_be_silent && manner.is_silent.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(10));
        }
        let mut some = read;
        if limit > 0 {
            some = read.min((limit - handed) as usize);
        }
        handed += some as u64;
        if to.write_all(&buffer[..some]).is_err() || limit > 0 && handed == limit {
            let _ = from.shutdown(Shutdown::Both);
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
