//! UNION, INTERSECT and EXCEPT (ALL), VALUES, and bringing columns to common types and names.

use super::super::refuse::{invalid, unsupported};
use super::binder::Binder;
use super::bound_expr::BoundExpr;
use super::expr_binder::ExprBinder;
use super::order::Ordering;
use super::resolve;
use super::row_order::{RowOrder, Sorted};
use super::scope::Scope;
use crate::error::PlanError;
use crate::ir::{Node, Predicate, Rel};
use plan::expr::Expr;
use plan::row::Row;
use plan::types::{self, Column, Type};
use plan::value::Datum;
use plan::{Aggregate, AggregateFunc};
use sqlparser::ast::{self, SetExpr, SetOperator, SetQuantifier};

const INT4: Type = Type::Scalar(types::Scalar::Int4);
const INT8: Type = Type::Scalar(types::Scalar::Int8);

/// What a set operation does with what is before, whether it is one of ALL, and its right side.
type Arm<'q> = (SetOperator, bool, &'q SetExpr);

impl Binder<'_> {
    pub(super) fn bind_set_expr(&mut self, body: &SetExpr) -> Result<Rel, PlanError> {
        Ok(self.bind_body(body, false)?.into_rel())
    }

    /// The same, whose order may be wanted.
    pub(super) fn bind_body(
        &mut self,
        body: &SetExpr,
        in_order: bool,
    ) -> Result<Sorted, PlanError> {
        match body {
            SetExpr::Select(select) => self.bind_select(select, &Ordering::none(in_order)),
            SetExpr::Query(query) => self.bind_with(query, in_order),
            SetExpr::Values(values) => Ok(Sorted::unordered(self.bind_values(values)?)),
            SetExpr::SetOperation { .. } => self.bind_set_operations(body, in_order),
            SetExpr::Table(_) => Err(unsupported("the TABLE command is")),
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                Err(unsupported("data-modifying statements in WITH are"))
            }
        }
    }

    /// A chain of set operations, which nests to the left: from the inside out, without recursion.
    fn bind_set_operations(&mut self, body: &SetExpr, in_order: bool) -> Result<Sorted, PlanError> {
        let mut arms: Vec<Arm<'_>> = Vec::new();
        let mut innermost = body;
        while let SetExpr::SetOperation { left, op, set_quantifier, right } = innermost {
            arms.push((*op, is_all(*set_quantifier)?, right));
            innermost = left;
        }
        // UNION ALL of many is one union.
        let nesting = arms.iter().filter(|(op, all, _)| *op != SetOperator::Union || !all).count();
        self.deeper(1 + nesting, |binder| binder.bind_arms(innermost, arms, in_order))
    }

    fn bind_arms(
        &mut self,
        first: &SetExpr,
        arms: Vec<Arm<'_>>,
        in_order: bool,
    ) -> Result<Sorted, PlanError> {
        let mut left = self.bind_body(first, in_order)?;
        for (op, all, right) in arms.into_iter().rev() {
            let right = self.bind_body(right, in_order)?;
            // The rows of one side come behind those of the other; all else is sorted or hashed.
            let order = match (op, all, &left.order) {
                (SetOperator::Union, true, RowOrder::Any) => right.order.clone(),
                (SetOperator::Union, true, order) => order.clone(),
                _ => RowOrder::Any,
            };
            let (l, r) = (left.into_rel(), right.into_rel());
            let rel = match op {
                SetOperator::Union => self.bind_union(l, r, all)?,
                SetOperator::Intersect => combine(l, r, Combination::Intersect, all)?,
                SetOperator::Except | SetOperator::Minus => {
                    combine(l, r, Combination::Except, all)?
                }
            };
            left = Sorted { order: order.lost(None, "UNION ALL"), ..Sorted::unordered(rel) };
        }
        Ok(left)
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

    /// A row of VALUES, over the one row of what its subqueries return if it has some.
    fn bind_row(&mut self, row: &[ast::Expr]) -> Result<(Vec<BoundExpr>, Option<Rel>), PlanError> {
        let scope = Scope::default();
        let mut binder = ExprBinder::new(self, &scope);
        let row = binder.bind_all(row)?;
        if binder.subqueries.len() == 0 {
            return Ok((row, None));
        }
        let (rel, places) = binder.subqueries.attach(Rel::unit());
        let resolved =
            |scalar: BoundExpr| BoundExpr { expr: places.resolve(&scalar.expr), ..scalar };
        Ok((row.into_iter().map(resolved).collect(), Some(rel)))
    }

    fn bind_values(&mut self, values: &ast::Values) -> Result<Rel, PlanError> {
        let mut rows: Vec<Vec<BoundExpr>> = Vec::new();
        // What the subqueries of a row return, if it has some.
        let mut found: Vec<Option<Rel>> = Vec::new();
        for row in &values.rows {
            let (row, rel) = self.bind_row(row)?;
            rows.push(row);
            found.push(rel);
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
        for (row, found) in rows.into_iter().zip(found) {
            let cast = |(scalar, column): (BoundExpr, &Column)| resolve::coerce(scalar, column.ty);
            let row: Vec<Expr> =
                row.into_iter().zip(&columns).map(cast).collect::<Result<_, _>>()?;
            if let Some(rel) = found {
                computed.push(rel.map(row, columns.clone()));
                continue;
            }
            match row.iter().map(|expr| expr.eval(&[])).collect::<Result<Vec<_>, _>>() {
                Ok(values) => constant.push((Row::pack(values.iter()), 1)),
                Err(_) => computed.push(Rel::unit().map(row, columns.clone())),
            }
        }
        if !constant.is_empty() || computed.is_empty() {
            let node = Node::Constant { rows: constant };
            computed.insert(0, Rel { columns: columns.clone(), node });
        }
        match computed.len() {
            1 => Ok(computed.remove(0)),
            _ => Ok(Rel::union(computed, columns)),
        }
    }
}

/// Whether duplicates are kept.
pub(super) fn is_all(quantifier: SetQuantifier) -> Result<bool, PlanError> {
    match quantifier {
        SetQuantifier::All => Ok(true),
        SetQuantifier::None | SetQuantifier::Distinct => Ok(false),
        _ => Err(unsupported("UNION BY NAME is")),
    }
}

/// A set operation that compares how often a row is on either side.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Combination {
    Intersect,
    Except,
}

/// Groups the rows of both sides and counts those of each.
fn combine(left: Rel, right: Rel, op: Combination, all: bool) -> Result<Rel, PlanError> {
    let columns = union_columns(&left.columns, &right.columns)?;
    let arity = columns.len();
    // The number of a side in the column of that side: it is these that EXPLAIN shows.
    let flag = |name: &str| Column { name: name.into(), ty: INT4, typmod: -1, nullable: true };
    let mut flagged_columns = columns.clone();
    flagged_columns.extend([flag("on the left"), flag("on the right")]);
    let flagged = |rel: Rel, flags: [Datum; 2]| -> Result<Rel, PlanError> {
        let mut outputs: Vec<Expr> = (0..arity).map(Expr::Column).collect();
        outputs.extend(flags.map(|flag| Expr::Literal(flag, INT4)));
        Ok(coerce(rel, &columns)?.map(outputs, flagged_columns.clone()))
    };
    let left = flagged(left, [Datum::Int4(1), Datum::Null])?;
    let inputs = vec![left, flagged(right, [Datum::Null, Datum::Int4(2)])?];
    let input = Box::new(Rel::union(inputs, flagged_columns.clone()));
    let count = |column| Aggregate { func: AggregateFunc::Count, arg: Some(Expr::Column(column)) };
    let copies = |name: &str| Column { name: name.into(), ty: INT8, typmod: -1, nullable: false };
    let mut counted_columns = columns.clone();
    counted_columns.extend([copies("left copies"), copies("right copies")]);
    let node = Node::Reduce {
        input,
        key: (0..arity).collect(),
        aggregates: vec![count(arity), count(arity + 1)],
    };
    let counted = Rel { columns: counted_columns, node };
    let column = |i: usize| BoundExpr::of_column(i, &counted.columns[i]);
    let (l, r) = (column(arity), column(arity + 1));
    let zero = || BoundExpr { expr: Expr::Literal(Datum::Int8(0), INT8), ..l.clone() };
    let test = |op: &str, a: BoundExpr, b: BoundExpr| -> Result<Predicate, PlanError> {
        Ok(Predicate::Test(resolve::operator(op, vec![a, b])?.expr))
    };
    let is_left = test(">", l.clone(), zero())?;
    let predicates = match (op, all) {
        (Combination::Intersect, _) => vec![is_left, test(">", r.clone(), zero())?],
        (Combination::Except, false) => vec![is_left, test("=", r.clone(), zero())?],
        (Combination::Except, true) => vec![test(">", l.clone(), r.clone())?],
    };
    let mut outputs: Vec<Expr> = (0..arity).map(Expr::Column).collect();
    if !all {
        return Ok(counted.filter(predicates).map(outputs, columns));
    }
    outputs.push(match op {
        Combination::Except => resolve::operator("-", vec![l, r])?.expr,
        Combination::Intersect => Expr::Case {
            branches: vec![(resolve::operator("<", vec![l.clone(), r.clone()])?.expr, l.expr)],
            otherwise: Box::new(r.expr),
        },
    });
    let mut repeated_columns = columns.clone();
    repeated_columns.push(copies("copies"));
    let input = Box::new(counted.filter(predicates).map(outputs, repeated_columns));
    Ok(Rel { columns, node: Node::Repeat { input } })
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
        outputs.push(resolve::coerce(BoundExpr::of_column(i, from), to.ty)?);
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
