//! What a view is computed by: values, rows, expressions, functions, aggregates and the physical plan.
//!
//! This crate knows nothing of SQL text, of dataflow engines, of PostgreSQL's memory or of processes.

pub mod aggregate;
pub mod clock;
pub mod compare;
pub mod datetime;
pub mod error;
pub mod expr;
mod float_round;
pub mod func;
pub mod host;
mod interval;
pub mod naive;
mod nodes;
pub mod numeric;
pub mod partition;
pub mod row;
pub mod sqlstate;
pub mod table_function;
pub mod text;
pub mod types;
pub mod value;
mod zone;

pub use aggregate::{AggregateFunc, Collect, Regression, Spread};
pub use expr::Mfp;
pub use interval::Interval;
pub use nodes::*;
pub use row::Diff;
pub use zone::{Around, Rules, Zone};
