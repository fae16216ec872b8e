//! The indexes that views keep together, as shared memory has them: written by the worker of a database, read by all.

use crate::pg::ids::ViewId;
use crate::pg::index_cells::{IndexCell, MAX_READS};
use crate::pg::shmem::{self, Area};
use crate::shared;

/// The cell of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number(u32);

/// Takes a cell; `None` if none is free.
pub fn take(index: IndexCell) -> Option<Number> {
    shmem::area()?.locked(|locked| {
        let mut cells = (0..).zip(locked.indexes());
        let (number, cell) = cells.find(|(_, cell)| cell.database == 0)?;
        *cell = index;
        Some(Number(number))
    })
}

/// Changes what is known of an index.
pub fn update(number: Number, change: impl FnOnce(&mut IndexCell)) {
    if let Some(area) = shmem::area() {
        area.locked(|locked| locked.indexes().get_mut(number.0 as usize).map(change));
    }
}

/// An index is gone.
pub fn free(number: Number) {
    update(number, |cell| cell.database = 0);
}

/// All indexes of a database are gone.
pub fn free_all(database: u32) {
    let free = |area: &Area| {
        area.locked(|locked| {
            let cells = locked.indexes().iter_mut().filter(|cell| cell.database == database);
            cells.for_each(|cell| cell.database = 0);
        });
    };
    shmem::area().into_iter().for_each(free);
}

/// Numbers as the cell of a view that reads them has them; those beyond [`MAX_READS`] are left out.
pub fn as_reads(numbers: impl IntoIterator<Item = Number>) -> [u32; MAX_READS] {
    let mut reads = [0; MAX_READS];
    reads.iter_mut().zip(numbers).for_each(|(read, number)| *read = number.0 + 1);
    reads
}

/// The indexes of a database, each with the views that read it.
pub fn all(database: u32) -> Vec<(IndexCell, Vec<ViewId>)> {
    let read = |area: &Area| {
        area.locked(|locked| {
            let cells = (1..).zip(locked.indexes().iter());
            cells
                .filter(|(_, cell)| cell.database == database)
                .map(|(n, cell)| (n, *cell))
                .collect()
        })
    };
    let cells: Vec<(u32, IndexCell)> = shmem::area().map(read).unwrap_or_default();
    let views = shared::views_of(database).map(|view| (view.id(), view.figures().reads));
    let views: Vec<(ViewId, [u32; MAX_READS])> = views.collect();
    let readers = |number: u32| {
        views.iter().filter(|(_, reads)| reads.contains(&number)).map(|(view, _)| *view).collect()
    };
    cells.into_iter().map(|(number, cell)| (cell, readers(number))).collect()
}
