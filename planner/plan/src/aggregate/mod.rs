//! The aggregates: what there are (`kinds`), those that add up ([`Accum`]), those of all values in an order
//! ([`collect`]).

mod accum;
mod bits;
pub mod collect;
mod dyadic;
mod exact;
mod float;
mod kinds;
mod moments;
mod numeric;
mod pairs;

pub use accum::Accum;
pub use kinds::{AggregateFunc, Collect, Regression, Spread, COLLECTING, SUMMING};
