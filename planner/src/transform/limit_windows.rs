//! Keeps only the first rows of each partition below window functions of which a condition asks for low numbers
//! only: `row_number() OVER w <= 3` lets pass the first three rows, `rank() <= 3` these and the peers of the
//! last. Then a change looks at as many rows and not at the whole partition. All functions of the window have to
//! look at nothing but the rows before. Idempotent.
//!
//! ```text
//! Filter [n <= 3]
//!   Partition by (src) order by (dst) to (row_number() AS n)
//!     Get edges (src, dst)
//! ```
//!
//! becomes
//!
//! ```text
//! Filter [n <= 3]
//!   Partition by (src) order by (dst) to (row_number() AS n)
//!     Partition by (src) order by (dst) limit 3
//!       Get edges (src, dst)
//! ```

use crate::error::PlanError;
use crate::ir::{Node, Predicate, Query, Rel};
use plan::expr::Expr;
use plan::func::{Comparison, Func};
use plan::partition::{Count, TopK, WindowCall, WindowFunc, Work};

pub(super) fn apply(query: Query) -> Result<Query, PlanError> {
    Ok(Query { root: walk(query.root), ..query })
}

fn walk(rel: Rel) -> Rel {
    let mut rel = rel.map_children(&mut walk);
    if let Node::Filter { input, predicates } = &mut rel.node {
        limit(input, predicates);
    }
    rel
}

/// Puts a limit below the windows whose rows the predicates are about.
fn limit(rel: &mut Rel, predicates: &[Predicate]) {
    let Node::Partition { input, key, order, work: Work::Window(calls) } = &mut rel.node else {
        return;
    };
    let is_limited = matches!(&input.node, Node::Partition { work: Work::TopK(_), .. });
    if is_limited || !calls.iter().all(|call| looks_back_only(call.func)) {
        return;
    }
    let arity = input.arity();
    let limits = predicates.iter().filter_map(|predicate| top(predicate, arity, calls));
    let Some((limit, with_ties)) = limits.min_by_key(|(limit, _)| *limit) else { return };
    let top = TopK { offset: Count::Fixed(0), limit: Some(Count::Fixed(limit)), with_ties };
    let columns = input.columns.clone();
    let whole = std::mem::replace(input.as_mut(), Rel::unit());
    let node = Node::Partition {
        input: Box::new(whole),
        key: key.clone(),
        order: order.clone(),
        work: Work::TopK(top),
    };
    **input = Rel { columns, node };
}

fn looks_back_only(func: WindowFunc) -> bool {
    matches!(func, WindowFunc::RowNumber | WindowFunc::Rank | WindowFunc::DenseRank)
}

/// How many rows a predicate lets pass at most, and whether the peers of the last one pass, too.
fn top(predicate: &Predicate, arity: usize, calls: &[WindowCall]) -> Option<(u64, bool)> {
    let Expr::Call { func: Func::Compare(comparison, _), args } = predicate.to_expr() else {
        return None;
    };
    let (column, bound, comparison) = match args.as_slice() {
        [Expr::Column(column), Expr::Literal(bound, _)] => (*column, bound, comparison),
        [Expr::Literal(bound, _), Expr::Column(column)] => (*column, bound, comparison.mirrored()),
        _ => return None,
    };
    let with_ties = match calls.get(column.checked_sub(arity)?)?.func {
        WindowFunc::RowNumber => false,
        WindowFunc::Rank => true,
        _ => return None,
    };
    let bound = bound.as_i64()?;
    let last = match comparison {
        Comparison::Le | Comparison::Eq => bound,
        Comparison::Lt => bound.checked_sub(1)?,
        _ => return None,
    };
    Some((u64::try_from(last).unwrap_or(0), with_ties))
}
