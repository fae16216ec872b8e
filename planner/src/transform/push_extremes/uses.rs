//! What a query does with a recursion, as far as it concerns one of its columns, the value.

use super::monotone::{is_never_null, Known, Trend};
use crate::ir::{Input, Node, Predicate, Preserved, Rel};
use plan::expr::{self, Expr};
use plan::table_function::TableFunction;
use plan::{Aggregate, AggregateFunc, LocalId};
use std::collections::{BTreeMap, BTreeSet};

/// How the rows of a relation come from those of the recursion.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Flow {
    /// They do not, or not so that more than the best values is needed.
    Free,
    /// Each from at most one, its columns depending on that one's value as given.
    Rows(Vec<Trend>),
}

/// Where a use is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the recursion's own step.
    Step,
    /// In the query over the recursion.
    Body,
}

/// The uses of a recursion.
pub(super) struct Uses {
    pub(super) place: Place,
    /// Whether the least values are wanted, else the greatest.
    pub(super) least: bool,
    pub(super) is_never_null: bool,
    /// What stands for the recursion, and for values made from it.
    pub(super) locals: BTreeMap<LocalId, Flow>,
    /// Whether some aggregate asks for the best value.
    pub(super) is_asked_for: bool,
    /// Why more than the best values is needed, if so.
    pub(super) refusal: Option<&'static str>,
}

impl Uses {
    fn refuse(&mut self, why: &'static str) {
        self.refusal.get_or_insert(why);
    }

    /// How a relation comes from the recursion. What is not as it has to be is put down in `refusal`.
    pub(super) fn flow(&mut self, rel: &Rel) -> Flow {
        match &rel.node {
            Node::Constant { .. } | Node::Source(_) => Flow::Free,
            Node::Get(id) => self.locals.get(id).cloned().unwrap_or(Flow::Free),
            Node::Map { input, outputs } => match self.flow(input) {
                Flow::Free => Flow::Free,
                Flow::Rows(trends) => {
                    let known = self.known(&trends, input);
                    Flow::Rows(outputs.iter().map(|output| known.trend(output)).collect())
                }
            },
            Node::TableFunction { input, table_function } => {
                self.table_function(input, table_function)
            }
            Node::Filter { input, predicates } => {
                let flow = self.flow(input);
                self.test(&flow, predicates, &input.columns);
                flow
            }
            Node::Temporal { input, .. } => {
                self.nothing_of(&[input], "the present time decides which rows count")
            }
            Node::Join { inputs, predicates } => self.join(inputs, predicates),
            Node::OuterJoin { left, right, .. } => {
                self.nothing_of(&[left, right], "an outer join uses all rows")
            }
            Node::AntiJoin { left, right, .. } => self.anti_join(left, right),
            Node::Apply(_) => {
                self.refuse("a subquery uses all rows");
                Flow::Free
            }
            Node::Partition { input, .. } => {
                self.nothing_of(&[input], "LIMIT or a window function uses all rows")
            }
            Node::Fence { input, .. } => self.flow(input),
            Node::Repeat { input } => self.nothing_of(&[input], "its rows are counted"),
            Node::Union { inputs } => {
                let flows = inputs.iter().map(|input| self.flow(input)).collect::<Vec<_>>();
                flows.into_iter().reduce(either).unwrap_or(Flow::Free)
            }
            Node::Distinct { input } => self.distinct(input),
            Node::Reduce { input, key, aggregates } => self.reduce(input, key, aggregates),
            Node::Let { id, value, body } => {
                let value = self.flow(value);
                self.locals.insert(*id, value);
                self.flow(body)
            }
            Node::LetRec { base, step, body, .. } => {
                self.nothing_of(&[base, step], "another recursion uses all rows");
                self.flow(body)
            }
        }
    }

    /// The flow of what must not be made of the recursion.
    fn nothing_of(&mut self, parts: &[&Rel], why: &'static str) -> Flow {
        for part in parts {
            if self.flow(part) != Flow::Free {
                self.refuse(why);
            }
        }
        Flow::Free
    }

    fn known<'a>(&self, trends: &'a [Trend], input: &'a Rel) -> Known<'a> {
        Known { trends, columns: &input.columns, is_never_null: self.is_never_null }
    }

    fn test(&mut self, flow: &Flow, predicates: &[Predicate], columns: &[plan::types::Column]) {
        let Flow::Rows(trends) = flow else { return };
        let known = Known { trends, columns, is_never_null: self.is_never_null };
        if !predicates.iter().all(|predicate| known.is_closed(predicate, self.least)) {
            self.refuse("a condition may drop a better value and keep a worse one");
        }
    }

    /// The rows made of a row have its value; how many they are must not depend on that.
    fn table_function(&mut self, input: &Rel, table_function: &TableFunction) -> Flow {
        let Flow::Rows(mut trends) = self.flow(input) else { return Flow::Free };
        let known = self.known(&trends, input);
        if table_function.args().any(|arg| known.trend(arg) != Trend::Free) {
            self.refuse("a set-returning function is applied to it");
        }
        trends.resize(trends.len() + table_function.width(), Trend::Free);
        Flow::Rows(trends)
    }

    fn join(&mut self, inputs: &[Rel], predicates: &[Predicate]) -> Flow {
        let flows: Vec<Flow> = inputs.iter().map(|input| self.flow(input)).collect();
        match flows.iter().filter(|flow| **flow != Flow::Free).count() {
            0 => return Flow::Free,
            1 => {}
            _ => self.refuse("the recursion is joined with itself"),
        }
        let trends = flows.into_iter().zip(inputs).flat_map(|(flow, input)| match flow {
            Flow::Free => vec![Trend::Free; input.arity()],
            Flow::Rows(trends) => trends,
        });
        let flow = Flow::Rows(trends.collect());
        let columns: Vec<_> = inputs.iter().flat_map(|input| input.columns.clone()).collect();
        self.test(&flow, predicates, &columns);
        flow
    }

    fn anti_join(&mut self, left: &Rel, right: &Rel) -> Flow {
        if [left, right].into_iter().any(|side| self.flow(side) != Flow::Free) {
            self.refuse("an anti join uses all rows");
        }
        Flow::Free
    }

    fn distinct(&mut self, input: &Rel) -> Flow {
        let flow = self.flow(input);
        let Flow::Rows(trends) = &flow else { return Flow::Free };
        match self.place {
            Place::Body if trends.iter().all(|trend| *trend == Trend::Free) => Flow::Free,
            Place::Body => flow,
            Place::Step => {
                self.refuse("DISTINCT is over the self-reference");
                flow
            }
        }
    }

    fn reduce(&mut self, input: &Rel, key: &[usize], aggregates: &[Aggregate]) -> Flow {
        let Flow::Rows(trends) = self.flow(input) else { return Flow::Free };
        if self.place == Place::Step {
            self.refuse("GROUP BY is over the self-reference");
        }
        if key.iter().any(|&column| trends[column] != Trend::Free) {
            self.refuse("the result is grouped by it");
        }
        for aggregate in aggregates {
            let trend = aggregate.arg.as_ref().map(|arg| self.known(&trends, input).trend(arg));
            self.aggregate(aggregate.func, trend.unwrap_or(Trend::Free));
        }
        Flow::Free
    }

    /// Takes note of an aggregate of an expression with the trend.
    fn aggregate(&mut self, func: AggregateFunc, trend: Trend) {
        use AggregateFunc as A;
        let asks_for_least = match (func, trend.coarse()) {
            (_, Trend::Free) if !func.counts_duplicates() => return,
            (A::Min(_), Trend::Rises) | (A::Max(_), Trend::Falls) => true,
            (A::Min(_), Trend::Falls) | (A::Max(_), Trend::Rises) => false,
            (_, Trend::Unknown(why)) => return self.refuse(why),
            _ => return self.refuse("other aggregates need all rows"),
        };
        if asks_for_least == self.least {
            self.is_asked_for = true;
        } else {
            self.refuse("both the least and the greatest are asked for");
        }
    }
}

/// Rows of one relation or the other.
fn either(a: Flow, b: Flow) -> Flow {
    match (a, b) {
        (Flow::Free, flow) | (flow, Flow::Free) => flow,
        (Flow::Rows(a), Flow::Rows(b)) => {
            Flow::Rows(a.into_iter().zip(b).map(|(a, b)| a.or(b)).collect())
        }
    }
}

/// The columns of a local that are needed for some columns of a relation.
pub(super) fn demanded(rel: &Rel, needed: &BTreeSet<usize>, id: LocalId) -> BTreeSet<usize> {
    let all = |rel: &Rel| demanded(rel, &(0..rel.arity()).collect(), id);
    match &rel.node {
        Node::Constant { .. } | Node::Source(_) => BTreeSet::new(),
        Node::Get(other) if *other == id => needed.clone(),
        Node::Get(_) => BTreeSet::new(),
        Node::Map { input, outputs } => {
            let used = needed.iter().flat_map(|&column| expr::columns_of(&outputs[column]));
            demanded(input, &used.collect(), id)
        }
        Node::TableFunction { input, table_function } => {
            let mut used: BTreeSet<usize> = needed.range(..input.arity()).copied().collect();
            table_function.args().for_each(|arg| expr::collect_columns(arg, &mut used));
            demanded(input, &used, id)
        }
        Node::Filter { input, predicates } => demanded(input, &with(needed, predicates), id),
        Node::Fence { input, .. } => demanded(input, needed, id),
        Node::Join { inputs, predicates } => {
            let needed = with(needed, predicates);
            let mut start = 0;
            let own = inputs.iter().flat_map(|input| {
                let end = start + input.arity();
                let own = needed.range(start..end).map(|column| column - start).collect();
                start = end;
                demanded(input, &own, id)
            });
            own.collect()
        }
        Node::OuterJoin { left, right, .. } | Node::AntiJoin { left, right, .. } => {
            &all(left) | &all(right)
        }
        Node::Apply(apply) => &all(&apply.outer) | &all(&apply.inner),
        Node::Union { inputs } => {
            inputs.iter().flat_map(|input| demanded(input, needed, id)).collect()
        }
        Node::Reduce { input, key, aggregates } => {
            let mut used: BTreeSet<usize> = key.iter().copied().collect();
            aggregates.iter().filter_map(|a| a.arg.as_ref()).for_each(|arg| {
                expr::collect_columns(arg, &mut used);
            });
            demanded(input, &used, id)
        }
        Node::Temporal { input, .. }
        | Node::Distinct { input }
        | Node::Partition { input, .. }
        | Node::Repeat { input } => all(input),
        Node::Let { value, body, .. } => &all(value) | &demanded(body, needed, id),
        Node::LetRec { base, step, body, .. } => {
            &(&all(base) | &all(step)) | &demanded(body, needed, id)
        }
    }
}

fn with(needed: &BTreeSet<usize>, predicates: &[Predicate]) -> BTreeSet<usize> {
    needed.iter().copied().chain(predicates.iter().flat_map(Predicate::columns)).collect()
}

/// Whether a column is never NULL, if that of a local is not.
pub(super) fn column_is_never_null(
    rel: &Rel,
    column: usize,
    assumed: (LocalId, usize),
    inputs: &[Input],
) -> bool {
    let below = |rel: &Rel, column| column_is_never_null(rel, column, assumed, inputs);
    match &rel.node {
        Node::Constant { rows } => rows.iter().all(|(row, _)| !row.column(column).is_null()),
        Node::Source(id) => inputs.get(id.0).is_some_and(|i| !i.source.schema[column].nullable),
        Node::Get(id) => (*id, column) == assumed,
        Node::Map { input, outputs } => {
            is_never_null(&outputs[column], &|column| below(input, column))
        }
        Node::Filter { input, .. }
        | Node::Temporal { input, .. }
        | Node::Distinct { input }
        | Node::Fence { input, .. }
        | Node::Repeat { input } => below(input, column),
        Node::Partition { input, .. } | Node::TableFunction { input, .. } => {
            column < input.arity() && below(input, column)
        }
        Node::Join { inputs, .. } => {
            let mut start = 0;
            let home = inputs.iter().find_map(|input| {
                let position = column - start;
                start += input.arity();
                (position < input.arity()).then_some((input, position))
            });
            home.is_some_and(|(input, position)| below(input, position))
        }
        Node::OuterJoin { preserved: Preserved::Left, left, .. } if column < left.arity() => {
            below(left, column)
        }
        Node::AntiJoin { left, .. } => below(left, column),
        Node::OuterJoin { .. } | Node::Apply(_) => false,
        Node::Union { inputs } => inputs.iter().all(|input| below(input, column)),
        Node::Reduce { input, key, .. } => key.get(column).is_some_and(|&key| below(input, key)),
        Node::Let { body, .. } | Node::LetRec { body, .. } => below(body, column),
    }
}

/// Where each column of a relation comes from, if it is made of the local's rows, each at most once.
pub(super) fn origins(rel: &Rel, id: LocalId) -> Option<Vec<Option<usize>>> {
    match &rel.node {
        Node::Get(other) if *other == id => Some((0..rel.arity()).map(Some).collect()),
        Node::Filter { input, .. } => origins(input, id),
        Node::Map { input, outputs } => {
            let below = origins(input, id)?;
            let origin = |output: &Expr| output.as_column().and_then(|column| below[column]);
            Some(outputs.iter().map(origin).collect())
        }
        _ => None,
    }
}
