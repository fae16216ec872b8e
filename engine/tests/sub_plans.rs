//! Sub-plans: which parts of plans are the same whatever is around them, and what becomes of errors in what is kept of them.

mod common;

use common::plans::*;
use common::Host;
use engine::{sub_plans, DataflowId, Engine, Form, Index, Read, StopReason, SubPlan};
use plan::aggregate::AggregateFunc;
use plan::expr::Expr;
use plan::func::{Arithmetic, Blanks, Comparison, Func, Number};
use plan::types::{Scalar, Type};
use plan::value::Datum;
use plan::{Aggregate, Mfp, Plan, Recursion, SourceId, ViewPlan};

const INT8: Type = Type::Scalar(Scalar::Int8);

/// How often each value of a column comes.
fn counts(input: Plan) -> Plan {
    let count = Aggregate { func: AggregateFunc::Count, arg: None };
    Plan::Reduce { input: Box::new(input), key: vec![col(0)], aggregates: vec![count] }
}

/// The quotient of the two columns of a source.
fn quotients() -> Plan {
    let divide = Func::Arithmetic(Arithmetic::Divide, Number::Int8);
    let maps = vec![Expr::Call { func: divide, args: vec![col(0), col(1)] }];
    map(source(0), Mfp { input_arity: 2, maps, filter: vec![], project: vec![2] })
}

/// The rows of which the first column is less than the second one.
fn ascending(input: Plan) -> Plan {
    let less = Func::Compare(Comparison::Lt, Blanks::Significant);
    let filter = vec![Expr::Call { func: less, args: vec![col(0), col(1)] }];
    map(input, Mfp { input_arity: 2, maps: vec![], filter, project: vec![0, 1] })
}

/// The one sub-plan of a plan.
fn only(plan: &ViewPlan) -> SubPlan {
    let mut found = sub_plans(plan);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn a_sub_plan_is_the_same_whatever_is_around_it() {
    let step = || join((get(3), 1), (source(1), 0), project(4, &[0, 3]));
    let paths = |body| letrec(3, Recursion::FixpointDistinct, source(1), step(), body);
    let one = only(&view(&[2, 2], paths(ascending(get(3))), 2));
    assert_eq!(one.sources, [(SourceId(1), vec![0, 1])]);
    assert_eq!(one.plan.columns.iter().map(|column| column.ty).collect::<Vec<_>>(), [INT8; 2]);

    // A source with another number that has more columns, another name, another body.
    let edges = || map(source(0), project(3, &[0, 2]));
    let step = join((get(1), 1), (edges(), 0), project(4, &[0, 3]));
    let mut other = view(
        &[3],
        letrec(1, Recursion::FixpointDistinct, edges(), step, union(vec![get(1), get(1)])),
        2,
    );
    other.sources[0].table = one.plan.sources[0].table.clone();
    other.sources[0].columns = vec![0, 7, 1];
    other.sources[0].schema[2].name = "c1".into();
    let other = only(&other);
    assert_eq!(other.plan, one.plan);
    assert_eq!(other.sources, [(SourceId(0), vec![0, 2])]);
}

#[test]
fn what_depends_on_a_name_around_it_is_no_sub_plan() {
    let step = join((distinct(get(0)), 1), (source(0), 0), project(4, &[0, 3]));
    let plan = view(&[2], letrec(0, Recursion::FixpointAll, source(0), step, get(0)), 2);
    assert!(matches!(only(&plan).plan.root, Plan::LetRec { .. }));
}

#[test]
fn what_is_made_of_a_recursion_is_a_sub_plan_with_it() {
    let step = join((get(0), 1), (source(0), 0), project(4, &[0, 3]));
    let paths = |body| letrec(0, Recursion::FixpointDistinct, source(0), step.clone(), body);
    let plan = view(&[2], paths(union(vec![counts(get(0)), ascending(get(0))])), 2);
    let found = sub_plans(&plan);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].plan.root, paths(counts(get(0))), "the larger one is the first");
    assert_eq!(found[1].plan.root, paths(get(0)));

    let (reader, kept) = found[0].read_by(&plan).unwrap();
    assert_eq!(reader.root, paths(union(vec![Plan::Source(kept), ascending(get(0))])));
    let plan = view(&[2], paths(ascending(counts(get(0)))), 2);
    let (reader, kept) = sub_plans(&plan)[0].read_by(&plan).unwrap();
    assert_eq!(reader.root, ascending(Plan::Source(kept)), "nobody needs the paths");
}

#[test]
fn what_reads_a_sub_plan_has_its_source_in_all_its_places() {
    let plan =
        view(&[2], union(vec![ascending(distinct(source(0))), distinct(source(0)), source(0)]), 2);
    let (reader, source) = only(&plan).read_by(&plan).unwrap();
    assert_eq!(source, SourceId(1));
    let read = || Plan::Source(source);
    assert_eq!(reader.root, union(vec![ascending(read()), read(), Plan::Source(SourceId(0))]));
    assert!(only(&plan).read_by(&reader).is_none(), "nothing is left of it");
}

/// Two dataflows that read what a sub-plan of one source puts out.
fn read_by_two(host: &mut Host, plan: &ViewPlan) {
    let part = only(plan);
    let (reader, source) = part.read_by(plan).unwrap();
    let index = Index::of_sub_plan(&part, Form::of(plan).and(Form::of(&reader)));
    host.engine.create_index(DataflowId(1), &index, &[], 1);
    let read = Read { source, key: vec![], index: DataflowId(1) };
    for name in [2, 3] {
        let read = [read.clone()];
        host.engine.create_reading(DataflowId(name), (&reader, index.form), &read, 1);
    }
}

#[test]
fn an_error_in_what_is_kept_stops_its_readers_before_they_put_anything_out() {
    let mut host = Host::new(1);
    read_by_two(&mut host, &view(&[2], counts(quotients()), 2));
    host.update(1, 0, vec![(row(&[6, 2]), 1, 1), (row(&[7, 2]), 1, 1)]);
    host.advance(2);
    let counted = [(row(&[3, 2]), 1)].into();
    assert_eq!(host.rows(2), counted);
    // What comes and goes at once is no error.
    host.update(1, 0, vec![(row(&[1, 0]), 2, 1), (row(&[1, 0]), 2, -1)]);
    host.advance(3);
    assert!(host.stopped.is_empty(), "{:?}", host.stopped);

    host.update(1, 0, vec![(row(&[1, 0]), 3, 1), (row(&[8, 2]), 3, 1)]);
    host.engine.advance(4);
    host.wait(|host| host.stopped.len() == 3);
    for name in [1, 2, 3] {
        let reason = host.stopped.get(&DataflowId(name));
        assert!(matches!(reason, Some(StopReason::Raised(_))), "{name}: {reason:?}");
    }
    assert_eq!(host.rows(2), counted, "nothing of that time has come out");
    assert_eq!(host.rows(3), counted);
}

#[test]
fn a_recursion_that_is_kept_stops_its_readers_at_its_limit() {
    let mut host = Host::new(1);
    let zero = Expr::Literal(Datum::Int8(0), INT8);
    let one = Expr::Literal(Datum::Int8(1), INT8);
    let add = Func::Arithmetic(Arithmetic::Add, Number::Int8);
    let maps = vec![Expr::Call { func: add, args: vec![col(0), one] }];
    let greater = Func::Compare(Comparison::Gt, Blanks::Significant);
    let filter = vec![Expr::Call { func: greater, args: vec![col(0), zero] }];
    let step = map(get(0), Mfp { input_arity: 1, maps, filter, project: vec![1] });
    let growing = letrec(0, Recursion::FixpointDistinct, source(0), step, get(0));
    read_by_two(&mut host, &view(&[1], growing, 1));
    host.update(1, 0, vec![(row(&[0]), 1, 1)]);
    host.advance(2);
    assert_eq!(host.rows(2), [(row(&[0]), 1)].into());
    host.update(1, 0, vec![(row(&[1]), 2, 1)]);
    host.engine.advance(3);
    host.wait(|host| host.stopped.len() == 3);
    let is_limit = |reason: &StopReason| matches!(reason, StopReason::RecursionLimit { .. });
    assert!(host.stopped.values().all(is_limit), "{:?}", host.stopped);
    assert_eq!(host.rows(2), [(row(&[0]), 1)].into());
}
