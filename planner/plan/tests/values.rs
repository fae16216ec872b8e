//! Rows, comparisons and expressions at the level of the crate's interface.

use plan::expr::Expr;
use plan::func;
use plan::row::Row;
use plan::text::{format_datum, parse_literal};
use plan::types::{Scalar, Type};
use plan::value::Datum;
use plan::Mfp;

const INT4: Type = Type::Scalar(Scalar::Int4);

fn value(text: &str, ty: Type) -> Datum {
    parse_literal(text, ty, -1).unwrap()
}

#[test]
fn rows_decode_to_the_values_encoded() {
    let samples = [
        (Scalar::Bool, vec!["t", "f"]),
        (Scalar::Int2, vec!["-32768", "7"]),
        (Scalar::Int4, vec!["-2147483648", "7"]),
        (Scalar::Int8, vec!["-9223372036854775808", "7"]),
        (Scalar::Float4, vec!["1.5", "-0", "NaN", "Infinity"]),
        (Scalar::Float8, vec!["1.5", "-0", "NaN", "-Infinity", "1e+300"]),
        (
            Scalar::Numeric,
            vec![
                "0",
                "1.50",
                "-9223372036854775808",
                "123456789012345678901234.5",
                "NaN",
                "-Infinity",
            ],
        ),
        (Scalar::Text, vec!["", "häß", "a longer text than fits in a row inline"]),
        (Scalar::Date, vec!["2024-02-29", "infinity", "0044-03-15 BC"]),
        (Scalar::Timestamp, vec!["1999-12-31 23:59:59.000001", "-infinity"]),
        (Scalar::Timestamptz, vec!["2024-02-29 12:00:00.5+00"]),
        (Scalar::Uuid, vec!["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
        (Scalar::Bytea, vec!["\\x", "\\x00ff10"]),
    ];
    for (scalar, texts) in samples {
        let values: Vec<Datum> = texts.iter().map(|text| value(text, scalar.into())).collect();
        let mut columns = values.clone();
        columns.push(Datum::Null);
        columns.push(Datum::array(values.clone()));
        assert_eq!(Row::pack(&columns).unpack(), columns);
        let printed: Vec<String> =
            values.iter().map(|value| format_datum(value, scalar.into())).collect();
        assert_eq!(printed, texts);
    }
}

#[test]
fn arrays_print_as_they_read() {
    for text in ["{}", "{1,NULL,3}", "[2:3]={1,2}"] {
        assert_eq!(format_datum(&value(text, Type::Array(Scalar::Int4)), INT4), text);
    }
    let texts = Type::Array(Scalar::Text);
    let text = r#"{a,"NULL","b c","","\"\\"}"#;
    assert_eq!(format_datum(&value(text, texts), texts), text);
}

fn division(left: usize, right: usize) -> Expr {
    let (func, _) = func::operator("/", &[INT4, INT4]).unwrap();
    Expr::Call { func, args: vec![Expr::Column(left), Expr::Column(right)] }
}

#[test]
fn maps_nobody_needs_raise_no_error() {
    let (not_zero, _) = func::operator("<>", &[INT4, INT4]).unwrap();
    let zero = Expr::Literal(Datum::Int4(0), INT4);
    let mfp = Mfp {
        input_arity: 2,
        maps: vec![division(0, 1)],
        filter: vec![Expr::Call { func: not_zero, args: vec![Expr::Column(1), zero] }],
        project: vec![2],
    };
    let eval = |a, b| mfp.eval(&[Datum::Int4(a), Datum::Int4(b)]);
    assert_eq!(eval(7, 0), Ok(None));
    assert_eq!(eval(7, 2), Ok(Some(Row::pack(&[Datum::Int4(3)]))));
    let unneeded = Mfp { filter: vec![], project: vec![0], ..mfp.clone() };
    assert!(unneeded.eval(&[Datum::Int4(1), Datum::Int4(0)]).is_ok());
    let needed = Mfp { filter: vec![], ..mfp.clone() };
    let error = needed.eval(&[Datum::Int4(1), Datum::Int4(0)]).unwrap_err();
    assert_eq!((error.sqlstate.as_str(), error.message.as_str()), ("22012", "division by zero"));
}

#[test]
fn expressions_print_like_sql() {
    let (plus, _) = func::operator("+", &[INT4, INT4]).unwrap();
    let sum = Expr::Call { func: plus, args: vec![Expr::Column(0), Expr::Column(1)] };
    let (times, _) = func::operator("*", &[INT4, INT4]).unwrap();
    let product = Expr::Call { func: times, args: vec![sum, Expr::Literal(Datum::Int4(2), INT4)] };
    let names = ["src".to_owned()];
    assert_eq!(product.with_names(&names).to_string(), "(src + #1) * 2");
}

fn boolean(value: Option<bool>) -> Expr {
    let value = value.map_or(Datum::Null, Datum::Bool);
    Expr::Literal(value, Scalar::Bool.into())
}

#[test]
fn connectives_have_three_values() {
    let all = [Some(true), Some(false), None];
    for a in all {
        let not = Expr::Not(Box::new(boolean(a))).eval(&[]).unwrap();
        assert_eq!(not, a.map_or(Datum::Null, |a| Datum::Bool(!a)));
        for b in all {
            let and = match (a, b) {
                (Some(false), _) | (_, Some(false)) => Datum::Bool(false),
                (Some(true), Some(true)) => Datum::Bool(true),
                _ => Datum::Null,
            };
            let or = match (a, b) {
                (Some(true), _) | (_, Some(true)) => Datum::Bool(true),
                (Some(false), Some(false)) => Datum::Bool(false),
                _ => Datum::Null,
            };
            let args = vec![boolean(a), boolean(b)];
            assert_eq!(Expr::And(args.clone()).eval(&[]).unwrap(), and);
            assert_eq!(Expr::Or(args).eval(&[]).unwrap(), or);
        }
    }
}

#[test]
fn what_is_not_needed_is_not_evaluated() {
    let columns = [Datum::Int4(1), Datum::Int4(0)];
    let fails = || division(0, 1);
    let fails_as_bool = || Expr::IsNull(Box::new(fails()));
    assert!(fails().eval(&columns).is_err());
    let eval = |expr: Expr| expr.eval(&columns).unwrap();
    let no = boolean(Some(false));
    assert_eq!(eval(Expr::And(vec![no.clone(), fails_as_bool()])), Datum::Bool(false));
    assert_eq!(eval(Expr::Or(vec![boolean(Some(true)), fails_as_bool()])), Datum::Bool(true));
    assert_eq!(eval(Expr::Coalesce(vec![Expr::Column(0), fails()])), Datum::Int4(1));
    let otherwise = Box::new(Expr::Column(0));
    let case = Expr::Case { branches: vec![(no, fails())], otherwise };
    assert_eq!(eval(case), Datum::Int4(1));
}

#[test]
fn projecting_rows_picks_their_encoded_columns() {
    let texts = ["a", "häß and a good deal longer than the inline buffer of a row"];
    let mut left: Vec<Datum> = texts.map(Datum::text).to_vec();
    left.push(Datum::Null);
    left.push(value("123456789012345678901234567890.5", Scalar::Numeric.into()));
    let right = [Datum::Int8(-5), value("{1,NULL,3}", Type::Array(Scalar::Int4))];
    let rows = [&Row::pack(&left), &Row::pack(&right)];
    let columns: Vec<Datum> = left.iter().chain(&right).cloned().collect();
    for project in [vec![], vec![5, 0, 3, 3], vec![1, 2, 4], (0..6).collect()] {
        let expected = Row::pack(project.iter().map(|index| &columns[*index]));
        assert_eq!(Row::project(&rows, &project), expected);
    }
}

#[test]
fn literals_survive_json() {
    for text in ["NaN", "-Infinity", "-0", "0.1", "5e-324"] {
        let literal = value(text, Scalar::Float8.into());
        let json = serde_json::to_string(&literal).unwrap();
        assert_eq!(serde_json::from_str::<Datum>(&json).unwrap(), literal);
    }
    let big = value("123456789012345678901234567890.5", Scalar::Numeric.into());
    let json = serde_json::to_string(&big).unwrap();
    assert_eq!(serde_json::from_str::<Datum>(&json).unwrap(), big);
}
