//! Inputs of a dataflow: one per source and worker, fed by the worker's command loop.
//!
//! An input remembers the rows it has passed on (TRUNCATE retracts them), as plain counts: a time is
//! in the past as soon as the host says so, therefore no history is needed here.

use crate::diff::Mult;
use crate::render::Collection;
use crate::stamp::Stamp;
use crate::{Time, Updates};
use differential_dataflow::AsCollection;
use hashbrown::hash_map::{Entry, HashMap};
use planner::plan::Diff;
use planner::row::Row;
use std::cell::RefCell;
use std::rc::Rc;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::Scope;
use timely::scheduling::Activator;

/// What the command loop has put down for the input operator to pick up.
struct Queue {
    updates: Vec<(Row, Time, Mult)>,
    frontier: Time,
}

/// The worker's end of an input.
pub(crate) struct Input {
    queue: Rc<RefCell<Queue>>,
    activator: Activator,
    contents: Contents,
}

impl Input {
    /// Passes on updates.
    pub(crate) fn update(&mut self, updates: Updates<Row>) {
        let mut queue = self.queue.borrow_mut();
        for (row, time, diff) in updates {
            if let Some(truncated) = self.contents.record(&row, time, diff) {
                queue.updates.push((row.clone(), truncated, Mult(-diff)));
            }
            queue.updates.push((row, time, Mult(diff)));
        }
        self.activator.activate();
    }

    /// Retracts at `time` everything fed so far with times up to it.
    pub(crate) fn truncate(&mut self, time: Time) {
        let retractions = self.contents.truncate(time);
        let updates = retractions.into_iter().map(|(row, diff)| (row, time, Mult(-diff)));
        self.queue.borrow_mut().updates.extend(updates);
        self.activator.activate();
    }

    /// Promises that no update has a time before `time`.
    pub(crate) fn advance(&mut self, time: Time) {
        self.contents.advance(time);
        self.queue.borrow_mut().frontier = time;
        self.activator.activate();
    }
}

/// Renders an input that is empty before `as_of`.
pub(crate) fn render_input<'s, const LOOPS: usize>(
    scope: Scope<'s, Stamp<LOOPS>>,
    as_of: Time,
) -> (Input, Collection<'s, Row, LOOPS>) {
    let queue = Rc::new(RefCell::new(Queue { updates: Vec::new(), frontier: as_of }));
    let mut input = None;
    let stream =
        source::<_, CapacityContainerBuilder<Vec<_>>, _, _>(scope, "Input", |cap, info| {
            input = Some(Input {
                queue: Rc::clone(&queue),
                activator: scope.activator_for(info.address),
                contents: Contents::default(),
            });
            let mut capability = cap;
            capability.downgrade(&Stamp::of(as_of));
            move |output| {
                let mut queue = queue.borrow_mut();
                if !queue.updates.is_empty() {
                    let updates = queue.updates.drain(..);
                    let stamped = updates.map(|(row, time, diff)| (row, Stamp::of(time), diff));
                    output.session(&capability).give_iterator(stamped);
                    queue.updates.shrink_to(1 << 10);
                }
                if capability.time().time < queue.frontier {
                    capability.downgrade(&Stamp::of(queue.frontier));
                }
            }
        });
    (input.expect("the operator is built before source() returns"), stream.as_collection())
}

/// The rows an input holds.
#[derive(Default)]
struct Contents {
    /// As of the last `advance`.
    rows: HashMap<Row, Diff>,
    /// Updates since, in the order they came.
    recent: Vec<(Row, Time, Diff)>,
    /// Times of truncations since.
    truncations: Vec<Time>,
}

impl Contents {
    /// Notes an update. If a truncation at a later time has been fed already, the update is void
    /// from that time on, which is returned.
    fn record(&mut self, row: &Row, time: Time, diff: Diff) -> Option<Time> {
        let truncated = self.truncations.iter().copied().filter(|t| *t > time).min();
        if truncated.is_none() {
            self.recent.push((row.clone(), time, diff));
        }
        truncated
    }

    /// Forgets what was fed with times up to `time`, and returns it.
    fn truncate(&mut self, time: Time) -> Vec<(Row, Diff)> {
        self.truncations.push(time);
        let recent = std::mem::take(&mut self.recent);
        for (row, at, diff) in recent {
            if at <= time {
                add(&mut self.rows, row, diff);
            } else {
                self.recent.push((row, at, diff));
            }
        }
        std::mem::take(&mut self.rows).into_iter().collect()
    }

    /// No update before `time` will come any more.
    fn advance(&mut self, time: Time) {
        let recent = std::mem::take(&mut self.recent);
        for (row, at, diff) in recent {
            if at < time {
                add(&mut self.rows, row, diff);
            } else {
                self.recent.push((row, at, diff));
            }
        }
        self.truncations.retain(|t| *t >= time);
    }
}

fn add(rows: &mut HashMap<Row, Diff>, row: Row, diff: Diff) {
    match rows.entry(row) {
        Entry::Vacant(entry) => {
            entry.insert(diff);
        }
        Entry::Occupied(mut entry) => {
            let sum = entry.get().saturating_add(diff);
            if sum == 0 {
                entry.remove();
            } else {
                entry.insert(sum);
            }
        }
    }
}
