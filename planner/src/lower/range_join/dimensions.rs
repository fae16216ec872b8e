//! What a join's condition says of intervals: pairs of bounds that the sides set each other.

use super::host;
use crate::catalog::Extents;
use plan::expr::{self, Expr};
use plan::func::{has_ranks, Blanks, Comparison, Func};
use plan::types::{Scalar, Type};

/// A line on which rows of both sides have a place, and meet if these have something in common.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Dimension {
    pub(super) left: Extent,
    pub(super) right: Extent,
}

impl Dimension {
    /// Whether both sides are intervals.
    pub(super) fn overlaps(&self) -> bool {
        matches!((&self.left, &self.right), (Extent::Interval(..), Extent::Interval(..)))
    }
}

/// The place of a row, in expressions over its side's columns.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Extent {
    Point(Expr),
    /// From the first to the second, which may be without the ends themselves.
    Interval(Bound, Bound),
}

/// An end of an interval.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bound {
    pub(super) value: Expr,
    /// Whether NULL is no end, so that all values are on this side of it.
    pub(super) is_open: bool,
    /// By how many ranks what meets may be beyond it; only of what may be open.
    pub(super) slack: i64,
}

/// A condition that a value of one side is at or before one of the other, each over its own side's columns; or that one
/// of them, which is open, is NULL.
#[derive(Clone, Debug)]
struct Edge {
    low: Expr,
    high: Expr,
    is_low_open: bool,
    is_high_open: bool,
    ty: Type,
}

/// How many dimensions are made use of: a row of which there are points has copies for all combinations of sizes.
const MAX_DIMENSIONS: usize = 2;

/// The dimensions of a condition over the columns of both sides, which have these types; of them are `split` the left
/// side's.
pub(super) fn dimensions(
    condition: &[Expr],
    (types, split): (&[Type], usize),
    extents: Extents<'_>,
) -> Vec<Dimension> {
    let (mut up, mut down) = (Vec::new(), Vec::new());
    condition.iter().for_each(|expr| collect(expr, types, split, (&mut up, &mut down)));
    let mut found = pair(&mut up, &mut down, point);
    let of_host = condition.iter().flat_map(|expr| host::dimensions(expr, (types, split), extents));
    found.extend(of_host);
    found.extend(pair(&mut up, &mut down, overlap));
    found.truncate(MAX_DIMENSIONS);
    found
}

/// Sorts the edges of a condition into those on whose lower side the left input is, and the others.
fn collect(
    expr: &Expr,
    types: &[Type],
    split: usize,
    (up, down): (&mut Vec<Edge>, &mut Vec<Edge>),
) {
    if let Expr::And(parts) = expr {
        parts.iter().for_each(|part| collect(part, types, split, (up, down)));
        return;
    }
    let Some(mut edge) = edge(expr, types) else { return };
    let is_left = |value: &Expr| expr::columns_of(value).range(split..).next().is_none();
    let reads = |value: &Expr| !expr::columns_of(value).is_empty();
    let is_right = |value: &Expr| expr::columns_of(value).range(..split).next().is_none();
    let move_right = |value: &mut Expr| *value = expr::renumber(value, &|column| column - split);
    if !reads(&edge.low) || !reads(&edge.high) {
        return;
    }
    if is_left(&edge.low) && is_right(&edge.high) {
        move_right(&mut edge.high);
        up.push(edge);
    } else if is_right(&edge.low) && is_left(&edge.high) {
        move_right(&mut edge.low);
        down.push(edge);
    }
}

/// What a comparison says, alone or as `comparison OR side IS NULL`.
fn edge(expr: &Expr, types: &[Type]) -> Option<Edge> {
    let (comparison, open) = match expr {
        Expr::Or(arms) => match arms.as_slice() {
            [Expr::IsNull(value), comparison] | [comparison, Expr::IsNull(value)] => {
                (comparison, Some(&**value))
            }
            _ => return None,
        },
        other => (other, None),
    };
    let Expr::Call { func: Func::Compare(comparison, Blanks::Significant), args } = comparison
    else {
        return None;
    };
    let [first, second] = args.as_slice() else { return None };
    let (low, high) = match comparison {
        Comparison::Lt | Comparison::Le => (first, second),
        Comparison::Gt | Comparison::Ge => (second, first),
        Comparison::Eq | Comparison::Ne => return None,
    };
    if open.is_some_and(|open| open != low && open != high) {
        return None;
    }
    let (ty, other) = (scale(low.ty(types)), scale(high.ty(types)));
    let is_ranked = ty == other && has_ranks(ty);
    is_ranked.then(|| Edge {
        low: low.clone(),
        high: high.clone(),
        is_low_open: open == Some(low),
        is_high_open: open == Some(high),
        ty,
    })
}

/// The type that stands for those whose ranks compare.
pub(super) fn scale(ty: Type) -> Type {
    Type::Scalar(match ty {
        Type::Scalar(Scalar::Int2 | Scalar::Int4) => Scalar::Int8,
        Type::Scalar(Scalar::Float4) => Scalar::Float8,
        Type::Scalar(Scalar::Varchar) => Scalar::Text,
        other => return other,
    })
}

/// Takes pairs of edges that make a dimension, in the order in which they are written.
fn pair(
    up: &mut Vec<Edge>,
    down: &mut Vec<Edge>,
    dimension: fn(&Edge, &Edge) -> Option<Dimension>,
) -> Vec<Dimension> {
    let mut found = Vec::new();
    up.retain(|rising| {
        let fits = |falling: &Edge| match rising.ty == falling.ty {
            true => dimension(rising, falling),
            false => None,
        };
        let partner = down.iter().enumerate().find_map(|(i, edge)| Some((i, fits(edge)?)));
        let Some((position, dimension)) = partner else { return true };
        down.remove(position);
        found.push(dimension);
        false
    });
    found
}

impl Edge {
    /// Whether it may be true of a NULL.
    fn is_open(&self) -> bool {
        self.is_low_open || self.is_high_open
    }
}

/// A value of one side between two of the other. One of the conditions is true of no NULL, so that the value is none.
fn point(rising: &Edge, falling: &Edge) -> Option<Dimension> {
    if rising.is_open() && falling.is_open() {
        return None;
    }
    let bound = |value: &Expr, is_open| Bound { value: value.clone(), is_open, slack: 0 };
    if rising.low == falling.high {
        let from = bound(&falling.low, falling.is_low_open);
        let to = bound(&rising.high, rising.is_high_open);
        let (left, right) = (Extent::Point(rising.low.clone()), Extent::Interval(from, to));
        return Some(Dimension { left, right });
    }
    (rising.high == falling.low).then(|| {
        let from = bound(&rising.low, rising.is_low_open);
        let to = bound(&falling.high, falling.is_high_open);
        let (left, right) = (Extent::Interval(from, to), Extent::Point(rising.high.clone()));
        Dimension { left, right }
    })
}

/// Two intervals that begin where the other has not ended. Where a condition is true of NULL on one side, it is of any
/// value of the other, be it NULL.
fn overlap(rising: &Edge, falling: &Edge) -> Option<Dimension> {
    let bound = |value: &Expr, edge: &Edge| {
        let is_open = edge.is_open();
        Bound { value: value.clone(), is_open, slack: 0 }
    };
    Some(Dimension {
        left: Extent::Interval(bound(&rising.low, rising), bound(&falling.high, falling)),
        right: Extent::Interval(bound(&falling.low, falling), bound(&rising.high, rising)),
    })
}
