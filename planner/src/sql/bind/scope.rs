//! What names stand for in one SELECT: the columns of its FROM clause.

use super::super::refuse::{invalid, unsupported};
use super::bound_expr::BoundExpr;
use super::row_order::{RowOrder, Sorted};
use crate::catalog::SYSTEM_COLUMNS;
use crate::error::PlanError;
use plan::types::Column;

/// A name and what it stands for, over the columns of the joined row.
pub(super) type Named = (String, BoundExpr);

/// The FROM clause, or a part of it, as names.
#[derive(Clone, Default)]
pub(super) struct Scope {
    /// The columns of the joined row.
    arity: usize,
    /// What unqualified names and `*` mean: columns merged by USING occur once.
    shown: Vec<Named>,
    tables: Vec<Table>,
    /// In which order the rows come.
    order: RowOrder,
}

#[derive(Clone)]
struct Table {
    name: String,
    columns: Vec<Named>,
    /// Columns that nothing shows but their names.
    system: Vec<Named>,
}

impl Scope {
    /// The names of one item of FROM.
    pub(super) fn table(name: &str, rows: &Sorted) -> Scope {
        let named = |(i, c): (usize, &Column)| (c.name.clone(), BoundExpr::of_column(i, c));
        let mut shown: Vec<Named> = rows.rel.columns.iter().enumerate().map(named).collect();
        let mut system = shown.split_off(rows.arity);
        system.retain(|(name, _)| SYSTEM_COLUMNS.contains(&name.as_str()));
        let table = Table { name: name.to_owned(), columns: shown.clone(), system };
        let order = rows.order.clone();
        Scope { arity: rows.rel.arity(), shown, tables: vec![table], order }
    }

    /// In which order the rows come.
    pub(super) fn order(&self) -> &RowOrder {
        &self.order
    }

    /// The name of the first table.
    pub(super) fn first_table(&self) -> Option<&str> {
        let names = self.tables.iter().map(|table| table.name.as_str());
        names.into_iter().find(|name| !name.is_empty())
    }

    /// That order once rows of something else have been put beside the rows.
    fn joined_order(&self) -> RowOrder {
        self.order.clone().lost(self.first_table(), "a join")
    }

    /// The names of both, the other's columns behind this one's.
    pub(super) fn join(mut self, other: Scope) -> Scope {
        if self.arity == 0 && self.tables.is_empty() {
            return other;
        }
        self.order = match self.joined_order() {
            RowOrder::Any => other.joined_order(),
            order => order,
        };
        let offset = self.arity;
        let shift = |(name, scalar): Named| (name, scalar.shifted(offset));
        self.arity += other.arity;
        self.shown.extend(other.shown.into_iter().map(shift));
        for Table { name, columns, system } in other.tables {
            let [columns, system] =
                [columns, system].map(|columns| columns.into_iter().map(shift).collect());
            self.tables.push(Table { name, columns, system });
        }
        self
    }

    /// The same names, for rows that may have NULL in every column.
    pub(super) fn nullable(mut self) -> Scope {
        let tables = self.tables.iter_mut();
        let tables = tables.flat_map(|table| table.columns.iter_mut().chain(&mut table.system));
        self.shown.iter_mut().chain(tables).for_each(|(_, scalar)| scalar.nullable = true);
        self
    }

    /// Shows the merged columns of a USING first, and no others of these names.
    pub(super) fn merge(mut self, merged: Vec<Named>) -> Scope {
        self.shown.retain(|(name, _)| merged.iter().all(|(other, _)| other != name));
        self.shown.splice(0..0, merged);
        self
    }

    /// Everything under one new table name, as an alias of a join does; the first columns are renamed.
    pub(super) fn alias(mut self, name: &str, names: Vec<String>) -> Result<Scope, PlanError> {
        if names.len() > self.shown.len() {
            return Err(invalid(format!("too many column aliases for \"{name}\"")));
        }
        for (column, name) in self.shown.iter_mut().zip(names) {
            column.0 = name;
        }
        let columns = self.shown.clone();
        let table = Table { name: name.to_owned(), columns, system: vec![] };
        Ok(Scope { tables: vec![table], ..self })
    }

    /// All columns that `*` stands for.
    pub(super) fn shown(&self) -> &[Named] {
        &self.shown
    }

    /// The columns of one table.
    pub(super) fn shown_of(&self, name: &str) -> Option<&[Named]> {
        self.tables.iter().find(|table| table.name == name).map(|table| table.columns.as_slice())
    }

    /// A column by name.
    pub(super) fn column(&self, table: Option<&str>, name: &str) -> Result<BoundExpr, PlanError> {
        self.find(table, name)?.ok_or_else(|| self.unknown(table, name))
    }

    /// A column by name, if it is here.
    pub(super) fn find(
        &self,
        table: Option<&str>,
        name: &str,
    ) -> Result<Option<BoundExpr>, PlanError> {
        let candidates = match table {
            None => self.shown.as_slice(),
            Some(table) => self.shown_of(table).unwrap_or_default(),
        };
        let of_system = self.tables.iter().filter(|known| Some(known.name.as_str()) == table);
        let of_system = of_system.flat_map(|table| &table.system);
        let all = candidates.iter().chain(of_system);
        let mut found = all.filter(|(column, _)| column == name);
        match (found.next(), found.next()) {
            (Some((_, scalar)), None) => Ok(Some(scalar.clone())),
            (Some(_), Some(_)) => Err(invalid(format!("column reference \"{name}\" is ambiguous"))),
            (None, _) => Ok(None),
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
