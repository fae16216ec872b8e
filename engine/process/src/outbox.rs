//! What goes to an engine in another process. Whoever has something for it never waits until there is room: an engine may stand still,
//! and its host has others to answer to.

use crate::frame;
use crate::lock::lock;
use crate::message::Command;
use rustix::io::Errno;
use rustix::net::{send, shutdown, SendFlags, Shutdown};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::{io, thread};

/// Bytes of commands that are sent without waiting for more.
const TOGETHER: usize = 64 << 10;

/// Commands on their way to a program.
pub(crate) struct Outbox {
    sending: Arc<Sending>,
    /// Commands that are to be sent together.
    frames: Vec<u8>,
    /// Number of commands until now.
    sent: u64,
}

/// The socket, and what it has no room for yet.
struct Sending {
    socket: OwnedFd,
    late: Mutex<Late>,
    come: Condvar,
}

#[derive(Default)]
struct Late {
    bytes: Vec<u8>,
    /// Whether the thread is about to send what it has taken of them.
    is_sending: bool,
    /// Nothing can be sent any more.
    is_over: bool,
}

impl Outbox {
    /// Over a socket.
    ///
    /// # Errors
    /// Where the operating system gives no thread.
    pub(crate) fn start(
        socket: OwnedFd,
        thread_start: impl FnOnce() + Send + 'static,
    ) -> io::Result<Outbox> {
        let (late, come) = (Mutex::default(), Condvar::new());
        let sending = Arc::new(Sending { socket, late, come });
        let of_thread = Arc::clone(&sending);
        thread::Builder::new().name("engine-outbox".into()).spawn(move || {
            thread_start();
            of_thread.send_late();
        })?;
        Ok(Outbox { sending, frames: Vec::new(), sent: 0 })
    }

    /// Answers the number of the command.
    pub(crate) fn send(&mut self, command: &Command) -> u64 {
        self.sent += 1;
        match frame::encode(command) {
            Ok(frame) => self.frames.extend_from_slice(&frame),
            Err(_) => self.sending.end(),
        }
        if self.frames.len() >= TOGETHER {
            self.flush();
        }
        self.sent
    }

    pub(crate) fn flush(&mut self) {
        if !self.frames.is_empty() {
            self.sending.send_now_or_late(&self.frames);
        }
        self.frames.clear();
        self.frames.shrink_to(TOGETHER);
    }

    /// Bytes that wait for the program to take what came before.
    pub(crate) fn late(&self) -> usize {
        lock(&self.sending.late).bytes.len()
    }

    /// Lets nothing pass any more. The thread that reads says that it is over.
    pub(crate) fn cut(&self) {
        self.sending.end();
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.sending.end();
    }
}

impl Sending {
    fn send_now_or_late(&self, mut bytes: &[u8]) {
        let mut late = lock(&self.late);
        while !late.is_over && late.bytes.is_empty() && !late.is_sending && !bytes.is_empty() {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match send(self.socket.as_fd(), bytes, flags) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    drop(late);
                    return self.end();
                }
            }
        }
        if !late.is_over && !bytes.is_empty() {
            late.bytes.extend_from_slice(bytes);
            self.come.notify_one();
        }
    }

    /// Sends what there was no room for, until it is over.
    fn send_late(&self) {
        let mut late = lock(&self.late);
        while !late.is_over {
            if late.bytes.is_empty() {
                late = self.come.wait(late).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let bytes = std::mem::take(&mut late.bytes);
            late.is_sending = true;
            drop(late);
            let sent = self.send_all(&bytes);
            late = lock(&self.late);
            late.is_sending = false;
            if !sent {
                drop(late);
                return self.end();
            }
        }
    }

    /// Waits for room.
    fn send_all(&self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            match send(self.socket.as_fd(), bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
        true
    }

    fn end(&self) {
        let mut late = lock(&self.late);
        late.is_over = true;
        late.bytes = Vec::new();
        drop(late);
        // It may be closed already.
        let _ = shutdown(self.socket.as_fd(), Shutdown::Both);
        self.come.notify_all();
    }
}
