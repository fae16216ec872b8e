//! Which materialized views are incremental: those with a security label of our provider.
//!
//! The label is all that makes a view incremental. pg_dump carries it with every schema and every single view,
//! PostgreSQL removes it with the view, and a server without the library refuses it. Labels are read as system catalogs are:
//! directly, with the latest snapshot, whoever the current user is. That one was set or removed nobody is told
//! but by the invalidation of the view that is sent here.

use super::ids::ViewId;
use super::xact::{self, Event};
use crate::errors::Error;
use pgrx::pg_sys::{self, Oid};
use rules::security_label::Label;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString};

/// Name of our provider of security labels.
pub const PROVIDER: &CStr = c"pg_eddy";

thread_local! {
    /// Materialized views that this transaction has labelled: no worker knows them before it commits.
    static LABELLED: RefCell<Vec<Oid>> = const { RefCell::new(Vec::new()) };
    /// Views to which earlier transactions of this session have done that.
    static CHANGED: RefCell<BTreeSet<u32>> = const { RefCell::new(BTreeSet::new()) };
}

/// The extension, or `None` if it does not exist in this database.
pub fn extension() -> Option<Oid> {
    // SAFETY: a look-up in a catalog.
    let extension = unsafe { pg_sys::get_extension_oid(c"pg_eddy".as_ptr(), true) };
    (extension != Oid::INVALID).then_some(extension)
}

/// Version of the extension's SQL objects in this database; `None` without it.
pub fn version() -> Option<String> {
    let extension = extension()?;
    // SAFETY: a scan of a system catalog by its index of names; the version is a text, which is copied.
    unsafe {
        let relation = pg_sys::table_open(pg_sys::ExtensionRelationId, ACCESS_SHARE);
        let none = std::ptr::null_mut();
        let scan =
            pg_sys::systable_beginscan(relation, pg_sys::InvalidOid, false, none, 0, none.cast());
        let mut version = None;
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            if (*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_extension>()).oid == extension
            {
                let mut is_null = false;
                let column = pg_sys::Anum_pg_extension_extversion as i32;
                let value = pg_sys::heap_getattr(tuple, column, (*relation).rd_att, &mut is_null);
                version =
                    Some(super::strings::owned(pg_sys::text_to_cstring(value.cast_mut_ptr())));
            }
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(relation, ACCESS_SHARE);
        version
    }
}

const ACCESS_SHARE: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;

/// Whether a relation belongs to the extension.
pub fn is_own(relation: Oid) -> bool {
    // SAFETY: a look-up in a catalog.
    let owner = unsafe { pg_sys::getExtensionOfObject(pg_sys::RelationRelationId, relation) };
    owner != Oid::INVALID && extension() == Some(owner)
}

/// Whether a relation is an incremental view.
pub fn contains(view: Oid) -> bool {
    extension().is_some() && is_labelled(view)
}

/// All incremental views of the database.
pub fn all() -> Vec<ViewId> {
    let mut views = Vec::new();
    if extension().is_some() {
        visit(pg_sys::AccessShareLock, |view, _, _| views.push(view.into()));
    }
    views
}

/// What the label of a view says, for a view without one what one without options does. Fails for a label that only a later
/// release can read.
pub fn label(view: Oid) -> Result<Label, Error> {
    text_of_label(view).map_or(Ok(Label::default()), |text| {
        Label::read(&text).map_err(|fault| Error::label(&text, fault))
    })
}

/// Gives a materialized view a label, which makes it incremental.
pub fn insert(view: Oid, label: &Label) {
    let label = CString::new(label.text()).unwrap_or_default();
    // SAFETY: the view exists; the label is copied.
    unsafe {
        pg_sys::SetSecurityLabel(&address(view), PROVIDER.as_ptr(), label.as_ptr());
        announce(view);
        pg_sys::CommandCounterIncrement();
    }
}

/// Set-up at library load.
pub fn install() {
    xact::register_callback(|event| {
        let labelled = match event {
            Event::PreCommit => return,
            Event::Commit | Event::NotCommitted => LABELLED.take(),
        };
        if event == Event::Commit {
            CHANGED.with_borrow_mut(|changed| changed.extend(labelled.iter().map(|v| v.to_u32())));
        }
    });
}

/// A statement is about to label a materialized view that exists.
pub fn note_labelled(view: Oid) {
    if !contains(view) {
        LABELLED.with_borrow_mut(|labelled| labelled.push(view));
    }
    announce(view);
}

/// A view has got other settings.
pub fn note_changed(view: Oid) {
    LABELLED.with_borrow_mut(|labelled| labelled.push(view));
}

/// Whether a view has become incremental, of a plain materialized view, or has got other settings in this transaction.
pub fn is_labelled_now(view: ViewId) -> bool {
    LABELLED.with_borrow(|labelled| labelled.contains(&view.into()))
}

/// Whether this session has given a view, which was incremental, another definition or other settings.
pub fn has_been_changed_here(view: ViewId) -> bool {
    CHANGED.with_borrow(|changed| changed.contains(&view.to_u32()))
}

/// What this session has done to a view is done.
pub fn forget_changed_here(view: ViewId) {
    CHANGED.with_borrow_mut(|changed| {
        if !changed.is_empty() {
            changed.remove(&view.to_u32());
        }
    });
}

/// Makes all views plain materialized views: the extension goes.
pub fn remove_all() {
    visit(pg_sys::RowExclusiveLock, |view, labels, tuple| {
        // SAFETY: the tuple is the one at which the scan of the open relation is.
        unsafe { pg_sys::CatalogTupleDelete(labels, &mut (*tuple).t_self) }
        announce(view);
    });
}

/// Tells all sessions and workers, at commit, that a view has been given a label or has lost it.
pub fn announce(view: Oid) {
    // SAFETY: notes a message; the relation exists.
    unsafe { pg_sys::CacheInvalidateRelcacheByRelid(view) }
}

fn address(view: Oid) -> pg_sys::ObjectAddress {
    pg_sys::ObjectAddress { classId: pg_sys::RelationRelationId, objectId: view, objectSubId: 0 }
}

fn is_labelled(view: Oid) -> bool {
    text_of_label(view).is_some()
}

fn text_of_label(view: Oid) -> Option<String> {
    // SAFETY: a look-up; the result is a palloc'd string or null.
    unsafe {
        let label = pg_sys::GetSecurityLabel(&address(view), PROVIDER.as_ptr());
        if label.is_null() {
            return None;
        }
        let text = super::strings::owned(label);
        pg_sys::pfree(label.cast());
        Some(text)
    }
}

/// Visits the rows of `pg_seclabel` with labels of ours. A standby allows no lock but that of readers.
fn visit(lock: u32, mut see: impl FnMut(Oid, pg_sys::Relation, pg_sys::HeapTuple)) {
    // SAFETY: a scan of a system catalog. Its columns are not null; the provider is a text, which is copied.
    unsafe {
        let lock = lock as pg_sys::LOCKMODE;
        let labels = pg_sys::table_open(pg_sys::SecLabelRelationId, lock);
        let none = std::ptr::null_mut();
        let scan =
            pg_sys::systable_beginscan(labels, pg_sys::InvalidOid, false, none, 0, none.cast());
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            let form = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_seclabel>();
            let is_relation =
                (*form).classoid == pg_sys::RelationRelationId && (*form).objsubid == 0;
            let mut is_null = false;
            let column = pg_sys::Anum_pg_seclabel_provider as i32;
            let provider = pg_sys::heap_getattr(tuple, column, (*labels).rd_att, &mut is_null);
            let provider = pg_sys::text_to_cstring(provider.cast_mut_ptr());
            if is_relation && CStr::from_ptr(provider) == PROVIDER {
                see((*form).objoid, labels, tuple);
            }
            pg_sys::pfree(provider.cast());
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(labels, lock);
    }
}
