//! The code that a plan is rendered with: there is some for each layout of rows and depth of loops.

use super::imported::{Exports, Traces};
use super::in_memory::Memory;
use super::index::{new_exports, new_traces, render_index};
use super::{render_with, Import, Index, Installed};
use crate::core::monitor::Guard;
use crate::core::updates::Time;
use crate::layout::infer::widths_of;
use crate::layout::{Fixed, Layout, Varying};
use plan::{ViewPlan, MAX_NESTED_LOOPS};
use timely::worker::Worker;

/// Words of rows, keys and values of the layouts of fixed width, the smallest first.
const WIDTHS: [(usize, usize, usize); 4] = [(2, 1, 1), (6, 1, 1), (4, 2, 2), (8, 4, 6)];

/// How a dataflow represents rows and times. Dataflows of one form can read each other's indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Form {
    /// Which of [`WIDTHS`]; `None` for rows that describe themselves.
    words: Option<usize>,
    /// Loops that its times count.
    loops: usize,
}

impl Form {
    /// The first that a plan fits: what is in arrangements counts more than rows on their way.
    pub fn of(plan: &ViewPlan) -> Form {
        let widths = widths_of(plan);
        let fits = |(row, key, val): &(usize, usize, usize)| {
            widths.is_some_and(|w| w.row <= *row && w.key <= *key && w.val <= *val)
        };
        // Stamps and rows are copied and compared all the time: they should be no larger than the plan needs.
        match plan.root.nested_loops() {
            loops @ (0 | 1) => Form { words: WIDTHS.iter().position(fits), loops },
            _ => Form { words: None, loops: MAX_NESTED_LOOPS },
        }
    }

    pub(crate) fn code(self) -> Code {
        match self.loops {
            0 => self.code_in::<0>(),
            1 => self.code_in::<1>(),
            _ => code::<Varying, MAX_NESTED_LOOPS>(),
        }
    }

    fn code_in<const LOOPS: usize>(self) -> Code {
        match self.words.map(|words| WIDTHS[words]) {
            Some((2, 1, 1)) => code::<Fixed<2, 1, 1>, LOOPS>(),
            Some((6, 1, 1)) => code::<Fixed<6, 1, 1>, LOOPS>(),
            Some((4, 2, 2)) => code::<Fixed<4, 2, 2>, LOOPS>(),
            Some(_) => code::<Fixed<8, 4, 6>, LOOPS>(),
            None => code::<Varying, LOOPS>(),
        }
    }
}

/// What renders dataflows of one form, all of whose state is in memory.
pub(crate) struct Code {
    pub(crate) view: fn(&mut Worker, &ViewPlan, &[Import], Time, Guard) -> Installed,
    pub(crate) index: fn(&mut Worker, &Index, &Exports, Time, Guard) -> Installed,
    pub(crate) new_exports: fn(usize) -> Exports,
    pub(crate) new_traces: fn(&Exports, Time) -> Traces,
}

fn code<L: Layout, const LOOPS: usize>() -> Code {
    Code {
        view: render_with::<L, Memory, LOOPS>,
        index: render_index::<L, LOOPS>,
        new_exports: new_exports::<L, LOOPS>,
        new_traces: new_traces::<L, LOOPS>,
    }
}
