//! Analysed query trees: reading them without raw pointers, rewriting and deparsing them.

use crate::pg::catalogs::{self, Volatility};
use crate::pg::{host_sets, lists};
use pgrx::pg_sys::{self, NodeTag, Oid};
use std::ffi::{c_int, c_void, CStr};

/// A query tree of our own (never one that PostgreSQL will run), valid as long as the memory context
/// it was made in.
#[derive(Clone, Copy)]
pub struct Tree(*mut pg_sys::Query);

/// A node, by its kind. References live as long as the tree's memory context; callers drop them
/// before the context goes, which is after the statement or the transaction.
#[derive(Clone, Copy)]
pub enum Node<'a> {
    Query(&'a pg_sys::Query),
    Var(&'a pg_sys::Var),
    FuncExpr(&'a pg_sys::FuncExpr),
    OpExpr(&'a pg_sys::OpExpr),
    DistinctExpr(&'a pg_sys::OpExpr),
    NullIfExpr(&'a pg_sys::OpExpr),
    ScalarArrayOpExpr(&'a pg_sys::ScalarArrayOpExpr),
    Aggref(&'a pg_sys::Aggref),
    WindowFunc(&'a pg_sys::WindowFunc),
    CoerceViaIO(&'a pg_sys::CoerceViaIO),
    MinMaxExpr(&'a pg_sys::MinMaxExpr),
    SQLValueFunction(&'a pg_sys::SQLValueFunction),
    SubLink(&'a pg_sys::SubLink),
    Param(&'a pg_sys::Param),
    FromExpr(&'a pg_sys::FromExpr),
    JoinExpr(&'a pg_sys::JoinExpr),
    RangeTblRef(&'a pg_sys::RangeTblRef),
    SetOperation(&'a pg_sys::SetOperationStmt),
    /// An expression without a variant of its own.
    Expr(NodeTag),
    /// A list, or a node that only holds others.
    Container,
}

/// A place in a tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place(*mut pg_sys::Node);

impl Place {
    /// That of a node, which is not null.
    pub(super) fn of(node: *mut pg_sys::Node) -> Place {
        Place(node)
    }

    fn new<T>(node: *mut T) -> Option<Place> {
        (!node.is_null()).then_some(Place(node.cast()))
    }

    /// The node's kind.
    pub fn node<'a>(self) -> Node<'a> {
        // SAFETY: places are only made from pointers inside valid trees; the tag decides the type.
        unsafe {
            match (*self.0).type_ {
                NodeTag::T_Query => Node::Query(&*self.0.cast()),
                NodeTag::T_Var => Node::Var(&*self.0.cast()),
                NodeTag::T_FuncExpr => Node::FuncExpr(&*self.0.cast()),
                NodeTag::T_OpExpr => Node::OpExpr(&*self.0.cast()),
                NodeTag::T_DistinctExpr => Node::DistinctExpr(&*self.0.cast()),
                NodeTag::T_NullIfExpr => Node::NullIfExpr(&*self.0.cast()),
                NodeTag::T_ScalarArrayOpExpr => Node::ScalarArrayOpExpr(&*self.0.cast()),
                NodeTag::T_Aggref => Node::Aggref(&*self.0.cast()),
                NodeTag::T_WindowFunc => Node::WindowFunc(&*self.0.cast()),
                NodeTag::T_CoerceViaIO => Node::CoerceViaIO(&*self.0.cast()),
                NodeTag::T_MinMaxExpr => Node::MinMaxExpr(&*self.0.cast()),
                NodeTag::T_SQLValueFunction => Node::SQLValueFunction(&*self.0.cast()),
                NodeTag::T_SubLink => Node::SubLink(&*self.0.cast()),
                NodeTag::T_Param => Node::Param(&*self.0.cast()),
                NodeTag::T_FromExpr => Node::FromExpr(&*self.0.cast()),
                NodeTag::T_JoinExpr => Node::JoinExpr(&*self.0.cast()),
                NodeTag::T_RangeTblRef => Node::RangeTblRef(&*self.0.cast()),
                NodeTag::T_SetOperationStmt => Node::SetOperation(&*self.0.cast()),
                NodeTag::T_List
                | NodeTag::T_TargetEntry
                | NodeTag::T_CaseWhen
                | NodeTag::T_SortGroupClause => Node::Container,
                tag => Node::Expr(tag),
            }
        }
    }

    /// The nodes directly below an expression.
    pub fn children(self) -> Vec<Place> {
        let mut below: Vec<Place> = Vec::new();
        // SAFETY: the walker only collects pointers, it neither errs nor recurses.
        unsafe { expression_tree_walker(self.0, collect, (&raw mut below).cast()) };
        below
    }

    /// The expressions directly below an expression, those in lists included.
    pub fn operands(self) -> Vec<Place> {
        let flat = |place: Place| match place.node() {
            Node::Container => place.children(),
            _ => vec![place],
        };
        self.children().into_iter().flat_map(flat).collect()
    }

    /// Type of an expression.
    pub fn expr_type(self) -> Oid {
        // SAFETY: called for expression nodes.
        unsafe { pg_sys::exprType(self.0) }
    }

    /// The planner's name of an expression's type.
    pub fn planner_type(self) -> Option<planner::types::Type> {
        catalogs::planner_type(self.expr_type(), self.collation())
    }

    /// Collation of an expression's result.
    pub fn collation(self) -> Oid {
        // SAFETY: called for expression nodes.
        unsafe { pg_sys::exprCollation(self.0) }
    }

    /// Whether it is the same expression, wherever it is written.
    pub fn equals(self, other: Place) -> bool {
        // SAFETY: accepts any nodes.
        unsafe { pg_sys::equal(self.0.cast(), other.0.cast()) }
    }

    /// Byte offset in the source text, negative if unknown.
    pub fn location(self) -> i32 {
        // SAFETY: accepts any node.
        unsafe { pg_sys::exprLocation(self.0) }
    }
}

type Walker = unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut c_void) -> bool;

extern "C-unwind" {
    #[cfg_attr(not(feature = "pg15"), link_name = "expression_tree_walker_impl")]
    fn expression_tree_walker(node: *mut pg_sys::Node, walker: Walker, arg: *mut c_void) -> bool;
}

type Mutator = unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut c_void) -> *mut pg_sys::Node;

extern "C-unwind" {
    #[cfg_attr(not(feature = "pg15"), link_name = "expression_tree_mutator_impl")]
    pub(super) fn expression_tree_mutator(
        node: *mut pg_sys::Node,
        mutator: Mutator,
        arg: *mut c_void,
    ) -> *mut pg_sys::Node;
    #[cfg_attr(not(feature = "pg15"), link_name = "query_tree_mutator_impl")]
    pub(super) fn query_tree_mutator(
        query: *mut pg_sys::Query,
        mutator: Mutator,
        arg: *mut c_void,
        flags: c_int,
    ) -> *mut pg_sys::Query;
    /// Not pgrx's: its guard would make an error of the server a panic, which must not pass a callback.
    fn eval_const_expressions(
        root: *mut pg_sys::PlannerInfo,
        node: *mut pg_sys::Node,
    ) -> *mut pg_sys::Node;
}

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
            _ => expression_tree_mutator(node, drop_collate, arg),
        }
    }
}

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
        if is_foldable(function, args) {
            eval_const_expressions(std::ptr::null_mut(), node)
        } else {
            node
        }
    }
}

/// Whether an expression is a constant, or PostgreSQL's own conversion of one.
unsafe fn is_constant(node: *mut pg_sys::Node) -> bool {
    // SAFETY: tags decide types.
    unsafe {
        if (*node).type_ != NodeTag::T_FuncExpr {
            return (*node).type_ == NodeTag::T_Const;
        }
        let call = &*node.cast::<pg_sys::FuncExpr>();
        let args = lists::pointers::<pg_sys::Node>(call.args);
        let is_converted = |arg: &*mut pg_sys::Node| (**arg).type_ == NodeTag::T_Const;
        is_own_immutable(call.funcid) && args.len() == 1 && args.iter().all(is_converted)
    }
}

fn is_own_immutable(function: Oid) -> bool {
    catalogs::is_builtin(function) && catalogs::volatility(function) == Volatility::Immutable
}

/// Whether a call is PostgreSQL's own, of constants, and of a type that the planner does not know.
unsafe fn is_foldable(function: Oid, args: *mut pg_sys::List) -> bool {
    // SAFETY: the list holds expressions.
    unsafe {
        let is_unknown =
            |arg: &*mut pg_sys::Node| catalogs::native_type(pg_sys::exprType(*arg)).is_none();
        let args = lists::pointers::<pg_sys::Node>(args);
        args.iter().all(|arg| is_constant(*arg))
            && args.iter().any(is_unknown)
            && is_own_immutable(function)
    }
}

unsafe extern "C-unwind" fn collect(node: *mut pg_sys::Node, arg: *mut c_void) -> bool {
    if let Some(place) = Place::new(node) {
        // SAFETY: `arg` is the vector of `Place::children`.
        unsafe { (*arg.cast::<Vec<Place>>()).push(place) };
    }
    false
}

/// The cells of a list inside a tree.
pub fn places(list: *const pg_sys::List) -> Vec<Place> {
    // SAFETY: lists inside query trees hold nodes.
    unsafe { lists::pointers::<pg_sys::Node>(list) }.into_iter().filter_map(Place::new).collect()
}

/// An optional node inside a tree.
pub fn place<T>(node: *mut T) -> Option<Place> {
    Place::new(node)
}

/// Range table of a query.
pub fn range_table(query: &pg_sys::Query) -> Vec<&pg_sys::RangeTblEntry> {
    // SAFETY: a range table holds entries.
    unsafe {
        let entries = lists::pointers::<pg_sys::RangeTblEntry>(query.rtable);
        entries.into_iter().map(|e| &*e).collect()
    }
}

/// The entry of that number, counted from 1.
pub fn entry<'a>(
    entries: &[&'a pg_sys::RangeTblEntry],
    number: c_int,
) -> Option<&'a pg_sys::RangeTblEntry> {
    entries.get(usize::try_from(number).ok()?.checked_sub(1)?).copied()
}

/// The target list of a query, with the entries that only its clauses refer to.
pub fn targets(query: &pg_sys::Query) -> Vec<&pg_sys::TargetEntry> {
    // SAFETY: a target list holds entries.
    unsafe {
        let entries = lists::pointers::<pg_sys::TargetEntry>(query.targetList);
        entries.into_iter().map(|e| &*e).collect()
    }
}

/// The targets that a GROUP BY, ORDER BY or DISTINCT refers to, by their numbers.
pub fn sort_group_references(clauses: *const pg_sys::List) -> Vec<pg_sys::Index> {
    // SAFETY: such a list holds clauses.
    unsafe {
        let clauses = lists::pointers::<pg_sys::SortGroupClause>(clauses);
        clauses.into_iter().map(|clause| (*clause).tleSortGroupRef).collect()
    }
}

/// The arguments of a call: of a list of expressions, or of an aggregate's targets.
pub fn arguments(list: *const pg_sys::List) -> Vec<Place> {
    let argument = |place: Place| {
        // SAFETY: the tag decides the type.
        unsafe {
            if (*place.0).type_ != NodeTag::T_TargetEntry {
                return Some(place);
            }
            let target = &*place.0.cast::<pg_sys::TargetEntry>();
            (!target.resjunk).then(|| Place(target.expr.cast()))
        }
    };
    places(list).into_iter().filter_map(argument).collect()
}

/// The functions of an item of FROM: each call, and the types of its columns if it returns rows.
pub fn functions(entry: &pg_sys::RangeTblEntry) -> Vec<(Place, Vec<Oid>)> {
    // SAFETY: such an entry has a list of functions.
    unsafe {
        let functions = lists::pointers::<pg_sys::RangeTblFunction>(entry.functions);
        let call = |function: *mut pg_sys::RangeTblFunction| {
            let types = host_sets::columns_of(function).into_iter().map(|column| column.ty);
            Some((Place::new((*function).funcexpr)?, types.collect()))
        };
        functions.into_iter().filter_map(call).collect()
    }
}

/// Whether an `IS NULL` is one of rows.
pub fn tests_row(place: Place) -> bool {
    // SAFETY: the tag decides the type.
    unsafe {
        (*place.0).type_ == NodeTag::T_NullTest && (*place.0.cast::<pg_sys::NullTest>()).argisrow
    }
}

/// Whether an `ARRAY[…]` is one of arrays.
pub fn is_nested_array(place: Place) -> bool {
    // SAFETY: the tag decides the type.
    unsafe {
        (*place.0).type_ == NodeTag::T_ArrayExpr && (*place.0.cast::<pg_sys::ArrayExpr>()).multidims
    }
}

/// Whether a subscript is one of an element, not of a slice.
pub fn is_element(place: Place) -> bool {
    // SAFETY: the tag decides the type.
    unsafe {
        (*place.0).type_ == NodeTag::T_SubscriptingRef && {
            let subscript = &*place.0.cast::<pg_sys::SubscriptingRef>();
            subscript.reflowerindexpr.is_null() && subscript.refassgnexpr.is_null()
        }
    }
}

/// The conditions of `CASE x WHEN …`; none if there is no x.
pub fn simple_case_conditions(place: Place) -> Vec<Place> {
    // SAFETY: the tag decides the type; the list holds WHENs.
    unsafe {
        let case = &*place.0.cast::<pg_sys::CaseExpr>();
        if (*place.0).type_ != NodeTag::T_CaseExpr || case.arg.is_null() {
            return Vec::new();
        }
        let whens = lists::pointers::<pg_sys::CaseWhen>(case.args);
        whens.into_iter().filter_map(|when| Place::new((*when).expr)).collect()
    }
}

/// Common table expressions of a query.
pub fn ctes(query: &pg_sys::Query) -> Vec<&pg_sys::CommonTableExpr> {
    // SAFETY: as above.
    unsafe {
        let list = lists::pointers::<pg_sys::CommonTableExpr>(query.cteList);
        list.into_iter().map(|e| &*e).collect()
    }
}

/// The query below an RTE, a CTE or a sublink.
pub fn subquery<'a, T>(query: *mut T) -> Option<&'a pg_sys::Query> {
    match Place::new(query)?.node() {
        Node::Query(query) => Some(query),
        _ => None,
    }
}

/// A name inside a tree.
pub fn name(value: *const std::ffi::c_char) -> String {
    if value.is_null() {
        return String::new();
    }
    // SAFETY: names inside trees are C strings.
    unsafe { CStr::from_ptr(value).to_string_lossy().into_owned() }
}

/// Name by which a query refers to a range table entry.
pub fn entry_name(entry: &pg_sys::RangeTblEntry) -> String {
    // SAFETY: every entry has `eref`.
    unsafe { name((*entry.eref).aliasname) }
}

impl Tree {
    /// A copy of an analysed query.
    pub fn copy_of(query: *mut pg_sys::Query) -> Tree {
        // SAFETY: a Query that parse analysis has made.
        Tree(unsafe { pg_sys::copyObjectImpl(query.cast()) }.cast())
    }

    /// The query of a materialized view, from its rewrite rule; takes the locks that reading it takes.
    /// `None` if the relation is not a materialized view any more.
    pub fn of_view(view: Oid) -> Option<Tree> {
        // SAFETY: the relation is kept open, and its rule valid, while the copy is made.
        unsafe {
            let lock = pg_sys::AccessShareLock as c_int;
            let relation = pg_sys::try_relation_open(view, lock);
            if relation.is_null() {
                return None;
            }
            let tree = Self::of_rule(relation);
            pg_sys::relation_close(relation, pg_sys::NoLock as c_int);
            tree
        }
    }

    unsafe fn of_rule(relation: pg_sys::Relation) -> Option<Tree> {
        // SAFETY: an open relation; a materialized view has exactly one rule with one action.
        unsafe {
            let rules = (*relation).rd_rules;
            let kind = (*(*relation).rd_rel).relkind as u8;
            if kind != pg_sys::RELKIND_MATVIEW || rules.is_null() || (*rules).numLocks < 1 {
                return None;
            }
            let actions = lists::pointers::<pg_sys::Query>((**(*rules).rules).actions);
            let tree = Tree::copy_of(*actions.first()?);
            pg_sys::AcquireRewriteLocks(tree.0, true, false);
            Some(tree)
        }
    }

    /// The query with plain views, row-level security, SEARCH and CYCLE expanded for the current user.
    pub fn rewritten(self) -> Tree {
        // SAFETY: QueryRewrite works on the tree in place; for a SELECT it returns one query.
        let tree = unsafe {
            let list = pg_sys::QueryRewrite(Tree::copy_of(self.0).0);
            let queries = lists::pointers::<pg_sys::Query>(list);
            Tree(queries.first().copied().unwrap_or(self.0))
        };
        tree.queries().into_iter().for_each(forget_search_and_cycle);
        tree
    }

    pub(super) fn as_node(self) -> *mut pg_sys::Node {
        self.0.cast()
    }

    /// A tree of our own making.
    pub(super) fn from_node(query: *mut pg_sys::Node) -> Tree {
        Tree(query.cast())
    }

    /// The top query.
    pub fn query<'a>(self) -> &'a pg_sys::Query {
        // SAFETY: see the type's doc.
        unsafe { &*self.0 }
    }

    /// All queries of the tree, outer ones first, with their range tables complete (views that were
    /// expanded included).
    pub fn queries<'a>(self) -> Vec<&'a pg_sys::Query> {
        let mut found = Vec::new();
        let mut next = vec![self.query()];
        while let Some(query) = next.pop() {
            next.extend(ctes(query).iter().filter_map(|c| subquery(c.ctequery)));
            next.extend(range_table(query).iter().filter_map(|e| subquery(e.subquery)));
            next.extend(sublinks(query));
            found.push(query);
        }
        found
    }

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
        Tree(copy.cast())
    }

    /// Makes every cast of the tree, which must be a copy of our own, an explicit one; `||` of text and
    /// another type, which converts that operand, included.
    pub fn with_explicit_casts(self) -> Tree {
        self.queries().into_iter().for_each(explicit_casts);
        self
    }

    /// SQL whose meaning does not depend on settings: for people, or with every identifier quoted
    /// for a parser that has other keywords than PostgreSQL's.
    pub fn deparse(self, quote_all: bool) -> String {
        // SAFETY: a complete query; the text is copied.
        with_canonical_settings(quote_all, || unsafe {
            name(pg_sys::pg_get_querydef(self.0, false))
        })
    }
}

/// Runs `work`, which deparses, under settings on which its result does not depend.
pub(super) fn with_canonical_settings(quote_all: bool, work: impl FnOnce() -> String) -> String {
    let settings = [
        (c"search_path", c"pg_catalog"),
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
            pg_sys::set_config_option(
                name.as_ptr(),
                value.as_ptr(),
                pg_sys::GucContext::PGC_USERSET,
                pg_sys::GucSource::PGC_S_SESSION,
                pg_sys::GucAction::GUC_ACTION_SAVE,
                true,
                0,
                false,
            );
        }
        let text = work();
        pg_sys::AtEOXact_GUC(true, level);
        text
    }
}

/// Clauses that the rewriter has expanded, so that they are not deparsed as well.
fn forget_search_and_cycle(query: &pg_sys::Query) {
    // SAFETY: the list holds CTEs of a tree of our own.
    unsafe {
        for cte in lists::pointers::<pg_sys::CommonTableExpr>(query.cteList) {
            (*cte).search_clause = std::ptr::null_mut();
            (*cte).cycle_clause = std::ptr::null_mut();
        }
    }
}

/// Queries in expressions of a query.
fn sublinks(query: &pg_sys::Query) -> Vec<&pg_sys::Query> {
    let mut found = Vec::new();
    for top in expressions(query) {
        let mut next = vec![top];
        while let Some(place) = next.pop() {
            if let Node::SubLink(link) = place.node() {
                found.extend(subquery(link.subselect));
            }
            if !matches!(place.node(), Node::Query(_)) {
                next.extend(place.children());
            }
        }
    }
    found
}

/// The places of a query below which its expressions are.
pub fn expressions(query: &pg_sys::Query) -> Vec<Place> {
    let mut all = places(query.targetList);
    all.extend(place(query.jointree));
    all.extend(
        [query.havingQual, query.limitOffset, query.limitCount].into_iter().filter_map(place),
    );
    for entry in range_table(query) {
        all.extend(places(entry.values_lists));
        all.extend(places(entry.joinaliasvars));
        all.extend(places(entry.functions));
    }
    all
}

/// Makes every implicit cast of one query level an explicit one, in place.
fn explicit_casts(query: &pg_sys::Query) {
    for top in expressions(query) {
        let mut next = vec![top];
        while let Some(place) = next.pop() {
            // SAFETY: the tree is our own copy; the tag decides the type.
            unsafe { explicit_cast(place.0) };
            if !matches!(place.node(), Node::Query(_)) {
                next.extend(place.children());
            }
        }
    }
}

/// The operand that `||` of text and another type converts to text: its index among the arguments.
pub fn converted_operand(call: &pg_sys::OpExpr) -> Option<usize> {
    // SAFETY: a look-up in the system cache.
    match unsafe { pg_sys::get_opcode(call.opno) }.to_u32() {
        pg_sys::F_TEXTANYCAT => Some(1),
        pg_sys::F_ANYTEXTCAT => Some(0),
        _ => None,
    }
}

/// Turns `text || other` into `text || other::text`, which is what it computes.
unsafe fn convert_operand(call: *mut pg_sys::OpExpr) {
    /// `text || text`
    const TEXT_CONCATENATION: u32 = 654;
    // SAFETY: a node of our own copy, of two arguments; new nodes live as long as the copy.
    unsafe {
        let Some(index) = converted_operand(&*call) else { return };
        let size = size_of::<pg_sys::CoerceViaIO>();
        let cast = pg_sys::palloc0(size).cast::<pg_sys::CoerceViaIO>();
        let cell = (*(*call).args).elements.add(index);
        (*cast).xpr.type_ = NodeTag::T_CoerceViaIO;
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
