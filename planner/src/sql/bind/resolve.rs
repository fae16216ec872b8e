//! Which native function an operator, a function call or a cast of given types is.

use super::super::refuse::{invalid, unsupported, unsupported_hint};
use super::bound_expr::BoundExpr;
use crate::error::PlanError;
use plan::aggregate::{COLLECTING, SUMMING};
use plan::expr::Expr;
use plan::func::{self, Blanks, Func, Quantifier};
use plan::types::{self, Type};
use plan::value::Datum;
use plan::{AggregateFunc, Regression, Spread};

/// Applies an operator (prefix with one argument, infix with two).
pub(super) fn operator(name: &str, args: Vec<BoundExpr>) -> Result<BoundExpr, PlanError> {
    let tys: Vec<Type> = args.iter().map(|arg| arg.ty).collect();
    match func::operator(name, &tys) {
        Some((func @ Func::Compare(..), ty)) => {
            Ok(call(func, args.into_iter().map(comparable).collect(), ty))
        }
        Some((func, ty)) => Ok(call(func, args, ty)),
        None => {
            let shown = match tys.as_slice() {
                [left, right] => format!("{left} {name} {right}"),
                _ => format!("{name} {}", list(&tys)),
            };
            Err(unsupported(format!("operator {shown} is")))
        }
    }
}

/// The bytes that compare as a value of the host's does; others as they are.
fn comparable(value: BoundExpr) -> BoundExpr {
    if !value.ty.is_host() {
        return value;
    }
    BoundExpr { expr: value.expr.sort_key(value.ty, 0), ..value }
}

/// Applies the function of that name, or the cast to the type of that name.
pub(super) fn function(name: &str, args: Vec<BoundExpr>) -> Result<BoundExpr, PlanError> {
    let tys: Vec<Type> = args.iter().map(|arg| arg.ty).collect();
    if let Some(found) = func::function(name, &tys) {
        return Ok(call(found.func, args, found.ty));
    }
    match (type_name(name), <[BoundExpr; 1]>::try_from(args)) {
        (Some(ty), Ok([arg])) => cast(arg, Type::Scalar(ty), -1),
        _ => Err(unknown_function(name, &tys)),
    }
}

/// The refusal of a function for arguments of these types.
pub(super) fn unknown_function(name: &str, tys: &[Type]) -> PlanError {
    unsupported(format!("function {name}({}) is", list(tys)))
}

/// The type whose name, called as a function, is a cast.
fn type_name(name: &str) -> Option<types::Scalar> {
    match name {
        "bool" => Some(types::Scalar::Bool),
        "int2" => Some(types::Scalar::Int2),
        "int4" => Some(types::Scalar::Int4),
        "int8" => Some(types::Scalar::Int8),
        "float4" => Some(types::Scalar::Float4),
        "float8" => Some(types::Scalar::Float8),
        "numeric" => Some(types::Scalar::Numeric),
        "text" => Some(types::Scalar::Text),
        "date" => Some(types::Scalar::Date),
        "timestamp" => Some(types::Scalar::Timestamp),
        _ => None,
    }
}

/// `left op ANY|ALL (array)`
pub(super) fn quantified(
    name: &str,
    quantifier: Quantifier,
    left: BoundExpr,
    array: BoundExpr,
) -> Result<BoundExpr, PlanError> {
    let shown = match quantifier {
        Quantifier::Any => "ANY",
        Quantifier::All => "ALL",
    };
    match func::quantified(name, quantifier, left.ty, array.ty) {
        Some((func, ty)) => Ok(call(func, vec![left, array], ty)),
        None => {
            let (left, array) = (left.ty, array.ty);
            Err(unsupported(format!("operator {left} {name} {shown} ({array}) is")))
        }
    }
}

/// A function that exists for arguments of any one type that compare; with the type of the first.
pub(super) fn comparing(
    make: fn(Blanks) -> Func,
    args: Vec<BoundExpr>,
) -> Result<(Expr, Type), PlanError> {
    let Some(first) = args.first() else { return Err(invalid("a comparison of nothing")) };
    let ty = first.ty;
    for arg in &args {
        equality(ty, arg.ty)?;
    }
    let func = make(Blanks::of(ty));
    let args = args.into_iter().map(|arg| comparable(arg).expr).collect();
    Ok((Expr::Call { func, args }, ty))
}

/// The operator `=` of two types.
pub(super) fn equality(left: Type, right: Type) -> Result<Func, PlanError> {
    match func::operator("=", &[left, right]) {
        Some((func, _)) => Ok(func),
        None => Err(unsupported(format!("operator {left} = {right} is"))),
    }
}

/// The value cast as if the query said so: strings are cut to a length, not refused.
pub(super) fn cast(arg: BoundExpr, ty: Type, typmod: i32) -> Result<BoundExpr, PlanError> {
    let nullable = arg.nullable;
    let expr = convert(arg, ty, typmod, true)?;
    Ok(BoundExpr { expr, ty, typmod, nullable })
}

/// An implicit cast, as a set operation does it to the columns of its sides.
pub(super) fn coerce(arg: BoundExpr, ty: Type) -> Result<Expr, PlanError> {
    convert(arg, ty, -1, false)
}

fn convert(arg: BoundExpr, ty: Type, typmod: i32, explicit: bool) -> Result<Expr, PlanError> {
    if arg.ty == ty && arg.typmod == typmod {
        return Ok(arg.expr);
    }
    let apply = |arg, func| Expr::Call { func, args: vec![arg] };
    let is_literal = matches!(arg.expr, Expr::Literal(..));
    match func::cast(arg.ty, ty, typmod, explicit) {
        Some(chain) => {
            let expr = chain.into_iter().fold(arg.expr, apply);
            // The cast of a constant is computed now, unless it fails: that belongs to the data.
            let value = is_literal.then(|| expr.eval(&[]).ok()).flatten();
            Ok(value.map_or(expr, |value| Expr::Literal(value, ty)))
        }
        None => Err(unsupported(format!("the cast from {} to {ty} is", arg.ty))),
    }
}

/// The type two sides of a set operation are brought to.
pub(super) fn common_type(left: Type, right: Type) -> Result<Type, PlanError> {
    use types::Scalar::{Date, Float4, Float8, Int2, Int4, Int8, Numeric};
    use types::Scalar::{Timestamp, Timestamptz};
    const FAMILIES: [&[types::Scalar]; 2] =
        [&[Int2, Int4, Int8, Numeric, Float4, Float8], &[Date, Timestamp, Timestamptz]];
    if left == right {
        return Ok(left);
    }
    if let (Type::Scalar(l), Type::Scalar(r)) = (left, right) {
        // Each of these converts to each other by itself.
        if l.is_string() && r.is_string() {
            return Ok(left);
        }
        for family in FAMILIES {
            let rank = |scalar| family.iter().position(|member| *member == scalar);
            if let (Some(left_rank), Some(right_rank)) = (rank(l), rank(r)) {
                return Ok(if left_rank < right_rank { right } else { left });
            }
        }
    }
    let hint = "Cast one of them.";
    Err(unsupported_hint(format!("matching {left} with {right} is"), hint))
}

/// The aggregate of that name for that argument, with its result type.
pub(super) fn aggregate(name: &str, arg: Type) -> Option<(AggregateFunc, Type)> {
    use types::Scalar::{Bool, Float4, Float8, Int2, Int4, Int8, Numeric};
    use AggregateFunc as A;
    let scalar = arg.scalar();
    if let Some(spread) = spread(name) {
        return match scalar? {
            Int2 | Int4 | Int8 => Some((A::SpreadInt(spread), Numeric.into())),
            Numeric => Some((A::SpreadNumeric(spread), Numeric.into())),
            Float4 | Float8 => Some((A::SpreadFloat(spread), Float8.into())),
            _ => None,
        };
    }
    let (func, result) = match (name, scalar) {
        ("count", _) => (A::Count, Int8),
        ("sum", Some(Int2 | Int4)) => (A::SumInt, Int8),
        ("sum", Some(Int8)) => (A::SumInt8, Numeric),
        ("sum", Some(Numeric)) => (A::SumNumeric, Numeric),
        ("sum", Some(Float4)) => (A::SumFloat4, Float4),
        ("sum", Some(Float8)) => (A::SumFloat8, Float8),
        ("avg", Some(Int2 | Int4 | Int8)) => (A::AvgInt, Numeric),
        ("avg", Some(Numeric)) => (A::AvgNumeric, Numeric),
        ("avg", Some(Float4 | Float8)) => (A::AvgFloat, Float8),
        ("bool_and" | "every", Some(Bool)) => (A::BoolAnd, Bool),
        ("bool_or", Some(Bool)) => (A::BoolOr, Bool),
        ("bit_and", Some(Int2 | Int4 | Int8)) => return Some((A::BitAnd(arg), arg)),
        ("bit_or", Some(Int2 | Int4 | Int8)) => return Some((A::BitOr(arg), arg)),
        ("bit_xor", Some(Int2 | Int4 | Int8)) => return Some((A::BitXor(arg), arg)),
        ("min", _) => return Some((A::Min(arg), arg)),
        ("max", _) => return Some((A::Max(arg), arg)),
        _ => return None,
    };
    Some((func, Type::Scalar(result)))
}

/// The aggregate that is called, its argument where the filter is true, and the type of its result.
pub(super) fn aggregate_call(
    name: &str,
    args: &[BoundExpr],
    star: bool,
    filter: Option<BoundExpr>,
) -> Result<(AggregateFunc, Option<BoundExpr>, Type), PlanError> {
    let (func, arg, ty) = match (args, star) {
        ([], true) if name == "count" => {
            (AggregateFunc::Count, None, Type::Scalar(types::Scalar::Int8))
        }
        ([arg], false) => match aggregate(name, arg.ty) {
            Some((func, ty)) => (func, Some(arg.clone()), ty),
            None => return Err(unsupported(format!("aggregate {name}({}) is", arg.ty))),
        },
        ([y, x], false) => match pair_aggregate(name, y.ty, x.ty) {
            Some((func, ty)) => (func, Some(pair(y.clone(), x.clone())), ty),
            None => return Err(unsupported(format!("aggregate {name} is"))),
        },
        _ => return Err(unsupported(format!("aggregate {name} is"))),
    };
    Ok((func, filtered(arg, filter), ty))
}

/// The argument for the rows that the condition lets through, NULL for others: no aggregate sees NULLs.
pub(super) fn filtered(arg: Option<BoundExpr>, condition: Option<BoundExpr>) -> Option<BoundExpr> {
    let Some(condition) = condition else { return arg };
    let arg = arg.unwrap_or_else(|| BoundExpr::boolean(Expr::true_literal()));
    let null = Expr::Literal(Datum::Null, arg.ty);
    let branches = vec![(condition.expr, arg.expr)];
    let expr = Expr::Case { branches, otherwise: Box::new(null) };
    Some(BoundExpr { expr, nullable: true, ..arg })
}

const FLOAT8: Type = Type::Scalar(types::Scalar::Float8);

/// The aggregate of that name for pairs, with its result type. Of other types than double precision there are
/// none.
fn pair_aggregate(name: &str, y: Type, x: Type) -> Option<(AggregateFunc, Type)> {
    if (y, x) != (FLOAT8, FLOAT8) {
        return None;
    }
    if name == "regr_count" {
        return Some((AggregateFunc::Count, types::Scalar::Int8.into()));
    }
    let regression = Regression::named(name)?;
    Some((AggregateFunc::Regression(regression), FLOAT8))
}

/// The arguments of an aggregate of pairs as one; NULL if one of them is.
fn pair(y: BoundExpr, x: BoundExpr) -> BoundExpr {
    let ty = Func::Pair.result_type(&[y.ty, x.ty]);
    let nullable = y.nullable || x.nullable;
    BoundExpr { nullable, ..call(Func::Pair, vec![y, x], ty) }
}

fn spread(name: &str) -> Option<Spread> {
    match name {
        "var_pop" => Some(Spread::VarPop),
        "var_samp" | "variance" => Some(Spread::VarSamp),
        "stddev_pop" => Some(Spread::StddevPop),
        "stddev_samp" | "stddev" => Some(Spread::StddevSamp),
        _ => None,
    }
}

/// Whether PostgreSQL has an aggregate of that name: to word a refusal.
pub(super) fn is_aggregate_name(name: &str) -> bool {
    const UNKNOWN: [&str; 5] =
        ["json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg", "xmlagg"];
    SUMMING.contains(&name) || COLLECTING.contains(&name) || UNKNOWN.contains(&name)
}

pub(super) fn call(func: Func, args: Vec<BoundExpr>, ty: Type) -> BoundExpr {
    let args = args.into_iter().map(|arg| arg.expr).collect();
    BoundExpr { expr: Expr::Call { func, args }, ty, typmod: -1, nullable: true }
}

fn list(tys: &[Type]) -> String {
    tys.iter().map(Type::to_string).collect::<Vec<_>>().join(", ")
}
