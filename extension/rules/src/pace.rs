//! How long the worker leaves the machine to the writers between two steps.
//!
//! A step has a price of its own, whatever it brings: an apply transaction, a pass through the
//! dataflows, and a wake-up that a writer pays for. Below a thousand commits a second nobody
//! notices, and every commit is looked at nearly at once. Above, the worker takes naps, so that a step
//! takes many commits together; the price is worth saving where commits come as fast as the machine
//! can. Readers that wait for a view end a nap; commits do not.

use std::time::{Duration, Instant};

/// The longest nap.
const LONGEST: Duration = Duration::from_millis(20);

/// Transactions per second up to which a nap lets about one more come by.
const QUIET: f64 = 1_500.0;

/// Transactions per second at which naps reach their full length.
const BUSY: f64 = 5_000.0;

/// Time over which the rate is averaged.
const MEMORY: Duration = Duration::from_millis(100);

/// Estimates the rate of transactions.
pub struct Pace {
    /// Transactions per second.
    rate: f64,
    noted: Instant,
}

impl Pace {
    pub fn new(now: Instant) -> Pace {
        Pace { rate: 0.0, noted: now }
    }

    /// Takes note that a step brought so many transactions.
    pub fn note(&mut self, transactions: usize, now: Instant) {
        let since = now.saturating_duration_since(self.noted).as_secs_f64().max(1e-6);
        let weight = (since / MEMORY.as_secs_f64()).min(1.0);
        self.rate += weight * (transactions as f64 / since - self.rate);
        self.noted = now;
    }

    /// How long to sleep before the next step, in whole milliseconds.
    pub fn nap(&self) -> Duration {
        let longest = LONGEST.as_millis() as f64;
        let milliseconds = if self.rate <= QUIET {
            self.rate / 1000.0
        } else {
            let excess = (self.rate - QUIET) / (BUSY - QUIET);
            QUIET / 1000.0 + excess * (longest - QUIET / 1000.0)
        };
        Duration::from_millis(milliseconds.min(longest).round() as u64)
    }
}

/// Bytes of WAL between two looks from which on somebody is at something large.
const LARGE: u64 = 64 << 10;

/// How soon the WAL is looked at again while it grows.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Whether the WAL grows so fast that it is worth a look though nobody has committed: what a transaction has written so
/// far need not be read when it commits. Where little is written nobody wakes up for it.
pub struct Growth {
    end: u64,
    is_large: bool,
}

impl Growth {
    /// The WAL ends there.
    pub fn new(end: u64) -> Growth {
        Growth { end, is_large: false }
    }

    /// It is looked at, and ends there now.
    pub fn note(&mut self, end: u64) {
        self.is_large = end.saturating_sub(self.end) >= LARGE;
        self.end = end;
    }

    /// How soon to look again, if sooner than usual.
    pub fn look_again_in(&self) -> Option<Duration> {
        self.is_large.then_some(LOOK_AGAIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The nap after a second of steps that bring `transactions` every `every`.
    fn nap_after(transactions: usize, every: Duration) -> Duration {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let mut now = start;
        while now < start + Duration::from_secs(1) {
            now += every;
            pace.note(transactions, now);
        }
        pace.nap()
    }

    #[test]
    fn the_nap_grows_with_the_rate_only() {
        let millisecond = Duration::from_millis(1);
        assert_eq!(nap_after(1, 3 * millisecond), Duration::ZERO);
        assert_eq!(nap_after(1, millisecond), millisecond);
        assert_eq!(nap_after(4, millisecond), 15 * millisecond);
        assert_eq!(nap_after(40, 10 * millisecond), 15 * millisecond);
        assert_eq!(nap_after(100, millisecond), LONGEST);
    }

    #[test]
    fn only_what_is_large_is_looked_at_again() {
        let mut growth = Growth::new(1000);
        assert_eq!(growth.look_again_in(), None);
        growth.note(1000 + LARGE - 1);
        assert_eq!(growth.look_again_in(), None);
        growth.note(1000 + 2 * LARGE);
        assert_eq!(growth.look_again_in(), Some(LOOK_AGAIN));
        growth.note(1000 + 2 * LARGE);
        assert_eq!(growth.look_again_in(), None);
    }

    #[test]
    fn a_burst_is_forgotten() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        pace.note(10_000, start + Duration::from_millis(10));
        assert_eq!(pace.nap(), LONGEST);
        pace.note(0, start + Duration::from_secs(1));
        assert_eq!(pace.nap(), Duration::ZERO);
    }
}
