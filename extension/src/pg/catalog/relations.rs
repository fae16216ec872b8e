//! What the catalogs say of one relation: its kind, columns, keys and replica identity.

use crate::pg::ids::RelationId;
use crate::pg::lists;
use crate::pg::quiet;
use crate::pg::relation::{with_relation, Attribute, Lock, RelationRef};
use crate::pg::strings::owned;
use crate::pg::versions;
use pgrx::pg_sys::{self, Oid};
use std::ffi::{c_int, CStr, CString};

/// How a table writes the old rows of updates and deletes to the WAL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaIdentity {
    Full,
    /// The columns of a key, by attribute number.
    Key(Vec<i16>),
    Nothing,
}

/// The relation of that schema and name.
pub fn find_relation(schema: &str, name: &str) -> Option<Oid> {
    let (schema, name) = (CString::new(schema).ok()?, CString::new(name).ok()?);
    // SAFETY: look-ups in the system caches.
    unsafe {
        let namespace = pg_sys::get_namespace_oid(schema.as_ptr(), true);
        if namespace == Oid::INVALID {
            return None;
        }
        let relation = pg_sys::get_relname_relid(name.as_ptr(), namespace);
        (relation != Oid::INVALID).then_some(relation)
    }
}

/// What kind of relation it is, and where it lives.
#[derive(Clone, Debug)]
pub struct RelationInfo {
    /// `pg_class.relkind`
    pub kind: u8,
    /// `pg_class.relpersistence`
    pub persistence: u8,
    /// `pg_class.relowner`
    pub owner: Oid,
    /// Name without schema.
    pub name: String,
    /// Columns in definition order, without dropped ones.
    pub attributes: Vec<Attribute>,
}

/// Describes a relation; `None` if it does not exist. Takes the lock a reader takes.
pub fn describe_relation(relation: Oid) -> Option<RelationInfo> {
    with_relation(relation, Lock::AccessShare, |relation| RelationInfo {
        kind: relation.kind(),
        persistence: relation.persistence(),
        owner: Oid::from(relation.owner()),
        name: relation.name(),
        attributes: relation.attributes(),
    })
}

/// A relation's kind, or `None` if it does not exist.
pub fn relation_kind(relation: Oid) -> Option<u8> {
    // SAFETY: a look-up in the system cache.
    let kind = unsafe { pg_sys::get_rel_relkind(relation) } as u8;
    (kind != 0).then_some(kind)
}

/// How many columns a relation has, with those that it had.
pub fn column_count(relation: Oid) -> u32 {
    let cache = pg_sys::SysCacheIdentifier::RELOID as c_int;
    // SAFETY: a row of pg_class, which is kept while it is read.
    unsafe {
        let row = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(relation));
        if row.is_null() {
            return 0;
        }
        let count = (*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_class>()).relnatts;
        pg_sys::ReleaseSysCache(row);
        u32::try_from(count).unwrap_or(0)
    }
}

/// Whether a materialized view had been populated, as the active snapshot has it.
pub fn was_populated(view: Oid) -> bool {
    let query = format!(
        "SELECT FROM pg_catalog.pg_class WHERE oid OPERATOR(pg_catalog.=) {} AND relispopulated",
        view.to_u32()
    );
    let found = quiet::look_up(|| {
        pgrx::Spi::connect(|client| client.select(&query, Some(1), &[]).map(|rows| rows.len()))
    });
    found.is_ok_and(|rows| rows > 0)
}

/// Whether changes of a relation are in the WAL.
pub fn is_logged(relation: Oid) -> bool {
    // SAFETY: a look-up in the system cache.
    let persistence = unsafe { pg_sys::get_rel_persistence(relation) } as u8;
    persistence == pg_sys::RELPERSISTENCE_PERMANENT
}

/// `schema.name`, quoted where necessary; its number if it is gone.
pub fn qualified_name(relation: impl Into<RelationId>) -> String {
    let relation = Oid::from(relation.into());
    // SAFETY: look-ups returning palloc'd strings, or null for what does not exist.
    unsafe {
        let name = pg_sys::get_rel_name(relation);
        let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(relation));
        if name.is_null() || schema.is_null() {
            return relation.to_u32().to_string();
        }
        owned(pg_sys::quote_qualified_identifier(schema, name))
    }
}

/// Name of the schema that a relation is in.
pub fn schema_of(relation: Oid) -> String {
    // SAFETY: look-ups; returns a palloc'd string or null.
    unsafe { owned(pg_sys::get_namespace_name(pg_sys::get_rel_namespace(relation))) }
}

/// The name of a relation and a label behind it, together no longer than a name may be.
pub fn name_with(name: &str, label: &CStr) -> String {
    let name = CString::new(name).unwrap_or_default();
    // SAFETY: copies both into a palloc'd string.
    unsafe { owned(pg_sys::makeObjectName(name.as_ptr(), std::ptr::null(), label.as_ptr())) }
}

/// `schema.name` of a relation in the schema of another one, quoted where necessary.
pub fn qualified_beside(relation: Oid, name: &str) -> String {
    let name = CString::new(name).unwrap_or_default();
    // SAFETY: look-ups returning palloc'd strings.
    unsafe {
        let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(relation));
        owned(pg_sys::quote_qualified_identifier(schema, name.as_ptr()))
    }
}

/// The relation of that name in the schema of another one.
pub fn find_beside(relation: Oid, name: &str) -> Option<Oid> {
    let name = CString::new(name).unwrap_or_default();
    // SAFETY: look-ups in the system caches.
    let found =
        unsafe { pg_sys::get_relname_relid(name.as_ptr(), pg_sys::get_rel_namespace(relation)) };
    (found != Oid::INVALID).then_some(found)
}

/// Name of a relation without schema, for messages.
pub fn relation_name(relation: Oid) -> String {
    // SAFETY: returns a palloc'd string or null.
    unsafe { owned(pg_sys::get_rel_name(relation)) }
}

/// Whether a schema is one for temporary objects.
pub fn is_temp_schema(schema: Oid) -> bool {
    // SAFETY: a look-up.
    unsafe { pg_sys::isAnyTempNamespace(schema) }
}

/// Whether a table is partitioned.
pub fn is_partitioned(relation: impl Into<Oid>) -> bool {
    relation_kind(relation.into()) == Some(pg_sys::RELKIND_PARTITIONED_TABLE)
}

/// The sets of columns of a table that are unique and not null, primary key first, as attribute
/// numbers.
pub fn unique_keys(relation: Oid) -> Vec<Vec<i16>> {
    with_relation(relation, Lock::AccessShare, keys_of).unwrap_or_default()
}

fn keys_of(relation: RelationRef<'_>) -> Vec<Vec<i16>> {
    let attributes = relation.attributes();
    let not_null = |number: i16| attributes.iter().any(|a| a.number == number && a.not_null);
    // SAFETY: an open relation.
    let (primary, indexes) = unsafe {
        let list = pg_sys::RelationGetIndexList(relation.raw);
        (versions::relation::primary_key(relation.raw), lists::oids(list))
    };
    let mut keys: Vec<(bool, Vec<i16>)> = indexes
        .into_iter()
        .filter_map(|index| unique_index_columns(index).map(|c| (index != primary, c)))
        .filter(|(_, columns)| columns.iter().all(|c| not_null(*c)))
        .collect();
    keys.sort();
    keys.into_iter().map(|(_, columns)| columns).collect()
}

/// Key columns of an index that guarantees uniqueness of whole rows at every moment. The index is not opened: REINDEX keeps
/// it locked for long, and changes nothing of this.
fn unique_index_columns(index: Oid) -> Option<Vec<i16>> {
    let cache = pg_sys::SysCacheIdentifier::INDEXRELID as c_int;
    // SAFETY: a row of pg_index, which is kept while it is read; the key columns are the first behind the fixed ones.
    unsafe {
        let row = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(index));
        if row.is_null() {
            return None;
        }
        let form = &*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_index>();
        let mut is_whole = false;
        let predicate = pg_sys::Anum_pg_index_indpred as i16;
        pg_sys::SysCacheGetAttr(cache, row, predicate, &mut is_whole);
        let columns = (form.indisunique && form.indisvalid && form.indimmediate && is_whole)
            .then(|| {
                let count = usize::try_from(form.indnkeyatts).unwrap_or(0);
                form.indkey.values.as_slice(count).to_vec()
            })
            .filter(|columns| columns.iter().all(|c| *c > 0));
        pg_sys::ReleaseSysCache(row);
        columns
    }
}

/// A table's replica identity.
pub fn replica_identity(relation: Oid) -> Option<ReplicaIdentity> {
    with_relation(relation, Lock::AccessShare, identity_of)
}

fn identity_of(relation: RelationRef<'_>) -> ReplicaIdentity {
    if relation.writes_whole_rows() {
        return ReplicaIdentity::Full;
    }
    // SAFETY: an open relation. There is no such index where the identity is none.
    match unsafe { pg_sys::RelationGetReplicaIndex(relation.raw) } {
        Oid::INVALID => ReplicaIdentity::Nothing,
        index => unique_index_columns(index).map_or(ReplicaIdentity::Nothing, ReplicaIdentity::Key),
    }
}
