//! Tables that leave the WAL and come back.
//!
//! What is written to a table while it is unlogged nobody can follow: its views are attached anew when they learn of it, at
//! a commit after which it is unlogged. A transaction that leaves no such trace is refused.

use crate::errors::Error;
use crate::hooks::statement::Target;
use crate::pg::{catalog, registry, xact};
use pgrx::pg_sys::Oid;
use std::cell::RefCell;

thread_local! {
    /// Tables that were logged and are not since a statement of the transaction with this local id.
    static UNLOGGED: RefCell<(u32, Vec<Oid>)> = const { RefCell::new((0, Vec::new())) };
}

/// Before `ALTER TABLE … SET LOGGED` or `SET UNLOGGED`.
pub fn before_change(table: &Target, is_logged: bool) -> Result<(), Error> {
    // PostgreSQL knows what to say.
    let Some(oid) = table.oid else { return Ok(()) };
    let was_logged = catalog::is_logged(oid);
    let id = xact::local_id();
    UNLOGGED.with_borrow_mut(|(of, unlogged)| {
        if *of != id {
            (*of, *unlogged) = (id, Vec::new());
        }
        match (was_logged, is_logged) {
            (true, false) => unlogged.push(oid),
            (false, true) if unlogged.contains(&oid) && !registry::all().is_empty() => {
                return Err(refuse(&table.name));
            }
            _ => {}
        }
        Ok(())
    })
}

fn refuse(table: &str) -> Error {
    let message = format!(
        "table \"{table}\" cannot become logged in the transaction that has made it unlogged"
    );
    Error::unsupported(message)
        .detail("Incremental views would not notice what is written in between.")
        .hint("Make it logged in a transaction of its own.")
}
