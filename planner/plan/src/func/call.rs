//! Applies a function to evaluated arguments: strictness, then the kernel.

use super::{array, calendar, coerce, number, string, Blanks, Func, Predicate, Quantifier};
use crate::aggregate::collect;
use crate::compare::{compare, key_form};
use crate::error::DataError;
use crate::row::Row;
use crate::types::Scalar;
use crate::value::{typmod, Datum, Dimension};

type Result<T> = std::result::Result<T, DataError>;

impl Func {
    /// Value of the function for these arguments, as many as its signature has.
    pub fn call(self, args: &[&Datum]) -> Result<Datum> {
        if self.is_strict() {
            if args.iter().any(|arg| arg.is_null()) {
                return Ok(Datum::Null);
            }
            return self.call_strict(args);
        }
        match (self, args) {
            (Func::KeyForm(ty), [value]) => Ok(key_form(value, ty.base() == Scalar::Char)),
            (Func::Image, [value]) => {
                Ok(Datum::Bytea(Row::pack([*value]).as_bytes().to_vec().into()))
            }
            (Func::OrderKey(sort), [value]) => Ok(collect::order_key(&sort, value)),
            (Func::Entry { keys }, _) if keys <= args.len() => {
                let (order, values) = args.split_at(keys);
                Ok(collect::entry(order, values))
            }
            (Func::OnlyRow, [value, count]) => match count.as_i64() {
                Some(1) => Ok((*value).clone()),
                None | Some(0) => Ok(Datum::Null),
                Some(_) => Err(DataError::new(
                    "21000",
                    "more than one row returned by a subquery used as an expression",
                )),
            },
            (Func::DistinctFrom(blanks), [a, b]) => Ok(Datum::Bool(!not_distinct(a, b, blanks))),
            (Func::NotDistinctFrom(blanks), [a, b]) => Ok(Datum::Bool(not_distinct(a, b, blanks))),
            (Func::NullIf(blanks), [a, b]) => Ok(null_if(a, b, blanks)),
            (Func::Greatest(blanks), _) => Ok(extreme(args, blanks, std::cmp::Ordering::Greater)),
            (Func::Least(blanks), _) => Ok(extreme(args, blanks, std::cmp::Ordering::Less)),
            (Func::IsTrue, [value]) => Ok(Datum::Bool(value.is_true())),
            (Func::IsFalse, [value]) => Ok(Datum::Bool(**value == Datum::Bool(false))),
            (Func::Quantified(quantifier, predicate), [value, array]) => {
                quantified(quantifier, predicate, value, array)
            }
            (Func::ArrayCat, [a, b]) => array::cat(a, b),
            (Func::ArrayAppend, [array, element]) => array::append(array, element),
            (Func::ArrayPrepend, [element, array]) => array::prepend(element, array),
            (Func::ArrayPosition(blanks), [array, wanted]) => {
                array::position(array, wanted, blanks)
            }
            (Func::ArrayRemove(blanks), [array, unwanted]) => {
                array::remove(array, unwanted, blanks)
            }
            _ => Err(wrong_arity(self)),
        }
    }

    fn call_strict(self, args: &[&Datum]) -> Result<Datum> {
        match *args {
            [a] => self.call_unary(a),
            [a, b] => self.call_binary(a, b),
            _ => self.call_string(args),
        }
    }

    fn call_unary(self, a: &Datum) -> Result<Datum> {
        match self {
            Func::Identity => Ok(a.clone()),
            Func::Negate(number) => number::negate(number, a),
            Func::Abs(number) => number::abs(number, a),
            Func::Sign(_) => Ok(number::sign(a)),
            Func::Ceil(_) => number::ceil(a),
            Func::Floor(_) => number::floor(a),
            Func::Round(_) => number::round(a, 0),
            Func::Trunc(_) => number::truncate(a, 0),
            Func::Sqrt(_) => number::sqrt(a),
            Func::BitwiseNot(number) => Ok(number::bitwise_not(number, a)),
            Func::Cast(from, to) => coerce::cast(a, from, to),
            Func::CastElements(from, to) => {
                coerce::map_elements(a, |element| coerce::cast(element, from, to))
            }
            Func::Typmod { ty, typmod: modifier, explicit } => {
                let apply = |value: &Datum| typmod::apply(value, ty.base(), modifier, explicit);
                if ty.element().is_some() {
                    coerce::map_elements(a, apply)
                } else {
                    apply(a)
                }
            }
            Func::Length => Ok(string::length(text(a))),
            Func::LengthPadded => Ok(string::length(crate::compare::trim(text(a)))),
            Func::OctetLength => Ok(string::octet_length(a)),
            Func::Lower => Ok(Datum::text(text(a).to_ascii_lowercase())),
            Func::Upper => Ok(Datum::text(text(a).to_ascii_uppercase())),
            Func::Reverse => Ok(Datum::text(text(a).chars().rev().collect::<String>())),
            Func::Trim(side) => Ok(string::trim(side, text(a), " ")),
            Func::Ascii => Ok(string::ascii(text(a))),
            Func::Chr => string::chr(int(a)),
            Func::ArrayNdims => Ok(array::ndims(a)),
            Func::Cardinality => Ok(array::cardinality(a)),
            _ => Err(wrong_arity(self)),
        }
    }

    fn call_binary(self, a: &Datum, b: &Datum) -> Result<Datum> {
        match self {
            Func::Compare(comparison, blanks) => {
                Ok(Datum::Bool(comparison.holds(compare(a, b, blanks.ignored()))))
            }
            Func::Pair => Ok(Datum::array(vec![a.clone(), b.clone()])),
            Func::Arithmetic(operator, number) => number::arithmetic(operator, number, a, b),
            Func::Bitwise(operator, number) => Ok(number::bitwise(operator, number, a, b)),
            Func::Power => number::power(a, b),
            Func::Round(_) => number::round(a, int(b)),
            Func::Trunc(_) => number::truncate(a, int(b)),
            Func::Extract => calendar::extract(text(a), b),
            Func::DatePart => {
                // Of a date it is that of its midnight.
                let number = match b {
                    Datum::Date(_) => {
                        let midnight = coerce::cast(b, Scalar::Date, Scalar::Timestamp)?;
                        calendar::extract(text(a), &midnight)?
                    }
                    _ => calendar::extract(text(a), b)?,
                };
                match number {
                    Datum::Null => Ok(Datum::Null),
                    number => coerce::cast(&number, Scalar::Numeric, Scalar::Float8),
                }
            }
            Func::DateTrunc => calendar::truncate(text(a), b),
            Func::DatePlus => number::date_plus(a, b, 1),
            Func::DateMinus => number::date_plus(a, b, -1),
            Func::DateDifference => number::date_difference(a, b),
            Func::Like(like) => string::like(like, text(a), text(b)).map(Datum::Bool),
            Func::LikeEscape => string::like_escape(text(a), text(b)),
            Func::Concat => Ok(string::concat(a, b)),
            Func::Left => Ok(string::left(text(a), int(b))),
            Func::Right => Ok(string::right(text(a), int(b))),
            Func::Trim(side) => Ok(string::trim(side, text(a), text(b))),
            Func::Position => Ok(string::position(text(a), text(b))),
            Func::Repeat => string::repeat(text(a), int(b)),
            Func::StartsWith => Ok(Datum::Bool(text(a).starts_with(text(b)))),
            Func::ArrayLength => Ok(array::dimension(a, b, |d| d.length.into())),
            Func::ArrayLower => Ok(array::dimension(a, b, |d| d.lower_bound.into())),
            Func::ArrayUpper => Ok(array::dimension(a, b, Dimension::upper_bound)),
            Func::Subscript => Ok(array::subscript(a, b)),
            Func::ArraySet(relation, blanks) => {
                Ok(Datum::Bool(array::set_relation(relation, a, b, blanks)))
            }
            _ => self.call_string(&[a, b]),
        }
    }

    fn call_string(self, args: &[&Datum]) -> Result<Datum> {
        match (self, args) {
            (Func::Substring, [_, _] | [_, _, _]) => string::substring(args),
            (Func::PadLeft, [_, _] | [_, _, _]) => string::pad(args, true),
            (Func::PadRight, [_, _] | [_, _, _]) => string::pad(args, false),
            (Func::Replace, [a, from, to]) => Ok(string::replace(text(a), text(from), text(to))),
            (Func::SplitPart, [a, delimiter, n]) => {
                string::split_part(text(a), text(delimiter), int(n))
            }
            _ => Err(wrong_arity(self)),
        }
    }
}

/// A plan that was not made by the binder.
fn wrong_arity(func: Func) -> DataError {
    DataError::new("XX000", &format!("function {func} called with a wrong number of arguments"))
}

fn text(value: &Datum) -> &str {
    value.as_str().unwrap_or_default()
}

fn int(value: &Datum) -> i32 {
    value.as_i64().unwrap_or_default() as i32
}

fn not_distinct(a: &Datum, b: &Datum, blanks: Blanks) -> bool {
    compare(a, b, blanks.ignored()).is_eq()
}

fn null_if(a: &Datum, b: &Datum, blanks: Blanks) -> Datum {
    if !a.is_null() && not_distinct(a, b, blanks) {
        Datum::Null
    } else {
        a.clone()
    }
}

/// The first of the arguments that no later one exceeds in the wanted direction; NULLs do not count.
fn extreme(args: &[&Datum], blanks: Blanks, wanted: std::cmp::Ordering) -> Datum {
    let mut best: Option<&Datum> = None;
    for &arg in args.iter().filter(|arg| !arg.is_null()) {
        match best {
            Some(current) if compare(arg, current, blanks.ignored()) != wanted => {}
            _ => best = Some(arg),
        }
    }
    best.cloned().unwrap_or(Datum::Null)
}

/// NULL array: NULL. Empty array: false for ANY, true for ALL, even of a NULL.
fn quantified(
    quantifier: Quantifier,
    predicate: Predicate,
    value: &Datum,
    array: &Datum,
) -> Result<Datum> {
    let Some(array) = array.as_array() else { return Ok(Datum::Null) };
    let decisive = quantifier == Quantifier::Any;
    let mut undecided = false;
    for element in &array.elements {
        if value.is_null() || element.is_null() {
            undecided = true;
            continue;
        }
        let holds = match predicate {
            Predicate::Compare(comparison, blanks) => {
                comparison.holds(compare(value, element, blanks.ignored()))
            }
            Predicate::Like(like) => string::like(like, text(value), text(element))?,
        };
        if holds == decisive {
            return Ok(Datum::Bool(decisive));
        }
    }
    Ok(if undecided { Datum::Null } else { Datum::Bool(!decisive) })
}
