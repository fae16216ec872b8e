//! Evaluates a plan over multisets, one operator after the other, as plainly as possible: the oracle
//! of the engine's tests. Recursion follows PostgreSQL's working table for every form, so that the
//! fixpoint forms are checked against an independent definition.

use crate::error::DataError;
use crate::plan::{Diff, ViewPlan};
use crate::row::Row;
use std::collections::BTreeMap;

/// A recursion took more iterations than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecursionLimit;

/// Rows, or errors, with their multiplicities.
pub type Multiset<T> = BTreeMap<T, Diff>;

/// The view's rows and errors for the given contents of its sources (by [`crate::plan::SourceId`]).
pub fn evaluate(
    plan: &ViewPlan,
    sources: &[Multiset<Row>],
    max_recursion: u64,
) -> Result<(Multiset<Row>, Multiset<DataError>), RecursionLimit> {
    let _ = (plan, sources, max_recursion);
    todo!()
}
