//! [`Mfp`]: what is computed from one row, by maps on demand and conjuncts in order.

use super::eval::Columns;
use super::Expr;
use crate::error::DataError;
use crate::expr;
use crate::row::Row;
use crate::value::Datum;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::cell::OnceCell;

/// Map, filter, project in one pass: `maps` append columns, then `filter` conjuncts (evaluated in
/// order; a row passes when all are true) decide, then `project` picks the output columns.
///
/// Conjunct `i` may only be evaluated after the maps it refers to; maps are evaluated lazily,
/// so that an error in a column nobody needs, for a row a filter drops, is not raised.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mfp {
    /// Number of columns of the input.
    pub input_arity: usize,
    /// Appended columns; each may refer to input columns and earlier maps.
    pub maps: Vec<Expr>,
    /// Conjuncts over input columns and maps.
    pub filter: Vec<Expr>,
    /// Output columns, by index into input columns and maps.
    pub project: Vec<usize>,
}

/// A row's columns followed by maps, each computed when first asked for. A map whose value nobody
/// asks for raises no error.
struct Mapped<'a> {
    columns: &'a [Datum],
    maps: &'a [Expr],
    values: &'a [OnceCell<Datum>],
}

impl Columns for Mapped<'_> {
    fn column(&self, index: usize) -> Result<&Datum, DataError> {
        if index < self.columns.len() {
            return Ok(&self.columns[index]);
        }
        let map = index - self.columns.len();
        let cell = &self.values[map];
        if let Some(value) = cell.get() {
            return Ok(value);
        }
        let value = self.maps[map].value(self)?.into_owned();
        Ok(cell.get_or_init(|| value))
    }
}

impl Mfp {
    /// What two of them do, each to one of two rows that are side by side.
    pub fn beside(&self, other: &Mfp) -> Mfp {
        let (first, second) = (self.input_arity, other.input_arity);
        let arity = first + second;
        let of_self = |column: usize| if column < first { column } else { column + second };
        let of_other = |column: usize| match column.checked_sub(second) {
            None => first + column,
            Some(map) => arity + self.maps.len() + map,
        };
        let both = |one: &[Expr], other: &[Expr]| -> Vec<Expr> {
            let one = one.iter().map(|expr| expr::renumber(expr, &of_self));
            one.chain(other.iter().map(|expr| expr::renumber(expr, &of_other))).collect()
        };
        let project = self.project.iter().map(|column| of_self(*column));
        Mfp {
            input_arity: arity,
            maps: both(&self.maps, &other.maps),
            filter: both(&self.filter, &other.filter),
            project: project.chain(other.project.iter().map(|column| of_other(*column))).collect(),
        }
    }

    /// The output row for a row given as its columns; `None` if a conjunct is false or NULL.
    ///
    /// Conjuncts are evaluated in order up to the first that is not true.
    pub fn eval(&self, columns: &[Datum]) -> Result<Option<Row>, DataError> {
        self.eval_with(columns, |output| Row::pack(output.iter().copied()))
    }

    /// The same, with `make` applied to the output columns.
    pub fn eval_with<T>(
        &self,
        columns: &[Datum],
        make: impl FnOnce(&[&Datum]) -> T,
    ) -> Result<Option<T>, DataError> {
        debug_assert_eq!(columns.len(), self.input_arity);
        if self.maps.is_empty() {
            return self.eval_unmapped(columns, make);
        }
        let values: SmallVec<[OnceCell<Datum>; 4]> =
            self.maps.iter().map(|_| OnceCell::new()).collect();
        let mapped = Mapped { columns, maps: &self.maps, values: &values };
        for conjunct in &self.filter {
            if !conjunct.holds(&mapped)? {
                return Ok(None);
            }
        }
        let output: SmallVec<[&Datum; 8]> =
            self.project.iter().map(|index| mapped.column(*index)).collect::<Result<_, _>>()?;
        Ok(Some(make(&output)))
    }

    fn eval_unmapped<T>(
        &self,
        columns: &[Datum],
        make: impl FnOnce(&[&Datum]) -> T,
    ) -> Result<Option<T>, DataError> {
        for conjunct in &self.filter {
            if !conjunct.holds(columns)? {
                return Ok(None);
            }
        }
        let output: SmallVec<[&Datum; 8]> =
            self.project.iter().map(|index| &columns[*index]).collect();
        Ok(Some(make(&output)))
    }

    /// Whether columns are only moved, so that no row is dropped and nothing can fail.
    pub fn only_projects(&self) -> bool {
        self.maps.is_empty() && self.filter.is_empty()
    }

    /// Whether some rows may make it raise an error. True when in doubt.
    pub fn may_fail(&self) -> bool {
        self.maps.iter().chain(&self.filter).any(expr::may_fail)
    }

    /// Whether the host evaluates a part of it.
    pub fn calls_host(&self) -> bool {
        self.maps.iter().chain(&self.filter).any(expr::calls_host)
    }

    /// Whether the output is the input, always.
    pub fn is_identity(&self) -> bool {
        self.only_projects() && self.project.iter().copied().eq(0..self.input_arity)
    }
}
