//! Measurements as JSON lines: one object per measurement, the machine's description first.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use serde_json::{json, Value};

/// Where a run's measurements go.
pub struct Output {
    /// Folder for JSON lines and plots.
    pub folder: PathBuf,
    /// What the figures depend on.
    pub machine: Value,
}

/// A file of measurements of one benchmark.
pub struct Recorder(BufWriter<File>);

impl Recorder {
    /// `engine/E2` is recorded in `engine-E2.jsonl`.
    pub fn create(output: &Output, name: &str) -> Result<Recorder> {
        fs::create_dir_all(&output.folder)?;
        let file = output.folder.join(format!("{}.jsonl", file_stem(name)));
        let file = File::create(&file).with_context(|| format!("creating {}", file.display()))?;
        let mut recorder = Recorder(BufWriter::new(file));
        recorder.write(&output.machine)?;
        Ok(recorder)
    }

    pub fn write(&mut self, measurement: &Value) -> Result<()> {
        writeln!(self.0, "{measurement}")?;
        // What was measured stays if the rest fails.
        Ok(self.0.flush()?)
    }
}

pub fn file_stem(name: &str) -> String {
    name.replace('/', "-")
}

/// Adds a time to a histogram of nanoseconds.
pub fn add_time(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
}

/// The percentiles every latency is reported with, in nanoseconds.
pub fn percentiles(latencies: &Histogram<u64>) -> Value {
    let at = |quantile| latencies.value_at_quantile(quantile);
    json!({ "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": latencies.max() })
}
