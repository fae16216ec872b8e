//! The planner's catalog over PostgreSQL's, and the way back from its names to OIDs.

use super::host::HostExpressions;
use super::statistics::{Figures, Known};
use super::SourceTable;
use crate::errors::Error;
use crate::pg::relation::TABLE_OID;
use crate::pg::{catalog, process, registry, types, zones};
use pgrx::pg_sys::{self, Oid};
use plan::types::TableName;
use plan::types::{Column, Scalar, Type};
use plan::{Source, Zone};
use planner::catalog::{Catalog, HostExpression, HostExtent, Statistics, Table, SYSTEM_COLUMNS};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// What one planning has looked up.
#[derive(Default)]
pub struct PgCatalog {
    found: RefCell<BTreeMap<TableName, Oid>>,
    /// What each relation is.
    known: RefCell<BTreeMap<TableName, Table>>,
    host: HostExpressions,
    zone: Option<Zone>,
    statistics: Known,
}

impl PgCatalog {
    /// A catalog for a query with these expressions that the host evaluates, in a time zone, with these statistics.
    pub fn new(host: HostExpressions, zone: Option<Zone>, statistics: Known) -> PgCatalog {
        PgCatalog { host, zone, statistics, ..PgCatalog::default() }
    }

    /// What was known of the tables that a plan reads.
    pub fn figures(&self, sources: &[Source]) -> Figures {
        let mut figures = Figures::default();
        for source in sources {
            let known = self.known.borrow();
            let (Some(table), Some(oid)) =
                (known.get(&source.table), self.found.borrow().get(&source.table).copied())
            else {
                continue;
            };
            let Some(statistics) = &table.statistics else { continue };
            let attributes = catalog::describe_relation(oid).map_or(vec![], |r| r.attributes);
            let read = source.columns.iter().filter_map(|&column| {
                Some((attributes.get(column)?.number, statistics.columns.get(column)?.clone()))
            });
            let (numbers, columns): (Vec<i16>, Vec<_>) = read.unzip();
            let read = Statistics { rows: statistics.rows, columns };
            figures.add(oid, source.table.only, &numbers, &read);
        }
        figures
    }

    /// The expressions that the host evaluates.
    pub fn host_expressions(self) -> HostExpressions {
        self.host
    }

    /// The base table, or incremental view, behind a plan's source.
    pub fn source(&self, source: &Source) -> Result<SourceTable, Error> {
        if source.is_clock() {
            return Ok(SourceTable::clock(source.schema.iter().map(|c| c.ty).collect()));
        }
        let unknown = || Error::internal(format!("plan reads unknown table {:?}", source.table));
        let oid = *self.found.borrow().get(&source.table).ok_or_else(unknown)?;
        let info = catalog::describe_relation(oid).ok_or_else(unknown)?;
        let number = |index: &usize| match info.attributes.get(*index) {
            Some(attribute) => Some(attribute.number),
            // Behind them is that of the system.
            None => (*index == info.attributes.len()).then_some(TABLE_OID),
        };
        let attnums = source.columns.iter().map(number);
        let attnums = attnums.collect::<Option<Vec<i16>>>().ok_or_else(unknown)?;
        let types = source.schema.iter().map(|c| c.ty).collect();
        let (only, is_view) = (source.table.only, info.kind == pg_sys::RELKIND_MATVIEW);
        Ok(SourceTable { table: oid.into(), only, is_view, attnums, types })
    }

    fn base_table(&self, oid: Oid, only: bool) -> Option<Table> {
        let info = catalog::describe_relation(oid)?;
        // Descendants of an inheritance parent may repeat its keys and drop its NOT NULLs.
        let is_alone = only
            || info.kind == pg_sys::RELKIND_PARTITIONED_TABLE
            || catalog::with_descendants(oid).len() == 1;
        let columns: Vec<Column> = info.attributes.iter().map(|a| column(a, is_alone)).collect();
        let position = |number: &i16| info.attributes.iter().position(|a| a.number == *number);
        let keys = if is_alone { catalog::unique_keys(oid) } else { Vec::new() };
        let unique = keys.iter().filter_map(|k| k.iter().map(position).collect()).collect();
        let table_oid = types::planner_type(pg_sys::OIDOID, Oid::INVALID)?;
        let [name] = SYSTEM_COLUMNS.map(str::to_owned);
        let system = vec![Column { name, ty: table_oid, typmod: -1, nullable: false }];
        let statistics = self.statistics.of_table(oid, only, &info.attributes);
        Some(Table { columns, unique, system, statistics })
    }

    /// An incremental view. Its rows come from its dataflow, before anything of PostgreSQL has checked them: what its
    /// indexes promise does not count.
    fn view(&self, oid: Oid, only: bool) -> Option<Table> {
        let info = catalog::describe_relation(oid)?;
        let columns = info.attributes.iter().map(|a| column(a, false)).collect();
        let statistics = self.statistics.of_table(oid, only, &info.attributes);
        Some(Table { columns, unique: vec![], system: vec![], statistics })
    }

    /// A relation that is met for the first time.
    fn look_up(&self, oid: Oid, only: bool) -> Option<Table> {
        match catalog::relation_kind(oid)? {
            pg_sys::RELKIND_RELATION | pg_sys::RELKIND_PARTITIONED_TABLE => {
                self.base_table(oid, only)
            }
            pg_sys::RELKIND_MATVIEW if registry::contains(oid) => self.view(oid, only),
            _ => None,
        }
    }
}

impl Catalog for PgCatalog {
    fn host_expression(&self, number: u64) -> Option<HostExpression> {
        self.host.get(&number).cloned()
    }

    fn host_extents(&self, code: &str) -> Vec<[HostExtent; 2]> {
        let known = self.host.values().find(|expression| expression.code == code);
        known.map_or(Vec::new(), |expression| expression.extents.clone())
    }

    fn table(&self, name: &TableName) -> Option<Table> {
        if let Some(known) = self.known.borrow().get(name) {
            return Some(known.clone());
        }
        let schema = name.schema.as_deref().unwrap_or("pg_catalog");
        let oid = catalog::find_relation(schema, &name.name)?;
        self.found.borrow_mut().insert(name.clone(), oid);
        let relation = self.look_up(oid, name.only)?;
        self.known.borrow_mut().insert(name.clone(), relation.clone());
        Some(relation)
    }

    fn zone(&self) -> Option<Zone> {
        self.zone
    }

    fn zone_named(&self, name: &str) -> Option<Zone> {
        zones::named(name)
    }

    fn check_interrupts(&self) {
        process::check_interrupts();
    }
}

/// A column as the planner sees it. One of a type that no column should have keeps its place, so
/// that column aliases fall on the right columns; no query that names it gets this far.
fn column(attribute: &catalog::Attribute, trust_not_null: bool) -> Column {
    let placeholder = Type::Scalar(Scalar::Bytea);
    let ty = types::planner_type(attribute.type_oid, attribute.collation);
    Column {
        name: attribute.name.clone(),
        ty: ty.unwrap_or(placeholder),
        typmod: attribute.typmod,
        nullable: !(trust_not_null && attribute.not_null),
    }
}
