//! FROM: tables, subqueries and joins to a relation and the names in it.

use super::super::ddl::table_name;
use super::super::refuse::{invalid, unsupported, unsupported_hint};
use super::scalar::{Scalar, ScalarBinder};
use super::scope::Scope;
use super::setop::rename;
use super::{resolve, Binder};
use crate::error::PlanError;
use crate::ir::{Node, Predicate, Rel, Typed};
use sqlparser::ast::{self, JoinConstraint, JoinOperator, TableFactor, TableWithJoins};

/// A bound item of FROM.
struct Item {
    rel: Rel,
    scope: Scope,
}

impl Binder<'_> {
    /// The cross product of the items; without items one row without columns.
    pub(super) fn bind_from(&mut self, from: &[TableWithJoins]) -> Result<(Rel, Scope), PlanError> {
        let mut items = Vec::new();
        for item in from {
            items.push(self.bind_joins(item)?);
        }
        if items.len() <= 1 {
            let single = items.pop().map(|item| (item.rel, item.scope));
            return Ok(single.unwrap_or_else(|| (Rel::unit(), Scope::default())));
        }
        let mut scope = Scope::default();
        let mut inputs = Vec::new();
        for item in items {
            scope = scope.join(item.scope);
            inputs.push(item.rel);
        }
        Ok((join(inputs, vec![]), scope))
    }

    fn bind_joins(&mut self, item: &TableWithJoins) -> Result<Item, PlanError> {
        let mut left = self.bind_factor(&item.relation)?;
        for step in &item.joins {
            let constraint = inner_constraint(&step.join_operator)?;
            let right = self.bind_factor(&step.relation)?;
            left = self.bind_join(left, right, constraint)?;
        }
        Ok(left)
    }

    fn bind_join(
        &mut self,
        left: Item,
        right: Item,
        constraint: &JoinConstraint,
    ) -> Result<Item, PlanError> {
        let split = left.rel.arity();
        let sides = (left.scope.clone(), right.scope.clone());
        let mut scope = left.scope.join(right.scope);
        let mut predicates = Vec::new();
        match constraint {
            JoinConstraint::On(condition) => {
                predicates = ScalarBinder::new(&scope).bind_predicates(condition)?;
            }
            JoinConstraint::Using(names) => {
                let mut merged = Vec::new();
                for name in names {
                    let name = table_name(name)?.name;
                    let (predicate, column) = merge_columns(&name, &sides, split)?;
                    predicates.push(predicate);
                    merged.push((name, column));
                }
                scope = scope.merge(merged);
            }
            JoinConstraint::Natural => return Err(invalid("NATURAL in canonical SQL")),
            JoinConstraint::None => {}
        }
        Ok(Item { rel: join(vec![left.rel, right.rel], predicates), scope })
    }

    fn bind_factor(&mut self, factor: &TableFactor) -> Result<Item, PlanError> {
        match factor {
            TableFactor::Table { name, alias, args, sample, with_ordinality, .. } => {
                if args.is_some() || *with_ordinality {
                    return Err(unsupported("functions in FROM are"));
                }
                if sample.is_some() {
                    return Err(unsupported("TABLESAMPLE is"));
                }
                let name = table_name(name)?;
                let rel = self.bind_relation(&name)?;
                named(rel, alias.as_ref(), &name.name)
            }
            TableFactor::Derived { lateral: true, .. } => Err(unsupported("LATERAL is")),
            TableFactor::Derived { sample: Some(_), .. } => Err(unsupported("TABLESAMPLE is")),
            TableFactor::Derived { subquery, alias, .. } => {
                let rel = self.bind_query(subquery)?;
                named(rel, alias.as_ref(), "")
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let item = self.bind_joins(table_with_joins)?;
                let Some(alias) = alias else { return Ok(item) };
                let names = alias.columns.iter().map(|column| column.name.value.clone());
                let scope = item.scope.alias(&alias.name.value, names.collect())?;
                Ok(Item { scope, ..item })
            }
            TableFactor::Function { .. }
            | TableFactor::TableFunction { .. }
            | TableFactor::UNNEST { .. } => Err(unsupported("functions in FROM are")),
            TableFactor::XmlTable { .. } => Err(unsupported("XMLTABLE is")),
            TableFactor::JsonTable { .. } => Err(unsupported("JSON_TABLE is")),
            _ => Err(unsupported("this kind of table expression is")),
        }
    }
}

fn join(inputs: Vec<Rel>, predicates: Vec<Predicate>) -> Rel {
    let columns = inputs.iter().flat_map(|input| input.columns.iter().cloned()).collect();
    Rel { columns, node: Node::Join { inputs, predicates } }
}

fn named(rel: Rel, alias: Option<&ast::TableAlias>, name: &str) -> Result<Item, PlanError> {
    let rel = match alias {
        Some(alias) => rename(rel, alias)?,
        None => rel,
    };
    let name = alias.map_or(name, |alias| alias.name.value.as_str());
    let scope = Scope::table(name, &rel.columns);
    Ok(Item { rel, scope })
}

/// The equality that USING a column means, and the merged column: of the sides the one that has the
/// common type already.
fn merge_columns(
    name: &str,
    (left, right): &(Scope, Scope),
    split: usize,
) -> Result<(Predicate, Scalar), PlanError> {
    let left = left.column(None, name)?;
    let right = right.column(None, name)?.shifted(split);
    let ty = resolve::common_type(left.ty, right.ty)?;
    let cast = |side: &Scalar| -> Result<Typed, PlanError> {
        Ok(Typed { expr: resolve::coerce(side.clone(), ty)?, ty })
    };
    let func = resolve::equality(ty, ty)?;
    let predicate = Predicate::Equal { left: cast(&left)?, right: cast(&right)?, func };
    let merged = if left.ty == ty || right.ty != ty { left } else { right };
    let expr = resolve::coerce(merged.clone(), ty)?;
    Ok((predicate, Scalar { expr, ty, ..merged }))
}

fn inner_constraint(operator: &JoinOperator) -> Result<&JoinConstraint, PlanError> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::CrossJoin(constraint) => Ok(constraint),
        JoinOperator::Left(_)
        | JoinOperator::LeftOuter(_)
        | JoinOperator::Right(_)
        | JoinOperator::RightOuter(_)
        | JoinOperator::FullOuter(_) => {
            let hint = "Use an inner join, or a UNION ALL of two inner queries.";
            Err(unsupported_hint("outer joins are", hint))
        }
        _ => Err(unsupported("this kind of join is")),
    }
}
