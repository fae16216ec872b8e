//! Rows by column.
//!
//! Neighbours that are equal, as the keys of sorted updates are, are stored once. Of the others, each
//! column is stored for itself: first the tags of all its values, then for each tag the values. Values
//! of one width, as numbers and dates are, stand byte by byte (all first bytes, all second bytes, …):
//! their upper bytes hardly differ. All others are lengths and then bytes.

use super::{read_varint, take, write_varint, Column};
use plan::row::Row;

/// Columns beyond which rows are not cut.
const MAX_COLUMNS: usize = 64;

/// Widths up to which values stand byte by byte.
const MAX_WIDTH: usize = 16;

impl Column for Row {
    fn write<'a>(values: impl Iterator<Item = &'a Self> + Clone, out: &mut Vec<u8>) {
        let distinct = write_runs(values, out);
        let arity = distinct.first().map_or(0, |row| row.encoded().count());
        let even =
            arity <= MAX_COLUMNS && distinct.iter().all(|row| row.encoded().count() == arity);
        if !even {
            write_varint(0, out);
            write_slices(distinct.iter().map(|row| row.as_bytes()), out);
            return;
        }
        write_varint(arity as u64 + 1, out);
        let mut columns: Vec<Vec<&[u8]>> = vec![Vec::with_capacity(distinct.len()); arity];
        for row in &distinct {
            row.encoded().zip(&mut columns).for_each(|(value, column)| column.push(value));
        }
        columns.iter().for_each(|column| write_values(column, out));
    }

    fn read(count: usize, input: &mut &[u8]) -> Option<Vec<Self>> {
        let runs = read_runs(count, input)?;
        let distinct = match read_varint(input)? {
            0 => read_slices(runs.len(), input)?.into_iter().map(Row::from_bytes).collect(),
            arity => read_rows(runs.len(), usize::try_from(arity - 1).ok()?, input)?,
        };
        let mut rows = Vec::with_capacity(count);
        for (row, run) in distinct.into_iter().zip(runs) {
            rows.extend(std::iter::repeat_n(row, run));
        }
        Some(rows)
    }
}

/// Appends how often each row is repeated; returns the rows without the repetitions.
fn write_runs<'a>(values: impl Iterator<Item = &'a Row>, out: &mut Vec<u8>) -> Vec<&'a Row> {
    let mut distinct: Vec<&Row> = Vec::new();
    let mut runs: Vec<u64> = Vec::new();
    for row in values {
        match runs.last_mut() {
            Some(run) if distinct.last() == Some(&row) => *run += 1,
            _ => {
                distinct.push(row);
                runs.push(1);
            }
        }
    }
    runs.into_iter().for_each(|run| write_varint(run, out));
    distinct
}

fn read_runs(count: usize, input: &mut &[u8]) -> Option<Vec<usize>> {
    let mut runs = Vec::new();
    let mut left = count;
    while left > 0 {
        let run = usize::try_from(read_varint(input)?).ok()?;
        left = left.checked_sub(run)?;
        runs.push(run);
        if run == 0 {
            return None;
        }
    }
    Some(runs)
}

/// The distinct tags of a column, in order.
fn tags_of(tags: &[u8]) -> impl Iterator<Item = u8> + use<> {
    let mut present = [false; 256];
    tags.iter().for_each(|tag| present[usize::from(*tag)] = true);
    (0..=u8::MAX).filter(move |tag| present[usize::from(*tag)])
}

/// Appends the encoded values of one column.
fn write_values(values: &[&[u8]], out: &mut Vec<u8>) {
    // Every encoding begins with a tag.
    let tags: Vec<u8> = values.iter().map(|value| value[0]).collect();
    out.extend_from_slice(&tags);
    for tag in tags_of(&tags) {
        let values: Vec<&[u8]> =
            values.iter().filter(|value| value[0] == tag).map(|value| &value[1..]).collect();
        let width = values[0].len();
        if width <= MAX_WIDTH && values.iter().all(|value| value.len() == width) {
            out.push(width as u8);
            for place in 0..width {
                out.extend(values.iter().map(|value| value[place]));
            }
        } else {
            out.push(u8::MAX);
            write_slices(values.iter().copied(), out);
        }
    }
}

/// The values of one tag, to be taken in turn.
enum Values<'a> {
    /// Byte by byte.
    Even { bytes: &'a [u8], count: usize, next: usize },
    /// One after the other.
    Uneven(std::vec::IntoIter<&'a [u8]>),
}

impl<'a> Values<'a> {
    fn read(count: usize, input: &mut &'a [u8]) -> Option<Self> {
        let [width] = *take(1, input)? else { return None };
        Some(match width {
            u8::MAX => Values::Uneven(read_slices(count, input)?.into_iter()),
            width => {
                let bytes = take(usize::from(width).checked_mul(count)?, input)?;
                Values::Even { bytes, count, next: 0 }
            }
        })
    }

    fn append_next(&mut self, out: &mut Vec<u8>) {
        match self {
            Values::Even { bytes, count, next } => {
                out.extend(bytes.iter().skip(*next).step_by(*count));
                *next += 1;
            }
            Values::Uneven(values) => out.extend_from_slice(values.next().unwrap_or_default()),
        }
    }
}

/// A column with values of several tags, to be taken in turn.
struct MixedColumn<'a> {
    tags: &'a [u8],
    /// By tag, the position in `values`.
    positions: [u8; 256],
    values: Vec<Values<'a>>,
}

fn read_values<'a>(count: usize, input: &mut &'a [u8]) -> Option<MixedColumn<'a>> {
    let tags = take(count, input)?;
    let mut positions = [0; 256];
    let mut values = Vec::new();
    for tag in tags_of(tags) {
        positions[usize::from(tag)] = values.len() as u8;
        let count = tags.iter().filter(|other| **other == tag).count();
        values.push(Values::read(count, input)?);
    }
    Some(MixedColumn { tags, positions, values })
}

fn read_rows(count: usize, arity: usize, input: &mut &[u8]) -> Option<Vec<Row>> {
    let columns: Option<Vec<_>> = (0..arity).map(|_| read_values(count, input)).collect();
    let mut columns = columns?;
    let mut bytes = Vec::new();
    let mut rows = Vec::with_capacity(count);
    for index in 0..count {
        bytes.clear();
        for column in &mut columns {
            let tag = column.tags[index];
            bytes.push(tag);
            column.values[usize::from(column.positions[usize::from(tag)])].append_next(&mut bytes);
        }
        rows.push(Row::from_bytes(&bytes));
    }
    Some(rows)
}

fn write_slices<'a>(slices: impl Iterator<Item = &'a [u8]> + Clone, out: &mut Vec<u8>) {
    slices.clone().for_each(|slice| write_varint(slice.len() as u64, out));
    slices.for_each(|slice| out.extend_from_slice(slice));
}

fn read_slices<'a>(count: usize, input: &mut &'a [u8]) -> Option<Vec<&'a [u8]>> {
    let lengths: Option<Vec<u64>> = (0..count).map(|_| read_varint(input)).collect();
    lengths?.into_iter().map(|length| take(usize::try_from(length).ok()?, input)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::value::Datum;

    fn comes_back(rows: &[Row]) {
        let mut bytes = Vec::new();
        Row::write(rows.iter(), &mut bytes);
        let mut input = &bytes[..];
        assert_eq!(Row::read(rows.len(), &mut input).as_deref(), Some(rows));
        assert!(input.is_empty());
        for length in 0..bytes.len() {
            let _ = Row::read(rows.len(), &mut &bytes[..length]);
        }
    }

    #[test]
    fn rows_come_back() {
        let text = |n: i64| Datum::Text("ab".repeat(n as usize % 40).into());
        let number = |n: i64| Datum::Int8(n.pow(5));
        let either = |n: i64| if n % 3 == 0 { Datum::Null } else { text(n) };
        let rows = |make: &dyn Fn(i64) -> Vec<Datum>| -> Vec<Row> {
            (0..200).map(|n| Row::pack(&make(n))).collect()
        };
        comes_back(&[]);
        comes_back(&rows(&|_| vec![]));
        comes_back(&rows(&|n| vec![number(n)]));
        comes_back(&rows(&|n| vec![number(n / 7), text(n)]));
        comes_back(&rows(&|n| vec![either(n), Datum::Bool(n % 2 == 0), number(-n)]));
        comes_back(&rows(&|n| (0..n % 5).map(number).collect()));
        comes_back(&rows(&|n| (0..100).map(|m| number(n + m)).collect()));
    }
}
