//! Scalar work on rows: the only place where the engine decodes and encodes them.
//!
//! Work is prepared once, for operands of given shapes; columns that are only moved are not decoded.

use super::kernel::{IntegerMfp, Mapped};
use super::tuple::{ColumnType, Layout, Tuple};
use plan::error::DataError;
use plan::expr::Expr;
use plan::value::Datum;
use plan::Mfp;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::marker::PhantomData;

thread_local! {
    /// Columns of the row at hand; reused to spare an allocation per row.
    static COLUMNS: RefCell<Vec<Datum>> = const { RefCell::new(Vec::new()) };
}

/// Calls `action` with the columns of `tuples`, one after the other.
fn with_columns<L: Layout, R>(
    shapes: &[L::Shape],
    tuples: &[L::View<'_>],
    action: impl FnOnce(&[Datum]) -> R,
) -> R {
    let mut columns = COLUMNS.with(RefCell::take);
    columns.clear();
    for (shape, tuple) in shapes.iter().zip(tuples) {
        L::unpack_into(*tuple, shape, &mut columns);
    }
    let result = action(&columns);
    COLUMNS.with(|cell| cell.replace(columns));
    result
}

/// What an [`Mfp`] does to the columns of some tuples.
pub(crate) enum RowWork<L: Layout, T> {
    /// It moves them: no row is dropped and nothing can fail.
    Move(L::Moves),
    /// Anything.
    Map(Mapper<L, T>),
}

impl<L: Layout, T: Tuple<L>> RowWork<L, T> {
    /// `mfp` reads `columns`, counted through all tuples; `to_columns` are those it puts out.
    pub(crate) fn new(mfp: Mfp, columns: &[&[ColumnType]], to_columns: &[ColumnType]) -> Self {
        let from: Vec<L::Shape> = columns.iter().map(|columns| L::shape(columns)).collect();
        let to = L::shape(to_columns);
        if mfp.only_projects() {
            let from: Vec<&L::Shape> = from.iter().collect();
            return RowWork::Move(L::moves(&from, &mfp.project, &to));
        }
        let kernel = IntegerMfp::new(&mfp, columns, to_columns);
        RowWork::Map(Mapper { from, to, kernel, mfp, output: PhantomData })
    }
}

/// An [`Mfp`] over the columns of some tuples.
pub(crate) struct Mapper<L: Layout, T> {
    from: Vec<L::Shape>,
    to: L::Shape,
    kernel: Option<IntegerMfp<L>>,
    mfp: Mfp,
    output: PhantomData<fn() -> T>,
}

impl<L: Layout, T: Tuple<L>> Mapper<L, T> {
    /// Whether the host evaluates a part of it.
    pub(crate) fn calls_host(&self) -> bool {
        self.mfp.calls_host()
    }

    /// The output for some tuples; `None` when they are filtered out.
    #[inline]
    pub(crate) fn apply(&self, tuples: &[L::View<'_>]) -> Option<Result<T, DataError>> {
        let kernel = self.kernel.as_ref();
        match kernel.map_or(Mapped::Unknown, |kernel| kernel.apply(&self.from, tuples)) {
            Mapped::Row(row) => Some(Ok(row)),
            Mapped::FilteredOut => None,
            Mapped::Unknown => with_columns::<L, _>(&self.from, tuples, |columns| {
                self.mfp.eval_with(columns, |values| T::pack(&self.to, values))
            })
            .transpose()
            .map(Result::flatten),
        }
    }
}

/// Expressions over a tuple, to be evaluated as another one.
pub(crate) struct Exprs<L: Layout, T> {
    from: [L::Shape; 1],
    to: L::Shape,
    values: Values<L>,
    output: PhantomData<fn() -> T>,
}

enum Values<L: Layout> {
    Columns(L::Moves),
    Any {
        exprs: Vec<Expr>,
        /// The same, and the same without rows that have a NULL among them.
        kernels: Option<[IntegerMfp<L>; 2]>,
    },
}

impl<L: Layout, T: Tuple<L>> Exprs<L, T> {
    /// `to` are the columns that `exprs` make of a tuple with the columns `from`.
    pub(crate) fn new(exprs: &[Expr], from: &[ColumnType], to: &[ColumnType]) -> Self {
        let (from_shape, to_shape) = (L::shape(from), L::shape(to));
        let values = match exprs.iter().map(Expr::as_column).collect::<Option<Vec<usize>>>() {
            Some(columns) => Values::Columns(L::moves(&[&from_shape], &columns, &to_shape)),
            None => Values::Any { exprs: exprs.to_vec(), kernels: kernels(exprs, from, to) },
        };
        Exprs { from: [from_shape], to: to_shape, values, output: PhantomData }
    }

    /// The moves, if columns are taken as they are: then nothing can fail.
    pub(crate) fn moves(&self) -> Option<&L::Moves> {
        match &self.values {
            Values::Columns(moves) => Some(moves),
            Values::Any { .. } => None,
        }
    }

    /// What the expressions make of a tuple.
    #[inline]
    pub(crate) fn eval(&self, tuple: L::View<'_>) -> Result<T, DataError> {
        let (exprs, kernels) = match &self.values {
            Values::Columns(moves) => return Ok(T::project(moves, &[tuple])),
            Values::Any { exprs, kernels } => (exprs, kernels),
        };
        if let Some([kernel, _]) = kernels {
            if let Mapped::Row(values) = kernel.apply(&self.from, &[tuple]) {
                return Ok(values);
            }
        }
        with_columns::<L, _>(&self.from, &[tuple], |columns| {
            let values = exprs.iter().map(|expr| expr.eval(columns));
            self.pack(&values.collect::<Result<SmallVec<[Datum; 4]>, _>>()?)
        })
    }

    /// The values, or `None` if one of them is NULL.
    pub(crate) fn eval_not_null(&self, tuple: L::View<'_>) -> Option<Result<T, DataError>> {
        let (exprs, kernels) = match &self.values {
            Values::Columns(moves) => return T::project_not_null(moves, &[tuple]).map(Ok),
            Values::Any { exprs, kernels } => (exprs, kernels),
        };
        if let Some([_, kernel]) = kernels {
            match kernel.apply(&self.from, &[tuple]) {
                Mapped::Row(values) => return Some(Ok(values)),
                Mapped::FilteredOut => return None,
                Mapped::Unknown => {}
            }
        }
        with_columns::<L, _>(&self.from, &[tuple], |columns| {
            let mut values: SmallVec<[Datum; 4]> = SmallVec::new();
            for expr in exprs {
                match expr.eval(columns) {
                    Ok(Datum::Null) => return None,
                    Ok(value) => values.push(value),
                    Err(error) => return Some(Err(error)),
                }
            }
            Some(self.pack(&values))
        })
    }

    fn pack(&self, values: &[Datum]) -> Result<T, DataError> {
        T::pack(&self.to, &values.iter().collect::<SmallVec<[&Datum; 4]>>())
    }
}

/// Kernels for expressions: as they are, and for tuples of which none is NULL.
fn kernels<L: Layout>(
    exprs: &[Expr],
    from: &[ColumnType],
    to: &[ColumnType],
) -> Option<[IntegerMfp<L>; 2]> {
    let not_null = |expr: &Expr| Expr::Not(Box::new(Expr::IsNull(Box::new(expr.clone()))));
    let input_arity = from.len();
    let project = (input_arity..input_arity + exprs.len()).collect();
    let mut mfp = Mfp { input_arity, filter: vec![], maps: exprs.to_vec(), project };
    let any = IntegerMfp::new(&mfp, &[from], to)?;
    mfp.filter = exprs.iter().map(not_null).collect();
    Some([any, IntegerMfp::new(&mfp, &[from], to)?])
}

/// The value of an expression over a tuple.
pub(crate) fn eval<L: Layout>(
    expr: &Expr,
    tuple: L::View<'_>,
    shape: &L::Shape,
) -> Result<Datum, DataError> {
    match expr {
        Expr::Column(index) => Ok(L::column(tuple, shape, *index)),
        expr => with_columns::<L, _>(std::slice::from_ref(shape), &[tuple], |columns| {
            expr.eval(columns)
        }),
    }
}
