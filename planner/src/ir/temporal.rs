//! Conditions on the present time.

use super::{Node, Rel};
use plan::clock::End;
use plan::expr::{self, Expr};
use serde::Serialize;

/// A condition on the present time, by which a row comes or goes without being touched. NULL makes it never true.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimeBound {
    /// On which side of the present it has to be.
    pub end: End,
    /// A `timestamp with time zone` over the row.
    pub at: Expr,
}

impl TimeBound {
    /// The bound over other columns.
    pub fn substitute(&self, f: &dyn Fn(usize) -> Expr) -> TimeBound {
        self.map_expr(&|at| expr::substitute(at, f))
    }

    /// The bound with its expression rewritten.
    pub fn map_expr(&self, f: &dyn Fn(&Expr) -> Expr) -> TimeBound {
        TimeBound { end: self.end, at: f(&self.at) }
    }
}

impl Rel {
    /// The rows while they are valid, or the relation itself if nothing bounds that.
    pub fn temporal(self, bounds: Vec<TimeBound>) -> Rel {
        if bounds.is_empty() {
            return self;
        }
        let columns = self.columns.clone();
        Rel { columns, node: Node::Temporal { input: Box::new(self), bounds } }
    }

    /// Whether the present time decides about any of its rows.
    pub fn depends_on_time(&self) -> bool {
        matches!(self.node, Node::Temporal { .. })
            || self.children().into_iter().any(Rel::depends_on_time)
    }
}
