//! What a layout is: how rows, keys and values are represented, read and made.

use crate::core::collection::Collection;
use crate::core::column::Column;
use crate::core::diff::Mult;
use crate::core::updates::Time;
use differential_dataflow::hashable::Hashable;
use differential_dataflow::ExchangeData;
use plan::error::DataError;
use plan::row::Row;
use plan::types::{Scalar, Type};
use plan::value::Datum;
use std::hash::Hash;

/// What is known of a column before any row is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnType {
    /// `None` if there is no value, only NULLs or no row at all.
    pub(crate) ty: Option<Type>,
    /// Whether it may hold NULL.
    pub(crate) nullable: bool,
}

impl ColumnType {
    /// Its type for those who ask for any.
    pub(crate) fn some_type(self) -> Type {
        self.ty.unwrap_or(Type::Scalar(Scalar::Text))
    }
}

/// A way to represent the rows of a dataflow, and the keys and values of its arrangements.
pub(crate) trait Layout: Clone + 'static {
    /// A row on its way.
    type Row: Tuple<Self>;
    /// What an arrangement is ordered by.
    type Key: Tuple<Self>;
    /// What an arrangement has for a key.
    type Val: Tuple<Self>;
    /// Any of them, to be read.
    type View<'a>: Copy;
    /// Where a tuple's columns are.
    type Shape: Clone + PartialEq + Send + Sync + 'static;
    /// How columns get from some tuples into another one.
    type Moves: Send + Sync + 'static;

    /// Whether a row is a self-describing one as it comes.
    const KEEPS_ROWS: bool;

    /// Whether columns of integers can be had without decoding.
    const HAS_INTEGERS: bool;

    /// The shape of tuples with these columns.
    fn shape(columns: &[ColumnType]) -> Self::Shape;

    /// Moves the given columns of `from`, counted through all of them, into a tuple of shape `to`.
    fn moves(from: &[&Self::Shape], columns: &[usize], to: &Self::Shape) -> Self::Moves {
        let columns: Vec<(usize, usize)> = columns.iter().copied().enumerate().collect();
        Self::moves_to(from, &columns, to)
    }

    /// The same, for only some columns of `to`: pairs of a column of `to` and one of `from`.
    fn moves_to(from: &[&Self::Shape], columns: &[(usize, usize)], to: &Self::Shape)
        -> Self::Moves;

    /// An integer, date, time or boolean (0 or 1) column; `None` for NULL.
    fn integer(view: Self::View<'_>, shape: &Self::Shape, index: usize) -> Option<i64>;

    /// Decodes all columns, appending them to `out`.
    fn unpack_into(view: Self::View<'_>, shape: &Self::Shape, out: &mut Vec<Datum>);

    /// Decodes one column.
    fn column(view: Self::View<'_>, shape: &Self::Shape, index: usize) -> Datum;

    /// A row of the columns of `key`, moved by `moves`, and of `values` after them.
    fn followed_by<'a>(
        key: &Self::Key,
        moves: &Self::Moves,
        values: impl ExactSizeIterator<Item = &'a Datum>,
        shape: &Self::Shape,
    ) -> Result<Self::Row, DataError>;

    /// The rows of a collection as self-describing ones.
    fn pack_collection<'s, const LOOPS: usize>(
        rows: Collection<'s, Self::Row, LOOPS>,
        shape: &Self::Shape,
    ) -> Collection<'s, Row, LOOPS>;
}

/// Sorts updates of one time, whatever their data are.
pub(crate) fn sort_by_data<D: Ord>(updates: &mut [(D, Time, Mult)]) {
    updates.sort_unstable_by(|(a, ..), (b, ..)| a.cmp(b));
}

/// A few columns. Which is which is known from a shape.
pub(crate) trait Tuple<L: Layout>:
    ExchangeData + Column + Hashable<Output = u64> + Hash + Default + Sync
{
    fn view(&self) -> L::View<'_>;

    /// Sorts updates of one time by their data.
    fn sort(updates: &mut [(Self, Time, Mult)]) {
        sort_by_data(updates);
    }

    /// Encodes values; an error if they are not what the shape is for.
    fn pack(shape: &L::Shape, values: &[&Datum]) -> Result<Self, DataError>;

    /// A self-describing row's columns; an error if they are not what the shape is for.
    fn from_row(row: Row, shape: &L::Shape) -> Result<Self, DataError>;

    /// The tuple as a self-describing row.
    fn to_row(self, shape: &L::Shape) -> Row;

    /// The columns that `moves` picks.
    fn project(moves: &L::Moves, from: &[L::View<'_>]) -> Self;

    /// The columns that `moves` picks, beside integers at other positions; `None` if these are not
    /// what the shape is for.
    fn with_integers(
        moves: &L::Moves,
        from: &[L::View<'_>],
        integers: &[(usize, Option<i64>)],
        shape: &L::Shape,
    ) -> Option<Self>;

    /// The columns that `moves` picks, or `None` if one of them is NULL.
    fn project_not_null(moves: &L::Moves, from: &[L::View<'_>]) -> Option<Self>;
}
