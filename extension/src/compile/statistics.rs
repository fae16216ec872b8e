//! The statistics of tables by which a query is planned: those of now, or those of an earlier planning.

use crate::pg::catalog::{self, Attribute};
use crate::pg::ids::{RelationId, ViewId};
use crate::pg::view_statistics::{self, Noted};
use pgrx::pg_sys::Oid;
use planner::catalog::{ColumnStatistics, Statistics};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A table, and whether it is read without its children.
type Read = (u32, bool);

/// What was known of the tables that a plan reads, as far as it reads them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    tables: Vec<(Read, TableFigures)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct TableFigures {
    rows: f64,
    /// By attribute number.
    columns: BTreeMap<i16, ColumnStatistics>,
}

/// By what a query is planned.
#[derive(Clone, Debug)]
pub enum Known {
    /// What the catalogs say now.
    Now,
    /// What they said then.
    Then(Figures),
}

impl Default for Known {
    fn default() -> Known {
        Known::Then(Figures::default())
    }
}

impl Known {
    /// What a view is on record with.
    pub fn on_record(view: ViewId) -> Known {
        Known::noted(view_statistics::of(view).as_ref())
    }

    /// The same, if that has been read.
    pub fn noted(noted: Option<&Noted>) -> Known {
        let figures = noted.and_then(|noted| serde_json::from_str(&noted.statistics).ok());
        Known::Then(figures.unwrap_or_default())
    }

    /// What is known of a table with these columns.
    pub fn of_table(&self, table: Oid, only: bool, columns: &[Attribute]) -> Option<Statistics> {
        let figures = match self {
            Known::Now => present(table, only, columns.iter().map(|column| column.number))?,
            Known::Then(figures) => figures.of((table.to_u32(), only))?.clone(),
        };
        let known = |column: &Attribute| figures.columns.get(&column.number).cloned();
        Some(Statistics { rows: figures.rows, columns: columns.iter().map(known).collect() })
    }
}

impl Figures {
    /// Adds what is known of a table of which these columns are read, parallel to `statistics`.
    pub fn add(&mut self, table: Oid, only: bool, columns: &[i16], statistics: &Statistics) {
        let columns = columns.iter().zip(&statistics.columns);
        let columns = columns.filter_map(|(number, known)| Some((*number, known.clone()?)));
        let figures = TableFigures { rows: statistics.rows, columns: columns.collect() };
        self.tables.push(((table.to_u32(), only), figures));
    }

    /// As text, for the record.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The rows of a table; `None` if nothing is known of it.
    pub fn rows(&self, table: RelationId, only: bool) -> Option<f64> {
        Some(self.of((table.to_u32(), only))?.rows)
    }

    /// The rows that a table has now.
    pub fn rows_now(table: RelationId, only: bool) -> Option<f64> {
        catalog::estimated_rows(&tables(table.into(), only))
    }

    fn of(&self, read: Read) -> Option<&TableFigures> {
        self.tables.iter().find(|(known, _)| *known == read).map(|(_, figures)| figures)
    }
}

/// The tables whose rows a table has, the descendants with it unless it is read without them. Takes the locks a reader takes.
pub(super) fn tables(table: Oid, only: bool) -> Vec<Oid> {
    match only {
        true => vec![table],
        false => catalog::with_descendants(table),
    }
}

/// What the catalogs say now.
fn present(table: Oid, only: bool, columns: impl Iterator<Item = i16>) -> Option<TableFigures> {
    let tables = tables(table, only);
    let rows = catalog::estimated_rows(&tables)?;
    let inherited = tables != [table];
    let known =
        |number: i16| Some((number, catalog::column_statistics(table, number, inherited, rows)?));
    Some(TableFigures { rows, columns: columns.filter_map(known).collect() })
}
