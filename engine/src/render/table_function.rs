//! Set-returning functions: the rows they make of each row.
//!
//! That may be more rows than there is memory for, so they are made in bursts, between which other operators
//! take what there is and the dataflow can be stopped.

use super::errors::Outcome;
use super::linear::split;
use super::renderer::{Bundle, Renderer};
use super::storage::Storage;
use crate::core::diff::Mult;
use crate::core::stamp::Stamp;
use crate::layout::infer::{mfp_columns, table_function_columns};
use crate::layout::{Layout, Tuple};
use differential_dataflow::AsCollection;
use plan::table_function::{TableFunction, TableRows};
use plan::value::Datum;
use plan::{Mfp, Plan};
use std::collections::VecDeque;
use std::vec::IntoIter;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::Capability;

/// Rows that are made before others work.
const BURST: usize = 1 << 14;

impl<'s, L: Layout, S: Storage, const LOOPS: usize> Renderer<'s, L, S, LOOPS> {
    pub(super) fn render_table_function(
        &mut self,
        input: &Plan,
        table_function: &TableFunction,
        closure: &Mfp,
    ) -> Bundle<'s, L, LOOPS> {
        let input = self.render(input);
        let all = table_function_columns(&input.columns, table_function, closure.input_arity);
        let columns = mfp_columns(&all, closure);
        let maker = Maker::<L> {
            from: L::shape(&input.columns),
            to: L::shape(&columns),
            table_function: table_function.clone(),
            closure: closure.clone(),
        };
        let guard = self.context.guard.clone();
        let scope = self.context.scope;
        let results = input.oks.inner.unary::<CapacityContainerBuilder<Vec<_>>, _, _, _>(
            Pipeline,
            "TableFunction",
            move |_, info| {
                let activator = scope.activator_for(info.address);
                let mut waiting: VecDeque<(Capability<_>, Expansion<L, LOOPS>)> = VecDeque::new();
                move |input, output| {
                    input.for_each(|capability, rows: &mut Vec<_>| {
                        let rows = std::mem::take(rows).into_iter();
                        waiting.push_back((capability.retain(0), Expansion { rows, open: None }));
                    });
                    let mut left = BURST;
                    while let (true, Some((capability, expansion))) =
                        (left > 0, waiting.front_mut())
                    {
                        let mut session = output.session(capability);
                        let give = |made| {
                            guard.proceed(1);
                            session.give(made);
                        };
                        if maker.expand(expansion, &mut left, give) {
                            drop(session);
                            waiting.pop_front();
                        }
                    }
                    if !waiting.is_empty() {
                        activator.activate();
                    }
                }
            },
        );
        let (oks, errs) = split(results.as_collection());
        Bundle { oks, errs: input.errs.union(&self.context.raise(errs)), columns }
    }
}

/// Rows of which others are to be made.
struct Expansion<L: Layout, const LOOPS: usize> {
    rows: IntoIter<(L::Row, Stamp<LOOPS>, Mult)>,
    open: Option<Open<LOOPS>>,
}

/// A row of which some others have been made.
struct Open<const LOOPS: usize> {
    columns: Vec<Datum>,
    made: TableRows,
    time: Stamp<LOOPS>,
    diff: Mult,
}

/// What is made of a row.
struct Maker<L: Layout> {
    from: L::Shape,
    to: L::Shape,
    table_function: TableFunction,
    closure: Mfp,
}

impl<L: Layout> Maker<L> {
    /// Goes on for at most `left` steps, which it counts down. Answers whether everything has been made.
    fn expand<const LOOPS: usize>(
        &self,
        expansion: &mut Expansion<L, LOOPS>,
        left: &mut usize,
        mut give: impl FnMut((Outcome<L::Row>, Stamp<LOOPS>, Mult)),
    ) -> bool {
        while *left > 0 {
            *left -= 1;
            let Some(open) = &mut expansion.open else {
                let Some((row, time, diff)) = expansion.rows.next() else { return true };
                let mut columns = Vec::new();
                L::unpack_into(row.view(), &self.from, &mut columns);
                match self.table_function.rows(&columns) {
                    Ok(made) => expansion.open = Some(Open { columns, made, time, diff }),
                    Err(error) => give((Err(error), time, diff)),
                }
                continue;
            };
            let arity = open.columns.len();
            if !open.made.append_next(&mut open.columns) {
                expansion.open = None;
                continue;
            }
            let pack = |values: &[&Datum]| L::Row::pack(&self.to, values);
            let made = self.closure.eval_with(&open.columns, pack).transpose();
            open.columns.truncate(arity);
            if let Some(made) = made {
                give((made.flatten(), open.time, open.diff));
            }
        }
        false
    }
}
