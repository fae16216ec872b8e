//! IR to physical plan: stacks of projections and filters become one [`Mfp`], equalities become join
//! keys, what SQL calls equal becomes equal bytes.

mod delta_join;
mod host_calls;
mod outer_join;
mod range_join;
mod temporal;

use crate::catalog::Extents;
use crate::error::PlanError;
use crate::ir::{Node, Predicate, Query, Rel, TimeBound, Typed};
use crate::sql::{invalid, unsupported};
use crate::transform::derive_key;
use plan::expr::MfpBuilder;
use plan::expr::{self, Expr};
use plan::table_function::TableFunction;
use plan::types::Column;
use plan::{
    Aggregate, AggregateFunc, JoinTree, Local, LocalId, Mfp, Plan, Source, SourceId, ViewPlan,
    MAX_NESTED_LOOPS,
};
use range_join::{by_cells, CellJoin};

/// Lowers a transformed query.
pub fn lower(query: &Query, extents: Extents<'_>) -> Result<ViewPlan, PlanError> {
    let clock = query.inputs.iter().position(|input| input.source.is_clock()).map(SourceId);
    let mut lowerer = Lowerer { clock, locals: query.locals.clone(), extents };
    let root = lowerer.lower_rel(&query.root)?;
    let root = host_calls::isolate(root, &query.inputs);
    if root.nested_loops() > MAX_NESTED_LOOPS {
        let construct = format!("recursive queries nested more than {MAX_NESTED_LOOPS} deep are");
        return Err(unsupported(construct));
    }
    let sources: Vec<Source> = query.inputs.iter().map(|input| input.source.clone()).collect();
    Ok(ViewPlan {
        sources,
        root,
        columns: query.root.columns.clone(),
        key: derive_key(query),
        locals: lowerer.locals,
    })
}

/// Lowers relations one by one.
struct Lowerer<'e> {
    /// The clock, if something depends on the present time.
    clock: Option<SourceId>,
    /// The names of locals so far.
    locals: Vec<Local>,
    extents: Extents<'e>,
}

impl Lowerer<'_> {
    fn lower_rel(&mut self, rel: &Rel) -> Result<Plan, PlanError> {
        match &rel.node {
            Node::Map { .. }
            | Node::Filter { .. }
            | Node::Temporal { .. }
            | Node::Join { .. }
            | Node::Fence { is_sealed: false, .. }
            | Node::TableFunction { .. } => self.lower_stack(rel),
            Node::Constant { rows } => {
                Ok(Plan::Constant { arity: rel.arity(), rows: rows.clone() })
            }
            Node::Source(id) => Ok(Plan::Source(*id)),
            Node::Get(id) => Ok(Plan::Get(*id)),
            Node::Let { id, value, body } => Ok(Plan::Let {
                id: *id,
                value: Box::new(self.lower_rel(value)?),
                body: Box::new(self.lower_rel(body)?),
            }),
            Node::LetRec { id, form, base, step, body, .. } => Ok(Plan::LetRec {
                id: *id,
                recursion: form.clone().ok_or_else(|| invalid("a recursion without form"))?,
                base: Box::new(self.lower_rel(base)?),
                step: Box::new(self.lower_rel(step)?),
                body: Box::new(self.lower_rel(body)?),
            }),
            Node::OuterJoin { preserved, left, right, predicates } => {
                self.lower_outer_join(*preserved, (left, right), predicates)
            }
            Node::AntiJoin { left, right, predicates } => {
                self.lower_anti_join((left, right), predicates)
            }
            Node::Apply(_) => Err(invalid("a subquery that was not decorrelated")),
            Node::Reduce { input, key, aggregates } => {
                self.lower_reduce(input, key, aggregates.clone())
            }
            Node::Distinct { input } if input.arity() == 0 => {
                Ok(Plan::Distinct { input: Box::new(self.lower_rel(input)?) })
            }
            Node::Distinct { input } => {
                self.lower_reduce(input, &(0..input.arity()).collect::<Vec<_>>(), vec![])
            }
            Node::Partition { input, key, order, work } => {
                let form = |&p: &usize| Expr::Column(p).key_form(input.columns[p].ty);
                Ok(Plan::Partition {
                    key: key.iter().map(form).collect(),
                    input: Box::new(self.lower_rel(input)?),
                    order: order.clone(),
                    work: work.clone(),
                })
            }
            Node::Fence { input, is_sealed: true } => self.lower_seal(input),
            Node::Repeat { input } => Ok(Plan::Repeat { input: Box::new(self.lower_rel(input)?) }),
            Node::Union { inputs } => Ok(Plan::Union {
                inputs: inputs
                    .iter()
                    .map(|input| self.lower_rel(input))
                    .collect::<Result<_, _>>()?,
            }),
        }
    }

    /// Projections and filters down to something else, in one pass: in a closure or in an Mfp. What stands lower is
    /// computed first, which is all that a fence asks for.
    fn lower_stack(&mut self, rel: &Rel) -> Result<Plan, PlanError> {
        let mut layers = Vec::new();
        let mut bottom = rel;
        while let Node::Map { input, .. }
        | Node::Filter { input, .. }
        | Node::Fence { input, is_sealed: false } = &bottom.node
        {
            layers.push(&bottom.node);
            bottom = input;
        }
        let mut builder = MfpBuilder::new(bottom.arity());
        let host = match &bottom.node {
            Node::Join { inputs, predicates } => {
                self.lower_join(inputs, predicates, &mut builder)?
            }
            Node::TableFunction { input, table_function } => {
                Host::TableFunction(Box::new(self.lower_rel(input)?), table_function.clone())
            }
            Node::Temporal { input, bounds } => Host::Temporal(input, bounds),
            _ => Host::Mfp(self.lower_rel(bottom)?),
        };
        for layer in layers.into_iter().rev() {
            match layer {
                Node::Map { outputs, .. } => builder.map(outputs),
                Node::Filter { predicates, .. } => {
                    predicates.iter().for_each(|predicate| builder.filter(&predicate.to_expr()));
                }
                _ => {}
            }
        }
        let mut mfp = builder.finish();
        Ok(match host {
            Host::Join(JoinParts { left, right, left_key, right_key }) => {
                Plan::Join { left, right, left_key, right_key, closure: mfp }
            }
            Host::DeltaJoin(inputs, tree) => Plan::DeltaJoin { inputs, tree, closure: mfp },
            Host::CellJoin(join) => {
                let plan = join.with_closure(&mfp);
                with_names(plan, join.names)
            }
            Host::TableFunction(input, table_function) => {
                Plan::TableFunction { input, table_function, closure: mfp }
            }
            Host::Temporal(input, bounds) => {
                apply_mfp(self.lower_temporal(input, bounds, &mut mfp)?, mfp)
            }
            Host::Mfp(input) => apply_mfp(input, mfp),
        })
    }

    /// As many copies of each row as are left when all that happens at a time has happened.
    fn lower_seal(&mut self, input: &Rel) -> Result<Plan, PlanError> {
        let key = (0..input.arity()).map(Expr::Column).collect();
        let copies = Aggregate { func: AggregateFunc::Count, arg: None };
        let input = Box::new(self.lower_rel(input)?);
        let counted = Plan::Reduce { input, key, aggregates: vec![copies] };
        Ok(Plan::Repeat { input: Box::new(counted) })
    }

    fn lower_join(
        &mut self,
        inputs: &[Rel],
        predicates: &[Predicate],
        closure: &mut MfpBuilder,
    ) -> Result<Host<'static>, PlanError> {
        let [left, right] = inputs else {
            return self.lower_delta_join(inputs, predicates, closure);
        };
        let Condition { left_key, right_key, rest } = Condition::of(predicates, left.arity());
        rest.iter().for_each(|condition| closure.filter(condition));
        let left = (self.lower_rel(left)?, left.columns.as_slice());
        let right = (self.lower_rel(right)?, right.columns.as_slice());
        if left_key.is_empty() {
            let context = (&mut self.locals, self.extents);
            if let Some(join) = by_cells((&left, &right), &rest, false, context) {
                return Ok(Host::CellJoin(join));
            }
        }
        let (left, right) = (Box::new(left.0), Box::new(right.0));
        Ok(Host::Join(JoinParts { left, right, left_key, right_key }))
    }

    /// Groups by columns. Of keys that are equal without being identical one stands for the group.
    fn lower_reduce(
        &mut self,
        input: &Rel,
        key: &[usize],
        aggregates: Vec<Aggregate>,
    ) -> Result<Plan, PlanError> {
        let column = |&position: &usize| -> &Column { &input.columns[position] };
        let differing: Vec<usize> =
            (0..key.len()).filter(|&i| !column(&key[i]).ty.is_canonical()).collect();
        if aggregates.is_empty() && differing.is_empty() && !key.is_empty() {
            let projected =
                Rel { columns: input.columns.clone(), node: input.node.clone() }.project(key);
            return Ok(Plan::Distinct { input: Box::new(self.lower_rel(&projected)?) });
        }
        let plan = self.lower_rel(input)?;
        let key_forms = key.iter().map(|p| Expr::Column(*p).key_form(column(p).ty)).collect();
        let count = aggregates.len();
        let mut all = aggregates;
        all.extend(
            differing
                .iter()
                .map(|&i| Aggregate { func: AggregateFunc::Any, arg: Some(Expr::Column(key[i])) }),
        );
        let arity = key.len() + all.len();
        let reduce = Plan::Reduce { input: Box::new(plan), key: key_forms, aggregates: all };
        let mut project: Vec<usize> = (0..key.len() + count).collect();
        for (rank, &i) in differing.iter().enumerate() {
            project[i] = key.len() + count + rank;
        }
        let mfp = Mfp { input_arity: arity, maps: vec![], filter: vec![], project };
        Ok(apply_mfp(reduce, mfp))
    }
}

/// An Mfp above a plan, left out if it does nothing, computed now if it can be.
fn apply_mfp(input: Plan, mfp: Mfp) -> Plan {
    if mfp.is_identity() {
        return input;
    }
    if let Plan::Constant { rows, .. } = &input {
        let mut results = Vec::with_capacity(rows.len());
        for (row, diff) in rows {
            match mfp.eval(&row.unpack()) {
                Ok(result) => results.extend(result.map(|result| (result, *diff))),
                // The failure belongs to the data: it is raised when the view is computed.
                Err(_) => return Plan::Mfp { input: Box::new(input), mfp },
            }
        }
        return Plan::Constant { arity: mfp.project.len(), rows: results };
    }
    Plan::Mfp { input: Box::new(input), mfp }
}

/// A plan below the values of its names.
fn with_names(plan: Plan, names: Vec<(LocalId, Plan)>) -> Plan {
    names.into_iter().rev().fold(plan, |body, (id, value)| Plan::Let {
        id,
        value: Box::new(value),
        body: Box::new(body),
    })
}

/// What does the work of projections and filters.
enum Host<'r> {
    /// The closure of a join.
    Join(JoinParts),
    /// That of a join of more than two.
    DeltaJoin(Vec<Plan>, JoinTree),
    /// That of a join by cells.
    CellJoin(CellJoin),
    /// The closure of set-returning functions.
    TableFunction(Box<Plan>, TableFunction),
    /// What puts out just the columns that an Mfp above it needs.
    Temporal(&'r Rel, &'r [TimeBound]),
    /// An Mfp above the plan.
    Mfp(Plan),
}

/// A join without its closure.
struct JoinParts {
    left: Box<Plan>,
    right: Box<Plan>,
    left_key: Vec<Expr>,
    right_key: Vec<Expr>,
}

/// The condition of a join of two inputs.
struct Condition {
    /// Equalities of both inputs, each side over its own columns and in key form.
    left_key: Vec<Expr>,
    right_key: Vec<Expr>,
    /// What else is to be true, over the columns of both.
    rest: Vec<Expr>,
}

impl Condition {
    /// `split` is the number of columns of the left input.
    fn of(predicates: &[Predicate], split: usize) -> Condition {
        let mut condition = Condition { left_key: vec![], right_key: vec![], rest: vec![] };
        for predicate in predicates {
            match key_pair(predicate, split) {
                Some((left, right)) => {
                    let right = expr::renumber(&right, &|column| column - split);
                    condition.left_key.push(left);
                    condition.right_key.push(right);
                }
                None => condition.rest.push(predicate.to_expr()),
            }
        }
        condition.rest.retain(|expr| *expr != Expr::true_literal());
        condition
    }
}

/// The sides of an equality of left and right input, as expressions whose bytes are equal when the
/// values are; `None` if the predicate is not such.
fn key_pair(predicate: &Predicate, split: usize) -> Option<(Expr, Expr)> {
    let (l, r, ty) = predicate.links(split)?;
    let key = |side: &Typed| Some(expr::cast(&side.expr, side.ty, ty)?.key_form(ty));
    Some((key(l)?, key(r)?))
}
