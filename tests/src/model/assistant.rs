//! Assistants of a worker (`worker/assistant`): views with much to be written are written apart from the others.

use super::state::*;
use super::worker::{Attachment, Phase};
use super::{Action, Protocol};

/// An assistant that is about to commit what it has written of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Assistant {
    /// The worker that wants it.
    pub worker: u8,
    pub view: usize,
    rows: Rows,
    /// The file that the rows are for.
    file: u8,
}

/// How far writing a view by an assistant is (`Attachment::lent`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lent {
    #[default]
    Nothing,
    /// An assistant has the output.
    Output,
    /// It has committed, and the worker has not noted it yet.
    Written(Number),
}

impl Protocol {
    /// `Worker::take_large`, `begin_writing`: of the views that could be written, those with a lot to be written; they are aside.
    /// Those that are on record as not being at the point of the others are handed to an assistant.
    pub fn take_large(&self, state: &mut State, place: usize, present: Views) -> Views {
        let recorded = state.heaps.behind;
        let worker = &mut state.workers[place];
        let mut large = 0;
        for view in members(present & self.large) {
            let Phase::Attached(attachment) = &mut worker.views[view] else { continue };
            let Some(file) = attachment.stored.filter(|_| !attachment.delta.is_empty()) else {
                continue;
            };
            large |= 1 << view;
            attachment.is_together = false;
            let may_begin = has(recorded, view) || !self.rules.is_apart;
            if may_begin && state.assistant.is_none() {
                let rows = std::mem::take(&mut attachment.delta);
                attachment.lent = Lent::Output;
                state.assistant = Some(Assistant { worker: worker.pid, view, rows, file });
            }
        }
        large
    }

    pub fn actions_of_assistant(&self, state: &State, actions: &mut Vec<Action>) {
        let Some(assistant) = state.assistant else { return };
        actions.push(Action::Assist { commits: true });
        if !self.is_wanted(state, assistant) {
            actions.push(Action::Assist { commits: false });
        }
    }

    /// Whether its worker still waits for it; otherwise it commits only if it has found out that it was wanted just before.
    fn is_wanted(&self, state: &State, assistant: Assistant) -> bool {
        let is_its = |worker: &&super::Worker| worker.pid == assistant.worker;
        let phase = state.workers.iter().find(is_its).map(|worker| worker.views[assistant.view]);
        matches!(phase, Some(Phase::Attached(Attachment { lent: Lent::Output, .. })))
    }

    /// An assistant ends (`work::write_view`), and its worker is told.
    pub fn assist(&self, state: &mut State, commits: bool) {
        let Some(assistant) = state.assistant.take() else { return };
        let Assistant { view, rows, file, .. } = assistant;
        let is_wanted = self.is_wanted(state, assistant);
        let is_locked = has(state.locked | state.refresh.locks(), view);
        let is_known = file == state.heaps.file[view] || !self.rules.known_file;
        let is_written = commits && is_known && !is_locked;
        if is_written {
            state.heaps.rows[view].add(rows);
            state.heaps.last += 1;
        }
        let number = state.heaps.last;
        let is_its = |worker: &&mut super::Worker| worker.pid == assistant.worker;
        let worker = state.workers.iter_mut().find(is_its).filter(|_| is_wanted);
        let Some(worker) = worker else { return };
        let Phase::Attached(attachment) = &mut worker.views[view] else { return };
        if is_written {
            attachment.lent = Lent::Written(number);
        } else if is_known {
            attachment.delta.add(rows);
            attachment.lent = Lent::Nothing;
        } else {
            self.detach(worker, view);
        }
    }

    /// `Worker::note_end`.
    pub fn note_written(&self, state: &mut State, place: usize, view: usize) {
        let Phase::Attached(attachment) = &mut state.workers[place].views[view] else { return };
        let Lent::Written(number) = std::mem::take(&mut attachment.lent) else { return };
        if self.rules.note_stored {
            state.shared.changed[view] = number;
        }
    }

    /// Whether an assistant that nobody wants any more may still write a view (`Assistants::may_still_write`).
    pub fn may_still_write(&self, state: &State, view: usize) -> bool {
        self.rules.may_still_write && state.assistant.is_some_and(|it| it.view == view)
    }
}
