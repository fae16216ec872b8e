//! What differs between PostgreSQL's major versions, a module per concern: one name and one meaning here, whatever the
//! server calls it. No other code asks for the version; `make lint` looks for it.

pub mod explain;
pub mod wait_event;
