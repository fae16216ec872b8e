//! A query as a whole, with its WITH list and its order, and the relations it names.

use super::super::parse::parse_query;
use super::super::refuse::{invalid, unsupported};
use super::binder::{Binder, BESIDE};
use super::frame::Frame;
use super::order::Ordering;
use super::row_order::{self, RowOrder, Sorted};
use super::temporal;
use crate::catalog::{Catalog, Table};
use crate::error::PlanError;
use crate::ir::{Input, Node, Query, Rel};
use plan::clock;
use plan::types::TableName;
use plan::{Source, SourceId};
use sqlparser::ast;

/// Binds canonical SQL text.
pub fn bind(sql: &str, catalog: &dyn Catalog) -> Result<Query, PlanError> {
    let syntax = parse_query(sql)?;
    let mut binder = Binder::new(catalog);
    binder.has_consumers = row_order::has_consumers(sql);
    let root = binder.bind_query(&syntax)?;
    temporal::refuse_in_steps(&root)?;
    Ok(Query { inputs: binder.inputs, locals: binder.locals, root })
}

impl Binder<'_> {
    /// A query with its WITH list.
    pub(super) fn bind_query(&mut self, query: &ast::Query) -> Result<Rel, PlanError> {
        Ok(self.bind_with(query, false)?.into_rel())
    }

    /// A query whose order is wanted.
    pub(super) fn bind_query_in_order(&mut self, query: &ast::Query) -> Result<Sorted, PlanError> {
        self.bind_with(query, true)
    }

    pub(super) fn bind_with(
        &mut self,
        query: &ast::Query,
        in_order: bool,
    ) -> Result<Sorted, PlanError> {
        refuse_clauses(query)?;
        self.catalog.check_interrupts();
        let Some(with) = &query.with else {
            return self.deeper(2, |binder| binder.bind_ordered(query, in_order));
        };
        self.frames.push(Frame::new(with, self.levels.len()));
        let levels = 2 + with.cte_tables.len() / BESIDE;
        let body = self.deeper(levels, |binder| {
            let body = binder.bind_ordered(query, in_order)?;
            Ok(Sorted { rel: binder.close_circles(body.rel)?, ..body })
        });
        let frame = self.frames.pop().ok_or_else(|| invalid("WITH without scope"))?;
        let body = body?;
        Ok(Sorted { rel: frame.wrap(body.rel), ..body })
    }

    fn bind_ordered(&mut self, query: &ast::Query, in_order: bool) -> Result<Sorted, PlanError> {
        let ordering = Ordering::of(self, query, in_order)?;
        let sorted = match query.body.as_ref() {
            ast::SetExpr::Select(select) => self.bind_select(select, &ordering)?,
            body => ordering.limit_columns(self.bind_body(body, ordering.looks_at_rows())?)?,
        };
        // A subquery for each row is joined with the rows, whatever it says.
        if ordering.is_fence && sorted.rel.parameters().is_empty() {
            return Ok(Sorted { rel: sorted.rel.fenced(), ..sorted });
        }
        Ok(sorted)
    }

    /// A relation by name: a CTE in scope, else a base table or an incremental view.
    pub(super) fn bind_relation(&mut self, name: &TableName) -> Result<Sorted, PlanError> {
        if name.schema.is_none() {
            if let Some(rows) = self.bind_cte_reference(&name.name)? {
                return Ok(rows);
            }
        }
        self.bind_catalog_relation(name)
    }

    #[inline(never)]
    fn bind_catalog_relation(&mut self, name: &TableName) -> Result<Sorted, PlanError> {
        match self.catalog.table(name) {
            // The name is that of another source.
            Some(_) if *name == clock::table() => Err(unsupported(format!("table {name} is"))),
            Some(table) => Ok(self.base_table(name, table)),
            None => Err(invalid(format!("relation \"{}\" does not exist", name.name))),
        }
    }

    /// A table's own columns, and behind them those of the system.
    fn base_table(&mut self, name: &TableName, table: Table) -> Sorted {
        let arity = table.columns.len();
        let columns = [table.columns, table.system].concat();
        let next = SourceId(self.inputs.len());
        let id = *self.input_ids.entry(name.clone()).or_insert(next);
        if id == next {
            let source = Source {
                table: name.clone(),
                columns: (0..columns.len()).collect(),
                schema: columns.clone(),
            };
            self.inputs.push(Input { source, unique: table.unique, statistics: table.statistics });
        }
        let rel = Rel { columns, node: Node::Source(id) };
        Sorted { rel, arity, order: RowOrder::Any }
    }
}

fn refuse_clauses(query: &ast::Query) -> Result<(), PlanError> {
    if !query.locks.is_empty() {
        return Err(unsupported("FOR UPDATE and FOR SHARE are"));
    }
    let foreign = query.for_clause.is_some()
        || query.settings.is_some()
        || query.format_clause.is_some()
        || !query.pipe_operators.is_empty();
    if foreign {
        return Err(unsupported("this syntax is"));
    }
    Ok(())
}
