//! `CASE x WHEN …` whose conditions cast x: PostgreSQL keeps such a cast within each condition, above what stands for x
//! there, and the text of a CASE does not show it.
//!
//! ```sql
//! CASE x WHEN 'a' THEN 1 END          -- x is varchar: each condition is x::text = 'a'
//! CASE x::text WHEN 'a' THEN 1 END
//! ```

use crate::pg::lists;
use crate::rewrite::nodes;
use crate::rewrite::tree::{Place, Tree};
use pgrx::pg_sys::{self, CoercionForm, NodeTag};

impl Tree {
    /// Casts x itself where all conditions of a `CASE x WHEN …` cast it to the same: then they compare it as it is. The
    /// tree must be a copy of our own.
    pub fn with_cast_operands(self) -> Tree {
        // SAFETY: the tree is our own copy; the tag decides the type.
        self.each_expression(&|place: Place<'_>| unsafe {
            if (*place.0).type_ == NodeTag::T_CaseExpr {
                cast_operand(place.0.cast());
            }
        });
        self
    }
}

/// Casts x itself if all conditions cast it to the same.
///
/// # Safety
/// A complete CASE of a copy that nobody else looks at.
unsafe fn cast_operand(case: *mut pg_sys::CaseExpr) {
    // SAFETY: nodes of one tree of our own; the new nodes live as long as it does.
    unsafe {
        let Some(sides) = left_sides(case) else { return };
        let Some(first) = sides.first() else { return };
        let cast: *mut pg_sys::Node = (**first).ptr_value.cast();
        let is_same = |side: &*mut pg_sys::ListCell| pg_sys::equal((**side).ptr_value, cast.cast());
        let Some(place) = place_of_operand(cast) else { return };
        if !sides.iter().all(is_same) {
            return;
        }
        for side in &sides {
            (**side).ptr_value = operand_of(cast).cast();
        }
        *place = (*case).arg.cast();
        (*case).arg = cast.cast();
    }
}

/// Where the conditions have what they compare, cast or not. `None` if one is no comparison, or there is no x.
///
/// # Safety
/// Nodes of a copy that nobody else looks at.
unsafe fn left_sides(case: *mut pg_sys::CaseExpr) -> Option<Vec<*mut pg_sys::ListCell>> {
    // SAFETY: the list holds WHENs; an operator has arguments.
    unsafe {
        if (*case).arg.is_null() {
            return None;
        }
        let left = |when: *mut pg_sys::CaseWhen| {
            let condition = (*when).expr;
            let is_comparison = (*condition).type_ == NodeTag::T_OpExpr;
            is_comparison.then(|| (*(*condition.cast::<pg_sys::OpExpr>()).args).elements)
        };
        lists::pointers::<pg_sys::CaseWhen>((*case).args).into_iter().map(left).collect()
    }
}

/// What stands for a value of x in a condition.
///
/// # Safety
/// An expression of an analysed tree.
unsafe fn operand_of(value: *mut pg_sys::Node) -> *mut pg_sys::CaseTestExpr {
    // SAFETY: a new node.
    unsafe {
        let operand: *mut pg_sys::CaseTestExpr = nodes::new(NodeTag::T_CaseTestExpr);
        (*operand).typeId = pg_sys::exprType(value);
        (*operand).typeMod = pg_sys::exprTypmod(value);
        (*operand).collation = pg_sys::exprCollation(value);
        operand
    }
}

/// Where x stands in implicit casts of it; `None` if it is not cast.
///
/// # Safety
/// Nodes of a copy that nobody else looks at.
unsafe fn place_of_operand(cast: *mut pg_sys::Node) -> Option<*mut *mut pg_sys::Node> {
    // SAFETY: tags decide types; a function of a cast has an argument.
    unsafe {
        let (arg, form): (*mut *mut pg_sys::Node, _) = match (*cast).type_ {
            NodeTag::T_RelabelType => {
                let cast = cast.cast::<pg_sys::RelabelType>();
                ((&raw mut (*cast).arg).cast(), (*cast).relabelformat)
            }
            NodeTag::T_CoerceViaIO => {
                let cast = cast.cast::<pg_sys::CoerceViaIO>();
                ((&raw mut (*cast).arg).cast(), (*cast).coerceformat)
            }
            NodeTag::T_ArrayCoerceExpr => {
                let cast = cast.cast::<pg_sys::ArrayCoerceExpr>();
                ((&raw mut (*cast).arg).cast(), (*cast).coerceformat)
            }
            NodeTag::T_ConvertRowtypeExpr => {
                let cast = cast.cast::<pg_sys::ConvertRowtypeExpr>();
                ((&raw mut (*cast).arg).cast(), (*cast).convertformat)
            }
            NodeTag::T_CoerceToDomain => {
                let cast = cast.cast::<pg_sys::CoerceToDomain>();
                ((&raw mut (*cast).arg).cast(), (*cast).coercionformat)
            }
            NodeTag::T_FuncExpr => {
                let cast = cast.cast::<pg_sys::FuncExpr>();
                if (*cast).funcformat != CoercionForm::COERCE_IMPLICIT_CAST {
                    return None;
                }
                let first = (*(*cast).args).elements;
                ((&raw mut (*first).ptr_value).cast(), (*cast).funcformat)
            }
            _ => return None,
        };
        match (**arg).type_ {
            _ if form != CoercionForm::COERCE_IMPLICIT_CAST => None,
            NodeTag::T_CaseTestExpr => Some(arg),
            _ => place_of_operand(*arg),
        }
    }
}
