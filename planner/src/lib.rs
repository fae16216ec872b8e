//! From SQL text to a physical plan: binding, relational IR, transforms, lowering.
//!
//! This crate knows nothing of dataflow engines, of PostgreSQL's memory or of processes. What plans are made of is in
//! the crate `plan`.

pub mod catalog;
pub mod error;
mod estimate;
pub mod ir;
pub mod lower;
mod plan_view;
pub mod sql;
pub mod transform;

pub use plan_view::plan_view;
