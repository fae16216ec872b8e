//! Joins.

use super::linear::split;
use super::{Bundle, Renderer};
use crate::scalar::apply;
use planner::expr::Expr;
use planner::plan::{Mfp, Plan};

impl<'s, const LOOPS: usize> Renderer<'s, LOOPS> {
    pub(super) fn render_join(
        &mut self,
        (left, left_key): (&Plan, &[Expr]),
        (right, right_key): (&Plan, &[Expr]),
        closure: &Mfp,
    ) -> Bundle<'s, LOOPS> {
        let left = self.arrange_plan(left, left_key);
        let right = self.arrange_plan(right, right_key);
        let closure = closure.clone();
        let guard = self.guard.clone();
        let results = left.rows.join_core(right.rows, move |_key, left, right| {
            if guard.proceed(1) {
                apply(&closure, &[left, right])
            } else {
                None
            }
        });
        let (oks, errs) = split(results);
        Bundle { oks, errs: errs.concat(left.errs).concat(right.errs) }
    }
}
