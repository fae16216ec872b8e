//! Whose tables are read next: views take turns, but where memory is short one is read after the other.

use super::main_loop::Worker;
use super::reading::Reading;
use super::sources::{older, Refusal};
use super::view::{Phase, View};
use crate::pg::ids::ViewId;
use crate::pg::markers::{AtWork, Work};
use crate::pg::{process, slots, xact};
use engine::Engine;
use std::time::Instant;

impl View {
    /// Its tables, if they are being read.
    fn reading(&mut self) -> Option<&mut Reading> {
        match &mut self.phase {
            Phase::Reading(reading) => Some(reading),
            _ => None,
        }
    }
}

impl Worker {
    /// Reads some rows for the view whose turn it is.
    pub(super) fn read_on(&mut self) {
        let Some(relid) = self.next_to_read() else { return };
        let _at_work = AtWork::begin(relid, Work::Feed);
        self.last_read = relid;
        let Some(engine) = &mut self.engine else { return };
        let Some(view) = self.views.get_mut(&relid) else { return };
        process::report_view("reading the base tables of", &view.name);
        let Some(reading) = view.reading() else { return };
        let (dataflow, oldest) = (reading.dataflow, reading.held.oldest());
        let outcome = xact::try_run(|| reading.read_on(engine));
        let rows = reading.rows as u64;
        let read = if slots::keeps(oldest) { reading.take_read_indexes() } else { Vec::new() };
        self.note_indexes_read(&read);
        if let Some(cell) = self.views.get(&relid).and_then(|view| view.cell) {
            cell.attaching.note_read(rows);
        }
        match outcome.map_err(Refusal::from).and_then(|result| result) {
            // What the slot did not keep is not what the snapshot saw.
            _ if !slots::keeps(oldest) => self.note_refused(relid, dataflow, Refusal::Later),
            Ok(true) => self.note_read(relid),
            Ok(false) => {}
            Err(refusal) => self.note_refused(relid, dataflow, refusal),
        }
    }

    /// Whether there is something to read now.
    pub(super) fn is_reading(&self) -> bool {
        self.next_to_read().is_some()
    }

    /// The view whose turn it is, of those whose tables are being read.
    fn next_to_read(&self) -> Option<ViewId> {
        let now = Instant::now();
        let reading = || {
            self.views.values().filter_map(|view| match &view.phase {
                Phase::Reading(reading) => Some((view.relid, reading)),
                _ => None,
            })
        };
        let is_due = |reading: &Reading| reading.not_before <= now;
        if self.engine.as_ref().is_some_and(Engine::is_memory_short) {
            let first = reading().min_by_key(|(_, reading)| reading.as_of);
            return first.filter(|(_, reading)| is_due(reading)).map(|(relid, _)| relid);
        }
        let due = || reading().filter(|(_, reading)| is_due(reading)).map(|(relid, _)| relid);
        due().find(|relid| *relid > self.last_read).or_else(|| due().next())
    }

    /// The oldest transaction that one of the snapshots in use takes for running.
    pub(super) fn oldest_read(&self) -> Option<u32> {
        let oldest = |view: &View| match &view.phase {
            Phase::Reading(reading) => Some(reading.held.oldest()),
            _ => None,
        };
        self.views.values().map(oldest).fold(None, older)
    }

    /// Holds the rows that are still to be read, and no others.
    pub(super) fn hold_rows(&self) {
        slots::hold_rows(self.oldest_read());
    }
}
