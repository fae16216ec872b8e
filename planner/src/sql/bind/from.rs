//! FROM: tables, subqueries and joins to a relation and the names in it.

use super::super::ddl::table_name;
use super::super::refuse::{invalid, unsupported, unsupported_hint};
use super::binder::{Binder, BESIDE};
use super::bound_expr::BoundExpr;
use super::conditions::{Clause, Conditions};
use super::mutual;
use super::resolve;
use super::row_order::Sorted;
use super::scope::Scope;
use super::setop::rename;
use super::table_function::FunctionItem;
use crate::error::PlanError;
use crate::ir::{ApplyKind, Binding, Predicate, Preserved, Rel, Typed};
use plan::expr::{self, Expr};
use sqlparser::ast::{self, JoinConstraint, JoinOperator, TableFactor, TableWithJoins};

/// A bound item of FROM.
struct Item {
    rel: Rel,
    scope: Scope,
}

impl Binder<'_> {
    /// The cross product of the items, whose order may be wanted; without items one row without columns.
    pub(super) fn bind_from(
        &mut self,
        from: &[TableWithJoins],
        in_order: bool,
    ) -> Result<(Rel, Scope), PlanError> {
        let outer = std::mem::replace(&mut self.siblings_from, self.levels.len());
        let bound = self.deeper(from.len() / BESIDE, |binder| binder.bind_items(from, in_order));
        self.siblings_from = outer;
        bound
    }

    fn bind_items(
        &mut self,
        from: &[TableWithJoins],
        in_order: bool,
    ) -> Result<(Rel, Scope), PlanError> {
        let mut scope = Scope::default();
        let mut inputs = Vec::new();
        for item in from {
            let (item, bindings) =
                self.beside(&scope, |binder| binder.bind_joins(item, in_order))?;
            scope = scope.join(item.scope);
            if bindings.is_empty() {
                inputs.push(item.rel);
            } else {
                let left = product(inputs);
                inputs = vec![Rel::apply(ApplyKind::Cross, bindings, left, item.rel)];
            }
        }
        Ok((product(inputs), scope))
    }

    fn bind_joins(&mut self, item: &TableWithJoins, in_order: bool) -> Result<Item, PlanError> {
        let levels = item.joins.len() / BESIDE;
        self.deeper(levels, |binder| binder.bind_join_steps(item, in_order))
    }

    /// Joins nest to the left.
    fn bind_join_steps(
        &mut self,
        item: &TableWithJoins,
        in_order: bool,
    ) -> Result<Item, PlanError> {
        let mut left = self.bind_factor(&item.relation, in_order)?;
        for step in &item.joins {
            let (kind, constraint) = kind_of(&step.join_operator)?;
            let (right, bindings) =
                self.beside(&left.scope, |binder| binder.bind_factor(&step.relation, in_order))?;
            left = self.bind_join(kind, (left, right), bindings, constraint)?;
        }
        Ok(left)
    }

    #[inline(never)]
    fn bind_join(
        &mut self,
        kind: JoinKind,
        (left, right): (Item, Item),
        bindings: Vec<Binding>,
        constraint: &JoinConstraint,
    ) -> Result<Item, PlanError> {
        let split = left.rel.arity();
        let sides = (left.scope.clone(), right.scope.clone());
        let matched = left.scope.clone().join(right.scope.clone());
        let mut scope = kind.pad(left.scope, right.scope);
        let mut predicates = Vec::new();
        let mut on = None;
        match constraint {
            JoinConstraint::On(condition) => {
                on = Some(self.bind_conditions(&matched, Clause::On, condition)?);
            }
            JoinConstraint::Using(names) => {
                let mut merged = Vec::new();
                for name in names {
                    let name = table_name(name)?.name;
                    let (predicate, column) = merge_columns(kind, &name, &sides, split)?;
                    predicates.push(predicate);
                    merged.push((name, column));
                }
                scope = scope.merge(merged);
            }
            JoinConstraint::Natural => return Err(invalid("NATURAL in canonical SQL")),
            JoinConstraint::None => {}
        }
        let conditions = on.unwrap_or_else(|| Conditions::from_predicates(predicates));
        let rel = if bindings.is_empty() && !conditions.has_subqueries() {
            kind.join(left.rel, right.rel, conditions.into_predicates())
        } else {
            self.join_each(kind, (left.rel, right.rel), bindings, conditions)?
        };
        Ok(Item { rel, scope })
    }

    /// A join whose right side has parameters that rows of the left one bind, or whose conditions have subqueries.
    fn join_each(
        &mut self,
        kind: JoinKind,
        (left, right): (Rel, Rel),
        bindings: Vec<Binding>,
        conditions: Conditions,
    ) -> Result<Rel, PlanError> {
        match kind {
            JoinKind::Inner if bindings.is_empty() => {
                Ok(conditions.apply(self, Rel::join(vec![left, right], vec![])))
            }
            JoinKind::Inner => {
                Ok(conditions.apply(self, Rel::apply(ApplyKind::Cross, bindings, left, right)))
            }
            JoinKind::Left => Ok(conditions.left_join_each(self, (left, right), bindings)),
            JoinKind::Right => {
                let (l, r) = (left.arity(), right.arity());
                let exchanged = |expr: &Expr| expr::renumber(expr, &|c| exchange(c, l, r));
                let conditions = conditions.map_exprs(&exchanged);
                let joined = conditions.left_join_each(self, (right, left), bindings);
                Ok(joined.project(&(r..l + r).chain(0..r).collect::<Vec<_>>()))
            }
            JoinKind::Full => Err(unsupported_hint(
                "a subquery in the condition of a FULL JOIN is",
                "Write a LEFT JOIN, and UNION ALL the rows of the other side that have no partner.",
            )),
        }
    }

    fn bind_factor(&mut self, factor: &TableFactor, in_order: bool) -> Result<Item, PlanError> {
        if let Some((args, alias)) = mutual::reference(factor) {
            let rows = self.bind_recursive_reference(args, alias)?;
            return named(rows, Some(alias), "");
        }
        if let Some(item) = FunctionItem::of(factor)? {
            let rel = self.laterally(|binder| binder.bind_function_item(&item))?;
            return named(Sorted::unordered(rel), item.alias, "");
        }
        match factor {
            TableFactor::Table { name, alias, sample, with_ordinality, .. } => {
                if *with_ordinality {
                    return Err(unsupported(format!("{name} in FROM is")));
                }
                if sample.is_some() {
                    return Err(unsupported("TABLESAMPLE is"));
                }
                let name = table_name(name)?;
                let rows = self.bind_relation(&name)?;
                named(rows, alias.as_ref(), &name.name)
            }
            TableFactor::Derived { sample: Some(_), .. } => Err(unsupported("TABLESAMPLE is")),
            TableFactor::Derived { lateral, subquery, alias, .. } => {
                let rows = match lateral {
                    true => self.laterally(|binder| binder.bind_with(subquery, in_order))?,
                    false => self.bind_with(subquery, in_order)?,
                };
                named(rows, alias.as_ref(), "")
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let item =
                    self.deeper(1, |binder| binder.bind_joins(table_with_joins, in_order))?;
                let Some(alias) = alias else { return Ok(item) };
                let names = alias.columns.iter().map(|column| column.name.value.clone());
                let scope = item.scope.alias(&alias.name.value, names.collect())?;
                Ok(Item { scope, ..item })
            }
            TableFactor::XmlTable { .. } => Err(unsupported("XMLTABLE is")),
            TableFactor::JsonTable { .. } => Err(unsupported("JSON_TABLE is")),
            _ => Err(unsupported("this kind of table expression is")),
        }
    }
}

/// Where a column of two sides is when they are exchanged. Virtual columns stay.
fn exchange(column: usize, left: usize, right: usize) -> usize {
    if column < left {
        column + right
    } else if column < left + right {
        column - left
    } else {
        column
    }
}

/// The combinations of rows; without items one row without columns.
fn product(mut inputs: Vec<Rel>) -> Rel {
    match inputs.len() {
        0 => Rel::unit(),
        1 => inputs.remove(0),
        _ => Rel::join(inputs, vec![]),
    }
}

fn named(rows: Sorted, alias: Option<&ast::TableAlias>, name: &str) -> Result<Item, PlanError> {
    let rows = match alias {
        Some(alias) => Sorted { rel: rename(rows.rel, alias)?, ..rows },
        None => rows,
    };
    let name = alias.map_or(name, |alias| alias.name.value.as_str());
    let scope = Scope::table(name, &rows);
    Ok(Item { rel: rows.rel, scope })
}

/// A join of two items of FROM.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
}

impl JoinKind {
    /// Whether rows without partner on the left, and on the right, are kept.
    fn preserves(self) -> (bool, bool) {
        match self {
            JoinKind::Inner => (false, false),
            JoinKind::Left => (true, false),
            JoinKind::Right => (false, true),
            JoinKind::Full => (true, true),
        }
    }

    /// The names of both sides, whose columns are NULL in rows of the other one without partner.
    fn pad(self, left: Scope, right: Scope) -> Scope {
        let (keeps_left, keeps_right) = self.preserves();
        let left = if keeps_right { left.nullable() } else { left };
        left.join(if keeps_left { right.nullable() } else { right })
    }

    fn join(self, left: Rel, right: Rel, predicates: Vec<Predicate>) -> Rel {
        let preserved = match self {
            JoinKind::Inner => return Rel::join(vec![left, right], predicates),
            JoinKind::Left => Preserved::Left,
            JoinKind::Full => Preserved::Both,
            JoinKind::Right => {
                let (l, r) = (left.arity(), right.arity());
                let predicates = predicates.iter();
                let predicates = predicates.map(|p| p.renumber(&|c| exchange(c, l, r))).collect();
                let exchanged = JoinKind::Left.join(right, left, predicates);
                return exchanged.project(&(r..l + r).chain(0..r).collect::<Vec<_>>());
            }
        };
        Rel::outer_join(preserved, left, right, predicates)
    }
}

/// The equality that USING a column means, and the merged column: of the sides the one whose rows are kept, or
/// that has the common type already.
fn merge_columns(
    kind: JoinKind,
    name: &str,
    (left, right): &(Scope, Scope),
    split: usize,
) -> Result<(Predicate, BoundExpr), PlanError> {
    let left = left.column(None, name)?;
    let right = right.column(None, name)?.shifted(split);
    let ty = resolve::common_type(left.ty, right.ty)?;
    let cast = |side: &BoundExpr| -> Result<Typed, PlanError> {
        Ok(Typed { expr: resolve::coerce(side.clone(), ty)?, ty })
    };
    let func = resolve::equality(ty, ty)?;
    let predicate = Predicate::Equal { left: cast(&left)?, right: cast(&right)?, func };
    let merged = match kind {
        JoinKind::Inner if left.ty == ty || right.ty != ty => left,
        JoinKind::Left => left,
        JoinKind::Inner | JoinKind::Right => right,
        JoinKind::Full => {
            let sides = vec![resolve::coerce(left.clone(), ty)?, resolve::coerce(right, ty)?];
            return Ok((
                predicate,
                BoundExpr { expr: Expr::Coalesce(sides), ty, nullable: true, ..left },
            ));
        }
    };
    let expr = resolve::coerce(merged.clone(), ty)?;
    Ok((predicate, BoundExpr { expr, ty, ..merged }))
}

fn kind_of(operator: &JoinOperator) -> Result<(JoinKind, &JoinConstraint), PlanError> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::CrossJoin(constraint) => Ok((JoinKind::Inner, constraint)),
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
            Ok((JoinKind::Left, constraint))
        }
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
            Ok((JoinKind::Right, constraint))
        }
        JoinOperator::FullOuter(constraint) => Ok((JoinKind::Full, constraint)),
        _ => Err(unsupported("this kind of join is")),
    }
}
