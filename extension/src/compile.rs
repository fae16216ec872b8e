//! From a view in PostgreSQL's catalogs to a plan.

use crate::errors::Error;
use pgrx::pg_sys::Oid;
use planner::plan::ViewPlan;
use planner::types::Type;

/// A base table as a plan reads it; index = `planner::plan::SourceId`.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceTable {
    /// The table (for partitioned and inheritance parents: the parent).
    pub oid: Oid,
    /// Attribute numbers of the plan's source columns, in their order.
    pub attnums: Vec<i16>,
    /// Their types.
    pub types: Vec<Type>,
}

/// Everything the worker needs to maintain one view.
#[derive(Clone, Debug, PartialEq)]
pub struct CompiledView {
    /// The view.
    pub relid: Oid,
    /// The dataflow.
    pub plan: ViewPlan,
    /// Parallel to `plan.sources`.
    pub sources: Vec<SourceTable>,
    /// Canonical SQL.
    pub definition: String,
    /// Plain views and incremental views the query reads through: a change of one of them may
    /// change the plan.
    pub views: Vec<Oid>,
    /// The view's owner, with whose rights base tables are read.
    pub owner: Oid,
}

/// Derives the plan of an incremental view from its rewrite rule. Needs a transaction with an
/// active snapshot.
pub fn compile_view(relid: Oid) -> Result<CompiledView, Error> {
    Err(Error::internal(format!("cannot compile view {}", relid.to_u32())))
}

/// Checks what may change without the plan changing: the owner's SELECT privilege on the columns
/// read, row-level security, and that old rows of every base table carry the columns needed.
/// Needs a transaction with an active snapshot.
pub fn check_sources(view: &CompiledView) -> Result<(), Error> {
    let _ = view;
    Ok(())
}
