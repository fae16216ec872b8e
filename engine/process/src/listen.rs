//! The program as an engine of a cluster: it listens for hosts, and for engines with which it computes what they ask for.

use crate::dial::{self, Purpose};
use crate::meeting::{Meeting, Neighbours};
use crate::message::Start;
use crate::secret::Secret;
use crate::serve::serve_known;
use crate::watch::{self, watch};
use engine::{Config, Embedded};
use std::convert::Infallible;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// Connections that are not known yet; more wait until one of these is, or is given up.
const UNKNOWN: usize = 512;

/// Pause of one who waits for that, or for what the machine is short of.
const PAUSE: Duration = Duration::from_millis(20);

/// How often connections are looked for that nobody wants.
const PURGE_EVERY: Duration = Duration::from_secs(10);

/// What is the same for all who connect.
pub struct Listening {
    pub secret: Secret,
    /// Where state may go that outgrows memory, if hosts allow that.
    pub spill_directory: Option<PathBuf>,
}

/// Serves all who connect, each in a thread of its own.
///
/// # Errors
/// Where there is no thread for what has to be done beside.
pub fn listen(listener: &TcpListener, listening: Listening) -> io::Result<Infallible> {
    let station =
        Arc::new(Station { listening, meeting: Arc::default(), unknown: AtomicUsize::new(0) });
    let tidied = Arc::clone(&station.meeting);
    thread::Builder::new().name("tidy".into()).spawn(move || loop {
        thread::sleep(PURGE_EVERY);
        tidied.purge();
    })?;
    let mut said = None;
    loop {
        while station.unknown.load(Ordering::Relaxed) >= UNKNOWN {
            thread::sleep(PAUSE);
        }
        match listener.accept() {
            Ok((stream, from)) => {
                station.unknown.fetch_add(1, Ordering::Relaxed);
                let of_one = Arc::clone(&station);
                let receive = move || of_one.receive(stream, &from.to_string());
                if thread::Builder::new().name("connection".into()).spawn(receive).is_err() {
                    station.unknown.fetch_sub(1, Ordering::Relaxed);
                }
            }
            // What one connection has come to, or what the machine is short of, is not the end of the others.
            Err(error) => {
                let text = error.to_string();
                if said.as_ref() != Some(&text) {
                    eprintln!("pg_eddy_engine: a connection is not accepted: {text}");
                    said = Some(text);
                }
                thread::sleep(PAUSE);
            }
        }
    }
}

struct Station {
    listening: Listening,
    meeting: Arc<Meeting>,
    unknown: AtomicUsize,
}

impl Station {
    fn receive(&self, stream: TcpStream, from: &str) {
        let purpose = dial::accept(&stream, &self.listening.secret);
        self.unknown.fetch_sub(1, Ordering::Relaxed);
        match purpose {
            Ok(Purpose::Exchange { cluster, number, from, to }) => {
                self.meeting.bring((cluster, number, from, to), stream);
            }
            Ok(Purpose::Watch) => drop(watch::answer(&stream)),
            Ok(Purpose::Host) => {
                eprintln!("pg_eddy_engine: {from} is a host");
                let Err(error) = self.serve(stream);
                eprintln!("pg_eddy_engine: {from} has left: {error}");
            }
            Err(error) => eprintln!("pg_eddy_engine: {from} is refused: {error}"),
        }
    }

    fn serve(&self, stream: TcpStream) -> io::Result<Infallible> {
        let (out, host) = (stream.try_clone()?, stream.try_clone()?);
        let lost = Arc::new(OnceLock::new());
        let noted = Arc::clone(&lost);
        // What the host says is not read any more, but it is told why.
        let leave = move |reason| {
            let _ = noted.set(reason);
            let _ = host.shutdown(Shutdown::Read);
        };
        let mut cluster = None;
        let engine = |start: &Start, config| {
            cluster = start.place.as_ref().map(|place| place.cluster);
            self.engine(start, config, leave)
        };
        let served = serve_known(&stream, out, engine, || lost.get().cloned());
        cluster.into_iter().for_each(|cluster| self.meeting.forget(cluster));
        served
    }

    fn engine(
        &self,
        start: &Start,
        mut config: Config,
        leave: impl Fn(String) + Send + Sync + 'static,
    ) -> Embedded {
        let Some(place) = start.place.clone() else { return Embedded::start(config) };
        config.spill = config.spill.and_then(|mut spill| {
            let directory = self.listening.spill_directory.as_ref()?;
            spill.directory = directory.join(format!("{}-{}", place.cluster, place.process));
            Some(spill)
        });
        let (secret, meeting) = (self.listening.secret.clone(), Arc::clone(&self.meeting));
        let neighbours = Arc::new(Neighbours { place, secret, meeting });
        watch(&neighbours, leave);
        Embedded::start_among(config, neighbours)
    }
}
