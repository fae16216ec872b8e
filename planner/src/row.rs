//! Rows as the dataflow stores and moves them: compact, owned, compared as bytes.
//!
//! Two rows are equal as bytes iff all their values are *identical* (same scale of a numeric, same
//! sign of a zero). Where SQL equality is coarser, plans compare key forms (`Func::KeyForm`).

use crate::value::Datum;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// An encoded sequence of values. The order is that of the bytes, good for sorting and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Row(SmallVec<[u8; 24]>);

impl Row {
    /// Encodes values.
    pub fn pack<'a>(values: impl IntoIterator<Item = &'a Datum>) -> Row {
        let _ = values.into_iter();
        todo!()
    }

    /// Decodes all values.
    pub fn unpack(&self) -> Vec<Datum> {
        todo!()
    }

    /// Decodes all values, appending them to `out` (which may hold columns of another row already).
    pub fn unpack_into(&self, out: &mut Vec<Datum>) {
        let _ = out;
        todo!()
    }

    /// The encoded bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Bytes this row takes beside its own `size_of`.
    pub fn heap_bytes(&self) -> usize {
        if self.0.spilled() {
            self.0.capacity()
        } else {
            0
        }
    }
}
