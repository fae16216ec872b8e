//! Rows that describe themselves: for columns of any type.

use super::tuple::{sort_by_data, ColumnType, Layout, Tuple};
use crate::core::collection::Collection;
use crate::core::diff::Mult;
use crate::core::monitor::room_for;
use crate::core::updates::Time;
use plan::error::DataError;
use plan::row::Row;
use plan::value::Datum;

/// Rows from which on sorting looks at some bytes of each first.
const MANY: usize = 1 << 10;

/// The layout of plans with columns of varying width.
#[derive(Clone, Copy)]
pub(crate) struct Varying;

impl Layout for Varying {
    type Row = Row;
    type Key = Row;
    type Val = Row;
    type View<'a> = &'a Row;
    type Shape = ();
    type Moves = Vec<usize>;

    /// Rows are decoded from their beginning: better once than for each column.
    const KEEPS_ROWS: bool = true;
    const HAS_INTEGERS: bool = false;

    fn shape(_columns: &[ColumnType]) {}

    fn moves_to(_from: &[&()], columns: &[(usize, usize)], _to: &()) -> Vec<usize> {
        columns.iter().map(|(_, column)| *column).collect()
    }

    fn integer(view: &Row, _shape: &(), index: usize) -> Option<i64> {
        view.column(index).as_i64()
    }

    #[inline]
    fn unpack_into(view: &Row, _shape: &(), out: &mut Vec<Datum>) {
        view.unpack_into(out);
    }

    #[inline]
    fn column(view: &Row, _shape: &(), index: usize) -> Datum {
        view.column(index)
    }

    fn followed_by<'a>(
        key: &Row,
        _moves: &Vec<usize>,
        values: impl ExactSizeIterator<Item = &'a Datum>,
        _shape: &(),
    ) -> Result<Row, DataError> {
        Ok(key.followed_by(values))
    }

    fn pack_collection<'s, const LOOPS: usize>(
        rows: Collection<'s, Row, LOOPS>,
        _shape: &(),
    ) -> Collection<'s, Row, LOOPS> {
        rows
    }
}

impl Tuple<Varying> for Row {
    #[inline]
    fn view(&self) -> &Row {
        self
    }

    /// Long rows are all over the memory: most are told apart by some bytes of each, which are beside one another.
    fn sort(updates: &mut [(Row, Time, Mult)]) {
        if updates.len() < MANY {
            return sort_by_data(updates);
        }
        room_for(updates.len() * size_of::<(u64, usize)>());
        let skip = Row::common_prefix(updates.iter().map(|(row, ..)| row));
        let order = |row: &Row| row.rank(skip);
        updates.sort_by_cached_key(|(row, ..)| order(row));
        updates.chunk_by_mut(|(a, ..), (b, ..)| order(a) == order(b)).for_each(sort_by_data);
    }

    fn pack(_shape: &(), values: &[&Datum]) -> Result<Row, DataError> {
        Ok(Row::pack(values.iter().copied()))
    }

    fn from_row(row: Row, _shape: &()) -> Result<Row, DataError> {
        Ok(row)
    }

    fn to_row(self, _shape: &()) -> Row {
        self
    }

    #[inline]
    fn project(moves: &Vec<usize>, from: &[&Row]) -> Row {
        Row::project(from, moves)
    }

    fn with_integers(
        _moves: &Vec<usize>,
        _from: &[&Row],
        _integers: &[(usize, Option<i64>)],
        _shape: &(),
    ) -> Option<Row> {
        None
    }

    #[inline]
    fn project_not_null(moves: &Vec<usize>, from: &[&Row]) -> Option<Row> {
        Row::project_not_null(from, moves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_rows_are_sorted_as_few_are() {
        let row = |number: i64| {
            let text = |places| format!("{:0places$}", number * 7919 % 4001);
            let width = if number % 5 == 0 { 4 } else { 40 };
            Row::from_iter([Datum::Int4(7), Datum::Text(text(width).into())])
        };
        let mut updates: Vec<_> = (0..10_000).map(|number| (row(number), 0, Mult(1))).collect();
        let mut expected = updates.clone();
        sort_by_data(&mut expected);
        Row::sort(&mut updates);
        assert_eq!(updates, expected);
        // What is the same in all of them is not looked at.
        let mut long: Vec<_> = expected.split_off(5000);
        long.reverse();
        Row::sort(&mut long);
        assert!(long.is_sorted());
    }
}
