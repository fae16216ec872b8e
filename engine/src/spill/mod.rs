//! State on disk: blocks of updates, stored by column and compressed.
//!
//! [`block`] is the form of a block, [`mod@column`] how values of a type become bytes.

pub mod block;
pub mod column;
mod rows;
