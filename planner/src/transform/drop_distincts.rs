//! Removes the elimination of duplicates whose result goes, through projections, filters and unions
//! only, to another elimination of duplicates: the nested UNIONs of a chain, the base and the step of
//! a recursion under UNION. A recursive step that says SELECT DISTINCT thereby becomes linear. Where equal values may be
//! written differently, projections and filters keep what is below them. Idempotent.
//!
//! ```text
//! Distinct                 becomes   Distinct
//!   Union                              Union
//!     Distinct                           Map (src)
//!       Map (src)                        Map (id)
//!     Map (id)
//! ```

use crate::error::PlanError;
use crate::ir::{Node, Query, Rel};

pub(super) fn apply(query: Query) -> Result<Query, PlanError> {
    Ok(Query { root: walk(query.root), ..query })
}

fn walk(rel: Rel) -> Rel {
    let rel = rel.map_children(&mut walk);
    let columns = rel.columns;
    let node = match rel.node {
        Node::Distinct { input } => Node::Distinct { input: Box::new(strip(*input)) },
        Node::LetRec { id, all: false, form, base, step, body } => {
            let (base, step) = (Box::new(strip(*base)), Box::new(strip(*step)));
            Node::LetRec { id, all: false, form, base, step, body }
        }
        node => node,
    };
    Rel { columns, node }
}

/// The same set of rows, with duplicates that do not matter.
fn strip(rel: Rel) -> Rel {
    let columns = rel.columns;
    match rel.node {
        Node::Distinct { input } => Rel { columns, ..strip(*input) },
        Node::Map { input, outputs } => {
            Rel { columns, node: Node::Map { input: Box::new(strip_below(*input)), outputs } }
        }
        Node::Filter { input, predicates } => {
            Rel { columns, node: Node::Filter { input: Box::new(strip_below(*input)), predicates } }
        }
        Node::Temporal { input, bounds } => {
            Rel { columns, node: Node::Temporal { input: Box::new(strip_below(*input)), bounds } }
        }
        Node::Fence { input, .. } => Rel { columns, ..strip(*input).fenced() },
        Node::Union { inputs } => Rel::union(inputs.into_iter().map(strip).collect(), columns),
        node => Rel { columns, node },
    }
}

/// The same below what may tell equal values apart: of those the elimination of duplicates keeps one.
fn strip_below(rel: Rel) -> Rel {
    match rel.is_canonical() {
        true => strip(rel),
        false => rel,
    }
}
