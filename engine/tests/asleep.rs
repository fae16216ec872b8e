//! A dataflow is not woken for changes of which it would see nothing, and is complete all the same.

mod common;

use common::plans::*;
use common::Host;
use engine::{DataflowId, Engine, Form, Index, Read, Time};
use plan::expr::Expr;
use plan::func::{Blanks, Comparison, Func};
use plan::value::Datum;
use plan::{Aggregate, AggregateFunc, Mfp, Plan, SourceId, ViewPlan};
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Each has the rows of one tenant.
const VIEWS: u64 = 40;
const BY_TENANT: DataflowId = DataflowId(1000);
const NAMES: DataflowId = DataflowId(1001);

/// What threads do is counted over all of them, so tests run one by one.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The rows (tenant, item) of source 0 that are of a tenant, with what source 1 has of the item.
fn of_tenant(tenant: u64) -> ViewPlan {
    let tenant = Expr::Literal(Datum::Int8(tenant as i64), BIGINT);
    let equal = Func::Compare(Comparison::Eq, Blanks::Significant);
    let filter = vec![Expr::Call { func: equal, args: vec![col(0), tenant] }];
    let some = map(source(0), Mfp { filter, ..project(2, &[0, 1]) });
    view(&[2, 2], join((some, 1), (source(1), 0), project(4, &[1, 3])), 2)
}

fn index(plan: &ViewPlan, source: usize, key: usize) -> Index {
    let source = plan.sources[source].clone();
    Index { source, key: vec![key], form: Form::of(plan), made_by: None }
}

fn host() -> Host {
    let plan = of_tenant(1);
    let mut host = Host::new(1);
    host.engine.create_index(BY_TENANT, &index(&plan, 0, 1), &[], 1);
    host.engine.create_index(NAMES, &index(&plan, 1, 0), &[], 1);
    let read = |source, key, index| Read { source: SourceId(source), key: vec![key], index };
    for tenant in 1..=VIEWS {
        let plan = of_tenant(tenant);
        let reads = [read(0, 1, BY_TENANT), read(1, 0, NAMES)];
        host.engine.create_reading(DataflowId(tenant), (&plan, Form::of(&plan)), &reads, 1);
    }
    host.update(NAMES.0, 0, (0..10).map(|item| (row(&[item, 100 + item]), 1, 1)).collect());
    host.advance(2);
    host
}

/// A row of a tenant comes, and all views are told.
fn change(host: &mut Host, tenant: u64, time: Time) {
    host.update(BY_TENANT.0, 0, vec![(row(&[tenant as i64, time as i64 % 10]), time, 1)]);
    host.advance(time + 1);
}

/// How often threads of engines have gone to sleep.
fn times_asleep() -> u64 {
    let of_thread = |path: std::path::PathBuf| -> Option<u64> {
        let name = fs::read_to_string(path.join("comm")).ok()?;
        let status = fs::read_to_string(path.join("status")).ok()?;
        let times = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        name.starts_with("engine-").then(|| times?.trim().parse().ok())?
    };
    let threads = fs::read_dir("/proc/self/task").expect("threads");
    threads.filter_map(|thread| of_thread(thread.ok()?.path())).sum()
}

#[test]
fn whom_a_change_does_not_concern_sleeps_on() {
    let _alone = alone();
    let mut host = host();
    let before = times_asleep();
    const CHANGES: u64 = 200;
    for time in 2..2 + CHANGES {
        change(&mut host, 1 + time % 3, time);
        let is_complete = |id: u64| host.frontiers.get(&DataflowId(id)) == Some(&(time + 1));
        assert!((1..=VIEWS).all(is_complete), "all are told at {time}");
    }
    let woken = (times_asleep() - before) / CHANGES;
    assert!(woken < VIEWS / 4, "{woken} threads for each change");
    for tenant in 1..=VIEWS {
        let rows: i64 = host.rows(tenant).values().sum();
        let own = (2..2 + CHANGES).filter(|time| 1 + time % 3 == tenant).count();
        assert_eq!(rows, own as i64, "tenant {tenant}");
    }
}

/// Each has its tenant's rows for itself, and what all look up together.
#[test]
fn who_has_inputs_is_not_woken_for_them_by_an_index() {
    let _alone = alone();
    let mut host = Host::new(1);
    host.engine.create_index(NAMES, &index(&of_tenant(1), 1, 0), &[], 1);
    for tenant in 1..=VIEWS {
        let plan = of_tenant(tenant);
        let reads = [Read { source: SourceId(1), key: vec![0], index: NAMES }];
        host.engine.create_reading(DataflowId(tenant), (&plan, Form::of(&plan)), &reads, 1);
    }
    host.update(NAMES.0, 0, (0..10).map(|item| (row(&[item, 100 + item]), 1, 1)).collect());
    host.advance(2);
    let before = times_asleep();
    const CHANGES: u64 = 200;
    for time in 2..2 + CHANGES {
        for tenant in 1..=VIEWS {
            let rows = vec![(row(&[1 + time as i64 % 3, time as i64 % 10]), time, 1)];
            host.update(tenant, 0, rows);
        }
        host.advance(time + 1);
        let is_complete = |id: u64| host.frontiers.get(&DataflowId(id)) == Some(&(time + 1));
        assert!((1..=VIEWS).all(is_complete), "all are told at {time}");
    }
    let woken = (times_asleep() - before) / CHANGES;
    assert!(woken < VIEWS / 4, "{woken} threads for each change");
    // What all see comes to those that have slept.
    let time = 2 + CHANGES;
    host.update(NAMES.0, 0, vec![(row(&[5, 105]), time, -1), (row(&[5, 205]), time, 1)]);
    host.advance(time + 1);
    for tenant in 1..=VIEWS {
        let own = (2..2 + CHANGES).filter(|time| 1 + time % 3 == tenant);
        let fifth = own.clone().filter(|time| time % 10 == 5).count();
        assert_eq!(host.rows(tenant).values().sum::<i64>(), own.count() as i64, "{tenant}");
        let changed = host.rows(tenant).get(&row(&[5, 205])).copied().unwrap_or(0);
        assert_eq!(changed, fifth as i64, "tenant {tenant}");
    }
}

#[test]
fn rows_that_do_not_meet_a_condition_are_neither_kept_nor_worth_waking_for() {
    let _alone = alone();
    let mut host = Host::new(1);
    host.create(1, &of_tenant(1), 1);
    host.update(1, 1, (0..10).map(|item| (row(&[item, 100 + item]), 1, 1)).collect());
    host.update(1, 0, (0..200_000).map(|i| (row(&[2 + i % 7, i]), 1, 1)).collect());
    host.advance(2);
    let kept = host.engine.stats(DataflowId(1)).state_bytes;
    assert!(kept < 1 << 20, "{kept} bytes");
    let before = times_asleep();
    for time in 2..200 {
        host.update(1, 0, vec![(row(&[7, time as i64]), time, 1)]);
        host.advance(time + 1);
    }
    let woken = times_asleep() - before;
    assert!(woken < 50, "woken {woken} times");
    host.update(1, 0, vec![(row(&[1, 3]), 200, 1), (row(&[2, 3]), 200, 1)]);
    host.advance(201);
    assert_eq!(host.rows(1), [(row(&[3, 103]), 1)].into());
    host.engine.truncate(DataflowId(1), SourceId(0), 201);
    host.update(1, 0, vec![(row(&[1, 4]), 202, 1), (row(&[3, 3]), 202, 1)]);
    host.advance(203);
    assert_eq!(host.rows(1), [(row(&[4, 104]), 1)].into());
}

#[test]
fn what_is_there_without_rows_is_put_out_before_it_may_sleep() {
    let _alone = alone();
    let joined = of_tenant(7);
    let count = Aggregate { func: AggregateFunc::Count, arg: None };
    let root = Plan::Reduce { input: Box::new(joined.root), key: vec![], aggregates: vec![count] };
    let plan = view(&[2, 2], root, 1);
    let read = |source, key, index| Read { source: SourceId(source), key: vec![key], index };
    for _ in 0..100 {
        let mut host = Host::new(1);
        host.engine.create_index(BY_TENANT, &index(&plan, 0, 1), &[], 1);
        host.engine.create_index(NAMES, &index(&plan, 1, 0), &[], 1);
        host.update(BY_TENANT.0, 0, vec![(row(&[1, 1]), 1, 1)]);
        let reads = [read(0, 1, BY_TENANT), read(1, 0, NAMES)];
        host.engine.create_reading(DataflowId(1), (&plan, Form::of(&plan)), &reads, 1);
        host.advance(2);
        assert_eq!(host.rows(1), [(row(&[0]), 1)].into());
    }
}

#[test]
fn who_has_slept_sees_what_concerns_it() {
    let _alone = alone();
    let mut host = host();
    for time in 2..200 {
        // Sometimes right after the one before, sometimes after it was woken in between.
        change(&mut host, if time % 70 == 5 { 7 } else { 1 }, time);
    }
    assert_eq!(host.output(7).oks.keys().copied().collect::<Vec<_>>(), [5, 75, 145]);
    // What all see.
    host.update(NAMES.0, 0, vec![(row(&[5, 105]), 200, -1), (row(&[5, 205]), 200, 1)]);
    host.advance(201);
    assert_eq!(host.rows(7), [(row(&[5, 205]), 3)].into());
    let woken: Vec<u64> =
        (1..=VIEWS).filter(|id| host.output(*id).oks.contains_key(&200)).collect();
    assert_eq!(woken, [1, 7]);
}

#[test]
fn what_a_view_above_is_told_goes_through_the_one_beneath() {
    let _alone = alone();
    let mut host = host();
    for time in 2..20 {
        change(&mut host, 1, time);
    }
    let above = view(&[2], map(source(0), project(2, &[1, 0])), 2);
    host.create(500, &above, 20);
    let input = (DataflowId(500), SourceId(0));
    host.engine.connect(DataflowId(7), input, vec![0, 1], &Vec::new());
    for time in 20..100 {
        change(&mut host, if time % 30 == 0 { 7 } else { 1 }, time);
        assert_eq!(host.frontiers.get(&DataflowId(500)), Some(&(time + 1)));
    }
    assert_eq!(host.output(500).oks.keys().copied().collect::<Vec<_>>(), [30, 60, 90]);
}
