//! Bodies of functions of users: what they name, and what they call.

use crate::pg::catalog::{self, Volatility};
use crate::pg::{guc, lists, quiet, xact};
use pgrx::pg_sys::{self, NodeTag, Oid};
use std::ffi::{c_char, c_int, c_void};

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

/// The number of the language SQL.
const SQL_LANGUAGE: u32 = 14;

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

/// What the body of a function calls, if that is one expression in SQL. It is parsed, and nothing of it is computed.
pub fn calls(function: Oid) -> Calls {
    let body = quiet::look_up(|| xact::in_subtransaction(|| expression(function)));
    let Ok(Some(body)) = body else { return Calls::Unknown };
    let declares_stable = catalog::volatility(function) == Volatility::Stable;
    // SAFETY: a complete expression, which is only read.
    unsafe {
        match (pg_sys::contain_volatile_functions(body), pg_sys::contain_mutable_functions(body)) {
            // PostgreSQL does not take it for what it declares to be either.
            (true, _) if declares_stable => Calls::Unknown,
            (_, true) => Calls::Others,
            (_, false) => Calls::Immutable,
        }
    }
}

/// The expression that a function in SQL returns; `None` if it does anything else. An error if its body is not valid.
fn expression(function: Oid) -> Option<*mut pg_sys::Node> {
    use pg_sys::SysCacheIdentifier::PROCOID;
    // SAFETY: rows of that cache are those of functions; the row is released after what is needed of it was copied.
    unsafe {
        let row = pg_sys::SearchSysCache1(PROCOID as c_int, pg_sys::Datum::from(function));
        if row.is_null() {
            return None;
        }
        let form = &*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_proc>();
        let is_plain = form.prolang.to_u32() == SQL_LANGUAGE
            && form.prokind as u8 == pg_sys::PROKIND_FUNCTION
            && !form.proretset;
        let query = if is_plain { query(row) } else { None };
        pg_sys::ReleaseSysCache(row);
        returned(query?)
    }
}

/// The only query of a body in SQL, analysed.
///
/// # Safety
/// The row of a function in SQL.
unsafe fn query(row: pg_sys::HeapTuple) -> Option<*mut pg_sys::Query> {
    // Not among the bindings.
    #[pgrx::pg_guard]
    unsafe extern "C-unwind" {
        fn prepare_sql_fn_parse_info(
            row: pg_sys::HeapTuple,
            call: *mut pg_sys::Node,
            collation: Oid,
        ) -> *mut c_void;
    }
    unsafe extern "C-unwind" {
        fn sql_fn_parser_setup(state: *mut pg_sys::ParseState, info: *mut c_void);
    }
    // SAFETY: per contract; columns of text, and a tree that PostgreSQL has written.
    unsafe {
        if let Some(tree) = text_of(row, pg_sys::Anum_pg_proc_prosqlbody) {
            let node: *mut pg_sys::Node = pg_sys::stringToNode(tree).cast();
            return ((*node).type_ == NodeTag::T_Query).then_some(node.cast());
        }
        let source = text_of(row, pg_sys::Anum_pg_proc_prosrc)?;
        let none = std::ptr::null_mut();
        let info = prepare_sql_fn_parse_info(row, none, Oid::INVALID);
        let statements = pg_sys::raw_parser(source, pg_sys::RawParseMode::RAW_PARSE_DEFAULT);
        match lists::pointers::<pg_sys::RawStmt>(statements).as_slice() {
            [one] => {
                let setup: pg_sys::ParserSetupHook = Some(sql_fn_parser_setup);
                Some(pg_sys::parse_analyze_withcb(*one, source, setup, info, std::ptr::null_mut()))
            }
            _ => None,
        }
    }
}

/// A column of text; `None` if it is NULL.
///
/// # Safety
/// The row of a function, and such a column.
unsafe fn text_of(row: pg_sys::HeapTuple, column: u32) -> Option<*mut c_char> {
    let cache = pg_sys::SysCacheIdentifier::PROCOID as c_int;
    let mut is_null = false;
    // SAFETY: per contract; the text is a copy.
    unsafe {
        let value = pg_sys::SysCacheGetAttr(cache, row, column as i16, &mut is_null);
        (!is_null).then(|| pg_sys::text_to_cstring(value.cast_mut_ptr()))
    }
}

/// The only thing that a query does: to return the value of an expression.
///
/// # Safety
/// A complete query.
unsafe fn returned(query: *mut pg_sys::Query) -> Option<*mut pg_sys::Node> {
    // SAFETY: per contract; a SELECT has a FROM, be it empty, and targets.
    unsafe {
        let query = &*query;
        let from = query.jointree.as_ref()?;
        let lists =
            [query.rtable, query.cteList, from.fromlist, query.groupClause, query.sortClause];
        let clauses = [from.quals, query.havingQual, query.limitCount, query.limitOffset];
        let computes_rows =
            query.hasAggs || query.hasWindowFuncs || query.hasTargetSRFs || query.hasSubLinks;
        let is_plain = query.commandType == pg_sys::CmdType::CMD_SELECT
            && !computes_rows
            && query.setOperations.is_null()
            && lists.iter().all(|list| list.is_null())
            && clauses.iter().all(|clause| clause.is_null());
        match lists::pointers::<pg_sys::TargetEntry>(query.targetList).as_slice() {
            [target] if is_plain => Some((**target).expr.cast()),
            _ => None,
        }
    }
}
