//! Analysed query trees: reading them without raw pointers, rewriting and deparsing them.

use crate::pg::strings::owned;
use crate::pg::versions;
use crate::pg::versions::tree::expression_tree_walker;
pub(super) use crate::pg::versions::tree::{expression_tree_mutator, query_tree_mutator, Mutator};
use crate::pg::{lists, types};
use crate::rewrite::parts;
use pgrx::pg_sys::{self, NodeTag, Oid};
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;

/// A query tree of our own (never one that PostgreSQL will run), valid as long as the memory context it was made in:
/// that of the statement, so it is never kept beyond.
pub struct Tree(pub(super) *mut pg_sys::Query);

/// A node, by its kind.
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

/// A place in a tree that lives as long as `'t`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place<'t>(pub(super) *mut pg_sys::Node, PhantomData<&'t pg_sys::Node>);

impl<'t> Place<'t> {
    /// That of a node.
    ///
    /// # Safety
    /// A complete node of a tree that lives as long as `'t`; not null.
    pub(super) unsafe fn of(node: *mut pg_sys::Node) -> Place<'t> {
        Place(node, PhantomData)
    }

    /// That of a node, if there is one.
    ///
    /// # Safety
    /// As for [`Place::of`], but for null.
    unsafe fn new<T>(node: *mut T) -> Option<Place<'t>> {
        (!node.is_null()).then_some(Place(node.cast(), PhantomData))
    }

    /// The node, by its kind.
    pub fn node(self) -> Node<'t> {
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
                | NodeTag::T_TableFunc
                | NodeTag::T_SortGroupClause => Node::Container,
                tag => Node::Expr(tag),
            }
        }
    }

    /// The nodes directly below an expression.
    pub fn children(self) -> Vec<Place<'t>> {
        let mut below: Vec<Place<'t>> = Vec::new();
        let arg = (&raw mut below).cast();
        // SAFETY: the walker only collects pointers. PostgreSQL looks first whether the stack is too deep, which is an
        // error that must not jump over us.
        unsafe {
            pg_sys::ffi::pg_guard_ffi_boundary(|| expression_tree_walker(self.0, collect, arg));
        }
        below
    }

    /// The expressions directly below an expression, those in lists included.
    pub fn operands(self) -> Vec<Place<'t>> {
        let flat = |place: Place<'t>| match place.node() {
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

    /// Type modifier of an expression; -1 if it has none.
    pub fn expr_typmod(self) -> i32 {
        // SAFETY: as above.
        unsafe { pg_sys::exprTypmod(self.0) }
    }

    /// The planner's name of an expression's type.
    pub fn planner_type(self) -> Option<plan::types::Type> {
        types::planner_type(self.expr_type(), self.collation())
    }

    /// Collation of an expression's result.
    pub fn collation(self) -> Oid {
        // SAFETY: called for expression nodes.
        unsafe { pg_sys::exprCollation(self.0) }
    }

    /// Whether it is the same expression, wherever it is written.
    pub fn equals(self, other: Place<'_>) -> bool {
        // SAFETY: accepts any nodes.
        unsafe { pg_sys::equal(self.0.cast(), other.0.cast()) }
    }

    /// Byte offset in the source text, negative if unknown.
    pub fn location(self) -> i32 {
        // SAFETY: accepts any node.
        unsafe { pg_sys::exprLocation(self.0) }
    }
}

/// Unguarded: collects pointers.
///
/// # Safety
/// For PostgreSQL's walker to call; `arg` is the vector of [`Place::children`].
unsafe extern "C-unwind" fn collect(node: *mut pg_sys::Node, arg: *mut c_void) -> bool {
    // SAFETY: `arg` is the vector of `Place::children`, whose walker passes nodes of its tree.
    unsafe {
        if let Some(place) = Place::new(node) {
            (*arg.cast::<Vec<Place<'_>>>()).push(place);
        }
    }
    false
}

/// The cells of a list inside a tree.
///
/// # Safety
/// A list of nodes of a tree that lives as long as `'t`, or null.
pub(super) unsafe fn places<'t>(list: *const pg_sys::List) -> Vec<Place<'t>> {
    // SAFETY: lists inside query trees hold nodes.
    unsafe {
        let nodes = lists::pointers::<pg_sys::Node>(list).into_iter();
        nodes.filter_map(|node| Place::new(node)).collect()
    }
}

/// An optional node inside a tree.
///
/// # Safety
/// A node of a tree that lives as long as `'t`, or null.
pub(super) unsafe fn place<'t, T>(node: *mut T) -> Option<Place<'t>> {
    // SAFETY: per contract.
    unsafe { Place::new(node) }
}

/// Range table of a query.
pub fn range_table(query: &pg_sys::Query) -> Vec<&pg_sys::RangeTblEntry> {
    // SAFETY: a range table holds entries.
    unsafe {
        let entries = lists::pointers::<pg_sys::RangeTblEntry>(query.rtable);
        entries.into_iter().map(|e| &*e).collect()
    }
}

/// What a rewritten query reads, the plain views included that it reads through, each with the query whose range table
/// has it.
pub fn reads(tree: &Tree) -> impl Iterator<Item = (&pg_sys::Query, &pg_sys::RangeTblEntry)> {
    // Where a view has been expanded, up to 15 an entry of the query in its place names it, from 16 on its own entry.
    let entries = |query| range_table(query).into_iter().map(move |entry| (query, entry));
    tree.queries().into_iter().flat_map(entries).filter(|(_, entry)| entry.relid != Oid::INVALID)
}

/// The entry of that number, counted from 1.
pub fn entry<'a>(
    entries: &[&'a pg_sys::RangeTblEntry],
    number: c_int,
) -> Option<&'a pg_sys::RangeTblEntry> {
    entries.get(usize::try_from(number).ok()?.checked_sub(1)?).copied()
}

/// The first relation whose rows a query locks, by FOR UPDATE and the like.
pub fn first_locked(query: &pg_sys::Query) -> Option<&pg_sys::RangeTblEntry> {
    // SAFETY: a list of such clauses.
    let marks = unsafe { lists::pointers::<pg_sys::RowMarkClause>(query.rowMarks) };
    // SAFETY: an element of that list.
    let number = marks.first().map(|mark| unsafe { (**mark).rti })?;
    entry(&range_table(query), c_int::try_from(number).ok()?)
}

/// Whether a query locks rows of an entry of its range table, by FOR UPDATE and the like.
pub fn locks(query: &pg_sys::Query, number: c_int) -> bool {
    // SAFETY: a list of such clauses.
    let marks = unsafe { lists::pointers::<pg_sys::RowMarkClause>(query.rowMarks) };
    // SAFETY: elements of that list.
    marks.into_iter().any(|mark| unsafe { (*mark).rti as c_int == number })
}

/// Whether a join has a merged column that is none of its sides' own.
pub fn has_columns_of_its_own(join: &pg_sys::RangeTblEntry) -> bool {
    let merged = usize::try_from(join.joinmergedcols).unwrap_or(0);
    let is_own = |column: &Place<'_>| !matches!(column.node(), Node::Var(_));
    parts::join_columns(join).iter().take(merged).any(is_own)
}

/// The entry on the right of a join, if that is no join itself.
pub fn joined_entry<'a>(
    join: &pg_sys::JoinExpr,
    entries: &[&'a pg_sys::RangeTblEntry],
) -> Option<&'a pg_sys::RangeTblEntry> {
    match parts::right_side(join)?.node() {
        Node::RangeTblRef(reference) => entry(entries, reference.rtindex),
        _ => None,
    }
}

/// The target list of a query, with the entries that only its clauses refer to.
pub fn targets(query: &pg_sys::Query) -> Vec<&pg_sys::TargetEntry> {
    // SAFETY: a target list holds entries.
    unsafe {
        let entries = lists::pointers::<pg_sys::TargetEntry>(query.targetList);
        entries.into_iter().map(|e| &*e).collect()
    }
}

/// The targets that a GROUP BY refers to, by their numbers.
pub fn group_references(query: &pg_sys::Query) -> Vec<pg_sys::Index> {
    // SAFETY: such a list holds clauses.
    unsafe {
        let clauses = lists::pointers::<pg_sys::SortGroupClause>(query.groupClause);
        clauses.into_iter().map(|clause| (*clause).tleSortGroupRef).collect()
    }
}

/// The arguments of a call: of a list of expressions, or of an aggregate's targets.
///
/// # Safety
/// A list of nodes of a tree that lives as long as `'t`, or null.
pub(super) unsafe fn arguments<'t>(list: *const pg_sys::List) -> Vec<Place<'t>> {
    let argument = |place: Place<'t>| {
        // SAFETY: the tag decides the type.
        unsafe {
            if (*place.0).type_ != NodeTag::T_TargetEntry {
                return Some(place);
            }
            let target = &*place.0.cast::<pg_sys::TargetEntry>();
            (!target.resjunk).then(|| Place::of(target.expr.cast()))
        }
    };
    // SAFETY: per contract.
    unsafe { places(list) }.into_iter().filter_map(argument).collect()
}

/// The conditions that all must hold.
pub fn conjuncts(place: Place<'_>) -> Vec<Place<'_>> {
    // SAFETY: the tag decides the type.
    let is_and = unsafe {
        (*place.0).type_ == NodeTag::T_BoolExpr
            && (*place.0.cast::<pg_sys::BoolExpr>()).boolop == pg_sys::BoolExprType::AND_EXPR
    };
    match is_and {
        true => place.operands().into_iter().flat_map(conjuncts).collect(),
        false => vec![place],
    }
}

/// A column of a comparison of rows by `<` and the like.
pub struct RowComparison<'t> {
    pub sides: [Place<'t>; 2],
    pub operator: Oid,
    pub collation: Oid,
}

/// The columns of a comparison of rows by `<` and the like; `None` if it is no such.
pub fn row_comparison(place: Place<'_>) -> Option<Vec<RowComparison<'_>>> {
    // SAFETY: the tag decides the type; lists of equal length.
    unsafe {
        if (*place.0).type_ != NodeTag::T_RowCompareExpr {
            return None;
        }
        let comparison = &*place.0.cast::<pg_sys::RowCompareExpr>();
        let operators = lists::oids(comparison.opnos);
        let how = operators.into_iter().zip(lists::oids(comparison.inputcollids));
        let sides = places(comparison.largs).into_iter().zip(places(comparison.rargs));
        let column = |((left, right), (operator, collation))| RowComparison {
            sides: [left, right],
            operator,
            collation,
        };
        Some(sides.zip(how).map(column).collect())
    }
}

/// The value of a constant interval that is not NULL.
pub fn interval(place: Place<'_>) -> Option<pg_sys::Interval> {
    // SAFETY: the tag and the type decide what the value is.
    unsafe {
        if (*place.0).type_ != NodeTag::T_Const || place.expr_type() != pg_sys::INTERVALOID {
            return None;
        }
        let constant = &*place.0.cast::<pg_sys::Const>();
        let value = constant.constvalue.cast_mut_ptr::<pg_sys::Interval>();
        (!constant.constisnull).then(|| *value)
    }
}

/// Whether an `IS NULL` is one of rows.
pub fn tests_row(place: Place<'_>) -> bool {
    // SAFETY: the tag decides the type.
    unsafe {
        (*place.0).type_ == NodeTag::T_NullTest && (*place.0.cast::<pg_sys::NullTest>()).argisrow
    }
}

/// Whether an `ARRAY[…]` is one of arrays.
pub fn is_nested_array(place: Place<'_>) -> bool {
    // SAFETY: the tag decides the type.
    unsafe {
        (*place.0).type_ == NodeTag::T_ArrayExpr && (*place.0.cast::<pg_sys::ArrayExpr>()).multidims
    }
}

/// Whether a subscript is one of an element, not of a slice.
pub fn is_element(place: Place<'_>) -> bool {
    // SAFETY: the tag decides the type.
    unsafe {
        (*place.0).type_ == NodeTag::T_SubscriptingRef && {
            let subscript = &*place.0.cast::<pg_sys::SubscriptingRef>();
            subscript.reflowerindexpr.is_null() && subscript.refassgnexpr.is_null()
        }
    }
}

/// The conditions of `CASE x WHEN …`; none if there is no x.
pub fn simple_case_conditions(place: Place<'_>) -> Vec<Place<'_>> {
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
///
/// # Safety
/// A node of a tree that outlives the result, or null.
pub(super) unsafe fn subquery<'t, T>(query: *mut T) -> Option<&'t pg_sys::Query> {
    // SAFETY: per contract.
    match unsafe { Place::new(query) }?.node() {
        Node::Query(query) => Some(query),
        _ => None,
    }
}

/// Types and collations of the columns of a set operation.
pub fn set_columns(operation: &pg_sys::SetOperationStmt) -> Vec<(Oid, Oid)> {
    // SAFETY: lists of OIDs, of equal length.
    let [types, collations] =
        unsafe { [lists::oids(operation.colTypes), lists::oids(operation.colCollations)] };
    types.into_iter().zip(collations).collect()
}

/// The outputs a query is grouped by.
pub fn grouping_outputs(query: &pg_sys::Query) -> Vec<Place<'_>> {
    let keys = group_references(query);
    let targets = targets(query).into_iter();
    targets
        .filter(|target| target.ressortgroupref != 0 && keys.contains(&target.ressortgroupref))
        .filter_map(parts::expression)
        .collect()
}

/// Those of them that are neither columns nor constants.
pub fn grouping_keys(query: &pg_sys::Query) -> Vec<Place<'_>> {
    let is_computed =
        |key: &Place<'_>| !matches!(key.node(), Node::Var(_) | Node::Expr(NodeTag::T_Const));
    grouping_outputs(query).into_iter().filter(is_computed).collect()
}

/// Whether only a query can compute it.
pub fn is_leaf(node: Node<'_>) -> bool {
    let is_own = matches!(
        node,
        Node::Var(_)
            | Node::Param(_)
            | Node::Aggref(_)
            | Node::WindowFunc(_)
            | Node::SubLink(_)
            | Node::Expr(NodeTag::T_GroupingFunc)
    );
    is_own || is_set(node)
}

/// Whether it is a call that returns a set.
pub fn is_set(node: Node<'_>) -> bool {
    matches!(node, Node::FuncExpr(call) if call.funcretset)
}

/// Name by which a query refers to a range table entry.
pub fn entry_name(entry: &pg_sys::RangeTblEntry) -> String {
    // SAFETY: every entry has `eref`.
    unsafe { owned((*entry.eref).aliasname) }
}

impl Tree {
    /// A copy of an analysed query.
    pub fn copy_of(query: &pg_sys::Query) -> Tree {
        // SAFETY: a Query that parse analysis has made, which is only read.
        Tree(unsafe { pg_sys::copyObjectImpl(std::ptr::from_ref(query).cast()) }.cast())
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

    /// The query of a view's rule.
    ///
    /// # Safety
    /// An open relation.
    unsafe fn of_rule(relation: pg_sys::Relation) -> Option<Tree> {
        // SAFETY: an open relation; a materialized view has exactly one rule with one action.
        unsafe {
            let rules = (*relation).rd_rules;
            let kind = (*(*relation).rd_rel).relkind as u8;
            if kind != pg_sys::RELKIND_MATVIEW || rules.is_null() || (*rules).numLocks < 1 {
                return None;
            }
            let actions = lists::pointers::<pg_sys::Query>((**(*rules).rules).actions);
            let tree = Tree::copy_of(&**actions.first()?);
            pg_sys::AcquireRewriteLocks(tree.0, true, false);
            Some(tree)
        }
    }

    /// The query with plain views, row-level security, SEARCH and CYCLE expanded for the current user.
    pub fn rewritten(&self) -> Tree {
        // SAFETY: QueryRewrite works on the tree in place; for a SELECT it returns one query.
        let tree = unsafe {
            let list = pg_sys::QueryRewrite(Tree::copy_of(self.query()).0);
            let queries = lists::pointers::<pg_sys::Query>(list);
            Tree(queries.first().copied().unwrap_or(self.0))
        };
        tree.queries().into_iter().for_each(forget_search_and_cycle);
        tree
    }

    /// The same query with GROUP BY where all versions have it: in outputs and HAVING. The tree must be a copy of our own.
    pub fn with_plain_groups(self) -> Tree {
        // Inner ones first: an outer one gets copies of them.
        for query in self.queries().into_iter().rev() {
            // SAFETY: a query of our own copy.
            unsafe { versions::tree::inline_groups(std::ptr::from_ref(query).cast_mut()) };
        }
        self
    }

    pub(super) fn as_node(&self) -> *mut pg_sys::Node {
        self.0.cast()
    }

    /// A tree of our own making.
    ///
    /// # Safety
    /// A complete `Query` that PostgreSQL will not run, in memory that outlives the tree.
    pub(super) unsafe fn from_node(query: *mut pg_sys::Node) -> Tree {
        Tree(query.cast())
    }

    pub fn query(&self) -> &pg_sys::Query {
        // SAFETY: see the type's doc.
        unsafe { &*self.0 }
    }

    /// All queries of the tree, outer ones first, with their range tables complete (views that were
    /// expanded included).
    pub fn queries(&self) -> Vec<&pg_sys::Query> {
        let mut found = Vec::new();
        let mut next = vec![self.query()];
        while let Some(query) = next.pop() {
            next.extend(ctes(query).iter().filter_map(|c| parts::query_of_cte(c)));
            next.extend(range_table(query).iter().filter_map(|e| parts::query_of_entry(e)));
            next.extend(sublinks(query));
            found.push(query);
        }
        found
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
                found.extend(parts::query_of_link(link));
            }
            if !matches!(place.node(), Node::Query(_)) {
                next.extend(place.children());
            }
        }
    }
    found
}

/// The places of a query below which its expressions are.
pub fn expressions(query: &pg_sys::Query) -> Vec<Place<'_>> {
    let mut all = parts::outputs(query);
    let others = [parts::from, parts::having, parts::offset, parts::limit];
    all.extend(others.into_iter().filter_map(|part| part(query)));
    all.extend(parts::offsets_of_frames(query));
    for entry in range_table(query) {
        all.extend(parts::values(entry));
        all.extend(parts::join_columns(entry));
        all.extend(parts::functions(entry));
        all.extend(parts::document(entry));
    }
    all
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
