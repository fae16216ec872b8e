//! The ORDER BY and WINDOW clauses of analysed queries and aggregates.
//!
//! ```sql
//! sum(a) OVER (ORDER BY at RANGE BETWEEN interval '1 hour' PRECEDING AND CURRENT ROW)
//! sum(a) OVER (ORDER BY at RANGE BETWEEN 3600000000 PRECEDING AND CURRENT ROW)
//!
//! sum(a) OVER (ORDER BY at RANGE BETWEEN interval '1 month' PRECEDING AND CURRENT ROW)
//! sum(a) OVER (ORDER BY at RANGE BETWEEN at - interval '1 month' PRECEDING AND CURRENT ROW)
//! ```
//!
//! The last one is no SQL of PostgreSQL's: what has no fixed length is told to the planner by where it ends.

use crate::pg::catalog;
use crate::pg::lists;
use crate::pg::strings::owned;
use crate::pg::types;
use crate::rewrite::nodes;
use crate::rewrite::parts;
use crate::rewrite::tree::{self, Node, Place, Tree};
use pgrx::pg_sys::{self, Oid};

/// The windows of a query.
pub fn of(query: &pg_sys::Query) -> Vec<&pg_sys::WindowClause> {
    // SAFETY: the list holds window clauses, valid as long as the tree.
    unsafe {
        let list = lists::pointers::<pg_sys::WindowClause>(query.windowClause);
        list.into_iter().map(|window| &*window).collect()
    }
}

/// Whether the text of an ORDER BY would mean another output than the expression it is: the merged column of a
/// FULL JOIN has no qualified name, and another output may have its name.
pub fn is_captured(query: &pg_sys::Query, place: Place<'_>) -> bool {
    let Node::Var(var) = place.node() else { return false };
    let entry = tree::entry(&tree::range_table(query), var.varno);
    let Some(entry) = entry.filter(|entry| entry.rtekind == pg_sys::RTEKind::RTE_JOIN) else {
        return false;
    };
    let Some(name) = column_name(entry, var.varattno) else { return false };
    let is_other = |target: &pg_sys::TargetEntry| {
        parts::expression(target).is_some_and(|output| !output.equals(place))
    };
    let mut targets = tree::targets(query).into_iter();
    // SAFETY: names inside trees are C strings.
    let is_named = |target: &pg_sys::TargetEntry| unsafe { owned(target.resname) } == name;
    targets.any(|target| !target.resjunk && is_named(target) && is_other(target))
}

/// The name of a column of an entry of the range table.
fn column_name(entry: &pg_sys::RangeTblEntry, number: i16) -> Option<String> {
    // SAFETY: every entry has `eref`; the names in it are C strings.
    unsafe {
        let names = lists::pointers::<pg_sys::String>((*entry.eref).colnames);
        let name = names.get(usize::try_from(number).ok()?.checked_sub(1)?)?;
        Some(owned((**name).sval))
    }
}

/// What a query sorts by: expressions, each with its operator.
pub fn order_of(query: &pg_sys::Query) -> Vec<(Place<'_>, Oid)> {
    // SAFETY: lists of one query.
    unsafe { items(query.targetList, query.sortClause, |item| item.sortop) }
}

/// What a window of a query sorts by.
pub fn order_of_window<'t>(
    query: &'t pg_sys::Query,
    window: &pg_sys::WindowClause,
) -> Vec<(Place<'t>, Oid)> {
    // SAFETY: lists of one query.
    unsafe { items(query.targetList, window.orderClause, |item| item.sortop) }
}

/// What an aggregate sorts by.
pub fn order_of_aggregate(aggregate: &pg_sys::Aggref) -> Vec<(Place<'_>, Oid)> {
    // SAFETY: lists of one aggregate.
    unsafe { items(aggregate.args, aggregate.aggorder, |item| item.sortop) }
}

/// What a query groups by: expressions, each with its equality.
pub fn groups_of(query: &pg_sys::Query) -> Vec<(Place<'_>, Oid)> {
    // SAFETY: lists of one query.
    unsafe { items(query.targetList, query.groupClause, |item| item.eqop) }
}

/// By what the rows of a query are distinct.
pub fn distinct_of(query: &pg_sys::Query) -> Vec<(Place<'_>, Oid)> {
    // SAFETY: lists of one query.
    unsafe { items(query.targetList, query.distinctClause, |item| item.eqop) }
}

/// By what a window of a query divides rows.
pub fn partition_of<'t>(
    query: &'t pg_sys::Query,
    window: &pg_sys::WindowClause,
) -> Vec<(Place<'t>, Oid)> {
    // SAFETY: lists of one query.
    unsafe { items(query.targetList, window.partitionClause, |item| item.eqop) }
}

/// By what the values of an aggregate are distinct.
pub fn distinct_of_aggregate(aggregate: &pg_sys::Aggref) -> Vec<(Place<'_>, Oid)> {
    // SAFETY: lists of one aggregate.
    unsafe { items(aggregate.args, aggregate.aggdistinct, |item| item.eqop) }
}

/// The expressions among `targets` that a clause names.
///
/// # Safety
/// Both lists must be of one query or aggregate, which lives as long as `'t`.
unsafe fn items<'t>(
    targets: *mut pg_sys::List,
    clause: *mut pg_sys::List,
    operator: impl Fn(&pg_sys::SortGroupClause) -> Oid,
) -> Vec<(Place<'t>, Oid)> {
    // SAFETY: the lists are of one query or aggregate; each clause refers to a target.
    unsafe {
        let list = lists::pointers::<pg_sys::SortGroupClause>(clause);
        let item = |item: *mut pg_sys::SortGroupClause| {
            let target = pg_sys::get_sortgroupclause_tle(item, targets);
            Some((tree::place((*target).expr)?, operator(&*item)))
        };
        list.into_iter().filter_map(item).collect()
    }
}

/// The moment, or the interval, that is an offset before or after what a window sorts by; `None` if the offset has a fixed
/// length, or none that can be.
fn reach(
    query: &pg_sys::Query,
    window: &pg_sys::WindowClause,
    offset: *mut pg_sys::Node,
    preceding: u32,
) -> Option<*mut pg_sys::Node> {
    use pg_sys::{DATEOID, INTERVALOID, TIMESTAMPOID, TIMESTAMPTZOID};
    // SAFETY: null, or a part of the window.
    let place = unsafe { tree::place(offset)? };
    let [(sorted, operator)] = order_of_window(query, window).try_into().ok()?;
    tree::interval(place).filter(|interval| !is_negative(interval))?;
    let is_down = types::is_descending(operator, sorted.expr_type());
    let subtracts = (window.frameOptions as u32 & preceding != 0) != is_down;
    let ty = types::base_type(sorted.expr_type());
    let has_length = match ty {
        TIMESTAMPTZOID => microseconds(place, 0).is_some(),
        DATEOID | TIMESTAMPOID => microseconds(place, DAY).is_some(),
        INTERVALOID => false,
        _ => true,
    };
    if has_length {
        return None;
    }
    let (function, result) = match (ty, subtracts) {
        (TIMESTAMPTZOID, true) => (pg_sys::F_TIMESTAMPTZ_MI_INTERVAL, TIMESTAMPTZOID),
        (TIMESTAMPTZOID, false) => (pg_sys::F_TIMESTAMPTZ_PL_INTERVAL, TIMESTAMPTZOID),
        (TIMESTAMPOID, true) => (pg_sys::F_TIMESTAMP_MI_INTERVAL, TIMESTAMPOID),
        (TIMESTAMPOID, false) => (pg_sys::F_TIMESTAMP_PL_INTERVAL, TIMESTAMPOID),
        (DATEOID, true) => (pg_sys::F_DATE_MI_INTERVAL, TIMESTAMPOID),
        (DATEOID, false) => (pg_sys::F_DATE_PL_INTERVAL, TIMESTAMPOID),
        (_, true) => (pg_sys::F_INTERVAL_MI, INTERVALOID),
        (_, false) => (pg_sys::F_INTERVAL_PL, INTERVALOID),
    };
    // SAFETY: copies of nodes of the tree.
    unsafe {
        let copies = [sorted.0, offset].map(|node| pg_sys::copyObjectImpl(node.cast()));
        let args = nodes::list(copies.into_iter());
        Some(nodes::call(Oid::from(function), args, (result, Oid::INVALID)).cast())
    }
}

/// Whether the bound of a frame is a moment, or an interval, to which it reaches.
pub fn is_reach(offset: Place<'_>) -> bool {
    matches!(offset.node(), Node::FuncExpr(call) if MOVES.contains(&call.funcid.to_u32()))
}

/// The functions that add intervals and subtract them.
const MOVES: [u32; 8] = [
    pg_sys::F_TIMESTAMPTZ_MI_INTERVAL,
    pg_sys::F_TIMESTAMPTZ_PL_INTERVAL,
    pg_sys::F_TIMESTAMP_MI_INTERVAL,
    pg_sys::F_TIMESTAMP_PL_INTERVAL,
    pg_sys::F_DATE_MI_INTERVAL,
    pg_sys::F_DATE_PL_INTERVAL,
    pg_sys::F_INTERVAL_MI,
    pg_sys::F_INTERVAL_PL,
];

/// As PostgreSQL compares intervals: months have 30 days, days 24 hours.
fn is_negative(interval: &pg_sys::Interval) -> bool {
    let days = i128::from(interval.month) * 30 + i128::from(interval.day);
    days * i128::from(DAY) + i128::from(interval.time) < 0
}

/// Microseconds of a day, where all have 24 hours.
pub const DAY: i64 = 86_400_000_000;

/// What a constant interval has in microseconds, a day having so many; `None` if it has months, or days where these
/// have no length (0), or if it is no constant.
pub fn microseconds(place: Place<'_>, day: i64) -> Option<i64> {
    let interval = tree::interval(place)?;
    if interval.month != 0 || (day == 0 && interval.day != 0) {
        return None;
    }
    i64::from(interval.day).checked_mul(day)?.checked_add(interval.time)
}

impl Tree {
    /// Calls window functions that users have given other names by their own. The tree must be a copy of our own.
    pub fn with_own_window_functions(self) -> Tree {
        self.each_expression(&|place: Place<'_>| {
            let Node::WindowFunc(call) = place.node() else { return };
            if call.winagg || catalog::is_builtin(call.winfnoid) {
                return;
            }
            if let Some(own) = catalog::own_window_function(call.winfnoid) {
                // SAFETY: a call of our own copy.
                unsafe { (*place.0.cast::<pg_sys::WindowFunc>()).winfnoid = own };
            }
        });
        self
    }

    /// Makes every interval without a fixed length that bounds a frame, in a tree that must be a copy of our own, the moment
    /// to which the frame reaches.
    pub fn with_reaches_of_frames(self) -> Tree {
        for query in self.queries() {
            for window in of(query) {
                let reaches = [
                    reach(
                        query,
                        window,
                        window.startOffset,
                        pg_sys::FRAMEOPTION_START_OFFSET_PRECEDING,
                    ),
                    reach(
                        query,
                        window,
                        window.endOffset,
                        pg_sys::FRAMEOPTION_END_OFFSET_PRECEDING,
                    ),
                ];
                let window = std::ptr::from_ref(window).cast_mut();
                // SAFETY: a window of our own copy.
                unsafe {
                    let offsets = [&raw mut (*window).startOffset, &raw mut (*window).endOffset];
                    for (offset, reach) in offsets.into_iter().zip(reaches) {
                        *offset = reach.unwrap_or(*offset);
                    }
                }
            }
        }
        self
    }

    /// Makes every interval that bounds a frame, in a tree that must be a copy of our own, a number of microseconds,
    /// because the planner knows no intervals.
    pub fn with_offsets_in_microseconds(self) -> Tree {
        for query in self.queries() {
            // SAFETY: the list holds window clauses of our own copy.
            unsafe {
                for window in lists::pointers::<pg_sys::WindowClause>(query.windowClause) {
                    for offset in [&raw mut (*window).startOffset, &raw mut (*window).endOffset] {
                        let count = tree::place(*offset).and_then(|place| microseconds(place, DAY));
                        *offset = count.map_or(*offset, |count| nodes::bigint(count).cast());
                    }
                }
            }
        }
        self
    }
}
