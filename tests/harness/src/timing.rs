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

/// How much longer everything takes on a machine that does much else.
pub fn burden() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0);
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
    (load / processors as f64 / 2.0).max(1.0)
}
