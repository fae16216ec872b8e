//! Aggregates of all values of a group in an order: array_agg, string_agg, percentiles, mode.
//!
//! A row's contribution is an *entry*, one value made by [`Func::Entry`](crate::func::Func::Entry): the bytes of the
//! [`OrderKey`]s it is sorted by, its arguments as a [`Row`], and the length of the
//! former. Entries sort as bytes, so whoever keeps them needs no types.

use crate::aggregate::Collect;
use crate::error::DataError;
use crate::partition::OrderKey;
use crate::row::{Diff, Row};
use crate::sqlstate;
use crate::value::check_depth;
use crate::value::{Array, Datum};

/// Bytes that the length of the order keys takes.
const LENGTH: usize = 4;

/// The entry of a row.
pub fn entry(order: &[&Datum], values: &[&Datum]) -> Datum {
    let mut bytes = Vec::new();
    for key in order {
        if let Datum::Bytea(key) = key {
            bytes.extend_from_slice(key);
        }
    }
    // No value is as long as that would not hold.
    let length = bytes.len() as u32;
    bytes.extend_from_slice(Row::pack(values.iter().copied()).as_bytes());
    bytes.extend_from_slice(&length.to_le_bytes());
    Datum::Bytea(bytes.into())
}

/// The order keys and the arguments of an entry.
fn parts(entry: &[u8]) -> (&[u8], Vec<Datum>) {
    let (rest, length) = entry.split_at(entry.len() - LENGTH);
    let length = length.iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte));
    let (order, row) = rest.split_at(length);
    (order, Row::from_bytes(row).unpack())
}

impl Collect {
    /// The result for entries in order, each so many times; NULL if there are none.
    pub fn finish<'a>(
        self,
        entries: impl Iterator<Item = (&'a [u8], Diff)>,
    ) -> Result<Datum, DataError> {
        let entries = entries.filter(|(_, copies)| *copies > 0);
        match self {
            Collect::Array { distinct } => Ok(array(values(entries, distinct))),
            Collect::Arrays { distinct } => stacked(values(entries, distinct)),
            Collect::Text { distinct } => Ok(text(&values(entries, distinct))),
            Collect::Bytes { distinct } => Ok(bytes(&values(entries, distinct))),
            Collect::First => {
                Ok(present(entries).next().map_or(Datum::Null, |(_, value, _)| value))
            }
            Collect::Mode => Ok(mode(entries)),
            Collect::PercentileDisc(fraction) => percentile_disc(f64::from_bits(fraction), entries),
            Collect::PercentileCont(fraction) => percentile_cont(f64::from_bits(fraction), entries),
        }
    }
}

/// The arguments of each row in order; with `distinct` one of those that are equal in the order.
fn values<'a>(entries: impl Iterator<Item = (&'a [u8], Diff)>, distinct: bool) -> Vec<Vec<Datum>> {
    let mut all = Vec::new();
    let mut last = None;
    for (entry, copies) in entries {
        let (order, values) = parts(entry);
        let copies = if distinct { Diff::from(last != Some(order)) } else { copies };
        last = Some(order);
        (0..copies).for_each(|_| all.push(values.clone()));
    }
    all
}

fn array(rows: Vec<Vec<Datum>>) -> Datum {
    if rows.is_empty() {
        return Datum::Null;
    }
    Datum::array(rows.into_iter().filter_map(|mut values| values.pop()).collect())
}

/// Arrays of equal dimensions as an array of them.
fn stacked(rows: Vec<Vec<Datum>>) -> Result<Datum, DataError> {
    let mut stack: Option<Array> = None;
    let count = rows.len();
    for value in rows.into_iter().filter_map(|mut values| values.pop()) {
        let Datum::Array(array) = value else {
            return Err(DataError::new(
                sqlstate::NULL_VALUE_NOT_ALLOWED,
                "cannot accumulate null arrays",
            ));
        };
        let inner = array.dimensions();
        if inner.is_empty() {
            return Err(DataError::new(
                sqlstate::ARRAY_SUBSCRIPT_ERROR,
                "cannot accumulate empty arrays",
            ));
        }
        check_depth(inner.len() + 1)?;
        match &mut stack {
            None => {
                let mut elements = Vec::with_capacity(count * array.elements.len());
                elements.extend(array.elements);
                stack = Some(Array { lower_bound: 1, inner, elements });
            }
            Some(stack) if stack.inner == inner => stack.elements.extend(array.elements),
            Some(_) => {
                let message = "cannot accumulate arrays of different dimensionality";
                return Err(DataError::new(sqlstate::ARRAY_SUBSCRIPT_ERROR, message));
            }
        }
    }
    stack.map_or(Ok(Datum::Null), |array| array.checked().map(Datum::from))
}

/// The values with delimiters between them, the delimiter of each in front of it. NULLs are left out.
fn joined(rows: &[Vec<Datum>]) -> Option<Vec<u8>> {
    let mut result: Option<Vec<u8>> = None;
    for values in rows {
        let [value, delimiter] = values.as_slice() else { continue };
        let Some(value) = as_bytes(value) else { continue };
        if let Some(result) = &mut result {
            result.extend_from_slice(as_bytes(delimiter).unwrap_or_default());
        }
        result.get_or_insert_default().extend_from_slice(value);
    }
    result
}

fn as_bytes(value: &Datum) -> Option<&[u8]> {
    match value {
        Datum::Text(text) => Some(text.as_bytes()),
        Datum::Bytea(bytes) => Some(bytes),
        _ => None,
    }
}

fn text(rows: &[Vec<Datum>]) -> Datum {
    let text = joined(rows).and_then(|bytes| String::from_utf8(bytes).ok());
    text.map_or(Datum::Null, Datum::text)
}

fn bytes(rows: &[Vec<Datum>]) -> Datum {
    joined(rows).map_or(Datum::Null, |bytes| Datum::Bytea(bytes.into()))
}

/// Values that are not NULL, with how often they are there.
fn present<'a>(
    entries: impl Iterator<Item = (&'a [u8], Diff)>,
) -> impl Iterator<Item = Placed<'a>> {
    entries.filter_map(|(entry, copies)| {
        let (order, mut values) = parts(entry);
        let value = values.pop().filter(|value| !value.is_null())?;
        Some((order, value, copies))
    })
}

/// The value that is there most often, the first of several.
fn mode<'a>(entries: impl Iterator<Item = (&'a [u8], Diff)>) -> Datum {
    let mut best = (Datum::Null, 0);
    let mut run = (Datum::Null, 0);
    let mut last = None;
    for (order, value, copies) in present(entries) {
        if last != Some(order) {
            run = (value, 0);
            last = Some(order);
        }
        run.1 += copies;
        if run.1 > best.1 {
            best = run.clone();
        }
    }
    best.0
}

fn checked(fraction: f64) -> Result<f64, DataError> {
    if (0.0..=1.0).contains(&fraction) {
        return Ok(fraction);
    }
    let message = format!("percentile value {fraction} is not between 0 and 1");
    Err(DataError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, &message))
}

/// A value and where it is in the order.
type Placed<'a> = (&'a [u8], Datum, Diff);

/// The values that are not NULL, and their number.
fn counted<'a>(entries: impl Iterator<Item = (&'a [u8], Diff)>) -> (Vec<Placed<'a>>, Diff) {
    let values: Vec<Placed<'a>> = present(entries).collect();
    let count = values.iter().map(|(.., copies)| copies).sum();
    (values, count)
}

/// The first value whose place, as a part of all, is the fraction or more.
fn percentile_disc<'a>(
    fraction: f64,
    entries: impl Iterator<Item = (&'a [u8], Diff)>,
) -> Result<Datum, DataError> {
    let fraction = checked(fraction)?;
    let (values, count) = counted(entries);
    let place = (fraction * count as f64).ceil().max(1.0) as Diff;
    Ok(nth(&values, place).unwrap_or(Datum::Null))
}

/// Between the two values around the fraction.
fn percentile_cont<'a>(
    fraction: f64,
    entries: impl Iterator<Item = (&'a [u8], Diff)>,
) -> Result<Datum, DataError> {
    let fraction = checked(fraction)?;
    let (values, count) = counted(entries);
    let exact = fraction * (count - 1) as f64;
    let (below, above) = (exact.floor(), exact.ceil());
    let at = |place: f64| nth(&values, place as Diff + 1).and_then(|value| value.as_f64());
    let Some((low, high)) = at(below).zip(at(above)) else { return Ok(Datum::Null) };
    let value = if below == above { low } else { low + (exact - below) * (high - low) };
    Ok(Datum::Float8(value))
}

/// The value at a place, counted from 1.
fn nth(values: &[Placed<'_>], place: Diff) -> Option<Datum> {
    let mut seen = 0;
    values.iter().find_map(|(_, value, copies)| {
        seen += copies;
        (seen >= place).then(|| value.clone())
    })
}

/// The bytes that a value is sorted by.
pub fn order_key(sort: &crate::partition::SortKey, value: &Datum) -> Datum {
    let key = OrderKey::of(std::slice::from_ref(sort), std::slice::from_ref(value));
    Datum::Bytea(key.as_bytes().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::SortKey;
    use crate::types::Scalar;

    const NUMBER: SortKey = SortKey::ascending(0, crate::types::Type::Scalar(Scalar::Float8));

    /// The entries of numbers in order; NaN stands for NULL.
    fn finish(collect: Collect, numbers: &[(f64, Diff)]) -> Datum {
        let mut entries: Vec<(Vec<u8>, Diff)> = numbers
            .iter()
            .map(|(number, copies)| {
                let value = if number.is_nan() { Datum::Null } else { Datum::Float8(*number) };
                let Datum::Bytea(bytes) = entry(&[&order_key(&NUMBER, &value)], &[&value]) else {
                    unreachable!("an entry is bytes")
                };
                (bytes.into_vec(), *copies)
            })
            .collect();
        entries.sort();
        collect.finish(entries.iter().map(|(e, n)| (e.as_slice(), *n))).expect("no error")
    }

    #[test]
    fn percentiles_are_those_of_the_standard() {
        let median = 0.5_f64.to_bits();
        let values = [(4.0, 1), (1.0, 2), (f64::NAN, 3), (10.0, 1)];
        assert_eq!(finish(Collect::PercentileCont(median), &values), Datum::Float8(2.5));
        assert_eq!(finish(Collect::PercentileDisc(median), &values), Datum::Float8(1.0));
        assert_eq!(
            finish(Collect::PercentileDisc(1.0_f64.to_bits()), &values),
            Datum::Float8(10.0)
        );
        assert_eq!(finish(Collect::PercentileCont(median), &[(f64::NAN, 1)]), Datum::Null);
        assert!(Collect::PercentileDisc(1.5_f64.to_bits()).finish(std::iter::empty()).is_err());
    }

    #[test]
    fn the_mode_is_the_first_of_the_most_frequent() {
        assert_eq!(finish(Collect::Mode, &[(3.0, 2), (1.0, 1), (2.0, 2)]), Datum::Float8(2.0));
        assert_eq!(finish(Collect::Mode, &[(f64::NAN, 9)]), Datum::Null);
    }

    #[test]
    fn arrays_keep_nulls_and_copies() {
        let float = |numbers: &[f64]| {
            let datum = |n: &f64| if n.is_nan() { Datum::Null } else { Datum::Float8(*n) };
            Datum::array(numbers.iter().map(datum).collect())
        };
        let values = [(2.0, 2), (f64::NAN, 2), (1.0, 1)];
        let all = finish(Collect::Array { distinct: false }, &values);
        assert_eq!(all, float(&[1.0, 2.0, 2.0, f64::NAN, f64::NAN]));
        let distinct = finish(Collect::Array { distinct: true }, &values);
        assert_eq!(distinct, float(&[1.0, 2.0, f64::NAN]));
        assert_eq!(finish(Collect::Array { distinct: false }, &[]), Datum::Null);
    }
}
