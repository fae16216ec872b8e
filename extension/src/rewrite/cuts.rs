//! Where a tree is cut, and the cutting: an expression over parameters goes out of the tree, a call of a stand-in with what
//! it takes from the query comes in.
//!
//! Callbacks of PostgreSQL's mutators run here: no frame among them has destructors, and nothing in them raises an error
//! through a guard of pgrx.
//!
//! ```sql
//! f(t.a + 1, (SELECT max(b) FROM s), t.a)              -- to be cut out as a whole
//! f($1 + 1, $2, $1)                                    -- what goes out
//! eddy.host_call(17, t.a, (SELECT max(b) FROM s))      -- what comes in
//! ```

use crate::rewrite::nodes;
use crate::rewrite::present;
use crate::rewrite::returned::Rows;
use crate::rewrite::tree::{self, expression_tree_mutator, Mutator, Place};
use pgrx::pg_sys::{self, Oid};
use plan::clock::End;
use rules::view_settings::ViewSettings;
use std::collections::{HashMap, HashSet};
use std::ffi::c_void;

/// Where a tree is to be cut.
#[derive(Default)]
pub struct Cuts<'t> {
    /// Expressions to be evaluated by PostgreSQL, with all below them but what only a query can compute.
    pub expressions: HashSet<Place<'t>>,
    /// Aggregates to be evaluated by PostgreSQL, over arrays of their arguments.
    pub aggregates: HashSet<Place<'t>>,
    /// Calls of functions that return sets of single values, to be made by PostgreSQL.
    pub sets: HashSet<Place<'t>>,
    /// Calls of functions in FROM that return several columns, to be made by PostgreSQL.
    pub tables: HashSet<Place<'t>>,
    /// Conditions that the present time decides, and what each compares it with.
    pub temporal: HashMap<Place<'t>, (End, Place<'t>)>,
    /// Expressions whose order shows, and is that of a collation.
    pub collated: HashMap<Place<'t>, Oid>,
}

/// The functions of the extension that stand for what is cut out.
#[derive(Clone, Copy)]
pub struct StandIns {
    /// `eddy.host_call(bigint, VARIADIC "any")`
    pub host_call: Oid,
    /// `eddy.collated(anyelement, bigint)`
    pub collated: Oid,
    /// `eddy.slices(anyarray)`
    pub slices: Oid,
    /// `eddy.valid_from(timestamptz)`, `eddy.valid_until(timestamptz)`
    pub valid_from: Oid,
    pub valid_until: Oid,
}

/// On what terms PostgreSQL evaluates what is cut out.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// As whom.
    pub caller: Oid,
    /// Under the settings of the view.
    pub settings: &'a ViewSettings,
    /// Whether names of objects that are written are those of the tables that the query reads, and no others.
    pub names_tables: bool,
}

/// What stands behind a number.
pub(super) enum Found {
    Expression(*mut pg_sys::Node),
    /// An aggregate, whose values come as an array.
    Aggregate(*mut pg_sys::Aggref),
    /// A function, whose results go as an array.
    Rows(Rows),
    /// A condition over the present time.
    Bound(*mut pg_sys::Node, End),
}

/// A rewriting under way.
pub(super) struct Rewrite<'c> {
    /// The mutator that does it, for what is below an expression that is cut out.
    pub(super) replace: Mutator,
    pub(super) cuts: &'c Cuts<'c>,
    pub(super) stand_ins: StandIns,
    /// The expressions that the queries around are grouped by, innermost last.
    pub(super) keys: Vec<Vec<Place<'c>>>,
    pub(super) found: Vec<Found>,
    /// The numbers in the tree: which of `found` each is, and the constant.
    pub(super) numbers: Vec<(usize, *mut pg_sys::Const)>,
    /// The expression that is being cut out, and what it takes from the query.
    pub(super) root: *mut pg_sys::Node,
    pub(super) leaves: Vec<*mut pg_sys::Node>,
    /// What it does to its parameters.
    pub(super) treats: Treatment,
}

/// What is done to the parameters of the expression that is being cut out, not to those of what is in them.
pub(super) struct Treatment {
    /// If it reads the present time, which then is the first parameter, all that it takes besides: one value.
    pub value: *mut pg_sys::Node,
    /// The collation that they say they have, because it goes as text.
    pub collation: Oid,
}

impl Treatment {
    pub(super) const NONE: Treatment =
        Treatment { value: std::ptr::null_mut(), collation: Oid::INVALID };

    pub(super) fn reads_present(&self) -> bool {
        !self.value.is_null()
    }
}

impl Cuts<'_> {
    /// Whether there is nothing to cut.
    pub fn is_empty(&self) -> bool {
        let places = [&self.expressions, &self.aggregates, &self.sets, &self.tables];
        self.collated.is_empty()
            && self.temporal.is_empty()
            && places.iter().all(|places| places.is_empty())
    }
}

impl Rewrite<'_> {
    pub(super) fn is_table(&self, place: Place<'_>) -> bool {
        self.cuts.tables.contains(&place)
    }

    /// The index of something found.
    pub(super) fn add(&mut self, found: Found) -> usize {
        self.found.push(found);
        self.found.len() - 1
    }
}

/// The call that stands for an expression.
///
/// # Safety
/// An expression of the tree that is being rewritten; `rewrite` is valid, and nobody else holds a reference to it.
pub(super) unsafe fn call(node: *mut pg_sys::Node, rewrite: *mut Rewrite<'_>) -> *mut pg_sys::Node {
    // SAFETY: nodes of one tree.
    unsafe {
        let (expression, args) = cut_out(node, rewrite);
        let known = (*rewrite).found.iter().position(|found| match found {
            Found::Expression(other) => pg_sys::equal((*other).cast(), expression.cast()),
            _ => false,
        });
        let index = match known {
            Some(index) => index,
            None => (*rewrite).add(Found::Expression(expression)),
        };
        let result = (pg_sys::exprType(node), pg_sys::exprCollation(node));
        stand_in_call(index, args, result, rewrite)
    }
}

/// An expression over parameters in place of what it takes from the query, and that as it is to be passed.
///
/// # Safety
/// An expression of the tree that is being rewritten; `rewrite` is valid, and nobody else holds a reference to it.
pub(super) unsafe fn cut_out(
    node: *mut pg_sys::Node,
    rewrite: *mut Rewrite<'_>,
) -> (*mut pg_sys::Node, *mut pg_sys::List) {
    // SAFETY: nodes of one tree; new nodes live as long as the copy.
    unsafe {
        // A leaf may hold calls of its own.
        let outer = std::mem::replace(&mut (*rewrite).root, node);
        let first = (*rewrite).leaves.len();
        let mut walk = Leaves { rewrite, first };
        let expression = parameters(node, (&raw mut walk).cast());
        (*rewrite).root = outer;
        (*rewrite).treats = Treatment::NONE;
        let count = (*rewrite).leaves.len() - first;
        let mut args = std::ptr::null_mut();
        for leaf in 0..count {
            let leaf = (&(*rewrite).leaves)[first + leaf];
            args = pg_sys::lappend(args, ((*rewrite).replace)(leaf, rewrite.cast()).cast());
        }
        (*rewrite).leaves.truncate(first);
        (expression, args)
    }
}

/// A walk over an expression whose leaves begin at a place in the list.
struct Leaves<'c> {
    rewrite: *mut Rewrite<'c>,
    first: usize,
}

/// # Safety
/// For PostgreSQL's mutator to call; `arg` is a [`Leaves`].
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn parameters(
    node: *mut pg_sys::Node,
    arg: *mut c_void,
) -> *mut pg_sys::Node {
    // SAFETY: `arg` is a `Leaves`.
    unsafe {
        if node.is_null() {
            return node;
        }
        let walk = arg.cast::<Leaves<'_>>();
        let rewrite = (*walk).rewrite;
        let treats = &(*rewrite).treats;
        if treats.reads_present() && present::is_present(Place::of(node)) {
            return present::over_parameter(node);
        }
        let is_whole = node == treats.value;
        if !is_whole && (node == (*rewrite).root || !is_leaf(node, rewrite)) {
            return expression_tree_mutator(node, parameters, arg);
        }
        let own = &(&(*rewrite).leaves)[(*walk).first..];
        let known = own.iter().position(|leaf| pg_sys::equal((*leaf).cast(), node.cast()));
        let index = known.unwrap_or(own.len());
        if known.is_none() {
            (*rewrite).leaves.push(node);
        }
        let ty = pg_sys::exprType(node);
        let number = index + 1 + usize::from((*rewrite).treats.reads_present());
        let (typmod, collation) = (pg_sys::exprTypmod(node), pg_sys::exprCollation(node));
        let base = pg_sys::getBaseType(ty);
        let mut param: *mut pg_sys::Node = nodes::parameter(number, base, typmod, collation).cast();
        if base != ty {
            // A value of a domain comes as one of its base type.
            let form = pg_sys::CoercionForm::COERCE_IMPLICIT_CAST;
            param = pg_sys::makeRelabelType(param.cast(), ty, typmod, collation, form).cast();
        }
        if collation != Oid::INVALID && collation == (*rewrite).treats.collation {
            param = nodes::collated(param, collation);
        }
        param
    }
}

/// What only the query can compute, and what it is grouped by.
///
/// # Safety
/// An expression of the tree that is being rewritten; `rewrite` is valid, and nobody else holds a reference to it.
unsafe fn is_leaf(node: *mut pg_sys::Node, rewrite: *mut Rewrite<'_>) -> bool {
    // SAFETY: per contract; the keys are of the same tree.
    let (place, keys) = unsafe { (Place::of(node), (*rewrite).keys.last()) };
    tree::is_leaf(place.node()) || keys.is_some_and(|keys| keys.iter().any(|k| k.equals(place)))
}

/// `eddy.host_call(number, args)` in place of an expression.
///
/// # Safety
/// Arguments of the tree that is being rewritten; `rewrite` is valid, and nobody else holds a reference to it.
pub(super) unsafe fn stand_in_call(
    index: usize,
    args: *mut pg_sys::List,
    result: (Oid, Oid),
    rewrite: *mut Rewrite<'_>,
) -> *mut pg_sys::Node {
    // SAFETY: new nodes.
    unsafe {
        // Known once all is cut out.
        let number = nodes::bigint(0);
        (*rewrite).numbers.push((index, number));
        let args = pg_sys::lcons(number.cast(), args);
        nodes::call((*rewrite).stand_ins.host_call, args, result).cast()
    }
}
