//! Queries around what is cut out that is no expression: aggregates over an array, and arrays of what functions return.
//!
//! They are made as analysed trees, never as text: text would have its functions looked up again when it runs, and
//! whoever may create functions in the same schema could put one there that fits better.

use crate::pg::lists;
use crate::pg::types;
use crate::rewrite::host_aggregates;
use crate::rewrite::nodes;
use crate::rewrite::returned::{Column, Rows};
use pgrx::pg_sys::{self, NodeTag, Oid};
use std::ffi::CString;

/// `SELECT aggregate FROM unnest($1)`: an aggregate over an array of what it is given in its order. An ordered-set
/// aggregate sorts it itself; its direct arguments are `$2`, `$3` …
///
/// # Safety
/// An aggregate as analysed, complete.
pub(super) unsafe fn of_aggregate(aggregate: &pg_sys::Aggref) -> *mut pg_sys::Query {
    // SAFETY: an aggregate as analysed; new nodes.
    unsafe {
        let values = host_aggregates::values(aggregate);
        let types: Vec<Oid> = values.iter().map(|value| pg_sys::exprType(*value)).collect();
        let call = copy_of(aggregate);
        let is_plain = aggregate.aggkind as u8 == b'n';
        (*call).args = std::ptr::null_mut();
        (*call).aggargtypes = std::ptr::null_mut();
        let mut direct = std::ptr::null_mut();
        for (index, arg) in
            lists::pointers::<pg_sys::Node>(aggregate.aggdirectargs).into_iter().enumerate()
        {
            (*call).aggargtypes = pg_sys::lappend_oid((*call).aggargtypes, pg_sys::exprType(arg));
            direct = pg_sys::lappend(direct, parameter(index + 2, arg).cast());
        }
        (*call).aggdirectargs = direct;
        let is_row =
            types.len() > 1 || types.first().is_some_and(|ty| !host_aggregates::goes_alone(*ty));
        for (index, target) in host_aggregates::targets(aggregate).into_iter().enumerate() {
            let value = (*target).expr.cast::<pg_sys::Node>();
            let number = index as i16 + 1;
            let arg = match is_row {
                true => column(number, types[index], pg_sys::exprCollation(value)),
                false => element(value),
            };
            let argument = pg_sys::makeTargetEntry(arg.cast(), number, std::ptr::null_mut(), false);
            if !is_plain {
                (*argument).ressortgroupref = (*target).ressortgroupref;
            }
            (*call).args = pg_sys::lappend((*call).args, argument.cast());
            (*call).aggargtypes = pg_sys::lappend_oid((*call).aggargtypes, types[index]);
        }
        let entry = match types.as_slice() {
            [] => from_set(unnest(pg_sys::BOOLOID)),
            [ty] if !is_row => from_set(unnest(pg_sys::getBaseType(*ty))),
            _ => from_function(rows_of(unnest(pg_sys::RECORDOID), &columns_of(&values))),
        };
        select_from(call, entry)
    }
}

/// `SELECT array_agg(…) FROM call`: the array of what a call over `$1`, `$2` … returns, of whole rows or of one column.
///
/// # Safety
/// What the rows are of must be complete.
pub(super) unsafe fn of_rows(rows: &Rows) -> *mut pg_sys::Query {
    // SAFETY: an analysed call; new nodes.
    unsafe {
        let Some((wanted, columns)) = rows.column() else {
            let ty = pg_sys::exprType(rows.call());
            let value = column(1, ty, pg_sys::exprCollation(rows.call()));
            return select_from(array_agg(value, rows), from_set(rows.call()));
        };
        let Column { ty, collation, .. } = columns[*wanted];
        let value = column(*wanted as i16 + 1, ty, collation);
        let entry = match (*rows.call()).type_ {
            NodeTag::T_TableFunc => from_document(rows.call().cast()),
            _ => from_function(rows_of(rows.call(), columns)),
        };
        select_from(array_agg(value, rows), entry)
    }
}

/// An aggregate that begins as another one, over rows that have passed its FILTER, come in its order and are distinct.
///
/// # Safety
/// An aggregate as analysed, complete.
unsafe fn copy_of(aggregate: &pg_sys::Aggref) -> *mut pg_sys::Aggref {
    // SAFETY: a copy of the node whose lists are replaced, not changed.
    unsafe {
        let copy: *mut pg_sys::Aggref = nodes::new(NodeTag::T_Aggref);
        std::ptr::copy_nonoverlapping(aggregate, copy, 1);
        (*copy).aggdistinct = std::ptr::null_mut();
        (*copy).aggfilter = std::ptr::null_mut();
        (*copy).agglevelsup = 0;
        (*copy).aggno = -1;
        (*copy).aggtransno = -1;
        if (*copy).aggkind as u8 == b'n' {
            (*copy).aggorder = std::ptr::null_mut();
        }
        copy
    }
}

/// `array_agg(value)`
///
/// # Safety
/// Complete nodes, which become part of the result.
unsafe fn array_agg(value: *mut pg_sys::Node, rows: &Rows) -> *mut pg_sys::Aggref {
    // SAFETY: new nodes.
    unsafe {
        let ty = pg_sys::exprType(value);
        let is_array = types::is_array(ty);
        let value = if is_array { relabel(value, pg_sys::getBaseType(ty)) } else { value };
        let function = match is_array {
            true => pg_sys::F_ARRAY_AGG_ANYARRAY,
            false => pg_sys::F_ARRAY_AGG_ANYNONARRAY,
        };
        let ty = pg_sys::exprType(value);
        let call: *mut pg_sys::Aggref = nodes::new(NodeTag::T_Aggref);
        (*call).aggfnoid = Oid::from(function);
        (*call).aggtype = if is_array { ty } else { rows.array_type() };
        (*call).aggcollid = rows.collation();
        (*call).inputcollid = rows.collation();
        (*call).aggargtypes = pg_sys::lappend_oid(std::ptr::null_mut(), ty);
        let target = pg_sys::makeTargetEntry(value.cast(), 1, std::ptr::null_mut(), false);
        (*call).args = pg_sys::lcons(target.cast(), std::ptr::null_mut());
        (*call).aggkind = b'n' as _;
        (*call).aggno = -1;
        (*call).aggtransno = -1;
        (*call).location = -1;
        call
    }
}

/// The parameter of that number, which comes as a value of the base type if it is of a domain.
///
/// # Safety
/// An expression of an analysed tree.
unsafe fn parameter(number: usize, node: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: new nodes.
    unsafe {
        let ty = pg_sys::exprType(node);
        let collation = pg_sys::exprCollation(node);
        let base = pg_sys::getBaseType(ty);
        relabel(nodes::parameter(number, base, -1, collation).cast(), ty)
    }
}

/// The only column, as a value like `node`.
///
/// # Safety
/// An expression of an analysed tree.
unsafe fn element(node: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: new nodes.
    unsafe {
        let ty = pg_sys::exprType(node);
        relabel(column(1, pg_sys::getBaseType(ty), pg_sys::exprCollation(node)), ty)
    }
}

/// The value as one of a type with the same image.
///
/// # Safety
/// Complete nodes, which become part of the result.
unsafe fn relabel(node: *mut pg_sys::Node, ty: Oid) -> *mut pg_sys::Node {
    // SAFETY: a new node, or none.
    unsafe {
        if pg_sys::exprType(node) == ty {
            return node;
        }
        let form = pg_sys::CoercionForm::COERCE_IMPLICIT_CAST;
        let collation = pg_sys::exprCollation(node);
        pg_sys::makeRelabelType(node.cast(), ty, -1, collation, form).cast()
    }
}

/// A column of the only item of FROM.
fn column(number: i16, ty: Oid, collation: Oid) -> *mut pg_sys::Node {
    // SAFETY: a new node.
    unsafe { pg_sys::makeVar(1, number, ty, -1, collation, 0).cast() }
}

/// The columns of rows made of these values.
///
/// # Safety
/// Expressions.
unsafe fn columns_of(values: &[*mut pg_sys::Node]) -> Vec<Column> {
    let column = |(index, value): (usize, &*mut pg_sys::Node)| {
        // SAFETY: an expression.
        let (ty, collation) = unsafe { (pg_sys::exprType(*value), pg_sys::exprCollation(*value)) };
        Column::new(format!("v{index}"), ty, collation)
    };
    values.iter().enumerate().map(column).collect()
}

/// `unnest($1)`, of an array of elements of a type.
fn unnest(element: Oid) -> *mut pg_sys::Node {
    // SAFETY: new nodes.
    unsafe {
        let array = pg_sys::get_array_type(element);
        let collation = pg_sys::get_typcollation(element);
        let parameter = nodes::parameter(1, array, -1, collation);
        let unnest = Oid::from(pg_sys::F_UNNEST_ANYARRAY);
        let call = nodes::call_of_one(unnest, parameter.cast(), (element, collation));
        (*call).funcretset = true;
        call.cast()
    }
}

/// A call in FROM that returns rows of these columns.
///
/// # Safety
/// Complete nodes, which become part of the result.
unsafe fn rows_of(call: *mut pg_sys::Node, columns: &[Column]) -> *mut pg_sys::RangeTblFunction {
    // SAFETY: a new node with lists of its own; names are copied.
    unsafe {
        let function: *mut pg_sys::RangeTblFunction = nodes::new(NodeTag::T_RangeTblFunction);
        (*function).funcexpr = call;
        (*function).funccolcount = columns.len() as i32;
        for Column { name, ty, typmod, collation, .. } in columns.iter().filter(|c| c.is_defined())
        {
            let function = &mut *function;
            function.funccolnames = pg_sys::lappend(function.funccolnames, text(name).cast());
            function.funccoltypes = pg_sys::lappend_oid(function.funccoltypes, *ty);
            function.funccoltypmods = pg_sys::lappend_int(function.funccoltypmods, *typmod);
            function.funccolcollations =
                pg_sys::lappend_oid(function.funccolcollations, *collation);
        }
        function
    }
}

fn text(value: &str) -> *mut pg_sys::String {
    let value = CString::new(value).unwrap_or_default();
    // SAFETY: the text is copied.
    unsafe { pg_sys::makeString(pg_sys::pstrdup(value.as_ptr())) }
}

/// An item of FROM that is a function.
///
/// # Safety
/// A complete function, which becomes part of the result.
unsafe fn from_function(function: *mut pg_sys::RangeTblFunction) -> *mut pg_sys::RangeTblEntry {
    // SAFETY: new nodes.
    unsafe {
        let entry = new_entry(pg_sys::RTEKind::RTE_FUNCTION, (*function).funccolcount);
        (*entry).functions = pg_sys::lcons(function.cast(), std::ptr::null_mut());
        entry
    }
}

/// An item of FROM that makes rows of a document.
///
/// # Safety
/// A complete XMLTABLE or JSON_TABLE, which becomes part of the result.
unsafe fn from_document(document: *mut pg_sys::TableFunc) -> *mut pg_sys::RangeTblEntry {
    // SAFETY: new nodes; lists that are not changed may have two owners.
    unsafe {
        let columns = pg_sys::list_length((*document).colnames);
        let entry = new_entry(pg_sys::RTEKind::RTE_TABLEFUNC, columns);
        (*entry).tablefunc = document;
        (*entry).coltypes = (*document).coltypes;
        (*entry).coltypmods = (*document).coltypmods;
        (*entry).colcollations = (*document).colcollations;
        entry
    }
}

/// The values that a call returns as a set: in FROM itself, rows would come apart into their columns.
///
/// # Safety
/// Complete nodes, which become part of the result.
unsafe fn from_set(call: *mut pg_sys::Node) -> *mut pg_sys::RangeTblEntry {
    // SAFETY: new nodes.
    unsafe {
        let query = nodes::query();
        let name = pg_sys::pstrdup(c"v".as_ptr());
        let target = pg_sys::makeTargetEntry(call.cast(), 1, name, false);
        (*query).targetList = pg_sys::lcons(target.cast(), std::ptr::null_mut());
        (*query).jointree = pg_sys::makeFromExpr(std::ptr::null_mut(), std::ptr::null_mut());
        (*query).hasTargetSRFs = true;
        let entry = new_entry(pg_sys::RTEKind::RTE_SUBQUERY, 1);
        (*entry).subquery = query;
        entry
    }
}

fn new_entry(kind: pg_sys::RTEKind::Type, columns: i32) -> *mut pg_sys::RangeTblEntry {
    // SAFETY: new nodes.
    unsafe {
        let entry: *mut pg_sys::RangeTblEntry = nodes::new(NodeTag::T_RangeTblEntry);
        (*entry).rtekind = kind;
        (*entry).inFromCl = true;
        let mut names = std::ptr::null_mut();
        for number in 0..columns {
            names = pg_sys::lappend(names, text(&format!("c{number}")).cast());
        }
        (*entry).eref = pg_sys::makeAlias(c"t".as_ptr(), names);
        entry
    }
}

/// `SELECT aggregate FROM entry`
///
/// # Safety
/// Complete nodes, which become part of the result.
unsafe fn select_from(
    aggregate: *mut pg_sys::Aggref,
    entry: *mut pg_sys::RangeTblEntry,
) -> *mut pg_sys::Query {
    // SAFETY: new nodes.
    unsafe {
        let name = pg_sys::pstrdup(c"value".as_ptr());
        let target = pg_sys::makeTargetEntry(aggregate.cast(), 1, name, false);
        let query = nodes::selection(nodes::list([target].into_iter()), entry);
        (*query).hasAggs = true;
        query
    }
}
