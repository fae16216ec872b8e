//! What a worker writes, and what it tells of that (`worker/apply`, `worker/write`).

use super::assistant::Lent;
use super::state::*;
use super::worker::{At, Attachment};
use super::Protocol;

impl Protocol {
    /// `Worker::present_at`.
    pub(super) fn present(&self, state: &State, place: usize) -> Views {
        let worker = &state.workers[place];
        let invisible = match self.rules.set_invisible_aside {
            true => worker.invisible(state.running()),
            false => 0,
        };
        let position = worker.position;
        let is_there = |it: &Attachment| {
            let is_through = !it.is_at_work && it.steps == 0 && it.handed.is_empty();
            it.whole_from <= position && is_through && it.lent == Lent::Nothing
        };
        let is_left = |view: &usize| self.may_still_write(state, *view);
        let left = (0..VIEWS).filter(is_left).fold(0, |set, view| set | 1 << view);
        let waits = (0..VIEWS).filter(|view| self.waits_beneath(worker, *view));
        let waits = waits.fold(0, |set, view| set | 1 << view);
        worker.views_that(is_there) & !invisible & !left & !waits
    }

    /// Without `set_locked_aside`: whether applying would wait.
    pub(super) fn waits_for_lock(&self, state: &State, place: usize, slow: Views) -> bool {
        let mut after = state.clone();
        self.compute(&mut after.workers[place], slow);
        let is_due = |it: &Attachment| it.stored.is_none() || !it.delta.is_empty();
        let due = after.workers[place].views_that(is_due) & self.present(&after, place);
        due & state.locked != 0
    }

    /// `Worker::apply` up to its commit.
    pub(super) fn apply(&self, state: &mut State, place: usize) {
        let finished = state.workers[place].finished;
        let present = match finished {
            Some(finished) => finished.present,
            None => self.present(state, place),
        };
        let large = self.take_large(state, place, present);
        let present = present & !large;
        let invisible = match finished {
            Some(_) => 0,
            None => state.workers[place].invisible(state.running()),
        };
        let is_locked = state.locked | state.refresh.locks();
        let mut heaps = state.heaps.clone();
        let (mut written, mut kept_out, mut foreign) = (0, 0, 0);
        let mut is_due = self.rules.is_apart && large & !heaps.behind != 0;
        let worker = &mut state.workers[place];
        for (view, phase) in worker.views.iter_mut().enumerate() {
            let Some(attachment) = phase.attachment() else { continue };
            if !has(present, view) {
                // Who is at work was set aside before.
                let is_set_aside = has(invisible, view) && self.rules.set_invisible_aside;
                attachment.is_together &= !is_set_aside;
                continue;
            }
            attachment.is_together = true;
            if attachment.stored.is_some() && attachment.delta.is_empty() {
                continue;
            }
            is_due = true;
            let file = heaps.file[view];
            let is_foreign = attachment.stored.is_some_and(|stored| stored != file);
            if has(is_locked, view) {
                kept_out |= 1 << view;
                attachment.is_together = false;
            } else if is_foreign && self.rules.known_file {
                kept_out |= 1 << view;
                foreign |= 1 << view;
            } else {
                written |= self.apply_view(&mut heaps.rows[view], attachment, file) << view;
            }
        }
        members(foreign).for_each(|view| self.detach(worker, view));
        heaps.behind = ALL_VIEWS & !(present & !kept_out);
        self.commit(state, place, heaps, (written, is_due));
    }

    /// `apply::write_rows`; says whether that counts as a change.
    fn apply_view(&self, rows: &mut Rows, attachment: &mut Attachment, file: u8) -> Views {
        let delta = std::mem::take(&mut attachment.delta);
        let is_first = attachment.stored.replace(file).is_none();
        let before = *rows;
        match is_first && self.rules.compare_stored {
            true => *rows = delta,
            false => rows.add(delta),
        }
        Views::from(!is_first || *rows != before || self.rules.attach_is_a_change)
    }

    /// Commits what differs, in one transaction, or in two if a rule is off.
    fn commit(
        &self,
        state: &mut State,
        place: usize,
        mut heaps: Heaps,
        (written, is_due): (Views, bool),
    ) {
        let worker = &mut state.workers[place];
        // Who is back is recorded at once, who is left behind when there is something to write (`States::is_due`).
        let is_back = state.heaps.behind & !heaps.behind != 0;
        let is_written = is_due && (written != 0 || heaps != state.heaps);
        if !is_back && !is_written {
            worker.at = At::Noted;
            return;
        }
        heaps.last += 1;
        let mut first = heaps.clone();
        if !self.rules.one_transaction {
            first.rows[1] = state.heaps.rows[1];
        }
        if !self.rules.states_with_views {
            first.behind = state.heaps.behind;
        }
        if first == heaps {
            worker.at = At::Applied { written, number: heaps.last };
        } else {
            heaps.last += 1;
            worker.at = At::HalfApplied { rest: heaps, written };
        }
        state.heaps = first;
    }

    /// What comes after the commit, one thing at a time.
    pub fn publish(&self, state: &mut State, place: usize) {
        let running = state.running();
        let worker = &mut state.workers[place];
        let views_are_next = match worker.at {
            At::Noted => self.rules.publish_views_first,
            _ => !self.rules.publish_views_first,
        };
        worker.at = match worker.at.clone() {
            At::HalfApplied { rest, written } => {
                let number = rest.last;
                state.heaps = rest;
                At::Applied { written, number }
            }
            At::Applied { written, number } => {
                for view in members(written) {
                    state.shared.changed[view] = number;
                    let stored = worker.views[view].attachment().and_then(|it| it.stored);
                    state.shared.file[view] = stored.unwrap_or(0);
                }
                At::Noted
            }
            at => {
                match views_are_next {
                    true => state.shared.state = worker.views.map(|phase| phase.state()),
                    false if self.rules.finished_position => state.shared.applied = worker.point(),
                    false => state.shared.applied = worker.position,
                }
                match at {
                    At::Noted => At::HalfPublished,
                    _ if worker.finished.take().is_some() => At::Fed,
                    _ => At::Loop,
                }
            }
        };
        if worker.at == At::Loop {
            worker.prune_recent(running);
        }
    }
}
