//! Apply: the output of all views that are at one point of commit order, in one transaction.
//!
//! Each view is written in a subtransaction, and without waiting for locks, so that what is in the way of one (a lock,
//! a unique index, a function of an index) leaves it behind alone. What is known of the heaps changes only after the
//! commit. A view attached anew is compared with its heap: the difference is written, whatever the
//! heap held before.

use super::compute::GRACE;
use super::main_loop::{timed, Worker};
use super::states::{Recorded, States};
use super::stored::{Changes, Delta, Missing, StoredRows};
use super::view::{Attachment, Heals, Phase, Problem, Standing, View, Why};
use crate::errors::Error;
use crate::pg::crash_point::{self, CrashPoint};
use crate::pg::heap::{self, Projection, Tid, Writer};
use crate::pg::markers::{self, AtWork, Work};
use crate::pg::relation::{try_lock, with_relation, Lock, RelationRef};
use crate::pg::xact::{self, Caught};
use crate::pg::{alarm, process, progress};
use crate::settings;
use engine::{Time, Updates};
use planner::error::DataError;
use planner::plan::Diff;
use planner::row::Row;
use planner::types::Type;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// Delay before a failed apply transaction is tried again.
const RETRY: Duration = Duration::from_millis(20);

/// Attempts between two lines in the log.
const LOG_EVERY: u64 = 25;

/// How often a view that cannot be written for reasons that may pass is tried before it is in error: some seconds.
const MAX_ATTEMPTS: u32 = 10;

/// What was written into one view's heap.
struct Written {
    /// The heap as it was found, when it had to be compared.
    found: Option<StoredRows>,
    changes: Changes,
    updated: Vec<Tid>,
    inserted: Vec<Tid>,
}

/// What became of one view.
enum Outcome {
    Written(Written),
    /// Another session has a lock on it.
    Locked,
    /// Its heap is not the one known: to be attached again.
    Foreign,
    /// A function of one of its indexes does not end.
    TooSlow,
    /// The write failed.
    Failed(Caught),
}

/// One transaction's outcome.
struct Applied {
    outcomes: Vec<(u32, Outcome)>,
    states: Recorded,
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
        self.stop_beyond_memory();
        self.set_invisible_aside();
        let present = self.present_at(position);
        let is_due = |relid: &u32| matches!(self.views.get(relid).map(|view| &view.phase), Some(Phase::Attached(a)) if a.is_due());
        let mut xid = None;
        if present.iter().any(is_due) || self.states.is_due(&self.views, &present) {
            let counter = &self.database.activity.apply;
            match timed(counter, || self.write(&present, position)) {
                Ok(applied) => {
                    xid = applied.xid;
                    self.states.committed(applied.states);
                    self.join(&present);
                    self.note_outcomes(applied.outcomes, applied.xid);
                }
                // Nothing was written, so nobody is further than before.
                Err(caught) => return self.note_failed_apply(&caught),
            }
        } else {
            self.join(&present);
        }
        self.failed_applies = 0;
        let commits = std::mem::take(&mut self.capture.commits);
        if xid.is_some() || !commits.is_empty() || self.has_news() {
            self.publish_views();
        }
        self.database.publish(position, xid, self.clock.now());
    }

    /// A view must not show what its tables do not show yet: one that was changed by a transaction whose commit is not
    /// visible, though it was given the time, is set aside.
    fn set_invisible_aside(&mut self) {
        let recent: Vec<u32> = self.capture.recent.keys().copied().collect();
        self.late.retain(|xid| recent.contains(xid));
        let awaited = recent.into_iter().filter(|xid| !self.late.contains(xid)).collect();
        self.late.extend(xact::wait_for_all(awaited, GRACE));
        self.late.retain(|xid| xact::is_in_progress(*xid));
        for xid in self.late.clone() {
            for relid in self.capture.recent.get(&xid).cloned().unwrap_or_default() {
                self.set_aside(relid, Why::Invisible { xid });
            }
        }
    }

    /// The views that are at the point of commit order to which all was decoded.
    fn present_at(&self, position: u64) -> Vec<u32> {
        let now = Instant::now();
        let is_present = |view: &&View| match &view.phase {
            Phase::Attached(attachment) => {
                attachment.whole_from <= position
                    && !attachment.is_at_work()
                    && !self.capture.has_steps(view.relid)
                    && attachment.may_be_tried(now)
            }
            _ => false,
        };
        self.views.values().filter(is_present).map(|view| view.relid).collect()
    }

    fn join(&mut self, present: &[u32]) {
        for relid in present {
            if let Some(attachment) = self.views.get_mut(relid).and_then(View::attachment) {
                attachment.standing = Standing::Together;
            }
        }
    }

    fn note_failed_apply(&mut self, caught: &Caught) {
        self.database.next_clock.store(self.database.clock.load(SeqCst), SeqCst);
        self.failed_applies += 1;
        if self.failed_applies.is_multiple_of(LOG_EVERY) {
            pgrx::log!("pg_eddy: cannot apply, trying on: {}", caught.message);
        }
        process::wait_for_latch(RETRY);
        process::wake_myself();
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

    fn write(&self, present: &[u32], position: u64) -> Result<Applied, Caught> {
        let (views, states, now) = (&self.views, &self.states, self.clock.now());
        xact::try_run(|| {
            self.database.next_clock.store(now, SeqCst);
            write_all(views, states, present, position)
        })
    }

    fn note_outcomes(&mut self, outcomes: Vec<(u32, Outcome)>, xid: Option<u32>) {
        let changed = xid.map_or(0, xact::full_xid);
        for (relid, outcome) in outcomes {
            match outcome {
                Outcome::Written(written) => {
                    if let Some(view) = self.views.get_mut(&relid) {
                        note_written(view, written);
                        // Before its state and the position are published: see `reads::snapshot`.
                        if let Some(cell) = view.cell {
                            cell.changed.store(changed, SeqCst);
                            cell.file.store(view.file().unwrap_or(0), SeqCst);
                        }
                    }
                }
                Outcome::Locked => self.set_aside(relid, Why::Locked),
                Outcome::Foreign => self.set_phase(relid, Phase::waiting()),
                Outcome::TooSlow => {
                    let file = super::attach::file_of(relid).unwrap_or(0);
                    let problem = Error::evaluation_timeout().into();
                    self.fail(relid, problem, Heals::OnRefresh { file });
                }
                Outcome::Failed(caught) => self.note_unwritten(relid, caught),
            }
        }
    }

    fn note_unwritten(&mut self, relid: u32, caught: Caught) {
        let may_pass = caught.is_transient();
        let problem = Problem::of_write(caught);
        let attachment = self.views.get_mut(&relid).and_then(View::attachment);
        if let Some(attachment) = attachment.filter(|_| may_pass) {
            attachment.failures += 1;
            if attachment.failures < MAX_ATTEMPTS {
                return attachment.set_aside(Why::Failing(problem));
            }
        }
        let file = super::attach::file_of(relid).unwrap_or(0);
        self.fail(relid, problem, Heals::OnRefresh { file });
    }
}

fn note_written(view: &mut View, written: Written) {
    let name = view.name.clone();
    let Phase::Attached(attachment) = &mut view.phase else { return };
    attachment.failures = 0;
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
        markers::end(view.relid, Work::Attach);
        markers::acquit(view.relid);
        pgrx::log!(
            "pg_eddy: view {name} attached: {} rows, {} of them changed, {:.3} s",
            stored.len(),
            written.changes.len(),
            attachment.since.elapsed().as_secs_f64()
        );
    }
}

/// Writes the views that have something to write. An error that is of no view fails the whole.
fn write_all(
    views: &BTreeMap<u32, View>,
    states: &States,
    present: &[u32],
    position: u64,
) -> Applied {
    let mut outcomes = Vec::new();
    let mut written: BTreeSet<u32> = present.iter().copied().collect();
    for view in present.iter().filter_map(|relid| views.get(relid)) {
        let Phase::Attached(attachment) = &view.phase else { continue };
        if attachment.is_due() {
            let outcome = write_one(view, attachment);
            if !matches!(outcome, Outcome::Written(_)) {
                written.remove(&view.relid);
            }
            outcomes.push((view.relid, outcome));
        }
    }
    let states = states.record(views, &written, position);
    progress::write(position);
    Applied { outcomes, states, xid: xact::my_xid() }
}

const UNIQUE_VIOLATION: &str = "23505";

fn write_one(view: &View, attachment: &Attachment) -> Outcome {
    let relid = view.relid;
    let _at_work = AtWork::begin(relid, Work::Apply);
    crash_point::reach_for(CrashPoint::Apply, &view.name);
    let attempt = |allow_updates| {
        let limit = settings::evaluation_timeout();
        alarm::within(limit, || xact::in_subtransaction(|| write(relid, attachment, allow_updates)))
    };
    let mut result = attempt(true);
    if matches!(&result, Err(caught) if caught.sqlstate == UNIQUE_VIOLATION) {
        // Keys may pass from row to row: once more with all deletions first.
        result = attempt(false);
    }
    match result {
        Ok(outcome) => outcome,
        Err(_) if alarm::take_fired() => Outcome::TooSlow,
        Err(caught) => Outcome::Failed(caught),
    }
}

/// Writes one view, as its owner, unless somebody holds a lock against it.
fn write(relid: u32, attachment: &Attachment, allow_updates: bool) -> Outcome {
    if !try_lock(relid, Lock::RowExclusive) {
        return Outcome::Locked;
    }
    let written = with_relation(relid, Lock::RowExclusive, |relation| {
        write_rows(&relation, attachment, allow_updates)
    });
    written.flatten().map_or(Outcome::Foreign, Outcome::Written)
}

/// `None` if its heap is not the one known.
fn write_rows(
    relation: &RelationRef<'_>,
    attachment: &Attachment,
    allow_updates: bool,
) -> Option<Written> {
    let plan = &attachment.compiled.plan;
    let types: Vec<Type> = plan.columns.iter().map(|column| column.ty).collect();
    let (found, changes) = match &attachment.stored {
        Some(stored) if stored.file != relation.file() => return None,
        Some(stored) => {
            let key = plan.key.as_deref().filter(|_| allow_updates);
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
            let found =
                xact::with_new_snapshot(|| read_stored(relation, &types, attachment.delta.len()))?;
            let changes = found.changes_to_reach(&attachment.delta);
            (Some(found), changes)
        }
    };
    xact::as_user(attachment.compiled.owner, || {
        let (updated, inserted) = write_changes(relation, &types, &changes);
        Some(Written { found, changes, updated, inserted })
    })
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
    let _on_their_account = stored.allocate();
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
