//! How engine threads wake the thread that drives them.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A flag to wait for; raising it twice is raising it once.
#[derive(Clone, Default)]
pub struct Signal(Arc<(Mutex<bool>, Condvar)>);

impl Signal {
    pub fn raise(&self) {
        *self.0 .0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0 .1.notify_one();
    }

    /// Takes the flag down; false when it was not raised within `patience`.
    pub fn wait(&self, patience: Duration) -> bool {
        let raised = self.0 .0.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut raised, _) = self
            .0
             .1
            .wait_timeout_while(raised, patience, |raised| !*raised)
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *raised)
    }
}
