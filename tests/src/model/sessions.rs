//! Sessions that commit, lock and refresh, and the end of the server.

use super::state::*;
use super::{Action, Protocol};

impl Protocol {
    pub fn actions_of_sessions(&self, state: &State, actions: &mut Vec<Action>) {
        for (writer, at) in state.writers.iter().enumerate() {
            if !matches!(at, Writer::Done | Writer::Aborted) {
                actions.push(Action::Write(writer));
            }
        }
        for view in members(self.disturbed) {
            let is_free = !has(state.refresh.locks() | state.locked, view);
            if has(state.locked, view) {
                actions.push(Action::Unlock(view));
            } else if is_free && state.left.locks > 0 {
                actions.push(Action::Lock(view));
            }
            // It waits for those who read the view.
            let is_read = state.readers.iter().any(|reader| has(reader.locks, view));
            let may_begin = state.left.refreshes > 0 && state.refresh == Refresh::None;
            if is_free && !is_read && may_begin {
                actions.push(Action::BeginRefresh(view));
            }
        }
        if state.refresh != Refresh::None {
            actions.push(Action::GoOnRefresh);
        }
        let ends = 0..state.workers.len();
        actions.extend(ends.filter(|_| state.left.worker_ends > 0).map(Action::EndWorker));
        if state.left.launcher_ends > 0 && state.started.is_some() {
            actions.push(Action::EndLauncher);
        }
        if state.left.crashes > 0 {
            actions.push(Action::Crash { loses_applied: false });
            actions.push(Action::Crash { loses_applied: true });
        }
    }

    /// The session of a writer goes on (`handshake`, and PostgreSQL's CommitTransaction).
    pub fn write(&self, state: &mut State, writer: usize) {
        let counts = self.rules.committing;
        let next = match state.writers[writer] {
            // That it has written something is of interest to new slots only.
            Writer::Idle if !self.is_running => Writer::Writing,
            Writer::Idle | Writer::Writing => {
                state.shared.committing += u8::from(counts);
                Writer::Counted
            }
            Writer::Counted => {
                state.wal.push(Record::Commit(writer));
                Writer::Recorded
            }
            Writer::Recorded => Writer::Visible,
            Writer::Visible if !self.rules.note_commit_first => {
                state.shared.committing -= u8::from(counts);
                Writer::Uncounted
            }
            at @ (Writer::Visible | Writer::Uncounted) => {
                note_commit(state, state.end_of(writer));
                state.shared.committing -= u8::from(counts && at == Writer::Visible);
                Writer::Done
            }
            at => at,
        };
        state.writers[writer] = next;
    }

    /// It gets its lock, takes its snapshot and fills the view.
    pub fn begin_refresh(&self, state: &mut State, view: usize) {
        state.left.refreshes -= 1;
        let rows = self.query(view, state.visible());
        state.refresh = Refresh::Filled { view, rows };
    }

    pub fn go_on_refresh(&self, state: &mut State) {
        state.refresh = match state.refresh {
            Refresh::Filled { view, rows } => {
                state.shared.committing += 1;
                state.wal.push(Record::Refresh(view));
                Refresh::Recorded { view, rows }
            }
            Refresh::Recorded { view, rows } => {
                state.heaps.rows[view] = rows;
                state.heaps.file[view] += 1;
                let snapshots = state.readers.iter_mut().filter_map(|it| it.snapshot.as_mut());
                snapshots.for_each(|snapshot| snapshot.rows[view] = rows);
                Refresh::Visible { view }
            }
            Refresh::Visible { view } => {
                let record = Record::Refresh(view);
                let end = state.wal.iter().rposition(|it| *it == record).map_or(0, |at| at + 1);
                note_commit(state, end as Lsn);
                state.shared.committing -= 1;
                Refresh::None
            }
            Refresh::None => Refresh::None,
        };
    }

    /// What has written its commit record is committed, the rest never was.
    pub fn crash(&self, state: &mut State, loses_applied: bool) {
        state.left.crashes -= 1;
        state.shared = Shared::ZERO;
        state.workers.clear();
        state.assistant = None;
        state.started = None;
        state.locked = 0;
        state.readers.iter_mut().for_each(|reader| reader.end());
        for writer in &mut state.writers {
            *writer = match writer {
                Writer::Idle => Writer::Idle,
                Writer::Writing | Writer::Counted | Writer::Aborted => Writer::Aborted,
                _ => Writer::Done,
            };
        }
        if loses_applied {
            state.heaps.rows = Default::default();
            state.heaps.behind = 0;
        }
        if let Refresh::Recorded { view, rows } = state.refresh {
            state.heaps.rows[view] = rows;
            state.heaps.file[view] += 1;
        }
        state.refresh = Refresh::None;
    }
}

/// `Database::note_commit`.
fn note_commit(state: &mut State, end: Lsn) {
    state.shared.last_commit = state.shared.last_commit.max(end);
}
