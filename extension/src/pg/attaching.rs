//! How far views are that are being attached: part of their cells in shared memory.

use rules::progress::Progress;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};

/// What is being done to attach a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Step {
    /// It has to be begun: its turn has not come, or a table is locked.
    Waiting,
    /// Its base tables are read.
    Reading,
    /// Its dataflow computes what they give.
    Computing,
    /// Its rows are compared and written.
    Writing,
    /// It is attached, or cannot be.
    Ended,
}

impl Step {
    /// As `eddy.views` has it; nothing when it is not being attached.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Step::Waiting => Some("waiting"),
            Step::Reading => Some("reading"),
            Step::Computing => Some("computing"),
            Step::Writing => Some("writing"),
            Step::Ended => None,
        }
    }
}

/// Figures of a view's last start; only the worker writes them.
#[repr(C)]
pub struct Attaching {
    /// A [`Step`].
    step: AtomicU32,
    /// How often it was begun to read the view's tables since the server started.
    starts: AtomicU64,
    /// When that began the last time (PostgreSQL timestamp), 0 for never.
    began: AtomicI64,
    rows_read: AtomicU64,
    rows_estimated: AtomicU64,
}

impl Attaching {
    pub fn reset(&self) {
        self.step.store(Step::Waiting as u32, Relaxed);
        for counter in [&self.starts, &self.rows_read, &self.rows_estimated] {
            counter.store(0, Relaxed);
        }
        self.began.store(0, Relaxed);
    }

    /// Its tables, which have about so many rows, are read from now on.
    pub fn begin(&self, now: i64, rows_estimated: u64) {
        self.rows_read.store(0, Relaxed);
        self.rows_estimated.store(rows_estimated, Relaxed);
        self.began.store(now, Relaxed);
        self.starts.fetch_add(1, Relaxed);
        self.set_step(Step::Reading);
    }

    /// So many rows have been read.
    pub fn note_read(&self, rows: u64) {
        self.rows_read.store(rows, Relaxed);
    }

    pub fn set_step(&self, step: Step) {
        self.step.store(step as u32, Relaxed);
    }

    pub fn step(&self) -> Step {
        match self.step.load(Relaxed) {
            1 => Step::Reading,
            2 => Step::Computing,
            3 => Step::Writing,
            4 => Step::Ended,
            _ => Step::Waiting,
        }
    }

    pub fn starts(&self) -> u64 {
        self.starts.load(Relaxed)
    }

    /// How reading its tables goes on.
    pub fn progress(&self, now: i64) -> Progress {
        Progress {
            done: self.rows_read.load(Relaxed),
            estimated: self.rows_estimated.load(Relaxed),
            elapsed: now.saturating_sub(self.began.load(Relaxed)),
        }
    }
}
