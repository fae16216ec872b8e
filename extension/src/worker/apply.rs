//! Apply: the output of all views, up to one point of commit order, in one transaction.
//!
//! Each view is written in a subtransaction, so that a failure of one (a unique index of the user's,
//! say) puts that view alone into error. What is known of the heaps changes only after the
//! commit. A view attached anew is compared with its heap: the difference is written, whatever the
//! heap held before.

use super::main_loop::{timed, wait_for_decoded, Worker};
use super::stored::{Changes, Delta, Missing, StoredRows};
use super::view::{Attachment, Heals, Phase, Problem, View};
use crate::errors::Error;
use crate::pg::heap::{self, Projection, Tid, Writer};
use crate::pg::relation::{with_relation, Lock, RelationRef};
use crate::pg::xact::{self, Caught};
use crate::pg::{process, progress};
use engine::{Time, Updates};
use planner::error::DataError;
use planner::plan::Diff;
use planner::row::Row;
use planner::types::Type;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// Delay before a failed apply transaction is tried again.
const RETRY: Duration = Duration::from_millis(20);

/// Attempts between two lines in the log.
const LOG_EVERY: u64 = 25;

/// What was written into one view's heap.
struct Written {
    relid: u32,
    /// The heap as it was found, when it had to be compared.
    found: Option<StoredRows>,
    changes: Changes,
    updated: Vec<Tid>,
    inserted: Vec<Tid>,
}

/// Why one view was not written.
enum Unwritten {
    /// Its heap is not the one known: to be attached again.
    Foreign,
    /// The write failed.
    Failed(Caught),
}

/// One transaction's outcome.
struct Applied {
    written: Vec<Written>,
    unwritten: Vec<(u32, Unwritten)>,
    xid: Option<u32>,
}

impl Attachment {
    /// Takes output of the dataflow.
    pub fn receive(&mut self, oks: Updates<Row>, errs: Updates<DataError>, times: Vec<Time>) {
        self.transactions += times.len() as u64;
        if self.delta.is_empty() {
            self.delta.reserve(oks.len());
        }
        for (row, _, diff) in oks {
            *self.delta.entry(row).or_insert(0) += diff;
        }
        for (error, _, diff) in errs {
            let entry = self.errs.entry(error);
            let count = entry.or_insert(0);
            *count += diff;
        }
        self.errs.retain(|_, count| *count != 0);
        self.delta.retain(|_, count| *count != 0);
    }

    fn is_due(&self) -> bool {
        self.stored.is_none() || !self.delta.is_empty()
    }

    /// Bytes it takes to write each of the equal rows that the delta holds once.
    fn bytes_of_copies(&self) -> usize {
        let bytes_of = |(row, diff): (&Row, &Diff)| {
            let copies = usize::try_from(diff.saturating_sub(1)).unwrap_or(0);
            let one = size_of::<Row>() + row.as_bytes().len() + size_of::<Tid>();
            copies.saturating_mul(one)
        };
        self.delta.iter().map(bytes_of).fold(0, usize::saturating_add)
    }
}

impl Worker {
    /// Applies what the engine has put out and publishes how far that is.
    pub(super) fn apply(&mut self) {
        let position = self.position();
        let mut xid = None;
        self.stop_beyond_memory();
        if self.views.values_mut().any(|view| view.attachment().is_some_and(|a| a.is_due())) {
            let counter = &self.database.activity.apply;
            xid = timed(counter, || {
                let applied = self.apply_until_done(position);
                let xid = applied.xid;
                self.note_applied(applied);
                xid
            });
        }
        let commits = std::mem::take(&mut self.capture.commits);
        if xid.is_some() || !commits.is_empty() || self.has_news() {
            self.publish_views();
        }
        self.database.publish(position, xid, self.clocks.now());
    }

    /// A row with a multiplicity is small until it is written: a view that there is no memory to
    /// write is stopped, as one is whose dataflow grows too large.
    fn stop_beyond_memory(&mut self) {
        let limit = self.memory_limit();
        let mut left = limit.saturating_sub(engine::memory::allocated());
        let mut stopped = Vec::new();
        for view in self.views.values() {
            let Phase::Attached(attachment) = &view.phase else { continue };
            let needed = attachment.bytes_of_copies();
            if limit > 0 && needed > left {
                stopped.push((view.relid, limit.saturating_add(needed - left)));
            } else {
                left = left.saturating_sub(needed);
            }
        }
        for (relid, bytes) in stopped {
            let file = super::attach::file_of(relid).unwrap_or(0);
            let problem = Error::rows_beyond_memory(bytes).into();
            self.fail(relid, problem, Heals::OnRefresh { file });
        }
    }

    /// Whether a view is in another phase, or its dataflow has other figures, than was published.
    fn has_news(&self) -> bool {
        self.views.values().any(|view| {
            view.cell.is_some_and(|cell| cell.state() != view.state())
                || view.published.get() != self.stats(view)
        })
    }

    fn publish_views(&self) {
        for view in self.views.values() {
            view.publish(self.stats(view));
        }
    }

    /// Other sessions' locks may make a transaction fail: then it is tried again as a whole.
    fn apply_until_done(&mut self, position: u64) -> Applied {
        for attempt in 0_u64.. {
            let recent = &self.capture.recent;
            let (views, database, now) = (&self.views, self.database, self.clocks.now());
            match xact::try_run(|| {
                wait_for_decoded(recent);
                write_all(views, position, || database.next_clock.store(now, SeqCst))
            }) {
                Ok(Ok(applied)) => return applied,
                Ok(Err(caught)) | Err(caught) => {
                    database.next_clock.store(database.clock.load(SeqCst), SeqCst);
                    if attempt % LOG_EVERY == LOG_EVERY - 1 {
                        pgrx::log!("pg_eddy: cannot apply, trying on: {}", caught.message);
                    }
                    process::wait_for_latch(RETRY);
                }
            }
        }
        unreachable!("the loop ends by returning")
    }

    fn note_applied(&mut self, applied: Applied) {
        for written in applied.written {
            if let Some(view) = self.views.get_mut(&written.relid) {
                note_written(view, written);
            }
        }
        for (relid, reason) in applied.unwritten {
            match reason {
                Unwritten::Foreign => self.set_phase(relid, Phase::waiting()),
                Unwritten::Failed(caught) => {
                    let file = super::attach::file_of(relid).unwrap_or(0);
                    let problem = Problem::of_write(caught);
                    self.fail(relid, problem, Heals::OnRefresh { file });
                }
            }
        }
    }
}

fn note_written(view: &mut View, written: Written) {
    let name = view.name.clone();
    let Phase::Attached(attachment) = &mut view.phase else { return };
    view.updates += written.changes.len() as u64;
    view.transactions += std::mem::take(&mut attachment.transactions);
    // Not cleared: going through a table takes as long as the most that was ever in it.
    attachment.delta = Delta::new();
    let is_first = written.found.is_some();
    if let Some(found) = written.found {
        attachment.stored = Some(found);
    }
    let Some(stored) = &mut attachment.stored else { return };
    stored.note(&written.changes, &written.updated, &written.inserted);
    if is_first {
        pgrx::log!(
            "pg_eddy: view {name} attached: {} rows, {} of them changed, {:.3} s",
            stored.len(),
            written.changes.len(),
            attachment.since.elapsed().as_secs_f64()
        );
    }
}

/// Writes all views that have something to write, once all are locked. An error that may pass fails the whole.
fn write_all(
    views: &BTreeMap<u32, View>,
    position: u64,
    are_locked: impl FnOnce(),
) -> Result<Applied, Caught> {
    // All locks first: giving up later would leave dead rows behind.
    for view in views.values() {
        if matches!(&view.phase, Phase::Attached(attachment) if attachment.is_due()) {
            with_relation(view.relid, Lock::RowExclusive, |_| ());
        }
    }
    are_locked();
    let mut applied = Applied { written: Vec::new(), unwritten: Vec::new(), xid: None };
    for view in views.values() {
        let Phase::Attached(attachment) = &view.phase else { continue };
        if !attachment.is_due() {
            continue;
        }
        let mut result = xact::in_subtransaction(|| write(view.relid, attachment, true));
        if matches!(&result, Err(caught) if caught.sqlstate == UNIQUE_VIOLATION) {
            // Keys may pass from row to row: once more with all deletions first.
            result = xact::in_subtransaction(|| write(view.relid, attachment, false));
        }
        match result {
            Ok(Some(written)) => applied.written.push(written),
            Ok(None) => applied.unwritten.push((view.relid, Unwritten::Foreign)),
            Err(caught) if caught.is_transient() => return Err(caught),
            Err(caught) => applied.unwritten.push((view.relid, Unwritten::Failed(caught))),
        }
    }
    progress::write(position);
    applied.xid = xact::my_xid();
    Ok(applied)
}

const UNIQUE_VIOLATION: &str = "23505";

/// Writes one view, as its owner; `None` if its heap is not the one known.
fn write(relid: u32, attachment: &Attachment, allow_updates: bool) -> Option<Written> {
    let owner = attachment.compiled.owner.to_u32();
    let types: Vec<Type> =
        attachment.compiled.plan.columns.iter().map(|column| column.ty).collect();
    with_relation(relid, Lock::RowExclusive, |relation| {
        let (found, changes) = match &attachment.stored {
            Some(stored) if stored.file != relation.file() => return None,
            Some(stored) => {
                let key = attachment.compiled.plan.key.as_deref().filter(|_| allow_updates);
                match stored.changes_for_delta(&attachment.delta, key) {
                    Ok(changes) => (None, changes),
                    Err(Missing) => {
                        let name = relation.qualified_name();
                        pgrx::warning!("pg_eddy: view {name} lacks rows that are to be deleted");
                        return None;
                    }
                }
            }
            None => {
                // A snapshot from before the lock might not see a heap that was just rewritten.
                let found = xact::with_new_snapshot(|| {
                    read_stored(&relation, &types, attachment.delta.len())
                })?;
                let changes = found.changes_to_reach(&attachment.delta);
                (Some(found), changes)
            }
        };
        Some(xact::as_user(owner.into(), || {
            let (updated, inserted) = write_changes(&relation, &types, &changes);
            Written { relid, found, changes, updated, inserted }
        }))
    })
    .flatten()
}

fn write_changes(
    relation: &RelationRef<'_>,
    types: &[Type],
    changes: &Changes,
) -> (Vec<Tid>, Vec<Tid>) {
    let mut writer = Writer::open(relation, types);
    for (_, tid) in &changes.deletes {
        writer.delete(*tid);
    }
    let updates = changes.updates.iter();
    let updated = updates.map(|(_, tid, row)| writer.update(*tid, row)).collect();
    let inserted = writer.insert(changes.inserts.iter());
    writer.mark_populated();
    writer.finish();
    (updated, inserted)
}

/// The rows a view's heap holds; `None` if they cannot be read as rows of the view.
fn read_stored(relation: &RelationRef<'_>, types: &[Type], expected: usize) -> Option<StoredRows> {
    let mut stored = StoredRows::new(relation.file(), expected);
    let numbers = 1..=i16::try_from(types.len()).ok()?;
    let projection = Projection { columns: numbers.zip(types.iter().copied()).collect() };
    let scanned = heap::scan(relation, &projection, |row, tid| {
        // A row that cannot be read is none of ours: an odd one makes it differ from all.
        let row = row.unwrap_or_default();
        stored.add(&row, tid);
        Ok::<(), Infallible>(())
    });
    scanned.ok().map(|()| stored)
}
