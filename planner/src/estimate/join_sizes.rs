//! How many rows some of a join's inputs have together.

use super::conditions::{matching, Side};
use super::Estimate;
use crate::ir::Predicate;
use plan::expr::columns_of;
use std::collections::BTreeSet;
use std::ops::Range;

/// The inputs of a join and its conditions.
pub(crate) struct JoinSizes {
    pub(crate) inputs: Vec<Estimate>,
    pub(crate) conditions: Vec<Condition>,
    references: Vec<Reference>,
    /// The columns of each input.
    places: Vec<Range<usize>>,
}

/// A predicate of a join.
pub(crate) struct Condition {
    /// The columns that it reads.
    pub(crate) columns: BTreeSet<usize>,
    /// The inputs that these are of.
    pub(crate) inputs: BTreeSet<usize>,
    /// Of an equality the inputs of either side.
    pub(crate) links: Option<[BTreeSet<usize>; 2]>,
    /// Of an equality its sides.
    sides: Option<[Side; 2]>,
    /// How often it holds by itself.
    share: f64,
}

/// Equalities of one input with a key of several columns of another: as a rule each row of the one has a partner there,
/// though the columns one by one would let expect fewer.
struct Reference {
    inputs: [usize; 2],
    /// How many times more often they hold.
    factor: f64,
}

impl JoinSizes {
    /// The predicates read the inputs' columns side by side.
    pub(crate) fn new(inputs: Vec<Estimate>, predicates: &[Predicate]) -> JoinSizes {
        let places = places(inputs.iter().map(|input| input.columns.len()));
        let all = Estimate::of_all(&inputs);
        let condition = |predicate: &Predicate| {
            let columns = predicate.columns();
            let (links, sides) = match predicate {
                Predicate::Equal { left, right, .. } => {
                    let sides = [&left.expr, &right.expr];
                    let homes = sides.map(|side| inputs_of(&columns_of(side), &places));
                    (Some(homes), Some(sides.map(|side| Side::of(side, &all))))
                }
                Predicate::Test(_) => (None, None),
            };
            let share = all.share(std::slice::from_ref(predicate));
            Condition { inputs: inputs_of(&columns, &places), columns, links, sides, share }
        };
        let conditions = predicates.iter().map(condition).collect();
        let mut sizes = JoinSizes { inputs, conditions, references: vec![], places };
        let numbers = 0..sizes.inputs.len();
        sizes.references = numbers.flat_map(|input| sizes.references_to(input)).collect();
        sizes
    }

    fn references_to(&self, to: usize) -> Vec<Reference> {
        let (keys, place) = (&self.inputs[to].keys, &self.places[to]);
        let from = (0..self.inputs.len()).filter(|from| *from != to && !keys.is_empty());
        let reference = |from| {
            let between: Vec<&Condition> =
                self.conditions.iter().filter(|c| c.is_between(from, to)).collect();
            let columns = between.iter().flat_map(|condition| &condition.columns);
            let tied: BTreeSet<usize> = columns
                .filter(|column| place.contains(column))
                .map(|column| column - place.start)
                .collect();
            keys.iter().find(|key| key.is_subset(&tied))?;
            let expected = matching(between.iter().filter_map(|c| c.sides.as_ref()));
            let factor = 1.0 / (self.inputs[to].unfiltered.max(1.0) * expected);
            (factor > 1.0).then_some(Reference { inputs: [from, to], factor })
        };
        from.filter_map(reference).collect()
    }

    /// Rows of some of the inputs under all conditions that read nothing else.
    pub(crate) fn rows(&self, inputs: &BTreeSet<usize>) -> f64 {
        let pairs: f64 = inputs.iter().map(|&input| self.inputs[input].rows).product();
        let inside = || self.conditions.iter().filter(|c| c.inputs.is_subset(inputs));
        let equal = matching(inside().filter_map(|c| c.sides.as_ref()));
        let others = inside().filter(|c| c.sides.is_none()).map(|c| c.share);
        let known = |reference: &&Reference| reference.inputs.iter().all(|i| inputs.contains(i));
        let references = self.references.iter().filter(known).map(|r| r.factor);
        pairs * equal * others.product::<f64>() * references.product::<f64>()
    }

    /// The columns of an input that a condition reads.
    pub(crate) fn columns_of(&self, condition: &Condition, input: usize) -> BTreeSet<usize> {
        condition.columns.range(self.places[input].clone()).copied().collect()
    }

    /// Bytes of the values of some of the inputs, of the columns that are `needed` above the join or by other conditions.
    pub(crate) fn width(&self, inputs: &BTreeSet<usize>, needed: &BTreeSet<usize>) -> f64 {
        let outside = self.conditions.iter().filter(|c| !c.inputs.is_subset(inputs));
        let needed: BTreeSet<usize> =
            outside.flat_map(|c| &c.columns).chain(needed).copied().collect();
        let width_of = |&input: &usize| {
            let (place, columns) = (self.places[input].clone(), &self.inputs[input].columns);
            let start = place.start;
            needed.range(place).map(|column| columns[column - start].width).sum::<f64>()
        };
        inputs.iter().map(width_of).sum::<f64>()
    }
}

impl Condition {
    /// Whether it equates something of one input with something of the other.
    fn is_between(&self, one: usize, other: usize) -> bool {
        let Some([left, right]) = &self.links else { return false };
        let is = |side: &BTreeSet<usize>, input| side.len() == 1 && side.contains(&input);
        is(left, one) && is(right, other) || is(left, other) && is(right, one)
    }
}

/// The columns of inputs side by side.
pub(crate) fn places(arities: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    let mut end = 0;
    let place = |arity: usize| {
        end += arity;
        end - arity..end
    };
    arities.map(place).collect()
}

/// The inputs that columns are of.
pub(crate) fn inputs_of(columns: &BTreeSet<usize>, places: &[Range<usize>]) -> BTreeSet<usize> {
    let home = |column: &usize| places.iter().position(|place| place.contains(column));
    columns.iter().filter_map(home).collect()
}
