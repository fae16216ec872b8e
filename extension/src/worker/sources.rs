//! What a view is made from, as the catalogs say now, and why it may not be attached.

use super::problem::Problem;
use crate::compile::{self, CompiledView, SourceTable};
use crate::errors::Error;
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::relation::{with_relation, Lock, RelationRef};
use crate::pg::xact::{self, Caught};
use crate::pg::{catalog, changes_table, mirror};
use plan::error::DataError;
use plan::SourceId;
use std::collections::BTreeSet;

/// What a view is made from, as the catalogs say now.
#[derive(Debug, PartialEq)]
pub(super) struct Sources {
    /// What its query was compiled to.
    pub compiled: CompiledView,
    /// Of each source, the base table with all its partitions and children; none of one that is a view.
    pub members: Vec<BTreeSet<RelationId>>,
}

impl Sources {
    /// The relations that hold the rows of a source: the tables, or the incremental view itself.
    pub fn relations(&self, source: SourceId) -> impl Iterator<Item = RelationId> + '_ {
        let SourceTable { table, is_view, .. } = self.compiled.query.sources[source.0];
        self.members[source.0].iter().copied().chain(is_view.then_some(table))
    }
}

/// Why a view is not attached.
pub(super) enum Refusal {
    /// Somebody holds a lock that is in the way.
    Later,
    /// A view that it reads is not there yet.
    Until(ViewId),
    /// It cannot be maintained as things are.
    Problem(Problem),
    /// A view that it reads is not maintained.
    Beneath(Problem, ViewId),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Problem(error.into())
    }
}

impl From<DataError> for Refusal {
    fn from(error: DataError) -> Refusal {
        Refusal::Problem(error.into())
    }
}

impl From<Caught> for Refusal {
    fn from(caught: Caught) -> Refusal {
        match caught.is_transient() {
            true => Refusal::Later,
            false => Refusal::Problem(caught.into()),
        }
    }
}

/// What the view is made from, after checking that its owner may read it and that changes can be
/// captured.
pub(super) fn sources_of(relid: ViewId) -> Result<Sources, Error> {
    let compiled = compile::compile_view(relid)?;
    compile::check_sources(&compiled)?;
    let members = compiled
        .query
        .sources
        .iter()
        .map(|source| match source.is_clock() || source.is_view {
            true => BTreeSet::new(),
            false if source.only => BTreeSet::from([source.table]),
            false => catalog::descendants(source.table).into_iter().collect(),
        })
        .collect();
    Ok(Sources { compiled, members })
}

/// Of two numbers of running transactions the older one.
pub(super) fn older(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    match (one, other) {
        (Some(one), Some(other)) if (one.wrapping_sub(other) as i32) > 0 => Some(other),
        (one, other) => one.or(other),
    }
}

/// The file of a view's heap now; `None` if it cannot be told.
pub(super) fn file_of(relid: ViewId) -> Option<u32> {
    look_at(relid, |view| view.file())
}

/// The same, and how many indexes it has, with those of the tables beside it.
pub(super) fn file_and_indexes_of(relid: ViewId) -> Option<(u32, usize)> {
    look_at(relid, |view| {
        let indexes = |table| with_relation(table, Lock::AccessShare, |table| table.indexes());
        let beside = [changes_table::of(relid), mirror::of(relid)].into_iter().flatten();
        (view.file(), view.indexes() + beside.filter_map(indexes).sum::<usize>())
    })
}

/// The file, and the owner of the view.
pub(super) fn file_and_owner_of(relid: ViewId) -> Option<(u32, u32)> {
    look_at(relid, |view| (view.file(), view.owner()))
}

/// In a transaction of its own.
fn look_at<T>(relid: ViewId, look: impl FnOnce(RelationRef<'_>) -> T) -> Option<T> {
    xact::try_run(|| with_relation(relid, Lock::AccessShare, look)).ok().flatten()
}
