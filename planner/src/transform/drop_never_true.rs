//! Drops relations that are empty because of a condition that no row decides. Under `WHERE false` there are no rows,
//! nor is there anything that is made of them row by row; an inner join with them is empty, an outer join has NULLs
//! in their place. What is dropped is not computed and raises no errors. Nor does it in PostgreSQL, which tests such
//! conditions before it begins. Conditions that are always true go, too. Idempotent.
//!
//! ```text
//! Join [a.x = b.x]         becomes   Constant 0 rows (a.x, b.x)
//!   Get a (x)
//!   Filter [false]
//!     Get b (x)
//! ```

use crate::error::PlanError;
use crate::ir::{Apply, ApplyKind, Node, Predicate, Preserved, Query, Rel};
use plan::expr::Expr;
use plan::types::{Column, Scalar, Type};
use plan::value::Datum;

pub(super) fn apply(query: Query) -> Result<Query, PlanError> {
    Ok(Query { root: reduce(query.root), ..query })
}

fn reduce(rel: Rel) -> Rel {
    let Rel { columns, node } = rel.map_children(&mut reduce);
    let rebuild = |node: Node| Rel { columns: columns.clone(), node };
    match node {
        Node::Map { input, outputs } if !is_empty(&input) => {
            let outputs = outputs.iter().map(Expr::with_decided_conditions).collect();
            rebuild(Node::Map { input, outputs })
        }
        Node::Filter { input, predicates } => match decided(predicates) {
            Some(predicates) if !is_empty(&input) => {
                Rel { columns: columns.clone(), ..input.filter(predicates) }
            }
            _ => empty(columns),
        },
        Node::Join { inputs, predicates } => match decided(predicates) {
            Some(predicates) if !inputs.iter().any(is_empty) => {
                rebuild(Node::Join { inputs, predicates })
            }
            _ => empty(columns),
        },
        Node::OuterJoin { preserved, left, right, predicates } => {
            reduce_outer_join(columns, preserved, (*left, *right), predicates)
        }
        Node::AntiJoin { left, right, predicates } => match decided(predicates) {
            Some(predicates) if !is_empty(&left) && !is_empty(&right) => {
                rebuild(Node::AntiJoin { left, right, predicates })
            }
            _ => Rel { columns: columns.clone(), ..*left },
        },
        Node::Apply(apply) => reduce_apply(columns, *apply),
        Node::Union { inputs } => {
            let mut inputs: Vec<Rel> = inputs.into_iter().filter(|rel| !is_empty(rel)).collect();
            match inputs.len() {
                0 => empty(columns),
                1 => Rel { columns: columns.clone(), ..inputs.remove(0) },
                _ => rebuild(Node::Union { inputs }),
            }
        }
        node if makes_nothing_of_nothing(&node) => empty(columns),
        node => rebuild(node),
    }
}

/// The conditions that a row decides; `None` if one is never true.
fn decided(predicates: Vec<Predicate>) -> Option<Vec<Predicate>> {
    let mut kept = Vec::new();
    for predicate in predicates {
        let predicate = predicate.map_exprs(&Expr::with_decided_conditions);
        let truth = predicate.to_expr().with_decided_conditions();
        if truth.is_never_true() {
            return None;
        }
        if !truth.is_always_true() {
            kept.push(predicate);
        }
    }
    Some(kept)
}

fn is_empty(rel: &Rel) -> bool {
    matches!(&rel.node, Node::Constant { rows } if rows.is_empty())
}

fn empty(columns: Vec<Column>) -> Rel {
    Rel { columns, node: Node::Constant { rows: vec![] } }
}

/// Whether a relation made row by row, or group by group, has an empty input.
fn makes_nothing_of_nothing(node: &Node) -> bool {
    match node {
        Node::Map { input, .. }
        | Node::Temporal { input, .. }
        | Node::TableFunction { input, .. }
        | Node::Distinct { input }
        | Node::Partition { input, .. }
        | Node::Fence { input, .. }
        | Node::Repeat { input } => is_empty(input),
        Node::Reduce { input, key, .. } => !key.is_empty() && is_empty(input),
        Node::Let { body, .. } | Node::LetRec { body, .. } => is_empty(body),
        _ => false,
    }
}

fn reduce_outer_join(
    columns: Vec<Column>,
    preserved: Preserved,
    (left, right): (Rel, Rel),
    predicates: Vec<Predicate>,
) -> Rel {
    let is_left_alone = preserved == Preserved::Left;
    if is_empty(&left) && (is_left_alone || is_empty(&right)) {
        return empty(columns);
    }
    let (left, right) = match decided(predicates.clone()) {
        Some(predicates) if !(is_left_alone && is_empty(&right)) => {
            let (left, right) = (Box::new(left), Box::new(right));
            let node = Node::OuterJoin { preserved, left, right, predicates };
            return Rel { columns, node };
        }
        _ => (left, right),
    };
    if is_left_alone {
        return padded(left, columns);
    }
    let (left, right) = (Box::new(left), Box::new(right));
    Rel { columns, node: Node::OuterJoin { preserved, left, right, predicates } }
}

/// The rows with NULL for the columns that they lack.
fn padded(rel: Rel, columns: Vec<Column>) -> Rel {
    let null = |column: &Column| Expr::Literal(Datum::Null, column.ty);
    let own = (0..rel.arity()).map(Expr::Column);
    let outputs = own.chain(columns[rel.arity()..].iter().map(null)).collect();
    rel.map(outputs, columns)
}

fn reduce_apply(columns: Vec<Column>, mut apply: Apply) -> Rel {
    if is_empty(&apply.outer) {
        return empty(columns);
    }
    if !is_empty(&apply.inner) {
        for binding in &mut apply.bindings {
            binding.value = binding.value.with_decided_conditions();
        }
        return Rel { columns, node: Node::Apply(Box::new(apply)) };
    }
    match apply.kind {
        ApplyKind::Cross | ApplyKind::Semi => empty(columns),
        ApplyKind::Anti => Rel { columns, ..apply.outer },
        ApplyKind::Left | ApplyKind::Scalar => padded(apply.outer, columns),
        ApplyKind::Mark => {
            let own = (0..apply.outer.arity()).map(Expr::Column);
            let no = Expr::Literal(Datum::Bool(false), Type::Scalar(Scalar::Bool));
            apply.outer.map(own.chain([no]).collect(), columns)
        }
    }
}
