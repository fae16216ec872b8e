//! Expressions: literals, columns, operators, conditions.

use super::super::refuse::unsupported;
use super::super::types::bind_type;
use super::bound_expr::{negation, BoundExpr, BOOL, TEXT};
use super::expr_binder::ExprBinder;
use super::resolve;
use super::syntax::{chain, is_null, is_number, is_row, strip};
use crate::error::PlanError;
use crate::ir::{Predicate, Typed};
use plan::expr::{self, Expr};
use plan::func::{Func, Quantifier};
use plan::text::parse_literal;
use plan::types::{self, Type};
use plan::value::Datum;
use sqlparser::ast::{self, BinaryOperator, UnaryOperator};

impl ExprBinder<'_, '_> {
    /// A condition as conjuncts.
    pub(super) fn bind_predicates(
        &mut self,
        condition: &ast::Expr,
    ) -> Result<Vec<Predicate>, PlanError> {
        let conjuncts = chain(condition, &BinaryOperator::And).into_iter();
        conjuncts.map(|conjunct| self.bind_predicate(conjunct)).collect()
    }

    /// A condition that is no AND.
    pub(super) fn bind_predicate(&mut self, conjunct: &ast::Expr) -> Result<Predicate, PlanError> {
        if let Some(predicate) = self.bind_null_safe(conjunct)? {
            return Ok(predicate);
        }
        match strip(conjunct) {
            ast::Expr::BinaryOp { left, op: BinaryOperator::Eq, right } if !is_row(left) => {
                let (left, right) = (self.bind(left)?, self.bind(right)?);
                let Ok(func) = resolve::equality(left.ty, right.ty) else {
                    return Ok(Predicate::Test(self.binder.operator("=", vec![left, right])?.expr));
                };
                let typed = |side: BoundExpr| Typed { expr: side.expr, ty: side.ty };
                Ok(Predicate::Equal { left: typed(left), right: typed(right), func })
            }
            other => Ok(Predicate::Test(self.bind(other)?.expr)),
        }
    }

    fn column(&mut self, table: Option<&str>, name: &str) -> Result<BoundExpr, PlanError> {
        if let Some(scalar) = self.scope.find(table, name)? {
            return Ok(scalar);
        }
        match self.binder.outer_column(table, name)? {
            Some(scalar) => Ok(scalar),
            None => self.scope.column(table, name),
        }
    }

    /// `a IS NOT DISTINCT FROM b` of columns is `ARRAY[a] = ARRAY[b]`, which can be a join key: elements
    /// that are NULL are equal, and the arrays are not NULL.
    fn bind_null_safe(&mut self, conjunct: &ast::Expr) -> Result<Option<Predicate>, PlanError> {
        let sides = match strip(conjunct) {
            ast::Expr::IsNotDistinctFrom(left, right) => Some((left, right)),
            ast::Expr::UnaryOp { op: UnaryOperator::Not, expr } => match strip(expr) {
                ast::Expr::IsDistinctFrom(left, right) => Some((left, right)),
                _ => None,
            },
            _ => None,
        };
        let Some((left, right)) = sides.filter(|(_, right)| !is_null(right)) else {
            return Ok(None);
        };
        let (left, right) = (self.bind(left)?, self.bind(right)?);
        let reads_columns = |side: &BoundExpr| !expr::columns_of(&side.expr).is_empty();
        let element = match left.ty {
            Type::Scalar(element)
                if left.ty == right.ty && reads_columns(&left) && reads_columns(&right) =>
            {
                element
            }
            _ => {
                let (same, _) = resolve::comparing(Func::NotDistinctFrom, vec![left, right])?;
                return Ok(Some(Predicate::Test(same)));
            }
        };
        let ty = Type::Array(element);
        let func = resolve::equality(ty, ty)?;
        let array = |side: BoundExpr| Typed { expr: Expr::Array(vec![side.expr]), ty };
        Ok(Some(Predicate::Equal { left: array(left), right: array(right), func }))
    }

    pub(super) fn bind_all<'e>(
        &mut self,
        exprs: impl IntoIterator<Item = &'e ast::Expr>,
    ) -> Result<Vec<BoundExpr>, PlanError> {
        exprs.into_iter().map(|expr| self.bind(expr)).collect()
    }

    /// Expressions of which one is evaluated if `goes_on` is true of each before.
    pub(super) fn bind_in_turn(
        &mut self,
        exprs: &[&ast::Expr],
        goes_on: &dyn Fn(&Expr) -> Expr,
    ) -> Result<Vec<BoundExpr>, PlanError> {
        let depth = self.guards.len();
        let mut bound = Vec::new();
        for expr in exprs {
            // An error ends it all, guards included.
            let scalar = self.bind(expr)?;
            self.guards.push(goes_on(&scalar.expr));
            bound.push(scalar);
        }
        self.guards.truncate(depth);
        Ok(bound)
    }

    /// Any expression.
    ///
    /// What binds one kind of expression is never inlined, so that no level of a deep expression takes the stack that
    /// all kinds together need.
    #[inline(never)]
    pub(super) fn bind(&mut self, expr: &ast::Expr) -> Result<BoundExpr, PlanError> {
        use ast::Expr as E;
        if let Some(value) = self.bind_subquery_expr(expr)? {
            return Ok(value);
        }
        match expr {
            E::Nested(inner) => self.bind(inner),
            // The caller has made sure that the collation makes no difference.
            E::Collate { expr, .. } => self.bind(expr),
            E::Identifier(ident) => self.column(None, &ident.value),
            E::CompoundIdentifier(parts) => match parts.as_slice() {
                [table, column] => self.column(Some(&table.value), &column.value),
                _ => Err(unsupported(format!("the reference {expr} is"))),
            },
            E::Value(value) => bind_value(&value.value),
            E::TypedString(typed) => match &typed.value.value {
                ast::Value::SingleQuotedString(text) => bind_literal(Some(text), &typed.data_type),
                _ => Err(unsupported(format!("the literal {typed} is"))),
            },
            E::Cast { expr, data_type, .. } => self.bind_cast(expr, data_type),
            E::UnaryOp { op, expr } => self.bind_unary(*op, expr),
            E::BinaryOp { left, op, right } => self.bind_binary(expr, left, op, right),
            E::AnyOp { .. } | E::AllOp { .. } | E::InList { .. } => self.bind_quantified(expr),
            E::Case { operand, conditions, else_result, .. } => {
                self.bind_case(operand.as_deref(), conditions, else_result.as_deref())
            }
            E::Array(array) => self.bind_array(&array.elem, None),
            E::Function(function) => self.bind_function(function),
            _ => match self.bind_test(expr)? {
                Some(test) => Ok(test),
                None => self.bind_special(expr),
            },
        }
    }

    /// Tests that are never NULL, and the spelled-out comparisons.
    #[inline(never)]
    fn bind_test(&mut self, expr: &ast::Expr) -> Result<Option<BoundExpr>, PlanError> {
        use ast::Expr as E;
        let test = |func, arg: BoundExpr| Expr::Call { func, args: vec![arg.expr] };
        let not = |expr: Expr| Expr::Not(Box::new(expr));
        let bound = match expr {
            E::IsNull(e) | E::IsUnknown(e) => Expr::IsNull(Box::new(self.bind(e)?.expr)),
            E::IsNotNull(e) | E::IsNotUnknown(e) => not(Expr::IsNull(Box::new(self.bind(e)?.expr))),
            E::IsTrue(e) => test(Func::IsTrue, self.bind(e)?),
            E::IsNotTrue(e) => not(test(Func::IsTrue, self.bind(e)?)),
            E::IsFalse(e) => test(Func::IsFalse, self.bind(e)?),
            E::IsNotFalse(e) => not(test(Func::IsFalse, self.bind(e)?)),
            E::IsDistinctFrom(a, b) if is_null(b) => {
                not(Expr::IsNull(Box::new(self.bind(a)?.expr)))
            }
            E::IsNotDistinctFrom(a, b) if is_null(b) => Expr::IsNull(Box::new(self.bind(a)?.expr)),
            E::IsDistinctFrom(a, b) => {
                let args = self.bind_all([a.as_ref(), b])?;
                resolve::comparing(Func::DistinctFrom, args)?.0
            }
            E::IsNotDistinctFrom(a, b) => {
                let args = self.bind_all([a.as_ref(), b])?;
                resolve::comparing(Func::NotDistinctFrom, args)?.0
            }
            E::Between { expr, negated, low, high } => {
                let args = self.bind_all([expr.as_ref(), low, high])?;
                let [e, low, high] = <[BoundExpr; 3]>::try_from(args)
                    .map_err(|_| unsupported("this form of BETWEEN is"))?;
                e.check_copies(2)?;
                let low = self.binder.operator(">=", vec![e.clone(), low])?.expr;
                let high = self.binder.operator("<=", vec![e, high])?.expr;
                let between = Expr::And(vec![low, high]);
                if *negated {
                    not(between)
                } else {
                    between
                }
            }
            E::Like { negated, any: false, expr, pattern, escape_char: None } => {
                let name = if *negated { "!~~" } else { "~~" };
                let args = self.bind_all([expr.as_ref(), pattern])?;
                resolve::operator(name, args)?.expr
            }
            _ => return Ok(None),
        };
        let nullable = matches!(expr, E::Between { .. } | E::Like { .. });
        Ok(Some(BoundExpr { nullable, ..BoundExpr::boolean(bound) }))
    }

    #[inline(never)]
    fn bind_cast(
        &mut self,
        expr: &ast::Expr,
        data_type: &ast::DataType,
    ) -> Result<BoundExpr, PlanError> {
        match strip(expr) {
            ast::Expr::Value(value) => match &value.value {
                ast::Value::SingleQuotedString(text) => return bind_literal(Some(text), data_type),
                ast::Value::Null => return bind_literal(None, data_type),
                _ => {}
            },
            ast::Expr::Array(array) => {
                let (ty, _) = bind_type(data_type)?;
                let bound = self.bind_array(&array.elem, ty.element())?;
                return resolve::cast(bound, ty, -1);
            }
            ast::Expr::QualifiedWildcard(..) => {
                return Err(unsupported(format!("the whole-row reference {expr} is")));
            }
            _ => {}
        }
        let (ty, typmod) = bind_type(data_type)?;
        let arg = self.bind(expr)?;
        self.binder.cast(arg, ty, typmod)
    }

    #[inline(never)]
    fn bind_unary(&mut self, op: UnaryOperator, expr: &ast::Expr) -> Result<BoundExpr, PlanError> {
        let arg = self.bind(expr)?;
        match op {
            UnaryOperator::Not => Ok(BoundExpr::boolean(Expr::Not(Box::new(arg.expr)))),
            // `-5` in text that was not deparsed: a literal like any other.
            UnaryOperator::Minus if is_number(expr) => {
                let text = format!("-{expr}");
                let value = parse_literal(&text, arg.ty, -1).map_err(bad_literal)?;
                Ok(BoundExpr::literal(value, arg.ty, -1))
            }
            op => resolve::operator(&op.to_string(), vec![arg]),
        }
    }

    #[inline(never)]
    fn bind_binary(
        &mut self,
        whole: &ast::Expr,
        left: &ast::Expr,
        op: &BinaryOperator,
        right: &ast::Expr,
    ) -> Result<BoundExpr, PlanError> {
        match op {
            BinaryOperator::And | BinaryOperator::Or => {
                let is_and = *op == BinaryOperator::And;
                let undecided = |expr: &Expr| {
                    let func = if is_and { Func::IsFalse } else { Func::IsTrue };
                    negation(Expr::Call { func, args: vec![expr.clone()] })
                };
                let args = self.bind_in_turn(&chain(whole, op), &undecided)?;
                let args = args.into_iter().map(|arg| arg.expr).collect();
                Ok(BoundExpr::boolean(if is_and { Expr::And(args) } else { Expr::Or(args) }))
            }
            BinaryOperator::PGCustomBinaryOperator(parts) => match parts.as_slice() {
                [schema, name] if schema == "pg_catalog" => {
                    let args = self.bind_all([left, right])?;
                    resolve::operator(name, args)
                }
                _ => Err(unsupported(format!("operator {} is", parts.join(".")))),
            },
            op => {
                if let Some(sum) = self.bind_interval_sum(left, op, right)? {
                    return Ok(sum);
                }
                let args = self.bind_all([left, right])?;
                self.binder.operator(&op.to_string(), args)
            }
        }
    }

    /// `x op ANY (…)`, `x op ALL (…)`, `x IN (…)`. Over a written array it is a chain of OR or AND.
    #[inline(never)]
    fn bind_quantified(&mut self, expr: &ast::Expr) -> Result<BoundExpr, PlanError> {
        let (left, op, right, any) = match expr {
            ast::Expr::AnyOp { left, compare_op, right, .. } => (left, compare_op, right, true),
            ast::Expr::AllOp { left, compare_op, right } => (left, compare_op, right, false),
            ast::Expr::InList { expr, list, negated } => {
                let op = if *negated { "<>" } else { "=" };
                return self.bind_chain(expr, op, list, !*negated);
            }
            _ => return Err(unsupported(format!("{expr} is"))),
        };
        if let ast::Expr::Array(array) = strip(right) {
            return self.bind_chain(left, &op.to_string(), &array.elem, any);
        }
        let (left, right) = (self.bind(left)?, self.bind(right)?);
        let quantifier = if any { Quantifier::Any } else { Quantifier::All };
        resolve::quantified(&op.to_string(), quantifier, left, right)
    }

    fn bind_chain(
        &mut self,
        left: &ast::Expr,
        op: &str,
        list: &[ast::Expr],
        any: bool,
    ) -> Result<BoundExpr, PlanError> {
        let left = self.bind(left)?;
        left.check_copies(list.len())?;
        let mut tests = Vec::new();
        for element in list {
            let element = self.bind(element)?;
            tests.push(self.binder.operator(op, vec![left.clone(), element])?.expr);
        }
        Ok(BoundExpr::boolean(if any { Expr::Or(tests) } else { Expr::And(tests) }))
    }

    #[inline(never)]
    fn bind_array(
        &mut self,
        elements: &[ast::Expr],
        of: Option<types::Scalar>,
    ) -> Result<BoundExpr, PlanError> {
        let elements = self.bind_all(elements)?;
        let first = elements.first().map(|element| element.ty);
        let element = match first {
            Some(Type::Scalar(scalar)) => scalar,
            Some(Type::Array(_)) => return Err(unsupported("multidimensional arrays are")),
            None => of.ok_or_else(|| unsupported("an empty ARRAY[] without type is"))?,
        };
        let ty = Type::Array(element);
        if elements.is_empty() {
            return Ok(BoundExpr::literal(Datum::array(vec![]), ty, -1));
        }
        let exprs = elements.into_iter().map(|element| element.expr).collect();
        Ok(BoundExpr { expr: Expr::Array(exprs), ty, typmod: -1, nullable: false })
    }

    #[inline(never)]
    fn bind_special(&mut self, expr: &ast::Expr) -> Result<BoundExpr, PlanError> {
        use ast::Expr as E;
        if let E::Extract { field, expr, .. } = expr {
            let field = field.to_string().trim_matches('"').to_lowercase();
            let field = BoundExpr::literal(Datum::text(field), TEXT, -1);
            let args = vec![field, self.bind(expr)?];
            return self.binder.function("extract", args);
        }
        let (name, args): (&str, Vec<&ast::Expr>) = match expr {
            E::Substring { expr, substring_from: Some(from), substring_for, .. } => {
                let mut args = vec![expr.as_ref(), from];
                args.extend(substring_for.as_deref());
                ("substring", args)
            }
            E::Trim { trim_where, trim_what, expr, trim_characters: None } => {
                let name = match trim_where {
                    Some(ast::TrimWhereField::Leading) => "ltrim",
                    Some(ast::TrimWhereField::Trailing) => "rtrim",
                    Some(ast::TrimWhereField::Both) | None => "btrim",
                };
                let mut args = vec![expr.as_ref()];
                args.extend(trim_what.as_deref());
                (name, args)
            }
            E::Position { expr, r#in } => ("position", vec![r#in, expr]),
            E::Ceil { expr, .. } => ("ceil", vec![expr]),
            E::Floor { expr, .. } => ("floor", vec![expr]),
            E::AtTimeZone { timestamp, time_zone } => ("timezone", vec![time_zone, timestamp]),
            E::CompoundFieldAccess { .. } => return self.bind_subscript(expr),
            other => return Err(refusal(other)),
        };
        let args = self.bind_all(args)?;
        self.binder.function(name, args)
    }

    /// `a[i]`
    fn bind_subscript(&mut self, expr: &ast::Expr) -> Result<BoundExpr, PlanError> {
        use ast::{AccessExpr, Subscript};
        if let ast::Expr::CompoundFieldAccess { root, access_chain } = expr {
            let array = match (root.as_ref(), access_chain.as_slice()) {
                // `t.a[i]`
                (
                    ast::Expr::Identifier(table),
                    [AccessExpr::Dot(ast::Expr::Identifier(column)), AccessExpr::Subscript(_)],
                ) => Some(self.column(Some(&table.value), &column.value)?),
                (root, [_]) => Some(self.bind(root)?),
                _ => None,
            };
            if let (Some(array), Some(AccessExpr::Subscript(Subscript::Index { index }))) =
                (array, access_chain.last())
            {
                let index = self.bind(index)?;
                let int4 = Type::Scalar(types::Scalar::Int4);
                if let (Type::Array(element), true) = (array.ty, index.ty == int4) {
                    let args = vec![array.expr, index.expr];
                    let expr = Expr::Call { func: Func::Subscript, args };
                    let ty = Type::Scalar(element);
                    return Ok(BoundExpr { expr, ty, typmod: -1, nullable: true });
                }
            }
        }
        Err(unsupported(format!("the expression {expr} is")))
    }
}

#[inline(never)]
fn bind_value(value: &ast::Value) -> Result<BoundExpr, PlanError> {
    match value {
        ast::Value::Number(text, _) => bind_number(text),
        ast::Value::Boolean(value) => Ok(BoundExpr::literal(Datum::Bool(*value), BOOL, -1)),
        ast::Value::Null => Ok(BoundExpr::literal(Datum::Null, TEXT, -1)),
        ast::Value::SingleQuotedString(text) => {
            Ok(BoundExpr::literal(Datum::text(text.as_str()), TEXT, -1))
        }
        other => Err(unsupported(format!("the literal {other} is"))),
    }
}

/// An unadorned number: the smallest of integer, bigint, numeric that holds it.
fn bind_number(text: &str) -> Result<BoundExpr, PlanError> {
    let ty = if text.parse::<i32>().is_ok() {
        types::Scalar::Int4
    } else if text.parse::<i64>().is_ok() {
        types::Scalar::Int8
    } else {
        types::Scalar::Numeric
    };
    let value = parse_literal(text, Type::Scalar(ty), -1).map_err(bad_literal)?;
    Ok(BoundExpr::literal(value, Type::Scalar(ty), -1))
}

#[inline(never)]
fn bind_literal(text: Option<&str>, data_type: &ast::DataType) -> Result<BoundExpr, PlanError> {
    let (ty, typmod) = bind_type(data_type)?;
    let value = match text {
        Some(text) => parse_literal(text, ty, typmod).map_err(bad_literal)?,
        None => Datum::Null,
    };
    Ok(BoundExpr::literal(value, ty, typmod))
}

/// Literals were read by PostgreSQL before; what our reader does not know is refused.
fn bad_literal(error: plan::error::DataError) -> PlanError {
    unsupported(format!("a literal ({}) is", error.message))
}

fn refusal(expr: &ast::Expr) -> PlanError {
    use ast::Expr as E;
    match expr {
        E::Tuple(_) => unsupported("row comparisons and ROW(…) are"),
        E::QualifiedWildcard(..) | E::Wildcard(_) => {
            unsupported(format!("the whole-row reference {expr} is"))
        }
        E::Overlay { .. } => unsupported("OVERLAY is"),
        E::ILike { .. } => unsupported("ILIKE is"),
        E::SimilarTo { .. } => unsupported("SIMILAR TO is"),
        E::Interval(_) => unsupported("type interval is"),
        other => unsupported(format!("the expression {other} is")),
    }
}
