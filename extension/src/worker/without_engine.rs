//! Views while there is no engine: it has ended, and they start afresh with the next one, or there is none to be had.

use super::main_loop::Worker;
use super::view::{Heals, Phase};
use crate::errors::Error;
use crate::pg::ids::ViewId;
use crate::pg::markers::{self, Work};
use crate::pg::process;
use crate::settings::EngineKind;
use crate::shared::Ending;
use engine::Engine;
use std::time::Instant;

impl Worker {
    /// Bytes that the worker and its engine have allocated.
    pub(super) fn allocated(&self) -> usize {
        self.engine.get().map_or_else(engine::memory::allocated, Engine::allocated)
    }

    /// The engine has ended: all views start afresh when there is another one, or the next worker goes on from a checkpoint.
    pub(super) fn note_engine_ended(&mut self, reason: &str) {
        if self.settings.kind == EngineKind::Process {
            self.suspects.note_engine_died();
            if self.checkpoints.is_any_there() {
                self.leave_to_next(reason);
            }
        }
        pgrx::warning!(
            "pg_eddy: the engine of this database has ended ({reason}), all its views start afresh"
        );
        let not_before = self.engine.note_ended();
        self.start_afresh(|phase| match phase {
            Phase::Failed {
                heals: Heals::OnRefresh { .. } | Heals::OnFewerIndexes { .. }, ..
            } => None,
            _ => Some(Phase::Waiting { not_before, attempts: 0 }),
        });
    }

    /// Views go on by what comes in the WAL after the checkpoint: a worker that has decoded that already cannot have it again.
    fn leave_to_next(&self, reason: &str) -> ! {
        pgrx::warning!(
            "pg_eddy: the engine of this database has ended ({reason}), its views go on from the checkpoint"
        );
        self.database.set_ending(Ending::Engine, reason);
        process::exit(0)
    }

    /// These views cannot be attached before that time, for want of an engine; it is an error of theirs if that is known.
    pub(super) fn wait_for_engine(&mut self, relids: Vec<ViewId>, why: Option<Error>, at: Instant) {
        for relid in relids {
            match &why {
                Some(error) => self.fail(relid, error.clone().into(), Heals::OnDdl),
                None => self.set_phase(relid, Phase::Waiting { not_before: at, attempts: 0 }),
            }
            if let Some(view) = self.views.get_mut(&relid) {
                view.try_again(at);
            }
            markers::end(relid, Work::Attach);
        }
    }
}
