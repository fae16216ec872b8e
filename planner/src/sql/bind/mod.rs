//! Binding: syntax tree to relational IR, names to positions, operators to functions by exact types.

mod aggregate;
mod case;
mod collect;
mod compared;
mod conditions;
mod cte;
mod from;
mod function;
mod gate;
mod grouping_sets;
mod host;
mod order;
mod outer;
mod resolve;
mod row_order;
mod scalar;
mod scope;
mod select;
mod set_returning;
mod setop;
mod subquery;
mod table_function;
mod temporal;
mod window;

use super::parse::parse_query;
use super::refuse::{invalid, too_deep, unsupported};
use crate::catalog::{Catalog, Relation, Table};
use crate::error::PlanError;
use crate::ir::{Input, Node, Query, Rel};
use cte::Frame;
use order::Ordering;
use outer::Level;
use plan::clock;
use plan::types::Column;
use plan::types::TableName;
use plan::{Local, LocalId, Source, SourceId};
use row_order::Sorted;
use sqlparser::ast;
use std::collections::BTreeMap;

/// How deep relations may be within one another: two for each query, one for each set operation, view and the like.
const MAX_RELATIONS: usize = 450;

/// So many relations that nest, but are bound one after the other, count as one.
const BESIDE: usize = 4;

/// Binds canonical SQL text.
pub fn bind(sql: &str, catalog: &dyn Catalog) -> Result<Query, PlanError> {
    let syntax = parse_query(sql)?;
    let mut binder = Binder::new(catalog);
    binder.has_consumers = row_order::has_consumers(sql);
    let body = binder.bind_query(&syntax)?;
    let outermost = binder.frames.pop().ok_or_else(|| invalid("no outermost scope"))?;
    let root = outermost.wrap(body);
    temporal::refuse_in_steps(&root)?;
    Ok(Query { inputs: binder.inputs, locals: binder.locals, root })
}

/// What has been found so far while binding one query.
struct Binder<'a> {
    catalog: &'a dyn Catalog,
    inputs: Vec<Input>,
    input_ids: BTreeMap<TableName, SourceId>,
    locals: Vec<Local>,
    /// WITH lists in scope, innermost last. The outermost one holds the incremental views referred to.
    frames: Vec<Frame>,
    /// Incremental views that are being bound, to notice one that contains itself.
    views: Vec<TableName>,
    /// The queries around the one being bound, innermost last.
    levels: Vec<Level>,
    /// Where in `levels` the items of the FROM clause being bound begin.
    siblings_from: usize,
    /// How many parameters there are.
    parameters: usize,
    /// How many subqueries in expressions.
    subqueries: usize,
    /// Whether the text being bound may have aggregates or windows that look at the order of rows.
    has_consumers: bool,
    /// How many relations that being bound will be within.
    depth: usize,
}

impl<'a> Binder<'a> {
    fn new(catalog: &'a dyn Catalog) -> Binder<'a> {
        Binder {
            catalog,
            inputs: Vec::new(),
            input_ids: BTreeMap::new(),
            locals: Vec::new(),
            frames: vec![Frame::outermost()],
            views: Vec::new(),
            levels: Vec::new(),
            siblings_from: 0,
            parameters: 0,
            subqueries: 0,
            has_consumers: false,
            depth: 0,
        }
    }

    fn new_local(&mut self, name: &str, columns: &[Column]) -> LocalId {
        let columns = columns.iter().map(|column| column.name.clone()).collect();
        self.locals.push(Local { name: name.to_owned(), columns, note: None });
        LocalId(self.locals.len() - 1)
    }

    /// A name for a relation that is referred to several times, and the value it stands for; none if it has one.
    fn share(&mut self, name: &str, rel: Rel) -> (Rel, Option<(LocalId, Rel)>) {
        if matches!(rel.node, Node::Source(_) | Node::Get(_)) {
            return (rel, None);
        }
        let id = self.new_local(name, &rel.columns);
        (Rel { columns: rel.columns.clone(), node: Node::Get(id) }, Some((id, rel)))
    }

    /// Binds what will be within so many more relations.
    fn deeper<T>(
        &mut self,
        levels: usize,
        bind: impl FnOnce(&mut Self) -> Result<T, PlanError>,
    ) -> Result<T, PlanError> {
        self.depth += levels;
        if self.depth > MAX_RELATIONS {
            return Err(too_deep("relations within one another", MAX_RELATIONS));
        }
        let bound = bind(self);
        self.depth -= levels;
        bound
    }

    /// A query with its WITH list.
    fn bind_query(&mut self, query: &ast::Query) -> Result<Rel, PlanError> {
        Ok(self.bind_with(query, false)?.into_rel())
    }

    /// A query whose order is wanted.
    fn bind_query_in_order(&mut self, query: &ast::Query) -> Result<Sorted, PlanError> {
        self.bind_with(query, true)
    }

    fn bind_with(&mut self, query: &ast::Query, in_order: bool) -> Result<Sorted, PlanError> {
        refuse_clauses(query)?;
        self.catalog.check_interrupts();
        let Some(with) = &query.with else {
            return self.deeper(2, |binder| binder.bind_ordered(query, in_order));
        };
        self.frames.push(Frame::new(with, self.levels.len())?);
        let levels = 2 + with.cte_tables.len() / BESIDE;
        let body = self.deeper(levels, |binder| binder.bind_ordered(query, in_order));
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
    fn bind_relation(&mut self, name: &TableName) -> Result<Sorted, PlanError> {
        if name.schema.is_none() {
            if let Some(rows) = self.bind_cte_reference(&name.name)? {
                return Ok(rows);
            }
        }
        self.bind_catalog_relation(name).map(Sorted::unordered)
    }

    #[inline(never)]
    fn bind_catalog_relation(&mut self, name: &TableName) -> Result<Rel, PlanError> {
        if let Some(rel) = self.bound_view(name) {
            return Ok(rel);
        }
        match self.catalog.relation(name) {
            // The name is that of another source.
            Some(Relation::Table(_)) if *name == clock::table() => {
                Err(unsupported(format!("table {name} is")))
            }
            Some(Relation::Table(table)) => Ok(self.base_table(name, table)),
            Some(Relation::View { query, columns }) => {
                self.bind_view_reference(name, &query, &columns)
            }
            None => Err(invalid(format!("relation \"{}\" does not exist", name.name))),
        }
    }

    fn base_table(&mut self, name: &TableName, table: Table) -> Rel {
        let columns = table.columns.clone();
        let next = SourceId(self.inputs.len());
        let id = *self.input_ids.entry(name.clone()).or_insert(next);
        if id == next {
            let source = Source {
                table: name.clone(),
                columns: (0..table.columns.len()).collect(),
                schema: table.columns,
            };
            self.inputs.push(Input { source, unique: table.unique });
        }
        Rel { columns, node: Node::Source(id) }
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
