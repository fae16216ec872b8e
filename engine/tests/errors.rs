//! Errors are data: they come and go with the rows that raise them, and there are never more of them than were raised.

mod common;

use common::plans::*;
use common::{config, Delta, Host};
use engine::{Config, DataflowId, Engine, Spill, Time};
use plan::error::DataError;
use plan::expr::Expr;
use plan::func::{Arithmetic, Blanks, Comparison, Func, Number};
use plan::value::Datum;
use plan::{LocalId, Mfp, Plan, Recursion, ViewPlan};

/// Both columns and `10 / column`, which fails where that is 0.
fn divide(input: Plan, column: usize) -> Plan {
    let ten = Expr::Literal(Datum::Int8(10), BIGINT);
    let args = vec![ten, col(column)];
    let quotient = Expr::Call { func: Func::Arithmetic(Arithmetic::Divide, Number::Int8), args };
    map(input, Mfp { input_arity: 2, maps: vec![quotient], filter: vec![], project: vec![0, 2] })
}

fn bind(id: usize, value: Plan, body: Plan) -> Plan {
    Plan::Let { id: LocalId(id), value: Box::new(value), body: Box::new(body) }
}

/// Each of `levels` names stands for rows made of those of the name before, which is used five times, as in a view with
/// many correlated subqueries: twice in joins, in a set operation, in the values that have partners.
fn tower(levels: usize) -> ViewPlan {
    let level = |id: usize| {
        let values = || distinct(map(get(id), project(2, &[0])));
        let joined = join((get(id), 0), (values(), 0), project(3, &[0, 1]));
        let rest = Plan::Negate { input: Box::new(map(get(id), project(2, &[0, 1]))) };
        union(vec![joined, get(id), join((rest, 0), (values(), 0), project(3, &[0, 1]))])
    };
    let root = (0..levels).rev().fold(get(levels), |body, id| bind(id + 1, level(id), body));
    view(&[2], bind(0, divide(source(0), 1), root), 2)
}

/// What can be said of an engine however it works.
fn engines() -> Vec<Host> {
    let directory = std::env::temp_dir().join("eddy-errors");
    let on_disk = Some(Spill { directory, above: 0, limit: u64::MAX });
    [(1, None), (2, None), (1, on_disk.clone()), (2, on_disk)]
        .map(|(workers, spill)| Host::with(Config { spill, ..config(workers) }))
        .into()
}

fn errors(host: &Host, time: Time) -> Delta<DataError> {
    host.output(1).at(time).1
}

/// How many errors there are after each step: of a row in error that comes, comes again, goes and goes.
fn counts(host: &mut Host, plan: &ViewPlan, source: usize, bad: &[i64]) -> Vec<i64> {
    host.engine.create_spilling_dataflow(DataflowId(1), plan, 1);
    let bad = row(bad);
    let steps = [1, 1, -1, -1, 2, -2];
    let counts = steps.into_iter().zip(2..).map(|(diff, time)| {
        host.update(1, source, vec![(bad.clone(), time, diff)]);
        host.advance(time + 1);
        let errors = errors(host, time);
        assert!(errors.len() <= 1, "{errors:?}");
        errors.values().sum()
    });
    counts.collect()
}

#[test]
fn an_error_is_counted_once_however_often_its_collection_is_used() {
    for mut host in engines() {
        host.update(1, 0, vec![]);
        assert_eq!(counts(&mut host, &tower(40), 0, &[3, 0]), [1, 2, 1, 0, 2, 0]);
        // What is not in error was not disturbed, and is not now.
        host.update(1, 0, vec![(row(&[1, 5]), 20, 1)]);
        host.advance(21);
        assert_eq!(host.rows(1), [(row(&[1, 2]), 1)].into());
    }
}

#[test]
fn errors_of_several_operators_add_up() {
    // The second division fails for the same row, where it gets it from a branch of its own.
    let both = join((divide(source(0), 1), 0), (divide(source(0), 1), 0), project(3, &[0, 1]));
    for mut host in engines() {
        assert_eq!(counts(&mut host, &view(&[2], both.clone(), 2), 0, &[3, 0]), [2, 4, 2, 0, 4, 0]);
    }
}

/// A loop around a shared value in error, and within one.
#[test]
fn errors_of_what_is_used_in_a_loop_are_counted_once() {
    let forms = [
        Recursion::FixpointDistinct,
        Recursion::WorkingTableAll,
        Recursion::WorkingTableDistinct { key: vec![col(0)] },
    ];
    for form in forms {
        // Source 0 are edges, of which each is used by every iteration; 3 -> 0 is in error.
        let step = join((get(1), 0), (get(0), 0), project(3, &[2]));
        let reach = letrec(1, form, source(1), step, get(1));
        let twice = bind(2, reach, union(vec![get(2), distinct(get(2))]));
        let plan = view(&[2, 1], bind(0, divide(source(0), 1), twice), 1);
        for mut host in engines() {
            host.create(1, &plan, 1);
            host.engine.create_spilling_dataflow(DataflowId(1), &plan, 1);
            let edges = [(1, 5), (2, 2), (5, 3)].map(|(a, b)| (row(&[a, b]), 1, 1));
            host.update(1, 0, edges.into());
            host.update(1, 1, vec![(row(&[1]), 1, 1)]);
            host.advance(2);
            assert_eq!(errors(&host, 1), Delta::new());
            host.update(1, 0, vec![(row(&[3, 0]), 2, 1)]);
            host.advance(3);
            assert_eq!(errors(&host, 2).values().sum::<i64>(), 1);
            host.update(1, 0, vec![(row(&[3, 0]), 3, -1)]);
            host.advance(4);
            assert_eq!(errors(&host, 3), Delta::new());
            assert_eq!(host.rows(1).len(), 4);
        }
    }
}

/// A condition on a computed column that may fail is tested first, also of rows that would not meet what stands behind it.
#[test]
fn a_condition_behind_one_that_fails_spares_no_row_the_error() {
    let compare = |comparison, column, value| Expr::Call {
        func: Func::Compare(comparison, Blanks::Significant),
        args: vec![col(column), Expr::Literal(Datum::Int8(value), BIGINT)],
    };
    let Plan::Mfp { mfp: Mfp { maps, .. }, .. } = divide(source(0), 0) else { unreachable!() };
    let filter = vec![compare(Comparison::Ge, 2, 0), compare(Comparison::Eq, 1, 5)];
    let plan = view(&[2], map(source(0), Mfp { maps, filter, ..project(2, &[1]) }), 1);
    for mut host in engines() {
        host.create(1, &plan, 1);
        host.update(1, 0, vec![(row(&[0, 4]), 1, 1), (row(&[1, 5]), 1, 1)]);
        host.advance(2);
        assert_eq!(errors(&host, 1).values().sum::<i64>(), 1);
        host.update(1, 0, vec![(row(&[0, 4]), 2, -1)]);
        host.advance(3);
        assert_eq!(errors(&host, 2), Delta::new());
        assert_eq!(host.rows(1), [(row(&[5]), 1)].into());
    }
}
