//! Operators, functions and casts of the native table or, where that has none, in the time zone of the query.

use super::binder::Binder;
use super::bound_expr::BoundExpr;
use super::expr_binder::ExprBinder;
use super::resolve;
use super::syntax::strip;
use crate::error::PlanError;
use plan::expr::Expr;
use plan::func::{self, zoned, Func};
use plan::types::Type;
use plan::value::Datum;
use plan::{Interval, Zone};
use sqlparser::ast::{self, BinaryOperator};

impl Binder<'_> {
    /// Applies an operator.
    pub(super) fn operator(
        &self,
        name: &str,
        args: Vec<BoundExpr>,
    ) -> Result<BoundExpr, PlanError> {
        let tys = types(&args);
        let zoned = || zoned::operator(self.zone?, name, &tys);
        match func::operator(name, &tys).is_none().then(zoned).flatten() {
            Some((func, ty)) => Ok(resolve::call(func, args, ty)),
            None => resolve::operator(name, args),
        }
    }

    /// Applies the function of that name.
    pub(super) fn function(
        &self,
        name: &str,
        args: Vec<BoundExpr>,
    ) -> Result<BoundExpr, PlanError> {
        let tys = types(&args);
        if func::function(name, &tys).is_some() {
            return resolve::function(name, args);
        }
        // Some are told the zone.
        let (func, args) = match (name, args.as_slice()) {
            ("timezone", [zone, arg]) => {
                let zone = self.zone_of(zone);
                (zone.and_then(|zone| zoned::at_time_zone(zone, arg.ty)), vec![arg.clone()])
            }
            ("date_trunc", [field, arg, zone]) => {
                let zone = self.zone_of(zone);
                let func = zone.and_then(|zone| zoned::function(zone, name, &tys[..2]));
                (func, vec![field.clone(), arg.clone()])
            }
            _ => (self.zone.and_then(|zone| zoned::function(zone, name, &tys)), args),
        };
        match func {
            Some(func) => {
                let ty = func.result_type(&tys);
                Ok(resolve::call(func, args, ty))
            }
            None if args.len() == tys.len() => resolve::function(name, args),
            None => Err(resolve::unknown_function(name, &tys)),
        }
    }

    /// The time zone that a literal names.
    fn zone_of(&self, name: &BoundExpr) -> Option<Zone> {
        match &name.expr {
            Expr::Literal(Datum::Text(name), _) => self.catalog.zone_named(name),
            _ => None,
        }
    }

    /// The value cast as if the query said so.
    pub(super) fn cast(
        &self,
        arg: BoundExpr,
        ty: Type,
        typmod: i32,
    ) -> Result<BoundExpr, PlanError> {
        match self.zone.and_then(|zone| zoned::cast(zone, arg.ty, ty)) {
            None => resolve::cast(arg, ty, typmod),
            Some(func) => resolve::cast(resolve::call(func, vec![arg], ty), ty, typmod),
        }
    }
}

impl ExprBinder<'_, '_> {
    /// A date or timestamp plus or minus an interval that is written; `None` if it is nothing such.
    #[inline(never)]
    pub(super) fn bind_interval_sum(
        &mut self,
        left: &ast::Expr,
        op: &BinaryOperator,
        right: &ast::Expr,
    ) -> Result<Option<BoundExpr>, PlanError> {
        let (at, interval) = match (op, interval(left), interval(right)) {
            (BinaryOperator::Plus, None, Some(interval)) => (left, interval),
            (BinaryOperator::Plus, Some(interval), None) => (right, interval),
            (BinaryOperator::Minus, None, Some(interval)) => (left, interval.negated()),
            _ => return Ok(None),
        };
        let at = self.bind(at)?;
        let sum = zoned::plus(self.binder.zone, at.ty, interval);
        Ok(sum.map(|(funcs, ty)| {
            let apply = |value, func: Func| resolve::call(func, vec![value], ty);
            funcs.into_iter().fold(at, apply)
        }))
    }
}

/// The interval that a literal is.
fn interval(expr: &ast::Expr) -> Option<Interval> {
    let ast::Expr::Cast { expr, data_type: ast::DataType::Interval { .. }, .. } = strip(expr)
    else {
        return None;
    };
    match strip(expr) {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::SingleQuotedString(text) => Interval::parse(text),
            _ => None,
        },
        _ => None,
    }
}

fn types(args: &[BoundExpr]) -> Vec<Type> {
    args.iter().map(|arg| arg.ty).collect()
}
