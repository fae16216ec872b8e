//! Whose tables are read next: the view that has the least left, so that views are there one after the other and not all at
//! the end. Others read along what they need, too. Where memory is short one is read after the other.

use super::main_loop::Worker;
use super::reading::{self, Reader, Reading};
use super::sources::{older, Refusal};
use super::view::{Phase, View};
use crate::pg::ids::ViewId;
use crate::pg::markers::{AtWork, Work};
use crate::pg::{process, slots, xact};
use engine::{DataflowId, Engine};
use std::rc::Rc;
use std::time::Instant;

/// How far a view is that has read.
struct Read {
    relid: ViewId,
    dataflow: DataflowId,
    rows: u64,
    /// The new indexes that are complete.
    indexes: Vec<DataflowId>,
    /// Whether all is read.
    is_over: bool,
    refusal: Option<Refusal>,
}

impl From<Reader<'_>> for Read {
    fn from(Reader { relid, reading, refusal }: Reader<'_>) -> Read {
        Read {
            relid,
            dataflow: reading.dataflow,
            rows: reading.rows as u64,
            indexes: reading.take_read_indexes(),
            is_over: reading.parts.is_empty(),
            refusal,
        }
    }
}

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
    /// Reads some rows for the view whose turn it is, and for those that read along.
    pub(super) fn read_on(&mut self) {
        let Some(first) = self.next_to_read() else { return };
        let _at_work = AtWork::begin(first, Work::Feed);
        let Some(engine) = self.engine.get_mut() else { return };
        if let Some(view) = self.views.get(&first) {
            process::report_view("reading the base tables of", &view.name);
        }
        let mut readers = readers(self.views.values_mut(), first, engine.is_memory_short());
        let Some(oldest) = readers.first().map(|first| first.reading.held.oldest()) else { return };
        if let Err(caught) = xact::try_run(|| reading::read_on(&mut readers, engine)) {
            // What one cannot read is in the way of no other: it shows when each reads by itself.
            match readers.len() {
                1 => readers[0].refusal = Some(caught.into()),
                _ => readers[0].reading.is_alone = true,
            }
        }
        // What the slot did not keep is not what the snapshot saw.
        let is_kept = slots::keeps(oldest);
        if !is_kept {
            readers.iter_mut().for_each(|reader| reader.refusal = Some(Refusal::Later));
        }
        let reads: Vec<Read> = readers.into_iter().map(Read::from).collect();
        for read in reads {
            self.note_progress(read, is_kept);
        }
    }

    fn note_progress(&mut self, read: Read, is_kept: bool) {
        let Read { relid, dataflow, rows, indexes, is_over, refusal } = read;
        if is_kept {
            self.note_indexes_read(&indexes);
        }
        if let Some(cell) = self.views.get(&relid).and_then(|view| view.cell) {
            cell.attaching.note_read(rows);
        }
        match refusal {
            Some(refusal) => self.note_refused(relid, dataflow, refusal),
            None if is_over => self.note_read(relid),
            None => {}
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
        let next = match self.engine.get().is_some_and(Engine::is_memory_short) {
            true => {
                let first = reading().min_by_key(|(_, reading)| reading.as_of);
                first.filter(|(_, reading)| is_due(reading))
            }
            false => {
                let due = reading().filter(|(_, reading)| is_due(reading));
                due.min_by_key(|(_, reading)| reading.left())
            }
        };
        next.map(|(relid, _)| relid)
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

/// The view whose turn it is, and those after it that may read along.
fn readers<'v>(
    views: impl Iterator<Item = &'v mut View>,
    first: ViewId,
    is_memory_short: bool,
) -> Vec<Reader<'v>> {
    let reader = |view: &'v mut View| {
        let relid = view.relid;
        view.reading().map(|reading| Reader { relid, reading, refusal: None })
    };
    let mut readers: Vec<Reader<'v>> = views.filter_map(reader).collect();
    let Some(place) = readers.iter().position(|reader| reader.relid == first) else {
        return Vec::new();
    };
    readers.swap(0, place);
    let (held, is_alone) = (Rc::clone(&readers[0].reading.held), readers[0].reading.is_alone);
    readers.retain(|Reader { relid, reading, .. }| {
        let may_read_along = !is_memory_short && !is_alone && !reading.is_alone;
        *relid == first || may_read_along && Rc::ptr_eq(&reading.held, &held)
    });
    readers
}
