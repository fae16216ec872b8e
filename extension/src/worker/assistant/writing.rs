//! Writing of many rows by an assistant, and before that, telling which rows a heap holds, while the dataflow may still be at
//! work on what it is to hold: the parts that need nothing of PostgreSQL. What is known of the heap's rows, and the output
//! to be written, are here as long as it lasts.

use super::jobs::{without_result, Head, JobEnd, Turn};
use super::order::{self, Beside, Work};
use crate::pg::heap::Tid;
use crate::worker::changelog::Entries;
use crate::worker::output::{bytes_of_copies, Output};
use crate::worker::stored::{Changes, Compared, Delta, Missing, RowHash, StoredRows};
use crate::worker::write::{Outcome, Target};
use engine::Updates;
use plan::row::Row;
use rules::codec::Decoder;
use std::io;
use std::time::Duration;

/// What was written in this time is written by the worker itself the next time, unless it is much.
const QUICK: Duration = Duration::from_millis(20);

/// A view whose rows are to be told.
pub struct Comparing {
    target: Target,
    /// Those that were told, by hashes with keys of this process.
    stored: StoredRows,
}

impl Comparing {
    pub fn new(target: Target) -> Comparing {
        Comparing { target, stored: StoredRows::new(0) }
    }

    pub fn prepare(self, head: &Head) -> Turn {
        let Target { owner, types, .. } = self.target.clone();
        let work = Work::Compare { owner, types, keys: self.stored.keys() };
        match head.begin(work).and_then(|encoder| encoder.finish()) {
            Ok(()) => Turn::Ready(self.into()),
            Err(error) => Turn::Unordered(self.into(), error),
        }
    }

    /// Takes what an assistant has found.
    pub fn digest(mut self, head: &Head) -> Turn {
        match self.read_result(head) {
            Ok(outcome) => {
                let Comparing { stored, .. } = self;
                let compared = outcome.map(|is_populated| Compared { stored, is_populated });
                Turn::Over(Box::new(JobEnd::Compared(compared)))
            }
            Err(error) => {
                let again = Comparing::new(self.target);
                Turn::Failed(again.into(), without_result(&error))
            }
        }
    }

    /// Answers whether the view may be read.
    fn read_result(&mut self, head: &Head) -> io::Result<Outcome<bool>> {
        let mut decoder = Decoder::open(head.files.result())?;
        let stored = &mut self.stored;
        let found = order::read_outcome(&mut decoder, |decoder| {
            let file = decoder.number()? as u32;
            let is_populated = decoder.number()? != 0;
            let count = decoder.count()?;
            stored.file = file;
            stored.reserve(count);
            let _on_their_account = stored.allocate();
            for _ in 0..count {
                let (low, high) = (decoder.number()?, decoder.number()?);
                let hash = RowHash(u128::from(high) << 64 | u128::from(low));
                stored.add_hash(hash, Tid::from_number(decoder.number()?));
            }
            Ok(is_populated)
        })?;
        decoder.finish()?;
        Ok(found)
    }
}

/// A view of which many rows are to be written.
pub struct Writing {
    pub target: Target,
    /// The columns of its key.
    pub key: Option<Vec<usize>>,
    /// The rows in the heap.
    pub stored: StoredRows,
    /// What else was found there, if the output is to be compared with them.
    pub first: Option<First>,
    /// What is to be written.
    pub output: Output,
    /// The same with its times, of a view whose changes are kept.
    pub updates: Updates<Row>,
    /// What the table of its changes gets.
    pub entries: Entries,
    /// The writes it comes to, once they are known.
    pub changes: Option<Changes>,
    /// Source transactions that the output is of.
    pub transactions: u64,
    /// Bytes that may be taken by copies of rows.
    pub memory: usize,
}

/// What was found in a heap beside its rows.
pub struct First {
    /// Whether the view may be read.
    pub is_populated: bool,
    /// Full number of a transaction that began when the output was known. Who finds the heap right has changed nothing, and is
    /// the last who did so all the same: snapshots from before it may be of another state.
    pub xid: u64,
    /// Whether the output is what changes of the heap, and not all of it.
    pub goes_on: bool,
}

/// What was written of a view.
pub struct Written {
    pub stored: StoredRows,
    pub is_first: bool,
    pub rows: usize,
    pub transactions: u64,
    pub xid: u64,
    /// Whether it took so little time that the worker can do it the next time.
    pub is_quick: bool,
}

/// What an assistant has written.
struct Places {
    xid: u64,
    took: Duration,
    places: Vec<Tid>,
}

/// What was not written of a view.
pub struct Unwritten {
    /// The rows in the heap, if they had been compared before.
    pub stored: Option<StoredRows>,
    pub delta: Delta,
    pub updates: Updates<Row>,
    pub transactions: u64,
}

/// Why nothing was written.
pub enum Reason {
    Outcome(Outcome<()>),
    /// The heap does not hold what is to be deleted.
    Missing,
    /// Copies of rows would take that many bytes.
    BeyondMemory(usize),
}

impl Writing {
    /// Works out the writes, and orders them.
    pub fn prepare(mut self: Box<Self>, head: &Head) -> Turn {
        let changes = match self.changes.take() {
            Some(changes) => changes,
            None => match self.work_out() {
                Ok(changes) => changes,
                Err(reason) => return self.give_up(reason),
            },
        };
        match &self.first {
            Some(First { is_populated: true, xid, .. }) if changes.len() == 0 => {
                let xid = *xid;
                self.written(0, xid, true)
            }
            _ => {
                self.changes = Some(changes);
                self.order_writes(head)
            }
        }
    }

    fn work_out(&mut self) -> Result<Changes, Reason> {
        let entries = self.entries.clone();
        self.work_out_rows().map(|changes| Changes { entries, ..changes })
    }

    fn work_out_rows(&mut self) -> Result<Changes, Reason> {
        self.output.add_up();
        let delta = self.output.delta();
        self.require_memory(bytes_of_copies(delta))?;
        match self.first {
            Some(First { goes_on: false, .. }) => Ok(self.stored.changes_to_reach(delta)),
            Some(First { goes_on: true, .. }) | None => {
                let changes = self.stored.changes_for_delta(delta, self.key.as_deref());
                changes.map_err(|Missing| Reason::Missing)
            }
        }
    }

    fn require_memory(&self, bytes: usize) -> Result<(), Reason> {
        match bytes.checked_sub(self.memory) {
            None | Some(0) => Ok(()),
            Some(missing) => Err(Reason::BeyondMemory(missing)),
        }
    }

    fn order_writes(self: Box<Self>, head: &Head) -> Turn {
        match self.write_order(head) {
            Ok(()) => Turn::Ready((*self).into()),
            Err(error) => Turn::Unordered((*self).into(), error),
        }
    }

    fn write_order(&self, head: &Head) -> io::Result<()> {
        let (file, beside) = (self.stored.file, Beside::of(&self.target));
        let Target { owner, types, .. } = self.target.clone();
        let mut encoder = head.begin(Work::Write { owner, types, beside, file })?;
        if let Some(changes) = &self.changes {
            order::write_changes(&mut encoder, changes)?;
        }
        encoder.finish()
    }

    /// Takes what an assistant has written.
    pub fn digest(mut self: Box<Self>, head: &Head) -> Turn {
        let Places { xid, took, places } = match read_places(head) {
            Ok(Outcome::Done(written)) => written,
            Ok(other) => return self.give_up(Reason::Outcome(other.map(|_| ()))),
            // It may have committed, or not.
            Err(_) if head.files.draft().exists() => {
                return self.give_up(Reason::Outcome(Outcome::Foreign))
            }
            Err(error) => return Turn::Failed((*self).into(), without_result(&error)),
        };
        let changes = self.changes.take().unwrap_or_default();
        self.stored.note(&changes, &places);
        self.written(changes.len(), xid, took < QUICK)
    }

    fn written(self: Box<Self>, rows: usize, xid: u64, is_quick: bool) -> Turn {
        let Writing { stored, first, transactions, .. } = *self;
        let is_first = first.is_some();
        let written = Written { stored, is_first, rows, transactions, xid, is_quick };
        Turn::Over(Box::new(JobEnd::Written(written)))
    }

    fn give_up(self: Box<Self>, reason: Reason) -> Turn {
        Turn::Over(Box::new(JobEnd::Unwritten(self.leave(), reason)))
    }

    /// What is left to whoever writes it.
    pub fn leave(self) -> Unwritten {
        let Writing { stored, first, output, updates, transactions, .. } = self;
        let stored = first.is_none().then_some(stored);
        Unwritten { stored, delta: output.into_delta(), updates, transactions }
    }
}

fn read_places(head: &Head) -> io::Result<Outcome<Places>> {
    let mut decoder = Decoder::open(head.files.result())?;
    let places = order::read_outcome(&mut decoder, |decoder| {
        let (xid, took) = (decoder.number()?, Duration::from_micros(decoder.number()?));
        let count = decoder.count()?;
        let place = |_| Ok(Tid::from_number(decoder.number()?));
        let places = (0..count).map(place).collect::<io::Result<_>>()?;
        Ok(Places { xid, took, places })
    })?;
    decoder.finish()?;
    Ok(places)
}
