//! Runs view plans as timely/differential dataflows on worker threads of its own.
//!
//! The caller (the extension, or a test) owns an [`Engine`], feeds it updates, and polls it for output. It is or has the
//! *host*: whoever evaluates expressions that the engine cannot. The engine knows nothing of SQL text, tables or
//! transactions: only plans, rows, times and diffs.
//!
//! Its layers, from below: `core`, `layout`, `spill`, `checkpoint`, `render`, `engine`. None knows those above it. [`memory`] and
//! [`machine`] know nothing of the engine.

mod checkpoint;
mod core;
mod engine;
mod layout;
pub mod machine;
pub mod memory;
mod render;
pub mod spill;

pub use crate::core::config::{Config, OutputForm, Spill};
pub use crate::core::peers::Peers;
pub use crate::core::questions::{Answer, Evaluation, Question};
pub use crate::core::response::{DataflowStats, Response, StopReason};
pub use crate::core::updates::{DataflowId, Time, Updates};
pub use crate::engine::{share_of, Checkpoints, Embedded, Engine, Gathered, Read};
pub use crate::render::{
    as_computed, lookups, sources_beside, sub_plans, table_joins, Form, Index, Lookup, SubPlan,
    TableJoin,
};
