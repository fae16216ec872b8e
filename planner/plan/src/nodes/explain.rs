//! A plan as indented text for people: one node per line, with column names as far as they are known.

use crate::clock::End;
use crate::expr::{Expr, Mfp};
use crate::func::{CellWork, Func};
use crate::nodes::{Aggregate, LocalId, Plan, Recursion, ViewPlan};
use crate::partition::{self, SortKey};
use crate::types::Column;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The plan as indented text.
pub fn explain(plan: &ViewPlan) -> String {
    let mut explainer = Explainer { plan, locals: BTreeMap::new(), text: String::new() };
    explainer.name_locals(&plan.root);
    explainer.header();
    explainer.node(&plan.root, 0);
    explainer.text
}

struct Explainer<'p> {
    plan: &'p ViewPlan,
    /// The column names of locals.
    locals: BTreeMap<LocalId, Vec<String>>,
    text: String,
}

impl Explainer<'_> {
    fn header(&mut self) {
        let describe = |column: &Column| {
            let not_null = if column.nullable { "" } else { " not null" };
            format!("{} {}{not_null}", column.name, column.ty)
        };
        let columns: Vec<String> = self.plan.columns.iter().map(describe).collect();
        self.line(0, &format!("View {}", list(&columns)));
        if let Some(key) = self.plan.pairing_key() {
            let name = |&position: &usize| match self.plan.columns.get(position) {
                Some(column) => column.name.clone(),
                None => format!("#{position}"),
            };
            let names: Vec<String> = key.iter().map(name).collect();
            self.line(0, &format!("Key {}", list(&names)));
        }
    }

    fn line(&mut self, depth: usize, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{:indent$}{text}", "", indent = depth * 2);
    }

    fn node(&mut self, plan: &Plan, depth: usize) {
        let headline = self.headline(plan);
        self.line(depth, &headline);
        match plan {
            Plan::Constant { .. } | Plan::Source(_) | Plan::Get(_) => {}
            Plan::Let { value, body, .. } => {
                self.node(value, depth + 1);
                self.node(body, depth);
            }
            Plan::LetRec { base, step, body, .. } => {
                self.line(depth + 1, "base");
                self.node(base, depth + 2);
                self.line(depth + 1, "step");
                self.node(step, depth + 2);
                self.node(body, depth);
            }
            Plan::Mfp { input, .. }
            | Plan::TableFunction { input, .. }
            | Plan::Reduce { input, .. }
            | Plan::Distinct { input }
            | Plan::Partition { input, .. }
            | Plan::Temporal { input, .. }
            | Plan::Negate { input }
            | Plan::Repeat { input } => self.node(input, depth + 1),
            Plan::Join { left, right, .. } => {
                self.node(left, depth + 1);
                self.node(right, depth + 1);
            }
            Plan::DeltaJoin { inputs, .. } | Plan::Union { inputs } => {
                inputs.iter().for_each(|input| self.node(input, depth + 1));
            }
        }
    }

    fn headline(&self, plan: &Plan) -> String {
        let names = || list(&self.names(plan));
        match plan {
            Plan::Constant { rows, .. } => match rows.len() {
                1 => "Constant 1 row".to_owned(),
                count => format!("Constant {count} rows"),
            },
            Plan::Source(id) => match self.plan.sources.get(id.0) {
                Some(source) => format!("Source {} {}", source.table, names()),
                None => format!("Source #{}", id.0),
            },
            Plan::Get(id) => format!("Get {} {}", self.local(*id), names()),
            Plan::Let { id, .. } => format!("Let {} {}", self.local(*id), self.local_names(*id)),
            Plan::LetRec { id, recursion, .. } => {
                let note = self.plan.locals.get(id.0).and_then(|local| local.note.as_deref());
                let note = note.map_or_else(String::new, |note| format!(": {note}"));
                let form = form(recursion, self.locals.get(id).map_or(&[], Vec::as_slice));
                format!("LetRec {} {} {form}{note}", self.local(*id), self.local_names(*id))
            }
            Plan::Mfp { input, mfp } => {
                format!("Mfp{}", self.mfp(mfp, &self.names(input)))
            }
            Plan::TableFunction { input, table_function, closure } => {
                let mut all = self.names(input);
                let head = table_function.show(&all);
                all.extend(table_function.names(&all));
                format!("Table function {head}{}", self.mfp(closure, &all))
            }
            Plan::Join { left, right, left_key, right_key, closure } => {
                let (mut all, right_names) = (self.names(left), self.names(right));
                let head = join((left_key, &all), (right_key, &right_names));
                all.extend(right_names);
                format!("{head}{}", self.mfp(closure, &all))
            }
            Plan::DeltaJoin { inputs, tree, closure } => {
                let names: Vec<Vec<String>> =
                    inputs.iter().map(|input| self.names(input)).collect();
                let links = (1..).zip(&tree.links).map(|(number, link)| {
                    let earlier = exprs(&link.earlier_key, &names[link.earlier]);
                    let own = exprs(&link.own_key, &names[number]);
                    format!("{} = {}", list(&earlier), list(&own))
                });
                let head = links.collect::<Vec<_>>().join(", ");
                format!("Delta join on {head}{}", self.mfp(closure, &names.concat()))
            }
            Plan::Reduce { input, key, aggregates } => {
                let below = self.names(input);
                let aggregates: Vec<String> =
                    aggregates.iter().map(|one| aggregate(one, &below)).collect();
                format!("Reduce by {} to {}", list(&exprs(key, &below)), list(&aggregates))
            }
            Plan::Distinct { .. } => "Distinct".to_owned(),
            Plan::Partition { input, key, order, work } => {
                let below = self.names(input);
                partition::describe(&exprs(key, &below), order, work, &below)
            }
            Plan::Temporal { input, from, until, output, .. } => {
                temporal(&self.names(input), from, until, output)
            }
            Plan::Union { .. } => "Union".to_owned(),
            Plan::Negate { .. } => "Negate".to_owned(),
            Plan::Repeat { input } => {
                format!("Repeat by {}", self.names(input).last().map_or("", String::as_str))
            }
        }
    }

    fn mfp(&self, mfp: &Mfp, input: &[String]) -> String {
        let mut names = input.to_vec();
        name_maps(mfp, &mut names);
        let mut text = String::new();
        if !mfp.filter.is_empty() {
            let filter = mfp.filter.iter().map(|conjunct| match conjunct {
                Expr::Or(_) => format!("({})", conjunct.with_names(&names)),
                _ => conjunct.with_names(&names).to_string(),
            });
            let filter: Vec<String> = filter.collect();
            let _ = write!(text, " filter {}", filter.join(" AND "));
        }
        let output: Vec<String> = mfp.project.iter().map(|&column| name(&names, column)).collect();
        let _ = write!(text, " output {}", list(&output));
        text
    }

    fn local(&self, id: LocalId) -> String {
        match self.plan.locals.get(id.0) {
            // The same name may stand for several things in one query.
            Some(local) => {
                let same = |other: &&crate::nodes::Local| other.name == local.name;
                match self.plan.locals[..id.0].iter().filter(same).count() {
                    0 => local.name.clone(),
                    before => format!("{}/{}", local.name, before + 1),
                }
            }
            None => format!("local{}", id.0),
        }
    }

    fn local_names(&self, id: LocalId) -> String {
        list(self.locals.get(&id).map_or(&[], Vec::as_slice))
    }

    /// Finds the column names of all locals.
    fn name_locals(&mut self, plan: &Plan) {
        match plan {
            Plan::Let { id, value, body } => {
                self.name_locals(value);
                self.name_local(*id, value);
                self.name_locals(body);
            }
            Plan::LetRec { id, base, step, body, .. } => {
                self.name_locals(base);
                self.name_local(*id, base);
                self.name_locals(step);
                self.name_locals(body);
            }
            Plan::Constant { .. } | Plan::Source(_) | Plan::Get(_) => {}
            Plan::Mfp { input, .. }
            | Plan::TableFunction { input, .. }
            | Plan::Reduce { input, .. }
            | Plan::Distinct { input }
            | Plan::Partition { input, .. }
            | Plan::Temporal { input, .. }
            | Plan::Negate { input }
            | Plan::Repeat { input } => self.name_locals(input),
            Plan::Join { left, right, .. } => {
                self.name_locals(left);
                self.name_locals(right);
            }
            Plan::DeltaJoin { inputs, .. } | Plan::Union { inputs } => {
                inputs.iter().for_each(|input| self.name_locals(input));
            }
        }
    }

    /// The query's names, or where it has none those of the value.
    fn name_local(&mut self, id: LocalId, value: &Plan) {
        let names = self.names(value);
        let given = self.plan.locals.get(id.0).map(|local| local.columns.clone());
        let given = given.filter(|given| given.len() == names.len());
        self.locals.insert(id, given.unwrap_or(names));
    }

    /// The names of a node's columns.
    fn names(&self, plan: &Plan) -> Vec<String> {
        match plan {
            Plan::Constant { arity, .. } => (1..=*arity).map(|i| format!("column{i}")).collect(),
            Plan::Source(id) => match self.plan.sources.get(id.0) {
                Some(source) => source.schema.iter().map(|column| column.name.clone()).collect(),
                None => vec![],
            },
            Plan::Get(id) => self.locals.get(id).cloned().unwrap_or_default(),
            Plan::Let { body, .. } | Plan::LetRec { body, .. } => self.names(body),
            Plan::Mfp { input, mfp } => project(mfp, self.names(input)),
            Plan::TableFunction { input, table_function, closure } => {
                let mut names = self.names(input);
                names.extend(table_function.names(&names));
                project(closure, names)
            }
            Plan::Join { left, right, closure, .. } => {
                let mut names = self.names(left);
                names.extend(self.names(right));
                project(closure, names)
            }
            Plan::DeltaJoin { inputs, closure, .. } => {
                project(closure, inputs.iter().flat_map(|input| self.names(input)).collect())
            }
            Plan::Reduce { input, key, aggregates } => {
                let below = self.names(input);
                let mut names = exprs(key, &below);
                names.extend(aggregates.iter().map(|one| aggregate(one, &below)));
                names
            }
            Plan::Distinct { input } | Plan::Negate { input } => self.names(input),
            Plan::Partition { input, work, .. } => {
                let mut names = self.names(input);
                names.extend(partition::call_names(work, &names));
                names
            }
            Plan::Temporal { input, output, .. } => {
                let below = self.names(input);
                output.iter().map(|&column| name(&below, column)).collect()
            }
            Plan::Repeat { input } => {
                let mut names = self.names(input);
                names.pop();
                names
            }
            Plan::Union { inputs } => {
                let names = inputs.iter().map(|input| self.names(input));
                names.reduce(tell_most).unwrap_or_default()
            }
        }
    }
}

/// The names of one input of a union, but for columns that are only NULL there those of another.
fn tell_most(names: Vec<String>, others: Vec<String>) -> Vec<String> {
    let better = |(name, other)| if name == "NULL" { other } else { name };
    names.into_iter().zip(others).map(better).collect()
}

fn temporal(below: &[String], from: &[usize], until: &[usize], output: &[usize]) -> String {
    let all = |end: End, columns: &[usize]| -> Vec<String> {
        columns.iter().map(|&column| end.condition(&name(below, column))).collect()
    };
    let all = [all(End::From, from), all(End::Until, until)].concat();
    let output: Vec<String> = output.iter().map(|&column| name(below, column)).collect();
    format!("Temporal while {} output {}", all.join(" AND "), list(&output))
}

fn form(recursion: &Recursion, names: &[String]) -> String {
    let fixed = match recursion {
        Recursion::FixpointDistinct => "UNION as fixpoint",
        Recursion::LeastFixpoint => "UNION as least fixpoint",
        Recursion::FixpointAll => "UNION ALL as fixpoint",
        Recursion::WorkingTableAll => "UNION ALL by working table",
        Recursion::WorkingTableDistinct { .. } => "UNION by working table",
        Recursion::FixpointExtreme { key, order, .. } => {
            let key: Vec<String> = key.iter().map(|&column| name(names, column)).collect();
            let kept: Vec<String> = order.iter().map(|sort| preferred(sort, names)).collect();
            return format!("as fixpoint of {} by {}", kept.join(", then "), list(&key));
        }
    };
    fixed.to_owned()
}

fn preferred(sort: &SortKey, names: &[String]) -> String {
    let kept = if sort.descending { "greatest" } else { "least" };
    let nulls = if sort.nulls_first { " (NULL first)" } else { "" };
    format!("the {kept} {}{nulls}", name(names, sort.column))
}

fn project(mfp: &Mfp, mut names: Vec<String>) -> Vec<String> {
    name_maps(mfp, &mut names);
    mfp.project.iter().map(|&column| name(&names, column)).collect()
}

/// Appends what to call the computed columns: their expressions, if short.
fn name_maps(mfp: &Mfp, names: &mut Vec<String>) {
    for (position, map) in mfp.maps.iter().enumerate() {
        let text = map.with_names(names).to_string();
        let short = text.chars().count() <= 200;
        names.push(if short { text } else { format!("expression{}", position + 1) });
    }
}

fn name(names: &[String], column: usize) -> String {
    names.get(column).cloned().unwrap_or_else(|| format!("#{column}"))
}

fn exprs(exprs: &[Expr], names: &[String]) -> Vec<String> {
    exprs.iter().map(|expr| expr.with_names(names).to_string()).collect()
}

/// What a join compares; the columns of the sides have these names.
fn join(
    (left, left_names): (&[Expr], &[String]),
    (right, right_names): (&[Expr], &[String]),
) -> String {
    if left.is_empty() {
        return "Cross join".to_owned();
    }
    let head = if left.iter().chain(right).any(is_cell) { "Range join" } else { "Join" };
    let (left, right) = (exprs(left, left_names), exprs(right, right_names));
    format!("{head} on {} = {}", list(&left), list(&right))
}

/// Whether what is compared is where values are, so that rows meet whose values are near to one another.
fn is_cell(key: &Expr) -> bool {
    matches!(key, Expr::Call { func: Func::Cells(CellWork::At), .. })
}

fn aggregate(aggregate: &Aggregate, names: &[String]) -> String {
    let func = aggregate.func.name();
    match &aggregate.arg {
        Some(arg) => format!("{func}({})", arg.with_names(names)),
        None => format!("{func}(*)"),
    }
}

fn list(items: &[String]) -> String {
    format!("({})", items.join(", "))
}
