//! Expressions of SQL/JSON, which came with 16.

use pgrx::pg_sys;

/// A copy of a tree in which the aggregates of SQL/JSON are calls of the functions behind them.
///
/// # Safety
/// A complete query.
pub unsafe fn plain_aggregates(tree: *mut pg_sys::Node) -> *mut pg_sys::Node {
    #[cfg(feature = "pg15")]
    {
        tree
    }
    #[cfg(not(feature = "pg15"))]
    // SAFETY: per contract.
    unsafe {
        let none = std::ptr::null_mut();
        pg_sys::ffi::pg_guard_ffi_boundary(|| aggregates::replace(tree, none))
    }
}

#[cfg(not(feature = "pg15"))]
mod aggregates {
    use crate::pg::versions::tree::{expression_tree_mutator, query_tree_mutator};
    use pgrx::pg_sys::{self, NodeTag};
    use std::ffi::c_void;

    /// Values as they are given, without what says that they are JSON; aggregates converted to what they return.
    ///
    /// # Safety
    /// For PostgreSQL's mutators to call, without an argument.
    #[pgrx::pg_guard]
    pub unsafe extern "C-unwind" fn replace(
        node: *mut pg_sys::Node,
        arg: *mut c_void,
    ) -> *mut pg_sys::Node {
        // SAFETY: tags decide types; null is a missing part of a node. No frame has destructors.
        unsafe {
            if node.is_null() {
                return node;
            }
            match (*node).type_ {
                NodeTag::T_Query => query_tree_mutator(node.cast(), replace, arg, 0).cast(),
                NodeTag::T_JsonConstructorExpr => {
                    let call = &*node.cast::<pg_sys::JsonConstructorExpr>();
                    let function: *mut pg_sys::Node = call.func.cast();
                    let is_aggregate = !function.is_null()
                        && matches!((*function).type_, NodeTag::T_Aggref | NodeTag::T_WindowFunc);
                    if !is_aggregate {
                        return expression_tree_mutator(node, replace, arg);
                    }
                    let function = aggregate(function);
                    match call.coercion.is_null() {
                        true => function,
                        false => converted(call.coercion.cast(), function.cast()),
                    }
                }
                _ => expression_tree_mutator(node, replace, arg),
            }
        }
    }

    /// An aggregate whose arguments are values.
    ///
    /// # Safety
    /// A complete aggregate.
    unsafe fn aggregate(function: *mut pg_sys::Node) -> *mut pg_sys::Node {
        // SAFETY: the mutator copies what it walks over.
        unsafe {
            let none = std::ptr::null_mut();
            replace(expression_tree_mutator(function, plain_values, none), none)
        }
    }

    /// # Safety
    /// For PostgreSQL's mutators to call, without an argument.
    #[pgrx::pg_guard]
    unsafe extern "C-unwind" fn plain_values(
        node: *mut pg_sys::Node,
        arg: *mut c_void,
    ) -> *mut pg_sys::Node {
        // SAFETY: tags decide types; null is a missing part of a node. No frame has destructors.
        unsafe {
            if node.is_null() {
                return node;
            }
            match (*node).type_ {
                NodeTag::T_Query => pg_sys::copyObjectImpl(node.cast()).cast(),
                NodeTag::T_JsonValueExpr => {
                    let value = &*node.cast::<pg_sys::JsonValueExpr>();
                    expression_tree_mutator(value.formatted_expr.cast(), plain_values, arg)
                }
                // It has values of its own.
                NodeTag::T_JsonConstructorExpr => pg_sys::copyObjectImpl(node.cast()).cast(),
                _ => expression_tree_mutator(node, plain_values, arg),
            }
        }
    }

    /// A conversion with a value in the place that it keeps for one.
    ///
    /// # Safety
    /// A conversion for the mutator to copy; `value` becomes part of it.
    #[pgrx::pg_guard]
    unsafe extern "C-unwind" fn converted(
        conversion: *mut pg_sys::Node,
        value: *mut c_void,
    ) -> *mut pg_sys::Node {
        // SAFETY: tags decide types; null is a missing part of a node. No frame has destructors.
        unsafe {
            if conversion.is_null() {
                return conversion;
            }
            match (*conversion).type_ {
                NodeTag::T_CaseTestExpr => value.cast(),
                _ => expression_tree_mutator(conversion, converted, value),
            }
        }
    }
}
