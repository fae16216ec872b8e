//! Gives memory back to the operating system while the process rests.
//!
//! The allocator keeps pages that are free, to use them again. After a large transaction, or a view that was dropped,
//! they may be most of what the process has. To give them back takes a while, so it is done when nothing else happens.

use crate::core::updates::DataflowId;
use crate::memory;
use std::fs::read_to_string;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::time::Duration;

/// Between two looks at what there is.
const EVERY: Duration = Duration::from_secs(5);

/// What the process has beside blocks, and may keep.
const BASE: usize = 16 << 20;

/// The thread is of no dataflow.
const NONE: DataflowId = DataflowId(0);

/// Lives as long as somebody is to tidy up.
pub(crate) type Tidying = Sender<()>;

/// Starts a thread that tidies up until what is returned is dropped. Where there is none to be had, nobody does.
pub(crate) fn start(thread_start: Arc<dyn Fn(DataflowId) + Send + Sync>) -> Tidying {
    let (tidying, is_over) = channel();
    let thread = std::thread::Builder::new().name("engine-tidy".to_owned());
    drop(thread.spawn(move || {
        thread_start(NONE);
        tidy_up(&is_over);
    }));
    tidying
}

fn tidy_up(is_over: &Receiver<()>) {
    let (mut before, mut tidied) = (0, None);
    while is_over.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        let held = memory::allocated();
        let rests = held.abs_diff(before) <= before / 16;
        before = held;
        let has = resident();
        // What could not be given back the first time cannot be the second time.
        let is_left = tidied.is_some_and(|(then, left)| then == held && has <= left + BASE);
        if rests && !is_left && has > held + held / 5 + BASE {
            memory::trim();
            tidied = Some((held, resident()));
        }
    }
}

/// Bytes of memory of its own that the process has, files and shared memory not counted; 0 where nobody tells.
fn resident() -> usize {
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    kilobytes.map_or(0, |kilobytes: usize| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_process_has_memory() {
        assert!(super::resident() > 1 << 16);
    }
}
