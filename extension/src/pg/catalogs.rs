//! Look-ups in PostgreSQL's catalogs, as owned data.

use crate::pg::lists;
use pgrx::pg_sys::{self, Oid};
use pgrx::PgRelation;
use std::ffi::{c_char, c_int, CStr, CString};

/// A column of a relation that is not dropped.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Attribute number, from 1.
    pub number: i16,
    /// Name, unquoted.
    pub name: String,
    /// Type, domains included.
    pub type_oid: Oid,
    /// Type modifier.
    pub typmod: i32,
    /// Collation, or the invalid one.
    pub collation: Oid,
    /// Whether it is declared NOT NULL.
    pub not_null: bool,
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

/// How a table writes the old rows of updates and deletes to the WAL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaIdentity {
    /// The whole row.
    Full,
    /// The columns of a key, by attribute number.
    Key(Vec<i16>),
    /// Nothing.
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

/// The one function of that schema and name.
pub fn find_function(schema: &str, name: &str) -> Option<Oid> {
    let query = format!(
        "SELECT p.oid FROM pg_catalog.pg_proc p \
         JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace \
         WHERE n.nspname OPERATOR(pg_catalog.=) '{schema}' AND p.proname OPERATOR(pg_catalog.=) '{name}'"
    );
    pgrx::Spi::get_one::<Oid>(&query).ok().flatten()
}

/// A function's name with its schema, as SQL spells it; its number if it has just been dropped.
pub fn qualified_function(function: Oid) -> String {
    // SAFETY: look-ups returning palloc'd strings, or null for what does not exist.
    unsafe {
        let name = pg_sys::get_func_name(function);
        if name.is_null() {
            return function.to_u32().to_string();
        }
        let schema = pg_sys::get_namespace_name(pg_sys::get_func_namespace(function));
        owned(pg_sys::quote_qualified_identifier(schema, name))
    }
}

/// Whether a schema is one for temporary objects.
pub fn is_temp_schema(schema: Oid) -> bool {
    // SAFETY: a look-up.
    unsafe { pg_sys::isAnyTempNamespace(schema) }
}

/// A relation's kind, or `None` if it does not exist.
pub fn relation_kind(relation: Oid) -> Option<u8> {
    // SAFETY: a look-up in the system cache.
    let kind = unsafe { pg_sys::get_rel_relkind(relation) } as u8;
    (kind != 0).then_some(kind)
}

/// Whether changes of a relation are in the WAL.
pub fn is_logged(relation: Oid) -> bool {
    // SAFETY: a look-up in the system cache.
    let persistence = unsafe { pg_sys::get_rel_persistence(relation) } as u8;
    persistence == pg_sys::RELPERSISTENCE_PERMANENT
}

/// Describes a relation; `None` if it does not exist. Takes the lock a reader takes.
pub fn describe_relation(relation: Oid) -> Option<RelationInfo> {
    let relation = open(relation)?;
    let class = relation.rd_rel;
    // SAFETY: an open relation's class row is valid.
    let (kind, persistence, owner) =
        unsafe { ((*class).relkind as u8, (*class).relpersistence as u8, (*class).relowner) };
    let attributes = relation
        .tuple_desc()
        .iter()
        .filter(|a| !a.is_dropped())
        .map(|a| Attribute {
            number: a.attnum,
            name: a.name().to_string(),
            type_oid: a.atttypid,
            typmod: a.atttypmod,
            collation: a.attcollation,
            not_null: a.attnotnull,
        })
        .collect();
    let name = relation.name().to_string();
    Some(RelationInfo { kind, persistence, owner, name, attributes })
}

/// `schema.name`, quoted where necessary.
pub fn qualified_name(relation: Oid) -> String {
    // SAFETY: look-ups returning palloc'd strings, or null for what does not exist.
    unsafe {
        let name = pg_sys::get_rel_name(relation);
        if name.is_null() {
            return relation.to_u32().to_string();
        }
        let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(relation));
        owned(pg_sys::quote_qualified_identifier(schema, name))
    }
}

/// A name as SQL spells it.
pub fn quoted(name: &str) -> String {
    let name = CString::new(name).unwrap_or_default();
    // SAFETY: returns the name itself or a palloc'd string.
    unsafe { owned(pg_sys::quote_identifier(name.as_ptr())) }
}

/// Name of a relation without schema, for messages.
pub fn relation_name(relation: Oid) -> String {
    // SAFETY: returns a palloc'd string or null.
    unsafe { owned(pg_sys::get_rel_name(relation)) }
}

/// The sets of columns of a table that are unique and not null, primary key first, as attribute
/// numbers.
pub fn unique_keys(relation: Oid) -> Vec<Vec<i16>> {
    let Some(relation) = open(relation) else { return Vec::new() };
    let not_null =
        |number: i16| relation.tuple_desc().iter().any(|a| a.attnum == number && a.attnotnull);
    // SAFETY: an open relation; index relations are opened and closed around their use.
    let (primary, indexes) = unsafe {
        let list = pg_sys::RelationGetIndexList(relation.as_ptr());
        (pg_sys::RelationGetPrimaryKeyIndex(relation.as_ptr()), lists::oids(list))
    };
    let mut keys: Vec<(bool, Vec<i16>)> = indexes
        .into_iter()
        .filter_map(|index| unique_index_columns(index).map(|c| (index != primary, c)))
        .filter(|(_, columns)| columns.iter().all(|c| not_null(*c)))
        .collect();
    keys.sort();
    keys.into_iter().map(|(_, columns)| columns).collect()
}

/// Key columns of an index that guarantees uniqueness of whole rows at every moment.
fn unique_index_columns(index: Oid) -> Option<Vec<i16>> {
    // SAFETY: the index is kept open while its description is read.
    unsafe {
        let lock = pg_sys::AccessShareLock as c_int;
        let relation = pg_sys::index_open(index, lock);
        let form = &*(*relation).rd_index;
        let columns = (form.indisunique
            && form.indisvalid
            && form.indimmediate
            && (*relation).rd_indpred.is_null()
            && pg_sys::RelationGetIndexPredicate(relation).is_null())
        .then(|| {
            let count = usize::try_from(form.indnkeyatts).unwrap_or(0);
            form.indkey.values.as_slice(count).to_vec()
        })
        .filter(|columns| columns.iter().all(|c| *c > 0));
        pg_sys::index_close(relation, lock);
        columns
    }
}

/// A table and everything that inherits from it or is a partition of it.
pub fn with_descendants(relation: Oid) -> Vec<Oid> {
    extern "C-unwind" {
        fn find_all_inheritors(
            parent: Oid,
            lock: c_int,
            numparents: *mut *mut pg_sys::List,
        ) -> *mut pg_sys::List;
    }
    let none = std::ptr::null_mut();
    let lock = pg_sys::AccessShareLock as c_int;
    // SAFETY: an exported function of the server, guarded because it may raise an error.
    unsafe {
        let list = pg_sys::ffi::pg_guard_ffi_boundary(|| find_all_inheritors(relation, lock, none));
        lists::oids(list)
    }
}

/// A table's replica identity.
pub fn replica_identity(relation: Oid) -> Option<ReplicaIdentity> {
    let relation = open(relation)?;
    // SAFETY: an open relation.
    let (form, index) = unsafe {
        let form = (*relation.rd_rel).relreplident as u8;
        (form, pg_sys::RelationGetReplicaIndex(relation.as_ptr()))
    };
    Some(match (form, index) {
        (b'f', _) => ReplicaIdentity::Full,
        (b'n', _) | (_, Oid::INVALID) => ReplicaIdentity::Nothing,
        (_, index) => {
            unique_index_columns(index).map_or(ReplicaIdentity::Nothing, ReplicaIdentity::Key)
        }
    })
}

/// Whether the current user owns a relation, or may act as its owner.
pub fn is_owned_by_user(relation: Oid) -> bool {
    // SAFETY: look-ups.
    unsafe { pg_sys::pg_class_ownercheck(relation, pg_sys::GetUserId()) }
}

/// ` COLLATE "schema"."name"`; nothing for no collation, and for that of the database.
pub fn collate_clause(collation: Oid) -> String {
    if collation == Oid::INVALID || collation == pg_sys::DEFAULT_COLLATION_OID {
        return String::new();
    }
    // SAFETY: look-ups; the text is copied.
    let name = unsafe { owned(pg_sys::generate_collation_name(collation)) };
    format!(" COLLATE {name}")
}

/// Whether the current user may keep others from writing a table, as LOCK TABLE sees it.
pub fn may_block_writes(relation: Oid) -> bool {
    let rights = pg_sys::ACL_UPDATE | pg_sys::ACL_DELETE | pg_sys::ACL_TRUNCATE;
    // SAFETY: look-ups.
    let result = unsafe {
        pg_sys::pg_class_aclcheck(relation, pg_sys::GetUserId(), rights as pg_sys::AclMode)
    };
    result == pg_sys::AclResult::ACLCHECK_OK
}

/// How a function's result may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volatility {
    Immutable,
    Stable,
    Volatile,
}

/// A function's volatility.
pub fn volatility(function: Oid) -> Volatility {
    // SAFETY: a look-up in the system cache; errs for functions that do not exist.
    match unsafe { pg_sys::func_volatile(function) } as u8 {
        b'i' => Volatility::Immutable,
        b's' => Volatility::Stable,
        _ => Volatility::Volatile,
    }
}

/// Whether a function belongs to a user or to a superuser.
pub fn is_function_trusted(function: Oid, user: Oid) -> bool {
    use pg_sys::SysCacheIdentifier::PROCOID;
    // SAFETY: rows of that cache are those of functions; the row is released after it was read.
    unsafe {
        let row = pg_sys::SearchSysCache1(PROCOID as c_int, pg_sys::Datum::from(function));
        if row.is_null() {
            return false;
        }
        let owner = (*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_proc>()).proowner;
        pg_sys::ReleaseSysCache(row);
        owner == user || pg_sys::superuser_arg(owner)
    }
}

/// A function's name with argument types.
pub fn function_signature(function: Oid) -> String {
    // SAFETY: returns a palloc'd string for any OID.
    unsafe { owned(pg_sys::format_procedure(function)) }
}

/// A function's name, and whether it is one of PostgreSQL's own.
pub fn function_name(function: Oid) -> (String, bool) {
    // SAFETY: look-ups in the system cache.
    unsafe {
        let schema = pg_sys::get_func_namespace(function);
        let is_builtin = schema.to_u32() == pg_sys::PG_CATALOG_NAMESPACE;
        (owned(pg_sys::get_func_name(function)), is_builtin)
    }
}

/// An operator's name, and the function behind it.
pub fn operator(operator: Oid) -> (String, Oid) {
    // SAFETY: look-ups in the system cache.
    unsafe { (owned(pg_sys::get_opname(operator)), pg_sys::get_opcode(operator)) }
}

/// The functions that an aggregate is computed with.
pub fn aggregate_functions(aggregate: Oid) -> Vec<Oid> {
    let query = format!(
        "SELECT aggtransfn::pg_catalog.oid, aggfinalfn::pg_catalog.oid \
         FROM pg_catalog.pg_aggregate WHERE aggfnoid::pg_catalog.oid OPERATOR(pg_catalog.=) {}",
        aggregate.to_u32()
    );
    let (transition, last) = pgrx::Spi::get_two::<Oid, Oid>(&query).unwrap_or((None, None));
    transition.into_iter().chain(last).filter(|function| *function != Oid::INVALID).collect()
}

/// Whether an object has been there since initdb: none of users' own.
pub fn is_builtin(object: Oid) -> bool {
    object.to_u32() < pg_sys::FirstNormalObjectId
}

/// What a collation means for comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollationClass {
    /// C or POSIX: bytes for ordering, ASCII for case.
    C,
    /// Orders by bytes; case follows a locale.
    ByteOrdered,
    /// Equal means equal bytes; the order follows a locale.
    Deterministic,
    /// Different bytes may be equal.
    Nondeterministic,
}

/// Classifies a collation (not the invalid one).
pub fn collation_class(collation: Oid) -> CollationClass {
    extern "C-unwind" {
        fn lc_collate_is_c(collation: Oid) -> bool;
        fn lc_ctype_is_c(collation: Oid) -> bool;
    }
    // SAFETY: look-ups; guarded because they may raise errors.
    unsafe {
        if collation != pg_sys::DEFAULT_COLLATION_OID
            && !pg_sys::get_collation_isdeterministic(collation)
        {
            return CollationClass::Nondeterministic;
        }
        let is_c = || lc_collate_is_c(collation) && lc_ctype_is_c(collation);
        if pg_sys::ffi::pg_guard_ffi_boundary(is_c) {
            return CollationClass::C;
        }
    }
    let (locale, is_libc) = collation_locale(collation);
    if is_libc && matches!(&*locale.to_ascii_lowercase(), "c.utf-8" | "c.utf8") {
        CollationClass::ByteOrdered
    } else {
        CollationClass::Deterministic
    }
}

/// A collation's name, for messages.
pub fn collation_name(collation: Oid) -> String {
    // SAFETY: returns a palloc'd string or null.
    unsafe { owned(pg_sys::get_collation_name(collation)) }
}

/// `LC_COLLATE` of a collation, and whether the C library provides it.
fn collation_locale(collation: Oid) -> (String, bool) {
    let query = if collation == pg_sys::DEFAULT_COLLATION_OID {
        "SELECT datcollate::pg_catalog.text, datlocprovider OPERATOR(pg_catalog.=) 'c' \
         FROM pg_catalog.pg_database \
         WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database()"
            .to_string()
    } else {
        format!(
            "SELECT collcollate::pg_catalog.text, collprovider OPERATOR(pg_catalog.=) 'c' \
             FROM pg_catalog.pg_collation WHERE oid OPERATOR(pg_catalog.=) {}",
            collation.to_u32()
        )
    };
    let found = pgrx::Spi::get_two::<String, bool>(&query);
    let (locale, is_libc) = found.unwrap_or((None, None));
    (locale.unwrap_or_default(), is_libc.unwrap_or(false))
}

/// Whether the database's encoding is UTF-8.
pub fn encoding_is_utf8() -> bool {
    // SAFETY: a look-up of a global.
    unsafe { pg_sys::GetDatabaseEncoding() == pg_sys::pg_enc::PG_UTF8 as c_int }
}

/// The user with whose rights statements run.
pub fn current_user() -> Oid {
    // SAFETY: reads a global.
    unsafe { pg_sys::GetUserId() }
}

/// Whether the current user (or who the entry says) may read what an entry of a range table reads.
pub fn may_read(entry: &pg_sys::RangeTblEntry) -> bool {
    // SAFETY: a list of one entry; violations are returned, not raised.
    unsafe {
        let entry: *const pg_sys::RangeTblEntry = entry;
        let list = pg_sys::lappend(std::ptr::null_mut(), entry.cast_mut().cast());
        pg_sys::ExecCheckRTPerms(list, false)
    }
}

/// As whom an entry of a range table is read, quoted as needed.
pub fn reader(entry: &pg_sys::RangeTblEntry) -> String {
    let role = if entry.checkAsUser == Oid::INVALID { current_user() } else { entry.checkAsUser };
    // SAFETY: a palloc'd name, or null for a role that is gone.
    let name = unsafe { pg_sys::GetUserNameFromId(role, true) };
    if name.is_null() {
        return role.to_u32().to_string();
    }
    // SAFETY: as above.
    quoted(&unsafe { owned(name) })
}

/// Whether policies restrict what the reader of an entry of a range table sees.
pub fn is_row_secured(entry: &pg_sys::RangeTblEntry) -> bool {
    entry.rtekind == pg_sys::RTEKind::RTE_RELATION && {
        // SAFETY: look-ups; with the last argument nothing is raised.
        let status = unsafe { pg_sys::check_enable_rls(entry.relid, entry.checkAsUser, true) };
        status == pg_sys::CheckEnableRlsResult::RLS_ENABLED as c_int
    }
}

fn open(relation: Oid) -> Option<PgRelation> {
    // SAFETY: the wrapper closes the relation and keeps the lock's count balanced.
    unsafe {
        let lock = pg_sys::AccessShareLock as c_int;
        let relation = pg_sys::try_relation_open(relation, lock);
        (!relation.is_null()).then(|| PgRelation::from_pg_owned(relation))
    }
}

/// Copies and keeps nothing of a palloc'd C string; empty for null.
pub unsafe fn owned(value: *const c_char) -> String {
    if value.is_null() {
        return String::new();
    }
    // SAFETY: a C string of the server.
    unsafe { CStr::from_ptr(value).to_string_lossy().into_owned() }
}
