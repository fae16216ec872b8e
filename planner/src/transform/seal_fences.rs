//! Seals the fences with whose rows functions of users are called. A row may come and go at one time: a transaction
//! changes it twice, or an outer join takes it back. It is in no result, and an error that it raises is taken back
//! with it; but a function that is called with it could tell of it all the same. A sealed fence counts its rows and
//! lets pass those that stay. Idempotent.
//!
//! ```text
//! Map (host[f](x))         becomes   Map (host[f](x))
//!   Fence                              Sealed fence
//!     Get a (x)                          Get a (x)
//! ```

use crate::error::PlanError;
use crate::ir::{Node, Query, Rel};
use plan::expr;

pub(super) fn apply(query: Query) -> Result<Query, PlanError> {
    Ok(Query { root: seal(query.root, false), ..query })
}

/// `is_watched`: whether functions of users are called with the rows as they come.
fn seal(rel: Rel, is_watched: bool) -> Rel {
    let calls = rel.exprs().iter().any(expr::calls_users_functions);
    let columns = rel.columns;
    match rel.node {
        Node::Fence { input, is_sealed } => {
            let is_sealed = is_sealed || is_watched && takes_back(&input);
            let input = Box::new(seal(*input, is_watched && !is_sealed));
            Rel { columns, node: Node::Fence { input, is_sealed } }
        }
        // What follows comes from rows that are kept, and are there.
        node @ (Node::Join { .. }
        | Node::Reduce { .. }
        | Node::Partition { .. }
        | Node::Distinct { .. }) => {
            Rel { columns, node }.map_children(&mut |child| seal(child, calls))
        }
        Node::Let { id, value, body } => {
            let value = Box::new(seal(*value, is_watched || calls_anywhere(&body)));
            Rel { columns, node: Node::Let { id, value, body: Box::new(seal(*body, is_watched)) } }
        }
        node => {
            let rel = Rel { columns, node };
            let calls = match &rel.node {
                Node::LetRec { .. } => calls_anywhere(&rel),
                _ => calls,
            };
            let is_watched = is_watched || calls;
            rel.map_children(&mut |child| seal(child, is_watched))
        }
    }
}

fn calls_anywhere(rel: &Rel) -> bool {
    rel.exprs().iter().any(expr::calls_users_functions)
        || rel.children().into_iter().any(calls_anywhere)
}

/// Whether rows may come and go at the same time.
fn takes_back(rel: &Rel) -> bool {
    match &rel.node {
        Node::Constant { .. }
        | Node::Reduce { .. }
        | Node::Distinct { .. }
        | Node::Partition { .. }
        | Node::Fence { is_sealed: true, .. } => false,
        Node::Source(_)
        | Node::Get(_)
        | Node::LetRec { .. }
        | Node::Join { .. }
        | Node::OuterJoin { .. }
        | Node::AntiJoin { .. }
        | Node::Apply(_) => true,
        Node::Let { body, .. } => takes_back(body),
        Node::Map { input, .. }
        | Node::Filter { input, .. }
        | Node::Temporal { input, .. }
        | Node::TableFunction { input, .. }
        | Node::Fence { input, .. }
        | Node::Repeat { input } => takes_back(input),
        Node::Union { inputs } => inputs.iter().any(takes_back),
    }
}
