//! `current_user` as the name of who it is: a view's query runs as the view's owner, whoever reads the view.
//!
//! ```sql
//! SELECT … FROM t WHERE who = current_user
//! SELECT … FROM t WHERE who = 'alice'::name
//! ```

use crate::rewrite::tree::{expression_tree_mutator, query_tree_mutator, Tree};
use pgrx::pg_sys::{self, NodeTag, SQLValueFunctionOp as Op};
use std::ffi::{c_void, CStr};

impl Tree {
    /// A copy in which `current_user`, `user` and `current_role` are the name of the current user, who is the view's owner.
    pub fn with_names_of_owners(self) -> Tree {
        // SAFETY: the mutator copies what it walks over.
        unsafe {
            Tree::from_node(pg_sys::ffi::pg_guard_ffi_boundary(|| {
                replace(self.as_node(), std::ptr::null_mut())
            }))
        }
    }
}

/// # Safety
/// For PostgreSQL's mutators to call.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn replace(
    node: *mut pg_sys::Node,
    arg: *mut c_void,
) -> *mut pg_sys::Node {
    // SAFETY: tags decide types; null is a missing part of a node.
    unsafe {
        if node.is_null() {
            return node;
        }
        match (*node).type_ {
            NodeTag::T_Query => query_tree_mutator(node.cast(), replace, arg, 0).cast(),
            NodeTag::T_SQLValueFunction
                if names_user((*node.cast::<pg_sys::SQLValueFunction>()).op) =>
            {
                name_of_user().cast()
            }
            _ => expression_tree_mutator(node, replace, arg),
        }
    }
}

fn names_user(function: Op::Type) -> bool {
    [Op::SVFOP_CURRENT_USER, Op::SVFOP_USER, Op::SVFOP_CURRENT_ROLE].contains(&function)
}

/// The name of the current user, as a constant.
fn name_of_user() -> *mut pg_sys::Const {
    const LENGTH: usize = pg_sys::NAMEDATALEN as usize;
    // SAFETY: a name has room for that many bytes, of which the last is 0; the user there is has a name that is shorter.
    unsafe {
        let name = pg_sys::palloc0(LENGTH);
        let user = CStr::from_ptr(pg_sys::GetUserNameFromId(pg_sys::GetUserId(), false));
        let length = user.count_bytes().min(LENGTH - 1);
        std::ptr::copy_nonoverlapping(user.as_ptr(), name.cast(), length);
        let (value, collation) = (pg_sys::Datum::from(name), pg_sys::C_COLLATION_OID);
        pg_sys::makeConst(pg_sys::NAMEOID, -1, collation, LENGTH as i32, value, false, false)
    }
}
