//! What is measured: a query over a generated history of base rows, as SQL and as a program by hand.
//!
//! A history is a load at [`LOAD_TIME`] and then swaps: swap k replaces one base row by another at a
//! time of its own, `FIRST_SWAP + k`. Everything is a function of the size and of k, so that every
//! run, whatever its batches and workers, sees the same updates at the same times.

use std::ops::Range;

use anyhow::Result;
use differential_dataflow::input::InputSession;
use differential_dataflow::{Data, ExchangeData, VecCollection};
use plan::value::Datum;
use timely::dataflow::Scope;

use crate::checksum::{Checksums, Values};

pub type Time = u64;

/// When all base rows of the load appear.
pub const LOAD_TIME: Time = 1;
/// The time of swap 0.
pub const FIRST_SWAP: Time = 2;

/// Base tables and what happens to their rows.
pub trait History: Send + Sync + 'static {
    /// A row of any of the base tables, as plain data.
    type Base: Clone + Send + 'static;

    /// CREATE TABLE statements.
    const DEFINITIONS: &'static str;
    /// The tables by number.
    const TABLES: &'static [&'static str];

    /// Number of base rows in the load.
    fn load_size(&self) -> u64;

    /// Base row `index` of the load.
    fn loaded(&self, index: u64) -> Self::Base;

    /// What swap k removes and what it inserts.
    fn swap(&self, k: u64) -> (Self::Base, Self::Base);

    /// The table's number and all its columns.
    fn row(base: &Self::Base) -> (usize, Vec<Datum>);
}

/// A query over a history.
pub trait Workload: Send + Sync + 'static {
    /// The history of its base tables; several workloads may have the same.
    type History: History;
    /// A row of the output, as the hand-written program has it.
    type Out: ExchangeData + Values;

    fn history(&self) -> &Self::History;

    /// What it computes, in a line.
    fn about(&self) -> String;

    fn query(&self) -> String;

    /// The program by hand: inputs and output of one worker's share.
    fn build<'s>(&self, scope: Scope<'s, Time>) -> Built<'s, Base<Self>, Self::Out>;
}

/// A row of any of a workload's base tables.
pub type Base<W> = <<W as Workload>::History as History>::Base;

/// What a hand-written program consists of, for the driver.
pub struct Built<'s, B, O: 'static> {
    pub inputs: Box<dyn Inputs<B>>,
    pub output: VecCollection<'s, Time, O, isize>,
}

/// The inputs of a hand-written program.
pub trait Inputs<B> {
    fn update(&mut self, updates: Vec<(B, Time, isize)>);
    fn advance(&mut self, time: Time);
}

impl<B: Data> Inputs<B> for InputSession<Time, B, isize> {
    fn update(&mut self, updates: Vec<(B, Time, isize)>) {
        for (base, time, diff) in updates {
            self.update_at(base, time, diff);
        }
    }

    fn advance(&mut self, time: Time) {
        self.advance_to(time);
        self.flush();
    }
}

/// Which of the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SideName {
    Hand,
    Sql,
}

impl SideName {
    pub const BOTH: [SideName; 2] = [SideName::Hand, SideName::Sql];

    pub fn as_str(self) -> &'static str {
        match self {
            SideName::Hand => "hand",
            SideName::Sql => "sql",
        }
    }

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            SideName::Hand => "by hand",
            SideName::Sql => "SQL",
        }
    }
}

/// A running program, fed step by step. Making updates ready and looking at output are apart from
/// feeding and waiting, so that the clock runs for the dataflow alone.
pub trait Side {
    /// Makes base rows of the load ready to be fed.
    fn prepare_load(&mut self, rows: Range<u64>);

    /// Makes swaps ready to be fed.
    fn prepare_swaps(&mut self, swaps: Range<u64>);

    /// Feeds what is ready.
    fn feed(&mut self);

    /// Promises that no update before `time` follows.
    fn advance(&mut self, time: Time);

    /// Waits until everything before `time` has been output.
    fn wait(&mut self, time: Time) -> Result<()>;

    /// Adds what has been output since the last call.
    fn collect(&mut self, checksums: &mut Checksums) -> Result<()>;
}
