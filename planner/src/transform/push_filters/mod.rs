//! Moves conditions down to where their columns come from: to one input of a join, into the inputs of
//! a union, below DISTINCT and GROUP BY. A condition on a grouping key moves only if the key's type has
//! one representation for equal values, else it might see another representative. Conditions never
//! move into a recursion. Conditions on the present time move like any other, so that what is joined or grouped are
//! valid rows only; conditions that may fail stay above them, and above fences. Idempotent.

mod condition;

use super::flatten_joins::MAX_EXPRESSION;
use crate::error::PlanError;
use crate::ir::{Node, Predicate, Preserved, Query, Rel};
use condition::{meeting, Condition, Sorted};
use std::collections::BTreeSet;

pub(super) fn apply(query: Query) -> Result<Query, PlanError> {
    Ok(Query { root: push(query.root, vec![]), ..query })
}

/// The relation with its conditions tested as deep as possible.
pub(super) fn push_all(rel: Rel) -> Rel {
    push(rel, vec![])
}

/// The rows that meet the conditions, tested as deep as possible.
fn push(rel: Rel, mut conditions: Vec<Condition>) -> Rel {
    let columns = rel.columns.clone();
    let rebuild = |node: Node| Rel { columns: columns.clone(), node };
    match rel.node {
        Node::Filter { input, predicates: own } => {
            conditions.splice(0..0, own.into_iter().map(Condition::Test));
            // The filter may have had other names for its input's columns.
            Rel { columns, ..push(*input, conditions) }
        }
        Node::Temporal { input, bounds } => {
            conditions.splice(0..0, bounds.into_iter().map(Condition::Time));
            Rel { columns, ..push(*input, conditions) }
        }
        Node::Map { input, outputs } => {
            // What one projection after the other doubles would have no end.
            let is_small = |condition: &Condition| condition.size_over(&outputs) <= MAX_EXPRESSION;
            let (below, above) = split(conditions, is_small);
            let below = below.iter().map(|p| p.substitute(&|i| outputs[i].clone())).collect();
            let input = Box::new(push(*input, below));
            meeting(rebuild(Node::Map { input, outputs }), above)
        }
        Node::TableFunction { input, table_function } => {
            let arity = input.arity();
            let (below, above) =
                split(conditions, |p| p.columns().iter().all(|column| *column < arity));
            let input = Box::new(push(*input, below));
            meeting(rebuild(Node::TableFunction { input, table_function }), above)
        }
        Node::Join { inputs, predicates: own } => {
            conditions.splice(0..0, own.into_iter().map(Condition::Test));
            push_into_join(inputs, conditions, rebuild)
        }
        Node::OuterJoin { preserved, left, right, predicates: on } => {
            let sides = (*left, *right);
            push_into_outer_join(preserved, sides, on, conditions, rebuild)
        }
        Node::AntiJoin { left, right, predicates: on } => {
            let split_at = left.arity();
            let reads_right = |p: &Predicate| {
                let columns = p.columns();
                !columns.is_empty() && columns.into_iter().all(|column| column >= split_at)
            };
            let (into_right, on) = split(on, reads_right);
            let into_right = moved_by(into_right, split_at);
            let (left, right) =
                (Box::new(push(*left, conditions)), Box::new(push(*right, into_right)));
            rebuild(Node::AntiJoin { left, right, predicates: on })
        }
        Node::Apply(apply) => {
            let applied = rebuild(Node::Apply(apply));
            meeting(applied.map_children(&mut |child| push(child, vec![])), conditions)
        }
        Node::Union { inputs } => {
            let inputs = inputs.into_iter().map(|input| push(input, conditions.clone())).collect();
            rebuild(Node::Union { inputs })
        }
        Node::Fence { input, is_sealed } => {
            let (above, below) = split(conditions, Condition::may_fail);
            let input = Box::new(push(*input, below));
            meeting(rebuild(Node::Fence { input, is_sealed }), above)
        }
        Node::Repeat { input } => {
            rebuild(Node::Repeat { input: Box::new(push(*input, conditions)) })
        }
        Node::Distinct { input } => {
            let fixed = |column: &usize| input.columns[*column].ty.is_canonical();
            let (below, above) = split(conditions, |p| p.columns().iter().all(fixed));
            let input = Box::new(push(*input, below));
            meeting(rebuild(Node::Distinct { input }), above)
        }
        Node::Partition { input, key, order, work } => {
            // Whole partitions go or stay.
            let fixed =
                |column: &usize| key.contains(column) && input.columns[*column].ty.is_canonical();
            let movable = |p: &Condition| {
                !p.columns().is_empty() && p.columns().iter().all(fixed) && !p.may_fail()
            };
            let (below, above) = split(conditions, movable);
            let input = Box::new(push(*input, below));
            meeting(rebuild(Node::Partition { input, key, order, work }), above)
        }
        Node::Reduce { input, key, aggregates } => {
            let fixed = |column: &usize| {
                key.get(*column).is_some_and(|below| input.columns[*below].ty.is_canonical())
            };
            // Without columns it would still have to be above the one row of an empty key.
            let movable = |p: &Condition| !p.columns().is_empty() && p.columns().iter().all(fixed);
            let (below, above) = split(conditions, movable);
            let below = below.iter().map(|p| p.renumber(&|i| key[i])).collect();
            let input = Box::new(push(*input, below));
            meeting(rebuild(Node::Reduce { input, key, aggregates }), above)
        }
        Node::Let { id, value, body } => {
            let value = Box::new(push(*value, vec![]));
            rebuild(Node::Let { id, value, body: Box::new(push(*body, conditions)) })
        }
        Node::LetRec { id, all, form, base, step, body } => {
            let base = Box::new(push(*base, vec![]));
            let step = Box::new(push(*step, vec![]));
            let body = Box::new(push(*body, conditions));
            rebuild(Node::LetRec { id, all, form, base, step, body })
        }
        node @ (Node::Constant { .. } | Node::Source(_) | Node::Get(_)) => {
            meeting(rebuild(node), conditions)
        }
    }
}

fn push_into_join(
    inputs: Vec<Rel>,
    conditions: Vec<Condition>,
    rebuild: impl Fn(Node) -> Rel,
) -> Rel {
    let mut offsets = Vec::with_capacity(inputs.len());
    let mut arity = 0;
    for input in &inputs {
        offsets.push(arity);
        arity += input.arity();
    }
    let home = |condition: &Condition| {
        let columns = condition.columns();
        let first = columns.first().copied().unwrap_or(0);
        let last = columns.last().copied().unwrap_or(0);
        let input = offsets.iter().rposition(|offset| *offset <= first)?;
        (last < offsets[input] + inputs[input].arity() || columns.is_empty()).then_some(input)
    };
    let mut local: Vec<Vec<Condition>> = vec![Vec::new(); inputs.len()];
    let mut rest = Vec::new();
    for condition in conditions {
        match home(&condition) {
            Some(input) => local[input].push(condition.renumber(&|i| i - offsets[input])),
            None => rest.push(condition),
        }
    }
    let inputs = inputs.into_iter().zip(local).map(|(input, own)| push(input, own)).collect();
    let Sorted { before, bounds, after } = Sorted::of(rest);
    rebuild(Node::Join { inputs, predicates: before }).temporal(bounds).filter(after)
}

/// What is tested above may go into a side that is preserved alone, a condition of the join into the
/// other one: there it decides about partners, not about rows that are kept.
fn push_into_outer_join(
    preserved: Preserved,
    (left, right): (Rel, Rel),
    on: Vec<Predicate>,
    above: Vec<Condition>,
    rebuild: impl Fn(Node) -> Rel,
) -> Rel {
    let split_at = left.arity();
    let is_left_preserved = preserved == Preserved::Left;
    let reads = |columns: BTreeSet<usize>, is_wanted: &dyn Fn(usize) -> bool| {
        is_left_preserved && !columns.is_empty() && columns.into_iter().all(is_wanted)
    };
    let (into_left, above) = split(above, |p| reads(p.columns(), &|column| column < split_at));
    let (into_right, on) = split(on, |p| reads(p.columns(), &|column| column >= split_at));
    let into_right = moved_by(into_right, split_at);
    let (left, right) = (Box::new(push(left, into_left)), Box::new(push(right, into_right)));
    meeting(rebuild(Node::OuterJoin { preserved, left, right, predicates: on }), above)
}

/// Predicates over the right side of a join, over its own columns.
fn moved_by(predicates: Vec<Predicate>, split_at: usize) -> Vec<Condition> {
    let moved = |p: Predicate| Condition::Test(p.renumber(&|column| column - split_at));
    predicates.into_iter().map(moved).collect()
}

fn split<T>(conditions: Vec<T>, movable: impl Fn(&T) -> bool) -> (Vec<T>, Vec<T>) {
    conditions.into_iter().partition(movable)
}
