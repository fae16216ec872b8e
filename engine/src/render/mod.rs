//! Renders plans into dataflows: one function per kind of node, one file per family.
//!
//! A rendered node is a [`Bundle`]: the collection of its rows and the errors its expressions raised (see
//! [`errors`]). All collections of a view live in one timely scope; loops are dynamic, i.e.
//! iteration counters are coordinates of the timestamp, so that recursion may nest.

mod arrange;
mod distinct;
mod entries;
mod errors;
mod extremes;
mod group;
mod join;
mod kept;
mod keyed;
mod linear;
mod matches;
mod multiset;
mod ordered;
mod partition;
mod picks;
mod recursion;
mod recursion_extreme;
mod reduce;
mod reduce_in_order;
mod table_function;
mod temporal;
mod watched;

pub(crate) use kept::SPILLING_LOOPS;

use crate::diff::Mult;
use crate::input::{render_input, Feed, Held};
use crate::layout::infer::{source_columns, words_of, Columns, Types, Words};
use crate::layout::{Fixed, Layout, Packed};
use crate::monitor::{Guard, Keeps};
use crate::output::render_sink;
use crate::spill::Pager;
use crate::stamp::Stamp;
use crate::Time;
use arrange::{ArrangementKey, RowArrangement};
use differential_dataflow::VecCollection;
use errors::{Errs, Raised};
use ordered::{Clearing, Clears};
use plan::{LocalId, Plan, SourceId, ViewPlan, MAX_NESTED_LOOPS};
use std::collections::BTreeMap;
use std::rc::Rc;
use timely::dataflow::operators::generic::operator::empty;
use timely::dataflow::Scope;
use timely::worker::Worker;

/// A collection in a view's dataflow.
pub(crate) type Collection<'s, D, const LOOPS: usize> = VecCollection<'s, Stamp<LOOPS>, D, Mult>;

/// A rendered node.
#[derive(Clone)]
pub(crate) struct Bundle<'s, L: Layout, const LOOPS: usize> {
    /// Its rows.
    pub(crate) oks: Collection<'s, L::Row, LOOPS>,
    /// Errors raised by it and by what is below it.
    errs: Errs,
    /// The columns of its rows.
    pub(crate) columns: Columns,
}

/// What is left of a dataflow when it is installed: its inputs, by source.
pub(crate) type Installed = Vec<Box<dyn Feed>>;

/// Installs a view's dataflow.
///
/// # Panics
/// When loops are nested deeper than a plan may have them.
pub(crate) fn render_view(
    worker: &mut Worker,
    plan: &ViewPlan,
    as_of: Time,
    guard: Guard,
) -> Installed {
    if let (Keeps::OnDisk, Some(spill)) = (guard.dataflow.keeps, guard.shared.spill.clone()) {
        let pager = Pager::new(spill, guard.clone());
        let render = render_with::<Packed, SPILLING_LOOPS>;
        return pager.while_current(|| render(worker, plan, as_of, guard));
    }
    // Stamps and rows are copied and compared all the time: they should be no larger than the plan needs.
    let render = match plan.root.nested_loops() {
        0 => renderer::<0>(words_of(plan)),
        1 => renderer::<1>(words_of(plan)),
        _ => render_with::<Packed, MAX_NESTED_LOOPS>,
    };
    render(worker, plan, as_of, guard)
}

type Render = fn(&mut Worker, &ViewPlan, Time, Guard) -> Installed;

/// Renders in the first layout that a plan fits: what is in arrangements counts more than rows on their way.
fn renderer<const LOOPS: usize>(words: Option<Words>) -> Render {
    let fit = |row, key, val| words.is_some_and(|w| w.row <= row && w.key <= key && w.val <= val);
    if fit(2, 1, 1) {
        render_with::<Fixed<2, 1, 1>, LOOPS>
    } else if fit(6, 1, 1) {
        render_with::<Fixed<6, 1, 1>, LOOPS>
    } else if fit(4, 2, 2) {
        render_with::<Fixed<4, 2, 2>, LOOPS>
    } else if fit(8, 4, 6) {
        render_with::<Fixed<8, 4, 6>, LOOPS>
    } else {
        render_with::<Packed, LOOPS>
    }
}

fn render_with<L: Layout, const LOOPS: usize>(
    worker: &mut Worker,
    plan: &ViewPlan,
    as_of: Time,
    guard: Guard,
) -> Installed {
    worker.dataflow_named::<Stamp<LOOPS>, _, _>("View", |scope| {
        let (mut inputs, mut sources, mut held) = (Vec::new(), Vec::new(), Vec::new());
        for source in &plan.sources {
            let columns = source_columns(source);
            let (input, holder, oks) =
                render_input::<L, LOOPS>(scope, as_of, &columns, guard.clone());
            inputs.push(input);
            held.push(holder);
            sources.push(Bundle::<'_, L, LOOPS> { oks, errs: Errs::default(), columns });
        }
        let mut renderer = Renderer {
            context: Context {
                scope,
                as_of,
                guard: guard.clone(),
                raised: Raised::default(),
                depth: 0,
            },
            sources,
            held,
            uses: (0..plan.sources.len()).map(|i| count(&plan.root, SourceId(i))).collect(),
            locals: BTreeMap::new(),
            arrangements: Vec::new(),
        };
        let root = renderer.render(&plan.root);
        let errors = renderer.context.errors(&root.errs);
        render_sink(root, errors, as_of, guard);
        inputs
    })
}

/// What rendering a node needs to know of its surroundings.
pub(crate) struct Renderer<'s, L: Layout, const LOOPS: usize> {
    context: Context<'s, LOOPS>,
    sources: Vec<Bundle<'s, L, LOOPS>>,
    /// Who holds the rows of each source.
    held: Vec<Held<L::Row>>,
    /// How often the plan refers to each source.
    uses: Vec<usize>,
    locals: BTreeMap<LocalId, Bundle<'s, L, LOOPS>>,
    /// Arrangements of sources and locals by join keys, shared by all joins of this view.
    arrangements: Vec<(ArrangementKey, RowArrangement<'s, L, LOOPS>)>,
}

/// What operators need to know of their surroundings, whatever the layout of rows.
struct Context<'s, const LOOPS: usize> {
    scope: Scope<'s, Stamp<LOOPS>>,
    as_of: Time,
    guard: Guard,
    raised: Raised<'s, LOOPS>,
    /// Number of enclosing loops.
    depth: usize,
}

impl<'s, L: Layout, const LOOPS: usize> Renderer<'s, L, LOOPS> {
    /// Renders a plan in the current scope of names and loops.
    fn render(&mut self, plan: &Plan) -> Bundle<'s, L, LOOPS> {
        match plan {
            Plan::Constant { arity, rows } => self.render_constant(*arity, rows),
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
            Plan::TableFunction { input, table_function, closure } => {
                self.render_table_function(input, table_function, closure)
            }
            Plan::Join { left, right, left_key, right_key, closure } => {
                self.render_join((left, left_key), (right, right_key), closure)
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

    /// Lets `id` stand for `bundle`. Within its loop a recursion's name stands for something else than
    /// after it, so what was arranged under that name is not valid any more.
    fn bind(&mut self, id: LocalId, bundle: Bundle<'s, L, LOOPS>) {
        self.arrangements.retain(|(key, _)| !key.is_of(id));
        self.locals.insert(id, bundle);
    }

    fn get(&self, id: LocalId) -> Bundle<'s, L, LOOPS> {
        self.locals.get(&id).expect("a plan refers only to names bound around it").clone()
    }

    /// For an operator that works in order on a plan alone: makes it the holder of the source whose
    /// rows it gets, or what cannot fail made of them, if that source has no other use.
    fn clears_of(&self, plan: &Plan) -> Option<Clears> {
        let source = match plan {
            Plan::Mfp { input, mfp } if !mfp.may_fail() => input,
            plan => plan,
        };
        let Plan::Source(id) = source else { return None };
        if self.uses[id.0] != 1 || !self.context.times_are_ordered() {
            return None;
        }
        let clears = Clears::default();
        *self.held[id.0].borrow_mut() = Some(Box::new(Clearing(Rc::clone(&clears))));
        Some(clears)
    }

    /// The columns of everything that has a name now.
    fn types(&self) -> Types {
        let columns = |bundle: &Bundle<'s, L, LOOPS>| Rc::clone(&bundle.columns);
        let locals = self.locals.iter().map(|(id, bundle)| (*id, columns(bundle))).collect();
        Types { sources: self.sources.iter().map(columns).collect(), locals, words: None }
    }
}

impl<'s, const LOOPS: usize> Context<'s, LOOPS> {
    fn empty<D: Clone + 'static>(&self) -> Collection<'s, D, LOOPS> {
        Collection::new(empty(self.scope))
    }
}

/// How often a plan refers to a source.
fn count(plan: &Plan, id: SourceId) -> usize {
    let below: usize = plan.children().into_iter().map(|child| count(child, id)).sum();
    below + usize::from(*plan == Plan::Source(id))
}

/// Whether a plan refers to a name.
fn uses(plan: &Plan, id: LocalId) -> bool {
    *plan == Plan::Get(id) || plan.children().into_iter().any(|child| uses(child, id))
}
