//! The worker's side of one incremental view.

use super::changelog::Changelog;
use super::heap::{Lent, Vouched};
use super::output::Output;
use super::problem::Problem;
use super::reading::Reading;
use super::sources::Sources;
use super::stored::{Compared, StoredRows};
use crate::compile::CompiledView;
use crate::pg::attaching::Step;
use crate::pg::dependencies::Dependencies;
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::index_cells::MAX_READS;
use crate::pg::shmem::{self, LastError};
use crate::pg::sqlstate::SqlState;
use crate::pg::xact;
use crate::shared::{self, Point, ViewState};
use engine::{DataflowId, Time};
use plan::error::DataError;
use plan::Diff;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// Readers wait for so long to learn whether an error is over, and get it if it takes longer.
const SOON: Duration = Duration::from_secs(2);

/// Where a view stands.
#[derive(Debug)]
pub enum Phase {
    /// To be attached, not before that time (its tables may have been locked).
    Waiting { not_before: Instant, attempts: u32 },
    /// Its tables are read into its dataflow.
    Reading(Box<Reading>),
    /// Its dataflow runs.
    Attached(Box<Attachment>),
    /// It cannot be maintained until something changes. Something may have, if it is to be tried again: until then it has its
    /// problem, so that it does not come and go with DDL that has nothing to do with it.
    Failed { problem: Problem, heals: Heals, again: Option<Instant> },
}

impl Phase {
    /// To be attached at once.
    pub fn waiting() -> Phase {
        Phase::Waiting { not_before: Instant::now(), attempts: 0 }
    }

    /// The heap of a view that goes on with what was saved, and is not where that is yet.
    pub fn heap_ahead(&self) -> Option<Vouched> {
        match self {
            Phase::Reading(reading) => reading.goes_on,
            Phase::Attached(attachment) => attachment.goes_on.filter(|_| attachment.is_behind_heap),
            Phase::Waiting { .. } | Phase::Failed { .. } => None,
        }
    }
}

/// What may heal a failed view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heals {
    /// Any DDL: what it depends on is not known, or rights and tables may come and go.
    OnDdl,
    /// Only a new file of the view, as REFRESH makes it, another query, or a restart: trying again is costly.
    OnRefresh { file: u32 },
    /// The same, or that the view has fewer indexes than so many: one of them may have refused its rows.
    OnFewerIndexes { file: u32, indexes: usize },
    /// That a view that it reads is maintained again; any DDL, too.
    WithView { view: ViewId },
}

/// Whether a view goes with the others.
#[derive(Clone, Debug)]
pub enum Standing {
    /// It is written in the same transactions as the others, at the same points of commit order.
    Together,
    /// The others are written without it; what it stores is of an earlier point.
    Aside {
        why: Why,
        /// It is tried again then.
        not_before: Instant,
    },
}

/// Why a view is set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// What it stores has not been compared yet.
    Attaching,
    /// Its dataflow is at work.
    Computing,
    /// An assistant writes it.
    Writing,
    /// Another session has a lock on it.
    Locked,
    /// A transaction that changed its tables has committed but is not visible, because it waits for a standby.
    Invisible { xid: u32 },
    /// Writing it failed in a way that may pass.
    Failing(Problem),
}

impl Why {
    /// The reason in the words of `eddy.views`.
    pub fn describe(&self) -> String {
        match self {
            Why::Attaching => "it is being attached".into(),
            Why::Computing => "its changes are being computed".into(),
            Why::Writing => "its rows are being written".into(),
            Why::Locked => "another session holds a lock on it".into(),
            Why::Invisible { xid } => {
                format!("transaction {xid}, which changed its tables, has not finished its commit")
            }
            Why::Failing(problem) => format!("it cannot be written: {}", problem.message),
        }
    }
}

/// A view whose lock is taken, or that cannot be written, is tried again after this long; the latter later and later.
const RETRY: Duration = Duration::from_millis(10);
const MAX_RETRY: Duration = Duration::from_secs(1);

/// A running dataflow and what is known of its output.
#[derive(Debug)]
pub struct Attachment {
    /// Its name in the engine.
    pub dataflow: DataflowId,
    /// What the plan was made from, to see whether it would be made the same again.
    pub compiled: CompiledView,
    /// Of each source, the base table with all its partitions and children; none of one that is a view.
    pub members: Vec<BTreeSet<RelationId>>,
    /// Output not yet applied.
    pub output: Output,
    /// The same with its times, of a view whose changes are kept.
    pub changelog: Option<Changelog>,
    /// The time of its start: output up to it is of no transaction.
    pub start: Time,
    /// How many source transactions the output not yet applied is of.
    pub transactions: u64,
    /// Errors of the query on the present data, with multiplicities.
    pub errs: BTreeMap<DataError, Diff>,
    /// The views beneath it whose queries raise errors, and what is said of that.
    pub troubled: BTreeMap<ViewId, Problem>,
    /// The rows in the heap, once compared.
    pub stored: Option<StoredRows>,
    /// What an assistant found in the heap, before there was anything to compare it with, and whether one is at it.
    pub compared: Option<Compared>,
    pub is_comparing: bool,
    /// What is left of `stored` while they are with who writes many rows.
    pub lent: Option<Lent>,
    /// Whether it goes with the others.
    pub standing: Standing,
    /// How often writing it failed, one time after the other.
    pub failures: u32,
    /// Whether writing it took so long the last time that an assistant is to do it.
    pub is_slow: bool,
    /// Decoding must have reached this position before its rows are those of one point of commit order.
    pub whole_from: u64,
    /// Its dataflow was fed everything before this time, and has put out everything before that one.
    pub fed: Time,
    pub reached: Time,
    /// When it was fed last, and how long the batch before took.
    pub began: Instant,
    pub last_batch: Duration,
    /// When it was attached, for the log.
    pub since: Instant,
    /// Whether its dataflow can be saved.
    pub is_kept: bool,
    /// Of one whose dataflow goes on with what was saved, until the rows in the heap have been looked at: what it puts out is what
    /// changes of the heap, and not all of it.
    pub goes_on: Option<Vouched>,
    /// Whether it is at a point that the heap has come to already: what it puts out has been written.
    pub is_behind_heap: bool,
}

impl Attachment {
    /// Whether the catalogs still say what the dataflow was made from.
    pub fn is_made_from(&self, sources: &Sources) -> bool {
        sources.compiled == self.compiled && sources.members == self.members
    }

    /// That of a view beneath it, or the least of its own errors.
    pub fn problem(&self) -> Option<Problem> {
        let own = || self.errs.keys().next().cloned().map(Problem::of_query);
        self.troubled.values().next().cloned().or_else(own)
    }

    /// Whether the rows in the heap are known to be right.
    pub fn is_stored(&self) -> bool {
        self.file().is_some()
    }

    /// The file of the rows that are known to be right.
    pub fn file(&self) -> Option<u32> {
        let stored = self.stored.as_ref().map(|stored| stored.file);
        stored.or_else(|| self.lent?.file).or_else(|| Some(self.vouched()?.file))
    }

    /// What is known of a heap that is right although nobody has looked.
    pub fn vouched(&self) -> Option<Vouched> {
        self.goes_on.filter(|heap| heap.is_current)
    }

    /// How many rows are stored, once they have been compared, and bytes that their places take.
    pub fn rows_and_bytes(&self) -> (Option<usize>, usize) {
        match (&self.stored, &self.lent) {
            (Some(stored), _) => (Some(stored.len()), stored.bytes()),
            (None, Some(lent)) => (lent.file.map(|_| lent.rows), lent.bytes),
            (None, None) => {
                let rows = self.vouched().map(|heap| usize::try_from(heap.rows).unwrap_or(0));
                (rows, self.compared.as_ref().map_or(0, |compared| compared.stored.bytes()))
            }
        }
    }

    /// Whether its dataflow has not put out all that it was fed.
    pub fn is_at_work(&self) -> bool {
        self.reached < self.fed
    }

    /// Whether it goes with the others.
    pub fn is_together(&self) -> bool {
        matches!(self.standing, Standing::Together)
    }

    /// Why it does not.
    pub fn why_aside(&self) -> Option<&Why> {
        match &self.standing {
            Standing::Together => None,
            Standing::Aside { why, .. } => Some(why),
        }
    }

    /// The dataflow was fed everything before a time.
    pub fn begin_batch(&mut self, upper: Time) {
        self.fed = upper;
        self.began = Instant::now();
    }

    /// The worker did something else for so long, after it was fed at `begun`: what it has put out meanwhile is not known.
    pub fn leave_out(&mut self, begun: Instant, time: Duration) {
        if self.is_at_work() && self.began >= begun {
            self.began += time;
        }
    }

    /// The dataflow has put out everything before a time.
    pub fn reach(&mut self, time: Time) {
        let was_at_work = self.is_at_work();
        self.reached = time;
        if was_at_work && !self.is_at_work() {
            self.last_batch = self.began.elapsed();
        }
    }

    /// The others go on without it. It is tried again after a while, longer each time that writing it fails.
    pub fn set_aside(&mut self, why: Why) {
        let delay = RETRY.saturating_mul(1 << self.failures.min(10)).min(MAX_RETRY);
        self.standing = Standing::Aside { why, not_before: Instant::now() + delay };
    }

    /// Whether it is time to try to write it.
    pub fn may_be_tried(&self, now: Instant) -> bool {
        match &self.standing {
            Standing::Together => true,
            Standing::Aside { why: Why::Attaching | Why::Computing | Why::Writing, .. } => true,
            Standing::Aside { not_before, .. } => *not_before <= now,
        }
    }
}

/// What a view was before it was replaced, while that serves ([`super::former`]).
#[derive(Debug)]
pub struct Former {
    pub attachment: Box<Attachment>,
    /// What it depends on beside the view itself.
    pub depends: Dependencies,
}

/// What the worker knows of one view.
pub struct View {
    pub relid: ViewId,
    /// `schema.name`, for messages.
    pub name: String,
    /// Where it stands.
    pub phase: Phase,
    /// What it was before it was replaced, while that serves.
    pub former: Option<Former>,
    /// Whether it has outgrown memory before, so that its state goes to disk.
    pub spills: bool,
    /// Whether what PostgreSQL evaluates for it took so long the last time that an assistant does it.
    pub is_slow: bool,
    /// What a change of may concern it.
    pub depends: Dependencies,
    /// Figures of the engine as published last: it counts them after it has answered.
    pub published: Cell<engine::DataflowStats>,
    /// Its cell in shared memory.
    pub cell: Option<&'static shmem::View>,
    /// Source transactions that changed it.
    pub transactions: u64,
    /// Rows inserted, updated and deleted.
    pub updates: u64,
    /// Whether it has changed and who listens has not been told.
    pub is_untold: bool,
    /// When it was last tried to attach it.
    pub attempted: Instant,
    /// The problem logged last, so that each is logged once.
    pub last_problem: Option<Problem>,
    /// The view that it waits for, which it reads and could not read when it was last tried to attach it.
    pub awaits: Option<ViewId>,
    /// Its query when it was last attached, as the planner reads it.
    pub query: String,
}

impl View {
    /// A view that has not been looked at.
    pub fn new(relid: ViewId) -> View {
        View {
            relid,
            name: relid.to_string(),
            phase: Phase::waiting(),
            former: None,
            spills: false,
            is_slow: false,
            depends: Dependencies::on(relid.into()),
            published: Cell::default(),
            cell: shared::view_or_new(relid),
            transactions: 0,
            updates: 0,
            is_untold: false,
            attempted: Instant::now(),
            last_problem: None,
            awaits: None,
            query: String::new(),
        }
    }

    /// When there is something to do about it even if nothing happens.
    pub fn due_at(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Waiting { not_before, .. } => Some(*not_before),
            Phase::Reading(reading) => Some(reading.not_before),
            Phase::Attached(attachment) => match &attachment.standing {
                // The end of its work is told.
                Standing::Aside { not_before, .. }
                    if !attachment.is_at_work()
                        && attachment.lent.is_none()
                        && !attachment.is_comparing =>
                {
                    Some(*not_before)
                }
                _ => None,
            },
            Phase::Failed { again, .. } => *again,
        }
    }

    /// What fails until some DDL is tried again, not before that time.
    pub fn try_again(&mut self, not_before: Instant) {
        if let Phase::Failed { heals: Heals::OnDdl | Heals::WithView { .. }, again, .. } =
            &mut self.phase
        {
            *again = Some(again.map_or(not_before, |at| at.min(not_before)));
        }
        if not_before <= Instant::now() {
            self.await_nothing();
        }
    }

    /// It may not read the view any more that it waits for: it is tried again at once, as that one would not tell it to go on.
    pub fn await_nothing(&mut self) {
        if self.awaits.take().is_some() {
            if let Phase::Waiting { not_before, .. } = &mut self.phase {
                *not_before = Instant::now();
            }
        }
    }

    /// The view that it waits for, or with which it is in error.
    pub fn awaited(&self) -> Option<ViewId> {
        match &self.phase {
            Phase::Failed { heals: Heals::WithView { view }, .. } => Some(*view),
            _ => self.awaits,
        }
    }

    /// If it waits for a view, or is in error with one that can be read, it is tried again.
    pub fn go_on_above(&mut self, beneath: ViewId, is_readable: bool) {
        let now = Instant::now();
        let is_awaited = self.awaited() == Some(beneath);
        match &mut self.phase {
            Phase::Waiting { not_before, .. } if is_awaited => *not_before = now,
            Phase::Failed { heals: Heals::WithView { .. }, .. } if is_awaited && is_readable => {
                self.try_again(now);
            }
            _ => {}
        }
    }

    /// Whether its error may be over, which is about to be known.
    pub fn is_in_doubt(&self) -> bool {
        let soon = Instant::now() + SOON;
        matches!(self.phase, Phase::Failed { again: Some(at), .. } if at <= soon)
    }

    /// What it was compiled to, if it is.
    pub fn compiled(&self) -> Option<&CompiledView> {
        match &self.phase {
            Phase::Reading(reading) => Some(&reading.sources.compiled),
            Phase::Attached(attachment) => Some(&attachment.compiled),
            Phase::Waiting { .. } | Phase::Failed { .. } => {
                self.former.as_ref().map(|former| &former.attachment.compiled)
            }
        }
    }

    /// Its owner when it was compiled, 0 if it is not.
    pub fn owner(&self) -> u32 {
        self.compiled().map_or(0, |compiled| compiled.owner.to_u32())
    }

    /// The dataflow whose rows it holds, or is going to hold.
    pub fn served(&self) -> Option<&Attachment> {
        match (&self.former, &self.phase) {
            (Some(former), _) => Some(&former.attachment),
            (None, Phase::Attached(attachment)) => Some(attachment),
            (None, _) => None,
        }
    }

    /// The same.
    pub fn attachment(&mut self) -> Option<&mut Attachment> {
        match (&mut self.former, &mut self.phase) {
            (Some(former), _) => Some(&mut former.attachment),
            (None, Phase::Attached(attachment)) => Some(attachment),
            (None, _) => None,
        }
    }

    /// That one, and the one that is to come in its place.
    pub fn attachments(&self) -> impl Iterator<Item = &Attachment> {
        let former = self.former.as_ref().map(|former| &*former.attachment);
        let present = match &self.phase {
            Phase::Attached(attachment) => Some(&**attachment),
            _ => None,
        };
        former.into_iter().chain(present)
    }

    /// The one of a name.
    pub fn attached(&self, dataflow: DataflowId) -> Option<&Attachment> {
        self.attachments().find(|attachment| attachment.dataflow == dataflow)
    }

    /// The same.
    pub fn attached_mut(&mut self, dataflow: DataflowId) -> Option<&mut Attachment> {
        let former = self.former.as_mut().map(|former| &mut *former.attachment);
        let present = match &mut self.phase {
            Phase::Attached(attachment) => Some(&mut **attachment),
            _ => None,
        };
        former.into_iter().chain(present).find(|attachment| attachment.dataflow == dataflow)
    }

    /// The error reads shall raise, if any: a lasting problem, or the least error of the query.
    pub fn problem(&self) -> Option<Problem> {
        match &self.phase {
            Phase::Failed { problem, .. } => Some(problem.clone()),
            _ => self.served().and_then(Attachment::problem),
        }
    }

    /// What those that read it are told of the errors of its query.
    pub fn own_error(&self) -> Option<Problem> {
        let error = self.served()?.errs.keys().next()?;
        Some(Problem::of_query(error.clone()).beneath(&self.name))
    }

    /// Whether this worker has written its rows.
    pub fn is_stored(&self) -> bool {
        self.served().is_some_and(Attachment::is_stored)
    }

    fn why_aside(&self) -> Option<&Why> {
        self.served().and_then(Attachment::why_aside)
    }

    /// Its state as others see it.
    pub fn state(&self) -> ViewState {
        match (&self.phase, self.served()) {
            (Phase::Failed { .. }, _) => ViewState::Error,
            (_, None) => ViewState::Attaching,
            (_, Some(attachment)) if !attachment.is_stored() => ViewState::Attaching,
            // Its errors are those of an earlier point, like its rows.
            (_, Some(attachment)) if !attachment.is_together() => ViewState::Behind,
            (_, Some(attachment)) if attachment.problem().is_none() => ViewState::Live,
            (_, Some(_)) => ViewState::Error,
        }
    }

    /// What is being done to attach it.
    pub fn step(&self) -> Step {
        match &self.phase {
            Phase::Waiting { .. } => Step::Waiting,
            Phase::Reading(_) => Step::Reading,
            Phase::Attached(attachment) if attachment.is_stored() => Step::Ended,
            Phase::Attached(attachment) => match attachment.why_aside() {
                Some(Why::Attaching | Why::Computing) if attachment.lent.is_none() => {
                    Step::Computing
                }
                _ => Step::Writing,
            },
            Phase::Failed { .. } => Step::Ended,
        }
    }

    /// How many columns the rows have that it holds, while these are of what it was before it was replaced; otherwise 0.
    pub fn former_columns(&self) -> u32 {
        let columns = |former: &Former| former.attachment.compiled.query.plan.columns.len();
        self.former.as_ref().map(columns).map_or(0, |count| u32::try_from(count).unwrap_or(0))
    }

    /// What is in its way now: its error, or why it cannot be written.
    fn trouble(&self) -> Option<Problem> {
        match self.why_aside() {
            Some(Why::Failing(problem)) => Some(problem.clone()),
            _ => self.problem(),
        }
    }

    /// Publishes its state; figures of the engine and the cells of the indexes that it reads are given by the caller.
    pub fn publish(&self, stats: engine::DataflowStats, reads: [u32; MAX_READS]) {
        self.published.set(stats);
        let Some(cell) = self.cell else { return };
        let problem = self.problem();
        let trouble = self.trouble();
        let was_well = cell.state() != ViewState::Error;
        let (rows, bytes) = self.served().map_or((None, 0), Attachment::rows_and_bytes);
        let state_bytes = stats.state_bytes + bytes;
        cell.update(|figures| {
            figures.sqlstate = SqlState::SUCCESSFUL_COMPLETION;
            figures.message.set("");
            if let Some(problem) = &problem {
                figures.sqlstate = problem.sqlstate;
                figures.message.set(&problem.message);
                figures.detail.set(problem.detail.as_deref().unwrap_or_default());
                figures.hint.set(problem.hint.as_deref().unwrap_or_default());
                figures.cause = problem.cause as u32;
            }
            if let Some(why) = self.why_aside() {
                figures.message.set(&why.describe());
            }
            if let Some(rows) = rows {
                figures.rows = rows as i64;
            }
            if let Some(trouble) = &trouble {
                figures.last_error.note(trouble, was_well);
            }
            figures.transactions = self.transactions;
            figures.updates = self.updates;
            figures.iterations = stats.iterations;
            figures.state_bytes = state_bytes as u64;
            figures.spilled_bytes = stats.spilled_bytes as u64;
            figures.reads = reads;
        });
        cell.attaching.set_step(self.step());
        cell.in_doubt.store(self.is_in_doubt().into(), SeqCst);
        cell.former_columns.store(self.former_columns(), SeqCst);
        cell.set_state(self.state());
    }

    /// Publishes at which point its rows are; those of the others were at `before` until now.
    pub fn publish_point(&self, before: Point) {
        let Some(cell) = self.cell else { return };
        match self.served() {
            Some(attachment) if attachment.is_stored() => {
                if attachment.is_together() {
                    cell.set_point(Point::WithOthers);
                } else if cell.point() == Point::WithOthers {
                    cell.set_point(before);
                }
            }
            _ => cell.set_point(Point::Unknown),
        }
    }
}

impl LastError {
    /// Takes down an error; one that goes on came up when it did.
    fn note(&mut self, problem: &Problem, is_new: bool) {
        let is_same = self.sqlstate == problem.sqlstate && self.message.get() == problem.message;
        if is_new || !is_same {
            self.at = xact::now();
            self.sqlstate = problem.sqlstate;
            self.message.set(&problem.message);
            self.hint.set(problem.hint.as_deref().unwrap_or_default());
        }
    }
}
