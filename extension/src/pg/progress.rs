//! The one row of `eddy.progress`: how far the views of this database have come.

use super::own_rows::{self, Field};

/// What the row says to the active snapshot.
pub fn read() -> Option<u64> {
    match own_rows::read(c"progress", None).pop()?.first() {
        Some(Field::Lsn(lsn)) => Some(*lsn),
        _ => None,
    }
}

/// Replaces the row, or makes it. Needs a transaction.
pub fn write(lsn: u64) {
    own_rows::put(c"progress", &[Field::Lsn(lsn), Field::Time(super::xact::now())]);
}
