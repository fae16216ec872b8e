//! What a worker knows of checkpoints: of those that it takes, and of the one that it goes on with.

use super::manifest::{Folder, Manifest, SavedView};
use crate::compile::SourceTable;
use crate::pg::decoding::{NoFreeSlot, Slot};
use crate::pg::ids::ViewId;
use crate::pg::{process, progress, xact};
use crate::settings;
use crate::worker::heap::Vouched;
use crate::worker::sources::Sources;
use engine::DataflowId;
use pgrx::pg_sys;
use plan::ViewPlan;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Instant;

/// What a worker knows of checkpoints.
pub struct Checkpoints {
    /// Bytes of WAL between two; `None` if none are taken.
    pub(super) every: Option<u64>,
    pub(super) folder: Folder,
    /// The position and the number of the last one, or where the worker began.
    pub(super) last: u64,
    pub(super) number: u64,
    /// The views of which there is one, be it of an earlier worker.
    pub(super) saved: BTreeSet<ViewId>,
    /// Whether one of some view is in the manifest.
    pub(super) is_stored: bool,
    /// When this worker began the last one.
    pub(super) begun: Option<Instant>,
    /// What is known for one that is due.
    pub(super) prepared: Option<Prepared>,
    /// One that is being taken.
    pub(super) round: Option<Round>,
    /// What this worker goes on with.
    pub(super) restoring: Option<Restoring>,
}

/// What views were made from when one became due.
pub(super) struct Prepared {
    pub(super) made_from: BTreeMap<ViewId, String>,
    /// Decoding has to reach this position.
    pub(super) from: u64,
    pub(super) since: Instant,
}

/// A checkpoint that is being taken.
pub(super) struct Round {
    pub(super) manifest: Manifest,
    pub(super) began: Instant,
    /// The dataflows that have not answered.
    pub(super) awaited: BTreeMap<DataflowId, SavedView>,
    pub(super) bytes: u64,
}

/// That with which a view goes on.
#[derive(Clone, Debug)]
pub struct Saved {
    /// Where the state of its dataflow is, and the sort keys that it holds.
    pub state: PathBuf,
    pub keys: Option<PathBuf>,
    /// Its heap, as of then.
    pub heap: Vouched,
    /// The views that it reads.
    pub beneath: BTreeSet<ViewId>,
}

/// What this worker goes on with.
pub struct Restoring {
    pub(super) manifest: Manifest,
    /// The heaps are as of this position, but for those of views that were behind: what is computed up to there has been written.
    pub(super) heaps: u64,
    /// Whether views may still go on: nothing has been decoded.
    pub(super) is_open: bool,
    /// Whether some do that have not come to where the heaps are.
    pub(super) is_replaying: bool,
}

impl Restoring {
    /// What was saved, if the heaps are not behind it.
    pub fn find(folder: &Folder) -> Result<Restoring, &'static str> {
        let manifest = folder.load()?;
        let applied = xact::run(progress::read).unwrap_or(0);
        if applied < manifest.applied {
            return Err("the views are as they were before it");
        }
        let heaps = applied.max(manifest.position);
        Ok(Restoring { manifest, heaps, is_open: true, is_replaying: false })
    }

    pub fn position(&self) -> u64 {
        self.manifest.position
    }

    pub fn number(&self) -> u64 {
        self.manifest.number
    }

    pub(super) fn of(&self, view: ViewId) -> Option<&SavedView> {
        self.manifest.views.iter().find(|saved| saved.relation == view.to_u32())
    }
}

/// The database is gone, or the extension of it.
pub fn remove_all(database: u32) {
    Folder::of(database).remove();
}

/// Whether a view's state is all in its dataflow, apart from that of views which it reads, and means the same to another process.
pub fn can_be_kept(sources: &Sources) -> bool {
    let query = &sources.compiled.query;
    let is_alone = sources.compiled.changes.is_none() && sources.compiled.mirror.is_none();
    let reads_clock = query.sources.iter().any(SourceTable::is_clock);
    !reads_clock && is_alone && !has_anonymous_rows(&query.plan)
}

/// Whether a plan has values of a type without a name, as the path of a CYCLE clause is: what its columns are goes by a number that
/// each process gives.
fn has_anonymous_rows(plan: &ViewPlan) -> bool {
    // A plan mentions types in many places, and all of them are written.
    serde_json::to_value(plan).map_or(true, |plan| mentions_record(&plan))
}

fn mentions_record(part: &Value) -> bool {
    let is_record = |fields: &Map<String, Value>| {
        let id = fields.get("Host").and_then(|host| host.get("id")).and_then(Value::as_u64);
        id == Some(pg_sys::RECORDOID.to_u32().into())
    };
    match part {
        Value::Array(parts) => parts.iter().any(mentions_record),
        Value::Object(fields) => is_record(fields) || fields.values().any(mentions_record),
        _ => false,
    }
}

impl Checkpoints {
    /// Takes the replication slot: the one that was left, if there is something to go on with from there, else a new one.
    pub fn take_slot() -> Result<(Slot, Checkpoints), NoFreeSlot> {
        let (every, folder) = (settings::checkpoint_wal(), Folder::of(process::database()));
        let found = every.map(|_| Restoring::find(&folder));
        let resumed = found.map(|found| -> Result<(Slot, Restoring), &'static str> {
            let found = found?;
            let slot = Slot::resume(found.position());
            Ok((slot.ok_or("the replication slot does not hold the WAL from there on")?, found))
        });
        let (slot, restoring) = match resumed {
            Some(Ok((slot, found))) => (slot, Some(found)),
            not_resumed => {
                if let (Some(Err(reason)), true) = (not_resumed, Slot::is_any_left()) {
                    pgrx::log!("pg_eddy: no view goes on from a checkpoint: {reason}");
                }
                Slot::remove_left();
                folder.remove();
                (Slot::create(every.is_some())?, None)
            }
        };
        let last = restoring.as_ref().map_or(0, Restoring::position);
        let number = restoring.as_ref().map_or(0, Restoring::number);
        let is_stored = restoring.as_ref().is_some_and(|it| !it.manifest.views.is_empty());
        let taken = Checkpoints {
            every,
            folder,
            last,
            number,
            saved: BTreeSet::new(),
            is_stored,
            begun: None,
            prepared: None,
            round: None,
            restoring,
        };
        Ok((slot, taken))
    }

    /// Whether dataflows are made so that they can be saved.
    pub fn are_taken(&self) -> bool {
        self.every.is_some()
    }

    /// Whether the next worker can go on from one.
    pub fn is_any_there(&self) -> bool {
        self.is_stored
    }

    /// Whether views may still go on: nothing has been decoded.
    pub fn is_open(&self) -> bool {
        self.restoring.as_ref().is_some_and(|restoring| restoring.is_open)
    }

    /// From now on something is decoded, which a view that goes on would miss.
    pub fn close(&mut self) {
        self.restoring.iter_mut().for_each(|restoring| restoring.is_open = false);
    }

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
}
