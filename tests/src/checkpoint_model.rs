//! A small model of checkpoints, searched state by state as that of the protocol is (`model`): wherever the worker, the engine in it
//! or the server ends, and whatever of the WAL is not on disk then, a view never shows a transaction twice or not at all.
//!
//! What stands for what:
//! - The WAL is a list of records. A commit of a writer is on disk when it is there; what the worker applies is not, until
//!   somebody flushes. Heaps, and what is on record of them (`eddy.progress`), are what the records of the worker add up to.
//! - Two views read all that is written. The first one is saved, the second one is attached from the tables by every worker.
//! - Decoding takes one record at a time, and computes it at once: a dataflow is the transactions that it has been fed.
//! - A checkpoint is begun, then come the flush, the manifest and the slot, one after the other; anything may happen in between. Who starts goes
//!   on with the manifest, if the slot has what comes after it, and reads the tables else.
//!
//! Left out: what a view is made from (a view that is not what it was does not go on), damage (it is found), time.

use stateright::{Checker, Model, Property};

/// Each rule, as the code has it.
#[derive(Clone, Copy, Debug)]
struct Rules {
    /// A view is saved when all that its dataflow was fed has been written (`Attachment::can_be_saved`).
    all_written: bool,
    /// The WAL is flushed before the manifest is replaced (`end_checkpoint`).
    flush_first: bool,
    /// The slot lets go of the WAL when the manifest is there (`confirm_for_good`).
    confirm_last: bool,
    /// Decoding begins where the manifest says, not where the slot lets it (`Slot::resume`).
    from_manifest: bool,
    /// What has been written already is thrown away (`is_behind_heap`).
    discard: bool,
    /// Nothing is written as of a position that the heaps have passed (`is_behind_heaps`).
    never_back: bool,
}

const ALL: Rules = Rules {
    all_written: true,
    flush_first: true,
    confirm_last: true,
    from_manifest: true,
    discard: true,
    never_back: true,
};

const BUT_ONE: [(&str, Rules); 6] = [
    ("all_written", Rules { all_written: false, ..ALL }),
    ("flush_first", Rules { flush_first: false, ..ALL }),
    ("confirm_last", Rules { confirm_last: false, ..ALL }),
    ("from_manifest", Rules { from_manifest: false, ..ALL }),
    ("discard", Rules { discard: false, ..ALL }),
    ("never_back", Rules { never_back: false, ..ALL }),
];

const WRITERS: u8 = 2;
const ENDS: u8 = 2;
const CHECKPOINTS: u8 = 2;

/// Records of the worker that are there when it writes once more without a view: a row on record says no more than the next one.
const RECORDS: usize = 4;

/// How often each transaction is shown.
type Rows = [i8; WRITERS as usize];

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Record {
    Commit(u8),
    /// The worker has written both views as of a position.
    Applied {
        deltas: [Rows; 2],
        position: usize,
    },
}

/// A dataflow of a view, and what it has put out that is not written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Dataflow {
    fed: Rows,
    output: Rows,
}

/// The state of the first view, as of a position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Saved {
    position: usize,
    fed: Rows,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Begun,
    Flushed,
    Stored,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Worker {
    position: usize,
    views: [Dataflow; 2],
    /// The heaps are as of this position.
    heaps: usize,
    /// The second view is whole from here on.
    whole_from: usize,
    round: Option<(Stage, Saved)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    wal: Vec<Record>,
    on_disk: usize,
    manifest: Option<Saved>,
    /// Decoding can begin here; nobody has a slot otherwise.
    slot: Option<usize>,
    worker: Option<Worker>,
    ends: u8,
    checkpoints: u8,
    /// Something was decoded that the server has let go.
    is_lost: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Action {
    Commit,
    Start,
    Decode,
    Apply,
    /// The worker has to write what is on record of views, whether they have anything to write or not.
    Record,
    Flush,
    /// The next step of a checkpoint.
    GoOn,
    EndWorker,
    /// So many records are lost that are not on disk.
    Crash(usize),
}

struct Checkpoints(Rules);

fn add(rows: &mut Rows, other: Rows, sign: i8) {
    rows.iter_mut().zip(other).for_each(|(row, other)| *row += sign * other);
}

impl State {
    /// All transactions with a commit before a position.
    fn committed_before(&self, position: usize) -> Rows {
        let mut rows = Rows::default();
        for record in &self.wal[..position.min(self.wal.len())] {
            if let Record::Commit(number) = record {
                rows[usize::from(*number)] += 1;
            }
        }
        rows
    }

    fn heap(&self, view: usize) -> Rows {
        let mut rows = Rows::default();
        for record in &self.wal {
            if let Record::Applied { deltas, .. } = record {
                add(&mut rows, deltas[view], 1);
            }
        }
        rows
    }

    /// How far the heaps are, as it is on record.
    fn applied(&self) -> usize {
        let applied = |record: &Record| match record {
            Record::Applied { position, .. } => Some(*position),
            Record::Commit(_) => None,
        };
        self.wal.iter().rev().find_map(applied).unwrap_or(0)
    }
}

impl Checkpoints {
    fn start(&self, state: &mut State) {
        let end = state.wal.len();
        let goes_on = state.manifest.clone().zip(state.slot);
        // What the slot has let go would be missing.
        let goes_on =
            goes_on.filter(|(saved, slot)| slot <= &saved.position || !self.0.confirm_last);
        let second = Dataflow { fed: state.committed_before(end), output: Rows::default() };
        let mut worker = match goes_on {
            Some((saved, slot)) => {
                state.is_lost |= slot > saved.position;
                let position = if self.0.from_manifest { saved.position } else { slot };
                let heaps = state.applied().max(saved.position);
                let first = Dataflow { fed: saved.fed, output: Rows::default() };
                let views = [first, second];
                Worker { position, views, heaps, whole_from: end, round: None }
            }
            None => {
                state.slot = Some(end);
                state.manifest = None;
                let mut first = second.clone();
                first.output = first.fed;
                add(&mut first.output, state.heap(0), -1);
                let views = [first, second];
                Worker { position: end, views, heaps: 0, whole_from: end, round: None }
            }
        };
        // The second one is compared with its heap when it is written first.
        worker.views[1].output = worker.views[1].fed;
        add(&mut worker.views[1].output, state.heap(1), -1);
        state.worker = Some(worker);
    }

    fn decode(&self, state: &mut State) {
        let Some(worker) = &mut state.worker else { return };
        if let Record::Commit(number) = state.wal[worker.position] {
            let number = usize::from(number);
            let is_new = worker.position >= worker.heaps || !self.0.discard;
            worker.views[0].fed[number] += 1;
            worker.views[0].output[number] += i8::from(is_new);
            // The snapshot of the second one has seen what was there.
            if worker.position >= worker.whole_from {
                worker.views[1].fed[number] += 1;
                worker.views[1].output[number] += 1;
            }
        }
        worker.position += 1;
    }

    fn may_write(&self, worker: &Worker) -> bool {
        worker.position >= worker.heaps
    }

    fn write(&self, state: &mut State) {
        let Some(worker) = &mut state.worker else { return };
        let is_whole = worker.position >= worker.whole_from;
        let mut deltas = [std::mem::take(&mut worker.views[0].output), Rows::default()];
        if is_whole {
            deltas[1] = std::mem::take(&mut worker.views[1].output);
        }
        let position = worker.position;
        state.wal.push(Record::Applied { deltas, position });
    }

    /// The next step of a checkpoint.
    fn go_on(&self, state: &mut State) {
        let Some(worker) = &mut state.worker else { return };
        match worker.round.take() {
            None => {
                state.checkpoints += 1;
                let saved = Saved { position: worker.position, fed: worker.views[0].fed };
                if !self.0.confirm_last {
                    state.slot = Some(saved.position);
                }
                worker.round = Some((Stage::Begun, saved));
            }
            Some((Stage::Begun, saved)) => {
                if self.0.flush_first {
                    state.on_disk = state.wal.len();
                }
                worker.round = Some((Stage::Flushed, saved));
            }
            Some((Stage::Flushed, saved)) => {
                state.manifest = Some(saved.clone());
                worker.round = Some((Stage::Stored, saved));
            }
            Some((Stage::Stored, saved)) => state.slot = Some(saved.position),
        }
    }
}

impl Model for Checkpoints {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let (wal, manifest, slot, worker) = (Vec::new(), None, None, None);
        let (ends, checkpoints) = (0, 0);
        vec![State { wal, on_disk: 0, manifest, slot, worker, ends, checkpoints, is_lost: false }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let commits = state.wal.iter().filter(|record| matches!(record, Record::Commit(_))).count();
        if commits < usize::from(WRITERS) {
            actions.push(Action::Commit);
        }
        if state.on_disk < state.wal.len() {
            actions.push(Action::Flush);
        }
        if state.ends < ENDS {
            let lost = state.wal.len() - state.on_disk;
            actions.extend((0..=lost).map(Action::Crash));
        }
        let Some(worker) = &state.worker else { return actions.push(Action::Start) };
        if state.ends < ENDS {
            actions.push(Action::EndWorker);
        }
        if worker.position < state.wal.len() {
            actions.push(Action::Decode);
        }
        let is_whole = worker.position >= worker.whole_from;
        let has_output = worker.views[0].output != Rows::default()
            || is_whole && worker.views[1].output != Rows::default();
        if self.may_write(worker) && has_output {
            actions.push(Action::Apply);
        }
        // Once is enough to see what it may do.
        let has_recorded = state.applied() == worker.position;
        if (self.may_write(worker) || !self.0.never_back)
            && !has_recorded
            && state.wal.len() < RECORDS
        {
            actions.push(Action::Record);
        }
        let is_written = worker.views[0].output == Rows::default() || !self.0.all_written;
        let may_begin = state.checkpoints < CHECKPOINTS && self.may_write(worker) && is_written;
        if worker.round.is_some() || may_begin {
            actions.push(Action::GoOn);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Commit => {
                let number = state.committed_before(state.wal.len()).iter().sum::<i8>();
                next.wal.push(Record::Commit(number as u8));
                next.on_disk = next.wal.len();
            }
            Action::Start => self.start(&mut next),
            Action::Decode => self.decode(&mut next),
            Action::Apply | Action::Record => self.write(&mut next),
            Action::Flush => next.on_disk = next.wal.len(),
            Action::GoOn => self.go_on(&mut next),
            Action::EndWorker => {
                next.worker = None;
                next.ends += 1;
            }
            Action::Crash(lost) => {
                next.wal.truncate(state.wal.len() - lost);
                next.on_disk = next.wal.len();
                next.worker = None;
                next.ends += 1;
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("each transaction is shown once", |_, state: &State| {
                let is_right = |rows: Rows| rows.iter().all(|count| (0..=1).contains(count));
                is_right(state.heap(0)) && is_right(state.heap(1))
            }),
            Property::always("each transaction is computed once", |_, state: &State| {
                let views = state.worker.iter().flat_map(|worker| &worker.views);
                views.flat_map(|view| view.fed).all(|count| count <= 1)
            }),
            Property::always("what is there on record is in the view", |_, state: &State| {
                let wanted = state.committed_before(state.applied());
                let heap = state.heap(0);
                wanted.iter().zip(heap).all(|(wanted, there)| there >= *wanted)
            }),
            Property::always("nothing is decoded that is not there", |_, state: &State| {
                !state.is_lost
            }),
            Property::sometimes(
                "a worker goes on, further than the manifest",
                |_, state: &State| {
                    let goes_on =
                        |worker: &Worker| worker.heaps > 0 && worker.position > worker.heaps;
                    state.worker.as_ref().is_some_and(goes_on)
                },
            ),
        ]
    }
}

#[test]
fn views_that_go_on_are_right_wherever_anything_ends() {
    let checker = Checkpoints(ALL).checker().threads(2).spawn_bfs().join();
    println!("{} states", checker.unique_state_count());
    checker.assert_properties();
}

#[test]
fn every_rule_is_needed() {
    for (name, rules) in BUT_ONE {
        let checker = Checkpoints(rules).checker().threads(2).spawn_bfs().join();
        let broken =
            checker.discoveries().into_keys().any(|property| !property.contains("goes on"));
        assert!(broken, "nothing goes wrong without {name}");
    }
}
