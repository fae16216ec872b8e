//! Dataflows whose state is larger than memory.
//!
//! A dataflow is rendered either with state in memory, by differential's own arrangements and by tables of what
//! is present, or, when that has turned out not to fit, with arrangements whose batches consist of
//! chunks that are written to disk while memory is short. The operators here are those of the second kind; they
//! do the same as differential's, for updates that are read key by key instead of being borrowed.
//!
//! A [`Store`] is the file that they are in; the caller of the engine keeps what has to wait in such files, too.
//! [`block`] is the form of a chunk on disk, [`mod@column`] how values of a type become bytes.

mod arrange;
pub mod block;
mod chunk;
mod counts;
mod join;
mod pager;
mod reader;
mod reduce;
mod store;

pub use crate::core::column;
pub(crate) use arrange::{arrange, as_collection, consolidate, Arrangement};
pub(crate) use chunk::Stored;
pub(crate) use counts::Counts;
pub(crate) use join::join;
pub(crate) use pager::Pager;
pub(crate) use reduce::reduce;
pub(crate) use store::{checksum, remove_leftovers};
pub use store::{Extent, Store};
