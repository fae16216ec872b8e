//! Attach: joining a view to the running stream of changes.
//!
//! Decoding delivers a transaction before snapshots see it, so first everything decoded must have
//! become visible. Then the tables are read under a snapshot S, at one new time. Of the transactions
//! decoded later, those that S sees are dropped for this view and all others are fed. The view is set
//! aside until decoding has come to where the WAL ended after S: then its rows are those of one point
//! of commit order, and it is written together with the others.

use super::capture::{numbers_by_name, Input};
use super::clock;
use super::evaluate::answer;
use super::main_loop::{wait_for_decoded, Worker};
use super::output::Output;
use super::view::{Attachment, Heals, Phase, Problem, Standing, View, Why};
use crate::compile::{self, CompiledView, SourceTable};
use crate::errors::Error;
use crate::pg::crash_point::{self, CrashPoint};
use crate::pg::dependencies::Dependencies;
use crate::pg::heap::{self, Projection};
use crate::pg::inval::Invalidated;
use crate::pg::markers::{self, AtWork, Work};
use crate::pg::relation::{try_lock, with_relation, Lock};
use crate::pg::xact::{self, Caught, SnapshotCopy};
use crate::pg::{catalog, process, registry, wal};
use engine::{DataflowId, Engine, Time, Updates};
use pgrx::pg_sys::Oid;
use planner::error::DataError;
use planner::plan::SourceId;
use planner::row::Row;
use planner::types::Type;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// Rows handed to the engine at once.
const CHUNK: usize = 16 << 10;

/// Longest wait for the engine to take rows before signals are looked at.
const FEED_PAUSE: Duration = Duration::from_millis(100);

/// A view whose tables are locked is tried again after this long, doubling each time.
const FIRST_DELAY: Duration = Duration::from_millis(20);
const MAX_DELAY: Duration = Duration::from_millis(300);

/// A view that failed for reasons unknown is tried again after DDL, but not more often than this.
const RETRY_FAILED: Duration = Duration::from_secs(1);

/// What a view is made from, as the catalogs say now.
struct Sources {
    compiled: CompiledView,
    members: Vec<BTreeSet<u32>>,
}

/// Why a view is not attached.
enum Refusal {
    /// Somebody holds a lock that is in the way.
    Later,
    /// It cannot be maintained as things are.
    Problem(Problem),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Problem(error.into())
    }
}

impl From<DataError> for Refusal {
    fn from(error: DataError) -> Refusal {
        Refusal::Problem(error.into())
    }
}

impl From<Caught> for Refusal {
    fn from(caught: Caught) -> Refusal {
        match caught.is_transient() {
            true => Refusal::Later,
            false => Refusal::Problem(caught.into()),
        }
    }
}

impl Worker {
    /// Looks at the catalogs again after DDL. What was decoded but is not visible yet will be told of once more.
    pub(super) fn reload(&mut self, invalidated: Invalidated) {
        let listed = xact::try_run(|| {
            let extension = registry::extension();
            extension.map(|_| registry::all().iter().map(|view| view.to_u32()).collect::<Vec<_>>())
        });
        let listed = match listed {
            Ok(Some(listed)) => listed,
            Ok(None) => self.leave(),
            // Trying again is all that can be done: the catalog may be locked for a moment.
            Err(caught) => {
                pgrx::log!("pg_eddy: could not read the list of views: {}", caught.message);
                crate::pg::inval::mark_all();
                crate::pg::process::wait_for_latch(FIRST_DELAY);
                return;
            }
        };
        self.forget_dropped(&listed);
        for relid in listed {
            let is_new = !self.views.contains_key(&relid);
            let view = self.views.entry(relid).or_insert_with(|| View::new(relid));
            if is_new {
                continue;
            }
            if invalidated.touches(&view.depends) {
                self.check_again(relid);
            } else if matches!(view.phase, Phase::Failed { heals: Heals::OnDdl, .. }) {
                let not_before = view.attempted + RETRY_FAILED;
                self.set_phase(relid, Phase::Waiting { not_before, attempts: 0 });
            }
        }
    }

    fn forget_dropped(&mut self, listed: &[u32]) {
        let dropped: Vec<u32> =
            self.views.keys().filter(|relid| !listed.contains(relid)).copied().collect();
        for relid in &dropped {
            self.set_phase(*relid, Phase::waiting());
            self.views.remove(relid);
        }
        crate::shared::remove_views(crate::pg::process::database(), |relid| {
            listed.contains(&relid)
        });
    }

    /// Something a view depends on may have changed: if it has, the view is attached anew.
    fn check_again(&mut self, relid: u32) {
        let Some(view) = self.views.get(&relid) else { return };
        match &view.phase {
            Phase::Waiting { .. } => {}
            Phase::Failed { heals: Heals::OnDdl, .. } => self.set_phase(relid, Phase::waiting()),
            Phase::Failed { heals: Heals::OnRefresh { file }, .. } => {
                if file_of(relid) != Some(*file) {
                    self.start_refreshed(relid);
                }
            }
            Phase::Attached(attachment) => {
                let now = xact::try_run(|| {
                    let file = with_relation(relid, Lock::AccessShare, |view| view.file());
                    (file, sources_of(relid))
                });
                let stored = attachment.file();
                let (is_same, is_refreshed) = match now {
                    Ok((file, Ok(sources))) => (
                        sources.compiled == attachment.compiled
                            && sources.members == attachment.members,
                        stored.is_some() && stored != file,
                    ),
                    _ => (false, false),
                };
                if is_refreshed {
                    self.start_refreshed(relid);
                } else if !is_same {
                    self.set_phase(relid, Phase::waiting());
                }
            }
        }
    }

    /// REFRESH, too, lets a view try again whether its state fits into memory.
    fn start_refreshed(&mut self, relid: u32) {
        if let Some(view) = self.views.get_mut(&relid) {
            view.spills = false;
        }
        self.set_phase(relid, Phase::waiting());
    }

    /// Attaches the views whose turn it is.
    pub(super) fn attach_due(&mut self) {
        let now = Instant::now();
        let is_due = |view: &&View| matches!(view.phase, Phase::Waiting { not_before, .. } if not_before <= now);
        let due: Vec<u32> = self.views.values().filter(is_due).map(|view| view.relid).collect();
        for relid in self.suspects.choose(due, &self.views) {
            let file = file_of(relid).unwrap_or(0);
            match self.suspects.verdict(relid, file) {
                Some(problem) => self.fail(relid, problem, Heals::OnRefresh { file }),
                None => {
                    markers::note_file(relid, file);
                    markers::begin(relid, Work::Attach);
                    self.attach(relid);
                }
            }
        }
    }

    fn attach(&mut self, relid: u32) {
        let _at_work = AtWork::begin(relid, Work::Attach);
        let started = Instant::now();
        if let Some(view) = self.views.get_mut(&relid) {
            view.attempted = started;
        }
        let dataflow = self.new_dataflow(relid);
        let time = self.capture.take_time();
        if !self.capture.reads_clock() {
            self.clock.go_on();
        }
        let now = self.clock.now();
        self.engine();
        let spills = self.views.get(&relid).is_some_and(|view| view.spills);
        let outcome = {
            let recent = std::mem::take(&mut self.capture.recent);
            let engine = self.engine.as_mut().expect("the engine was started just now");
            let result = xact::try_run(|| {
                let name = catalog::qualified_name(relid);
                crash_point::reach_for(CrashPoint::Attach, &name);
                crash_point::before_threads(relid, &name);
                (name, read_tables(relid, &recent, (engine, now), (dataflow, spills), time))
            });
            self.capture.recent = recent;
            result
        };
        let (name, read) = match outcome {
            Ok((name, read)) => (Some(name), read),
            Err(caught) => (None, Err(Refusal::from(caught))),
        };
        if let (Some(view), Some(name)) = (self.views.get_mut(&relid), name) {
            view.name = name;
        }
        match read {
            Ok(read) => self.note_attached(relid, (dataflow, time), read, started),
            Err(refusal) => self.note_refused(relid, dataflow, refusal),
        }
    }

    fn note_attached(
        &mut self,
        relid: u32,
        (dataflow, as_of): (DataflowId, Time),
        read: Read,
        started: Instant,
    ) {
        let Read { sources: Sources { compiled, members }, snapshot, end, rows } = read;
        for (index, (source, members)) in compiled.sources.iter().zip(&members).enumerate() {
            self.capture.add(Input {
                view: relid,
                source: SourceId(index),
                table: source.oid.to_u32(),
                columns: columns_of(source),
                members: members.clone(),
                already_read: snapshot.clone(),
            });
        }
        let fed = as_of + 1;
        self.engine().advance_dataflow(dataflow, fed);
        let Some(view) = self.views.get_mut(&relid) else { return };
        view.depends = depends_on(&compiled, &members);
        view.last_problem = None;
        if let Some(cell) = view.cell {
            let reads_clock = compiled.sources.iter().any(SourceTable::is_clock);
            cell.reads_clock.store(reads_clock.into(), SeqCst);
        }
        pgrx::log!(
            "pg_eddy: view {} read {rows} rows of its base tables in {:.3} s",
            view.name,
            started.elapsed().as_secs_f64()
        );
        view.phase = Phase::Attached(Box::new(Attachment {
            dataflow,
            compiled,
            members,
            output: Output::default(),
            transactions: 0,
            errs: BTreeMap::new(),
            stored: None,
            lent: None,
            standing: Standing::Aside { why: Why::Attaching, not_before: Instant::now() },
            failures: 0,
            whole_from: end,
            fed,
            reached: as_of,
            began: Instant::now(),
            last_batch: Duration::MAX,
            since: started,
        }));
    }

    fn note_refused(&mut self, relid: u32, dataflow: DataflowId, refusal: Refusal) {
        self.dataflows.remove(&dataflow);
        self.engine().drop_dataflow(dataflow);
        match refusal {
            Refusal::Later => {
                let Some(view) = self.views.get_mut(&relid) else { return };
                let attempts = match view.phase {
                    Phase::Waiting { attempts, .. } => attempts + 1,
                    _ => 1,
                };
                let delay = FIRST_DELAY.saturating_mul(1 << attempts.min(10)).min(MAX_DELAY);
                view.phase = Phase::Waiting { not_before: Instant::now() + delay, attempts };
            }
            Refusal::Problem(problem) => self.fail(relid, problem, Heals::OnDdl),
        }
    }
}

/// What reading the tables found.
struct Read {
    sources: Sources,
    snapshot: SnapshotCopy,
    /// End of the WAL after the snapshot was taken.
    end: u64,
    rows: usize,
}

/// Compiles the view, locks its tables, and feeds their rows to a new dataflow.
fn read_tables(
    relid: u32,
    recent: &BTreeMap<u32, BTreeSet<u32>>,
    (engine, now): (&mut Engine, i64),
    (dataflow, spills): (DataflowId, bool),
    time: Time,
) -> Result<Read, Refusal> {
    let sources = lock_sources(relid)?;
    wait_for_decoded(recent);
    xact::with_new_snapshot(|| {
        let snapshot = SnapshotCopy::of_active();
        let end = wal::insert_lsn();
        process::with_signals_blocked(|| match spills {
            true => engine.create_spilling_dataflow(dataflow, &sources.compiled.plan, time),
            false => engine.create_dataflow(dataflow, &sources.compiled.plan, time),
        });
        let mut rows = 0;
        // First, so that rows whose time has passed are dropped on arrival.
        for (index, source) in sources.compiled.sources.iter().enumerate() {
            if source.is_clock() {
                engine.update(dataflow, SourceId(index), vec![(clock::row(now), time, 1)]);
            }
        }
        for (index, members) in sources.members.iter().enumerate() {
            let source = &sources.compiled.sources[index];
            if source.is_clock() {
                continue;
            }
            let mut feed = |updates| {
                engine.update(dataflow, SourceId(index), updates);
                // What is on its way is in memory.
                engine.take_evaluations().into_iter().for_each(answer);
                while !engine.wait_for_room(dataflow, FEED_PAUSE) {
                    process::check_interrupts();
                    engine.take_evaluations().into_iter().for_each(answer);
                }
            };
            let columns = columns_of(source);
            rows += read_table(source.oid.to_u32(), members, &columns, time, &mut feed)?;
        }
        Ok(Read { sources, snapshot, end, rows })
    })
}

/// Locks the base tables without waiting; what was compiled holds once they are locked.
fn lock_sources(relid: u32) -> Result<Sources, Refusal> {
    let mut sources = sources_of(relid)?;
    loop {
        let mut members = sources.members.iter().flatten();
        if !members.all(|member| try_lock(*member, Lock::AccessShare)) {
            return Err(Refusal::Later);
        }
        let again = sources_of(relid)?;
        if again.compiled == sources.compiled && again.members == sources.members {
            return Ok(again);
        }
        sources = again;
    }
}

/// What the view is made from, after checking that its owner may read it and that changes can be
/// captured.
fn sources_of(relid: u32) -> Result<Sources, Error> {
    let compiled = compile::compile_view(Oid::from(relid))?;
    compile::check_sources(&compiled)?;
    let members = compiled
        .sources
        .iter()
        .map(|source| match source.is_clock() {
            true => BTreeSet::new(),
            false => catalog::descendants(source.oid.to_u32()).into_iter().collect(),
        })
        .collect();
    Ok(Sources { compiled, members })
}

fn columns_of(source: &compile::SourceTable) -> Vec<(i16, Type)> {
    source.attnums.iter().copied().zip(source.types.iter().copied()).collect()
}

fn depends_on(compiled: &CompiledView, members: &[BTreeSet<u32>]) -> Dependencies {
    let views = compiled.views.iter().chain([&compiled.relid]).map(|view| view.to_u32());
    let types = compiled.composites.keys().copied();
    let relations = members.iter().flatten().copied().chain(views).chain(types).collect();
    Dependencies::new(relations, compiled.functions.keys().copied())
}

/// Feeds the rows of a base table and of all that inherits from it.
fn read_table(
    table: u32,
    members: &BTreeSet<u32>,
    columns: &[(i16, Type)],
    time: Time,
    feed: &mut dyn FnMut(Updates<Row>),
) -> Result<usize, Refusal> {
    let gone = || Refusal::Later;
    let parent = with_relation(table, Lock::AccessShare, |parent| parent.attributes());
    let parent = parent.ok_or_else(gone)?;
    let mut count = 0;
    let mut updates = Vec::new();
    for member in members {
        let read = with_relation(*member, Lock::AccessShare, |relation| {
            if relation.kind() != b'r' {
                return Ok(());
            }
            let numbers = numbers_by_name(columns, &parent, &relation.attributes());
            let numbers = numbers.ok_or_else(gone)?;
            let types = columns.iter().map(|(_, ty)| *ty);
            let projection = Projection { columns: numbers.into_iter().zip(types).collect() };
            heap::scan(&relation, &projection, |row, _| {
                updates.push((row?, time, 1));
                count += 1;
                if updates.len() >= CHUNK {
                    feed(std::mem::take(&mut updates));
                }
                Ok::<_, Refusal>(())
            })
        });
        read.ok_or_else(gone)??;
    }
    feed(updates);
    Ok(count)
}

/// The file of a view's heap now; `None` if it cannot be told.
pub fn file_of(relid: u32) -> Option<u32> {
    let file = || with_relation(relid, Lock::AccessShare, |view| view.file());
    xact::try_run(file).ok().flatten()
}
