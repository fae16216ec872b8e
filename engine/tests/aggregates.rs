//! Groups that come and go, the group that never goes, and errors that heal.

mod common;

use common::plans::*;
use common::{Delta, Host};
use plan::error::DataError;
use plan::expr::Expr;
use plan::func::{Arithmetic, Func, Number};
use plan::row::Row;
use plan::types::Scalar;
use plan::value::Datum;
use plan::{Aggregate, AggregateFunc, Mfp, Plan};

fn reduce(key: Vec<Expr>, aggregates: Vec<(AggregateFunc, Option<Expr>)>) -> Plan {
    let aggregates = aggregates.into_iter().map(|(func, arg)| Aggregate { func, arg });
    Plan::Reduce { input: Box::new(source(0)), key, aggregates: aggregates.collect() }
}

fn one(values: &[Datum]) -> Delta<Row> {
    [(Row::pack(values), 1)].into()
}

#[test]
fn the_global_group_is_there_without_rows() {
    use AggregateFunc as A;
    let cases = [
        vec![(A::Count, None)],
        vec![(A::Min(BIGINT), Some(col(0)))],
        vec![(A::Any, Some(col(0))), (A::Count, Some(col(0))), (A::Max(BIGINT), Some(col(0)))],
        vec![],
    ];
    for workers in [1, 2] {
        for aggregates in &cases {
            let empty: Vec<Datum> = aggregates
                .iter()
                .map(|(func, _)| if *func == A::Count { Datum::Int8(0) } else { Datum::Null })
                .collect();
            let full: Vec<Datum> = aggregates.iter().map(|_| Datum::Int8(1)).collect();
            let mut host = Host::new(workers);
            host.create(1, &view(&[1], reduce(vec![], aggregates.clone()), 1), 5);
            host.advance(6);
            assert_eq!(host.output(1).oks.keys().copied().collect::<Vec<_>>(), vec![5]);
            assert_eq!(host.rows(1), one(&empty));
            host.update(1, 0, vec![(row(&[1]), 6, 1)]);
            host.advance(7);
            assert_eq!(host.rows(1), one(&full));
            host.update(1, 0, vec![(row(&[1]), 7, -1)]);
            host.advance(8);
            assert_eq!(host.rows(1), one(&empty));
        }
    }
}

#[test]
fn an_overflowing_sum_is_an_error_until_it_fits_again() {
    let cast = Expr::Call { func: Func::Cast(Scalar::Int8, Scalar::Int4), args: vec![col(1)] };
    let plan = reduce(vec![col(0)], vec![(AggregateFunc::SumInt, Some(cast))]);
    let mut host = Host::new(1);
    host.create(1, &view(&[2], plan, 2), 1);
    let copies = i64::from(i32::MAX);
    host.update(1, 0, vec![(row(&[1, copies]), 1, 2 * copies), (row(&[2, 5]), 1, 1)]);
    host.update(1, 0, vec![(row(&[1, copies]), 2, 10 * copies), (row(&[1, 1]), 3, 1)]);
    host.update(1, 0, vec![(row(&[1, copies]), 4, -10 * copies)]);
    host.advance(5);
    let output = host.output(1);
    let sum = 2 * copies * copies;
    assert_eq!(output.at(1).0, [(row(&[1, sum]), 1), (row(&[2, 5]), 1)].into());
    for time in [2, 3] {
        let (oks, errs) = output.at(time);
        assert_eq!(oks, [(row(&[2, 5]), 1)].into());
        assert_eq!(errs.keys().map(|e| e.sqlstate.as_str()).collect::<Vec<_>>(), vec!["22003"]);
    }
    let (oks, errs) = output.at(4);
    assert_eq!(oks, [(row(&[1, sum + 1]), 1), (row(&[2, 5]), 1)].into());
    assert_eq!(errs, Delta::<DataError>::new());
}

#[test]
fn a_division_by_zero_inside_a_loop_heals_with_its_cause() {
    let divide = Expr::Call {
        func: Func::Arithmetic(Arithmetic::Divide, Number::Int8),
        args: vec![Expr::Literal(Datum::Int8(60), BIGINT), col(2)],
    };
    for form in all_forms() {
        let closure =
            Mfp { input_arity: 3, maps: vec![divide.clone()], filter: vec![], project: vec![3] };
        let step = join((get(0), 0), (source(0), 0), closure);
        let plan = view(&[2, 1], letrec(0, form, source(1), step, get(0)), 1);
        let mut host = Host::new(1);
        host.create(1, &plan, 1);
        // 1 -> 60 / 20 = 3 -> 60 / 0
        host.update(1, 0, vec![(row(&[1, 20]), 1, 1), (row(&[3, 0]), 2, 1)]);
        host.update(1, 0, vec![(row(&[3, 0]), 3, -1), (row(&[3, 30]), 3, 1)]);
        host.update(1, 1, vec![(row(&[1]), 1, 1)]);
        host.advance(4);
        let output = host.output(1);
        assert_eq!(output.at(1), ([1, 3].map(|n| (row(&[n]), 1)).into(), Delta::new()));
        let errs = output.at(2).1;
        assert_eq!(errs.keys().map(|e| e.sqlstate.as_str()).collect::<Vec<_>>(), vec!["22012"]);
        assert_eq!(output.at(3), ([1, 3, 2].map(|n| (row(&[n]), 1)).into(), Delta::new()));
    }
}
