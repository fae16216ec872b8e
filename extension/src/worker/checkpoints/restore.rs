//! Going on with what an earlier worker has saved.

use super::made_from::made_from;
use super::manifest::SavedView;
use super::record::{Checkpoints, Saved};
use crate::pg::crash_point::{self, CrashPoint};
use crate::pg::ids::ViewId;
use crate::pg::relation::{with_relation, Lock};
use crate::pg::sort_keys::SortKeys;
use crate::pg::xact;
use crate::worker::apply::{note_stored, Stored};
use crate::worker::heap::Vouched;
use crate::worker::main_loop::Worker;
use crate::worker::sources::{file_of, sources_of};
use crate::worker::stack::views_read;
use crate::worker::view::{Phase, View};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

impl Worker {
    /// Those of the views of which something was saved, as long as they may go on with it.
    pub(in crate::worker) fn saved_among(&self, views: &[ViewId]) -> Vec<ViewId> {
        let restoring = self.checkpoints.restoring.as_ref().filter(|restoring| restoring.is_open);
        let is_saved = |view: &ViewId| restoring.is_some_and(|it| it.of(*view).is_some());
        views.iter().copied().filter(is_saved).collect()
    }

    /// Lets those of the views go on that can; answers the others. Before anything is decoded.
    pub(in crate::worker) fn restore(&mut self, ready: Vec<ViewId>) -> Vec<ViewId> {
        if !self.checkpoints.is_open() || ready.is_empty() {
            return ready;
        }
        let mut saved: BTreeMap<ViewId, Saved> =
            ready.iter().filter_map(|view| Some((*view, self.saved_state(*view)?))).collect();
        let levels = take_levels(&mut saved);
        let checkpoints = &mut self.checkpoints;
        if saved.is_empty() || checkpoints.folder.note_attempt().is_err() {
            return ready;
        }
        crash_point::reach(CrashPoint::Restore);
        let (restored, others): (Vec<ViewId>, Vec<ViewId>) =
            ready.into_iter().partition(|view| saved.contains_key(view));
        for level in levels {
            self.attach_from(level, &saved);
        }
        for view in restored.iter().filter_map(|relid| self.views.get(relid)) {
            if let Phase::Reading(reading) = &view.phase {
                if reading.goes_on.is_none() {
                    continue;
                }
                // Its first time is before all that is going to be decoded.
                self.capture.come_to(reading.as_of);
                self.checkpoints.saved.insert(view.relid);
                self.checkpoints.restoring.iter_mut().for_each(|it| it.is_replaying = true);
            }
        }
        for (relid, saved) in saved {
            if let Some(path) = saved.keys {
                self.restore_keys(relid, &path);
            }
        }
        others
    }

    /// Gives the dataflow of a view that goes on the sort keys that it holds, before it is answered.
    fn restore_keys(&mut self, relid: ViewId, path: &Path) {
        let phase = self.views.get(&relid).map(|view| &view.phase);
        let Some(Phase::Reading(reading)) = phase else { return };
        let dataflow = reading.dataflow;
        match xact::run(|| SortKeys::restore(path)) {
            Ok(keys) => drop(self.sort_keys.insert(dataflow, keys)),
            Err(error) => self.note_not_restored(relid, &error),
        }
    }

    /// That with which a view can go on.
    fn saved_state(&self, view: ViewId) -> Option<Saved> {
        let Checkpoints { restoring: Some(restoring), folder, .. } = &self.checkpoints else {
            return None;
        };
        let saved = restoring.of(view)?;
        let name = self.views.get(&view).map_or("", |view| &view.name);
        // One that was not at the point of the others when the last worker ended has been since it was saved.
        let position = match self.states.is_apart(view) {
            false => Some(restoring.heaps),
            true => self.states.position_behind(view).filter(|it| *it >= restoring.position()),
        };
        let found = match position {
            None => Err("it is not known how far it was".to_owned()),
            Some(position) => match xact::try_run(|| beneath_if_as_saved(view, saved)) {
                Ok(Some(beneath)) => Ok((position, beneath)),
                Ok(None) => Err("it, or a table of it, is not what it was".to_owned()),
                Err(caught) => Err(caught.message),
            },
        };
        match found {
            Ok((position, beneath)) => Some(Saved {
                beneath,
                state: folder.state(restoring.number(), view),
                keys: saved.has_keys.then(|| folder.keys(restoring.number(), view)),
                heap: Vouched { file: saved.file, position, rows: saved.rows, is_current: false },
            }),
            Err(trouble) => {
                pgrx::log!("pg_eddy: view {name} does not go on from the checkpoint: {trouble}");
                None
            }
        }
    }

    /// A dataflow cannot go on with what was saved: the view is attached anew.
    pub(in crate::worker) fn note_not_restored(&mut self, view: ViewId, message: &str) {
        if let Some(view) = self.views.get(&view) {
            pgrx::log!("pg_eddy: view {} does not go on from the checkpoint: {message}", view.name);
        }
        self.checkpoints.saved.remove(&view);
        self.set_phase(view, Phase::waiting());
    }

    /// Whether the heaps, and what is on record of them, are further than what has been decoded.
    pub(in crate::worker) fn is_behind_heaps(&self) -> bool {
        self.checkpoints.is_behind_heaps(self.position())
    }

    /// How far to decode at most: to where the next heap is of a view that goes on.
    pub(in crate::worker) fn replayed_to(&self, target: u64) -> u64 {
        let next_heap = self.checkpoints.is_replaying().then(|| self.next_heap()).flatten();
        next_heap.map_or(target, |heap| target.min(heap))
    }

    fn next_heap(&self) -> Option<u64> {
        let ahead = self.views.values().filter_map(|view| view.phase.heap_ahead());
        ahead.map(|heap| heap.position).min()
    }

    /// Views that go on are where their heaps are, once they have computed all up to there.
    pub(in crate::worker) fn end_replay(&mut self) {
        let position = self.position();
        let Some(restoring) = &self.checkpoints.restoring else { return };
        let (is_replaying, heaps) = (restoring.is_replaying, restoring.heaps);
        if !is_replaying || position < self.next_heap().unwrap_or(heaps) {
            return;
        }
        let is_going_on = |view: &View| match &view.phase {
            Phase::Reading(reading) => reading.goes_on.is_some(),
            Phase::Attached(attachment) => {
                attachment.is_behind_heap
                    && (attachment.is_at_work()
                        || self.capture.has_steps(attachment.dataflow)
                        || self.capture.is_feeding(attachment.dataflow)
                        || self.is_view_ahead(view.relid, attachment.fed))
            }
            Phase::Waiting { .. } | Phase::Failed { .. } => false,
        };
        if self.views.values().any(is_going_on) {
            return;
        }
        // Snapshots from before it may be of another state, as for a heap that was looked at and found right.
        let xid = xact::run(|| xact::full_xid(xact::take_xid()));
        let is_there =
            |view: &&View| view.phase.heap_ahead().is_some_and(|heap| heap.position <= position);
        let there: Vec<ViewId> =
            self.views.values().filter(is_there).map(|view| view.relid).collect();
        for relid in there {
            self.note_there(relid, xid);
        }
        if self.next_heap().is_none() {
            self.checkpoints.restoring.iter_mut().for_each(|it| it.is_replaying = false);
            self.checkpoints.folder.forget_attempts();
            self.states.note_point(heaps);
        }
    }

    /// A view has come to where its heap is.
    fn note_there(&mut self, relid: ViewId, xid: u64) {
        let file = file_of(relid);
        let Some(view) = self.views.get_mut(&relid) else { return };
        let Some(attachment) = view.attachment() else { return };
        attachment.is_behind_heap = false;
        let Some(heap) = &mut attachment.goes_on else { return };
        if file != Some(heap.file) {
            return self.set_phase(relid, Phase::waiting());
        }
        heap.is_current = true;
        pgrx::log!("pg_eddy: view {} goes on from the checkpoint", view.name);
        note_stored(view, &Stored { is_first: true, rows: 0, transactions: 0, changed: xid });
        self.wake_above(relid);
    }
}

/// The views that can go on, each in a group behind those that it reads; others are taken out.
fn take_levels(saved: &mut BTreeMap<ViewId, Saved>) -> Vec<Vec<ViewId>> {
    let (mut levels, mut placed) = (Vec::new(), BTreeSet::new());
    loop {
        let is_next = |(view, saved): &(&ViewId, &Saved)| {
            !placed.contains(*view) && saved.beneath.is_subset(&placed)
        };
        let level: Vec<ViewId> = saved.iter().filter(is_next).map(|(view, _)| *view).collect();
        if level.is_empty() {
            saved.retain(|view, _| placed.contains(view));
            return levels;
        }
        placed.extend(&level);
        levels.push(level);
    }
}

/// The views that a view reads, if it is what it was when it was saved. Needs a transaction with a snapshot.
fn beneath_if_as_saved(view: ViewId, saved: &SavedView) -> Option<BTreeSet<ViewId>> {
    let heap = |heap: crate::pg::relation::RelationRef<'_>| (heap.file(), heap.is_populated());
    let is_same_heap = with_relation(view, Lock::AccessShare, heap) == Some((saved.file, true));
    let sources = sources_of(view).ok().filter(|_| is_same_heap)?;
    let is_same = made_from(&sources.compiled, &sources.members) == saved.made_from;
    is_same.then(|| views_read(&sources.compiled))
}
