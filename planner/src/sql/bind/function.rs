//! Calls with parentheses: functions, aggregates and the constructs that look like functions.

use super::super::refuse::{invalid, unsupported};
use super::resolve;
use super::scalar::{same_typmod, Scalar, ScalarBinder};
use crate::error::PlanError;
use crate::expr::Expr;
use crate::func::{Blanks, Func};
use crate::plan::AggregateFunc;
use crate::types::{self, Type};
use sqlparser::ast::{
    self, DuplicateTreatment, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments,
};

impl ScalarBinder<'_> {
    pub(super) fn bind_function(&mut self, call: &ast::Function) -> Result<Scalar, PlanError> {
        let name = function_name(&call.name)?;
        refuse_decorations(call)?;
        let (args, star) = arguments(&name, &call.args)?;
        if resolve::is_aggregate_name(&name) {
            return self.bind_aggregate(&name, &args, star);
        }
        if star {
            return Err(invalid(format!("{name}(*) is no aggregate")));
        }
        if matches!(call.args, FunctionArguments::None) {
            // CURRENT_DATE, SESSION_USER and the like.
            return Err(unsupported(format!("{} is", name.to_uppercase())));
        }
        let args = self.bind_all(args)?;
        match name.as_str() {
            "coalesce" => bind_coalesce(args),
            "nullif" => bind_nullif(args),
            "row" => Err(unsupported("row comparisons and ROW(…) are")),
            "greatest" => bind_extreme(Func::Greatest, args),
            "least" => bind_extreme(Func::Least, args),
            _ => resolve::function(&name, args),
        }
    }

    fn bind_aggregate(
        &mut self,
        name: &str,
        args: &[&ast::Expr],
        star: bool,
    ) -> Result<Scalar, PlanError> {
        let Some(grouping) = self.grouping.take() else {
            return Err(invalid(format!("aggregate {name} is not allowed here")));
        };
        // Without the grouping an aggregate within an aggregate is an error, as it must be.
        let bound = self.bind_all(args.iter().copied());
        let bound = bound.and_then(|args| match (args.as_slice(), star) {
            ([], true) if name == "count" => {
                let bigint = Type::Scalar(types::Scalar::Int8);
                Ok(grouping.add(name, AggregateFunc::Count, None, bigint))
            }
            ([arg], false) => match resolve::aggregate(name, arg.ty) {
                Some((func, ty)) => Ok(grouping.add(name, func, Some(arg.clone()), ty)),
                None => Err(unsupported(format!("aggregate {name}({}) is", arg.ty))),
            },
            _ => Err(unsupported(format!("aggregate {name} is"))),
        });
        self.grouping = Some(grouping);
        bound
    }
}

fn bind_coalesce(args: Vec<Scalar>) -> Result<Scalar, PlanError> {
    let Some(first) = args.first() else { return Err(invalid("COALESCE without arguments")) };
    let (ty, typmod) = (first.ty, same_typmod(&args));
    let nullable = args.iter().all(|arg| arg.nullable);
    let expr = Expr::Coalesce(args.into_iter().map(|arg| arg.expr).collect());
    Ok(Scalar { expr, ty, typmod, nullable })
}

/// `NULLIF(a, b)`: NULL if `a = b`, else `a`.
fn bind_nullif(args: Vec<Scalar>) -> Result<Scalar, PlanError> {
    if args.len() != 2 {
        return Err(invalid("NULLIF takes two arguments"));
    }
    let typmod = args[0].typmod;
    let (expr, ty) = resolve::comparing(Func::NullIf, args)?;
    Ok(Scalar { expr, ty, typmod, nullable: true })
}

/// `GREATEST`, `LEAST`: NULLs are ignored.
fn bind_extreme(make: fn(Blanks) -> Func, args: Vec<Scalar>) -> Result<Scalar, PlanError> {
    let typmod = same_typmod(&args);
    let nullable = args.iter().all(|arg| arg.nullable);
    let (expr, ty) = resolve::comparing(make, args)?;
    Ok(Scalar { expr, ty, typmod, nullable })
}

/// The unqualified name; functions outside of `pg_catalog` are refused.
fn function_name(name: &ast::ObjectName) -> Result<String, PlanError> {
    let parts: Vec<&str> =
        name.0.iter().filter_map(|part| part.as_ident()).map(|i| i.value.as_str()).collect();
    match parts.as_slice() {
        [name] | ["pg_catalog", name] => Ok(name.to_lowercase()),
        _ => Err(unsupported(format!("function {name} is"))),
    }
}

fn refuse_decorations(call: &ast::Function) -> Result<(), PlanError> {
    if call.over.is_some() {
        return Err(unsupported("window functions are"));
    }
    if call.filter.is_some() {
        return Err(unsupported("FILTER in an aggregate is"));
    }
    if !call.within_group.is_empty() {
        return Err(unsupported("WITHIN GROUP is"));
    }
    let plain = matches!(call.parameters, FunctionArguments::None) && call.null_treatment.is_none();
    if !plain || call.uses_odbc_syntax {
        return Err(unsupported(format!("the expression {call} is")));
    }
    Ok(())
}

/// The arguments, and whether they are `*`.
fn arguments<'e>(
    name: &str,
    args: &'e FunctionArguments,
) -> Result<(Vec<&'e ast::Expr>, bool), PlanError> {
    let list = match args {
        FunctionArguments::None => return Ok((vec![], false)),
        FunctionArguments::Subquery(_) => {
            return Err(unsupported("subqueries in expressions are"));
        }
        FunctionArguments::List(list) => list,
    };
    if list.duplicate_treatment == Some(DuplicateTreatment::Distinct) {
        return Err(unsupported("DISTINCT in an aggregate is"));
    }
    if list.clauses.iter().any(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_))) {
        return Err(unsupported("ORDER BY in an aggregate is"));
    }
    if !list.clauses.is_empty() {
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
