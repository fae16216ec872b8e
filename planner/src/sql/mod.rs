//! The SQL front end: canonical text (what `pg_get_querydef` prints under `search_path = pg_catalog`,
//! implicit casts made explicit) to bound relational IR.

mod bind;
mod ddl;
mod frames;
mod grouping_elements;
mod parse;
mod refuse;
mod types;

pub use bind::bind;
pub use ddl::DdlCatalog;
pub(crate) use refuse::{invalid, unsupported};
