//! Binding: syntax tree to relational IR, names to positions, operators to functions by exact types.
//!
//! From below: `syntax` reads the tree, `bound_expr` is a bound expression, `scope` what names stand for,
//! `virtual_columns` what is found in expressions and computed beside them. `binder` and `expr_binder` hold what is
//! known while a query and while its expressions are bound; the modules above add to them how each construct is
//! bound, up to `query`.

mod binder;
mod bound_expr;
mod case;
mod collect;
mod compared;
mod conditions;
mod cte;
mod expr_binder;
mod expression;
mod frame;
mod from;
mod function;
mod gate;
mod grouping_sets;
mod host;
mod level;
mod mutual;
mod order;
mod outer;
mod query;
mod reduce;
mod resolve;
mod row_count;
mod row_order;
mod scope;
mod select;
mod setop;
mod sort;
mod subquery;
mod syntax;
mod table_function;
mod temporal;
mod virtual_columns;
mod window;
mod zoned;

pub use query::bind;
