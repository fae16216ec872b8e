//! Which views read which others, and so stand above them ([`super::passing`]).

use super::sources::Refusal;
use super::view::{Phase, View};
use crate::compile::CompiledView;
use crate::pg::ids::{RelationId, ViewId};
use std::collections::{BTreeMap, BTreeSet};

/// Which views read which.
#[derive(Debug, Default)]
pub(super) struct Stack {
    /// By view: those that it reads.
    beneath: BTreeMap<ViewId, BTreeSet<ViewId>>,
    /// By view: those that read it.
    above: BTreeMap<ViewId, BTreeSet<ViewId>>,
    /// Each view comes after those that it reads.
    pub order: Vec<ViewId>,
    /// Those that have not been fed all there is for them, and those above.
    pub behind: BTreeSet<ViewId>,
}

impl Stack {
    /// A view begins to read others.
    pub fn put(&mut self, view: ViewId, beneath: BTreeSet<ViewId>) {
        if beneath.is_empty() {
            return;
        }
        for lower in &beneath {
            self.above.entry(*lower).or_default().insert(view);
            if !self.order.contains(lower) {
                self.order.push(*lower);
            }
        }
        self.order.push(view);
        self.beneath.insert(view, beneath);
    }

    /// The dataflow of a view ends; answers the views that read it.
    pub fn take(&mut self, view: ViewId) -> BTreeSet<ViewId> {
        for lower in self.beneath.remove(&view).unwrap_or_default() {
            self.above.entry(lower).or_default().remove(&view);
        }
        self.order.retain(|other| *other != view);
        self.behind.remove(&view);
        self.above.remove(&view).unwrap_or_default()
    }

    /// The views that read a view.
    pub fn above(&self, view: ViewId) -> impl Iterator<Item = ViewId> + '_ {
        self.above.get(&view).into_iter().flatten().copied()
    }

    /// The views that a view reads.
    pub fn beneath(&self, view: ViewId) -> impl Iterator<Item = ViewId> + '_ {
        self.beneath.get(&view).into_iter().flatten().copied()
    }

    /// Whether a view reads one that has not been fed all there is for it, so that it cannot come to where the others are.
    pub fn waits(&self, view: ViewId) -> bool {
        let read = self.beneath.get(&view).filter(|_| !self.behind.is_empty());
        read.is_some_and(|read| !read.is_disjoint(&self.behind))
    }

    /// The views that read this one, directly or by way of others.
    pub fn all_above(&self, view: ViewId) -> BTreeSet<ViewId> {
        reached(&self.above, view)
    }

    /// The views that this one reads, directly or by way of others.
    pub fn all_beneath(&self, view: ViewId) -> BTreeSet<ViewId> {
        reached(&self.beneath, view)
    }
}

/// What is reached from a view, each once however many ways lead there.
fn reached(next: &BTreeMap<ViewId, BTreeSet<ViewId>>, view: ViewId) -> BTreeSet<ViewId> {
    let (mut found, mut unseen) = (BTreeSet::new(), vec![view]);
    while let Some(from) = unseen.pop() {
        let new = next.get(&from).into_iter().flatten().filter(|view| found.insert(**view));
        unseen.extend(new);
    }
    found
}

/// The incremental views that a view reads.
pub(super) fn views_read(compiled: &CompiledView) -> BTreeSet<ViewId> {
    let sources = compiled.query.sources.iter().filter(|source| source.is_view);
    sources.map(|source| view_of(source.table)).collect()
}

/// Whether the state of views can be saved, so that what reads them can be, too.
pub(super) fn are_kept(views: &BTreeMap<ViewId, View>, read: &BTreeSet<ViewId>) -> bool {
    let is_kept = |view: &View| match &view.phase {
        Phase::Reading(reading) => reading.is_kept,
        Phase::Attached(attachment) => attachment.is_kept,
        Phase::Waiting { .. } | Phase::Failed { .. } => false,
    };
    read.iter().all(|relid| views.get(relid).is_some_and(is_kept))
}

/// The view of that number.
pub(super) fn view_of(table: RelationId) -> ViewId {
    ViewId::new(table.to_u32())
}

/// Fails unless views can be read: what they hold is known, and nobody is writing it.
pub(super) fn require_readable(
    views: &BTreeMap<ViewId, View>,
    read: impl IntoIterator<Item = ViewId>,
) -> Result<(), Refusal> {
    for relid in read {
        match views.get(&relid).map(|view| (view, &view.phase)) {
            Some((_, Phase::Attached(a))) if a.is_stored() && a.lent.is_none() => {}
            Some((view, Phase::Failed { problem, .. })) => {
                return Err(Refusal::Beneath(problem.beneath(&view.name), relid));
            }
            _ => return Err(Refusal::Until(relid)),
        }
    }
    Ok(())
}
