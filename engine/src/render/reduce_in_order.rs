//! Grouping and aggregation outside of loops: one state per group, looked up once per update.

use super::extremes::Extreme;
use super::keyed::{Keyed, Slot};
use super::linear::split;
use super::ordered::InOrder;
use super::picks::Picks;
use super::reduce::{Arguments, Grouping, Outcome};
use super::{Bundle, Renderer};
use crate::diff::Mult;
use differential_dataflow::difference::{IsZero, Semigroup};
use differential_dataflow::hashable::Hashable;
use planner::accumulate::Accum;
use planner::error::DataError;
use planner::plan::AggregateFunc;
use planner::row::Row;
use planner::value::Datum;
use smallvec::SmallVec;

impl<'s, const LOOPS: usize> Renderer<'s, LOOPS> {
    pub(super) fn reduce_in_order(
        &mut self,
        input: Bundle<'s, LOOPS>,
        grouping: Grouping,
    ) -> Bundle<'s, LOOPS> {
        let mut groups = Groups::new(grouping.clone());
        if grouping.is_global() && self.scope.index() == GLOBAL_GROUP_AT {
            groups.make_exist(Row::default());
        }
        let outcomes = self.in_order(input.oks, "Reduce", move |row| grouping.route(row), groups);
        let (oks, errs) = split(outcomes);
        Bundle { oks, errs: errs.concat(input.errs) }
    }
}

/// The worker that has the group of all rows.
const GLOBAL_GROUP_AT: usize = 0;

impl Grouping {
    /// The worker, modulo their number, that a row's group is at.
    fn route(&self, row: &Row) -> u64 {
        if self.is_global() {
            return GLOBAL_GROUP_AT as u64;
        }
        // A row without a group is an error wherever it is.
        self.key(row).map_or(0, |key| key.hashed())
    }
}

/// The state of a `Reduce`.
struct Groups {
    grouping: Grouping,
    funcs: Vec<AggregateFunc>,
    groups: Keyed<Group>,
    /// Groups with updates at the time at hand, and what they put out before.
    touched: Vec<(Slot, Option<Outcome>)>,
    /// Errors of rows at the time at hand.
    errors: Vec<(DataError, Mult)>,
    /// Bytes that groups keep outside of `groups`.
    heap: usize,
}

#[derive(Default)]
struct Group {
    /// Number of rows.
    rows: Mult,
    is_touched: bool,
    aggregates: Box<[Aggregate]>,
}

/// What is known of one aggregate's arguments.
enum Aggregate {
    /// They add up.
    Sum(Accum),
    /// One of them is picked.
    Pick(Picks),
}

impl Aggregate {
    fn new(func: AggregateFunc) -> Self {
        match Extreme::of(func) {
            Some(extreme) => Aggregate::Pick(Picks::new(extreme)),
            None => Aggregate::Sum(Accum::zero(func)),
        }
    }

    fn update(&mut self, func: AggregateFunc, arg: Option<Datum>, diff: Mult) {
        match self {
            Aggregate::Sum(accum) => accum.plus_equals(&Accum::of(func, arg.as_ref(), diff.0)),
            Aggregate::Pick(picks) => {
                if let Some(value) = &arg {
                    picks.add(value, diff);
                }
            }
        }
    }

    fn finish(&self, func: AggregateFunc) -> Result<Datum, DataError> {
        match self {
            Aggregate::Sum(accum) => accum.finish(func),
            Aggregate::Pick(picks) => Ok(picks.best()),
        }
    }

    fn is_zero(&self) -> bool {
        match self {
            Aggregate::Sum(accum) => accum.is_zero(),
            Aggregate::Pick(picks) => picks.is_empty(),
        }
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Aggregate::Sum(_) => 0,
            Aggregate::Pick(picks) => picks.bytes(),
        }
    }
}

impl Group {
    fn new(funcs: &[AggregateFunc]) -> Self {
        let aggregates = funcs.iter().map(|func| Aggregate::new(*func)).collect();
        Group { rows: Mult(0), is_touched: false, aggregates }
    }

    fn update(&mut self, funcs: &[AggregateFunc], args: Arguments, diff: Mult) {
        self.rows.plus_equals(&diff);
        for ((aggregate, func), arg) in self.aggregates.iter_mut().zip(funcs).zip(args) {
            aggregate.update(*func, arg, diff);
        }
    }

    /// The group's row in the result; `None` if the group does not exist.
    fn outcome(&self, key: &Row, funcs: &[AggregateFunc]) -> Option<Outcome> {
        if self.rows <= Mult(0) {
            return None;
        }
        let results = self.aggregates.iter().zip(funcs);
        let results: Result<SmallVec<[Datum; 4]>, DataError> =
            results.map(|(aggregate, func)| aggregate.finish(*func)).collect();
        Some(results.map(|results| key.followed_by(&results)))
    }

    fn is_zero(&self) -> bool {
        self.rows.is_zero() && self.aggregates.iter().all(Aggregate::is_zero)
    }

    fn heap_bytes(&self) -> usize {
        let aggregates = self.aggregates.iter().map(Aggregate::heap_bytes);
        size_of_val(&*self.aggregates) + aggregates.sum::<usize>()
    }
}

impl Groups {
    fn new(grouping: Grouping) -> Self {
        let funcs = grouping.aggregates.iter().map(|a| a.func).collect();
        let (groups, touched, errors) = (Keyed::default(), Vec::new(), Vec::new());
        Groups { grouping, funcs, groups, touched, errors, heap: 0 }
    }

    /// The group of a key, about to change.
    fn touch(&mut self, key: Row) -> Slot {
        let Groups { funcs, groups, touched, heap, .. } = self;
        let slot = groups.slot(key, || {
            let group = Group::new(funcs);
            *heap += group.heap_bytes();
            group
        });
        let (key, group) = groups.get_mut(slot);
        if !std::mem::replace(&mut group.is_touched, true) {
            touched.push((slot, group.outcome(key, funcs)));
            *heap -= group.heap_bytes();
        }
        slot
    }

    /// Makes a group exist even without rows.
    fn make_exist(&mut self, key: Row) {
        let slot = self.touch(key);
        self.groups.get_mut(slot).1.rows.plus_equals(&Mult(1));
    }

    fn try_update(&mut self, row: &Row, diff: Mult) -> Result<(), DataError> {
        let (key, args) = self.grouping.eval(row)?;
        let slot = self.touch(key);
        self.groups.get_mut(slot).1.update(&self.funcs, args, diff);
        Ok(())
    }
}

impl InOrder for Groups {
    type Output = Outcome;

    fn update(&mut self, row: Row, diff: Mult) {
        if let Err(error) = self.try_update(&row, diff) {
            self.errors.push((error, diff));
        }
    }

    fn finish(&mut self, mut emit: impl FnMut(Outcome, Mult)) {
        self.errors.drain(..).for_each(|(error, diff)| emit(Err(error), diff));
        for (slot, before) in self.touched.drain(..) {
            let (key, group) = self.groups.get_mut(slot);
            group.is_touched = false;
            let after = group.outcome(key, &self.funcs);
            if group.is_zero() {
                self.groups.remove(slot);
            } else {
                self.heap += group.heap_bytes();
            }
            if before != after {
                before.into_iter().for_each(|outcome| emit(outcome, Mult(-1)));
                after.into_iter().for_each(|outcome| emit(outcome, Mult(1)));
            }
        }
    }

    fn bytes(&self) -> usize {
        self.groups.bytes() + self.heap
    }
}
