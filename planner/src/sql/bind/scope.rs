//! What names stand for in one SELECT: the columns of its FROM clause.

use super::super::refuse::{invalid, unsupported};
use super::scalar::Scalar;
use crate::error::PlanError;
use crate::types::Column;

/// The FROM clause as names: its tables and all its columns in the order of the joined row.
#[derive(Clone, Default)]
pub(super) struct Scope {
    pub(super) columns: Vec<Column>,
    tables: Vec<Visible>,
}

#[derive(Clone)]
struct Visible {
    name: String,
    /// Names and positions of its columns.
    columns: Vec<(String, usize)>,
}

impl Scope {
    /// One table.
    pub(super) fn table(name: &str, columns: &[Column]) -> Scope {
        let named = columns.iter().enumerate().map(|(i, c)| (c.name.clone(), i)).collect();
        let table = Visible { name: name.to_owned(), columns: named };
        Scope { columns: columns.to_vec(), tables: vec![table] }
    }

    /// The tables of both, the other's columns behind this one's.
    pub(super) fn join(mut self, other: Scope) -> Scope {
        let offset = self.columns.len();
        self.columns.extend(other.columns);
        for mut table in other.tables {
            for (_, position) in &mut table.columns {
                *position += offset;
            }
            self.tables.push(table);
        }
        self
    }

    /// Everything under one new name, as an alias of a join does; `order` lists the columns it shows.
    pub(super) fn alias(self, name: &str, order: Vec<(String, usize)>) -> Scope {
        let table = Visible { name: name.to_owned(), columns: order };
        Scope { columns: self.columns, tables: vec![table] }
    }

    /// Names and positions of all visible columns in order.
    pub(super) fn visible(&self) -> Vec<(String, usize)> {
        self.tables.iter().flat_map(|table| table.columns.iter().cloned()).collect()
    }

    /// The visible columns of one table.
    pub(super) fn visible_of(&self, name: &str) -> Option<Vec<(String, usize)>> {
        self.tables.iter().find(|table| table.name == name).map(|table| table.columns.clone())
    }

    /// A column by name.
    pub(super) fn column(&self, table: Option<&str>, name: &str) -> Result<Scalar, PlanError> {
        let position = self.position(table, name)?;
        Ok(Scalar::of_column(position, &self.columns[position]))
    }

    /// The position of a column by name.
    pub(super) fn position(&self, table: Option<&str>, name: &str) -> Result<usize, PlanError> {
        let matches = |candidate: &&Visible| table.is_none_or(|table| candidate.name == table);
        let mut found = self
            .tables
            .iter()
            .filter(matches)
            .flat_map(|table| &table.columns)
            .filter(|(column, _)| column == name);
        match (found.next(), found.next()) {
            (Some((_, position)), None) => Ok(*position),
            (Some(_), Some(_)) => Err(invalid(format!("column reference \"{name}\" is ambiguous"))),
            (None, _) => Err(self.unknown(table, name)),
        }
    }

    fn unknown(&self, table: Option<&str>, name: &str) -> PlanError {
        if table.is_none() && self.tables.iter().any(|candidate| candidate.name == name) {
            return unsupported(format!("the whole-row reference \"{name}\" is"));
        }
        let qualified = match table {
            Some(table) => format!("{table}.{name}"),
            None => name.to_owned(),
        };
        invalid(format!("column \"{qualified}\" does not exist"))
    }
}
