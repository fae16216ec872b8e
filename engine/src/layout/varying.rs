//! Rows that describe themselves: for columns of any type.

use super::tuple::{ColumnType, Layout, Tuple};
use crate::core::collection::Collection;
use plan::error::DataError;
use plan::row::Row;
use plan::value::Datum;

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
