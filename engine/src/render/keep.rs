//! What arrangements may hold, wherever they keep it.

use crate::spill::Stored;
use differential_dataflow::hashable::Hashable;
use differential_dataflow::ExchangeData;

/// What keys and values of arrangements are.
pub(super) trait Keep: ExchangeData + Stored + Sync {}
impl<D: ExchangeData + Stored + Sync> Keep for D {}

/// A key by which updates find their worker.
pub(super) trait Key: Keep + Hashable<Output = u64> {}
impl<D: Keep + Hashable<Output = u64>> Key for D {}
