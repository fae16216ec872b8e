//! Checks that a query is consistent: every column reference exists and every node's columns are
//! what its inputs and its operator make of them.

use crate::ir::{Apply, ApplyKind, Node, Predicate, Query, Rel, TimeBound};
use plan::clock;
use plan::expr::{self, Expr};
use plan::partition::{SortKey, WindowCall, Work};
use plan::table_function::TableFunction;
use plan::types::{Column, Scalar, Type};
use plan::{Aggregate, LocalId};
use std::collections::BTreeMap;

/// What is wrong, if anything.
pub fn check(query: &Query) -> Result<(), String> {
    Checker { query, locals: BTreeMap::new() }.check(&query.root)
}

struct Checker<'q> {
    query: &'q Query,
    locals: BTreeMap<LocalId, Vec<Type>>,
}

impl Checker<'_> {
    fn check(&mut self, rel: &Rel) -> Result<(), String> {
        match &rel.node {
            Node::Let { id, value, body } => {
                self.check(value)?;
                self.bind(*id, value)?;
                self.check(body)?;
                same(rel, &types(&body.columns), "Let")
            }
            Node::LetRec { id, base, step, body, .. } => {
                self.check(base)?;
                self.bind(*id, base)?;
                if step.depends_on_time() {
                    return Err("a recursive step depends on the present time".to_owned());
                }
                self.check(step)?;
                same(step, &types(&base.columns), "LetRec")?;
                self.check(body)?;
                same(rel, &types(&body.columns), "LetRec")
            }
            _ => {
                for child in rel.children() {
                    self.check(child)?;
                }
                self.check_node(rel)
            }
        }
    }

    fn bind(&mut self, id: LocalId, value: &Rel) -> Result<(), String> {
        if id.0 >= self.query.locals.len() {
            return Err(format!("local {} has no name", id.0));
        }
        match self.locals.insert(id, types(&value.columns)) {
            None => Ok(()),
            Some(_) => Err(format!("local {} is bound twice", id.0)),
        }
    }

    fn check_node(&self, rel: &Rel) -> Result<(), String> {
        match &rel.node {
            Node::Constant { .. } => Ok(()),
            Node::Source(id) => match self.query.inputs.get(id.0) {
                Some(input) => same(rel, &types(&input.source.schema), "Source"),
                None => Err(format!("source {} does not exist", id.0)),
            },
            Node::Get(id) => match self.locals.get(id) {
                Some(expected) => same(rel, expected, "Get"),
                None => Err(format!("local {} is not bound", id.0)),
            },
            Node::Map { input, outputs } => check_map(rel, input, outputs),
            Node::TableFunction { input, table_function } => {
                check_table_function(rel, input, table_function)
            }
            Node::Filter { input, predicates } => {
                all_in_range(predicates, input.arity(), "Filter")?;
                same(rel, &types(&input.columns), "Filter")
            }
            Node::Temporal { input, bounds } => self.check_temporal(rel, input, bounds),
            Node::Join { inputs, predicates } => {
                let all: Vec<Type> = inputs.iter().flat_map(|i| types(&i.columns)).collect();
                all_in_range(predicates, all.len(), "Join")?;
                same(rel, &all, "Join")
            }
            Node::AntiJoin { left, right, predicates } => {
                all_in_range(predicates, left.arity() + right.arity(), "AntiJoin")?;
                same(rel, &types(&left.columns), "AntiJoin")
            }
            Node::Apply(apply) => check_apply(rel, apply),
            Node::OuterJoin { left, right, predicates, .. } => {
                let all = [types(&left.columns), types(&right.columns)].concat();
                all_in_range(predicates, all.len(), "OuterJoin")?;
                same(rel, &all, "OuterJoin")
            }
            Node::Reduce { input, key, aggregates } => check_reduce(rel, input, key, aggregates),
            Node::Distinct { input } => same(rel, &types(&input.columns), "Distinct"),
            Node::Partition { input, key, order, work } => {
                check_partition(rel, input, (key, order, work))
            }
            Node::Union { inputs } => {
                inputs.iter().try_for_each(|input| same(rel, &types(&input.columns), "Union"))
            }
            Node::Fence { input, .. } => same(rel, &types(&input.columns), "Fence"),
            Node::Repeat { input } => {
                let mut below = types(&input.columns);
                match below.pop() {
                    Some(Type::Scalar(Scalar::Int8)) => same(rel, &below, "Repeat"),
                    _ => Err("Repeat has no number of copies".to_owned()),
                }
            }
            Node::Let { .. } | Node::LetRec { .. } => Ok(()),
        }
    }
}

fn all_in_range(predicates: &[Predicate], arity: usize, node: &str) -> Result<(), String> {
    predicates.iter().try_for_each(|predicate| in_range(&predicate.to_expr(), arity, node))
}

impl Checker<'_> {
    fn check_temporal(&self, rel: &Rel, input: &Rel, bounds: &[TimeBound]) -> Result<(), String> {
        if !self.query.inputs.iter().any(|input| input.source == clock::source()) {
            return Err("Temporal has no clock".to_owned());
        }
        let below = types(&input.columns);
        for bound in bounds {
            in_range(&bound.at, below.len(), "Temporal")?;
            if bound.at.ty(&below) != clock::TIME {
                return Err("Temporal compares the present with another type".to_owned());
            }
        }
        same(rel, &below, "Temporal")
    }
}

fn check_table_function(
    rel: &Rel,
    input: &Rel,
    table_function: &TableFunction,
) -> Result<(), String> {
    for arg in table_function.args() {
        in_range(arg, input.arity(), "TableFunction")?;
    }
    let mut expected = types(&input.columns);
    let own = table_function.columns(&expected);
    expected.extend(own.into_iter().map(|(ty, _)| ty));
    same(rel, &expected, "TableFunction")
}

fn check_reduce(
    rel: &Rel,
    input: &Rel,
    key: &[usize],
    aggregates: &[Aggregate],
) -> Result<(), String> {
    for arg in aggregates.iter().filter_map(|aggregate| aggregate.arg.as_ref()) {
        in_range(arg, input.arity(), "Reduce")?;
    }
    if key.iter().any(|column| *column >= input.arity()) {
        return Err("Reduce groups by a column that is not there".to_owned());
    }
    if rel.arity() != key.len() + aggregates.len() {
        return Err("Reduce has the wrong number of columns".to_owned());
    }
    let changes =
        |(column, key): (&Column, &usize)| bytes(column.ty) != bytes(input.columns[*key].ty);
    match rel.columns.iter().zip(key).any(changes) {
        true => Err("Reduce changes its key".to_owned()),
        false => Ok(()),
    }
}

fn check_partition(
    rel: &Rel,
    input: &Rel,
    (key, order, work): (&[usize], &[SortKey], &Work),
) -> Result<(), String> {
    let mut columns = key.iter().copied().chain(order.iter().map(|sort| sort.column));
    if columns.any(|column| column >= input.arity()) {
        return Err("Partition reads a column that is not there".to_owned());
    }
    let mut expected = types(&input.columns);
    if let Work::Window(calls) = work {
        if calls.iter().flat_map(|call| &call.args).any(|column| *column >= input.arity()) {
            return Err("a window function reads a column that is not there".to_owned());
        }
        let result = |(call, column): (&WindowCall, &Column)| {
            let arg = call.args.first().map(|column| input.columns[*column].ty);
            call.func.result_type(arg).unwrap_or(column.ty)
        };
        expected.extend(calls.iter().zip(&rel.columns[input.arity()..]).map(result));
    }
    same(rel, &expected, "Partition")
}

fn check_apply(rel: &Rel, apply: &Apply) -> Result<(), String> {
    for binding in &apply.bindings {
        in_range(&binding.value, apply.outer.arity(), "Apply")?;
    }
    let mut expected = types(&apply.outer.columns);
    match apply.kind {
        ApplyKind::Semi | ApplyKind::Anti => {}
        ApplyKind::Mark => expected.push(Scalar::Bool.into()),
        ApplyKind::Cross | ApplyKind::Left | ApplyKind::Scalar => {
            expected.extend(types(&apply.inner.columns));
        }
    }
    same(rel, &expected, "Apply")
}

fn check_map(rel: &Rel, input: &Rel, outputs: &[Expr]) -> Result<(), String> {
    if outputs.len() != rel.arity() {
        return Err("Map has the wrong number of columns".to_owned());
    }
    for (output, column) in outputs.iter().zip(&rel.columns) {
        in_range(output, input.arity(), "Map")?;
        let known = match output {
            Expr::Column(position) => Some(input.columns[*position].ty),
            Expr::Literal(_, ty) => Some(*ty),
            _ => None,
        };
        if known.is_some_and(|ty| bytes(ty) != bytes(column.ty)) {
            return Err(format!("Map changes the type of column \"{}\"", column.name));
        }
    }
    Ok(())
}

fn in_range(expr: &Expr, arity: usize, node: &str) -> Result<(), String> {
    match expr::columns_of(expr).last() {
        Some(column) if *column >= arity => {
            Err(format!("{node} refers to column {column} of {arity}"))
        }
        _ => Ok(()),
    }
}

fn same(rel: &Rel, expected: &[Type], node: &str) -> Result<(), String> {
    let (found, expected) = (types(&rel.columns), expected.iter().copied().map(bytes));
    if found.into_iter().map(bytes).eq(expected) {
        Ok(())
    } else {
        Err(format!("{node} has the wrong columns"))
    }
}

fn types(columns: &[Column]) -> Vec<Type> {
    columns.iter().map(|column| column.ty).collect()
}

/// `varchar` is `text` once its length has been enforced: a cast between them leaves no trace. Nor does how values of a
/// type of the host are compared.
fn bytes(ty: Type) -> Type {
    use plan::types::Scalar::{Text, Varchar};
    match ty.by_image() {
        Type::Scalar(Varchar) => Type::Scalar(Text),
        Type::Array(Varchar) => Type::Array(Text),
        other => other,
    }
}
