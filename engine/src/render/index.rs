//! Indexes, from both sides: as dataflows of their own, and as arrangements of those that read them.

use super::arrangements::{Arranged, RowArrangement};
use super::errors::Errs;
use super::imported::{Exports, Import, Traces};
use super::in_memory::Memory;
use super::linear::split as split_results;
use super::lookup::{Index, Side};
use super::output::render_sink;
use super::renderer::{Bundle, Renderer};
use super::share::{import, import_rows, publish, Export, Imported, Sieve};
use super::storage::{Kept, Storage};
use super::watched::{ValBatch, ValUpdates};
use super::Installed;
use crate::core::collection::Collection;
use crate::core::diff::Mult;
use crate::core::monitor::Guard;
use crate::core::stamp::Stamp;
use crate::core::updates::Time;
use crate::layout::infer::{mfp_columns, source_columns, Split};
use crate::layout::row_work::RowWork;
use crate::layout::{ColumnType, Layout, Tuple};
use differential_dataflow::difference::{IsZero, Semigroup};
use differential_dataflow::trace::Navigable;
use differential_dataflow::AsCollection;
use plan::error::DataError;
use plan::expr::Expr;
use plan::expr::MfpBuilder;
use plan::{Mfp, Plan, SourceId};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::vec::Map;
use timely::worker::Worker;

type RowExport<L, const LOOPS: usize> =
    Arc<Export<ValBatch<<L as Layout>::Key, <L as Layout>::Val, LOOPS>>>;
type RowSieve<L, const LOOPS: usize> =
    Sieve<<ValUpdates<<L as Layout>::Key, <L as Layout>::Val, Stamp<LOOPS>> as Navigable>::Cursor>;
type RowTrace<L, const LOOPS: usize> =
    Imported<ValUpdates<<L as Layout>::Key, <L as Layout>::Val, Stamp<LOOPS>>>;

/// By worker.
type WorkersExports<L, const LOOPS: usize> = Vec<RowExport<L, LOOPS>>;
/// By worker.
type WorkersTraces<L, const LOOPS: usize> = Vec<RowTrace<L, LOOPS>>;

pub(super) fn new_exports<L: Layout, const LOOPS: usize>(workers: usize) -> Exports {
    let exports: WorkersExports<L, LOOPS> = (0..workers).map(|_| Arc::new(Export::new())).collect();
    Arc::new(exports)
}

/// An index as a dataflow reads it that starts at `as_of`.
pub(super) fn new_traces<L: Layout, const LOOPS: usize>(exports: &Exports, as_of: Time) -> Traces {
    let read = |export: &RowExport<L, LOOPS>| Imported::new(Arc::clone(export), Stamp::of(as_of));
    let traces: WorkersTraces<L, LOOPS> =
        workers_share::<WorkersExports<L, LOOPS>>(exports).iter().map(read).collect();
    Arc::new(traces)
}

/// Updates that an index has published.
pub(super) fn rows<L: Layout, const LOOPS: usize>(exports: &Exports) -> usize {
    let exports = workers_share::<WorkersExports<L, LOOPS>>(exports);
    exports.iter().map(|export| export.updates()).sum()
}

fn workers_share<T: 'static>(of_form: &Arc<dyn Any + Send + Sync>) -> &T {
    of_form.downcast_ref().expect("an index is read by dataflows of its form only")
}

/// Installs the dataflow of an index. Its output is empty: it tells how far the index is.
pub(super) fn render_index<L: Layout, const LOOPS: usize>(
    worker: &mut Worker,
    index: &Index,
    imports: &[Import],
    exports: &Exports,
    as_of: Time,
    guard: Guard,
) -> Installed {
    worker.dataflow_named::<Stamp<LOOPS>, _, _>("Index", |scope| {
        let plan = index.plan();
        let (mut renderer, inputs) =
            Renderer::<L, Memory, LOOPS>::begin(scope, &plan, imports, (as_of, &guard));
        let key: Vec<Expr> = index.key.iter().copied().map(Expr::Column).collect();
        let arranged = match index.made_by {
            None => renderer.arrange_plan(&plan.root, &key),
            Some(_) => {
                let made = renderer.render(&plan.root);
                let made = renderer.stopping_at_errors(made);
                renderer.arrange_rows(made, &key)
            }
        };
        let rows = arranged.rows.in_memory().expect("it is in memory").clone();
        let nothing = rows.stream.clone().flat_map(|_| None).as_collection();
        let exports = workers_share::<WorkersExports<L, LOOPS>>(exports);
        publish(rows, Arc::clone(&exports[scope.index() % exports.len()]));
        let root = Bundle { oks: nothing, errs: Errs::default(), columns: arranged.columns };
        let errors = renderer.context.errors(&arranged.errs);
        render_sink::<L, LOOPS>(root, errors, (as_of, |_| ()), false, guard);
        inputs
    })
}

impl<'s, L: Layout, S: Storage, const LOOPS: usize> Renderer<'s, L, S, LOOPS> {
    /// The same rows, of no time at which there is an error: before that comes out, the dataflow is stopped.
    fn stopping_at_errors(&mut self, made: Bundle<'s, L, LOOPS>) -> Bundle<'s, L, LOOPS> {
        if made.errs.is_empty() {
            return made;
        }
        let errors = self.context.errors(&made.errs);
        let errors = stop_at_errors::<L, LOOPS>(errors, self.context.guard.clone());
        // Rows are not through before their errors are.
        Bundle { oks: made.oks.concat(errors), errs: Errs::default(), ..made }
    }

    /// A side of a join that is read from an index.
    pub(super) fn import(&self, plan: &Plan, key: &[Expr]) -> Option<Arranged<'s, L, S, LOOPS>> {
        let Side { lookup: (source, key), work } = Side::of(plan, key)?;
        let found = self.imports.iter().find(|i| i.source == source && i.key == key)?;
        let columns = source_columns(&found.index.source);
        let key = key_of(&found.index);
        let mut made = found.rows();
        work.into_iter().for_each(|work| made.then(work));
        let mut made = made.finish();
        let sieve = sieve::<L, LOOPS>(&columns, &key, &made);
        made.filter.clear();
        let scope = self.context.scope;
        let traces = workers_share::<WorkersTraces<L, LOOPS>>(&found.traces);
        let trace = traces[scope.index() % traces.len()].clone().sifted(sieve);
        let rows = import(scope, trace, &self.wake);
        let rows = RowArrangement { rows: Kept::of_memory(rows)?, errs: Errs::default(), columns };
        Some(Arranged { rows, key, made: Some(made) })
    }

    /// What an Mfp makes of a source whose rows are all read from an index, if they are.
    pub(super) fn import_all(&mut self, id: SourceId, mfp: &Mfp) -> Option<Bundle<'s, L, LOOPS>> {
        let found = self.imports.iter().find(|i| i.source == id && i.key.is_empty())?;
        let columns = mfp_columns(&self.sources[id.0].columns, mfp);
        let key = key_of(&found.index);
        let split = Split::of(&source_columns(&found.index.source), &key);
        let mut made = found.rows();
        made.then(mfp);
        let mut made = made.finish();
        // What may fail has to be tried of each row.
        let is_safe = !made.may_fail() && !made.calls_host();
        let of_index = source_columns(&found.index.source);
        let sieve = if is_safe { sieve::<L, LOOPS>(&of_index, &key, &made) } else { None };
        if sieve.is_some() {
            made.filter.clear();
        }
        let mfp = split.over(&key, &made);
        let work = RowWork::<L, L::Row>::new(mfp, &[&split.key, &split.val], &columns);
        let (scope, guard) = (self.context.scope, self.context.guard.clone());
        let traces = workers_share::<WorkersTraces<L, LOOPS>>(&found.traces);
        let trace = traces[scope.index() % traces.len()].clone().sifted(sieve);
        match work {
            RowWork::Move(moves) => {
                let oks = import_rows(scope, &trace, &self.wake, move |key, val| {
                    guard.proceed(1);
                    Some(L::Row::project(&moves, &[key.view(), val.view()]))
                });
                Some(Bundle { oks, errs: Errs::default(), columns })
            }
            RowWork::Map(mapper) if mapper.calls_host() => None,
            RowWork::Map(mapper) => {
                let results = import_rows(scope, &trace, &self.wake, move |key, val| {
                    guard.proceed(1);
                    mapper.apply(&[key.view(), val.view()])
                });
                let (oks, errs) = split_results(results);
                Some(Bundle { oks, errs: self.context.raise(errs), columns })
            }
        }
    }
}

/// Stops the dataflow if there is an error at any time, which has not come and gone then. Yields nothing, of no time before that
/// is known.
fn stop_at_errors<'s, L: Layout, const LOOPS: usize>(
    errors: Collection<'s, DataError, LOOPS>,
    guard: Guard,
) -> Collection<'s, L::Row, LOOPS> {
    let mut held = BTreeMap::new();
    let nothing = errors.inner.unary_frontier::<CapacityContainerBuilder<Vec<_>>, _, _, _>(
        Pipeline,
        "Stop at errors",
        move |_, _| {
            move |(input, frontier), _| {
                input.for_each(|capability, data| {
                    for (error, time, diff) in data.drain(..) {
                        let held = held.entry(time);
                        let new = || (capability.delayed(&time, 0), BTreeMap::new());
                        let (_, errors) = held.or_insert_with(new);
                        errors.entry(error).or_insert(Mult(0)).plus_equals(&diff);
                    }
                });
                let is_known = |time: &Stamp<LOOPS>| !frontier.less_equal(time);
                for (_, errors) in held.extract_if(.., |time, _| is_known(time)).map(|(_, all)| all)
                {
                    let left = errors.into_iter().find(|(_, count)| !count.is_zero());
                    left.into_iter().for_each(|(error, _)| guard.raise(error));
                }
            }
        },
    );
    nothing.as_collection()
}

fn key_of(index: &Index) -> Vec<Expr> {
    index.key.iter().copied().map(Expr::Column).collect()
}

impl Import {
    /// The rows of the source, made of those of the index.
    fn rows(&self) -> MfpBuilder {
        let mut made = MfpBuilder::new(self.index.source.columns.len());
        let of_source = self.columns.iter().copied().map(Expr::Column);
        made.map(&of_source.collect::<Vec<_>>());
        made
    }
}

/// What lets pass the rows that work leaves over, if it leaves out any. It cannot fail.
fn sieve<L: Layout, const LOOPS: usize>(
    columns: &[ColumnType],
    key: &[Expr],
    work: &Mfp,
) -> Option<RowSieve<L, LOOPS>> {
    if work.filter.is_empty() {
        return None;
    }
    let split = Split::of(columns, key);
    let mfp = split.over(key, &Mfp { project: vec![], ..work.clone() });
    let work = RowWork::<L, L::Row>::new(mfp, &[&split.key, &split.val], &[]);
    match work {
        RowWork::Move(_) => None,
        RowWork::Map(filter) => Some(Arc::new(move |key: &L::Key, val: &L::Val| {
            matches!(filter.apply(&[key.view(), val.view()]), Some(Ok(_)))
        })),
    }
}
