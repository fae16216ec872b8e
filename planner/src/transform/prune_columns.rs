//! Drops columns nobody reads: from projections, aggregates, values of lets, and from base tables,
//! which are read with just the columns needed. Recursions under UNION keep all columns, since each
//! counts for what a duplicate is. Of those under UNION ALL what neither the query nor the step reads, other than to
//! hand it on, makes no difference to how often the rest is there; it goes if nothing in them may fail. Idempotent.
//!
//! ```text
//! Map (n)                                        becomes   Map (n)
//!   Reduce by (src) to (Count AS n, Max of w)                Reduce by (src) to (Count AS n)
//!     Source edges (id, src, dst, w)                           Source edges (src)
//! ```

use crate::error::PlanError;
use crate::ir::{Node, Predicate, Query, Rel, TimeBound};
use plan::expr::{self, Expr};
use plan::partition::{SortKey, Work};
use plan::table_function::TableFunction;
use plan::types::Column;
use plan::{Aggregate, LocalId, SourceId};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn apply(query: Query) -> Result<Query, PlanError> {
    let mut pruner = Pruner::default();
    let all = everything(&query.root);
    let root = pruner.prune(query.root, &all);
    let mut inputs = query.inputs;
    let mut kept = BTreeMap::new();
    // The clock is no table: it has one column, always.
    let tables = inputs.iter_mut().enumerate().filter(|(_, input)| !input.source.is_clock());
    for (position, input) in tables {
        let columns = pruner.sources.remove(&SourceId(position)).unwrap_or_default();
        let columns: Vec<usize> = columns.into_iter().collect();
        let source = &mut input.source;
        source.schema = columns.iter().map(|&c| source.schema[c].clone()).collect();
        source.columns = columns.iter().map(|&c| source.columns[c]).collect();
        kept.insert(Leaf::Source(SourceId(position)), columns);
    }
    let mut locals = query.locals;
    for (id, kept) in pruner.narrowed {
        if let Some(local) = locals.get_mut(id.0) {
            local.columns = kept.iter().filter_map(|&c| local.columns.get(c).cloned()).collect();
        }
    }
    Ok(Query { inputs, locals, root: narrow(root, &kept) })
}

/// What columns are needed of the things that are referred to from several places.
#[derive(Default)]
struct Pruner {
    sources: BTreeMap<SourceId, BTreeSet<usize>>,
    locals: BTreeMap<LocalId, BTreeSet<usize>>,
    /// The columns kept of lets that are done.
    narrowed: BTreeMap<LocalId, Vec<usize>>,
}

/// A node that is narrowed after all references to it are known.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Leaf {
    Source(SourceId),
    Local(LocalId),
}

impl Pruner {
    /// The relation with exactly the needed columns, in order.
    fn prune(&mut self, rel: Rel, needed: &BTreeSet<usize>) -> Rel {
        let positions: Vec<usize> = needed.iter().copied().collect();
        let columns: Vec<Column> = positions.iter().map(|&p| rel.columns[p].clone()).collect();
        // A node's names may differ from those of the input it is made of.
        Rel { columns: columns.clone(), ..self.prune_node(rel, needed, positions, columns) }
    }

    fn prune_node(
        &mut self,
        rel: Rel,
        needed: &BTreeSet<usize>,
        positions: Vec<usize>,
        columns: Vec<Column>,
    ) -> Rel {
        let all_columns = rel.columns;
        let whole = |node: Node| Rel { columns: all_columns.clone(), node };
        match rel.node {
            Node::Constant { .. } => whole(rel.node).project(&positions),
            Node::Source(id) => {
                self.sources.entry(id).or_default().extend(needed);
                select(whole(rel.node), &positions)
            }
            Node::Get(id) => {
                self.locals.entry(id).or_default().extend(needed);
                select(whole(rel.node), &positions)
            }
            Node::Map { input, outputs } => self.prune_map(*input, &outputs, needed, columns),
            Node::Filter { input, predicates } => self.prune_filter(*input, predicates, &positions),
            Node::Temporal { input, bounds } => self.prune_temporal(*input, &bounds, &positions),
            Node::TableFunction { input, table_function } => {
                let own = all_columns[input.arity()..].to_vec();
                self.prune_table_function(*input, &table_function, own, &positions)
            }
            Node::Join { inputs, predicates } => self.prune_join(inputs, &predicates, &positions),
            Node::OuterJoin { preserved, left, right, predicates } => {
                let join = |left, right, on| Rel::outer_join(preserved, left, right, on);
                self.prune_sides([*left, *right], &predicates, &positions, join)
            }
            Node::AntiJoin { left, right, predicates } => {
                self.prune_sides([*left, *right], &predicates, &positions, Rel::anti_join)
            }
            Node::Reduce { input, key, aggregates } => {
                self.prune_reduce(*input, key, aggregates, (all_columns, &positions))
            }
            Node::Partition { input, key, order, work } => {
                self.prune_partition(*input, (key, order, work), (all_columns, &positions))
            }
            // They look at all columns.
            Node::Apply(_) | Node::Distinct { .. } => {
                whole(rel.node).map_children(&mut |child| self.keep_all(child)).project(&positions)
            }
            Node::Fence { input, .. } => self.prune(*input, needed).fenced(),
            Node::Repeat { input } => self.prune_repeat(*input, needed, columns),
            Node::Union { inputs } => {
                let inputs = inputs.into_iter().map(|input| self.prune(input, needed)).collect();
                Rel { columns, node: Node::Union { inputs } }
            }
            Node::Let { id, value, body } => self.prune_let(id, *value, *body, (needed, columns)),
            Node::LetRec { id, all, form, base, step, body } => {
                let may_lose = all && form.is_none();
                let parts = self.prune_recursion(id, may_lose, [*base, *step, *body], needed);
                let [base, step, body] = parts.map(Box::new);
                Rel { columns, node: Node::LetRec { id, all, form, base, step, body } }
            }
        }
    }

    /// Base, step and body of a recursion, which may lose columns that nobody reads or has to keep all.
    fn prune_recursion(
        &mut self,
        id: LocalId,
        may_lose: bool,
        [base, step, body]: [Rel; 3],
        needed: &BTreeSet<usize>,
    ) -> [Rel; 3] {
        if may_lose {
            return self.prune_loop(id, [base, step], body, needed).into();
        }
        let body = self.prune(body, needed);
        let [base, step] = self.keep_loop(id, [base, step]);
        [base, step, body]
    }

    fn prune_repeat(&mut self, input: Rel, needed: &BTreeSet<usize>, columns: Vec<Column>) -> Rel {
        let used = needed.iter().copied().chain([input.arity() - 1]).collect();
        Rel { columns, node: Node::Repeat { input: Box::new(self.prune(input, &used)) } }
    }

    /// Base and step of a recursion, with all their columns.
    fn keep_loop(&mut self, id: LocalId, parts: [Rel; 2]) -> [Rel; 2] {
        let parts = parts.map(|part| self.keep_all(part));
        self.locals.remove(&id);
        parts
    }

    /// Base, step and body of a recursion under UNION ALL, without the columns that nobody reads.
    fn prune_loop(
        &mut self,
        id: LocalId,
        [base, step]: [Rel; 2],
        body: Rel,
        needed: &BTreeSet<usize>,
    ) -> (Rel, Rel, Rel) {
        let body = self.prune(body, needed);
        let used = self.locals.remove(&id).unwrap_or_default();
        let used = columns_of_loop(id, [&base, &step], used);
        let [base, step] = [base, step].map(|part| self.prune(part, &used));
        self.locals.remove(&id);
        let left: Vec<usize> = used.into_iter().collect();
        self.narrowed.insert(id, left.clone());
        let kept = BTreeMap::from([(Leaf::Local(id), left)]);
        (base, narrow(step, &kept), narrow(body, &kept))
    }

    /// The relation with all its columns.
    fn keep_all(&mut self, rel: Rel) -> Rel {
        let all = everything(&rel);
        self.prune(rel, &all)
    }

    fn prune_join(
        &mut self,
        mut inputs: Vec<Rel>,
        predicates: &[Predicate],
        positions: &[usize],
    ) -> Rel {
        let (predicates, positions) = self.prune_inputs(&mut inputs, predicates, positions);
        let columns = inputs.iter().flat_map(|input| input.columns.clone()).collect();
        Rel { columns, node: Node::Join { inputs, predicates } }.project(&positions)
    }

    fn prune_sides(
        &mut self,
        mut sides: [Rel; 2],
        predicates: &[Predicate],
        positions: &[usize],
        join: impl FnOnce(Rel, Rel, Vec<Predicate>) -> Rel,
    ) -> Rel {
        let (predicates, positions) = self.prune_inputs(&mut sides, predicates, positions);
        let [left, right] = sides;
        join(left, right, predicates).project(&positions)
    }

    fn prune_let(
        &mut self,
        id: LocalId,
        value: Rel,
        body: Rel,
        (needed, columns): (&BTreeSet<usize>, Vec<Column>),
    ) -> Rel {
        let body = self.prune(body, needed);
        let used = self.locals.remove(&id).unwrap_or_default();
        let value = Box::new(self.prune(value, &used));
        let left: Vec<usize> = used.into_iter().collect();
        self.narrowed.insert(id, left.clone());
        let kept = BTreeMap::from([(Leaf::Local(id), left)]);
        Rel { columns, node: Node::Let { id, value, body: Box::new(narrow(body, &kept)) } }
    }

    fn prune_map(
        &mut self,
        input: Rel,
        outputs: &[Expr],
        needed: &BTreeSet<usize>,
        columns: Vec<Column>,
    ) -> Rel {
        let outputs: Vec<&Expr> = needed.iter().map(|&output| &outputs[output]).collect();
        let mut used = BTreeSet::new();
        outputs.iter().for_each(|output| expr::collect_columns(output, &mut used));
        let input = self.prune(input, &used);
        let outputs = outputs.iter().map(|e| expr::renumber(e, &|c| rank(&used, c))).collect();
        input.map(outputs, columns)
    }

    fn prune_filter(&mut self, input: Rel, predicates: Vec<Predicate>, positions: &[usize]) -> Rel {
        let mut used: BTreeSet<usize> = positions.iter().copied().collect();
        used.extend(predicates.iter().flat_map(Predicate::columns));
        let input = self.prune(input, &used);
        let predicates = predicates.iter().map(|p| p.renumber(&|c| rank(&used, c))).collect();
        let positions: Vec<usize> = positions.iter().map(|&p| rank(&used, p)).collect();
        input.filter(predicates).project(&positions)
    }

    fn prune_temporal(&mut self, input: Rel, bounds: &[TimeBound], positions: &[usize]) -> Rel {
        let mut used: BTreeSet<usize> = positions.iter().copied().collect();
        bounds.iter().for_each(|bound| expr::collect_columns(&bound.at, &mut used));
        let input = self.prune(input, &used);
        let place = |column| Expr::Column(rank(&used, column));
        let bounds = bounds.iter().map(|bound| bound.substitute(&place)).collect();
        let positions: Vec<usize> = positions.iter().map(|&p| rank(&used, p)).collect();
        input.temporal(bounds).project(&positions)
    }

    /// All calls stay: each decides how many rows there are.
    fn prune_table_function(
        &mut self,
        input: Rel,
        table_function: &TableFunction,
        own: Vec<Column>,
        positions: &[usize],
    ) -> Rel {
        let arity = input.arity();
        let mut used: BTreeSet<usize> = positions.iter().copied().filter(|p| *p < arity).collect();
        table_function.args().for_each(|arg| expr::collect_columns(arg, &mut used));
        let input = Box::new(self.prune(input, &used));
        let rank = |column| match column < arity {
            true => rank(&used, column),
            false => used.len() + column - arity,
        };
        let table_function = table_function.map_args(&|arg| expr::renumber(arg, &rank));
        let columns = [input.columns.clone(), own].concat();
        let positions: Vec<usize> = positions.iter().map(|&p| rank(p)).collect();
        Rel { columns, node: Node::TableFunction { input, table_function } }.project(&positions)
    }

    /// Narrows the inputs of a join to the columns needed above it and by its predicates, and renumbers both.
    fn prune_inputs(
        &mut self,
        inputs: &mut [Rel],
        predicates: &[Predicate],
        positions: &[usize],
    ) -> (Vec<Predicate>, Vec<usize>) {
        let mut used: BTreeSet<usize> = positions.iter().copied().collect();
        used.extend(predicates.iter().flat_map(Predicate::columns));
        let mut offset = 0;
        for input in inputs {
            let end = offset + input.arity();
            let own = used.range(offset..end).map(|column| column - offset).collect();
            offset = end;
            let whole = std::mem::replace(input, Rel::unit());
            *input = self.prune(whole, &own);
        }
        let predicates = predicates.iter().map(|p| p.renumber(&|c| rank(&used, c))).collect();
        (predicates, positions.iter().map(|&p| rank(&used, p)).collect())
    }

    /// The key stays whole: every part of it decides what a group is.
    fn prune_reduce(
        &mut self,
        input: Rel,
        key: Vec<usize>,
        aggregates: Vec<Aggregate>,
        (columns, positions): (Vec<Column>, &[usize]),
    ) -> Rel {
        let keys = key.len();
        let kept: Vec<usize> =
            (0..columns.len()).filter(|c| *c < keys || positions.contains(c)).collect();
        let aggregates: Vec<Aggregate> =
            kept[keys..].iter().map(|&column| aggregates[column - keys].clone()).collect();
        let mut used: BTreeSet<usize> = key.iter().copied().collect();
        for arg in aggregates.iter().filter_map(|aggregate| aggregate.arg.as_ref()) {
            expr::collect_columns(arg, &mut used);
        }
        let input = Box::new(self.prune(input, &used));
        let key = key.iter().map(|&column| rank(&used, column)).collect();
        let renumbered = |aggregate: &Aggregate| Aggregate {
            func: aggregate.func,
            arg: aggregate.arg.as_ref().map(|arg| expr::renumber(arg, &|c| rank(&used, c))),
        };
        let aggregates = aggregates.iter().map(renumbered).collect();
        let columns = kept.iter().map(|&column| columns[column].clone()).collect();
        let positions: Vec<usize> = positions
            .iter()
            .map(|p| kept.iter().position(|column| column == p).unwrap_or(usize::MAX))
            .collect();
        Rel { columns, node: Node::Reduce { input, key, aggregates } }.project(&positions)
    }
}

impl Pruner {
    /// Calls that nobody asks for are not made.
    fn prune_partition(
        &mut self,
        input: Rel,
        (key, mut order, work): (Vec<usize>, Vec<SortKey>, Work),
        (columns, positions): (Vec<Column>, &[usize]),
    ) -> Rel {
        let arity = input.arity();
        let is_kept = |number: &usize| positions.contains(&(arity + number));
        let kept: Vec<usize> = (0..work.added_columns()).filter(is_kept).collect();
        let mut used: BTreeSet<usize> =
            positions.iter().copied().filter(|column| *column < arity).collect();
        if let (Work::Window(_), []) = (&work, kept.as_slice()) {
            return self.prune(input, &used);
        }
        used.extend(key.iter().copied().chain(order.iter().map(|sort| sort.column)));
        let mut work = work.with_calls(&kept);
        work.columns_mut(&mut |column| {
            used.insert(*column);
        });
        let input = Box::new(self.prune(input, &used));
        let key = key.iter().map(|&column| rank(&used, column)).collect();
        order.iter_mut().for_each(|sort| sort.column = rank(&used, sort.column));
        work.columns_mut(&mut |column| *column = rank(&used, *column));
        let place = |column: usize| match column.checked_sub(arity) {
            None => rank(&used, column),
            Some(number) => used.len() + kept.iter().take_while(|call| **call < number).count(),
        };
        let positions: Vec<usize> = positions.iter().map(|&column| place(column)).collect();
        let added = kept.iter().map(|number| columns[arity + number].clone());
        let columns = input.columns.iter().cloned().chain(added).collect();
        Rel { columns, node: Node::Partition { input, key, order, work } }.project(&positions)
    }
}

/// What of a recursion under UNION ALL has to be there if its query reads the columns `used`; at least one.
fn columns_of_loop(
    id: LocalId,
    [base, step]: [&Rel; 2],
    mut used: BTreeSet<usize>,
) -> BTreeSet<usize> {
    // So does a recursion within, into which looking again and again would have no end.
    if base.may_fail() || step.may_fail() {
        return everything(base);
    }
    loop {
        if used.is_empty() {
            used.insert(0);
        }
        let mut reader = Pruner::default();
        reader.prune(step.clone(), &used);
        let read = reader.locals.remove(&id).unwrap_or_default();
        if read.is_subset(&used) {
            return used;
        }
        used.extend(read);
    }
}

/// A projection that stays even if it changes nothing, so that the leaf below can be narrowed.
fn select(rel: Rel, positions: &[usize]) -> Rel {
    let columns = positions.iter().map(|&p| rel.columns[p].clone()).collect();
    let outputs = positions.iter().map(|&p| Expr::Column(p)).collect();
    Rel { columns, node: Node::Map { input: Box::new(rel), outputs } }
}

/// Narrows leaves to the columns kept; the projections right above follow, or go if they change nothing.
fn narrow(rel: Rel, kept: &BTreeMap<Leaf, Vec<usize>>) -> Rel {
    let Node::Map { input, outputs } = rel.node else {
        return rel.map_children(&mut |child| narrow(child, kept));
    };
    let leaf = match input.node {
        Node::Source(id) => kept.get(&Leaf::Source(id)),
        Node::Get(id) => kept.get(&Leaf::Local(id)),
        _ => None,
    };
    let Some(left) = leaf else {
        return narrow(*input, kept).map(outputs, rel.columns);
    };
    let position = |column| left.iter().position(|known| *known == column).unwrap_or(usize::MAX);
    let outputs = outputs.iter().map(|output| expr::renumber(output, &position)).collect();
    let columns = left.iter().map(|&column| input.columns[column].clone()).collect();
    Rel { columns, node: input.node }.map(outputs, rel.columns)
}

fn everything(rel: &Rel) -> BTreeSet<usize> {
    (0..rel.arity()).collect()
}

fn rank(used: &BTreeSet<usize>, column: usize) -> usize {
    used.range(..column).count()
}
