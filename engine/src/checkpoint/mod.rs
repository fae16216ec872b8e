//! The state of dataflows on disk, so that it survives the process.
//!
//! Every operator of a dataflow that keeps something has a [`Part`], which writes it to a [`Target`]. A later dataflow of the
//! same plan takes the parts from an `Origin` while it is rendered, in the same order, and goes on from there: nothing of
//! what led to that state is computed again. There is a file per worker, of checked, compressed blocks of updates.

mod file;
mod parts;

pub(crate) use file::{Header, Target};
pub(crate) use parts::{
    add, as_of, building, has_origin, is_kept, refuse, take, unseeded, Part, Parts, Unseeded,
};
