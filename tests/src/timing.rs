//! Durations: medians and how people read them.

use std::time::{Duration, Instant};

use anyhow::Result;

/// Runs `work` and says how long it took.
pub fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
    let start = Instant::now();
    let value = work()?;
    Ok((value, start.elapsed()))
}

/// The middle value; `values` must not be empty.
pub fn median<T: PartialOrd + Copy>(values: &[T]) -> T {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.partial_cmp(b).expect("measurements are ordered"));
    sorted[sorted.len() / 2]
}

/// Two or three digits and a unit.
pub fn readable(duration: Duration) -> String {
    let milliseconds = duration.as_secs_f64() * 1e3;
    match milliseconds {
        m if m < 10.0 => format!("{m:.2} ms"),
        m if m < 1000.0 => format!("{m:.0} ms"),
        m => format!("{:.2} s", m / 1e3),
    }
}
