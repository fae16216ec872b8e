//! `INCREMENTAL` as a second spelling of `MATERIALIZED`.

/// Teaches the server's scanner the word; WARNING if impossible.
pub fn install() {}
