//! Functions that yield any number of values: `generate_series`, `unnest` and the like.
//!
//! Values are made as they are asked for, so that a long series takes no memory; errors are found before
//! the first one.

use super::{cells, Number};
use crate::error::DataError;
use crate::numeric::Numeric;
use crate::sqlstate;
use crate::types::{Scalar, Type};
use crate::value::Datum;
use serde::{Deserialize, Serialize};
use std::fmt;

type Result<T> = std::result::Result<T, DataError>;

/// A function that yields any number of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TableFunc {
    /// `generate_series(start, stop [, step])` of integer, bigint or numeric
    Series(Number),
    /// `generate_subscripts(array, dimension [, reverse])`
    Subscripts,
    /// `unnest(array)`
    Unnest,
    /// The arrays of which an array of one more dimension is made
    Slices,
    /// `string_to_table(text, delimiter [, null])`
    StringToTable,
    /// `cells(rank, rank)`: those that cover an interval, whose ends these are; no SQL names it
    Cells,
    /// What yields one value, its argument: any other function
    Once,
}

/// The set-returning function of that name, in `pg_catalog` or `eddy.slices`, for arguments of these types.
pub fn table_function(name: &str, args: &[Type]) -> Option<TableFunc> {
    let scalar = |ty: &Type| ty.scalar();
    let scalars: Option<Vec<Scalar>> = args.iter().map(scalar).collect();
    match (name, args, scalars.as_deref()) {
        ("generate_series", _, Some([first, rest @ ..])) => {
            let number = Number::of(*first)?;
            let known = matches!(number, Number::Int4 | Number::Int8 | Number::Numeric);
            let same = matches!(rest.len(), 1 | 2) && rest.iter().all(|ty| ty == first);
            (known && same).then_some(TableFunc::Series(number))
        }
        ("generate_subscripts", [Type::Array(_), rest @ ..], _) => {
            let rest: Vec<Option<Scalar>> = rest.iter().map(scalar).collect();
            let known = matches!(
                rest.as_slice(),
                [Some(Scalar::Int4)] | [Some(Scalar::Int4), Some(Scalar::Bool)]
            );
            known.then_some(TableFunc::Subscripts)
        }
        ("unnest", [Type::Array(_)], _) => Some(TableFunc::Unnest),
        ("slices", [Type::Array(_)], _) => Some(TableFunc::Slices),
        ("string_to_table", _, Some(texts)) => {
            let known = matches!(texts.len(), 2 | 3) && texts.iter().all(|ty| *ty == Scalar::Text);
            known.then_some(TableFunc::StringToTable)
        }
        _ => None,
    }
}

/// Whether there is a set-returning function of that name.
pub fn is_table_function(name: &str) -> bool {
    ["generate_series", "generate_subscripts", "unnest", "slices", "string_to_table"]
        .contains(&name)
}

impl TableFunc {
    /// Type of the values for arguments of these types.
    pub fn value_type(self, args: &[Type]) -> Type {
        let first = args.first().copied().unwrap_or(Scalar::Text.into());
        match self {
            TableFunc::Series(number) => number.scalar().into(),
            TableFunc::Subscripts => Scalar::Int4.into(),
            TableFunc::Cells => Scalar::Int8.into(),
            TableFunc::Unnest => first.base().into(),
            TableFunc::StringToTable => Scalar::Text.into(),
            TableFunc::Slices | TableFunc::Once => first,
        }
    }

    /// Whether some of so many arguments may raise an error. True when in doubt.
    pub fn may_fail(self, args: usize) -> bool {
        match self {
            TableFunc::Series(number) => number == Number::Numeric || args > 2,
            _ => false,
        }
    }

    /// Whether no value comes twice or is NULL.
    pub fn is_distinct(self) -> bool {
        matches!(self, TableFunc::Series(_) | TableFunc::Subscripts | TableFunc::Cells)
    }

    /// What stands for an argument that could not be computed. An end of an interval that cannot be told is as far away
    /// as any: who asks for all that may be in the interval will test that, and find the error.
    pub(crate) fn instead(self, argument: usize, error: DataError) -> Result<Datum> {
        match (self, argument) {
            (TableFunc::Cells, 0) => Ok(Datum::Int8(i64::MIN)),
            (TableFunc::Cells, _) => Ok(Datum::Int8(i64::MAX)),
            _ => Err(error),
        }
    }

    /// The values for these arguments, as many as the signature has.
    pub fn values(self, args: &[Datum]) -> Result<Values> {
        let is_strict = !matches!(self, TableFunc::StringToTable | TableFunc::Once);
        if is_strict && args.iter().any(Datum::is_null) {
            return Ok(Values::none());
        }
        match (self, args) {
            (TableFunc::Series(Number::Numeric), [start, stop, step @ ..]) => {
                numeric_series(start, stop, step.first())
            }
            (TableFunc::Series(number), [start, stop, step @ ..]) => {
                integer_series(number, start, stop, step.first())
            }
            (TableFunc::Subscripts, [array, dimension, reverse @ ..]) => {
                Ok(subscripts(array, dimension, reverse.first().is_some_and(Datum::is_true)))
            }
            (TableFunc::Unnest, [Datum::Array(array)]) => {
                Ok(Values::Listed(array.elements.clone().into_iter()))
            }
            (TableFunc::Slices, [Datum::Array(array)]) => {
                Ok(Values::Listed(array.slices().into_iter()))
            }
            (TableFunc::StringToTable, [text, delimiter, null @ ..]) => {
                Ok(fields(text, delimiter, null.first().and_then(Datum::as_str)))
            }
            (TableFunc::Cells, [Datum::Int8(from), Datum::Int8(to)]) => {
                Ok(Values::Listed(cells::cover(*from, *to).into_iter()))
            }
            (TableFunc::Once, [value]) => Ok(Values::Listed(vec![value.clone()].into_iter())),
            _ => Err(DataError::new(
                sqlstate::INTERNAL_ERROR,
                &format!("wrong arguments for {self}"),
            )),
        }
    }
}

impl fmt::Display for TableFunc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TableFunc::Series(_) => "generate_series",
            TableFunc::Subscripts => "generate_subscripts",
            TableFunc::Unnest => "unnest",
            TableFunc::Slices => "slices",
            TableFunc::StringToTable => "string_to_table",
            TableFunc::Cells => "cells",
            TableFunc::Once => "once",
        })
    }
}

/// The values still to come.
#[derive(Clone, Debug)]
pub enum Values {
    /// From `next`, if there is one, by `step` as far as `stop`; as bigint or as integer.
    Integers { next: Option<i64>, stop: i64, step: i64, is_wide: bool },
    /// The same of numerics.
    Numerics(Box<Numerics>),
    /// Values that exist already.
    Listed(std::vec::IntoIter<Datum>),
}

/// From `next`, if there is one, by `step` as far as `stop`.
#[derive(Clone, Debug)]
pub struct Numerics {
    next: Option<Numeric>,
    stop: Numeric,
    step: Numeric,
}

impl Values {
    fn none() -> Values {
        Values::Listed(Vec::new().into_iter())
    }
}

impl Iterator for Values {
    type Item = Datum;

    fn next(&mut self) -> Option<Datum> {
        match self {
            Values::Integers { next, stop, step, is_wide } => {
                let value = next.take()?;
                let is_within = |next: &i64| if *step > 0 { next <= stop } else { next >= stop };
                // Beyond the end of the type there is nothing more.
                *next = value.checked_add(*step).filter(is_within);
                Some(if *is_wide { Datum::Int8(value) } else { Datum::Int4(value as i32) })
            }
            Values::Numerics(series) => series.next().map(Datum::Numeric),
            Values::Listed(values) => values.next(),
        }
    }
}

impl Numerics {
    fn next(&mut self) -> Option<Numeric> {
        let value = self.next.take()?;
        // A sum too large for the type is beyond any end.
        self.next = value.add(&self.step).ok().filter(|next| self.has(next));
        Some(value)
    }

    fn has(&self, value: &Numeric) -> bool {
        let order = value.sql_cmp(&self.stop);
        match is_positive(&self.step) {
            true => order.is_le(),
            false => order.is_ge(),
        }
    }
}

fn is_positive(number: &Numeric) -> bool {
    number.sql_cmp(&Numeric::from_small(0, 0)).is_gt()
}

fn zero_step() -> DataError {
    DataError::new(sqlstate::INVALID_PARAMETER_VALUE, "step size cannot equal zero")
}

/// `integer` series stay within `integer` because their ends are.
fn integer_series(
    number: Number,
    start: &Datum,
    stop: &Datum,
    step: Option<&Datum>,
) -> Result<Values> {
    let step = step.map_or(Some(1), Datum::as_i64);
    let (Some(start), Some(stop), Some(step)) = (start.as_i64(), stop.as_i64(), step) else {
        return Ok(Values::none());
    };
    if step == 0 {
        return Err(zero_step());
    }
    let is_within = if step > 0 { start <= stop } else { start >= stop };
    let is_wide = number == Number::Int8;
    Ok(Values::Integers { next: is_within.then_some(start), stop, step, is_wide })
}

fn numeric_series(start: &Datum, stop: &Datum, step: Option<&Datum>) -> Result<Values> {
    let one = Datum::Numeric(Numeric::from_small(1, 0));
    let start = finite(start, "start value")?;
    let stop = finite(stop, "stop value")?;
    let step = finite(step.unwrap_or(&one), "step size")?;
    if step.finite().is_some_and(|step| step.is_zero()) {
        return Err(zero_step());
    }
    let mut series = Numerics { next: None, stop, step };
    series.next = Some(start).filter(|start| series.has(start));
    Ok(Values::Numerics(Box::new(series)))
}

fn finite(value: &Datum, what: &str) -> Result<Numeric> {
    let Datum::Numeric(number) = value else {
        return Err(DataError::new(
            sqlstate::INTERNAL_ERROR,
            "a series of numerics of something else",
        ));
    };
    if number.is_nan() {
        return Err(DataError::new(
            sqlstate::INVALID_PARAMETER_VALUE,
            &format!("{what} cannot be NaN"),
        ));
    }
    if number.finite().is_none() {
        return Err(DataError::new(
            sqlstate::INVALID_PARAMETER_VALUE,
            &format!("{what} cannot be infinity"),
        ));
    }
    Ok(number.clone())
}

/// Subscripts of the array's only dimension.
fn subscripts(array: &Datum, dimension: &Datum, is_reversed: bool) -> Values {
    let number = dimension.as_i64();
    let dimension = array.as_array().zip(number).and_then(|(array, n)| array.dimension(n));
    let Some(dimension) = dimension else { return Values::none() };
    let (first, last) = (i64::from(dimension.lower_bound), dimension.upper_bound());
    let (next, stop, step) = if is_reversed { (last, first, -1) } else { (first, last, 1) };
    Values::Integers { next: Some(next), stop, step, is_wide: false }
}

/// The fields of a text; without delimiter its characters. Fields equal to `null` are NULL.
fn fields(text: &Datum, delimiter: &Datum, null: Option<&str>) -> Values {
    let text = text.as_str().unwrap_or_default();
    let field = |field: &str| match null {
        Some(null) if null == field => Datum::Null,
        _ => Datum::text(field),
    };
    let fields: Vec<Datum> = match delimiter.as_str() {
        _ if text.is_empty() => Vec::new(),
        None => text.split_inclusive(|_: char| true).map(field).collect(),
        Some("") => vec![field(text)],
        Some(delimiter) => text.split(delimiter).map(field).collect(),
    };
    Values::Listed(fields.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Array;

    fn int4(values: &[i32]) -> Vec<Datum> {
        values.iter().copied().map(Datum::Int4).collect()
    }

    fn int8(values: &[i64]) -> Vec<Datum> {
        values.iter().copied().map(Datum::Int8).collect()
    }

    fn numeric(text: &str) -> Datum {
        Datum::Numeric(Numeric::parse(text).unwrap())
    }

    fn texts(values: &[Option<&str>]) -> Vec<Datum> {
        values.iter().map(|value| value.map_or(Datum::Null, Datum::text)).collect()
    }

    fn values(func: TableFunc, args: &[Datum]) -> Vec<Datum> {
        func.values(args).unwrap().collect()
    }

    #[test]
    fn a_series_ends_at_its_end_and_at_that_of_the_type() {
        let series = |args: &[i32]| values(TableFunc::Series(Number::Int4), &int4(args));
        assert_eq!(series(&[1, 3]), int4(&[1, 2, 3]));
        assert_eq!(series(&[5, 1, -2]), int4(&[5, 3, 1]));
        assert_eq!(series(&[3, 1]), int4(&[]));
        assert_eq!(series(&[i32::MAX - 1, i32::MAX]), int4(&[i32::MAX - 1, i32::MAX]));
        assert_eq!(series(&[i32::MAX, i32::MAX, 7]), int4(&[i32::MAX]));
        assert_eq!(series(&[1 - i32::MAX, i32::MIN, -3]), int4(&[1 - i32::MAX]));
        let series = |args: &[i64]| values(TableFunc::Series(Number::Int8), &int8(args));
        assert_eq!(series(&[i64::MAX - 1, i64::MAX]), int8(&[i64::MAX - 1, i64::MAX]));
        assert_eq!(series(&[i64::MIN, i64::MIN, -1]), int8(&[i64::MIN]));
    }

    #[test]
    fn a_series_of_numerics_has_the_larger_scale_from_its_second_value_on() {
        let series = |args: &[&str]| {
            let args: Vec<Datum> = args.iter().copied().map(numeric).collect();
            values(TableFunc::Series(Number::Numeric), &args)
        };
        let expected = |values: &[&str]| values.iter().copied().map(numeric).collect::<Vec<_>>();
        assert_eq!(series(&["1", "3", "0.5"]), expected(&["1", "1.5", "2.0", "2.5", "3.0"]));
        assert_eq!(series(&["3.00", "2", "-0.5"]), expected(&["3.00", "2.50", "2.00"]));
        assert_eq!(series(&["1", "2.9"]), expected(&["1", "2"]));
    }

    #[test]
    fn arguments_that_make_no_series_are_errors_and_null_makes_none() {
        let series = TableFunc::Series(Number::Numeric);
        let message = |args: &[&str]| {
            let args: Vec<Datum> = args.iter().copied().map(numeric).collect();
            let error = series.values(&args).unwrap_err();
            assert_eq!(error.sqlstate, "22023");
            error.message
        };
        assert_eq!(message(&["NaN", "Infinity"]), "start value cannot be NaN");
        assert_eq!(message(&["1", "-Infinity"]), "stop value cannot be infinity");
        assert_eq!(message(&["1", "NaN", "0"]), "stop value cannot be NaN");
        assert_eq!(message(&["1", "2", "0.00"]), "step size cannot equal zero");
        let error = TableFunc::Series(Number::Int4).values(&int4(&[1, 2, 0])).unwrap_err();
        assert_eq!(error, zero_step());
        let with_null = [Datum::Int4(1), Datum::Null, Datum::Int4(0)];
        assert_eq!(values(TableFunc::Series(Number::Int4), &with_null), vec![]);
    }

    #[test]
    fn arrays_give_their_elements_and_their_subscripts() {
        let elements = vec![Datum::Int4(7), Datum::Null];
        let array = Datum::from(Array::of_one(3, elements.clone()));
        assert_eq!(values(TableFunc::Unnest, std::slice::from_ref(&array)), elements);
        assert_eq!(values(TableFunc::Unnest, &[Datum::Null]), vec![]);
        let subscripts = |args: &[Datum]| values(TableFunc::Subscripts, args);
        assert_eq!(subscripts(&[array.clone(), Datum::Int4(1)]), int4(&[3, 4]));
        let reversed = [array.clone(), Datum::Int4(1), Datum::Bool(true)];
        assert_eq!(subscripts(&reversed), int4(&[4, 3]));
        assert_eq!(subscripts(&[array, Datum::Int4(2)]), int4(&[]));
        assert_eq!(subscripts(&[Datum::array(vec![]), Datum::Int4(1)]), int4(&[]));
    }

    #[test]
    fn text_is_split_at_the_delimiter_or_into_characters() {
        let split = |args: &[Option<&str>]| values(TableFunc::StringToTable, &texts(args));
        let some = |fields: &[&str]| texts(&fields.iter().copied().map(Some).collect::<Vec<_>>());
        assert_eq!(split(&[Some("a,b,,c"), Some(",")]), some(&["a", "b", "", "c"]));
        assert_eq!(split(&[Some("aaaa"), Some("aa")]), some(&["", "", ""]));
        assert_eq!(split(&[Some("aäb"), None]), some(&["a", "ä", "b"]));
        assert_eq!(split(&[Some("abc"), Some("")]), some(&["abc"]));
        assert_eq!(split(&[Some(""), Some(",")]), some(&[]));
        assert_eq!(split(&[None, Some(",")]), some(&[]));
        let with_null = split(&[Some("a,x,"), Some(","), Some("x")]);
        assert_eq!(with_null, texts(&[Some("a"), None, Some("")]));
    }
}
