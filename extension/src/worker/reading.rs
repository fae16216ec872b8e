//! Reading: the tables of views that are being attached, bit by bit, so that the other views are maintained meanwhile.
//!
//! Each bit is read in a transaction of its own under the view's one snapshot, whose rows the replication slot holds
//! ([`crate::pg::held_snapshot`]). Between two bits no lock is held: a table that was written anew meanwhile is in another
//! file, and then the view is attached once more. Other changes of tables and rights are told of as they are to views that are
//! attached. Whose turn it is, is decided in [`super::turns`].

use super::chosen::{Chosen, New};
use super::sources::{Refusal, Sources};
use crate::pg::heap::{self, Projection};
use crate::pg::held_snapshot::HeldSnapshot;
use crate::pg::ids::RelationId;
use crate::pg::relation::{
    numbers_in_child, try_lock, with_relation, Attribute, Lock, RelationRef,
};
use engine::{DataflowId, Engine, Time};
use plan::types::Type;
use plan::SourceId;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Time for one bit.
const BIT: Duration = Duration::from_millis(20);

/// Pages read before the clock is looked at.
const PAGES: u32 = 32;

/// Who has to wait, for a lock or for its dataflow, tries again after this long.
const PAUSE: Duration = Duration::from_millis(10);

/// Who has waited for a lock this long lets go of the snapshot, which keeps `VACUUM` from its work, and begins anew.
const PATIENCE: Duration = Duration::from_secs(2);

/// The tables of a view are being read.
#[derive(Debug)]
pub struct Reading {
    /// Its dataflow's name in the engine.
    pub dataflow: DataflowId,
    /// What it was compiled from.
    pub sources: Sources,
    /// What it reads from indexes.
    pub chosen: Chosen,
    /// The time of all rows.
    pub as_of: Time,
    /// End of the WAL after the snapshot was taken.
    pub end: u64,
    pub held: HeldSnapshot,
    /// What is left to be read.
    pub parts: VecDeque<Part>,
    /// Rows read so far.
    pub rows: usize,
    /// When it began.
    pub since: Instant,
    /// It goes on then.
    pub not_before: Instant,
    /// When it was last not kept out by a lock.
    pub admitted: Instant,
}

/// What is left of a table that holds rows of a source.
#[derive(Debug)]
pub struct Part {
    /// Where its rows go.
    target: (DataflowId, SourceId),
    table: RelationId,
    file: u32,
    projection: Projection,
    /// The next page, and the number of pages; `None` for a table that can only be read as a whole.
    pages: Option<(u32, u32)>,
    /// How many rows it has by PostgreSQL's estimate.
    pub rows: u64,
}

impl Part {
    /// All of a table; nothing of one without rows of its own. `None` if it lacks columns.
    pub fn new(
        target: (DataflowId, SourceId),
        relation: &RelationRef<'_>,
        columns: &[(i16, Type)],
        parent: &[Attribute],
    ) -> Option<Option<Part>> {
        if relation.kind() != b'r' {
            return Some(None);
        }
        let numbers = columns.iter().map(|(number, _)| *number);
        let numbers = numbers_in_child(numbers, parent, &relation.attributes())?;
        let types = columns.iter().map(|(_, ty)| *ty);
        Some(Some(Part {
            target,
            table: relation.id(),
            file: relation.file(),
            projection: Projection { columns: numbers.into_iter().zip(types).collect() },
            pages: heap::pages(relation).map(|pages| (0, pages)),
            rows: relation.estimated_rows(),
        }))
    }

    /// Reads some pages, or all if there are none; answers the number of rows.
    fn read(
        &mut self,
        relation: &RelationRef<'_>,
        engine: &mut Engine,
        time: Time,
    ) -> Result<usize, Refusal> {
        let mut updates = Vec::new();
        let each = |row: Result<_, _>, _| {
            updates.push((row?, time, 1));
            Ok::<_, Refusal>(())
        };
        match &mut self.pages {
            Some((next, end)) => {
                let to = next.saturating_add(PAGES).min(*end);
                heap::scan_pages(relation, *next..to, &self.projection, each)?;
                *next = to;
            }
            None => {
                heap::scan(relation, &self.projection, each)?;
                self.pages = Some((0, 0));
            }
        }
        let count = updates.len();
        engine.update(self.target.0, self.target.1, updates);
        Ok(count)
    }

    fn is_read(&self) -> bool {
        self.pages.is_some_and(|(next, end)| next >= end)
    }
}

impl Reading {
    /// The new indexes into which all rows have been read, each once.
    pub fn take_read_indexes(&mut self) -> Vec<DataflowId> {
        let parts = &self.parts;
        let is_read = |new: &mut New| parts.iter().all(|part| part.target.0 != new.dataflow);
        self.chosen.new.extract_if(.., is_read).map(|new| new.dataflow).collect()
    }

    /// Reads on for a while; answers whether all is read. Needs a transaction.
    pub fn read_on(&mut self, engine: &mut Engine) -> Result<bool, Refusal> {
        let until = Instant::now() + BIT;
        while let Some(part) = self.parts.front_mut() {
            if !try_lock(part.table, Lock::AccessShare) {
                self.not_before = Instant::now() + PAUSE;
                return match self.admitted.elapsed() < PATIENCE {
                    true => Ok(false),
                    false => Err(Refusal::Later),
                };
            }
            self.admitted = Instant::now();
            let (held, rows, not_before) = (&self.held, &mut self.rows, &mut self.not_before);
            let time = self.as_of;
            let is_over = with_relation(part.table, Lock::AccessShare, |relation| {
                if relation.file() != part.file {
                    return Err(Refusal::Later);
                }
                while !part.is_read() {
                    if Instant::now() >= until {
                        return Ok(true);
                    }
                    // What is on its way is in memory.
                    if !engine.wait_for_room(part.target.0, Duration::ZERO) {
                        *not_before = Instant::now() + PAUSE;
                        return Ok(true);
                    }
                    *rows += held.with(|| part.read(&relation, engine, time))?;
                }
                Ok(false)
            });
            if is_over.ok_or(Refusal::Later)?? {
                return Ok(false);
            }
            self.parts.pop_front();
        }
        Ok(true)
    }
}
