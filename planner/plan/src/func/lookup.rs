//! From names in `pg_catalog` and argument types to native functions: what the binder and the check
//! for support ask. Types match exactly; implicit casts have been made explicit before.

use super::{
    Arithmetic, Bitwise, Blanks, Comparison, Func, Like, Named, Number, Predicate, Quantifier,
    SetRelation,
};
use crate::types::{Scalar, Type};

/// A function found by name and argument types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The kernel.
    pub func: Func,
    /// Type of its result.
    pub ty: Type,
}

/// The operator of that name for one (prefix) or two operands, and the type of its result.
pub fn operator(name: &str, args: &[Type]) -> Option<(Func, Type)> {
    let func = match *args {
        [arg] => prefix_operator(name, arg.scalar()?)?,
        [left, right] => Named::operator(name, args)
            .map(Func::Named)
            .or_else(|| comparison_operator(name, left, right))
            .or_else(|| array_operator(name, left, right))
            .or_else(|| scalar_operator(name, left.scalar()?, right.scalar()?))?,
        _ => return None,
    };
    Some((func, func.result_type(args)))
}

fn prefix_operator(name: &str, arg: Scalar) -> Option<Func> {
    let number = Number::of(arg)?;
    match name {
        "-" => Some(Func::Negate(number)),
        "+" => Some(Func::Identity),
        "@" => Some(Func::Abs(number)),
        "~" if number.is_integer() => Some(Func::BitwiseNot(number)),
        _ => None,
    }
}

pub(super) fn comparison(name: &str) -> Option<Comparison> {
    match name {
        "=" => Some(Comparison::Eq),
        "<>" | "!=" => Some(Comparison::Ne),
        "<" => Some(Comparison::Lt),
        "<=" => Some(Comparison::Le),
        ">" => Some(Comparison::Gt),
        ">=" => Some(Comparison::Ge),
        _ => None,
    }
}

/// Whether an immutable comparison of these types exists. `varchar` has no operators of its own.
fn comparable(left: Type, right: Type) -> bool {
    match (left, right) {
        (Type::Array(left), Type::Array(right)) => left == right,
        (Type::Scalar(left), Type::Scalar(right)) => {
            let dates = |ty| matches!(ty, Scalar::Date | Scalar::Timestamp);
            let strings = |ty| matches!(ty, Scalar::Text | Scalar::Varchar);
            left == right
                || (left.is_integer() && right.is_integer())
                || (left.is_float() && right.is_float())
                || (dates(left) && dates(right))
                || (strings(left) && strings(right))
        }
        _ => false,
    }
}

fn comparison_operator(name: &str, left: Type, right: Type) -> Option<Func> {
    let comparison = comparison(name)?;
    comparable(left, right).then_some(Func::Compare(comparison, Blanks::of(left)))
}

fn like(name: &str) -> Option<Like> {
    match name {
        "~~" => Some(Like::Like),
        "!~~" => Some(Like::NotLike),
        "~~*" => Some(Like::ILike),
        "!~~*" => Some(Like::NotILike),
        _ => None,
    }
}

/// The operator quantified over an array: `left name ANY|ALL (array)`.
pub fn quantified(
    name: &str,
    quantifier: Quantifier,
    left: Type,
    array: Type,
) -> Option<(Func, Type)> {
    let element = Type::Scalar(array.element()?);
    let predicate = match operator(name, &[left, element])?.0 {
        Func::Compare(comparison, blanks) => Predicate::Compare(comparison, blanks),
        Func::Like(like) => Predicate::Like(like),
        _ => return None,
    };
    Some((Func::Quantified(quantifier, predicate), Scalar::Bool.into()))
}

fn array_operator(name: &str, left: Type, right: Type) -> Option<Func> {
    let same_base = left.base() == right.base();
    let set = |relation| Func::ArraySet(relation, Blanks::of(left));
    match (name, left, right) {
        _ if !same_base => None,
        ("||", Type::Array(_), Type::Array(_)) => Some(Func::ArrayCat),
        ("||", Type::Array(_), Type::Scalar(_)) => Some(Func::ArrayAppend),
        ("||", Type::Scalar(_), Type::Array(_)) => Some(Func::ArrayPrepend),
        ("@>", Type::Array(_), Type::Array(_)) => Some(set(SetRelation::Contains)),
        ("<@", Type::Array(_), Type::Array(_)) => Some(set(SetRelation::ContainedBy)),
        ("&&", Type::Array(_), Type::Array(_)) => Some(set(SetRelation::Overlaps)),
        _ => None,
    }
}

fn scalar_operator(name: &str, left: Scalar, right: Scalar) -> Option<Func> {
    let text = |ty| matches!(ty, Scalar::Text | Scalar::Varchar);
    if let Some(like) = like(name) {
        // `char` is matched with its padding.
        return (left.is_string() && text(right)).then_some(Func::Like(like));
    }
    match (name, left, right) {
        ("+", Scalar::Date, Scalar::Int4) | ("+", Scalar::Int4, Scalar::Date) => {
            return Some(Func::DatePlus)
        }
        ("-", Scalar::Date, Scalar::Int4) => return Some(Func::DateMinus),
        ("-", Scalar::Date, Scalar::Date) => return Some(Func::DateDifference),
        _ => {}
    }
    number_operator(name, Number::of(left)?, Number::of(right)?)
}

/// The wider of two integer types or of two float types.
fn wider(left: Number, right: Number) -> Option<Number> {
    let rank = |number| match number {
        Number::Int2 => 0,
        Number::Int4 => 1,
        Number::Int8 => 2,
        Number::Float4 => 0,
        Number::Float8 => 1,
        Number::Numeric => 0,
    };
    let families_agree = left.is_integer() == right.is_integer()
        && (left == Number::Numeric) == (right == Number::Numeric);
    families_agree.then_some(if rank(left) >= rank(right) { left } else { right })
}

fn number_operator(name: &str, left: Number, right: Number) -> Option<Func> {
    let arithmetic = |operator| Some(Func::Arithmetic(operator, wider(left, right)?));
    let bitwise =
        |operator| (left == right && left.is_integer()).then_some(Func::Bitwise(operator, left));
    let shift = |operator| {
        (left.is_integer() && right == Number::Int4).then_some(Func::Bitwise(operator, left))
    };
    match name {
        "+" => arithmetic(Arithmetic::Add),
        "-" => arithmetic(Arithmetic::Subtract),
        "*" => arithmetic(Arithmetic::Multiply),
        "/" => arithmetic(Arithmetic::Divide),
        "%" => modulo(left, right),
        "&" => bitwise(Bitwise::And),
        "|" => bitwise(Bitwise::Or),
        "#" => bitwise(Bitwise::Xor),
        "<<" => shift(Bitwise::ShiftLeft),
        ">>" => shift(Bitwise::ShiftRight),
        _ => None,
    }
}

fn modulo(left: Number, right: Number) -> Option<Func> {
    let float = matches!(left, Number::Float4 | Number::Float8);
    (left == right && !float).then_some(Func::Arithmetic(Arithmetic::Modulo, left))
}

/// The function of that name in `pg_catalog` for arguments of these types.
pub fn function(name: &str, args: &[Type]) -> Option<Resolved> {
    let named = Named::function(name, args).map(Func::Named);
    let func =
        named.or_else(|| scalar_function(name, args)).or_else(|| array_function(name, args))?;
    Some(Resolved { func, ty: func.result_type(args) })
}

fn scalar_function(name: &str, args: &[Type]) -> Option<Func> {
    let args: Option<Vec<Scalar>> = args.iter().map(|arg| arg.scalar()).collect();
    let args = args?;
    number_function(name, &args).or_else(|| cast_function(name, &args))
}

/// Casts called as functions: `date(timestamp)`, `float8(integer)`.
fn cast_function(name: &str, args: &[Scalar]) -> Option<Func> {
    let [from] = *args else { return None };
    let to = match name {
        "bool" => Scalar::Bool,
        "int2" => Scalar::Int2,
        "int4" => Scalar::Int4,
        "int8" => Scalar::Int8,
        "float4" => Scalar::Float4,
        "float8" => Scalar::Float8,
        "numeric" => Scalar::Numeric,
        "date" => Scalar::Date,
        "timestamp" => Scalar::Timestamp,
        "text" if matches!(from, Scalar::Bool | Scalar::Char) => Scalar::Text,
        _ => return None,
    };
    let chain = scalar_cast(from, to).filter(|_| !from.is_string() || to == Scalar::Text)?;
    chain.first().copied()
}

fn number_function(name: &str, args: &[Scalar]) -> Option<Func> {
    match (name, args) {
        ("abs", [number]) => Number::of(*number).map(Func::Abs),
        ("mod", [left, right]) => modulo(Number::of(*left)?, Number::of(*right)?),
        _ => None,
    }
}

fn array_function(name: &str, args: &[Type]) -> Option<Func> {
    use Type::Array;
    match (name, args) {
        ("array_append", [Array(_), Type::Scalar(_)])
        | ("array_prepend", [Type::Scalar(_), Array(_)])
        | ("array_cat", [Array(_), Array(_)]) => array_operator("||", args[0], args[1]),
        ("array_position", [Array(element), Type::Scalar(wanted)]) if element == wanted => {
            Some(Func::ArrayPosition(Blanks::of(args[0])))
        }
        ("array_remove", [Array(element), Type::Scalar(wanted)]) if element == wanted => {
            Some(Func::ArrayRemove(Blanks::of(args[0])))
        }
        _ => None,
    }
}

/// The functions to apply, first to last, to cast a value; empty if the value stays as it is. `None`
/// if there is no such cast or it depends on settings. `to_typmod` is -1 for none.
pub fn cast(from: Type, to: Type, to_typmod: i32, explicit: bool) -> Option<Vec<Func>> {
    let mut chain = match (from, to) {
        (Type::Scalar(from), Type::Scalar(to)) => scalar_cast(from, to)?,
        (Type::Array(from), Type::Array(to)) => scalar_cast(from, to)?
            .into_iter()
            .map(|func| match func {
                Func::Cast(from, to) => Func::CastElements(from, to),
                other => other,
            })
            .collect(),
        _ => return None,
    };
    if crate::value::typmod::has_effect(to.base(), to_typmod) {
        chain.push(Func::Typmod { ty: to, typmod: to_typmod, explicit });
    }
    Some(chain)
}

fn scalar_cast(from: Scalar, to: Scalar) -> Option<Vec<Func>> {
    use Scalar::{Bool, Bytea, Date, Int4, Text, Timestamp, Timestamptz, Uuid, Varchar};
    let plain = |ty| matches!(ty, Text | Varchar);
    let cast = Some(vec![Func::Cast(from, to)]);
    match (from, to) {
        _ if from == to => Some(Vec::new()),
        // Only the host knows how.
        (Scalar::Host(_), _) | (_, Scalar::Host(_)) => None,
        // The bytes of text are those of varchar.
        _ if plain(from) && plain(to) => Some(Vec::new()),
        _ if from.is_string() && to.is_string() => cast,
        // The text of dates and times depends on DateStyle and TimeZone.
        (Date | Timestamp | Timestamptz, _) if to.is_string() => None,
        (_, Date | Timestamp | Timestamptz) if from.is_string() => None,
        _ if from.is_string() || to.is_string() => cast,
        (Date, Timestamp) | (Timestamp, Date) => cast,
        (Bool, Int4) | (Int4, Bool) => cast,
        (Bool | Bytea | Uuid | Date | Timestamp | Timestamptz, _) => None,
        (_, Bool | Bytea | Uuid | Date | Timestamp | Timestamptz) => None,
        _ => cast,
    }
}
