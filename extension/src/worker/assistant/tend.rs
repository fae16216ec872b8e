//! What the worker does about its assistants: gives them jobs, starts them, and takes what comes of it.

use super::evaluating::Evaluating;
use super::jobs::{Head, Job, JobEnd, Payload, Stage, Turn};
use super::writing::{Comparing, First, Reason, Unwritten, Writing, Written};
use crate::errors::Error;
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::process::{self, Started};
use crate::pg::relation::{try_lock, with_relation, Lock, RelationRef};
use crate::pg::{changes_table, markers, mirror, row_triggers, xact};
use crate::worker::apply::{note_stored, warn_of_missing, Stored};
use crate::worker::capture::Moment;
use crate::worker::changelog::{Changelog, Entries};
use crate::worker::heap::Lent;
use crate::worker::main_loop::Worker;
use crate::worker::stored::Compared;
use crate::worker::task::{Lost, Task};
use crate::worker::view::{Heals, Phase, View, Why};
use crate::worker::write::Outcome;
use engine::{Answer, Engine, Evaluation};
use rules::places::{Claim, Kind, Places};
use std::ffi::CString;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often an assistant may end without a result, one time after the other, until its view is in error.
const MAX_ATTEMPTS: u32 = 3;

/// Time until a job is tried again whose assistant ended without a result.
const RETRY: Duration = Duration::from_millis(100);

/// Why there is no assistant.
const NO_PROCESS: &str = "there is no free background worker, see max_worker_processes";

/// A heap of more blocks takes more than a moment to read.
const LARGE_HEAP: u32 = 256;

impl Worker {
    /// Brings all jobs a step further.
    pub(in crate::worker) fn tend_assistants(&mut self) {
        self.assistants.forget_left();
        let jobs = std::mem::take(&mut self.assistants.jobs);
        let claims = |is_meant: fn(&Stage) -> bool| {
            let meant = jobs.iter().filter(|(_, stage)| is_meant(stage));
            meant.map(|(job, _)| job.claim).collect()
        };
        self.assistants.places = Places::new(
            claims(|stage| matches!(stage, Stage::Running(..))),
            claims(|stage| matches!(stage, Stage::Ready(_))),
        );
        for (job, stage) in jobs {
            match self.dataflows.contains_key(&job.dataflow) {
                true => self.advance(job, stage),
                false => self.assistants.cancel(&job, stage),
            }
        }
        // A view may have several jobs, of which one has ended.
        let remaining = self.assistants.jobs.iter();
        remaining.for_each(|(job, _)| markers::begin(job.relid, markers::Work::Assist));
    }

    fn advance(&mut self, job: Job, stage: Stage) {
        let head = Arc::clone(&job.head);
        let stage = match stage {
            Stage::Waiting(payload, not_before) if not_before <= Instant::now() => {
                Stage::Busy(Task::start(move || payload.prepare(&head)))
            }
            Stage::Ready(payload) if self.assistants.places.have_one_for(job.claim) => {
                let Some(started) = start(&head) else {
                    return self.do_without(&job, payload, NO_PROCESS);
                };
                self.assistants.places.take(job.claim);
                Stage::Running(payload, started)
            }
            Stage::Running(payload, started) if started.has_ended() => {
                self.assistants.places.give_back(job.claim);
                Stage::Busy(Task::start(move || payload.digest(&head)))
            }
            Stage::Busy(task) => match task.take() {
                Some(turn) => return self.take_turn(job, turn),
                None => Stage::Busy(task),
            },
            stage => stage,
        };
        self.assistants.jobs.push((job, stage));
    }

    fn take_turn(&mut self, mut job: Job, turn: Result<Turn, Lost>) {
        match turn {
            Ok(Turn::Ready(payload)) => self.advance(job, Stage::Ready(payload)),
            Ok(Turn::Again(payload)) => {
                job.failures = 0;
                self.advance(job, Stage::Waiting(payload, Instant::now()));
            }
            Ok(Turn::Failed(payload, reason)) => self.note_failed(job, payload, &reason),
            Ok(Turn::Unordered(payload, error)) => {
                self.do_without(&job, payload, &format!("could not write its order: {error}"));
            }
            Ok(Turn::Over(end)) => {
                job.finish();
                self.note_end(job.relid, *end);
            }
            // What it had of the view is gone.
            Err(Lost) => {
                job.finish();
                self.set_phase(job.relid, Phase::waiting());
            }
        }
    }

    fn note_failed(&mut self, mut job: Job, payload: Payload, reason: &str) {
        job.failures += 1;
        pgrx::log!("pg_eddy: an assistant for view {} failed: {reason}", job.head.view);
        if job.failures < MAX_ATTEMPTS {
            let stage = Stage::Waiting(payload, Instant::now() + RETRY);
            return self.assistants.jobs.push((job, stage));
        }
        job.finish();
        let file = crate::worker::sources::file_of(job.relid).unwrap_or(0);
        let problem = Error::assistant_failed(job.failures, reason).into();
        self.fail(job.relid, problem, Heals::OnRefresh { file });
    }

    /// There can be no assistant.
    fn do_without(&mut self, job: &Job, payload: Payload, reason: &str) {
        self.assistants.note_lack(reason);
        job.finish();
        match payload {
            Payload::Evaluating(Evaluating { evaluation, answers, .. }) => {
                self.answer_rest(&job.head.view, evaluation, answers);
            }
            Payload::Comparing(_) => self.note_compared(job.relid, None),
            Payload::Writing(writing) => self.give_back(job.relid, writing.leave()),
        }
    }

    fn note_end(&mut self, relid: ViewId, end: JobEnd) {
        let Some(view) = self.views.get_mut(&relid) else { return };
        match end {
            JobEnd::Answered { is_quick } => view.is_slow = !is_quick,
            JobEnd::Compared(outcome) => {
                let mut found = None;
                let outcome = outcome.map(|compared| found = Some(compared));
                self.note_compared(relid, found);
                self.note_outcome(relid, outcome);
            }
            JobEnd::Written(Written { stored, is_first, rows, transactions, xid, is_quick }) => {
                let Some(attachment) = view.attachment() else { return };
                attachment.lent = None;
                attachment.is_slow &= !is_quick;
                attachment.stored = Some(stored);
                let is_new = is_first && attachment.vouched().is_none();
                attachment.goes_on = None;
                note_stored(view, &Stored { is_first: is_new, rows, transactions, changed: xid });
                self.wake_above(relid);
                if is_first {
                    self.require_file(relid);
                }
            }
            JobEnd::Unwritten(unwritten, reason) => {
                self.give_back(relid, unwritten);
                self.note_unwritten_by_assistant(relid, reason);
            }
        }
    }

    /// No assistant looks at the heap of a view any more; what one has found.
    fn note_compared(&mut self, relid: ViewId, found: Option<Compared>) {
        if let Some(attachment) = self.views.get_mut(&relid).and_then(View::attachment) {
            attachment.is_comparing = false;
            attachment.compared = found.filter(|_| attachment.stored.is_none());
        }
    }

    /// What was compared may have been replaced by REFRESH before that was known here.
    fn require_file(&mut self, relid: ViewId) {
        let attachment = self.views.get_mut(&relid).and_then(View::attachment);
        let compared = attachment.and_then(|attachment| attachment.file());
        if crate::worker::sources::file_of(relid).is_some_and(|file| Some(file) != compared) {
            self.set_phase(relid, Phase::waiting());
        }
    }

    fn give_back(&mut self, relid: ViewId, unwritten: Unwritten) {
        let attachment = self.views.get_mut(&relid).and_then(View::attachment);
        let Some(attachment) = attachment else { return };
        attachment.lent = None;
        attachment.stored = unwritten.stored;
        attachment.output.put_back(unwritten.delta);
        if let Some(changelog) = &mut attachment.changelog {
            changelog.put_back(unwritten.updates);
        }
        attachment.transactions += unwritten.transactions;
    }

    fn note_unwritten_by_assistant(&mut self, relid: ViewId, reason: Reason) {
        match reason {
            Reason::Outcome(outcome) => self.note_outcome(relid, outcome),
            Reason::Missing => {
                if let Some(view) = self.views.get(&relid) {
                    warn_of_missing(&view.name);
                }
                self.note_outcome(relid, Outcome::Foreign);
            }
            Reason::BeyondMemory(bytes) => {
                let file = crate::worker::sources::file_of(relid).unwrap_or(0);
                let bytes = self.memory_limit().saturating_add(bytes);
                let problem = Error::rows_beyond_memory(bytes).into();
                self.fail(relid, problem, Heals::OnRefresh { file });
            }
        }
    }

    /// Has an assistant evaluate what the worker has not.
    pub(in crate::worker) fn evaluate_by_assistant(
        &mut self,
        relid: ViewId,
        evaluation: Evaluation,
        answers: Vec<Vec<Answer>>,
    ) {
        let Some(view) = self.views.get(&relid) else { return };
        let claim = Claim { kind: Kind::Evaluate, owner: view.owner() };
        let dataflow = evaluation.dataflow;
        let evaluating = Evaluating { evaluation, answers, is_quick: true };
        self.assistants.add((relid, &view.name), dataflow, evaluating.into(), claim);
    }

    /// Of the views that can be written, takes those for which the others must not wait, because there is much to be written
    /// or writing was slow. They are aside from now on.
    pub(in crate::worker) fn take_large(&mut self, present: &mut Vec<ViewId>) -> Vec<ViewId> {
        if !self.assistants.are_available() {
            return Vec::new();
        }
        let is_large = |relid: &ViewId| match self.views.get(relid).and_then(View::served) {
            Some(attachment) => {
                let is_known = attachment.stored.is_some();
                let owner = attachment.compiled.owner.to_u32();
                let is_slow =
                    || attachment.is_slow || self.suspects.mistrusts(owner) && has_code(*relid);
                attachment.is_due() && is_slow()
                    || attachment.output.is_large()
                    || !is_known && attachment.is_due() && blocks_of(*relid) > LARGE_HEAP
            }
            _ => false,
        };
        let (large, others): (Vec<ViewId>, Vec<ViewId>) =
            present.iter().partition(|relid| is_large(relid));
        *present = others;
        for relid in &large {
            self.set_aside(*relid, Why::Writing);
        }
        large
    }

    /// Has an assistant look at the heap of a view whose dataflow has begun to compute, if that takes more than a moment, and
    /// there is memory for what it finds beside what the dataflow needs.
    pub(in crate::worker) fn compare_early(&mut self, relid: ViewId) {
        let is_memory_short = self.engine.get().is_some_and(Engine::is_memory_short);
        let spills = self.views.get(&relid).is_some_and(|view| view.spills);
        if self.assistants.are_available()
            && !is_memory_short
            && !spills
            && !self.assistants.may_still_write(relid)
            && blocks_of(relid) > LARGE_HEAP
        {
            self.begin_comparing(relid);
        }
    }

    fn begin_comparing(&mut self, relid: ViewId) {
        let Some(view) = self.views.get_mut(&relid) else { return };
        let (name, claim) = (view.name.clone(), Claim { kind: Kind::Write, owner: view.owner() });
        let Some(attachment) = view.attachment() else { return };
        attachment.is_comparing = true;
        let comparing = Comparing::new(attachment.target(relid));
        let dataflow = attachment.dataflow;
        self.assistants.add((relid, &name), dataflow, comparing.into(), claim);
        self.tend_assistants();
    }

    /// Has an assistant write a view, which is at a position of which it is on record that it is not that of the others.
    pub(in crate::worker) fn begin_writing(&mut self, relid: ViewId, position: u64) {
        let attachment = self.views.get_mut(&relid).and_then(View::attachment);
        let is_first = attachment.is_some_and(|a| a.stored.is_none() && a.compared.is_some());
        let begun = xact::try_run(|| {
            let is_free = try_lock(relid, Lock::RowExclusive);
            let file = || with_relation(relid, Lock::RowExclusive, |view| view.file());
            let xid = || if is_first { xact::full_xid(xact::take_xid()) } else { 0 };
            is_free.then(|| (file(), xid()))
        });
        let Some((file, xid)) = begun.ok().flatten() else {
            return self.set_aside(relid, Why::Locked);
        };
        let limit = self.memory_limit();
        let memory = match limit {
            0 => usize::MAX,
            _ => limit.saturating_sub(self.allocated()),
        };
        let kind = match has_code(relid) {
            true => Kind::WriteWithCode,
            false => Kind::Write,
        };
        let Some(view) = self.views.get_mut(&relid) else { return };
        let (name, claim) = (view.name.clone(), Claim { kind, owner: view.owner() });
        let Some(attachment) = view.attachment() else { return };
        let (stored, first) = match (attachment.stored.take(), attachment.compared.take()) {
            (Some(stored), _) => (stored, None),
            (None, Some(found)) if file == Some(found.stored.file) => {
                let Compared { stored, is_populated } = found;
                let goes_on = attachment.goes_on.is_some();
                (stored, Some(First { is_populated, xid, goes_on }))
            }
            // Nobody has looked yet, or it is another heap now.
            (None, _) => return self.begin_comparing(relid),
        };
        attachment.lent = Some(Lent {
            file: first.is_none().then_some(stored.file),
            rows: stored.len(),
            bytes: stored.bytes(),
        });
        let present = Moment::now(position);
        let entries = match (&attachment.changelog, &first) {
            (None, _) => Entries::None,
            (Some(_), Some(_)) => Entries::All(present),
            (Some(changelog), None) => {
                Entries::Rows(changelog.entries(&self.capture.history, present))
            }
        };
        let writing = Writing {
            target: attachment.target(relid),
            key: attachment.compiled.query.plan.pairing_key().map(<[usize]>::to_vec),
            stored,
            first,
            output: std::mem::take(&mut attachment.output),
            updates: attachment.changelog.as_mut().map(Changelog::take).unwrap_or_default(),
            entries,
            changes: None,
            transactions: std::mem::take(&mut attachment.transactions),
            memory,
        };
        let dataflow = attachment.dataflow;
        self.assistants.add((relid, &name), dataflow, writing.into(), claim);
        self.tend_assistants();
    }
}

/// Whether writing a view, or a table beside it, may call functions of users.
fn has_code(relid: ViewId) -> bool {
    let look = |relation: RelationId| {
        let has_code = |relation: RelationRef<'_>| {
            relation.has_code_in_indexes() || row_triggers::are_on(&relation)
        };
        with_relation(relation, Lock::AccessShare, has_code)
    };
    let look_at_all = || {
        let beside = [changes_table::of(relid), mirror::of(relid)].into_iter().flatten();
        beside.chain([relid.into()]).filter_map(look).any(|has_code| has_code)
    };
    xact::try_run(look_at_all).unwrap_or(false)
}

/// Blocks of a view's heap; 0 if they cannot be told.
fn blocks_of(relid: ViewId) -> u32 {
    let blocks = || with_relation(relid, Lock::AccessShare, |view| view.blocks());
    xact::try_run(blocks).ok().flatten().unwrap_or(0)
}

/// Starts an assistant for a job; `None` if there is no place for it.
fn start(head: &Head) -> Option<Started> {
    let extra = CString::new(head.files.name()).ok()?;
    let (name, function) = (c"pg_eddy assistant", c"pg_eddy_assistant");
    process::start_with(name, function, process::database(), &extra)
}
