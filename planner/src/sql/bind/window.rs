//! Calls of window functions, with their frames.

use super::super::refuse::{invalid, unsupported, unsupported_hint};
use super::bound_expr::BoundExpr;
use super::expr_binder::ExprBinder;
use super::resolve;
use super::sort::{sortable, Sort};
use super::virtual_columns::{Window, WindowFunction};
use crate::error::PlanError;
use plan::aggregate::COLLECTING;
use plan::expr;
use plan::partition::{Bound, Exclusion, Frame, Units, WindowFunc};
use plan::types::{self, Column, Type};
use plan::value::Datum;
use plan::AggregateFunc;
use sqlparser::ast::{self, WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType};

const INT8: Type = Type::Scalar(types::Scalar::Int8);

/// Makes the bound of the number of a column.
type MakeBound = fn(usize) -> Bound;

impl ExprBinder<'_, '_> {
    /// `name(args) FILTER (…) OVER (…)`
    pub(super) fn bind_window(
        &mut self,
        name: &str,
        (args, star): (&[&ast::Expr], bool),
        filter: Option<&ast::Expr>,
        over: &WindowType,
    ) -> Result<BoundExpr, PlanError> {
        let Some(windows) = self.windows.take() else {
            return Err(unsupported("a window function here is"));
        };
        // Without the windows a window function within another is an error, as it must be. Windows are computed
        // before anything around them is.
        let guards = std::mem::take(&mut self.guards);
        let call = windows
            .window(over)
            .and_then(|window| self.bind_call(name, (args, star), filter, &window));
        self.guards = guards;
        let bound = call.and_then(|call| windows.add(call));
        self.windows = Some(windows);
        bound
    }

    fn bind_call(
        &mut self,
        name: &str,
        (args, star): (&[&ast::Expr], bool),
        filter: Option<&ast::Expr>,
        window: &Window,
    ) -> Result<WindowFunction, PlanError> {
        let Window { spec, exclusion } = window;
        let mut args = self.bind_all(args.iter().copied())?;
        let (func, ty) = match WindowFunc::named(name) {
            Some(func) => {
                let ty = func.result_type(args.first().map(|arg| arg.ty));
                (func, ty.ok_or_else(|| invalid(format!("{name} without arguments")))?)
            }
            None if name == "array_agg" => {
                let value = args.first().map(|arg| arg.ty);
                let ty = WindowFunc::ArrayAgg.result_type(value);
                let ty = ty.ok_or_else(|| unsupported("array_agg of arrays is"))?;
                args.extend(filter.map(|filter| self.bind(filter)).transpose()?);
                (WindowFunc::ArrayAgg, ty)
            }
            None if COLLECTING.contains(&name) => {
                return Err(unsupported(format!("{name} as a window function is")));
            }
            None => {
                let filter = filter.map(|filter| self.bind(filter)).transpose()?;
                let (func, arg, ty) = resolve::aggregate_call(name, &args, star, filter)?;
                args = arg.into_iter().collect();
                (WindowFunc::Aggregate(func), ty)
            }
        };
        let partition = self.bind_all(&spec.partition_by)?;
        let order = spec.order_by.iter().map(|item| self.bind_sort(item));
        let order = order.collect::<Result<Vec<_>, _>>()?;
        let (frame, reach) = self.bind_frame(spec, &order)?;
        let frame = Frame { exclusion: *exclusion, ..frame };
        let is_count = func == WindowFunc::Aggregate(AggregateFunc::Count);
        let nullable = !(is_count || args.is_empty());
        let column = Column { name: name.to_owned(), ty, typmod: -1, nullable };
        Ok(WindowFunction { func, args, partition, order, reach, frame, column })
    }

    /// The frame, and the columns that its bounds name by their number among these.
    fn bind_frame(
        &mut self,
        spec: &WindowSpec,
        order: &[Sort],
    ) -> Result<(Frame, Vec<BoundExpr>), PlanError> {
        let mut reach = Vec::new();
        let Some(frame) = &spec.window_frame else { return Ok((Frame::default(), reach)) };
        let (units, offset) = match (frame.units, order) {
            (WindowFrameUnits::Rows, _) => (Units::Rows, Some(INT8)),
            (WindowFrameUnits::Groups, _) => (Units::Groups, Some(INT8)),
            (WindowFrameUnits::Range, [sort]) if has_offset(frame) => {
                (Units::Range(Some(sort.by(0))), distance_type(sort.value.ty))
            }
            (WindowFrameUnits::Range, _) => (Units::Range(None), None),
        };
        let Some(offset) = offset.or_else(|| (!has_offset(frame)).then_some(INT8)) else {
            let ty = order.first().map_or_else(String::new, |sort| sort.value.ty.to_string());
            let what = format!("RANGE with an offset over type {ty} is");
            return Err(unsupported_hint(what, "Order by a number, or use ROWS or GROUPS."));
        };
        let may_reach = matches!(units, Units::Range(_)) && !order.iter().all(is_number);
        let mut bind = |bound: &WindowFrameBound| match bound {
            WindowFrameBound::Preceding(Some(value)) | WindowFrameBound::Following(Some(value))
                if may_reach && is_call(value) =>
            {
                let place = self.bind(value)?;
                reach.push(sortable(&place, None));
                Ok(Bound::At(reach.len() - 1))
            }
            bound => match self.bind_computed(bound, offset)? {
                Some((count, make)) => {
                    reach.push(count);
                    Ok(make(reach.len() - 1))
                }
                None => self.bind_bound(bound, offset),
            },
        };
        let start = bind(&frame.start_bound)?;
        let end = frame.end_bound.as_ref().map_or(Ok(Bound::Current), bind)?;
        Ok((Frame { units, start, end, exclusion: Exclusion::None }, reach))
    }

    /// An offset of a type that is no constant, and what it bounds.
    fn bind_computed(
        &mut self,
        bound: &WindowFrameBound,
        ty: Type,
    ) -> Result<Option<(BoundExpr, MakeBound)>, PlanError> {
        let (value, make): (_, MakeBound) = match bound {
            WindowFrameBound::Preceding(Some(value)) => (value, Bound::PrecedingOf),
            WindowFrameBound::Following(Some(value)) => (value, Bound::FollowingOf),
            _ => return Ok(None),
        };
        let offset = self.bind(value)?;
        if expr::is_closed(&offset.expr) {
            return Ok(None);
        }
        Ok(Some((resolve::cast(offset, ty, -1)?, make)))
    }

    /// A bound whose offset is a constant of a type.
    fn bind_bound(&mut self, bound: &WindowFrameBound, ty: Type) -> Result<Bound, PlanError> {
        let refuse = || unsupported("this frame offset is");
        let mut offset = |value: &ast::Expr| -> Result<Datum, PlanError> {
            let scalar = self.binder.bind_constant(value).map_err(|_| refuse())?;
            let expr = expr::cast(&scalar.expr, scalar.ty, ty).ok_or_else(refuse)?;
            expr.eval(&[]).map_err(|_| refuse())
        };
        Ok(match bound {
            WindowFrameBound::CurrentRow => Bound::Current,
            WindowFrameBound::Preceding(None) | WindowFrameBound::Following(None) => {
                Bound::Unbounded
            }
            WindowFrameBound::Preceding(Some(value)) => Bound::Preceding(offset(value)?),
            WindowFrameBound::Following(Some(value)) => Bound::Following(offset(value)?),
        })
    }
}

/// Whether values of what is sorted by are numbers, from which offsets are.
fn is_number(sort: &Sort) -> bool {
    let is_number = |scalar: types::Scalar| {
        scalar.is_integer() || scalar.is_float() || scalar == types::Scalar::Numeric
    };
    sort.value.ty.scalar().is_some_and(is_number)
}

/// In place of an offset, canonical SQL may have a call that computes to where the frame reaches.
fn is_call(value: &ast::Expr) -> bool {
    match value {
        ast::Expr::Nested(value) => is_call(value),
        value => matches!(value, ast::Expr::Function(_)),
    }
}

fn has_offset(frame: &ast::WindowFrame) -> bool {
    let is_offset = |bound: &WindowFrameBound| {
        matches!(bound, WindowFrameBound::Preceding(Some(_)) | WindowFrameBound::Following(Some(_)))
    };
    is_offset(&frame.start_bound) || frame.end_bound.as_ref().is_some_and(is_offset)
}

/// The type of offsets from values of a type, if they can be added.
fn distance_type(ty: Type) -> Option<Type> {
    let scalar = ty.scalar()?;
    match scalar {
        _ if scalar.is_integer() => Some(INT8),
        _ if scalar.is_float() => Some(types::Scalar::Float8.into()),
        types::Scalar::Numeric => Some(ty),
        // Microseconds.
        types::Scalar::Date | types::Scalar::Timestamp | types::Scalar::Timestamptz => Some(INT8),
        // Computed by the host.
        types::Scalar::Host(_) => Some(ty),
        _ => None,
    }
}
