//! Turns joins of many inputs into joins of two, left-deep: from the self-reference of a recursion if
//! there is one, else from the first input in the text, always on to an input that an equality connects.
//! Inputs that nothing connects are joined last, as cross products. Idempotent.
//!
//! ```text
//! Join [a.dst = c.src]     becomes   Join
//!   Get a                              Join [a.dst = c.src]
//!   Get b                                Get a
//!   Get c                                Get c
//!                                      Get b
//! ```

use crate::error::PlanError;
use crate::ir::{Node, Predicate, Query, Rel};
use plan::LocalId;
use std::collections::{BTreeSet, VecDeque};

pub(super) fn apply(query: Query) -> Result<Query, PlanError> {
    Ok(Query { root: order(query.root, &mut vec![]), ..query })
}

/// `recursive` holds the recursions whose step we are in.
fn order(rel: Rel, recursive: &mut Vec<LocalId>) -> Rel {
    let columns = rel.columns;
    match rel.node {
        Node::LetRec { id, all, form, base, step, body } => {
            let base = Box::new(order(*base, recursive));
            recursive.push(id);
            let step = Box::new(order(*step, recursive));
            recursive.pop();
            let body = Box::new(order(*body, recursive));
            Rel { columns, node: Node::LetRec { id, all, form, base, step, body } }
        }
        Node::Join { inputs, predicates } => {
            let inputs = inputs.into_iter().map(|input| order(input, recursive)).collect();
            Ordering::new(inputs, predicates, recursive).build().restore(columns)
        }
        node => Rel { columns, node }.map_children(&mut |child| order(child, recursive)),
    }
}

/// Inputs not joined yet, with their first columns in the text's numbering.
struct Ordering {
    waiting: VecDeque<(usize, Rel)>,
    predicates: Vec<Predicate>,
}

/// Inputs joined so far.
struct Joined {
    rel: Rel,
    /// For each column of `rel` its number in the text's numbering.
    numbering: Vec<usize>,
}

impl Ordering {
    fn new(inputs: Vec<Rel>, predicates: Vec<Predicate>, recursive: &[LocalId]) -> Ordering {
        let mut waiting = VecDeque::new();
        let mut offset = 0;
        for input in inputs {
            let arity = input.arity();
            waiting.push_back((offset, input));
            offset += arity;
        }
        let is_recursive =
            |(_, input): &(usize, Rel)| recursive.iter().any(|id| input.count_gets(*id) > 0);
        if let Some(start) = waiting.iter().position(is_recursive) {
            if let Some(input) = waiting.remove(start) {
                waiting.push_front(input);
            }
        }
        Ordering { waiting, predicates }
    }

    fn build(mut self) -> Joined {
        let mut parts = Vec::new();
        while let Some((offset, first)) = self.waiting.pop_front() {
            parts.push(self.grow(Joined::single(offset, first)));
        }
        let mut parts = parts.into_iter();
        let first = parts.next().unwrap_or_else(|| Joined::single(0, Rel::unit()));
        let whole = parts.fold(first, |left, right| left.join(right, &mut self.predicates));
        whole.filter(self.predicates)
    }

    /// Joins everything that equalities connect, directly or not.
    fn grow(&mut self, mut joined: Joined) -> Joined {
        loop {
            let connected = |(offset, input): &(usize, Rel)| {
                let columns = *offset..offset + input.arity();
                let links = |p: &Predicate| joined.is_linked(p, columns.clone());
                self.predicates.iter().any(links)
            };
            let Some(next) = self.waiting.iter().position(connected) else { return joined };
            let Some((offset, input)) = self.waiting.remove(next) else { return joined };
            joined = joined.join(Joined::single(offset, input), &mut self.predicates);
        }
    }
}

impl Joined {
    fn single(offset: usize, rel: Rel) -> Joined {
        let numbering = (offset..offset + rel.arity()).collect();
        Joined { rel, numbering }
    }

    /// Whether the predicate equates something of what is joined with something of other columns.
    fn is_linked(&self, predicate: &Predicate, other: std::ops::Range<usize>) -> bool {
        let Predicate::Equal { left, right, .. } = predicate else { return false };
        let inside = |columns: &BTreeSet<usize>| {
            !columns.is_empty() && columns.iter().all(|column| self.numbering.contains(column))
        };
        let outside = |columns: &BTreeSet<usize>| {
            !columns.is_empty() && columns.iter().all(|column| other.contains(column))
        };
        let left = plan::expr::columns_of(&left.expr);
        let right = plan::expr::columns_of(&right.expr);
        inside(&left) && outside(&right) || outside(&left) && inside(&right)
    }

    /// Joins with the predicates that can be tested then, which are taken out of the list.
    fn join(self, right: Joined, predicates: &mut Vec<Predicate>) -> Joined {
        let mut columns = self.rel.columns.clone();
        columns.extend(right.rel.columns.iter().cloned());
        let mut numbering = self.numbering;
        numbering.extend(right.numbering);
        let known = |p: &Predicate| p.columns().iter().all(|column| numbering.contains(column));
        let (now, later): (Vec<_>, Vec<_>) = predicates.drain(..).partition(known);
        *predicates = later;
        let predicates = now.iter().map(|p| renumber(p, &numbering)).collect();
        let node = Node::Join { inputs: vec![self.rel, right.rel], predicates };
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
