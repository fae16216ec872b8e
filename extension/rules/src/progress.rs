//! How a long job goes on: its rate, and how long the rest takes if it goes on like this.

/// A job at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Rows done.
    pub done: u64,
    /// Rows there are, about.
    pub estimated: u64,
    /// Microseconds since it began.
    pub elapsed: i64,
}

impl Progress {
    /// Rows a second, `None` before there is something to tell from.
    pub fn rows_per_second(self) -> Option<f64> {
        let seconds = self.elapsed as f64 / 1e6;
        (self.done > 0 && seconds > 0.0).then(|| self.done as f64 / seconds)
    }

    /// Seconds until all rows are done. Where there are more than estimated, none is left to tell.
    pub fn seconds_left(self) -> Option<f64> {
        let left = self.estimated.saturating_sub(self.done) as f64;
        self.rows_per_second().map(|rate| left / rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Progress = Progress { done: 100, estimated: 400, elapsed: 2_000_000 };

    #[test]
    fn time_left_follows_from_the_rate() {
        assert_eq!(HALF.rows_per_second(), Some(50.0));
        assert_eq!(HALF.seconds_left(), Some(6.0));
    }

    #[test]
    fn more_rows_than_estimated_leave_no_time() {
        assert_eq!(Progress { done: 500, ..HALF }.seconds_left(), Some(0.0));
    }

    #[test]
    fn nothing_is_told_from_nothing() {
        assert_eq!(Progress { done: 0, ..HALF }.seconds_left(), None);
        assert_eq!(Progress { elapsed: 0, ..HALF }.seconds_left(), None);
        assert_eq!(Progress { elapsed: -5, ..HALF }.rows_per_second(), None);
    }
}
