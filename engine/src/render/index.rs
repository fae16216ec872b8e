//! Indexes, from both sides: as dataflows of their own, and as arrangements of those that read them.

use super::arrangements::RowArrangement;
use super::errors::{Errs, Raised};
use super::imported::{Exports, Traces};
use super::in_memory::Memory;
use super::input::render_input;
use super::output::render_sink;
use super::renderer::{Bundle, Context, Renderer};
use super::share::{import, publish, Export, Imported};
use super::storage::{Kept, Storage};
use super::watched::{ValBatch, ValUpdates};
use super::{count, Installed};
use crate::core::monitor::Guard;
use crate::core::stamp::Stamp;
use crate::core::updates::Time;
use crate::layout::infer::source_columns;
use crate::layout::Layout;
use differential_dataflow::AsCollection;
use plan::expr::Expr;
use plan::{Plan, Source, SourceId, ViewPlan};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::sync::Arc;
use timely::dataflow::operators::vec::Map;
use timely::worker::Worker;

/// The rows of a table arranged by some of its columns, for all dataflows that join with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// The table, with the columns that rows have.
    pub source: Source,
    /// Positions of the columns in those of the source.
    pub key: Vec<usize>,
    /// That of the dataflows that read it.
    pub form: super::Form,
}

/// What a join looks up in a table: a source, and positions of its columns.
pub type Lookup = (SourceId, Vec<usize>);

/// The look-ups of a plan's joins that indexes can answer.
pub fn lookups(plan: &ViewPlan) -> BTreeSet<Lookup> {
    let mut found = BTreeSet::new();
    visit_sides(&plan.root, &mut |side, key| found.extend(lookup(side, key)));
    found
}

/// The sources of which a plan needs the rows beside what indexes answer.
pub fn sources_beside(plan: &ViewPlan, answered: &BTreeSet<Lookup>) -> BTreeSet<SourceId> {
    let mut by_index = BTreeMap::<SourceId, usize>::new();
    visit_sides(&plan.root, &mut |side, key| {
        if let Some((source, _)) = lookup(side, key).filter(|lookup| answered.contains(lookup)) {
            *by_index.entry(source).or_default() += 1;
        }
    });
    let sources = (0..plan.sources.len()).map(SourceId);
    let is_beside = |id: &SourceId| count(&plan.root, *id) > by_index.get(id).copied().unwrap_or(0);
    sources.filter(is_beside).collect()
}

fn lookup(side: &Plan, key: &[Expr]) -> Option<Lookup> {
    let Plan::Source(id) = side else { return None };
    let columns: Vec<usize> = key.iter().map(Expr::as_column).collect::<Option<_>>()?;
    (!columns.is_empty()).then_some((*id, columns))
}

fn visit_sides(plan: &Plan, visit: &mut impl FnMut(&Plan, &[Expr])) {
    if let Plan::Join { left, right, left_key, right_key, .. } = plan {
        visit(left, left_key);
        visit(right, right_key);
    }
    plan.children().into_iter().for_each(|child| visit_sides(child, visit));
}

type RowExport<L, const LOOPS: usize> =
    Arc<Export<ValBatch<<L as Layout>::Key, <L as Layout>::Val, LOOPS>>>;
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

fn workers_share<T: 'static>(of_form: &Arc<dyn Any + Send + Sync>) -> &T {
    of_form.downcast_ref().expect("an index is read by dataflows of its form only")
}

/// Installs the dataflow of an index. Its output is empty: it tells how far the index is.
pub(super) fn render_index<L: Layout, const LOOPS: usize>(
    worker: &mut Worker,
    index: &Index,
    exports: &Exports,
    as_of: Time,
    guard: Guard,
) -> Installed {
    worker.dataflow_named::<Stamp<LOOPS>, _, _>("Index", |scope| {
        let columns = source_columns(&index.source);
        let (input, holder, oks) =
            render_input::<L, Memory, LOOPS>(scope, as_of, &columns, guard.clone());
        let raised = Raised::default();
        let storage = PhantomData;
        let mut renderer = Renderer::<'_, L, Memory, LOOPS> {
            context: Context { scope, as_of, guard: guard.clone(), raised, depth: 0, storage },
            sources: vec![Bundle { oks, errs: Errs::default(), columns }],
            held: vec![holder],
            uses: vec![1],
            locals: BTreeMap::new(),
            arrangements: Vec::new(),
            imports: Vec::new(),
        };
        let key: Vec<Expr> = index.key.iter().copied().map(Expr::Column).collect();
        let arranged = renderer.arrange_plan(&Plan::Source(SourceId(0)), &key);
        let rows = arranged.rows.in_memory().expect("it is in memory").clone();
        let nothing = rows.stream.clone().flat_map(|_| None).as_collection();
        let exports = workers_share::<WorkersExports<L, LOOPS>>(exports);
        publish(rows, Arc::clone(&exports[scope.index()]));
        let root = Bundle { oks: nothing, errs: Errs::default(), columns: arranged.columns };
        let errors = renderer.context.errors(&root.errs);
        render_sink::<L, LOOPS>(root, errors, as_of, guard);
        vec![input]
    })
}

impl<'s, L: Layout, S: Storage, const LOOPS: usize> Renderer<'s, L, S, LOOPS> {
    /// An arrangement of a source that is read from an index.
    pub(super) fn import(
        &self,
        plan: &Plan,
        key: &[Expr],
    ) -> Option<RowArrangement<'s, L, S, LOOPS>> {
        let (source, key) = lookup(plan, key)?;
        let found = self.imports.iter().find(|i| i.source == source && i.key == key)?;
        let scope = self.context.scope;
        let traces = workers_share::<WorkersTraces<L, LOOPS>>(&found.traces);
        let rows = import(scope, traces[scope.index()].clone());
        let columns = self.sources[source.0].columns.clone();
        Some(RowArrangement { rows: Kept::of_memory(rows)?, errs: Errs::default(), columns })
    }
}
