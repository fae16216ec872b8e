//! Views that were at work when a worker, its engine's process, or the whole server, died: they are attached last, one at a time, so that the
//! others are there in any case, and the next death says more; one that ends the process again and again is in error.

use super::problem::Problem;
use super::view::{Attachment, Phase, View};
use crate::errors::Error;
use crate::pg::ids::ViewId;
use crate::pg::markers::{self, Record};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Deaths of which a view is the known cause, after which it is in error.
const CERTAIN: u32 = 2;

/// Deaths, one after the other, while it was being attached, when nobody knows the cause. A kill at the wrong moment may
/// meet anybody, but not time and again.
const POSSIBLE: u32 = 4;

/// A suspect that has been maintained this long is none any more.
const PROBATION: Duration = Duration::from_secs(20);

/// What an owner's code may do to the worker is not tried again for this long after it has ended it: assistants run it.
const MISTRUST: Duration = Duration::from_secs(600);

/// A view that takes longer to attach does not keep suspects waiting.
const PATIENCE: Duration = Duration::from_secs(5);

fn log(records: &[Record]) {
    for Record { relid, culprit, suspect, .. } in records {
        pgrx::log!("pg_eddy: view {relid} was at work when a process ended, the cause of it {culprit} times, at work {suspect} times");
    }
}

/// What is known of views from workers that died.
pub struct Suspects {
    records: BTreeMap<ViewId, Record>,
    /// Whether the last death was that of the engine's process alone.
    is_of_engine: bool,
    /// Since when suspects are together with the others.
    since: BTreeMap<ViewId, Instant>,
    /// Owners of views that are known to have ended a process, and since when that is known.
    mistrusted: BTreeSet<u32>,
    began: Instant,
}

impl Suspects {
    /// From what is known; `is_of_engine` if the last worker ended because its engine had.
    pub fn new(records: Vec<Record>, is_of_engine: bool) -> Suspects {
        log(&records);
        let culprits = records.iter().filter(|record| record.culprit > 0);
        let mistrusted = culprits.map(|record| record.owner).collect();
        let records = records.into_iter().map(|record| (record.relid, record)).collect();
        let (since, began) = (BTreeMap::new(), Instant::now());
        Suspects { records, is_of_engine, since, mistrusted, began }
    }

    /// The engine's process has died: all views are attached anew. No code of users runs there.
    pub fn note_engine_died(&mut self) {
        let records = markers::note_engine_died();
        log(&records);
        self.records = records.into_iter().map(|record| (record.relid, record)).collect();
        self.is_of_engine = true;
        self.since.clear();
    }

    /// Whether code of this user is not for the worker, which would take all views with it.
    pub fn mistrusts(&self, user: u32) -> bool {
        self.mistrusted.contains(&user) && self.began.elapsed() < MISTRUST
    }

    /// Why a view whose heap is in a file is not to be attached at all.
    pub fn verdict(&mut self, relid: ViewId, file: u32) -> Option<Problem> {
        let record = self.records.get(&relid)?;
        if record.file != file {
            // REFRESH has made a new one: it gets another chance.
            self.forgive(relid);
            return None;
        }
        let times = if record.culprit >= CERTAIN { record.culprit } else { record.suspect };
        let is_guilty = record.culprit >= CERTAIN || record.suspect >= POSSIBLE;
        let what = if self.is_of_engine { "its engine" } else { "the server" };
        is_guilty.then(|| Error::ended(what, times).into())
    }

    /// Whether a view was at work when a process ended.
    pub fn has(&self, relid: ViewId) -> bool {
        self.records.contains_key(&relid)
    }

    /// Of the views that are due to be attached, those whose turn it is.
    pub fn choose(&self, due: Vec<ViewId>, views: &BTreeMap<ViewId, View>) -> Vec<ViewId> {
        let is_suspect = |relid: &ViewId| self.records.contains_key(relid);
        let (suspects, others): (Vec<ViewId>, Vec<ViewId>) = due.into_iter().partition(is_suspect);
        let is_busy = views.values().any(|view| match &view.phase {
            Phase::Waiting { attempts, .. } => *attempts == 0 && !is_suspect(&view.relid),
            Phase::Reading(reading) => reading.since.elapsed() < PATIENCE,
            Phase::Attached(attachment) => {
                !attachment.is_stored() && attachment.since.elapsed() < PATIENCE
            }
            Phase::Failed { .. } => false,
        });
        match (others.is_empty(), is_busy) {
            // The least suspect one: so kills from outside do not meet the same view each time, and the culprit comes last.
            (true, false) => {
                suspects.into_iter().min_by_key(|relid| self.evidence(*relid)).into_iter().collect()
            }
            _ => others,
        }
    }

    /// How much speaks against a view.
    fn evidence(&self, relid: ViewId) -> (u32, u32) {
        self.records.get(&relid).map_or((0, 0), |record| (record.culprit, record.suspect))
    }

    /// Forgives the suspects that have been together with the others for long enough.
    pub fn watch(&mut self, views: &BTreeMap<ViewId, View>) {
        if self.records.is_empty() {
            return;
        }
        let is_together = |relid: &ViewId| {
            let view = views.get(relid).filter(|view| view.former.is_none());
            view.and_then(View::served).is_some_and(Attachment::is_together)
        };
        let now = Instant::now();
        let relids: Vec<ViewId> = self.records.keys().copied().collect();
        for relid in relids {
            if !is_together(&relid) {
                self.since.remove(&relid);
            } else if *self.since.entry(relid).or_insert(now) + PROBATION <= now {
                self.forgive(relid);
            }
        }
    }

    fn forgive(&mut self, relid: ViewId) {
        markers::forgive(relid);
        self.records.remove(&relid);
        self.since.remove(&relid);
    }
}
