//! Moves conditions down to where their columns come from: to one input of a join, into the inputs of
//! a union, below DISTINCT and GROUP BY. A condition on a grouping key moves only if the key's type has
//! one representation for equal values, else it might see another representative. Conditions never
//! move into a recursion. Idempotent.

use crate::error::PlanError;
use crate::exprs;
use crate::ir::{Node, Predicate, Preserved, Query, Rel};

pub(super) fn apply(query: Query) -> Result<Query, PlanError> {
    Ok(Query { root: push(query.root, vec![]), ..query })
}

/// The rows for which the predicates are true, tested as deep as possible.
fn push(rel: Rel, mut predicates: Vec<Predicate>) -> Rel {
    let columns = rel.columns.clone();
    let rebuild = |node: Node| Rel { columns: columns.clone(), node };
    match rel.node {
        Node::Filter { input, predicates: own } => {
            predicates.splice(0..0, own);
            // The filter may have had other names for its input's columns.
            Rel { columns, ..push(*input, predicates) }
        }
        Node::Map { input, outputs } => {
            let below = predicates.iter().map(|p| p.substitute(&|i| outputs[i].clone())).collect();
            let input = Box::new(push(*input, below));
            rebuild(Node::Map { input, outputs })
        }
        Node::TableFunction { input, table_function } => {
            let arity = input.arity();
            let (below, above) =
                split(predicates, |p| p.columns().iter().all(|column| *column < arity));
            let input = Box::new(push(*input, below));
            rebuild(Node::TableFunction { input, table_function }).filter(above)
        }
        Node::Join { inputs, predicates: own } => {
            predicates.splice(0..0, own);
            push_into_join(inputs, predicates, rebuild)
        }
        Node::OuterJoin { preserved, left, right, predicates: on } => {
            let sides = (*left, *right);
            push_into_outer_join(preserved, sides, on, predicates, rebuild)
        }
        Node::AntiJoin { left, right, predicates: on } => {
            let split_at = left.arity();
            let reads_right = |p: &Predicate| {
                let columns = p.columns();
                !columns.is_empty() && columns.into_iter().all(|column| column >= split_at)
            };
            let (into_right, on) = split(on, reads_right);
            let into_right = into_right.iter().map(|p| p.renumber(&|i| i - split_at)).collect();
            let (left, right) =
                (Box::new(push(*left, predicates)), Box::new(push(*right, into_right)));
            rebuild(Node::AntiJoin { left, right, predicates: on })
        }
        Node::Apply(apply) => rebuild(Node::Apply(apply))
            .map_children(&mut |child| push(child, vec![]))
            .filter(predicates),
        Node::Union { inputs } => {
            let inputs = inputs.into_iter().map(|input| push(input, predicates.clone())).collect();
            rebuild(Node::Union { inputs })
        }
        Node::Repeat { input } => {
            rebuild(Node::Repeat { input: Box::new(push(*input, predicates)) })
        }
        Node::Distinct { input } => {
            let fixed = |column: &usize| input.columns[*column].ty.is_canonical();
            let (below, above) = split(predicates, |p| p.columns().iter().all(fixed));
            let input = Box::new(push(*input, below));
            rebuild(Node::Distinct { input }).filter(above)
        }
        Node::Partition { input, key, order, work } => {
            // Whole partitions go or stay.
            let fixed =
                |column: &usize| key.contains(column) && input.columns[*column].ty.is_canonical();
            let movable = |p: &Predicate| {
                !p.columns().is_empty()
                    && p.columns().iter().all(fixed)
                    && !exprs::may_fail(&p.to_expr())
            };
            let (below, above) = split(predicates, movable);
            let input = Box::new(push(*input, below));
            rebuild(Node::Partition { input, key, order, work }).filter(above)
        }
        Node::Reduce { input, key, aggregates } => {
            let fixed = |column: &usize| {
                key.get(*column).is_some_and(|below| input.columns[*below].ty.is_canonical())
            };
            // Without columns it would still have to be above the one row of an empty key.
            let movable = |p: &Predicate| !p.columns().is_empty() && p.columns().iter().all(fixed);
            let (below, above) = split(predicates, movable);
            let below = below.iter().map(|p| p.renumber(&|i| key[i])).collect();
            let input = Box::new(push(*input, below));
            rebuild(Node::Reduce { input, key, aggregates }).filter(above)
        }
        Node::Let { id, value, body } => {
            let value = Box::new(push(*value, vec![]));
            rebuild(Node::Let { id, value, body: Box::new(push(*body, predicates)) })
        }
        Node::LetRec { id, all, form, base, step, body } => {
            let base = Box::new(push(*base, vec![]));
            let step = Box::new(push(*step, vec![]));
            let body = Box::new(push(*body, predicates));
            rebuild(Node::LetRec { id, all, form, base, step, body })
        }
        node @ (Node::Constant { .. } | Node::Source(_) | Node::Get(_)) => {
            rebuild(node).filter(predicates)
        }
    }
}

fn push_into_join(
    inputs: Vec<Rel>,
    predicates: Vec<Predicate>,
    rebuild: impl Fn(Node) -> Rel,
) -> Rel {
    let mut offsets = Vec::with_capacity(inputs.len());
    let mut arity = 0;
    for input in &inputs {
        offsets.push(arity);
        arity += input.arity();
    }
    let home = |predicate: &Predicate| {
        let columns = predicate.columns();
        let first = columns.first().copied().unwrap_or(0);
        let last = columns.last().copied().unwrap_or(0);
        let input = offsets.iter().rposition(|offset| *offset <= first)?;
        (last < offsets[input] + inputs[input].arity() || columns.is_empty()).then_some(input)
    };
    let mut local: Vec<Vec<Predicate>> = vec![Vec::new(); inputs.len()];
    let mut rest = Vec::new();
    for predicate in predicates {
        match home(&predicate) {
            Some(input) => local[input].push(predicate.renumber(&|i| i - offsets[input])),
            None => rest.push(predicate),
        }
    }
    let inputs = inputs.into_iter().zip(local).map(|(input, own)| push(input, own)).collect();
    rebuild(Node::Join { inputs, predicates: rest })
}

/// What is tested above may go into a side that is preserved alone, a condition of the join into the
/// other one: there it decides about partners, not about rows that are kept.
fn push_into_outer_join(
    preserved: Preserved,
    (left, right): (Rel, Rel),
    on: Vec<Predicate>,
    above: Vec<Predicate>,
    rebuild: impl Fn(Node) -> Rel,
) -> Rel {
    let split_at = left.arity();
    let is_left_preserved = preserved == Preserved::Left;
    let reads = |p: &Predicate, is_wanted: &dyn Fn(usize) -> bool| {
        let columns = p.columns();
        is_left_preserved && !columns.is_empty() && columns.into_iter().all(is_wanted)
    };
    let (into_left, above) = split(above, |p| reads(p, &|column| column < split_at));
    let (into_right, on) = split(on, |p| reads(p, &|column| column >= split_at));
    let into_right = into_right.iter().map(|p| p.renumber(&|i| i - split_at)).collect();
    let (left, right) = (Box::new(push(left, into_left)), Box::new(push(right, into_right)));
    rebuild(Node::OuterJoin { preserved, left, right, predicates: on }).filter(above)
}

fn split(
    predicates: Vec<Predicate>,
    movable: impl Fn(&Predicate) -> bool,
) -> (Vec<Predicate>, Vec<Predicate>) {
    predicates.into_iter().partition(movable)
}
