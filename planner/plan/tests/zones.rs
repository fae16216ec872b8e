//! What depends on a time zone against PostgreSQL's own answers, recorded in `zones.tsv` by `zones.sql`, with the rules of the
//! zones as PostgreSQL had them then.

use plan::error::DataError;
use plan::func::{zoned, Func};
use plan::text::{format_datum, parse_literal};
use plan::types::{Scalar, Type};
use plan::value::Datum;
use plan::{Interval, Zone};
use std::collections::BTreeMap;

#[test]
fn results_are_those_of_postgresql() {
    // Another table, of another server or with more cases.
    let table = match std::env::var("ZONES_TABLE") {
        Ok(path) => std::fs::read_to_string(path).unwrap(),
        Err(_) => include_str!("zones.tsv").to_owned(),
    };
    let mut zones: BTreeMap<&str, Zone> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in table.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields.as_slice() {
            ["zone", name, rules] => {
                let zone: Zone = serde_json::from_str(rules).unwrap();
                assert!(zone.name() == *name && rules.len() < 30_000, "{line}");
                zones.insert(name, zone);
            }
            [kind, zone, expected, moment, local, date] => {
                count += 1;
                let ours = answer(kind, zones[zone], [moment, local, date]);
                if ours != *expected {
                    wrong.push(format!("{line}\n    ours: {ours}"));
                }
            }
            _ => panic!("{line}"),
        }
    }
    assert!(count > 1000 && zones.len() > 10);
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Our answer as the table has them.
fn answer(kind: &str, zone: Zone, [moment, local, date]: [&str; 3]) -> String {
    let read = |text: &str, ty: Scalar| (parse_literal(text, ty.into(), -1).unwrap(), ty.into());
    let side = |letter: &str| match letter {
        "m" => read(moment, Scalar::Timestamptz),
        "l" => read(local, Scalar::Timestamp),
        _ => read(date, Scalar::Date),
    };
    let words: Vec<&str> = kind.split(' ').collect();
    let (funcs, args): (Vec<Func>, Vec<(Datum, Type)>) = match words.as_slice() {
        ["local" | "moment" | "date" | "midnight"] => {
            let (arg, to) = match kind {
                "local" => (side("m"), Scalar::Timestamp),
                "date" => (side("m"), Scalar::Date),
                "moment" => (side("l"), Scalar::Timestamptz),
                _ => (side("d"), Scalar::Timestamptz),
            };
            (vec![zoned::cast(zone, arg.1, to.into()).unwrap()], vec![arg])
        }
        [name @ ("extract" | "date_part" | "date_trunc"), field] => {
            assert!(zoned::has_field(name, field));
            let field = (Datum::text(*field), Scalar::Text.into());
            let types = [field.1, Scalar::Timestamptz.into()];
            (vec![zoned::function(zone, name, &types).unwrap()], vec![field, side("m")])
        }
        [name @ ("plus" | "shift"), span @ ..] => {
            let at = side(if *name == "plus" { "m" } else { "l" });
            let interval = Interval::parse(&span.join(" ")).unwrap();
            (zoned::plus(Some(zone), at.1, interval).unwrap().0, vec![at])
        }
        [left, operator, right] => {
            let (left, right) = (side(left), side(right));
            let func = zoned::operator(zone, operator, &[left.1, right.1]).unwrap().0;
            (vec![func], vec![left, right])
        }
        _ => panic!("unknown kind {kind}"),
    };
    match apply(&funcs, args) {
        Ok(text) => text,
        Err(error) => format!("ERROR {} {}", error.sqlstate, error.message),
    }
}

fn apply(funcs: &[Func], mut args: Vec<(Datum, Type)>) -> Result<String, DataError> {
    for func in funcs {
        let (values, types): (Vec<Datum>, Vec<Type>) = args.into_iter().unzip();
        let value = func.call(&values.iter().collect::<Vec<_>>())?;
        args = vec![(value, func.result_type(&types))];
    }
    let (value, ty) = &args[0];
    Ok(match (value, ty.base()) {
        (Datum::Null, _) => "\\N".to_owned(),
        (Datum::Bool(value), _) => value.to_string(),
        // In UTC.
        (value, Scalar::Timestamptz) => format_datum(value, Scalar::Timestamp.into()),
        (value, _) => format_datum(value, *ty),
    })
}

#[test]
fn nulls_and_wrong_arguments_are_no_panics() {
    let zone: Zone = serde_json::from_value(serde_json::json!({
        "name": "Test", "before": 3600, "changes": "", "repeats_before": false, "repeats_after": false,
    }))
    .unwrap();
    let date = zoned::cast(zone, Scalar::Timestamptz.into(), Scalar::Date.into()).unwrap();
    assert_eq!(date.call(&[&Datum::Null]), Ok(Datum::Null));
    assert_eq!(date.call(&[&Datum::Int4(1)]).unwrap_err().sqlstate, "XX000");
    // An hour before midnight.
    assert_eq!(date.call(&[&Datum::Timestamp(-3_600_000_000)]), Ok(Datum::Date(0)));
    assert_eq!(date.call(&[&Datum::Timestamp(-3_600_000_001)]), Ok(Datum::Date(-1)));
    let extremes = [i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX];
    for func in ["date", "timestamp"] {
        let func = zoned::function(zone, func, &[Scalar::Timestamptz.into()]).unwrap();
        extremes.iter().for_each(|at| drop(func.call(&[&Datum::Timestamp(*at)])));
    }
}
