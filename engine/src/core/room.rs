//! How many updates are on their way from the caller to the workers.
//!
//! Only a caller that waits costs the workers more than an addition.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Updates that may be on their way while whoever feeds cares for memory.
const ROOM: usize = 1 << 14;

/// Updates that no dataflow has taken yet.
#[derive(Default)]
pub(crate) struct Queued {
    updates: AtomicUsize,
    /// Nobody takes any more: a worker was lost.
    is_closed: AtomicBool,
    is_awaited: AtomicBool,
    /// Held by who waits but while it sleeps, so that no news is missed.
    waiter: Mutex<()>,
    shrank: Condvar,
}

impl Queued {
    pub(crate) fn add(&self, updates: usize) {
        self.updates.fetch_add(updates, SeqCst);
    }

    pub(crate) fn subtract(&self, updates: usize) {
        if updates > 0 {
            self.updates.fetch_sub(updates, SeqCst);
            self.tell();
        }
    }

    /// Lets nobody wait any more.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, SeqCst);
        self.tell();
    }

    fn tell(&self) {
        if self.is_awaited.load(SeqCst) {
            drop(self.waiter.lock().unwrap_or_else(PoisonError::into_inner));
            self.shrank.notify_all();
        }
    }

    /// Waits until there is room for more; false if that took too long.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        let waiter = self.waiter.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_awaited.store(true, SeqCst);
        let is_full = || !self.is_closed.load(SeqCst) && self.updates.load(SeqCst) > ROOM;
        let waited = self.shrank.wait_timeout_while(waiter, timeout, |()| is_full());
        self.is_awaited.store(false, SeqCst);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_feeds_waits_for_room_but_not_for_lost_workers() {
        let queued = Queued::default();
        queued.add(ROOM + 1);
        assert!(!queued.wait(Duration::from_millis(1)));
        std::thread::scope(|scope| {
            scope.spawn(|| queued.subtract(1));
            assert!(queued.wait(Duration::from_secs(60)));
        });
        queued.add(1);
        std::thread::scope(|scope| {
            scope.spawn(|| queued.close());
            assert!(queued.wait(Duration::from_secs(60)));
        });
    }
}
