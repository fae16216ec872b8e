//! Window functions: a value for each row of a partition, from the rows around it.

use super::frame::{Frame, Rows};
use super::{OrderKey, Peers, Results};
use crate::aggregate::{Accum, AggregateFunc};
use crate::error::DataError;
use crate::row::{Diff, Row};
use crate::sqlstate;
use crate::types::{Scalar, Type};
use crate::value::Datum;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// A call of a window function; its partitions and their order are those of the node around.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowCall {
    pub func: WindowFunc,
    /// Its arguments, columns of the input.
    pub args: Vec<usize>,
    /// The rows it sees. Functions that number rows see all.
    pub frame: Frame,
}

/// The window functions. Those up to [`WindowFunc::Lead`] do not look at the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WindowFunc {
    /// `row_number()`: bigint
    RowNumber,
    /// `rank()`: bigint
    Rank,
    /// `dense_rank()`: bigint
    DenseRank,
    /// `percent_rank()`: double precision
    PercentRank,
    /// `cume_dist()`: double precision
    CumeDist,
    /// `ntile(buckets)`: integer
    Ntile,
    /// `lag(value [, offset [, default]])`
    Lag,
    /// `lead(value [, offset [, default]])`
    Lead,
    /// `first_value(value)`
    FirstValue,
    /// `last_value(value)`
    LastValue,
    /// `nth_value(value, n)`
    NthValue,
    /// `array_agg(value)`: the values of the frame in its order. A second argument says of which rows.
    ArrayAgg,
    /// An aggregate of the frame; without an argument it counts rows.
    Aggregate(AggregateFunc),
}

impl WindowFunc {
    /// Those that are no aggregates.
    const OWN: [WindowFunc; 11] = [
        WindowFunc::RowNumber,
        WindowFunc::Rank,
        WindowFunc::DenseRank,
        WindowFunc::PercentRank,
        WindowFunc::CumeDist,
        WindowFunc::Ntile,
        WindowFunc::Lag,
        WindowFunc::Lead,
        WindowFunc::FirstValue,
        WindowFunc::LastValue,
        WindowFunc::NthValue,
    ];

    /// The one, no aggregate, that SQL calls so.
    pub fn named(name: &str) -> Option<WindowFunc> {
        WindowFunc::OWN.into_iter().find(|func| func.name() == name)
    }

    /// What SQL calls it.
    pub fn name(self) -> &'static str {
        match self {
            WindowFunc::RowNumber => "row_number",
            WindowFunc::Rank => "rank",
            WindowFunc::DenseRank => "dense_rank",
            WindowFunc::PercentRank => "percent_rank",
            WindowFunc::CumeDist => "cume_dist",
            WindowFunc::Ntile => "ntile",
            WindowFunc::Lag => "lag",
            WindowFunc::Lead => "lead",
            WindowFunc::FirstValue => "first_value",
            WindowFunc::LastValue => "last_value",
            WindowFunc::NthValue => "nth_value",
            WindowFunc::ArrayAgg => "array_agg",
            WindowFunc::Aggregate(func) => func.name(),
        }
    }

    /// The type of its result, given that of the first argument; `None` where that is for the aggregate to say.
    pub fn result_type(self, arg: Option<Type>) -> Option<Type> {
        match self {
            WindowFunc::RowNumber | WindowFunc::Rank | WindowFunc::DenseRank => {
                Some(Type::Scalar(Scalar::Int8))
            }
            WindowFunc::PercentRank | WindowFunc::CumeDist => Some(Type::Scalar(Scalar::Float8)),
            WindowFunc::Ntile => Some(Type::Scalar(Scalar::Int4)),
            WindowFunc::Lag
            | WindowFunc::Lead
            | WindowFunc::FirstValue
            | WindowFunc::LastValue
            | WindowFunc::NthValue => arg,
            WindowFunc::ArrayAgg => arg?.scalar().map(Type::Array),
            WindowFunc::Aggregate(_) => None,
        }
    }
}

/// The rows of a partition, in order, each copy for itself.
pub(super) struct Partition {
    /// The values of each of the rows.
    values: Vec<Vec<Datum>>,
    /// The number of each row's group of peers.
    groups: Vec<usize>,
    /// The first row of each group, and behind the last one the number of rows.
    starts: Vec<usize>,
}

impl Partition {
    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    /// The number of groups of peers.
    pub(super) fn groups(&self) -> usize {
        self.starts.len() - 1
    }

    /// The group of a row.
    pub(super) fn group(&self, row: usize) -> usize {
        self.groups[row]
    }

    /// The first row of a group; the number of rows for the one behind the last.
    pub(super) fn start_of(&self, group: usize) -> usize {
        self.starts[group]
    }

    /// A row and those that are equal to it in the order.
    pub(super) fn peers(&self, row: usize) -> Rows {
        let group = self.groups[row];
        self.starts[group]..self.starts[group + 1]
    }

    pub(super) fn value(&self, row: usize, column: usize) -> Datum {
        self.values[row][column].clone()
    }
}

/// Values in all arrays of one partition, some hundred megabytes: they grow with the square of its rows.
const MAX_COLLECTED: usize = 20_000_000;

/// Each row with the values of the calls behind it.
pub(super) fn results<'a>(
    calls: &[WindowCall],
    peers: &Peers,
    rows: impl Iterator<Item = (&'a OrderKey, &'a Row, Diff)>,
) -> Result<Results, DataError> {
    let mut partition = Partition { values: vec![], groups: vec![], starts: vec![] };
    let mut rows_in_order = Vec::new();
    let mut last = None;
    for (key, row, copies) in rows {
        let place = Some(peers.place(key, row));
        if last != place {
            partition.starts.push(partition.len());
            last = place;
        }
        let values = row.unpack();
        for _ in 0..copies {
            partition.groups.push(partition.starts.len() - 1);
            partition.values.push(values.clone());
            rows_in_order.push(row);
        }
    }
    partition.starts.push(partition.len());
    if rows_in_order.is_empty() {
        return Ok(vec![]);
    }
    let columns = calls.iter().map(|call| call.values(&partition));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let result = |(number, row): (usize, &&Row)| {
        let added = columns.iter().map(|column| &column[number]);
        (row.followed_by(added), 1)
    };
    Ok(rows_in_order.iter().enumerate().map(result).collect())
}

impl WindowCall {
    /// The value for each row.
    fn values(&self, partition: &Partition) -> Result<Vec<Datum>, DataError> {
        let rows = 0..partition.len();
        let number = |number: usize| Datum::Int8(number as i64);
        let start = |row: usize| partition.peers(row).start;
        match self.func {
            WindowFunc::RowNumber => Ok(rows.map(|row| number(row + 1)).collect()),
            WindowFunc::Rank => Ok(rows.map(|row| number(start(row) + 1)).collect()),
            WindowFunc::DenseRank => Ok(rows.map(|row| number(partition.group(row) + 1)).collect()),
            WindowFunc::PercentRank => {
                let others = partition.len().max(2) - 1;
                let share = |row| Datum::Float8(start(row) as f64 / others as f64);
                Ok(rows.map(share).collect())
            }
            WindowFunc::CumeDist => {
                let all = partition.len() as f64;
                Ok(rows.map(|row| Datum::Float8(partition.peers(row).end as f64 / all)).collect())
            }
            WindowFunc::Ntile => self.ntile(partition),
            WindowFunc::Lag | WindowFunc::Lead => {
                // PostgreSQL has found the frame by then. That it looks for those of functions that number rows is over with 16.
                if self.frame.has_offset() {
                    self.frame.bounds(partition)?;
                }
                let step = if self.func == WindowFunc::Lag { -1 } else { 1 };
                Ok(rows.map(|row| self.neighbour(partition, row, step)).collect())
            }
            WindowFunc::FirstValue | WindowFunc::LastValue | WindowFunc::NthValue => {
                self.picked(partition)
            }
            WindowFunc::ArrayAgg => self.collected(partition),
            WindowFunc::Aggregate(func) => self.aggregated(partition, func),
        }
    }

    fn arg(&self, partition: &Partition, row: usize, number: usize) -> Option<Datum> {
        self.args.get(number).map(|column| partition.value(row, *column))
    }

    /// The bucket of each row, of as many as the first row says that does not say NULL. It is with that row that the
    /// first bucket begins; the first ones take what is over of all rows.
    fn ntile(&self, partition: &Partition) -> Result<Vec<Datum>, DataError> {
        let count = partition.len();
        let number = |row| self.arg(partition, row, 0).and_then(|buckets| buckets.as_i64());
        let first = (0..count).find_map(|row| Some((row, number(row)?)));
        let (first, buckets) = match first {
            None => return Ok(vec![Datum::Null; count]),
            Some((_, buckets)) if buckets <= 0 => {
                let message = "argument of ntile must be greater than zero";
                return Err(DataError::new(sqlstate::INVALID_ARGUMENT_FOR_NTILE, message));
            }
            Some((first, buckets)) => (first, buckets as usize),
        };
        let (size, over) = (count / buckets, count % buckets);
        let bucket = |row: usize| match row.checked_sub(over * (size + 1)) {
            None => row / (size + 1),
            Some(row) => over + row / size.max(1),
        };
        let value = |row: usize| match row.checked_sub(first) {
            None => Datum::Null,
            Some(row) => Datum::Int4(bucket(row) as i32 + 1),
        };
        Ok((0..count).map(value).collect())
    }

    /// The value so many rows away.
    fn neighbour(&self, partition: &Partition, row: usize, direction: i64) -> Datum {
        let distance = match self.arg(partition, row, 1) {
            None => 1,
            Some(Datum::Null) => return Datum::Null,
            Some(distance) => distance.as_i64().unwrap_or_default(),
        };
        let target = row as i64 + direction * distance;
        let found = usize::try_from(target).ok().filter(|target| *target < partition.len());
        match found {
            Some(target) => self.arg(partition, target, 0),
            None => self.arg(partition, row, 2),
        }
        .unwrap_or(Datum::Null)
    }

    /// The rows of a row's frame.
    fn seen(
        &self,
        partition: &Partition,
        row: usize,
        frame: Rows,
    ) -> impl DoubleEndedIterator<Item = usize> {
        let excluded = self.frame.excluded(partition, row, &frame);
        frame.filter(move |row| !excluded.iter().any(|part| part.contains(row)))
    }

    /// The values of all rows of the frame that count.
    fn collected(&self, partition: &Partition) -> Result<Vec<Datum>, DataError> {
        let counts = |row: &usize| {
            self.args.len() < 2 || self.arg(partition, *row, 1) == Some(Datum::Bool(true))
        };
        let mut arrays = Vec::with_capacity(partition.len());
        let mut collected = 0;
        for (row, frame) in self.frame.bounds(partition)?.into_iter().enumerate() {
            let rows = self.seen(partition, row, frame).filter(counts);
            let values: Vec<Datum> = rows.filter_map(|row| self.arg(partition, row, 0)).collect();
            collected += values.len();
            if collected > MAX_COLLECTED {
                let message =
                    format!("window frames of one partition hold over {MAX_COLLECTED} values");
                return Err(DataError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, &message));
            }
            arrays.push(if values.is_empty() { Datum::Null } else { Datum::array(values) });
        }
        Ok(arrays)
    }

    /// The value of a certain row of the frame.
    fn picked(&self, partition: &Partition) -> Result<Vec<Datum>, DataError> {
        let frames = self.frame.bounds(partition)?;
        let mut values = Vec::with_capacity(partition.len());
        for (row, frame) in frames.into_iter().enumerate() {
            let mut seen = self.seen(partition, row, frame);
            let found = match self.func {
                WindowFunc::FirstValue => seen.next(),
                WindowFunc::LastValue => seen.next_back(),
                _ => match self.arg(partition, row, 1).and_then(|n| n.as_i64()) {
                    None => None,
                    Some(n) if n <= 0 => {
                        let message = "argument of nth_value must be greater than zero";
                        return Err(DataError::new(
                            sqlstate::INVALID_ARGUMENT_FOR_NTH_VALUE,
                            message,
                        ));
                    }
                    Some(n) => seen.nth(n as usize - 1),
                },
            };
            let value = found.and_then(|found| self.arg(partition, found, 0));
            values.push(value.unwrap_or(Datum::Null));
        }
        Ok(values)
    }

    /// The aggregate of each frame, from that of the row before.
    fn aggregated(
        &self,
        partition: &Partition,
        func: AggregateFunc,
    ) -> Result<Vec<Datum>, DataError> {
        let mut running = Running::new(func);
        let mut last = 0..0;
        let mut values: Vec<Datum> = Vec::with_capacity(partition.len());
        let mut last_excluded = SmallVec::<[Rows; 2]>::new();
        for (row, frame) in self.frame.bounds(partition)?.into_iter().enumerate() {
            let excluded = self.frame.excluded(partition, row, &frame);
            if frame == last && excluded == last_excluded && row > 0 {
                values.push(values[row - 1].clone());
                continue;
            }
            // Starts and ends only move on.
            running.add_all(self, partition, last.end..frame.end, 1);
            running.add_all(self, partition, last.start..frame.start, -1);
            excluded.iter().for_each(|part| running.add_all(self, partition, part.clone(), -1));
            values.push(running.finish()?);
            excluded.iter().for_each(|part| running.add_all(self, partition, part.clone(), 1));
            last = frame;
            last_excluded = excluded;
        }
        Ok(values)
    }
}

/// An aggregate to which rows are added and from which they are taken.
enum Running {
    Sum(AggregateFunc, Accum),
    /// The values there are, of which the first or the last in order is wanted.
    Pick {
        ty: Type,
        is_least: bool,
        values: BTreeMap<(OrderKey, Row), Diff>,
    },
}

impl Running {
    fn new(func: AggregateFunc) -> Running {
        match func {
            AggregateFunc::Min(ty) => Running::Pick { ty, is_least: true, values: BTreeMap::new() },
            AggregateFunc::Max(ty) => {
                Running::Pick { ty, is_least: false, values: BTreeMap::new() }
            }
            _ => Running::Sum(func, Accum::zero(func)),
        }
    }

    /// Adds, or takes away, the arguments of some rows.
    fn add_all(&mut self, call: &WindowCall, partition: &Partition, rows: Rows, copies: Diff) {
        rows.for_each(|row| self.add(call.arg(partition, row, 0), copies));
    }

    fn add(&mut self, arg: Option<Datum>, copies: Diff) {
        match (self, arg) {
            (Running::Sum(func, accum), arg) => {
                accum.plus_equals(&Accum::of(*func, arg.as_ref(), copies));
            }
            (_, None | Some(Datum::Null)) => {}
            (Running::Pick { ty, values, .. }, Some(value)) => {
                let key = (OrderKey::of_value(*ty, &value), Row::pack([&value]));
                let count = values.entry(key.clone()).or_default();
                *count += copies;
                if *count == 0 {
                    values.remove(&key);
                }
            }
        }
    }

    fn finish(&self) -> Result<Datum, DataError> {
        let (is_least, values) = match self {
            Running::Sum(func, accum) => return accum.finish(*func),
            Running::Pick { is_least, values, .. } => (*is_least, values),
        };
        let first = match is_least {
            true => values.first_key_value(),
            // Of equal values the least as bytes, as everywhere.
            false => values
                .last_key_value()
                .and_then(|((last, _), _)| values.range((last.clone(), Row::default())..).next()),
        };
        Ok(first.map_or(Datum::Null, |((_, row), _)| row.column(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Bound, Exclusion, SortKey, Units};
    use super::*;

    const INT4: Type = Type::Scalar(Scalar::Int4);
    const ORDER: SortKey = SortKey::ascending(0, INT4);

    /// Rows (place, value) in order; a place of 0 is NULL.
    fn partition(rows: &[(i32, i32)]) -> Vec<(OrderKey, Row)> {
        let mut sorted: Vec<_> = rows
            .iter()
            .map(|(place, value)| {
                let place = if *place == 0 { Datum::Null } else { Datum::Int4(*place) };
                let values = [place, Datum::Int4(*value)];
                (OrderKey::of(&[ORDER], &values), Row::pack(&values))
            })
            .collect();
        sorted.sort();
        sorted
    }

    fn values(call: WindowCall, rows: &[(i32, i32)]) -> Vec<Datum> {
        let sorted = partition(rows);
        let peers = Peers::of(&[ORDER]);
        let results = results(&[call], &peers, sorted.iter().map(|(key, row)| (key, row, 1)));
        results.expect("no error").iter().map(|(row, _)| row.column(2)).collect()
    }

    fn frames() -> Vec<Frame> {
        let offset = |n: i32, units| match units {
            Units::Range(_) => Datum::Int4(n),
            _ => Datum::Int8(i64::from(n)),
        };
        let mut frames = Vec::new();
        for units in [Units::Rows, Units::Groups, Units::Range(Some(ORDER))] {
            let starts = [
                Bound::Unbounded,
                Bound::Current,
                Bound::Preceding(offset(2, units)),
                Bound::Following(offset(1, units)),
            ];
            let ends = [
                Bound::Unbounded,
                Bound::Current,
                Bound::Following(offset(1, units)),
                Bound::Preceding(offset(1, units)),
            ];
            for start in &starts {
                for end in &ends {
                    for exclusion in
                        [Exclusion::None, Exclusion::CurrentRow, Exclusion::Group, Exclusion::Ties]
                    {
                        let (start, end) = (start.clone(), end.clone());
                        frames.push(Frame { units, start, end, exclusion });
                    }
                }
            }
        }
        frames
    }

    /// The rows of a frame by definition: those between the bounds and not excluded.
    fn seen(frame: &Frame, rows: &[(i32, i32)], current: usize) -> Vec<i32> {
        let place = |row: usize| if rows[row].0 == 0 { 1000 } else { rows[row].0 };
        let mut places: Vec<i32> = (0..rows.len()).map(place).collect();
        places.dedup();
        let group =
            |row: usize| places.iter().position(|p| *p == place(row)).expect("a group") as i64;
        let at = |row: usize| match frame.units {
            Units::Rows => row as i64,
            Units::Groups => group(row),
            Units::Range(_) => i64::from(place(row)),
        };
        let here = at(current);
        let is_within = |row: usize, bound: &Bound, is_start: bool| {
            let edge = match bound {
                Bound::Unbounded => return true,
                // NULLs are as far from one another as peers are, and infinitely far from all else.
                _ if matches!(frame.units, Units::Range(_)) && here == 1000 => here,
                Bound::Current => here,
                Bound::Preceding(offset) => here - offset.as_i64().expect("an offset"),
                Bound::Following(offset) => here + offset.as_i64().expect("an offset"),
                Bound::At(_) | Bound::PrecedingOf(_) | Bound::FollowingOf(_) => {
                    unreachable!("not among the frames")
                }
            };
            if is_start {
                at(row) >= edge
            } else {
                at(row) <= edge
            }
        };
        let is_left_out = |row: usize| match frame.exclusion {
            Exclusion::None => false,
            Exclusion::CurrentRow => row == current,
            Exclusion::Group => place(row) == place(current),
            Exclusion::Ties => place(row) == place(current) && row != current,
        };
        (0..rows.len())
            .filter(|row| is_within(*row, &frame.start, true) && is_within(*row, &frame.end, false))
            .filter(|row| !is_left_out(*row))
            .map(|row| rows[row].1)
            .collect()
    }

    #[test]
    fn frames_are_what_the_standard_says() {
        let partitions: [&[(i32, i32)]; 4] = [
            &[(1, 5)],
            &[(1, 5), (1, 6), (1, 7)],
            &[(1, 9), (2, 7), (2, 8), (4, 1), (5, 3), (5, 4), (9, 2)],
            &[(1, 3), (2, 1), (3, 9), (3, 10), (0, 5), (0, 6)],
        ];
        let call = |func, frame: &Frame| WindowCall { func, args: vec![1], frame: frame.clone() };
        let optional = |value: Option<i32>| value.map_or(Datum::Null, Datum::Int4);
        for rows in partitions {
            for frame in frames() {
                let expected: Vec<Vec<i32>> =
                    (0..rows.len()).map(|row| seen(&frame, rows, row)).collect();
                let check = |func, value: &dyn Fn(&Vec<i32>) -> Datum| {
                    let expected: Vec<Datum> = expected.iter().map(value).collect();
                    assert_eq!(
                        values(call(func, &frame), rows),
                        expected,
                        "{func:?} {frame:?} {rows:?}"
                    );
                };
                use AggregateFunc as A;
                check(WindowFunc::Aggregate(A::Count), &|seen| Datum::Int8(seen.len() as i64));
                check(WindowFunc::Aggregate(A::Max(INT4)), &|seen| {
                    optional(seen.iter().max().copied())
                });
                check(WindowFunc::Aggregate(A::Min(INT4)), &|seen| {
                    optional(seen.iter().min().copied())
                });
                check(WindowFunc::FirstValue, &|seen| optional(seen.first().copied()));
                check(WindowFunc::LastValue, &|seen| optional(seen.last().copied()));
                check(WindowFunc::ArrayAgg, &|seen| match seen.as_slice() {
                    [] => Datum::Null,
                    seen => Datum::array(seen.iter().copied().map(Datum::Int4).collect()),
                });
            }
        }
    }

    #[test]
    fn buckets_differ_by_one_row_at_most() {
        for count in 1..20 {
            for buckets in 1..25 {
                let rows: Vec<(i32, i32)> = (1..=count).map(|n| (n, buckets)).collect();
                let call =
                    WindowCall { func: WindowFunc::Ntile, args: vec![1], frame: Frame::default() };
                let found: Vec<i64> =
                    values(call, &rows).iter().filter_map(Datum::as_i64).collect();
                let (size, over) = (count / buckets, count % buckets);
                let expected: Vec<i64> = (0..buckets)
                    .flat_map(|b| vec![i64::from(b) + 1; (size + i32::from(b < over)) as usize])
                    .collect();
                assert_eq!(found, expected);
            }
        }
    }
}
