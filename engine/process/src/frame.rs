//! What goes over the socket: frames, each the length of its body as eight bytes, the lowest first, then the body.
//!
//! Both ends are of one build, which they make sure of first: each sends a [greeting](GREETING), and one that gets another answer does
//! not go on.

use serde::de::DeserializeOwned;
use serde::Serialize;
use std::io::{self, Read, Write};

/// What either end sends first. It changes with the release, and with what is sent.
pub const GREETING: &[u8] =
    concat!("pg_eddy engine ", env!("CARGO_PKG_VERSION"), " 1\n").as_bytes();

/// Bytes beyond which a frame is not one of ours.
const LIMIT: u64 = 1 << 40;

/// Bytes that are made room for before they have come.
const AHEAD: usize = 1 << 20;

/// Says which build this is.
pub fn greet(mut out: impl Write) -> io::Result<()> {
    out.write_all(GREETING)
}

/// Reads what the other end says of that.
///
/// # Errors
/// Where it is of another build.
pub fn require_greeting(mut from: impl Read) -> io::Result<()> {
    let mut greeting = [0; GREETING.len()];
    from.read_exact(&mut greeting)?;
    match greeting == GREETING {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&greeting).trim_end().to_owned();
            Err(invalid(format!("the other end is \"{said}\"")))
        }
    }
}

/// A message as a frame.
pub fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; size_of::<u64>()];
    bincode::serialize_into(&mut frame, message).map_err(invalid)?;
    let length = (frame.len() - size_of::<u64>()) as u64;
    frame[..size_of::<u64>()].copy_from_slice(&length.to_le_bytes());
    Ok(frame)
}

/// What a frame was made from.
pub fn decode<M: DeserializeOwned>(frame: &[u8]) -> io::Result<M> {
    bincode::deserialize(&frame[size_of::<u64>()..]).map_err(invalid)
}

/// The next frame. An end within one is an error, and so is one before it.
pub fn read(mut from: impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; size_of::<u64>()];
    from.read_exact(&mut length)?;
    let count = u64::from_le_bytes(length);
    if count > LIMIT {
        return Err(invalid(format!("a frame of {count} bytes")));
    }
    let mut frame = Vec::with_capacity(AHEAD.min(count as usize + length.len()));
    frame.extend_from_slice(&length);
    from.take(count).read_to_end(&mut frame)?;
    match (frame.len() - length.len()) as u64 == count {
        true => Ok(frame),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn invalid(error: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}
