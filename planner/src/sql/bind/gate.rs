//! Conditions that depend on no row: nothing is read, and nothing fails, unless they are true.
//!
//! PostgreSQL tests them first and once: `WHERE (SELECT max(x) FROM u) > 5 AND 10 / b > 0` divides nothing while the
//! maximum is 5. They become a relation of their own, which has one row or none: the *gate*. What may fail behind it is
//! computed from rows that were joined with that row, above a fence, which keeps it from moving below the join.

use super::binder::Binder;
use super::virtual_columns::{is_constant, Subqueries};
use crate::ir::{Node, Predicate, Rel};
use plan::expr;
use plan::LocalId;
use std::collections::BTreeSet;

/// A gate by its name, and its value to be put around what is behind it.
pub(super) struct Gate {
    condition: Rel,
    value: Option<(LocalId, Rel)>,
}

impl Gate {
    /// Takes out the conditions that depend on no row, with the subqueries they read, and the subqueries that are
    /// such conditions themselves. `others` is given the conditions that are left and says whether they, or anything
    /// else behind the gate, may fail, and which columns are read elsewhere. If nothing may fail, everything stays.
    pub(super) fn take(
        binder: &mut Binder<'_>,
        subqueries: &mut Subqueries,
        conditions: &mut Vec<Predicate>,
        others: impl FnOnce(&[Predicate]) -> (bool, BTreeSet<usize>),
    ) -> Option<Gate> {
        let is_constant = |p: &Predicate| subqueries.are_constant(&p.to_expr()) && !is_closed(p);
        let all = conditions.iter().cloned();
        let (mut constant, mut rest): (Vec<_>, Vec<_>) = all.partition(is_constant);
        let (may_fail, mut read) = others(&rest);
        if !may_fail {
            return None;
        }
        read.extend(rest.iter().flat_map(Predicate::columns));
        read.extend(subqueries.values().iter().flat_map(expr::columns_of));
        // A subquery stands in one place only.
        loop {
            let is_read = |p: &Predicate| subqueries.share(&p.columns(), &read);
            let (stays, goes): (Vec<_>, Vec<_>) = constant.into_iter().partition(is_read);
            constant = goes;
            if stays.is_empty() {
                break;
            }
            read.extend(stays.iter().flat_map(Predicate::columns));
            rest.extend(stays);
        }
        let needed = constant.iter().flat_map(Predicate::columns).collect();
        let taken = subqueries.take_constants(&needed);
        if constant.is_empty() && taken.len() == 0 {
            return None;
        }
        *conditions = rest;
        let (rel, places) = taken.attach(Rel::unit());
        let tested = constant.iter().map(|p| p.map_exprs(&|expr| places.resolve(expr))).collect();
        let (condition, value) = binder.share("condition", rel.filter(tested).project(&[]));
        let gate = Gate { condition, value };
        subqueries.map_constants(&|rel| gate.before(rel));
        Some(gate)
    }

    /// The relation made of nothing unless the gate is open.
    pub(super) fn before(&self, rel: Rel) -> Rel {
        self.gated(rel, &mut BTreeSet::new())
    }

    /// What is made of relations behind the gate.
    pub(super) fn around(self, rel: Rel) -> Rel {
        let Some((id, value)) = self.value else { return rel };
        let columns = rel.columns.clone();
        Rel { columns, node: Node::Let { id, value: Box::new(value), body: Box::new(rel) } }
    }

    /// `behind` are the names of what is behind the gate already.
    fn gated(&self, rel: Rel, behind: &mut BTreeSet<LocalId>) -> Rel {
        match &rel.node {
            Node::Get(id) if behind.contains(id) => return rel,
            Node::Let { id, .. } | Node::LetRec { id, .. } => {
                behind.insert(*id);
            }
            _ if !rel.may_fail() && !behind.iter().any(|id| rel.count_gets(*id) > 0) => {
                return self.join(rel);
            }
            _ => {}
        }
        // Without rows there is nothing to fail for; but an aggregate of no rows is a row.
        let is_row_of_nothing = matches!(&rel.node, Node::Reduce { key, .. } if key.is_empty());
        let rel = rel.map_children(&mut |child| self.gated(child, behind));
        match is_row_of_nothing {
            true => self.join(rel),
            false => rel,
        }
    }

    /// The rows of a relation if the gate is open.
    pub(super) fn join(&self, rel: Rel) -> Rel {
        let columns = rel.columns.clone();
        let joined = Rel::join(vec![rel, self.condition.clone()], vec![]).fenced();
        Rel { columns, ..joined }
    }
}

/// Whether some predicates may raise an error.
pub(super) fn any_fails<'p>(predicates: impl IntoIterator<Item = &'p Predicate>) -> bool {
    predicates.into_iter().any(|predicate| expr::may_fail(&predicate.to_expr()))
}

/// Whether it reads parameters, but no columns: it is the same for all rows of one evaluation of the subquery.
pub(super) fn reads_parameters_only(predicate: &Predicate) -> bool {
    let expr = predicate.to_expr();
    expr::columns_of(&expr).is_empty() && !is_constant(&expr, &|_| false)
}

/// Whether it is decided before anything is computed.
fn is_closed(predicate: &Predicate) -> bool {
    expr::is_closed(&predicate.to_expr())
}

/// Whether it is the same for all rows, and the host knows it.
pub(super) fn is_of_host_alone(predicate: &Predicate) -> bool {
    is_constant(&predicate.to_expr(), &|_| false) && !is_closed(predicate)
}
