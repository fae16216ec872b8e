//! What the model knows at one instant: the server's WAL and tables, shared memory, the processes.

use super::assistant::Assistant;
use super::reads::Reader;
use super::worker::Worker;

/// Views, as bits.
pub type Views = u8;
/// Writers' transactions, as bits.
pub type Writers = u8;
/// Position in the WAL: how many records are before it.
pub type Lsn = u8;
/// Number of a transaction that has written views; those that matter are numbered anew after each action.
pub type Number = u8;

pub const VIEWS: usize = 2;
pub const WRITERS: usize = 3;

pub const ALL_VIEWS: Views = (1 << VIEWS) - 1;

/// Numbers of the members of a set.
pub fn members(set: u8) -> impl Iterator<Item = usize> {
    (0..8).filter(move |index| set >> index & 1 == 1)
}

/// Whether a set has a member.
pub fn has(set: u8, index: usize) -> bool {
    set >> index & 1 == 1
}

/// Rows of a view: how often it shows what each writer's transaction did. A view that is right shows it once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rows(pub [u8; WRITERS]);

impl Rows {
    /// What a set of transactions did, once each.
    pub fn of(writers: Writers) -> Rows {
        let mut rows = Rows::default();
        members(writers).for_each(|writer| rows.0[writer] = 1);
        rows
    }

    pub fn add(&mut self, other: Rows) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    pub fn is_empty(self) -> bool {
        self == Rows::default()
    }

    /// The transactions that it shows, `None` if it shows one more than once.
    pub fn writers(self) -> Option<Writers> {
        let once = |(writer, count): (usize, &u8)| (*count <= 1).then_some(*count << writer);
        self.0.iter().enumerate().try_fold(0, |set, entry| Some(set | once(entry)?))
    }
}

/// Where the session of a writer is (`handshake`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Writer {
    Idle,
    /// It has changed its tables.
    Writing,
    /// `begin_commit` has counted it.
    Counted,
    /// Its commit record is in the WAL.
    Recorded,
    /// Snapshots see it.
    Visible,
    /// Without `note_commit_first`: not counted any more.
    Uncounted,
    /// `end_commit` is done.
    Done,
    Aborted,
}

/// Where a REFRESH is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refresh {
    None,
    /// It has the view for itself, and has filled a new file with what its snapshot sees.
    Filled {
        view: usize,
        rows: Rows,
    },
    /// It is counted as committing and has written its commit record.
    Recorded {
        view: usize,
        rows: Rows,
    },
    /// Everybody sees the new file, whatever their snapshot, as rows are stored as if they had always been there. The
    /// lock is held a moment longer.
    Visible {
        view: usize,
    },
}

impl Refresh {
    /// The view that it has for itself.
    pub fn locks(self) -> Views {
        match self {
            Refresh::None => 0,
            Refresh::Filled { view, .. }
            | Refresh::Recorded { view, .. }
            | Refresh::Visible { view } => 1 << view,
        }
    }
}

/// A commit record. Those of the worker are left out, as decoding drops them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    Commit(usize),
    Refresh(usize),
}

/// What whoever takes a snapshot now sees of what workers write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Heaps {
    pub rows: [Rows; VIEWS],
    /// The rows of `eddy.view_states` that say that a view is behind.
    pub behind: Views,
    pub file: [u8; VIEWS],
    /// The last transaction that wrote any of it.
    pub last: Number,
}

/// A view as others see it (`shared::ViewState`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ViewState {
    Attaching,
    Live,
    Behind,
}

/// What `pg::shmem` has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shared {
    pub committing: u8,
    pub last_commit: Lsn,
    pub applied: Lsn,
    /// Process that owns the database.
    pub owner: Option<u8>,
    pub state: [ViewState; VIEWS],
    pub changed: [Number; VIEWS],
    /// The files that the worker has written last.
    pub file: [u8; VIEWS],
}

impl Shared {
    /// As a server finds it that has just started.
    pub const ZERO: Shared = Shared {
        committing: 0,
        last_commit: 0,
        applied: 0,
        owner: None,
        state: [ViewState::Attaching; VIEWS],
        changed: [0; VIEWS],
        file: [0; VIEWS],
    };

    /// The views that are settled.
    pub fn readable_views(&self) -> Views {
        let is_live = |view: &usize| self.state[*view] == ViewState::Live;
        (0..VIEWS).filter(is_live).fold(0, |set, view| set | 1 << view)
    }
}

/// What may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Left {
    /// Ends of a worker, by an error, a signal or the loss of its slot.
    pub worker_ends: u8,
    pub launcher_ends: u8,
    pub crashes: u8,
    pub locks: u8,
    pub refreshes: u8,
    /// Changes of settings or tables for which a view with much to be written is attached again.
    pub changes: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub writers: Vec<Writer>,
    pub refresh: Refresh,
    /// Views on which a session has a lock that keeps others from writing.
    pub locked: Views,
    pub wal: Vec<Record>,
    pub heaps: Heaps,
    pub shared: Shared,
    pub workers: Vec<Worker>,
    /// One at most, for there is little to do.
    pub assistant: Option<Assistant>,
    /// The process that the launcher remembers to have started.
    pub started: Option<u8>,
    pub readers: Vec<Reader>,
    pub left: Left,
}

impl State {
    /// End of the WAL (`wal::insert_lsn`).
    pub fn insert_lsn(&self) -> Lsn {
        self.wal.len() as Lsn
    }

    /// Transactions that snapshots see.
    pub fn visible(&self) -> Writers {
        self.writers_that(|writer| {
            matches!(writer, Writer::Visible | Writer::Uncounted | Writer::Done)
        })
    }

    /// Transactions that have changed something and are not seen to have ended.
    pub fn running(&self) -> Writers {
        self.writers_that(|writer| {
            matches!(writer, Writer::Writing | Writer::Counted | Writer::Recorded)
        })
    }

    fn writers_that(&self, are: impl Fn(&Writer) -> bool) -> Writers {
        let found = self.writers.iter().enumerate().filter(|(_, writer)| are(writer));
        found.fold(0, |set, (index, _)| set | 1 << index)
    }

    /// Transactions whose commit record is before a position.
    pub fn recorded_before(&self, position: Lsn) -> Writers {
        self.wal[..usize::from(position)].iter().fold(0, |set, record| match record {
            Record::Commit(writer) => set | 1 << writer,
            Record::Refresh(_) => set,
        })
    }

    /// Where the commit record of a transaction ends.
    pub fn end_of(&self, writer: usize) -> Lsn {
        let found = self.wal.iter().position(|record| *record == Record::Commit(writer));
        found.map_or(0, |index| index as Lsn + 1)
    }

    /// Only the order of the numbers matters: states that differ in nothing else are one.
    pub fn renumber(&mut self) {
        let mut numbers: Vec<&mut Number> = vec![&mut self.heaps.last];
        numbers.extend(self.shared.changed.iter_mut());
        numbers.extend(self.workers.iter_mut().flat_map(Worker::numbers));
        let snapshots = self.readers.iter_mut().filter_map(|reader| reader.snapshot.as_mut());
        numbers.extend(snapshots.map(|snapshot| &mut snapshot.last));
        let mut values: Vec<Number> = numbers.iter().map(|number| **number).collect();
        values.sort_unstable();
        values.dedup();
        for number in numbers {
            *number = values.partition_point(|value| *value < *number) as Number;
        }
    }
}
