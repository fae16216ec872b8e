//! Rewriting of analysed queries: what the planner cannot compute becomes calls of marker functions, and the
//! expressions behind them are kept for PostgreSQL's own executor.
//!
//! Callbacks of PostgreSQL's mutators run here: no frame among them has destructors, and nothing in them raises an error
//! through a guard of pgrx.

use crate::pg::catalog;
use crate::pg::code::{self, Kind};
use crate::pg::lists;
use crate::rewrite::canonical;
use crate::rewrite::host_aggregates::{self, replace_aggregate, replace_window_aggregate};
use crate::rewrite::host_queries;
use crate::rewrite::host_sets::{replace_set, replace_tables, Rows};
use crate::rewrite::nodes;
use crate::rewrite::present::{self, End};
use crate::rewrite::tree::{self, expression_tree_mutator, query_tree_mutator, Node, Place, Tree};
use pgrx::pg_sys::{self, NodeTag, Oid};
use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Where a tree is to be cut.
#[derive(Default)]
pub struct Cuts {
    /// Expressions to be evaluated by PostgreSQL, with all below them but what only a query can compute.
    pub expressions: HashSet<Place>,
    /// Aggregates to be evaluated by PostgreSQL, over arrays of their arguments.
    pub aggregates: HashSet<Place>,
    /// Calls of functions that return sets of single values, to be made by PostgreSQL.
    pub sets: HashSet<Place>,
    /// Calls of functions in FROM that return several columns, to be made by PostgreSQL.
    pub tables: HashSet<Place>,
    /// Conditions that the present time decides, and what each compares it with.
    pub temporal: HashMap<Place, (End, Place)>,
    /// Expressions whose order shows, and is that of a collation.
    pub collated: HashMap<Place, Oid>,
}

/// What was cut out.
pub struct Cut {
    /// Its number in the rewritten tree.
    pub number: u64,
    /// For people: an expression or query over `$1`, `$2` …
    pub text: String,
    /// For [`crate::pg::evaluate`].
    pub code: String,
    /// Whether no function is called but PostgreSQL's own.
    pub is_builtin: bool,
    /// Type, type modifier and collation of the value.
    pub ty: Oid,
    pub typmod: i32,
    pub collation: Oid,
}

/// The functions of the extension that stand for what is cut out.
#[derive(Clone, Copy)]
pub struct Markers {
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

pub(super) struct Rewrite<'c> {
    cuts: &'c Cuts,
    pub(super) markers: Markers,
    /// The expressions that the queries around are grouped by, innermost last.
    keys: Vec<Vec<Place>>,
    found: Vec<Found>,
    /// The numbers in the tree: which of `found` each is, and the constant.
    numbers: Vec<(usize, *mut pg_sys::Const)>,
    /// The expression that is being cut out, and what it takes from the query.
    root: *mut pg_sys::Node,
    leaves: Vec<*mut pg_sys::Node>,
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

    fn reads_present(&self) -> bool {
        !self.value.is_null()
    }
}

impl Cuts {
    /// Whether there is nothing to cut.
    pub fn is_empty(&self) -> bool {
        let places = [&self.expressions, &self.aggregates, &self.sets, &self.tables];
        self.collated.is_empty()
            && self.temporal.is_empty()
            && places.iter().all(|places| places.is_empty())
    }
}

impl Rewrite<'_> {
    pub(super) fn is_table(&self, place: Place) -> bool {
        self.cuts.tables.contains(&place)
    }

    /// The index of something found.
    pub(super) fn add(&mut self, found: Found) -> usize {
        self.found.push(found);
        self.found.len() - 1
    }
}

impl Tree {
    /// A copy of the tree with calls of markers, and what they stand for, to be evaluated as `caller`.
    pub fn with_host_calls(self, cuts: &Cuts, markers: Markers, caller: Oid) -> (Tree, Vec<Cut>) {
        let mut rewrite = Rewrite {
            cuts,
            markers,
            keys: Vec::new(),
            found: Vec::new(),
            numbers: Vec::new(),
            root: std::ptr::null_mut(),
            leaves: Vec::new(),
            treats: Treatment::NONE,
        };
        let arg: *mut c_void = (&raw mut rewrite).cast();
        // SAFETY: the mutator copies what it walks over; constants it made are of the copy.
        unsafe {
            let tree = pg_sys::ffi::pg_guard_ffi_boundary(|| replace(self.as_node(), arg));
            let found: Vec<Cut> = rewrite.found.iter().map(|f| describe(f, caller)).collect();
            for (index, constant) in rewrite.numbers {
                (*constant).constvalue = pg_sys::Datum::from(found[index].number as usize);
            }
            (Tree::from_node(tree), found)
        }
    }
}

/// The text, the code and the number of what was found, to be evaluated as `caller`.
unsafe fn describe(found: &Found, caller: Oid) -> Cut {
    // SAFETY: nodes of our own, complete.
    unsafe {
        let (node, code, text) = match found {
            Found::Expression(node) => {
                let code = catalog::owned(pg_sys::nodeToString((*node).cast()));
                (*node, code::write(Kind::Expression, &code), deparse(*node))
            }
            Found::Aggregate(aggregate) => {
                let query = host_queries::of_aggregate(&**aggregate);
                let code = catalog::owned(pg_sys::nodeToString(query.cast()));
                let text = host_aggregates::text(&**aggregate);
                ((*aggregate).cast(), code::write(Kind::Query, &code), text)
            }
            Found::Bound(node, end) => {
                let kind = match end {
                    End::From => Kind::From,
                    End::Until => Kind::Until,
                };
                let code = catalog::owned(pg_sys::nodeToString((*node).cast()));
                let (code, text) = (code::write(kind, &code), deparse(*node));
                let (ty, collation) = (pg_sys::TIMESTAMPTZOID, Oid::INVALID);
                let number = number_of(&code, *node, caller);
                let is_builtin = is_builtin(Place::of(*node));
                return Cut { number, text, code, is_builtin, ty, typmod: -1, collation };
            }
            Found::Rows(rows) => {
                let text =
                    canonical::with_canonical_settings(false, || rows.text(|call| deparse(call)));
                let code = catalog::owned(pg_sys::nodeToString(host_queries::of_rows(rows).cast()));
                let code = code::write(Kind::Query, &code);
                let (ty, collation) = (rows.array_type(), rows.collation());
                let call = rows.call();
                let number = number_of(&code, call, caller);
                let is_builtin = is_builtin(Place::of(call));
                return Cut { number, text, code, is_builtin, ty, typmod: -1, collation };
            }
        };
        Cut {
            number: number_of(&code, node, caller),
            text,
            code,
            is_builtin: is_builtin(Place::of(node)),
            ty: pg_sys::exprType(node),
            typmod: pg_sys::exprTypmod(node),
            collation: pg_sys::exprCollation(node),
        }
    }
}

/// Whether an expression calls no functions but PostgreSQL's own.
fn is_builtin(place: Place) -> bool {
    /// Unguarded: compares numbers.
    unsafe extern "C-unwind" fn is_foreign(function: Oid, _: *mut c_void) -> bool {
        !catalog::is_builtin(function)
    }
    // Types of users bring functions of users: checks of domains, casts to json.
    let is_of_users = |ty: Oid| ty == pg_sys::RECORDOID || !catalog::is_builtin(ty);
    let takes_users = |args| tree::places(args).iter().any(|arg| is_of_users(arg.expr_type()));
    let may_check = match place.node() {
        Node::FuncExpr(call) => is_of_users(call.funcresulttype) || takes_users(call.args),
        Node::CoerceViaIO(cast) => {
            let arg = tree::place(cast.arg).map(Place::expr_type);
            is_of_users(cast.resulttype) || arg.is_some_and(is_of_users)
        }
        node => matches!(node, Node::Expr(NodeTag::T_CoerceToDomain)),
    };
    // SAFETY: a complete node; the callback compares numbers.
    let is_foreign = may_check
        || unsafe {
            pg_sys::check_functions_in_node(place.0, Some(is_foreign), std::ptr::null_mut())
        };
    !is_foreign && place.children().into_iter().all(is_builtin)
}

/// A positive bigint, the same for the same code over values of the same types, as the same user: a view may read
/// another one's, and what either computes runs as its own owner.
unsafe fn number_of(code: &str, node: *mut pg_sys::Node, caller: Oid) -> u64 {
    let mut hasher = DefaultHasher::new();
    code.hash(&mut hasher);
    caller.to_u32().hash(&mut hasher);
    // The text of a query tells no types.
    // SAFETY: a node of our own.
    unsafe { catalog::owned(pg_sys::nodeToString(node.cast())) }.hash(&mut hasher);
    hasher.finish() >> 1
}

/// For people.
unsafe fn deparse(node: *mut pg_sys::Node) -> String {
    // SAFETY: an expression without variables.
    unsafe {
        if reads_unknown_field(Place::of(node)) {
            return "field of a row".to_owned();
        }
        catalog::owned(pg_sys::deparse_expression(node, std::ptr::null_mut(), false, false))
    }
}

/// Whether an expression has a field of an anonymous row, of which only the row knows the name.
fn reads_unknown_field(place: Place) -> bool {
    let below = place.children();
    let is_field = matches!(place.node(), Node::Expr(NodeTag::T_FieldSelect));
    is_field && below.iter().any(|row| row.expr_type() == pg_sys::RECORDOID)
        || below.into_iter().any(reads_unknown_field)
}

#[pgrx::pg_guard]
pub(super) unsafe extern "C-unwind" fn replace(
    node: *mut pg_sys::Node,
    arg: *mut c_void,
) -> *mut pg_sys::Node {
    // SAFETY: `arg` is the `Rewrite`; tags decide types; null is a missing part of a node.
    unsafe {
        if node.is_null() {
            return node;
        }
        let rewrite = arg.cast::<Rewrite<'_>>();
        if (*node).type_ == NodeTag::T_Query {
            let old = node.cast::<pg_sys::Query>();
            (*rewrite).keys.push(tree::grouping_keys(&*old));
            let query = query_tree_mutator(old, replace, arg, 0);
            let entries = lists::pointers::<pg_sys::RangeTblEntry>((*old).rtable);
            let copies = lists::pointers::<pg_sys::RangeTblEntry>((*query).rtable);
            for (entry, copy) in entries.into_iter().zip(copies) {
                replace_tables(entry, copy, rewrite);
            }
            (*rewrite).keys.pop();
            return query.cast();
        }
        let place = Place::of(node);
        let new = if (*rewrite).cuts.aggregates.contains(&place) {
            match (*node).type_ {
                NodeTag::T_WindowFunc => replace_window_aggregate(node.cast(), rewrite),
                _ => replace_aggregate(node.cast(), rewrite),
            }
        } else if (*rewrite).cuts.expressions.contains(&place) {
            call(node, rewrite)
        } else if let Some((end, value)) = (*rewrite).cuts.temporal.get(&place) {
            present::bound(node, (*end, value.0), rewrite)
        } else if (*rewrite).cuts.sets.contains(&place) {
            replace_set(node, rewrite)
        } else if (*rewrite).is_table(place) {
            // Replaced with the item of FROM.
            node
        } else {
            let copy = expression_tree_mutator(node, replace, arg);
            if (*node).type_ == NodeTag::T_JoinExpr {
                spell_out(&*node.cast(), copy.cast());
            }
            copy
        };
        match (*rewrite).cuts.collated.get(&place) {
            Some(collation) => collate(new, *collation, (*rewrite).markers.collated),
            None => new,
        }
    }
}

/// Lets the text of a join say what it compares: USING would compare columns as the planner does.
unsafe fn spell_out(old: &pg_sys::JoinExpr, copy: *mut pg_sys::JoinExpr) {
    // SAFETY: nodes of one tree, of which the second is our own copy.
    unsafe {
        if !old.usingClause.is_null() && !pg_sys::equal(old.quals.cast(), (*copy).quals.cast()) {
            (*copy).usingClause = std::ptr::null_mut();
            (*copy).isNatural = false;
        }
    }
}

/// The call that stands for an expression.
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
        marker_call(index, args, result, rewrite)
    }
}

/// An expression over parameters in place of what it takes from the query, and that as it is to be passed.
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
            args = pg_sys::lappend(args, replace(leaf, rewrite.cast()).cast());
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
unsafe fn is_leaf(node: *mut pg_sys::Node, rewrite: *mut Rewrite<'_>) -> bool {
    let place = Place::of(node);
    // SAFETY: the keys are of the same tree.
    let keys = unsafe { (*rewrite).keys.last() };
    tree::is_leaf(place.node()) || keys.is_some_and(|keys| keys.iter().any(|k| k.equals(place)))
}

/// `eddy.host_call(number, args)` in place of an expression.
pub(super) unsafe fn marker_call(
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
        nodes::call((*rewrite).markers.host_call, args, result).cast()
    }
}

/// `eddy.collated(value, collation)`
unsafe fn collate(value: *mut pg_sys::Node, collation: Oid, marker: Oid) -> *mut pg_sys::Node {
    // SAFETY: new nodes.
    unsafe {
        let number = nodes::bigint(i64::from(collation.to_u32()));
        let args = pg_sys::lcons(value.cast(), pg_sys::lcons(number.cast(), std::ptr::null_mut()));
        nodes::call(marker, args, (pg_sys::exprType(value), collation)).cast()
    }
}
