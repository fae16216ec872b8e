//! Collections of a view's dataflow.

use crate::core::diff::Mult;
use crate::core::stamp::Stamp;
use differential_dataflow::VecCollection;

/// A collection in a view's dataflow, nowhere within more than `LOOPS` loops.
pub(crate) type Collection<'s, D, const LOOPS: usize> = VecCollection<'s, Stamp<LOOPS>, D, Mult>;
