//! What a query does with a recursion, as far as it concerns one of its columns, the value.

use super::monotone::{is_never_null, Known, Trend};
use crate::ir::{Input, Node, Predicate, Preserved, Rel};
use plan::expr::{self, Expr};
use plan::partition::{SortKey, Work};
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

/// What asks for the best value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asker {
    Aggregate,
    /// DISTINCT ON, or LIMIT 1.
    FirstRow,
}

/// The uses of a recursion.
pub(super) struct Uses<'a> {
    pub(super) place: Place,
    /// Which rows are the best: by value, then by what decides among equal values.
    pub(super) order: &'a [SortKey],
    pub(super) is_never_null: bool,
    /// What stands for the recursion, and for values made from it.
    pub(super) locals: BTreeMap<LocalId, Flow>,
    /// What asks for the best value.
    pub(super) asker: Option<Asker>,
    /// Why more than the best values is needed, if so.
    pub(super) refusal: Option<&'static str>,
}

impl Uses<'_> {
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
            Node::Partition { input, key, order, work } => {
                self.partition(input, key, (order, work))
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
        let (least, nulls_first) = (!self.order[0].descending, self.order[0].nulls_first);
        // No condition is known to hold for NULL if it does for other values.
        let is_closed = |predicate: &Predicate| match nulls_first {
            true => known.trend(&predicate.to_expr()) == Trend::Free,
            false => known.is_closed(predicate, least),
        };
        if !predicates.iter().all(is_closed) {
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
        if asks_for_least == self.order[0].descending {
            return self.refuse("both the least and the greatest are asked for");
        }
        self.asker.get_or_insert(Asker::Aggregate);
        if self.order[0].nulls_first {
            self.refuse("NULL is asked for before all values, and after them");
        }
    }

    fn partition(
        &mut self,
        input: &Rel,
        key: &[usize],
        (order, work): (&[SortKey], &Work),
    ) -> Flow {
        let Flow::Rows(trends) = self.flow(input) else { return Flow::Free };
        if self.place == Place::Step || !is_first_row(work) {
            self.refuse("LIMIT or a window function uses all rows");
        } else if key.iter().any(|&column| trends[column] != Trend::Free) {
            self.refuse("the result is grouped by it");
        } else {
            self.first_row(&trends, order);
        }
        Flow::Free
    }

    /// Takes note that the first row in an order is wanted of rows with the trends. Between rows made of the same
    /// other things, the better one has to come first, and what is not in the order has to follow from what is.
    fn first_row(&mut self, trends: &[Trend], order: &[SortKey]) {
        // So many columns of the best rows' own order have been there.
        let mut known = 0;
        for sort in order {
            match trends[sort.column] {
                Trend::Free => {}
                Trend::Unknown(why) => return self.refuse(why),
                Trend::Same(place) if place == known => {
                    let own = self.order[place];
                    if sort.descending != own.descending {
                        return self.refuse("both the least and the greatest are asked for");
                    }
                    if place == 0 {
                        self.asker = Some(Asker::FirstRow);
                    }
                    let is_never_null = place == 0 && self.is_never_null;
                    if sort.nulls_first != own.nulls_first && !is_never_null {
                        return self.refuse("NULL is asked for before all values, and after them");
                    }
                    known += 1;
                }
                Trend::Same(place) if place < known => {}
                // They follow from what has been there.
                Trend::Shifts(place) if place < known => {}
                Trend::Rises | Trend::Falls if known > 0 => {}
                _ => return self.refuse("the first row is asked for in another order"),
            }
        }
        let is_open = |trend: &Trend| match trend {
            Trend::Free => false,
            Trend::Same(place) | Trend::Shifts(place) => *place >= known,
            Trend::Rises | Trend::Falls => known == 0,
            Trend::Unknown(_) => true,
        };
        if trends.iter().any(is_open) {
            self.refuse("the first row has columns that its order leaves open");
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

/// Whether it is the first row of each partition that is wanted.
pub(super) fn is_first_row(work: &Work) -> bool {
    work.keeps_one_row() && work.has_rows_of_all()
}

/// The orders of which a query asks for first rows of a local, as far as they are columns of it.
pub(super) fn orders(rel: &Rel, id: LocalId) -> Vec<Vec<SortKey>> {
    let mut all: Vec<_> = rel.children().into_iter().flat_map(|child| orders(child, id)).collect();
    if let Node::Partition { input, key, order, work } = &rel.node {
        if is_first_row(work) {
            let copies = copies(input, id);
            let is_own = |column| key.iter().any(|&key| copies[key] == Some(column));
            let own = order.iter().filter_map(|sort| {
                let column = copies[sort.column].filter(|&column| !is_own(column))?;
                Some(SortKey { column, among_peers: false, ..*sort })
            });
            all.push(own.collect());
        }
    }
    all
}

/// Of which column of the local each column of a relation is a copy, if of any.
fn copies(rel: &Rel, id: LocalId) -> Vec<Option<usize>> {
    let mut all = match &rel.node {
        Node::Get(other) if *other == id => (0..rel.arity()).map(Some).collect(),
        Node::Filter { input, .. }
        | Node::Fence { input, .. }
        | Node::TableFunction { input, .. } => copies(input, id),
        Node::Map { input, outputs } => {
            let below = copies(input, id);
            let copy = |output: &Expr| output.as_column().and_then(|column| below[column]);
            outputs.iter().map(copy).collect()
        }
        Node::Join { inputs, .. } => inputs.iter().flat_map(|input| copies(input, id)).collect(),
        _ => vec![],
    };
    all.resize(rel.arity(), None);
    all
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
