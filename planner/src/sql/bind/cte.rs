//! WITH: common table expressions, recursive ones, too.
//!
//! A CTE is bound when it is first referred to. Under WITH RECURSIVE, where CTEs may be in any order,
//! that yields them in an order in which each comes after those it needs; CTEs nobody refers to are
//! not computed, as in PostgreSQL.

use super::super::refuse::{invalid, unsupported};
use super::binder::Binder;
use super::frame::{Binding, State};
use super::row_order::{RowOrder, Sorted};
use super::setop::{coerce, is_all, rename, union_columns};
use crate::error::PlanError;
use crate::ir::{Node, Rel};
use plan::types::Column;
use plan::LocalId;
use sqlparser::ast;
use std::rc::Rc;

impl Binder<'_> {
    /// The CTE of that name, `None` if none is in scope.
    pub(super) fn bind_cte_reference(&mut self, name: &str) -> Result<Option<Sorted>, PlanError> {
        let Some((depth, index)) = self.find_cte(name) else { return Ok(None) };
        if matches!(self.frames[depth].ctes[index].state, State::Unbound) {
            self.bind_cte(depth, index)?;
        }
        let get = |id: LocalId, columns: &[Column]| Rel {
            columns: columns.to_vec(),
            node: Node::Get(id),
        };
        match &mut self.frames[depth].ctes[index].state {
            State::Recursive { id, columns, referred } => {
                *referred = true;
                Ok(Some(Sorted::unordered(get(*id, columns))))
            }
            State::Bound { id, columns, arity, order } => {
                let (rel, order) = (get(*id, columns), order.clone());
                Ok(Some(Sorted { rel, arity: *arity, order }))
            }
            State::Unbound | State::Binding => {
                Err(unsupported(format!("the recursive reference to query \"{name}\" here is")))
            }
        }
    }

    fn find_cte(&self, name: &str) -> Option<(usize, usize)> {
        self.frames.iter().enumerate().rev().find_map(|(depth, frame)| {
            let index = frame.ctes[..frame.visible].iter().position(|cte| cte.name == name)?;
            Some((depth, index))
        })
    }

    /// Binds a CTE with just the scopes in view where it is defined.
    pub(super) fn bind_cte(&mut self, depth: usize, index: usize) -> Result<(), PlanError> {
        let inner = self.frames.split_off(depth + 1);
        let frame = &mut self.frames[depth];
        let visible = frame.visible;
        if !frame.recursive {
            frame.visible = index;
        }
        frame.ctes[index].state = State::Binding;
        let syntax = Rc::clone(&frame.ctes[index].syntax);
        let levels = frame.levels;
        let bound = self.outside(levels, |binder| binder.bind_cte_body(depth, index, &syntax));
        self.frames[depth].visible = visible;
        self.frames.extend(inner);
        bound
    }

    fn bind_cte_body(
        &mut self,
        depth: usize,
        index: usize,
        cte: &ast::Cte,
    ) -> Result<(), PlanError> {
        let name = cte.alias.name.value.as_str();
        if self.frames[depth].recursive {
            if let Some((left, right, all)) = recursive_form(&cte.query) {
                return self.bind_recursive(depth, index, (left, right, all), &cte.alias);
            }
        }
        // Who refers to it is not known yet: whoever does may look at its order.
        let Sorted { rel, arity, order } = self.bind_query_in_order(&cte.query)?;
        let value = rename(rel, &cte.alias)?;
        let id = self.new_local(name, &value.columns);
        let state = State::Bound { id, columns: value.columns.clone(), arity, order };
        self.finish_cte(depth, index, state, Binding::Value { id, value });
        Ok(())
    }

    /// Binds `left UNION [ALL] right`, where the right side may refer to the CTE itself.
    #[inline(never)]
    fn bind_recursive(
        &mut self,
        depth: usize,
        index: usize,
        (left, right, all): (&ast::SetExpr, &ast::SetExpr, bool),
        alias: &ast::TableAlias,
    ) -> Result<(), PlanError> {
        let base = rename(self.bind_set_expr(left)?, alias)?;
        let id = self.new_local(&alias.name.value, &base.columns);
        // Whether a column of the recursion may be NULL depends on the step, which is not known yet.
        let nullable = |column: &Column| Column { nullable: true, ..column.clone() };
        let columns: Vec<Column> = base.columns.iter().map(nullable).collect();
        self.frames[depth].ctes[index].state =
            State::Recursive { id, columns: columns.clone(), referred: false };
        let step = self.bind_set_expr(right)?;
        let state = &self.frames[depth].ctes[index].state;
        let binding = if matches!(state, State::Recursive { referred: true, .. }) {
            let step = self.conform_step(step, &columns, &alias.name.value)?;
            let base = Rel { columns: columns.clone(), ..base };
            Binding::Recursive { id, all, form: None, base, step }
        } else {
            let value = self.bind_union(base, step, all)?;
            Binding::Value { id, value }
        };
        let columns = match &binding {
            Binding::Value { value, .. } => value.columns.clone(),
            Binding::Recursive { .. } => columns,
        };
        let state = State::Bound { id, arity: columns.len(), columns, order: RowOrder::Any };
        self.finish_cte(depth, index, state, binding);
        Ok(())
    }

    /// The step with the recursion's columns; PostgreSQL demands equal types.
    fn conform_step(&self, step: Rel, columns: &[Column], name: &str) -> Result<Rel, PlanError> {
        let unified = union_columns(columns, &step.columns)?;
        if unified.iter().map(|c| c.ty).ne(columns.iter().map(|c| c.ty)) {
            return Err(invalid(format!("column types of recursive query \"{name}\" differ")));
        }
        let step = coerce(step, columns)?;
        Ok(Rel { columns: columns.to_vec(), ..step })
    }

    fn finish_cte(&mut self, depth: usize, index: usize, state: State, binding: Binding) {
        let frame = &mut self.frames[depth];
        frame.ctes[index].state = state;
        frame.bindings.push(binding);
    }
}

/// The sides of the UNION that a recursive CTE must be; PostgreSQL allows nothing around it that
/// could contain the self-reference.
fn recursive_form(query: &ast::Query) -> Option<(&ast::SetExpr, &ast::SetExpr, bool)> {
    let plain = query.with.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
    match query.body.as_ref() {
        ast::SetExpr::SetOperation { left, op: ast::SetOperator::Union, set_quantifier, right }
            if plain =>
        {
            Some((left.as_ref(), right.as_ref(), is_all(*set_quantifier).ok()?))
        }
        _ => None,
    }
}
