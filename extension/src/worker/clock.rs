//! The present time, for views whose rows come and go with it.
//!
//! Their dataflows have a source of one row that holds it. The row is replaced every second, for all views at once, at
//! a time of its own among those of transactions.

use crate::pg::xact;
use plan::row::Row;
use plan::value::Datum;
use std::time::{Duration, Instant};

/// How late a row may come or go.
const RESOLUTION: Duration = Duration::from_secs(1);

/// What all dataflows hold for the present time.
pub struct Clock {
    /// Microseconds since 2000.
    now: i64,
    /// When they were told.
    told: Instant,
}

/// The row of a source that holds a time.
pub fn row(now: i64) -> Row {
    Row::pack(&[Datum::Timestamp(now)])
}

impl Clock {
    /// Shows the time of the machine.
    pub fn new() -> Clock {
        Clock { now: xact::now(), told: Instant::now() }
    }

    /// The present time, as the dataflows have it.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// Until it is time to go on.
    pub fn due_in(&self) -> Duration {
        RESOLUTION.saturating_sub(self.told.elapsed())
    }

    /// Goes on to the present time; answers what it was before, and what it is. The machine's clock may have been put
    /// back; this one is not.
    pub fn go_on(&mut self) -> (i64, i64) {
        let before = self.now;
        self.now = before.max(xact::now());
        self.told = Instant::now();
        (before, self.now)
    }
}
