//! What was captured for a view on its way into its dataflow, in portions: of a large transaction there may be more than
//! fits into memory, and more than the other views should wait for.

use super::held::{HeldRows, Reader};
use engine::{Time, Updates};
use plan::row::Row;
use plan::SourceId;
use std::collections::VecDeque;
use std::io;

/// Work for the engine, in order.
pub enum Step {
    /// Updates of the input.
    Update(Updates<Row>),
    /// All rows before that time are gone.
    Truncate(Time),
    /// What came while its transaction ran.
    Held(HeldRows),
}

/// What is handed to the engine at once.
pub enum Portion {
    /// Updates of a source.
    Update(SourceId, Updates<Row>),
    /// All rows of a source before that time are gone.
    Truncate(SourceId, Time),
}

/// The steps of a view that its dataflow is being fed.
pub struct Feeding {
    /// All steps are before this time.
    pub upper: Time,
    steps: VecDeque<(SourceId, Step)>,
    /// What is being read of rows that were held, and what was read last.
    reader: Option<Reader>,
    read: VecDeque<Portion>,
}

impl Feeding {
    /// All of these, source by source.
    pub fn new(steps: Vec<(SourceId, Vec<Step>)>, upper: Time) -> Feeding {
        let of_source = |(source, steps): (SourceId, Vec<Step>)| {
            steps.into_iter().map(move |step| (source, step))
        };
        let steps = steps.into_iter().flat_map(of_source).collect();
        Feeding { upper, steps, reader: None, read: VecDeque::new() }
    }

    /// Whether what comes next is part of something large.
    pub fn is_large(&self) -> bool {
        self.reader.is_some() || matches!(self.steps.front(), Some((_, Step::Held(_))))
    }

    /// The next portion, `None` at the end. An error if rows cannot be read back.
    pub fn next(&mut self) -> io::Result<Option<Portion>> {
        loop {
            if let Some(portion) = self.read.pop_front() {
                return Ok(Some(portion));
            }
            if let Some(reader) = &mut self.reader {
                match reader.next()? {
                    Some(portions) => self.read.extend(portions),
                    None => self.reader = None,
                }
                continue;
            }
            let Some((source, step)) = self.steps.pop_front() else { return Ok(None) };
            match step {
                Step::Update(updates) => return Ok(Some(Portion::Update(source, updates))),
                Step::Truncate(time) => return Ok(Some(Portion::Truncate(source, time))),
                Step::Held(rows) => self.reader = Some(Reader::new(rows, source)),
            }
        }
    }
}
