//! Taking a checkpoint.

use super::made_from::made_from_of;
use super::manifest::{Manifest, SavedView};
use super::record::{Prepared, Round};
use crate::pg::crash_point::{self, CrashPoint};
use crate::pg::ids::ViewId;
use crate::pg::{process, progress, wal, xact};
use crate::worker::main_loop::Worker;
use crate::worker::naming::relid_of;
use crate::worker::view::{Attachment, Phase, View};
use engine::DataflowId;
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

/// Between two that are taken for views of which there is none is so long at least.
const PAUSE: Duration = Duration::from_secs(10);

/// A view that is at work when a checkpoint is due is waited for so long.
const PATIENCE: Duration = Duration::from_secs(10);

impl Attachment {
    /// Whether all that it was fed is in its dataflow, and in the heap.
    fn can_be_saved(&self) -> bool {
        let is_written = self.is_stored() && self.lent.is_none() && self.output.is_empty();
        is_written
            && !self.is_behind_heap
            && self.is_together()
            && !self.is_at_work()
            && self.errs.is_empty()
    }
}

impl Worker {
    /// Begins a checkpoint if it is time for one, and everything is at one point.
    pub(in crate::worker) fn take_checkpoint(&mut self) {
        let Some(every) = self.checkpoints.every.filter(|_| self.decoder.lasts()) else { return };
        if self.checkpoints.round.is_some() {
            // Dataflows may have gone that were awaited.
            return self.end_checkpoint();
        }
        if self.checkpoints.is_replaying() {
            return;
        }
        let position = self.position();
        let kept = |view: &View| view.served().is_some_and(|a| a.is_kept) && view.former.is_none();
        let is_enough = position.saturating_sub(self.checkpoints.last) >= every;
        if !is_enough && !self.is_any_unsaved(kept) {
            self.checkpoints.prepared = None;
            return;
        }
        if self.finished.is_some() || self.failed_applies > 0 {
            return;
        }
        let Some(prepared) = self.checkpoints.prepared.take() else { return self.prepare(kept) };
        if position < prepared.from {
            self.checkpoints.prepared = Some(prepared);
            return;
        }
        let is_ready = |attachment: &Attachment| {
            attachment.can_be_saved()
                && !self.capture.has_steps(attachment.dataflow)
                && !self.capture.is_feeding(attachment.dataflow)
                && !self.is_view_ahead(relid_of(attachment.dataflow), attachment.fed)
        };
        let is_unready = |view: &View| kept(view) && !view.served().is_some_and(is_ready);
        if self.views.values().any(is_unready) && prepared.since.elapsed() < PATIENCE {
            self.checkpoints.prepared = Some(prepared);
            return;
        }
        let ready = self.views.values().filter(|view| kept(view));
        let ready: Vec<ViewId> = ready
            .filter(|view| view.served().is_some_and(is_ready))
            .map(|view| view.relid)
            .collect();
        self.begin_checkpoint(&ready, &prepared, position);
    }

    /// Looks at what views are made from. Where that is the same once everything has been decoded that has happened until now,
    /// it is what they are made from then.
    fn prepare(&mut self, kept: impl Fn(&View) -> bool) {
        let kept = self.views.values().filter(|view| kept(view));
        let made_from = |view: &View| Some((view.relid, made_from_of(view.served()?)?));
        let made_from = kept.filter_map(made_from).collect();
        self.decoder.note_running();
        let from = wal::insert_lsn();
        // Nobody else may write, or commit, for long.
        wal::flush_to(from);
        self.checkpoints.prepared = Some(Prepared { made_from, from, since: Instant::now() });
        process::wake_myself();
    }

    /// Whether there is none of a view, and it is no time for other ones: the last was long ago, and all others are there.
    fn is_any_unsaved(&self, kept: impl Fn(&View) -> bool) -> bool {
        let is_attaching =
            |view: &View| matches!(view.phase, Phase::Waiting { .. } | Phase::Reading(_));
        let is_unsaved = |view: &View| kept(view) && !self.checkpoints.saved.contains(&view.relid);
        self.checkpoints.begun.is_none_or(|begun| begun.elapsed() >= PAUSE)
            && self.views.values().any(is_unsaved)
            && !self.views.values().any(is_attaching)
    }

    fn begin_checkpoint(&mut self, ready: &[ViewId], prepared: &Prepared, position: u64) {
        let checkpoints = &mut self.checkpoints;
        checkpoints.begun = Some(Instant::now());
        checkpoints.saved = ready.iter().copied().collect();
        checkpoints.last = position;
        checkpoints.number += 1;
        if let Err(error) = checkpoints.folder.make() {
            return self.note_unsaved(&error);
        }
        let applied = xact::run(progress::read).unwrap_or(0);
        let manifest = Manifest::new(checkpoints.number, position, applied);
        let mut awaited = BTreeMap::new();
        for relid in ready {
            let Some(attachment) = self.views.get(relid).and_then(View::served) else { continue };
            let file = attachment.file().unwrap_or(0);
            let rows = attachment.rows_and_bytes().0.unwrap_or(0) as i64;
            let made_from = made_from_of(attachment);
            let is_same = made_from.as_ref() == prepared.made_from.get(relid);
            let Some(made_from) = made_from.filter(|_| is_same) else { continue };
            let keys = self.sort_keys.get(&attachment.dataflow);
            if let Some(keys) = keys {
                let path = self.checkpoints.folder.keys(manifest.number, *relid);
                let saved = match keys.can_be_saved() {
                    true => keys.save(&path).map_err(|error| error.to_string()),
                    false => Err("it has too many sort keys, or anonymous rows".to_owned()),
                };
                if let Err(error) = saved {
                    self.tell_unsaved(*relid, &error);
                    continue;
                }
            }
            let has_keys = keys.is_some();
            let path = self.checkpoints.folder.state(manifest.number, *relid);
            if let Some(engine) = self.engine.get_mut().and_then(|engine| engine.checkpoints()) {
                engine.save(attachment.dataflow, &path);
                let saved = SavedView { relation: relid.to_u32(), file, rows, has_keys, made_from };
                awaited.insert(attachment.dataflow, saved);
            }
        }
        self.checkpoints.round = Some(Round { manifest, began: Instant::now(), awaited, bytes: 0 });
        crash_point::reach(CrashPoint::Checkpoint);
        self.end_checkpoint();
    }

    /// A dataflow has been saved, or not.
    pub(in crate::worker) fn note_saved(
        &mut self,
        dataflow: DataflowId,
        outcome: Result<u64, String>,
    ) {
        let Some(round) = &mut self.checkpoints.round else { return };
        let Some(saved) = round.awaited.remove(&dataflow) else { return };
        match outcome {
            Ok(bytes) => {
                round.bytes += bytes;
                round.manifest.views.push(saved);
            }
            Err(error) => {
                self.checkpoints.folder.remove_state(round.manifest.number, saved.relation);
                self.tell_unsaved(ViewId::new(saved.relation), &error);
            }
        }
        self.end_checkpoint();
    }

    /// Ends a checkpoint if all have answered that are still there.
    fn end_checkpoint(&mut self) {
        let Some(round) = &mut self.checkpoints.round else { return };
        round.awaited.retain(|dataflow, _| self.dataflows.contains_key(dataflow));
        if !round.awaited.is_empty() {
            return;
        }
        let Some(mut round) = self.checkpoints.round.take() else { return };
        wal::flush_to(wal::insert_lsn());
        crash_point::reach(CrashPoint::CheckpointStore);
        let position = round.manifest.position;
        if let Err(error) = self.checkpoints.folder.store(&mut round.manifest) {
            return self.note_unsaved(&error);
        }
        self.checkpoints.is_stored = !round.manifest.views.is_empty();
        crash_point::reach(CrashPoint::CheckpointConfirm);
        self.decoder.confirm_for_good(position);
        pgrx::log!(
            "pg_eddy: checkpoint at {}: {} views, {} bytes, {:.3} s",
            wal::display(position),
            round.manifest.views.len(),
            round.bytes,
            round.began.elapsed().as_secs_f64()
        );
    }

    fn tell_unsaved(&self, view: ViewId, error: &str) {
        if let Some(view) = self.views.get(&view) {
            pgrx::log!("pg_eddy: view {} was not saved: {error}", view.name);
        }
    }

    /// There is no new checkpoint.
    fn note_unsaved(&self, error: &io::Error) {
        pgrx::warning!(
            "pg_eddy: no checkpoint can be written to \"{}\", the WAL from the one before on is kept: {error}",
            self.checkpoints.folder.path().display()
        );
    }
}
