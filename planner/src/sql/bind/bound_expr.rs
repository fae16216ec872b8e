//! A bound expression, with what is known of its values.

use plan::expr::{self, Expr};
use plan::types::{self, Column, Type};
use plan::value::Datum;

pub(super) const BOOL: Type = Type::Scalar(types::Scalar::Bool);
pub(super) const TEXT: Type = Type::Scalar(types::Scalar::Text);

/// A bound expression and what is known of its values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BoundExpr {
    pub(super) expr: Expr,
    pub(super) ty: Type,
    pub(super) typmod: i32,
    pub(super) nullable: bool,
}

impl BoundExpr {
    pub(super) fn of_column(position: usize, column: &Column) -> BoundExpr {
        BoundExpr {
            expr: Expr::Column(position),
            ty: column.ty,
            typmod: column.typmod,
            nullable: column.nullable,
        }
    }

    pub(super) fn boolean(expr: Expr) -> BoundExpr {
        BoundExpr { expr, ty: BOOL, typmod: -1, nullable: true }
    }

    /// The column that holds the expression's values.
    pub(super) fn column(&self, name: &str) -> Column {
        Column { name: name.to_owned(), ty: self.ty, typmod: self.typmod, nullable: self.nullable }
    }

    pub(super) fn literal(value: Datum, ty: Type, typmod: i32) -> BoundExpr {
        let nullable = value.is_null();
        BoundExpr { expr: Expr::Literal(value, ty), ty, typmod, nullable }
    }

    /// The same over a row that has more columns in front.
    pub(super) fn shifted(self, offset: usize) -> BoundExpr {
        BoundExpr { expr: expr::renumber(&self.expr, &|column| column + offset), ..self }
    }
}

pub(super) fn negation(expr: Expr) -> Expr {
    Expr::Not(Box::new(expr))
}

/// The common type modifier, -1 if they differ.
pub(super) fn same_typmod(results: &[BoundExpr]) -> i32 {
    let known = results.iter().filter(|r| !matches!(r.expr, Expr::Literal(Datum::Null, _)));
    let mut typmods = known.map(|result| result.typmod);
    let first = typmods.next().unwrap_or(-1);
    if typmods.all(|typmod| typmod == first) {
        first
    } else {
        -1
    }
}
