//! Whether a snapshot shows views as they must be.

use super::wait::{file_of, is_in_time, is_readable, reads_clock};
use crate::pg::ids::ViewId;
use crate::pg::read::Read;
use crate::pg::shmem::{Database, View};
use crate::pg::{process, states};
use crate::shared::{self, ViewState};
use std::sync::atomic::Ordering::SeqCst;

/// Whether the snapshot of a statement shows everything in the views that was committed before the
/// position `target`.
///
/// The worker notes who changed a view last before it says that the view is attached, and that before
/// it says how far the views have come. So whoever finds them far enough, and then sees what changed
/// them last, sees all of it. If the target was taken after the snapshot, each view is at the point of the snapshot then,
/// and shows neither more nor less than the base tables do.
pub fn shows(read: &Read, database: &Database, views: &[ViewId], target: u64) -> bool {
    super::wait::are_current(database, views, target) && shows_changes(read, views)
}

/// Whether a snapshot that was taken after its target shows the views at one point of commit order. What the worker
/// has published may be older or newer than the snapshot: one of them may just have been left behind, or have come back. So
/// rows written in the transactions that change the views decide. One in error is not where the others are.
pub fn are_together(read: &Read, views: &[ViewId]) -> bool {
    let is_apart = |view: &ViewId| states::read_one(*view).is_some();
    views.len() < 2 || !read.with_snapshot(|| views.iter().any(is_apart))
}

/// Whether it shows the last change of each of the views.
pub fn shows_changes(read: &Read, views: &[ViewId]) -> bool {
    let is_shown = |view: &ViewId| shared::view(*view).is_some_and(|cell| shows_change(read, cell));
    views.iter().all(is_shown)
}

fn shows_change(read: &Read, cell: &View) -> bool {
    read.sees(cell.changed.load(SeqCst))
}

/// A view that is shown as it must be, in a file. One that has another file by now, from REFRESH, shows what that has to
/// all snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownView {
    pub relid: ViewId,
    /// Its file then.
    pub file: u32,
}

impl ShownView {
    /// A view that this session has a lock on.
    pub fn now(relid: ViewId) -> ShownView {
        ShownView { relid, file: file_of(relid) }
    }
}

/// The views that every snapshot taken from now on shows up to the position that all have reached.
pub fn readable_views(database: &Database) -> Vec<ShownView> {
    views_that(database, |cell| cell.state() == ViewState::Live)
}

/// The views that the snapshot of a statement shows up to a position; none if they have not reached it.
pub fn shown_views(read: &Read, database: &Database, target: u64) -> Vec<ShownView> {
    if database.applied.load(SeqCst) < target {
        return Vec::new();
    }
    let is_shown = |cell: &View| cell.state() == ViewState::Live && shows_change(read, cell);
    views_that(database, is_shown)
}

fn views_that(database: &Database, are: impl Fn(&View) -> bool) -> Vec<ShownView> {
    let is_in_time = is_in_time(database);
    let cells = shared::views_of(process::database());
    let fit = cells.filter(|cell| is_in_time || cell.reads_clock.load(SeqCst) == 0);
    let shown = |cell: &View| {
        // Before who changed it last: the worker notes the file after that.
        let view = ShownView { relid: cell.id(), file: cell.file.load(SeqCst) };
        are(cell).then_some(view)
    };
    fit.filter_map(shown).collect()
}

/// Whether views have reached a position, for all who take their snapshots from now on.
pub fn are_current(database: &Database, views: &[ViewId], target: u64) -> bool {
    database.applied.load(SeqCst) >= target
        && views.iter().all(|view| is_readable(*view))
        && (!views.iter().any(|view| reads_clock(*view)) || is_in_time(database))
}
