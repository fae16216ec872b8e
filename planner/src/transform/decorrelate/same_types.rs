//! Equalities of a parameter with a value of another type, as those of values of one type: only those tell what the
//! parameter is.

use crate::ir::{Binding, Node, Predicate, Rel, Typed};
use plan::expr::{self, Expr, ParameterId};

/// Rewrites equalities of the bound parameters. A parameter of a narrower type gets a wider companion, with
/// numbers from `next` on.
pub(super) fn unify(rel: Rel, bindings: &mut Vec<Binding>, next: &mut usize) -> Rel {
    let mut rel = rel.map_children(&mut |child| unify(child, bindings, next));
    if let Node::Filter { predicates, .. } | Node::Join { predicates, .. } = &mut rel.node {
        for predicate in predicates {
            if let Some(unified) = unify_equality(predicate, bindings, next) {
                *predicate = unified;
            }
        }
    }
    rel
}

fn unify_equality(
    predicate: &Predicate,
    bindings: &mut Vec<Binding>,
    next: &mut usize,
) -> Option<Predicate> {
    let Predicate::Equal { left, right, .. } = predicate else { return None };
    let ty = expr::key_type(left.ty, right.ty).filter(|_| left.ty != right.ty)?;
    let mut side = |side: &Typed| match side.expr {
        Expr::Parameter(id, _) if side.ty != ty => {
            let value = bindings.iter().find(|binding| binding.id == id)?.clone();
            let value = Binding {
                id: ParameterId(*next),
                value: expr::cast(&value.value, side.ty, ty)?,
                column: plan::types::Column { ty, typmod: -1, ..value.column },
            };
            *next += 1;
            let parameter = Expr::Parameter(value.id, ty);
            bindings.push(value);
            Some(parameter)
        }
        _ => expr::cast(&side.expr, side.ty, ty),
    };
    Some(Predicate::equal(side(left)?, side(right)?, ty))
}
