//! A process that rests gives back what it does not use: by themselves in a process, as other tests would keep it busy.

mod common;
#[path = "common/counted.rs"]
mod counted;

use common::plans::*;
use common::Host;
use counted::{alone, MB};
use engine::memory::allocated;
use engine::DataflowId;
use engine::Engine;
use plan::row::Row;
use plan::types::{Scalar, Type};
use plan::value::Datum;

const TEXT: Type = Type::Scalar(Scalar::Text);

/// Bytes of its own that the process has in memory.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

fn wait_until_little_is_left(host: &mut Host) {
    host.wait_until(|_| resident() < allocated() + allocated() / 4 + 16 * MB);
}

/// A dataflow that keeps what it is fed.
fn create(host: &mut Host, dataflow: u64) {
    let mut view = view(&[2], distinct(source(0)), 2);
    view.sources[0].schema[1].ty = TEXT;
    host.create(dataflow, &view, 1);
}

fn long(n: i64) -> Row {
    Row::pack(&[Datum::Int8(n), Datum::Text(format!("{n:0200}").into())])
}

/// What is free between blocks that are not goes back to the operating system when nothing more happens.
#[test]
fn a_process_that_rests_has_little_more_than_it_holds() {
    let _alone = alone();
    let mut host = Host::new(1);
    create(&mut host, 1);
    host.update(1, 0, (0..500_000).map(|n| (long(n), 1, 1)).collect());
    host.advance(2);
    // One of each eight stays, so that hardly a page's worth in one place is free at the end of the heap.
    host.update(
        1,
        0,
        (0..500_000).filter(|n| n / 1000 % 8 > 0).map(|n| (long(n), 2, -1)).collect(),
    );
    host.advance(3);
    host.outputs.clear();
    wait_until_little_is_left(&mut host);
    assert!(allocated() > 10 * MB);
}

/// The threads of a dataflow that is dropped are gone, and so is what they had and did not use.
#[test]
fn what_dropped_dataflows_had_goes_back() {
    let _alone = alone();
    let mut host = Host::new(2);
    for dataflow in 1..=6 {
        create(&mut host, dataflow);
        host.update(dataflow, 0, (0..100_000).map(|n| (long(n), 1, 1)).collect());
    }
    host.advance(2);
    host.outputs.clear();
    for dataflow in 2..=6 {
        host.engine.drop_dataflow(DataflowId(dataflow));
    }
    wait_until_little_is_left(&mut host);
    assert!(allocated() > 10 * MB);
}
