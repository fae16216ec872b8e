//! A WITH list while its query is bound, and what its names stand for.

use super::row_order::RowOrder;
use crate::ir::{Node, Rel};
use plan::types::Column;
use plan::{LocalId, Recursion};
use sqlparser::ast;
use std::rc::Rc;

/// One WITH list while its query is bound.
pub(super) struct Frame {
    pub(super) recursive: bool,
    /// How many queries around see the list, and are seen by it.
    pub(super) levels: usize,
    pub(super) ctes: Vec<Entry>,
    /// How many of the CTEs are visible (without RECURSIVE: those before the one being bound).
    pub(super) visible: usize,
    /// In an order in which each refers to earlier ones only.
    pub(super) bindings: Vec<Binding>,
}

/// A CTE of the list.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) syntax: Rc<ast::Cte>,
    pub(super) state: State,
    /// What references stand for that may be met before it is bound, and the columns that they say it has.
    pub(super) awaited: Option<(LocalId, Vec<Column>)>,
}

/// How far it is bound.
#[derive(Clone)]
pub(super) enum State {
    Unbound,
    Binding,
    /// The recursive term is being bound; the flag says whether it has referred to its CTE.
    Recursive {
        id: LocalId,
        columns: Vec<Column>,
        referred: bool,
    },
    Bound {
        id: LocalId,
        columns: Vec<Column>,
        /// How many of the columns are the CTE's, the others being there to be sorted by.
        arity: usize,
        order: RowOrder,
    },
}

/// What a name stands for, around what refers to it.
pub(super) enum Binding {
    Value { id: LocalId, value: Rel },
    Recursive { id: LocalId, all: bool, form: Option<Recursion>, base: Rel, step: Rel },
}

impl Frame {
    pub(super) fn new(with: &ast::With, levels: usize) -> Frame {
        let entry = |cte: &ast::Cte| Entry {
            name: cte.alias.name.value.clone(),
            syntax: Rc::new(cte.clone()),
            state: State::Unbound,
            awaited: None,
        };
        let ctes: Vec<Entry> = with.cte_tables.iter().map(entry).collect();
        let visible = ctes.len();
        Frame { recursive: with.recursive, levels, ctes, visible, bindings: Vec::new() }
    }

    /// The query's body below the lets of its CTEs.
    pub(super) fn wrap(self, body: Rel) -> Rel {
        self.bindings.into_iter().rev().fold(body, |body, binding| binding.wrap(body))
    }
}

impl Binding {
    fn wrap(self, body: Rel) -> Rel {
        let columns = body.columns.clone();
        let body = Box::new(body);
        let node = match self {
            Binding::Value { id, value } => Node::Let { id, value: Box::new(value), body },
            Binding::Recursive { id, all, form, base, step } => {
                let (base, step) = (Box::new(base), Box::new(step));
                Node::LetRec { id, all, form, base, step, body }
            }
        };
        Rel { columns, node }
    }
}
