//! Comparisons with the rows of a subquery by what only PostgreSQL can compute, as aggregates of their results.
//!
//! ```sql
//! SELECT … WHERE t.a = ANY (SELECT s.b FROM s)
//! SELECT … WHERE (SELECT CASE WHEN bool_or(t.a = c.b) THEN true WHEN bool_or((t.a = c.b) IS NULL) THEN NULL ELSE false END
//!     FROM (SELECT s.b FROM s) AS c)
//! ```

use crate::pg::lists;
use crate::rewrite::nodes;
use crate::rewrite::parts;
use crate::rewrite::tree::{self, expression_tree_mutator, Node, Place, Tree};
use pgrx::pg_sys::{self, NodeTag, Oid, RTEKind, SubLinkType};
use std::ffi::c_void;

impl Tree {
    /// Makes comparisons with ANY and ALL of a subquery, but for those that `is_known`, aggregates. The tree must be a copy of
    /// our own.
    pub fn with_computed_comparisons(self, is_known: &dyn Fn(Place<'_>) -> bool) -> Tree {
        self.each_expression(&|place: Place<'_>| {
            let Node::SubLink(link) = place.node() else { return };
            let is_compared =
                matches!(link.subLinkType, SubLinkType::ANY_SUBLINK | SubLinkType::ALL_SUBLINK);
            let Some(test) = parts::test(link).filter(|_| is_compared) else { return };
            if !is_known(test) && !reads_rows_in_order(test) {
                // SAFETY: a sublink of our own copy.
                unsafe { aggregate(place.0.cast()) };
            }
        });
        self
    }
}

/// Whether an expression has what only the query around can compute, and no subquery of it.
fn reads_rows_in_order(place: Place<'_>) -> bool {
    match place.node() {
        Node::Query(_) => false,
        Node::WindowFunc(_) => true,
        node => tree::is_set(node) || place.children().into_iter().any(reads_rows_in_order),
    }
}

/// # Safety
/// A complete comparison of a copy that nobody else looks at.
unsafe fn aggregate(link: *mut pg_sys::SubLink) {
    // SAFETY: per contract; new nodes.
    unsafe {
        let is_any = (*link).subLinkType == SubLinkType::ANY_SUBLINK;
        let rows: *mut pg_sys::Query = (*link).subselect.cast();
        let names = names_of(rows);
        // Both are one level further down now.
        pg_sys::IncrementVarSublevelsUp(rows.cast(), 1, 1);
        pg_sys::IncrementVarSublevelsUp((*link).testexpr, 1, 0);
        let test = || {
            let none = std::ptr::null_mut();
            pg_sys::ffi::pg_guard_ffi_boundary(|| over_columns((*link).testexpr, none))
        };
        let decisive = if is_any { test() } else { negation(test()) };
        let branches = [
            (bool_or(decisive), pg_sys::makeBoolConst(is_any, false)),
            (bool_or(is_null(test())), pg_sys::makeBoolConst(false, true)),
        ];
        let value = case(branches, pg_sys::makeBoolConst(!is_any, false));
        let entry: *mut pg_sys::RangeTblEntry = nodes::new(NodeTag::T_RangeTblEntry);
        (*entry).rtekind = RTEKind::RTE_SUBQUERY;
        (*entry).subquery = rows;
        (*entry).alias = pg_sys::makeAlias(c"compared".as_ptr(), std::ptr::null_mut());
        (*entry).eref = pg_sys::makeAlias(c"compared".as_ptr(), names);
        (*entry).inFromCl = true;
        let name = pg_sys::pstrdup(c"compared".as_ptr());
        let target = pg_sys::makeTargetEntry(value.cast(), 1, name, false);
        let query = nodes::selection(nodes::list([target].into_iter()), entry);
        (*query).hasAggs = true;
        (*query).hasSubLinks = pg_sys::checkExprHasSubLink(value);
        (*link).subLinkType = SubLinkType::EXPR_SUBLINK;
        (*link).testexpr = std::ptr::null_mut();
        (*link).operName = std::ptr::null_mut();
        (*link).subselect = query.cast();
    }
}

/// The names of a query's columns.
///
/// # Safety
/// A complete query, whose columns have names.
unsafe fn names_of(query: *mut pg_sys::Query) -> *mut pg_sys::List {
    // SAFETY: per contract.
    unsafe {
        let targets = lists::pointers::<pg_sys::TargetEntry>((*query).targetList);
        let shown = targets.into_iter().filter(|target| !(**target).resjunk);
        nodes::list(shown.map(|target| pg_sys::makeString((*target).resname)))
    }
}

/// A copy of a comparison with columns of the only item of FROM in the places of those of the subquery.
///
/// # Safety
/// For PostgreSQL's mutator to call, without an argument.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn over_columns(
    node: *mut pg_sys::Node,
    arg: *mut c_void,
) -> *mut pg_sys::Node {
    // SAFETY: tags decide types; null is a missing part of a node. No frame has destructors.
    unsafe {
        if node.is_null() {
            return node;
        }
        match (*node).type_ {
            // It has columns of its own.
            NodeTag::T_SubLink => pg_sys::copyObjectImpl(node.cast()).cast(),
            NodeTag::T_Param => {
                let param = &*node.cast::<pg_sys::Param>();
                let (ty, typmod, collation) =
                    (param.paramtype, param.paramtypmod, param.paramcollid);
                let number = param.paramid as pg_sys::AttrNumber;
                pg_sys::makeVar(1, number, ty, typmod, collation, 0).cast()
            }
            _ => expression_tree_mutator(node, over_columns, arg),
        }
    }
}

/// `NOT node`
///
/// # Safety
/// A complete node, which becomes part of the result.
unsafe fn negation(node: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: new nodes.
    unsafe {
        let args = nodes::list([node].into_iter());
        pg_sys::makeBoolExpr(pg_sys::BoolExprType::NOT_EXPR, args, -1).cast()
    }
}

/// `node IS NULL`
///
/// # Safety
/// As above.
unsafe fn is_null(node: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: a new node.
    unsafe {
        let test: *mut pg_sys::NullTest = nodes::new(NodeTag::T_NullTest);
        (*test).arg = node.cast();
        (*test).nulltesttype = pg_sys::NullTestType::IS_NULL;
        (*test).location = -1;
        test.cast()
    }
}

/// `bool_or(node)`
///
/// # Safety
/// As above.
unsafe fn bool_or(node: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: new nodes.
    unsafe {
        let target = pg_sys::makeTargetEntry(node.cast(), 1, std::ptr::null_mut(), false);
        let call: *mut pg_sys::Aggref = nodes::new(NodeTag::T_Aggref);
        (*call).aggfnoid = Oid::from(pg_sys::F_BOOL_OR);
        (*call).aggtype = pg_sys::BOOLOID;
        (*call).aggargtypes = pg_sys::lappend_oid(std::ptr::null_mut(), pg_sys::BOOLOID);
        (*call).args = nodes::list([target].into_iter());
        (*call).aggkind = b'n' as _;
        (*call).aggno = -1;
        (*call).aggtransno = -1;
        (*call).location = -1;
        call.cast()
    }
}

/// `CASE WHEN … THEN … WHEN … THEN … ELSE … END`, of booleans.
///
/// # Safety
/// As above.
unsafe fn case(
    branches: [(*mut pg_sys::Node, *mut pg_sys::Node); 2],
    otherwise: *mut pg_sys::Node,
) -> *mut pg_sys::Node {
    // SAFETY: new nodes.
    unsafe {
        let branch = |(condition, result): (*mut pg_sys::Node, *mut pg_sys::Node)| {
            let branch: *mut pg_sys::CaseWhen = nodes::new(NodeTag::T_CaseWhen);
            (*branch).expr = condition.cast();
            (*branch).result = result.cast();
            (*branch).location = -1;
            branch
        };
        let case: *mut pg_sys::CaseExpr = nodes::new(NodeTag::T_CaseExpr);
        (*case).casetype = pg_sys::BOOLOID;
        (*case).args = nodes::list(branches.into_iter().map(branch));
        (*case).defresult = otherwise.cast();
        (*case).location = -1;
        case.cast()
    }
}
