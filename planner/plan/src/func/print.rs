//! Functions as EXPLAIN spells them: with PostgreSQL's names.

use super::{
    Arithmetic, Bitwise, Comparison, Func, Like, Predicate, Quantifier, SetRelation, Side,
};
use std::fmt;

impl Comparison {
    fn symbol(self) -> &'static str {
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

impl Func {
    /// The symbol, if the function is written between its two operands.
    pub fn infix(self) -> Option<&'static str> {
        match self {
            Func::Compare(comparison, _) => Some(comparison.symbol()),
            Func::DistinctFrom(_) => Some("IS DISTINCT FROM"),
            Func::NotDistinctFrom(_) => Some("IS NOT DISTINCT FROM"),
            Func::Like(like) => Some(like.symbol()),
            Func::Arithmetic(operator, _) => Some(operator.symbol()),
            Func::Bitwise(operator, _) => Some(operator.symbol()),
            Func::DatePlus => Some("+"),
            Func::DateMinus | Func::DateDifference => Some("-"),
            Func::Concat | Func::ArrayCat | Func::ArrayAppend | Func::ArrayPrepend => Some("||"),
            Func::ArraySet(relation, _) => Some(relation.symbol()),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Func::KeyForm(_) => "key_form",
            Func::NullIf(_) => "NULLIF",
            Func::Greatest(_) => "GREATEST",
            Func::Least(_) => "LEAST",
            Func::IsTrue => "is_true",
            Func::IsFalse => "is_false",
            Func::Quantified(quantifier, _) => quantifier.name(),
            Func::LikeEscape => "like_escape",
            Func::Negate(_) => "-",
            Func::Abs(_) => "abs",
            Func::Identity => "+",
            Func::Image => "image",
            Func::Extract => "extract",
            Func::DatePart => "date_part",
            Func::DateTrunc => "date_trunc",
            Func::OrderKey(_) => "order_key",
            Func::Entry { .. } => "entry",
            Func::OnlyRow => "only_row",
            // `(a, b)`
            Func::Pair => "",
            Func::Sign(_) => "sign",
            Func::Ceil(_) => "ceil",
            Func::Floor(_) => "floor",
            Func::Round(_) => "round",
            Func::Trunc(_) => "trunc",
            Func::Sqrt(_) => "sqrt",
            Func::Power => "power",
            Func::BitwiseNot(_) => "~",
            Func::Length | Func::LengthPadded => "length",
            Func::OctetLength => "octet_length",
            Func::Lower => "lower",
            Func::Upper => "upper",
            Func::Substring => "substring",
            Func::Left => "left",
            Func::Right => "right",
            Func::Trim(Side::Left) => "ltrim",
            Func::Trim(Side::Right) => "rtrim",
            Func::Trim(Side::Both) => "btrim",
            Func::Replace => "replace",
            Func::Position => "strpos",
            Func::Repeat => "repeat",
            Func::Reverse => "reverse",
            Func::PadLeft => "lpad",
            Func::PadRight => "rpad",
            Func::SplitPart => "split_part",
            Func::StartsWith => "starts_with",
            Func::Ascii => "ascii",
            Func::Chr => "chr",
            Func::ArrayLength => "array_length",
            Func::ArrayLower => "array_lower",
            Func::ArrayUpper => "array_upper",
            Func::ArrayNdims => "array_ndims",
            Func::Cardinality => "cardinality",
            Func::Subscript => "subscript",
            Func::ArrayPosition(_) => "array_position",
            Func::ArrayRemove(_) => "array_remove",
            Func::Cast(..) | Func::CastElements(..) => "cast",
            Func::Typmod { .. } => "typmod",
            operator => operator.infix().unwrap_or("?"),
        }
    }
}

impl fmt::Display for Func {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
