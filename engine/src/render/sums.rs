//! What a group's accumulable aggregates have added up to: a difference like any other.

use crate::core::column::{read_any, write_any, Column};
use crate::core::diff::Mult;
use differential_dataflow::difference::{IsZero, Semigroup};
use plan::aggregate::Accum;
use plan::error::DataError;
use plan::row::Row;
use plan::value::Datum;
use plan::AggregateFunc;
use serde::{Deserialize, Serialize};

/// Number of rows and accumulators of a group. Differences of one arrangement have the same
/// accumulators in the same order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Sums {
    rows: Mult,
    accums: Box<[Accum]>,
}

impl Sums {
    /// One row, of which there are `copies`, with a value for every aggregate.
    pub(super) fn of(
        funcs: &[AggregateFunc],
        values: impl Iterator<Item = Option<Datum>>,
        copies: Mult,
    ) -> Self {
        let accums = funcs.iter().zip(values);
        let accums = accums.map(|(func, value)| Accum::of(*func, value.as_ref(), copies.0));
        Sums { rows: copies, accums: accums.collect() }
    }

    /// Makes a group exist without contributing a value.
    pub(super) fn presence(funcs: &[AggregateFunc]) -> Self {
        let accums = funcs.iter().map(|func| Accum::zero(*func)).collect();
        Sums { rows: Mult(1), accums }
    }

    /// Whether the group has rows.
    pub(super) fn exists(&self) -> bool {
        self.rows > Mult(0)
    }

    /// The aggregates' results, one column each.
    pub(super) fn finish(&self, funcs: &[AggregateFunc]) -> Result<Row, DataError> {
        let results = funcs.iter().zip(self.accums.iter());
        let results = results.map(|(func, accum)| accum.finish(*func));
        Ok(Row::pack(&results.collect::<Result<Vec<_>, _>>()?))
    }
}

impl Column for Sums {
    fn write<'a>(values: impl Iterator<Item = &'a Self> + Clone, out: &mut Vec<u8>) {
        write_any(values, out);
    }

    fn read(count: usize, input: &mut &[u8]) -> Option<Vec<Self>> {
        read_any(count, input)
    }
}

impl IsZero for Sums {
    fn is_zero(&self) -> bool {
        self.rows.is_zero() && self.accums.iter().all(Accum::is_zero)
    }
}

impl Semigroup for Sums {
    fn plus_equals(&mut self, rhs: &Self) {
        self.rows.plus_equals(&rhs.rows);
        for (accum, other) in self.accums.iter_mut().zip(rhs.accums.iter()) {
            accum.plus_equals(other);
        }
    }
}
