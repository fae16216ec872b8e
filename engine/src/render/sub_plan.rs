//! Sub-plans that dataflows may have in common: one computes and keeps what such a part of their plans puts out, and the others
//! read that as if it were a table.

use super::form::Form;
use super::lookup::Index;
use super::uses;
use crate::layout::infer::columns_of;
use crate::layout::ColumnType;
use plan::expr::{self, Expr};
use plan::types::{Column, TableName};
use plan::{LocalId, Mfp, Plan, Source, SourceId, ViewPlan};
use std::collections::{BTreeMap, BTreeSet};

/// Part of a plan that is computed of its sources alone: a recursion, groups, distinct or sorted rows. The host has no part in it.
#[derive(Clone, Debug, PartialEq)]
pub struct SubPlan {
    /// It alone, with the sources and columns that it reads, and names in the order in which they are bound: equal
    /// for equal parts of different plans.
    pub plan: ViewPlan,
    /// Of each of its sources that of the whole plan, and where its columns are there.
    pub sources: Vec<(SourceId, Vec<usize>)>,
    /// The part as the whole plan has it; of a recursion without what it is for.
    part: Plan,
}

/// The sub-plans of a plan, each before those that are part of it.
pub fn sub_plans(plan: &ViewPlan) -> Vec<SubPlan> {
    let mut found = Vec::new();
    collect(&plan.root, &mut Vec::new(), plan, &mut found);
    found.sort_by_key(|part| std::cmp::Reverse(size(&part.plan.root)));
    found
}

/// Finds those of a node, for which names stand that are bound around it.
fn collect<'p>(
    node: &'p Plan,
    around: &mut Vec<&'p Plan>,
    plan: &ViewPlan,
    found: &mut Vec<SubPlan>,
) {
    if !found.iter().any(|known| known.is(node)) {
        found.extend(SubPlan::of(node, around, plan));
    }
    let mut children = node.children();
    match node {
        Plan::Let { .. } | Plan::LetRec { .. } => {
            // The last one is the body.
            let body = children.pop();
            children.into_iter().for_each(|child| collect(child, around, plan, found));
            around.push(node);
            body.into_iter().for_each(|body| collect(body, around, plan, found));
            around.pop();
        }
        _ => children.into_iter().for_each(|child| collect(child, around, plan, found)),
    }
}

fn size(plan: &Plan) -> usize {
    1 + plan.children().into_iter().map(size).sum::<usize>()
}

impl SubPlan {
    fn of(node: &Plan, around: &[&Plan], whole: &ViewPlan) -> Option<SubPlan> {
        let part = match node {
            Plan::LetRec { id, .. } => with_body(node, Plan::Get(*id)),
            Plan::Reduce { .. } | Plan::Distinct { .. } | Plan::Partition { .. } => node.clone(),
            _ => return None,
        };
        let bind = |body: Plan, binder: &&Plan| match binder {
            Plan::Let { id, .. } | Plan::LetRec { id, .. } if uses(&body, *id) => {
                with_body(binder, body)
            }
            _ => body,
        };
        let mut root = around.iter().rev().fold(part.clone(), bind);
        let mut calls_host = false;
        root.each_expression(&mut |expr| calls_host |= expr::calls_host(expr));
        if calls_host || !rename(&mut root, &mut BTreeMap::new()) {
            return None;
        }
        let mut read = Vec::new();
        columns_read(&root, whole, &mut read);
        if read.is_empty() {
            return None;
        }
        take(&mut root, &read);
        let restrict = |(id, columns): &(SourceId, BTreeSet<usize>)| {
            let Source { table, columns: numbers, schema } = &whole.sources[id.0];
            Source {
                table: table.clone(),
                columns: columns.iter().map(|column| numbers[*column]).collect(),
                schema: columns.iter().map(|column| schema[*column].clone()).collect(),
            }
        };
        let sources = read.iter().map(restrict).collect();
        let mut plan =
            ViewPlan { sources, root, columns: Vec::new(), key: None, locals: Vec::new() };
        plan.columns = columns_of(&plan).iter().map(describe).collect::<Option<_>>()?;
        let sources = read.into_iter().map(|(id, columns)| (id, columns.into_iter().collect()));
        Some(SubPlan { plan, sources: sources.collect(), part })
    }

    /// Whether a node of the whole plan is this part.
    fn is(&self, node: &Plan) -> bool {
        match (node, &self.part) {
            (
                Plan::LetRec { id, recursion, base, step, .. },
                Plan::LetRec { id: this, recursion: of, base: first, step: then, .. },
            ) => (id, recursion, base, step) == (this, of, first, then),
            _ => *node == self.part,
        }
    }

    /// The same plan, which reads what the sub-plan puts out from a source behind the others; `None` if it is no part of it.
    pub fn read_by(&self, plan: &ViewPlan) -> Option<(ViewPlan, SourceId)> {
        let source = SourceId(plan.sources.len());
        let mut reader = plan.clone();
        let is_part = self.replace(&mut reader.root, source);
        drop_unused(&mut reader.root);
        reader.sources.push(self.source());
        is_part.then_some((reader, source))
    }

    /// Answers whether it was somewhere.
    fn replace(&self, node: &mut Plan, source: SourceId) -> bool {
        let is_it = self.is(node);
        if is_it {
            let left = match node {
                Plan::LetRec { id, body, .. } => {
                    let mut body = std::mem::replace(&mut **body, Plan::Get(*id));
                    put(&mut body, *id, source);
                    body
                }
                _ => Plan::Source(source),
            };
            *node = left;
        }
        let children = node.children_mut().into_iter();
        children.fold(is_it, |is_there, child| self.replace(child, source) || is_there)
    }

    /// What it puts out, as a source.
    fn source(&self) -> Source {
        Source {
            table: TableName { schema: None, name: "sub-plan".into(), only: false },
            columns: (0..self.plan.columns.len()).collect(),
            schema: self.plan.columns.clone(),
        }
    }
}

impl Index {
    /// What a sub-plan puts out, for readers that are of a form otherwise, or of the first behind it that fits.
    pub fn of_sub_plan(sub_plan: &SubPlan, form: Form) -> Index {
        let source = sub_plan.source();
        // By any column, so that several workers have a part of it each; rows with a NULL there would be left out.
        let key: Vec<usize> =
            source.schema.iter().position(|column| !column.nullable).into_iter().collect();
        let form = form.with(&source, &key);
        Index { source, key, form, made_by: Some(sub_plan.plan.clone()) }
    }
}

/// `None` of a column of which nothing is known.
fn describe(column: &ColumnType) -> Option<Column> {
    Some(Column { name: String::new(), ty: column.ty?, typmod: -1, nullable: column.nullable })
}

/// Lets names count from zero in the order in which they are bound; answers whether all are bound within, and nothing depends on
/// the present time.
fn rename(plan: &mut Plan, names: &mut BTreeMap<LocalId, LocalId>) -> bool {
    match plan {
        Plan::Temporal { .. } => return false,
        Plan::Get(id) => {
            let Some(new) = names.get(id) else { return false };
            *id = *new;
        }
        Plan::Let { id, .. } | Plan::LetRec { id, .. } => {
            let new = LocalId(names.len());
            names.insert(*id, new);
            *id = new;
        }
        _ => {}
    }
    plan.children_mut().into_iter().all(|child| rename(child, names))
}

/// The sources that a plan reads, in the order in which it comes to them, each with the columns that it needs.
fn columns_read(plan: &Plan, whole: &ViewPlan, read: &mut Vec<(SourceId, BTreeSet<usize>)>) {
    let mut add = |id: SourceId, columns: &mut dyn Iterator<Item = usize>| {
        let known = read.iter().position(|(other, _)| *other == id);
        let place = known.unwrap_or_else(|| {
            read.push((id, BTreeSet::new()));
            read.len() - 1
        });
        read[place].1.extend(columns);
    };
    match plan {
        Plan::Source(id) => {
            add(*id, &mut (0..whole.sources[id.0].columns.len()));
        }
        Plan::Mfp { input, mfp } => match **input {
            Plan::Source(id) => {
                let exprs = mfp.maps.iter().chain(&mfp.filter).flat_map(expr::columns_of);
                let columns = exprs.chain(mfp.project.iter().copied());
                add(id, &mut columns.filter(|column| *column < mfp.input_arity));
            }
            _ => columns_read(input, whole, read),
        },
        _ => {
            plan.children().into_iter().for_each(|child| columns_read(child, whole, read));
        }
    }
}

/// Lets a plan read these sources with these columns only.
fn take(plan: &mut Plan, read: &[(SourceId, BTreeSet<usize>)]) {
    let place = |id: SourceId| read.iter().position(|(other, _)| *other == id).unwrap_or(id.0);
    match plan {
        Plan::Source(id) => *id = SourceId(place(*id)),
        Plan::Mfp { input, mfp } => match **input {
            Plan::Source(id) => {
                let columns = &read[place(id)].1;
                *mfp = of_columns(mfp, columns);
                **input = Plan::Source(SourceId(place(id)));
                if mfp.is_identity() {
                    *plan = Plan::Source(SourceId(place(id)));
                }
            }
            _ => take(input, read),
        },
        _ => plan.children_mut().into_iter().for_each(|child| take(child, read)),
    }
}

/// What an Mfp does, with these columns of its input only.
fn of_columns(mfp: &Mfp, columns: &BTreeSet<usize>) -> Mfp {
    let gone = mfp.input_arity - columns.len();
    let new = |column: usize| match column < mfp.input_arity {
        true => columns.range(..column).count(),
        false => column - gone,
    };
    let renumber =
        |exprs: &[Expr]| exprs.iter().map(|expr| expr::renumber(expr, &new)).collect::<Vec<_>>();
    Mfp {
        input_arity: columns.len(),
        maps: renumber(&mfp.maps),
        filter: renumber(&mfp.filter),
        project: mfp.project.iter().map(|column| new(*column)).collect(),
    }
}

/// What a name is bound to, for another plan.
fn with_body(binder: &Plan, body: Plan) -> Plan {
    let mut bound = binder.clone();
    if let Plan::Let { body: of, .. } | Plan::LetRec { body: of, .. } = &mut bound {
        **of = body;
    }
    bound
}

/// Leaves out what is bound to names that nobody refers to.
fn drop_unused(plan: &mut Plan) {
    plan.children_mut().into_iter().for_each(drop_unused);
    if let Plan::Let { id, body, .. } | Plan::LetRec { id, body, .. } = plan {
        if !uses(body, *id) {
            *plan = std::mem::replace(&mut **body, Plan::Get(*id));
        }
    }
}

/// Puts a source in the place of a name.
fn put(plan: &mut Plan, id: LocalId, source: SourceId) {
    if *plan == Plan::Get(id) {
        *plan = Plan::Source(source);
    }
    plan.children_mut().into_iter().for_each(|child| put(child, id, source));
}
