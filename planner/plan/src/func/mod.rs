//! The native functions and operators, each bit-exact with PostgreSQL's, errors included.
//!
//! Those with a name and operands of fixed types are rows of a table (`named`): to add one is to add a row and its
//! kernel. The others, whose types depend on one another or that no SQL names, are variants of [`Func`]. `lookup`
//! finds both by the name in `pg_catalog` and the types of the arguments; the kernels are in `number`, `string`,
//! `calendar`, `array` and `coerce`, set-returning functions in `table`. Only immutable functions are here: those that depend on
//! a time zone (`zoned`) have it in them.

mod array;
mod calendar;
mod call;
mod cells;
pub(crate) mod coerce;
mod lookup;
mod named;
mod number;
mod operators;
mod print;
mod string;
mod table;
pub mod zoned;

pub use cells::{has_ranks, CellWork};
pub use lookup::{cast, function, operator, quantified, Resolved};
pub use named::Named;
pub use operators::{
    Arithmetic, Bitwise, Blanks, Comparison, Like, Number, Predicate, Quantifier, SetRelation,
};
pub use table::{is_table_function, table_function, TableFunc, Values};
pub use zoned::{Zoned, ZonedWork};

use crate::interval::Interval;
use crate::partition::SortKey;
use crate::types::{Scalar, Type};
use serde::{Deserialize, Serialize};

/// A function or operator with a native kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Func {
    /// Normal form whose bytes are equal iff the values are equal in SQL (numeric scale, -0.0, NaN,
    /// trailing blanks of `char`); NULL stays NULL. The argument's type decides the work.
    KeyForm(Type),
    /// The representation of a value, that of NULL included: equal bytes for identical values only; never NULL
    Image,
    /// Where a value is in an order, as bytes that compare as the values do; never NULL
    OrderKey(SortKey),
    /// What a row contributes to an aggregate of values in an order ([`Collect`](crate::aggregate::Collect)): so many
    /// order keys, then the arguments; never NULL
    Entry { keys: usize },
    /// `(value, count)`: the value of a subquery of `count` rows; 21000 if there are several
    OnlyRow,
    /// How many rows LIMIT, or OFFSET, asks for; 2201W or 2201X if the number is negative
    RowCount { is_offset: bool },
    /// `(a, b)` as an array: the argument of an aggregate of pairs
    Pair,
    /// A comparison of values of the same or of comparable types.
    Compare(Comparison, Blanks),
    /// `IS DISTINCT FROM`; never NULL
    DistinctFrom(Blanks),
    /// `IS NOT DISTINCT FROM`; never NULL
    NotDistinctFrom(Blanks),
    /// `NULLIF(a, b)`
    NullIf(Blanks),
    /// `GREATEST(…)`, any number of arguments, NULLs ignored
    Greatest(Blanks),
    /// `LEAST(…)`, any number of arguments, NULLs ignored
    Least(Blanks),
    /// `IS TRUE`; never NULL
    IsTrue,
    /// `IS FALSE`; never NULL
    IsFalse,
    /// `x op ANY|ALL (array)`
    Quantified(Quantifier, Predicate),
    /// `LIKE` and its relatives
    Like(Like),
    /// Binary arithmetic in the wider of the operands' types.
    Arithmetic(Arithmetic, Number),
    /// `-x`
    Negate(Number),
    /// `abs(x)`, `@ x`
    Abs(Number),
    /// `+x`: the argument
    Identity,
    /// A binary bitwise operator.
    Bitwise(Bitwise, Number),
    /// `~x`
    BitwiseNot(Number),
    /// `date + integer` and `integer + date`
    DatePlus,
    /// `date - integer`
    DateMinus,
    /// `date - date`
    DateDifference,
    /// `array || array`, `array_cat`; a NULL array is neutral
    ArrayCat,
    /// `array || element`, `array_append`
    ArrayAppend,
    /// `element || array`, `array_prepend`
    ArrayPrepend,
    /// `array[i]`
    Subscript,
    /// `array_position(array, element)`
    ArrayPosition(Blanks),
    /// `array_remove(array, element)`
    ArrayRemove(Blanks),
    /// `@>`, `<@`, `&&`
    ArraySet(SetRelation, Blanks),
    /// A cast between types, without type modifier.
    Cast(Scalar, Scalar),
    /// The same cast of every element of an array.
    CastElements(Scalar, Scalar),
    /// Coercion to a type modifier: `numeric(p,s)`, `varchar(n)`, `char(n)`, `timestamp(p)`; an
    /// explicit cast cuts strings where an assignment fails. Of arrays, every element.
    Typmod { ty: Type, typmod: i32, explicit: bool },
    /// `timestamp + interval`
    PlusInterval(Interval),
    /// What joins that are not by equality meet in; no SQL names it.
    Cells(CellWork),
    /// A function that depends on a time zone.
    Zoned(Zoned),
    /// A function that is known by its name.
    Named(Named),
}

impl Func {
    /// Whether a NULL argument makes the result NULL without a call.
    pub fn is_strict(self) -> bool {
        match self {
            Func::KeyForm(_)
            | Func::Image
            | Func::OrderKey(_)
            | Func::Entry { .. }
            | Func::OnlyRow
            | Func::DistinctFrom(_)
            | Func::NotDistinctFrom(_)
            | Func::NullIf(_)
            | Func::Greatest(_)
            | Func::Least(_)
            | Func::IsTrue
            | Func::IsFalse
            | Func::Quantified(..)
            | Func::ArrayCat
            | Func::ArrayAppend
            | Func::ArrayPrepend
            | Func::ArrayPosition(_)
            | Func::ArrayRemove(_) => false,
            Func::Named(_)
            | Func::Zoned(_)
            | Func::Cells(_)
            | Func::PlusInterval(_)
            | Func::RowCount { .. }
            | Func::Pair
            | Func::Compare(..)
            | Func::Like(_)
            | Func::Arithmetic(..)
            | Func::Negate(_)
            | Func::Abs(_)
            | Func::Identity
            | Func::Bitwise(..)
            | Func::BitwiseNot(_)
            | Func::DatePlus
            | Func::DateMinus
            | Func::DateDifference
            | Func::Subscript
            | Func::ArraySet(..)
            | Func::Cast(..)
            | Func::CastElements(..)
            | Func::Typmod { .. } => true,
        }
    }

    /// Whether some arguments may raise an error. True when in doubt.
    pub fn may_fail(self) -> bool {
        match self {
            Func::Named(named) => named.may_fail(),
            Func::Zoned(zoned) => zoned.work.may_fail(),
            Func::Arithmetic(operation, Number::Numeric) => {
                matches!(operation, Arithmetic::Divide | Arithmetic::Modulo)
            }
            Func::Cast(from, to) | Func::CastElements(from, to) => coerce::cast_may_fail(from, to),
            Func::KeyForm(_)
            | Func::Image
            | Func::Cells(_)
            | Func::Pair
            | Func::Compare(..)
            | Func::DistinctFrom(_)
            | Func::NotDistinctFrom(_)
            | Func::NullIf(_)
            | Func::Greatest(_)
            | Func::Least(_)
            | Func::IsTrue
            | Func::IsFalse
            | Func::Identity
            | Func::Subscript => false,
            Func::OrderKey(_)
            | Func::Entry { .. }
            | Func::OnlyRow
            | Func::RowCount { .. }
            | Func::Quantified(..)
            | Func::Like(_)
            | Func::Arithmetic(..)
            | Func::Negate(_)
            | Func::Abs(_)
            | Func::Bitwise(..)
            | Func::BitwiseNot(_)
            | Func::DatePlus
            | Func::DateMinus
            | Func::DateDifference
            | Func::ArrayCat
            | Func::ArrayAppend
            | Func::ArrayPrepend
            | Func::ArrayPosition(_)
            | Func::ArrayRemove(_)
            | Func::ArraySet(..)
            | Func::PlusInterval(_)
            | Func::Typmod { .. } => true,
        }
    }

    /// Type of the result for arguments of these types.
    pub fn result_type(self, args: &[Type]) -> Type {
        let first = || args.first().copied().unwrap_or(Scalar::Text.into());
        match self {
            Func::Named(named) => named.result_type(),
            Func::Zoned(zoned) => zoned.work.result_type(),
            Func::PlusInterval(_) => Scalar::Timestamp.into(),
            Func::Cells(CellWork::Size) => Scalar::Int4.into(),
            Func::Cells(CellWork::Rank | CellWork::At) => Scalar::Int8.into(),
            Func::KeyForm(ty) | Func::Typmod { ty, .. } => ty,
            Func::Compare(..)
            | Func::DistinctFrom(_)
            | Func::NotDistinctFrom(_)
            | Func::IsTrue
            | Func::IsFalse
            | Func::Quantified(..)
            | Func::Like(_)
            | Func::ArraySet(..) => Scalar::Bool.into(),
            Func::Image | Func::OrderKey(_) | Func::Entry { .. } => Scalar::Bytea.into(),
            Func::Pair => Type::Array(first().base()),
            Func::NullIf(_)
            | Func::Greatest(_)
            | Func::Least(_)
            | Func::Identity
            | Func::OnlyRow
            | Func::RowCount { .. }
            | Func::ArrayCat
            | Func::ArrayAppend
            | Func::ArrayRemove(_) => first(),
            Func::Arithmetic(_, number)
            | Func::Negate(number)
            | Func::Abs(number)
            | Func::Bitwise(_, number)
            | Func::BitwiseNot(number) => number.scalar().into(),
            Func::DatePlus | Func::DateMinus => Scalar::Date.into(),
            Func::DateDifference | Func::ArrayPosition(_) => Scalar::Int4.into(),
            Func::ArrayPrepend => args.get(1).copied().unwrap_or_else(first),
            Func::Subscript => first().base().into(),
            Func::Cast(_, to) => to.into(),
            Func::CastElements(_, to) => Type::Array(to),
        }
    }
}
