//! Values from and to PostgreSQL's text: the input and output functions of the types.

mod array;
mod datetime;
mod float;
pub(crate) mod input;
mod literal;

pub use datetime::format_date;
pub(crate) use literal::parse;
pub use literal::{format_datum, parse_literal};
