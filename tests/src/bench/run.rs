//! One side under the clock: load, then batches, one after another (a closed loop).

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::Result;
use engine::memory::allocated;
use hdrhistogram::Histogram;

use super::checksum::Checksums;
use super::workload::{Side, Time, FIRST_SWAP};

/// A side after its load.
pub struct Run {
    side: Box<dyn Side>,
    pub checksums: Checksums,
    pub load: Duration,
    /// Bytes allocated since before the start, that is: state, once the load is done.
    pub loaded_bytes: usize,
    next_swap: u64,
}

/// Some batches of one run.
pub struct Segment {
    pub swaps: u64,
    pub elapsed: Duration,
    /// Of single batches, in nanoseconds.
    pub latencies: Histogram<u64>,
}

impl Run {
    /// Starts a side and loads it.
    pub fn start(side: impl FnOnce() -> Result<Box<dyn Side>>, load_size: u64) -> Result<Run> {
        let bytes_before = allocated();
        let mut side = side()?;
        side.prepare_load(0..load_size);
        let start = Instant::now();
        side.feed();
        side.advance(FIRST_SWAP);
        side.wait(FIRST_SWAP)?;
        let load = start.elapsed();
        let mut checksums = Checksums::default();
        side.collect(&mut checksums)?;
        let loaded_bytes = allocated().saturating_sub(bytes_before);
        Ok(Run { side, checksums, load, loaded_bytes, next_swap: 0 })
    }

    /// The time before which everything has been output.
    pub fn frontier(&self) -> Time {
        FIRST_SWAP + self.next_swap
    }

    /// The next `rounds` batches of `batch` swaps each.
    pub fn batches(&mut self, batch: u64, rounds: u64) -> Result<Segment> {
        let mut segment = Segment { swaps: 0, elapsed: Duration::ZERO, latencies: new_histogram() };
        for _ in 0..rounds {
            let swaps = self.next_swap..self.next_swap + batch;
            let latency = self.batch(swaps)?;
            segment.swaps += batch;
            segment.elapsed += latency;
            record(&mut segment.latencies, latency);
        }
        Ok(segment)
    }

    fn batch(&mut self, swaps: Range<u64>) -> Result<Duration> {
        let end = FIRST_SWAP + swaps.end;
        self.next_swap = swaps.end;
        self.side.prepare_swaps(swaps);
        let start = Instant::now();
        self.side.feed();
        self.side.advance(end);
        self.side.wait(end)?;
        let latency = start.elapsed();
        self.side.collect(&mut self.checksums)?;
        Ok(latency)
    }
}

/// Nanoseconds up to an hour, with three digits.
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("the bounds are valid")
}

pub fn record(histogram: &mut Histogram<u64>, latency: Duration) {
    histogram.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
}
