//! EXPLAIN of one query. From 17 on the server exports what it does without hooks; before, it is planning the query and
//! explaining the plan.

use pgrx::pg_sys;
use std::ffi::{c_char, c_int};

/// What EXPLAIN does by itself. No destructors: errors of the server jump over it.
/// Unguarded: it calls the server alone.
///
/// # Safety
/// Arguments as the hook gets them.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
pub unsafe extern "C-unwind" fn one_query(
    query: *mut pg_sys::Query,
    options: c_int,
    into: *mut pg_sys::IntoClause,
    state: *mut pg_sys::ExplainState,
    text: *const c_char,
    params: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
) {
    extern "C-unwind" {
        fn standard_ExplainOneQuery(
            query: *mut pg_sys::Query,
            options: c_int,
            into: *mut pg_sys::IntoClause,
            state: *mut pg_sys::ExplainState,
            text: *const c_char,
            params: pg_sys::ParamListInfo,
            environment: *mut pg_sys::QueryEnvironment,
        );
    }
    // SAFETY: per contract.
    unsafe {
        standard_ExplainOneQuery(query, options, into, state, text, params, environment);
    }
}

/// What EXPLAIN does by itself. No destructors: errors of the server jump over it.
/// Unguarded: it calls the server alone.
///
/// # Safety
/// Arguments as the hook gets them.
#[cfg(any(feature = "pg15", feature = "pg16"))]
pub unsafe extern "C-unwind" fn one_query(
    query: *mut pg_sys::Query,
    options: c_int,
    into: *mut pg_sys::IntoClause,
    state: *mut pg_sys::ExplainState,
    text: *const c_char,
    params: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
) {
    extern "C-unwind" {
        fn pg_plan_query(
            query: *mut pg_sys::Query,
            text: *const c_char,
            options: c_int,
            params: pg_sys::ParamListInfo,
        ) -> *mut pg_sys::PlannedStmt;
        fn BufferUsageAccumDiff(
            sum: *mut pg_sys::BufferUsage,
            after: *const pg_sys::BufferUsage,
            before: *const pg_sys::BufferUsage,
        );
        fn ExplainOnePlan(
            plan: *mut pg_sys::PlannedStmt,
            into: *mut pg_sys::IntoClause,
            state: *mut pg_sys::ExplainState,
            text: *const c_char,
            params: pg_sys::ParamListInfo,
            environment: *mut pg_sys::QueryEnvironment,
            planning: *const pg_sys::instr_time,
            buffers: *const pg_sys::BufferUsage,
        );
    }
    // SAFETY: per contract; the counters are plain globals of the only thread that changes them.
    unsafe {
        let before = pg_sys::pgBufferUsage;
        let began = std::time::Instant::now();
        let plan = pg_plan_query(query, text, options, params);
        let planning = instr_time(began.elapsed());
        let mut used: pg_sys::BufferUsage = std::mem::zeroed();
        BufferUsageAccumDiff(&mut used, &raw const pg_sys::pgBufferUsage, &before);
        let buffers = if (*state).buffers { &raw const used } else { std::ptr::null() };
        ExplainOnePlan(plan, into, state, text, params, environment, &planning, buffers);
    }
}

#[cfg(feature = "pg15")]
fn instr_time(duration: std::time::Duration) -> pg_sys::instr_time {
    // SAFETY: all-zero is a valid value of this plain C struct.
    let mut time: pg_sys::instr_time = unsafe { std::mem::zeroed() };
    time.tv_sec = duration.as_secs() as _;
    time.tv_nsec = duration.subsec_nanos().into();
    time
}

#[cfg(feature = "pg16")]
fn instr_time(duration: std::time::Duration) -> pg_sys::instr_time {
    pg_sys::instr_time { ticks: duration.as_nanos() as i64 }
}
