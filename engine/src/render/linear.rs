//! Nodes that work row by row and keep no state.

use super::{Bundle, Collection, Renderer};
use crate::diff::Mult;
use crate::scalar::apply;
use crate::stamp::Stamp;
use differential_dataflow::AsCollection;
use planner::error::DataError;
use planner::plan::{Diff, Mfp, Plan};
use planner::row::Row;
use timely::dataflow::operators::core::{OkErr, ToStream};
use timely::dataflow::operators::vec::Map;

impl<'s, const LOOPS: usize> Renderer<'s, LOOPS> {
    pub(super) fn render_constant(&mut self, rows: &[(Row, Diff)]) -> Bundle<'s, LOOPS> {
        let updates: Vec<(Row, Stamp<LOOPS>, Mult)> = if self.scope.index() == 0 {
            rows.iter()
                .map(|(row, diff)| (row.clone(), Stamp::of(self.as_of), Mult(*diff)))
                .collect()
        } else {
            // Every worker renders the whole plan; one of them contributes the rows.
            Vec::new()
        };
        Bundle { oks: updates.to_stream(self.scope).as_collection(), errs: self.empty() }
    }

    pub(super) fn render_mfp(&mut self, input: &Plan, mfp: &Mfp) -> Bundle<'s, LOOPS> {
        let input = self.render(input);
        if mfp.is_identity() {
            return input;
        }
        let mfp = mfp.clone();
        let guard = self.guard.clone();
        let results = input.oks.inner.flat_map(move |(row, time, diff)| {
            let result = if guard.proceed(1) { apply(&mfp, &[&row]) } else { None };
            result.map(|result| (result, time, diff))
        });
        let (oks, errs) = split(results.as_collection());
        Bundle { oks, errs: errs.concat(input.errs) }
    }

    pub(super) fn render_union(&mut self, inputs: &[Plan]) -> Bundle<'s, LOOPS> {
        let bundles: Vec<Bundle<'s, LOOPS>> =
            inputs.iter().map(|input| self.render(input)).collect();
        let (oks, errs): (Vec<_>, Vec<_>) = bundles.into_iter().map(|b| (b.oks, b.errs)).unzip();
        Bundle {
            oks: differential_dataflow::collection::concatenate(self.scope, oks),
            errs: differential_dataflow::collection::concatenate(self.scope, errs),
        }
    }

    /// Errors are not negated: they must not cancel those of the collection subtracted from.
    pub(super) fn render_negate(&mut self, input: &Plan) -> Bundle<'s, LOOPS> {
        let input = self.render(input);
        Bundle { oks: input.oks.negate(), errs: input.errs }
    }
}

/// Separates results into values and errors.
pub(super) fn split<'s, D: Clone + 'static, const LOOPS: usize>(
    results: Collection<'s, Result<D, DataError>, LOOPS>,
) -> (Collection<'s, D, LOOPS>, Collection<'s, DataError, LOOPS>) {
    let (oks, errs) = results.inner.ok_err(|(result, time, diff)| match result {
        Ok(data) => Ok((data, time, diff)),
        Err(error) => Err((error, time, diff)),
    });
    (oks.as_collection(), errs.as_collection())
}
