//! The same of two extensions' types: the cubes of cube, the geometries of PostGIS.
//!
//! ```sql
//! $1 && $2               -- of cubes: between cube_ll_coord($1, 1) and cube_ur_coord($1, 1), …
//! st_dwithin($1, $2, 5)  -- between st_xmin(box3d($1)) and st_xmax(box3d($1)), between st_xmin(box3d($2)) - 5 and …
//! ```
//!
//! PostGIS compares boxes whose ends it has rounded outward to float4, so ends are somewhat farther out here.

use super::Extent;
use crate::pg::{catalog, types};
use crate::rewrite::nodes;
use crate::rewrite::tree::Place;
use pgrx::pg_sys::{self, NodeTag, Oid};
use std::ffi::CStr;

const POSTGIS: &str = "postgis";

/// Functions of PostGIS that are true only of geometries whose boxes have places in common.
const PREDICATES: [&str; 10] = [
    "st_contains",
    "st_containsproperly",
    "st_coveredby",
    "st_covers",
    "st_crosses",
    "st_dwithin",
    "st_intersects",
    "st_overlaps",
    "st_touches",
    "st_within",
];

/// How far out ends are, as a part of a coordinate and for those that are next to 0.
const ROUNDED: [f64; 2] = [5e-7, 1e-36];

/// No end of PostGIS's boxes is farther out.
const OUTERMOST: f64 = f32::MAX as f64;

/// The functions that tell where values of a type are.
enum Shape {
    Cube(Cube),
    Geometry(Geometry),
}

struct Cube {
    lower: Oid,
    upper: Oid,
    dimensions: Oid,
}

struct Geometry {
    to_box: Oid,
    /// The type of what that makes.
    box_type: Oid,
    /// By axis.
    lower: [Oid; 2],
    upper: [Oid; 2],
}

/// As of [`super::of_condition`], of an operator.
///
/// # Safety
/// Complete expressions over parameters, which become parts of the results.
pub(super) unsafe fn of_operator(operator: Oid, [left, right]: [Place<'_>; 2]) -> Vec<[Extent; 2]> {
    let ty = left.expr_type();
    // Anybody may make an operator of that name and for these types.
    let is_known = || catalog::extension_of_operator(operator) == catalog::extension_of_type(ty);
    if right.expr_type() != ty || !is_known() {
        return Vec::new();
    }
    let name = catalog::operator(operator).0;
    // SAFETY: per contract.
    unsafe {
        match (Shape::of(ty), name.as_str()) {
            (Some(Shape::Cube(cube)), "&&" | "@>" | "<@") => {
                let pair = |axis| [left, right].map(|value| cube.extent(value, axis));
                vec![pair(1), pair(2)]
            }
            (Some(Shape::Geometry(geometry)), "&&" | "~" | "@") => {
                geometry.extents([left, right], None)
            }
            _ => Vec::new(),
        }
    }
}

/// As of [`super::of_condition`], of a function.
///
/// # Safety
/// As for [`of_operator`].
pub(super) unsafe fn of_function(function: Oid, arguments: &[Place<'_>]) -> Vec<[Extent; 2]> {
    let (left, right, reach) = match arguments {
        [left, right] => (*left, *right, None),
        [left, right, reach] => (*left, *right, Some(*reach)),
        _ => return Vec::new(),
    };
    let ty = left.expr_type();
    if right.expr_type() != ty || reach.is_some_and(|reach| reach.expr_type() != pg_sys::FLOAT8OID)
    {
        return Vec::new();
    }
    let Some(Shape::Geometry(geometry)) = Shape::of(ty) else { return Vec::new() };
    let name = catalog::function_name(function).0;
    let is_known = catalog::extension_of_function(function).as_deref() == Some(POSTGIS)
        && PREDICATES.contains(&name.as_str())
        && reach.is_some() == (name == "st_dwithin");
    if !is_known {
        return Vec::new();
    }
    // SAFETY: per contract.
    unsafe { geometry.extents([left, right], reach) }
}

impl Shape {
    fn of(ty: Oid) -> Option<Shape> {
        if catalog::is_builtin(ty) {
            return None;
        }
        let extension = catalog::extension_of_type(ty)?;
        let function = |name: &CStr, arguments: &[Oid]| {
            catalog::function_beside(ty, name, arguments).filter(|function| {
                catalog::extension_of_function(*function).as_ref() == Some(&extension)
            })
        };
        let name = catalog::type_name(ty)?;
        match (extension.as_str(), name.as_str()) {
            ("cube", "cube") => Some(Shape::Cube(Cube {
                lower: function(c"cube_ll_coord", &[ty, pg_sys::INT4OID])?,
                upper: function(c"cube_ur_coord", &[ty, pg_sys::INT4OID])?,
                dimensions: function(c"cube_dim", &[ty])?,
            })),
            (POSTGIS, "geometry") => {
                let to_box = function(c"box3d", &[ty])?;
                let box_type = catalog::result_type(to_box);
                let end = |name| function(name, &[box_type]);
                Some(Shape::Geometry(Geometry {
                    to_box,
                    box_type,
                    lower: [end(c"st_xmin")?, end(c"st_ymin")?],
                    upper: [end(c"st_xmax")?, end(c"st_ymax")?],
                }))
            }
            _ => None,
        }
    }
}

impl Cube {
    /// Without ends where a cube has no such dimension, and so is within others whatever these have there, and where it
    /// has NaN, and so overlaps all.
    ///
    /// # Safety
    /// As for [`of_operator`].
    unsafe fn extent(&self, value: Place<'_>, axis: i32) -> Extent {
        // SAFETY: per contract; new nodes.
        unsafe {
            let int4 = (pg_sys::INT4OID, Oid::INVALID);
            let dimensions = nodes::call_of_one(self.dimensions, value.0, int4);
            let args = [dimensions.cast(), nodes::integer(axis).cast::<pg_sys::Node>()];
            let args = nodes::list(args.into_iter());
            let bool = (pg_sys::BOOLOID, Oid::INVALID);
            let has_axis = nodes::call(Oid::from(pg_sys::F_INT4GE), args, bool);
            let end = |function| {
                let args = [value.0, nodes::integer(axis).cast()];
                let end = nodes::call(function, nodes::list(args.into_iter()), FLOAT8);
                let unless_nan: *mut pg_sys::NullIfExpr = nodes::new(NodeTag::T_NullIfExpr);
                (*unless_nan).opno = types::equality(pg_sys::FLOAT8OID);
                (*unless_nan).opfuncid = Oid::from(pg_sys::F_FLOAT8EQ);
                (*unless_nan).opresulttype = pg_sys::FLOAT8OID;
                (*unless_nan).args = nodes::list([end.cast(), number(f64::NAN)].into_iter());
                (*unless_nan).location = -1;
                nodes::result_if(has_axis.cast(), unless_nan.cast())
            };
            Extent::Between(end(self.lower), end(self.upper))
        }
    }
}

impl Geometry {
    /// Of two that are no farther apart than that. One of them is a point, if its type says so: then the ends of the other
    /// one are far enough out for both.
    ///
    /// # Safety
    /// As for [`of_operator`].
    unsafe fn extents(
        &self,
        [first, second]: [Place<'_>; 2],
        reach: Option<Place<'_>>,
    ) -> Vec<[Extent; 2]> {
        let is_column = reach.is_some_and(|reach| !super::parameters(reach).is_empty());
        // SAFETY: per contract.
        let at = |geometry, axis: usize| unsafe {
            match is_point(geometry) {
                true => Extent::Value(self.coordinate(geometry, self.lower[axis])),
                false => self.between(geometry, axis, None),
            }
        };
        // SAFETY: per contract.
        let around = |geometry, axis| unsafe { self.between(geometry, axis, reach) };
        let of_axis = |axis| match is_column {
            // Of either side: those are of use that are of one side only.
            true => vec![
                [at(first, axis), around(second, axis)],
                [around(first, axis), at(second, axis)],
            ],
            false if is_point(second) => vec![[around(first, axis), at(second, axis)]],
            false => vec![[at(first, axis), around(second, axis)]],
        };
        [0, 1].into_iter().flat_map(of_axis).collect()
    }

    /// # Safety
    /// As for [`of_operator`].
    unsafe fn between(&self, geometry: Place<'_>, axis: usize, reach: Option<Place<'_>>) -> Extent {
        // SAFETY: per contract; new nodes.
        unsafe {
            let reach = match reach {
                Some(reach) => limited(reach.0, 0.0),
                None => number(0.0),
            };
            let end = |function, outward: u32| {
                let at = self.coordinate(geometry, function);
                let size = float(pg_sys::F_FLOAT8PL, &[float(pg_sys::F_FLOAT8ABS, &[at]), reach]);
                let [part, least] = ROUNDED.map(number);
                let rounded =
                    float(pg_sys::F_FLOAT8PL, &[float(pg_sys::F_FLOAT8MUL, &[size, part]), least]);
                float(outward, &[float(outward, &[at, reach]), rounded])
            };
            Extent::Between(
                end(self.lower[axis], pg_sys::F_FLOAT8MI),
                end(self.upper[axis], pg_sys::F_FLOAT8PL),
            )
        }
    }

    /// # Safety
    /// As for [`of_operator`].
    unsafe fn coordinate(&self, geometry: Place<'_>, function: Oid) -> *mut pg_sys::Node {
        let result = (self.box_type, Oid::INVALID);
        // SAFETY: per contract.
        unsafe {
            let of_all = nodes::call_of_one(self.to_box, geometry.0, result);
            let end = nodes::call_of_one(function, of_all.cast(), FLOAT8);
            limited(end.cast(), -OUTERMOST)
        }
    }
}

/// Whether the type modifier says that geometries are points: bits 2 to 7 of it are their kind (`liblwgeom.h`), of
/// which that is the first.
fn is_point(geometry: Place<'_>) -> bool {
    let typmod = geometry.expr_typmod();
    typmod >= 0 && typmod >> 2 & 0x3f == 1
}

const FLOAT8: (Oid, Oid) = (pg_sys::FLOAT8OID, Oid::INVALID);

/// Between `least` and the outermost end.
///
/// # Safety
/// As for [`of_operator`].
unsafe fn limited(value: *mut pg_sys::Node, least: f64) -> *mut pg_sys::Node {
    let of = |op, value: *mut pg_sys::Node, limit| {
        // SAFETY: per contract; a new node.
        unsafe {
            let one: *mut pg_sys::MinMaxExpr = nodes::new(NodeTag::T_MinMaxExpr);
            (*one).minmaxtype = pg_sys::FLOAT8OID;
            (*one).op = op;
            (*one).args = nodes::list([value, number(limit)].into_iter());
            (*one).location = -1;
            one.cast()
        }
    };
    let op = pg_sys::MinMaxOp::IS_GREATEST;
    of(pg_sys::MinMaxOp::IS_LEAST, of(op, value, least), OUTERMOST)
}

/// # Safety
/// As for [`of_operator`].
unsafe fn float(function: u32, args: &[*mut pg_sys::Node]) -> *mut pg_sys::Node {
    // SAFETY: per contract.
    unsafe { nodes::call(Oid::from(function), nodes::list(args.iter().copied()), FLOAT8).cast() }
}

fn number(value: f64) -> *mut pg_sys::Node {
    nodes::double(value).cast()
}
