//! The cheapest order of inputs that equalities connect.
//!
//! A join of a dataflow keeps both its inputs, so what an order costs are the rows of what is joined on the way, with the
//! columns that are still needed. As many are made when the view is attached, and a change of an input makes its share of them.
//! The inputs themselves are kept in any order. Of all ways to join two sets that an equality connects the cheapest is
//! taken, bushy ones too; cross products are none of them. An order that is not cheaper by far than the text's gives way to
//! it: estimates are rough, and whoever writes a query may know more.

use super::delta::at_once;
use super::{as_written, Tree};
use crate::estimate::{Condition, JoinSizes};
use std::collections::{BTreeSet, HashMap};

/// Of more inputs not all orders are looked at: their number grows with a power of three.
const MOST_INPUTS: usize = 11;

/// What is cheaper than the text's order costs less than this share of it.
const BY_FAR: f64 = 0.9;

/// Bytes that a row takes beside its values.
const BYTES_OF_ROW: f64 = 32.0;

/// Inputs by bit, in a numbering of their own.
type Set = u32;

/// What orders are compared by, for the inputs of a join.
pub(super) struct Search<'j> {
    pub(super) join: JoinSizes,
    /// The columns that are read above the join.
    pub(super) needed: &'j BTreeSet<usize>,
}

impl Search<'_> {
    /// The order of a part, whose inputs come in the order of the text, and which may be joined at once.
    pub(super) fn best(&self, part: &[usize], may_be_at_once: bool) -> Tree {
        if !(3..=MOST_INPUTS).contains(&part.len()) {
            return as_written(part);
        }
        let mut table = Table::new(self, part);
        let all: Set = (1 << part.len()) - 1;
        (1..=all).for_each(|set| table.fill(set));
        let written = table.cost_as_written();
        let best = table.entries.get(&all).map(|best| best.cost);
        let best = best.filter(|best| *best < BY_FAR * written);
        let at_once = || at_once(self, part, best.unwrap_or(written));
        match (may_be_at_once.then(at_once).flatten(), best) {
            (Some(order), _) => Tree::AtOnce(order),
            (None, Some(_)) => table.tree(all),
            (None, None) => as_written(part),
        }
    }

    /// Bytes of what inputs are together.
    pub(super) fn bytes(&self, inputs: &BTreeSet<usize>) -> f64 {
        self.join.rows(inputs).max(1.0) * (BYTES_OF_ROW + self.join.width(inputs, self.needed))
    }
}

/// The cheapest way to each set of inputs.
struct Table<'s, 'j> {
    search: &'s Search<'j>,
    part: &'s [usize],
    /// The inputs of either side of equalities.
    links: Vec<(Set, Set)>,
    /// Sets that equalities connect.
    entries: HashMap<Set, Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    /// Bytes of all that is joined on the way, and of the set itself if more is joined with it.
    cost: f64,
    /// What is joined last, the set with the first input before the other; `None` for an input.
    sides: Option<(Set, Set)>,
}

impl<'s, 'j> Table<'s, 'j> {
    fn new(search: &'s Search<'j>, part: &'s [usize]) -> Table<'s, 'j> {
        let bit = |input: &usize| Some(1 << part.iter().position(|known| known == input)?);
        let set = |inputs: &BTreeSet<usize>| -> Option<Set> {
            let bits: Option<Vec<Set>> = inputs.iter().map(bit).collect();
            bits.map(|bits| bits.into_iter().sum()).filter(|set| *set != 0)
        };
        let link = |condition: &Condition| {
            let [left, right] = condition.links.as_ref()?;
            Some((set(left)?, set(right)?))
        };
        let links = search.join.conditions.iter().filter_map(link).collect();
        Table { search, part, links, entries: HashMap::new() }
    }

    /// All smaller sets are there.
    fn fill(&mut self, set: Set) {
        if set.count_ones() == 1 {
            self.entries.insert(set, Entry { cost: 0.0, sides: None });
            return;
        }
        let first = set & set.wrapping_neg();
        let mut best: Option<(f64, (Set, Set))> = None;
        // From the greatest left side without the first input down: of equal ones it is the text's.
        let rest = set & !first;
        let mut others = rest;
        while others != 0 {
            others = (others - 1) & rest;
            let (left, right) = (first | others, rest & !others);
            let (Some(l), Some(r)) = (self.entries.get(&left), self.entries.get(&right)) else {
                continue;
            };
            let cost = l.cost + r.cost;
            let is_better = best.is_none_or(|(known, _)| cost < known * (1.0 - 1e-9));
            if is_better && self.is_linked(left, right) {
                best = Some((cost, (left, right)));
            }
        }
        if let Some((cost, sides)) = best {
            let is_last = set.count_ones() as usize == self.part.len();
            let cost = if is_last { cost } else { cost + self.bytes(set) };
            self.entries.insert(set, Entry { cost, sides: Some(sides) });
        }
    }

    fn is_linked(&self, left: Set, right: Set) -> bool {
        let has = |set: Set, part: Set| set & part == part;
        self.links
            .iter()
            .any(|&(l, r)| has(left, l) && has(right, r) || has(left, r) && has(right, l))
    }

    fn inputs(&self, set: Set) -> BTreeSet<usize> {
        let is_in = |(position, _): &(usize, &usize)| set & (1 << position) != 0;
        self.part.iter().enumerate().filter(is_in).map(|(_, input)| *input).collect()
    }

    fn bytes(&self, set: Set) -> f64 {
        self.search.bytes(&self.inputs(set))
    }

    /// Of one after the other.
    fn cost_as_written(&self) -> f64 {
        (2..self.part.len()).map(|length| self.bytes((1 << length) - 1)).sum()
    }

    fn tree(&self, set: Set) -> Tree {
        match self.entries.get(&set).and_then(|entry| entry.sides) {
            Some((left, right)) => Tree::join(self.tree(left), self.tree(right)),
            None => Tree::Input(self.part[set.trailing_zeros() as usize]),
        }
    }
}
