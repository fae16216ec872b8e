//! How many rows relations have, and how different they are: from what the catalog knows of tables, by the usual
//! assumptions. Values of one column are as frequent as those of another are different, columns do not depend on each
//! other, and what has few values has no others than what has many. An analysis, not a rewrite: wrong figures make plans
//! slow, never wrong.

mod conditions;
mod join_sizes;
mod values;

pub(crate) use join_sizes::{inputs_of, places, Condition, JoinSizes};

use crate::catalog::Statistics;
use crate::ir::{Input, Node, Predicate, Preserved, Rel};
use plan::expr::{columns_of, Expr};
use plan::partition::Work;
use plan::{LocalId, SourceId};
use std::collections::{BTreeMap, BTreeSet};
use values::Values;

/// Rows of a table of which nothing is known.
const UNKNOWN_ROWS: f64 = 1000.0;

/// Rows of a recursion for each row that it begins with, as PostgreSQL has it.
const ROUNDS: f64 = 10.0;

/// Rows that a set-returning function makes of one.
const ROWS_OF_FUNCTION: f64 = 10.0;

/// What is assumed of a relation's rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) rows: f64,
    /// The rows before conditions on single rows, to which columns with few rows left refer.
    pub(crate) unfiltered: f64,
    pub(crate) columns: Vec<Values>,
    /// Sets of several columns that are unique, where that is known at once.
    pub(crate) keys: Vec<BTreeSet<usize>>,
    /// Whether anything of it is known and not guessed.
    pub(crate) is_known: bool,
}

impl Estimate {
    /// The distinct combinations of values of columns.
    fn combinations(&self, columns: impl IntoIterator<Item = usize>) -> f64 {
        let distinct = columns.into_iter().map(|column| self.columns[column].with_null());
        distinct.product::<f64>().min(self.rows).max(1.0)
    }

    /// All combinations of rows, one of each.
    pub(crate) fn of_all(parts: &[Estimate]) -> Estimate {
        let none = Estimate::unknown(1.0, vec![]);
        parts.iter().cloned().fold(none, Estimate::beside)
    }

    /// The share of the rows that meet all conditions.
    pub(crate) fn share(&self, predicates: &[Predicate]) -> f64 {
        conditions::share(predicates, self)
    }

    fn map_rows(mut self, f: impl FnOnce(f64) -> f64) -> Estimate {
        self.rows = f(self.rows);
        self
    }

    fn beside(mut self, other: Estimate) -> Estimate {
        self.columns.extend(other.columns);
        let (rows, unfiltered) = (self.rows * other.rows, self.unfiltered * other.unfiltered);
        let is_known = self.is_known || other.is_known;
        Estimate { rows, unfiltered, columns: self.columns, keys: vec![], is_known }
    }

    /// So many rows, of which no more is known.
    fn unknown(rows: f64, columns: Vec<Values>) -> Estimate {
        Estimate { rows, unfiltered: rows, columns, keys: vec![], is_known: false }
    }

    /// So many rows of what was known of others.
    fn with_rows(self, rows: f64) -> Estimate {
        Estimate { rows, unfiltered: rows, keys: vec![], ..self }
    }
}

/// Estimates relations of a query.
pub(crate) struct Estimator<'q> {
    inputs: &'q [Input],
    locals: BTreeMap<LocalId, Estimate>,
}

impl<'q> Estimator<'q> {
    pub(crate) fn new(inputs: &'q [Input]) -> Estimator<'q> {
        Estimator { inputs, locals: BTreeMap::new() }
    }

    /// Lets a name stand for a value.
    pub(crate) fn bind(&mut self, id: LocalId, value: &Rel) {
        let estimate = self.estimate(value);
        self.locals.insert(id, estimate);
    }

    /// Lets a name stand for a recursion: some times what it begins with, and not more than there are different rows.
    pub(crate) fn bind_recursion(&mut self, id: LocalId, all: bool, base: &Rel, step: &Rel) {
        let mut whole = self.estimate(base);
        self.locals.insert(id, whole.clone());
        let next = self.estimate(step);
        for (column, other) in whole.columns.iter_mut().zip(&next.columns) {
            column.merge(other);
        }
        whole.is_known |= next.is_known;
        whole.rows = ROUNDS * whole.rows.max(1.0);
        let rows = if all { whole.rows } else { whole.combinations(0..whole.columns.len()) };
        self.locals.insert(id, whole.with_rows(rows));
    }

    /// The names around the relation are bound.
    pub(crate) fn estimate(&mut self, rel: &Rel) -> Estimate {
        let mut estimate = self.of_node(rel);
        // Some operators add columns.
        estimate.columns.resize(rel.arity(), Values::UNKNOWN);
        estimate
    }

    fn of_node(&mut self, rel: &Rel) -> Estimate {
        match &rel.node {
            Node::Constant { rows } => {
                let rows: f64 = rows.iter().map(|(_, diff)| *diff as f64).sum();
                Estimate::unknown(rows, vec![Values::at_most(rows); rel.arity()])
            }
            Node::Source(id) => self.source(*id),
            Node::Get(id) => self.locals.get(id).cloned().unwrap_or_else(|| unknown(rel.arity())),
            Node::Let { id, value, body } => {
                self.bind(*id, value);
                self.estimate(body)
            }
            Node::LetRec { id, all, base, step, body, .. } => {
                self.bind_recursion(*id, *all, base, step);
                self.estimate(body)
            }
            Node::Map { input, outputs } => {
                let below = self.estimate(input);
                let columns = outputs.iter().map(|output| of_expr(output, &below)).collect();
                let place = |column: &usize| {
                    outputs.iter().position(|output| output.as_column() == Some(*column))
                };
                let keys = below.keys.iter();
                let keys = keys.filter_map(|key| key.iter().map(place).collect()).collect();
                Estimate { columns, keys, ..below }
            }
            Node::Filter { input, predicates } => {
                let below = self.estimate(input);
                let share = below.share(predicates);
                below.map_rows(|rows| rows * share)
            }
            Node::Temporal { input, .. } | Node::Fence { input, .. } => self.estimate(input),
            Node::Repeat { input } => {
                let below = self.estimate(input);
                let rows = below.rows;
                below.with_rows(rows)
            }
            Node::TableFunction { input, table_function } => {
                let rows = if table_function.calls.is_empty() { 1.0 } else { ROWS_OF_FUNCTION };
                let below = self.estimate(input);
                let rows = below.rows * rows;
                below.with_rows(rows)
            }
            Node::Join { inputs, predicates } => self.join(inputs, predicates),
            Node::OuterJoin { preserved, left, right, predicates } => {
                self.outer_join(*preserved, [left, right], predicates)
            }
            Node::AntiJoin { left, .. } => self.estimate(left).map_rows(|rows| rows / 2.0),
            Node::Apply(apply) => self.estimate(&apply.outer),
            Node::Reduce { input, key, .. } => self.reduce(input, key, rel.arity()),
            Node::Distinct { input } => {
                let below = self.estimate(input);
                let rows = below.combinations(0..below.columns.len());
                below.map_rows(|_| rows)
            }
            Node::Partition { input, key, work, .. } => self.partition(input, key, work),
            Node::Union { inputs } => self.union(inputs, rel.arity()),
        }
    }

    fn source(&self, id: SourceId) -> Estimate {
        let Some(input) = self.inputs.get(id.0) else { return unknown(0) };
        let known = input.statistics.as_ref();
        let rows = known.map_or(UNKNOWN_ROWS, |known| known.rows.max(1.0));
        let column = |&column: &usize| {
            let is_unique = input.unique.iter().any(|key| key.as_slice() == [column]);
            let known = known.and_then(|known: &Statistics| known.columns.get(column)?.as_ref());
            Values::of_table((id, column), rows, is_unique, known)
        };
        let columns = input.source.columns.iter().map(column).collect();
        let place = |column: &usize| input.source.columns.iter().position(|c| c == column);
        let several = input.unique.iter().filter(|key| key.len() > 1);
        let keys = several.filter_map(|key| key.iter().map(place).collect()).collect();
        Estimate { keys, is_known: known.is_some(), ..Estimate::unknown(rows, columns) }
    }

    fn join(&mut self, inputs: &[Rel], predicates: &[Predicate]) -> Estimate {
        let parts: Vec<Estimate> = inputs.iter().map(|input| self.estimate(input)).collect();
        let all = Estimate::of_all(&parts);
        let everything = (0..parts.len()).collect();
        let rows = JoinSizes::new(parts, predicates).rows(&everything);
        all.with_rows(rows)
    }

    fn outer_join(
        &mut self,
        preserved: Preserved,
        [left, right]: [&Rel; 2],
        predicates: &[Predicate],
    ) -> Estimate {
        let [left, right] = [left, right].map(|side| self.estimate(side));
        let least = match preserved {
            Preserved::Left => left.rows,
            Preserved::Both => left.rows.max(right.rows),
        };
        let all = Estimate::of_all(&[left.clone(), right.clone()]);
        let rows = JoinSizes::new(vec![left, right], predicates).rows(&BTreeSet::from([0, 1]));
        all.with_rows(rows.max(least))
    }

    fn reduce(&mut self, input: &Rel, key: &[usize], arity: usize) -> Estimate {
        let below = self.estimate(input);
        let rows = below.combinations(key.iter().copied());
        let mut columns: Vec<Values> = key.iter().map(|&column| below.columns[column]).collect();
        if let [only] = columns.as_mut_slice() {
            only.repeats = 1.0 / rows;
        }
        columns.resize(arity, Values::at_most(rows));
        let keys = if key.len() > 1 { vec![(0..key.len()).collect()] } else { vec![] };
        Estimate { keys, columns, ..below.with_rows(rows) }
    }

    fn partition(&mut self, input: &Rel, key: &[usize], work: &Work) -> Estimate {
        let below = self.estimate(input);
        let partitions = below.combinations(key.iter().copied());
        match work {
            Work::TopK(_) if work.keeps_one_row() => below.map_rows(|_| partitions),
            Work::TopK(top) => match top.limit {
                Some(plan::partition::Count::Fixed(limit)) => {
                    below.map_rows(|rows| rows.min(partitions * limit as f64))
                }
                _ => below,
            },
            Work::Window(_) => below,
        }
    }

    fn union(&mut self, inputs: &[Rel], arity: usize) -> Estimate {
        let parts: Vec<Estimate> = inputs.iter().map(|input| self.estimate(input)).collect();
        let Some((first, others)) = parts.split_first() else { return unknown(arity) };
        let mut whole = first.clone();
        for other in others {
            whole.rows += other.rows;
            whole.is_known |= other.is_known;
            whole.columns.iter_mut().zip(&other.columns).for_each(|(own, other)| own.merge(other));
        }
        let rows = whole.rows;
        whole.with_rows(rows)
    }
}

fn unknown(arity: usize) -> Estimate {
    Estimate::unknown(UNKNOWN_ROWS, vec![Values::UNKNOWN; arity])
}

/// What an expression yields is as different as what it is made of, at most.
fn of_expr(expr: &Expr, below: &Estimate) -> Values {
    match expr {
        Expr::Column(column) => below.columns[*column],
        _ => {
            let columns = columns_of(expr);
            let nulls = columns.iter().map(|&column| below.columns[column].nulls);
            let nulls = nulls.fold(0.0, f64::max);
            Values { nulls, ..Values::at_most(below.combinations(columns)) }
        }
    }
}
