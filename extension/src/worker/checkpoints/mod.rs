//! Checkpoints: the state of dataflows is saved, so that a worker which comes after this one need not read the tables and
//! compute all of it again.
//!
//! A checkpoint is as of one point of commit order, F, to which everything was decoded, computed and written. The threads of
//! each dataflow write its state meanwhile ([`engine::Checkpoints`]); then the WAL is flushed, so that no crash takes the heaps back
//! to before F; a manifest that names the files takes the place of the last one; and the replication slot, which lasts, lets
//! go of the WAL before F. Whatever is interrupted in between, the last manifest and what it needs are there.
//!
//! Who comes next ([`restore`]) begins with that state, and decodes from F on. Heaps may be further than F: what has
//! been written already is computed again and thrown away.

mod made_from;
mod manifest;
mod record;
mod restore;
mod take;

pub use record::{can_be_kept, remove_all, Checkpoints, Saved};
