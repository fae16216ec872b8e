//! The launcher and the worker (`worker/launcher`, `main_loop`, `capture`, `attach`, `compute`); what it writes is in `apply`.

use super::assistant::Lent;
use super::state::*;
use super::{Action, Protocol};

/// What a worker remembers; it goes with the process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Worker {
    pub pid: u8,
    pub at: At,
    /// Everything before is decoded (`Decoder::position`).
    pub position: Lsn,
    /// Transactions whose changes the slot does not have, as it is younger.
    pub missed: Writers,
    /// Decoded transactions that may not be visible, and the views they change (`Capture::recent`).
    pub recent: [Option<Views>; WRITERS],
    pub views: [Phase; VIEWS],
    /// A step that is computed and not yet written.
    pub finished: Option<Finished>,
}

/// See `worker::finished`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Finished {
    position: Lsn,
    pub(super) present: Views,
}

/// What a worker does next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum At {
    /// On its way to its database.
    Starting,
    /// Its slot waits for the end of transactions.
    Slot { waits_for: Writers },
    /// It has its position and waits for those that have committed to be seen.
    Preparing,
    /// At the top of its loop.
    Loop,
    /// It has taken snapshot S for a view.
    Attaching { view: usize, already_read: Writers },
    /// Without `set_computing_aside`: it waits for a dataflow.
    Awaiting,
    /// Without `publish_after_commit`: it has published what it applies next.
    Promised { slow: Views },
    /// Without `one_transaction` or `states_with_views`: it has committed one of two transactions.
    HalfApplied { rest: Heaps, written: Views },
    /// It has committed.
    Applied { written: Views, number: Number },
    /// It has noted what changed, and the states of views, or, without `publish_views_first`, `applied`.
    Noted,
    /// It has published the one, and the other is left.
    HalfPublished,
    /// It has fed the dataflows, then written and published the step before.
    Fed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    Waiting,
    Attached(Attachment),
}

/// See `worker::view::Attachment`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attachment {
    /// What snapshot S saw.
    pub already_read: Writers,
    pub whole_from: Lsn,
    /// Captured, not yet given to the dataflow (`Capture::steps`).
    pub steps: Writers,
    /// What the dataflow is at work on.
    pub fed: Rows,
    /// What the view that it reads has put out and it has not taken.
    pub handed: Rows,
    /// Output not yet applied.
    pub delta: Rows,
    /// The file of which the rows are known, once compared.
    pub stored: Option<u8>,
    pub is_at_work: bool,
    pub is_together: bool,
    pub lent: Lent,
}

impl Phase {
    pub(super) fn attachment(&mut self) -> Option<&mut Attachment> {
        match self {
            Phase::Waiting => None,
            Phase::Attached(attachment) => Some(attachment),
        }
    }

    /// The transaction of an assistant that is yet to be noted.
    fn number(&mut self) -> Option<&mut Number> {
        match self {
            Phase::Attached(Attachment { lent: Lent::Written(number), .. }) => Some(number),
            _ => None,
        }
    }

    /// `View::state`.
    pub(super) fn state(&self) -> ViewState {
        match self {
            Phase::Attached(attachment) if attachment.stored.is_some() => {
                match attachment.is_together {
                    true => ViewState::Live,
                    false => ViewState::Behind,
                }
            }
            _ => ViewState::Attaching,
        }
    }
}

impl Worker {
    /// One that follows the WAL of a server in which nothing has been committed yet.
    pub fn running() -> Worker {
        let attachment = Attachment {
            already_read: 0,
            whole_from: 0,
            steps: 0,
            fed: Rows::default(),
            handed: Rows::default(),
            delta: Rows::default(),
            stored: Some(0),
            is_at_work: false,
            is_together: true,
            lent: Lent::Nothing,
        };
        Worker { at: At::Loop, views: [Phase::Attached(attachment); VIEWS], ..Worker::new(0) }
    }

    fn new(pid: u8) -> Worker {
        Worker {
            pid,
            at: At::Starting,
            position: 0,
            missed: 0,
            recent: [None; WRITERS],
            views: [Phase::Waiting; VIEWS],
            finished: None,
        }
    }

    /// The point that is published next.
    pub(super) fn point(&self) -> Lsn {
        self.finished.map_or(self.position, |finished| finished.position)
    }

    /// Numbers of transactions that it has yet to note.
    pub fn numbers(&mut self) -> impl Iterator<Item = &mut Number> {
        let own = match &mut self.at {
            At::Applied { number, .. } => Some(number),
            At::HalfApplied { rest, .. } => Some(&mut rest.last),
            _ => None,
        };
        let of_assistant = self.views.iter_mut().filter_map(Phase::number);
        own.into_iter().chain(of_assistant)
    }

    fn attachments(&self) -> impl Iterator<Item = (usize, &Attachment)> {
        self.views.iter().enumerate().filter_map(|(view, phase)| match phase {
            Phase::Attached(attachment) => Some((view, attachment)),
            Phase::Waiting => None,
        })
    }

    pub(super) fn views_that(&self, are: impl Fn(&Attachment) -> bool) -> Views {
        let found = self.attachments().filter(|(_, attachment)| are(attachment));
        found.fold(0, |set, (view, _)| set | 1 << view)
    }

    /// Views whose dataflows have not put out all that they were fed.
    pub fn at_work(&self) -> Views {
        self.views_that(|attachment| attachment.is_at_work)
    }

    /// Views that a transaction has changed whose commit is not visible.
    pub fn invisible(&self, running: Writers) -> Views {
        members(running & self.recent_writers())
            .fold(0, |set, writer| set | self.recent[writer].unwrap_or(0))
    }

    /// `Capture::prune_recent`.
    pub(super) fn prune_recent(&mut self, running: Writers) {
        for (writer, recent) in self.recent.iter_mut().enumerate() {
            *recent = recent.filter(|_| has(running, writer));
        }
    }

    pub fn recent_writers(&self) -> Writers {
        let recent = self.recent.iter().enumerate().filter(|(_, views)| views.is_some());
        recent.fold(0, |set, (writer, _)| set | 1 << writer)
    }
}

// ---- the launcher --------------------------------------------------------------------------

impl Protocol {
    pub fn may_start(&self, state: &State) -> bool {
        let is_there = |pid: u8| state.workers.iter().any(|worker| worker.pid == pid);
        let living_worker = state.shared.owner.filter(|_| self.rules.claim);
        !living_worker.is_some_and(is_there)
            && !state.started.is_some_and(is_there)
            && state.workers.len() < 2
    }

    pub fn start(&self, state: &mut State) {
        let is_taken = |pid: &u8| state.workers.iter().any(|worker| worker.pid == *pid);
        let pid = (0..).find(|pid| !is_taken(pid)).unwrap_or(0);
        state.workers.push(Worker::new(pid));
        state.started = Some(pid);
    }

    /// A worker ends by itself or by a signal (`worker::on_exit`).
    pub fn end_worker(&self, state: &mut State, place: usize) {
        let worker = state.workers.remove(place);
        if state.started == Some(worker.pid) {
            state.started = None;
        }
        if state.shared.owner == Some(worker.pid) {
            state.shared.owner = None;
            state.shared.state = [ViewState::Attaching; VIEWS];
        }
    }
}

// ---- the worker ----------------------------------------------------------------------------

impl Protocol {
    pub fn actions_of_worker(&self, state: &State, place: usize, actions: &mut Vec<Action>) {
        let worker = &state.workers[place];
        match &worker.at {
            At::Loop => self.actions_of_loop(state, place, actions),
            At::Starting => actions.push(Action::Prepare(place)),
            At::Slot { waits_for } => {
                // An assistant of the worker before may be in the middle of its transaction.
                let is_over = waits_for & state.running() == 0 && state.assistant.is_none();
                if !self.rules.wait_for_running || is_over {
                    actions.push(Action::Prepare(place));
                }
            }
            At::Preparing => {
                let committed = state.recorded_before(worker.position);
                let is_due = committed & state.running() == 0;
                if is_due || !self.rules.wait_for_committed_to_end {
                    actions.push(Action::Prepare(place));
                }
            }
            At::Attaching { .. } => actions.push(Action::EndAttach(place)),
            At::Awaiting => actions.push(Action::Finish(place)),
            At::Fed => self.steps(state, place, actions),
            At::Promised { slow } => actions.push(Action::Step(place, *slow)),
            At::HalfApplied { .. } | At::Applied { .. } | At::Noted | At::HalfPublished => {
                actions.push(Action::Publish(place));
            }
        }
    }

    fn actions_of_loop(&self, state: &State, place: usize, actions: &mut Vec<Action>) {
        let worker = &state.workers[place];
        if worker.position < state.insert_lsn() {
            actions.push(Action::Decode(place));
        }
        let decoded_is_visible = worker.recent_writers() & state.running() == 0;
        let may_attach = decoded_is_visible || !self.rules.wait_for_decoded;
        let is_other_file = |view: usize, stored: Option<u8>| {
            stored.is_some_and(|file| file != state.heaps.file[view])
        };
        let is_free = |view: &usize| !has(state.refresh.locks(), *view);
        for view in (0..VIEWS).filter(is_free) {
            match worker.views[view] {
                Phase::Waiting if may_attach && self.can_read_beneath(state, worker, view) => {
                    actions.push(Action::Attach(place, view));
                }
                Phase::Attached(it) if self.rules.known_file && is_other_file(view, it.stored) => {
                    actions.push(Action::CheckAgain(place, view));
                }
                _ => {}
            }
        }
        for (view, attachment) in worker.attachments() {
            if matches!(attachment.lent, Lent::Written(_)) {
                actions.push(Action::NoteWritten(place, view));
            }
            if has(self.large, view) && state.left.changes > 0 {
                actions.push(Action::AttachAgain(place, view));
            }
        }
        self.steps(state, place, actions);
    }

    /// What its next step may be.
    fn steps(&self, state: &State, place: usize, actions: &mut Vec<Action>) {
        let worker = &state.workers[place];
        if worker.finished.is_some() {
            actions.push(Action::Step(place, 0));
            return;
        }
        let mut choices = vec![0];
        let busy = worker.views_that(|it| it.is_at_work || it.steps != 0 || !it.handed.is_empty());
        let busy = self.with_above(busy) & self.slow;
        if busy != 0 {
            choices.push(busy);
        }
        if worker.position < state.insert_lsn() {
            actions.extend(choices.iter().map(|slow| Action::WriteLater(place, *slow)));
        }
        choices.retain(|slow| self.is_of_use(state, place, *slow));
        actions.extend(choices.into_iter().map(|slow| Action::Step(place, slow)));
    }

    /// Whether a step changes anything; the loop goes round without end.
    fn is_of_use(&self, state: &State, place: usize, slow: Views) -> bool {
        if !self.rules.set_locked_aside && self.waits_for_lock(state, place, slow) {
            return false;
        }
        let mut after = state.clone();
        self.step(&mut after, place, slow);
        while !matches!(after.workers[place].at, At::Loop | At::Awaiting | At::Fed) {
            match after.workers[place].at {
                At::Promised { slow } => self.step(&mut after, place, slow),
                _ => self.publish(&mut after, place),
            }
        }
        after.renumber();
        after != *state
    }

    /// Until it follows the WAL (`worker::work_for`).
    pub fn prepare(&self, state: &mut State, place: usize) {
        let running = state.running();
        let position = state.insert_lsn();
        let pid = state.workers[place].pid;
        let at = state.workers[place].at.clone();
        let owner = state.shared.owner;
        let is_owned = state.workers.iter().any(|worker| Some(worker.pid) == owner);
        let worker = &mut state.workers[place];
        match at {
            At::Starting if is_owned && self.rules.claim => self.end_worker(state, place),
            At::Starting => {
                worker.at = At::Slot { waits_for: running };
                state.shared.owner = Some(pid);
            }
            At::Slot { waits_for } => {
                worker.position = position;
                worker.missed = waits_for & running;
                worker.at = At::Preparing;
            }
            _ => worker.at = At::Loop,
        }
    }

    /// One record (`Capture` as a `Sink`).
    pub fn decode(&self, state: &mut State, place: usize) {
        let worker = &mut state.workers[place];
        let record = state.wal[usize::from(worker.position)];
        worker.position += 1;
        match record {
            Record::Commit(writer) => {
                let mut touched = 0;
                for view in members(self.changes[writer]) {
                    let Some(attachment) = worker.views[view].attachment() else { continue };
                    let is_read = has(attachment.already_read, writer) && self.rules.already_read;
                    if !is_read && !has(worker.missed, writer) {
                        attachment.steps |= 1 << writer;
                        touched |= 1 << view;
                    }
                }
                worker.recent[writer] = Some(self.with_above(touched));
            }
            Record::Refresh(view) => {
                let is_locked = has(state.refresh.locks(), view);
                let file = state.heaps.file[view];
                let stored = worker.views[view].attachment().and_then(|it| it.stored);
                let is_refreshed = is_locked || stored.is_some_and(|stored| stored != file);
                if is_refreshed && self.rules.known_file {
                    self.detach(worker, view);
                }
            }
        }
    }

    /// Snapshot S (`attach::begin`).
    pub fn attach(&self, state: &mut State, place: usize, view: usize) {
        let already_read = state.visible();
        state.workers[place].at = At::Attaching { view, already_read };
    }

    pub fn end_attach(&self, state: &mut State, place: usize) {
        let end = state.insert_lsn();
        let At::Attaching { view, already_read } = state.workers[place].at else { return };
        let fed = self.beneath(view);
        let fed = fed.map(|lower| self.rows_beneath(state, &state.workers[place], lower));
        let worker = &mut state.workers[place];
        worker.at = At::Loop;
        if let Some(finished) = worker.finished.as_mut().filter(|_| self.rules.still_present) {
            finished.present &= !(1 << view);
        }
        let fed = fed.unwrap_or_else(|| self.query(view, already_read));
        worker.views[view] = Phase::Attached(Attachment {
            already_read,
            whole_from: if self.rules.whole_from { end } else { 0 },
            steps: 0,
            fed,
            handed: Rows::default(),
            delta: Rows::default(),
            stored: None,
            is_at_work: true,
            is_together: false,
            lent: Lent::Nothing,
        });
    }

    /// `Worker::begin_computing`: dataflows that have nothing to do are fed.
    fn feed(&self, worker: &mut Worker) {
        for attachment in worker.views.iter_mut().filter_map(Phase::attachment) {
            if !attachment.is_at_work && attachment.steps != 0 {
                attachment.fed = Rows::of(std::mem::take(&mut attachment.steps));
                attachment.is_at_work = true;
            }
        }
    }

    /// The same and `Worker::end_computing`: `slow` ones are not through in time.
    pub(super) fn compute(&self, worker: &mut Worker, slow: Views) {
        if worker.at != At::Fed {
            self.feed(worker);
        }
        for view in 0..VIEWS {
            let waits = self.waits_beneath(worker, view);
            let Some(attachment) = worker.views[view].attachment() else { continue };
            attachment.is_together &= !waits;
            if !attachment.is_at_work && !attachment.handed.is_empty() {
                attachment.fed = std::mem::take(&mut attachment.handed);
                attachment.is_at_work = true;
            }
            if !attachment.is_at_work {
                continue;
            }
            if has(slow, view) {
                attachment.is_together = false;
            } else {
                let output = std::mem::take(&mut attachment.fed);
                attachment.delta.add(output);
                attachment.is_at_work = false;
                self.hand_on(worker, view, output);
            }
        }
    }

    /// Compute and apply.
    pub fn step(&self, state: &mut State, place: usize, slow: Views) {
        let worker = &mut state.workers[place];
        if !self.rules.publish_after_commit && worker.at == At::Loop {
            state.shared.applied = worker.point();
            worker.at = At::Promised { slow };
            return;
        }
        if worker.finished.is_some() {
            self.feed(worker);
            if !self.rules.receive_after_write {
                self.compute(worker, 0);
            }
            return self.apply(state, place);
        }
        self.compute(worker, slow);
        if !self.rules.set_computing_aside && worker.at_work() != 0 {
            worker.at = At::Awaiting;
            return;
        }
        self.apply(state, place);
    }

    /// Computes, and leaves it to the next step to write that when it has fed its own (`Worker::may_write_later`).
    pub fn write_later(&self, state: &mut State, place: usize, slow: Views) {
        self.compute(&mut state.workers[place], slow);
        let present = self.present(state, place);
        let running = state.running();
        let worker = &mut state.workers[place];
        let invisible = worker.invisible(running);
        for (view, phase) in worker.views.iter_mut().enumerate() {
            if let Some(attachment) = phase.attachment() {
                attachment.is_together &= !has(invisible & !present, view);
            }
        }
        worker.finished = Some(Finished { position: worker.position, present });
        worker.at = At::Loop;
        worker.prune_recent(running);
    }

    /// Without `set_computing_aside`: the dataflow that was waited for is through.
    pub fn finish(&self, state: &mut State, place: usize) {
        self.compute(&mut state.workers[place], 0);
        self.apply(state, place);
    }
}
