//! Apply: the output of all views that are at one point of commit order, in one transaction.
//!
//! Views are written in a subtransaction, and without waiting for locks; if there is an error, each in one of its own, so that what
//! is in the way of one (a lock, a unique index, a function of an index) leaves it behind alone. What is known of the heaps changes only after the
//! commit. A view attached anew is compared with its heap: the difference is written, whatever the
//! heap held before.

use super::capture::{History, Moment};
use super::changelog::{Changelog, Entries};
use super::compute::GRACE;
use super::finished::Finished;
use super::main_loop::{timed, Worker};
use super::naming::relid_of;
use super::output::Output;
use super::problem::Problem;
use super::states::{Recorded, States};
use super::stored::{Changes, Compared, Missing, StoredRows};
use super::view::{Attachment, Heals, Phase, Standing, View, Why};
use super::write::{read, write, write_with_others, Outcome, Patience, Target};
use crate::errors::Error;
use crate::pg::crash_point::{self, CrashPoint};
use crate::pg::decoding::own_writes;
use crate::pg::heap::Tid;
use crate::pg::ids::ViewId;
use crate::pg::markers::{self, AtWork, Work};
use crate::pg::relation::{try_lock, with_relation, Lock};
use crate::pg::xact::{self, Caught};
use crate::pg::{process, progress};
use crate::shared::{Cause, Point};
use engine::{DataflowId, Time, Updates};
use plan::error::DataError;
use plan::row::Row;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// How long the worker writes one view while all others wait; what takes longer is for an assistant.
const PATIENCE: Duration = Duration::from_millis(100);

/// Delay before a failed apply transaction is tried again.
const RETRY: Duration = Duration::from_millis(20);

/// Attempts between two lines in the log.
const LOG_EVERY: u64 = 25;

/// How often a view that cannot be written for reasons that may pass is tried before it is in error: some seconds.
const MAX_ATTEMPTS: u32 = 10;

/// The same if it took too long, which may have been the disk's fault.
const MAX_SLOW_ATTEMPTS: u32 = 2;

/// What was written into one view's heap.
struct Written {
    found: Found,
    changes: Changes,
    /// Places of the new rows.
    places: Vec<Tid>,
}

/// What the rows in a heap are known by.
enum Found {
    /// They were written by this worker.
    Known,
    /// They had been compared.
    Compared,
    /// They have been read now.
    Read(StoredRows),
}

/// What a transaction has written.
struct Applied {
    outcomes: Vec<(ViewId, Outcome<Written>)>,
    states: Recorded,
    xid: Option<u32>,
}

impl Attachment {
    /// Takes output of the dataflow.
    pub fn receive(
        &mut self,
        mut oks: Updates<Row>,
        errs: Updates<DataError>,
        mut times: Vec<Time>,
    ) {
        if let (true, Some(heap)) = (self.is_behind_heap, &mut self.goes_on) {
            heap.rows += oks.drain(..).map(|(_, _, diff)| diff).sum::<i64>();
            times.clear();
        }
        self.transactions += times.iter().filter(|time| **time > self.start).count() as u64;
        match &mut self.changelog {
            Some(changelog) => {
                changelog.push(&oks);
                self.output.push_by_time(oks);
            }
            None => self.output.push(oks),
        }
        for (error, _, diff) in errs {
            *self.errs.entry(error).or_insert(0) += diff;
        }
        self.errs.retain(|_, count| *count != 0);
    }

    /// Whether it has something to write.
    pub fn is_due(&self) -> bool {
        let has_entries = self.changelog.as_ref().is_some_and(|changelog| !changelog.is_empty());
        let is_unknown = self.stored.is_none() && self.vouched().is_none();
        is_unknown || !self.output.is_empty() || has_entries
    }

    /// What writing needs to know of it.
    pub fn target(&self, relid: ViewId) -> Target {
        let types = self.compiled.query.plan.columns.iter().map(|column| column.ty).collect();
        let changes = self.compiled.changes.as_ref().map(|changes| changes.table);
        let (owner, mirror) = (self.compiled.owner.to_u32(), self.compiled.mirror);
        let beside = changes.into_iter().chain(mirror.map(|mirror| mirror.table));
        let are_read = own_writes::are_read(beside);
        Target { relid, owner, types, changes, mirror, are_read }
    }
}

impl Worker {
    /// The point to which all was decoded. What the engine has put out is as of it until more is received.
    pub(super) fn finish_step(&mut self) -> Finished {
        self.set_invisible_aside();
        let position = self.position();
        self.succeed_formers(position);
        let present = self.present_at(position);
        let now = self.clock.now();
        Finished { position, now, present, commits: std::mem::take(&mut self.capture.commits) }
    }

    /// Applies what the engine has put out and publishes how far that is.
    pub(super) fn apply(&mut self, finished: Finished) {
        let Finished { position, now, commits, .. } = finished;
        if self.checkpoints.is_behind_heaps(position) {
            // Nothing is written that would take back what is on record.
            self.capture.commits += commits;
            return;
        }
        let leaves_large = self.assistants.are_available();
        for attachment in self.views.values_mut().filter_map(View::attachment) {
            match leaves_large {
                true => attachment.output.settle(),
                false => attachment.output.add_up(),
            }
            attachment.changelog.iter_mut().for_each(Changelog::settle);
        }
        self.stop_beyond_memory();
        let mut present = self.still_present(&finished.present);
        let large = self.take_large(&mut present);
        let is_due = |relid: &ViewId| {
            self.views.get(relid).and_then(View::served).is_some_and(Attachment::is_due)
        };
        let mut xid = None;
        // Before an assistant writes a view it is on record that it is not at the point of the others.
        let is_unrecorded = |relid: &ViewId| !self.states.is_apart(*relid);
        if present.iter().any(is_due)
            || large.iter().any(is_unrecorded)
            || self.states.is_due(&self.views, &present)
        {
            let counter = &self.database.activity.apply;
            match timed(counter, || self.write(&present, position, now)) {
                Ok(applied) => {
                    xid = applied.xid;
                    self.states.committed(applied.states);
                    self.join(&present);
                    self.note_outcomes(applied.outcomes, applied.xid);
                }
                // Nothing was written, so nobody is further than before.
                Err(caught) => {
                    self.capture.commits += commits;
                    return self.note_failed_apply(&caught);
                }
            }
        } else {
            self.join(&present);
        }
        self.forget_moments();
        self.failed_applies = 0;
        if xid.is_some() || commits > 0 || self.has_news() {
            self.publish_views();
        }
        self.database.publish(position, xid, now);
        self.tell(position);
        for relid in large {
            self.begin_writing(relid, position);
        }
    }

    /// Forgets of which transactions the times are of which all views have been written whose changes are kept.
    fn forget_moments(&mut self) {
        let is_read = |view: &View| matches!(&view.phase, Phase::Reading(reading) if reading.sources.compiled.changes.is_some());
        let read = self.views.values().filter(|view| is_read(view)).map(|_| 0);
        let attachments = self.views.values().flat_map(View::attachments);
        let written = attachments.filter_map(|attachment| {
            let first = attachment.changelog.as_ref()?.first_time().unwrap_or(Time::MAX);
            // Whoever writes it may give it back.
            let is_lent = attachment.lent.is_some();
            Some(if is_lent { 0 } else { first.min(attachment.reached) })
        });
        self.capture.history.forget_before(read.chain(written).min());
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
            for dataflow in self.capture.recent.get(&xid).cloned().unwrap_or_default() {
                for relid in self.concerned(dataflow) {
                    self.set_aside(relid, Why::Invisible { xid });
                }
            }
        }
    }

    /// The views that are at the point of commit order to which all was decoded.
    fn present_at(&self, position: u64) -> Vec<(ViewId, DataflowId)> {
        let now = Instant::now();
        let served = self.views.values().filter_map(View::served);
        let present = served.filter(|a| a.may_be_tried(now) && self.is_present(a, position));
        present.map(|attachment| (relid_of(attachment.dataflow), attachment.dataflow)).collect()
    }

    /// Whether a view's dataflow has put out all there is up to a position, and nobody is at its rows.
    pub(super) fn is_present(&self, attachment: &Attachment, position: u64) -> bool {
        attachment.whole_from <= position
            && !attachment.is_behind_heap
            && !attachment.is_at_work()
            && !self.is_unfed(attachment)
            && attachment.lent.is_none()
            && (!attachment.is_comparing || !attachment.is_due())
            && !self.assistants.may_still_write(relid_of(attachment.dataflow))
    }

    /// Those of the views that have not been attached again since, or are to be.
    fn still_present(&self, present: &[(ViewId, DataflowId)]) -> Vec<ViewId> {
        let is_still = |(relid, dataflow): &&(ViewId, DataflowId)| {
            let served = self.views.get(relid).and_then(View::served);
            served.is_some_and(|attachment| attachment.dataflow == *dataflow)
        };
        present.iter().filter(is_still).map(|(relid, _)| *relid).collect()
    }

    fn join(&mut self, present: &[ViewId]) {
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
        if limit == 0 {
            return;
        }
        let mut left = limit.saturating_sub(self.allocated());
        let mut stopped = Vec::new();
        for view in self.views.values() {
            let Some(attachment) = view.served() else { continue };
            let needed = attachment.output.bytes_of_copies();
            if needed > left {
                stopped.push((view.relid, limit.saturating_add(needed - left)));
            } else {
                left = left.saturating_sub(needed);
            }
        }
        for (relid, bytes) in stopped {
            let file = super::sources::file_of(relid).unwrap_or(0);
            let problem = Error::rows_beyond_memory(bytes).into();
            self.fail(relid, problem, Heals::OnRefresh { file });
        }
    }

    /// Whether a view is in another phase, or its dataflow has other figures, than was published.
    fn has_news(&self) -> bool {
        self.views.values().any(|view| {
            view.cell.is_some_and(|cell| {
                cell.state() != view.state()
                    || cell.attaching.step() != view.step()
                    || (cell.in_doubt.load(SeqCst) != 0) != view.is_in_doubt()
                    || cell.former_columns.load(SeqCst) != view.former_columns()
            }) || view.published.get() != self.stats(view)
        })
    }

    fn publish_views(&self) {
        let before = Point::Apart {
            position: self.database.applied.load(SeqCst),
            since: self.database.applied_at.load(SeqCst),
        };
        for view in self.views.values() {
            view.publish(self.stats(view), self.cells_of_indexes(view));
            view.publish_point(before);
        }
        self.publish_indexes();
    }

    fn write(&self, present: &[ViewId], position: u64, now: i64) -> Result<Applied, Caught> {
        let (views, states, history) = (&self.views, &self.states, &self.capture.history);
        let patience = match self.assistants.are_available() {
            true => Patience::ForAll(PATIENCE),
            false => Patience::ForRows,
        };
        xact::try_run(|| {
            self.database.next_clock.store(now, SeqCst);
            write_all(views, states, (present, patience), (position, history))
        })
    }

    fn note_outcomes(&mut self, outcomes: Vec<(ViewId, Outcome<Written>)>, xid: Option<u32>) {
        let changed = xid.map_or(0, xact::full_xid);
        for (relid, outcome) in outcomes {
            let mut is_first = false;
            let outcome = outcome.map(|written| {
                is_first = !matches!(written.found, Found::Known);
                if let Some(view) = self.views.get_mut(&relid) {
                    note_written(view, written, changed);
                }
            });
            if is_first {
                self.wake_above(relid);
            }
            self.note_outcome(relid, outcome);
        }
    }

    /// What became of a view that was to be written.
    pub(super) fn note_outcome(&mut self, relid: ViewId, outcome: Outcome<()>) {
        match outcome {
            Outcome::Done(()) => {}
            Outcome::Locked => self.set_aside(relid, Why::Locked),
            Outcome::Foreign => self.set_phase(relid, Phase::waiting()),
            Outcome::TooSlow => {
                let is_available = self.assistants.are_available();
                let attachment = self.views.get_mut(&relid).and_then(View::attachment);
                if let Some(attachment) = attachment.filter(|a| !a.is_slow && is_available) {
                    attachment.is_slow = true;
                    return attachment.set_aside(Why::Writing);
                }
                self.note_unwritten(relid, Error::writing_timeout().into(), MAX_SLOW_ATTEMPTS);
            }
            Outcome::Failed(caught) => {
                let is_transient = caught.is_transient();
                let problem = Problem::of_write(caught);
                // What is wrong with a table beside it does not pass by itself.
                let may_pass = is_transient && problem.cause == Cause::Write;
                self.note_unwritten(relid, problem, if may_pass { MAX_ATTEMPTS } else { 1 });
            }
        }
    }

    /// A view that could not be written is tried again, but for so many attempts altogether.
    fn note_unwritten(&mut self, relid: ViewId, problem: Problem, attempts: u32) {
        if let Some(attachment) = self.views.get_mut(&relid).and_then(View::attachment) {
            attachment.failures += 1;
            if attachment.failures < attempts {
                return attachment.set_aside(Why::Failing(problem));
            }
        }
        let (file, indexes) = super::sources::file_and_indexes_of(relid).unwrap_or_default();
        self.fail(relid, problem, Heals::OnFewerIndexes { file, indexes });
    }
}

fn note_written(view: &mut View, written: Written, changed: u64) {
    let Some(attachment) = view.attachment() else { return };
    attachment.output = Output::default();
    attachment.changelog.iter_mut().for_each(Changelog::clear);
    let transactions = std::mem::take(&mut attachment.transactions);
    let Written { found, changes, places } = written;
    let is_known = matches!(found, Found::Known);
    let is_first = !is_known && attachment.vouched().is_none();
    let compared = attachment.compared.take_if(|_| !is_known);
    match found {
        Found::Known => {}
        Found::Compared => attachment.stored = compared.map(|compared| compared.stored),
        Found::Read(found) => attachment.stored = Some(found),
    }
    if let Some(stored) = &mut attachment.stored {
        stored.note(&changes, &places);
        attachment.goes_on = None;
    }
    note_stored(view, &Stored { is_first, rows: changes.len(), transactions, changed });
}

/// What was written of a view.
#[derive(Debug)]
pub struct Stored {
    /// Whether its rows had not been compared before.
    pub is_first: bool,
    /// Rows inserted, updated and deleted.
    pub rows: usize,
    /// Source transactions that they are of.
    pub transactions: u64,
    /// Full number of the transaction that did it.
    pub changed: u64,
}

/// A view has been written, and what is known of its rows is up to date.
pub fn note_stored(view: &mut View, written: &Stored) {
    view.updates += written.rows as u64;
    view.transactions += written.transactions;
    let Some(attachment) = view.attachment() else { return };
    attachment.failures = 0;
    // Who has filled it anew has told nobody.
    let is_news = attachment.compiled.notify && (written.is_first || written.rows > 0);
    let since = attachment.since;
    let columns = u32::try_from(attachment.compiled.query.plan.columns.len()).unwrap_or(0);
    let Some((file, rows)) = attachment.file().zip(attachment.rows_and_bytes().0) else { return };
    view.is_untold |= is_news;
    // Before its state and the position are published: see `reads::snapshot`.
    if let Some(cell) = view.cell {
        cell.changed.store(written.changed, SeqCst);
        cell.file.store(file, SeqCst);
        cell.columns.store(columns, SeqCst);
    }
    if written.is_first {
        markers::end(view.relid, Work::Attach);
        markers::acquit(view.relid);
        pgrx::log!(
            "pg_eddy: view {} attached: {} rows, {} of them changed, {:.3} s",
            view.name,
            rows,
            written.rows,
            since.elapsed().as_secs_f64()
        );
    }
}

/// Writes the views that have something to write. An error that is of no view fails the whole.
fn write_all(
    views: &BTreeMap<ViewId, View>,
    states: &States,
    (present, patience): (&[ViewId], Patience),
    (position, history): (u64, &History),
) -> Applied {
    let views_present = present.iter().filter_map(|relid| views.get(relid));
    let attached = views_present.filter_map(|view| Some((view, view.served()?)));
    let due: Vec<Due> = attached.filter(|(_, attachment)| attachment.is_due()).collect();
    let (known, first): (Vec<Due>, Vec<Due>) =
        due.into_iter().partition(|(_, attachment)| attachment.stored.is_some());
    let mut outcomes = write_together(&known, (position, history), patience);
    let apart = if outcomes.is_empty() { known } else { Vec::new() };
    for (view, attachment) in apart.into_iter().chain(first) {
        let outcome = write_one(view, attachment, (position, history), |target, file, changes| {
            write(target, file, changes, patience)
        });
        outcomes.push((view.relid, outcome));
    }
    let mut written: BTreeSet<ViewId> = present.iter().copied().collect();
    for (relid, outcome) in &outcomes {
        if !matches!(outcome, Outcome::Done(_)) {
            written.remove(relid);
        }
    }
    let states = states.record(views, &written, position);
    progress::write(position);
    Applied { outcomes, states, xid: xact::my_xid() }
}

/// A view that has something to write.
type Due<'v> = (&'v View, &'v Attachment);

/// Writes several views in one subtransaction: each that it has costs a transaction number, and time. If there is an error,
/// nothing is written and there are no outcomes.
fn write_together(
    due: &[Due<'_>],
    at: (u64, &History),
    patience: Patience,
) -> Vec<(ViewId, Outcome<Written>)> {
    if due.len() < 2 {
        return Vec::new();
    }
    process::take_cancel();
    let written = xact::in_subtransaction(|| {
        let write_each = |(view, attachment): &Due<'_>| {
            let outcome = write_one(view, attachment, at, |target, file, changes| {
                write_with_others(target, file, changes, patience)
            });
            (view.relid, outcome)
        };
        due.iter().map(write_each).collect()
    });
    written.unwrap_or_default()
}

fn write_one(
    view: &View,
    attachment: &Attachment,
    (position, history): (u64, &History),
    write: impl FnOnce(&Target, u32, &Changes) -> Outcome<Vec<Tid>>,
) -> Outcome<Written> {
    let _at_work = AtWork::begin(view.relid, Work::Apply);
    process::report_view("writing", &view.name);
    crash_point::reach_for(CrashPoint::Apply, &view.name);
    let target = attachment.target(view.relid);
    let delta = attachment.output.delta();
    let Some(stored) = &attachment.stored else {
        let write_first = |found: &StoredRows| {
            let key = attachment.compiled.query.plan.pairing_key();
            let mut changes = match attachment.goes_on {
                None => found.changes_to_reach(delta),
                Some(_) => match found.changes_for_delta(delta, key) {
                    Ok(changes) => changes,
                    Err(Missing) => {
                        warn_of_missing(&view.name);
                        return Outcome::Foreign;
                    }
                },
            };
            if target.changes.is_some() {
                changes.entries = Entries::All(Moment::now(position));
            }
            write(&target, found.file, &changes).map(|places| (changes, places))
        };
        // Somebody may have looked already.
        let compared = attachment.compared.as_ref();
        return match compared.filter(|found| is_file(view.relid, found.stored.file)) {
            Some(Compared { stored, .. }) => write_first(stored).map(|(changes, places)| Written {
                found: Found::Compared,
                changes,
                places,
            }),
            None => read_stored(&target, delta.len()).and_then(|found| {
                write_first(&found).map(|(changes, places)| Written {
                    found: Found::Read(found),
                    changes,
                    places,
                })
            }),
        };
    };
    match stored.changes_for_delta(delta, attachment.compiled.query.plan.pairing_key()) {
        Ok(mut changes) => {
            if let Some(changelog) = &attachment.changelog {
                let entries = changelog.entries(history, Moment::now(position));
                changes.entries = Entries::Rows(entries);
            }
            let places = write(&target, stored.file, &changes);
            places.map(|places| Written { found: Found::Known, changes, places })
        }
        Err(Missing) => {
            warn_of_missing(&view.name);
            Outcome::Foreign
        }
    }
}

/// Whether a view's heap is in a file, and can be written.
fn is_file(view: ViewId, file: u32) -> bool {
    try_lock(view, Lock::RowExclusive)
        && with_relation(view, Lock::RowExclusive, |view| view.file()) == Some(file)
}

/// Rows that are to be deleted are not there.
pub fn warn_of_missing(view: &str) {
    pgrx::warning!("pg_eddy: view {view} lacks rows that are to be deleted");
}

/// The rows a view's heap holds.
fn read_stored(target: &Target, expected: usize) -> Outcome<StoredRows> {
    let mut stored = StoredRows::new(expected);
    let found = {
        let _on_their_account = stored.allocate();
        read(target, |row, tid| stored.add(row, tid))
    };
    found.map(|found| {
        stored.file = found.file;
        stored
    })
}
