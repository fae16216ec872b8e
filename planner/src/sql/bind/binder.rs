//! What binds one query: what it has found so far, and where it is.

use super::super::refuse::too_deep;
use super::frame::Frame;
use super::level::Level;
use crate::catalog::Catalog;
use crate::error::PlanError;
use crate::ir::{Input, Node, Rel};
use plan::types::{Column, TableName};
use plan::{Local, LocalId, SourceId, Zone};
use std::collections::BTreeMap;

/// How deep relations may be within one another: two for each query, one for each set operation, view and the like.
const MAX_RELATIONS: usize = 450;

/// So many relations that nest, but are bound one after the other, count as one.
pub(super) const BESIDE: usize = 4;

/// What has been found so far while binding one query.
pub(super) struct Binder<'a> {
    pub(super) catalog: &'a dyn Catalog,
    pub(super) inputs: Vec<Input>,
    pub(super) input_ids: BTreeMap<TableName, SourceId>,
    pub(super) locals: Vec<Local>,
    /// WITH lists in scope, innermost last.
    pub(super) frames: Vec<Frame>,
    /// The queries around the one being bound, innermost last.
    pub(super) levels: Vec<Level>,
    /// Where in `levels` the items of the FROM clause being bound begin.
    pub(super) siblings_from: usize,
    /// How many parameters there are.
    pub(super) parameters: usize,
    /// How many subqueries in expressions.
    pub(super) subqueries: usize,
    /// Whether the text being bound may have aggregates or windows that look at the order of rows.
    pub(super) has_consumers: bool,
    /// The time zone of the text being bound.
    pub(super) zone: Option<Zone>,
    /// How many relations that being bound will be within.
    pub(super) depth: usize,
}

impl<'a> Binder<'a> {
    pub(super) fn new(catalog: &'a dyn Catalog) -> Binder<'a> {
        Binder {
            catalog,
            inputs: Vec::new(),
            input_ids: BTreeMap::new(),
            locals: Vec::new(),
            frames: Vec::new(),
            levels: Vec::new(),
            siblings_from: 0,
            parameters: 0,
            subqueries: 0,
            has_consumers: false,
            zone: catalog.zone(),
            depth: 0,
        }
    }

    pub(super) fn new_local(&mut self, name: &str, columns: &[Column]) -> LocalId {
        let columns = columns.iter().map(|column| column.name.clone()).collect();
        self.locals.push(Local { name: name.to_owned(), columns, note: None });
        LocalId(self.locals.len() - 1)
    }

    /// A name for a relation that is referred to several times, and the value it stands for; none if it has one.
    pub(super) fn share(&mut self, name: &str, rel: Rel) -> (Rel, Option<(LocalId, Rel)>) {
        if matches!(rel.node, Node::Source(_) | Node::Get(_)) {
            return (rel, None);
        }
        let id = self.new_local(name, &rel.columns);
        (Rel { columns: rel.columns.clone(), node: Node::Get(id) }, Some((id, rel)))
    }

    /// Binds what will be within so many more relations.
    pub(super) fn deeper<T>(
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
}
