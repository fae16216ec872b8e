//! Functions in FROM: `f(…)`, `ROWS FROM (f(…), g(…))`, `unnest(a, b)`, each WITH ORDINALITY or without.
//!
//! Such an item sees the items to its left whether it is LATERAL or not. It is what its calls make of the row
//! without columns; what it takes from other items are parameters, like those of a LATERAL subquery.

use super::super::parse::ROWS_FROM;
use super::super::refuse::{invalid, unsupported};
use super::binder::Binder;
use super::bound_expr::BoundExpr;
use super::expr_binder::ExprBinder;
use super::function::{arguments, function_name, refuse_decorations};
use super::resolve;
use super::scope::Scope;
use super::syntax::strip;
use crate::error::PlanError;
use crate::ir::Rel;
use plan::expr::Expr;
use plan::func::{self, TableFunc};
use plan::table_function::{TableCall, TableFunction};
use plan::types::Type;
use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, FunctionArguments, TableFactor};

/// An item of FROM that is a function, or several side by side.
pub(super) struct FunctionItem<'e> {
    calls: Vec<ast::Function>,
    has_ordinality: bool,
    pub(super) alias: Option<&'e ast::TableAlias>,
}

impl<'e> FunctionItem<'e> {
    /// The item as such; `None` if it is none.
    pub(super) fn of(factor: &'e TableFactor) -> Result<Option<FunctionItem<'e>>, PlanError> {
        let (calls, has_ordinality, alias) = match factor {
            TableFactor::Table { name, args: Some(args), with_ordinality, alias, .. } => {
                (calls(name, &args.args)?, *with_ordinality, alias)
            }
            TableFactor::Function { name, args, with_ordinality, alias, .. } => {
                (calls(name, args)?, *with_ordinality, alias)
            }
            TableFactor::UNNEST { array_exprs, with_ordinality, alias, .. } => {
                let name = ast::ObjectName::from(vec![ast::Ident::new("unnest")]);
                let args: Vec<FunctionArg> = array_exprs.iter().cloned().map(argument).collect();
                (calls(&name, &args)?, *with_ordinality, alias)
            }
            _ => return Ok(None),
        };
        Ok(Some(FunctionItem { calls, has_ordinality, alias: alias.as_ref() }))
    }
}

/// The calls that an item's name and arguments stand for.
fn calls(name: &ast::ObjectName, args: &[FunctionArg]) -> Result<Vec<ast::Function>, PlanError> {
    let call = |args: Vec<FunctionArg>| ast::Function {
        name: name.clone(),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(ast::FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: vec![],
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    };
    match function_name(name)?.as_str() {
        ROWS_FROM => {
            let nested = args.iter().map(nested_calls).collect::<Result<Vec<_>, _>>()?;
            Ok(nested.concat())
        }
        "unnest" => Ok(args.iter().map(|arg| call(vec![arg.clone()])).collect()),
        _ => Ok(vec![call(args.to_vec())]),
    }
}

/// The calls that an element of ROWS FROM stands for.
fn nested_calls(arg: &FunctionArg) -> Result<Vec<ast::Function>, PlanError> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(ast::Expr::Function(call))) => {
            match &call.args {
                FunctionArguments::List(list) if function_name(&call.name)? == "unnest" => {
                    calls(&call.name, &list.args)
                }
                _ => Ok(vec![call.clone()]),
            }
        }
        other => Err(unsupported(format!("{other} in ROWS FROM is"))),
    }
}

fn argument(expr: ast::Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
}

/// A call, and the column its values are.
struct BoundCall {
    call: TableCall,
    name: String,
    /// What it yields, if that is always one value.
    single: Option<BoundExpr>,
}

impl Binder<'_> {
    /// The rows of an item, under the names of its functions.
    pub(super) fn bind_function_item(&mut self, item: &FunctionItem<'_>) -> Result<Rel, PlanError> {
        let scope = Scope::default();
        let mut binder = ExprBinder::new(self, &scope);
        let mut bound = Vec::new();
        for call in &item.calls {
            bound.push(binder.bind_item_call(call)?);
        }
        let (input, places) = binder.subqueries.attach(Rel::unit());
        if let ([BoundCall { single: Some(value), name, .. }], false) =
            (bound.as_slice(), item.has_ordinality)
        {
            let column = value.column(item.alias.map_or(name, |alias| &alias.name.value));
            return Ok(input.map(vec![places.resolve(&value.expr)], vec![column]));
        }
        let mut names: Vec<String> = bound.iter().map(|call| call.name.clone()).collect();
        if let ([name], Some(alias)) = (names.as_mut_slice(), item.alias) {
            name.clone_from(&alias.name.value);
        }
        names.extend(item.has_ordinality.then(|| "ordinality".to_owned()));
        let calls = bound.into_iter().map(|bound| bound.call).collect();
        let table_function =
            TableFunction { has_ordinality: item.has_ordinality, ..TableFunction::of(calls) };
        let table_function = table_function.map_args(&|arg| places.resolve(arg));
        let arity = input.arity();
        let rel = input.table_function(table_function, names);
        let own: Vec<usize> = (arity..rel.arity()).collect();
        Ok(rel.project(&own))
    }
}

impl ExprBinder<'_, '_> {
    /// A call in an expression, where there may be one.
    pub(super) fn bind_set_call(
        &mut self,
        name: &str,
        call: &ast::Function,
    ) -> Result<BoundExpr, PlanError> {
        let (func, args) = self.bind_set_returning(name, call)?;
        let types: Vec<Type> = args.iter().map(|arg| arg.ty).collect();
        let args = args.into_iter().map(|arg| arg.expr).collect();
        let Some(calls) = &mut self.set_calls else {
            return Err(unsupported(format!("set-returning function {name} here is")));
        };
        let column = calls.add(name, func, args);
        Ok(BoundExpr {
            expr: Expr::Column(column),
            ty: func.value_type(&types),
            typmod: -1,
            nullable: true,
        })
    }

    fn bind_item_call(&mut self, call: &ast::Function) -> Result<BoundCall, PlanError> {
        let name = function_name(&call.name)?;
        if func::is_table_function(&name) {
            let (func, args) = self.bind_set_returning(&name, call)?;
            let args: Vec<Expr> = args.into_iter().map(|arg| arg.expr).collect();
            return Ok(BoundCall { call: TableCall { func, args }, name, single: None });
        }
        let value = self.bind_function(call)?;
        let call = TableCall { func: TableFunc::Once, args: vec![value.expr.clone()] };
        Ok(BoundCall { call, name, single: Some(value) })
    }

    /// A call of a set-returning function of that name.
    pub(super) fn bind_set_returning(
        &mut self,
        name: &str,
        call: &ast::Function,
    ) -> Result<(TableFunc, Vec<BoundExpr>), PlanError> {
        refuse_decorations(call)?;
        let (args, is_star) = arguments(name, &call.args)?;
        if is_star || call.filter.is_some() {
            return Err(invalid(format!("{name} is no aggregate")));
        }
        let args = self.bind_all(args.into_iter().map(strip))?;
        let types: Vec<Type> = args.iter().map(|arg| arg.ty).collect();
        match func::table_function(name, &types) {
            Some(func) => Ok((func, args)),
            None => Err(resolve::unknown_function(name, &types)),
        }
    }
}
