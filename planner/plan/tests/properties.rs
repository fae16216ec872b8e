//! What holds for all values: encoding is lossless, key forms agree with SQL equality, accumulation
//! can be undone.

mod common;

use common::Random;
use plan::aggregate::Accum;
use plan::compare::{cmp_as, key_form};
use plan::error::DataError;
use plan::expr::Expr;
use plan::func::Func;
use plan::naive;
use plan::row::Row;
use plan::text::{format_datum, parse_literal};
use plan::types::{Scalar, Type};
use plan::value::Datum;
use plan::{Aggregate, AggregateFunc, Plan, Regression, Spread, ViewPlan};

#[test]
fn rows_are_equal_as_bytes_iff_their_values_are_identical() {
    let mut random = Random::seeded();
    for _ in 0..20_000 {
        let types: Vec<Type> = (0..random.below(4)).map(|_| random.ty()).collect();
        let mut row = || types.iter().map(|ty| random.datum(*ty)).collect::<Vec<Datum>>();
        let (a, b) = (row(), row());
        assert_eq!(Row::pack(&a).unpack(), a);
        assert_eq!(Row::pack(&a) == Row::pack(&b), a == b);
    }
}

#[test]
fn key_forms_are_identical_iff_values_are_equal_in_sql() {
    let mut random = Random::seeded();
    let mut equal = 0;
    for _ in 0..100_000 {
        let ty = random.ty();
        let (a, b) = (random.datum(ty), random.datum(ty));
        let key = |value: &Datum| {
            let key = Expr::Column(0).key_form(ty).eval(std::slice::from_ref(value)).unwrap();
            assert_eq!(key, key_form(value, ty.base() == Scalar::Char));
            Row::pack(&[key])
        };
        let same = cmp_as(ty, &a, &b).is_eq();
        equal += usize::from(same);
        assert_eq!(key(&a) == key(&b), same, "{ty}: {a:?} {b:?}");
        assert_eq!(cmp_as(ty, &a, &b), cmp_as(ty, &b, &a).reverse());
    }
    assert!(equal > 1_000, "{equal} pairs");
}

#[test]
fn no_text_makes_an_input_function_panic() {
    let mut random = Random::seeded();
    let pieces = [
        "1",
        "9",
        "0",
        "-",
        "+",
        ".",
        "e",
        "x",
        "0x",
        "p",
        "{",
        "}",
        ",",
        "\"",
        "\\",
        "[",
        "]=",
        ":",
        " ",
        "2024",
        "-01-31",
        " 24:00",
        "4294967295",
        "99999999999999999999",
        "BC",
        "NaN",
        "inf",
        "é",
        "Z",
    ];
    for _ in 0..200_000 {
        let text: String = (0..random.below(7)).map(|_| random.pick(&pieces)).collect();
        let ty = random.ty();
        if let Ok(value) = parse_literal(&text, ty, -1) {
            let printed = format_datum(&value, ty);
            assert_eq!(parse_literal(&printed, ty, -1), Ok(value), "{ty} {text:?}");
        }
    }
}

/// An aggregate and the type of its argument.
fn any_aggregate(random: &mut Random) -> (AggregateFunc, Type) {
    if random.below(3) == 0 {
        let regression = random.pick(&Regression::ALL);
        return (AggregateFunc::Regression(regression), Type::Array(Scalar::Float8));
    }
    let (func, ty) = random.pick(&AGGREGATES);
    (func, ty.into())
}

/// An argument: of an aggregate of pairs a pair.
fn argument(random: &mut Random, ty: Type) -> Datum {
    match ty {
        Type::Scalar(_) => random.datum(ty),
        Type::Array(element) => {
            let pair = [random.datum(element.into()), random.datum(element.into())];
            Func::Pair.call(&pair.each_ref()).unwrap()
        }
    }
}

const AGGREGATES: [(AggregateFunc, Scalar); 24] = [
    (AggregateFunc::Count, Scalar::Text),
    (AggregateFunc::SumInt, Scalar::Int4),
    (AggregateFunc::SumInt8, Scalar::Int8),
    (AggregateFunc::SumNumeric, Scalar::Numeric),
    (AggregateFunc::SumFloat4, Scalar::Float4),
    (AggregateFunc::SumFloat8, Scalar::Float8),
    (AggregateFunc::AvgInt, Scalar::Int8),
    (AggregateFunc::AvgNumeric, Scalar::Numeric),
    (AggregateFunc::AvgFloat, Scalar::Float4),
    (AggregateFunc::AvgFloat, Scalar::Float8),
    (AggregateFunc::BoolAnd, Scalar::Bool),
    (AggregateFunc::BoolOr, Scalar::Bool),
    (AggregateFunc::BitAnd(Type::Scalar(Scalar::Int2)), Scalar::Int2),
    (AggregateFunc::BitAnd(Type::Scalar(Scalar::Int8)), Scalar::Int8),
    (AggregateFunc::BitOr(Type::Scalar(Scalar::Int4)), Scalar::Int4),
    (AggregateFunc::BitXor(Type::Scalar(Scalar::Int4)), Scalar::Int4),
    (AggregateFunc::BitXor(Type::Scalar(Scalar::Int8)), Scalar::Int8),
    (AggregateFunc::SpreadInt(Spread::VarPop), Scalar::Int2),
    (AggregateFunc::SpreadInt(Spread::StddevSamp), Scalar::Int8),
    (AggregateFunc::SpreadNumeric(Spread::VarSamp), Scalar::Numeric),
    (AggregateFunc::SpreadNumeric(Spread::StddevPop), Scalar::Numeric),
    (AggregateFunc::SpreadFloat(Spread::VarPop), Scalar::Float4),
    (AggregateFunc::SpreadFloat(Spread::StddevPop), Scalar::Float8),
    (AggregateFunc::SpreadFloat(Spread::StddevSamp), Scalar::Float8),
];

#[test]
fn taking_rows_away_undoes_adding_them() {
    let mut random = Random::seeded();
    for round in 0..20_000 {
        let (func, ty) = any_aggregate(&mut random);
        let mut rows = || (0..random.below(6)).map(|_| argument(&mut random, ty)).collect();
        let (rows, noise): (Vec<Datum>, Vec<Datum>) = (rows(), rows());
        let mut direct = Accum::zero(func);
        for row in &rows {
            direct.plus_equals(&Accum::of(func, Some(row), 1));
        }
        let mut detour = Accum::zero(func);
        for row in noise.iter().chain(rows.iter().rev()) {
            detour.plus_equals(&Accum::of(func, Some(row), 2));
        }
        for row in noise.iter().chain(&rows) {
            detour.plus_equals(&Accum::of(func, Some(row), -1));
        }
        for row in &noise {
            let mut accum = Accum::of(func, Some(row), 1);
            accum.negate();
            detour.plus_equals(&accum);
        }
        assert_eq!(direct, detour, "{func:?} round {round}");
        assert_eq!(direct.finish(func), detour.finish(func));
        let mut zero = direct.clone();
        zero.negate();
        zero.plus_equals(&direct);
        assert!(zero.is_zero() && zero == Accum::zero(func));
    }
}

/// The aggregate of some values, computed from all of them at once.
fn from_scratch(func: AggregateFunc, values: &[Datum]) -> Result<Datum, DataError> {
    let rows = values.iter().map(|value| (Row::pack([value]), 1)).collect();
    let arg = Some(Expr::Column(0));
    let root = Plan::Reduce {
        input: Box::new(Plan::Constant { arity: 1, rows }),
        key: vec![],
        aggregates: vec![Aggregate { func, arg }],
    };
    let plan = ViewPlan { sources: vec![], root, columns: vec![], key: None, locals: vec![] };
    let (oks, errs) = naive::evaluate(&plan, &[], 1).unwrap();
    match (oks.into_keys().next(), errs.into_keys().next()) {
        (Some(row), _) => Ok(row.unpack().remove(0)),
        (None, error) => Err(error.unwrap()),
    }
}

#[test]
fn accumulations_finish_with_what_the_rows_give_at_once() {
    let mut random = Random::seeded();
    for round in 0..3_000 {
        let (func, ty) = any_aggregate(&mut random);
        let rows: Vec<Datum> = (0..random.below(7)).map(|_| argument(&mut random, ty)).collect();
        let mut accum = Accum::zero(func);
        for row in &rows {
            accum.plus_equals(&Accum::of(func, Some(row), 1));
        }
        // A sum of negative zeros has a sign of its own, which the evaluator does not know.
        let is_zero =
            |value: &Result<Datum, _>| matches!(value, Ok(value) if value.as_f64() == Some(0.0));
        let (ours, theirs) = (accum.finish(func), from_scratch(func, &rows));
        if !(is_zero(&ours) && is_zero(&theirs)) {
            assert_eq!(ours, theirs, "{func:?} round {round} {rows:?}");
        }
    }
}

#[test]
fn spreads_of_floats_are_rounded_once() {
    let spread = |spread, values: &[f64]| {
        let func = AggregateFunc::SpreadFloat(spread);
        let mut accum = Accum::zero(func);
        for value in values {
            accum.plus_equals(&Accum::of(func, Some(&Datum::Float8(*value)), 1));
        }
        accum.finish(func)
    };
    let float = |value| Ok(Datum::Float8(value));
    assert_eq!(spread(Spread::VarPop, &[1e15 + 0.25, 1e15 + 0.75]), float(0.0625));
    assert_eq!(spread(Spread::VarPop, &[0.1; 7]), float(0.0));
    assert_eq!(spread(Spread::VarPop, &[5.0]), float(0.0));
    assert_eq!(spread(Spread::VarSamp, &[5.0]), Ok(Datum::Null));
    assert_eq!(spread(Spread::StddevSamp, &[f64::NAN]), Ok(Datum::Null));
    assert_eq!(spread(Spread::VarPop, &[f64::INFINITY]), float(f64::NAN));
    assert_eq!(spread(Spread::StddevPop, &[]), Ok(Datum::Null));
    assert_eq!(spread(Spread::StddevPop, &[f64::MAX, -f64::MAX]), float(f64::MAX));
    assert_eq!(spread(Spread::StddevPop, &[5e-324, 15e-324]), float(5e-324));
    assert_eq!(spread(Spread::StddevPop, &[1.0, 2.0]), float(0.5));
    assert_eq!(spread(Spread::StddevSamp, &[1.0, 2.0]), float(0.5f64.sqrt()));
    let overflow = spread(Spread::VarPop, &[f64::MAX, 0.0]).unwrap_err();
    assert_eq!(overflow.message, "value out of range: overflow");
}

#[test]
fn a_figure_of_nothing_but_zeros_is_zero_at_every_scale() {
    let pair = |y, x| Func::Pair.call(&[&Datum::Float8(y), &Datum::Float8(x)]).unwrap();
    for regression in [Regression::Slope, Regression::Intercept, Regression::Sxy] {
        let func = AggregateFunc::Regression(regression);
        let mut accum = Accum::of(func, Some(&pair(0.0, 5e-324)), 1);
        accum.add(Some(&pair(0.0, 0.0)), 1);
        assert_eq!(accum.finish(func), Ok(Datum::Float8(0.0)), "{regression:?}");
    }
}

#[test]
fn sums_of_floats_are_rounded_once() {
    let sum = |func, values: &[f64]| {
        let mut accum = Accum::zero(func);
        for value in values {
            accum.plus_equals(&Accum::of(func, Some(&Datum::Float8(*value)), 1));
        }
        accum.finish(func)
    };
    let sum8 = |values: &[f64]| sum(AggregateFunc::SumFloat8, values).unwrap();
    assert_eq!(sum8(&[1e300, 1.0, -1e300]), Datum::Float8(1.0));
    assert_eq!(sum8(&[0.1; 10]), Datum::Float8(1.0));
    assert_eq!(sum8(&[5e-324, 5e-324]), Datum::Float8(1e-323));
    assert_eq!(sum8(&[-0.0, -0.0]), Datum::Float8(-0.0));
    assert_eq!(sum8(&[-0.0, 0.0]), Datum::Float8(0.0));
    assert_eq!(sum8(&[]), Datum::Null);
    assert_eq!(sum8(&[f64::INFINITY, f64::NEG_INFINITY]), Datum::Float8(f64::NAN));
    assert_eq!(sum8(&[f64::MAX, f64::MAX, -f64::MAX]), Datum::Float8(f64::MAX));
    let overflow = sum(AggregateFunc::SumFloat8, &[f64::MAX, f64::MAX]).unwrap_err();
    assert_eq!(overflow.message, "value out of range: overflow");
    for value in [1.5, f64::MIN_POSITIVE, 4.9e-324, 1e-310, f64::MAX, -1.0 / 3.0] {
        assert_eq!(sum8(&[value]), Datum::Float8(value));
    }
    let third = 1.0f32 / 3.0;
    let sum4 = sum(AggregateFunc::SumFloat4, &[f64::from(third)]).unwrap();
    assert_eq!(sum4, Datum::Float4(third));
}
