//! The IR as indented text, for goldens of single transforms.

use super::{Binding, Node, Predicate, Query, Rel, TimeBound};
use plan::expr::Expr;
use plan::partition;
use plan::types::Column;
use plan::{Aggregate, LocalId, Recursion};
use std::fmt::Write;

/// The query as indented text, one node per line. A name shared by several columns of a node's input is
/// shown with the column's number.
pub fn show(query: &Query) -> String {
    let mut shower = Shower { query, text: String::new() };
    shower.rel(&query.root, 0);
    shower.text
}

struct Shower<'q> {
    query: &'q Query,
    text: String,
}

impl Shower<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{:indent$}{text}", "", indent = depth * 2);
    }

    fn rel(&mut self, rel: &Rel, depth: usize) {
        let headline = self.headline(rel);
        self.line(depth, &headline);
        match &rel.node {
            Node::Let { value, body, .. } => {
                self.rel(value, depth + 1);
                self.rel(body, depth);
            }
            Node::LetRec { base, step, body, .. } => {
                self.line(depth + 1, "base");
                self.rel(base, depth + 2);
                self.line(depth + 1, "step");
                self.rel(step, depth + 2);
                self.rel(body, depth);
            }
            _ => rel.children().into_iter().for_each(|child| self.rel(child, depth + 1)),
        }
    }

    fn headline(&self, rel: &Rel) -> String {
        let columns: Vec<String> = rel.columns.iter().map(|column| column.name.clone()).collect();
        let columns = columns.join(", ");
        match &rel.node {
            Node::Constant { rows } => format!("Constant {} rows ({columns})", rows.len()),
            Node::Source(id) => match self.query.inputs.get(id.0) {
                Some(input) => format!("Source {} ({columns})", input.source.table),
                None => format!("Source #{} ({columns})", id.0),
            },
            Node::Get(id) => format!("Get {} ({columns})", self.local(*id)),
            Node::Let { id, .. } => format!("Let {}", self.local(*id)),
            Node::LetRec { id, all, form, .. } => {
                format!("LetRec {} {}", self.local(*id), show_union(*all, form.as_ref()))
            }
            Node::Map { input, outputs } => {
                format!("Map ({})", show_outputs(outputs, &rel.columns, &names([input.as_ref()])))
            }
            Node::TableFunction { input, table_function } => {
                let calls = table_function.show(&names([input.as_ref()]));
                format!("TableFunction {calls} ({columns})")
            }
            Node::Filter { input, predicates } => {
                format!("Filter {}", conjunction(predicates, &names([input.as_ref()])))
            }
            Node::Temporal { input, bounds } => {
                format!("Temporal {}", show_bounds(bounds, &names([input.as_ref()])))
            }
            Node::Join { inputs, predicates } => {
                format!("Join {}", conjunction(predicates, &names(inputs)))
            }
            Node::OuterJoin { preserved, left, right, predicates } => {
                let names = names([left.as_ref(), right.as_ref()]);
                format!("OuterJoin preserving {preserved:?} {}", conjunction(predicates, &names))
            }
            Node::AntiJoin { left, right, predicates } => {
                format!("AntiJoin {}", conjunction(predicates, &names([&**left, &**right])))
            }
            Node::Apply(apply) => {
                let bindings = show_bindings(&apply.bindings, &names([&apply.outer]));
                format!("Apply {:?} ({bindings})", apply.kind)
            }
            Node::Reduce { input, key, aggregates } => {
                let names = names([input.as_ref()]);
                let (key, values) = (named(key, &names), show_aggregates(aggregates, &names));
                format!("Reduce by ({}) to ({values})", key.join(", "))
            }
            Node::Distinct { .. } => "Distinct".to_owned(),
            Node::Partition { input, key, order, work } => {
                let names = names([input.as_ref()]);
                partition::describe(&named(key, &names), order, work, &names)
            }
            Node::Union { .. } => "Union".to_owned(),
            Node::Fence { is_sealed, .. } => {
                if *is_sealed { "Sealed fence" } else { "Fence" }.to_owned()
            }
            Node::Repeat { .. } => format!("Repeat ({columns})"),
        }
    }

    fn local(&self, id: LocalId) -> String {
        let name = self.query.locals.get(id.0).map_or("", |local| local.name.as_str());
        format!("{name}#{}", id.0)
    }
}

fn named(columns: &[usize], names: &[String]) -> Vec<String> {
    columns.iter().map(|&column| names[column].clone()).collect()
}

fn show_union(all: bool, form: Option<&Recursion>) -> String {
    let union = if all { "UNION ALL" } else { "UNION" };
    form.map_or(union.to_owned(), |form| format!("{union} {form:?}"))
}

fn show_outputs(outputs: &[Expr], columns: &[Column], names: &[String]) -> String {
    let show = |(expr, column): (&Expr, &Column)| {
        let text = expr.with_names(names).to_string();
        if text == column.name {
            text
        } else {
            format!("{text} AS {}", column.name)
        }
    };
    outputs.iter().zip(columns).map(show).collect::<Vec<_>>().join(", ")
}

fn show_bounds(bounds: &[TimeBound], names: &[String]) -> String {
    let show = |bound: &TimeBound| {
        let at = bound.at.with_names(names).to_string();
        format!("[{}]", bound.end.condition(&at))
    };
    bounds.iter().map(show).collect::<Vec<_>>().join(" AND ")
}

fn show_bindings(bindings: &[Binding], names: &[String]) -> String {
    let show = |b: &Binding| format!("${} = {}", b.id.0, b.value.with_names(names));
    bindings.iter().map(show).collect::<Vec<_>>().join(", ")
}

fn show_aggregates(aggregates: &[Aggregate], names: &[String]) -> String {
    let show = |aggregate: &Aggregate| match &aggregate.arg {
        Some(arg) => format!("{:?} of {}", aggregate.func, arg.with_names(names)),
        None => format!("{:?}", aggregate.func),
    };
    aggregates.iter().map(show).collect::<Vec<_>>().join(", ")
}

/// The columns of inputs side by side.
fn names<'r>(inputs: impl IntoIterator<Item = &'r Rel>) -> Vec<String> {
    let columns = inputs.into_iter().flat_map(|input| &input.columns);
    let plain: Vec<&str> = columns.map(|column| column.name.as_str()).collect();
    let distinct = |(position, name): (usize, &&str)| {
        let same = plain.iter().filter(|other| *other == name).count();
        if same > 1 {
            format!("{name}#{position}")
        } else {
            (*name).to_owned()
        }
    };
    plain.iter().enumerate().map(distinct).collect()
}

fn conjunction(predicates: &[Predicate], names: &[String]) -> String {
    let show = |predicate: &Predicate| format!("[{}]", predicate.to_expr().with_names(names));
    predicates.iter().map(show).collect::<Vec<_>>().join(" AND ")
}
