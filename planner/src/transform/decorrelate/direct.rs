//! Subqueries that are a join with the outer rows as they stand: filters and projections, with parameters, over
//! something without.

use crate::ir::{Apply, ApplyKind, Binding, Node, Predicate, Preserved, Rel};
use plan::expr::{self, Expr};

/// A subquery as conditions over something that does not depend on the outer row.
struct Stack {
    base: Rel,
    /// Over outer row and base.
    conditions: Vec<Predicate>,
    /// Over outer row and base.
    outputs: Vec<Expr>,
}

/// The join, if the subquery is of that form and its kind allows it.
pub(super) fn join(apply: &Apply) -> Option<Rel> {
    let Apply { kind, bindings, outer, inner } = apply;
    let start = outer.arity();
    match kind {
        ApplyKind::Cross => {
            let Stack { base, conditions, outputs } = stack(bindings, start, inner)?;
            let columns = [outer.columns.clone(), inner.columns.clone()].concat();
            let outputs = (0..start).map(Expr::Column).chain(outputs).collect();
            Some(Rel::join(vec![outer.clone(), base], conditions).map(outputs, columns))
        }
        ApplyKind::Anti => {
            let Stack { base, conditions, .. } = stack(bindings, start, inner)?;
            Some(Rel::anti_join(outer.clone(), base, conditions))
        }
        ApplyKind::Left => {
            let Stack { base, conditions, outputs } = stack(bindings, start, inner)?;
            // Anything but columns of the base would not be NULL where there is no row.
            let inner = |output: &Expr| output.as_column().filter(|column| *column >= start);
            let inner: Option<Vec<usize>> = outputs.iter().map(inner).collect();
            let positions: Vec<usize> = (0..start).chain(inner?).collect();
            let joined = Rel::outer_join(Preserved::Left, outer.clone(), base, conditions);
            Some(joined.project(&positions))
        }
        ApplyKind::Semi | ApplyKind::Mark | ApplyKind::Scalar => None,
    }
}

fn stack(bindings: &[Binding], start: usize, inner: &Rel) -> Option<Stack> {
    let (outputs, below) = match &inner.node {
        Node::Map { input, outputs } => (outputs.clone(), input.as_ref()),
        _ => ((0..inner.arity()).map(Expr::Column).collect(), inner),
    };
    let (inputs, predicates) = match &below.node {
        Node::Filter { input, predicates } => (vec![input.as_ref().clone()], predicates.clone()),
        Node::Join { inputs, predicates } => (inputs.clone(), predicates.clone()),
        _ => (vec![below.clone()], vec![]),
    };
    let is_free = |found: &std::collections::BTreeSet<_>| {
        bindings.iter().all(|binding| !found.contains(&binding.id))
    };
    if !inputs.iter().all(|input| is_free(&input.parameters())) {
        return None;
    }
    let (own, conditions): (Vec<_>, Vec<_>) = predicates.into_iter().partition(|predicate| {
        let mut found = std::collections::BTreeSet::new();
        expr::collect_parameters(&predicate.to_expr(), &mut found);
        is_free(&found)
    });
    let value = |id| bindings.iter().find(|b| b.id == id).map(|b| b.value.clone());
    let place = |expr: &Expr| {
        expr::with_parameters(&expr::renumber(expr, &|column| column + start), &value)
    };
    let mut inputs = inputs;
    let base = match inputs.len() {
        1 => inputs.remove(0).filter(own),
        _ => Rel::join(inputs, own),
    };
    Some(Stack {
        base,
        conditions: conditions.iter().map(|predicate| predicate.map_exprs(&place)).collect(),
        outputs: outputs.iter().map(place).collect(),
    })
}
