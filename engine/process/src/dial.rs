//! Connections between machines: who is at the other end, and what the connection is for.

use crate::frame;
use crate::secret::Secret;
use serde::{Deserialize, Serialize};
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// How long an end may take for all that it has to say before it is known.
const PATIENCE: Duration = Duration::from_secs(5);

/// An end that has not taken what was sent to it for so long is lost, and so is one that does not answer while nothing is sent.
pub(crate) const LOST_AFTER: Duration = Duration::from_secs(15);
const ASK_EVERY: Duration = Duration::from_secs(3);
const ASK_TIMES: u32 = 4;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Purpose {
    /// A host tells an engine what to do.
    Host,
    /// Another engine of a cluster wants to know whether this one is there: what it says is said back.
    Watch,
    /// Threads of the dataflow that was created as the n-th exchange rows with those of another engine.
    Exchange { cluster: u64, number: u64, from: usize, to: usize },
}

/// Connects to an engine that listens at an address.
///
/// # Errors
/// Where nobody listens there, or somebody who is not of this build or does not have the secret.
pub(crate) fn connect(address: &str, secret: &Secret, purpose: Purpose) -> io::Result<TcpStream> {
    let dial = || {
        let stream = reach(address)?;
        let mut timed = Timed::new(&stream)?;
        frame::greet(&mut timed)?;
        frame::require_greeting(&mut timed)?;
        secret.prove_connecting(&mut timed)?;
        timed.write_all(&frame::encode(&purpose)?)?;
        be_known(&stream)?;
        Ok(stream)
    };
    dial().map_err(|error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}")))
}

/// Learns who has connected, and what for.
///
/// # Errors
/// Where that is nobody who should.
pub(crate) fn accept(stream: &TcpStream, secret: &Secret) -> io::Result<Purpose> {
    let mut timed = Timed::new(stream)?;
    frame::greet(&mut timed)?;
    frame::require_greeting(&mut timed)?;
    secret.prove_listening(&mut timed)?;
    let purpose = frame::decode(&frame::read(&mut timed)?)?;
    be_known(stream)?;
    Ok(purpose)
}

/// Tries all addresses that a name stands for.
fn reach(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(ErrorKind::NotFound, "the name stands for no address");
    for one in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&one, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A stream of which all together may take so long, however little comes at a time.
struct Timed<'a> {
    stream: &'a TcpStream,
    until: Instant,
}

impl Timed<'_> {
    fn new(stream: &TcpStream) -> io::Result<Timed<'_>> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Timed { stream, until: Instant::now() + PATIENCE })
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(ErrorKind::TimedOut, "the other end takes too long"));
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// From now on there is nothing that has to come at once; but the other end has to be there.
fn be_known(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)?;
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new().with_time(ASK_EVERY).with_interval(ASK_EVERY);
    socket.set_tcp_keepalive(&keepalive.with_retries(ASK_TIMES))?;
    socket.set_tcp_user_timeout(Some(LOST_AFTER))
}
