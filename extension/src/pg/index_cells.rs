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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// Tables of a sub-plan that are told of.
const MAX_TABLES: usize = 16;

/// What an index holds.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The rows of a table.
    Table,
    /// What a join of two tables puts out.
    Join,
    /// What a sub-plan puts out: a recursion,
    Recursion,
    /// groups,
    Groups,
    /// distinct rows,
    Distinct,
    /// or sorted rows.
    Partitions,
}

impl Kind {
    /// As SQL shows it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Table => "table",
            Kind::Join => "join",
            Kind::Recursion => "recursion",
            Kind::Groups => "groups",
            Kind::Distinct => "distinct",
            Kind::Partitions => "partitions",
        }
    }

    /// As EXPLAIN says it.
    pub fn title(self) -> &'static str {
        match self {
            Kind::Table => "Index",
            Kind::Join => "Join",
            Kind::Recursion => "Recursion",
            Kind::Groups => "Groups",
            Kind::Distinct => "Distinct rows",
            Kind::Partitions => "Partitions",
        }
    }
}

/// An index.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct IndexCell {
    /// The database whose it is, 0 for a free cell.
    pub database: u32,
    pub kind: Kind,
    /// Tells sub-plans apart.
    pub fingerprint: u64,
    /// The tables of a sub-plan.
    tables: [RelationId; MAX_TABLES],
    /// The table whose rows it has, or the first one of a join; none of a sub-plan.
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
        let columns = columns.into_iter().collect();
        let mut cell =
            IndexCell { table, columns, ..IndexCell::empty(Kind::Table, database, form) };
        cell.keys = key.len() as u32;
        cell.key.get_mut(..key.len())?.copy_from_slice(key);
        Some(cell)
    }

    /// What a sub-plan with that fingerprint puts out, which reads these tables.
    pub fn of_sub_plan(
        (database, form): (u32, u32),
        (kind, fingerprint): (Kind, u64),
        tables: impl Iterator<Item = RelationId>,
    ) -> IndexCell {
        let mut cell = IndexCell { fingerprint, ..IndexCell::empty(kind, database, form) };
        cell.tables.iter_mut().zip(tables).for_each(|(place, table)| *place = table);
        cell
    }

    /// What a join of this table with columns of another one puts out.
    pub fn joined_with(mut self, joined: RelationId, columns: ColumnSet) -> IndexCell {
        self.kind = Kind::Join;
        (self.joined, self.joined_columns) = (joined, columns);
        self
    }

    fn empty(kind: Kind, database: u32, form: u32) -> IndexCell {
        IndexCell {
            database,
            kind,
            fingerprint: 0,
            tables: [RelationId::NONE; MAX_TABLES],
            table: RelationId::NONE,
            form,
            keys: 0,
            key: [0; MAX_KEY],
            columns: ColumnSet::EMPTY,
            joined: RelationId::NONE,
            joined_columns: ColumnSet::EMPTY,
            rows: 0,
            bytes: 0,
        }
    }

    /// The tables of which it is made, the first ones of a sub-plan that reads many.
    pub fn tables(&self) -> Vec<RelationId> {
        let all = [self.table, self.joined].into_iter().chain(self.tables);
        all.filter(|table| *table != RelationId::NONE).collect()
    }

    /// The numbers of the columns by which it is arranged.
    pub fn key(&self) -> &[i16] {
        &self.key[..(self.keys as usize).min(MAX_KEY)]
    }
}
