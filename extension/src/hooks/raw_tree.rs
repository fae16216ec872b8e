//! The raw parse tree of a statement, for what analysis forgets: where tables are named.

use crate::pg::lists;
use crate::pg::versions::tree::raw_expression_tree_walker;
use pgrx::pg_sys::{self, NodeTag};
use std::ffi::{c_char, c_int, c_void, CStr};

/// Search for the first table that goes by a name.
struct Search<'a> {
    name: &'a CStr,
    location: c_int,
}

/// Byte offset at which the statement at `start` of a source text first names a table (or gives it
/// the alias) `name`, or begins a subquery of that alias; -1 if it does not.
///
/// # Safety
/// `source` must be a C string that has been parsed before.
pub unsafe fn locate_table(source: *const c_char, start: c_int, name: &CStr) -> c_int {
    let mut search = Search { name, location: -1 };
    let mode = pg_sys::RawParseMode::RAW_PARSE_DEFAULT;
    // SAFETY: the source has been parsed before, so this parses; the walker only reads.
    unsafe {
        let statements = lists::pointers::<pg_sys::RawStmt>(pg_sys::raw_parser(source, mode));
        let wanted = |s: &&*mut pg_sys::RawStmt| (***s).stmt_location.max(0) == start.max(0);
        if let Some(statement) = statements.iter().find(wanted) {
            let arg = (&raw mut search).cast();
            let node = (**statement).stmt;
            pg_sys::ffi::pg_guard_ffi_boundary(|| find_table(node, arg));
        }
    }
    search.location
}

/// # Safety
/// For PostgreSQL's walker to call; `arg` is the `Search`.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn find_table(node: *mut pg_sys::Node, arg: *mut c_void) -> bool {
    if node.is_null() {
        return false;
    }
    // SAFETY: `arg` is the search of `locate_table`; tags decide types.
    unsafe {
        match (*node).type_ {
            NodeTag::T_ExplainStmt => find_table((*node.cast::<pg_sys::ExplainStmt>()).query, arg),
            NodeTag::T_CreateTableAsStmt => {
                find_table((*node.cast::<pg_sys::CreateTableAsStmt>()).query, arg)
            }
            NodeTag::T_RangeVar => {
                let table = &*node.cast::<pg_sys::RangeVar>();
                let name = match table.alias.is_null() {
                    true => table.relname,
                    false => (*table.alias).aliasname,
                };
                let search = &mut *arg.cast::<Search>();
                if CStr::from_ptr(name) != search.name {
                    return false;
                }
                search.location = table.location;
                true
            }
            NodeTag::T_RangeSubselect => {
                let item = &*node.cast::<pg_sys::RangeSubselect>();
                let search = &mut *arg.cast::<Search>();
                if !item.alias.is_null() && CStr::from_ptr((*item.alias).aliasname) == search.name {
                    search.location = first_output(item.subquery);
                    return search.location >= 0;
                }
                raw_expression_tree_walker(node, find_table, arg)
            }
            _ => raw_expression_tree_walker(node, find_table, arg),
        }
    }
}

/// Where a query has its first output column; -1 if it has none.
///
/// # Safety
/// A complete raw tree, or null.
unsafe fn first_output(query: *mut pg_sys::Node) -> c_int {
    // SAFETY: tags decide types; a set operation has sides.
    unsafe {
        let mut select = query.cast::<pg_sys::SelectStmt>();
        while !select.is_null() && (*select).type_ == NodeTag::T_SelectStmt {
            let outputs = lists::pointers::<pg_sys::ResTarget>((*select).targetList);
            if let Some(first) = outputs.first() {
                return (**first).location;
            }
            select = (*select).larg;
        }
        -1
    }
}
