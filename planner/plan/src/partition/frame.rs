//! Window frames: for each row of a partition, the rows that a window function sees.

use super::window::Partition;
use super::SortKey;
use crate::datetime;
use crate::error::DataError;
use crate::numeric::{Numeric, Special};
use crate::sqlstate;
use crate::value::Datum;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::ops::Range;

/// `ROWS | RANGE | GROUPS BETWEEN start AND end EXCLUDE …`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// What offsets count.
    pub units: Units,
    pub start: Bound,
    pub end: Bound,
    /// What is left out.
    pub exclusion: Exclusion,
}

/// What the offsets of a frame count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Units {
    Rows,
    /// Groups of peers.
    Groups,
    /// Differences of the values of the only ORDER BY column, which is given if there are offsets.
    Range(Option<SortKey>),
}

/// A bound of a frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Bound {
    /// The first row of the partition for a start, the last for an end.
    Unbounded,
    /// The current row; with peers unless rows are counted.
    Current,
    /// So much before the current row.
    Preceding(Datum),
    /// So much after the current row.
    Following(Datum),
    /// So much before the current row as a column says, which says the same in all rows.
    PrecedingOf(usize),
    /// So much after it.
    FollowingOf(usize),
    /// Where the values of the only ORDER BY column come to the one that this column has in the current row.
    At(usize),
}

impl Bound {
    /// How far it is from the current row, and whether that is before it.
    fn offset(&self, partition: &Partition) -> Option<(Datum, bool)> {
        match self {
            Bound::Preceding(offset) => Some((offset.clone(), true)),
            Bound::Following(offset) => Some((offset.clone(), false)),
            Bound::PrecedingOf(column) => Some((partition.value(0, *column), true)),
            Bound::FollowingOf(column) => Some((partition.value(0, *column), false)),
            Bound::Unbounded | Bound::Current | Bound::At(_) => None,
        }
    }

    /// The column that it reads.
    pub fn column_mut(&mut self) -> Option<&mut usize> {
        match self {
            Bound::At(column) | Bound::PrecedingOf(column) | Bound::FollowingOf(column) => {
                Some(column)
            }
            Bound::Unbounded | Bound::Current | Bound::Preceding(_) | Bound::Following(_) => None,
        }
    }
}

/// What is left out of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exclusion {
    None,
    CurrentRow,
    /// The current row and its peers.
    Group,
    /// The peers of the current row.
    Ties,
}

/// Rows of a partition, by number.
pub(super) type Rows = Range<usize>;

impl Default for Frame {
    /// From the first row to the last peer of the current one.
    fn default() -> Frame {
        let (start, end) = (Bound::Unbounded, Bound::Current);
        Frame { units: Units::Range(None), start, end, exclusion: Exclusion::None }
    }
}

impl Frame {
    /// Whether some peers of a row may be in its frame and others not.
    pub fn parts_peers(&self) -> bool {
        let is_whole = self.start == Bound::Unbounded && self.end == Bound::Unbounded;
        self.units == Units::Rows && !is_whole
    }

    /// Whether a bound is so far from the current row as an offset says.
    pub(super) fn has_offset(&self) -> bool {
        let is_offset = |bound: &Bound| !matches!(bound, Bound::Unbounded | Bound::Current);
        is_offset(&self.start) || is_offset(&self.end)
    }

    /// An error if an offset is none, before any row is looked at.
    fn check(&self, partition: &Partition) -> Result<(), DataError> {
        for (bound, edge) in [(&self.start, Edge::Start), (&self.end, Edge::End)] {
            let Some((offset, _)) = bound.offset(partition) else { continue };
            if offset.is_null() {
                let message = format!("frame {} offset must not be null", edge.name());
                return Err(DataError::new(sqlstate::NULL_VALUE_NOT_ALLOWED, &message));
            }
            if matches!(self.units, Units::Rows | Units::Groups) {
                counted(&offset, edge)?;
            }
        }
        Ok(())
    }

    /// The frame of each row, before the exclusion. Starts and ends never go back from row to row.
    pub(super) fn bounds(&self, partition: &Partition) -> Result<Vec<Rows>, DataError> {
        self.check(partition)?;
        let starts = self.places(partition, &self.start, Edge::Start)?;
        let ends = self.places(partition, &self.end, Edge::End)?;
        Ok(starts.into_iter().zip(ends).map(|(start, end)| start..end.max(start)).collect())
    }

    /// What is left out of a row's frame.
    pub(super) fn excluded(
        &self,
        partition: &Partition,
        row: usize,
        frame: &Rows,
    ) -> SmallVec<[Rows; 2]> {
        let peers = partition.peers(row);
        let parts = match self.exclusion {
            Exclusion::None => [0..0, 0..0],
            Exclusion::CurrentRow => [row..row + 1, 0..0],
            Exclusion::Group => [peers, 0..0],
            Exclusion::Ties => [peers.start..row, row + 1..peers.end],
        };
        let within = |part: Rows| part.start.max(frame.start)..part.end.min(frame.end);
        parts.into_iter().map(within).filter(|part| !part.is_empty()).collect()
    }

    /// Where an end of the frame of each row is.
    fn places(
        &self,
        partition: &Partition,
        bound: &Bound,
        edge: Edge,
    ) -> Result<Vec<usize>, DataError> {
        let count = partition.len();
        if let Some(offset) = bound.offset(partition) {
            return self.distant(partition, offset, edge);
        }
        match (bound, self.units) {
            (Bound::Unbounded, _) if edge == Edge::Start => Ok(vec![0; count]),
            (Bound::Unbounded, _) => Ok(vec![count; count]),
            (Bound::At(column), Units::Range(Some(sort))) => {
                Reach { sort, column: *column }.places(partition, edge)
            }
            (Bound::Current, Units::Rows) => {
                Ok((0..count).map(|row| edge.of(&(row..row + 1))).collect())
            }
            (Bound::Current, _) => {
                Ok((0..count).map(|row| edge.of(&partition.peers(row))).collect())
            }
            _ => Err(no_column()),
        }
    }

    /// The same, so far before the row or after it.
    fn distant(
        &self,
        partition: &Partition,
        (offset, is_preceding): (Datum, bool),
        edge: Edge,
    ) -> Result<Vec<usize>, DataError> {
        let count = partition.len();
        match self.units {
            Units::Rows => {
                let offset = counted(&offset, edge)?;
                Ok((0..count).map(|row| moved(row, offset, is_preceding, edge, count)).collect())
            }
            Units::Groups => {
                let offset = counted(&offset, edge)?;
                let place = |row| {
                    let group = partition.group(row);
                    let groups = partition.groups();
                    partition.start_of(moved(group, offset, is_preceding, edge, groups))
                };
                Ok((0..count).map(place).collect())
            }
            Units::Range(Some(sort)) => {
                let distance = Distance { sort, offset: &offset, is_preceding };
                distance.places(partition, edge)
            }
            Units::Range(None) => Err(no_column()),
        }
    }
}

fn no_column() -> DataError {
    DataError::new(sqlstate::INTERNAL_ERROR, "a frame with offsets from no column")
}

/// Which end of a frame is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    Start,
    End,
}

impl Edge {
    fn of(self, rows: &Rows) -> usize {
        match self {
            Edge::Start => rows.start,
            Edge::End => rows.end,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Edge::Start => "starting",
            Edge::End => "ending",
        }
    }
}

/// An offset that counts rows or groups.
fn counted(offset: &Datum, edge: Edge) -> Result<usize, DataError> {
    let offset = offset.as_i64().unwrap_or_default();
    usize::try_from(offset).map_err(|_| {
        DataError::new(
            sqlstate::INVALID_PRECEDING_OR_FOLLOWING_SIZE,
            &format!("frame {} offset must not be negative", edge.name()),
        )
    })
}

/// The place so many before or after one of `count`, behind it for an end.
fn moved(from: usize, offset: usize, is_preceding: bool, edge: Edge, count: usize) -> usize {
    let from = from + usize::from(edge == Edge::End);
    if is_preceding {
        from.saturating_sub(offset)
    } else {
        from.saturating_add(offset).min(count)
    }
}

/// A place for each row, by a column that says how far its frame reaches.
struct Reach {
    sort: SortKey,
    column: usize,
}

impl Reach {
    fn places(&self, partition: &Partition, edge: Edge) -> Result<Vec<usize>, DataError> {
        places(partition, |value, current| {
            let value = partition.value(value, self.sort.column);
            let reached = partition.value(current, self.column);
            self.is_before(&value, &reached, edge)
        })
    }

    /// Whether a value comes before the edge.
    fn is_before(&self, value: &Datum, reached: &Datum, edge: Edge) -> Result<bool, DataError> {
        let order = match (value, reached) {
            (value, reached) if value.is_null() || reached.is_null() => {
                return Ok(nulls_before(value, reached, self.sort, edge).unwrap_or_default())
            }
            (Datum::Date(value), Datum::Timestamp(reached)) => {
                datetime::timestamp_of_date(*value)?.cmp(reached)
            }
            (Datum::Timestamp(value), Datum::Timestamp(reached)) => value.cmp(reached),
            (Datum::Bytea(value), Datum::Bytea(reached)) => value.cmp(reached),
            _ => return Err(DataError::new(sqlstate::INTERNAL_ERROR, "a frame of another type")),
        };
        let order = if self.sort.descending { order.reverse() } else { order };
        Ok(order.is_lt() || edge == Edge::End && order.is_eq())
    }
}

/// For each row the first one that is not before its edge. Edges only move on, because the values are sorted.
fn places(
    partition: &Partition,
    is_before: impl Fn(usize, usize) -> Result<bool, DataError>,
) -> Result<Vec<usize>, DataError> {
    let mut place = 0;
    let mut places = Vec::with_capacity(partition.len());
    for row in 0..partition.len() {
        while place < partition.len() && is_before(place, row)? {
            place += 1;
        }
        places.push(place);
    }
    Ok(places)
}

/// Whether a value comes before the edge for another one, if one of them is NULL: NULLs are peers of NULLs only.
fn nulls_before(value: &Datum, current: &Datum, sort: SortKey, edge: Edge) -> Option<bool> {
    match (value.is_null(), current.is_null()) {
        (true, true) => Some(edge == Edge::End),
        (true, false) => Some(sort.nulls_first),
        (false, true) => Some(!sort.nulls_first),
        (false, false) => None,
    }
}

/// A distance in the values of the ORDER BY column.
struct Distance<'a> {
    sort: SortKey,
    offset: &'a Datum,
    is_preceding: bool,
}

impl Distance<'_> {
    fn places(&self, partition: &Partition, edge: Edge) -> Result<Vec<usize>, DataError> {
        let value = |row: usize| partition.value(row, self.sort.column);
        places(partition, |place, row| self.is_before(&value(place), &value(row), edge))
    }

    /// Whether a value comes before the edge for the current one.
    fn is_before(&self, value: &Datum, current: &Datum, edge: Edge) -> Result<bool, DataError> {
        if let Some(is_before) = nulls_before(value, current, self.sort, edge) {
            return Ok(is_before);
        }
        let is_less = edge == Edge::End;
        let subtract = self.is_preceding != self.sort.descending;
        let is_less = is_less != self.sort.descending;
        let is_within = in_range(value, current, self.offset, subtract, is_less)?;
        Ok(is_within == (edge == Edge::End))
    }
}

/// Whether `value <= base ± offset`, or `>=` unless `is_less`; as the `in_range` support functions of
/// PostgreSQL's operator families have it: NaN is equal to itself and greater than all else.
fn in_range(
    value: &Datum,
    base: &Datum,
    offset: &Datum,
    subtract: bool,
    is_less: bool,
) -> Result<bool, DataError> {
    let order = match (value, base, offset) {
        (Datum::Float4(_) | Datum::Float8(_), ..) => {
            let number = |datum: &Datum| datum.as_f64().unwrap_or_default();
            float_order(number(value), number(base), number(offset), subtract)?
        }
        (Datum::Numeric(value), Datum::Numeric(base), Datum::Numeric(offset)) => {
            numeric_order(value, base, offset, subtract)?
        }
        (Datum::Date(value), Datum::Date(base), offset) => {
            let [value, base] = [*value, *base].map(datetime::timestamp_of_date);
            time_order(value?, base?, offset, subtract)?
        }
        (Datum::Timestamp(value), Datum::Timestamp(base), offset) => {
            time_order(*value, *base, offset, subtract)?
        }
        _ => {
            let number = |datum: &Datum| {
                let number = datum.as_i64().map(i128::from);
                number.ok_or_else(|| {
                    DataError::new(sqlstate::INTERNAL_ERROR, "a frame offset of another type")
                })
            };
            let (value, base, offset) = (number(value)?, number(base)?, number(offset)?);
            if offset < 0 {
                return Err(invalid_size());
            }
            Some(value.cmp(&if subtract { base - offset } else { base + offset }))
        }
    };
    Ok(match order {
        Some(order) => order.is_eq() || order.is_lt() == is_less,
        None => true,
    })
}

fn invalid_size() -> DataError {
    DataError::new(
        sqlstate::INVALID_PRECEDING_OR_FOLLOWING_SIZE,
        "invalid preceding or following size in window function",
    )
}

/// The order of a moment and of what is so many microseconds from the base. Nothing is far from an infinite one.
fn time_order(
    value: i64,
    base: i64,
    offset: &Datum,
    subtract: bool,
) -> Result<Option<Ordering>, DataError> {
    let offset = offset.as_i64().filter(|offset| *offset >= 0).ok_or_else(invalid_size)?;
    let is_finite = base != i64::MIN && base != i64::MAX;
    let moved = match (is_finite, subtract) {
        (false, _) => base,
        (true, true) => datetime::checked_timestamp(base.checked_sub(offset))?,
        (true, false) => datetime::checked_timestamp(base.checked_add(offset))?,
    };
    Ok(Some(value.cmp(&moved)))
}

/// The order of a value and of what is so far from the base; `None` if infinities make both the same.
fn float_order(
    value: f64,
    base: f64,
    offset: f64,
    subtract: bool,
) -> Result<Option<Ordering>, DataError> {
    if offset.is_nan() || offset < 0.0 {
        return Err(invalid_size());
    }
    let nans = value.is_nan().cmp(&base.is_nan());
    if value.is_nan() || base.is_nan() {
        return Ok(Some(nans));
    }
    let sum = if subtract { base - offset } else { base + offset };
    // An infinite distance from an infinity is everywhere.
    Ok(value.partial_cmp(&sum))
}

fn numeric_order(
    value: &Numeric,
    base: &Numeric,
    offset: &Numeric,
    subtract: bool,
) -> Result<Option<Ordering>, DataError> {
    if offset.is_nan() || offset.sql_cmp(&Numeric::from(0_i64)).is_lt() {
        return Err(invalid_size());
    }
    if value.is_nan() || base.is_nan() {
        return Ok(Some(value.is_nan().cmp(&base.is_nan())));
    }
    let sum = if subtract { base.subtract(offset)? } else { base.add(offset)? };
    let is_everywhere = sum == Numeric::Special(Special::NaN);
    Ok((!is_everywhere).then(|| value.sql_cmp(&sum)))
}
