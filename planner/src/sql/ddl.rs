//! A catalog made from CREATE TABLE statements, for tests and for using the planner without PostgreSQL.

use super::parse::{parse_statements, ONLY};
use super::refuse::invalid;
use super::types::bind_type;
use crate::catalog::{Catalog, Statistics, Table};
use crate::error::PlanError;
use plan::types::Column;
use plan::types::TableName;
use plan::Zone;
use sqlparser::ast::{
    ColumnDef, ColumnOption, CreateTable, Expr, IndexColumn, ObjectName, Statement, TableConstraint,
};
use std::collections::BTreeMap;

/// Tables by name. A table created without schema is found with and without the schema `public`.
#[derive(Clone, Debug, Default)]
pub struct DdlCatalog {
    tables: BTreeMap<TableName, Table>,
    zone: Option<Zone>,
}

impl DdlCatalog {
    /// The tables of CREATE TABLE statements, with their PRIMARY KEY, UNIQUE and NOT NULL constraints.
    pub fn parse(ddl: &str) -> Result<DdlCatalog, PlanError> {
        let mut catalog = DdlCatalog::default();
        for statement in parse_statements(ddl)? {
            let Statement::CreateTable(create) = statement else {
                return Err(invalid("only CREATE TABLE is understood here"));
            };
            let name = table_name(&create.name)?;
            catalog.insert(name, table(&create)?);
        }
        Ok(catalog)
    }

    /// Adds or replaces a table.
    pub fn insert(&mut self, name: TableName, table: Table) {
        self.tables.insert(name, table);
    }

    /// Says what is known of a table's rows. Nothing if there is no such table.
    pub fn set_statistics(&mut self, name: &TableName, known: Option<Statistics>) {
        if let Some(table) = self.tables.get_mut(name) {
            table.statistics = known;
        }
    }

    /// Has queries in a time zone, which they may name, too.
    pub fn set_zone(&mut self, zone: Zone) {
        self.zone = Some(zone);
    }
}

impl Catalog for DdlCatalog {
    fn table(&self, name: &TableName) -> Option<Table> {
        let schema = name.schema.as_deref().filter(|schema| *schema != "public");
        let schema = schema.map(str::to_owned);
        let key = TableName { schema, name: name.name.clone(), only: false };
        self.tables.get(&key).cloned()
    }

    fn zone(&self) -> Option<Zone> {
        self.zone
    }

    fn zone_named(&self, name: &str) -> Option<Zone> {
        self.zone.filter(|zone| zone.name() == name)
    }
}

/// The parts of a qualified name.
pub(super) fn table_name(name: &ObjectName) -> Result<TableName, PlanError> {
    let mut parts = Vec::new();
    for part in &name.0 {
        parts.push(part.as_ident().ok_or_else(|| invalid(format!("bad name {name}")))?);
    }
    let (schema, table) = match parts.as_slice() {
        [table] => (None, table),
        [schema, table] => (Some(schema.value.clone()), table),
        _ => return Err(invalid(format!("bad name {name}"))),
    };
    let (name, only) = match table.value.strip_prefix(ONLY) {
        Some(name) => (name.to_owned(), true),
        None => (table.value.clone(), false),
    };
    Ok(TableName { schema, name, only })
}

fn table(create: &CreateTable) -> Result<Table, PlanError> {
    let mut columns = Vec::new();
    let (mut primary, mut unique) = (Vec::new(), Vec::new());
    for (position, definition) in create.columns.iter().enumerate() {
        columns.push(column(definition)?);
        for option in &definition.options {
            match option.option {
                ColumnOption::PrimaryKey(_) => primary.push(vec![position]),
                ColumnOption::Unique(_) => unique.push(vec![position]),
                _ => {}
            }
        }
    }
    for constraint in &create.constraints {
        match constraint {
            TableConstraint::PrimaryKey(key) => primary.push(positions(&key.columns, &columns)?),
            TableConstraint::Unique(key) => unique.push(positions(&key.columns, &columns)?),
            _ => {}
        }
    }
    for &position in primary.iter().flatten() {
        columns[position].nullable = false;
    }
    unique.retain(|set| set.iter().all(|&position| !columns[position].nullable));
    primary.extend(unique);
    Ok(Table { columns, unique: primary, system: vec![], statistics: None })
}

fn column(definition: &ColumnDef) -> Result<Column, PlanError> {
    let (ty, typmod) = bind_type(&definition.data_type)?;
    let not_null = |option: &ColumnOption| matches!(option, ColumnOption::NotNull);
    let nullable = !definition.options.iter().any(|def| not_null(&def.option));
    Ok(Column { name: definition.name.value.clone(), ty, typmod, nullable })
}

fn positions(key: &[IndexColumn], columns: &[Column]) -> Result<Vec<usize>, PlanError> {
    let find = |part: &IndexColumn| match &part.column.expr {
        Expr::Identifier(ident) => columns.iter().position(|column| column.name == ident.value),
        _ => None,
    };
    let found: Option<Vec<usize>> = key.iter().map(find).collect();
    found.ok_or_else(|| invalid("unknown column in a constraint"))
}
