//! Random histories of sources, and how they are fed to a host.

use super::generate::{random_row, ARITIES};
use super::{Host, Random, Tested};
use engine::{DataflowId, Time};
use plan::row::Row;
use plan::{Diff, SourceId};
use std::collections::BTreeMap;

/// What happens to the sources.
#[derive(Clone, Debug)]
pub enum Event {
    Update(usize, Row, Diff),
    Truncate(usize),
}

/// Events by time, in order.
pub type History = BTreeMap<Time, Vec<Event>>;

/// Contents of the sources.
pub type Contents = Vec<BTreeMap<Row, Diff>>;

pub fn apply(contents: &mut Contents, events: &[Event]) {
    for event in events {
        match event {
            Event::Truncate(source) => contents[*source].clear(),
            Event::Update(source, row, diff) => {
                let entry = contents[*source].entry(row.clone()).or_insert(0);
                *entry += diff;
                if *entry == 0 {
                    contents[*source].remove(row);
                }
            }
        }
    }
}

/// The updates after which nothing is left.
pub fn removal(contents: &Contents) -> Vec<Event> {
    let rest = contents.iter().enumerate().flat_map(|(source, rows)| {
        rows.iter().map(move |(row, diff)| Event::Update(source, row.clone(), -diff))
    });
    rest.collect()
}

/// Feeds a history to dataflow 1, waiting for output at each of `advances`.
pub fn feed<E: Tested>(host: &mut Host<E>, history: &History, advances: &[Time]) {
    for (time, events) in history {
        if advances.contains(time) {
            host.advance(*time);
        }
        for event in events {
            match event {
                Event::Update(source, row, diff) => {
                    host.update(1, *source, vec![(row.clone(), *time, *diff)]);
                }
                Event::Truncate(source) => {
                    host.engine.truncate(DataflowId(1), SourceId(*source), *time);
                }
            }
        }
    }
}

/// A history that begins at time 1 and ends with nothing left; no source ever has less than nothing.
pub fn random_history(random: &mut Random, times: Time) -> History {
    let ascending = random.below(10) < 7;
    let mut contents: Contents = vec![BTreeMap::new(); ARITIES.len()];
    let mut history = History::new();
    for time in 1..times {
        let mut events = vec![];
        let count = if time == 1 { random.below(20) } else { random.below(5) };
        for _ in 0..count {
            let source = random.below(2) as usize;
            let present: Vec<Row> = contents[source].keys().cloned().collect();
            let event = match random.below(20) {
                0 => Event::Truncate(source),
                1..8 if !present.is_empty() => {
                    let row = present[random.below(present.len() as u64) as usize].clone();
                    Event::Update(source, row, -1)
                }
                other => {
                    let copies = if other == 8 { 2 } else { 1 };
                    Event::Update(source, random_row(random, ARITIES[source], ascending), copies)
                }
            };
            apply(&mut contents, std::slice::from_ref(&event));
            events.push(event);
        }
        history.insert(time, events);
    }
    history.insert(times, removal(&contents));
    history
}
