//! Assistants: background workers, each of which does one job of the database's worker that would keep all views waiting,
//! and ends.
//!
//! A job is a view's: expressions to be evaluated, a large heap to be looked at, or many rows to be written. The view is aside
//! meanwhile. A thread of the worker writes the order into a file; the main thread starts an assistant, and is woken by its
//! end; a thread reads what came of it. Threads do whatever takes long and needs nothing of PostgreSQL.
//!
//! The rows that an assistant commits are of another point of commit order than those of the other views. So before it starts
//! it is on record that its view is not at their point (`worker::states`), and what it wrote is noted before the view is again
//! (`worker::apply`).
//!
//! If an assistant cannot be started, the worker does the job. One that ends without a result is that view's trouble.

mod evaluating;
pub(super) mod files;
mod jobs;
mod order;
mod tend;
pub mod work;
mod writing;

pub use jobs::Assistants;
