//! Grouping and aggregation: what all forms share, and the forms for the inside of loops (for the outside
//! see [`super::reduce_in_order`]).
//!
//! Inside a loop, aggregates that add up are kept as differences of the group's key: no matter how many rows a group
//! has, it takes one record. Those that pick a value go through the tree of [`super::extremes`].

use super::extremes::{Extreme, GroupArrangement};
use super::group::Group;
use super::linear::split;
use super::{Bundle, Collection, Renderer};
use crate::diff::Mult;
use crate::scalar::{eval, Exprs};
use crate::stamp::Stamp;
use differential_dataflow::operators::arrange::Arrange;
use differential_dataflow::trace::implementations::{
    KeyBatcher, KeyBuilder, KeySpine, ValBuilder, ValSpine,
};
use differential_dataflow::AsCollection;
use planner::error::DataError;
use planner::expr::Expr;
use planner::plan::{Aggregate, AggregateFunc, Plan};
use planner::row::Row;
use planner::value::Datum;
use smallvec::SmallVec;
use timely::dataflow::operators::core::ToStream;
use timely::dataflow::operators::vec::Map;

/// A group's results, or why they cannot be computed.
pub(super) type Outcome = Result<Row, DataError>;

impl<'s, const LOOPS: usize> Renderer<'s, LOOPS> {
    pub(super) fn render_reduce(
        &mut self,
        input: &Plan,
        key: &[Expr],
        aggregates: &[Aggregate],
    ) -> Bundle<'s, LOOPS> {
        let input = self.render(input);
        let grouping = Grouping { key: Exprs::new(key), aggregates: aggregates.to_vec() };
        let picks = |a: &&Aggregate| Extreme::of(a.func).is_some();
        let sums = aggregates.iter().filter(|a| !picks(a)).count();
        if aggregates.is_empty() {
            return self.render_groups(input, grouping);
        }
        if self.times_are_ordered() {
            return self.reduce_in_order(input, grouping);
        }
        if sums == aggregates.len() {
            self.render_sums(input, grouping)
        } else if sums == 0 {
            self.render_picks(input, grouping)
        } else {
            self.render_mixed(input, grouping)
        }
    }

    /// Groups without aggregates.
    fn render_groups(&mut self, input: Bundle<'s, LOOPS>, grouping: Grouping) -> Bundle<'s, LOOPS> {
        if grouping.is_global() {
            let one = self.render_constant(&[(Row::default(), 1)]);
            return Bundle { oks: one.oks, errs: input.errs };
        }
        let keys = input.oks.map(move |row| grouping.key(&row));
        let (keys, errs) = split(keys);
        Bundle { oks: self.distinct_rows(keys), errs: errs.concat(input.errs) }
    }

    fn render_sums(&mut self, input: Bundle<'s, LOOPS>, grouping: Grouping) -> Bundle<'s, LOOPS> {
        let (sums, errs) = self.sums(input.oks, grouping);
        let results = sums.as_collection(|key, outcome| {
            outcome.clone().map(|results| Row::concat([key, &results]))
        });
        let (oks, finish_errs) = split(results);
        Bundle { oks, errs: errs.concat(finish_errs).concat(input.errs) }
    }

    fn render_picks(&mut self, input: Bundle<'s, LOOPS>, grouping: Grouping) -> Bundle<'s, LOOPS> {
        let count = grouping.aggregates.len();
        let (picks, errs) = self.picks(input.oks, grouping);
        let oks = picks.as_collection(move |key, row| Row::concat([key, &or_nulls(row, count)]));
        Bundle { oks, errs: errs.concat(input.errs) }
    }

    fn render_mixed(&mut self, input: Bundle<'s, LOOPS>, grouping: Grouping) -> Bundle<'s, LOOPS> {
        let (picked, summed): (Vec<_>, Vec<_>) = (0..grouping.aggregates.len())
            .partition(|i| Extreme::of(grouping.aggregates[*i].func).is_some());
        let (sums, errs) = self.sums(input.oks.clone(), grouping.clone());
        // Both evaluate the same expressions: the errors of one are enough.
        let (picks, _) = self.picks(input.oks, grouping);
        let results = sums.join_core(picks, move |key, outcome, row| {
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
        Bundle { oks, errs: errs.concat(finish_errs).concat(input.errs) }
    }

    /// Arranges the results of the accumulable aggregates by group.
    fn sums(
        &mut self,
        rows: Collection<'s, Row, LOOPS>,
        grouping: Grouping,
    ) -> (GroupArrangement<'s, Outcome, LOOPS>, Collection<'s, DataError, LOOPS>) {
        let funcs: Vec<AggregateFunc> = grouping.sums().map(|a| a.func).collect();
        let always = grouping.is_global();
        let (evaluated, errs) = split(rows.map(move |row| grouping.eval_sums(&row)));
        let group_funcs = funcs.clone();
        let mut groups = evaluated
            .inner
            .map(move |((key, values), time, diff)| {
                ((key, ()), time, Group::of(&group_funcs, values.into_iter(), diff))
            })
            .as_collection();
        if always {
            let presence = (self.scope.index() == 0)
                .then(|| ((Row::default(), ()), Stamp::of(self.as_of), Group::presence(&funcs)));
            groups = groups.concat(presence.to_stream(self.scope).as_collection());
        }
        let arranged = groups
            .arrange_named::<KeyBatcher<Row, Stamp<LOOPS>, Group>, KeyBuilder<Row, Stamp<LOOPS>, Group>, KeySpine<Row, Stamp<LOOPS>, Group>>(
                "Arrange sums",
            );
        self.meter.add(&arranged, size_of::<(Row, Stamp<LOOPS>, Group)>() + 32 * funcs.len());
        let sums = arranged
            .reduce_abelian::<_, ValBuilder<Row, Outcome, Stamp<LOOPS>, Mult>, ValSpine<Row, Outcome, Stamp<LOOPS>, Mult>, _, _>(
                "Sums",
                move |_, input, output| {
                    let group = &input[0].1;
                    if group.exists() {
                        output.push((group.finish(&funcs), Mult(1)));
                    }
                },
                |chunk, key, updates| {
                    chunk.clear();
                    chunk.extend(updates.drain(..).map(|(v, t, r)| ((key.clone(), v), t, r)));
                },
            );
        self.meter.add(&sums, size_of::<(Row, Outcome, Stamp<LOOPS>, Mult)>());
        (sums, errs)
    }

    /// Arranges the picks of min, max and any by group.
    fn picks(
        &mut self,
        rows: Collection<'s, Row, LOOPS>,
        grouping: Grouping,
    ) -> (GroupArrangement<'s, Row, LOOPS>, Collection<'s, DataError, LOOPS>) {
        let funcs = grouping.aggregates.iter();
        let extremes: Vec<Extreme> = funcs.filter_map(|a| Extreme::of(a.func)).collect();
        let always = grouping.is_global();
        let (candidates, errs) = split(rows.map(move |row| grouping.eval_picks(&row)));
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
#[derive(Clone)]
pub(super) struct Grouping {
    key: Exprs,
    pub(super) aggregates: Vec<Aggregate>,
}

/// A value for every aggregate, `None` for that of `count(*)`.
pub(super) type Arguments = SmallVec<[Option<Datum>; 2]>;

impl Grouping {
    fn sums(&self) -> impl Iterator<Item = &Aggregate> {
        self.aggregates.iter().filter(|a| Extreme::of(a.func).is_none())
    }

    /// A row's group.
    pub(super) fn key(&self, row: &Row) -> Result<Row, DataError> {
        self.key.eval(row)
    }

    /// A row's group, and the arguments of all aggregates.
    pub(super) fn eval(&self, row: &Row) -> Result<(Row, Arguments), DataError> {
        let key = self.key.eval(row)?;
        let args = self.aggregates.iter().map(|a| a.arg.as_ref());
        let args = args.map(|arg| arg.map(|arg| eval(arg, row)).transpose());
        Ok((key, args.collect::<Result<_, _>>()?))
    }

    /// Whether all rows are one group, which exists even without rows.
    pub(super) fn is_global(&self) -> bool {
        matches!(&self.key, Exprs::Columns(columns) if columns.is_empty())
    }

    fn eval_sums(&self, row: &Row) -> Result<(Row, Arguments), DataError> {
        let (key, args) = self.eval(row)?;
        let args = args.into_iter().zip(&self.aggregates);
        let args = args.filter(|(_, a)| Extreme::of(a.func).is_none()).map(|(arg, _)| arg);
        Ok((key, args.collect()))
    }

    fn eval_picks(&self, row: &Row) -> Result<(Row, Row), DataError> {
        let (key, args) = self.eval(row)?;
        let args = args.into_iter().zip(&self.aggregates);
        let args = args.filter(|(_, a)| Extreme::of(a.func).is_some());
        let args: Vec<Datum> = args.map(|(arg, _)| arg.unwrap_or(Datum::Null)).collect();
        Ok((key, Row::pack(&args)))
    }
}
