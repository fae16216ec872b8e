//! Joins: both sides arranged by their keys, and what is made of each pair of rows that match.

use super::arrangements::Arranged;
use super::linear::split;
use super::renderer::{Bundle, Renderer};
use super::storage::Storage;
use crate::layout::infer::{mfp_columns, Operands};
use crate::layout::row_work::RowWork;
use crate::layout::{Layout, Tuple};
use plan::expr::{Expr, MfpBuilder};
use plan::{Mfp, Plan};
use std::borrow::Cow;

/// The closure of a join over the rows as they are arranged.
fn over_both<'c, L: Layout, S: Storage, const LOOPS: usize>(
    left: &Arranged<'_, L, S, LOOPS>,
    right: &Arranged<'_, L, S, LOOPS>,
    closure: &'c Mfp,
) -> Cow<'c, Mfp> {
    // A side whose rows are unknown has as many columns as the other one leaves.
    let rest = |other: &Mfp| MfpBuilder::new(closure.input_arity - other.project.len()).finish();
    let (left, right) = match (&left.made, &right.made) {
        (None, None) => return Cow::Borrowed(closure),
        (Some(left), None) => (left.clone(), rest(left)),
        (None, Some(right)) => (rest(right), right.clone()),
        (Some(left), Some(right)) => (left.clone(), right.clone()),
    };
    let both = left.beside(&right);
    let mut made = MfpBuilder::new(both.input_arity);
    made.then(&both);
    made.then(closure);
    Cow::Owned(made.finish())
}

impl<'s, L: Layout, S: Storage, const LOOPS: usize> Renderer<'s, L, S, LOOPS> {
    pub(super) fn render_join(
        &mut self,
        (left, left_key): (&Plan, &[Expr]),
        (right, right_key): (&Plan, &[Expr]),
        closure: &Mfp,
    ) -> Bundle<'s, L, LOOPS> {
        let (left, right) = (self.side(left, left_key), self.side(right, right_key));
        let closure = over_both(&left, &right, closure);
        let (
            Arranged { rows: left, key: left_key, .. },
            Arranged { rows: right, key: right_key, .. },
        ) = (left, right);
        let operands =
            Operands::of((&left.columns, &left_key), (&right.columns, &right_key), &closure);
        let columns = mfp_columns(&operands.columns(), &operands.closure);
        let from = [&*operands.left.key, &*operands.left.val, &*operands.right.val];
        let closure = RowWork::<L, L::Row>::new(operands.closure, &from, &columns);
        let guard = self.context.guard.clone();
        let errs = left.errs.union(&right.errs);
        match closure {
            RowWork::Move(moves) => {
                let oks = left.rows.join(right.rows, move |key, left, right| {
                    let operands = [key.view(), left.view(), right.view()];
                    guard.proceed(1);
                    Some(L::Row::project(&moves, &operands))
                });
                Bundle { oks, errs, columns }
            }
            RowWork::Map(closure) => {
                let results = left.rows.join(right.rows, move |key, left, right| {
                    let operands = [key.view(), left.view(), right.view()];
                    guard.proceed(1);
                    closure.apply(&operands)
                });
                let (oks, more) = split(results);
                Bundle { oks, errs: errs.union(&self.context.raise(more)), columns }
            }
        }
    }

    /// A side from an index, if there is one, or arranged for itself.
    fn side(&mut self, plan: &Plan, key: &[Expr]) -> Arranged<'s, L, S, LOOPS> {
        self.import(plan, key).unwrap_or_else(|| {
            let rows = self.arrange_plan(plan, key);
            Arranged { rows, key: key.to_vec(), made: None }
        })
    }
}
