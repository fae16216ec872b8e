//! Evaluates a plan over multisets, one operator after the other, as plainly as possible: the oracle
//! of the engine's tests. Recursion follows PostgreSQL's working table, so that the fixpoint forms are
//! checked against an independent definition; where only the best rows are kept, so is what is worked on.
//!
//! Each error is counted as often as an operator raises it, once for every time the operator is evaluated, and not once
//! for every use of what it yields. An evaluator may count fewer, but none of those that there are not at all.

mod aggregate;
mod regression;
mod spread;

use crate::error::DataError;
use crate::expr::{Expr, Mfp};
use crate::nodes::{Aggregate, LocalId, Plan, Recursion, ViewPlan};
use crate::partition::{compare_preferred, OrderKey, SortKey, Work};
use crate::row::{Diff, Row};
use crate::table_function::TableFunction;
use crate::value::Datum;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A recursion took more iterations than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecursionLimit;

/// Rows, or errors, with their multiplicities.
pub type Multiset<T> = BTreeMap<T, Diff>;

/// The view's rows and errors for the given contents of its sources (by [`crate::nodes::SourceId`]).
pub fn evaluate(
    plan: &ViewPlan,
    sources: &[Multiset<Row>],
    max_recursion: u64,
) -> Result<(Multiset<Row>, Multiset<DataError>), RecursionLimit> {
    let mut evaluator = Evaluator { sources, max_recursion, locals: BTreeMap::new(), raised: 0 };
    let result = evaluator.eval(&plan.root)?;
    let mut errs = Multiset::new();
    for (error, diff) in result.below.values().flat_map(|raised| raised.iter()) {
        add(&mut errs, error.clone(), *diff);
    }
    Ok((result.oks, errs))
}

/// What a node yields.
#[derive(Clone, Debug, Default)]
struct Output {
    oks: Multiset<Row>,
    /// Errors of the node at hand.
    errs: Multiset<DataError>,
    /// Errors of nodes that have been evaluated, by the number of the evaluation: those of a shared value are
    /// the same wherever it is used.
    below: BTreeMap<usize, Rc<Multiset<DataError>>>,
}

impl Output {
    fn add(&mut self, row: Row, diff: Diff) {
        add(&mut self.oks, row, diff);
    }

    fn add_result(&mut self, result: Result<Option<Row>, DataError>, diff: Diff) {
        match result {
            Ok(Some(row)) => self.add(row, diff),
            Ok(None) => {}
            Err(error) => add(&mut self.errs, error, diff),
        }
    }

    fn append(&mut self, other: Output) {
        other.oks.into_iter().for_each(|(row, diff)| self.add(row, diff));
        self.below.extend(other.below);
    }

    /// No rows yet, and the errors of what is below.
    fn above(below: Output) -> (Output, Multiset<Row>) {
        let output = Output { below: below.below, ..Output::default() };
        (output, below.oks)
    }
}

fn add<T: Ord>(multiset: &mut Multiset<T>, item: T, diff: Diff) {
    match multiset.entry(item) {
        std::collections::btree_map::Entry::Vacant(entry) => {
            if diff != 0 {
                entry.insert(diff);
            }
        }
        std::collections::btree_map::Entry::Occupied(mut entry) => {
            *entry.get_mut() += diff;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}

struct Evaluator<'a> {
    sources: &'a [Multiset<Row>],
    max_recursion: u64,
    locals: BTreeMap<LocalId, Output>,
    /// Number of evaluations of nodes that raised errors.
    raised: usize,
}

impl Evaluator<'_> {
    fn eval(&mut self, plan: &Plan) -> Result<Output, RecursionLimit> {
        let mut output = self.eval_node(plan)?;
        self.seal(&mut output);
        Ok(output)
    }

    /// Gives the errors that were raised just now a number.
    fn seal(&mut self, output: &mut Output) {
        let errs = std::mem::take(&mut output.errs);
        if !errs.is_empty() {
            output.below.insert(self.raised, Rc::new(errs));
            self.raised += 1;
        }
    }

    fn eval_node(&mut self, plan: &Plan) -> Result<Output, RecursionLimit> {
        let mut output = Output::default();
        match plan {
            Plan::Constant { rows, .. } => {
                rows.iter().for_each(|(row, diff)| output.add(row.clone(), *diff));
            }
            Plan::Source(id) => output.oks = self.sources[id.0].clone(),
            Plan::Get(id) => output = self.locals[id].clone(),
            Plan::Let { id, value, body } => {
                let value = self.eval(value)?;
                self.locals.insert(*id, value);
                output = self.eval(body)?;
            }
            Plan::LetRec { id, recursion, base, step, body } => {
                let result = self.eval_recursion(*id, recursion, base, step)?;
                self.locals.insert(*id, result);
                output = self.eval(body)?;
            }
            Plan::Mfp { input, mfp } => {
                output = map(self.eval(input)?, mfp);
            }
            Plan::TableFunction { input, table_function, closure } => {
                output = make_rows(self.eval(input)?, table_function, closure);
            }
            Plan::Join { left, right, left_key, right_key, closure } => {
                let (left, right) = (self.eval(left)?, self.eval(right)?);
                output = join(left, right, left_key, right_key, closure);
            }
            Plan::DeltaJoin { inputs, tree, closure } => {
                output = self.eval_node(&tree.as_joins(inputs.clone(), closure))?;
            }
            Plan::Reduce { input, key, aggregates } => {
                output = reduce(self.eval(input)?, key, aggregates);
            }
            Plan::Partition { input, key, order, work } => {
                output = partitions(self.eval(input)?, key, order, work);
            }
            Plan::Distinct { input } => {
                output = self.eval(input)?;
                output.oks.retain(|_, diff| *diff > 0);
                output.oks.values_mut().for_each(|diff| *diff = 1);
            }
            Plan::Temporal { input, clock, from, until, output: kept } => {
                let now = present(&self.sources[clock.0]);
                output = valid(self.eval(input)?, now, (from, until), kept);
            }
            Plan::Union { inputs } => {
                for input in inputs {
                    let input = self.eval(input)?;
                    output.append(input);
                }
            }
            Plan::Negate { input } => {
                output = self.eval(input)?;
                output.oks.values_mut().for_each(|diff| *diff = -*diff);
            }
            Plan::Repeat { input } => {
                output = repeat(self.eval(input)?);
            }
        }
        Ok(output)
    }

    fn eval_recursion(
        &mut self,
        id: LocalId,
        recursion: &Recursion,
        base: &Plan,
        step: &Plan,
    ) -> Result<Output, RecursionLimit> {
        match recursion {
            Recursion::FixpointExtreme { key, order, .. } => {
                self.relax(id, (key, order), base, step)
            }
            Recursion::LeastFixpoint => self.close(id, base, step),
            _ => self.recurse(id, recursion, base, step),
        }
    }

    /// The working table: W₀ = base, Wᵢ₊₁ = step(Wᵢ), until a round after the first yields nothing.
    fn recurse(
        &mut self,
        id: LocalId,
        recursion: &Recursion,
        base: &Plan,
        step: &Plan,
    ) -> Result<Output, RecursionLimit> {
        let mut seen = Seen::new(recursion);
        let mut working = self.eval(base)?;
        seen.keep_new(&mut working);
        self.seal(&mut working);
        let mut result = Output::default();
        for _ in 0..=self.max_recursion {
            result.append(working.clone());
            self.locals.insert(id, Output { oks: working.oks, ..Output::default() });
            working = self.eval(step)?;
            seen.keep_new(&mut working);
            self.seal(&mut working);
            if working.oks.is_empty() {
                result.append(working);
                return Ok(result);
            }
        }
        Err(RecursionLimit)
    }
}

impl Evaluator<'_> {
    /// The least fixpoint from below: all rows known so far make those of the next round, until there are no more.
    fn close(&mut self, id: LocalId, base: &Plan, step: &Plan) -> Result<Output, RecursionLimit> {
        let set = |rows: Multiset<Row>| -> Multiset<Row> {
            let rows = rows.into_iter().filter(|(_, diff)| *diff > 0);
            rows.map(|(row, _)| (row, 1)).collect()
        };
        let base = self.eval(base)?;
        let mut all = set(base.oks.clone());
        for _ in 0..=self.max_recursion {
            self.locals.insert(id, Output { oks: all.clone(), ..Output::default() });
            let mut next = self.eval(step)?;
            next.append(base.clone());
            next.oks = set(next.oks);
            if next.oks == all {
                return Ok(next);
            }
            all = next.oks;
        }
        Err(RecursionLimit)
    }

    /// The best row by key, as Bellman and Ford find shortest paths: only rows that have become better
    /// are taken further, until none has.
    fn relax(
        &mut self,
        id: LocalId,
        (key, order): (&[usize], &[SortKey]),
        base: &Plan,
        step: &Plan,
    ) -> Result<Output, RecursionLimit> {
        let mut best: BTreeMap<Row, Row> = BTreeMap::new();
        let mut candidates = self.eval(base)?;
        let below = std::mem::take(&mut candidates.below);
        for round in 0..=self.max_recursion + 1 {
            let mut better = BTreeMap::new();
            for (row, diff) in candidates.oks {
                let group = Row::project(&[&row], key);
                let values = |row: &Row| -> Vec<Datum> {
                    order.iter().map(|sort| row.column(sort.column)).collect()
                };
                let is_better = best.get(&group).is_none_or(|known| {
                    compare_preferred(order, &values(&row), &values(known)).is_lt()
                });
                if diff > 0 && is_better {
                    best.insert(group.clone(), row.clone());
                    better.insert(group, row);
                }
            }
            let working = if better.is_empty() { &best } else { &better };
            let oks = working.values().map(|row| (row.clone(), 1)).collect();
            self.locals.insert(id, Output { oks, ..Output::default() });
            candidates = self.eval(step)?;
            // The step may add rows of its own, even to nothing.
            if better.is_empty() && round > 0 {
                // Of the errors those count that the best rows raise.
                let oks = best.into_values().map(|row| (row, 1)).collect();
                let mut result = Output { oks, below, ..Output::default() };
                result.below.extend(candidates.below);
                return Ok(result);
            }
        }
        Err(RecursionLimit)
    }
}

/// Which rows earlier rounds had; nothing under UNION ALL.
struct Seen {
    distinct: bool,
    key: Option<Vec<Expr>>,
    keys: BTreeSet<Row>,
}

impl Seen {
    fn new(recursion: &Recursion) -> Seen {
        let (distinct, key) = match recursion {
            Recursion::FixpointAll | Recursion::WorkingTableAll => (false, None),
            Recursion::FixpointDistinct => (true, None),
            Recursion::WorkingTableDistinct { key } => (true, Some(key.clone())),
            // They have evaluations of their own.
            Recursion::LeastFixpoint | Recursion::FixpointExtreme { .. } => (true, None),
        };
        Seen { distinct, key, keys: BTreeSet::new() }
    }

    /// Keeps one row for each key not seen before, and remembers it.
    fn keep_new(&mut self, output: &mut Output) {
        if !self.distinct {
            return;
        }
        let rows = std::mem::take(&mut output.oks);
        for (row, diff) in rows {
            let key = match &self.key {
                None => Ok(Some(row.clone())),
                Some(key) => eval_key(key, &row.unpack(), true),
            };
            match key {
                Ok(Some(key)) if diff > 0 => {
                    if self.keys.insert(key) {
                        output.add(row, 1);
                    }
                }
                Ok(_) => {}
                Err(error) => add(&mut output.errs, error, 1),
            }
        }
    }
}

/// Maps when they are asked for, conjuncts in order.
fn apply(mfp: &Mfp, columns: &[Datum]) -> Result<Option<Row>, DataError> {
    mfp.eval(columns)
}

/// The key's values, `None` if one is NULL and NULLs do not count.
fn eval_key(key: &[Expr], columns: &[Datum], nulls: bool) -> Result<Option<Row>, DataError> {
    let values = key.iter().map(|expr| expr.eval(columns)).collect::<Result<Vec<_>, _>>()?;
    if !nulls && values.iter().any(Datum::is_null) {
        return Ok(None);
    }
    Ok(Some(Row::pack(values.iter())))
}

fn join(left: Output, right: Output, lkey: &[Expr], rkey: &[Expr], closure: &Mfp) -> Output {
    let (mut output, right_rows) = Output::above(right);
    output.below.extend(left.below);
    let mut by_key: BTreeMap<Row, Vec<(Vec<Datum>, Diff)>> = BTreeMap::new();
    for (row, diff) in right_rows {
        let columns = row.unpack();
        match eval_key(rkey, &columns, false) {
            Ok(Some(key)) => by_key.entry(key).or_default().push((columns, diff)),
            Ok(None) => {}
            Err(error) => add(&mut output.errs, error, diff),
        }
    }
    for (row, diff) in left.oks {
        let columns = row.unpack();
        let matches = match eval_key(lkey, &columns, false) {
            Ok(Some(key)) => by_key.get(&key),
            Ok(None) => None,
            Err(error) => {
                add(&mut output.errs, error, diff);
                None
            }
        };
        for (right_columns, right_diff) in matches.into_iter().flatten() {
            let both: Vec<Datum> = columns.iter().chain(right_columns).cloned().collect();
            output.add_result(apply(closure, &both), diff * right_diff);
        }
    }
    output
}

/// The present time, if there is one yet.
fn present(clock: &Multiset<Row>) -> Option<i64> {
    let (row, _) = clock.iter().find(|(_, diff)| **diff > 0)?;
    row.column(0).as_timestamp()
}

fn valid(
    input: Output,
    now: Option<i64>,
    (from, until): (&[usize], &[usize]),
    kept: &[usize],
) -> Output {
    let (mut output, rows) = Output::above(input);
    let Some(now) = now else { return output };
    for (row, diff) in rows {
        let is_there = |column: &usize, test: &dyn Fn(i64) -> bool| {
            row.column(*column).as_timestamp().is_some_and(test)
        };
        let has_begun = from.iter().all(|column| is_there(column, &|at| now >= at));
        if has_begun && until.iter().all(|column| is_there(column, &|at| now < at)) {
            output.add(Row::project(&[&row], kept), diff);
        }
    }
    output
}

fn make_rows(input: Output, table_function: &TableFunction, closure: &Mfp) -> Output {
    let (mut output, rows) = Output::above(input);
    for (row, diff) in rows {
        let mut columns = row.unpack();
        let arity = columns.len();
        match table_function.rows(&columns) {
            Ok(mut rows) => {
                while rows.append_next(&mut columns) {
                    output.add_result(apply(closure, &columns), diff);
                    columns.truncate(arity);
                }
            }
            Err(error) => add(&mut output.errs, error, diff),
        }
    }
    output
}

fn map(input: Output, mfp: &Mfp) -> Output {
    let (mut output, rows) = Output::above(input);
    for (row, diff) in rows {
        output.add_result(apply(mfp, &row.unpack()), diff);
    }
    output
}

fn repeat(input: Output) -> Output {
    let (mut output, rows) = Output::above(input);
    for (row, diff) in rows {
        let mut values = row.unpack();
        let copies = values.pop().and_then(|copies| copies.as_i64()).unwrap_or(0);
        output.add_result(Ok(Some(Row::pack(values.iter()))), diff * copies);
    }
    output
}

fn reduce(input: Output, key: &[Expr], aggregates: &[Aggregate]) -> Output {
    let (mut output, rows) = Output::above(input);
    let mut groups: BTreeMap<Row, Vec<(Vec<Datum>, Diff)>> = BTreeMap::new();
    if key.is_empty() {
        groups.insert(Row::pack(std::iter::empty()), vec![]);
    }
    for (row, diff) in rows {
        let columns = row.unpack();
        match eval_key(key, &columns, true) {
            Ok(Some(key)) => groups.entry(key).or_default().push((columns, diff)),
            Ok(None) => {}
            Err(error) => add(&mut output.errs, error, diff),
        }
    }
    for (group, rows) in groups {
        let result = aggregates.iter().map(|one| aggregate::aggregate(one, &rows));
        match result.collect::<Result<Vec<Datum>, DataError>>() {
            Ok(values) => {
                let key = group.unpack();
                output.add(Row::pack(key.iter().chain(&values)), 1);
            }
            Err(error) => add(&mut output.errs, error, 1),
        }
    }
    output
}

fn partitions(input: Output, key: &[Expr], order: &[SortKey], work: &Work) -> Output {
    let (mut output, rows) = Output::above(input);
    let mut partitions: BTreeMap<Row, BTreeMap<(OrderKey, Row), Diff>> = BTreeMap::new();
    for (row, diff) in rows.into_iter().filter(|(_, diff)| *diff > 0) {
        let columns = row.unpack();
        match eval_key(key, &columns, true) {
            Ok(Some(key)) => {
                let rows = partitions.entry(key).or_default();
                rows.insert((OrderKey::of(order, &columns), row), diff);
            }
            Ok(None) => {}
            Err(error) => add(&mut output.errs, error, diff),
        }
    }
    for rows in partitions.into_values() {
        match work.results(order, rows.iter().map(|((key, row), copies)| (key, row, *copies))) {
            Ok(results) => results.into_iter().for_each(|(row, copies)| output.add(row, copies)),
            Err(error) => add(&mut output.errs, error, 1),
        }
    }
    output
}
