//! A stream to another process of which a dataflow gets to know when it is lost: the threads of timely that send and receive would end
//! without a word to the workers, who would wait for ever.

use crate::core::monitor::{Dataflow, Shared};
use crate::core::response::StopReason;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use timely::communication::allocator::zero_copy::stream::Stream;

/// The stream that a dataflow has to a process.
pub(super) struct WatchedStream {
    pub(super) stream: TcpStream,
    pub(super) shared: Arc<Shared>,
    pub(super) dataflow: Arc<Dataflow>,
}

impl WatchedStream {
    fn watch<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        outcome.inspect_err(|error| {
            if error.kind() != ErrorKind::Interrupted {
                let message = error.to_string();
                self.shared.stop(&self.dataflow, StopReason::NotConnected { message });
            }
        })
    }
}

impl Read for WatchedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(buffer);
        self.watch(read)
    }
}

impl Write for WatchedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.stream.write(bytes);
        self.watch(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Stream for WatchedStream {
    fn try_clone(&self) -> io::Result<WatchedStream> {
        let (shared, dataflow) = (Arc::clone(&self.shared), Arc::clone(&self.dataflow));
        Ok(WatchedStream { stream: self.stream.try_clone()?, shared, dataflow })
    }

    fn set_nonblocking(&self, is_nonblocking: bool) -> io::Result<()> {
        self.stream.set_nonblocking(is_nonblocking)
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.stream.shutdown(how)
    }
}
