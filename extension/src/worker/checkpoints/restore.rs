//! Going on with what an earlier worker has saved.

use super::manifest::{Folder, Manifest, SavedView};
use super::Checkpoints;
use crate::compile::CompiledView;
use crate::pg::crash_point::{self, CrashPoint};
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::relation::{with_relation, Lock};
use crate::pg::{catalog, progress, wal, xact};
use crate::worker::apply::{note_stored, Stored};
use crate::worker::main_loop::Worker;
use crate::worker::sources::{file_of, sources_of};
use crate::worker::view::{Phase, View, Vouched};
use rules::row_hash::Keys;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

/// That with which a view goes on.
#[derive(Clone, Debug)]
pub struct Saved {
    /// Where the state of its dataflow is.
    pub state: PathBuf,
    /// Its heap, as of then.
    pub heap: Vouched,
}

/// What this worker goes on with.
pub struct Restoring {
    manifest: Manifest,
    /// The heaps are as of this position: what is computed up to there has been written.
    heaps: u64,
    /// Whether views may still go on: nothing has been decoded.
    is_open: bool,
    /// Whether some do that have not come to where the heaps are.
    is_replaying: bool,
}

impl Restoring {
    /// What was saved, if the heaps are not behind it.
    pub fn find(folder: &Folder) -> Option<Restoring> {
        let manifest = folder.load()?;
        let applied = xact::run(progress::read).unwrap_or(0);
        if applied < manifest.applied {
            pgrx::log!(
                "pg_eddy: the checkpoint at {} is of no use: the views are as of {}",
                wal::display(manifest.position),
                wal::display(applied)
            );
            return None;
        }
        let heaps = applied.max(manifest.position);
        Some(Restoring { manifest, heaps, is_open: true, is_replaying: false })
    }

    pub fn position(&self) -> u64 {
        self.manifest.position
    }

    pub fn number(&self) -> u64 {
        self.manifest.number
    }

    fn of(&self, view: ViewId) -> Option<&SavedView> {
        self.manifest.views.iter().find(|saved| saved.relation == view.to_u32())
    }
}

impl Checkpoints {
    /// Whether views go on that have not come to where the heaps are.
    pub fn is_replaying(&self) -> bool {
        self.restoring.as_ref().is_some_and(|restoring| restoring.is_replaying)
    }

    /// Whether the heaps, and what is on record of them, are further than a position.
    pub fn is_behind_heaps(&self, position: u64) -> bool {
        let is_behind =
            |restoring: &Restoring| restoring.is_replaying || position < restoring.heaps;
        self.restoring.as_ref().is_some_and(is_behind)
    }

    /// How far to decode at most.
    pub fn replayed_to(&self, target: u64) -> u64 {
        let replaying = self.restoring.as_ref().filter(|restoring| restoring.is_replaying);
        replaying.map_or(target, |restoring| target.min(restoring.heaps))
    }
}

impl Worker {
    /// Those of the views of which something was saved, as long as they may go on with it.
    pub(in crate::worker) fn saved_among(&self, views: &[ViewId]) -> Vec<ViewId> {
        let restoring = self.checkpoints.restoring.as_ref().filter(|restoring| restoring.is_open);
        let is_saved = |view: &ViewId| restoring.is_some_and(|it| it.of(*view).is_some());
        views.iter().copied().filter(is_saved).collect()
    }

    /// Lets those of the views go on that can; answers the others. Before anything is decoded.
    pub(in crate::worker) fn restore(&mut self, ready: Vec<ViewId>) -> Vec<ViewId> {
        let is_open = self.checkpoints.restoring.as_ref().is_some_and(|it| it.is_open);
        if !is_open || ready.is_empty() {
            return ready;
        }
        let saved: BTreeMap<ViewId, Saved> =
            ready.iter().filter_map(|view| Some((*view, self.saved_state(*view)?))).collect();
        let checkpoints = &mut self.checkpoints;
        if saved.is_empty() || checkpoints.folder.note_attempt().is_err() {
            return ready;
        }
        crash_point::reach(CrashPoint::Restore);
        let (restored, others): (Vec<ViewId>, Vec<ViewId>) =
            ready.into_iter().partition(|view| saved.contains_key(view));
        self.attach_from(restored.clone(), &saved);
        for view in restored.iter().filter_map(|relid| self.views.get(relid)) {
            if let Phase::Reading(reading) = &view.phase {
                // Its first time is before all that is going to be decoded.
                self.capture.come_to(reading.as_of);
                self.checkpoints.saved.insert(view.relid);
                pgrx::log!("pg_eddy: view {} goes on from the checkpoint", view.name);
                self.checkpoints.restoring.iter_mut().for_each(|it| it.is_replaying = true);
            }
        }
        others
    }

    /// That with which a view can go on.
    fn saved_state(&self, view: ViewId) -> Option<Saved> {
        let Checkpoints { restoring: Some(restoring), folder, .. } = &self.checkpoints else {
            return None;
        };
        let saved = restoring.of(view)?;
        let name = self.views.get(&view).map_or("", |view| &view.name);
        let trouble = if self.states.is_apart(view) {
            Some("it was not at the point of the others".to_owned())
        } else {
            match xact::try_run(|| is_as_saved(view, saved)) {
                Ok(true) => None,
                Ok(false) => Some("it, or a table of it, is not what it was".to_owned()),
                Err(caught) => Some(caught.message),
            }
        };
        match trouble {
            None => Some(Saved {
                state: folder.state(restoring.number(), view),
                heap: Vouched { file: saved.file, rows: saved.rows, is_current: false },
            }),
            Some(trouble) => {
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

    /// Views that go on are at the point at which the heaps are, once they have computed all up to there.
    pub(in crate::worker) fn end_replay(&mut self) {
        let position = self.position();
        let Some(restoring) = &mut self.checkpoints.restoring else { return };
        restoring.is_open = false;
        if !restoring.is_replaying || position < restoring.heaps {
            return;
        }
        let is_going_on = |view: &View| match &view.phase {
            Phase::Reading(reading) => reading.goes_on.is_some(),
            Phase::Attached(attachment) => {
                attachment.is_behind_heap
                    && (attachment.is_at_work()
                        || self.capture.has_steps(attachment.dataflow)
                        || self.capture.is_feeding(attachment.dataflow))
            }
            Phase::Waiting { .. } | Phase::Failed { .. } => false,
        };
        if self.views.values().any(is_going_on) {
            return;
        }
        restoring.is_replaying = false;
        self.checkpoints.folder.forget_attempts();
        // Snapshots from before it may be of another state, as for a heap that was looked at and found right.
        let xid = xact::run(|| xact::full_xid(xact::take_xid()));
        let behind = |view: &&View| view.served().is_some_and(|a| a.is_behind_heap);
        let there: Vec<ViewId> =
            self.views.values().filter(behind).map(|view| view.relid).collect();
        for relid in there {
            self.note_there(relid, xid);
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
        note_stored(view, &Stored { is_first: true, rows: 0, transactions: 0, changed: xid });
        self.wake_above(relid);
    }
}

/// Whether a view is what it was when it was saved. Needs a transaction with a snapshot.
fn is_as_saved(view: ViewId, saved: &SavedView) -> bool {
    let heap = |heap: crate::pg::relation::RelationRef<'_>| (heap.file(), heap.is_populated());
    let is_same_heap = with_relation(view, Lock::AccessShare, heap) == Some((saved.file, true));
    let made_from = || {
        let sources = sources_of(view).ok()?;
        Some(made_from(&sources.compiled, &sources.members))
    };
    is_same_heap && made_from().is_some_and(|made_from| made_from == saved.made_from)
}

/// Stands for all that a dataflow is made from: the query and what it calls, the tables and the files that their rows are in, the
/// server, the order of texts. Needs a transaction.
pub(super) fn made_from(compiled: &CompiledView, members: &[BTreeSet<RelationId>]) -> String {
    let mut text = format!("{compiled:?} {members:?} {}", env!("CARGO_PKG_VERSION"));
    let _ = write!(text, " {} {:?}", pgrx::pg_sys::PG_VERSION_NUM, catalog::collation_versions());
    for table in members.iter().flatten() {
        let file = with_relation(*table, Lock::AccessShare, |table| table.file());
        let _ = write!(text, " {file:?}");
    }
    format!("{:032x}", Keys([1, 2]).hash(text.as_bytes()))
}
