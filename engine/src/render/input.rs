//! Inputs of a dataflow: one per source and worker, fed by the worker's command loop.
//!
//! TRUNCATE retracts what an input has passed on: see [`super::contents`].

use super::contents::{Contents, Holder, Taken};
use super::storage::Storage;
use crate::checkpoint::{self, frozen, Frozen, Part};
use crate::core::collection::Collection;
use crate::core::diff::Mult;
use crate::core::monitor::{make_room, Guard};
use crate::core::stamp::Stamp;
use crate::core::updates::{Time, Updates};
use crate::layout::row_work::RowWork;
use crate::layout::{ColumnType, Layout, Tuple};
use differential_dataflow::AsCollection;
use plan::row::Row;
use plan::{Diff, Mfp};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::operators::generic::operator::{empty, source};
use timely::dataflow::Scope;
use timely::scheduling::Activator;

/// The worker's end of an input.
pub(crate) trait Feed {
    /// Passes on updates.
    fn update(&mut self, updates: Updates<Row>);

    /// Retracts at `time` everything fed so far with times up to it.
    fn truncate(&mut self, time: Time);

    /// Promises that no update has a time before `time`.
    fn advance(&mut self, time: Time);

    /// The rows that it remembers, if it is fed.
    fn part(&self) -> Option<&dyn Part>;
}

/// What the rows that an input remembers are saved as.
pub(crate) const PART: &str = "Input";

/// What the command loop has put down for the input operator to pick up.
struct Queue<R> {
    updates: Vec<(R, Time, Mult)>,
    /// Rows to retract, with the time of it. There may be more than fit into memory.
    retractions: VecDeque<(Time, Taken<R>)>,
    frontier: Time,
    /// Times at which the holder's rows are to be retracted, ascending.
    truncations: VecDeque<Time>,
}

/// Retractions that the operator passes on before it lets others work.
const BURST: usize = 1 << 14;

/// Who holds an input's rows; found while the plan is rendered.
pub(crate) type Held<R> = Rc<RefCell<Option<Box<dyn Holder<R>>>>>;

struct Input<L: Layout, S: Storage> {
    queue: Rc<RefCell<Queue<L::Row>>>,
    activator: Activator,
    holder: Held<L::Row>,
    /// The rows that the holder leaves out; all, if there is none.
    contents: Contents<S::Counted<L::Row>>,
    /// The others of the time fed last.
    latest: Vec<(L::Row, Diff)>,
    latest_time: Time,
    shape: L::Shape,
    /// Passes the rows that somebody has a use for.
    wanted: Option<RowWork<L, L::Row>>,
    /// Told the time before which nothing comes any more.
    told: Box<dyn Fn(Time)>,
    guard: Guard,
}

impl<L: Layout, S: Storage> Input<L, S> {
    fn is_wanted(&self, row: &L::Row) -> bool {
        match &self.wanted {
            Some(RowWork::Map(wanted)) => wanted.apply(&[row.view()]).is_some(),
            _ => true,
        }
    }

    /// Notes an update. If a truncation at a later time has been fed already, the update is void
    /// from that time on, which is returned.
    fn record(&mut self, row: &L::Row, time: Time, diff: Diff) -> Option<Time> {
        if self.holder.borrow().as_ref().is_none_or(|holder| holder.leaves_out(row)) {
            return self.contents.record(row, time, diff);
        }
        if time != self.latest_time {
            self.latest_time = time;
            self.latest.clear();
        }
        self.latest.push((row.clone(), diff));
        None
    }
}

impl<L: Layout, S: Storage> Feed for Input<L, S> {
    fn update(&mut self, updates: Updates<Row>) {
        let queue = Rc::clone(&self.queue);
        let mut queue = queue.borrow_mut();
        make_room(&mut queue.updates, updates.len());
        for (row, time, diff) in updates {
            self.guard.proceed(1);
            // What is kept is to be on the dataflow's account, and a block stays on the one it came with.
            let is_block = L::KEEPS_ROWS && row.heap_bytes() > 0;
            let row = if is_block { Row::from_bytes(row.as_bytes()) } else { row };
            let row = match L::Row::from_row(row, &self.shape) {
                Ok(row) => row,
                Err(error) => return self.guard.refuse(error),
            };
            if !self.is_wanted(&row) {
                continue;
            }
            if let Some(truncated) = self.record(&row, time, diff) {
                queue.updates.push((row.clone(), truncated, Mult(-diff)));
            }
            queue.updates.push((row, time, Mult(diff)));
        }
        self.activator.activate();
    }

    fn truncate(&mut self, time: Time) {
        let taken = self.contents.truncate(time);
        let mut queue = self.queue.borrow_mut();
        queue.retractions.push_back((time, taken));
        if self.holder.borrow().is_some() {
            // A transaction may truncate twice; what was there before it goes but once.
            if queue.truncations.back() != Some(&time) {
                queue.truncations.push_back(time);
            }
            if self.latest_time == time {
                let latest = self.latest.drain(..).map(|(row, diff)| (row, time, Mult(-diff)));
                queue.updates.extend(latest);
            }
        }
        self.activator.activate();
    }

    fn advance(&mut self, time: Time) {
        self.contents.advance(time);
        if self.latest_time < time {
            self.latest = Vec::new();
        }
        let mut queue = self.queue.borrow_mut();
        queue.frontier = time;
        if let Some(holder) = self.holder.borrow_mut().as_mut() {
            holder.advance(queue.truncations.front().map_or(time, |first| time.min(*first)));
        }
        self.activator.activate();
        (self.told)(time);
    }

    fn part(&self) -> Option<&dyn Part> {
        Some(self)
    }
}

impl<L: Layout, S: Storage> Part for Input<L, S> {
    fn advance(&mut self, _time: Time) {}

    fn is_complete_to(&self, _time: Time) -> bool {
        true
    }

    fn freeze(&self) -> Box<dyn Frozen> {
        let rows = self.contents.rows().map(|(row, copies)| ((row, ()), (), copies));
        frozen::<L::Row, (), (), Mult>(rows.collect())
    }
}

/// An input as it is rendered: the worker's end, the end of whoever will hold its rows, its rows.
pub(crate) type Rendered<'s, L, const LOOPS: usize> =
    (Box<dyn Feed>, Held<<L as Layout>::Row>, Collection<'s, <L as Layout>::Row, LOOPS>);

/// Renders an input that is empty before `as_of`. Rows are left out that would not pass what is `wanted`; the time before
/// which nothing comes any more is told.
pub(crate) fn render_input<'s, L: Layout, S: Storage, const LOOPS: usize>(
    scope: Scope<'s, Stamp<LOOPS>>,
    as_of: Time,
    (columns, wanted): (&[ColumnType], Option<&Mfp>),
    told: Box<dyn Fn(Time)>,
    guard: Guard,
) -> Rendered<'s, L, LOOPS> {
    let queue = Rc::new(RefCell::new(Queue::new(as_of)));
    let held: Held<L::Row> = Held::default();
    let mut activator = None;
    let (operator_queue, holder) = (Rc::clone(&queue), Rc::clone(&held));
    let stream =
        source::<_, CapacityContainerBuilder<Vec<_>>, _, _>(scope, "Input", |cap, info| {
            activator = Some(scope.activator_for(Rc::clone(&info.address)));
            let again = scope.activator_for(info.address);
            let mut capability = cap;
            capability.downgrade(&Stamp::of(as_of));
            move |output| {
                let mut queue = operator_queue.borrow_mut();
                queue.take_retractions();
                if !queue.updates.is_empty() {
                    let updates = queue.updates.drain(..);
                    let stamped = updates.map(|(row, time, diff)| (row, Stamp::of(time), diff));
                    output.session(&capability).give_iterator(stamped);
                    queue.updates.shrink_to(1 << 10);
                }
                while let Some(time) = queue.next_truncation() {
                    let retracted = holder.borrow_mut().as_mut().map(|h| h.retract(time));
                    let Some(rows) = retracted.unwrap_or_default() else {
                        // Rows are on their way to the holder.
                        again.activate();
                        break;
                    };
                    let updates = rows
                        .into_iter()
                        .map(|(row, diff)| (row, Stamp::of(time), Mult(diff.0.saturating_neg())));
                    output.session(&capability).give_iterator(updates);
                    queue.truncations.pop_front();
                }
                let frontier = queue.next_truncation().unwrap_or(queue.frontier);
                if !queue.retractions.is_empty() {
                    again.activate();
                } else if capability.time().time < frontier {
                    capability.downgrade(&Stamp::of(frontier));
                }
            }
        });
    let mut contents = Contents::new();
    let before = checkpoint::take::<L::Row, (), (), Mult>(PART).unwrap_or_default();
    let before = before.into_iter().flatten().map(|((row, ()), (), copies)| (row, copies));
    contents.begin_with(before, as_of);
    let activator = activator.expect("the operator is built before source() returns");
    let input = Input::<L, S> {
        queue,
        activator,
        holder: Rc::clone(&held),
        contents,
        latest: Vec::new(),
        latest_time: as_of,
        shape: L::shape(columns),
        wanted: wanted.map(|wanted| RowWork::new(wanted.clone(), &[columns], &[])),
        told,
        guard,
    };
    (Box::new(input), held, stream.as_collection())
}

/// Of a source that is read from indexes only: nothing is fed, and nobody asks for its rows.
pub(crate) fn no_input<'s, L: Layout, const LOOPS: usize>(
    scope: Scope<'s, Stamp<LOOPS>>,
) -> Rendered<'s, L, LOOPS> {
    struct Nothing;
    impl Feed for Nothing {
        fn update(&mut self, _updates: Updates<Row>) {}
        fn truncate(&mut self, _time: Time) {}
        fn advance(&mut self, _time: Time) {}
        fn part(&self) -> Option<&dyn Part> {
            None
        }
    }
    (Box::new(Nothing), Held::default(), empty(scope).as_collection())
}

impl<R> Queue<R> {
    fn new(frontier: Time) -> Self {
        let (retractions, truncations) = (VecDeque::new(), VecDeque::new());
        Queue { updates: Vec::new(), retractions, frontier, truncations }
    }

    /// Makes updates of some retractions.
    fn take_retractions(&mut self) {
        let most = self.updates.len() + BURST;
        while let (true, Some((time, rows))) =
            (self.updates.len() < most, self.retractions.front_mut())
        {
            match rows.next() {
                Some((row, copies)) => self.updates.push((row, *time, Mult(-copies.0))),
                None => drop(self.retractions.pop_front()),
            }
        }
    }

    /// The first truncation, if everything up to its time has been fed.
    fn next_truncation(&self) -> Option<Time> {
        self.truncations.front().copied().filter(|time| *time < self.frontier)
    }
}
