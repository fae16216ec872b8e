//! PostgreSQL's executor at work on single expressions, as the user to whom a view belongs.

use crate::pg::host_calls::EXPRESSION;
use crate::pg::value::{self, type_oid};
use crate::pg::xact::{self, Caught};
use pgrx::pg_sys;
use planner::error::DataError;
use planner::row::Row;
use planner::types::Type;
use planner::value::Datum;
use std::ffi::{c_char, c_int, CString};

/// SQLSTATE of a call that was told to stop.
const QUERY_CANCELED: &str = "57014";

/// What is to be evaluated.
pub struct Code<'a> {
    /// As [`crate::pg::host_calls`] made it.
    pub code: &'a str,
    /// As whom.
    pub caller: u32,
    /// Types of the arguments.
    pub args: &'a [Type],
    /// Type of the value.
    pub ty: Type,
}

/// Evaluates code for rows of arguments, in a security-restricted operation. What fails for a row fails for that row
/// only; `Err` is what trying again may mend. Needs a transaction with an active snapshot.
pub fn evaluate(code: &Code<'_>, rows: &[Row]) -> Result<Vec<Result<Datum, DataError>>, Caught> {
    let mut answers = Vec::with_capacity(rows.len());
    while answers.len() < rows.len() {
        let done = answers.len();
        let attempt = xact::in_subtransaction(|| {
            xact::as_user(code.caller, || match code.code.split_at(1) {
                (kind, text) if kind.starts_with(EXPRESSION) => {
                    run_expression(code, text, &rows[done..], &mut answers);
                }
                (_, text) => run_query(code, text, &rows[done..], &mut answers),
            });
        });
        match attempt {
            Ok(()) => {}
            // An order to stop, not what a function made of a row.
            Err(caught) if caught.sqlstate == QUERY_CANCELED => return Err(caught),
            // The row after those that have an answer.
            Err(Caught { sqlstate, message }) => answers.push(Err(DataError { sqlstate, message })),
        }
    }
    Ok(answers)
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

fn run_expression(
    code: &Code<'_>,
    text: &str,
    rows: &[Row],
    answers: &mut Vec<Result<Datum, DataError>>,
) {
    let text = c_string(text);
    // SAFETY: the text is that of an expression without variables; the executor's state lives until it is freed
    // here, or until the subtransaction's abort; values are allocated in memory that each row resets, from which
    // results are copied.
    unsafe {
        let outer = pg_sys::CurrentMemoryContext;
        let executor = pg_sys::CreateExecutorState();
        pg_sys::MemoryContextSwitchTo((*executor).es_query_cxt);
        let node = pg_sys::stringToNode(text.as_ptr()).cast::<pg_sys::Expr>();
        let count = code.args.len();
        let params = pg_sys::makeParamList(count as c_int);
        for (index, ty) in code.args.iter().enumerate() {
            (*param(params, index)).ptype = pg_sys::Oid::from(type_oid(*ty));
        }
        (*executor).es_param_list_info = params;
        let context = pg_sys::MakePerTupleExprContext(executor);
        let state = pg_sys::ExecInitExprWithParams(pg_sys::expression_planner(node), params);
        for row in rows {
            pg_sys::MemoryContextReset((*context).ecxt_per_tuple_memory);
            pg_sys::MemoryContextSwitchTo((*context).ecxt_per_tuple_memory);
            for (index, value) in row.iter().enumerate().take(count) {
                let written = value::write(&value, code.args[index]);
                let param = param(params, index);
                (*param).isnull = written.is_none();
                (*param).value = written.unwrap_or(pg_sys::Datum::from(0));
            }
            let mut is_null = false;
            let result = pg_sys::ffi::pg_guard_ffi_boundary(|| match (*state).evalfunc {
                Some(evaluate) => evaluate(state, context, &mut is_null),
                None => pg_sys::Datum::from(0),
            });
            answers.push(match is_null {
                true => Ok(Datum::Null),
                false => value::read(result, code.ty),
            });
            pg_sys::MemoryContextSwitchTo((*executor).es_query_cxt);
        }
        pg_sys::MemoryContextSwitchTo(outer);
        pg_sys::FreeExecutorState(executor);
    }
}

unsafe fn param(params: pg_sys::ParamListInfo, index: usize) -> *mut pg_sys::ParamExternData {
    // SAFETY: the list has room for that many.
    unsafe { (*params).params.as_mut_ptr().add(index) }
}

fn run_query(
    code: &Code<'_>,
    text: &str,
    rows: &[Row],
    answers: &mut Vec<Result<Datum, DataError>>,
) {
    let text = c_string(text);
    let mut types: Vec<pg_sys::Oid> =
        code.args.iter().map(|ty| pg_sys::Oid::from(type_oid(*ty))).collect();
    // SAFETY: connected and finished in pairs, or undone by the subtransaction's abort; each list has an element for
    // each argument.
    unsafe {
        pg_sys::SPI_connect();
        let plan = pg_sys::SPI_prepare(text.as_ptr(), types.len() as c_int, types.as_mut_ptr());
        for row in rows {
            let written: Vec<Option<pg_sys::Datum>> =
                row.iter().zip(code.args).map(|(value, ty)| value::write(&value, *ty)).collect();
            let nulls: Vec<c_char> =
                written.iter().map(|v| if v.is_none() { b'n' } else { b' ' } as c_char).collect();
            let mut values: Vec<pg_sys::Datum> =
                written.into_iter().map(|v| v.unwrap_or(pg_sys::Datum::from(0))).collect();
            pg_sys::SPI_execute_plan(plan, values.as_mut_ptr(), nulls.as_ptr(), true, 1);
            answers.push(first_value(code.ty));
            pg_sys::SPI_freetuptable(pg_sys::SPI_tuptable);
        }
        pg_sys::SPI_finish();
    }
}

/// The only value that the last query returned.
unsafe fn first_value(ty: Type) -> Result<Datum, DataError> {
    // SAFETY: the query's rows are there until they are freed.
    unsafe {
        let table = pg_sys::SPI_tuptable;
        if table.is_null() || pg_sys::SPI_processed == 0 {
            return Ok(Datum::Null);
        }
        let mut is_null = false;
        let tuple = *(*table).vals;
        let value = pg_sys::SPI_getbinval(tuple, (*table).tupdesc, 1, &mut is_null);
        match is_null {
            true => Ok(Datum::Null),
            false => value::read(value, ty),
        }
    }
}
