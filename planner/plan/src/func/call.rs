//! Applies a function to evaluated arguments: strictness, then the kernel.

use super::{
    array, coerce, number, string, Blanks, CellWork, Comparison, Func, Predicate, Quantifier,
};
use super::{cells, zoned};
use crate::aggregate::collect;
use crate::compare::{compare, key_form};
use crate::error::DataError;
use crate::interval::Interval;
use crate::row::Row;
use crate::sqlstate;
use crate::types::Scalar;
use crate::value::Datum;
use std::cmp::Ordering;

type Result<T> = std::result::Result<T, DataError>;

impl Func {
    /// Value of the function for these arguments, as many as its signature has.
    pub fn call(self, args: &[&Datum]) -> Result<Datum> {
        if self.is_strict() && args.iter().any(|arg| arg.is_null()) {
            return Ok(Datum::Null);
        }
        self.apply(args)
    }

    fn apply(self, args: &[&Datum]) -> Result<Datum> {
        match self {
            Func::Named(named) => named.call(args).unwrap_or_else(|| Err(wrong_arity(self))),
            Func::Zoned(zoned) => zoned.call(args).unwrap_or_else(|| Err(wrong_arity(self))),
            Func::PlusInterval(interval) => self.of(args, |[at]| plus_interval(at, interval)),
            Func::Cells(CellWork::Rank) => self.of(args, |[a]| Ok(cells::rank(a))),
            Func::Cells(CellWork::Size) => self.of(args, |[a]| Ok(cells::size_of_cell(a))),
            Func::Cells(CellWork::At) => self.of(args, |[a, b]| Ok(cells::cell_at(a, b))),
            Func::KeyForm(ty) => self.of(args, |[a]| Ok(key_form(a, ty.base() == Scalar::Char))),
            Func::Image => self.of(args, |[a]| Ok(image(a))),
            Func::OrderKey(sort) => self.of(args, |[a]| Ok(collect::order_key(&sort, a))),
            Func::Entry { keys } => entry(keys, args).ok_or_else(|| wrong_arity(self)),
            Func::OnlyRow => self.of(args, |[value, count]| only_row(value, count)),
            Func::RowCount { is_offset } => self.of(args, |[count]| row_count(count, is_offset)),
            Func::Pair => self.of(args, |[a, b]| Ok(Datum::array(vec![a.clone(), b.clone()]))),
            Func::Compare(op, blanks) => self.of(args, |[a, b]| Ok(holds(op, blanks, a, b))),
            Func::DistinctFrom(b) => self.of(args, |[x, y]| Ok(Datum::Bool(!is_same(x, y, b)))),
            Func::NotDistinctFrom(b) => self.of(args, |[x, y]| Ok(Datum::Bool(is_same(x, y, b)))),
            Func::NullIf(blanks) => self.of(args, |[a, b]| Ok(null_if(a, b, blanks))),
            Func::Greatest(blanks) => Ok(extreme(args, blanks, Ordering::Greater)),
            Func::Least(blanks) => Ok(extreme(args, blanks, Ordering::Less)),
            Func::IsTrue => self.of(args, |[a]| Ok(Datum::Bool(a.is_true()))),
            Func::IsFalse => self.of(args, |[a]| Ok(Datum::Bool(*a == Datum::Bool(false)))),
            Func::Quantified(quantifier, predicate) => {
                self.of(args, |[a, array]| quantified(quantifier, predicate, a, array))
            }
            Func::Like(op) => {
                self.of(args, |[a, b]| string::like(op, text(a), text(b)).map(Datum::Bool))
            }
            Func::Arithmetic(op, n) => self.of(args, |[a, b]| number::arithmetic(op, n, a, b)),
            Func::Negate(number) => self.of(args, |[a]| number::negate(number, a)),
            Func::Abs(number) => self.of(args, |[a]| number::abs(number, a)),
            Func::Identity => self.of(args, |[a]| Ok(a.clone())),
            Func::Bitwise(op, n) => self.of(args, |[a, b]| Ok(number::bitwise(op, n, a, b))),
            Func::BitwiseNot(number) => self.of(args, |[a]| Ok(number::bitwise_not(number, a))),
            Func::DatePlus => self.of(args, |[a, b]| number::date_plus(a, b, 1)),
            Func::DateMinus => self.of(args, |[a, b]| number::date_plus(a, b, -1)),
            Func::DateDifference => self.of(args, |[a, b]| number::date_difference(a, b)),
            Func::ArrayCat => self.of(args, |[a, b]| array::cat(a, b)),
            Func::ArrayAppend => self.of(args, |[array, last]| array::append(array, last)),
            Func::ArrayPrepend => self.of(args, |[first, array]| array::prepend(first, array)),
            Func::Subscript => self.of(args, |[array, index]| Ok(array::subscript(array, index))),
            Func::ArrayPosition(blanks) => self.of(args, |[a, b]| array::position(a, b, blanks)),
            Func::ArrayRemove(blanks) => self.of(args, |[a, b]| array::remove(a, b, blanks)),
            Func::ArraySet(relation, blanks) => {
                self.of(args, |[a, b]| Ok(Datum::Bool(array::set_relation(relation, a, b, blanks))))
            }
            Func::Cast(from, to) => self.of(args, |[a]| coerce::cast(a, from, to)),
            Func::CastElements(from, to) => {
                self.of(args, |[a]| coerce::map_elements(a, |e| coerce::cast(e, from, to)))
            }
            Func::Typmod { ty, typmod, explicit } => {
                self.of(args, |[a]| coerce::to_typmod(a, ty, typmod, explicit))
            }
        }
    }

    /// Applies a kernel to as many arguments as it takes.
    fn of<'a, T, const N: usize>(
        self,
        args: &[&'a Datum],
        kernel: impl FnOnce([&'a Datum; N]) -> Result<T>,
    ) -> Result<T> {
        kernel(args.try_into().map_err(|_| wrong_arity(self))?)
    }
}

/// A plan that was not made by the binder.
fn wrong_arity(func: Func) -> DataError {
    DataError::new(
        sqlstate::INTERNAL_ERROR,
        &format!("function {func} called with a wrong number of arguments"),
    )
}

fn plus_interval(at: &Datum, interval: Interval) -> Result<Datum> {
    match at {
        Datum::Timestamp(at) => zoned::plus_interval(*at, interval).map(Datum::Timestamp),
        other => Ok(other.clone()),
    }
}

fn text(value: &Datum) -> &str {
    value.as_str().unwrap_or_default()
}

/// The representation of a value.
fn image(value: &Datum) -> Datum {
    Datum::Bytea(Row::pack([value]).as_bytes().to_vec().into())
}

/// The first arguments are the order keys; `None` if there are not as many.
fn entry(keys: usize, args: &[&Datum]) -> Option<Datum> {
    let (order, values) = args.split_at_checked(keys)?;
    Some(collect::entry(order, values))
}

fn only_row(value: &Datum, count: &Datum) -> Result<Datum> {
    match count.as_i64() {
        Some(1) => Ok(value.clone()),
        None | Some(0) => Ok(Datum::Null),
        Some(_) => Err(DataError::new(
            sqlstate::CARDINALITY_VIOLATION,
            "more than one row returned by a subquery used as an expression",
        )),
    }
}

/// In PostgreSQL's words.
fn row_count(count: &Datum, is_offset: bool) -> Result<Datum> {
    let (sqlstate, message) = match (count.as_i64(), is_offset) {
        (Some(..0), true) => {
            (sqlstate::INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE, "OFFSET must not be negative")
        }
        (Some(..0), false) => {
            (sqlstate::INVALID_ROW_COUNT_IN_LIMIT_CLAUSE, "LIMIT must not be negative")
        }
        _ => return Ok(count.clone()),
    };
    Err(DataError::new(sqlstate, message))
}

fn holds(comparison: Comparison, blanks: Blanks, a: &Datum, b: &Datum) -> Datum {
    Datum::Bool(comparison.holds(compare(a, b, blanks.ignored())))
}

fn is_same(a: &Datum, b: &Datum, blanks: Blanks) -> bool {
    compare(a, b, blanks.ignored()).is_eq()
}

fn null_if(a: &Datum, b: &Datum, blanks: Blanks) -> Datum {
    if !a.is_null() && is_same(a, b, blanks) {
        Datum::Null
    } else {
        a.clone()
    }
}

/// The first of the arguments that no later one exceeds in the wanted direction; NULLs do not count.
fn extreme(args: &[&Datum], blanks: Blanks, wanted: Ordering) -> Datum {
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
