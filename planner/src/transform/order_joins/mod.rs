//! Turns joins of many inputs into joins of two, but for those that are to be delta joins ([`delta`]).
//!
//! As the text has it, they are left-deep: from the self-reference of a recursion if there is one, else from the first input,
//! always on to an input that an equality connects. Inputs that nothing connects are joined last, as cross products. If
//! anything is known of the rows, and another order of those that equalities connect is cheaper by far, it is that one
//! ([`search`]).
//!
//! Any order yields the same rows, in a recursion too: it does not matter to which of a join's inputs the self-reference
//! belongs. Where a condition may fail, the order stays as in the text, as it would be tested of other rows. Idempotent.
//!
//! ```text
//! Join [a.dst = c.src]     becomes   Join
//!   Get a                              Join [a.dst = c.src]
//!   Get b                                Get a
//!   Get c                                Get c
//!                                      Get b
//! ```

mod delta;
mod search;

use crate::error::PlanError;
use crate::estimate::{inputs_of, places, Estimate, Estimator, JoinSizes};
use crate::ir::{Node, Predicate, Query, Rel};
use plan::expr::{self, columns_of};
use plan::LocalId;
use search::Search;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

pub(super) fn apply(query: Query) -> Result<Query, PlanError> {
    let Query { inputs, locals, root } = query;
    let estimator = inputs.iter().any(|input| input.statistics.is_some());
    let estimator = estimator.then(|| Estimator::new(&inputs));
    let mut orderer = Orderer { estimator, recursive: vec![] };
    let root = orderer.order(root, None);
    Ok(Query { inputs, locals, root })
}

struct Orderer<'q> {
    /// `None` if nothing is known of any table.
    estimator: Option<Estimator<'q>>,
    /// The recursions whose step we are in.
    recursive: Vec<LocalId>,
}

/// The order in which inputs are joined, by their numbers in the text.
#[derive(Clone, Debug, PartialEq)]
enum Tree {
    Input(usize),
    Join(Box<Tree>, Box<Tree>),
    /// All at once, by a delta join.
    AtOnce(Vec<usize>),
}

impl Tree {
    fn join(left: Tree, right: Tree) -> Tree {
        Tree::Join(Box::new(left), Box::new(right))
    }
}

impl Orderer<'_> {
    /// Of the relation's columns those `needed` are, or all.
    fn order(&mut self, rel: Rel, needed: Option<BTreeSet<usize>>) -> Rel {
        let columns = rel.columns;
        match rel.node {
            Node::Let { id, value, body } => {
                let value = Box::new(self.order(*value, None));
                self.estimator.iter_mut().for_each(|e| e.bind(id, &value));
                let body = Box::new(self.order(*body, None));
                Rel { columns, node: Node::Let { id, value, body } }
            }
            Node::LetRec { id, all, form, base, step, body } => {
                let base = Box::new(self.order(*base, None));
                self.estimator.iter_mut().for_each(|e| e.bind_recursion(id, all, &base, &step));
                self.recursive.push(id);
                let step = Box::new(self.order(*step, None));
                self.recursive.pop();
                let body = Box::new(self.order(*body, None));
                Rel { columns, node: Node::LetRec { id, all, form, base, step, body } }
            }
            Node::Map { input, outputs } => {
                let needed = outputs.iter().flat_map(columns_of).collect();
                let input = Box::new(self.order(*input, Some(needed)));
                Rel { columns, node: Node::Map { input, outputs } }
            }
            Node::Join { inputs, predicates } => {
                let inputs = inputs.into_iter().map(|input| self.order(input, None)).collect();
                let needed = needed.unwrap_or_else(|| (0..columns.len()).collect());
                self.order_join(inputs, predicates, &needed).restore(columns)
            }
            node => Rel { columns, node }.map_children(&mut |child| self.order(child, None)),
        }
    }

    fn order_join(
        &mut self,
        inputs: Vec<Rel>,
        predicates: Vec<Predicate>,
        needed: &BTreeSet<usize>,
    ) -> Joined {
        let places = places(inputs.iter().map(Rel::arity));
        let is_recursive = |input: &Rel| self.recursive.iter().any(|id| input.count_gets(*id) > 0);
        let mut waiting: VecDeque<usize> = (0..inputs.len()).collect();
        if let Some(start) = inputs.iter().position(is_recursive) {
            waiting.retain(|input| *input != start);
            waiting.push_front(start);
        }
        let links: Vec<Link> = predicates.iter().filter_map(|p| Link::of(p, &places)).collect();
        let parts = connected(waiting, &links);
        let may_fail = predicates.iter().any(|p| expr::may_fail(&p.to_expr()));
        // Within a loop partial results change with every iteration, and the host is asked about many rows at a time.
        let may_be_at_once =
            self.recursive.is_empty() && !predicates.iter().any(|p| expr::calls_host(&p.to_expr()));
        let search = (parts.iter().any(|part| part.len() > 2) && !may_fail)
            .then(|| self.search(&inputs, &predicates, needed))
            .flatten();
        let tree = |part: &Vec<usize>| match &search {
            Some(search) => search.best(part, may_be_at_once),
            None => as_written(part),
        };
        let trees: Vec<Tree> = parts.iter().map(tree).collect();
        build(trees, (inputs, places, predicates))
    }

    /// What to look for another order by; `None` if nothing is known of the inputs.
    fn search<'j>(
        &mut self,
        inputs: &[Rel],
        predicates: &[Predicate],
        needed: &'j BTreeSet<usize>,
    ) -> Option<Search<'j>> {
        let estimator = self.estimator.as_mut()?;
        let inputs: Vec<Estimate> = inputs.iter().map(|input| estimator.estimate(input)).collect();
        let is_known = inputs.iter().any(|input| input.is_known);
        is_known.then(|| Search { join: JoinSizes::new(inputs, predicates), needed })
    }
}

/// An equality between inputs.
struct Link([BTreeSet<usize>; 2]);

impl Link {
    fn of(predicate: &Predicate, places: &[Range<usize>]) -> Option<Link> {
        let Predicate::Equal { left, right, .. } = predicate else { return None };
        let sides = [left, right].map(|side| inputs_of(&columns_of(&side.expr), places));
        let [l, r] = &sides;
        (!l.is_empty() && !r.is_empty() && l.is_disjoint(r)).then_some(Link(sides))
    }

    /// Whether it connects what is joined with another input.
    fn leads(&self, joined: &[usize], next: usize) -> bool {
        let is_next = |side: &BTreeSet<usize>| side.len() == 1 && side.contains(&next);
        let is_joined = |side: &BTreeSet<usize>| side.iter().all(|input| joined.contains(input));
        let [l, r] = &self.0;
        is_joined(l) && is_next(r) || is_next(l) && is_joined(r)
    }
}

/// The inputs that equalities connect, directly or not, in the order in which the text connects them.
fn connected(mut waiting: VecDeque<usize>, links: &[Link]) -> Vec<Vec<usize>> {
    let mut parts = Vec::new();
    while let Some(first) = waiting.pop_front() {
        let mut part = vec![first];
        let next = |part: &[usize], waiting: &VecDeque<usize>| {
            waiting.iter().position(|input| links.iter().any(|link| link.leads(part, *input)))
        };
        while let Some(input) = next(&part, &waiting).and_then(|at| waiting.remove(at)) {
            part.push(input);
        }
        parts.push(part);
    }
    parts
}

/// One after the other.
fn as_written(part: &[usize]) -> Tree {
    let mut inputs = part.iter().map(|input| Tree::Input(*input));
    let first = inputs.next().unwrap_or(Tree::Input(0));
    inputs.fold(first, Tree::join)
}

/// Joins the parts, each in its order, and what nothing connects as cross products.
fn build(
    parts: Vec<Tree>,
    (inputs, places, mut predicates): (Vec<Rel>, Vec<Range<usize>>, Vec<Predicate>),
) -> Joined {
    let place =
        |(rel, place): (Rel, Range<usize>)| Some(Joined { rel, numbering: place.collect() });
    let mut inputs: Vec<Option<Joined>> = inputs.into_iter().zip(places).map(place).collect();
    let whole = parts.into_iter().reduce(Tree::join);
    let whole = whole.and_then(|tree| Joined::of(&tree, &mut inputs, &mut predicates));
    let whole = whole.unwrap_or_else(|| Joined { rel: Rel::unit(), numbering: vec![] });
    whole.filter(predicates)
}

/// Inputs joined so far.
struct Joined {
    rel: Rel,
    /// For each column of `rel` its number in the text's numbering.
    numbering: Vec<usize>,
}

impl Joined {
    /// Takes the inputs that it is made of, each of which is there once.
    fn of(
        tree: &Tree,
        inputs: &mut [Option<Joined>],
        predicates: &mut Vec<Predicate>,
    ) -> Option<Joined> {
        match tree {
            Tree::Input(input) => inputs.get_mut(*input)?.take(),
            Tree::Join(left, right) => {
                let left = Joined::of(left, inputs, predicates)?;
                let right = Joined::of(right, inputs, predicates)?;
                Some(Joined::all(vec![left, right], predicates))
            }
            Tree::AtOnce(order) => {
                let inputs: Option<Vec<Joined>> =
                    order.iter().map(|input| inputs.get_mut(*input)?.take()).collect();
                Some(Joined::all(inputs?, predicates))
            }
        }
    }

    /// Joins with the predicates that can be tested then, which are taken out of the list.
    fn all(parts: Vec<Joined>, predicates: &mut Vec<Predicate>) -> Joined {
        let (mut columns, mut numbering, mut inputs) = (vec![], vec![], vec![]);
        for Joined { rel, numbering: own } in parts {
            columns.extend(rel.columns.iter().cloned());
            numbering.extend(own);
            inputs.push(rel);
        }
        let known = |p: &Predicate| p.columns().iter().all(|column| numbering.contains(column));
        let (now, later): (Vec<_>, Vec<_>) = predicates.drain(..).partition(known);
        *predicates = later;
        let predicates = now.iter().map(|p| renumber(p, &numbering)).collect();
        let node = Node::Join { inputs, predicates };
        Joined { rel: Rel { columns, node }, numbering }
    }

    fn filter(self, predicates: Vec<Predicate>) -> Joined {
        let predicates = predicates.iter().map(|p| renumber(p, &self.numbering)).collect();
        Joined { rel: self.rel.filter(predicates), numbering: self.numbering }
    }

    /// The columns in the order of the text again.
    fn restore(self, columns: Vec<plan::types::Column>) -> Rel {
        let position = |column: usize| position(&self.numbering, column);
        let positions: Vec<usize> = (0..columns.len()).map(position).collect();
        Rel { columns, node: self.rel.project(&positions).node }
    }
}

fn renumber(predicate: &Predicate, numbering: &[usize]) -> Predicate {
    predicate.renumber(&|column| position(numbering, column))
}

fn position(numbering: &[usize], column: usize) -> usize {
    // A column that is missing becomes one that cannot exist, which the check after us reports.
    numbering.iter().position(|known| *known == column).unwrap_or(usize::MAX)
}
