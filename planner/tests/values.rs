//! Rows, comparisons and expressions at the level of the crate's interface.

use planner::expr::Expr;
use planner::func;
use planner::plan::Mfp;
use planner::row::Row;
use planner::types::{Scalar, Type};
use planner::value::{format_datum, parse_literal, Datum};

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
    for text in [r#"{a,"NULL","b c","","\"\\"}"#] {
        let ty = Type::Array(Scalar::Text);
        assert_eq!(format_datum(&value(text, ty), ty), text);
    }
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
