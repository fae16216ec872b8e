//! What a view reads from indexes, and what for itself.

use super::sources::Sources;
use crate::pg::ids::RelationId;
use engine::{DataflowId, Engine, Form, Index, Lookup, Read, Time};
use plan::types::Type;
use plan::SourceId;
use std::collections::BTreeSet;

/// What an index holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) index: Index,
    table: RelationId,
    columns: Vec<(i16, Type)>,
    /// The table with all its partitions and children.
    members: BTreeSet<RelationId>,
}

impl Spec {
    pub(super) fn new(sources: &Sources, (source, key): &Lookup) -> Spec {
        let query = &sources.compiled.query;
        let table = &query.sources[source.0];
        Spec {
            index: Index {
                source: query.plan.sources[source.0].clone(),
                key: key.clone(),
                form: Form::of(&query.plan),
            },
            table: table.table,
            columns: table.columns(),
            members: sources.members[source.0].clone(),
        }
    }
}

/// An index that is to be made.
#[derive(Debug)]
pub(super) struct New {
    pub(super) dataflow: DataflowId,
    /// The view's source whose table it holds.
    pub(super) source: SourceId,
    pub(super) spec: Spec,
}

/// What a view is going to read from indexes.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    pub(super) reads: Vec<Read>,
    /// Of them those that are new.
    pub(super) new: Vec<New>,
    /// The sources whose rows the view needs for itself.
    pub(super) own: BTreeSet<SourceId>,
}

impl Chosen {
    /// Nothing from indexes.
    pub(super) fn none(sources: &Sources) -> Chosen {
        let own = (0..sources.members.len()).map(SourceId).collect();
        Chosen { own, ..Chosen::default() }
    }

    /// Makes the new ones.
    pub(super) fn create(&self, engine: &mut Engine, sources: &Sources, as_of: Time) {
        for New { dataflow, spec, .. } in &self.new {
            engine.create_index(*dataflow, &spec.index, as_of);
            engine.set_owner(*dataflow, sources.compiled.owner.to_u32());
        }
    }
}
