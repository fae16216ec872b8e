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
    sources: Vec<(DataflowId, SourceId)>,
    /// What all of them hold: microseconds since 2000.
    now: i64,
    /// When they were told.
    told: Instant,
}

fn row(now: i64) -> Row {
    Row::pack(&[Datum::Timestamp(now)])
}

impl Clocks {
    /// None.
    pub fn new() -> Clocks {
        Clocks { sources: Vec::new(), now: xact::now(), told: Instant::now() }
    }

    /// The present time, as the sources have it.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// Adds a source, which holds the present time from `time` on.
    pub fn add(&mut self, engine: &mut Engine, dataflow: DataflowId, source: SourceId, time: Time) {
        if self.sources.is_empty() {
            self.go_on();
        }
        engine.update(dataflow, source, vec![(row(self.now), time, 1)]);
        self.sources.push((dataflow, source));
    }

    /// Forgets the sources of dataflows that are gone.
    pub fn retain(&mut self, is_there: impl Fn(DataflowId) -> bool) {
        self.sources.retain(|(dataflow, _)| is_there(*dataflow));
    }

    /// Until it is time to tell the sources the time; `None` if there are none.
    pub fn due_in(&self) -> Option<Duration> {
        (!self.sources.is_empty()).then(|| RESOLUTION.saturating_sub(self.told.elapsed()))
    }

    /// Tells all sources the present time.
    pub fn tell(&mut self, engine: &mut Engine, time: Time) {
        let before = self.now;
        self.go_on();
        for (dataflow, source) in &self.sources {
            let updates: Updates<Row> = vec![(row(before), time, -1), (row(self.now), time, 1)];
            engine.update(*dataflow, *source, updates);
        }
    }

    /// The machine's clock may have been put back; the views' is not.
    fn go_on(&mut self) {
        self.now = self.now.max(xact::now());
        self.told = Instant::now();
    }
}
