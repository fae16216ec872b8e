//! Subqueries in expressions: EXISTS, IN, ANY, ALL and those that yield a value.
//!
//! While an expression is bound, a subquery becomes one or more virtual columns; afterwards it is put
//! beside the relation whose rows the expression is evaluated for, and they become columns of that.

use super::super::refuse::{invalid, unsupported, unsupported_hint};
use super::bound_expr::{BoundExpr, BOOL};
use super::collect;
use super::compared::{compare_rows, comparison, Compared, Operand, Quantified};
use super::expr_binder::ExprBinder;
use super::row_order::{Consumer, Sorted};
use super::syntax::{strip, unmarked};
use super::virtual_columns::reads_window;
use crate::error::PlanError;
use crate::ir::{ApplyKind, Binding, Node, Predicate, Rel};
use plan::expr::{self, Expr};
use plan::func::Func;
use plan::types::{Column, Type};
use plan::value::Datum;
use plan::{Aggregate, AggregateFunc, Collect};
use sqlparser::ast::{self, UnaryOperator};

/// Each is a level of the tree that transforms walk down.
const MAX_SUBQUERIES: usize = 200;

impl ExprBinder<'_, '_> {
    fn bind_subquery(&mut self, query: &ast::Query) -> Result<(Rel, Vec<Binding>), PlanError> {
        self.count_subquery()?;
        let scope = self.scope;
        self.binder.within(scope, self.grouping.as_deref_mut(), |binder| binder.bind_query(query))
    }

    fn count_subquery(&mut self) -> Result<(), PlanError> {
        self.binder.subqueries += 1;
        if self.binder.subqueries > MAX_SUBQUERIES {
            return Err(unsupported(format!("more than {MAX_SUBQUERIES} subqueries are")));
        }
        Ok(())
    }

    /// `ARRAY(SELECT …)`: empty where the subquery has no rows.
    pub(super) fn bind_array_subquery(
        &mut self,
        query: &ast::Query,
    ) -> Result<BoundExpr, PlanError> {
        self.count_subquery()?;
        let scope = self.scope;
        let (Sorted { rel, order, .. }, bindings) =
            self.binder.within(scope, self.grouping.as_deref_mut(), |binder| {
                binder.bind_query_in_order(query)
            })?;
        order.check(Consumer::Array)?;
        let value = BoundExpr::of_column(0, &rel.columns[0]);
        let (collect, ty) = match value.ty {
            Type::Scalar(element) => (Collect::Array { distinct: false }, Type::Array(element)),
            Type::Array(_) => (Collect::Arrays { distinct: false }, value.ty),
        };
        let entry = collect::entry_of_columns(order.keys(), value);
        let column = |name: &str, ty| Column { name: name.into(), ty, typmod: -1, nullable: true };
        let rows = rel.map(vec![entry.expr], vec![column("entry", entry.ty)]);
        let func = AggregateFunc::Collect(collect, ty);
        let aggregates = vec![Aggregate { func, arg: Some(Expr::Column(0)) }];
        let node = Node::Reduce { input: Box::new(rows), key: vec![], aggregates };
        let rel = Rel { columns: vec![column("array", ty)], node };
        let array = Expr::Column(self.add(ApplyKind::Scalar, bindings, rel)?);
        let empty = Expr::Literal(Datum::array(vec![]), ty);
        let expr = Expr::Coalesce(vec![array, empty]);
        Ok(BoundExpr { expr, ty, typmod: -1, nullable: false })
    }

    /// A subquery of which only matters whether it has rows: what it selects is not computed.
    fn bind_existence(&mut self, query: &ast::Query) -> Result<(Rel, Vec<Binding>), PlanError> {
        let (mut rel, bindings) = self.bind_subquery(query)?;
        loop {
            rel = match rel.node {
                Node::Map { input, .. } | Node::Distinct { input } => *input,
                Node::Partition { input, work, .. } if work.has_rows_of_all() => *input,
                node => return Ok((Rel { columns: rel.columns, node }, bindings)),
            };
        }
    }

    /// A subquery that may fail takes its values from rows only for which it is evaluated at all.
    fn add(
        &mut self,
        kind: ApplyKind,
        mut bindings: Vec<Binding>,
        rel: Rel,
    ) -> Result<usize, PlanError> {
        let is_below = self.grouping.is_none();
        let may_fail = rel.may_fail() || bindings.iter().any(|b| expr::may_fail(&b.value));
        if bindings.iter().any(|binding| reads_window(&binding.value))
            || may_fail && self.guards.iter().any(reads_window)
        {
            let hint = "Compute the window function in a subquery in FROM.";
            return Err(unsupported_hint("a subquery that depends on a window function is", hint));
        }
        if may_fail && !self.guards.is_empty() {
            let guard = Expr::And(self.guards.clone());
            for Binding { value, column, .. } in &mut bindings {
                column.nullable = true;
                *value = Expr::Case {
                    branches: vec![(guard.clone(), value.clone())],
                    otherwise: Box::new(Expr::Literal(Datum::Null, column.ty)),
                };
            }
        }
        Ok(self.subqueries.add(kind, bindings, rel, is_below))
    }

    /// An expression that is a subquery, or compares with one.
    #[inline(never)]
    pub(super) fn bind_subquery_expr(
        &mut self,
        expr: &ast::Expr,
    ) -> Result<Option<BoundExpr>, PlanError> {
        let wanted = unmarked(expr);
        let key = self.known.iter().find(|(known, _)| known == wanted);
        if let Some((_, key)) = key {
            return Ok(Some(key.clone()));
        }
        match expr {
            ast::Expr::Subquery(query) => {
                let mut values = self.bind_row(query, 1)?;
                Ok(values.pop())
            }
            ast::Expr::Exists { subquery, negated } => {
                let (rel, bindings) = self.bind_existence(subquery)?;
                Ok(Some(never_null(negate(self.mark(rel, bindings)?, *negated))))
            }
            ast::Expr::BinaryOp { left, op, right } => {
                let (ast::Expr::Tuple(row), ast::Expr::Subquery(query)) =
                    (strip(left), strip(right))
                else {
                    return Ok(None);
                };
                self.compare_with_row(row, &op.to_string(), query).map(Some)
            }
            _ => match Quantified::of(expr) {
                Some((quantified, negated)) => {
                    let value = self.bind_quantified_value(&quantified)?;
                    Ok(Some(BoundExpr::boolean(negate(value, negated))))
                }
                None => Ok(None),
            },
        }
    }

    /// The columns of the only row of a subquery.
    fn bind_row(&mut self, query: &ast::Query, arity: usize) -> Result<Vec<BoundExpr>, PlanError> {
        let (rel, bindings) = self.bind_subquery(query)?;
        if rel.arity() != arity {
            return Err(invalid("subquery has the wrong number of columns"));
        }
        let columns: Vec<Column> = rel.columns.clone();
        let first = self.add(ApplyKind::Scalar, bindings, rel)?;
        let value = |(i, column): (usize, &Column)| BoundExpr {
            nullable: true,
            ..BoundExpr::of_column(first + i, column)
        };
        Ok(columns.iter().enumerate().map(value).collect())
    }

    /// `(a, b) = (SELECT …)`
    fn compare_with_row(
        &mut self,
        row: &[ast::Expr],
        op: &str,
        query: &ast::Query,
    ) -> Result<BoundExpr, PlanError> {
        let row: Vec<Operand<'_>> = row.iter().map(Operand::of).collect();
        let left = self.bind_all(row.iter().map(|operand| operand.expr))?;
        let right = self.bind_row(query, left.len())?;
        let test = |column: usize, op: &str| {
            let sides = [left[column].clone(), right[column].clone()];
            comparison(op, sides, row[column].collation)
        };
        compare_rows(op, left.len(), test).map(BoundExpr::boolean)
    }

    /// Whether the subquery has a row.
    fn mark(&mut self, rel: Rel, bindings: Vec<Binding>) -> Result<Expr, PlanError> {
        Ok(Expr::Column(self.add(ApplyKind::Mark, bindings, rel)?))
    }

    fn bind_compared(&mut self, quantified: &Quantified<'_>) -> Result<Compared, PlanError> {
        let mut values = self.bind_all(quantified.operands.iter().map(|operand| operand.expr))?;
        values.iter_mut().for_each(|value| value.nullable |= self.is_padded);
        let (rel, mut bindings) = self.bind_subquery(quantified.query)?;
        if rel.arity() != values.len() {
            return Err(invalid("subquery has the wrong number of columns"));
        }
        let mut operands = Vec::new();
        for value in &values {
            if expr::columns_of(&value.expr).is_empty() {
                operands.push(value.clone());
                continue;
            }
            let (operand, binding) = self.binder.new_parameter(value.clone(), "operand");
            operands.push(operand);
            bindings.push(binding);
        }
        let collations = quantified.operands.iter().map(|operand| operand.collation).collect();
        Ok(Compared { rel, bindings, values, operands, collations })
    }

    /// The value of a comparison with ANY or ALL.
    fn bind_quantified_value(&mut self, quantified: &Quantified<'_>) -> Result<Expr, PlanError> {
        let compared = self.bind_compared(quantified)?;
        // Membership is a matter of three subqueries: not within one another.
        let is_membership = quantified.any && quantified.op == "=" && compared.operands.len() == 1;
        if is_membership && !has_subqueries(&compared.rel) {
            return self.bind_membership(quantified, compared);
        }
        let test = compared.test(&quantified.op)?;
        let is_null = Expr::IsNull(Box::new(test.clone()));
        let column =
            |name: &str| Column { name: name.into(), ty: BOOL, typmod: -1, nullable: true };
        let columns = vec![column("comparison"), column("unknown")];
        let tests = compared.rel.map(vec![test, is_null], columns.clone());
        let aggregate = |func, column| Aggregate { func, arg: Some(Expr::Column(column)) };
        let decided = if quantified.any { AggregateFunc::BoolOr } else { AggregateFunc::BoolAnd };
        let aggregates = vec![aggregate(decided, 0), aggregate(AggregateFunc::BoolOr, 1)];
        let node = Node::Reduce { input: Box::new(tests), key: vec![], aggregates };
        let first = self.add(ApplyKind::Scalar, compared.bindings, Rel { columns, node })?;
        // Of no rows both are NULL.
        let is = |func, column| Expr::Call { func, args: vec![Expr::Column(first + column)] };
        let decides = is(if quantified.any { Func::IsTrue } else { Func::IsFalse }, 0);
        Ok(three_valued(decides, is(Func::IsTrue, 1), quantified.any))
    }

    /// `x IN (…)`: whether x is there, else whether NULL is, or x is NULL and anything is there.
    fn bind_membership(
        &mut self,
        quantified: &Quantified<'_>,
        compared: Compared,
    ) -> Result<Expr, PlanError> {
        let tests = compared.tests("=")?;
        let is_nullable = compared.operands[0].nullable;
        let has_nulls = compared.rel.columns[0].nullable;
        let found = self.mark(compared.rel.filter(tests), compared.bindings)?;
        let mut unknown = Vec::new();
        if has_nulls {
            let (rel, bindings) = self.bind_subquery(quantified.query)?;
            unknown.push(self.mark(rel.filter(vec![first_is_null()]), bindings)?);
        }
        if is_nullable {
            unknown.push(self.null_among_rows(quantified, &compared.values[0])?);
        }
        Ok(three_valued(found, Expr::Or(unknown), true))
    }

    /// Whether the operand is NULL and the subquery has a row.
    fn null_among_rows(
        &mut self,
        quantified: &Quantified<'_>,
        operand: &BoundExpr,
    ) -> Result<Expr, PlanError> {
        let (rel, bindings) = self.bind_subquery(quantified.query)?;
        let any = self.mark(rel, bindings)?;
        Ok(Expr::And(vec![Expr::IsNull(Box::new(operand.expr.clone())), any]))
    }

    /// A conjunct of WHERE or ON of which only matters whether it is true: rows with, or without, a partner
    /// in a subquery. Answers what is to be tested besides; `None` if the conjunct is something else.
    pub(super) fn bind_partners(
        &mut self,
        conjunct: &ast::Expr,
    ) -> Result<Option<Vec<Predicate>>, PlanError> {
        let (mut expr, mut negated) = (strip(conjunct), false);
        while let ast::Expr::UnaryOp { op: UnaryOperator::Not, expr: inner } = expr {
            (expr, negated) = (strip(inner), !negated);
        }
        if let ast::Expr::Exists { subquery, negated: inner } = expr {
            let (rel, bindings) = self.bind_existence(subquery)?;
            let kind = if negated != *inner { ApplyKind::Anti } else { ApplyKind::Semi };
            self.add(kind, bindings, rel)?;
            return Ok(Some(vec![]));
        }
        let Some((quantified, inner)) = Quantified::of(expr) else { return Ok(None) };
        let negated = negated != inner;
        let Quantified { op, any, .. } = &quantified;
        let compared = self.bind_compared(&quantified)?;
        let is = |func, test| Predicate::Test(Expr::Call { func, args: vec![test] });
        let is_not = |func, test| {
            let is = Expr::Call { func, args: vec![test] };
            Predicate::Test(Expr::Not(Box::new(is)))
        };
        let (kind, tests) = match (any, negated) {
            (true, false) if op == "=" => (ApplyKind::Semi, compared.tests(op)?),
            (true, false) => (ApplyKind::Semi, vec![Predicate::Test(compared.test(op)?)]),
            (true, true) if op == "=" && compared.is_never_null() => {
                (ApplyKind::Anti, compared.tests(op)?)
            }
            (true, true)
                if op == "=" && compared.operands.len() == 1 && !has_subqueries(&compared.rel) =>
            {
                return self.bind_absence(&quantified, compared).map(Some);
            }
            (true, true) => (ApplyKind::Anti, vec![is_not(Func::IsFalse, compared.test(op)?)]),
            (false, false) => (ApplyKind::Anti, vec![is_not(Func::IsTrue, compared.test(op)?)]),
            (false, true) => (ApplyKind::Semi, vec![is(Func::IsFalse, compared.test(op)?)]),
        };
        self.add(kind, compared.bindings, compared.rel.filter(tests))?;
        Ok(Some(vec![]))
    }

    /// `x NOT IN (…)`: x is not there, nor is NULL, and x is not NULL unless nothing is there.
    fn bind_absence(
        &mut self,
        quantified: &Quantified<'_>,
        compared: Compared,
    ) -> Result<Vec<Predicate>, PlanError> {
        let tests = compared.tests("=")?;
        let is_nullable = compared.operands[0].nullable;
        let has_nulls = compared.rel.columns[0].nullable;
        self.add(ApplyKind::Anti, compared.bindings, compared.rel.filter(tests))?;
        if has_nulls {
            let (rel, bindings) = self.bind_subquery(quantified.query)?;
            self.add(ApplyKind::Anti, bindings, rel.filter(vec![first_is_null()]))?;
        }
        if !is_nullable {
            return Ok(vec![]);
        }
        let unknown = self.null_among_rows(quantified, &compared.values[0])?;
        Ok(vec![Predicate::Test(Expr::Not(Box::new(unknown)))])
    }
}

/// Whether a relation has subqueries in its expressions.
fn has_subqueries(rel: &Rel) -> bool {
    matches!(rel.node, Node::Apply(_)) || rel.children().into_iter().any(has_subqueries)
}

fn first_is_null() -> Predicate {
    Predicate::Test(Expr::IsNull(Box::new(Expr::Column(0))))
}

/// `decisive` if `decides`, else NULL if `unknown`, else the opposite.
fn three_valued(decides: Expr, unknown: Expr, decisive: bool) -> Expr {
    let literal = |value| Expr::Literal(Datum::Bool(value), BOOL);
    let mut branches = vec![(decides, literal(decisive))];
    if unknown != Expr::Or(vec![]) {
        branches.push((unknown, Expr::Literal(Datum::Null, BOOL)));
    }
    Expr::Case { branches, otherwise: Box::new(literal(!decisive)) }
}

fn negate(expr: Expr, negated: bool) -> Expr {
    if negated {
        Expr::Not(Box::new(expr))
    } else {
        expr
    }
}

fn never_null(expr: Expr) -> BoundExpr {
    BoundExpr { nullable: false, ..BoundExpr::boolean(expr) }
}
