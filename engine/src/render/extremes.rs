//! Aggregates that pick one value of the group: min, max, any.
//!
//! Retracting the chosen value needs the next best, so all values are kept, inside of loops at each of many partially
//! ordered times. There a group is cut into buckets by hash, and these are put together into larger ones, level by level:
//! a change looks at its own bucket on every level, some hundred values where there are millions of rows, never at the
//! whole group.

use super::keep::Key;
use super::renderer::Context;
use super::storage::{Kept, Names, Storage};
use crate::core::collection::Collection;
use crate::core::diff::Mult;
use differential_dataflow::hashable::Hashable;
use plan::compare::cmp_as;
use plan::row::Row;
use plan::types::Type;
use plan::value::Datum;
use plan::AggregateFunc;
use std::cmp::Ordering;

/// Bits of the hash that name a bucket, per level from the leaves up; the root has one bucket.
const LEVEL_BITS: [u32; 2] = [16, 8];

/// Arrangement of one row per group.
pub(super) type GroupArrangement<'s, S, V, const LOOPS: usize> = Kept<'s, S, Row, V, LOOPS>;

/// An aggregate that picks a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extreme {
    Min(Type),
    Max(Type),
    Any,
}

impl Extreme {
    pub(super) fn of(func: AggregateFunc) -> Option<Self> {
        match func {
            AggregateFunc::Min(ty) => Some(Extreme::Min(ty)),
            AggregateFunc::Max(ty) => Some(Extreme::Max(ty)),
            AggregateFunc::Any => Some(Extreme::Any),
            _ => None,
        }
    }

    /// Whether a value can be the result: min and max ignore NULLs.
    pub(super) fn may_pick(self, value: &Datum) -> bool {
        self == Extreme::Any || *value != Datum::Null
    }

    /// Order of preference: the lesser value is picked. Among values that are equal in SQL the
    /// least as bytes wins, so that the choice does not depend on the order of arrival. Min and max
    /// pick NULL only if there is nothing else.
    pub(super) fn compare(self, a: &Datum, b: &Datum) -> Ordering {
        if a == b {
            return Ordering::Equal;
        }
        let order = match (self, a, b) {
            (Extreme::Any, _, _) => Ordering::Equal,
            (_, Datum::Null, _) => return Ordering::Greater,
            (_, _, Datum::Null) => return Ordering::Less,
            (Extreme::Min(ty), _, _) => cmp_as(ty, a, b),
            (Extreme::Max(ty), _, _) => cmp_as(ty, b, a),
        };
        order.then_with(|| Row::pack([a]).cmp(&Row::pack([b])))
    }
}

/// The picks among rows of candidates, one column per aggregate. A row without columns stands for
/// the group itself, when it exists even without candidates; it is the result if there are none.
fn pick<'a>(extremes: &[Extreme], rows: impl Iterator<Item = &'a Row>) -> Row {
    let mut best: Vec<Datum> = Vec::new();
    let mut columns = Vec::with_capacity(extremes.len());
    for row in rows {
        columns.clear();
        row.unpack_into(&mut columns);
        if best.is_empty() {
            std::mem::swap(&mut best, &mut columns);
            continue;
        }
        for ((extreme, new), old) in extremes.iter().zip(columns.drain(..)).zip(&mut best) {
            if extreme.compare(&new, old) == Ordering::Less {
                *old = new;
            }
        }
    }
    Row::pack(&best)
}

impl<'s, S: Storage, const LOOPS: usize> Context<'s, S, LOOPS> {
    /// Per group the picks among its rows of candidates. With `always`, the group of the empty key
    /// exists at all times.
    pub(super) fn extremes(
        &mut self,
        candidates: Collection<'s, (Row, Row), LOOPS>,
        extremes: Vec<Extreme>,
        always: bool,
    ) -> GroupArrangement<'s, S, Row, LOOPS> {
        let mut leaves = candidates.map(|(key, row)| {
            let hash = row.hashed();
            ((key, (hash >> 32) as u32 >> (32 - LEVEL_BITS[0])), row)
        });
        for (level, bits) in LEVEL_BITS.iter().enumerate() {
            let drop = bits - LEVEL_BITS.get(level + 1).copied().unwrap_or(0);
            leaves = self.pick_level(leaves, extremes.clone()).into_collection(
                move |(key, bucket), row| ((key.clone(), bucket >> drop), row.clone()),
            );
        }
        let mut root = leaves.map(|((key, _), row)| (key, row));
        if always {
            root = root.concat(self.global_group());
        }
        self.pick_level(root, extremes)
    }

    fn pick_level<K: Key>(
        &mut self,
        rows: Collection<'s, (K, Row), LOOPS>,
        extremes: Vec<Extreme>,
    ) -> Kept<'s, S, K, Row, LOOPS> {
        let names = Names { arrange: "Arrange extremes", reduce: "Extremes" };
        Kept::<S, _, _, LOOPS>::reduce(rows, &names, move |_, input, output| {
            let mut present =
                input.iter().filter(|(_, diff)| *diff > Mult(0)).map(|(row, _)| *row).peekable();
            if present.peek().is_some() {
                output.push((pick(&extremes, present), Mult(1)));
            }
        })
    }
}
