//! The entries of a group that an aggregate of all its values is made of ([`plan::aggregate::collect`]).

use super::multiset::Multiset;
use crate::core::diff::Mult;
use plan::error::DataError;
use plan::value::Datum;
use plan::AggregateFunc;

/// Entries in order.
#[derive(Default)]
pub(super) struct Entries {
    entries: Multiset<Box<[u8]>>,
}

impl Entries {
    /// Adds so many copies of an entry; what is NULL contributes nothing.
    pub(super) fn add(&mut self, entry: Option<Datum>, copies: Mult) {
        if let Some(Datum::Bytea(entry)) = entry {
            self.entries.add(entry, copies);
        }
    }

    /// All entries, with their copies.
    pub(super) fn all(&self) -> impl Iterator<Item = (Datum, Mult)> + '_ {
        self.entries.all().map(|(entry, copies)| (Datum::Bytea(entry.clone()), copies))
    }

    /// The aggregate.
    pub(super) fn finish(&self, func: AggregateFunc) -> Result<Datum, DataError> {
        let entries = self.entries.iter().map(|(entry, copies)| (&**entry, copies.0));
        match func {
            AggregateFunc::Collect(collect, _) => collect.finish(entries),
            // No other aggregate is made of entries.
            _ => Ok(Datum::Null),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
