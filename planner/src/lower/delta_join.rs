//! Joins of more than two inputs, which no partial results are kept of.

use super::{key_pair, Host, Lowerer};
use crate::error::PlanError;
use crate::estimate::{inputs_of, places};
use crate::ir::{Predicate, Rel};
use plan::expr::{renumber, MfpBuilder};
use plan::{JoinTree, Link};
use std::ops::Range;

impl Lowerer<'_> {
    pub(super) fn lower_delta_join(
        &mut self,
        inputs: &[Rel],
        predicates: &[Predicate],
        closure: &mut MfpBuilder,
    ) -> Result<Host<'static>, PlanError> {
        let places = places(inputs.iter().map(Rel::arity));
        let untied = |_| Link { earlier: 0, earlier_key: vec![], own_key: vec![] };
        let mut links: Vec<Link> = (1..inputs.len()).map(untied).collect();
        for predicate in predicates {
            if !tie(predicate, &places, &mut links) {
                closure.filter(&predicate.to_expr());
            }
        }
        let inputs = inputs.iter().map(|input| self.lower_rel(input));
        let inputs = inputs.collect::<Result<_, _>>()?;
        let arities = places.iter().map(Range::len).collect();
        Ok(Host::DeltaJoin(inputs, JoinTree { arities, links }))
    }
}

/// Lets an equality tie an input to an earlier one; answers whether it does.
fn tie(predicate: &Predicate, places: &[Range<usize>], links: &mut [Link]) -> bool {
    let inputs = inputs_of(&predicate.columns(), places);
    let (Some(&earlier), Some(&own), 2) = (inputs.first(), inputs.last(), inputs.len()) else {
        return false;
    };
    let (earlier_place, own_place) = (&places[earlier], &places[own]);
    let Some((left, right)) = key_pair(predicate, own_place.start) else { return false };
    let link = &mut links[own - 1];
    if !link.own_key.is_empty() && link.earlier != earlier {
        return false;
    }
    link.earlier = earlier;
    link.earlier_key.push(renumber(&left, &|column| column - earlier_place.start));
    link.own_key.push(renumber(&right, &|column| column - own_place.start));
    true
}
