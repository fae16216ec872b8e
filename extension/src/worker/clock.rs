//! The present time, for views whose rows come and go with it.
//!
//! Their dataflows have a source of one row that holds it. The row is replaced every second, for all views at once, at
//! a time of its own among those of transactions.

use crate::pg::xact;
use engine::{DataflowId, Engine, Time, Updates};
use planner::plan::SourceId;
use planner::row::Row;
use planner::value::Datum;
use std::time::{Duration, Instant};

/// How late a row may come or go.
const RESOLUTION: Duration = Duration::from_secs(1);

/// The sources that hold the present time.
pub struct Clocks {
    sources: Vec<Shown>,
    /// When all of them were told the time.
    told: Instant,
}

/// What one source holds.
struct Shown {
    dataflow: DataflowId,
    source: SourceId,
    /// Microseconds since 2000.
    now: i64,
}

fn row(now: i64) -> Row {
    Row::pack(&[Datum::Timestamp(now)])
}

impl Clocks {
    /// None.
    pub fn new() -> Clocks {
        Clocks { sources: Vec::new(), told: Instant::now() }
    }

    /// Adds a source, which holds the present time from `time` on.
    pub fn add(&mut self, engine: &mut Engine, dataflow: DataflowId, source: SourceId, time: Time) {
        let now = xact::now();
        engine.update(dataflow, source, vec![(row(now), time, 1)]);
        self.sources.push(Shown { dataflow, source, now });
    }

    /// Forgets the sources of dataflows that are gone.
    pub fn retain(&mut self, is_there: impl Fn(DataflowId) -> bool) {
        self.sources.retain(|shown| is_there(shown.dataflow));
    }

    /// Whether it is time to tell the sources the time.
    pub fn is_due(&self) -> bool {
        !self.sources.is_empty() && self.told.elapsed() >= RESOLUTION
    }

    /// Tells all sources the present time.
    pub fn tell(&mut self, engine: &mut Engine, time: Time) {
        self.told = Instant::now();
        let now = xact::now();
        for shown in &mut self.sources {
            // The machine's clock may have been put back; the views' is not.
            let next = now.max(shown.now);
            let updates: Updates<Row> = vec![(row(shown.now), time, -1), (row(next), time, 1)];
            engine.update(shown.dataflow, shown.source, updates);
            shown.now = next;
        }
    }
}
