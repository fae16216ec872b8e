//! Analysed queries as canonical SQL: constants computed, casts explicit, no COLLATE, deparsed under fixed settings.
//!
//! ```sql
//! SELECT name || id FROM t WHERE day < date '1998-12-01' - interval '90 days' ORDER BY name COLLATE "C"
//! SELECT "t"."name" || "t"."id"::text FROM "public"."t" WHERE "t"."day" < '1998-09-02 00:00:00'::timestamp
//!     ORDER BY "t"."name"
//!
//! SELECT … FROM ONLY t JOIN s USING (id) AS j WHERE a IN (VALUES (1), (2))     -- t has no children
//! SELECT … FROM t JOIN s USING (id) WHERE a IN (SELECT … FROM (VALUES (1), (2)))
//!
//! SELECT … FROM v                     -- v is a view with security_barrier
//! SELECT … FROM (SELECT … OFFSET 0) v
//! ```

use crate::pg::catalog::{self, Volatility};
use crate::pg::guc;
use crate::pg::lists;
use crate::pg::strings::owned;
use crate::pg::types;
use crate::rewrite::builtin::is_builtin;
use crate::rewrite::nodes;
use crate::rewrite::tree::{
    converted_operand, expression_tree_mutator, expressions, query_tree_mutator, Node, Place, Tree,
};
use pgrx::pg_sys::{self, NodeTag, Oid};
use std::cell::RefCell;
use std::ffi::c_void;

impl Tree {
    /// A copy without COLLATE clauses: what collations mean has been checked, and the planner knows
    /// none.
    pub fn without_collate(self) -> Tree {
        let query: *mut pg_sys::Node = self.0.cast();
        // SAFETY: the mutator copies what it walks over.
        let copy = unsafe {
            pg_sys::ffi::pg_guard_ffi_boundary(|| drop_collate(query, std::ptr::null_mut()))
        };
        Tree(copy.cast())
    }

    /// A copy in which constants of types that the planner does not know are computed with as far as possible:
    /// `date '1998-12-01' - interval '90 days'` is a constant of a type it knows.
    pub fn folded(self) -> Tree {
        let query: *mut pg_sys::Node = self.0.cast();
        // SAFETY: the mutator copies what it walks over.
        let copy =
            unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| fold(query, std::ptr::null_mut())) };
        let tree = Tree(copy.cast());
        for query in tree.queries() {
            // SAFETY: a query of our own copy, with its windows.
            unsafe { compute_numbers(std::ptr::from_ref(query).cast_mut()) };
        }
        tree
    }

    /// Gives aggregates with DISTINCT and without ORDER BY, where `is_wanted`, the order in which PostgreSQL passes
    /// their values: their own. The tree must be a copy of our own.
    pub fn with_orders_of_distinct(self, is_wanted: &dyn Fn(&pg_sys::Aggref) -> bool) -> Tree {
        let order = |place: Place<'_>| {
            let Node::Aggref(aggregate) = place.node() else { return };
            let has_order = !aggregate.aggorder.is_null();
            if !aggregate.aggdistinct.is_null() && !has_order && is_wanted(aggregate) {
                // SAFETY: the tree is our own copy; a list that is not changed may have two owners.
                unsafe { (*place.0.cast::<pg_sys::Aggref>()).aggorder = aggregate.aggdistinct };
            }
        };
        self.each_expression(&order);
        self
    }

    /// Makes every cast of the tree, which must be a copy of our own, an explicit one; `||` of text and
    /// another type, which converts that operand, included.
    pub fn with_explicit_casts(self) -> Tree {
        // SAFETY: the tree is our own copy; the tag decides the type.
        let cast = |place: Place<'_>| unsafe { explicit_cast(place.0) };
        self.each_expression(&cast);
        self
    }

    /// Takes the names of joins (`(t JOIN s …) AS j`) and of merged columns (`USING (x) AS j`) away. A join's name hides those
    /// of its sides, to which rows of the join refer (and from 18 on all arguments of aggregates). The tree must be a copy of
    /// our own.
    pub fn without_names_of_joins(self) -> Tree {
        let joins = RefCell::new(Vec::new());
        self.each_expression(&|place: Place<'_>| {
            if let Node::JoinExpr(_) = place.node() {
                joins.borrow_mut().push(place.0.cast::<pg_sys::JoinExpr>());
            }
        });
        // SAFETY: the tree is our own copy, and nobody else looks at it.
        unsafe {
            for entry in self.entries() {
                if (*entry).rtekind == pg_sys::RTEKind::RTE_JOIN {
                    (*entry).alias = std::ptr::null_mut();
                    (*entry).join_using_alias = std::ptr::null_mut();
                }
            }
            for join in joins.into_inner() {
                (*join).alias = std::ptr::null_mut();
                (*join).join_using_alias = std::ptr::null_mut();
            }
        }
        self
    }

    /// Replaces what the planner's parser does not know by what means the same: ONLY of tables without children, VALUES as
    /// subqueries in expressions. The tree must be a copy of our own.
    pub fn with_known_syntax(self) -> Tree {
        let subqueries = RefCell::new(Vec::new());
        self.each_expression(&|place: Place<'_>| {
            if let Node::SubLink(link) = place.node() {
                subqueries.borrow_mut().push(link.subselect.cast());
            }
        });
        // SAFETY: as above.
        unsafe {
            for entry in self.entries() {
                (*entry).inh |= is_alone(&*entry);
            }
            subqueries.into_inner().into_iter().for_each(|query| select_values(query));
        }
        self
    }

    /// Marks views that are a security barrier with `OFFSET 0`, which is a fence for conditions in the planner, too. The
    /// tree must be a copy of our own.
    pub fn with_fences(self) -> Tree {
        // SAFETY: as above.
        unsafe {
            for entry in self.entries() {
                let view = (*entry).subquery;
                if (*entry).security_barrier && !view.is_null() && (*view).limitOffset.is_null() {
                    (*view).limitOffset = nodes::bigint(0).cast();
                }
            }
        }
        self
    }

    /// Does something with every expression of every query, and then with those in it.
    pub(super) fn each_expression(&self, work: &dyn Fn(Place<'_>)) {
        let mut next: Vec<Place<'_>> = self.queries().into_iter().flat_map(expressions).collect();
        while let Some(place) = next.pop() {
            work(place);
            if !matches!(place.node(), Node::Query(_)) {
                next.extend(place.children());
            }
        }
    }

    /// The entries of all range tables.
    fn entries(&self) -> Vec<*mut pg_sys::RangeTblEntry> {
        // SAFETY: range tables hold entries.
        let of = |query: &pg_sys::Query| unsafe { lists::pointers(query.rtable) };
        self.queries().into_iter().flat_map(of).collect()
    }

    /// SQL whose meaning does not depend on settings: for people, or with every identifier quoted
    /// for a parser that has other keywords than PostgreSQL's.
    pub fn deparse(self, quote_all: bool) -> String {
        // SAFETY: a complete query; the text is copied.
        with_canonical_settings(quote_all, || unsafe {
            owned(pg_sys::pg_get_querydef(with_qualified_columns(self.0), false))
        })
    }
}

/// The query as one whose columns are printed with their relations, as those of a view's rule are: printed without, a
/// column of ORDER BY would be taken for the output that has its name.
///
/// # Safety
/// A complete query.
unsafe fn with_qualified_columns(query: *mut pg_sys::Query) -> *mut pg_sys::Query {
    // SAFETY: a copy of the node with a list of its own; PostgreSQL prints no entry that FROM does not have.
    unsafe {
        // That is what PostgreSQL goes by.
        if lists::pointers::<pg_sys::RangeTblEntry>((*query).rtable).len() != 1 {
            return query;
        }
        let copy = pg_sys::palloc(size_of::<pg_sys::Query>()).cast::<pg_sys::Query>();
        std::ptr::copy_nonoverlapping(query, copy, 1);
        (*copy).rtable = pg_sys::lappend(pg_sys::list_copy((*query).rtable), unused_entry().cast());
        copy
    }
}

/// Whether an entry is a table that has no children, and is none of partitions.
fn is_alone(entry: &pg_sys::RangeTblEntry) -> bool {
    entry.rtekind == pg_sys::RTEKind::RTE_RELATION
        && catalog::relation_kind(entry.relid) != Some(pg_sys::RELKIND_PARTITIONED_TABLE)
        && catalog::with_descendants(entry.relid).len() == 1
}

/// An entry of a range table that no FROM has.
fn unused_entry() -> *mut pg_sys::RangeTblEntry {
    // SAFETY: a new node.
    unsafe {
        let entry: *mut pg_sys::RangeTblEntry = nodes::new(NodeTag::T_RangeTblEntry);
        (*entry).rtekind = pg_sys::RTEKind::RTE_RESULT;
        (*entry).eref = pg_sys::makeAlias(c"unused".as_ptr(), std::ptr::null_mut());
        entry
    }
}

/// Makes VALUES as a subquery in an expression, which the planner's parser takes for a function, a SELECT from them: what
/// has another entry than that of the VALUES is printed as such.
///
/// # Safety
/// A complete query of a copy that nobody else looks at.
unsafe fn select_values(query: *mut pg_sys::Query) {
    // SAFETY: a complete query of our own copy; the entry is not in its FROM.
    unsafe {
        let entries = lists::pointers::<pg_sys::RangeTblEntry>((*query).rtable);
        if matches!(entries.as_slice(), [only] if (**only).rtekind == pg_sys::RTEKind::RTE_VALUES) {
            (*query).rtable = pg_sys::lappend((*query).rtable, unused_entry().cast());
        }
    }
}

/// Runs `work`, which deparses, under settings on which its result does not depend.
pub(super) fn with_canonical_settings(quote_all: bool, work: impl FnOnce() -> String) -> String {
    let settings = [
        (c"search_path", guc::SAFE_SEARCH_PATH),
        (c"quote_all_identifiers", if quote_all { c"on" } else { c"off" }),
        (c"standard_conforming_strings", c"on"),
        (c"datestyle", c"ISO, YMD"),
        (c"intervalstyle", c"postgres"),
        (c"timezone", c"UTC"),
        (c"extra_float_digits", c"1"),
        (c"bytea_output", c"hex"),
    ];
    // SAFETY: settings changed on a nest level are restored at its end, or by the abort.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        for (name, value) in settings {
            guc::set_for_now(name, value);
        }
        let text = work();
        pg_sys::AtEOXact_GUC(true, level);
        text
    }
}

/// # Safety
/// For PostgreSQL's mutator to call, with the argument that it was given: see the function that starts it.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn drop_collate(
    node: *mut pg_sys::Node,
    arg: *mut c_void,
) -> *mut pg_sys::Node {
    // SAFETY: tags decide types; null is a missing part of a node. No frame has destructors, so an
    // error of the server may jump over them.
    unsafe {
        if node.is_null() {
            return node;
        }
        match (*node).type_ {
            NodeTag::T_CollateExpr => {
                drop_collate((*node.cast::<pg_sys::CollateExpr>()).arg.cast(), arg)
            }
            NodeTag::T_Query => query_tree_mutator(node.cast(), drop_collate, arg, 0).cast(),
            // One with another collation than its type's is printed with it.
            NodeTag::T_Const => {
                let copy = expression_tree_mutator(node, drop_collate, arg).cast::<pg_sys::Const>();
                (*copy).constcollid = pg_sys::get_typcollation((*copy).consttype);
                copy.cast()
            }
            _ => expression_tree_mutator(node, drop_collate, arg),
        }
    }
}

/// Computes limits and offsets of frames that are constants.
///
/// # Safety
/// A complete query of a copy that nobody else looks at.
unsafe fn compute_numbers(query: *mut pg_sys::Query) {
    // SAFETY: per contract; the list holds windows of the query.
    unsafe {
        for limit in [&raw mut (*query).limitCount, &raw mut (*query).limitOffset] {
            *limit = computed(*limit);
        }
        for window in lists::pointers::<pg_sys::WindowClause>((*query).windowClause) {
            for offset in [&raw mut (*window).startOffset, &raw mut (*window).endOffset] {
                *offset = computed(*offset);
            }
        }
    }
}

/// An expression computed, if it is a constant. Code of users is not run here: it need not come to an end.
///
/// # Safety
/// An expression or null.
unsafe fn computed(node: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: per contract.
    unsafe {
        match node.is_null() || reads_queries(Place::of(node)) || !is_builtin(Place::of(node)) {
            true => node,
            false => pg_sys::eval_const_expressions(std::ptr::null_mut(), node),
        }
    }
}

/// Whether an expression takes something from a query, be it one around.
fn reads_queries(place: Place<'_>) -> bool {
    let is_it = matches!(place.node(), Node::SubLink(_) | Node::Aggref(_) | Node::Var(_));
    is_it || place.children().into_iter().any(reads_queries)
}

/// # Safety
/// For PostgreSQL's mutator to call, with the argument that it was given: see the function that starts it.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn fold(node: *mut pg_sys::Node, arg: *mut c_void) -> *mut pg_sys::Node {
    // SAFETY: as in `drop_collate`.
    unsafe {
        if node.is_null() {
            return node;
        }
        if (*node).type_ == NodeTag::T_Query {
            return query_tree_mutator(node.cast(), fold, arg, 0).cast();
        }
        let node = expression_tree_mutator(node, fold, arg);
        if (*node).type_ == NodeTag::T_Const {
            return known_constant(node.cast()).cast();
        }
        let (function, args) = match (*node).type_ {
            NodeTag::T_OpExpr => {
                let call = &*node.cast::<pg_sys::OpExpr>();
                (pg_sys::get_opcode(call.opno), call.args)
            }
            NodeTag::T_FuncExpr => {
                let call = &*node.cast::<pg_sys::FuncExpr>();
                (call.funcid, call.args)
            }
            _ => return node,
        };
        if is_foldable(node, function, args) {
            pg_sys::eval_const_expressions(std::ptr::null_mut(), node)
        } else {
            node
        }
    }
}

/// Makes a literal whose type nothing has decided, such as an argument for `VARIADIC "any"`, text.
///
/// # Safety
/// A complete node of a copy that nobody else looks at.
unsafe fn known_constant(constant: *mut pg_sys::Const) -> *mut pg_sys::Const {
    // SAFETY: a node of our own copy; a literal of unknown type holds a C string.
    unsafe {
        if (*constant).consttype != pg_sys::UNKNOWNOID {
            return constant;
        }
        (*constant).consttype = pg_sys::TEXTOID;
        (*constant).constlen = -1;
        (*constant).constcollid = pg_sys::DEFAULT_COLLATION_OID;
        if !(*constant).constisnull {
            let text = pg_sys::cstring_to_text((*constant).constvalue.cast_mut_ptr());
            (*constant).constvalue = pg_sys::Datum::from(text);
        }
        constant
    }
}

/// Whether an expression is a constant, or PostgreSQL's own conversion of one. Not of types of users, with which
/// PostgreSQL's own functions may run theirs: plans are made in sessions of anybody.
///
/// # Safety
/// An expression of an analysed tree.
unsafe fn is_constant(node: *mut pg_sys::Node) -> bool {
    // SAFETY: tags decide types.
    unsafe {
        if !catalog::is_builtin(pg_sys::exprType(node)) {
            return false;
        }
        if (*node).type_ == NodeTag::T_NamedArgExpr {
            return is_constant((*node.cast::<pg_sys::NamedArgExpr>()).arg.cast());
        }
        if (*node).type_ != NodeTag::T_FuncExpr {
            return (*node).type_ == NodeTag::T_Const;
        }
        let call = &*node.cast::<pg_sys::FuncExpr>();
        let args = lists::pointers::<pg_sys::Node>(call.args);
        let is_converted = |arg: &*mut pg_sys::Node| (**arg).type_ == NodeTag::T_Const;
        is_own_immutable(call.funcid) && args.len() == 1 && args.iter().all(is_converted)
    }
}

/// Whether a call is PostgreSQL's own, of constants, and of a type that the planner does not know.
///
/// # Safety
/// An expression and the list of its arguments.
unsafe fn is_foldable(call: *mut pg_sys::Node, function: Oid, args: *mut pg_sys::List) -> bool {
    // SAFETY: the list holds expressions.
    unsafe {
        let is_unknown =
            |arg: &*mut pg_sys::Node| types::native_type(pg_sys::exprType(*arg)).is_none();
        let args = lists::pointers::<pg_sys::Node>(args);
        args.iter().all(|arg| is_constant(*arg))
            && (args.iter().any(is_unknown) || is_unknown(&call))
            && is_own_immutable(function)
    }
}

fn is_own_immutable(function: Oid) -> bool {
    catalog::is_builtin(function) && catalog::volatility(function) == Volatility::Immutable
}

/// Turns `text || other` into `text || other::text`, which is what it computes.
///
/// # Safety
/// A complete node of a copy that nobody else looks at.
unsafe fn convert_operand(call: *mut pg_sys::OpExpr) {
    /// `text || text`
    const TEXT_CONCATENATION: u32 = 654;
    // SAFETY: a node of our own copy, of two arguments; new nodes live as long as the copy.
    unsafe {
        let Some(index) = converted_operand(&*call) else { return };
        let cast: *mut pg_sys::CoerceViaIO = nodes::new(NodeTag::T_CoerceViaIO);
        let cell = (*(*call).args).elements.add(index);
        (*cast).arg = (*cell).ptr_value.cast();
        (*cast).resulttype = pg_sys::TEXTOID;
        (*cast).resultcollid = (*call).opcollid;
        (*cast).coerceformat = pg_sys::CoercionForm::COERCE_EXPLICIT_CAST;
        (*cast).location = -1;
        (*cell).ptr_value = cast.cast();
        (*call).opno = Oid::from(TEXT_CONCATENATION);
        (*call).opfuncid = pg_sys::get_opcode((*call).opno);
    }
}

/// # Safety
/// A complete node of a copy that nobody else looks at.
unsafe fn explicit_cast(node: *mut pg_sys::Node) {
    // SAFETY: the tag decides the type.
    unsafe {
        if (*node).type_ == NodeTag::T_OpExpr {
            convert_operand(node.cast());
        }
    }
    // SAFETY: as above.
    let form: &mut pg_sys::CoercionForm::Type = unsafe {
        match (*node).type_ {
            NodeTag::T_FuncExpr => &mut (*node.cast::<pg_sys::FuncExpr>()).funcformat,
            NodeTag::T_RelabelType => &mut (*node.cast::<pg_sys::RelabelType>()).relabelformat,
            NodeTag::T_CoerceViaIO => &mut (*node.cast::<pg_sys::CoerceViaIO>()).coerceformat,
            NodeTag::T_ArrayCoerceExpr => {
                &mut (*node.cast::<pg_sys::ArrayCoerceExpr>()).coerceformat
            }
            NodeTag::T_CoerceToDomain => {
                &mut (*node.cast::<pg_sys::CoerceToDomain>()).coercionformat
            }
            _ => return,
        }
    };
    *form = match *form {
        pg_sys::CoercionForm::COERCE_IMPLICIT_CAST => pg_sys::CoercionForm::COERCE_EXPLICIT_CAST,
        // `SUBSTRING(x FROM 2)` and the like: as a plain call of the function behind it.
        pg_sys::CoercionForm::COERCE_SQL_SYNTAX => pg_sys::CoercionForm::COERCE_EXPLICIT_CALL,
        other => other,
    };
}
