//! Scalar expressions: typed, bound, free of names; evaluated natively, bit-exact with PostgreSQL.

use crate::error::DataError;
use crate::func::Func;
use crate::types::Type;
use crate::value::Datum;
use serde::{Deserialize, Serialize};

/// A scalar expression over the columns of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Expr {
    /// Column of the input, 0-based.
    Column(usize),
    /// Constant with its type.
    Literal(Datum, Type),
    /// Strict unless the function says otherwise: NULL in, NULL out.
    Call { func: Func, args: Vec<Expr> },
    /// Three-valued AND; arguments evaluated in order until one is false.
    And(Vec<Expr>),
    /// Three-valued OR; arguments evaluated in order until one is true.
    Or(Vec<Expr>),
    /// Three-valued NOT.
    Not(Box<Expr>),
    /// `x IS NULL`
    IsNull(Box<Expr>),
    /// `CASE WHEN c THEN v … ELSE e END`; the simple form is bound to this one.
    Case { branches: Vec<(Expr, Expr)>, otherwise: Box<Expr> },
    /// First argument that is not NULL, later ones not evaluated.
    Coalesce(Vec<Expr>),
    /// `ARRAY[…]`
    Array(Vec<Expr>),
    /// Evaluated by the host with its own executor: anything immutable that has no native kernel.
    /// Reserved: the binder does not produce it yet.
    Host { sql: String, args: Vec<Expr>, ty: Type },
}

impl Expr {
    /// Value of the expression for a row given as its columns.
    pub fn eval(&self, columns: &[Datum]) -> Result<Datum, DataError> {
        let _ = columns;
        todo!()
    }
}
