//! Writing the heap of a view, and reading what it holds: in the worker, or in an assistant of it.
//!
//! All of it happens in subtransactions, and without waiting for locks, so that what is in the way of one view (a lock,
//! a unique index, a function of an index) is an outcome of that view's.

use super::entries;
use super::mirror;
use super::stored::Changes;
use crate::pg::heap::{Projection, Tid};
use crate::pg::heap_writer::Writer;
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::mirror::{self as mirrors, Mirror};
use crate::pg::relation::{try_lock, with_relation, Lock, RelationRef};
use crate::pg::sqlstate::SqlState;
use crate::pg::xact::{self, Caught};
use crate::pg::{alarm, changes_table, entry, evaluate, inval, process, scan};
use crate::settings;
use pgrx::pg_sys::Oid;
use plan::row::Row;
use plan::types::Type;
use std::convert::Infallible;
use std::time::Duration;

/// What writing needs to know of a view.
#[derive(Clone, Debug)]
pub struct Target {
    pub relid: ViewId,
    /// As whom it is written.
    pub owner: u32,
    /// Types of its columns.
    pub types: Vec<Type>,
    /// The table of its changes, if they are kept.
    pub changes: Option<RelationId>,
    /// The table that has its rows, too.
    pub mirror: Option<Mirror>,
    /// Whether views read these tables.
    pub are_read: bool,
}

impl Target {
    /// Whether the tables beside the view still are these, once they are locked. Who has made another one has entered what the
    /// view had then.
    fn is_current(&self) -> bool {
        !inval::may_have_changed(self.relid.into())
            || changes_table::of(self.relid) == self.changes
                && mirrors::of(self.relid) == self.mirror.map(|mirror| mirror.table)
    }
}

/// What became of one view.
#[derive(Debug)]
pub enum Outcome<T> {
    Done(T),
    /// Another session has a lock on it, or has waited for one of the writer's.
    Locked,
    /// Its heap is not the one known: to be attached again.
    Foreign,
    /// It took too long: a function of one of its indexes does not end, or the disk does not keep up.
    TooSlow,
    /// The write failed.
    Failed(Caught),
}

impl<T> Outcome<T> {
    pub fn and_then<R>(self, change: impl FnOnce(T) -> Outcome<R>) -> Outcome<R> {
        match self {
            Outcome::Done(value) => change(value),
            Outcome::Locked => Outcome::Locked,
            Outcome::Foreign => Outcome::Foreign,
            Outcome::TooSlow => Outcome::TooSlow,
            Outcome::Failed(caught) => Outcome::Failed(caught),
        }
    }

    pub fn map<R>(self, change: impl FnOnce(T) -> R) -> Outcome<R> {
        self.and_then(|value| Outcome::Done(change(value)))
    }
}

/// A heap that was read.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Its file.
    pub file: u32,
    /// Whether the view may be read.
    pub is_populated: bool,
}

/// How the rows that others replace are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Replaced {
    /// By updates.
    Updated,
    /// By deletions, before anything is inserted.
    Deleted,
}

/// How long writing may take.
#[derive(Clone, Copy, Debug)]
pub enum Patience {
    /// Some rows as long as evaluating an expression for one: they may call functions of users, in indexes.
    ForRows,
    /// So long altogether.
    ForAll(Duration),
}

/// Writes changes to a view whose rows are in a file; answers the places of the new rows, in their order. Needs a transaction.
pub fn write(
    target: &Target,
    file: u32,
    changes: &Changes,
    patience: Patience,
) -> Outcome<Vec<Tid>> {
    let attempt = |replaced| {
        let work = || xact::in_subtransaction(|| write_once(target, file, changes, replaced));
        patience.limit(changes, work)
    };
    process::take_cancel();
    let mut result = attempt(Replaced::Updated);
    if matches!(&result, Err(caught) if caught.sqlstate == SqlState::UNIQUE_VIOLATION) {
        // Keys may pass from row to row: once more with all deletions first.
        result = attempt(Replaced::Deleted);
    }
    match result {
        Ok(outcome) => outcome,
        Err(_) if alarm::take_fired() => Outcome::TooSlow,
        Err(caught) if caught.sqlstate == SqlState::QUERY_CANCELED && process::take_cancel() => {
            Outcome::Locked
        }
        Err(caught) => Outcome::Failed(caught),
    }
}

/// The same in a subtransaction of the caller's, as one of several views: whatever is in the way of it is raised as an error, and
/// each is to be written by [`write()`] then.
pub fn write_with_others(
    target: &Target,
    file: u32,
    changes: &Changes,
    patience: Patience,
) -> Outcome<Vec<Tid>> {
    patience.limit(changes, || write_once(target, file, changes, Replaced::Updated))
}

impl Patience {
    /// Runs what writes these changes, canceled if it takes too long.
    fn limit<R>(self, changes: &Changes, work: impl FnOnce() -> R) -> R {
        let limit = settings::evaluation_timeout().map(|limit| limit + time_for_values(changes));
        match self {
            Patience::ForRows => alarm::within_each(limit, work),
            Patience::ForAll(time) => {
                alarm::within(Some(limit.map_or(time, |limit| limit.min(time))), work)
            }
        }
    }
}

/// What the largest row takes at most until it is compressed and written, which is no function of users. PostgreSQL does not
/// look for interrupts while it compresses a value, and a process that does not for seconds is taken for one that never will.
fn time_for_values(changes: &Changes) -> Duration {
    /// Bytes a second, on a machine that does much else.
    const SLOW: u64 = 1 << 20;
    let largest = changes.new_rows().map(|row| row.as_bytes().len()).max().unwrap_or(0);
    Duration::from_millis(largest as u64 * 1000 / SLOW)
}

/// Writes as the view's owner, and the tables beside it as theirs, unless somebody holds a lock against it.
fn write_once(
    target: &Target,
    file: u32,
    changes: &Changes,
    replaced: Replaced,
) -> Outcome<Vec<Tid>> {
    let is_free = |relation| try_lock(relation, Lock::RowExclusive);
    let beside = [target.changes, target.mirror.map(|mirror| mirror.table)];
    let mut relations = [Some(target.relid.into())].into_iter().chain(beside).flatten();
    if !relations.all(is_free) || !target.is_current() {
        return Outcome::Locked;
    }
    let written = with_relation(target.relid, Lock::RowExclusive, |relation| {
        if relation.file() != file {
            return Outcome::Foreign;
        }
        // Looked at before rows are written: it may stay so for long.
        if !relation.is_populated() && !entry::is_free(target.relid) {
            return Outcome::Locked;
        }
        if target.are_read {
            // Readers of those views wait for what is written here as for what sessions write.
            evaluate::note_run();
        }
        let gone = entries::rows_gone(&relation, target, changes);
        let (types, changed) = (&target.types, (changes, &*gone));
        let mirrored = match &target.mirror {
            None => Outcome::Done(None),
            Some(mirror) => {
                mirror::find(&relation, mirror, types, changed).map(|gone| Some((mirror, gone)))
            }
        };
        mirrored.and_then(|mirrored| {
            let places = xact::as_user(Oid::from(target.owner), || {
                write_changes(&relation, types, changes, replaced)
            });
            if let Some((mirror, gone)) = mirrored {
                mirror::write(mirror, types, changes, gone, replaced);
            }
            let entered = target.changes.map_or(Outcome::Done(()), |table| {
                entries::write(&relation, table, types, changed)
            });
            entered.map(|()| places)
        })
    });
    written.unwrap_or(Outcome::Foreign)
}

fn write_changes(
    relation: &RelationRef<'_>,
    types: &[Type],
    changes: &Changes,
    replaced: Replaced,
) -> Vec<Tid> {
    let mut writer = Writer::open(relation, types);
    let deletes = changes.deletes.iter().map(|(_, tid)| *tid).collect();
    let updates: Vec<Tid> = changes.updates.iter().map(|(_, tid, _)| *tid).collect();
    let places = write_rows(&mut writer, (deletes, &updates), changes, replaced);
    writer.mark_populated();
    writer.finish();
    places
}

/// Writes changes to where the rows to delete and those to replace are; answers the places of the new rows, in their order.
pub(super) fn write_rows(
    writer: &mut Writer<'_>,
    (mut gone, updates): (Vec<Tid>, &[Tid]),
    changes: &Changes,
    replaced: Replaced,
) -> Vec<Tid> {
    if replaced == Replaced::Deleted {
        gone.extend(updates);
    }
    // In the order of the heap.
    gone.sort_unstable();
    gone.into_iter().for_each(|tid| writer.delete(tid));
    match replaced {
        Replaced::Updated => {
            let rows = changes.updates.iter().map(|(_, _, row)| row);
            let mut places = writer.replace(updates.iter().copied().zip(rows));
            places.extend(writer.insert(changes.inserts.iter()));
            places
        }
        Replaced::Deleted => writer.insert(changes.new_rows()),
    }
}

/// Hands over the rows that a view's heap holds. Needs a transaction, at whose end others may write it.
pub fn read(target: &Target, each: impl FnMut(&Row, Tid)) -> Outcome<Found> {
    let read = || {
        if !try_lock(target.relid, Lock::RowExclusive) {
            return Outcome::Locked;
        }
        // A snapshot from before the lock might not see a heap that was just rewritten.
        let found = with_relation(target.relid, Lock::RowExclusive, |relation| {
            xact::with_new_snapshot(|| read_rows(&relation, &target.types, each))
        });
        found.flatten().map_or(Outcome::Foreign, Outcome::Done)
    };
    xact::in_subtransaction(read).unwrap_or_else(Outcome::Failed)
}

/// `None` if they cannot be read as rows of the view.
fn read_rows(
    relation: &RelationRef<'_>,
    types: &[Type],
    mut each: impl FnMut(&Row, Tid),
) -> Option<Found> {
    let numbers = 1..=i16::try_from(types.len()).ok()?;
    let projection = Projection { columns: numbers.zip(types.iter().copied()).collect() };
    let scanned = scan::scan(relation, &[&projection], |_, row, tid| {
        // A row that cannot be read is none of ours: an odd one makes it differ from all.
        each(&row.unwrap_or_default(), tid);
        Ok::<(), Infallible>(())
    });
    let found = Found { file: relation.file(), is_populated: relation.is_populated() };
    scanned.ok().map(|()| found)
}
