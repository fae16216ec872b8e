//! How different the values of a column are.

use crate::catalog::ColumnStatistics;
use plan::SourceId;

/// Different values of a column of which nothing is known, as PostgreSQL has it.
const UNKNOWN_DISTINCT: f64 = 200.0;

/// Bytes of a value of which nothing is known.
const UNKNOWN_WIDTH: f64 = 8.0;

/// The values of a column. Conditions on other columns leave them as they are: what is joined with few rows of a table is
/// found in as many of its keys as there are in the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Values {
    /// The column of a table that they come from.
    pub(crate) origin: Option<(SourceId, usize)>,
    /// How many there are, NULL aside; at least 1.
    pub(crate) distinct: f64,
    /// Share of the rows that have NULL.
    pub(crate) nulls: f64,
    /// How probable it is that two rows have the same; at least 1 by `distinct`.
    pub(crate) repeats: f64,
    /// Average bytes of one.
    pub(crate) width: f64,
}

impl Values {
    pub(crate) const UNKNOWN: Values = Values {
        origin: None,
        distinct: UNKNOWN_DISTINCT,
        nulls: 0.0,
        repeats: 1.0 / UNKNOWN_DISTINCT,
        width: UNKNOWN_WIDTH,
    };

    /// As many different ones as that, all as frequent.
    pub(crate) fn at_most(distinct: f64) -> Values {
        let distinct = distinct.max(1.0);
        Values { distinct, repeats: 1.0 / distinct, ..Values::UNKNOWN }
    }

    /// Those of a table's column.
    pub(crate) fn of_table(
        origin: (SourceId, usize),
        rows: f64,
        is_unique: bool,
        known: Option<&ColumnStatistics>,
    ) -> Values {
        let distinct = match known {
            _ if is_unique => rows,
            Some(known) => known.distinct.min(rows),
            None => UNKNOWN_DISTINCT.min(rows),
        };
        let values = Values { origin: Some(origin), ..Values::at_most(distinct) };
        let Some(known) = known else { return values };
        let repeats = if is_unique { 0.0 } else { known.repeats.min(1.0) };
        Values {
            nulls: known.nulls.clamp(0.0, 1.0),
            repeats: values.repeats.max(repeats),
            width: known.width.max(0.0),
            ..values
        }
    }

    /// How many there are, NULL included.
    pub(crate) fn with_null(&self) -> f64 {
        self.distinct + if self.nulls > 0.0 { 1.0 } else { 0.0 }
    }

    /// Others come beside them.
    pub(crate) fn merge(&mut self, other: &Values) {
        if self.origin != other.origin {
            self.origin = None;
        }
        self.distinct = self.distinct.max(other.distinct);
        self.repeats = self.repeats.min(other.repeats).max(1.0 / self.distinct);
        self.nulls = self.nulls.max(other.nulls);
        self.width = self.width.max(other.width);
    }
}
