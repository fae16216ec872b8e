//! Moves conditions down to where their columns come from: to one input of a join, into the inputs of
//! a union, below DISTINCT and GROUP BY. A condition on a grouping key moves only if the key's type has
//! one representation for equal values, else it might see another representative. Conditions never
//! move into a recursion. Conditions on the present time move like any other, so that what is joined or grouped are
//! valid rows only; conditions that may fail stay above them, and above fences. Idempotent.
//!
//! ```text
//! Filter [src > 1] AND [n > 2]       becomes   Filter [n > 2]
//!   Reduce by (src) to (Count AS n)              Reduce by (src) to (Count AS n)
//!     Source edges (src)                           Filter [src > 1]
//!                                                    Source edges (src)
//! ```

mod condition;

use super::flatten_joins::MAX_EXPRESSION;
use crate::error::PlanError;
use crate::ir::{Node, Predicate, Preserved, Query, Rel};
use condition::{meeting, Condition, Sorted};
use plan::expr::Expr;
use plan::Aggregate;
use std::collections::BTreeSet;

pub(super) fn apply(query: Query) -> Result<Query, PlanError> {
    Ok(Query { root: push(query.root, vec![]), ..query })
}

/// The relation with its conditions tested as deep as possible.
pub(super) fn push_all(rel: Rel) -> Rel {
    push(rel, vec![])
}

/// The rows that meet the conditions, tested as deep as possible.
fn push(rel: Rel, conditions: Vec<Condition>) -> Rel {
    let columns = rel.columns.clone();
    let rebuild = |node: Node| Rel { columns: columns.clone(), node };
    match rel.node {
        // The node may have had other names for its input's columns.
        Node::Filter { input, predicates } => {
            let own = predicates.into_iter().map(Condition::Test);
            Rel { columns, ..push(*input, own.chain(conditions).collect()) }
        }
        Node::Temporal { input, bounds } => {
            let own = bounds.into_iter().map(Condition::Time);
            Rel { columns, ..push(*input, own.chain(conditions).collect()) }
        }
        Node::Map { input, outputs } => push_below_map(*input, outputs, conditions, rebuild),
        Node::TableFunction { input, table_function } => {
            let wrap = |input| rebuild(Node::TableFunction { input, table_function });
            push_some(*input, conditions, reads_input_only, wrap)
        }
        Node::Join { inputs, predicates } => {
            let own = predicates.into_iter().map(Condition::Test);
            push_into_join(inputs, own.chain(conditions).collect(), rebuild)
        }
        Node::OuterJoin { preserved, left, right, predicates: on } => {
            push_into_outer_join(preserved, (*left, *right), on, conditions, rebuild)
        }
        Node::AntiJoin { left, right, predicates: on } => {
            rebuild(push_into_anti_join((*left, *right), on, conditions))
        }
        Node::Apply(_) => meeting(rebuild(rel.node).map_children(&mut push_all), conditions),
        Node::Union { inputs } => {
            let inputs = inputs.into_iter().map(|input| push(input, conditions.clone())).collect();
            rebuild(Node::Union { inputs })
        }
        Node::Fence { input, is_sealed } => {
            let wrap = |input| rebuild(Node::Fence { input, is_sealed });
            push_some(*input, conditions, |p, _| !p.may_fail(), wrap)
        }
        Node::Repeat { input } => rebuild(Node::Repeat { input: below(*input, conditions) }),
        Node::Distinct { input } => {
            push_some(*input, conditions, keeps_copies, |input| rebuild(Node::Distinct { input }))
        }
        Node::Partition { input, key, order, work } => {
            let wrap = |input| rebuild(Node::Partition { input, key: key.clone(), order, work });
            push_some(*input, conditions, |p, input| keeps_partitions(p, &key, input), wrap)
        }
        Node::Reduce { input, key, aggregates } => {
            push_below_reduce(*input, key, aggregates, conditions, rebuild)
        }
        Node::Let { id, value, body } => {
            let (value, body) = (below(*value, vec![]), below(*body, conditions));
            rebuild(Node::Let { id, value, body })
        }
        Node::LetRec { id, all, form, base, step, body } => {
            let [base, step] = [base, step].map(|part| below(*part, vec![]));
            let body = below(*body, conditions);
            rebuild(Node::LetRec { id, all, form, base, step, body })
        }
        Node::Constant { .. } | Node::Source(_) | Node::Get(_) => meeting(rel, conditions),
    }
}

fn below(input: Rel, conditions: Vec<Condition>) -> Box<Rel> {
    Box::new(push(input, conditions))
}

/// Tests below what `wrap` makes of the input those conditions that may move there, and the others above.
fn push_some(
    input: Rel,
    conditions: Vec<Condition>,
    moves: impl Fn(&Condition, &Rel) -> bool,
    wrap: impl FnOnce(Box<Rel>) -> Rel,
) -> Rel {
    let (below, above) = split(conditions, |condition| moves(condition, &input));
    meeting(wrap(Box::new(push(input, below))), above)
}

fn push_below_map(
    input: Rel,
    outputs: Vec<Expr>,
    conditions: Vec<Condition>,
    rebuild: impl FnOnce(Node) -> Rel,
) -> Rel {
    // What one projection after the other doubles would have no end.
    let is_small = |condition: &Condition| condition.size_over(&outputs) <= MAX_EXPRESSION;
    let (below, above) = split(conditions, is_small);
    let below = below.iter().map(|p| p.substitute(&|i| outputs[i].clone())).collect();
    let input = Box::new(push(input, below));
    meeting(rebuild(Node::Map { input, outputs }), above)
}

fn push_below_reduce(
    input: Rel,
    key: Vec<usize>,
    aggregates: Vec<Aggregate>,
    conditions: Vec<Condition>,
    rebuild: impl FnOnce(Node) -> Rel,
) -> Rel {
    let (below, above) = split(conditions, |p| keeps_groups(p, &key, &input));
    let below = below.iter().map(|p| p.renumber(&|i| key[i])).collect();
    let input = Box::new(push(input, below));
    meeting(rebuild(Node::Reduce { input, key, aggregates }), above)
}

/// Whether a condition reads nothing that a function below it adds.
fn reads_input_only(condition: &Condition, input: &Rel) -> bool {
    condition.columns().iter().all(|column| *column < input.arity())
}

/// Whether a condition meets all rows that are equal in SQL, or none.
fn keeps_copies(condition: &Condition, input: &Rel) -> bool {
    condition.columns().iter().all(|column| input.columns[*column].ty.is_canonical())
}

/// Whether a condition meets whole partitions, or none of their rows.
fn keeps_partitions(condition: &Condition, key: &[usize], input: &Rel) -> bool {
    let columns = condition.columns();
    let is_fixed =
        |column: &usize| key.contains(column) && input.columns[*column].ty.is_canonical();
    !columns.is_empty() && columns.iter().all(is_fixed) && !condition.may_fail()
}

/// Whether a condition over the groups meets all rows of a group, or none. Without columns it would still have to be
/// above the one row of an empty key.
fn keeps_groups(condition: &Condition, key: &[usize], input: &Rel) -> bool {
    let columns = condition.columns();
    let is_fixed = |column: &usize| {
        key.get(*column).is_some_and(|below| input.columns[*below].ty.is_canonical())
    };
    !columns.is_empty() && columns.iter().all(is_fixed)
}

fn push_into_anti_join(
    (left, right): (Rel, Rel),
    on: Vec<Predicate>,
    conditions: Vec<Condition>,
) -> Node {
    let split_at = left.arity();
    let reads_right = |p: &Predicate| {
        let columns = p.columns();
        !columns.is_empty() && columns.into_iter().all(|column| column >= split_at)
    };
    let (into_right, on) = split(on, reads_right);
    let into_right = moved_by(into_right, split_at);
    let (left, right) = (Box::new(push(left, conditions)), Box::new(push(right, into_right)));
    Node::AntiJoin { left, right, predicates: on }
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
