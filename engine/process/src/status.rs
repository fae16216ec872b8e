//! What a host is told of how its engine is doing: when something is new, but not all the time.

use crate::message::{Command, Status};
use engine::{DataflowId, DataflowStats, Embedded, Engine};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Between two reports is so long at least, unless the host waits for room.
const EVERY: Duration = Duration::from_millis(20);

/// Bytes of updates that have been taken, after which the host is told at once.
const TAKEN: usize = 1 << 18;

/// What was told last, and what has happened since.
#[derive(Default)]
pub struct Reporting {
    told: Status,
    figures: BTreeMap<DataflowId, (DataflowStats, usize)>,
    handled: u64,
    taken: usize,
    /// When it was told.
    at: Option<Instant>,
    /// Whether something may be new.
    is_due: bool,
    /// Whether the host wants to hear something in any case.
    is_asked: bool,
}

impl Reporting {
    /// A command is carried out; answers whether a report is due at once. Others go with what comes of the command, or of the next one:
    /// the host asks every second.
    pub fn note(&mut self, command: &Command) -> bool {
        self.handled += 1;
        self.is_due = true;
        match command {
            Command::CreateReading { id, .. }
            | Command::CreateKept { id, .. }
            | Command::CreateIndex { id, .. }
            | Command::CreateSpilling { id, .. } => {
                self.figures.insert(*id, Default::default());
            }
            Command::Drop { id } => drop(self.figures.remove(id)),
            Command::Update { updates, .. } | Command::UpdateShare { updates, .. } => {
                self.taken += updates.bytes()
            }
            Command::Ping => self.is_asked = true,
            _ => {}
        }
        self.is_asked || self.taken >= TAKEN
    }

    /// When the next report may be due, `None` if nothing has happened.
    pub fn due_in(&self) -> Option<Duration> {
        let at = self.at.map_or(Instant::now(), |at| at + EVERY);
        self.is_due.then(|| at.saturating_duration_since(Instant::now()))
    }

    /// A report, if one is due.
    pub fn status(&mut self, engine: &Embedded) -> Option<Status> {
        let is_urgent = self.is_asked || self.taken >= TAKEN || engine.is_memory_short();
        let is_time = self.at.is_none_or(|at| at.elapsed() >= EVERY);
        if !(is_urgent || self.is_due && is_time) {
            return None;
        }
        let is_memory_short = engine.is_memory_short();
        let ids = self.figures.keys().copied();
        let has_no_room = |id: &DataflowId| !engine.wait_for_room(*id, Duration::ZERO);
        let crowded = match is_memory_short {
            true => ids.filter(has_no_room).collect(),
            false => Vec::new(),
        };
        let mut stats = Vec::new();
        for (id, told) in &mut self.figures {
            let now = (engine.stats(*id), engine.rows_of_index(*id));
            if now != *told {
                *told = now;
                stats.push((*id, now.0, now.1));
            }
        }
        let (handled, allocated) = (self.handled, engine.allocated());
        let status = Status { handled, allocated, is_memory_short, crowded, stats };
        self.taken = 0;
        self.at = Some(Instant::now());
        // Figures follow what the threads do: it is looked at them until nothing is new.
        self.is_due = is_memory_short || status != self.told;
        self.told = Status { stats: Vec::new(), ..status.clone() };
        let is_asked = std::mem::take(&mut self.is_asked);
        (self.is_due || is_asked).then_some(status)
    }
}
