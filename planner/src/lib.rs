//! From SQL text to a dataflow plan: types, values, expressions, relational IR, transforms, physical plan.
//!
//! This crate knows nothing of dataflow engines, of PostgreSQL's memory or of processes.

pub mod accumulate;
pub mod catalog;
pub mod compare;
pub mod datetime;
pub mod error;
pub mod expr;
pub mod func;
pub mod naive;
pub mod numeric;
pub mod plan;
mod plan_view;
pub mod row;
pub mod text_io;
pub mod types;
pub mod value;

pub use plan_view::{explain, plan_view};
