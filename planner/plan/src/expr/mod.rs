//! Scalar expressions: typed, bound, free of names; evaluated natively, bit-exact with PostgreSQL.
//!
//! Evaluation is in `eval`, walks and rewrites in `walk`, the row-by-row operator built from expressions in `mfp`,
//! text in `print`.

mod eval;
mod fold;
mod mfp;
mod mfp_builder;
mod print;
mod walk;

pub use mfp::Mfp;
pub use mfp_builder::MfpBuilder;
pub use walk::{
    calls_host, calls_users_functions, cast, collect_columns, collect_parameters, columns_of,
    is_closed, key_type, map_children, may_fail, renumber, size, substitute, with_parameters,
};

use crate::func::Func;
use crate::host::{HostCall, HostWork};
use crate::types::{Scalar, Type};
use crate::value::Datum;
use serde::{Deserialize, Serialize};

/// A value that the row of an enclosing query gives to a correlated subquery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ParameterId(pub usize);

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
    /// In the IR only, until subqueries are decorrelated: see `Apply` in the planner's IR.
    Parameter(ParameterId, Type),
    /// Evaluated by the host with its own executor: anything immutable that has no native kernel.
    Host { call: HostCall, args: Vec<Expr> },
}

impl Expr {
    /// Type of the expression's value; `input` are the types of the columns.
    ///
    /// An untyped situation cannot arise from the binder: branches agree, and the elements of an empty
    /// `ARRAY[]` come as a typed literal.
    pub fn ty(&self, input: &[Type]) -> Type {
        match self {
            Expr::Column(index) => input[*index],
            Expr::Literal(_, ty) | Expr::Parameter(_, ty) => *ty,
            Expr::Host { call, .. } => call.ty,
            Expr::Call { func, args } => {
                let args: Vec<Type> = args.iter().map(|arg| arg.ty(input)).collect();
                func.result_type(&args)
            }
            Expr::And(_) | Expr::Or(_) | Expr::Not(_) | Expr::IsNull(_) => Scalar::Bool.into(),
            Expr::Case { otherwise, .. } => otherwise.ty(input),
            Expr::Coalesce(args) => {
                args.first().map_or(Scalar::Text.into(), |first| first.ty(input))
            }
            Expr::Array(elements) => {
                let element = elements.first().map(|first| first.ty(input).base());
                Type::Array(element.unwrap_or(Scalar::Text))
            }
        }
    }

    /// The expression in key form: itself if the type needs none.
    pub fn key_form(self, ty: Type) -> Expr {
        if ty.is_canonical() {
            return self;
        }
        if ty.is_host() {
            return self.sort_key(ty, 0);
        }
        Expr::Call { func: Func::KeyForm(ty), args: vec![self] }
    }

    /// Bytes that compare as the values of the type do, by the host; NULL for NULL. As whom is said when the plan is
    /// complete, by [`crate::ViewPlan::compared_as`].
    pub fn sort_key(self, of: Type, collation: u32) -> Expr {
        let work = HostWork::SortKey { of, collation, caller: 0 };
        let call = HostCall::new(work, Scalar::Bytea.into());
        Expr::Host { call, args: vec![self] }
    }

    pub fn true_literal() -> Expr {
        Expr::Literal(Datum::Bool(true), Scalar::Bool.into())
    }

    /// The column, if the expression is nothing but one.
    pub fn as_column(&self) -> Option<usize> {
        match self {
            Expr::Column(index) => Some(*index),
            _ => None,
        }
    }

    /// The expressions directly below this one.
    pub fn children(&self) -> Vec<&Expr> {
        match self {
            Expr::Column(_) | Expr::Literal(..) | Expr::Parameter(..) => Vec::new(),
            Expr::Call { args, .. }
            | Expr::And(args)
            | Expr::Or(args)
            | Expr::Coalesce(args)
            | Expr::Array(args)
            | Expr::Host { args, .. } => args.iter().collect(),
            Expr::Not(arg) | Expr::IsNull(arg) => vec![arg],
            Expr::Case { branches, otherwise } => {
                let branches = branches.iter().flat_map(|(when, then)| [when, then]);
                branches.chain([&**otherwise]).collect()
            }
        }
    }

    /// The expressions directly below this one, for change.
    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Expr::Column(_) | Expr::Literal(..) | Expr::Parameter(..) => Vec::new(),
            Expr::Call { args, .. }
            | Expr::And(args)
            | Expr::Or(args)
            | Expr::Coalesce(args)
            | Expr::Array(args)
            | Expr::Host { args, .. } => args.iter_mut().collect(),
            Expr::Not(arg) | Expr::IsNull(arg) => vec![arg],
            Expr::Case { branches, otherwise } => {
                let branches = branches.iter_mut().flat_map(|(when, then)| [when, then]);
                branches.chain([&mut **otherwise]).collect()
            }
        }
    }

    /// Calls `visit` with the index of every column the expression refers to.
    pub fn visit_columns(&self, visit: &mut impl FnMut(usize)) {
        if let Expr::Column(index) = self {
            visit(*index);
        }
        for child in self.children() {
            child.visit_columns(visit);
        }
    }

    /// Replaces every column index by what `change` makes of it.
    pub fn map_columns(&mut self, change: &mut impl FnMut(usize) -> usize) {
        if let Expr::Column(index) = self {
            *index = change(*index);
        }
        for child in self.children_mut() {
            child.map_columns(change);
        }
    }
}
