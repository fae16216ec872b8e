//! A small model of how views are kept right, searched state by state: whatever the order in which sessions, the worker
//! and the launcher go on, and wherever one of them ends, the promises hold. Tests of the real thing meet some
//! orders; here none is left out, but what takes part is small: two views, up to three transactions that change their
//! tables, up to two readers.
//!
//! What stands for what:
//! - A transaction that changes tables is a bit, and a view's rows say how often they show each (`state::Rows`). So a view
//!   equals its query when it shows once what has changed its tables, and anything lost or applied twice is seen.
//! - `sessions`: a commit in PostgreSQL's order, which is counted (`handshake::begin_commit`), has its record in the WAL,
//!   becomes visible, and is noted (`end_commit`). Locks, REFRESH, a crash of the server.
//! - `worker`: the launcher; a worker from its slot (`worker::work_for`) to its loop (`main_loop::Worker::step`). Decoding takes one
//!   record at a time. Attaching is two actions, snapshot S with the rows that it sees, and the look at the end of the WAL
//!   after it. Computing and applying up to the commit is one action, as nobody sees anything of it before; which views it leaves
//!   aside, because their dataflows are slow, anybody may choose. A step may also be left until the next one has been fed, and is
//!   written then, as of its own point; that it is chosen only where there is more to decode is all that is said of when. Then come the notes of what changed, the
//!   states of views, and `applied`, one by one. A worker may end after each of these; what it knew is gone then, and what it has
//!   committed is there. The loss of its slot is such an end.
//! - `stack`: the second view may read the first one, whose output goes to it. Indexes are not told apart from the dataflows that read them: a view is
//!   fed when its indexes have been.
//! - `assistant`: the transaction of a process that writes a view for the worker, apart from the others.
//! - `reads`: a statement at each isolation level. Each load from shared memory is an action, between which anything may happen.
//!   What it is shown is judged when it has got its snapshot.
//! - `rules`: what makes it right. `properties`: what right means.
//!
//! Left out, because nothing here depends on it: who wakes whom (the worker looks around each second anyway), timeouts, errors of
//! queries, limits, conditions on the present time, DROP, and flushing the WAL (what is not on disk is not decoded, and a
//! crash takes from the end). Statements that are called by others wait as the others do.

mod apply;
mod assistant;
mod properties;
mod reads;
mod rules;
mod sessions;
mod stack;
mod state;
mod tests;
mod worker;

use reads::{Reader, Session};
use rules::Rules;
use state::*;
use stateright::{Model, Property};
use worker::Worker;

/// A small server: who takes part, and what may happen to them.
#[derive(Clone, Debug)]
pub struct Protocol {
    pub rules: Rules,
    /// For each writer the views whose tables it changes.
    pub changes: Vec<Views>,
    /// Whether the second view reads the first one, and no tables.
    pub stacked: bool,
    pub readers: Vec<Session>,
    /// Whether a worker follows the WAL at first; otherwise none has ever been, and the writers are in the middle.
    pub is_running: bool,
    /// Views whose dataflows may take longer than the others wait.
    pub slow: Views,
    /// Views with so much to be written that an assistant does it.
    pub large: Views,
    /// Views that others lock or refresh.
    pub disturbed: Views,
    /// Whether commits may wait for a standby for ever.
    pub standby: bool,
    pub left: Left,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A writer goes on, see [`Writer`].
    Write(usize),
    /// A session locks a view against writes, or gives the lock back.
    Lock(usize),
    Unlock(usize),
    /// A REFRESH begins, or goes on.
    BeginRefresh(usize),
    GoOnRefresh,
    /// The launcher starts a worker.
    Start,
    /// The worker at that place goes on until it follows the WAL.
    Prepare(usize),
    /// It takes the next record of the WAL.
    Decode(usize),
    /// Settings or tables have changed, and a view has to be attached again.
    AttachAgain(usize, usize),
    /// It notices that a view has another file.
    CheckAgain(usize, usize),
    /// It takes the snapshot with which it attaches a view.
    Attach(usize, usize),
    /// It has read the tables and looks where the WAL ends.
    EndAttach(usize),
    /// It computes and applies what it has, but for the views whose dataflows take longer.
    Step(usize, Views),
    /// It computes what it has, and will write it when the next step has been fed.
    WriteLater(usize, Views),
    /// It notes what it has applied, and publishes.
    Publish(usize),
    /// A dataflow that it waited for has ended its work.
    Finish(usize),
    Assist {
        commits: bool,
    },
    /// The worker at that place notes what an assistant has written of a view.
    NoteWritten(usize, usize),
    /// A reader begins, or goes on, see [`reads::Stage`].
    Read(usize),
    EndWorker(usize),
    EndLauncher,
    /// All processes of the server are gone. It starts again, perhaps without the last writes of workers, whose
    /// commits nobody waits for.
    Crash {
        loses_applied: bool,
    },
}

impl Protocol {
    /// Whether nobody can count on its happening. The rest happens at last.
    fn is_left_to_others(&self, state: &State, action: Action) -> bool {
        match action {
            Action::Write(writer) => match state.writers[writer] {
                Writer::Idle => true,
                Writer::Recorded => self.standby,
                _ => false,
            },
            Action::Read(reader) => state.readers[reader].is_idle(),
            // A dataflow that is at work may be so for ever.
            Action::Step(place, _) if state.workers[place].finished.is_some() => false,
            Action::Step(place, slow) | Action::WriteLater(place, slow) => {
                state.workers[place].at_work() & !slow & self.slow != 0
            }
            Action::Lock(_)
            | Action::Unlock(_)
            | Action::BeginRefresh(_)
            | Action::AttachAgain(..)
            | Action::Finish(_)
            | Action::EndWorker(_)
            | Action::EndLauncher
            | Action::Crash { .. } => true,
            _ => false,
        }
    }

    /// The rows that a view's query has over the tables as of some transactions.
    pub fn query(&self, view: usize, writers: Writers) -> Rows {
        Rows::of(writers & self.writers_of(view))
    }

    /// The transactions that change a view's tables.
    pub fn writers_of(&self, view: usize) -> Writers {
        let view = self.beneath(view).unwrap_or(view);
        let touch = self.changes.iter().enumerate().filter(|(_, views)| has(**views, view));
        touch.fold(0, |set, (writer, _)| set | 1 << writer)
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let state = match self.is_running {
            true => ViewState::Live,
            false => ViewState::Attaching,
        };
        let owner = self.is_running.then_some(0);
        vec![State {
            writers: vec![Writer::Idle; self.changes.len()],
            refresh: Refresh::None,
            locked: 0,
            wal: Vec::new(),
            heaps: Heaps { rows: Default::default(), behind: 0, file: [0; VIEWS], last: 0 },
            shared: Shared { owner, state: [state; VIEWS], ..Shared::ZERO },
            workers: self.is_running.then(Worker::running).into_iter().collect(),
            assistant: None,
            started: owner,
            readers: self.readers.iter().map(|_| Reader::default()).collect(),
            left: self.left,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.actions_of_sessions(state, actions);
        for place in 0..state.workers.len() {
            self.actions_of_worker(state, place, actions);
        }
        self.actions_of_assistant(state, actions);
        if self.may_start(state) {
            actions.push(Action::Start);
        }
        let readers = 0..state.readers.len();
        actions.extend(readers.filter(|r| self.may_read(state, *r)).map(Action::Read));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut state = state.clone();
        self.act(&mut state, action);
        state.renumber();
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}

impl Protocol {
    fn act(&self, state: &mut State, action: Action) {
        match action {
            Action::Write(writer) => self.write(state, writer),
            Action::Lock(view) => {
                state.locked |= 1 << view;
                state.left.locks -= 1;
            }
            Action::Unlock(view) => state.locked &= !(1 << view),
            Action::BeginRefresh(view) => self.begin_refresh(state, view),
            Action::GoOnRefresh => self.go_on_refresh(state),
            Action::Start => self.start(state),
            Action::Prepare(place) => self.prepare(state, place),
            Action::Decode(place) => self.decode(state, place),
            Action::AttachAgain(place, view) => {
                state.left.changes -= 1;
                self.detach(&mut state.workers[place], view);
            }
            Action::CheckAgain(place, view) => self.detach(&mut state.workers[place], view),
            Action::Attach(place, view) => self.attach(state, place, view),
            Action::EndAttach(place) => self.end_attach(state, place),
            Action::Step(place, slow) => self.step(state, place, slow),
            Action::WriteLater(place, slow) => self.write_later(state, place, slow),
            Action::Publish(place) => self.publish(state, place),
            Action::Finish(place) => self.finish(state, place),
            Action::Assist { commits } => self.assist(state, commits),
            Action::NoteWritten(place, view) => self.note_written(state, place, view),
            Action::Read(reader) => self.read(state, reader),
            Action::EndWorker(place) => {
                state.left.worker_ends -= 1;
                self.end_worker(state, place);
            }
            Action::EndLauncher => {
                state.left.launcher_ends -= 1;
                state.started = None;
            }
            Action::Crash { loses_applied } => self.crash(state, loses_applied),
        }
    }
}
