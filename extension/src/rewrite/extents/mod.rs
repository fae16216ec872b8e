//! Where the operands of a condition are that PostgreSQL evaluates: ranges and geometric shapes that must have places in
//! common for it to be true. What GiST keeps of them, as expressions over the same parameters.
//!
//! ```sql
//! $1 && $2           -- between lower($1) and upper($1), between lower($2) and upper($2)
//! $1 @> $2           -- of a polygon and a point, in the first dimension: between ((box($1))[1])[0] and
//!                    -- ((box($1))[0])[0], at ($2)[0]
//! ```

mod extensions;

use crate::pg::catalog;
use crate::rewrite::nodes;
use crate::rewrite::parts::Call;
use crate::rewrite::tree::{Node, Place};
use pgrx::pg_sys::{self, NodeTag, Oid};
use std::collections::BTreeSet;

/// Where an operand is in a dimension.
pub(super) enum Extent {
    /// At a parameter, counted from 0.
    Argument(usize),
    /// At the value of an expression.
    Value(*mut pg_sys::Node),
    /// Between the values of two expressions, where NULL is no end.
    Between(*mut pg_sys::Node, *mut pg_sys::Node),
}

/// What has a place.
#[derive(Clone, Copy)]
enum Kind {
    /// A range, or what of a multirange is between its first value and its last.
    Range {
        subtype: Oid,
        lower: u32,
        upper: u32,
    },
    /// A value that a range may have.
    Element,
    Point,
    Box,
    Polygon,
    Circle,
}

const INT4: i32 = 4;

/// By dimension, if it is a condition of two operands that is true only if they have places in common.
///
/// # Safety
/// A complete expression over parameters, which becomes part of the results.
pub(super) unsafe fn of_condition(node: *mut pg_sys::Node) -> Vec<[Extent; 2]> {
    // SAFETY: per contract.
    let call = match unsafe { Place::of(node) }.node() {
        Node::OpExpr(call) => call,
        // SAFETY: arguments of the expression.
        Node::FuncExpr(call) => unsafe {
            return extensions::of_function(call.funcid, &call.arguments());
        },
        _ => return Vec::new(),
    };
    let arguments = call.arguments();
    let [left, right] = arguments.as_slice() else { return Vec::new() };
    if !catalog::is_builtin(call.opno) {
        // SAFETY: as above.
        return unsafe { extensions::of_operator(call.opno, [*left, *right]) };
    }
    let name = catalog::operator(call.opno).0;
    let Some(kinds) = kinds(&name, left.expr_type(), right.expr_type()) else { return Vec::new() };
    // SAFETY: operands of the expression.
    unsafe {
        match kinds {
            [Kind::Element, _] | [_, Kind::Element] | [Kind::Range { .. }, _] => {
                vec![[extent(kinds[0], left.0, 0), extent(kinds[1], right.0, 0)]]
            }
            [first, second] => {
                let pair = |axis| [extent(first, left.0, axis), extent(second, right.0, axis)];
                vec![pair(0), pair(1)]
            }
        }
    }
}

/// The parameters that an expression reads, counted from 0.
pub(super) fn parameters(place: Place<'_>) -> BTreeSet<usize> {
    let own = match place.node() {
        Node::Param(param) => usize::try_from(param.paramid - 1).ok(),
        _ => None,
    };
    own.into_iter().chain(place.children().into_iter().flat_map(parameters)).collect()
}

/// The kinds of both operands of an operator that compares places.
fn kinds(operator: &str, left: Oid, right: Oid) -> Option<[Kind; 2]> {
    let (range, other) = (range(left), range(right));
    let of_ranges = matches!(operator, "&&" | "@>" | "<@" | "-|-");
    match (range, other) {
        (Some((left, a)), Some((right, b))) => (of_ranges && a == b).then_some([left, right]),
        (Some((range, subtype)), None) => {
            (operator == "@>" && right == subtype).then_some([range, Kind::Element])
        }
        (None, Some((range, subtype))) => {
            (operator == "<@" && left == subtype).then_some([Kind::Element, range])
        }
        (None, None) => {
            let of_shapes = matches!(operator, "&&" | "@>" | "<@" | "~=");
            of_shapes.then_some([shape(left)?, shape(right)?])
        }
    }
}

/// A range or multirange whose values the planner compares as the range does, and their type.
fn range(ty: Oid) -> Option<(Kind, Oid)> {
    use pg_sys::{
        DATEMULTIRANGEOID, DATERANGEOID, INT4MULTIRANGEOID, INT4RANGEOID, INT8MULTIRANGEOID,
        INT8RANGEOID, NUMMULTIRANGEOID, NUMRANGEOID, TSMULTIRANGEOID, TSRANGEOID,
        TSTZMULTIRANGEOID, TSTZRANGEOID,
    };
    let subtype = match ty {
        INT4RANGEOID | INT4MULTIRANGEOID => pg_sys::INT4OID,
        INT8RANGEOID | INT8MULTIRANGEOID => pg_sys::INT8OID,
        NUMRANGEOID | NUMMULTIRANGEOID => pg_sys::NUMERICOID,
        DATERANGEOID | DATEMULTIRANGEOID => pg_sys::DATEOID,
        TSRANGEOID | TSMULTIRANGEOID => pg_sys::TIMESTAMPOID,
        TSTZRANGEOID | TSTZMULTIRANGEOID => pg_sys::TIMESTAMPTZOID,
        _ => return None,
    };
    let is_single = matches!(
        ty,
        INT4RANGEOID | INT8RANGEOID | NUMRANGEOID | DATERANGEOID | TSRANGEOID | TSTZRANGEOID
    );
    let (lower, upper) = match is_single {
        true => (pg_sys::F_LOWER_ANYRANGE, pg_sys::F_UPPER_ANYRANGE),
        false => (pg_sys::F_LOWER_ANYMULTIRANGE, pg_sys::F_UPPER_ANYMULTIRANGE),
    };
    Some((Kind::Range { subtype, lower, upper }, subtype))
}

fn shape(ty: Oid) -> Option<Kind> {
    Some(match ty {
        pg_sys::POINTOID => Kind::Point,
        pg_sys::BOXOID => Kind::Box,
        pg_sys::POLYGONOID => Kind::Polygon,
        pg_sys::CIRCLEOID => Kind::Circle,
        _ => return None,
    })
}

/// # Safety
/// A complete expression of that kind, which becomes part of the result.
unsafe fn extent(kind: Kind, value: *mut pg_sys::Node, axis: i32) -> Extent {
    // SAFETY: per contract; new nodes of the types that the functions have.
    unsafe {
        match kind {
            Kind::Element => match Place::of(value).node() {
                Node::Param(param) if param.paramid > 0 => {
                    Extent::Argument(param.paramid as usize - 1)
                }
                _ => Extent::Value(value),
            },
            Kind::Range { subtype, lower, upper } => {
                let end = |function| call(function, value, subtype);
                Extent::Between(end(lower), end(upper))
            }
            Kind::Point => Extent::Value(coordinate(value, axis)),
            Kind::Box => of_box(value, axis),
            Kind::Polygon => of_box(call(pg_sys::F_BOX_POLYGON, value, pg_sys::BOXOID), axis),
            Kind::Circle => {
                let center = call(pg_sys::F_CENTER_CIRCLE, value, pg_sys::POINTOID);
                let radius = call(pg_sys::F_RADIUS, value, pg_sys::FLOAT8OID);
                let end = |function| {
                    let args = [coordinate(center, axis), radius];
                    let args = nodes::list(args.into_iter());
                    let result = (pg_sys::FLOAT8OID, Oid::INVALID);
                    nodes::call(Oid::from(function), args, result).cast()
                };
                Extent::Between(end(pg_sys::F_FLOAT8MI), end(pg_sys::F_FLOAT8PL))
            }
        }
    }
}

/// Between the lower left corner, which is the second one, and the upper right one.
///
/// # Safety
/// As for [`extent`].
unsafe fn of_box(value: *mut pg_sys::Node, axis: i32) -> Extent {
    // SAFETY: per contract.
    unsafe {
        let corner = |number| element(value, number, (pg_sys::BOXOID, pg_sys::POINTOID));
        Extent::Between(coordinate(corner(1), axis), coordinate(corner(0), axis))
    }
}

/// # Safety
/// As for [`extent`].
unsafe fn coordinate(point: *mut pg_sys::Node, axis: i32) -> *mut pg_sys::Node {
    // SAFETY: per contract.
    unsafe { element(point, axis, (pg_sys::POINTOID, pg_sys::FLOAT8OID)) }
}

/// # Safety
/// As for [`extent`].
unsafe fn call(function: u32, arg: *mut pg_sys::Node, result: Oid) -> *mut pg_sys::Node {
    // SAFETY: per contract.
    unsafe { nodes::call_of_one(Oid::from(function), arg, (result, Oid::INVALID)).cast() }
}

/// `value[number]`, of a type that is made of a fixed number of others.
///
/// # Safety
/// As for [`extent`].
unsafe fn element(
    value: *mut pg_sys::Node,
    number: i32,
    (container, ty): (Oid, Oid),
) -> *mut pg_sys::Node {
    // SAFETY: per contract; new nodes.
    unsafe {
        let number = pg_sys::Datum::from(number);
        let (int4, none) = (pg_sys::INT4OID, Oid::INVALID);
        let subscript = pg_sys::makeConst(int4, -1, none, INT4, number, false, true);
        let reference: *mut pg_sys::SubscriptingRef = nodes::new(NodeTag::T_SubscriptingRef);
        (*reference).refcontainertype = container;
        (*reference).refelemtype = ty;
        (*reference).refrestype = ty;
        (*reference).reftypmod = -1;
        (*reference).refupperindexpr = nodes::list([subscript].into_iter());
        (*reference).refexpr = value.cast();
        reference.cast()
    }
}
