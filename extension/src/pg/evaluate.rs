//! PostgreSQL's executor at work on single expressions, as the user to whom a view belongs.

use crate::errors::Error;
use crate::pg::code::{self, Kind};
use crate::pg::query::Query;
use crate::pg::sqlstate::SqlState;
use crate::pg::value::{self, type_oid};
use crate::pg::xact::{self, Caught};
use crate::pg::{alarm, present_words, process, view_settings};
use crate::settings;
use pgrx::pg_sys;
use plan::error::DataError;
use plan::row::Row;
use plan::types::Type;
use plan::value::Datum;
use std::cell::Cell;
use std::ffi::{c_int, CString};
use std::time::{Duration, Instant};

/// How long what may pass is waited for, in milliseconds, in all rows of a batch together: a worker has more to do.
const PAUSES: [u64; 4] = [1, 4, 16, 64];

/// What is to be evaluated.
pub struct Code<'a> {
    /// A node tree, as [`crate::pg::code`] writes it.
    pub code: &'a str,
    pub caller: u32,
    /// Types of the arguments.
    pub args: &'a [Type],
    /// Type of the value.
    pub ty: Type,
}

/// How much time evaluating rows may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// One row: what takes longer is its error.
    pub row: Option<Duration>,
    /// All of them together: after that the rest is left to somebody else.
    pub end: Option<Instant>,
}

impl Limits {
    /// Every row is answered, however long all of them take.
    pub fn by_row() -> Limits {
        Limits { row: settings::evaluation_timeout(), end: None }
    }

    /// The time that the next row may take now, and whether that is all that a row may take.
    fn next(&self) -> (Option<Duration>, bool) {
        let left = self.end.map(|end| end.saturating_duration_since(Instant::now()));
        match (self.row, left) {
            (row, None) => (row, true),
            (Some(row), Some(left)) if row <= left => (Some(row), true),
            (_, Some(left)) => (Some(left), false),
        }
    }

    fn is_over(&self) -> bool {
        self.end.is_some_and(|end| end <= Instant::now())
    }
}

/// What one row is worth.
pub type Answer = Result<Datum, DataError>;

thread_local! {
    /// Whether functions of users have run in the transaction, or what they may write has been written.
    static HAS_RUN: Cell<bool> = const { Cell::new(false) };
}

/// Functions of users are about to run in this transaction, and may write; or what is written is read by views for another reason.
pub fn note_run() {
    HAS_RUN.set(true);
}

/// Whether they have run since the last call.
pub fn take_has_run() -> bool {
    HAS_RUN.take()
}

/// Evaluates code for rows of arguments, in a security-restricted operation under the settings of its view; answers as many of them, from the first on, as
/// there is time for. What fails for a row fails for that row only. Needs a transaction with an active snapshot.
pub fn evaluate(code: &Code<'_>, rows: &[Row], limits: &Limits) -> Vec<Answer> {
    let Some((frame, tree)) = code::read(code.code) else {
        let error = DataError::new(SqlState::INTERNAL_ERROR.as_str(), "code of an unknown kind");
        return vec![Err(error); rows.len()];
    };
    let run = |rows: &[Row]| {
        answer_each(rows, limits, |rows, answers| {
            xact::as_user(code.caller.into(), || {
                view_settings::set_for_now(&frame.settings);
                match frame.kind {
                    Kind::Expression => run_expression(code, tree, rows, answers),
                    Kind::From => run_bound(code, (true, tree), rows, answers),
                    Kind::Until => run_bound(code, (false, tree), rows, answers),
                    Kind::Query => run_query(code, tree, rows, answers),
                }
            });
        })
    };
    let mut answers = run(rows);
    present_words::refuse(frame.times, rows, &mut answers, run);
    xact::release_advisory_locks();
    answers
}

/// Runs `work`, which answers rows one after the other, until all have an answer or time is over. What it raises is the
/// answer for the row after those that have one, if it does so again and again where trying again may help; and so is that
/// it takes longer than a row may.
pub fn answer_each(
    rows: &[Row],
    limits: &Limits,
    work: impl Fn(&[Row], &mut Vec<Answer>),
) -> Vec<Answer> {
    note_run();
    let mut answers = Vec::with_capacity(rows.len());
    let mut pauses = PAUSES.iter();
    while answers.len() < rows.len() && !limits.is_over() {
        let before = answers.len();
        let left = &rows[before..];
        let (limit, is_whole) = limits.next();
        let attempt = || xact::in_subtransaction(|| work(left, &mut answers));
        match alarm::within(limit, attempt) {
            Ok(()) => {}
            Err(_) if alarm::take_fired() => {
                // Unless it was the first it has not had all that time for itself.
                if answers.len() == before && is_whole {
                    answers.push(Err(Error::evaluation_timeout().into()));
                }
            }
            // Somebody told this process to stop, not the expression: that is no row's error.
            Err(caught)
                if caught.sqlstate == SqlState::QUERY_CANCELED && process::take_cancel() => {}
            Err(caught) => match pauses.next().filter(|_| caught.may_pass()) {
                Some(pause) => std::thread::sleep(Duration::from_millis(*pause)),
                None => answers.push(Err(caught.into())),
            },
        }
    }
    answers
}

/// Runs `work` in a transaction with a snapshot, that there is or a new one.
pub fn in_transaction<R>(work: impl FnOnce() -> R) -> Result<R, Caught> {
    // SAFETY: reads backend-local state.
    match unsafe { pg_sys::IsTransactionState() } {
        true => Ok(xact::with_new_snapshot(work)),
        false => xact::try_run(work),
    }
}

fn c_string(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

/// An expression ready to be evaluated.
struct Program {
    executor: *mut pg_sys::EState,
    context: *mut pg_sys::ExprContext,
    state: *mut pg_sys::ExprState,
    params: pg_sys::ParamListInfo,
    outer: pg_sys::MemoryContext,
}

impl Program {
    /// Prepares the node tree of an expression over parameters of these types.
    fn start(text: &str, types: &[Type]) -> Program {
        let text = c_string(text);
        // SAFETY: the text is that of an expression without variables; the executor's state lives until it is freed
        // by `end`, or until the subtransaction's abort.
        unsafe {
            let outer = pg_sys::CurrentMemoryContext;
            let executor = pg_sys::CreateExecutorState();
            pg_sys::MemoryContextSwitchTo((*executor).es_query_cxt);
            let node = pg_sys::stringToNode(text.as_ptr()).cast::<pg_sys::Expr>();
            let params = parameters_of(types);
            (*executor).es_param_list_info = params;
            let context = pg_sys::MakePerTupleExprContext(executor);
            let state = pg_sys::ExecInitExprWithParams(pg_sys::expression_planner(node), params);
            Program { executor, context, state, params, outer }
        }
    }

    /// Begins a row: what is allocated from now on lives until the next one.
    fn begin_row(&self) {
        // SAFETY: the context of the expression.
        unsafe {
            pg_sys::MemoryContextReset((*self.context).ecxt_per_tuple_memory);
            pg_sys::MemoryContextSwitchTo((*self.context).ecxt_per_tuple_memory);
        }
    }

    fn set(&self, index: usize, value: &Datum, ty: Type) {
        let written = value::write(value, ty);
        // SAFETY: there is a parameter for each type.
        unsafe { set(self.params, index, written) }
    }

    /// The value; `None` for NULL.
    fn value(&self) -> Option<pg_sys::Datum> {
        let mut is_null = false;
        // SAFETY: the state is that of the expression, all of whose parameters are set.
        let result = unsafe {
            pg_sys::ffi::pg_guard_ffi_boundary(|| match (*self.state).evalfunc {
                Some(evaluate) => evaluate(self.state, self.context, &mut is_null),
                None => pg_sys::Datum::from(0),
            })
        };
        (!is_null).then_some(result)
    }

    fn end(self) {
        // SAFETY: of `start`.
        unsafe {
            pg_sys::MemoryContextSwitchTo(self.outer);
            pg_sys::FreeExecutorState(self.executor);
        }
    }
}

fn run_expression(code: &Code<'_>, text: &str, rows: &[Row], answers: &mut Vec<Answer>) {
    let program = Program::start(text, code.args);
    for row in rows {
        program.begin_row();
        for ((index, value), ty) in row.iter().enumerate().zip(code.args) {
            program.set(index, &value, *ty);
        }
        answers.push(match program.value() {
            None => Ok(Datum::Null),
            // SAFETY: a value of the type, copied before its memory is reset.
            Some(result) => unsafe { value::read(result, code.ty) },
        });
    }
    program.end();
}

/// The present is between these, the years 2020 and 2200, in microseconds since 2000.
pub const PRESENT: std::ops::Range<i64> = 631_152_000_000_000..6_311_433_600_000_000;

/// By how much clocks are put back, in microseconds: then a condition may change, change back, and change again.
const PUT_BACK: [i64; 3] = [1_800_000_000, 3_600_000_000, 7_200_000_000];

/// The instants at which conditions over the present time, their first parameter, change.
fn run_bound(
    code: &Code<'_>,
    (becomes_true, text): (bool, &str),
    rows: &[Row],
    answers: &mut Vec<Answer>,
) {
    let types: Vec<Type> = std::iter::once(code.ty).chain(code.args.iter().copied()).collect();
    let program = Program::start(text, &types);
    // How far the last instant was from the value it was made of: mostly that of the next row is as far.
    let mut distance = 0;
    for row in rows {
        program.begin_row();
        for ((index, value), ty) in row.iter().enumerate().zip(code.args) {
            program.set(index + 1, &value, *ty);
        }
        let has_changed = |now: i64| {
            program.set(0, &Datum::Timestamp(now), code.ty);
            program.value().map(|value| (value.value() & 0xff != 0) == becomes_true)
        };
        let value = row.iter().next().and_then(|value| value.as_timestamp());
        let guess = value.and_then(|value| value.checked_add(distance));
        let instant = instant_of(has_changed, guess);
        if let (Some(value), Some(instant)) = (value, instant.as_timestamp()) {
            distance = instant.saturating_sub(value);
        }
        answers.push(Ok(instant));
    }
    program.end();
}

/// The first microsecond at which a condition has changed; infinite if it never does, or always has. NULL for one that
/// is neither true nor false.
fn instant_of(has_changed: impl Fn(i64) -> Option<bool>, guess: Option<i64>) -> Datum {
    let is_it = |guess: &i64| {
        PRESENT.contains(guess)
            && has_changed(*guess) == Some(true)
            && has_changed(guess - 1) == Some(false)
    };
    let first_of = |instant: i64| {
        let mut earlier = PUT_BACK.iter().map(|by| instant - by);
        Datum::Timestamp(earlier.find(is_it).unwrap_or(instant))
    };
    if let Some(instant) = guess.filter(is_it) {
        return first_of(instant);
    }
    match (has_changed(PRESENT.start), has_changed(PRESENT.end)) {
        (Some(true), _) => Datum::Timestamp(i64::MIN),
        (Some(false), Some(false)) => Datum::Timestamp(i64::MAX),
        (Some(false), Some(true)) => {
            let (mut before, mut after) = (PRESENT.start, PRESENT.end);
            while after - before > 1 {
                let between = before + (after - before) / 2;
                match has_changed(between) {
                    Some(true) => after = between,
                    _ => before = between,
                }
            }
            first_of(after)
        }
        _ => Datum::Null,
    }
}

/// Parameters of these types.
fn parameters_of(types: &[Type]) -> pg_sys::ParamListInfo {
    // SAFETY: a new list with room for that many.
    unsafe {
        let params = pg_sys::makeParamList(types.len() as c_int);
        for (index, ty) in types.iter().enumerate() {
            (*param(params, index)).ptype = pg_sys::Oid::from(type_oid(*ty));
        }
        params
    }
}

/// Sets a parameter.
///
/// # Safety
/// A list with that many parameters.
unsafe fn set(params: pg_sys::ParamListInfo, index: usize, value: Option<pg_sys::Datum>) {
    // SAFETY: the list has room for that many.
    unsafe {
        let param = param(params, index);
        (*param).isnull = value.is_none();
        (*param).value = value.unwrap_or(pg_sys::Datum::from(0));
    }
}

/// A parameter of a list.
///
/// # Safety
/// A list with that many parameters.
unsafe fn param(params: pg_sys::ParamListInfo, index: usize) -> *mut pg_sys::ParamExternData {
    // SAFETY: the list has room for that many.
    unsafe { (*params).params.as_mut_ptr().add(index) }
}

fn run_query(code: &Code<'_>, text: &str, rows: &[Row], answers: &mut Vec<Answer>) {
    let text = c_string(text);
    // SAFETY: the text is that of a query over parameters of these types; memory is given back by row.
    unsafe {
        let tree = pg_sys::stringToNode(text.as_ptr()).cast::<pg_sys::Query>();
        let query = Query::plan(tree, c"".as_ptr());
        let params = parameters_of(code.args);
        let outer = pg_sys::CurrentMemoryContext;
        let row_context = new_context(outer);
        for row in rows {
            pg_sys::MemoryContextReset(row_context);
            pg_sys::MemoryContextSwitchTo(row_context);
            for ((index, value), ty) in row.iter().enumerate().zip(code.args) {
                set(params, index, value::write(&value, *ty));
            }
            answers.push(query.value(params, |value| match value {
                None => Ok(Datum::Null),
                Some(value) => value::read(value, code.ty),
            }));
        }
        pg_sys::MemoryContextSwitchTo(outer);
    }
}

/// A context for what is made of one row.
///
/// # Safety
/// The parent must be a memory context.
unsafe fn new_context(parent: pg_sys::MemoryContext) -> pg_sys::MemoryContext {
    let sizes = [pg_sys::ALLOCSET_SMALL_INITSIZE, pg_sys::ALLOCSET_DEFAULT_MAXSIZE];
    let [initial, largest] = sizes.map(|size| size as usize);
    // SAFETY: deleted with its parent.
    unsafe {
        let name = c"values of a row".as_ptr();
        pg_sys::AllocSetContextCreateInternal(parent, name, 0, initial, largest)
    }
}
