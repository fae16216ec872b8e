//! Statements that read views (`reads`): each load from shared memory is an action of its own.

use super::state::*;
use super::Protocol;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// A transaction that reads views in one or two statements; if the first reads none it reads something else.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    pub isolation: Isolation,
    pub first: Views,
    pub second: Views,
}

impl Session {
    /// Whether its statements share one snapshot, which is taken before they have locks.
    fn is_single(self) -> bool {
        self.isolation != Isolation::ReadCommitted
    }
}

/// What a snapshot shows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Snapshot {
    /// Transactions whose effects base tables show.
    pub tables: Writers,
    pub rows: [Rows; VIEWS],
    pub behind: Views,
    /// The last transaction of a worker that it sees.
    pub last: Number,
}

/// What a reader does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Stage {
    #[default]
    Idle,
    /// It takes its target (`wait::target`).
    Target,
    /// Is the snapshot good as it is (`snapshot::shows`, `shown_views`)? It loads `applied`, ...
    Applied,
    /// ... the states of views, ...
    States,
    /// ... and who changed them last.
    Changed,
    /// It waits (`wait::until_current`): for `applied`, ...
    Wait,
    /// ... and the states.
    WaitStates,
    /// It takes a new snapshot, unless the first one is good now.
    Renew {
        again: bool,
    },
    /// A second statement under the same snapshot begins.
    Second,
    /// `single::prove_later`.
    LateWait,
    LateStates,
    LateChanged,
    /// `are_together`, when the snapshot cannot be another.
    LateTogether,
    /// It has ended.
    Done,
}

/// What was wrong with what a reader was shown. See `properties`.
pub mod fault {
    pub const INEXACT: u8 = 1;
    pub const AHEAD: u8 = 2;
    pub const APART: u8 = 4;
    pub const STALE: u8 = 8;
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reader {
    pub stage: Stage,
    pub snapshot: Option<Snapshot>,
    /// What others may have seen when its transaction or, at READ COMMITTED, its statement began.
    pub must: Writers,
    pub target: Lsn,
    /// Position behind everything its snapshot shows (`single::State::needed`).
    pub needed: Lsn,
    /// Views found settled, then shown, then proven (`single::State::proven`).
    pub found: Views,
    /// Their files then, as the worker knew them.
    pub files: [u8; VIEWS],
    /// Views that it has a lock on, as whoever reads them.
    pub locks: Views,
    pub faults: u8,
}

impl Reader {
    pub fn is_idle(&self) -> bool {
        self.stage == Stage::Idle
    }

    /// Its transaction ends: nothing of it is left but what it was shown.
    pub fn end(&mut self) {
        if !self.is_idle() {
            *self = Reader { stage: Stage::Done, faults: self.faults, ..Reader::default() };
        }
    }
}

impl State {
    fn take_snapshot(&self) -> Snapshot {
        Snapshot {
            tables: self.visible(),
            rows: self.heaps.rows,
            behind: self.heaps.behind,
            last: self.heaps.last,
        }
    }
}

impl Protocol {
    /// `wait::target`.
    fn target(&self, state: &State) -> Lsn {
        match state.shared.committing {
            0 => state.shared.last_commit,
            _ => state.insert_lsn(),
        }
    }

    /// Whether views that the reader has a lock on are settled, in the files that the worker knows.
    fn are_readable(&self, state: &State, views: Views) -> bool {
        let are_settled = views & !state.shared.readable_views() == 0;
        are_settled && self.are_known(state, state.shared.file, views)
    }

    /// The views whose last change a snapshot sees.
    fn shows_changes(&self, state: &State, snapshot: &Snapshot) -> Views {
        let sees = |view: &usize| state.shared.changed[*view] <= snapshot.last;
        match self.rules.shows_changes {
            true => (0..VIEWS).filter(sees).fold(0, |set, view| set | 1 << view),
            false => ALL_VIEWS,
        }
    }

    fn are_together(&self, snapshot: &Snapshot, views: Views) -> bool {
        views.count_ones() < 2 || snapshot.behind & views == 0 || !self.rules.are_together
    }

    /// Whether the files of views that the reader has a lock on are those that the worker knows.
    fn are_known(&self, state: &State, files: [u8; VIEWS], views: Views) -> bool {
        !self.rules.file || members(views).all(|view| files[view] == state.heaps.file[view])
    }

    pub fn may_read(&self, state: &State, reader: usize) -> bool {
        let session = self.readers[reader];
        let it = &state.readers[reader];
        let is_current = |views: Views, target: Lsn| {
            state.shared.applied >= target && self.are_readable(state, views)
        };
        let can_lock = |views: Views| state.refresh.locks() & views == 0;
        match it.stage {
            Stage::Idle => session.is_single() || can_lock(session.first),
            Stage::Target => can_lock(session.first & !it.locks),
            Stage::Second => can_lock(session.second),
            Stage::Wait => is_current(session.first, it.target),
            Stage::LateWait => is_current(session.second, it.needed),
            Stage::Done => false,
            _ => true,
        }
    }

    pub fn read(&self, state: &mut State, reader: usize) {
        let mut it = std::mem::take(&mut state.readers[reader]);
        match it.stage {
            Stage::Second
            | Stage::LateWait
            | Stage::LateStates
            | Stage::LateChanged
            | Stage::LateTogether => self.go_on_late(state, reader, &mut it),
            _ => self.go_on(state, reader, &mut it),
        }
        state.readers[reader] = it;
    }

    /// The first statement.
    fn go_on(&self, state: &State, reader: usize, it: &mut Reader) {
        let Session { isolation, first, .. } = self.readers[reader];
        let is_other = first == 0;
        it.stage = match it.stage {
            Stage::Idle => {
                it.locks = if self.readers[reader].is_single() { 0 } else { first };
                it.must = state.visible();
                it.snapshot = Some(state.take_snapshot());
                Stage::Target
            }
            Stage::Target => {
                it.locks = first;
                it.target = self.target(state);
                it.needed = it.target;
                Stage::Applied
            }
            Stage::Applied => match state.shared.applied >= it.target {
                true => Stage::States,
                false if is_other => Stage::Second,
                false => Stage::Wait,
            },
            Stage::States => {
                it.found = state.shared.readable_views();
                it.files = state.shared.file;
                match self.are_known(state, it.files, first) {
                    true => Stage::Changed,
                    false => Stage::Wait,
                }
            }
            Stage::Changed => {
                it.found &= it.snapshot.as_ref().map_or(0, |s| self.shows_changes(state, s));
                let is_repeatable = isolation == Isolation::RepeatableRead && !is_other;
                let others = if is_repeatable { state.shared.readable_views() } else { 0 };
                match (first | others) & !it.found == 0 {
                    true => return self.end_first(state, reader, it),
                    false => Stage::Wait,
                }
            }
            Stage::Wait => Stage::WaitStates,
            Stage::WaitStates => {
                it.found = state.shared.readable_views();
                it.files = state.shared.file;
                match self.are_readable(state, first) {
                    true => Stage::Renew { again: false },
                    false => Stage::Wait,
                }
            }
            Stage::Renew { again } => return self.renew(state, reader, it, again),
            at => at,
        };
    }

    fn renew(&self, state: &State, reader: usize, it: &mut Reader, again: bool) {
        let Session { isolation, first, .. } = self.readers[reader];
        let is_read_committed = isolation == Isolation::ReadCommitted;
        let shown = it.snapshot.as_ref().map_or(0, |s| self.shows_changes(state, s));
        if again || !is_read_committed || first & !shown != 0 {
            it.snapshot = Some(state.take_snapshot());
        }
        let are_together = it.snapshot.as_ref().is_some_and(|s| self.are_together(s, first));
        match isolation {
            Isolation::Serializable => it.stage = Stage::Target,
            _ if are_together => self.end_first(state, reader, it),
            Isolation::RepeatableRead => it.stage = Stage::Target,
            Isolation::ReadCommitted => it.stage = Stage::Renew { again: true },
        }
    }

    fn end_first(&self, state: &State, reader: usize, it: &mut Reader) {
        let Session { isolation, first, second } = self.readers[reader];
        self.judge(state, it, isolation, first);
        it.stage = Stage::Second;
        if second == 0 {
            it.end();
        }
    }

    /// The second statement, under the same snapshot (`single::make_fresh`).
    fn go_on_late(&self, state: &State, reader: usize, it: &mut Reader) {
        let Session { isolation, second, .. } = self.readers[reader];
        let is_proven = second & !it.found == 0 && self.are_known(state, it.files, second);
        it.stage = match it.stage {
            Stage::Second => {
                it.locks |= second;
                let is_serializable = isolation == Isolation::Serializable;
                match is_proven {
                    true if !is_serializable && second.count_ones() < 2 => {
                        self.judge(state, it, isolation, second);
                        return it.end();
                    }
                    true => Stage::LateTogether,
                    false => Stage::LateWait,
                }
            }
            Stage::LateWait => Stage::LateStates,
            Stage::LateStates => match self.are_readable(state, second) {
                true => Stage::LateChanged,
                false => return it.end(),
            },
            Stage::LateChanged => {
                let shown = it.snapshot.as_ref().map_or(0, |s| self.shows_changes(state, s));
                match second & !shown {
                    0 => Stage::LateTogether,
                    // `errors::read_late`
                    _ => return it.end(),
                }
            }
            Stage::LateTogether => {
                // Otherwise `errors::not_together`.
                if it.snapshot.as_ref().is_some_and(|s| self.are_together(s, second)) {
                    self.judge(state, it, isolation, second);
                }
                return it.end();
            }
            at => at,
        };
    }

    /// Looks at what a statement is shown.
    fn judge(&self, state: &State, it: &mut Reader, isolation: Isolation, views: Views) {
        let Some(snapshot) = &it.snapshot else { return };
        let end = state.insert_lsn();
        let mut points: Vec<Lsn> = (0..=end).collect();
        for view in members(views) {
            let rows = snapshot.rows[view];
            let shows_point = |point: &Lsn| rows == self.query(view, state.recorded_before(*point));
            if !(0..=end).any(|point| shows_point(&point)) {
                it.faults |= fault::INEXACT;
            }
            points.retain(shows_point);
            let shown = rows.writers().unwrap_or(0);
            let of_tables = snapshot.tables & self.writers_of(view);
            let is_exact = isolation == Isolation::Serializable;
            if shown & !of_tables != 0 || is_exact && shown != of_tables {
                it.faults |= fault::AHEAD;
            }
            if it.must & self.writers_of(view) & !shown != 0 {
                it.faults |= fault::STALE;
            }
        }
        if points.is_empty() {
            it.faults |= fault::APART;
        }
    }
}
