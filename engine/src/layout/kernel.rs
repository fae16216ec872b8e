//! Scalar work on integers, without values: for rows of fixed width.
//!
//! A kernel knows the usual case only. Where it does not know better, because of an overflow say, it
//! gives up, and the general evaluator computes the row, errors included: so kernels add no semantics.

use super::tuple::{ColumnType, Layout, Tuple};
use plan::expr::Expr;
use plan::func::{Arithmetic, Comparison, Func, Number};
use plan::types::{Scalar, Type};
use plan::value::Datum;
use plan::Mfp;
use smallvec::SmallVec;

/// An integer, a date, a time or a boolean (0 and 1); `None` for NULL.
type Value = Option<i64>;

/// An expression over integers.
enum Kernel {
    Column(usize),
    Constant(Value),
    Arithmetic(Arithmetic, Range, Box<[Kernel; 2]>),
    Compare(Comparison, Box<[Kernel; 2]>),
    And(Vec<Kernel>),
    Or(Vec<Kernel>),
    Not(Box<Kernel>),
    IsNull(Box<Kernel>),
}

/// The values of an integer type.
#[derive(Clone, Copy)]
struct Range {
    min: i64,
    max: i64,
}

impl Range {
    fn of(number: Number) -> Option<Range> {
        match number {
            Number::Int2 => Some(Range { min: i16::MIN.into(), max: i16::MAX.into() }),
            Number::Int4 => Some(Range { min: i32::MIN.into(), max: i32::MAX.into() }),
            Number::Int8 => Some(Range { min: i64::MIN, max: i64::MAX }),
            Number::Float4 | Number::Float8 | Number::Numeric => None,
        }
    }
}

/// The types that have kernels.
fn is_integral(ty: Type) -> bool {
    use Scalar::{Bool, Date, Int2, Int4, Int8, Timestamp, Timestamptz};
    matches!(ty, Type::Scalar(Bool | Int2 | Int4 | Int8 | Date | Timestamp | Timestamptz))
}

fn constant(value: &Datum) -> Option<Value> {
    match value {
        Datum::Null => Some(None),
        Datum::Bool(value) => Some(Some(i64::from(*value))),
        Datum::Date(days) => Some(Some(i64::from(*days))),
        Datum::Timestamp(microseconds) => Some(Some(*microseconds)),
        value => value.as_i64().map(Some),
    }
}

impl Kernel {
    /// The kernel for an expression over columns of these types, if there is one.
    fn of(expr: &Expr, types: &[Type]) -> Option<Kernel> {
        let all = |args: &[Expr]| -> Option<Vec<Kernel>> {
            args.iter().map(|arg| Kernel::of(arg, types)).collect()
        };
        Some(match expr {
            Expr::Column(index) if is_integral(types[*index]) => Kernel::Column(*index),
            Expr::Literal(value, ty) if is_integral(*ty) => Kernel::Constant(constant(value)?),
            Expr::Call { func: Func::Arithmetic(op, number), args } => {
                let known = [Arithmetic::Add, Arithmetic::Subtract, Arithmetic::Multiply];
                let range = Range::of(*number).filter(|_| known.contains(op))?;
                Kernel::Arithmetic(*op, range, Kernel::pair(args, types)?)
            }
            Expr::Call { func: Func::Compare(op, _), args } => {
                Kernel::Compare(*op, Kernel::comparable(args, types)?)
            }
            Expr::And(args) => Kernel::And(all(args)?),
            Expr::Or(args) => Kernel::Or(all(args)?),
            Expr::Not(arg) => Kernel::Not(Box::new(Kernel::of(arg, types)?)),
            Expr::IsNull(arg) => Kernel::IsNull(Box::new(Kernel::of(arg, types)?)),
            _ => return None,
        })
    }

    fn pair(args: &[Expr], types: &[Type]) -> Option<Box<[Kernel; 2]>> {
        let [left, right] = args else { return None };
        Some(Box::new([Kernel::of(left, types)?, Kernel::of(right, types)?]))
    }

    /// Values of one type, or integers of any width, compare as numbers.
    fn comparable(args: &[Expr], types: &[Type]) -> Option<Box<[Kernel; 2]>> {
        let is_integer = |ty: Type| ty.scalar().is_some_and(Scalar::is_integer);
        let [left, right] = args else { return None };
        let (left, right) = (left.ty(types), right.ty(types));
        let comparable = left == right || (is_integer(left) && is_integer(right));
        if comparable {
            Kernel::pair(args, types)
        } else {
            None
        }
    }

    /// The value; `None` where the kernel gives up.
    fn eval(&self, column: &impl Fn(usize) -> Value) -> Option<Value> {
        Some(match self {
            Kernel::Column(index) => column(*index),
            Kernel::Constant(value) => *value,
            Kernel::Arithmetic(op, range, args) => {
                let (left, right) = (args[0].eval(column)?, args[1].eval(column)?);
                let (Some(left), Some(right)) = (left, right) else { return Some(None) };
                let value = match op {
                    Arithmetic::Add => left.checked_add(right),
                    Arithmetic::Subtract => left.checked_sub(right),
                    _ => left.checked_mul(right),
                }?;
                if value < range.min || value > range.max {
                    return None;
                }
                Some(value)
            }
            Kernel::Compare(op, args) => {
                let (left, right) = (args[0].eval(column)?, args[1].eval(column)?);
                let (Some(left), Some(right)) = (left, right) else { return Some(None) };
                Some(i64::from(op.holds(left.cmp(&right))))
            }
            Kernel::And(args) => connective(args, column, 0)?,
            Kernel::Or(args) => connective(args, column, 1)?,
            Kernel::Not(arg) => arg.eval(column)?.map(|value| 1 - value),
            Kernel::IsNull(arg) => Some(i64::from(arg.eval(column)?.is_none())),
        })
    }
}

/// AND (decided by 0) and OR (decided by 1), three-valued.
fn connective(args: &[Kernel], column: &impl Fn(usize) -> Value, decisive: i64) -> Option<Value> {
    let mut result = Some(1 - decisive);
    for arg in args {
        match arg.eval(column)? {
            Some(value) if value == decisive => return Some(Some(decisive)),
            Some(_) => {}
            None => result = None,
        }
    }
    Some(result)
}

/// An [`Mfp`] whose conjuncts and maps are kernels.
pub(crate) struct IntegerMfp<L: Layout> {
    /// For each input column: which tuple it is in, and its number there.
    places: Vec<(usize, usize)>,
    filter: Vec<Kernel>,
    /// The output columns that are input columns.
    moves: L::Moves,
    /// The others, by position.
    maps: Vec<(usize, Kernel)>,
    to: L::Shape,
}

/// What becomes of a row.
pub(crate) enum Mapped<T> {
    Row(T),
    FilteredOut,
    /// Ask the general evaluator.
    Unknown,
}

impl<L: Layout> IntegerMfp<L> {
    /// `mfp` reads the columns of `from`, counted through all of them; `to` are those it puts out.
    pub(crate) fn new(mfp: &Mfp, from: &[&[ColumnType]], to: &[ColumnType]) -> Option<Self> {
        if !L::HAS_INTEGERS {
            return None;
        }
        if from.iter().map(|columns| columns.len()).sum::<usize>() != mfp.input_arity {
            // A constant without rows does not say what columns it has.
            return None;
        }
        let types: Vec<Type> =
            from.iter().copied().flatten().map(|column| column.some_type()).collect();
        let mut inlined: Vec<Expr> = (0..types.len()).map(Expr::Column).collect();
        for map in &mfp.maps {
            inlined.push(inline(map, &inlined));
        }
        let kernel = |expr: &Expr| Kernel::of(&inline(expr, &inlined), &types);
        let filter = mfp.filter.iter().map(kernel).collect::<Option<Vec<_>>>()?;
        let mut maps = Vec::new();
        let mut columns = Vec::new();
        for (position, index) in mfp.project.iter().enumerate() {
            match &inlined[*index] {
                Expr::Column(column) => columns.push((position, *column)),
                expr => maps.push((position, Kernel::of(expr, &types)?)),
            }
        }
        let shapes: Vec<L::Shape> = from.iter().map(|columns| L::shape(columns)).collect();
        let to = L::shape(to);
        let moves = L::moves_to(&shapes.iter().collect::<Vec<_>>(), &columns, &to);
        let places = from.iter().enumerate();
        let places =
            places.flat_map(|(tuple, columns)| (0..columns.len()).map(move |i| (tuple, i)));
        Some(IntegerMfp { places: places.collect(), filter, moves, maps, to })
    }

    /// The output for some tuples of shapes `from`.
    #[inline]
    pub(crate) fn apply<T: Tuple<L>>(
        &self,
        from: &[L::Shape],
        tuples: &[L::View<'_>],
    ) -> Mapped<T> {
        let column = |index: usize| {
            let (tuple, column) = self.places[index];
            L::integer(tuples[tuple], &from[tuple], column)
        };
        for conjunct in &self.filter {
            match conjunct.eval(&column) {
                Some(Some(1)) => {}
                Some(_) => return Mapped::FilteredOut,
                None => return Mapped::Unknown,
            }
        }
        let values = self
            .maps
            .iter()
            .map(|(position, kernel)| kernel.eval(&column).map(|value| (*position, value)));
        let values: Option<SmallVec<[(usize, Value); 4]>> = values.collect();
        let row =
            values.and_then(|values| T::with_integers(&self.moves, tuples, &values, &self.to));
        row.map_or(Mapped::Unknown, Mapped::Row)
    }
}

/// An expression with columns replaced by expressions.
fn inline(expr: &Expr, columns: &[Expr]) -> Expr {
    if let Expr::Column(index) = expr {
        return columns[*index].clone();
    }
    let mut expr = expr.clone();
    expr.children_mut().into_iter().for_each(|child| *child = inline(child, columns));
    expr
}
