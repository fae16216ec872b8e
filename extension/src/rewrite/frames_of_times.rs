//! Frames over times of day, by numbers in the same order.
//!
//! ```sql
//! sum(a) OVER (ORDER BY t.at RANGE '1 hour' PRECEDING)
//! sum(a) OVER (ORDER BY microseconds of t.at RANGE 3600000000 PRECEDING)
//! ```
//!
//! Of an interval only the time counts, and a frame does not reach across midnight. A time with a zone comes after those that
//! are earlier, and among those that are at the same moment after those with a zone further east: its number has so many
//! for each microsecond that all zones have one.

use crate::pg::lists;
use crate::pg::types;
use crate::rewrite::nodes;
use crate::rewrite::tree::{self, Place, Tree};
use crate::rewrite::windows;
use pgrx::pg_sys::{self, NodeTag, Oid};
use std::ffi::CStr;

/// Numbers for each microsecond of a time with a zone, which is less than half of them in seconds.
const ZONES: i64 = 1 << 17;

/// `bigint = bigint`, `<` and `>`.
const INT8_EQUAL: u32 = 410;
const INT8_LESS: u32 = 412;
const INT8_GREATER: u32 = 413;

impl Tree {
    /// Has frames that reach back and forth by intervals from times of day reach by numbers. The tree must be a copy of our
    /// own.
    pub fn with_frames_of_numbers(self) -> Tree {
        for query in self.queries() {
            for window in windows::of(query) {
                let window = std::ptr::from_ref(window).cast_mut();
                // SAFETY: a query of our own copy, and one of its windows.
                unsafe { count(std::ptr::from_ref(query).cast_mut(), window) };
            }
        }
        self
    }
}

/// # Safety
/// A query of a copy that nobody else looks at, and one of its windows.
unsafe fn count(query: *mut pg_sys::Query, window: *mut pg_sys::WindowClause) {
    // SAFETY: per contract; new nodes.
    unsafe {
        let Ok([(sorted, operator)]) =
            <[_; 1]>::try_from(windows::order_of_window(&*query, &*window))
        else {
            return;
        };
        let factor = match types::base_type(sorted.expr_type()) {
            pg_sys::TIMEOID => 1,
            pg_sys::TIMETZOID => ZONES,
            _ => return,
        };
        let Some([start, end]) = offsets(&*window, factor) else { return };
        if start.is_null() && end.is_null() {
            return;
        }
        let targets = lists::pointers::<pg_sys::TargetEntry>((*query).targetList);
        let last = targets.iter().map(|target| (**target).ressortgroupref).max().unwrap_or(0);
        let name = pg_sys::pstrdup(c"number".as_ptr());
        let place = targets.len() as i16 + 1;
        let number = number_of(sorted, factor);
        let target = pg_sys::makeTargetEntry(number.cast(), place, name, true);
        (*target).ressortgroupref = last + 1;
        (*query).targetList = pg_sys::lappend((*query).targetList, target.cast());
        let is_down = types::is_descending(operator, sorted.expr_type());
        let clauses = lists::pointers::<pg_sys::SortGroupClause>((*window).orderClause);
        let clause: *mut pg_sys::SortGroupClause = nodes::new(NodeTag::T_SortGroupClause);
        (*clause).tleSortGroupRef = last + 1;
        (*clause).eqop = Oid::from(INT8_EQUAL);
        (*clause).sortop = Oid::from(if is_down { INT8_GREATER } else { INT8_LESS });
        (*clause).nulls_first = clauses.first().is_some_and(|clause| (**clause).nulls_first);
        (*clause).hashable = true;
        (*window).orderClause = nodes::list([clause].into_iter());
        // What it takes from another window it has itself.
        (*window).refname = std::ptr::null_mut();
        (*window).copiedOrder = false;
        ((*window).startOffset, (*window).endOffset) = (start, end);
    }
}

/// The offsets of a window's frame as numbers; `None` if one is no interval, or a negative one.
fn offsets(window: &pg_sys::WindowClause, factor: i64) -> Option<[*mut pg_sys::Node; 2]> {
    let number = |offset: *mut pg_sys::Node| {
        // SAFETY: null, or a part of the window.
        let Some(place) = (unsafe { tree::place(offset) }) else { return Some(offset) };
        let time = tree::interval(place)?.time;
        (time >= 0).then(|| nodes::bigint(time.saturating_mul(factor)).cast())
    };
    Some([number(window.startOffset)?, number(window.endOffset)?])
}

/// The number of a time of day.
fn number_of(time: Place<'_>, factor: i64) -> *mut pg_sys::Node {
    let extract = match factor {
        1 => pg_sys::F_EXTRACT_TEXT_TIME,
        _ => pg_sys::F_EXTRACT_TEXT_TIMETZ,
    };
    let epoch =
        number(pg_sys::F_NUMERIC_MUL, &[field(extract, c"epoch", time), numeric(1_000_000)]);
    let microseconds = call(pg_sys::F_INT8_NUMERIC, &[epoch], pg_sys::INT8OID);
    if factor == 1 {
        return microseconds;
    }
    let east = field(extract, c"timezone", time);
    let east = call(pg_sys::F_INT8_NUMERIC, &[east], pg_sys::INT8OID);
    let [zones, half] = [factor, factor / 2].map(|value| nodes::bigint(value).cast());
    let moment = call(pg_sys::F_INT8MUL, &[microseconds, zones], pg_sys::INT8OID);
    let west = call(pg_sys::F_INT8MI, &[half, east], pg_sys::INT8OID);
    call(pg_sys::F_INT8PL, &[moment, west], pg_sys::INT8OID)
}

/// `extract(field FROM time)`
fn field(extract: u32, name: &CStr, time: Place<'_>) -> *mut pg_sys::Node {
    // SAFETY: new nodes; a text of a C string; the time is copied.
    unsafe {
        let text = pg_sys::Datum::from(pg_sys::cstring_to_text(name.as_ptr()));
        let collation = pg_sys::DEFAULT_COLLATION_OID;
        let name = pg_sys::makeConst(pg_sys::TEXTOID, -1, collation, -1, text, false, false);
        let time = pg_sys::copyObjectImpl(time.0.cast()).cast();
        number(extract, &[name.cast(), time])
    }
}

fn numeric(value: i64) -> *mut pg_sys::Node {
    number(pg_sys::F_NUMERIC_INT8, &[nodes::bigint(value).cast()])
}

fn number(function: u32, args: &[*mut pg_sys::Node]) -> *mut pg_sys::Node {
    call(function, args, pg_sys::NUMERICOID)
}

fn call(function: u32, args: &[*mut pg_sys::Node], ty: Oid) -> *mut pg_sys::Node {
    // SAFETY: new nodes.
    unsafe {
        let args = nodes::list(args.iter().copied());
        nodes::call(Oid::from(function), args, (ty, Oid::INVALID)).cast()
    }
}
