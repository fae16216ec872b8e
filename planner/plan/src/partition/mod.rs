//! What is computed from the rows of a partition in their order: LIMIT, DISTINCT ON, window functions.
//!
//! A partition is what the rows with equal values of some columns are; its rows are sorted by
//! [`OrderKey`]s. Where those are equal (the query leaves the order open), rows follow one another in the
//! order of their bytes: any order is right, but it has to be the same every time.
//!
//! These are pure functions of a whole partition: whoever maintains them calls them for the partitions
//! that change, before and after, and takes the difference.

mod frame;
mod order_key;
mod preferred;
mod print;
mod window;

pub use frame::{Bound, Exclusion, Frame, Units};
pub use order_key::{OrderKey, SortKey};
pub use preferred::compare_preferred;
pub use print::{call_names, describe};
pub use window::{WindowCall, WindowFunc};

use crate::error::DataError;
use crate::row::{Diff, Row};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What is computed from each partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Work {
    /// Some of its rows.
    TopK(TopK),
    /// Each of its rows with one more column per call.
    Window(Vec<WindowCall>),
}

/// The rows from the `offset`-th on (0-based), at most `limit` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopK {
    /// How many rows are left out.
    pub offset: Count,
    /// How many rows follow; `None`: all.
    pub limit: Option<Count>,
    /// Whether the peers of the last row follow, too.
    pub with_ties: bool,
}

/// A number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Count {
    /// The same for all partitions.
    Fixed(u64),
    /// What a column says that is among those of the partition's key: an integer that is not negative, or NULL, by which
    /// no rows are left out and all follow.
    Of(usize),
}

impl Count {
    /// The number for the partition that has this row.
    fn in_partition(self, row: &Row) -> Option<u64> {
        match self {
            Count::Fixed(number) => Some(number),
            Count::Of(column) => {
                row.column(column).as_i64().map(|number| u64::try_from(number).unwrap_or(0))
            }
        }
    }
}

/// Rows of a result with their multiplicities.
pub type Results = Vec<(Row, Diff)>;

impl Work {
    /// The result for one partition. `rows` are sorted by key, made of `order`, then as [`Row`]s; multiplicities are
    /// positive.
    ///
    /// # Errors
    /// Those that PostgreSQL raises for one of the rows; the partition then has no result.
    pub fn results<'a>(
        &self,
        order: &[SortKey],
        rows: impl Iterator<Item = (&'a OrderKey, &'a Row, Diff)>,
    ) -> Result<Results, DataError> {
        let peers = Peers::of(order);
        match self {
            Work::TopK(top) => Ok(top.results(&peers, rows)),
            Work::Window(calls) => window::results(calls, &peers, rows),
        }
    }

    /// Whether every partition has one row in the result at most.
    pub fn keeps_one_row(&self) -> bool {
        match self {
            Work::TopK(top) => matches!(top.limit, Some(Count::Fixed(0 | 1))) && !top.with_ties,
            Work::Window(_) => false,
        }
    }

    /// Whether every partition that there is has rows in the result.
    pub fn has_rows_of_all(&self) -> bool {
        match self {
            Work::TopK(TopK { offset: Count::Fixed(0), limit, .. }) => {
                matches!(limit, None | Some(Count::Fixed(1..)))
            }
            Work::TopK(_) => false,
            Work::Window(_) => true,
        }
    }

    /// The work without those calls whose numbers are not among `kept`.
    pub fn with_calls(self, kept: &[usize]) -> Work {
        match self {
            Work::TopK(_) => self,
            Work::Window(calls) => {
                Work::Window(kept.iter().filter_map(|&number| calls.get(number).cloned()).collect())
            }
        }
    }

    /// Visits all columns of the input that are read.
    pub fn columns_mut(&mut self, visit: &mut dyn FnMut(&mut usize)) {
        let calls = match self {
            Work::TopK(top) => return top.columns_mut(visit),
            Work::Window(calls) => calls,
        };
        for call in calls {
            call.args.iter_mut().for_each(&mut *visit);
            if let Units::Range(Some(sort)) = &mut call.frame.units {
                visit(&mut sort.column);
            }
            let bounds = [&mut call.frame.start, &mut call.frame.end].into_iter();
            bounds.filter_map(Bound::column_mut).for_each(&mut *visit);
        }
    }

    /// How many columns are added to those of the input.
    pub fn added_columns(&self) -> usize {
        match self {
            Work::TopK(_) => 0,
            Work::Window(calls) => calls.len(),
        }
    }
}

/// Which rows of a partition are peers: those with equal keys, but for what sorts among peers.
struct Peers(Option<Vec<SortKey>>);

impl Peers {
    fn of(order: &[SortKey]) -> Peers {
        let decisive = order.iter().take_while(|sort| !sort.among_peers).copied();
        let decisive: Vec<SortKey> = decisive.collect();
        Peers((decisive.len() < order.len()).then_some(decisive))
    }

    /// The same for peers alone.
    fn place<'k>(&self, key: &'k OrderKey, row: &Row) -> Cow<'k, OrderKey> {
        match &self.0 {
            None => Cow::Borrowed(key),
            Some(decisive) => Cow::Owned(OrderKey::of(decisive, &row.unpack())),
        }
    }
}

impl TopK {
    fn columns_mut(&mut self, visit: &mut dyn FnMut(&mut usize)) {
        for count in [Some(&mut self.offset), self.limit.as_mut()].into_iter().flatten() {
            if let Count::Of(column) = count {
                visit(column);
            }
        }
    }

    fn results<'a>(
        &self,
        peers: &Peers,
        rows: impl Iterator<Item = (&'a OrderKey, &'a Row, Diff)>,
    ) -> Results {
        let mut rows = rows.peekable();
        let Some((_, first, _)) = rows.peek() else { return Vec::new() };
        let mut to_skip = self.offset.in_partition(first).unwrap_or(0);
        let mut left = self.limit.and_then(|limit| limit.in_partition(first));
        let mut last = None;
        let mut results = Vec::new();
        for (key, row, copies) in rows {
            let copies = copies.unsigned_abs();
            let skipped = to_skip.min(copies);
            to_skip -= skipped;
            let there = copies - skipped;
            let mut taken = there.min(left.unwrap_or(there));
            left = left.map(|left| left - taken);
            if self.with_ties && (taken > 0 || left == Some(0)) {
                let place = Some(peers.place(key, row));
                if taken > 0 {
                    last = place;
                } else if last != place {
                    break;
                }
                taken = there;
            } else if taken == 0 && left == Some(0) {
                break;
            }
            if taken > 0 {
                results.push((row.clone(), taken as Diff));
            }
        }
        results
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::AggregateFunc;
    use crate::types::{Scalar, Type};
    use crate::value::Datum;

    const INT4: Type = Type::Scalar(Scalar::Int4);

    /// Of rows (place, mark, copies), in the order of places: mark and copies of those that are left.
    fn top(top: TopK, rows: &[(i32, i32, Diff)]) -> Vec<(i32, Diff)> {
        top_by(&[SortKey::ascending(0, INT4)], top, rows)
    }

    fn top_by(order: &[SortKey], top: TopK, rows: &[(i32, i32, Diff)]) -> Vec<(i32, Diff)> {
        let results = results(order, &Work::TopK(top), rows);
        let mark = |row: &Row| row.column(1).as_i64().expect("a number") as i32;
        results.iter().map(|(row, copies)| (mark(row), *copies)).collect()
    }

    fn results(order: &[SortKey], work: &Work, rows: &[(i32, i32, Diff)]) -> Results {
        let mut sorted: Vec<_> = rows
            .iter()
            .map(|(place, mark, copies)| {
                let values = [Datum::Int4(*place), Datum::Int4(*mark)];
                (OrderKey::of(order, &values), Row::pack(&values), *copies)
            })
            .collect();
        sorted.sort();
        let rows = sorted.iter().map(|(key, row, copies)| (key, row, *copies));
        work.results(order, rows).expect("no error")
    }

    /// By places; the greatest mark first among peers.
    fn marks_among_peers() -> [SortKey; 2] {
        let marks = SortKey { descending: true, ..SortKey::ascending(1, INT4) };
        [SortKey::ascending(0, INT4), SortKey { among_peers: true, ..marks }]
    }

    #[test]
    fn copies_count_as_rows() {
        let rows = [(1, 10, 2), (2, 20, 3), (3, 30, 1)];
        let limited = |offset, limit: Option<u64>| {
            let limit = limit.map(Count::Fixed);
            top(TopK { offset: Count::Fixed(offset), limit, with_ties: false }, &rows)
        };
        assert_eq!(limited(0, Some(3)), [(10, 2), (20, 1)]);
        assert_eq!(limited(1, Some(2)), [(10, 1), (20, 1)]);
        assert_eq!(limited(2, Some(9)), [(20, 3), (30, 1)]);
        assert_eq!(limited(3, None), [(20, 2), (30, 1)]);
        assert_eq!(limited(0, Some(0)), []);
        assert_eq!(limited(6, None), []);
    }

    #[test]
    fn ties_are_peers_of_the_last_row() {
        let rows = [(1, 10, 1), (1, 11, 2), (2, 20, 1), (2, 21, 1), (3, 30, 1)];
        let limited = |offset, limit| {
            let [offset, limit] = [offset, limit].map(Count::Fixed);
            top(TopK { offset, limit: Some(limit), with_ties: true }, &rows)
        };
        assert_eq!(limited(0, 1), [(10, 1), (11, 2)]);
        assert_eq!(limited(0, 2), [(10, 1), (11, 2)]);
        assert_eq!(limited(0, 4), [(10, 1), (11, 2), (20, 1), (21, 1)]);
        assert_eq!(limited(2, 1), [(11, 1)]);
        assert_eq!(limited(0, 0), []);
        assert_eq!(limited(4, 9), [(21, 1), (30, 1)]);
    }

    #[test]
    fn a_column_of_the_key_says_how_many_rows() {
        let of_key = |key: Option<i64>, as_offset: bool, with_ties| {
            let rows: Vec<(OrderKey, Row)> = [10, 10, 11, 12]
                .into_iter()
                .map(|place| {
                    let values = [Datum::Int4(place), key.map_or(Datum::Null, Datum::Int8)];
                    (OrderKey::of(&[SortKey::ascending(0, INT4)], &values), Row::pack(&values))
                })
                .collect();
            let (offset, limit) = match as_offset {
                true => (Count::Of(1), None),
                false => (Count::Fixed(0), Some(Count::Of(1))),
            };
            let work = Work::TopK(TopK { offset, limit, with_ties });
            let rows = rows.iter().map(|(place, row)| (place, row, 1));
            let results = work.results(&[SortKey::ascending(0, INT4)], rows).expect("no error");
            results.len()
        };
        assert_eq!(of_key(Some(3), false, false), 3);
        assert_eq!(of_key(Some(1), false, true), 2);
        assert_eq!(of_key(Some(0), false, true), 0);
        assert_eq!(of_key(None, false, false), 4);
        assert_eq!(of_key(Some(3), true, false), 1);
        assert_eq!(of_key(None, true, false), 4);
    }

    #[test]
    fn offsets_of_frames_that_are_none_are_errors_whoever_looks_at_the_frame() {
        let error = |func, units, start, end| {
            let frame = Frame { units, start, end, exclusion: Exclusion::None };
            let args = if func == WindowFunc::Lead { vec![1] } else { vec![] };
            let work = Work::Window(vec![WindowCall { func, args, frame }]);
            let order = [SortKey::ascending(0, INT4)];
            let values = [Datum::Int4(1), Datum::Int4(10)];
            let (key, row) = (OrderKey::of(&order, &values), Row::pack(&values));
            work.results(&order, [(&key, &row, 1)].into_iter()).err().map(|error| error.message)
        };
        let (one, below, none) = (Datum::Int8(1), Datum::Int8(-1), Datum::Null);
        let number = Units::Range(Some(SortKey::ascending(0, INT4)));
        let count = WindowFunc::Aggregate(AggregateFunc::Count);
        for func in [WindowFunc::Lead, count] {
            for units in [Units::Rows, Units::Groups] {
                assert_eq!(
                    error(func, units, Bound::Preceding(below.clone()), Bound::Current).as_deref(),
                    Some("frame starting offset must not be negative")
                );
            }
            assert_eq!(
                error(func, number, Bound::Preceding(below.clone()), Bound::Current).as_deref(),
                Some("invalid preceding or following size in window function")
            );
            let end = Bound::Following(none.clone());
            assert_eq!(
                error(func, number, Bound::Preceding(below.clone()), end).as_deref(),
                Some("frame ending offset must not be null")
            );
            assert_eq!(error(func, number, Bound::Preceding(one.clone()), Bound::Current), None);
        }
    }

    #[test]
    fn what_sorts_among_peers_leaves_them_peers() {
        let rows = [(1, 10, 1), (1, 11, 1), (2, 20, 1), (2, 21, 1), (2, 22, 1)];
        let limited = |offset, with_ties| {
            let [offset, limit] = [offset, 1].map(Count::Fixed);
            top_by(&marks_among_peers(), TopK { offset, limit: Some(limit), with_ties }, &rows)
        };
        assert_eq!(limited(0, false), [(11, 1)]);
        assert_eq!(limited(0, true), [(11, 1), (10, 1)]);
        assert_eq!(limited(3, true), [(21, 1), (20, 1)]);
        let call = |func| WindowCall { func, args: vec![], frame: Frame::default() };
        let calls = [WindowFunc::RowNumber, WindowFunc::Rank, WindowFunc::CumeDist].map(call);
        let results = results(&marks_among_peers(), &Work::Window(calls.to_vec()), &rows);
        let numbers: Vec<Vec<Datum>> = results.iter().map(|(row, _)| row.unpack()).collect();
        let row = |place, mark, number, rank, share| {
            let [place, mark] = [place, mark].map(Datum::Int4);
            vec![place, mark, Datum::Int8(number), Datum::Int8(rank), Datum::Float8(share)]
        };
        let expected = [
            row(1, 11, 1, 1, 0.4),
            row(1, 10, 2, 1, 0.4),
            row(2, 22, 3, 3, 1.0),
            row(2, 21, 4, 3, 1.0),
            row(2, 20, 5, 3, 1.0),
        ];
        assert_eq!(numbers, expected);
    }
}
