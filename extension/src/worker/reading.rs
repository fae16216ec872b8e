//! Reading: the tables of views that are being attached, bit by bit, so that the other views are maintained meanwhile.
//!
//! Each bit is read in a transaction of its own under the view's one snapshot, whose rows the replication slot holds
//! ([`crate::pg::held_snapshot`]). Between two bits no lock is held: a table that was written anew meanwhile is in another
//! file, and then the view is attached once more. Other changes of tables and rights are told of as they are to views that are
//! attached. Whose turn it is, is decided in [`super::turns`].
//!
//! Views that were begun together have one snapshot. A table is read once for all of them that have come to the same place
//! of it; one for which there is no room, or that was kept out by a lock, falls behind, and reads the rest by itself.

use super::chosen::Chosen;
use super::heap::Vouched;
use super::sources::{Refusal, Sources};
use crate::pg::heap::Projection;
use crate::pg::held_snapshot::HeldSnapshot;
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::relation::{
    numbers_in_child, try_lock, with_relation, Attribute, Lock, RelationRef,
};
use crate::pg::scan;
use engine::{DataflowId, Engine, Time, Updates};
use plan::error::DataError;
use plan::row::Row;
use plan::types::Type;
use plan::SourceId;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Time for one bit.
const BIT: Duration = Duration::from_millis(20);

/// Pages read before the clock is looked at.
const PAGES: u32 = 64;

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
    /// The snapshot, of all views that were begun together.
    pub held: Rc<HeldSnapshot>,
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
    /// Whether nobody reads along, because an error struck that may be somebody else's.
    pub is_alone: bool,
    /// Whether its dataflow can be saved.
    pub is_kept: bool,
    /// The heap of one that goes on with what was saved: there is nothing to be read.
    pub goes_on: Option<Vouched>,
}

/// How far a table has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    table: RelationId,
    file: u32,
    /// The next page, and the number of pages; `None` for a table that can only be read as a whole.
    pages: Option<(u32, u32)>,
}

impl Place {
    fn is_end(&self) -> bool {
        self.pages.is_some_and(|(next, end)| next >= end)
    }

    /// Where it goes on after some pages, or after all if there are none.
    fn after(&self, count: u32) -> Place {
        let pages =
            self.pages.map_or((0, 0), |(next, end)| (next.saturating_add(count).min(end), end));
        Place { pages: Some(pages), ..*self }
    }
}

/// What is left of a table that holds rows of a source.
#[derive(Debug)]
pub struct Part {
    /// Where its rows go.
    target: (DataflowId, SourceId),
    place: Place,
    projection: Projection,
    /// How many rows it has by PostgreSQL's estimate.
    pub rows: u64,
}

impl Part {
    /// All of a table, or of what an incremental view holds; nothing of one without rows of its own. `None` if it lacks columns.
    pub fn new(
        target: (DataflowId, SourceId),
        relation: &RelationRef<'_>,
        columns: &[(i16, Type)],
        parent: &[Attribute],
    ) -> Option<Option<Part>> {
        if !matches!(relation.kind(), b'r' | b'm') {
            return Some(None);
        }
        let numbers = columns.iter().map(|(number, _)| *number);
        let numbers = numbers_in_child(numbers, parent, &relation.attributes())?;
        let types = columns.iter().map(|(_, ty)| *ty);
        let pages = scan::pages(relation).map(|pages| (0, pages));
        Some(Some(Part {
            target,
            place: Place { table: relation.id(), file: relation.file(), pages },
            projection: Projection { columns: numbers.into_iter().zip(types).collect() },
            rows: relation.estimated_rows(),
        }))
    }

    /// About how many rows are left.
    fn left(&self) -> u64 {
        let (next, end) = self.place.pages.unwrap_or((0, 1));
        self.rows.saturating_mul(end.saturating_sub(next).into()) / u64::from(end).max(1)
    }
}

impl Reading {
    /// The new indexes into which all rows have been read, each once.
    pub fn take_read_indexes(&mut self) -> Vec<DataflowId> {
        let parts = &self.parts;
        let is_read = |index| parts.iter().all(|part| part.target.0 != index);
        let tables = self.chosen.new.extract_if(.., |new| is_read(new.dataflow));
        let mut read: Vec<DataflowId> = tables.map(|new| new.dataflow).collect();
        let plans = self.chosen.plans.extract_if(.., |new| is_read(new.dataflow));
        read.extend(plans.map(|new| new.dataflow));
        read
    }

    /// About how many rows are left to be read.
    pub fn left(&self) -> u64 {
        self.parts.iter().map(Part::left).sum()
    }
}

/// A view that reads, or reads along.
pub struct Reader<'r> {
    pub relid: ViewId,
    pub reading: &'r mut Reading,
    /// What came in its way.
    pub refusal: Option<Refusal>,
}

impl Reader<'_> {
    fn pause(&mut self) {
        self.reading.not_before = Instant::now() + PAUSE;
    }
}

/// Reads on for a while what is next for the first of the views, for all that have come to the same place under the same
/// snapshot. Needs a transaction.
pub fn read_on(readers: &mut [Reader<'_>], engine: &mut dyn Engine) {
    let until = Instant::now() + BIT;
    while let Some(place) = readers[0].reading.parts.front().map(|part| part.place) {
        let first = &mut readers[0];
        if !try_lock(place.table, Lock::AccessShare) {
            first.pause();
            if first.reading.admitted.elapsed() >= PATIENCE {
                first.refusal = Some(Refusal::Later);
            }
            return;
        }
        first.reading.admitted = Instant::now();
        let is_over = with_relation(place.table, Lock::AccessShare, |relation| {
            let is_same = relation.file() == place.file;
            is_same.then(|| read_table(&relation, place, readers, engine, until))
        });
        match is_over.flatten() {
            Some(true) => {}
            Some(false) => return,
            None => {
                readers[0].refusal = Some(Refusal::Later);
                return;
            }
        }
    }
}

/// Reads a table from a place on; answers whether all of it was read, or the time is over or something in the way.
fn read_table(
    relation: &RelationRef<'_>,
    mut place: Place,
    readers: &mut [Reader<'_>],
    engine: &mut dyn Engine,
    until: Instant,
) -> bool {
    while !place.is_end() {
        if Instant::now() >= until {
            return false;
        }
        // What is on its way is in memory.
        let has_room = |part: &Part| engine.wait_for_room(part.target.0, Duration::ZERO);
        if !readers[0].reading.parts.front().is_some_and(has_room) {
            readers[0].pause();
            return false;
        }
        read_pages(relation, place, readers, engine);
        if readers[0].refusal.is_some() {
            return false;
        }
        place = place.after(PAGES);
    }
    readers.iter_mut().for_each(|reader| reader.reading.parts.retain(|part| !part.place.is_end()));
    true
}

/// Reads some pages from a place on for all that have come there.
fn read_pages(
    relation: &RelationRef<'_>,
    place: Place,
    readers: &mut [Reader<'_>],
    engine: &mut dyn Engine,
) {
    let held = Rc::clone(&readers[0].reading.held);
    let mut along: Vec<(usize, Time, &mut Part)> = Vec::new();
    for (number, reader) in readers.iter_mut().enumerate() {
        let is_well = reader.refusal.is_none();
        let Reading { parts, as_of, .. } = &mut *reader.reading;
        let is_there = |part: &&mut Part| {
            is_well && part.place == place && engine.wait_for_room(part.target.0, Duration::ZERO)
        };
        along.extend(parts.iter_mut().filter(is_there).map(|part| (number, *as_of, part)));
    }
    let mut found: Vec<Found> = along.iter().map(|(_, time, _)| Found::new(*time)).collect();
    let projections: Vec<&Projection> = along.iter().map(|(.., part)| &part.projection).collect();
    let each = |number: usize, row, _| {
        found[number].take(row);
        Ok::<(), Infallible>(())
    };
    let Ok(()) = held.with(|| match place.pages {
        Some((next, end)) => {
            let pages = next..next.saturating_add(PAGES).min(end);
            scan::scan_pages(relation, pages, &projections, each)
        }
        None => scan::scan(relation, &projections, each),
    });
    let mut ends = Vec::new();
    for ((number, _, part), Found { updates, problem, .. }) in along.into_iter().zip(found) {
        ends.push((number, updates.len(), problem));
        engine.update(part.target.0, part.target.1, updates);
        part.place = place.after(PAGES);
    }
    for (number, rows, problem) in ends {
        readers[number].reading.rows += rows;
        if let Some(problem) = problem {
            readers[number].refusal = Some(problem.into());
        }
    }
}

/// What was found in some pages for one of those that read.
struct Found {
    time: Time,
    updates: Updates<Row>,
    /// Why a row could not be read.
    problem: Option<DataError>,
}

impl Found {
    fn new(time: Time) -> Found {
        Found { time, updates: Vec::new(), problem: None }
    }

    fn take(&mut self, row: Result<Row, DataError>) {
        match row {
            Ok(row) => self.updates.push((row, self.time, 1)),
            Err(error) => drop(self.problem.get_or_insert(error)),
        }
    }
}
