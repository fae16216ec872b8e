//! The other processes over which dataflows are spread.

use std::io;
use std::net::TcpStream;

/// The other processes over which dataflows are spread: each has an engine that is told the same, in the same order, but for the
/// updates, of which each gets a share. Their threads are the workers of one timely computation for each dataflow.
pub trait Peers: Send + Sync {
    /// Which of the processes this is, from 0 on.
    fn process(&self) -> usize;

    /// How many processes there are.
    fn processes(&self) -> usize;

    /// Connects the threads of the dataflow that was created as the n-th to those of the others: a stream to each process, in
    /// their order, none to this one.
    ///
    /// # Errors
    /// Where one of them cannot be reached, or does not connect in time.
    fn connect(&self, number: u64) -> io::Result<Vec<Option<TcpStream>>>;
}
