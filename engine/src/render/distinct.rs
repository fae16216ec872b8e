//! One copy of each row that is there at all.

use super::{Bundle, Collection, Renderer, Stamp};
use crate::diff::Mult;
use differential_dataflow::hashable::Hashable;
use differential_dataflow::trace::implementations::{KeyBuilder, KeySpine};
use differential_dataflow::ExchangeData;
use planner::plan::Plan;

impl<'s> Renderer<'s> {
    pub(super) fn render_distinct(&mut self, input: &Plan) -> Bundle<'s> {
        let input = self.render(input);
        Bundle { oks: self.distinct(input.oks), errs: input.errs }
    }

    /// One copy of each datum with a positive multiplicity.
    pub(super) fn distinct<D>(&mut self, input: Collection<'s, D>) -> Collection<'s, D>
    where
        D: ExchangeData + Hashable,
    {
        let arranged = input.arrange_by_self_named("Arrange distinct");
        self.meter.add(&arranged, size_of::<(D, Stamp, Mult)>());
        let distinct = arranged
            .reduce_abelian::<_, KeyBuilder<D, Stamp, Mult>, KeySpine<D, Stamp, Mult>, _, _>(
                "Distinct",
                |_, input, output| {
                    if input[0].1 > Mult(0) {
                        output.push(((), Mult(1)));
                    }
                },
                |chunk, key, updates| {
                    chunk.clear();
                    chunk.extend(updates.drain(..).map(|(v, t, r)| ((key.clone(), v), t, r)));
                },
            );
        self.meter.add(&distinct, size_of::<(D, Stamp, Mult)>());
        distinct.as_collection(|key, _| key.clone())
    }
}
