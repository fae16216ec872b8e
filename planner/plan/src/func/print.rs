//! Functions as EXPLAIN spells them: with PostgreSQL's names.

use super::{
    Arithmetic, Bitwise, CellWork, Comparison, Func, Like, Predicate, Quantifier, SetRelation,
    ZonedWork,
};
use std::fmt;

impl Comparison {
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Comparison::Eq => "=",
            Comparison::Ne => "<>",
            Comparison::Lt => "<",
            Comparison::Le => "<=",
            Comparison::Gt => ">",
            Comparison::Ge => ">=",
        }
    }
}

impl Arithmetic {
    fn symbol(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Subtract => "-",
            Arithmetic::Multiply => "*",
            Arithmetic::Divide => "/",
            Arithmetic::Modulo => "%",
        }
    }
}

impl Like {
    fn symbol(self) -> &'static str {
        match self {
            Like::Like => "~~",
            Like::NotLike => "!~~",
            Like::ILike => "~~*",
            Like::NotILike => "!~~*",
        }
    }
}

impl Bitwise {
    fn symbol(self) -> &'static str {
        match self {
            Bitwise::And => "&",
            Bitwise::Or => "|",
            Bitwise::Xor => "#",
            Bitwise::ShiftLeft => "<<",
            Bitwise::ShiftRight => ">>",
        }
    }
}

impl SetRelation {
    fn symbol(self) -> &'static str {
        match self {
            SetRelation::Contains => "@>",
            SetRelation::ContainedBy => "<@",
            SetRelation::Overlaps => "&&",
        }
    }
}

impl Predicate {
    /// The operator as SQL writes it.
    pub fn symbol(self) -> &'static str {
        match self {
            Predicate::Compare(comparison, _) => comparison.symbol(),
            Predicate::Like(like) => like.symbol(),
        }
    }
}

impl Quantifier {
    /// The word as SQL writes it.
    pub fn name(self) -> &'static str {
        match self {
            Quantifier::Any => "ANY",
            Quantifier::All => "ALL",
        }
    }
}

impl ZonedWork {
    /// PostgreSQL's function whose last argument is the zone, if that is how it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ZonedWork::Local | ZonedWork::Moment => "timezone",
            ZonedWork::Date => "date",
            ZonedWork::Midnight => "timestamptz",
            ZonedWork::Extract => "extract",
            ZonedWork::Part => "date_part",
            ZonedWork::Truncate => "date_trunc",
            ZonedWork::Plus(_) => "date_add",
            ZonedWork::Compare { comparison, .. } => comparison.symbol(),
        }
    }
}

impl Func {
    /// The symbol, if the function is written between its two operands.
    pub fn infix(self) -> Option<&'static str> {
        match self {
            Func::Named(named) => named.infix(),
            Func::Compare(comparison, _) => Some(comparison.symbol()),
            Func::DistinctFrom(_) => Some("IS DISTINCT FROM"),
            Func::NotDistinctFrom(_) => Some("IS NOT DISTINCT FROM"),
            Func::Like(like) => Some(like.symbol()),
            Func::Arithmetic(operator, _) => Some(operator.symbol()),
            Func::Bitwise(operator, _) => Some(operator.symbol()),
            Func::DatePlus | Func::PlusInterval(_) => Some("+"),
            Func::DateMinus | Func::DateDifference => Some("-"),
            Func::ArrayCat | Func::ArrayAppend | Func::ArrayPrepend => Some("||"),
            Func::ArraySet(relation, _) => Some(relation.symbol()),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Func::Named(named) => named.name(),
            Func::Zoned(zoned) => zoned.work.name(),
            Func::KeyForm(_) => "key_form",
            Func::NullIf(_) => "NULLIF",
            Func::Greatest(_) => "GREATEST",
            Func::Least(_) => "LEAST",
            Func::IsTrue => "is_true",
            Func::IsFalse => "is_false",
            Func::Quantified(quantifier, _) => quantifier.name(),
            Func::Negate(_) => "-",
            Func::Abs(_) => "abs",
            Func::Identity => "+",
            Func::Image => "image",
            Func::Cells(CellWork::Rank) => "rank",
            Func::Cells(CellWork::Size) => "cell_size",
            Func::Cells(CellWork::At) => "cell",
            Func::OrderKey(_) => "order_key",
            Func::Entry { .. } => "entry",
            Func::OnlyRow => "only_row",
            Func::RowCount { is_offset: false } => "limit",
            Func::RowCount { is_offset: true } => "offset",
            // `(a, b)`
            Func::Pair => "",
            Func::BitwiseNot(_) => "~",
            Func::Subscript => "subscript",
            Func::ArrayPosition(_) => "array_position",
            Func::ArrayRemove(_) => "array_remove",
            Func::Cast(..) | Func::CastElements(..) => "cast",
            Func::Typmod { .. } => "typmod",
            Func::Compare(..)
            | Func::DistinctFrom(_)
            | Func::NotDistinctFrom(_)
            | Func::Like(_)
            | Func::Arithmetic(..)
            | Func::Bitwise(..)
            | Func::DatePlus
            | Func::PlusInterval(_)
            | Func::DateMinus
            | Func::DateDifference
            | Func::ArrayCat
            | Func::ArrayAppend
            | Func::ArrayPrepend
            | Func::ArraySet(..) => self.infix().expect("it stands between its operands"),
        }
    }
}

impl fmt::Display for Func {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
