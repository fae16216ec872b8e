//! Open relations: columns, replica identity, storage; and locks on relations.

use super::ids::{RelationId, ViewId};
use crate::pg::versions;
use crate::pg::versions::tuple;
use pgrx::pg_sys::{self, Oid};
use std::ffi::CStr;
use std::marker::PhantomData;

/// The number of the column that tells which table a row is in: of the system's columns the only one that views read.
pub const TABLE_OID: i16 = pg_sys::TableOidAttributeNumber as i16;

/// A column of a relation that is not dropped.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Attribute number, from 1.
    pub number: i16,
    /// Name, unquoted.
    pub name: String,
    /// Type, domains included.
    pub type_oid: Oid,
    pub typmod: i32,
    /// Collation, or the invalid one.
    pub collation: Oid,
    /// Whether no row has NULL there.
    pub not_null: bool,
}

impl Attribute {
    fn new(attribute: &pg_sys::FormData_pg_attribute, is_not_null: bool) -> Attribute {
        // SAFETY: a name is a C string.
        let name = unsafe { CStr::from_ptr(attribute.attname.data.as_ptr()) };
        Attribute {
            number: attribute.attnum,
            name: name.to_string_lossy().into_owned(),
            type_oid: attribute.atttypid,
            typmod: attribute.atttypmod,
            collation: attribute.attcollation,
            not_null: is_not_null,
        }
    }

    /// Its type, domains resolved as the catalogs are now.
    pub fn base_type(&self) -> Oid {
        // SAFETY: look-ups in the system cache.
        unsafe { pg_sys::getBaseType(self.type_oid) }
    }
}

/// The numbers that columns of a table have in a child of it, which are found by name; `None` if it lacks one. Those of
/// the system have the same number everywhere.
pub fn numbers_in_child(
    numbers: impl Iterator<Item = i16>,
    parent: &[Attribute],
    child: &[Attribute],
) -> Option<Vec<i16>> {
    let in_child = |number| {
        if number == TABLE_OID {
            return Some(number);
        }
        let name = &parent.iter().find(|attribute| attribute.number == number)?.name;
        Some(child.iter().find(|attribute| attribute.name == *name)?.number)
    };
    numbers.map(in_child).collect()
}

/// A relation as long as it is open.
#[derive(Clone, Copy)]
pub struct RelationRef<'a> {
    pub(super) raw: pg_sys::Relation,
    life: PhantomData<&'a ()>,
}

impl<'a> RelationRef<'a> {
    /// # Safety
    /// `raw` must be open during `'a`.
    pub(super) unsafe fn new(raw: pg_sys::Relation) -> RelationRef<'a> {
        RelationRef { raw, life: PhantomData }
    }

    /// Which one it is.
    pub fn id(&self) -> RelationId {
        // SAFETY: open by construction.
        unsafe { (*self.raw).rd_id }.into()
    }

    /// The relation as PostgreSQL has it.
    pub fn as_raw(&self) -> pg_sys::Relation {
        self.raw
    }

    /// Its kind: `r`, `p`, `m` …
    pub fn kind(&self) -> u8 {
        // SAFETY: open by construction.
        unsafe { (*(*self.raw).rd_rel).relkind as u8 }
    }

    /// Its name without schema.
    pub fn name(&self) -> String {
        // SAFETY: open by construction; a name is a C string.
        let name = unsafe { CStr::from_ptr((*(*self.raw).rd_rel).relname.data.as_ptr()) };
        name.to_string_lossy().into_owned()
    }

    /// Number of the file that holds its rows; changes when it is rewritten.
    pub fn file(&self) -> u32 {
        // SAFETY: open by construction.
        unsafe { (*(*self.raw).rd_rel).relfilenode }.to_u32()
    }

    /// As whom it is written.
    pub fn owner(&self) -> u32 {
        // SAFETY: open by construction.
        unsafe { (*(*self.raw).rd_rel).relowner }.to_u32()
    }

    /// Whether it is a partition, or has a parent or children.
    pub fn inherits(&self) -> bool {
        extern "C-unwind" {
            #[link_name = "has_superclass"]
            fn has_parent(relation: Oid) -> bool;
        }
        // SAFETY: open by construction.
        unsafe {
            let entry = (*self.raw).rd_rel;
            (*entry).relispartition
                || (*entry).relhassubclass
                || pg_sys::ffi::pg_guard_ffi_boundary(|| has_parent((*self.raw).rd_id))
        }
    }

    /// Whether it has a trigger of that name.
    pub fn has_trigger(&self, name: &str) -> bool {
        // SAFETY: open by construction; triggers have names.
        unsafe {
            let triggers = (*self.raw).trigdesc;
            if triggers.is_null() {
                return false;
            }
            let count = usize::try_from((*triggers).numtriggers).unwrap_or(0);
            let triggers = std::slice::from_raw_parts((*triggers).triggers, count);
            triggers.iter().any(|it| CStr::from_ptr(it.tgname).to_bytes() == name.as_bytes())
        }
    }

    /// Where its values are that are stored out of line, if there may be any.
    pub fn toast(&self) -> Option<RelationId> {
        // SAFETY: open by construction.
        let toast = unsafe { (*(*self.raw).rd_rel).reltoastrelid };
        (toast != Oid::INVALID).then(|| toast.into())
    }

    /// How many indexes it has.
    pub fn indexes(&self) -> usize {
        // SAFETY: open by construction.
        unsafe { super::lists::oids(pg_sys::RelationGetIndexList(self.raw)).len() }
    }

    /// Whether one of its indexes may call functions of users: it has an expression, a condition or an operator class of theirs.
    pub fn has_code_in_indexes(&self) -> bool {
        // SAFETY: open by construction; the list holds indexes, which the relation's lock keeps.
        unsafe {
            let indexes = pg_sys::RelationGetIndexList(self.raw);
            super::lists::oids(indexes).into_iter().any(|index| is_code_in(index))
        }
    }

    /// Blocks of the file that holds its rows.
    pub fn blocks(&self) -> u32 {
        // SAFETY: open by construction.
        unsafe {
            pg_sys::RelationGetNumberOfBlocksInFork(self.raw, pg_sys::ForkNumber::MAIN_FORKNUM)
        }
    }

    /// How many rows it has by PostgreSQL's estimate from its size and the last statistics.
    pub fn estimated_rows(&self) -> u64 {
        let (mut pages, mut rows, mut visible) = (0, 0.0, 0.0);
        let widths = std::ptr::null_mut();
        // SAFETY: open by construction; the widths of columns may be left out.
        unsafe { pg_sys::estimate_rel_size(self.raw, widths, &mut pages, &mut rows, &mut visible) }
        rows as u64
    }

    /// Whether VACUUM or ANALYZE has ever counted its rows.
    pub fn is_analyzed(&self) -> bool {
        // SAFETY: open by construction.
        unsafe { (*(*self.raw).rd_rel).reltuples >= 0.0 }
    }

    /// `pg_class.relpersistence`
    pub fn persistence(&self) -> u8 {
        // SAFETY: open by construction.
        unsafe { (*(*self.raw).rd_rel).relpersistence as u8 }
    }

    /// Whether changes of it are in the WAL.
    pub fn is_logged(&self) -> bool {
        self.persistence() == pg_sys::RELPERSISTENCE_PERMANENT
    }

    /// Whether a materialized view has been filled.
    pub fn is_populated(&self) -> bool {
        // SAFETY: open by construction.
        unsafe { (*(*self.raw).rd_rel).relispopulated }
    }

    pub fn descriptor(&self) -> pg_sys::TupleDesc {
        // SAFETY: open by construction.
        unsafe { (*self.raw).rd_att }
    }

    /// Its columns without dropped ones.
    pub fn attributes(&self) -> Vec<Attribute> {
        let descriptor = self.descriptor();
        // SAFETY: the descriptor of an open relation has `natts` attributes.
        unsafe {
            tuple::columns(descriptor)
                .iter()
                .enumerate()
                .filter(|(_, attribute)| !attribute.attisdropped)
                .map(|(place, attribute)| {
                    Attribute::new(attribute, tuple::is_not_null(descriptor, place))
                })
                .collect()
        }
    }

    /// Whether its replica identity is FULL.
    pub fn writes_whole_rows(&self) -> bool {
        // SAFETY: open by construction.
        unsafe { (*(*self.raw).rd_rel).relreplident as u8 == b'f' }
    }

    /// Whether the replica identity tells the values of all these columns, but those of the system.
    pub fn identity_covers(&self, attnums: &[i16]) -> bool {
        if self.writes_whole_rows() {
            return true;
        }
        // SAFETY: open by construction; the bitmap is a copy in the current memory context, a null
        // pointer is the empty set.
        unsafe {
            let columns = pg_sys::RelationGetIdentityKeyBitmap(self.raw);
            let offset = pg_sys::FirstLowInvalidHeapAttributeNumber;
            let is_told = |attnum: &i16| {
                *attnum == TABLE_OID || pg_sys::bms_is_member(i32::from(*attnum) - offset, columns)
            };
            attnums.iter().all(is_told)
        }
    }
}

/// A lock mode on a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Readers'.
    AccessShare,
    /// Writers'.
    RowExclusive,
    /// That of who vacuums, or makes summaries for indexes.
    ShareUpdateExclusive,
}

impl Lock {
    fn mode(self) -> pg_sys::LOCKMODE {
        (match self {
            Self::AccessShare => pg_sys::AccessShareLock,
            Self::RowExclusive => pg_sys::RowExclusiveLock,
            Self::ShareUpdateExclusive => pg_sys::ShareUpdateExclusiveLock,
        }) as pg_sys::LOCKMODE
    }
}

/// Opens a relation for `work`, keeping the lock until the end of the transaction. `None` if it
/// does not exist. If `work` raises an error the transaction's abort closes the relation.
pub fn with_relation<R>(
    oid: impl Into<RelationId>,
    lock: Lock,
    work: impl FnOnce(RelationRef<'_>) -> R,
) -> Option<R> {
    // SAFETY: in a transaction; opened and closed in pairs.
    unsafe {
        let raw = pg_sys::try_relation_open(oid.into().into(), lock.mode());
        if raw.is_null() {
            return None;
        }
        let result = work(RelationRef::new(raw));
        pg_sys::relation_close(raw, pg_sys::NoLock as pg_sys::LOCKMODE);
        Some(result)
    }
}

/// Opens a relation as it is for decoding, within a callback: no lock, catalogs of then.
pub fn with_historic_relation<R>(
    oid: impl Into<RelationId>,
    work: impl FnOnce(RelationRef<'_>) -> R,
) -> Option<R> {
    // SAFETY: the historic snapshot is in place; reference counted in pairs.
    unsafe {
        let raw = pg_sys::RelationIdGetRelation(oid.into().into());
        if raw.is_null() {
            return None;
        }
        let result = work(RelationRef::new(raw));
        pg_sys::RelationClose(raw);
        Some(result)
    }
}

/// Takes a lock if nobody is in the way; held until the end of the transaction.
pub fn try_lock(oid: impl Into<RelationId>, lock: Lock) -> bool {
    // SAFETY: in a transaction.
    unsafe { pg_sys::ConditionalLockRelationOid(oid.into().into(), lock.mode()) }
}

/// Whether this session holds a lock on the relation that keeps writers out.
pub fn i_lock_out_writers(oid: impl Into<RelationId>) -> bool {
    i_hold_one_of(
        oid,
        &[
            pg_sys::ShareLock,
            pg_sys::ShareRowExclusiveLock,
            pg_sys::ExclusiveLock,
            pg_sys::AccessExclusiveLock,
        ],
    )
}

/// Whether this session holds any lock on the relation.
pub fn i_lock(oid: impl Into<RelationId>) -> bool {
    let modes: Vec<u32> = (pg_sys::AccessShareLock..=pg_sys::AccessExclusiveLock).collect();
    i_hold_one_of(oid, &modes)
}

/// Whether this transaction has changed the relation's rows, or may have: TRUNCATE and ALTER TABLE take the other lock.
pub fn i_change(oid: impl Into<RelationId>) -> bool {
    i_hold_one_of(oid, &[pg_sys::RowExclusiveLock, pg_sys::AccessExclusiveLock])
}

/// Whether this transaction has made the file that holds the relation's rows, which it must have locked.
pub fn is_filled_by_me(oid: impl Into<RelationId>) -> bool {
    let is_new = |relation: RelationRef<'_>| {
        // SAFETY: open by construction.
        unsafe { versions::relation::is_file_of_this_transaction(relation.raw) }
    };
    with_relation(oid, Lock::AccessShare, is_new).unwrap_or(false)
}

/// Whether a view that is there holds rows, if only none.
pub fn is_populated(view: ViewId) -> bool {
    with_relation(view, Lock::AccessShare, |view| view.is_populated()).unwrap_or(false)
}

fn i_hold_one_of(oid: impl Into<RelationId>, modes: &[u32]) -> bool {
    let tag = lock_tag(oid);
    modes.iter().any(|mode| versions::relation::is_lock_held(&tag, *mode as pg_sys::LOCKMODE))
}

/// Whether this session holds a lock on the relation as who fills a view does: nobody else changes it meanwhile.
pub fn i_lock_alone(oid: impl Into<RelationId>) -> bool {
    i_hold_one_of(oid, &[pg_sys::ExclusiveLock, pg_sys::AccessExclusiveLock])
}

/// What the lock on a relation goes by.
pub(super) fn lock_tag(oid: impl Into<RelationId>) -> pg_sys::LOCKTAG {
    pg_sys::LOCKTAG {
        locktag_field1: super::process::database(),
        locktag_field2: oid.into().to_u32(),
        locktag_field3: 0,
        locktag_field4: 0,
        locktag_type: pg_sys::LockTagType::LOCKTAG_RELATION as u8,
        locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
    }
}

/// # Safety
/// An index that stays meanwhile.
unsafe fn is_code_in(index: pg_sys::Oid) -> bool {
    // SAFETY: reads a tuple of the system cache, which is released after that; its first columns are never NULL.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::INDEXRELID as i32;
        let tuple = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(index));
        if tuple.is_null() {
            return false;
        }
        let is_null =
            |column: u32| pg_sys::heap_attisnull(tuple, column as i32, std::ptr::null_mut());
        let has_expression =
            !is_null(pg_sys::Anum_pg_index_indexprs) || !is_null(pg_sys::Anum_pg_index_indpred);
        let mut absent = false;
        let classes = pg_sys::SysCacheGetAttr(
            cache,
            tuple,
            pg_sys::Anum_pg_index_indclass as i16,
            &mut absent,
        );
        let classes = classes.cast_mut_ptr::<pg_sys::oidvector>();
        let count = usize::try_from((*classes).dim1).unwrap_or(0);
        let of_users = |class: &pg_sys::Oid| class.to_u32() >= pg_sys::FirstNormalObjectId;
        let has_class = (*classes).values.as_slice(count).iter().any(of_users);
        pg_sys::ReleaseSysCache(tuple);
        has_expression || has_class
    }
}
