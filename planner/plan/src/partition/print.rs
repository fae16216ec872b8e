//! Work on partitions as text.

use super::{Bound, Count, Exclusion, Frame, SortKey, TopK, Units, WindowCall, WindowFunc, Work};
use crate::text::format_datum;
use crate::types::{Scalar, Type};
use crate::value::Datum;
use std::fmt::Write;

/// A node that works on partitions, given the names of its keys and of its input's columns.
pub fn describe(key: &[String], order: &[SortKey], work: &Work, names: &[String]) -> String {
    let mut text = format!("Partition by ({})", key.join(", "));
    if !order.is_empty() {
        let order: Vec<String> = order.iter().map(|sort| sort.describe(names)).collect();
        // Writing to a string cannot fail.
        let _ = write!(text, " order by ({})", order.join(", "));
    }
    match work {
        Work::TopK(top) => text + &top.describe(names),
        Work::Window(_) => format!("{text} to ({})", call_names(work, names).join(", ")),
    }
}

/// What to call the columns that are added.
pub fn call_names(work: &Work, names: &[String]) -> Vec<String> {
    match work {
        Work::TopK(_) => vec![],
        Work::Window(calls) => calls.iter().map(|call| call.describe(names)).collect(),
    }
}

fn name(names: &[String], column: usize) -> String {
    names.get(column).cloned().unwrap_or_else(|| format!("#{column}"))
}

impl SortKey {
    fn describe(&self, names: &[String]) -> String {
        let ties = if self.among_peers { " among peers" } else { "" };
        format!("{}{}{ties}", name(names, self.column), self.direction())
    }

    /// What follows the column in an ORDER BY.
    pub fn direction(&self) -> &'static str {
        match (self.descending, self.nulls_first) {
            (false, false) => "",
            (false, true) => " NULLS FIRST",
            (true, true) => " DESC",
            (true, false) => " DESC NULLS LAST",
        }
    }
}

impl TopK {
    fn describe(&self, names: &[String]) -> String {
        let number = |count| match count {
            Count::Fixed(number) => number.to_string(),
            Count::Of(column) => format!("({})", name(names, column)),
        };
        let offset = match self.offset {
            Count::Fixed(0) => String::new(),
            offset => format!(" offset {}", number(offset)),
        };
        let limit = self.limit.map_or(String::new(), |limit| format!(" limit {}", number(limit)));
        let ties = if self.with_ties { " with ties" } else { "" };
        format!("{offset}{limit}{ties}")
    }
}

impl WindowCall {
    fn describe(&self, names: &[String]) -> String {
        let args: Vec<String> = self.args.iter().map(|&column| name(names, column)).collect();
        let func = self.func.name();
        let has_frame = matches!(
            self.func,
            WindowFunc::FirstValue
                | WindowFunc::LastValue
                | WindowFunc::NthValue
                | WindowFunc::ArrayAgg
                | WindowFunc::Aggregate(_)
        );
        let args = match self.func {
            WindowFunc::Aggregate(_) if args.is_empty() => "*".to_owned(),
            _ => args.join(", "),
        };
        let is_plain = !has_frame || self.frame == Frame::default();
        let frame =
            if is_plain { String::new() } else { format!(" {}", self.frame.describe(names)) };
        format!("{func}({args}){frame}")
    }
}

impl Frame {
    fn describe(&self, names: &[String]) -> String {
        let units = match self.units {
            Units::Rows => "rows",
            Units::Groups => "groups",
            Units::Range(_) => "range",
        };
        let exclusion = match self.exclusion {
            Exclusion::None => "",
            Exclusion::CurrentRow => " exclude current row",
            Exclusion::Group => " exclude group",
            Exclusion::Ties => " exclude ties",
        };
        use Scalar::{Date, Int8, Timestamp, Timestamptz};
        let (ty, of) = match self.units {
            Units::Range(Some(sort)) => match sort.ty {
                Type::Scalar(Date | Timestamp | Timestamptz) => (Int8.into(), " microseconds"),
                ty => (ty, ""),
            },
            _ => (Int8.into(), ""),
        };
        let describe = |bound: &Bound, side| bound.describe(ty, of, side, names);
        let (start, end) = (describe(&self.start, "preceding"), describe(&self.end, "following"));
        format!("{units} between {start} and {end}{exclusion}")
    }
}

impl Bound {
    fn describe(&self, ty: Type, of: &str, unbounded: &str, names: &[String]) -> String {
        let number = |offset: &Datum| format!("{}{of}", format_datum(offset, ty));
        match self {
            Bound::Unbounded => format!("unbounded {unbounded}"),
            Bound::Current => "current row".to_owned(),
            Bound::Preceding(offset) => format!("{} preceding", number(offset)),
            Bound::Following(offset) => format!("{} following", number(offset)),
            Bound::PrecedingOf(column) => format!("({}) preceding", name(names, *column)),
            Bound::FollowingOf(column) => format!("({}) following", name(names, *column)),
            Bound::At(column) => name(names, *column),
        }
    }
}
