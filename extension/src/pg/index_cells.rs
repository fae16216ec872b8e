//! What all processes know of the indexes that views share: cells in shared memory, guarded by the area's lock.

use super::ids::RelationId;

/// Columns that an index may be arranged by, as many as PostgreSQL's own have.
pub const MAX_KEY: usize = 32;

/// Indexes that one view may read.
pub const MAX_READS: usize = 32;

/// The highest number that a column can have.
const LAST_COLUMN: usize = 1600;
const WORDS: usize = LAST_COLUMN / 64 + 1;

/// Columns of a table by number, and 0 for the system column that can be read.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ColumnSet([u64; WORDS]);

impl ColumnSet {
    const EMPTY: ColumnSet = ColumnSet([0; WORDS]);

    pub fn contains(&self, column: i16) -> bool {
        let place = place(column);
        self.0[place / 64] & 1 << (place % 64) != 0
    }

    /// The numbers of the columns, without the system's.
    pub fn numbers(&self) -> Vec<i16> {
        (1..=LAST_COLUMN as i16).filter(|column| self.contains(*column)).collect()
    }
}

impl FromIterator<i16> for ColumnSet {
    fn from_iter<I: IntoIterator<Item = i16>>(columns: I) -> ColumnSet {
        let mut set = ColumnSet::EMPTY;
        for place in columns.into_iter().map(place) {
            set.0[place / 64] |= 1 << (place % 64);
        }
        set
    }
}

fn place(column: i16) -> usize {
    usize::try_from(column).map_or(0, |column| column.min(LAST_COLUMN as i16 as usize))
}

/// An index.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IndexCell {
    /// The database whose it is, 0 for a free cell.
    pub database: u32,
    pub table: RelationId,
    /// Tells those apart that not the same views can read.
    pub form: u32,
    keys: u32,
    key: [i16; MAX_KEY],
    pub columns: ColumnSet,
    /// The table that it is joined with, if it is what a join puts out, and the columns of that one.
    pub joined: RelationId,
    pub joined_columns: ColumnSet,
    /// Rows that it has, those included that are still to be merged with their retractions.
    pub rows: u64,
    pub bytes: u64,
}

impl IndexCell {
    /// An index of columns of a table, arranged by some of them; `None` if these are too many.
    pub fn new(
        (database, table): (u32, RelationId),
        form: u32,
        key: &[i16],
        columns: impl IntoIterator<Item = i16>,
    ) -> Option<IndexCell> {
        let mut cell = IndexCell {
            database,
            table,
            form,
            keys: key.len() as u32,
            key: [0; MAX_KEY],
            columns: columns.into_iter().collect(),
            joined: RelationId::NONE,
            joined_columns: ColumnSet::EMPTY,
            rows: 0,
            bytes: 0,
        };
        cell.key.get_mut(..key.len())?.copy_from_slice(key);
        Some(cell)
    }

    /// The numbers of the columns by which it is arranged.
    pub fn key(&self) -> &[i16] {
        &self.key[..(self.keys as usize).min(MAX_KEY)]
    }
}
