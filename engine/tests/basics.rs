//! The engine's interface: inputs, outputs, times, frontiers, threads.

mod common;

use common::plans::*;
use common::{config, Host};
use engine::{Config, DataflowId, Engine, OutputForm, StopReason};
use plan::row::Row;
use plan::value::Datum;
use plan::{Recursion, SourceId};

#[test]
fn rows_pass_through_at_their_own_times() {
    for workers in [1, 2] {
        let mut host = Host::new(workers);
        host.create(7, &view(&[1], source(0), 1), 3);
        host.update(7, 0, vec![(row(&[1]), 3, 1), (row(&[1]), 4, 1), (row(&[2]), 5, 1)]);
        host.update(7, 0, vec![(row(&[1]), 5, -2)]);
        host.advance(6);
        let oks = host.output(7).oks;
        assert_eq!(oks.keys().copied().collect::<Vec<_>>(), vec![3, 4, 5]);
        assert_eq!(oks[&5], [(row(&[1]), -2), (row(&[2]), 1)].into());
    }
}

#[test]
fn net_output_adds_up_what_changed_between_frontiers() {
    for workers in [1, 2] {
        let mut host = Host::with(Config { output: OutputForm::Net, ..config(workers) });
        host.create(7, &view(&[1], source(0), 1), 3);
        host.update(7, 0, vec![(row(&[1]), 3, 1), (row(&[2]), 4, 1), (row(&[2]), 5, -1)]);
        host.update(7, 0, vec![(row(&[1]), 5, 1), (row(&[3]), 9, 1)]);
        host.advance(6);
        assert_eq!(host.output(7).oks, [(5, [(row(&[1]), 2)].into())].into());
        assert_eq!(host.output(7).times, [3, 4, 5].into());
        // Nothing is left of these, but they were.
        host.update(7, 0, vec![(row(&[1]), 6, -2), (row(&[1]), 7, 2)]);
        host.advance(8);
        assert_eq!(host.rows(7), [(row(&[1]), 2)].into());
        assert_eq!(host.output(7).times, [3, 4, 5, 6, 7].into());
        host.advance(10);
        assert_eq!(host.output(7).oks[&9], [(row(&[3]), 1)].into());
    }
}

#[test]
fn a_dataflow_may_keep_times_where_others_do_not() {
    for workers in [1, 2] {
        let mut host = Host::with(Config { output: OutputForm::Net, ..config(workers) });
        for dataflow in [7, 8] {
            host.create(dataflow, &view(&[1], distinct(source(0)), 1), 3);
        }
        host.engine.keep_times(DataflowId(8));
        for dataflow in [7, 8] {
            host.update(
                dataflow,
                0,
                vec![(row(&[1]), 3, 1), (row(&[2]), 4, 1), (row(&[2]), 5, -1)],
            );
            host.update(dataflow, 0, vec![(row(&[1]), 5, 1), (row(&[3]), 5, 2)]);
        }
        host.advance(6);
        assert_eq!(host.output(7).oks, [(5, [(row(&[1]), 1), (row(&[3]), 1)].into())].into());
        let by_time = [
            (3, [(row(&[1]), 1)].into()),
            (4, [(row(&[2]), 1)].into()),
            (5, [(row(&[2]), -1), (row(&[3]), 1)].into()),
        ];
        assert_eq!(host.output(8).oks, by_time.into());
    }
}

#[test]
fn frontier_moves_without_any_dataflow_and_without_updates() {
    let mut host = Host::new(1);
    host.advance(5);
    host.create(1, &view(&[1], source(0), 1), 5);
    host.advance(6);
    host.advance(1000);
    host.update(1, 0, vec![(row(&[1]), 1000, 1)]);
    host.advance(1001);
    assert_eq!(host.rows(1), [(row(&[1]), 1)].into());
}

#[test]
fn updates_fed_ahead_come_out_at_their_times() {
    let plans = [view(&[1], source(0), 1), view(&[1], distinct(source(0)), 1)];
    for (workers, plan) in
        [1, 2].into_iter().flat_map(|workers| plans.iter().map(move |p| (workers, p)))
    {
        let mut host = Host::new(workers);
        host.create(1, plan, 5);
        host.update(1, 0, vec![(row(&[1]), 10, 1), (row(&[2]), 6, 1)]);
        host.advance(8);
        assert_eq!(host.rows(1), [(row(&[2]), 1)].into());
        host.advance(10);
        assert_eq!(host.rows(1), [(row(&[2]), 1)].into());
        host.advance(12);
        assert_eq!(host.output(1).oks[&10], [(row(&[1]), 1)].into());
        host.advance(13);
    }
}

#[test]
fn reachability_follows_edges_through_a_cycle() {
    for workers in [1, 2] {
        let mut host = Host::new(workers);
        host.create(1, &reach(Recursion::FixpointDistinct), 1);
        let edges = [(1, 2), (2, 3), (3, 1), (3, 4)];
        host.update(1, 0, edges.iter().map(|(a, b)| (row(&[*a, *b]), 1, 1)).collect());
        host.update(1, 1, vec![(row(&[1]), 1, 1)]);
        host.advance(2);
        assert_eq!(host.rows(1), [1, 2, 3, 4].map(|n| (row(&[n]), 1)).into());
        host.update(1, 0, vec![(row(&[2, 3]), 2, -1)]);
        host.advance(3);
        assert_eq!(host.rows(1), [1, 2].map(|n| (row(&[n]), 1)).into());
        host.update(1, 0, vec![(row(&[2, 3]), 3, 1)]);
        host.update(1, 1, vec![(row(&[1]), 4, -1)]);
        host.advance(5);
        assert_eq!(host.output(1).oks[&3], [3, 4].map(|n| (row(&[n]), 1)).into());
        assert!(host.rows(1).is_empty());
    }
}

#[test]
fn truncate_retracts_what_was_fed_before() {
    for workers in [1, 2] {
        let mut host = Host::new(workers);
        host.create(1, &view(&[1], source(0), 1), 1);
        host.update(1, 0, vec![(row(&[1]), 1, 2), (row(&[2]), 2, 1)]);
        host.engine.truncate(engine::DataflowId(1), plan::SourceId(0), 2);
        host.update(1, 0, vec![(row(&[3]), 2, 1)]);
        host.advance(3);
        assert_eq!(host.output(1).oks[&1], [(row(&[1]), 2)].into());
        assert_eq!(host.rows(1), [(row(&[3]), 1)].into());
        host.engine.truncate(engine::DataflowId(1), plan::SourceId(0), 5);
        host.advance(6);
        assert_eq!(host.output(1).oks[&5], [(row(&[3]), -1)].into());
    }
}

#[test]
fn a_table_truncated_twice_in_one_transaction_is_emptied_once() {
    // Edges are held by the join's arrangement, rows of the second plan by DISTINCT, those of the third by the input.
    let plans = [
        reach(Recursion::FixpointDistinct),
        view(&[2, 1], distinct(source(0)), 2),
        view(&[2, 1], source(0), 2),
    ];
    for (workers, plan) in [1, 2].into_iter().flat_map(|n| plans.iter().map(move |p| (n, p))) {
        let mut host = Host::new(workers);
        host.create(1, plan, 1);
        host.update(1, 1, vec![(row(&[1]), 1, 1)]);
        host.update(1, 0, vec![(row(&[1, 2]), 1, 1), (row(&[2, 3]), 1, 1)]);
        host.advance(2);
        host.update(1, 0, vec![(row(&[1, 9]), 2, 1)]);
        host.engine.truncate(DataflowId(1), SourceId(0), 2);
        host.update(1, 0, vec![(row(&[1, 8]), 2, 1)]);
        host.engine.truncate(DataflowId(1), SourceId(0), 2);
        host.update(1, 0, vec![(row(&[1, 4]), 2, 1)]);
        host.advance(3);
        let expected =
            if plan == &plans[0] { vec![row(&[1]), row(&[4])] } else { vec![row(&[1, 4])] };
        assert_eq!(host.rows(1), expected.into_iter().map(|row| (row, 1)).collect());
    }
}

#[test]
fn a_row_that_the_plan_does_not_expect_stops_the_dataflow() {
    let mut plan = view(&[1], source(0), 1);
    plan.sources[0].schema[0].nullable = false;
    let mut host = Host::new(1);
    host.create(1, &plan, 1);
    host.update(1, 0, vec![(row(&[1]), 1, 1), (Row::pack(&[Datum::Null]), 1, 1)]);
    host.advance(2);
    assert!(matches!(host.stopped[&DataflowId(1)], StopReason::UnexpectedRow(_)));
}
