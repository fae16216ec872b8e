//! New nodes of query trees. They live as long as the memory context they are made in.

use pgrx::pg_sys::{self, NodeTag, Oid};
use std::ffi::c_int;

/// A node, all zero but for its tag, which must be that of the type.
///
/// # Safety
/// `T` must be the type of a node, and the tag that type's.
pub unsafe fn new<T>(tag: NodeTag) -> *mut T {
    // SAFETY: every node begins with its tag.
    unsafe {
        let node = pg_sys::palloc0(size_of::<T>());
        (*node.cast::<pg_sys::Node>()).type_ = tag;
        node.cast()
    }
}

/// A list of pointers.
///
/// # Safety
/// Nodes that outlive the list.
pub unsafe fn list<T>(cells: impl Iterator<Item = *mut T>) -> *mut pg_sys::List {
    // SAFETY: a list of our own, which grows.
    cells.fold(std::ptr::null_mut(), |list, cell| unsafe { pg_sys::lappend(list, cell.cast()) })
}

/// A SELECT without anything.
pub fn query() -> *mut pg_sys::Query {
    // SAFETY: a new node.
    unsafe {
        let query: *mut pg_sys::Query = new(NodeTag::T_Query);
        (*query).commandType = pg_sys::CmdType::CMD_SELECT;
        (*query).canSetTag = true;
        (*query).stmt_location = -1;
        query
    }
}

/// `SELECT targets FROM entry`
///
/// # Safety
/// Complete nodes, which become part of the result; the targets refer to the entry as the first.
pub unsafe fn selection(
    targets: *mut pg_sys::List,
    entry: *mut pg_sys::RangeTblEntry,
) -> *mut pg_sys::Query {
    // SAFETY: new nodes.
    unsafe {
        let reference: *mut pg_sys::RangeTblRef = new(NodeTag::T_RangeTblRef);
        (*reference).rtindex = 1;
        let from = pg_sys::lcons(reference.cast(), std::ptr::null_mut());
        let query = query();
        (*query).rtable = pg_sys::lcons(entry.cast(), std::ptr::null_mut());
        (*query).jointree = pg_sys::makeFromExpr(from, std::ptr::null_mut());
        (*query).targetList = targets;
        query
    }
}

/// Makes an entry of a range table one of a subquery, under the name that it has.
///
/// # Safety
/// An entry of a tree of our own, and a complete query that becomes part of it.
pub unsafe fn become_subquery(entry: *mut pg_sys::RangeTblEntry, subquery: *mut pg_sys::Query) {
    // SAFETY: per contract.
    unsafe {
        become_another(entry, pg_sys::RTEKind::RTE_SUBQUERY);
        (*entry).subquery = subquery;
    }
}

/// Makes an entry of a range table one of functions, each with one column, under the name that it has.
///
/// # Safety
/// An entry of a tree of our own, and a list of complete functions that become part of it.
pub unsafe fn become_functions(entry: *mut pg_sys::RangeTblEntry, functions: *mut pg_sys::List) {
    // SAFETY: per contract.
    unsafe {
        become_another(entry, pg_sys::RTEKind::RTE_FUNCTION);
        (*entry).functions = functions;
    }
}

/// Leaves nothing of an entry but its name and its place in FROM.
///
/// # Safety
/// An entry of a tree of our own.
unsafe fn become_another(entry: *mut pg_sys::RangeTblEntry, kind: pg_sys::RTEKind::Type) {
    // SAFETY: per contract; what is zero is as in a new node.
    unsafe {
        let (eref, alias) = ((*entry).eref, (*entry).alias);
        let (is_in_from, is_lateral) = ((*entry).inFromCl, (*entry).lateral);
        std::ptr::write_bytes(entry, 0, 1);
        (*entry).type_ = NodeTag::T_RangeTblEntry;
        (*entry).rtekind = kind;
        (*entry).eref = eref;
        (*entry).alias = alias;
        (*entry).inFromCl = is_in_from;
        (*entry).lateral = is_lateral;
    }
}

/// The call of a function whose result has a type and a collation.
///
/// # Safety
/// Complete nodes, which become part of the result.
pub unsafe fn call(
    function: Oid,
    args: *mut pg_sys::List,
    (ty, collation): (Oid, Oid),
) -> *mut pg_sys::FuncExpr {
    let form = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
    // SAFETY: a new node over a list of expressions.
    unsafe { pg_sys::makeFuncExpr(function, ty, args, collation, Oid::INVALID, form) }
}

/// The call of a function of one argument.
///
/// # Safety
/// Complete nodes, which become part of the result.
pub unsafe fn call_of_one(
    function: Oid,
    arg: *mut pg_sys::Node,
    result: (Oid, Oid),
) -> *mut pg_sys::FuncExpr {
    // SAFETY: a new list and a new node.
    unsafe { call(function, pg_sys::lcons(arg.cast(), std::ptr::null_mut()), result) }
}

/// `ROW(…)` of a type.
///
/// # Safety
/// Complete nodes, which become part of the result.
pub unsafe fn row(columns: *mut pg_sys::List, ty: Oid) -> *mut pg_sys::RowExpr {
    // SAFETY: a new node over a list of expressions.
    unsafe {
        let row: *mut pg_sys::RowExpr = new(NodeTag::T_RowExpr);
        (*row).args = columns;
        (*row).row_typeid = ty;
        (*row).row_format = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
        (*row).location = -1;
        row
    }
}

/// A constant of type integer.
pub fn integer(value: i32) -> *mut pg_sys::Const {
    constant(pg_sys::INT4OID, 4, value.into())
}

/// A constant of type double precision.
pub fn double(value: f64) -> *mut pg_sys::Const {
    constant(pg_sys::FLOAT8OID, 8, value.to_bits().into())
}

fn constant(ty: Oid, length: c_int, value: pg_sys::Datum) -> *mut pg_sys::Const {
    // SAFETY: a new node.
    unsafe { pg_sys::makeConst(ty, -1, Oid::INVALID, length, value, false, true) }
}

/// A constant of type bigint.
pub fn bigint(value: i64) -> *mut pg_sys::Const {
    constant(pg_sys::INT8OID, 8, value.into())
}

/// `$number`
pub fn parameter(number: usize, ty: Oid, typmod: i32, collation: Oid) -> *mut pg_sys::Param {
    // SAFETY: a new node.
    unsafe {
        let param: *mut pg_sys::Param = new(NodeTag::T_Param);
        (*param).paramkind = pg_sys::ParamKind::PARAM_EXTERN;
        (*param).paramid = number as c_int;
        (*param).paramtype = ty;
        (*param).paramtypmod = typmod;
        (*param).paramcollid = collation;
        (*param).location = -1;
        param
    }
}

/// `node COLLATE …`
///
/// # Safety
/// Complete nodes, which become part of the result.
pub unsafe fn collated(node: *mut pg_sys::Node, collation: Oid) -> *mut pg_sys::Node {
    // SAFETY: a new node.
    unsafe {
        let clause: *mut pg_sys::CollateExpr = new(NodeTag::T_CollateExpr);
        (*clause).arg = node.cast();
        (*clause).collOid = collation;
        (*clause).location = -1;
        clause.cast()
    }
}

/// `CASE WHEN value IS NOT NULL THEN result END`
///
/// # Safety
/// Complete nodes, which become part of the result.
pub unsafe fn if_present(value: *mut pg_sys::Expr, result: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: new nodes.
    unsafe {
        let test: *mut pg_sys::NullTest = new(NodeTag::T_NullTest);
        (*test).arg = value;
        (*test).nulltesttype = pg_sys::NullTestType::IS_NOT_NULL;
        (*test).location = -1;
        result_if(test.cast(), result)
    }
}

/// `CASE WHEN test THEN result END`
///
/// # Safety
/// Complete nodes, which become part of the result.
pub unsafe fn result_if(test: *mut pg_sys::Expr, result: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: new nodes.
    unsafe {
        let branch: *mut pg_sys::CaseWhen = new(NodeTag::T_CaseWhen);
        (*branch).expr = test;
        (*branch).result = result.cast();
        (*branch).location = -1;
        let case: *mut pg_sys::CaseExpr = new(NodeTag::T_CaseExpr);
        let (ty, collation) = (pg_sys::exprType(result), pg_sys::exprCollation(result));
        (*case).casetype = ty;
        (*case).casecollid = collation;
        (*case).args = pg_sys::lcons(branch.cast(), std::ptr::null_mut());
        (*case).defresult = pg_sys::makeNullConst(ty, -1, collation).cast();
        (*case).location = -1;
        case.cast()
    }
}
