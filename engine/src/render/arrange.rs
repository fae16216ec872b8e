//! Arrangements: building, sharing, measuring.

use super::linear::split;
use super::{Bundle, Collection, Renderer};
use crate::diff::Mult;
use crate::scalar::Exprs;
use crate::stamp::Stamp;
use differential_dataflow::operators::arrange::{Arrange, Arranged, TraceAgent};
use differential_dataflow::trace::implementations::{ValBatcher, ValBuilder, ValSpine};
use differential_dataflow::trace::{BatchReader, TraceReader};
use differential_dataflow::AsCollection;
use planner::error::DataError;
use planner::expr::Expr;
use planner::plan::{LocalId, Plan, SourceId};
use planner::row::Row;
use std::cell::Cell;
use std::rc::Rc;
use timely::dataflow::operators::vec::Map;

/// Rows arranged by a key.
pub(super) type RowSpine<const LOOPS: usize> = ValSpine<Row, Row, Stamp<LOOPS>, Mult>;

/// A shareable arrangement of rows, with the errors found on the way.
#[derive(Clone)]
pub(super) struct RowArrangement<'s, const LOOPS: usize> {
    pub(super) rows: Arranged<'s, TraceAgent<RowSpine<LOOPS>>>,
    pub(super) errs: Collection<'s, DataError, LOOPS>,
}

/// What identifies an arrangement that can be shared.
#[derive(PartialEq)]
pub(super) enum ArrangementKey {
    Source(SourceId, Vec<Expr>),
    Local(LocalId, Vec<Expr>),
}

impl ArrangementKey {
    fn of(plan: &Plan, key: &[Expr]) -> Option<Self> {
        match plan {
            Plan::Source(id) => Some(ArrangementKey::Source(*id, key.to_vec())),
            Plan::Get(id) => Some(ArrangementKey::Local(*id, key.to_vec())),
            _ => None,
        }
    }

    pub(super) fn is_of(&self, id: LocalId) -> bool {
        matches!(self, ArrangementKey::Local(other, _) if *other == id)
    }
}

impl<'s, const LOOPS: usize> Renderer<'s, LOOPS> {
    /// The rows of a plan arranged by a join key; rows whose key has a NULL are left out.
    pub(super) fn arrange_plan(&mut self, plan: &Plan, key: &[Expr]) -> RowArrangement<'s, LOOPS> {
        let name = ArrangementKey::of(plan, key);
        if let Some(name) = &name {
            if let Some((_, shared)) = self.arrangements.iter().find(|(other, _)| other == name) {
                return shared.clone();
            }
        }
        let input = self.render(plan);
        let arranged = self.arrange_rows(input, key);
        if let Some(name) = name {
            self.arrangements.push((name, arranged.clone()));
        }
        arranged
    }

    fn arrange_rows(
        &mut self,
        input: Bundle<'s, LOOPS>,
        key: &[Expr],
    ) -> RowArrangement<'s, LOOPS> {
        let key = Exprs::new(key);
        let keyed = input.oks.inner.flat_map(move |(row, time, diff)| {
            key.eval_not_null(&row).map(|result| (result.map(|key| (key, row)), time, diff))
        });
        let (oks, errs) = split(keyed.as_collection());
        let rows = oks
            .arrange_named::<ValBatcher<_, _, _, _>, ValBuilder<_, _, _, _>, RowSpine<LOOPS>>(
                "Arrange rows",
            );
        self.meter.add(&rows, size_of::<(Row, Row, Stamp<LOOPS>, Mult)>());
        RowArrangement { rows, errs: errs.concat(input.errs) }
    }
}

/// Estimates the memory of a dataflow's state on one worker.
#[derive(Default)]
pub(crate) struct StateMeter {
    parts: Vec<Box<dyn Fn() -> usize>>,
}

impl StateMeter {
    /// Includes an arrangement whose updates take about `bytes_per_update`.
    ///
    /// The trace is held weakly: a strong handle would keep it from compacting.
    pub(super) fn add<Tr>(&mut self, arranged: &Arranged<'_, TraceAgent<Tr>>, update_bytes: usize)
    where
        Tr: TraceReader + 'static,
    {
        let trace = Rc::downgrade(&arranged.trace.trace_box_unstable());
        self.parts.push(Box::new(move || {
            let mut updates = 0;
            if let Some(trace) = trace.upgrade() {
                trace.borrow().trace().map_batches(|batch| updates += batch.len());
            }
            updates * update_bytes
        }));
    }

    /// Includes state whose owner keeps the count of its bytes here.
    pub(super) fn add_gauge(&mut self, bytes: Rc<Cell<usize>>) {
        self.parts.push(Box::new(move || bytes.get()));
    }

    pub(crate) fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part()).sum()
    }
}
