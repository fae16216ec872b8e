//! Joins: both sides arranged by their keys, and what is made of each pair of rows that match.

use super::linear::split;
use super::renderer::{Bundle, Renderer};
use super::storage::Storage;
use crate::layout::infer::{mfp_columns, Operands};
use crate::layout::row_work::RowWork;
use crate::layout::{Layout, Tuple};
use plan::expr::Expr;
use plan::{Mfp, Plan};

impl<'s, L: Layout, S: Storage, const LOOPS: usize> Renderer<'s, L, S, LOOPS> {
    pub(super) fn render_join(
        &mut self,
        (left, left_key): (&Plan, &[Expr]),
        (right, right_key): (&Plan, &[Expr]),
        closure: &Mfp,
    ) -> Bundle<'s, L, LOOPS> {
        let left = self.arrange_plan(left, left_key);
        let right = self.arrange_plan(right, right_key);
        let operands =
            Operands::of((&left.columns, left_key), (&right.columns, right_key), closure);
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
}
