//! The SQL front end: canonical text (what `pg_get_querydef` prints under `search_path = pg_catalog`,
//! implicit casts made explicit) to bound relational IR.

mod bind;
mod ddl;
mod frames;
mod grouping_elements;
mod nesting;
mod parse;
mod refuse;
mod tokens;
mod types;

pub use bind::bind;
pub use ddl::DdlCatalog;
pub use nesting::{chain_too_long, MAX_CHAIN, MAX_LEVELS};
pub(crate) use refuse::{invalid, too_deep, unsupported, unsupported_hint};
