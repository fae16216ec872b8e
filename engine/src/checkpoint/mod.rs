//! The state of dataflows on disk, so that it survives the process.
//!
//! Every operator of a dataflow that keeps something has a [`Part`]. At one time all of them are [`Frozen`], which takes a moment, and
//! a [`Saving`] writes that to a file, block by block, while the dataflow goes on. A later dataflow of the
//! same plan takes the parts from an `Origin` while it is rendered, in the same order, and goes on from there: nothing of
//! what led to that state is computed again. There is a file per worker, of checked, compressed blocks of updates.

mod file;
mod parts;
mod saving;

pub(crate) use file::{Header, Target, BLOCK};
pub(crate) use parts::{
    add, as_of, building, has_origin, is_kept, refuse, take, unseeded, Part, Parts, Unseeded,
};
pub(crate) use saving::{frozen, Frozen, Saving};
