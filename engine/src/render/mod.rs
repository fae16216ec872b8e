//! Renders plans into dataflows: one function per kind of node, one file per family.
//!
//! A rendered node is a [`Bundle`]: the collection of its rows and the collection of the errors its
//! expressions raised. All collections of a view live in one timely scope; loops are dynamic, i.e.
//! iteration counters are coordinates of the timestamp, so that recursion may nest.

mod arrange;
mod distinct;
mod extremes;
mod group;
mod join;
mod keyed;
mod linear;
mod ordered;
mod picks;
mod recursion;
mod recursion_extreme;
mod reduce;
mod reduce_in_order;

pub(crate) use arrange::StateMeter;

use crate::diff::Mult;
use crate::input::{render_input, Input};
use crate::monitor::Guard;
use crate::output::render_sink;
use crate::stamp::Stamp;
use crate::Time;
use arrange::{ArrangementKey, RowArrangement};
use differential_dataflow::VecCollection;
use planner::error::DataError;
use planner::plan::{LocalId, Plan, ViewPlan, MAX_NESTED_LOOPS};
use planner::row::Row;
use std::collections::BTreeMap;
use timely::dataflow::operators::generic::operator::empty;
use timely::dataflow::Scope;
use timely::worker::Worker;

/// A collection in a view's dataflow.
pub(crate) type Collection<'s, D, const LOOPS: usize> = VecCollection<'s, Stamp<LOOPS>, D, Mult>;

/// A rendered node.
#[derive(Clone)]
pub(crate) struct Bundle<'s, const LOOPS: usize> {
    /// Its rows.
    pub(crate) oks: Collection<'s, Row, LOOPS>,
    /// Errors raised by it and by what is below it.
    pub(crate) errs: Collection<'s, DataError, LOOPS>,
}

/// Installs a view's dataflow; returns its inputs, by source, and the meter of its state.
///
/// # Panics
/// When loops are nested deeper than a plan may have them.
pub(crate) fn render_view(
    worker: &mut Worker,
    plan: &ViewPlan,
    as_of: Time,
    guard: Guard,
) -> (Vec<Input>, StateMeter) {
    // Stamps are copied and compared all the time: they should be no larger than the plan needs.
    match plan.root.nested_loops() {
        0 | 1 => render_with::<1>(worker, plan, as_of, guard),
        _ => render_with::<MAX_NESTED_LOOPS>(worker, plan, as_of, guard),
    }
}

fn render_with<const LOOPS: usize>(
    worker: &mut Worker,
    plan: &ViewPlan,
    as_of: Time,
    guard: Guard,
) -> (Vec<Input>, StateMeter) {
    worker.dataflow_named::<Stamp<LOOPS>, _, _>("View", |scope| {
        let (inputs, sources): (Vec<_>, Vec<_>) =
            plan.sources.iter().map(|_| render_input(scope, as_of)).unzip();
        let no_errors = empty(scope);
        let sources = sources
            .into_iter()
            .map(|oks| Bundle { oks, errs: Collection::new(no_errors.clone()) })
            .collect();
        let mut renderer = Renderer {
            scope,
            as_of,
            guard: guard.clone(),
            sources,
            locals: BTreeMap::new(),
            arrangements: Vec::new(),
            meter: StateMeter::default(),
            depth: 0,
        };
        let root = renderer.render(&plan.root);
        render_sink(root, as_of, guard);
        (inputs, renderer.meter)
    })
}

/// What rendering a node needs to know of its surroundings.
pub(crate) struct Renderer<'s, const LOOPS: usize> {
    scope: Scope<'s, Stamp<LOOPS>>,
    as_of: Time,
    guard: Guard,
    sources: Vec<Bundle<'s, LOOPS>>,
    locals: BTreeMap<LocalId, Bundle<'s, LOOPS>>,
    /// Arrangements of sources and locals by join keys, shared by all joins of this view.
    arrangements: Vec<(ArrangementKey, RowArrangement<'s, LOOPS>)>,
    meter: StateMeter,
    /// Number of enclosing loops.
    depth: usize,
}

impl<'s, const LOOPS: usize> Renderer<'s, LOOPS> {
    /// Renders a plan in the current scope of names and loops.
    fn render(&mut self, plan: &Plan) -> Bundle<'s, LOOPS> {
        match plan {
            Plan::Constant { rows } => self.render_constant(rows),
            Plan::Source(id) => self.sources[id.0].clone(),
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
            Plan::Join { left, right, left_key, right_key, closure } => {
                self.render_join((left, left_key), (right, right_key), closure)
            }
            Plan::Reduce { input, key, aggregates } => self.render_reduce(input, key, aggregates),
            Plan::Distinct { input } => self.render_distinct(input),
            Plan::Union { inputs } => self.render_union(inputs),
            Plan::Negate { input } => self.render_negate(input),
        }
    }

    /// Lets `id` stand for `bundle`. Within its loop a recursion's name stands for something else than
    /// after it, so what was arranged under that name is not valid any more.
    fn bind(&mut self, id: LocalId, bundle: Bundle<'s, LOOPS>) {
        self.arrangements.retain(|(key, _)| !key.is_of(id));
        self.locals.insert(id, bundle);
    }

    fn get(&self, id: LocalId) -> Bundle<'s, LOOPS> {
        self.locals.get(&id).expect("a plan refers only to names bound around it").clone()
    }

    fn empty<D: Clone + 'static>(&self) -> Collection<'s, D, LOOPS> {
        Collection::new(empty(self.scope))
    }
}

/// Whether a plan refers to a name.
fn uses(plan: &Plan, id: LocalId) -> bool {
    *plan == Plan::Get(id) || plan.children().into_iter().any(|child| uses(child, id))
}
