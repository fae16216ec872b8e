//! What a view is computed by: values, rows, expressions, functions, aggregates and the physical plan.
//!
//! This crate knows nothing of SQL text, of dataflow engines, of PostgreSQL's memory or of processes.

pub mod accumulate;
pub mod aggregate;
mod array;
mod array_text;
mod callers;
pub mod clock;
pub mod compare;
pub mod datetime;
pub mod error;
mod explain;
pub mod expr;
pub mod exprs;
mod float_round;
mod float_text;
pub mod func;
pub mod host;
pub mod mfp_builder;
pub mod naive;
mod nodes;
pub mod numeric;
mod packed;
pub mod partition;
pub mod row;
pub mod table_function;
pub mod text_io;
pub mod types;
pub mod value;

pub use explain::explain;
pub use nodes::*;
