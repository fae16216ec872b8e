//! State that outgrows memory goes to disk, and leaves nothing there.

mod common;
#[path = "common/counted.rs"]
mod counted;

use common::plans::*;
use common::{config, Host, Random};
use counted::{alone, MB};
use engine::memory::allocated;
use engine::Engine;
use engine::{Config, DataflowId, Spill, StopReason, Time};
use plan::naive::evaluate;
use plan::row::Row;
use plan::{Aggregate, AggregateFunc, Diff, Plan, Recursion, ViewPlan};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A directory of this process's own, gone with it.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let name = format!("eddy-spill-{name}-{}", std::process::id());
        Directory(std::env::temp_dir().join(name))
    }

    fn is_empty(&self) -> bool {
        std::fs::read_dir(&self.0).unwrap().count() == 0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An engine that may have some memory beside what the process has now.
fn host(directory: &Directory, workers: usize, memory: usize, disk: u64) -> Host {
    let base = allocated();
    let spill = Spill { directory: directory.0.clone(), above: base + memory / 2, limit: disk };
    let memory_limit = base + memory;
    Host::with(Config { memory_limit, spill: Some(spill), ..config(workers) })
}

/// Feeds updates of dataflow 1 as fast as they are taken.
fn feed(host: &mut Host, source: usize, updates: impl Iterator<Item = (Row, Time, Diff)>) {
    feed_to(host, 1, source, updates);
}

fn feed_to(
    host: &mut Host,
    id: u64,
    source: usize,
    updates: impl Iterator<Item = (Row, Time, Diff)>,
) {
    let mut updates = updates.peekable();
    while updates.peek().is_some() {
        host.update(id, source, updates.by_ref().take(4096).collect());
        while !host.engine.wait_for_room(DataflowId(id), Duration::from_millis(100)) {}
    }
}

fn count(input: Plan, key: &[usize]) -> Plan {
    let key = key.iter().copied().map(col).collect();
    let aggregates = vec![Aggregate { func: AggregateFunc::Count, arg: None }];
    Plan::Reduce { input: Box::new(input), key, aggregates }
}

/// How many different rows the source has.
fn different_rows() -> ViewPlan {
    view(&[2], count(distinct(source(0)), &[]), 1)
}

/// So many pairs that they go to disk where [`filled`] has them.
const PAIRS: i64 = 150_000;

fn pairs(time: Time, n: Diff) -> impl Iterator<Item = (Row, Time, Diff)> {
    (0..PAIRS).map(move |i| (row(&[i, i]), time, n))
}

/// An engine whose dataflow 1 has them on disk at time 1.
fn filled(name: &str) -> (Directory, Host) {
    let directory = Directory::new(name);
    let mut host = host(&directory, 1, 12 * MB, u64::MAX);
    host.engine.create_spilling_dataflow(DataflowId(1), &different_rows(), 1);
    feed(&mut host, 0, pairs(1, 1));
    host.advance(2);
    (directory, host)
}

/// Rows of each source by time; a negative number of a row takes it back.
type History = BTreeMap<Time, Vec<(usize, Row, Diff)>>;

/// The view after each time, as computed plainly.
fn expect(plan: &ViewPlan, history: &History) -> BTreeMap<Time, common::Delta<Row>> {
    let mut contents = vec![BTreeMap::new(); plan.sources.len()];
    let mut expected = BTreeMap::new();
    for (time, updates) in history {
        for (source, row, diff) in updates {
            *contents[*source].entry(row.clone()).or_insert(0) += diff;
        }
        contents.iter_mut().for_each(|rows: &mut BTreeMap<Row, Diff>| rows.retain(|_, n| *n != 0));
        expected.insert(*time, evaluate(plan, &contents, 1000).unwrap().0);
    }
    expected
}

/// What a view's sources hold at time 1, made anew each time it is asked for.
type Load = fn() -> Box<dyn Iterator<Item = (usize, Row, Diff)>>;

/// A few rows go, and come again, at times 2 to 4.
fn changes(load: Load) -> History {
    let loaded: Vec<_> = load().collect();
    let mut random = Random::new(7);
    let mut changes = History::new();
    for time in 2..5 {
        let mut pick = || loaded[random.below(loaded.len() as u64) as usize].clone();
        let gone: Vec<_> = (0..5).map(|_| pick()).map(|(s, row, _)| (s, row, -1)).collect();
        let before = changes.get(&(time - 1)).into_iter().flatten();
        let back = before.filter(|(_, _, n)| *n < 0).map(|(s, row, n)| (*s, row.clone(), -n));
        let delta = back.chain(gone).collect();
        changes.insert(time, delta);
    }
    changes
}

/// Computes a view in a tenth of the memory its state would take.
fn holds_ten_times_the_memory(name: &str, plan: &ViewPlan, load: Load, memory: usize) {
    let directory = Directory::new(name);
    let changes = changes(load);
    let mut history = changes.clone();
    history.insert(1, load().collect());
    let expected = expect(plan, &history);
    drop(history);
    // What may be used is counted from here: nothing is held that would be given back later.
    let mut host = host(&directory, 1, memory, u64::MAX);
    host.engine.create_spilling_dataflow(DataflowId(1), plan, 1);
    for time in 1..5 {
        for source in 0..plan.sources.len() {
            let updates: Box<dyn Iterator<Item = _>> = match changes.get(&time) {
                Some(changes) => Box::new(changes.iter().cloned()),
                None => load(),
            };
            let of_source = updates.filter(|(s, _, _)| *s == source);
            feed(&mut host, source, of_source.map(|(_, row, n)| (row, time, n)));
        }
        host.engine.advance(time + 1);
        host.wait(|host| host.frontier > time || !host.stopped.is_empty());
        assert_eq!(host.stopped, BTreeMap::new());
        assert_eq!(host.rows(1), expected[&time], "at time {time}");
    }
    let stats = host.engine.stats(DataflowId(1));
    println!(
        "{name}: {} MB of state, {} MB on disk",
        stats.state_bytes / MB,
        stats.spilled_bytes / MB
    );
    assert!(stats.state_bytes > 10 * memory, "{} MB of state", stats.state_bytes / MB);
    assert!(stats.spilled_bytes > 0);
    assert!(directory.is_empty(), "files have no names");
}

#[test]
fn a_join_and_its_groups_take_ten_times_the_memory() {
    let _alone = alone();
    let load: Load = || {
        Box::new(
            (0..1_000_000).flat_map(|n| [(0, row(&[n, n % 1000]), 1), (1, row(&[n, n % 7, n]), 1)]),
        )
    };
    let pairs = join((source(0), 0), (source(1), 0), project(5, &[1, 3, 4]));
    let plan = view(&[2, 3], count(distinct(pairs), &[1]), 2);
    holds_ten_times_the_memory("join", &plan, load, 20 * MB);
}

#[test]
fn a_recursion_takes_ten_times_the_memory() {
    let _alone = alone();
    // A tree, and edges back to its root.
    let load: Load = || {
        let edges = (1..700_000).map(|n| (0, row(&[n / 3, n]), 1));
        let back = (1..700_000).step_by(5).map(|n| (0, row(&[n, 0]), 1));
        Box::new(edges.chain(back).chain([(1, row(&[0]), 1)]))
    };
    let reached = letrec(0, Recursion::FixpointDistinct, source(1), reach_step(), get(0));
    let plan = view(&[2, 1], count(reached, &[]), 1);
    holds_ten_times_the_memory("recursion", &plan, load, 16 * MB);
}

/// A large view beside others: it is named as one that may be created anew, and then fits.
#[test]
fn a_dataflow_that_outgrows_memory_fits_when_it_spills() {
    let _alone = alone();
    let directory = Directory::new("outgrows");
    let plan = different_rows();
    let rows = || (0..500_000).map(|n| (row(&[n, n]), 1, 1));
    let mut host = host(&directory, 2, 24 * MB, u64::MAX);
    host.create(1, &plan, 1);
    feed(&mut host, 0, rows());
    host.engine.advance(2);
    host.wait(|host| !host.stopped.is_empty());
    let reason = host.stopped.remove(&DataflowId(1));
    assert!(matches!(reason, Some(StopReason::OutgrewMemory { .. })), "{reason:?}");
    host.engine.create_spilling_dataflow(DataflowId(1), &plan, 2);
    feed(&mut host, 0, rows().map(|(row, _, n)| (row, 2, n)));
    host.advance(3);
    assert_eq!(host.stopped, BTreeMap::new());
    assert_eq!(host.rows(1), [(row(&[500_000]), 1)].into());
    host.engine.truncate(DataflowId(1), plan::SourceId(0), 3);
    host.advance(4);
    assert_eq!(host.rows(1), [(row(&[0]), 1)].into());
}

/// One that spills may be busier than another one that takes the memory.
#[test]
fn what_is_in_memory_goes_to_disk_before_what_spills_is_stopped() {
    let _alone = alone();
    let directory = Directory::new("both");
    let plan = different_rows();
    let rows = |n: i64| (0..n).map(|n| (row(&[n, n]), 1, 1));
    let mut host = host(&directory, 1, 24 * MB, u64::MAX);
    host.engine.create_spilling_dataflow(DataflowId(1), &plan, 1);
    feed(&mut host, 0, rows(600_000));
    host.create(2, &plan, 1);
    feed_to(&mut host, 2, 0, rows(600_000));
    host.engine.advance(2);
    host.wait(|host| !host.stopped.is_empty() && host.frontier >= 2);
    let reason = host.stopped.remove(&DataflowId(2));
    assert!(matches!(reason, Some(StopReason::OutgrewMemory { .. })), "{reason:?}");
    assert_eq!(host.stopped, BTreeMap::new());
    assert_eq!(host.rows(1), [(row(&[600_000]), 1)].into());
}

/// The process's own files of blocks, which have no names any more.
fn block_files(directory: &Directory) -> Vec<std::fs::File> {
    let is_block_file = |path: &PathBuf| {
        std::fs::read_link(path).is_ok_and(|target| target.starts_with(&directory.0))
    };
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
    let paths = descriptors.map(|entry| entry.unwrap().path()).filter(is_block_file);
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true);
    paths.map(|path| options.open(path).unwrap()).collect()
}

/// Flips one bit in each run of so many bytes, each time another one.
fn damage(file: &std::fs::File, run: u64) {
    use std::os::unix::fs::FileExt;
    let mut random = Random::new(11);
    for start in (0..file.metadata().unwrap().len()).step_by(run as usize) {
        let offset = start + random.below(run);
        let mut byte = [0];
        if file.read_at(&mut byte, offset).unwrap() == 1 {
            file.write_all_at(&[byte[0] ^ (1 << random.below(8))], offset).unwrap();
        }
    }
}

#[test]
fn flipped_bits_on_disk_stop_the_dataflow() {
    let _alone = alone();
    let (directory, mut host) = filled("damaged");
    assert_eq!(host.rows(1), [(row(&[PAIRS]), 1)].into());
    let files = block_files(&directory);
    assert!(!files.is_empty(), "nothing is on disk");
    files.iter().for_each(|file| damage(file, 1024));
    host.update(1, 0, pairs(2, -1).step_by(10).collect());
    host.engine.advance(3);
    host.wait(|host| host.frontier > 2 || !host.stopped.is_empty());
    let reason = host.stopped.get(&DataflowId(1));
    let is_told = |message: &String| message.contains("damaged");
    assert!(
        matches!(reason, Some(StopReason::SpillFailed { message }) if is_told(message)),
        "{reason:?}"
    );
}

#[test]
fn space_on_disk_is_given_back() {
    let _alone = alone();
    let (directory, mut host) = filled("space");
    let full = host.engine.stats(DataflowId(1)).spilled_bytes;
    assert!(full > MB / 10, "{full} bytes");
    for time in 2..6 {
        feed(&mut host, 0, pairs(time, if time % 2 == 0 { -1 } else { 1 }));
        host.advance(time + 1);
    }
    let again = host.engine.stats(DataflowId(1)).spilled_bytes;
    assert!(again < 3 * full, "{again} bytes after {full}");
    host.engine.drop_dataflow(DataflowId(1));
    assert!(directory.is_empty());
}

#[test]
fn a_full_disk_stops_only_what_fills_it() {
    let _alone = alone();
    let directory = Directory::new("full");
    let mut host = host(&directory, 1, 16 * MB, 100_000);
    let plan = different_rows();
    host.create(2, &reach(Recursion::FixpointDistinct), 1);
    host.update(2, 0, vec![(row(&[1, 2]), 1, 1)]);
    host.update(2, 1, vec![(row(&[1]), 1, 1)]);
    host.engine.create_spilling_dataflow(DataflowId(1), &plan, 1);
    feed(&mut host, 0, (0..500_000).map(|n| (row(&[n, n]), 1, 1)));
    host.engine.advance(2);
    host.wait(|host| !host.stopped.is_empty() && host.frontier >= 2);
    let reason = StopReason::SpillLimit { bytes: 100_000 };
    assert_eq!(host.stopped, [(DataflowId(1), reason)].into());
    assert_eq!(host.rows(2).len(), 2);
}

#[test]
fn a_directory_that_cannot_be_used_stops_the_dataflow() {
    let _alone = alone();
    let directory = Directory::new("unusable");
    std::fs::write(&directory.0, "not a directory").unwrap();
    let mut host = host(&directory, 1, 16 * MB, u64::MAX);
    let plan = different_rows();
    host.engine.create_spilling_dataflow(DataflowId(1), &plan, 1);
    feed(&mut host, 0, (0..500_000).map(|n| (row(&[n, n]), 1, 1)));
    host.engine.advance(2);
    host.wait(|host| !host.stopped.is_empty());
    let reason = &host.stopped[&DataflowId(1)];
    assert!(matches!(reason, StopReason::SpillFailed { message } if !message.contains("unusable")));
    std::fs::remove_file(&directory.0).unwrap();
}

/// A recursion without end on disk is stopped by the limits of recursion, or when the disk is full.
#[test]
fn an_endless_recursion_is_stopped_on_disk_too() {
    let _alone = alone();
    let directory = Directory::new("endless");
    let mut host = host(&directory, 1, 24 * MB, MB as u64);
    // Each row (a, …, h) is followed by (b, …, h, x) for every x: all words over an alphabet.
    let step = join((get(0), 7), (source(0), 0), project(10, &[1, 2, 3, 4, 5, 6, 7, 9]));
    let words = letrec(0, Recursion::WorkingTableAll, source(1), step, get(0));
    host.engine.create_spilling_dataflow(DataflowId(1), &view(&[2, 8], count(words, &[]), 1), 1);
    host.update(1, 0, (0..64).map(|n| (row(&[n / 8, n % 8]), 1, 1)).collect());
    host.update(1, 1, vec![(row(&[0; 8]), 1, 1)]);
    host.engine.advance(2);
    host.wait(|host| !host.stopped.is_empty());
    let reason = &host.stopped[&DataflowId(1)];
    assert!(matches!(reason, StopReason::SpillLimit { .. }), "{reason:?}");
}
