//! Conditions that no row decides, computed once: as in PostgreSQL, what they make unreachable raises no error.

use super::Expr;
use crate::expr;
use crate::func::Func;
use crate::types::{Scalar, Type};
use crate::value::Datum;

const BOOL: Type = Type::Scalar(Scalar::Bool);

impl Expr {
    /// The expression with constant conditions replaced by their values, and without what these decide against. A
    /// condition whose value cannot be computed stays as it is; one that compares with NULL is NULL, whatever the
    /// other side is.
    pub fn with_decided_conditions(&self) -> Expr {
        let expr = expr::map_children(self, &mut |child| child.with_decided_conditions());
        match expr {
            Expr::And(args) => connective(args, false),
            Expr::Or(args) => connective(args, true),
            Expr::Case { branches, otherwise } => decided_case(branches, *otherwise),
            Expr::Call { func, ref args } if compares(func) && args.iter().any(is_null) => {
                Expr::Literal(Datum::Null, BOOL)
            }
            Expr::Not(_) | Expr::IsNull(_) | Expr::Call { .. } => constant(&expr).unwrap_or(expr),
            other => other,
        }
    }

    /// The value of a condition that is a literal; NULL as `None` within.
    pub fn literal_truth(&self) -> Option<Option<bool>> {
        match self {
            Expr::Literal(Datum::Bool(value), _) => Some(Some(*value)),
            Expr::Literal(Datum::Null, _) => Some(None),
            _ => None,
        }
    }

    /// Whether it is a literal that no row meets: false or NULL.
    pub fn is_never_true(&self) -> bool {
        matches!(self.literal_truth(), Some(Some(false) | None))
    }

    /// Whether it is the literal true.
    pub fn is_always_true(&self) -> bool {
        self.literal_truth() == Some(Some(true))
    }
}

/// Whether it is a strict test of values.
fn compares(func: Func) -> bool {
    match func {
        Func::Compare(..) | Func::Like(_) => true,
        Func::Named(named) => named.result_type() == BOOL,
        Func::Zoned(_) => func.result_type(&[]) == BOOL,
        _ => false,
    }
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(Datum::Null, _))
}

/// AND (decided by false) or OR (decided by true) of arguments that are decided as far as possible.
fn connective(args: Vec<Expr>, decisive: bool) -> Expr {
    let is = |value: bool| move |arg: &Expr| arg.literal_truth() == Some(Some(value));
    if args.iter().any(is(decisive)) {
        return truth(decisive);
    }
    let mut args: Vec<Expr> = args.into_iter().filter(|arg| !is(!decisive)(arg)).collect();
    match args.len() {
        0 => truth(!decisive),
        1 => match args.remove(0) {
            // A literal NULL may have any type.
            Expr::Literal(Datum::Null, _) => Expr::Literal(Datum::Null, BOOL),
            arg => arg,
        },
        _ if decisive => Expr::Or(args),
        _ => Expr::And(args),
    }
}

fn decided_case(branches: Vec<(Expr, Expr)>, otherwise: Expr) -> Expr {
    let mut kept = Vec::new();
    for (condition, value) in branches {
        if condition.is_never_true() {
            continue;
        }
        if condition.is_always_true() {
            return case(kept, value);
        }
        kept.push((condition, value));
    }
    case(kept, otherwise)
}

fn case(branches: Vec<(Expr, Expr)>, otherwise: Expr) -> Expr {
    match branches.is_empty() {
        true => otherwise,
        false => Expr::Case { branches, otherwise: Box::new(otherwise) },
    }
}

fn truth(value: bool) -> Expr {
    Expr::Literal(Datum::Bool(value), BOOL)
}

/// The value of a condition that nothing decides but literals, if it has one.
fn constant(expr: &Expr) -> Option<Expr> {
    if !expr::is_closed(expr) || expr.ty(&[]) != BOOL {
        return None;
    }
    Some(Expr::Literal(expr.eval(&[]).ok()?, BOOL))
}
