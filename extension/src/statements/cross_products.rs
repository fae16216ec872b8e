//! Tells who creates a view that it looks at all pairs of the rows of two large inputs.

use crate::compile::{CompiledQuery, SourceTable};
use crate::pg::relation::{with_relation, Lock};
use crate::pg::report;
use plan::{LocalId, Plan};
use std::collections::BTreeMap;

/// Pairs of rows from which on it is told. The first look at them takes about ten seconds.
const MANY_PAIRS: f64 = 1e8;

/// Of the rows that a condition is tested of, those that meet it: as PostgreSQL says of an inequality.
const SELECTIVITY: f64 = 1.0 / 3.0;

/// Says so if the view has a join of very many pairs.
pub(super) fn tell(query: &CompiledQuery) {
    let rows = query.sources.iter().map(rows_of).collect();
    let mut estimate = Estimate { rows, locals: BTreeMap::new(), largest: None };
    estimate.rows(&query.plan.root);
    let Some((left, right)) = estimate.largest.filter(|(l, r)| l * r >= MANY_PAIRS) else { return };
    let message = format!("the view looks at all pairs of about {left:.0} and {right:.0} rows");
    let notice = report::notice(message)
    .set_detail("A join has no condition by which a row finds its partners. Each change looks at all rows of the other side.")
    .set_hint("EXPLAIN CREATE INCREMENTAL VIEW shows it as \"Cross join\". Rows are found by equality, by BETWEEN, and by ranges or shapes that overlap.");
    report::tell(notice);
}

fn rows_of(source: &SourceTable) -> f64 {
    if source.is_clock() {
        return 1.0;
    }
    let rows = |table| with_relation(table, Lock::AccessShare, |table| table.estimated_rows());
    source.tables().into_iter().filter_map(rows).map(|rows| rows as f64).sum()
}

/// How many rows there are of what, about.
struct Estimate {
    /// By source.
    rows: Vec<f64>,
    locals: BTreeMap<LocalId, f64>,
    /// The sides of the join without a key that has the most pairs.
    largest: Option<(f64, f64)>,
}

impl Estimate {
    fn rows(&mut self, plan: &Plan) -> f64 {
        match plan {
            Plan::Constant { rows, .. } => rows.len() as f64,
            Plan::Source(id) => self.rows.get(id.0).copied().unwrap_or(0.0),
            Plan::Get(id) => self.locals.get(id).copied().unwrap_or(0.0),
            Plan::Let { id, value, body } => {
                let value = self.rows(value);
                self.locals.insert(*id, value);
                self.rows(body)
            }
            Plan::LetRec { id, base, step, body, .. } => {
                let base = self.rows(base);
                self.locals.insert(*id, base);
                self.rows(step);
                self.rows(body)
            }
            Plan::Mfp { input, mfp } => filtered(self.rows(input), mfp.filter.len()),
            Plan::Join { left, right, left_key, closure, .. } => {
                let (left, right) = (self.rows(left), self.rows(right));
                if !left_key.is_empty() {
                    return left.max(right);
                }
                if self.largest.is_none_or(|(l, r)| l * r < left * right) {
                    self.largest = Some((left, right));
                }
                filtered(left * right, closure.filter.len())
            }
            Plan::Reduce { key, input, .. } => {
                let rows = self.rows(input);
                if key.is_empty() {
                    1.0
                } else {
                    rows
                }
            }
            Plan::DeltaJoin { inputs, .. } => {
                inputs.iter().map(|input| self.rows(input)).fold(0.0, f64::max)
            }
            Plan::Union { inputs } => inputs.iter().map(|input| self.rows(input)).sum(),
            Plan::Negate { input } => {
                self.rows(input);
                0.0
            }
            Plan::TableFunction { input, .. }
            | Plan::Distinct { input }
            | Plan::Partition { input, .. }
            | Plan::Temporal { input, .. }
            | Plan::Repeat { input } => self.rows(input),
        }
    }
}

fn filtered(rows: f64, conditions: usize) -> f64 {
    match conditions {
        0 => rows,
        _ => rows * SELECTIVITY,
    }
}
