//! What binds the expressions of one SELECT. How, for each kind of expression, is in the modules that use it.

use super::binder::Binder;
use super::bound_expr::BoundExpr;
use super::scope::Scope;
use super::virtual_columns::{Grouping, Reads, SetCalls, Subqueries, Windows};
use plan::expr::Expr;
use sqlparser::ast;

/// Binds the expressions of one SELECT.
pub(super) struct ExprBinder<'s, 'c> {
    pub(super) binder: &'s mut Binder<'c>,
    pub(super) scope: &'s Scope,
    /// Where aggregates are allowed: those found.
    pub(super) grouping: Option<&'s mut Grouping>,
    /// Where window functions are allowed: those found.
    pub(super) windows: Option<&'s mut Windows>,
    /// Where set-returning functions are allowed: the calls found.
    pub(super) set_calls: Option<SetCalls>,
    pub(super) subqueries: Subqueries,
    /// Whether grouping keys may be NULL though their values never are.
    pub(super) is_padded: bool,
    /// What is true wherever the expression being bound is evaluated.
    pub(super) guards: Vec<Expr>,
    /// What expressions read of which nothing is left but their type, within the aggregate being bound.
    pub(super) dropped: Reads,
    /// Expressions that stand for what was bound before: grouping keys.
    pub(super) known: Vec<(ast::Expr, BoundExpr)>,
}

impl<'s, 'c> ExprBinder<'s, 'c> {
    pub(super) fn new(binder: &'s mut Binder<'c>, scope: &'s Scope) -> ExprBinder<'s, 'c> {
        let subqueries = Subqueries::default();
        let (guards, known) = (Vec::new(), Vec::new());
        let (grouping, windows, set_calls, is_padded) = (None, None, None, false);
        ExprBinder {
            binder,
            scope,
            grouping,
            windows,
            set_calls,
            subqueries,
            is_padded,
            guards,
            dropped: Reads::default(),
            known,
        }
    }
}
