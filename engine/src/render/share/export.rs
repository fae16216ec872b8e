//! What the keeper of an index and its readers have together: which batches make it up, who reads them, and how far they may be compacted.

use super::wake::{settle, Due, Importer};
use differential_dataflow::trace::BatchReader;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use timely::progress::frontier::{AntichainRef, MutableAntichain};
use timely::progress::{Antichain, Timestamp};

/// One worker's share of an index, as it is published.
pub(in crate::render) struct Export<B: BatchReader>(Mutex<Published<B>>);

/// What comes to a reader, in order.
pub(super) enum Event<B: BatchReader> {
    Batch(B),
    /// All before it has come.
    Frontier(Antichain<B::Time>),
}

/// A dataflow that reads the index.
struct Reader<B: BatchReader> {
    events: VecDeque<Event<B>>,
    /// It had the batches before this from the start.
    started_at: Antichain<B::Time>,
    importer: Importer<B::Time>,
    sees: Sees<B>,
}

/// Whether a reader sees anything of a batch.
pub(super) type Sees<B> = Box<dyn Fn(&B) -> bool + Send>;

/// Updates beyond which nobody looks whether a reader sees some of them.
const MOST_LOOKED_AT: usize = 64;

pub(super) struct Published<B: BatchReader> {
    /// The batches of the trace, in the order of their times.
    pub(super) batches: Vec<B>,
    /// Readers have been told that all before it has come.
    told: Antichain<B::Time>,
    /// What the keeper, and each trace of a reader, still asks for.
    logical: MutableAntichain<B::Time>,
    physical: MutableAntichain<B::Time>,
    /// How far batches may have been compacted.
    compacted: Compaction<B::Time>,
    readers: BTreeMap<u64, Reader<B>>,
    next_reader: u64,
}

/// Frontiers up to which times are not told apart, and batches are merged.
#[derive(Clone)]
pub(super) struct Compaction<T> {
    pub(super) logical: Antichain<T>,
    pub(super) physical: Antichain<T>,
}

impl<T: Timestamp> Compaction<T> {
    /// Of both kinds up to one frontier.
    fn to(frontier: &Antichain<T>) -> Self {
        Compaction { logical: frontier.clone(), physical: frontier.clone() }
    }
}

fn update<T: Timestamp>(frontier: &mut MutableAntichain<T>, times: &Antichain<T>, count: i64) {
    frontier.update_iter(times.iter().map(|time| (time.clone(), count)));
}

impl<B: BatchReader + Clone> Export<B> {
    /// Of an index that is empty, and kept by nobody yet.
    pub(in crate::render) fn new() -> Self {
        let start = Antichain::from_elem(B::Time::minimum());
        Export(Mutex::new(Published {
            batches: Vec::new(),
            told: start.clone(),
            logical: start.clone().into(),
            physical: start.clone().into(),
            compacted: Compaction::to(&start),
            readers: BTreeMap::new(),
            next_reader: 0,
        }))
    }

    /// How many updates there are in all batches.
    pub(in crate::render) fn updates(&self) -> usize {
        self.lock().batches.iter().map(BatchReader::len).sum()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Published<B>> {
        // A thread that was stopped in the middle has left lists that are whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B: BatchReader + Clone> Published<B> {
    /// A new reader, whose thread is at work: what there is comes first.
    pub(super) fn register(&mut self, importer: Importer<B::Time>, sees: Sees<B>) -> u64 {
        let minimum = || Antichain::from_elem(B::Time::minimum());
        let started_at = self.batches.last().map_or_else(minimum, |batch| batch.upper().clone());
        let batches = self.batches.iter().filter(|batch| !batch.is_empty()).cloned();
        let mut events: VecDeque<_> = batches.map(Event::Batch).collect();
        events.push_back(Event::Frontier(self.told.clone()));
        let updates = self.batches.iter().map(BatchReader::len).sum();
        let seen_to = self.told.first().or(started_at.first()).cloned();
        settle(importer.tell(&self.told, updates, seen_to).into_iter().collect());
        self.next_reader += 1;
        self.readers.insert(self.next_reader, Reader { events, started_at, importer, sees });
        self.next_reader
    }

    pub(super) fn unregister(&mut self, reader: u64) {
        self.readers.remove(&reader);
    }

    pub(super) fn take_events(&mut self, reader: u64) -> VecDeque<Event<B>> {
        self.readers.get_mut(&reader).map(|r| std::mem::take(&mut r.events)).unwrap_or_default()
    }

    /// Batches have come; all before `upper` has. Answers which readers have something to do about it.
    pub(super) fn tell(
        &mut self,
        new: &[B],
        upper: AntichainRef<'_, B::Time>,
    ) -> Vec<Due<B::Time>> {
        let is_news = self.told.borrow() != upper;
        if new.is_empty() && !is_news {
            return Vec::new();
        }
        self.told = upper.to_owned();
        let updates: usize = new.iter().map(BatchReader::len).sum();
        let mut due = Vec::new();
        for reader in self.readers.values_mut() {
            let is_new = |batch: &&B| {
                !batch.is_empty()
                    && !timely::PartialOrder::less_equal(batch.upper(), &reader.started_at)
            };
            let batches = new.iter().filter(is_new);
            let is_seen = |batch: &&B| updates > MOST_LOOKED_AT || (reader.sees)(batch);
            let seen = batches.clone().filter(is_seen);
            let seen_to = seen.filter_map(|batch| batch.upper().first()).max().cloned();
            reader.events.extend(batches.cloned().map(Event::Batch));
            if is_news {
                reader.events.push_back(Event::Frontier(self.told.clone()));
            }
            due.extend(reader.importer.tell(&self.told, updates, seen_to));
        }
        due
    }

    /// A new trace of a reader: what it asks for, which is what batches have not been compacted beyond.
    pub(super) fn ask(&mut self) -> Compaction<B::Time> {
        let asked = self.compacted.clone();
        self.count(&asked, 1);
        asked
    }

    /// There are so many more traces that ask for this.
    pub(super) fn count(&mut self, asked: &Compaction<B::Time>, traces: i64) {
        update(&mut self.logical, &asked.logical, traces);
        update(&mut self.physical, &asked.physical, traces);
    }

    /// One asks for later times than before.
    pub(super) fn replace(&mut self, before: &Compaction<B::Time>, now: &Compaction<B::Time>) {
        self.count(now, 1);
        self.count(before, -1);
    }

    /// Replaces what the keeper asks for by a later frontier, and answers how far batches may be compacted from now on.
    pub(super) fn hold(
        &mut self,
        before: &Antichain<B::Time>,
        now: &Antichain<B::Time>,
    ) -> Compaction<B::Time> {
        self.replace(&Compaction::to(before), &Compaction::to(now));
        // Who comes to read asks for no more than that.
        self.compacted = Compaction {
            logical: self.logical.frontier().to_owned(),
            physical: self.physical.frontier().to_owned(),
        };
        self.compacted.clone()
    }
}
