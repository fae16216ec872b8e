//! Attach: joining a view to the running stream of changes.
//!
//! Decoding delivers a transaction before snapshots see it, so first everything decoded must have
//! become visible. Then a snapshot S is taken, for all views that are due to be attached. Of the transactions decoded
//! later, those that S sees are dropped for such a view and all others are collected for it. The tables are read under S
//! bit by bit ([`super::reading`]), and then what was collected is fed. The view starts at a time that comes only when
//! decoding has come to where the WAL ended after S: everything before counts as of its start, so that its rows are those
//! of one point of commit order from the first on. Until then it is set aside, and then written together with the others.

use super::changelog::Changelog;
use super::checkpoints::{can_be_kept, Saved};
use super::choose::InTheMaking;
use super::chosen::Chosen;
use super::clock;
use super::indexes::{input_of, Indexes};
use super::kept_plans::Fed;
use super::main_loop::Worker;
use super::naming::dataflow_of;
use super::output::Output;
use super::reading::{Part, Reading};
use super::sources::{file_and_owner_of, older, sources_of, Refusal, Sources};
use super::stack::{are_kept, require_readable, views_read};
use super::view::{Attachment, Heals, Phase, Standing, View, Why};
use crate::compile::{CompiledView, SourceTable};
use crate::pg::crash_point::{self, CrashPoint};
use crate::pg::dependencies::Dependencies;
use crate::pg::held_snapshot::HeldSnapshot;
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::markers::{self, AtWork, Work};
use crate::pg::relation::{try_lock, with_relation, Lock};
use crate::pg::xact::{self, SnapshotCopy};
use crate::pg::{catalog, process, slots, wal};
use crate::shared;
use engine::{as_computed, DataflowId, Engine, Time};
use plan::SourceId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// How long transactions that have been decoded are waited for until snapshots see them: between the two is little time, but
/// for those that wait for a standby.
const PATIENCE: Duration = Duration::from_millis(5);

/// A view whose tables are locked is tried again after this long, doubling each time.
const FIRST_DELAY: Duration = Duration::from_millis(20);
const MAX_DELAY: Duration = Duration::from_millis(300);

/// How often a view for which there is no room looks for some.
const WITHOUT_CELL: Duration = Duration::from_secs(1);

impl Worker {
    /// Attaches the views whose turn it is.
    pub(super) fn attach_due(&mut self) {
        // What begins now begins at the end of the WAL: far from where those are that go on with what was saved.
        if self.is_behind_heaps() && !self.checkpoints.is_open() {
            return;
        }
        let now = Instant::now();
        let is_due = |view: &&View| match view.phase {
            Phase::Waiting { not_before: at, .. } | Phase::Failed { again: Some(at), .. } => {
                at <= now
            }
            _ => false,
        };
        let mut due: Vec<ViewId> =
            self.views.values().filter(is_due).map(|view| view.relid).collect();
        due.retain(|relid| self.may_read_awaited(*relid));
        let mut ready = Vec::new();
        // Those that go on are not attached one after the other: if that ends the worker, the next ones do not try for ever.
        let saved = self.saved_among(&due);
        due.retain(|relid| !saved.contains(relid));
        let chosen = self.suspects.choose(due, &self.views);
        for relid in saved.into_iter().chain(chosen) {
            if !self.has_cell(relid) {
                let not_before = now + WITHOUT_CELL;
                self.set_phase(relid, Phase::Waiting { not_before, attempts: 0 });
                continue;
            }
            let (file, owner) = file_and_owner_of(relid).unwrap_or_default();
            match self.suspects.verdict(relid, file) {
                Some(problem) => self.fail(relid, problem, Heals::OnRefresh { file }),
                None => {
                    markers::note(relid, file, owner);
                    markers::begin(relid, Work::Attach);
                    ready.push(relid);
                }
            }
        }
        let ready = self.restore(ready);
        if self.is_behind_heaps() {
            ready.into_iter().for_each(|relid| markers::end(relid, Work::Attach));
        } else if !ready.is_empty() {
            self.attach(ready);
        }
    }

    /// Whether a view has a place in shared memory, which it gets as soon as there is one.
    fn has_cell(&mut self, relid: ViewId) -> bool {
        let Some(view) = self.views.get_mut(&relid) else { return false };
        if view.cell.is_none() {
            view.cell = shared::view_or_new(relid);
        }
        view.cell.is_some()
    }

    /// Begins to attach views, together: a table is then read once for all of them.
    fn attach(&mut self, relids: Vec<ViewId>) {
        self.attach_from(relids, &BTreeMap::new());
    }

    /// The same where some go on from what was saved of them.
    pub(super) fn attach_from(&mut self, relids: Vec<ViewId>, saved: &BTreeMap<ViewId, Saved>) {
        if let Err((why, at)) = self.engine.require(&self.settings) {
            return self.wait_for_engine(relids, why, at);
        }
        let started = Instant::now();
        let candidates: Vec<Candidate> =
            relids.iter().map(|relid| self.candidate(*relid, started, saved.get(relid))).collect();
        let as_of = self.capture.reserve_time();
        if !self.capture.reads_clock() {
            self.clock.go_on();
        }
        let now = self.clock.now();
        let (oldest, recent) = (self.oldest_read(), self.capture.recent.keys().copied().collect());
        let Some(engine) = self.engine.get_mut() else { return };
        let (indexes, next_dataflow) = (&mut self.indexes, &mut self.next_dataflow);
        let (views, keeps, workers) =
            (&self.views, self.checkpoints.are_taken(), self.settings.all_workers());
        let place = Place { engine, indexes, views, next_dataflow, as_of, now, keeps, workers };
        match xact::try_run(|| begin_all(&candidates, recent, oldest, place)) {
            Ok(all) => {
                for (candidate, begun) in candidates.iter().zip(all) {
                    self.note(candidate, begun);
                }
            }
            Err(caught) if candidates.len() == 1 => {
                self.note_refused(relids[0], candidates[0].dataflow, caught.into());
            }
            // Whose trouble it is shows when each is begun by itself.
            Err(_) => {
                for Candidate { relid, dataflow, .. } in candidates {
                    self.drop_dataflow(dataflow);
                    self.release_indexes(dataflow);
                    self.indexes.parts.forget(relid);
                }
                relids.into_iter().for_each(|relid| self.attach(vec![relid]));
            }
        }
    }

    fn candidate(&mut self, relid: ViewId, started: Instant, saved: Option<&Saved>) -> Candidate {
        let dataflow = self.new_dataflow(relid);
        let view = self.views.get_mut(&relid);
        let spills = view.is_some_and(|view| {
            view.attempted = started;
            view.spills
        });
        Candidate { relid, dataflow, spills, started, saved: saved.cloned() }
    }

    fn note(&mut self, candidate: &Candidate, begun: Begun) {
        if let (Some(view), Some(name)) = (self.views.get_mut(&candidate.relid), begun.name) {
            view.name = name;
        }
        match begun.outcome {
            Ok((reading, snapshot)) => self.note_begun(candidate.relid, reading, &snapshot),
            Err(refusal) => self.note_refused(candidate.relid, candidate.dataflow, refusal),
        }
    }

    /// From now on changes of the view's tables are collected.
    fn note_begun(&mut self, relid: ViewId, reading: Reading, snapshot: &SnapshotCopy) {
        let (sources, chosen) = (&reading.sources, &reading.chosen);
        if sources.compiled.changes.is_some() {
            self.capture.history.begin();
        }
        self.collect_for_indexes(sources, chosen, snapshot);
        let Sources { compiled, members } = sources;
        for source in &chosen.own {
            let (table, members) = (&compiled.query.sources[source.0], &members[source.0]);
            let input = (reading.dataflow, *source);
            let columns = table.columns();
            if table.is_view {
                self.connect(table.table, input, &columns);
                continue;
            }
            // Where it goes on, everything that is decoded is new.
            let snapshot = reading.goes_on.is_none().then_some(snapshot);
            self.capture.add(input_of(input, table.table, &columns, members, snapshot));
        }
        let read = views_read(compiled);
        if !read.is_empty() {
            self.end_former(relid);
        }
        let tell_time = |view: &View| view.cell.is_some_and(|c| c.reads_clock.load(SeqCst) != 0);
        let reads_clock = compiled.query.sources.iter().any(SourceTable::is_clock)
            || read.iter().filter_map(|view| self.views.get(view)).any(tell_time);
        self.stack.put(relid, read);
        let Some(view) = self.views.get_mut(&relid) else { return };
        view.depends = depends_on(compiled, members);
        view.query.clone_from(&compiled.query.canonical);
        if let Some(cell) = view.cell {
            cell.reads_clock.store(reads_clock.into(), SeqCst);
            let rows = reading.parts.iter().map(|part| part.rows).sum();
            cell.attaching.begin(xact::now(), rows);
        }
        view.phase = Phase::Reading(Box::new(reading));
    }

    /// All rows of the view's tables have been fed.
    pub(super) fn note_read(&mut self, relid: ViewId) {
        let Some(view) = self.views.get_mut(&relid) else { return };
        let Phase::Reading(reading) = std::mem::replace(&mut view.phase, Phase::waiting()) else {
            return;
        };
        let Reading { dataflow, sources, as_of, end, rows, since, is_kept, goes_on, .. } = *reading;
        process::wake_myself();
        let troubled = self.troubled_beneath(relid);
        let Some(view) = self.views.get_mut(&relid) else { return };
        if goes_on.is_none() {
            pgrx::log!(
                "pg_eddy: view {} read {rows} rows of its base tables in {:.3} s",
                view.name,
                since.elapsed().as_secs_f64()
            );
        }
        view.last_problem = None;
        let changelog = sources.compiled.changes.map(|_| Changelog::default());
        view.phase = Phase::Attached(Box::new(Attachment {
            dataflow,
            compiled: sources.compiled,
            members: sources.members,
            output: Output::default(),
            changelog,
            start: as_of,
            transactions: 0,
            errs: BTreeMap::new(),
            troubled,
            stored: None,
            compared: None,
            is_comparing: false,
            lent: None,
            standing: Standing::Aside { why: Why::Attaching, not_before: Instant::now() },
            failures: 0,
            is_slow: false,
            whole_from: end,
            fed: as_of,
            reached: as_of,
            began: Instant::now(),
            last_batch: Duration::MAX,
            since,
            is_kept,
            goes_on,
            is_behind_heap: goes_on.is_some(),
        }));
        if view.former.is_none() {
            self.compare_early(relid);
        }
    }

    /// The times at which views start come when decoding is where the WAL ended when their tables began to be read.
    pub(super) fn come_to_starts(&mut self) {
        let position = self.position();
        for view in self.views.values() {
            let (start, end) = match &view.phase {
                Phase::Reading(reading) => (reading.as_of, reading.end),
                Phase::Attached(attachment) => (attachment.start, attachment.whole_from),
                Phase::Waiting { .. } | Phase::Failed { .. } => continue,
            };
            if end <= position {
                self.capture.come_to(start);
            }
        }
    }

    pub(super) fn note_refused(&mut self, relid: ViewId, dataflow: DataflowId, refusal: Refusal) {
        self.drop_dataflow(dataflow);
        self.release_indexes(dataflow);
        self.indexes.parts.forget(relid);
        match refusal {
            Refusal::Later => {
                let Some(view) = self.views.get_mut(&relid) else { return };
                if let Phase::Failed { again, .. } = &mut view.phase {
                    *again = Some(Instant::now() + MAX_DELAY);
                    return markers::end(relid, Work::Attach);
                }
                let attempts = match view.phase {
                    Phase::Waiting { attempts, .. } => attempts + 1,
                    _ => 1,
                };
                let delay = FIRST_DELAY.saturating_mul(1 << attempts.min(10)).min(MAX_DELAY);
                let not_before = Instant::now() + delay;
                self.drop_present(relid, Phase::Waiting { not_before, attempts });
                markers::end(relid, Work::Attach);
            }
            Refusal::Until(view) => {
                self.await_view(relid, view);
                markers::end(relid, Work::Attach);
            }
            Refusal::Problem(problem) => {
                self.fail(relid, problem, Heals::OnDdl);
                markers::end(relid, Work::Attach);
            }
            Refusal::Beneath(problem, view) => {
                self.fail_with(relid, view, problem);
                markers::end(relid, Work::Attach);
            }
        }
    }
}

/// A view that is to be begun.
struct Candidate {
    relid: ViewId,
    dataflow: DataflowId,
    /// Whether its state may go to disk.
    spills: bool,
    started: Instant,
    /// That with which it goes on.
    saved: Option<Saved>,
}

/// What became of it.
struct Begun {
    name: Option<String>,
    outcome: Result<(Reading, SnapshotCopy), Refusal>,
}

/// Where views are going to be computed, and from when on.
struct Place<'a> {
    engine: &'a mut dyn Engine,
    /// What there is to read.
    indexes: &'a mut Indexes,
    views: &'a BTreeMap<ViewId, View>,
    next_dataflow: &'a mut u64,
    as_of: Time,
    /// The present time for all of them.
    now: i64,
    /// Whether what can be saved is to be, and on how many threads it is computed.
    keeps: bool,
    workers: usize,
}

/// The snapshot of views that are begun together.
struct Taken {
    held: Rc<HeldSnapshot>,
    /// End of the WAL after that.
    end: u64,
}

/// Compiles views, locks their tables, and takes the snapshot under which these are going to be read into new dataflows. What
/// is in the way of one is in the way of no other.
fn begin_all(
    candidates: &[Candidate],
    recent: Vec<u32>,
    oldest: Option<u32>,
    mut place: Place<'_>,
) -> Vec<Begun> {
    let locked: Vec<_> = candidates.iter().map(lock).collect();
    // Parts that they have in common are seen before the first of them chooses.
    for (candidate, (_, sources)) in candidates.iter().zip(&locked) {
        if let (Ok(sources), false) = (sources, place.keeps && !candidate.spills) {
            place.indexes.note_parts(candidate.relid, sources);
        }
    }
    let is_visible = wait_for_decoded(recent);
    xact::with_new_snapshot(|| {
        let snapshot = SnapshotCopy::of_active();
        let held = Rc::new(HeldSnapshot::of_active());
        let end = wal::insert_lsn();
        // Decoding is to reach it, and transactions that are open may be all that writes: nobody else flushes for them.
        wal::flush_to(end);
        slots::hold_rows(older(oldest, Some(held.oldest())));
        let is_ready = is_visible && slots::keeps(held.oldest());
        let taken = Taken { held, end };
        let begin = |(candidate, (name, sources)): (&Candidate, (_, Result<_, Refusal>))| {
            let outcome = sources.and_then(|sources| match is_ready {
                true => apart(candidate.relid, || begin(candidate, sources, &taken, &mut place)),
                false => Err(Refusal::Later),
            });
            Begun { name, outcome: outcome.map(|reading| (reading, snapshot.clone())) }
        };
        candidates.iter().zip(locked).map(begin).collect()
    })
}

/// Compiles a view and locks its tables; answers its name, too.
fn lock(candidate: &Candidate) -> (Option<String>, Result<Sources, Refusal>) {
    let relid = candidate.relid;
    let mut name = None;
    let sources = apart(relid, || {
        let qualified = catalog::qualified_name(relid);
        process::report_view("attaching", &qualified);
        crash_point::reach_for(CrashPoint::Attach, &qualified);
        crash_point::before_threads(relid, &qualified);
        name = Some(qualified);
        lock_sources(relid)
    });
    (name, sources)
}

/// Does for one view what may fail for it alone.
fn apart<T>(relid: ViewId, work: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
    let _at_work = AtWork::begin(relid, Work::Feed);
    xact::in_subtransaction(work).map_err(Refusal::from).and_then(|outcome| outcome)
}

/// Makes the dataflow of a view whose tables are locked.
fn begin(
    candidate: &Candidate,
    sources: Sources,
    taken: &Taken,
    place: &mut Place<'_>,
) -> Result<Reading, Refusal> {
    let Candidate { relid, dataflow, spills, started, ref saved } = *candidate;
    let Place { engine, indexes, views, next_dataflow, as_of, now, keeps, workers } = place;
    let (as_of, now) = (*as_of, *now);
    let read = views_read(&sources.compiled);
    let can_be_kept = || can_be_kept(&sources) && are_kept(views, &read);
    let is_kept = *keeps && !spills && can_be_kept() && engine.checkpoints().is_some();
    // By an engine that saves nothing it is attached from its tables.
    let saved = saved.as_ref().filter(|_| is_kept);
    // What goes on has all that those have put out that do so, too.
    let goes_on =
        |relid: &ViewId| views.get(relid).is_some_and(|view| view.phase.heap_ahead().is_some());
    require_readable(views, read.into_iter().filter(|relid| saved.is_none() || !goes_on(relid)))?;
    // What spills keeps its state for itself, and so does what is saved.
    let chosen = match (is_kept, spills) {
        (true, _) => {
            Chosen::none(as_computed(&sources.compiled.query.plan, *workers, true).into_owned())
        }
        (false, true) => Chosen::none(sources.compiled.query.plan.clone()),
        (false, false) => {
            let name = || dataflow_of(relid, next_dataflow);
            indexes.choose(relid, &sources, name).map_err(|InTheMaking| Refusal::Later)?
        }
    };
    let parts = match saved {
        Some(_) => VecDeque::new(),
        None => parts_of(&sources, dataflow, &chosen)?,
    };
    indexes.note_begun(dataflow, &chosen, as_of);
    let plan = &sources.compiled.query.plan;
    process::with_signals_blocked(|| match (engine.checkpoints().filter(|_| is_kept), spills) {
        (Some(checkpoints), _) => {
            let plan = (&chosen.plan, chosen.form);
            checkpoints.create_kept(dataflow, plan, saved.map(|saved| &*saved.state), as_of);
        }
        (None, true) => engine.create_spilling_dataflow(dataflow, plan, as_of),
        (None, false) => {
            chosen.create(*engine, &sources, as_of);
            let plan = (&chosen.plan, chosen.form);
            engine.create_reading(dataflow, plan, &chosen.reads, as_of);
        }
    });
    engine.set_owner(dataflow, sources.compiled.owner.to_u32());
    if sources.compiled.changes.is_some() {
        engine.keep_times(dataflow);
    }
    // First, so that rows whose time has passed are dropped on arrival.
    for (index, source) in sources.compiled.query.sources.iter().enumerate() {
        if source.is_clock() {
            engine.update(dataflow, SourceId(index), vec![(clock::row(now), as_of, 1)]);
        }
    }
    let at = Instant::now();
    Ok(Reading {
        dataflow,
        sources,
        chosen,
        as_of,
        end: taken.end,
        held: Rc::clone(&taken.held),
        parts,
        rows: 0,
        since: started,
        not_before: at,
        admitted: at,
        is_alone: false,
        is_kept,
        goes_on: saved.map(|saved| saved.heap),
    })
}

/// What was decoded must be visible before a snapshot is taken.
fn wait_for_decoded(recent: Vec<u32>) -> bool {
    xact::wait_for_all(recent, PATIENCE).is_empty()
}

/// What is to be read: into the dataflow of the view, and into new indexes.
fn parts_of(
    sources: &Sources,
    dataflow: DataflowId,
    chosen: &Chosen,
) -> Result<VecDeque<Part>, Refusal> {
    let mut parts = VecDeque::new();
    let tables = &sources.compiled.query.sources;
    let own = chosen.own.iter().map(|source| Fed {
        input: (dataflow, *source),
        source: *source,
        columns: tables[source.0].columns(),
    });
    // Those of others first, for they may be waited for.
    for Fed { input, source, columns } in chosen.fed().chain(own) {
        let table = &tables[source.0];
        if table.is_clock() {
            continue;
        }
        let parent = with_relation(table.table, Lock::AccessShare, |parent| parent.attributes());
        let parent = parent.ok_or(Refusal::Later)?;
        for relation in sources.relations(source) {
            let part = with_relation(relation, Lock::AccessShare, |relation| {
                Part::new(input, &relation, &columns, &parent)
            });
            parts.extend(part.flatten().ok_or(Refusal::Later)?);
        }
    }
    Ok(parts)
}

/// Locks the base tables without waiting; what was compiled holds once they are locked.
fn lock_sources(relid: ViewId) -> Result<Sources, Refusal> {
    let mut sources = sources_of(relid)?;
    loop {
        let is_free = |id| {
            sources.relations(SourceId(id)).all(|relation| try_lock(relation, Lock::AccessShare))
        };
        if !(0..sources.members.len()).all(is_free) {
            return Err(Refusal::Later);
        }
        let again = sources_of(relid)?;
        if again.compiled == sources.compiled && again.members == sources.members {
            return Ok(again);
        }
        sources = again;
    }
}

/// What a view depends on that is compiled so.
pub(super) fn depends_on(
    compiled: &CompiledView,
    members: &[BTreeSet<RelationId>],
) -> Dependencies {
    let views = compiled.query.views.iter().copied().chain([compiled.relid.into()]);
    let types = compiled.composites.keys().copied();
    let changes = compiled.changes.iter().map(|changes| changes.table);
    let mirror = compiled.mirror.iter().map(|mirror| mirror.table);
    let tables = members.iter().flatten().copied().chain(changes).chain(mirror);
    let relations = tables.chain(views).chain(types).collect();
    Dependencies::new(relations, compiled.functions.keys().copied())
}
