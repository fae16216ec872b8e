//! Subqueries against their definition: evaluated again for each row of the query around them.

#[path = "../plan/tests/common/random.rs"]
mod random;

use plan::expr::{Expr, ParameterId};
use plan::naive::{evaluate, Multiset};
use plan::numeric::Numeric;
use plan::row::Row;
use plan::value::Datum;
use plan::{Aggregate, Diff, LocalId};
use planner::ir::{Apply, ApplyKind, Node, Predicate, Query, Rel, Typed};
use planner::lower::lower;
use planner::plan_view;
use planner::sql::{bind, DdlCatalog};
use planner::transform::transform;
use random::Random;
use std::collections::BTreeMap;

const TABLES: &str = "create table l(a int, b numeric, c text);
    create table r(a int, b numeric, c text);
    create table s(id int primary key, a int not null, b numeric not null);
    create table edges(src int not null, dst int not null);";

/// Queries with every kind of subquery, in every clause.
const QUERIES: &str = include_str!("subqueries.sql");

type Contents = BTreeMap<String, Vec<Vec<Datum>>>;

/// Rows, or the code of an error.
type Outcome = Result<Multiset<Row>, String>;

/// Evaluates queries as SQL defines them.
struct Definition<'q> {
    query: &'q Query,
    contents: &'q Contents,
    locals: BTreeMap<LocalId, Multiset<Row>>,
}

impl Definition<'_> {
    fn evaluate(&mut self, rel: &Rel) -> Outcome {
        let root = self.resolve(rel)?;
        let query =
            Query { inputs: self.query.inputs.clone(), locals: self.query.locals.clone(), root };
        let plan =
            lower(&transform(query).expect("a consistent query"), &|_| vec![]).expect("a plan");
        run(&plan, self.contents)
    }

    /// The relation with each subquery, and each local, replaced by what it yields.
    fn resolve(&mut self, rel: &Rel) -> Result<Rel, String> {
        let rows = match &rel.node {
            Node::Apply(apply) => Some(self.apply(apply, &[])?),
            // WHERE is tested before a subquery is evaluated.
            Node::Filter { input, predicates } => match &input.node {
                Node::Apply(apply) => {
                    let rows = self.apply(apply, predicates)?.into_iter().collect();
                    let columns = input.columns.clone();
                    let rows = Rel { columns, node: Node::Constant { rows } };
                    Some(self.evaluate(&rows.filter(predicates.clone()))?)
                }
                _ => None,
            },
            Node::Get(id) => Some(self.locals[id].clone()),
            Node::Let { id, value, body } => {
                let value = self.evaluate(value)?;
                self.locals.insert(*id, value);
                Some(self.evaluate(body)?)
            }
            Node::LetRec { id, all: false, base, step, body, .. } => {
                let value = self.recurse(*id, base, step)?;
                self.locals.insert(*id, value);
                Some(self.evaluate(body)?)
            }
            _ => None,
        };
        if let Some(rows) = rows {
            let rows = rows.into_iter().collect();
            return Ok(Rel { columns: rel.columns.clone(), node: Node::Constant { rows } });
        }
        let mut error = None;
        let resolved = rel.clone().map_children(&mut |child| match self.resolve(&child) {
            Ok(resolved) => resolved,
            Err(code) => {
                error.get_or_insert(code);
                child
            }
        });
        error.map_or(Ok(resolved), Err)
    }

    /// By working table, under UNION.
    fn recurse(&mut self, id: LocalId, base: &Rel, step: &Rel) -> Outcome {
        let mut result = Multiset::new();
        let mut working = self.evaluate(base)?;
        while !working.is_empty() {
            working.retain(|row, times| {
                *times = 1;
                result.insert(row.clone(), 1).is_none()
            });
            self.locals.insert(id, working);
            working = self.evaluate(step)?;
            working.retain(|row, _| !result.contains_key(row));
        }
        Ok(result)
    }

    /// The subquery for each outer row that meets the conditions, as far as these are on it alone.
    fn apply(&mut self, apply: &Apply, conditions: &[Predicate]) -> Outcome {
        let mut result = Multiset::new();
        let arity = apply.outer.arity();
        let is_own = |p: &&Predicate| p.columns().iter().all(|column| *column < arity);
        let outer = apply.outer.clone().filter(conditions.iter().filter(is_own).cloned().collect());
        for (row, diff) in self.evaluate(&outer)? {
            let columns = row.unpack();
            let mut values = BTreeMap::new();
            for binding in &apply.bindings {
                let value = binding.value.eval(&columns);
                values.insert(binding.id, value.map_err(|e| e.sqlstate.as_str().to_owned())?);
            }
            let inner = self.evaluate(&with_values(apply.inner.clone(), &values))?;
            let nulls = vec![Datum::Null; apply.inner.arity()];
            let found: Diff = inner.values().sum();
            let mut add = |more: &[Datum], times: Diff| {
                let row = Row::pack(columns.iter().chain(more));
                *result.entry(row).or_insert(0) += diff * times;
            };
            match apply.kind {
                ApplyKind::Semi if found > 0 => add(&[], 1),
                ApplyKind::Anti if found == 0 => add(&[], 1),
                ApplyKind::Semi | ApplyKind::Anti => {}
                ApplyKind::Mark => add(&[Datum::Bool(found > 0)], 1),
                ApplyKind::Scalar if found > 1 => return Err("21000".to_owned()),
                ApplyKind::Left | ApplyKind::Scalar if found == 0 => add(&nulls, 1),
                ApplyKind::Cross | ApplyKind::Left | ApplyKind::Scalar => {
                    inner.iter().for_each(|(row, times)| add(&row.unpack(), *times));
                }
            }
        }
        Ok(result)
    }
}

/// The relation with parameters replaced by values.
fn with_values(rel: Rel, values: &BTreeMap<ParameterId, Datum>) -> Rel {
    let mut rel = rel.map_children(&mut |child| with_values(child, values));
    let expr = |expr: &mut Expr| replace(expr, values);
    let all = |predicates: &mut Vec<Predicate>| {
        for predicate in predicates {
            match predicate {
                Predicate::Equal { left: Typed { expr: left, .. }, right, .. } => {
                    expr(left);
                    expr(&mut right.expr);
                }
                Predicate::Test(test) => expr(test),
            }
        }
    };
    match &mut rel.node {
        Node::Map { outputs, .. } => outputs.iter_mut().for_each(expr),
        Node::TableFunction { table_function, .. } => {
            let args = table_function.calls.iter_mut().flat_map(|call| &mut call.args);
            args.for_each(expr);
        }
        Node::Filter { predicates, .. }
        | Node::Join { predicates, .. }
        | Node::OuterJoin { predicates, .. }
        | Node::AntiJoin { predicates, .. } => all(predicates),
        Node::Reduce { aggregates, .. } => {
            let args = aggregates.iter_mut().filter_map(|Aggregate { arg, .. }| arg.as_mut());
            args.for_each(expr);
        }
        Node::Apply(apply) => apply.bindings.iter_mut().for_each(|b| expr(&mut b.value)),
        _ => {}
    }
    rel
}

fn replace(expr: &mut Expr, values: &BTreeMap<ParameterId, Datum>) {
    if let Expr::Parameter(id, ty) = expr {
        if let Some(value) = values.get(id) {
            *expr = Expr::Literal(value.clone(), *ty);
        }
    }
    expr.children_mut().into_iter().for_each(|child| replace(child, values));
}

fn run(plan: &plan::ViewPlan, contents: &Contents) -> Outcome {
    let sources = plan.sources.iter().map(|source| {
        let mut rows = Multiset::new();
        for row in &contents[&source.table.name] {
            let row = Row::pack(source.columns.iter().map(|&column| &row[column]));
            *rows.entry(row).or_insert(0) += 1;
        }
        rows
    });
    let (oks, errs) = evaluate(plan, &sources.collect::<Vec<_>>(), 100).expect("it ends");
    match errs.into_keys().next() {
        Some(error) => Err(error.sqlstate.as_str().to_owned()),
        None => Ok(oks),
    }
}

fn random_contents(random: &mut Random) -> Contents {
    let number = |text: &str| Datum::Numeric(Numeric::parse(text).expect("a number"));
    let a = [Datum::Null, Datum::Int4(1), Datum::Int4(2), Datum::Int4(3)];
    let b = [Datum::Null, number("1.0"), number("1.00"), number("2.0")];
    let c = [Datum::Null, Datum::text("x"), Datum::text("y"), Datum::text("")];
    let mut pick = |values: &[Datum]| values[random.below(values.len() as u64) as usize].clone();
    let mut contents = Contents::new();
    for table in ["l", "r"] {
        let count = pick(&[Datum::Int4(0), Datum::Int4(2), Datum::Int4(5)]).as_i64().unwrap_or(0);
        let rows = (0..count).map(|_| vec![pick(&a), pick(&b), pick(&c)]).collect();
        contents.insert(table.to_owned(), rows);
    }
    let count = pick(&a[1..]).as_i64().unwrap_or(0) as i32;
    let rows = (0..count).map(|id| vec![Datum::Int4(id), pick(&a[1..]), pick(&b[1..])]).collect();
    contents.insert("s".to_owned(), rows);
    let edges = (0..4).map(|_| vec![pick(&a[1..]), pick(&a[1..])]).collect();
    contents.insert("edges".to_owned(), edges);
    contents
}

fn queries() -> impl Iterator<Item = &'static str> {
    QUERIES.split(';').map(str::trim).filter(|query| !query.is_empty())
}

#[test]
fn subqueries_yield_what_they_would_for_each_row() {
    let catalog = DdlCatalog::parse(TABLES).expect("the tables");
    let mut raised = 0;
    for (number, sql) in queries().enumerate() {
        let query = bind(sql, &catalog).unwrap_or_else(|error| panic!("{sql}\n{error:?}"));
        let plan = plan_view(sql, &catalog).unwrap_or_else(|error| panic!("{sql}\n{error:?}"));
        for seed in 0..60 {
            let mut random = Random::new(1000 * number as u64 + seed);
            let contents = random_contents(&mut random);
            let locals = BTreeMap::new();
            let mut definition = Definition { query: &query, contents: &contents, locals };
            let expected = definition.evaluate(&query.root);
            let found = run(&plan, &contents);
            raised += u32::from(expected.is_err());
            assert_eq!(found, expected, "{sql}\n{contents:?}\n{}", plan::explain(&plan));
        }
    }
    assert!(raised > 0, "no subquery had two rows");
}
