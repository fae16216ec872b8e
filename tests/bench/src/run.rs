//! One side under the clock: load, then batches, one after another (a closed loop) or on a schedule.

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::Result;
use engine::memory::allocated;
use hdrhistogram::Histogram;
use serde_json::{json, Value};

use crate::checksum::Checksums;
use crate::entry::{Entry, Size, Startable};
use crate::record::add_time;
use crate::workload::{Side, SideName, Time, FIRST_SWAP};

/// A side after its load.
pub struct Run {
    side: Box<dyn Side>,
    pub checksums: Checksums,
    pub loaded: Loaded,
    next_swap: u64,
}

/// What the load took.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    pub base_rows: u64,
    pub output_rows: i64,
    pub time: Duration,
    /// Allocated since before the start, that is: state.
    pub bytes: usize,
}

/// Some batches of one run.
pub struct Segment {
    pub swaps: u64,
    pub elapsed: Duration,
    /// In nanoseconds: of single batches, or of single swaps on a schedule.
    pub latencies: Histogram<u64>,
}

impl Run {
    /// Starts a side and loads it.
    pub fn start(workload: &dyn Startable, side: SideName, workers: usize) -> Result<Run> {
        let bytes_before = allocated();
        let mut run = Run::load(workload.load_size(), workload.start(side, workers)?)?;
        run.loaded.bytes = allocated().saturating_sub(bytes_before);
        Ok(run)
    }

    /// Loads a side that was started. Its bytes are not known.
    pub fn load(base_rows: u64, mut side: Box<dyn Side>) -> Result<Run> {
        side.prepare_load(0..base_rows);
        let start = Instant::now();
        side.feed();
        side.advance(FIRST_SWAP);
        side.wait(FIRST_SWAP)?;
        let time = start.elapsed();
        let mut checksums = Checksums::default();
        side.collect(&mut checksums)?;
        let loaded = Loaded { base_rows, output_rows: checksums.rows, time, bytes: 0 };
        Ok(Run { side, checksums, loaded, next_swap: 0 })
    }

    /// The time before which everything has been output.
    pub fn frontier(&self) -> Time {
        FIRST_SWAP + self.next_swap
    }

    /// The next `rounds` batches of `batch` swaps each.
    pub fn batches(&mut self, batch: u64, rounds: u64) -> Result<Segment> {
        let mut segment = Segment::new();
        for _ in 0..rounds {
            let swaps = self.next_swap..self.next_swap + batch;
            self.side.prepare_swaps(swaps.clone());
            let start = Instant::now();
            self.batch(swaps)?;
            let latency = start.elapsed();
            self.side.collect(&mut self.checksums)?;
            segment.swaps += batch;
            segment.elapsed += latency;
            segment.record(latency);
        }
        Ok(segment)
    }

    /// `rate` swaps per second for a while. All swaps that are due make a batch as soon as the last
    /// batch is done; making rows of them is under the clock here.
    pub fn scheduled(&mut self, rate: u64, duration: Duration) -> Result<Segment> {
        let due = |swap: u64| Duration::from_secs_f64(swap as f64 / rate as f64);
        let total = (duration.as_secs_f64() * rate as f64) as u64;
        let mut segment = Segment::new();
        let first = self.next_swap;
        let start = Instant::now();
        while segment.swaps < total {
            wait_until(start + due(segment.swaps));
            let arrived = (start.elapsed().as_secs_f64() * rate as f64) as u64 + 1;
            let batch = segment.swaps..arrived.min(total);
            let swaps = first + batch.start..first + batch.end;
            self.side.prepare_swaps(swaps.clone());
            self.batch(swaps)?;
            let done = start.elapsed();
            segment.swaps = batch.end;
            batch.for_each(|swap| segment.record(done.saturating_sub(due(swap))));
        }
        segment.elapsed = start.elapsed();
        self.side.collect(&mut self.checksums)?;
        Ok(segment)
    }

    /// Feeds what is prepared and waits for its output.
    fn batch(&mut self, swaps: Range<u64>) -> Result<()> {
        self.next_swap = swaps.end;
        self.side.feed();
        self.side.advance(self.frontier());
        self.side.wait(self.frontier())
    }
}

/// The operating system wakes too late for a schedule of microseconds: the last bit is spun.
fn wait_until(moment: Instant) {
    const COARSE: Duration = Duration::from_micros(200);
    let left = moment.saturating_duration_since(Instant::now());
    if left > COARSE {
        std::thread::sleep(left - COARSE);
    }
    while Instant::now() < moment {
        std::thread::yield_now();
    }
}

impl Segment {
    fn new() -> Segment {
        Segment { swaps: 0, elapsed: Duration::ZERO, latencies: new_histogram() }
    }

    fn record(&mut self, latency: Duration) {
        add_time(&mut self.latencies, latency);
    }

    pub fn swaps_per_second(&self) -> f64 {
        self.swaps as f64 / self.elapsed.as_secs_f64()
    }
}

impl Loaded {
    pub fn describe(&self, entry: &Entry, size: Size, side: SideName, workers: usize) -> Value {
        json!({
            "kind": "load", "name": entry.name, "side": side.as_str(), "workers": workers,
            "nodes": size.nodes, "edges": size.edges,
            "base_rows": self.base_rows, "output_rows": self.output_rows,
            "seconds": self.time.as_secs_f64(), "bytes": self.bytes,
        })
    }
}

/// Nanoseconds up to an hour, with three digits.
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("the bounds are valid")
}
