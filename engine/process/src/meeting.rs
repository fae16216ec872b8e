//! Where the threads of a dataflow meet those of other engines: of two engines the one behind connects to the one in front, which
//! keeps the connection until its own threads want it.

use crate::dial::{self, Purpose};
use crate::lock::lock;
use crate::message::Place;
use crate::secret::Secret;
use engine::Peers;
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long threads wait for those of another engine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(300);

/// Connections that nobody wants are kept for so long.
const KEPT: Duration = Duration::from_secs(60);

/// A cluster, a dataflow of it, the engine that connects and the one that is meant: a process may be several of them.
pub(crate) type Key = (u64, u64, usize, usize);

/// How often an engine is tried that has closed a connection before it was known.
const ATTEMPTS: usize = 4;

/// The connections that engines have made to this one and that are not in use yet.
#[derive(Default)]
pub(crate) struct Meeting {
    waiting: Mutex<HashMap<Key, (Instant, TcpStream)>>,
    come: Condvar,
}

impl Meeting {
    /// Somebody has connected.
    pub(crate) fn bring(&self, key: Key, stream: TcpStream) {
        lock(&self.waiting).insert(key, (Instant::now(), stream));
        self.come.notify_all();
    }

    /// Closes what nobody wants.
    pub(crate) fn purge(&self) {
        lock(&self.waiting).retain(|_, (since, _)| since.elapsed() < KEPT);
    }

    /// The host of a cluster has left.
    pub(crate) fn forget(&self, cluster: u64) {
        lock(&self.waiting).retain(|(of, ..), _| *of != cluster);
    }

    fn wait(&self, key: Key) -> Option<TcpStream> {
        let waiting = lock(&self.waiting);
        let is_missing = |waiting: &mut HashMap<Key, _>| !waiting.contains_key(&key);
        let waited = self.come.wait_timeout_while(waiting, PATIENCE, is_missing);
        let (mut waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        waiting.remove(&key).map(|(_, stream)| stream)
    }
}

/// The other engines, as one of them sees them.
pub(crate) struct Neighbours {
    pub(crate) place: Place,
    pub(crate) secret: Secret,
    pub(crate) meeting: Arc<Meeting>,
}

impl Neighbours {
    /// One that is short of something just now may have what it takes a moment later.
    fn connect_to(&self, address: &str, purpose: Purpose) -> io::Result<TcpStream> {
        let mut attempt = 1;
        loop {
            match dial::connect(address, &self.secret, purpose) {
                Err(error) if attempt < ATTEMPTS && is_passing(&error) => {
                    attempt += 1;
                    thread::sleep(PAUSE);
                }
                outcome => return outcome,
            }
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    use ErrorKind::*;
    matches!(
        error.kind(),
        ConnectionReset | ConnectionAborted | UnexpectedEof | TimedOut | WouldBlock
    )
}

impl Peers for Neighbours {
    fn process(&self) -> usize {
        self.place.process
    }

    fn processes(&self) -> usize {
        self.place.addresses.len()
    }

    fn connect(&self, number: u64) -> io::Result<Vec<Option<TcpStream>>> {
        let Place { cluster, process, addresses } = &self.place;
        let mut streams = Vec::with_capacity(addresses.len());
        for address in &addresses[..*process] {
            let (cluster, from, to) = (*cluster, *process, streams.len());
            let purpose = Purpose::Exchange { cluster, number, from, to };
            streams.push(Some(self.connect_to(address, purpose)?));
        }
        streams.push(None);
        for (behind, address) in addresses.iter().enumerate().skip(process + 1) {
            let stream = self.meeting.wait((*cluster, number, behind, *process));
            let missing = || io::Error::new(ErrorKind::TimedOut, format!("{address} has not come"));
            streams.push(Some(stream.ok_or_else(missing)?));
        }
        Ok(streams)
    }
}
