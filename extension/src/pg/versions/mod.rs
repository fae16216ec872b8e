//! What differs between PostgreSQL's major versions, a module per concern: one name and one meaning here, whatever the
//! server calls it. No other code asks for the version; `make lint` looks for it.

pub mod collation;
pub mod executor;
pub mod explain;
pub mod json;
pub mod process;
pub mod relation;
pub mod rights;
pub mod setting;
pub mod slot;
pub mod tree;
pub mod tuple;
pub mod wait_event;
pub mod wal;
