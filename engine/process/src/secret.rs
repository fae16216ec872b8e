//! What engines and hosts on different machines have in common, and prove to each other before they say anything else.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// Bytes that a secret has at least.
const LEAST: usize = 16;

/// Bytes of a number that is used once.
const NONCE: usize = 32;

/// Permissions of others than the owner.
const OF_OTHERS: u32 = 0o077;

/// A secret.
#[derive(Clone)]
pub struct Secret(Arc<[u8]>);

/// Which end of a connection proves that it has the secret.
#[derive(Clone, Copy)]
enum End {
    Connecting,
    Listening,
}

impl Secret {
    /// What a file holds, without white space around it.
    ///
    /// # Errors
    /// Where it cannot be read, or others than its owner can, or it is too short.
    pub fn read(path: &Path) -> io::Result<Secret> {
        let of_file =
            |kind, why: &str| io::Error::new(kind, format!("the file with the secret {why}"));
        let mut file = File::open(path)
            .map_err(|error| of_file(error.kind(), &format!("cannot be opened: {error}")))?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.mode() & OF_OTHERS != 0 {
            let why = "is not a file that its owner alone may read";
            return Err(of_file(ErrorKind::PermissionDenied, why));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let secret = bytes.trim_ascii();
        if secret.len() < LEAST {
            let why = format!("has less than {LEAST} bytes");
            return Err(of_file(ErrorKind::InvalidData, &why));
        }
        Ok(Secret(secret.into()))
    }

    /// Proves to whoever listens at the other end that this one has the secret, and lets it do the same.
    ///
    /// # Errors
    /// Where it does not.
    pub(crate) fn prove_connecting(&self, mut stream: impl Read + Write) -> io::Result<()> {
        let ours = nonce()?;
        stream.write_all(&ours)?;
        let mut theirs = [0; NONCE];
        stream.read_exact(&mut theirs)?;
        stream.write_all(&self.proof(End::Connecting, &ours, &theirs).finalize().into_bytes())?;
        // Whoever does not believe it says nothing more.
        self.require(&mut stream, End::Listening, &ours, &theirs).map_err(|error| {
            match error.kind() {
                ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => not_the_same(),
                _ => error,
            }
        })
    }

    /// The same for the end that listens.
    pub(crate) fn prove_listening(&self, mut stream: impl Read + Write) -> io::Result<()> {
        let mut theirs = [0; NONCE];
        stream.read_exact(&mut theirs)?;
        let ours = nonce()?;
        stream.write_all(&ours)?;
        self.require(&mut stream, End::Connecting, &theirs, &ours)?;
        stream.write_all(&self.proof(End::Listening, &theirs, &ours).finalize().into_bytes())
    }

    fn require(
        &self,
        mut stream: impl Read,
        end: End,
        connecting: &[u8],
        listening: &[u8],
    ) -> io::Result<()> {
        let mut said = [0; NONCE];
        stream.read_exact(&mut said)?;
        self.proof(end, connecting, listening).verify_slice(&said).map_err(|_| not_the_same())
    }

    fn proof(&self, end: End, connecting: &[u8], listening: &[u8]) -> Hmac<Sha256> {
        let mut proof = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length");
        proof.update(&[end as u8]);
        proof.update(connecting);
        proof.update(listening);
        proof
    }
}

fn nonce() -> io::Result<[u8; NONCE]> {
    let mut nonce = [0; NONCE];
    getrandom::fill(&mut nonce).map_err(io::Error::other)?;
    Ok(nonce)
}

fn not_the_same() -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, "the other end does not have the same secret")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::thread;

    fn meet(connecting: &[u8], listening: &[u8]) -> (io::Result<()>, io::Result<()>) {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let (connecting, listening) = (Secret(connecting.into()), Secret(listening.into()));
        let listener = thread::spawn(move || listening.prove_listening(theirs));
        let connected = connecting.prove_connecting(ours);
        (connected, listener.join().expect("it does not panic"))
    }

    #[test]
    fn both_ends_have_to_have_it() {
        let (connected, listened) = meet(b"one secret", b"one secret");
        assert!(connected.is_ok() && listened.is_ok(), "{connected:?} {listened:?}");
        let (connected, listened) = meet(b"one secret", b"another one");
        let kind = |outcome: io::Result<()>| outcome.err().map(|error| error.kind());
        assert_eq!(kind(connected), Some(ErrorKind::PermissionDenied));
        assert_eq!(kind(listened), Some(ErrorKind::PermissionDenied));
    }

    #[test]
    fn whoever_cannot_prove_it_learns_nothing() {
        let (mut ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let listener = thread::spawn(move || Secret(b"secret"[..].into()).prove_listening(theirs));
        // What it says itself proves nothing when it is said back.
        let mut said = [0; NONCE];
        ours.write_all(&said).expect("it listens");
        ours.read_exact(&mut said).expect("it says a number");
        ours.write_all(&said).expect("it listens");
        assert!(listener.join().expect("it does not panic").is_err());
        let mut rest = Vec::new();
        ours.read_to_end(&mut rest).expect("it closes");
        assert!(rest.is_empty(), "{rest:?}");
    }
}
