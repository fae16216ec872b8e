//! SQL functions about one view.

use super::outdated::{self, Outdated};
use super::{create, identity, mirror, sharing, suspended, verify};
use crate::compile;
use crate::errors::Error;
use crate::pg::ids::RelationId;
use crate::pg::rows::{Call, Row, Value};
use crate::shared;
use pgrx::prelude::*;
use std::collections::BTreeSet;

/// `eddy.explain_view`
#[pg_extern]
fn eddy_explain_view(view: pg_sys::Oid) -> String {
    let explained = verify::require_incremental(view).and_then(|()| {
        let compiled = compile::compile_view(view.into())?;
        let is_in_memory =
            shared::view(view.into()).is_none_or(|view| view.figures().spilled_bytes == 0);
        create::plan_text(&sharing::as_computed(&compiled.query.plan, is_in_memory), "text")
    });
    explained.unwrap_or_else(|error| error.raise())
}

/// `eddy.verify_view`
#[pg_extern]
fn eddy_verify_view(
    view: pg_sys::Oid,
) -> TableIterator<'static, (name!(missing, i64), name!(surplus, i64))> {
    TableIterator::once(verify::verify(view).unwrap_or_else(|error| error.raise()))
}

/// `eddy.with_views_suspended`
#[pg_extern]
fn eddy_with_views_suspended(table: pg_sys::Oid, statement: &str) -> i64 {
    suspended::run(table, statement).unwrap_or_else(|error| error.raise())
}

/// `eddy.refuse_write`, of triggers
#[pg_extern]
fn eddy_refuse_write(call: Call) {
    mirror::refuse_write(call.table_of_trigger().as_deref()).raise()
}

/// `eddy.list_base_tables`
#[pg_extern]
fn eddy_list_base_tables(call: Call) {
    let row = |(table, columns): (RelationId, BTreeSet<i16>)| {
        vec![
            ("relation", Some(Value::Oid(table.to_u32()))),
            ("columns", Some(Value::Columns(columns.into_iter().collect()))),
        ]
    };
    let rows: Vec<Row> = identity::needed_columns().into_iter().map(row).collect();
    call.answer(&rows);
}

/// `eddy.list_outdated_plans`
#[pg_extern]
fn eddy_list_outdated_plans(call: Call) {
    let row = |Outdated { view, table, planned, now }: Outdated| {
        vec![
            ("relation", Some(Value::Oid(view.to_u32()))),
            ("base_table", Some(Value::Oid(table.to_u32()))),
            ("rows_planned", planned.map(Value::Number)),
            ("rows_now", Some(Value::Number(now))),
        ]
    };
    let rows: Vec<Row> = outdated::list().into_iter().map(row).collect();
    call.answer(&rows);
}

/// `eddy.recursive`
#[pg_extern]
fn eddy_recursive() {
    Error::unsupported("eddy.recursive() cannot be called: PostgreSQL has no such recursion")
        .hint("It may be in the query of an incremental view, whose dataflow computes it; only that has the rows.")
        .raise()
}

/// `eddy.host_call`, `eddy.collated`, `eddy.slices`
#[pg_extern]
fn eddy_host_call() {
    let error =
        Error::unsupported("functions that stand for others in canonical SQL cannot be called");
    error.raise()
}
