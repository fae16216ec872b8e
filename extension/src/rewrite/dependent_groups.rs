//! `GROUP BY` of a key as one of the key and of the columns that depend on it.
//!
//! ```sql
//! SELECT c.id, c.name, sum(o.total) FROM customer c JOIN orders o ON … GROUP BY c.id          -- the primary key
//! SELECT c.id, c.name, sum(o.total) FROM customer c JOIN orders o ON … GROUP BY c.id, c.name
//! ```
//!
//! The rule of a view refers to the key, so PostgreSQL refuses to drop that as long as the view is there.

use crate::pg::{catalog, lists};
use crate::rewrite::nodes;
use crate::rewrite::parts;
use crate::rewrite::tree::{self, expressions, Node, Place, Tree};
use pgrx::pg_sys::{self, NodeTag, Oid};

impl Tree {
    /// Has queries group by all columns that they use of what they group by a key of. Those without an equality, those of
    /// grouping sets, and those of tables with children, whose rows may have the same key, are left as they are. The tree must be a copy of our own, without whole rows.
    pub fn with_dependent_groups(self) -> Tree {
        for query in self.queries() {
            let has_key = !query.constraintDeps.is_null() && !query.groupClause.is_null();
            if has_key && query.groupingSets.is_null() && !has_parent(query) {
                let keys = tree::grouping_outputs(query);
                let mut found = Vec::new();
                let parts = parts::outputs(query).into_iter().chain(parts::having(query));
                parts.for_each(|place| collect(place, 0, &keys, &mut found));
                // SAFETY: a query of our own copy.
                unsafe {
                    let added: Vec<bool> = found.iter().map(|var| group_by(query, var)).collect();
                    if added.into_iter().all(|is_added| is_added) {
                        let query = std::ptr::from_ref(query).cast_mut();
                        (*query).constraintDeps = std::ptr::null_mut();
                    }
                }
            }
        }
        self
    }
}

/// Whether a query reads a table together with its children.
fn has_parent(query: &pg_sys::Query) -> bool {
    tree::range_table(query).into_iter().any(|entry| {
        entry.rtekind == pg_sys::RTEKind::RTE_RELATION
            && entry.inh
            && catalog::relation_kind(entry.relid) == Some(pg_sys::RELKIND_RELATION)
            && catalog::with_descendants(entry.relid).len() > 1
    })
}

/// Adds the columns of the query `level` further out that an expression uses outside of aggregates and keys.
fn collect<'t>(place: Place<'t>, level: u32, keys: &[Place<'t>], found: &mut Vec<&'t pg_sys::Var>) {
    if level == 0 && keys.iter().any(|key| key.equals(place)) {
        return;
    }
    match place.node() {
        Node::Var(var) if var.varlevelsup == level => {
            let is_same =
                |other: &pg_sys::Var| (other.varno, other.varattno) == (var.varno, var.varattno);
            let is_key = |key: &Place<'_>| matches!(key.node(), Node::Var(key) if is_same(key));
            if !keys.iter().any(is_key) && !found.iter().any(|other| is_same(other)) {
                found.push(var);
            }
        }
        Node::Aggref(aggregate) if aggregate.agglevelsup == level => {}
        Node::Query(query) => collect_within(query, level + 1, keys, found),
        _ => place.children().into_iter().for_each(|child| collect(child, level, keys, found)),
    }
}

fn collect_within<'t>(
    query: &'t pg_sys::Query,
    level: u32,
    keys: &[Place<'t>],
    found: &mut Vec<&'t pg_sys::Var>,
) {
    expressions(query).into_iter().for_each(|place| collect(place, level, keys, found));
    let ctes = tree::ctes(query).into_iter().filter_map(|cte| parts::query_of_cte(cte));
    let entries = tree::range_table(query).into_iter();
    let within = ctes.chain(entries.filter_map(|entry| parts::query_of_entry(entry)));
    within.for_each(|query| collect_within(query, level + 1, keys, found));
}

/// Adds a column to what a query is grouped by, if it has an equality; answers whether it has.
///
/// # Safety
/// A query of a copy that nobody else looks at.
unsafe fn group_by(query: *const pg_sys::Query, var: &pg_sys::Var) -> bool {
    let query = query.cast_mut();
    let (mut equality, mut less, mut can_hash) = (Oid::INVALID, Oid::INVALID, false);
    // SAFETY: per contract; new nodes.
    unsafe {
        let none = std::ptr::null_mut();
        pg_sys::get_sort_group_operators(
            var.vartype,
            false,
            false,
            false,
            &mut less,
            &mut equality,
            none,
            &mut can_hash,
        );
        if equality == Oid::INVALID {
            return false;
        }
        let targets = lists::pointers::<pg_sys::TargetEntry>((*query).targetList);
        let last = targets.iter().map(|target| (**target).ressortgroupref).max().unwrap_or(0);
        let column = pg_sys::copyObjectImpl(std::ptr::from_ref(var).cast()).cast::<pg_sys::Var>();
        (*column).varlevelsup = 0;
        let is_it = |target: &&*mut pg_sys::TargetEntry| {
            pg_sys::equal((***target).expr.cast(), column.cast())
        };
        let target = match targets.iter().find(is_it) {
            Some(target) => *target,
            None => {
                let number = targets.len() as i16 + 1;
                let target = pg_sys::makeTargetEntry(column.cast(), number, none.cast(), true);
                (*query).targetList = pg_sys::lappend((*query).targetList, target.cast());
                target
            }
        };
        if (*target).ressortgroupref == 0 {
            (*target).ressortgroupref = last + 1;
        }
        let clause: *mut pg_sys::SortGroupClause = nodes::new(NodeTag::T_SortGroupClause);
        (*clause).tleSortGroupRef = (*target).ressortgroupref;
        (*clause).eqop = equality;
        (*clause).sortop = less;
        (*clause).hashable = can_hash;
        (*query).groupClause = pg_sys::lappend((*query).groupClause, clause.cast());
        true
    }
}
