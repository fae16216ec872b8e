//! An engine that is a program which the host has started, at the other end of a socket.

use crate::frame;
use crate::lock::lock;
use crate::message::Start;
use crate::remote::{Line, Peer, Remote, LOOK_EVERY, PATIENCE};
use engine::Config;
use std::io;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How long a program may take to end.
const FAREWELL: Duration = Duration::from_secs(1);

impl Remote {
    /// Has a program, which is at the other end of a socket, start its engine.
    ///
    /// # Errors
    /// Where it does not answer as one of this build.
    pub fn of_child(program: Child, stream: UnixStream, config: &Config) -> io::Result<Remote> {
        let program = Arc::new(Mutex::new(program));
        let started = greet(stream).and_then(|line| {
            Remote::start(line, Arc::clone(&program) as Arc<dyn Peer>, Start::from(config), config)
        });
        started.inspect_err(|_| {
            program.end();
        })
    }
}

fn greet(mut stream: UnixStream) -> io::Result<Line> {
    stream.set_read_timeout(Some(PATIENCE))?;
    frame::greet(&mut stream)?;
    frame::require_greeting(&mut stream)?;
    stream.set_read_timeout(None)?;
    Ok(Line { from: Box::new(stream.try_clone()?), to: stream.into() })
}

impl Peer for Mutex<Child> {
    fn end(&self) -> Option<String> {
        let mut program = lock(self);
        let until = Instant::now() + FAREWELL;
        while Instant::now() < until {
            if let Ok(Some(status)) = program.try_wait() {
                return Some(status.to_string());
            }
            thread::sleep(LOOK_EVERY);
        }
        // It cannot be killed if it has ended.
        let _ = program.kill();
        let _ = program.wait();
        None
    }

    fn kill(&self) {
        let _ = lock(self).kill();
    }
}
