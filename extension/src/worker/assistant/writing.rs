//! Writing of many rows by an assistant: the part that needs nothing of PostgreSQL. What is known of the heap's rows, and
//! the output to be written, are here as long as it lasts.

use super::jobs::{without_result, Head, JobEnd, Turn};
use super::order::{self, Work};
use crate::pg::heap::Tid;
use crate::worker::output::{bytes_of_copies, Output};
use crate::worker::stored::{Changes, Delta, Missing, RowHash, StoredRows};
use crate::worker::write::{Outcome, Target};
use rules::codec::Decoder;
use std::io;
use std::time::Duration;

/// What was written in this time is written by the worker itself the next time, unless it is much.
const QUICK: Duration = Duration::from_millis(20);

/// A view of which many rows are to be written.
pub struct Writing {
    pub target: Target,
    /// The columns of its key.
    pub key: Option<Vec<usize>>,
    /// The rows in the heap, unless they have to be compared.
    pub stored: Option<StoredRows>,
    /// What is to be written, until it is added up.
    pub output: Output,
    /// The same after that.
    pub delta: Delta,
    /// The writes it comes to, once they are known.
    pub changes: Option<Changes>,
    /// Whether the rows had to be compared.
    pub is_first: bool,
    /// Source transactions that the output is of.
    pub transactions: u64,
    /// Bytes that may be taken by copies of rows.
    pub memory: usize,
}

/// What an assistant found in a heap.
struct Compared {
    xid: u64,
    file: u32,
    is_populated: bool,
    rows: Vec<(RowHash, Tid)>,
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
        self.delta = match std::mem::take(&mut self.output) {
            output if output.is_empty() => self.delta,
            output => output.into_delta(),
        };
        let copies = bytes_of_copies(&self.delta);
        if copies > self.memory {
            let missing = copies - self.memory;
            return self.give_up(Reason::BeyondMemory(missing));
        }
        if self.changes.is_some() {
            return self.order_writes(head);
        }
        let Some(stored) = &self.stored else { return self.order_comparison(head) };
        match stored.changes_for_delta(&self.delta, self.key.as_deref()) {
            Ok(changes) => {
                self.changes = Some(changes);
                self.order_writes(head)
            }
            Err(Missing) => self.give_up(Reason::Missing),
        }
    }

    fn order_comparison(mut self: Box<Self>, head: &Head) -> Turn {
        let stored = StoredRows::new(self.delta.len());
        let Target { owner, types, .. } = self.target.clone();
        let work = Work::Compare { owner, types, keys: stored.keys() };
        self.is_first = true;
        self.stored = Some(stored);
        match head.begin(work).and_then(|encoder| encoder.finish()) {
            Ok(()) => Turn::Ready((*self).into()),
            Err(error) => Turn::Unordered((*self).into(), error),
        }
    }

    fn order_writes(self: Box<Self>, head: &Head) -> Turn {
        match self.write_order(head) {
            Ok(()) => Turn::Ready((*self).into()),
            Err(error) => Turn::Unordered((*self).into(), error),
        }
    }

    fn write_order(&self, head: &Head) -> io::Result<()> {
        let Target { owner, types, .. } = self.target.clone();
        let file = self.stored.as_ref().map_or(0, |stored| stored.file);
        let mut encoder = head.begin(Work::Write { owner, types, file })?;
        if let Some(changes) = &self.changes {
            order::write_changes(&mut encoder, changes)?;
        }
        encoder.finish()
    }

    /// To be tried once more. A heap that was to be compared is compared anew.
    fn failed(mut self: Box<Self>, reason: String) -> Turn {
        if self.is_first {
            self.stored = None;
            self.changes = None;
        }
        Turn::Failed((*self).into(), reason)
    }

    /// Takes what an assistant has found, or written.
    pub fn digest(self: Box<Self>, head: &Head) -> Turn {
        match self.changes.is_some() {
            true => self.digest_writes(head),
            false => self.digest_comparison(head),
        }
    }

    fn digest_comparison(mut self: Box<Self>, head: &Head) -> Turn {
        let compared = match read_compared(head) {
            Ok(Outcome::Done(compared)) => compared,
            Ok(other) => return self.give_up(Reason::Outcome(other.map(|_| ()))),
            Err(error) => return self.failed(without_result(&error)),
        };
        let stored = self.stored.get_or_insert_with(|| StoredRows::new(0));
        let on_their_account = stored.allocate();
        stored.file = compared.file;
        for (hash, tid) in compared.rows {
            stored.add_hash(hash, tid);
        }
        drop(on_their_account);
        let changes = stored.changes_to_reach(&self.delta);
        if changes.len() == 0 && compared.is_populated {
            return self.written(0, compared.xid, true);
        }
        self.changes = Some(changes);
        self.order_writes(head)
    }

    fn digest_writes(mut self: Box<Self>, head: &Head) -> Turn {
        let Places { xid, took, places } = match read_places(head) {
            Ok(Outcome::Done(written)) => written,
            Ok(other) => return self.give_up(Reason::Outcome(other.map(|_| ()))),
            // It may have committed, or not.
            Err(_) if head.files.draft().exists() => {
                return self.give_up(Reason::Outcome(Outcome::Foreign))
            }
            Err(error) => return self.failed(without_result(&error)),
        };
        let changes = self.changes.take().unwrap_or_default();
        if let Some(stored) = &mut self.stored {
            stored.note(&changes, &places);
        }
        self.written(changes.len(), xid, took < QUICK)
    }

    fn written(self: Box<Self>, rows: usize, xid: u64, is_quick: bool) -> Turn {
        let Writing { stored, is_first, transactions, .. } = *self;
        let stored = stored.expect("what is written was compared before");
        let written = Written { stored, is_first, rows, transactions, xid, is_quick };
        Turn::Over(Box::new(JobEnd::Written(written)))
    }

    fn give_up(self: Box<Self>, reason: Reason) -> Turn {
        Turn::Over(Box::new(JobEnd::Unwritten(self.leave(), reason)))
    }

    /// What is left to whoever writes it.
    pub fn leave(self) -> Unwritten {
        let Writing { stored, is_first, output, delta, transactions, .. } = self;
        let delta = if output.is_empty() { delta } else { output.into_delta() };
        Unwritten { stored: stored.filter(|_| !is_first), delta, transactions }
    }
}

fn read_compared(head: &Head) -> io::Result<Outcome<Compared>> {
    let mut decoder = Decoder::open(head.files.result())?;
    let compared = order::read_outcome(&mut decoder, |decoder| {
        let (xid, file) = (decoder.number()?, decoder.number()? as u32);
        let is_populated = decoder.number()? != 0;
        let count = decoder.count()?;
        let mut rows = Vec::with_capacity(count);
        for _ in 0..count {
            let (low, high) = (decoder.number()?, decoder.number()?);
            let hash = RowHash(u128::from(high) << 64 | u128::from(low));
            rows.push((hash, Tid::from_number(decoder.number()?)));
        }
        Ok(Compared { xid, file, is_populated, rows })
    })?;
    decoder.finish()?;
    Ok(compared)
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
