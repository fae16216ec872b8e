//! The code that a plan is rendered with: there is some for each form.

use super::form::Form;
use super::imported::{Exports, Traces};
use super::in_memory::Memory;
use super::index::{new_exports, new_traces, render_index, rows};
use super::lookup::Index;
use super::{render_with, Import, Installed};
use crate::core::monitor::Guard;
use crate::core::updates::Time;
use crate::layout::{Fixed, Layout, Varying};
use plan::{ViewPlan, MAX_NESTED_LOOPS};
use timely::worker::Worker;

impl Form {
    pub(crate) fn code(self) -> Code {
        match self.loops {
            0 => self.code_in::<0>(),
            1 => self.code_in::<1>(),
            _ => code::<Varying, MAX_NESTED_LOOPS>(),
        }
    }

    fn code_in<const LOOPS: usize>(self) -> Code {
        match self.widths() {
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
    pub(crate) index: fn(&mut Worker, &Index, &[Import], &Exports, Time, Guard) -> Installed,
    pub(crate) rows: fn(&Exports) -> usize,
    pub(crate) new_exports: fn(usize) -> Exports,
    pub(crate) new_traces: fn(&Exports, Time) -> Traces,
}

fn code<L: Layout, const LOOPS: usize>() -> Code {
    Code {
        view: render_with::<L, Memory, LOOPS>,
        index: render_index::<L, LOOPS>,
        rows: rows::<L, LOOPS>,
        new_exports: new_exports::<L, LOOPS>,
        new_traces: new_traces::<L, LOOPS>,
    }
}
