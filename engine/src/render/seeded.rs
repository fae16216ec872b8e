//! Traces that start with what another one had.
//!
//! What a dataflow that is no more had in an arrangement becomes the first batch of the new one's. It must look to the
//! operators that read it as if it had always been there: none is told of it, each finds it when it looks. An operator begins
//! at the least of all times, and goes on where it is told that batches are empty; so the first batch is shown as an empty
//! one until all readers have passed it. They have when the first times have gone through the dataflow, before any update.

use crate::checkpoint::{self, Frozen, Part, Target, Unseeded, BLOCK};
use crate::core::monitor::look;
use crate::core::stamp::Stamp;
use crate::core::updates::Time;
use crate::spill::Stored;
use differential_dataflow::consolidation::consolidate;
use differential_dataflow::difference::Semigroup;
use differential_dataflow::logging::Logger;
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::trace::cursor::{cursor_list, CursorList};
use differential_dataflow::trace::implementations::spine_fueled::Spine;
use differential_dataflow::trace::{
    Batch, Builder, Cursor, Description, ExertionLogic, Navigable, Trace, TraceReader,
};
use std::any::Any;
use std::cell::RefCell;
use std::io;
use std::marker::PhantomData;
use timely::dataflow::operators::generic::OperatorInfo;
use timely::progress::frontier::AntichainRef;
use timely::progress::{Antichain, Timestamp};
use timely::scheduling::Activator;
use timely::PartialOrder;

thread_local! {
    /// What the next trace of this thread starts with: operators make theirs by themselves.
    static NEXT: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
}

/// A trace that may have been given its first batch.
pub(super) struct Seeded<B: Batch> {
    spine: Spine<B>,
    seed: Seed<B>,
}

/// The first batch.
enum Seed<B: Batch> {
    /// None, or all readers have passed it.
    Passed,
    /// It is not in the trace, which is empty before a time.
    Waiting { given: Given<B>, upper: Antichain<B::Time> },
    /// It is in the trace, and shown as an empty one.
    Hidden { batch: B },
}

/// What is left to a trace by whoever arranges.
struct Given<B> {
    batch: B,
    name: String,
    unseeded: Unseeded,
}

impl<B: Batch + Clone + 'static> TraceReader for Seeded<B> {
    type Time = B::Time;
    type Batch = B;

    fn batches_through(&mut self, upper: AntichainRef<'_, B::Time>) -> Option<Vec<B>> {
        match &self.seed {
            Seed::Passed => self.spine.batches_through(upper),
            Seed::Waiting { given, .. } => Some(vec![given.batch.clone()]),
            // Who asks for what was before its first time means this batch.
            Seed::Hidden { batch }
                if !PartialOrder::less_equal(&batch.upper().borrow(), &upper) =>
            {
                Some(vec![batch.clone()])
            }
            Seed::Hidden { .. } => self.spine.batches_through(upper),
        }
    }

    fn set_logical_compaction(&mut self, frontier: AntichainRef<'_, B::Time>) {
        self.spine.set_logical_compaction(frontier);
    }

    fn get_logical_compaction(&mut self) -> AntichainRef<'_, B::Time> {
        self.spine.get_logical_compaction()
    }

    fn set_physical_compaction(&mut self, frontier: AntichainRef<'_, B::Time>) {
        if let Seed::Hidden { batch } = &self.seed {
            if PartialOrder::less_equal(&batch.upper().borrow(), &frontier) {
                self.seed = Seed::Passed;
            }
        }
        self.spine.set_physical_compaction(frontier);
    }

    fn get_physical_compaction(&mut self) -> AntichainRef<'_, B::Time> {
        self.spine.get_physical_compaction()
    }

    fn map_batches<F: FnMut(&B)>(&self, mut f: F) {
        let empty =
            |lower: &Antichain<_>, upper: &Antichain<_>| B::empty(lower.clone(), upper.clone());
        match &self.seed {
            Seed::Passed => self.spine.map_batches(f),
            Seed::Waiting { upper, .. } => {
                let start = start();
                if *upper != start {
                    f(&empty(&start, upper));
                }
            }
            Seed::Hidden { batch: seed } => self.spine.map_batches(|batch| {
                match PartialOrder::less_equal(batch.upper(), seed.upper()) {
                    true => f(&empty(batch.lower(), batch.upper())),
                    false => f(batch),
                }
            }),
        }
    }
}

fn start<T: Timestamp>() -> Antichain<T> {
    Antichain::from_elem(T::minimum())
}

impl<B: Batch + Clone + 'static> Seeded<B> {
    /// The trace is empty before a time: the first batch takes the place of that.
    fn pass_to(&mut self, upper: Antichain<B::Time>) {
        let Seed::Waiting { given, .. } = std::mem::replace(&mut self.seed, Seed::Passed) else {
            return;
        };
        if !PartialOrder::less_equal(given.batch.upper(), &upper) {
            self.seed = Seed::Waiting { given, upper };
            return;
        }
        let Given { batch, name, unseeded } = given;
        self.spine.insert(batch.clone());
        if *batch.upper() != upper {
            self.spine.insert(B::empty(batch.upper().clone(), upper));
        }
        unseeded.borrow_mut().retain(|other| *other != name);
        self.seed = Seed::Hidden { batch };
    }
}

impl<B: Batch + Clone + 'static> Trace for Seeded<B> {
    fn new(info: OperatorInfo, logger: Option<Logger>, activator: Option<Activator>) -> Self {
        let given = NEXT.take().and_then(|given| given.downcast::<Given<B>>().ok());
        let seed = given.map_or(Seed::Passed, |given| {
            given.unseeded.borrow_mut().push(given.name.clone());
            Seed::Waiting { given: *given, upper: start() }
        });
        Seeded { spine: Spine::new(info, logger, activator), seed }
    }

    fn exert(&mut self) {
        self.spine.exert();
    }

    fn set_exert_logic(&mut self, logic: ExertionLogic) {
        self.spine.set_exert_logic(logic);
    }

    fn insert(&mut self, batch: B) {
        match &self.seed {
            Seed::Waiting { .. } => {
                assert!(batch.is_empty(), "nothing comes before what a trace starts with");
                self.pass_to(batch.upper().clone());
            }
            Seed::Passed | Seed::Hidden { .. } => self.spine.insert(batch),
        }
    }

    fn close(&mut self) {
        self.pass_to(Antichain::new());
        self.spine.close();
    }
}

/// The cursor of batches of plain keys, values, times and diffs.
pub(super) trait CursorOf<B, K, V, R, const LOOPS: usize>:
    for<'a> Cursor<
    Storage = B,
    Key<'a> = &'a K,
    Val<'a> = &'a V,
    Time = Stamp<LOOPS>,
    TimeGat<'a> = &'a Stamp<LOOPS>,
    Diff = R,
    DiffGat<'a> = &'a R,
>
where
    K: 'static,
    V: 'static,
    R: 'static,
{
}

impl<C, B, K, V, R, const LOOPS: usize> CursorOf<B, K, V, R, LOOPS> for C
where
    C: for<'a> Cursor<
        Storage = B,
        Key<'a> = &'a K,
        Val<'a> = &'a V,
        Time = Stamp<LOOPS>,
        TimeGat<'a> = &'a Stamp<LOOPS>,
        Diff = R,
        DiffGat<'a> = &'a R,
    >,
    K: 'static,
    V: 'static,
    R: 'static,
{
}

/// Arranges, in a dataflow that can be saved so that it is, and starts with what was.
pub(super) fn kept<'s, B, Bu, K, V, R, const LOOPS: usize>(
    name: &str,
    arrange: impl FnOnce() -> Arranged<'s, TraceAgent<Seeded<B>>>,
) -> Arranged<'s, TraceAgent<Seeded<B>>>
where
    B: Batch<Time = Stamp<LOOPS>>
        + Navigable<Cursor: CursorOf<B, K, V, R, LOOPS>>
        + Clone
        + 'static,
    Bu: Builder<Input = Vec<((K, V), Stamp<LOOPS>, R)>, Time = Stamp<LOOPS>, Output = B>,
    K: Stored,
    V: Stored,
    R: Stored + Semigroup,
{
    if !checkpoint::is_kept() {
        return arrange();
    }
    if let Some(blocks) = checkpoint::take::<K, V, Stamp<LOOPS>, R>(name) {
        let as_of = checkpoint::as_of();
        let description =
            Description::new(start(), Antichain::from_elem(Stamp::of(as_of)), start());
        let mut chain = blocks;
        chain.iter_mut().flatten().for_each(|(_, stamp, _)| stamp.time = as_of.saturating_sub(1));
        let batch = Bu::seal(&mut chain, description);
        // A number tells apart what has one name.
        let unseeded = checkpoint::unseeded();
        let name = format!("{name} {}", unseeded.borrow().len());
        NEXT.set(Some(Box::new(Given { batch, name, unseeded })));
    }
    let arranged = arrange();
    NEXT.take();
    // One whose input is closed from the beginning would never be scheduled, and not find that out.
    let address = arranged.trace.operator().address.clone();
    arranged.stream.scope().activator_for(address).activate();
    let trace = arranged.trace.clone();
    checkpoint::add(name, Saved::<B, K, V, R> { trace: RefCell::new(trace), kinds: PhantomData });
    arranged
}

/// An arrangement, as what is saved of it.
struct Saved<B: Batch + Clone + 'static, K, V, R> {
    trace: RefCell<TraceAgent<Seeded<B>>>,
    kinds: PhantomData<(K, V, R)>,
}

impl<B, K, V, R, const LOOPS: usize> Part for Saved<B, K, V, R>
where
    B: Batch<Time = Stamp<LOOPS>>
        + Navigable<Cursor: CursorOf<B, K, V, R, LOOPS>>
        + Clone
        + 'static,
    K: Stored,
    V: Stored,
    R: Stored + Semigroup,
{
    fn advance(&mut self, time: Time) {
        let frontier = [Stamp::of(time)];
        let trace = self.trace.get_mut();
        trace.set_logical_compaction(AntichainRef::new(&frontier));
        trace.set_physical_compaction(AntichainRef::new(&frontier));
    }

    fn is_complete_to(&self, time: Time) -> bool {
        let mut upper = Antichain::new();
        self.trace.borrow_mut().read_upper(&mut upper);
        upper.iter().all(|stamp| stamp.time >= time)
    }

    fn freeze(&self) -> Box<dyn Frozen> {
        let all = AntichainRef::new(&[]);
        let batches = self.trace.borrow_mut().batches_through(all).unwrap_or_default();
        let (cursor, batches) = cursor_list(batches);
        Box::new(Cut::<B, K, V, R> { cursor, batches, kinds: PhantomData })
    }
}

/// The batches of an arrangement, which nobody changes, and how far they have been written.
struct Cut<B: Batch + Navigable, K, V, R> {
    cursor: CursorList<B::Cursor>,
    batches: Vec<B>,
    kinds: PhantomData<(K, V, R)>,
}

impl<B, K, V, R, const LOOPS: usize> Frozen for Cut<B, K, V, R>
where
    B: Batch<Time = Stamp<LOOPS>> + Navigable<Cursor: CursorOf<B, K, V, R, LOOPS>>,
    K: Stored,
    V: Stored,
    R: Stored + Semigroup,
{
    /// Times do not count any more, but which iteration a row is of does.
    fn write(&mut self, target: &mut Target) -> io::Result<bool> {
        let Cut { cursor, batches, .. } = self;
        let (mut updates, mut history) = (Vec::new(), Vec::new());
        while let Some(key) = cursor.get_key(batches) {
            while let Some(value) = cursor.get_val(batches) {
                if updates.len() >= BLOCK {
                    look(updates.len());
                    target.block::<K, V, Stamp<LOOPS>, R>(&updates)?;
                    return Ok(true);
                }
                cursor.map_times(batches, |stamp, diff| {
                    history.push((Stamp { time: 0, ..*stamp }, diff.clone()));
                });
                consolidate(&mut history);
                let make = |(stamp, diff)| ((key.clone(), value.clone()), stamp, diff);
                updates.extend(history.drain(..).map(make));
                cursor.step_val(batches);
            }
            cursor.step_key(batches);
        }
        match updates.is_empty() {
            true => Ok(false),
            false => target.block(&updates).map(|()| false),
        }
    }
}
