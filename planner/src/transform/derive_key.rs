//! Which columns of the result are unique, as far as primary keys, GROUP BY, DISTINCT and equalities
//! prove it. An analysis, not a rewrite.

use crate::ir::{Input, Node, Predicate, Preserved, Query, Rel};
use plan::table_function::TableFunction;
use plan::{LocalId, Recursion};
use std::collections::{BTreeMap, BTreeSet};

type Key = BTreeSet<usize>;

/// Keys considered per node: joins multiply them.
const MAX_KEYS: usize = 8;

/// The smallest set of columns known to be unique.
pub fn derive_key(query: &Query) -> Option<Vec<usize>> {
    let keys = keys(&query.inputs, &query.root).into_iter();
    keys.map(|key| key.into_iter().collect::<Vec<_>>()).min_by_key(|key| (key.len(), key.clone()))
}

/// Sets of columns that are unique in a relation, as far as it is known.
pub(super) fn keys(inputs: &[Input], rel: &Rel) -> Vec<BTreeSet<usize>> {
    Deriver { inputs, locals: BTreeMap::new() }.keys(rel)
}

fn recursion_keys(all: bool, form: Option<&Recursion>, arity: usize) -> Vec<Key> {
    match form {
        Some(Recursion::FixpointExtreme { key, .. }) => vec![key.iter().copied().collect()],
        _ if all => vec![],
        _ => vec![(0..arity).collect()],
    }
}

struct Deriver<'q> {
    inputs: &'q [Input],
    locals: BTreeMap<LocalId, Vec<Key>>,
}

impl Deriver<'_> {
    fn keys(&mut self, rel: &Rel) -> Vec<Key> {
        let mut keys = match &rel.node {
            Node::Constant { rows } => match rows.as_slice() {
                [] | [(_, 1)] => vec![Key::new()],
                _ => vec![],
            },
            Node::Source(id) => self.source_keys(id.0),
            Node::Get(id) => self.locals.get(id).cloned().unwrap_or_default(),
            Node::Let { id, value, body } => {
                let value = self.keys(value);
                self.locals.insert(*id, value);
                self.keys(body)
            }
            Node::LetRec { id, all, form, base, body, .. } => {
                self.locals.insert(*id, recursion_keys(*all, form.as_ref(), base.arity()));
                self.keys(body)
            }
            Node::Map { input, outputs } => {
                let position = |column: &usize| {
                    outputs.iter().position(|output| output.as_column() == Some(*column))
                };
                let below = self.keys(input);
                below.iter().filter_map(|key| key.iter().map(position).collect()).collect()
            }
            Node::Filter { input, .. }
            | Node::Temporal { input, .. }
            | Node::Fence { input, .. } => self.keys(input),
            Node::TableFunction { input, table_function } => {
                self.table_function_keys(input, table_function)
            }
            Node::Join { inputs, predicates } => {
                self.join_keys(&inputs.iter().collect::<Vec<_>>(), predicates)
            }
            Node::OuterJoin { preserved, left, right, predicates } => {
                self.outer_join_keys(*preserved, (left, right), predicates)
            }
            Node::Reduce { input, key, .. } => self.reduce_keys(input, key),
            Node::Distinct { input } => {
                let mut keys = self.keys(input);
                keys.push((0..rel.arity()).collect());
                keys
            }
            Node::Partition { input, key, work, .. } => {
                let mut keys = self.keys(input);
                if work.keeps_one_row() {
                    keys.push(key.iter().copied().collect());
                }
                keys
            }
            Node::AntiJoin { left, .. } => self.keys(left),
            Node::Apply(_) | Node::Union { .. } | Node::Repeat { .. } => vec![],
        };
        keys.sort_by_key(BTreeSet::len);
        keys.truncate(MAX_KEYS);
        keys
    }

    fn source_keys(&self, id: usize) -> Vec<Key> {
        let Some(input) = self.inputs.get(id) else { return vec![] };
        let position = |column: &usize| input.source.columns.iter().position(|c| c == column);
        input.unique.iter().filter_map(|set| set.iter().map(position).collect()).collect()
    }

    /// Those of the inner join that still tell the rows apart that have no partner.
    fn outer_join_keys(
        &mut self,
        preserved: Preserved,
        (left, right): (&Rel, &Rel),
        predicates: &[Predicate],
    ) -> Vec<Key> {
        let split = left.arity();
        let has_left = |key: &Key| key.range(..split).next().is_some();
        let has_right = |key: &Key| key.range(split..).next().is_some();
        let is_null = |column: &usize| match column.checked_sub(split) {
            None => left.columns[*column].nullable,
            Some(column) => right.columns[column].nullable,
        };
        let is_kept = |key: &Key| match preserved {
            // Of a row without partner the left side's key says which one it is.
            Preserved::Left => has_left(key),
            // Rows of both sides might have none and NULLs for keys.
            Preserved::Both => has_left(key) && has_right(key) && !key.iter().all(is_null),
        };
        self.join_keys(&[left, right], predicates).into_iter().filter(is_kept).collect()
    }

    /// A key of the input within the grouping key makes groups of one row.
    fn reduce_keys(&mut self, input: &Rel, key: &[usize]) -> Vec<Key> {
        let position = |column: &usize| key.iter().position(|k| k == column);
        let below = self.keys(input);
        let within = below.iter().filter_map(|k| k.iter().map(position).collect());
        let mut keys: Vec<Key> = within.filter(|_| !key.is_empty()).collect();
        keys.push((0..key.len()).collect());
        keys
    }

    /// The row and which of those made of it.
    fn table_function_keys(&mut self, input: &Rel, table_function: &TableFunction) -> Vec<Key> {
        let ordinality = input.arity() + table_function.calls.len();
        let numbers = [
            table_function.has_ordinality.then_some(ordinality),
            table_function.is_distinct().then_some(input.arity()),
        ];
        let numbers: Vec<usize> = numbers.into_iter().flatten().collect();
        let with = |key: &Key, number: usize| key.iter().copied().chain([number]).collect();
        let below = self.keys(input);
        below.iter().flat_map(|key| numbers.iter().map(|&number| with(key, number))).collect()
    }

    /// Of two inputs: a key of one if equalities tie a whole key of the other to it, else both together.
    fn join_keys(&mut self, inputs: &[&Rel], predicates: &[Predicate]) -> Vec<Key> {
        let mut joined = vec![Key::new()];
        let mut arity = 0;
        for input in inputs {
            let shift = |key: &Key| key.iter().map(|column| column + arity).collect();
            let right: Vec<Key> = self.keys(input).iter().map(shift).collect();
            let split = arity;
            arity += input.arity();
            let tied = tied_columns(predicates, split, arity);
            let left_side: Key = tied.iter().map(|pair| pair.0).collect();
            let right_side: Key = tied.iter().map(|pair| pair.1).collect();
            let mut keys = Vec::new();
            if right.iter().any(|key| key.is_subset(&right_side)) {
                keys.extend(joined.iter().cloned());
            }
            if joined.iter().any(|key| key.is_subset(&left_side)) {
                keys.extend(right.iter().cloned());
            }
            for left in &joined {
                keys.extend(right.iter().map(|right| left | right));
            }
            keys.truncate(MAX_KEYS);
            joined = keys;
        }
        joined
    }
}

/// Pairs of columns left and right of `split` that are equal.
fn tied_columns(predicates: &[Predicate], split: usize, arity: usize) -> Vec<(usize, usize)> {
    let pair = |predicate: &Predicate| {
        let Predicate::Equal { left, right, .. } = predicate else { return None };
        let (a, b) = (left.expr.as_column()?, right.expr.as_column()?);
        let (low, high) = (a.min(b), a.max(b));
        (low < split && split <= high && high < arity).then_some((low, high))
    };
    predicates.iter().filter_map(pair).collect()
}
