//! Brings every stack of projections, filters and inner joins into one form: a projection over one
//! join (or filter) over inputs that are none of these. Expressions of subqueries move above the join,
//! so that they are computed for the rows the query keeps, as PostgreSQL does when it pulls
//! subqueries up. Conditions on the present time come between the join and all other conditions. A fence
//! around something that hides no row is left out. Idempotent.
//!
//! ```text
//! Filter [q > n.id]                becomes   Map (100 / dst AS q, n.id)
//!   Join [src = n.id]                          Join [src = n.id] AND [100 / dst > n.id]
//!     Map (src, 100 / dst AS q)                  Source edges (src, dst)
//!       Source edges (src, dst)                  Source nodes (id)
//!     Source nodes (id)
//! ```

use crate::error::PlanError;
use crate::ir::{Node, Predicate, Query, Rel, TimeBound};
use plan::expr::{self, Expr};
use plan::types::Column;

/// Substitution may repeat expressions; beyond this many nodes a projection stays where it is.
pub(super) const MAX_EXPRESSION: usize = 2000;

pub(super) fn apply(query: Query) -> Result<Query, PlanError> {
    Ok(Query { root: flatten(query.root), ..query })
}

/// Inputs joined under conditions, and the output as expressions over their columns.
#[derive(Default)]
struct Flat {
    inputs: Vec<Rel>,
    bounds: Vec<TimeBound>,
    predicates: Vec<Predicate>,
    outputs: Vec<Expr>,
}

pub(super) fn flatten(rel: Rel) -> Rel {
    match rel.node {
        Node::Map { .. }
        | Node::Filter { .. }
        | Node::Temporal { .. }
        | Node::Join { .. }
        | Node::Fence { .. } => {
            let columns = rel.columns.clone();
            dissolve(rel).build().map_outputs(columns)
        }
        _ => rel.map_children(&mut flatten),
    }
}

fn dissolve(rel: Rel) -> Flat {
    match rel.node {
        Node::Map { input, outputs } => {
            let below = input.columns.clone();
            dissolve(*input).map(below, rel.columns, &outputs)
        }
        Node::Filter { input, predicates } => dissolve(*input).filter(&predicates),
        Node::Temporal { input, bounds } => dissolve(*input).bound(&bounds),
        Node::Join { inputs, predicates } => {
            let parts = inputs.into_iter().map(dissolve);
            parts.fold(Flat::default(), Flat::join).filter(&predicates)
        }
        Node::Fence { input, .. } if input.has_all_rows() => dissolve(*input),
        _ => Flat::leaf(rel.map_children(&mut flatten)),
    }
}

impl Flat {
    fn leaf(rel: Rel) -> Flat {
        let outputs = (0..rel.arity()).map(Expr::Column).collect();
        Flat { inputs: vec![rel], outputs, ..Flat::default() }
    }

    fn arity(&self) -> usize {
        self.inputs.iter().map(Rel::arity).sum()
    }

    /// `below` describes the columns that `outputs` refer to, `columns` the outputs.
    fn map(self, below: Vec<Column>, columns: Vec<Column>, outputs: &[Expr]) -> Flat {
        let substituted: Vec<Expr> =
            outputs.iter().map(|e| expr::substitute(e, &|i| self.outputs[i].clone())).collect();
        if substituted.iter().map(expr::size).sum::<usize>() > MAX_EXPRESSION {
            let input = self.build().map_outputs(below);
            return Flat::leaf(input.map(outputs.to_vec(), columns));
        }
        Flat { outputs: substituted, ..self }
    }

    fn filter(mut self, predicates: &[Predicate]) -> Flat {
        let outputs = &self.outputs;
        let own = predicates.iter().map(|p| p.substitute(&|i| outputs[i].clone()));
        let own: Vec<Predicate> = own.collect();
        self.predicates.extend(own);
        self
    }

    fn bound(mut self, bounds: &[TimeBound]) -> Flat {
        let outputs = &self.outputs;
        self.bounds.extend(bounds.iter().map(|b| b.substitute(&|i| outputs[i].clone())));
        self
    }

    fn join(mut self, other: Flat) -> Flat {
        let offset = self.arity();
        let shift = |column: usize| column + offset;
        let place = |column| Expr::Column(shift(column));
        self.bounds.extend(other.bounds.iter().map(|bound| bound.substitute(&place)));
        self.predicates.extend(other.predicates.iter().map(|p| p.renumber(&shift)));
        self.outputs.extend(other.outputs.iter().map(|e| expr::renumber(e, &shift)));
        self.inputs.extend(other.inputs);
        self
    }

    /// Leaves out inputs that are the one row without columns, and builds the join or filter.
    fn build(mut self) -> Built {
        if self.inputs.len() > 1 {
            let unit = Rel::unit();
            self.inputs.retain(|input| *input != unit);
            if self.inputs.is_empty() {
                self.inputs.push(unit);
            }
        }
        let columns = self.inputs.iter().flat_map(|input| input.columns.clone()).collect();
        let rel = match self.inputs.len() {
            1 => self.inputs.remove(0).temporal(self.bounds).filter(self.predicates),
            _ if !self.bounds.is_empty() => {
                Rel::join(self.inputs, vec![]).temporal(self.bounds).filter(self.predicates)
            }
            _ => {
                let node = Node::Join { inputs: self.inputs, predicates: self.predicates };
                Rel { columns, node }
            }
        };
        Built { rel, outputs: self.outputs }
    }
}

/// A join or filter, and the outputs still to be computed above it.
struct Built {
    rel: Rel,
    outputs: Vec<Expr>,
}

impl Built {
    fn map_outputs(self, columns: Vec<Column>) -> Rel {
        self.rel.map(self.outputs, columns)
    }
}
