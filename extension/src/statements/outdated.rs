//! Views that would be planned in another way by what is known of their tables now.

use super::identity;
use crate::compile::{self, CompiledView, Figures, Known};
use crate::pg::ids::{RelationId, ViewId};

/// Statistics that differ by less say nothing.
const FACTOR: f64 = 10.0;

/// A view with another plan, and the table whose rows have changed most.
pub struct Outdated {
    pub view: ViewId,
    pub table: RelationId,
    /// The rows by which the view is planned; `None` if nothing was known.
    pub planned: Option<f64>,
    pub now: f64,
}

/// All of them, without those that cannot be planned at the moment, or have a lock in the way.
pub fn list() -> Vec<Outdated> {
    identity::free_views().filter_map(outdated).collect()
}

fn outdated(view: ViewId) -> Option<Outdated> {
    let CompiledView { query: then, .. } = compile::compile_view(view).ok()?;
    let tables = then.sources.iter().filter(|source| !source.is_clock());
    let changed = tables.filter_map(|source| {
        let now = Figures::rows_now(source.table, source.only)?;
        let planned = then.figures.rows(source.table, source.only);
        let ratio = planned.map_or(f64::INFINITY, |planned| {
            let (planned, now) = (planned.max(1.0), now.max(1.0));
            (planned / now).max(now / planned)
        });
        Some((ratio, Outdated { view, table: source.table, planned, now }))
    });
    let (ratio, most) = changed.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    if ratio < FACTOR {
        return None;
    }
    let CompiledView { query: now, .. } = compile::compile_view_by(view, Known::Now).ok()?;
    (now.plan.root != then.plan.root).then_some(most)
}
