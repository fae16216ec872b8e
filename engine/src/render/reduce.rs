//! Grouping and aggregation: what all forms share, and the forms for the inside of loops (for the outside
//! see [`super::reduce_in_order`]).
//!
//! Inside a loop, aggregates that add up are kept as differences of the group's key: no matter how many rows a group
//! has, it takes one record. Those that pick a value go through the tree of [`super::extremes`].

use super::errors::Outcome;
use super::extremes::{Extreme, GroupArrangement};
use super::linear::{split, unpack_collection};
use super::reduce_in_order::whole;
use super::renderer::{Bundle, Context, Renderer};
use super::storage::{Kept, Names, Storage};
use super::sums::Sums;
use crate::checkpoint;
use crate::core::collection::Collection;
use crate::core::diff::Mult;
use crate::core::stamp::Stamp;
use crate::layout::infer::{expr_columns, reduce_columns, Columns};
use crate::layout::row_work::{eval, Exprs};
use crate::layout::{ColumnType, Layout, Tuple, Varying};
use differential_dataflow::AsCollection;
use plan::error::DataError;
use plan::expr::Expr;
use plan::row::Row;
use plan::value::Datum;
use plan::{Aggregate, AggregateFunc, Plan};
use smallvec::SmallVec;
use std::rc::Rc;
use timely::dataflow::operators::core::ToStream;
use timely::dataflow::operators::vec::Map;

impl<'s, L: Layout, S: Storage, const LOOPS: usize> Renderer<'s, L, S, LOOPS> {
    pub(super) fn render_reduce(
        &mut self,
        plan: &Plan,
        key: &[Expr],
        aggregates: &[Aggregate],
    ) -> Bundle<'s, L, LOOPS> {
        let input = self.render(plan);
        let key_columns = expr_columns(&input.columns, key);
        let funcs = aggregates.iter().map(|a| (a.func, a.arg.as_ref()));
        let columns = reduce_columns(&input.columns, &key_columns, funcs);
        if aggregates.is_empty() {
            return self.render_groups(input, key, columns);
        }
        // Constant where there are no loops: what works inside of them is not even compiled.
        if const { LOOPS == 0 } || self.context.times_are_ordered() {
            let grouping = Grouping::<L>::new(&input.columns, key, aggregates);
            // Errors of rows are not undone by the operator that found them.
            let clears = if grouping.cannot_fail() { self.clears_of(plan) } else { None };
            let (oks, errs) = self.context.reduce_in_order(input.oks, grouping, &columns, clears);
            return Bundle { oks, errs: input.errs.union(&self.context.raise(errs)), columns };
        }
        let grouping = Rc::new(Grouping::<Varying>::new(&input.columns, key, aggregates));
        let rows = L::pack_collection(input.oks, &L::shape(&input.columns));
        let (rows, errs) = self.context.reduce_in_loop(rows, &grouping);
        let (oks, unfit) = unpack_collection::<L, LOOPS>(rows, &columns);
        Bundle { oks, errs: input.errs.union(&self.context.raise(errs.concat(unfit))), columns }
    }

    /// Groups without aggregates.
    fn render_groups(
        &mut self,
        input: Bundle<'s, L, LOOPS>,
        key: &[Expr],
        columns: Columns,
    ) -> Bundle<'s, L, LOOPS> {
        if key.is_empty() {
            let one = self.render_constant(0, &[(Row::default(), 1)]);
            return Bundle { errs: input.errs, ..one };
        }
        let key = Exprs::<L, L::Row>::new(key, &input.columns, &columns);
        let (keys, errs) = split(input.oks.map(move |row| key.eval(row.view())));
        let oks = self.context.distinct_rows(keys, None);
        Bundle { oks, errs: input.errs.union(&self.context.raise(errs)), columns }
    }
}

type Grouped<'s, const LOOPS: usize> =
    (Collection<'s, Row, LOOPS>, Collection<'s, DataError, LOOPS>);

/// Inside of loops.
impl<'s, S: Storage, const LOOPS: usize> Context<'s, S, LOOPS> {
    fn reduce_in_loop(
        &mut self,
        rows: Collection<'s, Row, LOOPS>,
        grouping: &Rc<Grouping<Varying>>,
    ) -> Grouped<'s, LOOPS> {
        if grouping.aggregates.iter().any(|a| matches!(a.func, AggregateFunc::Collect(..))) {
            return self.reduce_whole(rows, grouping);
        }
        let picks = |a: &&Aggregate| Extreme::of(a.func).is_some();
        let sums = grouping.aggregates.iter().filter(|a| !picks(a)).count();
        if sums == grouping.aggregates.len() {
            self.reduce_sums(rows, grouping)
        } else if sums == 0 {
            self.reduce_picks(rows, grouping)
        } else {
            self.reduce_mixed(rows, grouping)
        }
    }

    /// Keeps all arguments of a group and computes its results from them.
    fn reduce_whole(
        &mut self,
        rows: Collection<'s, Row, LOOPS>,
        grouping: &Rc<Grouping<Varying>>,
    ) -> Grouped<'s, LOOPS> {
        let rows_grouping = Rc::clone(grouping);
        let (mut args, errs) = split(rows.map(move |row| rows_grouping.eval_all(&row)));
        if grouping.is_global {
            args = args.concat(self.global_group());
        }
        let funcs: Vec<AggregateFunc> = grouping.aggregates.iter().map(|a| a.func).collect();
        let names = Names { arrange: "Arrange arguments", reduce: "Reduce" };
        let results = Kept::<S, _, _, LOOPS>::reduce(args, &names, move |_, input, output| {
            // The group of all rows has a row without columns.
            let is_there =
                |(args, copies): &(&Row, Mult)| *copies > Mult(0) && !args.as_bytes().is_empty();
            let rows = input.iter().copied().filter(is_there);
            output.push((whole(&funcs, rows), Mult(1)));
        });
        let results = results.into_collection(|key, outcome: &Outcome<Row>| {
            outcome.clone().map(|results| Row::concat([key, &results]))
        });
        let (oks, finish_errs) = split(results);
        (oks, errs.concat(finish_errs))
    }

    /// A row without columns in the group of all rows, which is there even if there are none.
    pub(super) fn global_group(&self) -> Collection<'s, (Row, Row), LOOPS> {
        let group = (self.scope.index() == 0 && !checkpoint::has_origin())
            .then(|| ((Row::default(), Row::default()), Stamp::of(self.as_of), Mult(1)));
        group.to_stream(self.scope).as_collection()
    }

    fn reduce_sums(
        &mut self,
        rows: Collection<'s, Row, LOOPS>,
        grouping: &Rc<Grouping<Varying>>,
    ) -> Grouped<'s, LOOPS> {
        let (sums, errs) = self.sums(rows, grouping);
        let results = sums.into_collection(|key, outcome| {
            outcome.clone().map(|results| Row::concat([key, &results]))
        });
        let (oks, finish_errs) = split(results);
        (oks, errs.concat(finish_errs))
    }

    fn reduce_picks(
        &mut self,
        rows: Collection<'s, Row, LOOPS>,
        grouping: &Rc<Grouping<Varying>>,
    ) -> Grouped<'s, LOOPS> {
        let count = grouping.aggregates.len();
        let (picks, errs) = self.picks(rows, grouping);
        let oks = picks.into_collection(move |key, row| Row::concat([key, &or_nulls(row, count)]));
        (oks, errs)
    }

    fn reduce_mixed(
        &mut self,
        rows: Collection<'s, Row, LOOPS>,
        grouping: &Rc<Grouping<Varying>>,
    ) -> Grouped<'s, LOOPS> {
        let (picked, summed): (Vec<_>, Vec<_>) = (0..grouping.aggregates.len())
            .partition(|i| Extreme::of(grouping.aggregates[*i].func).is_some());
        let (sums, errs) = self.sums(rows.clone(), grouping);
        // Both evaluate the same expressions: the errors of one are enough.
        let (picks, _) = self.picks(rows, grouping);
        let results = sums.join(picks, move |key, outcome, row| {
            Some(outcome.clone().map(|sums| {
                let mut columns = vec![Datum::Null; summed.len() + picked.len()];
                let values = sums.unpack().into_iter().zip(&summed);
                let values =
                    values.chain(or_nulls(row, picked.len()).unpack().into_iter().zip(&picked));
                values.for_each(|(value, column)| columns[*column] = value);
                Row::concat([key, &Row::pack(&columns)])
            }))
        });
        let (oks, finish_errs) = split(results);
        (oks, errs.concat(finish_errs))
    }

    /// Arranges the results of the accumulable aggregates by group.
    fn sums(
        &mut self,
        rows: Collection<'s, Row, LOOPS>,
        grouping: &Rc<Grouping<Varying>>,
    ) -> (GroupArrangement<'s, S, Outcome<Row>, LOOPS>, Collection<'s, DataError, LOOPS>) {
        let funcs: Vec<AggregateFunc> = grouping.sums().map(|a| a.func).collect();
        let always = grouping.is_global;
        let rows_grouping = Rc::clone(grouping);
        let (evaluated, errs) = split(rows.map(move |row| rows_grouping.eval_sums(&row)));
        let group_funcs = funcs.clone();
        let mut groups = evaluated
            .inner
            .map(move |((key, values), time, diff)| {
                ((key, ()), time, Sums::of(&group_funcs, values.into_iter(), diff))
            })
            .as_collection();
        if always {
            let presence = (self.scope.index() == 0 && !checkpoint::has_origin())
                .then(|| ((Row::default(), ()), Stamp::of(self.as_of), Sums::presence(&funcs)));
            groups = groups.concat(presence.to_stream(self.scope).as_collection());
        }
        let finish = move |sums: &Sums| sums.exists().then(|| sums.finish(&funcs));
        (Kept::finish_sums(groups, finish), errs)
    }

    /// Arranges the picks of min, max and any by group.
    fn picks(
        &mut self,
        rows: Collection<'s, Row, LOOPS>,
        grouping: &Rc<Grouping<Varying>>,
    ) -> (GroupArrangement<'s, S, Row, LOOPS>, Collection<'s, DataError, LOOPS>) {
        let funcs = grouping.aggregates.iter();
        let extremes: Vec<Extreme> = funcs.filter_map(|a| Extreme::of(a.func)).collect();
        let always = grouping.is_global;
        let rows_grouping = Rc::clone(grouping);
        let (candidates, errs) = split(rows.map(move |row| rows_grouping.eval_picks(&row)));
        (self.extremes(candidates, extremes, always), errs)
    }
}

/// The picks, or as many NULLs if the group had no candidates.
fn or_nulls(picks: &Row, count: usize) -> Row {
    if picks.as_bytes().is_empty() {
        Row::pack(&vec![Datum::Null; count])
    } else {
        picks.clone()
    }
}

/// The expressions of a `Reduce`.
pub(super) struct Grouping<L: Layout> {
    key: Exprs<L, L::Key>,
    pub(super) key_columns: Columns,
    shape: L::Shape,
    /// Without an argument, what is counted is rows.
    pub(super) aggregates: Vec<Aggregate>,
    /// Whether all rows are one group, which exists even without rows.
    pub(super) is_global: bool,
}

/// A value for every aggregate, `None` for that of `count(*)`.
pub(super) type Arguments = SmallVec<[Option<Datum>; 2]>;

impl<L: Layout> Grouping<L> {
    fn new(input: &[ColumnType], key: &[Expr], aggregates: &[Aggregate]) -> Self {
        let key_columns = expr_columns(input, key);
        Grouping {
            key: Exprs::new(key, input, &key_columns),
            key_columns,
            shape: L::shape(input),
            aggregates: aggregates.to_vec(),
            is_global: key.is_empty(),
        }
    }

    /// Whether every row has a group and arguments.
    fn cannot_fail(&self) -> bool {
        let is_column = |a: &Aggregate| matches!(a.arg, None | Some(Expr::Column(_)));
        self.key.moves().is_some() && self.aggregates.iter().all(is_column)
    }

    #[inline]
    pub(super) fn key(&self, row: &L::Row) -> Result<L::Key, DataError> {
        self.key.eval(row.view())
    }

    /// The arguments of all aggregates.
    pub(super) fn args(&self, row: &L::Row) -> Result<Arguments, DataError> {
        let args = self.aggregates.iter().map(|a| a.arg.as_ref());
        args.map(|arg| arg.map(|arg| eval::<L>(arg, row.view(), &self.shape)).transpose()).collect()
    }
}

impl Grouping<Varying> {
    fn sums(&self) -> impl Iterator<Item = &Aggregate> {
        self.aggregates.iter().filter(|a| Extreme::of(a.func).is_none())
    }

    /// The group and all arguments, true for that of `count(*)`.
    fn eval_all(&self, row: &Row) -> Result<(Row, Row), DataError> {
        let args = self.args(row)?.into_iter().map(|arg| arg.unwrap_or(Datum::Bool(true)));
        Ok((self.key(row)?, Row::pack(&args.collect::<Vec<_>>())))
    }

    fn eval_sums(&self, row: &Row) -> Result<(Row, Arguments), DataError> {
        let args = self.args(row)?.into_iter().zip(&self.aggregates);
        let args = args.filter(|(_, a)| Extreme::of(a.func).is_none()).map(|(arg, _)| arg);
        Ok((self.key(row)?, args.collect()))
    }

    fn eval_picks(&self, row: &Row) -> Result<(Row, Row), DataError> {
        let args = self.args(row)?.into_iter().zip(&self.aggregates);
        let args = args.filter(|(_, a)| Extreme::of(a.func).is_some());
        let args: Vec<Datum> = args.map(|(arg, _)| arg.unwrap_or(Datum::Null)).collect();
        Ok((self.key(row)?, Row::pack(&args)))
    }
}
