//! Bodies of functions of users: what they name, and what they call.

use crate::pg::{guc, quiet};
use pgrx::pg_sys::{self, NodeTag, Oid};

/// Whether the body of a function is a text of SQL whose names are looked for by the search path of whoever calls it.
pub fn follows_search_path(function: Oid) -> bool {
    let query = format!(
        "SELECT true FROM pg_catalog.pg_proc p
         JOIN pg_catalog.pg_language l ON l.oid OPERATOR(pg_catalog.=) p.prolang
         WHERE p.oid OPERATOR(pg_catalog.=) {}
         AND l.lanname OPERATOR(pg_catalog.=) 'sql' AND p.prosqlbody IS NULL
         AND NOT EXISTS (SELECT FROM pg_catalog.unnest(p.proconfig) AS setting
             WHERE setting OPERATOR(pg_catalog.~~) 'search_path=%')",
        function.to_u32()
    );
    quiet::first_row(&query, |row| row.get_one::<bool>()).flatten().unwrap_or(false)
}

/// Raises PostgreSQL's error if the body of a function in SQL is not valid under the search path of functions of views.
pub fn check(function: Oid) {
    // SAFETY: settings changed on a nest level are restored at its end, or by the abort; the validator takes an OID.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        guc::set_for_now(c"search_path", guc::SAFE_SEARCH_PATH);
        guc::set_for_now(c"check_function_bodies", c"on");
        let validator = Oid::from(pg_sys::F_FMGR_SQL_VALIDATOR);
        pg_sys::OidFunctionCall1Coll(validator, Oid::INVALID, function.into());
        pg_sys::AtEOXact_GUC(true, level);
    }
}

/// What a function calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// Functions that are immutable, and no tables.
    Immutable,
    /// Others, too.
    Others,
    /// That is not known.
    Unknown,
}

/// What the body of a function calls, if PostgreSQL can put it in place of a call.
pub fn calls(function: Oid) -> Calls {
    // SAFETY: a call of parameters, which is planned and not run; the tag decides the type.
    unsafe {
        let Some(call) = call_of_parameters(function) else { return Calls::Unknown };
        let body = pg_sys::eval_const_expressions(std::ptr::null_mut(), call);
        let is_same = (*body).type_ == NodeTag::T_FuncExpr
            && (*body.cast::<pg_sys::FuncExpr>()).funcid == function;
        match is_same {
            true => Calls::Unknown,
            false if pg_sys::contain_mutable_functions(body) => Calls::Others,
            false => Calls::Immutable,
        }
    }
}

/// `f($1, $2)`; `None` for functions that take or return whatever they are given, or sets.
fn call_of_parameters(function: Oid) -> Option<*mut pg_sys::Node> {
    let types = super::catalog::argument_types(function);
    // SAFETY: look-ups in the system caches; new nodes.
    unsafe {
        let result = pg_sys::get_func_rettype(function);
        let is_pseudo = |ty: &Oid| pg_sys::get_typtype(*ty) as u8 == pg_sys::TYPTYPE_PSEUDO;
        if pg_sys::get_func_retset(function) || is_pseudo(&result) || types.iter().any(is_pseudo) {
            return None;
        }
        let mut args = std::ptr::null_mut();
        let mut input = Oid::INVALID;
        for (index, ty) in types.into_iter().enumerate() {
            let collation = pg_sys::get_typcollation(ty);
            input = if collation == Oid::INVALID { input } else { collation };
            let param: *mut pg_sys::Param = pg_sys::palloc0(size_of::<pg_sys::Param>()).cast();
            (*param).xpr.type_ = NodeTag::T_Param;
            (*param).paramkind = pg_sys::ParamKind::PARAM_EXTERN;
            (*param).paramid = index as i32 + 1;
            (*param).paramtype = ty;
            (*param).paramtypmod = -1;
            (*param).paramcollid = collation;
            (*param).location = -1;
            args = pg_sys::lappend(args, param.cast());
        }
        let form = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
        let collation = pg_sys::get_typcollation(result);
        Some(pg_sys::makeFuncExpr(function, result, args, collation, input, form).cast())
    }
}
