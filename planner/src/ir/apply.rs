//! Subqueries as the text has them: evaluated for each row of the query around them.

use super::Rel;
use plan::expr::{Expr, ParameterId};
use plan::types::{Column, Scalar, Type};
use serde::Serialize;
use std::collections::BTreeSet;

/// For each row of `outer` what `inner` yields when its parameters have the values that the row gives them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Apply {
    /// What becomes of the rows of `inner`.
    pub kind: ApplyKind,
    /// The parameters that `inner` may refer to.
    pub bindings: Vec<Binding>,
    /// The query around.
    pub outer: Rel,
    /// The subquery.
    pub inner: Rel,
}

/// What becomes of a subquery's rows. The output starts with the columns of the outer row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ApplyKind {
    /// `LATERAL`: the outer row with each of them.
    Cross,
    /// `LEFT JOIN LATERAL`: the same, and the outer row with NULLs if there is none.
    Left,
    /// The outer row alone, if there is one.
    Semi,
    /// The outer row alone, if there is none.
    Anti,
    /// `EXISTS`: the outer row with the truth of it.
    Mark,
    /// A scalar subquery: the outer row with the only one or NULLs; 21000 if there are several.
    Scalar,
}

/// A parameter and its value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Binding {
    pub id: ParameterId,
    /// Its value, over the columns of the outer row.
    pub value: Expr,
    /// Name and type of the value.
    pub column: Column,
}

impl Rel {
    /// What a subquery makes of each row of `outer`.
    pub fn apply(kind: ApplyKind, bindings: Vec<Binding>, outer: Rel, inner: Rel) -> Rel {
        let mut columns = outer.columns.clone();
        match kind {
            ApplyKind::Semi | ApplyKind::Anti => {}
            ApplyKind::Cross => columns.extend(inner.columns.iter().cloned()),
            ApplyKind::Left | ApplyKind::Scalar => {
                let nullable = |column: &Column| Column { nullable: true, ..column.clone() };
                columns.extend(inner.columns.iter().map(nullable));
            }
            ApplyKind::Mark => columns.push(Column {
                name: "exists".to_owned(),
                ty: Type::Scalar(Scalar::Bool),
                typmod: -1,
                nullable: false,
            }),
        }
        let apply = Apply { kind, bindings, outer, inner };
        Rel { columns, node: super::Node::Apply(Box::new(apply)) }
    }

    /// The parameters read here or below, but for those that are bound below.
    pub fn parameters(&self) -> BTreeSet<ParameterId> {
        let (mut read, mut bound) = (BTreeSet::new(), BTreeSet::new());
        self.collect_parameters(&mut read, &mut bound);
        &read - &bound
    }

    fn collect_parameters(
        &self,
        read: &mut BTreeSet<ParameterId>,
        bound: &mut BTreeSet<ParameterId>,
    ) {
        self.exprs().iter().for_each(|expr| plan::expr::collect_parameters(expr, read));
        if let super::Node::Apply(apply) = &self.node {
            bound.extend(apply.bindings.iter().map(|binding| binding.id));
        }
        self.children().into_iter().for_each(|child| child.collect_parameters(read, bound));
    }
}
