//! Views that serve as what they were before they were replaced (`worker::former`): for whom they do.
//!
//! Not for a session that has replaced the view, which expects what it has asked for, nor for statements that read columns which
//! the view was given with that.

use crate::pg::ids::ViewId;
use crate::pg::read::Read;
use crate::pg::shmem::View;
use crate::pg::{catalog, registry};
use crate::shared;
use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering::SeqCst;

thread_local! {
    /// The last column that the running statement reads, of each view.
    static LAST_COLUMNS: RefCell<Vec<(ViewId, u32)>> = const { RefCell::new(Vec::new()) };
    /// Whether it wants every view as what it is.
    static IS_EXACT: Cell<bool> = const { Cell::new(false) };
}

/// A statement begins that reads views.
pub(super) fn begin(read: &Read) {
    LAST_COLUMNS.with_borrow_mut(|columns| {
        columns.clear();
        columns.extend(read.last_columns());
    });
}

/// One that reads none.
pub(super) fn begin_without() {
    IS_EXACT.set(false);
    LAST_COLUMNS.with_borrow_mut(Vec::clear);
}

/// One that wants views as what they are, whatever it reads.
pub(super) fn begin_exact() {
    IS_EXACT.set(true);
}

/// Whether a view's rows will do for the running statement, whatever they are of.
pub(super) fn serves(view: ViewId, cell: &View) -> bool {
    let columns = cell.former_columns.load(SeqCst);
    let is_enough = || {
        LAST_COLUMNS
            .with_borrow(|last| last.iter().all(|(of, last)| *of != view || *last <= columns))
    };
    columns == 0 || (!IS_EXACT.get() && is_enough() && !registry::has_been_changed_here(view))
}

/// Whether the rows that views hold have the columns that the running statement reads, as far as that is known.
pub(super) fn have_columns(views: &[ViewId]) -> bool {
    LAST_COLUMNS.with_borrow(|last| {
        last.iter().filter(|(of, _)| views.contains(of)).all(|(of, last)| has_column(*of, *last))
    })
}

/// Whether its rows have all that a view has, as far as that is known.
pub(super) fn has_all_columns(view: ViewId) -> bool {
    has_column(view, catalog::column_count(view.into()))
}

fn has_column(view: ViewId, number: u32) -> bool {
    let columns = shared::view(view).map_or(0, |cell| cell.columns.load(SeqCst));
    columns == 0 || number <= columns
}

/// Views have come to a position behind all that this session has done to them.
pub(super) fn note_current(views: &[ViewId]) {
    for view in views {
        if shared::view(*view).is_some_and(|cell| cell.former_columns.load(SeqCst) == 0) {
            registry::forget_changed_here(*view);
        }
    }
}
