//! Rewriting of analysed queries: what the planner cannot compute becomes calls of stand-ins, and the
//! expressions behind them are kept for PostgreSQL's own executor.
//!
//! Callbacks of PostgreSQL's mutators run here: no frame among them has destructors, and nothing in them raises an error
//! through a guard of pgrx.
//!
//! ```sql
//! SELECT f(t.a + 1), t.b FROM t
//! SELECT eddy.host_call(17, t.a), t.b FROM t                       -- 17: f($1 + 1)
//!
//! SELECT … WHERE t.ends > now() - interval '1 day'
//! SELECT … WHERE eddy.valid_until(eddy.host_call(18, t.ends))      -- 18: the instant at which $2 > $1 - … changes
//!
//! SELECT … ORDER BY t.name LIMIT 3
//! SELECT … ORDER BY eddy.collated(t.name, 100) LIMIT 3             -- 100: the OID of the collation
//! ```

use crate::pg::catalog;
use crate::pg::code::{self, Frame, Kind};
use crate::pg::lists;
use crate::pg::strings::owned;
use crate::rewrite::builtin::is_builtin;
use crate::rewrite::canonical;
use crate::rewrite::conversions;
use crate::rewrite::cuts::{
    call, cut_out, stand_in_call, Cuts, Found, Rewrite, StandIns, Terms, Treatment,
};
use crate::rewrite::extents::{self, Extent};
use crate::rewrite::host_aggregates::{self, replace_aggregate, replace_window_aggregate};
use crate::rewrite::host_queries;
use crate::rewrite::host_sets::{replace_set, replace_tables};
use crate::rewrite::nodes;
use crate::rewrite::tree::{self, expression_tree_mutator, query_tree_mutator, Node, Place, Tree};
use pgrx::pg_sys::{self, NodeTag, Oid};
use plan::clock::End;
use std::ffi::c_void;
use std::hash::{DefaultHasher, Hash, Hasher};

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
    /// Of a condition of two operands that have places: where these are, by dimension.
    pub extents: Vec<[CutExtent; 2]>,
}

/// Where an operand is in a dimension.
pub enum CutExtent {
    /// At an argument, counted from 0.
    Argument(usize),
    Value(CutPart),
    Between(CutPart, CutPart),
}

/// An expression over arguments of what was cut out.
pub struct CutPart {
    pub cut: Cut,
    /// Those that it reads, counted from 0.
    pub args: Vec<usize>,
}

impl Tree {
    /// A copy of the tree with calls of stand-ins, and what they stand for.
    pub fn with_host_calls(
        &self,
        cuts: &Cuts<'_>,
        stand_ins: StandIns,
        terms: &Terms<'_>,
    ) -> (Tree, Vec<Cut>) {
        let mut rewrite = Rewrite {
            replace,
            cuts,
            stand_ins,
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
            let found: Vec<Cut> = rewrite.found.iter().map(|f| describe(f, terms)).collect();
            for (index, constant) in rewrite.numbers {
                (*constant).constvalue = pg_sys::Datum::from(found[index].number as usize);
            }
            (Tree::from_node(tree), found)
        }
    }
}

/// The text, the code and the number of what was found.
///
/// # Safety
/// What was found must be complete: all below it has been replaced.
unsafe fn describe(found: &Found, terms: &Terms<'_>) -> Cut {
    // SAFETY: nodes of our own, complete.
    unsafe {
        let (kind, node, tree, text): (_, _, *mut pg_sys::Node, _) = match found {
            Found::Expression(node) => (Kind::Expression, *node, *node, deparse(*node)),
            Found::Aggregate(aggregate) => {
                let query = host_queries::of_aggregate(&**aggregate);
                let text = host_aggregates::text(&**aggregate);
                (Kind::Query, (*aggregate).cast(), query.cast(), text)
            }
            Found::Bound(node, End::From) => (Kind::From, *node, *node, deparse(*node)),
            Found::Bound(node, End::Until) => (Kind::Until, *node, *node, deparse(*node)),
            Found::Rows(rows) => {
                let text =
                    canonical::with_canonical_settings(false, || rows.text(|call| deparse(call)));
                (Kind::Query, rows.call(), host_queries::of_rows(rows).cast(), text)
            }
        };
        let (ty, typmod, collation) = match found {
            Found::Bound(..) => (pg_sys::TIMESTAMPTZOID, -1, Oid::INVALID),
            Found::Rows(rows) => (rows.array_type(), -1, rows.collation()),
            _ => (pg_sys::exprType(node), pg_sys::exprTypmod(node), pg_sys::exprCollation(node)),
        };
        let columns = match found {
            Found::Rows(rows) => rows.types(),
            _ => Vec::new(),
        };
        let place = Place::of(node);
        let mut types = Vec::new();
        conversions::collect_types(place, &mut types);
        columns.iter().for_each(|ty| conversions::add_type(*ty, &mut types));
        let names = conversions::names_written(place);
        let frame = Frame {
            kind,
            settings: terms.settings.clone(),
            times: conversions::read_times(place, &columns),
            searches: conversions::searches(place),
            types,
            names_tables: terms.names_tables && !names.is_empty(),
            names,
        };
        let code = code::write(&frame, &owned(pg_sys::nodeToString(tree.cast())));
        Cut {
            number: number_of(&code, node, terms.caller),
            text,
            code,
            is_builtin: is_builtin(place) && columns.iter().all(|ty| catalog::is_builtin(*ty)),
            ty,
            typmod,
            collation,
            extents: match found {
                Found::Expression(node) => extents_of(*node, terms),
                _ => Vec::new(),
            },
        }
    }
}

/// # Safety
/// A complete expression over parameters.
unsafe fn extents_of(node: *mut pg_sys::Node, terms: &Terms<'_>) -> Vec<[CutExtent; 2]> {
    // SAFETY: per contract, and so are the parts.
    unsafe {
        let part = |node| CutPart {
            cut: describe(&Found::Expression(node), terms),
            args: extents::parameters(Place::of(node)).into_iter().collect(),
        };
        let extent = |extent| match extent {
            Extent::Argument(position) => CutExtent::Argument(position),
            Extent::Value(node) => CutExtent::Value(part(node)),
            Extent::Between(from, to) => CutExtent::Between(part(from), part(to)),
        };
        extents::of_condition(node).into_iter().map(|pair| pair.map(extent)).collect()
    }
}

/// A positive bigint, the same for the same code over values of the same types, as the same user: a view may read
/// another one's, and what either computes runs as its own owner under its own settings.
///
/// # Safety
/// A complete node.
unsafe fn number_of(code: &str, node: *mut pg_sys::Node, caller: Oid) -> u64 {
    let mut hasher = DefaultHasher::new();
    code.hash(&mut hasher);
    caller.to_u32().hash(&mut hasher);
    // The text of a query tells no types.
    // SAFETY: a node of our own.
    unsafe { owned(pg_sys::nodeToString(node.cast())) }.hash(&mut hasher);
    hasher.finish() >> 1
}

/// For people.
///
/// # Safety
/// An expression without variables.
unsafe fn deparse(node: *mut pg_sys::Node) -> String {
    // SAFETY: an expression without variables.
    unsafe {
        if reads_unknown_field(Place::of(node)) {
            return "field of a row".to_owned();
        }
        owned(pg_sys::deparse_expression(node, std::ptr::null_mut(), false, false))
    }
}

/// Whether an expression has a field of an anonymous row, of which only the row knows the name.
fn reads_unknown_field(place: Place<'_>) -> bool {
    let below = place.children();
    let is_field = matches!(place.node(), Node::Expr(NodeTag::T_FieldSelect));
    is_field && below.iter().any(|row| row.expr_type() == pg_sys::RECORDOID)
        || below.into_iter().any(reads_unknown_field)
}

/// # Safety
/// For PostgreSQL's mutators to call; `arg` is the [`Rewrite`].
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
            bound(node, (*end, value.0), rewrite)
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
            Some(collation) => collate(new, *collation, (*rewrite).stand_ins.collated),
            None => new,
        }
    }
}

/// Lets the text of a join say what it compares: USING would compare columns as the planner does.
///
/// # Safety
/// A join, and its copy that nobody else looks at.
unsafe fn spell_out(old: &pg_sys::JoinExpr, copy: *mut pg_sys::JoinExpr) {
    // SAFETY: nodes of one tree, of which the second is our own copy.
    unsafe {
        if !old.usingClause.is_null() && !pg_sys::equal(old.quals.cast(), (*copy).quals.cast()) {
            (*copy).usingClause = std::ptr::null_mut();
            (*copy).isNatural = false;
        }
    }
}

/// `eddy.collated(value, collation)`
///
/// # Safety
/// An expression of the new tree.
unsafe fn collate(value: *mut pg_sys::Node, collation: Oid, stand_in: Oid) -> *mut pg_sys::Node {
    // SAFETY: new nodes.
    unsafe {
        let number = nodes::bigint(i64::from(collation.to_u32()));
        let args = pg_sys::lcons(value.cast(), pg_sys::lcons(number.cast(), std::ptr::null_mut()));
        nodes::call(stand_in, args, (pg_sys::exprType(value), collation)).cast()
    }
}

/// `eddy.valid_until(…)` in place of a condition that the present time decides, by comparison with a value.
///
/// # Safety
/// A condition and a value in it, of the tree that is being rewritten; `rewrite` is valid.
unsafe fn bound(
    condition: *mut pg_sys::Node,
    (end, value): (End, *mut pg_sys::Node),
    rewrite: *mut Rewrite<'_>,
) -> *mut pg_sys::Node {
    // SAFETY: nodes of one tree; new nodes.
    unsafe {
        (*rewrite).treats = Treatment { value, ..Treatment::NONE };
        let (condition, args) = cut_out(condition, rewrite);
        let index = (*rewrite).add(Found::Bound(condition, end));
        let result = (pg_sys::TIMESTAMPTZOID, Oid::INVALID);
        let instant = stand_in_call(index, args, result, rewrite);
        let StandIns { valid_from, valid_until, .. } = (*rewrite).stand_ins;
        let stand_in = if end == End::From { valid_from } else { valid_until };
        nodes::call_of_one(stand_in, instant, (pg_sys::BOOLOID, Oid::INVALID)).cast()
    }
}
