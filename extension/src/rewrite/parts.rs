//! What is below the nodes of a tree, by name. A reference to a node stands for its tree: whatever the node points to is of
//! the same tree, and lives as long. So no raw pointer leaves this folder.

use crate::pg::lists;
use crate::pg::strings::owned;
use crate::pg::types;
use crate::rewrite::tree::{self, Node, Place};
use pgrx::pg_sys::{self, Oid};

/// A call of a function, an operator or an aggregate.
pub trait Call {
    /// Its arguments; of an aggregate, without what it is only sorted by.
    fn arguments(&self) -> Vec<Place<'_>>;
}

macro_rules! calls {
    ($($node:ident)*) => {
        $(impl Call for pg_sys::$node {
            fn arguments(&self) -> Vec<Place<'_>> {
                // SAFETY: the list is a part of this node.
                unsafe { tree::arguments(self.args) }
            }
        })*
    };
}

calls!(FuncExpr OpExpr ScalarArrayOpExpr MinMaxExpr Aggref WindowFunc);

/// Parts that a node has or has not.
macro_rules! optional {
    ($($(#[$doc:meta])* $name:ident: $node:ident.$field:ident;)*) => {
        $($(#[$doc])*
        pub fn $name(node: &pg_sys::$node) -> Option<Place<'_>> {
            // SAFETY: the place is a part of this node.
            unsafe { tree::place(node.$field) }
        })*
    };
}

optional! {
    /// LIMIT
    limit: Query.limitCount;
    /// OFFSET
    offset: Query.limitOffset;
    /// FROM and WHERE
    from: Query.jointree;
    /// The tree of set operations.
    set_operation: Query.setOperations;
    /// HAVING
    having: Query.havingQual;
    /// What a value is compared with the rows of a subquery by.
    test: SubLink.testexpr;
    /// WHERE
    conditions: FromExpr.quals;
    /// ON, or what USING stands for.
    join_condition: JoinExpr.quals;
    /// The left side of a join.
    left_side: JoinExpr.larg;
    /// The right side of a join.
    right_side: JoinExpr.rarg;
    /// XMLTABLE and JSON_TABLE
    document: RangeTblEntry.tablefunc;
    /// What an output is computed by.
    expression: TargetEntry.expr;
    /// What is cast.
    operand: CoerceViaIO.arg;
}

/// Parts that are lists.
macro_rules! lists {
    ($($(#[$doc:meta])* $name:ident: $node:ident.$field:ident;)*) => {
        $($(#[$doc])*
        pub fn $name(node: &pg_sys::$node) -> Vec<Place<'_>> {
            // SAFETY: the list is a part of this node.
            unsafe { tree::places(node.$field) }
        })*
    };
}

lists! {
    /// The outputs, with those that only clauses refer to.
    outputs: Query.targetList;
    /// The items of FROM.
    items: FromExpr.fromlist;
    /// The rows of VALUES.
    values: RangeTblEntry.values_lists;
    /// The functions of an item of FROM.
    functions: RangeTblEntry.functions;
    /// The arguments of an ordered-set aggregate that are the same for all rows.
    direct_arguments: Aggref.aggdirectargs;
    /// The columns of a join as those of its sides, merged ones first.
    join_columns: RangeTblEntry.joinaliasvars;
}

/// Parts that are queries.
macro_rules! queries {
    ($($(#[$doc:meta])* $name:ident: $node:ident.$field:ident;)*) => {
        $($(#[$doc])*
        pub fn $name(node: &pg_sys::$node) -> Option<&pg_sys::Query> {
            // SAFETY: the query is a part of this node, and lives as long.
            unsafe { tree::subquery(node.$field) }
        })*
    };
}

queries! {
    /// The query of WITH.
    query_of_cte: CommonTableExpr.ctequery;
    /// The subquery of FROM.
    query_of_entry: RangeTblEntry.subquery;
    /// The subquery of an expression.
    query_of_link: SubLink.subselect;
}

/// Both sides of a join.
pub fn sides(join: &pg_sys::JoinExpr) -> Vec<Place<'_>> {
    [left_side(join), right_side(join)].into_iter().flatten().collect()
}

/// Both sides of a set operation.
pub fn sides_of_set(set: &pg_sys::SetOperationStmt) -> Vec<Place<'_>> {
    // SAFETY: parts of this node.
    [set.larg, set.rarg].into_iter().filter_map(|side| unsafe { tree::place(side) }).collect()
}

/// How far the frames of all windows of a query reach, where that is said.
pub fn offsets_of_frames(query: &pg_sys::Query) -> Vec<Place<'_>> {
    // SAFETY: the list holds windows, parts of this node.
    let windows = unsafe { crate::pg::lists::pointers::<pg_sys::WindowClause>(query.windowClause) };
    // SAFETY: as above.
    windows.into_iter().flat_map(|window| frame_offsets(unsafe { &*window })).collect()
}

/// How far the frames of a window reach, where that is said.
pub fn frame_offsets(window: &pg_sys::WindowClause) -> Vec<Place<'_>> {
    let offsets = [window.startOffset, window.endOffset].into_iter();
    // SAFETY: parts of this node.
    offsets.filter_map(|offset| unsafe { tree::place(offset) }).collect()
}

/// What a CASE may be: the results of its branches and the one otherwise.
pub fn results(case: Place<'_>) -> Vec<Place<'_>> {
    // SAFETY: called for a CaseExpr, whose list holds branches.
    unsafe {
        let case = case.0.cast::<pg_sys::CaseExpr>();
        let branches = crate::pg::lists::pointers::<pg_sys::CaseWhen>((*case).args);
        let results = branches.into_iter().map(|branch| (*branch).result);
        results.chain([(*case).defresult]).filter_map(|result| tree::place(result)).collect()
    }
}

/// Whether a constant is NULL.
pub fn is_null(constant: Place<'_>) -> bool {
    // SAFETY: called for a Const.
    unsafe { (*constant.0.cast::<pg_sys::Const>()).constisnull }
}

/// The text of a constant of a text type; `None` for any other expression, and for NULL.
pub fn text_of_constant(place: Place<'_>) -> Option<String> {
    let is_constant = matches!(place.node(), Node::Expr(pg_sys::NodeTag::T_Const));
    if !is_constant || is_null(place) || !types::is_text(place.expr_type()) {
        return None;
    }
    // SAFETY: a constant of a text type that is not NULL; its output function answers with a palloc'd string.
    unsafe {
        let value = (*place.0.cast::<pg_sys::Const>()).constvalue;
        let (output, _) = types::io_functions(place.expr_type());
        Some(owned(pg_sys::OidOutputFunctionCall(output, value)))
    }
}

/// The name of a common table expression.
pub fn name_of_cte(cte: &pg_sys::CommonTableExpr) -> String {
    // SAFETY: a CTE has a name.
    unsafe { owned(cte.ctename) }
}

/// The columns of a common table expression, with their types.
pub fn columns_of_cte(cte: &pg_sys::CommonTableExpr) -> Vec<(String, Oid)> {
    // SAFETY: lists of an analysed query, of equal length.
    unsafe {
        let names = lists::pointers::<pg_sys::String>(cte.ctecolnames);
        let names =
            names.into_iter().map(|name| owned(pg_sys::quote_identifier((*name).sval).cast_mut()));
        names.zip(lists::oids(cte.ctecoltypes)).collect()
    }
}
