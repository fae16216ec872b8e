//! Aggregates, window functions included, as calls over the array of what they are given.
//!
//! ```sql
//! SELECT my_sum(t.a ORDER BY t.b) FILTER (WHERE t.c) FROM t
//! SELECT eddy.host_call(17, array_agg(t.a ORDER BY t.b) FILTER (WHERE t.c)) FROM t
//!     -- 17: SELECT my_sum(v) FROM unnest($1) AS t(v)
//!
//! SELECT my_sum(t.a) OVER w FROM t
//! SELECT eddy.host_call(17, array_agg(t.a) OVER w) FROM t
//! ```
//!
//! Several arguments come as one row, whose making is a call of its own; none as `true`.

use crate::pg::catalog;
use crate::pg::lists;
use crate::pg::types;
use crate::rewrite::canonical::with_canonical_settings;
use crate::rewrite::cuts::{call, stand_in_call, Found, Rewrite};
use crate::rewrite::nodes;
use crate::rewrite::tree::expression_tree_mutator;
use pgrx::pg_sys::{self, NodeTag, Oid};

/// For people: an aggregate over `$1`, an array of what it is given in its order. An ordered-set aggregate sorts it
/// itself; its direct arguments are `$2`, `$3` …
///
/// # Safety
/// An aggregate as analysed, complete.
pub(super) unsafe fn text(aggregate: &pg_sys::Aggref) -> String {
    // SAFETY: an aggregate as analysed.
    unsafe {
        let name = catalog::qualified_function(aggregate.aggfnoid);
        let values = values(aggregate);
        let types: Vec<Oid> = values.iter().map(|value| pg_sys::exprType(*value)).collect();
        let from = match types.as_slice() {
            [] => "pg_catalog.unnest($1) AS t(v)".to_owned(),
            [ty] if goes_alone(*ty) => "(SELECT pg_catalog.unnest($1) AS v0) AS t".to_owned(),
            types => {
                let column =
                    |(i, ty): (usize, &Oid)| format!("v{i} {}", types::qualified_type(*ty, -1));
                let columns: Vec<String> = types.iter().enumerate().map(column).collect();
                format!("pg_catalog.unnest($1) AS t({})", columns.join(", "))
            }
        };
        if aggregate.aggkind as u8 != b'n' {
            let direct = lists::pointers::<pg_sys::Node>(aggregate.aggdirectargs).len();
            let direct: Vec<String> = (2..direct + 2).map(|number| format!("${number}")).collect();
            let (direct, order) = (direct.join(", "), order(aggregate).join(", "));
            return format!("SELECT {name}({direct}) WITHIN GROUP (ORDER BY {order}) FROM {from}");
        }
        let collation = collate(aggregate.inputcollid);
        let arg = |(i, ty): (usize, &Oid)| {
            let is_variadic = aggregate.aggvariadic && i + 1 == types.len();
            let variadic = if is_variadic { "VARIADIC " } else { "" };
            let has_collation = pg_sys::get_typcollation(*ty) != Oid::INVALID;
            format!("{variadic}t.v{i}{}", if has_collation { collation.as_str() } else { "" })
        };
        let args: Vec<String> = types.iter().enumerate().map(arg).collect();
        let args = if args.is_empty() { "*".to_owned() } else { args.join(", ") };
        format!("SELECT {name}({args}) FROM {from}")
    }
}

/// The items of WITHIN GROUP (ORDER BY …), whose operators are those of the types' own orders.
///
/// # Safety
/// An aggregate as analysed, complete.
unsafe fn order(aggregate: &pg_sys::Aggref) -> Vec<String> {
    // SAFETY: each sort clause refers to an argument.
    unsafe {
        let targets = lists::pointers::<pg_sys::TargetEntry>(aggregate.args);
        let item = |clause: *mut pg_sys::SortGroupClause| {
            let reference = (*clause).tleSortGroupRef;
            let index =
                targets.iter().position(|target| (**target).ressortgroupref == reference)?;
            let collation = collate(pg_sys::exprCollation((*targets[index]).expr.cast()));
            let is_descending = catalog::operator((*clause).sortop).0 == ">";
            let direction = if is_descending { "DESC" } else { "ASC" };
            let nulls = if (*clause).nulls_first { "FIRST" } else { "LAST" };
            Some(format!("t.v{index}{collation} {direction} NULLS {nulls}"))
        };
        let clauses = lists::pointers::<pg_sys::SortGroupClause>(aggregate.aggorder);
        clauses.into_iter().filter_map(item).collect()
    }
}

fn collate(collation: Oid) -> String {
    with_canonical_settings(false, || catalog::collate_clause(collation))
}

/// What an aggregate is given of each row, without what it is only sorted by.
///
/// # Safety
/// An aggregate as analysed, complete.
pub(super) unsafe fn values(aggregate: &pg_sys::Aggref) -> Vec<*mut pg_sys::Node> {
    // SAFETY: targets of the aggregate.
    unsafe { targets(aggregate).into_iter().map(|target| (*target).expr.cast()).collect() }
}

/// Its arguments, without what it is only sorted by.
///
/// # Safety
/// An aggregate as analysed, complete.
pub(super) unsafe fn targets(aggregate: &pg_sys::Aggref) -> Vec<*mut pg_sys::TargetEntry> {
    // SAFETY: the list holds targets.
    unsafe {
        let targets = lists::pointers::<pg_sys::TargetEntry>(aggregate.args);
        targets.into_iter().filter(|target| !(**target).resjunk).collect()
    }
}

/// An aggregate as a call over the array of what it is given, each row's arguments as one value.
///
/// # Safety
/// An aggregate of the tree that is being rewritten; `rewrite` is valid.
pub(super) unsafe fn replace_aggregate(
    aggregate: *mut pg_sys::Aggref,
    rewrite: *mut Rewrite<'_>,
) -> *mut pg_sys::Node {
    // SAFETY: nodes of one tree; the copy made by the mutator is changed.
    unsafe {
        let value = value_of(&*aggregate, rewrite);
        let element = pg_sys::exprType(value);
        let target = pg_sys::makeTargetEntry(value.cast(), 1, std::ptr::null_mut(), false);
        let copy = expression_tree_mutator(aggregate.cast(), (*rewrite).replace, rewrite.cast())
            .cast::<pg_sys::Aggref>();
        let direct = (*copy).aggdirectargs;
        if (*copy).aggkind as u8 == b'n' {
            for target in lists::pointers::<pg_sys::TargetEntry>((*copy).args) {
                (*target).resjunk = true;
            }
        } else {
            (*copy).aggkind = b'n' as _;
            (*copy).args = std::ptr::null_mut();
            (*copy).aggorder = std::ptr::null_mut();
            (*copy).aggdirectargs = std::ptr::null_mut();
        }
        (*copy).args = pg_sys::lcons(target.cast(), (*copy).args);
        (*copy).aggfnoid = Oid::from(pg_sys::F_ARRAY_AGG_ANYNONARRAY);
        (*copy).aggtype = pg_sys::get_array_type(element);
        (*copy).aggargtypes = pg_sys::lappend_oid(std::ptr::null_mut(), element);
        (*copy).aggstar = false;
        (*copy).aggvariadic = false;
        let args = pg_sys::lcons(copy.cast(), direct);
        let index = (*rewrite).add(Found::Aggregate(aggregate));
        let result = ((*aggregate).aggtype, (*aggregate).aggcollid);
        stand_in_call(index, args, result, rewrite)
    }
}

/// An aggregate over the frames of a window, as a call over the array of what each of them holds.
///
/// # Safety
/// A call of the tree that is being rewritten; `rewrite` is valid.
pub(super) unsafe fn replace_window_aggregate(
    function: *mut pg_sys::WindowFunc,
    rewrite: *mut Rewrite<'_>,
) -> *mut pg_sys::Node {
    // SAFETY: nodes of one tree; the copy made by the mutator is changed.
    unsafe {
        let aggregate = as_aggregate(&*function);
        let value = value_of(&*aggregate, rewrite);
        let copy = expression_tree_mutator(function.cast(), (*rewrite).replace, rewrite.cast())
            .cast::<pg_sys::WindowFunc>();
        (*copy).winfnoid = Oid::from(pg_sys::F_ARRAY_AGG_ANYNONARRAY);
        (*copy).wintype = pg_sys::get_array_type(pg_sys::exprType(value));
        (*copy).args = pg_sys::lcons(value.cast(), std::ptr::null_mut());
        (*copy).winstar = false;
        let args = pg_sys::lcons(copy.cast(), std::ptr::null_mut());
        let index = (*rewrite).add(Found::Aggregate(aggregate));
        stand_in_call(index, args, ((*function).wintype, (*function).wincollid), rewrite)
    }
}

/// The aggregate that a window function calls.
///
/// # Safety
/// A complete call of an aggregate over a window.
unsafe fn as_aggregate(function: &pg_sys::WindowFunc) -> *mut pg_sys::Aggref {
    // SAFETY: a new node over the same arguments.
    unsafe {
        let aggregate: *mut pg_sys::Aggref = nodes::new(NodeTag::T_Aggref);
        (*aggregate).aggfnoid = function.winfnoid;
        (*aggregate).aggtype = function.wintype;
        (*aggregate).aggcollid = function.wincollid;
        (*aggregate).inputcollid = function.inputcollid;
        (*aggregate).aggkind = b'n' as _;
        (*aggregate).location = function.location;
        for (index, arg) in lists::pointers::<pg_sys::Expr>(function.args).into_iter().enumerate() {
            let number = index as i16 + 1;
            let target = pg_sys::makeTargetEntry(arg, number, std::ptr::null_mut(), false);
            (*aggregate).args = pg_sys::lappend((*aggregate).args, target.cast());
        }
        aggregate
    }
}

/// Whether there are arrays of values of a type as they are: not of arrays, and a few types have none.
pub(super) fn goes_alone(ty: Oid) -> bool {
    !types::is_array(ty) && types::array_of(ty).is_some()
}

/// The arguments of an aggregate as one value: a single one as it is, several, and one of which there are no arrays, as
/// a row, none as true.
///
/// # Safety
/// An aggregate of the tree that is being rewritten; `rewrite` is valid.
unsafe fn value_of(aggregate: &pg_sys::Aggref, rewrite: *mut Rewrite<'_>) -> *mut pg_sys::Node {
    // SAFETY: nodes of one tree; a new node.
    unsafe {
        match values(aggregate).as_slice() {
            [] => pg_sys::makeBoolConst(true, false),
            [value] if goes_alone(pg_sys::exprType(*value)) => {
                ((*rewrite).replace)(*value, rewrite.cast())
            }
            values => {
                let add = |list, value: &*mut pg_sys::Node| pg_sys::lappend(list, value.cast());
                let columns = values.iter().fold(std::ptr::null_mut(), add);
                let row = nodes::row(columns, pg_sys::RECORDOID);
                call(row.cast(), rewrite)
            }
        }
    }
}
