//! Whether inputs are joined all at once, so that no partial results are kept.
//!
//! A delta join looks up, for each changed row, the other inputs one by one. It keeps each input by all of the keys by which it
//! is looked up, where joins of two keep it by one, and what they put out besides. What is not more decides: indexes may serve
//! other views, and partial results have to follow every change. The inputs must hang together as a tree by equalities;
//! conditions on some of them would be tested late, so there may be none.

use super::search::Search;
use crate::estimate::Condition;
use std::collections::BTreeSet;

/// The order in which the first filling goes through a part, if joins of two keep as much: partial results of so many bytes.
pub(super) fn at_once(search: &Search<'_>, part: &[usize], partial: f64) -> Option<Vec<usize>> {
    let ties = ties(search, part)?;
    let keys = |input: usize| {
        let own: BTreeSet<&BTreeSet<usize>> =
            ties.iter().filter_map(|tie| tie.key_of(input)).collect();
        own.len()
    };
    let further = part.iter().map(|&input| {
        keys(input).saturating_sub(1) as f64 * search.bytes(&BTreeSet::from([input]))
    });
    (further.sum::<f64>() <= partial).then(|| order(search, part, &ties))
}

/// What ties two inputs to one another.
struct Tie {
    inputs: [usize; 2],
    /// The columns of each that are compared.
    columns: [BTreeSet<usize>; 2],
}

impl Tie {
    fn key_of(&self, input: usize) -> Option<&BTreeSet<usize>> {
        let side = self.inputs.iter().position(|tied| *tied == input)?;
        Some(&self.columns[side])
    }

    /// Whether it ties one of these to an input.
    fn leads(&self, from: &BTreeSet<usize>, to: usize) -> bool {
        let [one, other] = self.inputs;
        (one == to && from.contains(&other)) || (other == to && from.contains(&one))
    }
}

/// The ties of a part, if they make a tree.
fn ties(search: &Search<'_>, part: &[usize]) -> Option<Vec<Tie>> {
    let part: BTreeSet<usize> = part.iter().copied().collect();
    let mut ties: Vec<Tie> = Vec::new();
    let conditions = search.join.conditions.iter();
    for condition in conditions.filter(|condition| !condition.inputs.is_disjoint(&part)) {
        if condition.inputs == part {
            continue;
        }
        let inputs = ends(condition)?;
        let columns = inputs.map(|input| search.join.columns_of(condition, input));
        match ties.iter_mut().find(|tie| tie.inputs == inputs) {
            Some(tie) => {
                tie.columns.iter_mut().zip(columns).for_each(|(all, more)| all.extend(more));
            }
            None => ties.push(Tie { inputs, columns }),
        }
    }
    (ties.len() + 1 == part.len()).then_some(ties)
}

/// The two inputs, in the order of the text, of which a condition equates something.
fn ends(condition: &Condition) -> Option<[usize; 2]> {
    let [left, right] = condition.links.as_ref()?;
    let (Some(left), Some(right)) = (left.first(), right.first()) else { return None };
    let are_all = condition.inputs == BTreeSet::from([*left, *right]);
    (are_all && left != right).then(|| [*left.min(right), *left.max(right)])
}

/// One input after the other, with the fewest rows on the way.
fn order(search: &Search<'_>, part: &[usize], ties: &[Tie]) -> Vec<usize> {
    let from = |start: usize| {
        let (mut order, mut joined) = (vec![start], BTreeSet::from([start]));
        let mut rows = search.join.rows(&joined);
        while order.len() < part.len() {
            let is_next = |input: &&usize| {
                !joined.contains(input) && ties.iter().any(|tie| tie.leads(&joined, **input))
            };
            let with = |input: &usize| {
                let mut all = joined.clone();
                all.insert(*input);
                search.join.rows(&all)
            };
            let next = part.iter().filter(is_next).map(|input| (with(input), *input));
            let Some((more, next)) = next.min_by(|(a, _), (b, _)| a.total_cmp(b)) else { break };
            rows += more;
            joined.insert(next);
            order.push(next);
        }
        (rows, order)
    };
    let orders = part.iter().map(|start| from(*start)).filter(|(_, o)| o.len() == part.len());
    let best = orders.min_by(|(a, _), (b, _)| a.total_cmp(b));
    best.map_or_else(|| part.to_vec(), |(_, order)| order)
}
