//! What functions of users cannot do in a worker, which runs them for the owners of all views of a database, one after
//! the other: leave something behind that decides what names in somebody else's functions mean.
//!
//! PL/pgSQL looks up the types of a function's variables once per process, under the search path of whoever calls the
//! function first. If `text` could then be a domain of the caller's, its conditions would later run as somebody else. So:
//! - `pg_catalog` comes first. A search path that names it behind other schemas is taken as if it did not.
//! - Nothing is created, so there are no temporary objects either, which a search path finds before all others.

use crate::errors::Error;
use crate::pg::versions::setting;
use crate::pg::{lists, process};
use pgrx::pg_sys::{self, GucSource, NodeTag};
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::sync::OnceLock;

/// PostgreSQL's own check of a search path.
static CHECK: OnceLock<pg_sys::GucStringCheckHook> = OnceLock::new();

/// From now on search paths of this process begin with `pg_catalog`.
pub fn begin() {
    let Some(setting) = find_search_path() else { return };
    // SAFETY: the record of the setting is this process's own and lives as long as it; checks are called through it.
    unsafe {
        if CHECK.set((*setting).check_hook).is_ok() {
            (*setting).check_hook = Some(check_search_path);
        }
    }
}

/// The record of the setting `search_path`.
fn find_search_path() -> Option<*mut pg_sys::config_string> {
    // SAFETY: records have names; the one wanted is that of a text.
    unsafe {
        let records = setting::records();
        let is_it = |record: &&*mut pg_sys::config_generic| {
            CStr::from_ptr((***record).name) == c"search_path"
        };
        records.iter().find(is_it).map(|record| record.cast())
    }
}

/// Checks a search path as PostgreSQL does, and leaves `pg_catalog` out where it is not the first schema: then it is
/// searched before all that are named.
///
/// # Safety
/// For PostgreSQL to call, as the check of the setting.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn check_search_path(
    value: *mut *mut c_char,
    extra: *mut *mut c_void,
    source: GucSource::Type,
) -> bool {
    // SAFETY: PostgreSQL's own arguments; the value is a C string.
    unsafe {
        if let Some(check) = CHECK.get().copied().flatten() {
            if !check(value, extra, source) {
                return false;
            }
        }
        if let Some(path) = without_late_catalog(*value) {
            return setting::replace(value, &path);
        }
        true
    }
}

/// The search path without `pg_catalog`, if that is behind another schema.
///
/// # Safety
/// A C string.
unsafe fn without_late_catalog(path: *const c_char) -> Option<CString> {
    // SAFETY: a C string, which PostgreSQL has found to be a list of names; it is taken apart in a copy.
    unsafe {
        let copy = pg_sys::pstrdup(path);
        let mut list = std::ptr::null_mut();
        if !pg_sys::SplitIdentifierString(copy, b',' as c_char, &mut list) {
            return None;
        }
        let names = lists::pointers::<c_char>(list);
        let is_catalog = |name: &*mut c_char| CStr::from_ptr(*name) == c"pg_catalog";
        names.iter().position(is_catalog).filter(|place| *place > 0)?;
        let kept = names.iter().filter(|name| !is_catalog(name));
        let quoted = kept.map(|name| {
            CStr::from_ptr(pg_sys::quote_identifier(*name)).to_string_lossy().into_owned()
        });
        CString::new(quoted.collect::<Vec<_>>().join(", ")).ok()
    }
}

/// Raises an error for a statement that functions cannot run in a worker. It runs no such statements itself.
///
/// # Safety
/// `node` must be the statement of a utility command.
pub unsafe fn check_statement(node: *mut pg_sys::Node) {
    // SAFETY: per contract.
    unsafe {
        if process::is_ours() && !is_allowed((*node).type_) {
            refuse(node);
        }
    }
}

/// Whether a statement leaves nothing behind. Settings are as before after each call.
fn is_allowed(tag: NodeTag) -> bool {
    matches!(
        tag,
        NodeTag::T_VariableSetStmt
            | NodeTag::T_VariableShowStmt
            | NodeTag::T_DoStmt
            | NodeTag::T_CallStmt
            | NodeTag::T_DeclareCursorStmt
            | NodeTag::T_FetchStmt
            | NodeTag::T_ClosePortalStmt
    )
}

/// # Safety
/// For PostgreSQL to call, as this hook.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn refuse(node: *mut pg_sys::Node) -> c_int {
    // SAFETY: a statement; its name is a constant.
    let name = unsafe { CStr::from_ptr(pg_sys::GetCommandTagName(pg_sys::CreateCommandTag(node))) };
    let name = name.to_string_lossy();
    Error::unsupported(format!("{name} is not supported in a function of an incremental view"))
        .hint("Functions of incremental views may read and write rows.")
        .raise()
}
