//! Calls of the host are moved into [`Plan::Mfp`]s: there rows come in batches, and so go their calls.

use crate::ir::Input;
use plan::expr::{self, Expr};
use plan::partition::{SortKey, Work};
use plan::table_function::TableFunction;
use plan::{Aggregate, JoinTree, LocalId, Mfp, Plan};
use std::collections::BTreeMap;

/// The plan with calls of the host in Mfps only, but for the keys of recursions.
pub(super) fn isolate(plan: Plan, inputs: &[Input]) -> Plan {
    Isolation { inputs, locals: BTreeMap::new() }.plan(plan).0
}

struct Isolation<'i> {
    inputs: &'i [Input],
    /// How many columns each local has.
    locals: BTreeMap<LocalId, usize>,
}

/// A plan and the number of its columns.
type Sized = (Plan, usize);

impl Isolation<'_> {
    #[expect(clippy::boxed_local, reason = "plans hold their inputs in boxes")]
    fn below(&mut self, plan: Box<Plan>) -> (Box<Plan>, usize) {
        let (plan, arity) = self.plan(*plan);
        (Box::new(plan), arity)
    }

    fn plan(&mut self, plan: Plan) -> Sized {
        match plan {
            Plan::Constant { arity, rows } => (Plan::Constant { arity, rows }, arity),
            Plan::Source(id) => (Plan::Source(id), self.inputs[id.0].source.columns.len()),
            Plan::Get(id) => (Plan::Get(id), self.locals[&id]),
            Plan::Let { id, value, body } => {
                let (value, arity) = self.below(value);
                self.locals.insert(id, arity);
                let (body, arity) = self.below(body);
                (Plan::Let { id, value, body }, arity)
            }
            Plan::LetRec { id, recursion, base, step, body } => {
                let (base, arity) = self.below(base);
                self.locals.insert(id, arity);
                let (step, (body, arity)) = (self.below(step).0, self.below(body));
                (Plan::LetRec { id, recursion, base, step, body }, arity)
            }
            Plan::Mfp { input, mfp } => {
                let arity = mfp.project.len();
                (Plan::Mfp { input: self.below(input).0, mfp }, arity)
            }
            Plan::TableFunction { input, table_function, closure } => {
                let input = self.below(input);
                with_calls_below_functions(input, table_function, closure)
            }
            Plan::Join { left, right, left_key, right_key, closure } => {
                let (left, right) = (self.below(left), self.below(right));
                with_calls_below_join((left, left_key), (right, right_key), closure)
            }
            Plan::DeltaJoin { inputs, tree, closure } => {
                let inputs = inputs.into_iter().map(|input| self.plan(input).0).collect();
                with_calls_below_delta_join(inputs, tree, closure)
            }
            Plan::Reduce { input, key, aggregates } => {
                let input = self.below(input);
                with_calls_below_reduce(input, key, aggregates)
            }
            Plan::Partition { input, key, order, work } => {
                let input = self.below(input);
                with_calls_below_partition(input, key, order, work)
            }
            Plan::Temporal { input, clock, from, until, output } => {
                let (input, arity) = (self.below(input).0, output.len());
                (Plan::Temporal { input, clock, from, until, output }, arity)
            }
            Plan::Union { inputs } => {
                let inputs = inputs.into_iter().map(|input| self.plan(input));
                let (inputs, arities): (_, Vec<usize>) = inputs.unzip();
                (Plan::Union { inputs }, arities.first().copied().unwrap_or(0))
            }
            Plan::Distinct { input } => {
                let (input, arity) = self.below(input);
                (Plan::Distinct { input }, arity)
            }
            Plan::Negate { input } => {
                let (input, arity) = self.below(input);
                (Plan::Negate { input }, arity)
            }
            Plan::Repeat { input } => {
                let (input, arity) = self.below(input);
                (Plan::Repeat { input }, arity - 1)
            }
        }
    }
}

fn with_calls_below_functions(
    (input, arity): (Box<Plan>, usize),
    mut table_function: TableFunction,
    mut closure: Mfp,
) -> Sized {
    let mut args: Vec<&mut Expr> = table_function.args_mut().collect();
    let (input, added) = compute(input, arity, &mut args);
    insert_columns(&mut closure, arity, added);
    above(closure, |closure| Plan::TableFunction { input, table_function, closure })
}

fn with_calls_below_reduce(
    (input, arity): (Box<Plan>, usize),
    mut key: Vec<Expr>,
    mut aggregates: Vec<Aggregate>,
) -> Sized {
    let args = aggregates.iter_mut().filter_map(|Aggregate { arg, .. }| arg.as_mut());
    let mut exprs: Vec<&mut Expr> = key.iter_mut().chain(args).collect();
    let (input, _) = compute(input, arity, &mut exprs);
    let arity = key.len() + aggregates.len();
    (Plan::Reduce { input, key, aggregates }, arity)
}

fn with_calls_below_partition(
    (input, arity): (Box<Plan>, usize),
    mut key: Vec<Expr>,
    order: Vec<SortKey>,
    work: Work,
) -> Sized {
    let (input, added) = compute(input, arity, &mut key.iter_mut().collect::<Vec<_>>());
    let results = work.added_columns();
    let plan = Plan::Partition { input, key, order, work };
    (without_columns(plan, arity, added, results), arity + results)
}

fn with_calls_below_join(
    ((left, left_arity), mut left_key): ((Box<Plan>, usize), Vec<Expr>),
    ((right, right_arity), mut right_key): ((Box<Plan>, usize), Vec<Expr>),
    mut closure: Mfp,
) -> Sized {
    let (left, added) = compute(left, left_arity, &mut left_key.iter_mut().collect::<Vec<_>>());
    insert_columns(&mut closure, left_arity, added);
    let (right, added) = compute(right, right_arity, &mut right_key.iter_mut().collect::<Vec<_>>());
    let all = closure.input_arity;
    insert_columns(&mut closure, all, added);
    above(closure, |closure| Plan::Join { left, right, left_key, right_key, closure })
}

fn with_calls_below_delta_join(inputs: Vec<Plan>, mut tree: JoinTree, mut closure: Mfp) -> Sized {
    let mut below = Vec::with_capacity(inputs.len());
    for (number, input) in inputs.into_iter().enumerate() {
        let arity = tree.arities[number];
        let end = tree.start(number) + arity;
        let (input, added) = compute(Box::new(input), arity, &mut tree.keys_mut(number));
        insert_columns(&mut closure, end, added);
        tree.arities[number] += added;
        below.push(*input);
    }
    above(closure, |closure| Plan::DeltaJoin { inputs: below, tree, closure })
}

/// Below an operator, columns for those of its expressions that call the host; how many there are.
fn compute(input: Box<Plan>, arity: usize, exprs: &mut [&mut Expr]) -> (Box<Plan>, usize) {
    let mut maps: Vec<Expr> = Vec::new();
    for expr in exprs.iter_mut().filter(|expr| expr::calls_host(expr)) {
        let known = maps.iter().position(|map| *map == **expr);
        let place = known.unwrap_or_else(|| {
            maps.push((*expr).clone());
            maps.len() - 1
        });
        **expr = Expr::Column(arity + place);
    }
    let added = maps.len();
    if added == 0 {
        return (input, 0);
    }
    let project = (0..arity + added).collect();
    let mfp = Mfp { input_arity: arity, maps, filter: vec![], project };
    (Box::new(Plan::Mfp { input, mfp }), added)
}

/// The columns behind the first so many have moved: an input has more of them.
pub(super) fn insert_columns(closure: &mut Mfp, arity: usize, added: usize) {
    renumber(closure, &|column| if column < arity { column } else { column + added });
    closure.input_arity += added;
}

fn renumber(mfp: &mut Mfp, f: &dyn Fn(usize) -> usize) {
    mfp.maps.iter_mut().chain(&mut mfp.filter).for_each(|expr| expr.map_columns(&mut |c| f(c)));
    mfp.project.iter_mut().for_each(|column| *column = f(*column));
}

/// An operator with its closure, or with the closure above it.
fn above(closure: Mfp, operator: impl FnOnce(Mfp) -> Plan) -> Sized {
    let arity = closure.project.len();
    if !closure.calls_host() {
        return (operator(closure), arity);
    }
    let all = closure.input_arity;
    let identity =
        Mfp { input_arity: all, maps: vec![], filter: vec![], project: (0..all).collect() };
    (Plan::Mfp { input: Box::new(operator(identity)), mfp: closure }, arity)
}

/// A partition without the columns that were added to its input.
fn without_columns(plan: Plan, arity: usize, added: usize, results: usize) -> Plan {
    if added == 0 {
        return plan;
    }
    let input_arity = arity + added + results;
    let project = (0..arity).chain(arity + added..input_arity).collect();
    let mfp = Mfp { input_arity, maps: vec![], filter: vec![], project };
    Plan::Mfp { input: Box::new(plan), mfp }
}
