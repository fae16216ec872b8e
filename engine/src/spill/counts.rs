//! How often each datum is there: what an input has to know to take everything back.

use super::block::Update;
use super::chunk::{Chunk, Stored, TARGET};
use super::pager::Pager;
use crate::core::diff::Mult;
use crate::core::updates::Time;
use differential_dataflow::consolidation::consolidate_updates;
use differential_dataflow::trace::chunk::ChunkBatcher;
use differential_dataflow::trace::Batcher;
use std::rc::Rc;
use timely::container::PushInto;
use timely::progress::Antichain;

/// A multiset that can be added to, and taken as a whole.
pub(crate) struct Counts<D: Stored> {
    /// Updates whose time may still be told from others, as they came.
    recent: Vec<Update<D, (), Time, Mult>>,
    /// The same, of before.
    recent_chunks: Vec<Chunk<D, (), Time, Mult>>,
    /// All others: sorted runs, merged as they grow, and what is not sorted yet.
    past: ChunkBatcher<Chunk<D, (), (), Mult>>,
    past_unsorted: Vec<Update<D, (), (), Mult>>,
    pager: Rc<Pager>,
}

impl<D: Stored> Counts<D> {
    /// Nothing, kept by the dataflow that is being built.
    pub(crate) fn new() -> Self {
        Counts {
            recent: Vec::new(),
            recent_chunks: Vec::new(),
            past: Batcher::new(None, 0),
            past_unsorted: Vec::new(),
            pager: Pager::current(),
        }
    }

    pub(crate) fn add(&mut self, datum: D, time: Time, copies: Mult) {
        self.recent.push(((datum, ()), time, copies));
        if self.recent.len() >= TARGET {
            consolidate_updates(&mut self.recent);
            let chunk = Chunk::new(std::mem::take(&mut self.recent), self.pager());
            chunk.register();
            self.recent_chunks.push(chunk);
        }
    }

    /// Updates before `time` need not be told from one another any more.
    pub(crate) fn complete_before(&mut self, time: Time) {
        let chunks = std::mem::take(&mut self.recent_chunks);
        let recent = std::mem::take(&mut self.recent);
        for updates in chunks.into_iter().map(Chunk::into_rows).chain([recent]) {
            for ((datum, ()), at, copies) in updates {
                if at < time {
                    self.past_unsorted.push(((datum, ()), (), copies));
                } else {
                    self.add(datum, at, copies);
                }
            }
            if self.past_unsorted.len() >= TARGET {
                self.sort_past();
            }
        }
    }

    fn sort_past(&mut self) {
        let mut updates = std::mem::take(&mut self.past_unsorted);
        consolidate_updates(&mut updates);
        if !updates.is_empty() {
            self.past.push_into(Chunk::new(updates, self.pager()));
        }
    }

    /// Takes everything before `time`.
    pub(crate) fn take_before(&mut self, time: Time) -> impl Iterator<Item = (D, Mult)> + use<D> {
        self.complete_before(time);
        self.sort_past();
        let mut past = std::mem::replace(&mut self.past, Batcher::new(None, 0));
        let (chunks, _) = past.seal(Antichain::new());
        chunks.into_iter().flat_map(|chunk| {
            chunk.into_rows().into_iter().map(|((datum, ()), (), copies)| (datum, copies))
        })
    }

    fn pager(&self) -> Option<Rc<Pager>> {
        Some(Rc::clone(&self.pager))
    }
}
