//! The operators, and what tells the forms of one apart: the type of its numbers, whether blanks count.

use crate::types::{Scalar, Type};
use serde::{Deserialize, Serialize};

/// The types of numbers arithmetic is done in: the wider one of the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Number {
    /// `smallint`
    Int2,
    /// `integer`
    Int4,
    /// `bigint`
    Int8,
    /// `real`
    Float4,
    /// `double precision`
    Float8,
    /// `numeric`
    Numeric,
}

/// `+ - * / %`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
}

/// `= <> < <= > >=`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Comparison {
    /// `=`
    Eq,
    /// `<>`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

/// Whether a comparison sees trailing blanks of text; for `char` it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Blanks {
    /// Every type but `char`.
    Significant,
    /// `char` and arrays of it.
    Ignored,
}

/// `LIKE` and its relatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Like {
    /// `~~`
    Like,
    /// `!~~`
    NotLike,
    /// `~~*`; folds the case of ASCII letters only, as the C collation does
    ILike,
    /// `!~~*`
    NotILike,
}

/// An operator that can be quantified with ANY and ALL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Predicate {
    Compare(Comparison, Blanks),
    Like(Like),
}

/// ANY or ALL of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Quantifier {
    /// True if the predicate is true of one element.
    Any,
    /// True if the predicate is true of every element.
    All,
}

/// The bitwise operators of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Bitwise {
    /// `&`
    And,
    /// `|`
    Or,
    /// `#`
    Xor,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
}

/// How two arrays are compared as sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SetRelation {
    /// `@>`
    Contains,
    /// `<@`
    ContainedBy,
    /// `&&`
    Overlaps,
}

impl Blanks {
    /// What comparisons of that type do.
    pub fn of(ty: Type) -> Blanks {
        if ty.base() == Scalar::Char {
            Blanks::Ignored
        } else {
            Blanks::Significant
        }
    }

    pub(crate) fn ignored(self) -> bool {
        self == Blanks::Ignored
    }
}

impl Comparison {
    /// The comparison with its sides exchanged.
    pub fn mirrored(self) -> Comparison {
        match self {
            Comparison::Eq | Comparison::Ne => self,
            Comparison::Lt => Comparison::Gt,
            Comparison::Le => Comparison::Ge,
            Comparison::Gt => Comparison::Lt,
            Comparison::Ge => Comparison::Le,
        }
    }

    /// Whether an order satisfies the comparison.
    pub fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Comparison::Eq => order.is_eq(),
            Comparison::Ne => order.is_ne(),
            Comparison::Lt => order.is_lt(),
            Comparison::Le => order.is_le(),
            Comparison::Gt => order.is_gt(),
            Comparison::Ge => order.is_ge(),
        }
    }
}

impl Number {
    /// The number type of a scalar type.
    pub fn of(scalar: Scalar) -> Option<Number> {
        match scalar {
            Scalar::Int2 => Some(Number::Int2),
            Scalar::Int4 => Some(Number::Int4),
            Scalar::Int8 => Some(Number::Int8),
            Scalar::Float4 => Some(Number::Float4),
            Scalar::Float8 => Some(Number::Float8),
            Scalar::Numeric => Some(Number::Numeric),
            _ => None,
        }
    }

    pub fn scalar(self) -> Scalar {
        match self {
            Number::Int2 => Scalar::Int2,
            Number::Int4 => Scalar::Int4,
            Number::Int8 => Scalar::Int8,
            Number::Float4 => Scalar::Float4,
            Number::Float8 => Scalar::Float8,
            Number::Numeric => Scalar::Numeric,
        }
    }

    /// `smallint`, `integer` or `bigint`.
    pub fn is_integer(self) -> bool {
        matches!(self, Number::Int2 | Number::Int4 | Number::Int8)
    }
}
