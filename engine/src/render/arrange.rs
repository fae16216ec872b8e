//! Arrangements: building, sharing, measuring.

use super::arrangements::{ArrangementKey, RowArrangement};
use super::contents::Holder;
use super::linear::split;
use super::renderer::{Bundle, Renderer};
use super::share::Trace;
use super::storage::{Kept, Storage};
use crate::core::diff::Mult;
use crate::core::monitor::{look, make_room};
use crate::core::stamp::Stamp;
use crate::core::updates::Time;
use crate::layout::infer::Split;
use crate::layout::row_work::Exprs;
use crate::layout::{Layout, Tuple};
use differential_dataflow::difference::{IsZero, Semigroup};
use differential_dataflow::trace::{Cursor, TraceReader};
use differential_dataflow::AsCollection;
use plan::expr::Expr;
use plan::{Plan, SourceId};
use timely::dataflow::operators::vec::Map;
use timely::progress::frontier::AntichainRef;
use timely::progress::Antichain;

impl<'s, L: Layout, S: Storage, const LOOPS: usize> Renderer<'s, L, S, LOOPS> {
    /// The rows of a plan arranged by a join key; rows whose key has a NULL are left out.
    pub(super) fn arrange_plan(
        &mut self,
        plan: &Plan,
        key: &[Expr],
    ) -> RowArrangement<'s, L, S, LOOPS> {
        let name = ArrangementKey::of(plan, key);
        if let Some(name) = &name {
            if let Some((_, shared)) = self.arrangements.iter().find(|(other, _)| other == name) {
                return shared.clone();
            }
        }
        let arranged = self.arrange_own(plan, key);
        if let Some(name) = name {
            self.arrangements.push((name, arranged.clone()));
        }
        arranged
    }

    fn arrange_own(&mut self, plan: &Plan, key: &[Expr]) -> RowArrangement<'s, L, S, LOOPS> {
        let input = self.render(plan);
        let arranged = self.arrange_rows(input, key);
        if let Plan::Source(id) = plan {
            self.hold(*id, &arranged, key);
        }
        arranged
    }

    pub(super) fn arrange_rows(
        &mut self,
        input: Bundle<'s, L, LOOPS>,
        key: &[Expr],
    ) -> RowArrangement<'s, L, S, LOOPS> {
        let split_row = Split::of(&input.columns, key);
        let key = Exprs::<L, L::Key>::new(key, &input.columns, &split_row.key);
        let shape = L::shape(&input.columns);
        let rest = L::moves(&[&shape], &split_row.rest, &L::shape(&split_row.val));
        let val = move |row: &L::Row| L::Val::project(&rest, &[row.view()]);
        let (oks, errs) = if key.moves().is_some() {
            let keyed = input.oks.inner.flat_map(move |(row, time, diff)| {
                let key = key.moves().and_then(|m| L::Key::project_not_null(m, &[row.view()]));
                key.map(|key| ((key, val(&row)), time, diff))
            });
            (keyed.as_collection(), input.errs)
        } else {
            let keyed = input.oks.inner.flat_map(move |(row, time, diff)| {
                let key = key.eval_not_null(row.view());
                key.map(|key| (key.map(|key| (key, val(&row))), time, diff))
            });
            let (oks, errs) = split(keyed.as_collection());
            (oks, input.errs.union(&self.context.raise(errs)))
        };
        let rows = Kept::arrange(oks, "Arrange rows");
        RowArrangement { rows, errs, columns: input.columns }
    }
}

impl<'s, L: Layout, S: Storage, const LOOPS: usize> Renderer<'s, L, S, LOOPS> {
    /// Lets an arrangement, in memory, of all rows of a source be what TRUNCATE retracts.
    fn hold(&self, id: SourceId, arranged: &RowArrangement<'s, L, S, LOOPS>, key: &[Expr]) {
        let columns = &arranged.columns;
        let mut held = self.held[id.0].borrow_mut();
        let are_columns = key.iter().all(|expr| expr.as_column().is_some());
        let Some(rows) = arranged.rows.in_memory() else { return };
        if held.is_some() || !are_columns {
            return;
        }
        let split_row = Split::of(columns, key);
        let row = L::shape(columns);
        let (key_shape, val_shape) = (L::shape(&split_row.key), L::shape(&split_row.val));
        let key_columns: Vec<usize> = key.iter().filter_map(Expr::as_column).collect();
        *held = Some(Box::new(ArrangedSource::<L, LOOPS> {
            trace: rows.trace.clone(),
            key: L::moves(&[&row], &key_columns, &key_shape),
            row: L::moves(&[&key_shape, &val_shape], &split_row.places(key), &row),
        }));
    }
}

/// An arrangement of a source as the holder of its rows: all but those whose key has a NULL.
struct ArrangedSource<L: Layout, const LOOPS: usize> {
    trace: Trace<L::Key, L::Val, LOOPS>,
    /// From a row to its key.
    key: L::Moves,
    /// From key and value back to the row.
    row: L::Moves,
}

impl<L: Layout, const LOOPS: usize> Holder<L::Row> for ArrangedSource<L, LOOPS> {
    fn leaves_out(&self, row: &L::Row) -> bool {
        L::Key::project_not_null(&self.key, &[row.view()]).is_none()
    }

    fn retract(&mut self, time: Time) -> Option<Vec<(L::Row, Mult)>> {
        let mut upper = Antichain::new();
        self.trace.read_upper(&mut upper);
        if upper.elements().iter().any(|stamp| stamp.time < time) {
            return None;
        }
        // The input waits with later updates, so all of the trace is before `time`.
        let (mut cursor, storage) = self.trace.cursor();
        let mut rows = Vec::new();
        while cursor.key_valid(&storage) {
            while cursor.val_valid(&storage) {
                let mut copies = Mult(0);
                cursor.map_times(&storage, |_, diff| copies.plus_equals(diff));
                if !copies.is_zero() {
                    let (key, val) = (cursor.key(&storage), cursor.val(&storage));
                    look(1);
                    make_room(&mut rows, 1);
                    rows.push((L::Row::project(&self.row, &[key.view(), val.view()]), copies));
                }
                cursor.step_val(&storage);
            }
            cursor.step_key(&storage);
        }
        Some(rows)
    }

    fn advance(&mut self, time: Time) {
        let frontier = [Stamp::of(time)];
        self.trace.set_logical_compaction(AntichainRef::new(&frontier));
        self.trace.set_physical_compaction(AntichainRef::new(&frontier));
    }
}
