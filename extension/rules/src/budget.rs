//! How much of a worker's time may go to what others can ask for as often as they like.

use std::time::{Duration, Instant};

/// Time that is spent at once if nothing was spent lately.
const AT_ONCE: Duration = Duration::from_millis(100);

/// Of how much time at least that is.
const WINDOW: Duration = Duration::from_secs(1);

/// What was spent costs as many times as much waiting.
const SHARE: u32 = 10;

/// At most a tenth of the time, but what comes seldom does not wait.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    since: Instant,
    spent: Duration,
}

impl Budget {
    pub fn new(now: Instant) -> Budget {
        Budget { since: now, spent: Duration::ZERO }
    }

    /// When more may be spent.
    pub fn free_at(&self) -> Instant {
        match self.spent <= AT_ONCE {
            true => self.since,
            false => self.since + WINDOW.max(self.spent * SHARE),
        }
    }

    /// Something took from `began` to `now`.
    pub fn spend(&mut self, began: Instant, now: Instant) {
        if began >= self.since + WINDOW.max(self.spent * SHARE) {
            *self = Budget::new(began);
        }
        self.spent += now.saturating_duration_since(began);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(20);

    #[test]
    fn what_comes_seldom_does_not_wait() {
        let mut now = Instant::now();
        let mut budget = Budget::new(now);
        for _ in 0..50 {
            assert!(budget.free_at() <= now);
            budget.spend(now, now + STEP);
            now += STEP * 20;
        }
    }

    #[test]
    fn what_comes_all_the_time_gets_a_tenth() {
        let start = Instant::now();
        let (mut now, mut spent) = (start, Duration::ZERO);
        let mut budget = Budget::new(now);
        while now < start + Duration::from_secs(100) {
            now = now.max(budget.free_at());
            budget.spend(now, now + STEP);
            spent += STEP;
            now += STEP;
        }
        assert!(spent < Duration::from_secs(15), "{spent:?}");
        assert!(spent > Duration::from_secs(5), "{spent:?}");
    }

    #[test]
    fn what_takes_long_waits_for_long() {
        let now = Instant::now();
        let mut budget = Budget::new(now);
        budget.spend(now, now + Duration::from_secs(1));
        assert!(budget.free_at() >= now + Duration::from_secs(10));
    }
}
