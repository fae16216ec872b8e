//! The incremental views of this database, as this session knows them: looked up again when they may have changed.

use crate::pg::ids::ViewId;
use crate::pg::{inval, registry};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

thread_local! {
    /// The incremental views of this database, with the generation of the caches they are from.
    static VIEWS: RefCell<Option<(u64, BTreeSet<ViewId>)>> = const { RefCell::new(None) };
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
