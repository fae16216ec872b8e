//! Writes random calls of every native function, operator and cast as SQL. PostgreSQL's answers to them
//! are the table that the test `kernels` checks the evaluator against:
//!
//! ```sh
//! cargo run -p plan --example kernel_cases -- 20 | psql -qX > planner/plan/tests/kernels.tsv
//! ```
//!
//! The argument is the number of cases of each signature. The server must use UTF8, the C collation and
//! the default settings.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Random, SCALARS};
use plan::func::{self, Quantifier};
use plan::text::format_datum;
use plan::types::{Scalar, Type};
use plan::value::Datum;
use plan::Regression;

const SETUP: &str = r#"
SET client_min_messages = warning;
SET timezone = 'UTC';
CREATE FUNCTION pg_temp.answer(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE query INTO result;
    RETURN result;
EXCEPTION WHEN OTHERS THEN
    RETURN 'ERROR ' || SQLSTATE || ' ' || SQLERRM;
END $$;
CREATE TEMP TABLE cases (id serial, kind text, name text, types text, a text, b text, c text, query text);
COPY cases (kind, name, types, a, b, c, query) FROM stdin;"#;

const FINISH: &str = r#"\.
COPY (SELECT kind, name, types, pg_temp.answer(query), a, b, c FROM cases ORDER BY id) TO stdout;"#;

const OPERATORS: [&str; 28] = [
    "+", "-", "*", "/", "%", "@", "~", "&", "|", "#", "<<", ">>", "^", "=", "<>", "<", "<=", ">",
    ">=", "||", "~~", "!~~", "~~*", "!~~*", "^@", "@>", "<@", "&&",
];

const FUNCTIONS: [&str; 48] = [
    "abs",
    "sign",
    "ceil",
    "ceiling",
    "floor",
    "round",
    "trunc",
    "sqrt",
    "power",
    "pow",
    "mod",
    "chr",
    "length",
    "char_length",
    "character_length",
    "octet_length",
    "lower",
    "upper",
    "initcap",
    "substr",
    "substring",
    "left",
    "right",
    "btrim",
    "ltrim",
    "rtrim",
    "replace",
    "strpos",
    "position",
    "repeat",
    "reverse",
    "lpad",
    "rpad",
    "split_part",
    "starts_with",
    "ascii",
    "like_escape",
    "textcat",
    "byteacat",
    "array_append",
    "array_prepend",
    "array_cat",
    "array_length",
    "array_lower",
    "array_upper",
    "array_ndims",
    "cardinality",
    "array_position",
];

const MORE_FUNCTIONS: [&str; 11] = [
    "array_remove",
    "bool",
    "int2",
    "int4",
    "int8",
    "float4",
    "float8",
    "numeric",
    "date",
    "timestamp",
    "text",
];

fn main() {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(20);
    let mut writer = Writer { random: Random::seeded(), count };
    println!("{SETUP}");
    writer.operators();
    writer.functions();
    writer.casts();
    writer.typmods();
    writer.quantified();
    writer.constructs();
    writer.aggregates();
    writer.spreads();
    writer.bits();
    writer.regressions();
    println!("{FINISH}");
}

struct Writer {
    random: Random,
    count: usize,
}

/// The type as SQL names it; `character` alone would mean `character(1)`.
fn sql_type(ty: Type) -> String {
    let name = match ty.base() {
        Scalar::Char => "bpchar",
        other => other.name(),
    };
    match ty {
        Type::Scalar(_) => name.to_owned(),
        Type::Array(_) => format!("{name}[]"),
    }
}

/// Short name of a type in the table.
fn label(ty: Type) -> String {
    format!("{ty:?}")
}

fn all_types() -> Vec<Type> {
    SCALARS.iter().flat_map(|scalar| [Type::Scalar(*scalar), Type::Array(*scalar)]).collect()
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n")
}

impl Writer {
    fn case(&mut self, kind: &str, name: &str, types: &str, args: &[Option<String>], query: &str) {
        let arg = |i: usize| match args.get(i) {
            Some(Some(text)) => escape(text),
            _ => "\\N".to_owned(),
        };
        let query = escape(query);
        println!("{kind}\t{name}\t{types}\t{}\t{}\t{}\t{query}", arg(0), arg(1), arg(2));
    }

    /// Text of a random value of the type.
    fn value(&mut self, ty: Type) -> Option<String> {
        loop {
            let value = self.random.datum(ty);
            if !in_range(&value) {
                continue;
            }
            return (!value.is_null()).then(|| format_datum(&value, ty));
        }
    }

    fn calls(
        &mut self,
        kind: &str,
        name: &str,
        types: &[Type],
        query: impl Fn(&[String]) -> String,
    ) {
        for _ in 0..self.count {
            let mut args: Vec<Option<String>> = types.iter().map(|ty| self.value(*ty)).collect();
            let sized = matches!(name, "round" | "trunc" | "repeat" | "lpad" | "rpad" | "left");
            if let (true, Some(Some(size))) = (sized, args.get_mut(1)) {
                // Large ones give long results and little else.
                *size = (self.random.below(40) as i32 - 15).to_string();
            }
            let typed = args.iter().zip(types);
            let sql: Vec<String> = typed.map(|(arg, ty)| literal(arg.as_deref(), *ty)).collect();
            let labels: Vec<String> = types.iter().map(|ty| label(*ty)).collect();
            let query = format!("SELECT ({})::text", query(&sql));
            self.case(kind, name, &labels.join(" "), &args, &query);
        }
    }

    fn operators(&mut self) {
        for name in OPERATORS {
            for left in all_types() {
                if func::operator(name, &[left]).is_some() {
                    self.calls("operator", name, &[left], |args| {
                        format!("OPERATOR(pg_catalog.{name}) {}", args[0])
                    });
                }
                for right in all_types() {
                    if func::operator(name, &[left, right]).is_some() {
                        self.calls("operator", name, &[left, right], |args| {
                            format!("{} OPERATOR(pg_catalog.{name}) {}", args[0], args[1])
                        });
                    }
                }
            }
        }
    }

    fn functions(&mut self) {
        let text = Type::Scalar(Scalar::Text);
        for name in FUNCTIONS.into_iter().chain(MORE_FUNCTIONS) {
            let query = |args: &[String]| format!("pg_catalog.\"{name}\"({})", args.join(", "));
            for a in all_types() {
                if func::function(name, &[a]).is_some() {
                    self.calls("function", name, &[a], query);
                }
                for b in all_types() {
                    if func::function(name, &[a, b]).is_some() {
                        self.calls("function", name, &[a, b], query);
                    }
                    for c in [text, Type::Scalar(Scalar::Int4)] {
                        if func::function(name, &[a, b, c]).is_some() {
                            self.calls("function", name, &[a, b, c], query);
                        }
                    }
                }
            }
        }
    }

    fn casts(&mut self) {
        for from in all_types() {
            for to in all_types() {
                if func::cast(from, to, -1, true).is_none() {
                    continue;
                }
                for _ in 0..self.count * 2 {
                    let mut arg = self.value(from);
                    let from_text = from.scalar().is_some_and(Scalar::is_string);
                    if from_text && self.random.below(8) > 0 {
                        arg = Some(self.input_text(to));
                    }
                    let types = format!("{} {} -1", label(from), label(to));
                    let sql = literal(arg.as_deref(), from);
                    let query = format!("SELECT (({sql})::{})::text", sql_type(to));
                    self.case("cast", "cast", &types, &[arg], &query);
                }
            }
        }
    }

    /// Text that an input function might take, perhaps spoilt.
    fn input_text(&mut self, ty: Type) -> String {
        let mut text = self.value(ty).unwrap_or_default();
        match self.random.below(5) {
            0 => text = format!(" {text} "),
            1 => text.push(self.random.pick(&['x', '9', '.', ' ', 'e', '-', '0'])),
            2 => text.insert(0, self.random.pick(&['x', '9', '.', '+', '-', '0'])),
            _ => {}
        }
        text
    }

    fn typmods(&mut self) {
        let numeric = |precision: i32, scale: i32| ((precision << 16) | (scale & 0x7ff)) + 4;
        let mut targets = vec![
            (Scalar::Numeric, numeric(5, 2), "numeric(5,2)".to_owned()),
            (Scalar::Numeric, numeric(20, 0), "numeric(20,0)".to_owned()),
            (Scalar::Numeric, numeric(3, -2), "numeric(3,-2)".to_owned()),
            (Scalar::Numeric, numeric(2, 4), "numeric(2,4)".to_owned()),
            (Scalar::Timestamp, 0, "timestamp(0)".to_owned()),
            (Scalar::Timestamp, 3, "timestamp(3)".to_owned()),
        ];
        for length in [1, 3, 20] {
            targets.push((Scalar::Varchar, length + 4, format!("varchar({length})")));
            targets.push((Scalar::Char, length + 4, format!("char({length})")));
        }
        for (to, typmod, name) in targets {
            for from in all_types() {
                let to = match from {
                    Type::Scalar(_) => Type::Scalar(to),
                    Type::Array(_) => Type::Array(to),
                };
                if func::cast(from, to, typmod, true).is_none() {
                    continue;
                }
                let suffix = if to.element().is_some() { "[]" } else { "" };
                for _ in 0..self.count {
                    let arg = self.value(from);
                    let types = format!("{} {} {typmod}", label(from), label(to));
                    let sql = literal(arg.as_deref(), from);
                    let query = format!("SELECT (({sql})::{name}{suffix})::text");
                    self.case("cast", "cast", &types, &[arg], &query);
                }
            }
        }
    }

    fn quantified(&mut self) {
        for name in ["=", "<>", "<", ">=", "~~", "!~~*"] {
            for left in SCALARS.map(Type::Scalar) {
                for right in SCALARS.map(Type::Array) {
                    for (quantifier, word) in [(Quantifier::Any, "any"), (Quantifier::All, "all")] {
                        if func::quantified(name, quantifier, left, right).is_none() {
                            continue;
                        }
                        self.calls(word, name, &[left, right], |args| {
                            format!("{} OPERATOR(pg_catalog.{name}) {word} ({})", args[0], args[1])
                        });
                    }
                }
            }
        }
    }

    fn constructs(&mut self) {
        for ty in all_types() {
            self.calls("construct", "nullif", &[ty, ty], |args| {
                format!("NULLIF({}, {})", args[0], args[1])
            });
            self.calls("construct", "distinct", &[ty, ty], |args| {
                format!("{} IS DISTINCT FROM {}", args[0], args[1])
            });
            self.calls("construct", "greatest", &[ty, ty, ty], |args| {
                format!("GREATEST({})", args.join(", "))
            });
            self.calls("construct", "least", &[ty, ty, ty], |args| {
                format!("LEAST({})", args.join(", "))
            });
            if ty.element().is_some() {
                self.calls("construct", "subscript", &[ty, Scalar::Int4.into()], |args| {
                    format!("({})[{}]", args[0], args[1])
                });
            }
        }
    }

    fn aggregates(&mut self) {
        let aggregates = [
            ("sum", vec![Scalar::Int2, Scalar::Int4, Scalar::Int8, Scalar::Numeric]),
            ("avg", vec![Scalar::Int2, Scalar::Int4, Scalar::Int8, Scalar::Numeric]),
            ("bool_and", vec![Scalar::Bool]),
            ("bool_or", vec![Scalar::Bool]),
            ("count", vec![Scalar::Text]),
        ];
        for (name, types) in aggregates {
            for ty in types {
                for _ in 0..self.count * 3 {
                    let arg = self.value(Type::Array(ty));
                    let sql = literal(arg.as_deref(), Type::Array(ty));
                    let query = format!("SELECT {name}(x)::text FROM unnest({sql}) AS x");
                    self.case("aggregate", name, &label(Type::Array(ty)), &[arg], &query);
                }
            }
        }
    }
}

impl Writer {
    /// Cases of an aggregate of several values.
    fn groups(&mut self, name: &str, ty: Scalar) {
        let array = Type::Array(ty);
        for _ in 0..self.count * 3 {
            let length = self.random.below(9);
            let elements = (0..length).map(|_| self.moderate(ty)).collect();
            let arg = Some(format_datum(&Datum::array(elements), array));
            let sql = literal(arg.as_deref(), array);
            let query = format!("SELECT {name}(x)::text FROM unnest({sql}) AS x");
            self.case("aggregate", name, &label(array), &[arg], &query);
        }
    }

    /// A value of which sums of squares can be computed in floats.
    fn moderate(&mut self, ty: Scalar) -> Datum {
        loop {
            let value = self.random.datum(ty.into());
            let is_moderate = |x: f64| !x.is_finite() || x == 0.0 || (1e-9..1e9).contains(&x.abs());
            if !matches!(ty, Scalar::Float4 | Scalar::Float8)
                || value.as_f64().is_none_or(is_moderate)
            {
                return value;
            }
        }
    }

    fn spreads(&mut self) {
        use Scalar::{Float4, Float8, Int2, Int4, Int8, Numeric};
        for name in ["var_pop", "var_samp", "stddev_pop", "stddev_samp"] {
            for ty in [Int2, Int4, Int8, Numeric, Float4, Float8] {
                self.groups(name, ty);
            }
        }
    }

    fn regressions(&mut self) {
        let array = Type::Array(Scalar::Float8);
        let names = Regression::ALL.map(Regression::name);
        for name in names.into_iter().chain(["regr_count"]) {
            for _ in 0..self.count * 3 {
                let length = self.random.below(9);
                let args = [(); 2].map(|()| {
                    let elements = (0..length).map(|_| self.moderate(Scalar::Float8)).collect();
                    Some(format_datum(&Datum::array(elements), array))
                });
                let sql = args.each_ref().map(|arg| literal(arg.as_deref(), array));
                let rows = format!("unnest({}) AS p (y, x)", sql.join(", "));
                let query = format!("SELECT {name}(y, x)::text FROM {rows}");
                let types = format!("{0} {0}", label(array));
                self.case("aggregate", name, &types, &args, &query);
            }
        }
    }

    fn bits(&mut self) {
        for name in ["bit_and", "bit_or", "bit_xor"] {
            for ty in [Scalar::Int2, Scalar::Int4, Scalar::Int8] {
                self.groups(name, ty);
            }
        }
    }
}

/// Dates and timestamps beyond the calendar cannot be written down.
fn in_range(value: &Datum) -> bool {
    match value {
        Datum::Date(date) => (-2_400_000..2_000_000_000).contains(date),
        Datum::Timestamp(timestamp) => {
            (-211_813_487_000_000_000..9_223_371_331_000_000_000).contains(timestamp)
        }
        Datum::Array(array) => array.elements.iter().all(in_range),
        _ => true,
    }
}

fn literal(value: Option<&str>, ty: Type) -> String {
    match value {
        None => format!("NULL::{}", sql_type(ty)),
        Some(text) => format!("'{}'::{}", text.replace('\'', "''"), sql_type(ty)),
    }
}
