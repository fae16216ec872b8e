//! Puts values that are referred to once where they are used, and drops those nobody uses.
//! Into a recursive step only what needs no state is moved: anything else is computed once outside
//! of the loop. Idempotent.
//!
//! ```text
//! Let a                    becomes   Filter [x > 1]
//!   Map (src AS x)                     Map (src AS x)
//! Filter [x > 1]
//!   Get a (x)
//! ```

use crate::error::PlanError;
use crate::ir::{Node, Query, Rel};
use plan::LocalId;

pub(super) fn apply(query: Query) -> Result<Query, PlanError> {
    Ok(Query { root: inline(query.root), ..query })
}

fn inline(rel: Rel) -> Rel {
    let rel = rel.map_children(&mut inline);
    let Node::Let { id, value, body } = rel.node else { return rel };
    match body.count_gets(id) {
        0 => Rel { columns: rel.columns, node: body.node },
        1 if is_stateless(&value) || !used_in_step(&body, id) => {
            let node = replace(*body, id, &mut Some(*value)).node;
            Rel { columns: rel.columns, node }
        }
        _ => Rel { columns: rel.columns, node: Node::Let { id, value, body } },
    }
}

/// Whether the reference is inside a recursive step.
fn used_in_step(rel: &Rel, id: LocalId) -> bool {
    match &rel.node {
        Node::LetRec { step, .. } if step.count_gets(id) > 0 => true,
        _ => rel.children().into_iter().any(|child| used_in_step(child, id)),
    }
}

/// Whether nothing is kept to compute it, so that computing it twice costs little.
pub(super) fn is_stateless(rel: &Rel) -> bool {
    match &rel.node {
        Node::Constant { .. } | Node::Source(_) | Node::Get(_) => true,
        Node::Map { input, .. }
        | Node::Filter { input, .. }
        | Node::Fence { input, .. }
        | Node::TableFunction { input, .. } => is_stateless(input),
        _ => false,
    }
}

/// Puts the value in the place of the only reference, under the names the reference has.
fn replace(rel: Rel, id: LocalId, value: &mut Option<Rel>) -> Rel {
    if let (Node::Get(other), Some(_)) = (&rel.node, &value) {
        if *other == id {
            let node = value.take().map_or(rel.node, |value| value.node);
            return Rel { columns: rel.columns, node };
        }
    }
    rel.map_children(&mut |child| replace(child, id, value))
}
