//! Assistants: background workers, each of which does one job of the database's worker that would keep all views waiting,
//! and ends.
//!
//! A job is a view's: expressions to be evaluated, or many rows to be written. The view is aside meanwhile. A thread of the
//! worker writes the order into a file; the main thread starts an assistant, and is woken by its end; a thread reads what came
//! of it. Threads do whatever takes long and needs nothing of PostgreSQL.
//!
//! The rows that an assistant commits are of another point of commit order than those of the other views. So before it starts
//! it is on record that its view is not at their point (`worker::states`), and what it wrote is noted before the view is again
//! (`worker::apply`).
//!
//! If an assistant cannot be started, the worker does the job. One that ends without a result is that view's trouble.

mod evaluating;
pub(super) mod files;
mod order;
pub mod work;
mod writing;

use super::apply::{note_stored, warn_of_missing, Stored};
use super::main_loop::Worker;
use super::task::{Lost, Task};
use super::view::{Heals, Lent, Phase, View, Why};
use super::write::Outcome;
use crate::errors::Error;
use crate::pg::ids::ViewId;
use crate::pg::process::{self, Started};
use crate::pg::relation::{try_lock, with_relation, Lock};
use crate::pg::{guc, markers, xact};
use engine::{Answer, DataflowId, Evaluation};
use evaluating::Evaluating;
use files::Files;
use order::{Order, Work};
use rules::codec::Encoder;
use rules::places::{Claim, Kind, Places};
use std::ffi::CString;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use writing::{Reason, Unwritten, Writing, Written};

/// How often an assistant may end without a result, one time after the other, until its view is in error.
const MAX_ATTEMPTS: u32 = 3;

/// Time until a job is tried again whose assistant ended without a result.
const RETRY: Duration = Duration::from_millis(100);

/// Why there is no assistant.
const NO_PROCESS: &str = "there is no free background worker, see max_worker_processes";

/// How long the worker does itself what it could start no assistant for.
const WITHOUT: Duration = Duration::from_secs(1);

/// A heap of more blocks takes more than a moment to read.
const LARGE_HEAP: u32 = 256;

/// What threads know of a job.
pub struct Head {
    worker: i32,
    relid: ViewId,
    view: String,
    settings: Vec<u8>,
    files: Files,
}

impl Head {
    /// Begins an order. What came of one before it must not be taken for what comes of this one.
    fn begin(&self, work: Work) -> io::Result<Encoder> {
        self.files.remove();
        let (worker, relid) = (self.worker, self.relid);
        Order { worker, relid, view: self.view.clone(), work }.write(&self.settings, &self.files)
    }
}

/// The files go when neither the job nor a thread that may still write one needs them.
impl Drop for Head {
    fn drop(&mut self) {
        self.files.remove();
    }
}

/// Why there is no result.
fn without_result(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "it ended without a result".into(),
        _ => format!("its result cannot be read: {error}"),
    }
}

/// What a job works on.
enum Payload {
    Evaluating(Evaluating),
    Writing(Box<Writing>),
}

impl From<Evaluating> for Payload {
    fn from(evaluating: Evaluating) -> Payload {
        Payload::Evaluating(evaluating)
    }
}

impl From<Writing> for Payload {
    fn from(writing: Writing) -> Payload {
        Payload::Writing(Box::new(writing))
    }
}

impl Payload {
    fn prepare(self, head: &Head) -> Turn {
        match self {
            Payload::Evaluating(evaluating) => evaluating.prepare(head),
            Payload::Writing(writing) => writing.prepare(head),
        }
    }

    fn digest(self, head: &Head) -> Turn {
        match self {
            Payload::Evaluating(evaluating) => evaluating.digest(head),
            Payload::Writing(writing) => writing.digest(head),
        }
    }
}

/// What a thread has come to.
enum Turn {
    /// An order is written.
    Ready(Payload),
    /// There is more to do, when others have had their turn.
    Again(Payload),
    /// There is no result, and why.
    Failed(Payload, String),
    /// The order could not be written: the disk may be full.
    Unordered(Payload, io::Error),
    Over(Box<End>),
}

/// The end of a job.
enum End {
    Answered { is_quick: bool },
    Written(Written),
    Unwritten(Unwritten, Reason),
}

/// How far a job is.
enum Stage {
    /// Its order is to be written, not before that time.
    Waiting(Payload, Instant),
    /// A thread is at it.
    Busy(Task<Turn>),
    /// It waits for an assistant.
    Ready(Payload),
    /// An assistant is at it.
    Running(Payload, Started),
}

/// One job.
struct Job {
    relid: ViewId,
    /// Nobody wants it any more when this is gone.
    dataflow: DataflowId,
    head: Arc<Head>,
    claim: Claim,
    /// Assistants that have ended without a result, one after the other.
    failures: u32,
}

impl Job {
    /// It is over.
    fn finish(&self) {
        markers::end(self.relid, markers::Work::Assist);
    }
}

/// An assistant that nobody wants any more, and that may not have ended.
struct Leaving {
    relid: ViewId,
    files: Files,
    started: Started,
}

/// The assistants of a worker.
#[derive(Default)]
pub struct Assistants {
    /// In the order in which they get their turn.
    jobs: Vec<(Job, Stage)>,
    places: Places,
    leaving: Vec<Leaving>,
    next: u64,
    /// Until then the worker does all itself.
    lacking_until: Option<Instant>,
    /// Why, as the log says.
    told: String,
}

impl Assistants {
    /// Whether there may be a place for one.
    pub fn are_available(&self) -> bool {
        self.lacking_until.is_none_or(|until| until <= Instant::now())
    }

    /// Whether one evaluates for a view, or is going to.
    pub fn evaluates(&self, relid: ViewId) -> bool {
        self.jobs.iter().any(|(job, _)| job.relid == relid && job.claim.kind == Kind::Evaluate)
    }

    /// Whether one that nobody wants any more may still write a view.
    pub fn may_still_write(&self, relid: ViewId) -> bool {
        self.leaving.iter().any(|leaving| leaving.relid == relid)
    }

    /// When there is something to do about jobs without being woken.
    pub fn due_at(&self) -> Option<Instant> {
        let due = |(_, stage): &(Job, Stage)| match stage {
            Stage::Waiting(_, not_before) => Some(*not_before),
            _ => None,
        };
        self.jobs.iter().filter_map(due).min()
    }

    fn add(
        &mut self,
        (relid, view): (ViewId, &str),
        dataflow: DataflowId,
        payload: Payload,
        claim: Claim,
    ) {
        self.next += 1;
        let worker = process::my_pid();
        let files = Files::new(process::database(), worker, self.next);
        let head = Head { worker, relid, view: view.to_owned(), settings: guc::save(), files };
        markers::begin(relid, markers::Work::Assist);
        let job = Job { relid, dataflow, head: Arc::new(head), claim, failures: 0 };
        self.jobs.push((job, Stage::Waiting(payload, Instant::now())));
    }

    fn cancel(&mut self, job: &Job, stage: Stage) {
        job.finish();
        if let Stage::Running(_, started) = stage {
            started.terminate();
            let files = job.head.files.clone();
            self.leaving.push(Leaving { relid: job.relid, files, started });
        }
    }

    fn forget_left(&mut self) {
        self.leaving.retain(|leaving| {
            let has_ended = leaving.started.has_ended();
            if has_ended {
                leaving.files.remove();
            }
            !has_ended
        });
    }

    /// For a while the worker does all itself. The log says so once.
    fn note_lack(&mut self, reason: &str) {
        self.lacking_until = Some(Instant::now() + WITHOUT);
        if self.told != reason {
            pgrx::log!("pg_eddy: no assistant, its work keeps all views waiting: {reason}");
            reason.clone_into(&mut self.told);
        }
    }
}

impl Worker {
    /// Brings all jobs a step further.
    pub(super) fn tend_assistants(&mut self) {
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
        let file = super::attach::file_of(job.relid).unwrap_or(0);
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
            Payload::Writing(writing) => self.give_back(job.relid, writing.leave()),
        }
    }

    fn note_end(&mut self, relid: ViewId, end: End) {
        let Some(view) = self.views.get_mut(&relid) else { return };
        match end {
            End::Answered { is_quick } => view.is_slow = !is_quick,
            End::Written(Written { stored, is_first, rows, transactions, xid, is_quick }) => {
                let Some(attachment) = view.attachment() else { return };
                attachment.lent = None;
                attachment.is_slow &= !is_quick;
                attachment.stored = Some(stored);
                note_stored(view, &Stored { is_first, rows, transactions, changed: xid });
            }
            End::Unwritten(unwritten, reason) => {
                self.give_back(relid, unwritten);
                self.note_unwritten_by_assistant(relid, reason);
            }
        }
    }

    fn give_back(&mut self, relid: ViewId, unwritten: Unwritten) {
        let attachment = self.views.get_mut(&relid).and_then(View::attachment);
        let Some(attachment) = attachment else { return };
        attachment.lent = None;
        attachment.stored = unwritten.stored;
        attachment.output.put_back(unwritten.delta);
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
                let file = super::attach::file_of(relid).unwrap_or(0);
                let bytes = self.memory_limit().saturating_add(bytes);
                let problem = Error::rows_beyond_memory(bytes).into();
                self.fail(relid, problem, Heals::OnRefresh { file });
            }
        }
    }

    /// Has an assistant evaluate what the worker has not.
    pub(super) fn evaluate_by_assistant(
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
    pub(super) fn take_large(&mut self, present: &mut Vec<ViewId>) -> Vec<ViewId> {
        if !self.assistants.are_available() {
            return Vec::new();
        }
        let is_large = |relid: &ViewId| match self.views.get(relid).map(|view| &view.phase) {
            Some(Phase::Attached(attachment)) => {
                let is_known = attachment.stored.is_some();
                let owner = attachment.compiled.owner.to_u32();
                let is_slow = || {
                    attachment.is_slow
                        || self.suspects.mistrusts(owner) && has_code_in_indexes(*relid)
                };
                attachment.is_due() && is_slow()
                    || attachment.output.is_large()
                    || !is_known && blocks_of(*relid) > LARGE_HEAP
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

    /// Has an assistant write a view, of which it is on record that it is not at the point of the others.
    pub(super) fn begin_writing(&mut self, relid: ViewId) {
        let is_free = xact::try_run(|| try_lock(relid, Lock::RowExclusive));
        if !is_free.unwrap_or(false) {
            return self.set_aside(relid, Why::Locked);
        }
        let limit = self.memory_limit();
        let memory = match limit {
            0 => usize::MAX,
            _ => limit.saturating_sub(engine::memory::allocated()),
        };
        let kind = match has_code_in_indexes(relid) {
            true => Kind::WriteWithCode,
            false => Kind::Write,
        };
        let Some(view) = self.views.get_mut(&relid) else { return };
        let (name, claim) = (view.name.clone(), Claim { kind, owner: view.owner() });
        let Some(attachment) = view.attachment() else { return };
        let stored = attachment.stored.take();
        attachment.lent = Some(Lent {
            file: stored.as_ref().map(|stored| stored.file),
            rows: stored.as_ref().map_or(0, |stored| stored.len()),
            bytes: stored.as_ref().map_or(0, |stored| stored.bytes()),
        });
        let writing = Writing {
            target: attachment.target(relid),
            key: attachment.compiled.query.plan.key.clone(),
            stored,
            output: std::mem::take(&mut attachment.output),
            delta: Default::default(),
            changes: None,
            is_first: false,
            transactions: std::mem::take(&mut attachment.transactions),
            memory,
        };
        let dataflow = attachment.dataflow;
        self.assistants.add((relid, &name), dataflow, writing.into(), claim);
        self.tend_assistants();
    }
}

/// Whether writing a view may call functions of users.
fn has_code_in_indexes(relid: ViewId) -> bool {
    let look = || with_relation(relid, Lock::AccessShare, |view| view.has_code_in_indexes());
    xact::try_run(look).ok().flatten().unwrap_or(false)
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
