//! Nodes that work row by row and keep no state.

use super::errors::Errs;
use super::renderer::{Bundle, Renderer};
use super::storage::Storage;
use crate::checkpoint;
use crate::core::asker;
use crate::core::collection::Collection;
use crate::core::diff::Mult;
use crate::core::monitor::{look, Guard};
use crate::core::stamp::Stamp;
use crate::layout::infer::{constant_columns, mfp_columns, repeat_columns, union_columns, Columns};
use crate::layout::row_work::{Mapper, RowWork};
use crate::layout::{ColumnType, Layout, Tuple};
use differential_dataflow::collection::concatenate;
use differential_dataflow::difference::{IsZero, Multiply};
use differential_dataflow::AsCollection;
use plan::error::DataError;
use plan::row::Row;
use plan::{Diff, Mfp, Plan};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::core::{OkErr, ToStream};
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::vec::Map;

impl<'s, L: Layout, S: Storage, const LOOPS: usize> Renderer<'s, L, S, LOOPS> {
    pub(super) fn render_constant(
        &mut self,
        arity: usize,
        rows: &[(Row, Diff)],
    ) -> Bundle<'s, L, LOOPS> {
        let columns = constant_columns(arity, rows.iter().map(|(row, _)| row));
        let shape = L::shape(&columns);
        // Every worker renders the whole plan; one of them contributes the rows.
        // They have been put out before if it goes on from somewhere.
        let is_here = self.context.scope.index() == 0 && !checkpoint::has_origin();
        let rows = if is_here { rows } else { &[] };
        let results = rows.iter().map(|(row, diff)| {
            (L::Row::from_row(row.clone(), &shape), Stamp::of(self.context.as_of), Mult(*diff))
        });
        let results: Vec<_> = results.collect();
        let (oks, errs) = split(results.to_stream(self.context.scope).as_collection());
        Bundle { oks, errs: self.context.raise(errs), columns }
    }

    pub(super) fn render_mfp(&mut self, input: &Plan, mfp: &Mfp) -> Bundle<'s, L, LOOPS> {
        let imported = match input {
            Plan::Source(id) => self.import_all(*id, mfp),
            _ => None,
        };
        if let Some(imported) = imported {
            return imported;
        }
        let input = self.render(input);
        if mfp.is_identity() {
            return input;
        }
        let columns = mfp_columns(&input.columns, mfp);
        let guard = self.context.guard.clone();
        match RowWork::<L, L::Row>::new(mfp.clone(), &[&input.columns], &columns) {
            RowWork::Move(moves) => {
                Bundle { oks: project::<L, LOOPS>(input.oks, moves), columns, ..input }
            }
            RowWork::Map(mapper) if mapper.calls_host() => {
                let (oks, errs) = split(map_with_host::<L, LOOPS>(input.oks, mapper, guard));
                Bundle { oks, errs: input.errs.union(&self.context.raise(errs)), columns }
            }
            RowWork::Map(mapper) => {
                let results = input.oks.inner.flat_map(move |(row, time, diff)| {
                    guard.proceed(1);
                    mapper.apply(&[row.view()]).map(|result| (result, time, diff))
                });
                let (oks, errs) = split(results.as_collection());
                Bundle { oks, errs: input.errs.union(&self.context.raise(errs)), columns }
            }
        }
    }

    pub(super) fn render_union(&mut self, inputs: &[Plan]) -> Bundle<'s, L, LOOPS> {
        let bundles: Vec<_> = inputs.iter().map(|input| self.render(input)).collect();
        let columns: Vec<Columns> = bundles.iter().map(|bundle| bundle.columns.clone()).collect();
        let columns = union_columns(&columns);
        let oks: Vec<_> = bundles.iter().map(|bundle| fit(bundle, &columns)).collect();
        let errs = bundles.iter().fold(Errs::default(), |errs, bundle| errs.union(&bundle.errs));
        Bundle { oks: concatenate(self.context.scope, oks), errs, columns }
    }

    /// Errors are not negated: they must not cancel those of the collection subtracted from.
    pub(super) fn render_negate(&mut self, input: &Plan) -> Bundle<'s, L, LOOPS> {
        let input = self.render(input);
        Bundle { oks: input.oks.negate(), ..input }
    }

    /// Copies are multiplicities: however many, they take no more memory than one.
    pub(super) fn render_repeat(&mut self, input: &Plan) -> Bundle<'s, L, LOOPS> {
        let input = self.render(input);
        let columns = repeat_columns(&input.columns);
        let (from, to) = (L::shape(&input.columns), L::shape(&columns));
        let kept: Vec<usize> = (0..columns.len()).collect();
        let moves = L::moves(&[&from], &kept, &to);
        let copies = columns.len();
        let repeated = input.oks.inner.flat_map(move |(row, time, diff)| {
            let copies = L::column(row.view(), &from, copies).as_i64().unwrap_or(0);
            let diff = diff.multiply(&Mult(copies));
            (!diff.is_zero()).then(|| (L::Row::project(&moves, &[row.view()]), time, diff))
        });
        Bundle { oks: repeated.as_collection(), columns, ..input }
    }
}

/// Rows mapped in batches, so that the host is asked for each batch once.
fn map_with_host<'s, L: Layout, const LOOPS: usize>(
    rows: Collection<'s, L::Row, LOOPS>,
    mapper: Mapper<L, L::Row>,
    guard: Guard,
) -> Collection<'s, Result<L::Row, DataError>, LOOPS> {
    let results = rows.inner.unary::<CapacityContainerBuilder<Vec<_>>, _, _, _>(
        Pipeline,
        "HostCalls",
        move |_, _| {
            move |input, output| {
                input.for_each(|time, rows| {
                    let mut session = output.session(&time);
                    for batch in rows.chunks(asker::BATCH) {
                        guard.proceed(batch.len());
                        asker::with_answers(batch, |(row, _, _)| {
                            mapper.apply(&[row.view()]);
                        });
                        for (row, time, diff) in batch {
                            guard.proceed(1);
                            if let Some(result) = mapper.apply(&[row.view()]) {
                                session.give((result, *time, *diff));
                            }
                        }
                    }
                });
            }
        },
    );
    results.as_collection()
}

/// Rows with columns moved.
fn project<'s, L: Layout, const LOOPS: usize>(
    rows: Collection<'s, L::Row, LOOPS>,
    moves: L::Moves,
) -> Collection<'s, L::Row, LOOPS> {
    rows.map_in_place(move |row| {
        look(1);
        *row = L::Row::project(&moves, &[row.view()]);
    })
}

/// A bundle's rows in the shape for these columns, which may hold what its own may.
pub(super) fn fit<'s, L: Layout, const LOOPS: usize>(
    bundle: &Bundle<'s, L, LOOPS>,
    columns: &Columns,
) -> Collection<'s, L::Row, LOOPS> {
    let (from, to) = (L::shape(&bundle.columns), L::shape(columns));
    // Without columns there are no rows, if others have some.
    if from == to || bundle.columns.len() != columns.len() {
        return bundle.oks.clone();
    }
    let all: Vec<usize> = (0..columns.len()).collect();
    project::<L, LOOPS>(bundle.oks.clone(), L::moves(&[&from], &all, &to))
}

/// Self-describing rows as rows with these columns, and errors where they are not such.
pub(super) fn unpack_collection<'s, L: Layout, const LOOPS: usize>(
    rows: Collection<'s, Row, LOOPS>,
    columns: &[ColumnType],
) -> (Collection<'s, L::Row, LOOPS>, Collection<'s, DataError, LOOPS>) {
    let shape = L::shape(columns);
    split(rows.map(move |row| L::Row::from_row(row, &shape)))
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
