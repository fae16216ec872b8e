//! Analysed query trees of PostgreSQL's: reading them, and rewriting copies of them until their text is SQL that the
//! planner understands.
//!
//! [`tree`] reads. Each of the other modules is one rewriting, a method of [`tree::Tree`] that `compile` calls, but for
//! [`comparison`], which puts the query of a view in place of the view, and [`computed_views`], for statements that PostgreSQL runs. Trees live in a memory context of PostgreSQL's; what
//! of them is looked at beyond the module that does it is a [`tree::Place`] or a reference that ends with the statement.

mod builtin;
mod canonical;
mod compared_columns;
pub mod comparison;
mod computed_comparisons;
pub mod computed_views;
pub mod conversions;
pub mod cuts;
mod dependent_groups;
mod extents;
mod frames_of_times;
mod generated_columns;
mod host_aggregates;
pub mod host_calls;
mod host_queries;
mod host_sets;
mod json_aggregates;
mod marked_rows;
pub mod nodes;
mod owners;
pub mod parts;
pub mod present;
pub mod recursive_references;
pub mod returned;
mod scalar_tables;
mod simple_case;
mod sorted_sets;
mod table_oids;
mod texts_of_documents;
pub mod tree;
mod whole_rows;
pub mod windows;
mod wrapped;
