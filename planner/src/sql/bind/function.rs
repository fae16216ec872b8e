//! Calls with parentheses: functions, aggregates and the constructs that look like functions.

use super::super::refuse::{invalid, unsupported};
use super::bound_expr::{same_typmod, BoundExpr};
use super::collect;
use super::expr_binder::ExprBinder;
use super::resolve;
use super::syntax::{collated, stand_in};
use super::virtual_columns::{Call, Reads};
use crate::error::PlanError;
use plan::aggregate::COLLECTING;
use plan::expr::{Expr, ParameterId};
use plan::func::{self, Blanks, Func};
use plan::types::Type;
use sqlparser::ast::{
    self, DuplicateTreatment, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments,
};
use std::collections::BTreeSet;

impl ExprBinder<'_, '_> {
    #[inline(never)]
    pub(super) fn bind_function(&mut self, call: &ast::Function) -> Result<BoundExpr, PlanError> {
        if let Some(name) = stand_in(&call.name) {
            return self.bind_stand_in(name, call);
        }
        let name = function_name(&call.name)?;
        if func::is_table_function(&name) {
            return self.bind_set_call(&name, call);
        }
        refuse_decorations(call)?;
        if let ("array", FunctionArguments::Subquery(query)) = (name.as_str(), &call.args) {
            return self.bind_array_subquery(query);
        }
        let (args, star) = arguments(&name, &call.args)?;
        if let Some(over) = &call.over {
            if is_distinct(call) {
                return Err(invalid(format!("{name} with DISTINCT and OVER")));
            }
            return self.bind_window(&name, (&args, star), call.filter.as_deref(), over);
        }
        if resolve::is_aggregate_name(&name) {
            return self.bind_aggregate(&name, call, (&args, star));
        }
        if name == "grouping" {
            return self.bind_indicator(&args);
        }
        if call.filter.is_some() || is_distinct(call) {
            return Err(invalid(format!("{name} is no aggregate")));
        }
        if star {
            return Err(invalid(format!("{name}(*) is no aggregate")));
        }
        if matches!(call.args, FunctionArguments::None) {
            // CURRENT_DATE, SESSION_USER and the like.
            return Err(unsupported(format!("{} is", name.to_uppercase())));
        }
        if name == "coalesce" {
            let is_null = |expr: &Expr| Expr::IsNull(Box::new(expr.clone()));
            return bind_coalesce(self.bind_in_turn(&args, &is_null)?);
        }
        let args = self.bind_all(args)?;
        match name.as_str() {
            "nullif" => bind_nullif(args),
            "row" => Err(unsupported("row comparisons and ROW(…) are")),
            "greatest" => bind_extreme(Func::Greatest, args),
            "least" => bind_extreme(Func::Least, args),
            _ => self.binder.function(&name, args),
        }
    }

    /// `GROUPING(…)`
    fn bind_indicator(&mut self, args: &[&ast::Expr]) -> Result<BoundExpr, PlanError> {
        let before = self.binder.given();
        let args: Vec<Expr> =
            self.bind_all(args.iter().copied())?.into_iter().map(|arg| arg.expr).collect();
        if let Some(grouping) = &mut self.grouping {
            let keys = args.iter().map(|arg| grouping.position(arg));
            if let Some(keys) = keys.collect::<Option<Vec<usize>>>() {
                return Ok(grouping.add_indicator(keys));
            }
        }
        let outer = self.binder.outer_indicator(&args, &before);
        outer.ok_or_else(|| unsupported("GROUPING here is"))
    }

    fn bind_aggregate(
        &mut self,
        name: &str,
        call: &ast::Function,
        (args, star): (&[&ast::Expr], bool),
    ) -> Result<BoundExpr, PlanError> {
        let before = self.binder.given();
        // Without the grouping an aggregate within an aggregate is an error, as it must be. Aggregates are
        // computed before anything around them is.
        let grouping = self.grouping.take();
        let guards = std::mem::take(&mut self.guards);
        let bound = self.bind_aggregate_call(name, call, (args, star));
        self.guards = guards;
        self.grouping = grouping;
        let (call, ty, outer) = bound?;
        if let Some(read) = outer {
            let construct = || format!("aggregate {name} of an outer query in a subquery here is");
            let aggregate = self.binder.outer_aggregate(name, (call, ty), &read, &before);
            return aggregate.ok_or_else(|| unsupported(construct()));
        }
        match &mut self.grouping {
            Some(grouping) => Ok(grouping.add(name, call, ty)),
            None => Err(unsupported(format!("aggregate {name} here is"))),
        }
    }

    /// The call, the type of its result, and what it reads of queries around if it is one of theirs.
    fn bind_aggregate_call(
        &mut self,
        name: &str,
        call: &ast::Function,
        (args, star): (&[&ast::Expr], bool),
    ) -> Result<(Call, Type, Option<BTreeSet<ParameterId>>), PlanError> {
        let collation = args.first().and_then(|arg| collated(arg).1);
        let around = std::mem::take(&mut self.dropped);
        let args = self.bind_all(args.iter().copied())?;
        let filter = call.filter.as_ref().map(|filter| self.bind(filter)).transpose()?;
        let mut reads = Reads::default();
        args.iter().chain(&filter).for_each(|value| self.subqueries.trace(&value.expr, &mut reads));
        if !reads.columns {
            let found = self.found();
            for sort in collect::sorted_by(call) {
                let value = self.bind(collated(sort).0)?;
                self.subqueries.trace(&value.expr, &mut reads);
            }
            self.forget(found);
        }
        let dropped = std::mem::replace(&mut self.dropped, around);
        reads.columns |= dropped.columns;
        reads.parameters.extend(dropped.parameters);
        // An aggregate belongs to the innermost query of which it reads columns.
        let is_outer = !reads.parameters.is_empty() && !reads.columns;
        let outer = is_outer.then_some(reads.parameters);
        let distinct = is_distinct(call);
        if COLLECTING.contains(&name) {
            let (func, entry, ty) = self.bind_collecting(name, call, args, (distinct, is_outer))?;
            let arg = resolve::filtered(Some(entry), filter);
            return Ok((Call { func, arg, distinct: false }, ty, outer));
        }
        if let ("min" | "max", [value]) = (name, args.as_slice()) {
            if value.ty.is_host() || collation.is_some() {
                let (func, entry) = collect::extreme(value, collation, name == "max")?;
                let arg = resolve::filtered(Some(entry), filter);
                return Ok((Call { func, arg, distinct: false }, value.ty, outer));
            }
        }
        let (func, arg, ty) = resolve::aggregate_call(name, &args, star, filter)?;
        Ok((Call { func, arg, distinct: distinct && func.counts_duplicates() }, ty, outer))
    }
}

fn is_distinct(call: &ast::Function) -> bool {
    match &call.args {
        FunctionArguments::List(list) => {
            list.duplicate_treatment == Some(DuplicateTreatment::Distinct)
        }
        _ => false,
    }
}

fn bind_coalesce(args: Vec<BoundExpr>) -> Result<BoundExpr, PlanError> {
    let Some(first) = args.first() else { return Err(invalid("COALESCE without arguments")) };
    let (ty, typmod) = (first.ty, same_typmod(&args));
    let nullable = args.iter().all(|arg| arg.nullable);
    let expr = Expr::Coalesce(args.into_iter().map(|arg| arg.expr).collect());
    Ok(BoundExpr { expr, ty, typmod, nullable })
}

/// `NULLIF(a, b)`: NULL if `a = b`, else `a`.
fn bind_nullif(args: Vec<BoundExpr>) -> Result<BoundExpr, PlanError> {
    if args.len() != 2 {
        return Err(invalid("NULLIF takes two arguments"));
    }
    let typmod = args[0].typmod;
    let (expr, ty) = resolve::comparing(Func::NullIf, args)?;
    Ok(BoundExpr { expr, ty, typmod, nullable: true })
}

/// `GREATEST`, `LEAST`: NULLs are ignored.
fn bind_extreme(make: fn(Blanks) -> Func, args: Vec<BoundExpr>) -> Result<BoundExpr, PlanError> {
    let typmod = same_typmod(&args);
    let nullable = args.iter().all(|arg| arg.nullable);
    let (expr, ty) = resolve::comparing(make, args)?;
    Ok(BoundExpr { expr, ty, typmod, nullable })
}

/// The unqualified name; functions outside of `pg_catalog` are refused.
pub(super) fn function_name(name: &ast::ObjectName) -> Result<String, PlanError> {
    let parts: Vec<&str> =
        name.0.iter().filter_map(|part| part.as_ident()).map(|i| i.value.as_str()).collect();
    match parts.as_slice() {
        [name] | ["pg_catalog", name] => Ok(name.to_lowercase()),
        // What the host makes of calls that return sets of arrays.
        ["eddy", "slices"] => Ok("slices".to_owned()),
        _ => Err(unsupported(format!("function {name} is"))),
    }
}

pub(super) fn refuse_decorations(call: &ast::Function) -> Result<(), PlanError> {
    let plain = matches!(call.parameters, FunctionArguments::None) && call.null_treatment.is_none();
    if !plain || call.uses_odbc_syntax {
        return Err(unsupported(format!("the expression {call} is")));
    }
    Ok(())
}

/// The arguments, and whether they are `*`.
pub(super) fn arguments<'e>(
    name: &str,
    args: &'e FunctionArguments,
) -> Result<(Vec<&'e ast::Expr>, bool), PlanError> {
    let list = match args {
        FunctionArguments::None => return Ok((vec![], false)),
        FunctionArguments::Subquery(_) => {
            return Err(unsupported("ARRAY over a subquery is"));
        }
        FunctionArguments::List(list) => list,
    };
    // The result of the aggregates there are does not depend on the order of their input.
    if !list.clauses.iter().all(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_))) {
        return Err(unsupported(format!("this form of {name} is")));
    }
    let mut exprs = Vec::new();
    for arg in &list.args {
        match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => exprs.push(expr),
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => return Ok((vec![], true)),
            FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => {
                return Err(unsupported(format!("the whole-row reference {name}.* is")));
            }
            _ => return Err(unsupported(format!("named arguments of function {name} are"))),
        }
    }
    Ok((exprs, false))
}
