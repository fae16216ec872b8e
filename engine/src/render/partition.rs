//! Partitions: LIMIT and window functions.
//!
//! What is computed from a partition is a pure function of its rows ([`plan::partition`]). Outside of loops the
//! rows of each partition are kept in order, and of a result only what changes is put out; LIMIT looks at no more
//! rows than it skips and takes. Inside of loops, and where state is on disk, partitions are arrangements.

use super::errors::Outcome;
use super::keyed::{Keyed, Slot, MANY_SLOTS};
use super::linear::{split, unpack_collection};
use super::multiset::Multiset;
use super::ordered::{InOrder, Pieces};
use super::renderer::{Bundle, Context, Renderer};
use super::storage::{Kept, Names, Storage};
use crate::core::collection::Collection;
use crate::core::diff::Mult;
use crate::core::monitor::look;
use crate::layout::infer::partition_columns;
use crate::layout::Layout;
use differential_dataflow::consolidation::consolidate;
use differential_dataflow::hashable::Hashable;
use plan::error::DataError;
use plan::expr::Expr;
use plan::partition::{OrderKey, Results, SortKey, Work};
use plan::row::Row;
use plan::value::Datum;
use plan::{Diff, Plan};
use std::rc::Rc;

impl<'s, L: Layout, S: Storage, const LOOPS: usize> Renderer<'s, L, S, LOOPS> {
    pub(super) fn render_partition(
        &mut self,
        plan: &Plan,
        (key, order): (&[Expr], &[SortKey]),
        work: &Work,
    ) -> Bundle<'s, L, LOOPS> {
        let input = self.render(plan);
        let columns = partition_columns(&input.columns, work);
        let rows = L::pack_collection(input.oks, &L::shape(&input.columns));
        let (key, order, work) = (key.to_vec(), order.to_vec(), work.clone());
        let partitioning = Rc::new(Partitioning { key, order, work });
        let outcomes = if const { LOOPS == 0 } || self.context.times_are_ordered() {
            // Errors of rows are not undone by the operator that found them.
            let clears = if partitioning.cannot_fail() { self.clears_of(plan) } else { None };
            let route = Rc::clone(&partitioning);
            let route = move |row: &Row| route.key(row).map_or(0, |key| key.hashed());
            let partitions = Partitions::new(partitioning);
            self.context.in_order(rows, "Partition", route, partitions, clears)
        } else {
            self.context.partitions_in_loop(rows, partitioning)
        };
        let (oks, errs) = split(outcomes);
        let (oks, unfit) = unpack_collection::<L, LOOPS>(oks, &columns);
        Bundle { oks, errs: input.errs.union(&self.context.raise(errs.concat(unfit))), columns }
    }
}

impl<'s, S: Storage, const LOOPS: usize> Context<'s, S, LOOPS> {
    fn partitions_in_loop(
        &mut self,
        rows: Collection<'s, Row, LOOPS>,
        partitioning: Rc<Partitioning>,
    ) -> Collection<'s, Outcome<Row>, LOOPS> {
        let rows_partitioning = Rc::clone(&partitioning);
        let keyed = rows.map(move |row| rows_partitioning.key(&row).map(|key| (key, row)));
        let (keyed, errs) = split(keyed);
        let names = Names { arrange: "Arrange partitions", reduce: "Partition" };
        let results = Kept::<S, _, _, LOOPS>::reduce(keyed, &names, move |_, input, output| {
            let mut rows: Vec<(OrderKey, &Row, Diff)> = input
                .iter()
                .filter(|(_, copies)| *copies > Mult(0))
                .map(|(row, copies)| (partitioning.place(row), *row, copies.0))
                .collect();
            rows.sort_unstable();
            let rows = rows.iter().map(|(place, row, copies)| (place, *row, *copies));
            output.extend(outcomes(partitioning.results(rows)));
            consolidate(output);
        });
        results.into_collection(|_, outcome: &Outcome<Row>| outcome.clone()).concat(errs.map(Err))
    }
}

/// The updates that a result consists of.
fn outcomes(results: Result<Results, DataError>) -> Vec<(Outcome<Row>, Mult)> {
    match results {
        Ok(rows) => rows.into_iter().map(|(row, copies)| (Ok(row), Mult(copies))).collect(),
        Err(error) => vec![(Err(error), Mult(1))],
    }
}

/// What a `Partition` does.
struct Partitioning {
    key: Vec<Expr>,
    order: Vec<SortKey>,
    work: Work,
}

impl Partitioning {
    /// The partition of a row.
    fn key(&self, row: &Row) -> Result<Row, DataError> {
        self.key_of(&row.unpack())
    }

    /// That of a row with these values.
    fn key_of(&self, values: &[Datum]) -> Result<Row, DataError> {
        let key = self.key.iter().map(|expr| expr.eval(values));
        Ok(Row::pack(&key.collect::<Result<Vec<_>, _>>()?))
    }

    /// Where a row is in its partition.
    fn place(&self, row: &Row) -> OrderKey {
        OrderKey::of(&self.order, &row.unpack())
    }

    /// What is made of a partition, given its rows in order.
    fn results<'r>(
        &self,
        rows: impl Iterator<Item = (&'r OrderKey, &'r Row, Diff)>,
    ) -> Result<Results, DataError> {
        self.work.results(&self.order, rows)
    }

    fn results_of(&self, rows: &Sorted) -> Result<Results, DataError> {
        self.results(rows.iter().map(|((place, row), copies)| {
            look(1);
            (place, row, copies.0)
        }))
    }

    /// Whether every row has a partition.
    fn cannot_fail(&self) -> bool {
        self.key.iter().all(|expr| expr.as_column().is_some())
    }
}

/// The rows of one partition in order.
type Sorted = Multiset<(OrderKey, Row)>;

/// The state of a `Partition` outside of loops.
struct Partitions {
    partitioning: Rc<Partitioning>,
    partitions: Keyed<Row, Sorted>,
    /// Partitions with updates at the time at hand, and their results before.
    touched: Vec<(Slot, Result<Results, DataError>)>,
    /// Partitions of which nothing was left at some time.
    gone: Vec<Slot>,
    /// Errors of rows at the time at hand.
    errors: Vec<(DataError, Mult)>,
}

impl Partitions {
    fn new(partitioning: Rc<Partitioning>) -> Self {
        let (partitions, touched) = (Keyed::default(), Vec::new());
        let (gone, errors) = (Vec::new(), Vec::new());
        Partitions { partitioning, partitions, touched, gone, errors }
    }

    /// A partition that is about to change.
    fn touch(&mut self, slot: Slot) -> &mut Sorted {
        let is_new = self.partitions.mark(slot);
        let (_, rows) = self.partitions.get_mut(slot);
        if is_new {
            self.touched.push((slot, self.partitioning.results_of(rows)));
        }
        rows
    }
}

impl InOrder for Partitions {
    type Input = Row;
    type Output = Outcome<Row>;
    /// Or why the row has no partition.
    type Work = Result<(Slot, (OrderKey, Row)), DataError>;

    fn look_up(&mut self, row: Row) -> Self::Work {
        let values = row.unpack();
        let slot = self.partitions.slot(self.partitioning.key_of(&values)?, Sorted::default);
        Ok((slot, (OrderKey::of(&self.partitioning.order, &values), row)))
    }

    fn update(&mut self, work: Self::Work, diff: Mult) {
        match work {
            Ok((slot, row)) => self.touch(slot).add(row, diff),
            Err(error) => self.errors.push((error, diff)),
        }
    }

    fn clear(&mut self) {
        for slot in self.partitions.all() {
            *self.touch(slot) = Sorted::default();
        }
    }

    fn finish(&mut self, mut emit: impl FnMut(Outcome<Row>, Mult)) {
        self.errors.drain(..).for_each(|(error, diff)| emit(Err(error), diff));
        for (slot, before) in self.touched.drain(..) {
            self.partitions.unmark(slot);
            let (_, rows) = self.partitions.get_mut(slot);
            let after = self.partitioning.results_of(rows);
            differences(before, after).into_iter().for_each(|(outcome, diff)| emit(outcome, diff));
            if rows.is_empty() {
                self.gone.push(slot);
            }
        }
        self.touched.shrink_to(MANY_SLOTS);
    }

    fn sweep(&mut self) {
        self.partitions.sweep(&mut self.gone, Sorted::is_empty);
    }

    type Key = Row;
    type Known = Mult;

    fn pieces(&self) -> Option<Pieces<'_, Row, Mult>> {
        let rows = self.partitions.iter().flat_map(|(_, rows)| rows.all());
        Some(Box::new(rows.map(|((_, row), copies)| (row.clone(), copies))))
    }

    /// It had a partition when it came.
    fn restore(&mut self, row: Row, copies: Mult) -> bool {
        let Ok((slot, row)) = self.look_up(row) else { return false };
        self.partitions.get_mut(slot).1.add(row, copies);
        true
    }
}

/// What changes from one result to another. Most of a partition stays as it was in front of the rows that
/// change, and often behind them.
fn differences(
    before: Result<Results, DataError>,
    after: Result<Results, DataError>,
) -> Vec<(Outcome<Row>, Mult)> {
    let (mut before, mut after) = (outcomes(before), outcomes(after));
    let same_end = before.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| a == b).count();
    before.truncate(before.len() - same_end);
    after.truncate(after.len() - same_end);
    let same_start = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let retractions = before.into_iter().skip(same_start);
    let mut updates: Vec<_> =
        retractions.map(|(outcome, Mult(copies))| (outcome, Mult(-copies))).collect();
    updates.extend(after.into_iter().skip(same_start));
    consolidate(&mut updates);
    updates
}
