//! Indexes: arrangements that a dataflow of their own keeps and the dataflows of other threads read.
//!
//! Differential shares arrangements among the dataflows of one thread; here each view has threads of its own, so that none
//! waits for another. What is shared between threads are batches, which never change once they are built
//! ([`batch`]). The thread that keeps an index publishes ([`mod@publish`]) which batches make it up now ([`export`]); a thread that reads it
//! has that list for a trace ([`trace`]), and what comes since as a stream ([`mod@import`]), for which it is woken ([`mod@wake`]). The keeper merges batches, and forgets
//! times, no further than all readers allow.

mod batch;
mod export;
mod import;
mod publish;
mod trace;
mod wake;

pub(super) use batch::{SharedBatch, SharedBuilder, Sieve};
pub(super) use export::Export;
pub(super) use import::{import, import_rows};
pub(super) use publish::publish;
pub(super) use trace::{Imported, InMemory, Trace};
pub(super) use wake::Wake;
