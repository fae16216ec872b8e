//! Renders plans into dataflows: one function per kind of node, one file per family.
//!
//! A rendered node is a [`Bundle`]: the collection of its rows and the errors its expressions raised (see
//! [`errors`]). All collections of a view live in one timely scope; loops are dynamic, i.e.
//! iteration counters are coordinates of the timestamp, so that recursion may nest.

mod arrange;
mod arrangements;
mod code;
mod contents;
mod delta_join;
mod distinct;
mod entries;
mod errors;
mod extremes;
mod form;
mod imported;
mod in_memory;
mod index;
mod input;
mod join;
mod keep;
mod keyed;
mod linear;
mod lookup;
mod matches;
mod multiset;
mod on_disk;
mod ordered;
mod output;
mod partition;
mod paths;
mod picks;
mod recursion;
mod recursion_extreme;
mod reduce;
mod reduce_in_order;
mod renderer;
mod seeded;
mod share;
mod storage;
mod sub_plan;
mod sums;
mod table_function;
mod table_join;
mod temporal;
mod watched;

pub use delta_join::as_computed;
pub use form::Form;
pub(crate) use imported::{Exports, Import, Traces};
pub(crate) use input::{Feed, PART as INPUT_PART};
pub use lookup::{lookups, sources_beside, Index, Lookup};
pub use sub_plan::{sub_plans, SubPlan};
pub use table_join::{table_joins, TableJoin};

use crate::core::monitor::{Guard, Keeps};
use crate::core::readers;
use crate::core::report::Report;
use crate::core::stamp::Stamp;
use crate::core::updates::Time;
use crate::layout::infer::source_columns;
use crate::layout::{Layout, Varying};
use crate::spill::Pager;
use errors::{Errs, Raised};
use input::{no_input, render_input};
use lookup::count;
pub(crate) use lookup::wanted_rows;
use on_disk::Disk;
use output::render_sink;
use plan::expr::MfpBuilder;
use plan::{LocalId, Plan, SourceId, ViewPlan};
use renderer::{Bundle, Context, Renderer};
use share::Wake;
use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::sync::Arc;
use storage::Storage;
use timely::dataflow::Scope;
use timely::worker::Worker;

/// Loops that may be nested in a dataflow that spills.
pub(crate) const SPILLING_LOOPS: usize = 2;

/// What is left of a dataflow when it is installed: its inputs, by source.
pub(crate) type Installed = Vec<Box<dyn Feed>>;

/// Installs a view's dataflow, of a form that fits it. One that spills imports nothing.
///
/// # Panics
/// When loops are nested deeper than a plan may have them.
pub(crate) fn render_view(
    worker: &mut Worker,
    (plan, form): (&ViewPlan, Form),
    imports: &[Import],
    as_of: Time,
    guard: Guard,
) -> Installed {
    if let (Keeps::OnDisk, Some(spill)) = (guard.dataflow.keeps, guard.shared.spill.clone()) {
        let pager = Pager::new(spill, guard.clone());
        let render = render_with::<Varying, Disk, SPILLING_LOOPS>;
        return pager.while_current(|| render(worker, plan, imports, as_of, guard));
    }
    (form.code().view)(worker, plan, imports, as_of, guard)
}

/// Installs the dataflow of an index.
pub(crate) fn render_index(
    worker: &mut Worker,
    index: &Index,
    imports: &[Import],
    exports: &Exports,
    as_of: Time,
    guard: Guard,
) -> Installed {
    (index.form.code().index)(worker, index, imports, exports, as_of, guard)
}

/// What the workers of an index are going to publish.
pub(crate) fn new_exports(form: Form, workers: usize) -> Exports {
    (form.code().new_exports)(workers)
}

/// What the workers of a dataflow that starts at `as_of` read of an index: the index keeps it for them from now on.
pub(crate) fn new_traces(form: Form, exports: &Exports, as_of: Time) -> Traces {
    (form.code().new_traces)(exports, as_of)
}

/// Updates that an index has published.
pub(crate) fn rows_of(form: Form, exports: &Exports) -> usize {
    (form.code().rows)(exports)
}

/// How many sources the dataflow of an index has, and which of them it needs the rows of beside what it reads of others.
pub(crate) fn sources_of_index(index: &Index, imports: &[Import]) -> (usize, BTreeSet<SourceId>) {
    let plan = index.plan();
    (plan.sources.len(), own_sources(&plan, imports))
}

/// The sources of which a plan needs the rows beside what it reads of indexes.
pub(crate) fn own_sources(plan: &ViewPlan, imports: &[Import]) -> BTreeSet<SourceId> {
    let answered = imports.iter().map(|import| (import.source, import.key.clone()));
    sources_beside(plan, &answered.collect())
}

fn render_with<L: Layout, S: Storage, const LOOPS: usize>(
    worker: &mut Worker,
    plan: &ViewPlan,
    imports: &[Import],
    as_of: Time,
    guard: Guard,
) -> Installed {
    worker.dataflow_named::<Stamp<LOOPS>, _, _>("View", |scope| {
        let (mut renderer, inputs) =
            Renderer::<L, S, LOOPS>::begin(scope, plan, imports, (as_of, &guard));
        let root = renderer.render(&plan.root);
        let errors = renderer.context.errors(&root.errs);
        // Of several workers each waits for what the others have.
        if scope.peers() == 1 && own_sources(plan, imports).is_empty() {
            sleep_if_unconcerned(&renderer.wake, &guard, (scope.index(), as_of));
        }
        let wake = Arc::clone(&renderer.wake);
        let put_out = move |time| wake.note_put_out(Stamp::of(time));
        render_sink(root, errors, (as_of, put_out), plan.pairing_key().is_some(), guard);
        inputs
    })
}

/// A worker that reads indexes only is not woken for what it would not see of them, unless others read what it puts out.
fn sleep_if_unconcerned<const LOOPS: usize>(
    wake: &Arc<Wake<Stamp<LOOPS>>>,
    guard: &Guard,
    (worker, as_of): (usize, Time),
) {
    // At its start it puts out what is there without any rows.
    let from = Stamp::of(as_of.saturating_add(1));
    let (shared, dataflow) = (Arc::clone(&guard.shared), Arc::clone(&guard.dataflow));
    let sleeper = Box::new(move |stamp: &Stamp<LOOPS>| {
        if dataflow.is_stopped() {
            return None;
        }
        dataflow.set_done_to(worker, stamp.time);
        Some((Arc::clone(&shared), Report::nothing(dataflow.instance, worker, stamp.time)))
    });
    wake.may_sleep(sleeper, from);
    let wake = Arc::clone(wake);
    readers::before_first(move || wake.wake_up());
}

impl<'s, L: Layout, S: Storage, const LOOPS: usize> Renderer<'s, L, S, LOOPS> {
    /// Renders the sources of a plan, which is to start at a time.
    fn begin(
        scope: Scope<'s, Stamp<LOOPS>>,
        plan: &ViewPlan,
        imports: &[Import],
        (as_of, guard): (Time, &Guard),
    ) -> (Self, Installed) {
        let (mut inputs, mut sources, mut held) = (Vec::new(), Vec::new(), Vec::new());
        let own = own_sources(plan, imports);
        let wanted = wanted_rows(plan);
        let wake = Arc::new(Wake::always());
        for (number, source) in plan.sources.iter().enumerate() {
            let columns = source_columns(source);
            let (input, holder, oks) = match own.contains(&SourceId(number)) {
                true => {
                    let wanted = wanted.get(&SourceId(number));
                    let (wake, place) = (Arc::clone(&wake), wake.add_input(Stamp::of(as_of)));
                    let told = Box::new(move |time| wake.note_told(place, Stamp::of(time)));
                    let guard = guard.clone();
                    render_input::<L, S, LOOPS>(scope, as_of, (&columns, wanted), told, guard)
                }
                false => no_input::<L, LOOPS>(scope),
            };
            inputs.push(input);
            held.push(holder);
            sources.push(Bundle { oks, errs: Errs::default(), columns });
        }
        let renderer = Renderer {
            context: Context {
                scope,
                as_of,
                guard: guard.clone(),
                raised: Raised::default(),
                depth: 0,
                storage: PhantomData,
            },
            sources,
            held,
            uses: (0..plan.sources.len()).map(|i| count(&plan.root, SourceId(i))).collect(),
            locals: BTreeMap::new(),
            arrangements: Vec::new(),
            imports: imports.to_vec(),
            wake,
        };
        (renderer, inputs)
    }

    /// Renders a plan in the current scope of names and loops.
    fn render(&mut self, plan: &Plan) -> Bundle<'s, L, LOOPS> {
        match plan {
            Plan::Constant { arity, rows } => self.render_constant(*arity, rows),
            Plan::Source(id) => {
                let arity = self.sources[id.0].columns.len();
                let all = self.import_all(*id, &MfpBuilder::new(arity).finish());
                all.unwrap_or_else(|| self.sources[id.0].clone())
            }
            Plan::Get(id) => self.get(*id),
            Plan::Let { id, body, .. } | Plan::LetRec { id, body, .. } if !uses(body, *id) => {
                // As in PostgreSQL, what nobody refers to is not computed.
                self.render(body)
            }
            Plan::Let { id, value, body } => {
                let value = self.render(value);
                self.bind(*id, value);
                self.render(body)
            }
            Plan::LetRec { id, recursion, base, step, body } => {
                let result = self.render_recursion(*id, recursion, base, step);
                self.bind(*id, result);
                self.render(body)
            }
            Plan::Mfp { input, mfp } => self.render_mfp(input, mfp),
            Plan::TableFunction { input, table_function, closure } => {
                self.render_table_function(input, table_function, closure)
            }
            Plan::Join { left, right, left_key, right_key, closure } => {
                self.render_join((left, left_key), (right, right_key), closure)
            }
            Plan::DeltaJoin { inputs, tree, closure } => {
                self.render_delta_join(inputs, tree, closure)
            }
            Plan::Reduce { input, key, aggregates } => self.render_reduce(input, key, aggregates),
            Plan::Distinct { input } => self.render_distinct(input),
            Plan::Partition { input, key, order, work } => {
                self.render_partition(input, (key, order), work)
            }
            Plan::Temporal { input, clock, from, until, output } => {
                self.render_temporal(input, *clock, (from, until), output)
            }
            Plan::Union { inputs } => self.render_union(inputs),
            Plan::Negate { input } => self.render_negate(input),
            Plan::Repeat { input } => self.render_repeat(input),
        }
    }
}

/// Whether a plan refers to a name.
fn uses(plan: &Plan, id: LocalId) -> bool {
    *plan == Plan::Get(id) || plan.children().into_iter().any(|child| uses(child, id))
}
