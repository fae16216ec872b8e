//! Query trees: PostgreSQL's walkers and mutators, whose names 16 changed, and the range table, in which 18 keeps GROUP BY.
//!
//! The walkers are not the bindings' own, which would catch errors of the server; who calls them guards them.

use pgrx::pg_sys;
use std::ffi::{c_int, c_void};

/// A function that PostgreSQL's walkers call for each node.
pub type Walker = unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut c_void) -> bool;

/// A function that PostgreSQL's mutators call for each node, for its copy.
pub type Mutator = unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut c_void) -> *mut pg_sys::Node;

/// A function that PostgreSQL's walker calls for each node of a running plan.
pub type StateWalker = unsafe extern "C-unwind" fn(*mut pg_sys::PlanState, *mut c_void) -> bool;

extern "C-unwind" {
    #[cfg_attr(not(feature = "pg15"), link_name = "expression_tree_walker_impl")]
    pub fn expression_tree_walker(
        node: *mut pg_sys::Node,
        walker: Walker,
        arg: *mut c_void,
    ) -> bool;
    #[cfg_attr(not(feature = "pg15"), link_name = "query_tree_walker_impl")]
    pub fn query_tree_walker(
        query: *mut pg_sys::Query,
        walker: Walker,
        arg: *mut c_void,
        flags: c_int,
    ) -> bool;
    #[cfg_attr(not(feature = "pg15"), link_name = "raw_expression_tree_walker_impl")]
    pub fn raw_expression_tree_walker(
        node: *mut pg_sys::Node,
        walker: Walker,
        arg: *mut c_void,
    ) -> bool;
    #[cfg_attr(not(feature = "pg15"), link_name = "planstate_tree_walker_impl")]
    pub fn planstate_tree_walker(
        node: *mut pg_sys::PlanState,
        walker: StateWalker,
        context: *mut c_void,
    ) -> bool;
    #[cfg_attr(not(feature = "pg15"), link_name = "expression_tree_mutator_impl")]
    pub fn expression_tree_mutator(
        node: *mut pg_sys::Node,
        mutator: Mutator,
        arg: *mut c_void,
    ) -> *mut pg_sys::Node;
    #[cfg_attr(not(feature = "pg15"), link_name = "query_tree_mutator_impl")]
    pub fn query_tree_mutator(
        query: *mut pg_sys::Query,
        mutator: Mutator,
        arg: *mut c_void,
        flags: c_int,
    ) -> *mut pg_sys::Query;
}

/// Names of an entry's columns, and variables for them.
///
/// # Safety
/// The entry that `var` refers to.
pub unsafe fn expand_entry(
    entry: *mut pg_sys::RangeTblEntry,
    var: &pg_sys::Var,
    with_dropped: bool,
) -> [*mut pg_sys::List; 2] {
    let (mut names, mut columns) = (std::ptr::null_mut(), std::ptr::null_mut());
    let (number, level) = (var.varno as c_int, var.varlevelsup as c_int);
    // SAFETY: per contract.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        pg_sys::expandRTE(
            entry,
            number,
            level,
            var.location,
            with_dropped,
            &mut names,
            &mut columns,
        );
        #[cfg(feature = "pg18")]
        pg_sys::expandRTE(
            entry,
            number,
            level,
            pg_sys::VarReturningType::VAR_RETURNING_DEFAULT,
            var.location,
            with_dropped,
            &mut names,
            &mut columns,
        );
    }
    [names, columns]
}

/// Whether what makes rows of a document is XMLTABLE; from 17 on it may be JSON_TABLE.
pub fn is_xml_table(document: &pg_sys::TableFunc) -> bool {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    {
        let _ = document;
        true
    }
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    {
        document.functype == pg_sys::TableFuncType::TFT_XMLTABLE
    }
}

/// Whether a node is an expression of SQL/JSON: constructors and IS JSON from 16 on, JSON_VALUE and the like from 17 on.
pub fn is_json(tag: pg_sys::NodeTag) -> bool {
    #[cfg(feature = "pg15")]
    {
        let _ = tag;
        false
    }
    #[cfg(not(feature = "pg15"))]
    {
        use pg_sys::NodeTag::{T_JsonConstructorExpr, T_JsonIsPredicate};
        #[cfg(not(feature = "pg16"))]
        if tag == pg_sys::NodeTag::T_JsonExpr {
            return true;
        }
        matches!(tag, T_JsonConstructorExpr | T_JsonIsPredicate)
    }
}

/// Has outputs and HAVING of a query say themselves what they are grouped by, as up to 17: 18 has them refer to an entry of the range
/// table that stands for GROUP BY.
///
/// # Safety
/// A complete query of our own copy.
pub unsafe fn inline_groups(query: *mut pg_sys::Query) {
    #[cfg(not(feature = "pg18"))]
    let _ = query;
    #[cfg(feature = "pg18")]
    // SAFETY: per contract.
    unsafe {
        groups::inline(query);
    }
}

/// PostgreSQL's own function for it forgets where the columns are written.
#[cfg(feature = "pg18")]
mod groups {
    use super::{expression_tree_mutator, query_tree_mutator};
    use pgrx::pg_sys::{self, NodeTag};
    use std::ffi::{c_int, c_void};

    /// What stands for GROUP BY, and how many queries lie between it and what is walked over.
    struct Groups {
        entry: *mut pg_sys::RangeTblEntry,
        number: c_int,
        level: c_int,
    }

    /// # Safety
    /// A complete query of our own copy.
    pub unsafe fn inline(query: *mut pg_sys::Query) {
        // SAFETY: per contract; the entry is the last one, as parse analysis adds it.
        unsafe {
            if !(*query).hasGroupRTE {
                return;
            }
            let number = pg_sys::list_length((*query).rtable);
            let entry: *mut pg_sys::RangeTblEntry =
                pg_sys::list_nth((*query).rtable, number - 1).cast();
            assert!(
                (*entry).rtekind == pg_sys::RTEKind::RTE_GROUP,
                "GROUP BY is the last entry of a range table"
            );
            let mut groups = Groups { entry, number, level: 0 };
            let arg = (&raw mut groups).cast();
            let (targets, having) = pg_sys::ffi::pg_guard_ffi_boundary(|| {
                (replace((*query).targetList.cast(), arg), replace((*query).havingQual, arg))
            });
            (*query).targetList = targets.cast();
            (*query).havingQual = having;
            (*query).hasGroupRTE = false;
            (*query).rtable = pg_sys::list_truncate((*query).rtable, number - 1);
        }
    }

    /// # Safety
    /// For PostgreSQL's mutator to call, with the argument that it was given: see [`inline`].
    #[pgrx::pg_guard]
    unsafe extern "C-unwind" fn replace(
        node: *mut pg_sys::Node,
        arg: *mut c_void,
    ) -> *mut pg_sys::Node {
        // SAFETY: tags decide types; null is a missing part of a node. No frame has destructors.
        unsafe {
            if node.is_null() {
                return node;
            }
            let groups = &mut *arg.cast::<Groups>();
            match (*node).type_ {
                NodeTag::T_Query => {
                    groups.level += 1;
                    let copy = query_tree_mutator(node.cast(), replace, arg, 0);
                    (*arg.cast::<Groups>()).level -= 1;
                    copy.cast()
                }
                NodeTag::T_Var => {
                    let var = &*node.cast::<pg_sys::Var>();
                    if var.varno != groups.number || var.varlevelsup as c_int != groups.level {
                        return pg_sys::copyObjectImpl(node.cast()).cast();
                    }
                    let groups = (*groups.entry).groupexprs;
                    let group = pg_sys::list_nth(groups, c_int::from(var.varattno) - 1);
                    let group: *mut pg_sys::Node = pg_sys::copyObjectImpl(group).cast();
                    pg_sys::IncrementVarSublevelsUp(group, var.varlevelsup as c_int, 0);
                    group
                }
                _ => expression_tree_mutator(node, replace, arg),
            }
        }
    }
}
