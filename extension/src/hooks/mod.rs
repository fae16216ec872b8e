//! What PostgreSQL calls of ours: hooks, and what they are handed as owned data.
//!
//! Hooks are plain `extern "C-unwind"` functions without destructors that call the next hook
//! *unguarded*: pgrx's guard would turn every error of the server into a new one and lose its
//! position, context and constraint names.
//!
//! What is to happen is not decided here: whoever installs a hook hands it functions in safe Rust.

pub mod command;
mod copy;
pub mod executor;
pub mod explain;
mod fill;
pub mod keywords;
pub mod label;
pub mod object_access;
pub mod options;
mod passed_on;
pub mod planner;
pub mod query_scan;
mod raw_tree;
pub mod replacement;
pub mod statement;
pub mod tags;
pub mod utility;
