//! UNION (ALL), VALUES, and bringing columns to common types and names.

use super::super::refuse::{invalid, unsupported};
use super::scalar::Scalar;
use super::{resolve, Binder};
use crate::error::PlanError;
use crate::expr::Expr;
use crate::ir::{Node, Rel};
use crate::row::Row;
use crate::types::Column;
use sqlparser::ast::{self, SetExpr, SetOperator, SetQuantifier};

impl Binder<'_> {
    pub(super) fn bind_set_expr(&mut self, body: &SetExpr) -> Result<Rel, PlanError> {
        match body {
            SetExpr::Select(select) => self.bind_select(select),
            SetExpr::Query(query) => self.bind_query(query),
            SetExpr::Values(values) => self.bind_values(values),
            SetExpr::SetOperation { .. } => self.bind_set_operations(body),
            SetExpr::Table(_) => Err(unsupported("the TABLE command is")),
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                Err(unsupported("data-modifying statements in WITH are"))
            }
        }
    }

    /// A chain of set operations, which nests to the left: from the inside out, without recursion.
    fn bind_set_operations(&mut self, body: &SetExpr) -> Result<Rel, PlanError> {
        let mut arms = Vec::new();
        let mut innermost = body;
        while let SetExpr::SetOperation { left, op, set_quantifier, right } = innermost {
            arms.push((is_union(*op, *set_quantifier)?, right));
            innermost = left;
        }
        let mut rel = self.bind_set_expr(innermost)?;
        for (all, right) in arms.into_iter().rev() {
            let right = self.bind_set_expr(right)?;
            rel = self.bind_union(rel, right, all)?;
        }
        Ok(rel)
    }

    pub(super) fn bind_union(
        &mut self,
        left: Rel,
        right: Rel,
        all: bool,
    ) -> Result<Rel, PlanError> {
        let columns = union_columns(&left.columns, &right.columns)?;
        let inputs = vec![coerce(left, &columns)?, coerce(right, &columns)?];
        let union = Rel::union(inputs, columns);
        Ok(if all { union } else { union.distinct() })
    }

    fn bind_values(&mut self, values: &ast::Values) -> Result<Rel, PlanError> {
        let mut rows: Vec<Vec<Scalar>> = Vec::new();
        for row in &values.rows {
            rows.push(row.iter().map(|e| self.bind_constant(e)).collect::<Result<_, _>>()?);
        }
        let Some(first) = rows.first() else { return Err(invalid("VALUES without rows")) };
        let mut columns: Vec<Column> =
            first.iter().enumerate().map(|(i, s)| s.column(&format!("column{}", i + 1))).collect();
        for row in &rows[1..] {
            if row.len() != columns.len() {
                return Err(invalid("VALUES lists must all be the same length"));
            }
            let row: Vec<Column> = row.iter().map(|s| s.column("")).collect();
            columns = union_columns(&columns, &row)?;
        }
        // Rows whose expressions fail stay expressions: the failure belongs to the data.
        let (mut constant, mut computed) = (Vec::new(), Vec::new());
        for row in rows {
            let cast = |(scalar, column): (Scalar, &Column)| resolve::coerce(scalar, column.ty);
            let row: Vec<Expr> =
                row.into_iter().zip(&columns).map(cast).collect::<Result<_, _>>()?;
            match row.iter().map(|expr| expr.eval(&[])).collect::<Result<Vec<_>, _>>() {
                Ok(values) => constant.push((Row::pack(values.iter()), 1)),
                Err(_) => computed.push(Rel::unit().map(row, columns.clone())),
            }
        }
        let constant = Rel { columns: columns.clone(), node: Node::Constant { rows: constant } };
        if computed.is_empty() {
            return Ok(constant);
        }
        computed.insert(0, constant);
        Ok(Rel::union(computed, columns))
    }
}

/// Whether the operation is UNION ALL; refuses INTERSECT and EXCEPT.
pub(super) fn is_union(op: SetOperator, quantifier: SetQuantifier) -> Result<bool, PlanError> {
    match (op, quantifier) {
        (SetOperator::Union, SetQuantifier::All) => Ok(true),
        (SetOperator::Union, SetQuantifier::None | SetQuantifier::Distinct) => Ok(false),
        (SetOperator::Union, _) => Err(unsupported("UNION BY NAME is")),
        (op, _) => Err(unsupported(format!("{op} is"))),
    }
}

/// The columns of a union: names of the left side, common types.
pub(super) fn union_columns(left: &[Column], right: &[Column]) -> Result<Vec<Column>, PlanError> {
    if left.len() != right.len() {
        return Err(invalid("each UNION query must have the same number of columns"));
    }
    let unify = |(l, r): (&Column, &Column)| {
        let ty = resolve::common_type(l.ty, r.ty)?;
        let same = (l.ty, l.typmod) == (r.ty, r.typmod);
        let typmod = if same { l.typmod } else { -1 };
        Ok(Column { name: l.name.clone(), ty, typmod, nullable: l.nullable || r.nullable })
    };
    left.iter().zip(right).map(unify).collect()
}

/// The relation with its columns cast to the types of others.
pub(super) fn coerce(rel: Rel, columns: &[Column]) -> Result<Rel, PlanError> {
    let mut outputs = Vec::with_capacity(columns.len());
    for (i, (from, to)) in rel.columns.iter().zip(columns).enumerate() {
        outputs.push(resolve::coerce(Scalar::of_column(i, from), to.ty)?);
    }
    let cast = |(from, to): (&Column, &Column)| Column { nullable: from.nullable, ..to.clone() };
    let columns = rel.columns.iter().zip(columns).map(cast).collect();
    Ok(rel.map(outputs, columns))
}

/// The relation with its columns renamed by an alias's column list.
pub(super) fn rename(mut rel: Rel, alias: &ast::TableAlias) -> Result<Rel, PlanError> {
    if alias.columns.len() > rel.arity() {
        return Err(invalid(format!("too many column aliases for \"{}\"", alias.name.value)));
    }
    for (column, alias) in rel.columns.iter_mut().zip(&alias.columns) {
        column.name.clone_from(&alias.name.value);
    }
    Ok(rel)
}
