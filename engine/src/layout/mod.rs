//! How the rows of a dataflow are represented.
//!
//! Comparing, sorting and copying rows is most of what a dataflow does, so the representation of a
//! row decides what it costs. Where all columns of a plan have types of fixed width, its rows are
//! [`words::Words`]: a few words, without pointers, whose columns sit at places known from their types.
//! All other plans work on [`plan::row::Row`]s, which describe themselves. Rendering is generic over a
//! [`Layout`]; [`infer`] finds the types of a plan's columns and so the layout it fits.
//!
//! Whatever the layout, two rows are equal exactly if all their values are identical, and
//! the order is total but good for sorting only. Scalar work on rows is here too: [`row_work`] and, for integers, [`kernel`].

pub(crate) mod infer;
mod kernel;
pub(crate) mod row_work;
mod tuple;
mod varying;
mod words;

pub(crate) use tuple::{sort_by_data, ColumnType, Layout, Tuple};
pub(crate) use varying::Varying;
pub(crate) use words::{Fields, Fixed};
