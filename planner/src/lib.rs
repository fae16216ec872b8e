//! From SQL text to a dataflow plan: types, values, expressions, relational IR, transforms, physical plan.
//!
//! This crate knows nothing of dataflow engines, of PostgreSQL's memory or of processes.

pub mod accumulate;
pub mod aggregate;
mod array;
mod array_text;
mod callers;
pub mod catalog;
pub mod clock;
pub mod compare;
pub mod datetime;
pub mod error;
pub mod explain;
pub mod expr;
mod exprs;
mod float_round;
mod float_text;
pub mod func;
pub mod host;
pub mod ir;
pub mod lower;
mod mfp_builder;
pub mod naive;
pub mod numeric;
mod packed;
pub mod partition;
pub mod plan;
mod plan_view;
pub mod row;
pub mod sql;
pub mod table_function;
pub mod text_io;
pub mod transform;
pub mod types;
pub mod value;

pub use explain::explain;
pub use plan_view::plan_view;
