//! Every native function, operator, cast and aggregate against PostgreSQL's own answers, recorded in
//! `kernels.tsv` by the example `kernel_cases`, and in `kernels_extra.tsv` for hand-picked limits.

use plan::aggregate::Accum;
use plan::error::DataError;
use plan::func::{self, Blanks, Func, Quantifier};
use plan::text::{format_datum, parse_literal};
use plan::types::{Scalar, Type};
use plan::value::Datum;
use plan::{AggregateFunc, Regression, Spread};

#[test]
fn results_are_those_of_postgresql() {
    // Another table, to check fresh answers before they become this one.
    let table = match std::env::var("KERNELS_TABLE") {
        Ok(path) => std::fs::read_to_string(path).unwrap(),
        Err(_) => include_str!("kernels.tsv").to_owned(),
    };
    let extra = include_str!("kernels_extra.tsv");
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in table.lines().chain(extra.lines()) {
        count += 1;
        let case = Case::parse(line);
        let ours = match case.evaluate() {
            Ok(text) => text,
            Err(error) => Some(format!("ERROR {} {}", error.sqlstate, error.message)),
        };
        if ours != case.expected && !case.is_close(&ours) {
            wrong.push(format!("{line}\n    ours: {ours:?}"));
        }
    }
    assert!(count > 1000);
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

struct Case {
    kind: String,
    name: String,
    types: Vec<Type>,
    /// Type modifier of a cast.
    typmod: i32,
    expected: Option<String>,
    args: Vec<Option<String>>,
}

/// Undoes the escapes of COPY's text format.
fn unescape(field: &str) -> Option<String> {
    if field == "\\N" {
        return None;
    }
    let mut out = String::new();
    let mut chars = field.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some('v') => '\u{b}',
                other => other.unwrap(),
            },
            other => other,
        });
    }
    Some(out)
}

fn parse_type(label: &str) -> Type {
    let (kind, scalar) = label.trim_end_matches(')').split_once('(').unwrap();
    let scalar: Scalar = serde_json::from_str(&format!("\"{scalar}\"")).unwrap();
    match kind {
        "Scalar" => Type::Scalar(scalar),
        _ => Type::Array(scalar),
    }
}

impl Case {
    fn parse(line: &str) -> Case {
        let fields: Vec<Option<String>> = line.split('\t').map(unescape).collect();
        let labels = fields[2].clone().unwrap();
        let (types, rest): (Vec<&str>, Vec<&str>) =
            labels.split(' ').partition(|label| label.contains('('));
        Case {
            kind: fields[0].clone().unwrap(),
            name: fields[1].clone().unwrap(),
            types: types.into_iter().map(parse_type).collect(),
            typmod: rest.first().map_or(-1, |typmod| typmod.parse().unwrap()),
            expected: fields[3].clone(),
            args: fields[4..].to_vec(),
        }
    }

    fn args(&self, types: &[Type]) -> Result<Vec<Datum>, DataError> {
        let args = self.args.iter().zip(types);
        args.map(|(arg, ty)| match arg {
            None => Ok(Datum::Null),
            Some(text) => parse_literal(text, *ty, -1),
        })
        .collect()
    }

    /// The functions to apply in turn, and the type of the last one's result.
    fn functions(&self) -> (Vec<Func>, Type) {
        let types = &self.types;
        let one = |(func, ty): (Func, Type)| (vec![func], ty);
        match self.kind.as_str() {
            "operator" => one(func::operator(&self.name, types).unwrap()),
            "any" => {
                one(func::quantified(&self.name, Quantifier::Any, types[0], types[1]).unwrap())
            }
            "all" => {
                one(func::quantified(&self.name, Quantifier::All, types[0], types[1]).unwrap())
            }
            "function" => {
                let resolved = func::function(&self.name, types).unwrap();
                (vec![resolved.func], resolved.ty)
            }
            "cast" => {
                let chain = func::cast(types[0], types[1], self.typmod, true).unwrap();
                (chain, types[1])
            }
            "construct" => {
                let blanks = Blanks::of(types[0]);
                let func = match self.name.as_str() {
                    "nullif" => Func::NullIf(blanks),
                    "distinct" => Func::DistinctFrom(blanks),
                    "greatest" => Func::Greatest(blanks),
                    "least" => Func::Least(blanks),
                    "subscript" => Func::Subscript,
                    other => panic!("unknown construct {other}"),
                };
                (vec![func], func.result_type(types))
            }
            other => panic!("unknown kind {other}"),
        }
    }

    fn evaluate(&self) -> Result<Option<String>, DataError> {
        if self.kind == "aggregate" {
            return self.aggregate();
        }
        let (functions, ty) = self.functions();
        let arity = if self.kind == "cast" { 1 } else { self.types.len() };
        let mut args = self.args(&self.types[..arity])?;
        for func in functions {
            let value = func.call(&args.iter().collect::<Vec<_>>())?;
            args = vec![value];
        }
        Ok(text(&args[0], ty))
    }

    /// Whether the result is an aggregate of floats, whose last digits depend on how it is computed.
    fn is_close(&self, ours: &Option<String>) -> bool {
        let number = |text: &Option<String>| text.as_ref()?.parse::<f64>().ok();
        let of_floats = matches!(self.types[0].base(), Scalar::Float4 | Scalar::Float8);
        match (number(ours), number(&self.expected)) {
            (Some(a), Some(b)) if self.kind == "aggregate" && of_floats => {
                (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
            }
            _ => false,
        }
    }

    fn aggregate(&self) -> Result<Option<String>, DataError> {
        let element = self.types[0].base();
        let (func, result) = match (self.name.as_str(), element) {
            ("bit_and", _) => (AggregateFunc::BitAnd(element.into()), element),
            ("bit_or", _) => (AggregateFunc::BitOr(element.into()), element),
            ("bit_xor", _) => (AggregateFunc::BitXor(element.into()), element),
            ("var_pop", _) => spread(Spread::VarPop, element),
            ("var_samp", _) => spread(Spread::VarSamp, element),
            ("stddev_pop", _) => spread(Spread::StddevPop, element),
            ("stddev_samp", _) => spread(Spread::StddevSamp, element),
            ("sum", Scalar::Int2 | Scalar::Int4) => (AggregateFunc::SumInt, Scalar::Int8),
            ("sum", Scalar::Int8) => (AggregateFunc::SumInt8, Scalar::Numeric),
            ("sum", Scalar::Numeric) => (AggregateFunc::SumNumeric, Scalar::Numeric),
            ("sum", Scalar::Float4) => (AggregateFunc::SumFloat4, Scalar::Float4),
            ("sum", Scalar::Float8) => (AggregateFunc::SumFloat8, Scalar::Float8),
            ("avg", Scalar::Numeric) => (AggregateFunc::AvgNumeric, Scalar::Numeric),
            ("avg", Scalar::Float4 | Scalar::Float8) => (AggregateFunc::AvgFloat, Scalar::Float8),
            ("avg", _) => (AggregateFunc::AvgInt, Scalar::Numeric),
            ("bool_and", _) => (AggregateFunc::BoolAnd, Scalar::Bool),
            ("bool_or", _) => (AggregateFunc::BoolOr, Scalar::Bool),
            (name, _) => regression(name),
        };
        let args = self.args(&self.types)?;
        let elements = |array: &Datum| array.as_array().map_or(vec![], |a| a.elements.clone());
        let mut accum = Accum::zero(func);
        for (row, value) in elements(&args[0]).into_iter().enumerate() {
            let value = match args.get(1) {
                None => value,
                Some(other) => Func::Pair.call(&[&value, &elements(other)[row]])?,
            };
            accum.plus_equals(&Accum::of(func, Some(&value), 1));
        }
        Ok(text(&accum.finish(func)?, result.into()))
    }
}

/// An aggregate of pairs, or another one that counts.
fn regression(name: &str) -> (AggregateFunc, Scalar) {
    let Some(regression) = Regression::named(name) else {
        return (AggregateFunc::Count, Scalar::Int8);
    };
    (AggregateFunc::Regression(regression), Scalar::Float8)
}

fn spread(spread: Spread, element: Scalar) -> (AggregateFunc, Scalar) {
    match element {
        Scalar::Numeric => (AggregateFunc::SpreadNumeric(spread), Scalar::Numeric),
        Scalar::Float4 | Scalar::Float8 => (AggregateFunc::SpreadFloat(spread), Scalar::Float8),
        _ => (AggregateFunc::SpreadInt(spread), Scalar::Numeric),
    }
}

/// The value cast to text.
fn text(value: &Datum, ty: Type) -> Option<String> {
    match (value, ty) {
        (Datum::Null, _) => None,
        (Datum::Bool(value), Type::Scalar(_)) => Some(value.to_string()),
        // The cast from character to text takes the trailing blanks off.
        (Datum::Text(text), Type::Scalar(Scalar::Char)) => {
            Some(text.trim_end_matches(' ').to_owned())
        }
        _ => Some(format_datum(value, ty)),
    }
}
