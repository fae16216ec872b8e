//! The incremental views of this database, as this session knows them: looked up again when they may have changed.

use crate::pg::ids::ViewId;
use crate::pg::inval::Lookups;
use crate::pg::{inval, registry};
use rules::security_label::Fallback;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

thread_local! {
    /// The incremental views of this database, with the generation of the caches they are from.
    static VIEWS: RefCell<Option<(u64, BTreeSet<ViewId>)>> = const { RefCell::new(None) };
    /// What reads do of some of them that are not current.
    static FALLBACKS: Lookups<ViewId, Option<Fallback>> = const { Lookups::new() };
    static LISTENING: Cell<bool> = const { Cell::new(false) };
}

/// Hands the set of incremental views to `work`, after reading it again if it may have changed.
pub(super) fn with_views(work: impl FnOnce(&BTreeSet<ViewId>)) {
    if !LISTENING.replace(true) {
        inval::register();
    }
    let generation = inval::generation();
    let is_current =
        VIEWS.with_borrow(|views| views.as_ref().is_some_and(|(of, _)| *of == generation));
    if !is_current {
        VIEWS.set(Some((generation, registry::all().into_iter().collect())));
    }
    VIEWS.with_borrow(|views| {
        if let Some((_, views)) = views {
            work(views);
        }
    });
}

/// What a view has on record of reads that find it not current.
pub(super) fn fallback_of(view: ViewId) -> Option<Fallback> {
    let look_up = || registry::label(view.into()).ok().and_then(|label| label.options.fallback);
    FALLBACKS.with(|known| known.get(&view, look_up))
}
