//! The jobs of assistants, and how far each is: what threads and the worker know of them.

use super::evaluating::Evaluating;
use super::files::Files;
use super::order::{Order, Work};
use super::writing::{Comparing, Reason, Unwritten, Writing, Written};
use crate::pg::ids::ViewId;
use crate::pg::process::{self, Started};
use crate::pg::{guc, markers};
use crate::worker::stored::Compared;
use crate::worker::task::Task;
use crate::worker::write::Outcome;
use engine::DataflowId;
use rules::codec::Encoder;
use rules::places::{Claim, Kind, Places};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the worker does itself what it could start no assistant for.
const WITHOUT: Duration = Duration::from_secs(1);

/// What threads know of a job.
pub(super) struct Head {
    pub(super) worker: i32,
    pub(super) relid: ViewId,
    pub(super) view: String,
    pub(super) settings: Vec<u8>,
    pub(super) files: Files,
}

impl Head {
    /// Begins an order. What came of one before it must not be taken for what comes of this one.
    pub(super) fn begin(&self, work: Work) -> io::Result<Encoder> {
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
pub(super) fn without_result(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "it ended without a result".into(),
        _ => format!("its result cannot be read: {error}"),
    }
}

/// What a job works on.
pub(super) enum Payload {
    Evaluating(Evaluating),
    Comparing(Comparing),
    Writing(Box<Writing>),
}

impl From<Evaluating> for Payload {
    fn from(evaluating: Evaluating) -> Payload {
        Payload::Evaluating(evaluating)
    }
}

impl From<Comparing> for Payload {
    fn from(comparing: Comparing) -> Payload {
        Payload::Comparing(comparing)
    }
}

impl From<Writing> for Payload {
    fn from(writing: Writing) -> Payload {
        Payload::Writing(Box::new(writing))
    }
}

impl Payload {
    pub(super) fn prepare(self, head: &Head) -> Turn {
        match self {
            Payload::Evaluating(evaluating) => evaluating.prepare(head),
            Payload::Comparing(comparing) => comparing.prepare(head),
            Payload::Writing(writing) => writing.prepare(head),
        }
    }

    pub(super) fn digest(self, head: &Head) -> Turn {
        match self {
            Payload::Evaluating(evaluating) => evaluating.digest(head),
            Payload::Comparing(comparing) => comparing.digest(head),
            Payload::Writing(writing) => writing.digest(head),
        }
    }
}

/// What a thread has come to.
pub(super) enum Turn {
    /// An order is written.
    Ready(Payload),
    /// There is more to do, when others have had their turn.
    Again(Payload),
    /// There is no result, and why.
    Failed(Payload, String),
    /// The order could not be written: the disk may be full.
    Unordered(Payload, io::Error),
    Over(Box<JobEnd>),
}

/// The end of a job.
pub(super) enum JobEnd {
    Answered { is_quick: bool },
    Compared(Outcome<Compared>),
    Written(Written),
    Unwritten(Unwritten, Reason),
}

/// How far a job is.
pub(super) enum Stage {
    /// Its order is to be written, not before that time.
    Waiting(Payload, Instant),
    /// A thread is at it.
    Busy(Task<Turn>),
    /// It waits for an assistant.
    Ready(Payload),
    /// An assistant is at it.
    Running(Payload, Started),
}

pub(super) struct Job {
    pub(super) relid: ViewId,
    /// Nobody wants it any more when this is gone.
    pub(super) dataflow: DataflowId,
    pub(super) head: Arc<Head>,
    pub(super) claim: Claim,
    /// Assistants that have ended without a result, one after the other.
    pub(super) failures: u32,
}

impl Job {
    /// It is over: its view is not marked as at work any more.
    pub(super) fn finish(&self) {
        markers::end(self.relid, markers::Work::Assist);
    }
}

/// An assistant that nobody wants any more, and that may not have ended.
pub(super) struct Leaving {
    pub(super) relid: ViewId,
    pub(super) files: Files,
    pub(super) started: Started,
}

/// The assistants of a worker.
#[derive(Default)]
pub struct Assistants {
    /// In the order in which they get their turn.
    pub(super) jobs: Vec<(Job, Stage)>,
    pub(super) places: Places,
    pub(super) leaving: Vec<Leaving>,
    pub(super) next: u64,
    /// Until then the worker does all itself.
    pub(super) lacking_until: Option<Instant>,
    /// Why, as the log says.
    pub(super) told: String,
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

    pub(super) fn add(
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

    pub(super) fn cancel(&mut self, job: &Job, stage: Stage) {
        job.finish();
        if let Stage::Running(_, started) = stage {
            started.terminate();
            let files = job.head.files.clone();
            self.leaving.push(Leaving { relid: job.relid, files, started });
        }
    }

    pub(super) fn forget_left(&mut self) {
        self.leaving.retain(|leaving| {
            let has_ended = leaving.started.has_ended();
            if has_ended {
                leaving.files.remove();
            }
            !has_ended
        });
    }

    /// For a while the worker does all itself. The log says so once.
    pub(super) fn note_lack(&mut self, reason: &str) {
        self.lacking_until = Some(Instant::now() + WITHOUT);
        if self.told != reason {
            pgrx::log!("pg_eddy: no assistant, its work keeps all views waiting: {reason}");
            reason.clone_into(&mut self.told);
        }
    }
}
