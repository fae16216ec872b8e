//! SELECT … FROM … WHERE … GROUP BY … HAVING.

use super::super::parse::NOTHING;
use super::super::refuse::unsupported;
use super::binder::Binder;
use super::bound_expr::BoundExpr;
use super::conditions::Clause;
use super::expr_binder::ExprBinder;
use super::gate::Gate;
use super::grouping_sets::Keys;
use super::order::{Ordered, Ordering};
use super::row_order::{RowOrder, Sorted};
use super::scope::{Named, Scope};
use super::syntax::{strip, unmarked};
use super::virtual_columns::{Grouping, SetCalls, Subqueries, Windows, SUBQUERIES};
use crate::error::PlanError;
use crate::ir::{Predicate, Rel};
use plan::expr::{self, Expr};
use plan::types::Column;
use sqlparser::ast::{self, Distinct, SelectItem};
use std::collections::BTreeSet;

impl Binder<'_> {
    pub(super) fn bind_select(
        &mut self,
        select: &ast::Select,
        ordering: &Ordering<'_>,
    ) -> Result<Sorted, PlanError> {
        refuse_clauses(select)?;
        let has_first = matches!(select.distinct, Some(Distinct::On(_)));
        let in_order = ordering.looks_at_rows() || has_first || self.has_consumers;
        let (mut rel, scope) = self.bind_from(&select.from, in_order)?;
        if let Some(condition) = &select.selection {
            rel = self.bind_conditions(&scope, Clause::Where, condition)?.apply(self, rel);
        }
        self.bind_clauses(select, ordering, (rel, scope))
    }

    /// The clauses over the rows of FROM and WHERE. Not inlined: what FROM nests should find the stack empty of this.
    #[inline(never)]
    fn bind_clauses(
        &mut self,
        select: &ast::Select,
        ordering: &Ordering<'_>,
        (rel, scope): (Rel, Scope),
    ) -> Result<Sorted, PlanError> {
        let mut grouping = Grouping::default();
        let mut binder = ExprBinder::new(self, &scope);
        let GroupBy { keys, key_calls, sets, is_there } =
            GroupBy::bind(&mut binder, &select.group_by)?;
        grouping.keys = keys.iter().map(|key| key.expr.clone()).collect();
        binder.grouping = Some(&mut grouping);
        // A key is NULL where it is not grouped by.
        let is_padded = sets.iter().any(|set| set.len() < keys.len());
        let padded = is_padded.then(|| scope.clone().nullable());
        let scope = padded.as_ref().unwrap_or(&scope);
        binder.scope = scope;
        binder.is_padded = is_padded;
        let mut windows = Windows::of(&select.named_window)?;
        binder.windows = Some(&mut windows);
        binder.set_calls = Some(key_calls.of_next_clause());
        let outputs = bind_items(&mut binder, scope, &select.projection)?;
        let ordered = ordering.bind(&mut binder, select.distinct.as_ref(), &outputs)?;
        binder.windows = None;
        let set_calls = binder.set_calls.take().unwrap_or_default();
        let having = match &select.having {
            Some(condition) => binder.bind_predicates(condition)?,
            None => vec![],
        };
        let subqueries = binder.subqueries;
        set_calls.check_subqueries(&subqueries)?;
        set_calls.check_windows(&windows)?;
        let is_distinct = matches!(select.distinct, Some(Distinct::Distinct));
        let is_grouped = is_there || select.having.is_some() || !grouping.is_empty();
        let order = if is_grouped { RowOrder::Any } else { scope.order().clone() };
        windows.take_rows(&order)?;
        let order = match (is_distinct, windows.sort_rows()) {
            (true, _) => RowOrder::Any,
            (false, true) => order.lost(scope.first_table(), "windows"),
            (false, false) => order,
        };
        let ordered = ordered.of_rows(order);
        let selected = Selected { outputs, windows, set_calls, ordered, is_padded, is_distinct };
        let exprs = selected.exprs();
        let (rel, exprs) = if is_grouped {
            let clauses = Clauses { keys, key_calls, sets, having, exprs };
            clauses.group(self, rel, grouping, subqueries)?
        } else {
            let (rel, places) = subqueries.attach(rel);
            (rel, exprs.iter().map(|expr| places.resolve(expr)).collect())
        };
        selected.compute(rel, &exprs)
    }

    /// An expression without columns and aggregates.
    pub(super) fn bind_constant(&mut self, expr: &ast::Expr) -> Result<BoundExpr, PlanError> {
        let scope = Scope::default();
        let mut binder = ExprBinder::new(self, &scope);
        let value = binder.bind(expr)?;
        if binder.subqueries.len() > 0 {
            return Err(unsupported("a subquery in place of a constant is"));
        }
        Ok(value)
    }
}

/// A GROUP BY whose keys are bound; the binder knows them by what was written.
struct GroupBy {
    keys: Vec<BoundExpr>,
    /// Set-returning functions in the keys.
    key_calls: SetCalls,
    /// Which of the keys are grouped by together.
    sets: Vec<Vec<usize>>,
    is_there: bool,
}

impl GroupBy {
    fn bind(
        binder: &mut ExprBinder<'_, '_>,
        clause: &ast::GroupByExpr,
    ) -> Result<GroupBy, PlanError> {
        let Keys { keys: written, sets, is_there } = Keys::of(clause)?;
        binder.set_calls = Some(SetCalls::default());
        let keys = binder.bind_all(&written)?;
        let key_calls = binder.set_calls.take().unwrap_or_default();
        let written = written.iter().map(|key| unmarked(key).clone());
        binder.known = written.zip(keys.iter().cloned()).collect();
        Ok(GroupBy { keys, key_calls, sets, is_there })
    }
}

/// What a SELECT computes from its rows, or from its groups if it has some.
struct Selected {
    outputs: Vec<Named>,
    windows: Windows,
    set_calls: SetCalls,
    ordered: Ordered,
    /// Whether grouping keys may be NULL though their values never are.
    is_padded: bool,
    is_distinct: bool,
}

impl Selected {
    /// All expressions over the rows: of the outputs, then what windows, calls and the order take.
    fn exprs(&self) -> Vec<Expr> {
        let mut exprs: Vec<Expr> = self.outputs.iter().map(|(_, o)| o.expr.clone()).collect();
        exprs.extend(self.windows.exprs());
        exprs.extend(self.set_calls.args());
        exprs.extend(self.ordered.exprs());
        exprs
    }

    /// The rows selected of a relation; `exprs` are those of [`Selected::exprs`] over it.
    fn compute(self, rel: Rel, exprs: &[Expr]) -> Result<Sorted, PlanError> {
        let (outputs, rest) = exprs.split_at(self.outputs.len());
        let (windows, rest) = rest.split_at(self.windows.exprs().len());
        let (args, order) = rest.split_at(self.set_calls.args().len());
        let (rel, places) = self.windows.attach(rel, windows);
        let args = args.iter().map(|arg| places.resolve(arg)).collect();
        let (rel, call_places) = self.set_calls.attach(rel, args);
        let places = places.with(call_places);
        let place = |expr: &Expr| places.resolve(expr);
        let column = |(name, output): &Named| {
            let column = output.column(name);
            Column { nullable: column.nullable || self.is_padded, ..column }
        };
        let columns = self.outputs.iter().map(column).collect();
        let outputs = outputs.iter().map(place).collect();
        let order: Vec<Expr> = order.iter().map(place).collect();
        self.ordered.select(rel, (outputs, columns), &order, self.is_distinct)
    }
}

/// The clauses of a SELECT with groups.
struct Clauses {
    keys: Vec<BoundExpr>,
    key_calls: SetCalls,
    /// Which of the keys are grouped by together.
    sets: Vec<Vec<usize>>,
    having: Vec<Predicate>,
    /// What is to be computed from the groups.
    exprs: Vec<Expr>,
}

impl Clauses {
    /// Groups the rows. Subqueries in keys and in arguments of aggregates, and set-returning calls in keys, are
    /// evaluated before, others after. Answers the groups and the expressions over them.
    fn group(
        self,
        binder: &mut Binder<'_>,
        rel: Rel,
        mut grouping: Grouping,
        subqueries: Subqueries,
    ) -> Result<(Rel, Vec<Expr>), PlanError> {
        let Clauses { mut keys, key_calls, sets, having, exprs: outputs } = self;
        let (below, above) = subqueries.split();
        let (rel, places) = below.attach(rel);
        let args = key_calls.args().iter().map(|arg| places.resolve(arg)).collect();
        let (rel, key_places) = key_calls.attach(rel, args);
        let place = |expr: &Expr| key_places.resolve(&places.resolve(expr));
        keys.iter_mut().for_each(|key| key.expr = place(&key.expr));
        grouping.map_args(&place);
        let having: Vec<Predicate> =
            having.iter().map(|predicate| predicate.map_exprs(&place)).collect();
        let above = above.map_bindings(&place);
        let mut having: Vec<Predicate> = having;
        let mut above = above;
        let may_fail = rel.may_fail() || grouping.may_fail();
        let gate =
            Gate::take(binder, &mut above, &mut having, |_| (may_fail, columns_of(&outputs)));
        let rel = gate.iter().fold(rel, |rel, gate| gate.before(rel));
        let has_group_of_nothing = sets.iter().any(Vec::is_empty);
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
        let is_plain =
            |predicate: &Predicate| predicate.columns().iter().all(|column| *column < SUBQUERIES);
        let (plain, tested): (Vec<_>, Vec<_>) = having.into_iter().partition(is_plain);
        // What HAVING needs comes first: others are evaluated for the groups that are left.
        let (needed, others) = above.split_needed(&tested);
        let rel = match &gate {
            Some(gate) if has_group_of_nothing => gate.join(rel),
            _ => rel,
        };
        let (rel, mut places) = needed.attach(rel.filter(plain));
        let tested = tested.iter().map(|p| p.map_exprs(&|expr| places.resolve(expr))).collect();
        let rel = others.attach_to(rel.filter(tested), &mut places);
        let rel = gate.into_iter().fold(rel, |rel, gate| gate.around(rel));
        Ok((rel, exprs[..count].iter().map(|expr| places.resolve(expr)).collect()))
    }
}

fn columns_of(exprs: &[Expr]) -> BTreeSet<usize> {
    exprs.iter().flat_map(expr::columns_of).collect()
}

/// The columns of a select list.
fn bind_items(
    binder: &mut ExprBinder<'_, '_>,
    scope: &Scope,
    items: &[SelectItem],
) -> Result<Vec<Named>, PlanError> {
    let mut outputs: Vec<Named> = Vec::new();
    let is_nothing = |item: &&SelectItem| matches!(selected(item), Some(ast::Expr::Identifier(name)) if name.value == NOTHING);
    for item in items.iter().filter(|item| !is_nothing(item)) {
        let bound = bind_item(binder, scope, item)?;
        // ORDER BY repeats what it sorts by.
        if let (Some(expr), [(_, output)]) = (selected(item), bound.as_slice()) {
            binder.known.push((unmarked(expr).clone(), output.clone()));
        }
        outputs.extend(bound);
    }
    Ok(outputs)
}

/// An item of the select list with the name its column gets; `*` stands for several.
fn bind_item(
    binder: &mut ExprBinder<'_, '_>,
    scope: &Scope,
    item: &SelectItem,
) -> Result<Vec<Named>, PlanError> {
    let expand = |columns: &[Named]| Ok(columns.to_vec());
    match item {
        SelectItem::ExprWithAlias { expr, alias } => {
            Ok(vec![(alias.value.clone(), binder.bind(expr)?)])
        }
        SelectItem::UnnamedExpr(expr) => Ok(vec![(default_name(expr), binder.bind(expr)?)]),
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

/// The expression of an item.
fn selected(item: &SelectItem) -> Option<&ast::Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(strip(expr)),
        _ => None,
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
    let foreign = select.qualify.is_some()
        || select.top.is_some()
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
