//! SELECT … FROM … WHERE … GROUP BY … HAVING.

use super::super::refuse::{unsupported, unsupported_hint};
use super::aggregate::Grouping;
use super::grouping_sets::Keys;
use super::scalar::{Scalar, ScalarBinder};
use super::scope::{Named, Scope};
use super::subquery::{self, Subqueries};
use super::Binder;
use crate::error::PlanError;
use crate::expr::Expr;
use crate::ir::{Predicate, Rel};
use crate::types::Column;
use sqlparser::ast::{self, Distinct, SelectItem};

impl Binder<'_> {
    pub(super) fn bind_select(&mut self, select: &ast::Select) -> Result<Rel, PlanError> {
        refuse_clauses(select)?;
        let (mut rel, scope) = self.bind_from(&select.from)?;
        if let Some(condition) = &select.selection {
            rel = self.bind_conditions(&scope, condition)?.apply(rel);
        }
        let Keys { keys, sets, is_there: grouped } = Keys::of(&select.group_by)?;
        let mut grouping = Grouping::default();
        let mut binder = ScalarBinder::new(self, &scope);
        let bound_keys = binder.bind_all(&keys)?;
        binder.known = keys.into_iter().zip(bound_keys.iter().cloned()).collect();
        binder.grouping = Some(&mut grouping);
        // A key is NULL where it is not grouped by.
        let is_padded = sets.iter().any(|set| set.len() < binder.known.len());
        let padded = is_padded.then(|| scope.clone().nullable());
        let scope = padded.as_ref().unwrap_or(&scope);
        binder.scope = scope;
        binder.is_padded = is_padded;
        let (mut outputs, mut columns) = (Vec::new(), Vec::new());
        for item in &select.projection {
            for (scalar, name) in bind_item(&mut binder, scope, item)? {
                let column = scalar.column(&name);
                columns.push(Column { nullable: column.nullable || is_padded, ..column });
                outputs.push(scalar);
            }
        }
        let having = match &select.having {
            Some(condition) => binder.bind_predicates(condition)?,
            None => vec![],
        };
        let subqueries = binder.subqueries;
        let outputs: Vec<_> = outputs.into_iter().map(|scalar: Scalar| scalar.expr).collect();
        let rel = if grouped || select.having.is_some() || !grouping.is_empty() {
            let clauses = Clauses { keys: bound_keys, sets, having, outputs, columns };
            clauses.group(self, rel, grouping, subqueries)?
        } else {
            let (rel, places) = subqueries.attach(rel);
            rel.map(outputs.iter().map(|output| places.resolve(output)).collect(), columns)
        };
        match &select.distinct {
            None | Some(Distinct::All) => Ok(rel),
            Some(Distinct::Distinct) => Ok(rel.distinct()),
            Some(Distinct::On(_)) => {
                let hint = "Use GROUP BY with min or max.";
                Err(unsupported_hint("DISTINCT ON is", hint))
            }
        }
    }

    /// An expression without columns and aggregates.
    pub(super) fn bind_constant(&mut self, expr: &ast::Expr) -> Result<Scalar, PlanError> {
        let scope = Scope::default();
        let mut binder = ScalarBinder::new(self, &scope);
        let value = binder.bind(expr)?;
        if binder.subqueries.len() > 0 {
            return Err(unsupported("a subquery in VALUES is"));
        }
        Ok(value)
    }
}

/// The clauses of a SELECT with groups.
struct Clauses {
    keys: Vec<Scalar>,
    /// Which of the keys are grouped by together.
    sets: Vec<Vec<usize>>,
    having: Vec<Predicate>,
    outputs: Vec<Expr>,
    columns: Vec<Column>,
}

impl Clauses {
    /// Groups; subqueries in keys and in arguments of aggregates are evaluated before, others after.
    fn group(
        self,
        binder: &mut Binder<'_>,
        rel: Rel,
        mut grouping: Grouping,
        subqueries: Subqueries,
    ) -> Result<Rel, PlanError> {
        let Clauses { mut keys, sets, having, outputs, columns } = self;
        let (below, above) = subqueries.split();
        let (rel, places) = below.attach(rel);
        let place = |expr: &Expr| places.resolve(expr);
        keys.iter_mut().for_each(|key| key.expr = place(&key.expr));
        grouping.map_args(&place);
        let having = having.iter().map(|predicate| predicate.map_exprs(&place)).collect();
        let above = above.map_bindings(&place);
        // What subqueries take from the groups is rewritten like any output.
        let count = outputs.len();
        let values = above.values();
        let exprs: Vec<Expr> = outputs.iter().chain(&values).map(place).collect();
        let (rel, having, exprs) = grouping.finish(binder, rel, (keys, sets), having, exprs)?;
        let rewritten = |value: &Expr| {
            let position = values.iter().position(|known| known == value);
            position.map_or_else(|| value.clone(), |position| exprs[count + position].clone())
        };
        let above = above.map_bindings(&rewritten);
        let is_plain = |predicate: &Predicate| {
            predicate.columns().iter().all(|column| *column < subquery::VIRTUAL)
        };
        let (plain, tested): (Vec<_>, Vec<_>) = having.into_iter().partition(is_plain);
        let (rel, places) = above.attach(rel.filter(plain));
        let place = |expr: &Expr| places.resolve(expr);
        let tested = tested.iter().map(|predicate| predicate.map_exprs(&place)).collect();
        let outputs = exprs[..count].iter().map(place).collect();
        Ok(rel.filter(tested).map(outputs, columns))
    }
}

/// An item of the select list with the name its column gets; `*` stands for several.
fn bind_item(
    binder: &mut ScalarBinder<'_, '_>,
    scope: &Scope,
    item: &SelectItem,
) -> Result<Vec<(Scalar, String)>, PlanError> {
    let expand = |columns: &[Named]| {
        let column = |(name, scalar): &Named| (scalar.clone(), name.clone());
        Ok(columns.iter().map(column).collect())
    };
    match item {
        SelectItem::ExprWithAlias { expr, alias } => {
            Ok(vec![(binder.bind(expr)?, alias.value.clone())])
        }
        SelectItem::UnnamedExpr(expr) => Ok(vec![(binder.bind(expr)?, default_name(expr))]),
        SelectItem::Wildcard(_) => expand(scope.shown()),
        SelectItem::QualifiedWildcard(
            ast::SelectItemQualifiedWildcardKind::ObjectName(name),
            _,
        ) => {
            let table = super::super::ddl::table_name(name)?.name;
            let columns = scope.shown_of(&table);
            expand(columns.ok_or_else(|| unsupported(format!("\"{table}\".* here is")))?)
        }
        _ => Err(unsupported("this item of a select list is")),
    }
}

/// The name PostgreSQL gives a column of a select list without alias.
fn default_name(expr: &ast::Expr) -> String {
    match expr {
        ast::Expr::Identifier(ident) => ident.value.clone(),
        ast::Expr::CompoundIdentifier(parts) => {
            parts.last().map_or_else(String::new, |ident| ident.value.clone())
        }
        ast::Expr::Nested(inner) => default_name(inner),
        ast::Expr::Function(function) => {
            let last = function.name.0.last().and_then(|part| part.as_ident());
            last.map_or_else(|| "?column?".to_owned(), |ident| ident.value.to_lowercase())
        }
        ast::Expr::Cast { expr, .. } => default_name(expr),
        _ => "?column?".to_owned(),
    }
}

fn refuse_clauses(select: &ast::Select) -> Result<(), PlanError> {
    if !select.named_window.is_empty() || select.qualify.is_some() {
        return Err(unsupported("window functions are"));
    }
    let foreign = select.top.is_some()
        || select.exclude.is_some()
        || select.into.is_some()
        || !select.lateral_views.is_empty()
        || select.prewhere.is_some()
        || !select.connect_by.is_empty()
        || !select.cluster_by.is_empty()
        || !select.distribute_by.is_empty()
        || !select.sort_by.is_empty()
        || select.value_table_mode.is_some()
        || select.flavor != ast::SelectFlavor::Standard;
    if foreign {
        return Err(unsupported("this syntax is"));
    }
    Ok(())
}
