//! Arrangements of rows that joins share.

use super::errors::Errs;
use super::storage::{Kept, Storage};
use crate::layout::infer::Columns;
use crate::layout::Layout;
use plan::expr::Expr;
use plan::{LocalId, Mfp, Plan, SourceId};

/// A shareable arrangement of rows, with the errors found on the way.
pub(super) struct RowArrangement<'s, L: Layout, S: Storage, const LOOPS: usize> {
    /// By key: what is left of a row without the columns that are in the key.
    pub(super) rows: Kept<'s, S, L::Key, L::Val, LOOPS>,
    pub(super) errs: Errs,
    /// The columns of the rows that were arranged.
    pub(super) columns: Columns,
}

impl<L: Layout, S: Storage, const LOOPS: usize> Clone for RowArrangement<'_, L, S, LOOPS> {
    fn clone(&self) -> Self {
        let RowArrangement { rows, errs, columns } = self;
        RowArrangement { rows: rows.clone(), errs: errs.clone(), columns: columns.clone() }
    }
}

/// A side of a join.
pub(super) struct Arranged<'s, L: Layout, S: Storage, const LOOPS: usize> {
    pub(super) rows: RowArrangement<'s, L, S, LOOPS>,
    /// What the rows are arranged by.
    pub(super) key: Vec<Expr>,
    /// What is made of a row before the join's closure sees it.
    pub(super) made: Option<Mfp>,
}

/// What identifies an arrangement that can be shared.
#[derive(PartialEq)]
pub(super) enum ArrangementKey {
    Source(SourceId, Vec<Expr>),
    Local(LocalId, Vec<Expr>),
}

impl ArrangementKey {
    pub(super) fn of(plan: &Plan, key: &[Expr]) -> Option<Self> {
        match plan {
            Plan::Source(id) => Some(ArrangementKey::Source(*id, key.to_vec())),
            Plan::Get(id) => Some(ArrangementKey::Local(*id, key.to_vec())),
            _ => None,
        }
    }

    pub(super) fn is_of(&self, id: LocalId) -> bool {
        matches!(self, ArrangementKey::Local(other, _) if *other == id)
    }
}
