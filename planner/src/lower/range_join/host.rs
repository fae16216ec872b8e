//! What conditions say of intervals that the host evaluates: ranges that overlap, a point in a polygon. The host tells
//! where the operands are, in expressions of its own.

use super::dimensions::{scale, Bound, Dimension, Extent};
use crate::catalog::{Extents, HostExpression, HostExtent, HostPart};
use plan::expr::{self, Expr};
use plan::func::has_ranks;
use plan::host::{HostCall, HostWork};
use plan::types::{Scalar, Type};
use plan::value::Datum;

/// How many ranks numbers may be apart that PostgreSQL's geometric operators take for equal, with what is lost where
/// the ends of a shape are computed.
const SLACK: i64 = 1024;

/// A call of the host over the columns of both sides.
struct Condition<'c> {
    args: &'c [Expr],
    types: &'c [Type],
    split: usize,
}

/// An end that there need not be.
fn bound_at(value: Expr, ty: Type) -> Bound {
    let slack = if ty == Type::Scalar(Scalar::Float8) { SLACK } else { 0 };
    Bound { value, is_open: true, slack }
}

/// Where an operand is, over its side's columns.
struct Place {
    extent: Extent,
    ty: Type,
    is_left: bool,
}

/// The dimensions in which the operands of a condition are, if each is of another side.
pub(super) fn dimensions(
    expr: &Expr,
    (types, split): (&[Type], usize),
    extents: Extents<'_>,
) -> Vec<Dimension> {
    let (call, args) = match expr {
        Expr::And(parts) => {
            let below = parts.iter().flat_map(|part| dimensions(part, (types, split), extents));
            return below.collect();
        }
        Expr::Host { call, args } => (call, args),
        _ => return vec![],
    };
    let HostWork::Expression { code, .. } = &call.work else { return vec![] };
    let condition = Condition { args, types, split };
    extents(code).iter().filter_map(|pair| condition.dimension(pair)).collect()
}

impl Condition<'_> {
    fn dimension(&self, pair: &[HostExtent; 2]) -> Option<Dimension> {
        let (first, second) = (self.place(&pair[0])?, self.place(&pair[1])?);
        let (left, right) = match (first.is_left, second.is_left) {
            (true, false) => (first, second),
            (false, true) => (second, first),
            _ => return None,
        };
        let ty = scale(left.ty);
        let is_ranked = ty == scale(right.ty) && has_ranks(ty);
        let right = match (&left.extent, right.extent) {
            // What is taken for the same point may be a little apart.
            (Extent::Point(_), Extent::Point(value)) => {
                let bound = bound_at(value, right.ty);
                Extent::Interval(bound.clone(), bound)
            }
            (_, extent) => extent,
        };
        is_ranked.then_some(Dimension { left: left.extent, right })
    }

    fn place(&self, extent: &HostExtent) -> Option<Place> {
        match extent {
            HostExtent::Argument(position) => {
                let arg = self.args.get(*position)?;
                let (value, is_left) = self.of_one_side(arg.clone(), &[*position])?;
                let ty = arg.ty(self.types);
                Some(Place { extent: Extent::Point(value), ty, is_left })
            }
            HostExtent::Value(part) => {
                let (value, is_left) = self.of_one_side(self.call(part), &part.args)?;
                Some(Place { extent: Extent::Point(value), ty: part.expression.ty, is_left })
            }
            HostExtent::Between(from, to) => {
                let ty = from.expression.ty;
                let (from, is_left) = self.bound(from)?;
                let (to, _) = self.bound(to).filter(|(_, other)| *other == is_left)?;
                Some(Place { extent: Extent::Interval(from, to), ty, is_left })
            }
        }
    }

    fn bound(&self, part: &HostPart) -> Option<(Bound, bool)> {
        let (value, is_left) = self.of_one_side(self.call(part), &part.args)?;
        Some((bound_at(value, part.expression.ty), is_left))
    }

    /// What the host evaluates of the arguments that it reads, with NULL for the others.
    fn call(&self, part: &HostPart) -> Expr {
        let HostExpression { text, code, caller, is_builtin, ty, .. } = part.expression.clone();
        let types: Vec<Type> = self.args.iter().map(|arg| arg.ty(self.types)).collect();
        let arg = |position: usize| match part.args.contains(&position) {
            true => self.args[position].clone(),
            false => Expr::Literal(Datum::Null, types[position]),
        };
        let args = (0..self.args.len()).map(arg).collect();
        let work = HostWork::Expression { text, code, caller, is_builtin, args: types.clone() };
        Expr::Host { call: HostCall::new(work, ty), args }
    }

    /// An expression over the columns of the one side that it reads, which is the left one or not.
    fn of_one_side(&self, value: Expr, args: &[usize]) -> Option<(Expr, bool)> {
        if !args.iter().all(|position| *position < self.args.len()) {
            return None;
        }
        let columns = expr::columns_of(&value);
        let (first, last) = (*columns.first()?, *columns.last()?);
        if last < self.split {
            return Some((value, true));
        }
        let own = |column: usize| column - self.split;
        (first >= self.split).then(|| (expr::renumber(&value, &own), false))
    }
}
