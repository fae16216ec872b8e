//! The functions that PostgreSQL knows by a name and that take operands of fixed types: one row each.
//!
//! A row says all that there is to know of its function: its names, its text in plans and in EXPLAIN, the type of its
//! result, whether it can fail, and its kernel. All of them are strict: of NULL they make NULL.

use super::{array, calendar, number, string};
use crate::compare::trim;
use crate::error::DataError;
use crate::types::{Scalar, Type};
use crate::value::{Datum, Dimension};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use Operand::{AnyArray, Is};
use Scalar::{Bool, Bytea, Char, Date, Float8, Int4, Numeric, Text, Timestamp};

type Result<T> = std::result::Result<T, DataError>;

/// A row of the table.
struct Row {
    /// PostgreSQL's names of the function; the first is its own.
    names: &'static [&'static str],
    operands: &'static [Operand],
    /// How many of the operands, the last ones, may be left out.
    optional: usize,
    /// The operator that is the same, if there is one.
    operator: Option<&'static str>,
    result: Scalar,
    kernel: Kernel,
}

/// What an operand must be.
#[derive(Clone, Copy)]
enum Operand {
    Is(Scalar),
    AnyArray,
}

/// What computes the value of operands that are not NULL.
#[derive(Clone, Copy)]
enum Kernel {
    Sure(fn(&[&Datum]) -> Datum),
    MayFail(fn(&[&Datum]) -> Result<Datum>),
}

const TEXT: Operand = Is(Text);
const INT: Operand = Is(Int4);
const FLOAT: Operand = Is(Float8);
const NUMERIC: Operand = Is(Numeric);

/// All of them. Their order means nothing.
static TABLE: &[Row] = &[
    sure(&["length", "char_length", "character_length"], &[TEXT], Int4, |a| {
        string::length(text(a[0]))
    }),
    sure(&["length", "char_length", "character_length"], &[Is(Char)], Int4, |a| {
        string::length(trim(text(a[0])))
    }),
    sure(&["octet_length", "length"], &[Is(Bytea)], Int4, |a| string::octet_length(a[0])),
    sure(&["octet_length"], &[TEXT], Int4, |a| string::octet_length(a[0])),
    sure(&["octet_length"], &[Is(Char)], Int4, |a| string::octet_length(a[0])),
    // Upper and lower case are those of the C collation.
    sure(&["lower"], &[TEXT], Text, |a| Datum::text(text(a[0]).to_ascii_lowercase())),
    sure(&["upper"], &[TEXT], Text, |a| Datum::text(text(a[0]).to_ascii_uppercase())),
    sure(&["initcap"], &[TEXT], Text, |a| string::capitalize(text(a[0]))),
    may_fail(&["substring", "substr"], &[TEXT, INT, INT], Text, string::substring).optional(1),
    sure(&["left"], &[TEXT, INT], Text, |a| string::left(text(a[0]), int(a[1]))),
    sure(&["right"], &[TEXT, INT], Text, |a| string::right(text(a[0]), int(a[1]))),
    sure(&["ltrim"], &[TEXT, TEXT], Text, string::trim_left).optional(1),
    sure(&["rtrim"], &[TEXT, TEXT], Text, string::trim_right).optional(1),
    sure(&["btrim"], &[TEXT, TEXT], Text, string::trim_both).optional(1),
    may_fail(&["replace"], &[TEXT, TEXT, TEXT], Text, |a| {
        Ok(string::replace(text(a[0]), text(a[1]), text(a[2])))
    }),
    sure(&["strpos", "position"], &[TEXT, TEXT], Int4, |a| {
        string::position(text(a[0]), text(a[1]))
    }),
    may_fail(&["repeat"], &[TEXT, INT], Text, |a| string::repeat(text(a[0]), int(a[1]))),
    sure(&["reverse"], &[TEXT], Text, |a| {
        Datum::text(text(a[0]).chars().rev().collect::<String>())
    }),
    may_fail(&["lpad"], &[TEXT, INT, TEXT], Text, |a| string::pad(a, true)).optional(1),
    may_fail(&["rpad"], &[TEXT, INT, TEXT], Text, |a| string::pad(a, false)).optional(1),
    may_fail(&["split_part"], &[TEXT, TEXT, INT], Text, |a| {
        string::split_part(text(a[0]), text(a[1]), int(a[2]))
    }),
    sure(&["starts_with"], &[TEXT, TEXT], Bool, |a| {
        Datum::Bool(text(a[0]).starts_with(text(a[1])))
    })
    .operator("^@"),
    sure(&["ascii"], &[TEXT], Int4, |a| string::ascii(text(a[0]))),
    may_fail(&["chr"], &[INT], Text, |a| string::chr(int(a[0]))),
    may_fail(&["like_escape"], &[TEXT, TEXT], Text, |a| {
        string::like_escape(text(a[0]), text(a[1]))
    }),
    may_fail(&["textcat"], &[TEXT, TEXT], Text, |a| Ok(string::concat(a[0], a[1]))).operator("||"),
    may_fail(&["byteacat"], &[Is(Bytea), Is(Bytea)], Bytea, |a| Ok(string::concat(a[0], a[1])))
        .operator("||"),
    sure(&["sign"], &[FLOAT], Float8, |a| number::sign(a[0])),
    sure(&["sign"], &[NUMERIC], Numeric, |a| number::sign(a[0])),
    may_fail(&["ceil", "ceiling"], &[FLOAT], Float8, |a| number::ceil(a[0])),
    may_fail(&["ceil", "ceiling"], &[NUMERIC], Numeric, |a| number::ceil(a[0])),
    may_fail(&["floor"], &[FLOAT], Float8, |a| number::floor(a[0])),
    may_fail(&["floor"], &[NUMERIC], Numeric, |a| number::floor(a[0])),
    may_fail(&["round"], &[FLOAT], Float8, |a| number::round(a[0], 0)),
    may_fail(&["round"], &[NUMERIC, INT], Numeric, |a| number::round(a[0], scale(a))).optional(1),
    may_fail(&["trunc"], &[FLOAT], Float8, |a| number::truncate(a[0], 0)),
    may_fail(&["trunc"], &[NUMERIC, INT], Numeric, |a| number::truncate(a[0], scale(a)))
        .optional(1),
    may_fail(&["sqrt"], &[FLOAT], Float8, |a| number::sqrt(a[0])),
    may_fail(&["power", "pow"], &[FLOAT, FLOAT], Float8, |a| number::power(a[0], a[1]))
        .operator("^"),
    may_fail(&["extract"], &[TEXT, Is(Date)], Numeric, |a| calendar::extract(text(a[0]), a[1])),
    may_fail(&["extract"], &[TEXT, Is(Timestamp)], Numeric, |a| {
        calendar::extract(text(a[0]), a[1])
    }),
    may_fail(&["date_part"], &[TEXT, Is(Date)], Float8, |a| calendar::part(text(a[0]), a[1])),
    may_fail(&["date_part"], &[TEXT, Is(Timestamp)], Float8, |a| calendar::part(text(a[0]), a[1])),
    may_fail(&["date_trunc"], &[TEXT, Is(Timestamp)], Timestamp, |a| {
        calendar::truncate(text(a[0]), a[1])
    }),
    sure(&["array_length"], &[AnyArray, INT], Int4, |a| {
        array::dimension(a[0], a[1], |d| d.length.into())
    }),
    sure(&["array_lower"], &[AnyArray, INT], Int4, |a| {
        array::dimension(a[0], a[1], |d| d.lower_bound.into())
    }),
    sure(&["array_upper"], &[AnyArray, INT], Int4, |a| {
        array::dimension(a[0], a[1], Dimension::upper_bound)
    }),
    sure(&["array_ndims"], &[AnyArray], Int4, |a| array::ndims(a[0])),
    sure(&["cardinality"], &[AnyArray], Int4, |a| array::cardinality(a[0])),
];

type Names = &'static [&'static str];
type Operands = &'static [Operand];

const fn sure(
    names: Names,
    operands: Operands,
    result: Scalar,
    kernel: fn(&[&Datum]) -> Datum,
) -> Row {
    let kernel = Kernel::Sure(kernel);
    Row { names, operands, optional: 0, operator: None, result, kernel }
}

const fn may_fail(
    names: Names,
    operands: Operands,
    result: Scalar,
    kernel: fn(&[&Datum]) -> Result<Datum>,
) -> Row {
    let kernel = Kernel::MayFail(kernel);
    Row { names, operands, optional: 0, operator: None, result, kernel }
}

impl Row {
    const fn optional(self, optional: usize) -> Row {
        Row { optional, ..self }
    }

    const fn operator(self, symbol: &'static str) -> Row {
        Row { operator: Some(symbol), ..self }
    }

    fn takes_so_many(&self, args: usize) -> bool {
        (self.operands.len() - self.optional..=self.operands.len()).contains(&args)
    }

    fn takes(&self, args: &[Type]) -> bool {
        let fits = |(operand, arg): (&Operand, &Type)| match operand {
            Is(scalar) => *arg == Type::Scalar(*scalar),
            AnyArray => arg.element().is_some(),
        };
        self.takes_so_many(args.len()) && self.operands.iter().zip(args).all(fits)
    }
}

/// A function of the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Named(usize);

impl Named {
    /// The function that PostgreSQL calls so, for arguments of these types.
    pub(super) fn function(name: &str, args: &[Type]) -> Option<Named> {
        Named::find(|row| row.names.contains(&name) && row.takes(args))
    }

    /// The function that an operator is. `varchar` has no operators of its own.
    pub(super) fn operator(symbol: &str, args: &[Type]) -> Option<Named> {
        let as_text = |arg: &Type| match arg {
            Type::Scalar(Scalar::Varchar) => Type::Scalar(Text),
            other => *other,
        };
        let args: Vec<Type> = args.iter().map(as_text).collect();
        Named::find(|row| row.operator == Some(symbol) && row.takes(&args))
    }

    fn find(is_wanted: impl Fn(&Row) -> bool) -> Option<Named> {
        TABLE.iter().position(is_wanted).map(Named)
    }

    fn row(self) -> &'static Row {
        &TABLE[self.0]
    }

    /// PostgreSQL's name of the function.
    pub fn name(self) -> &'static str {
        self.row().names[0]
    }

    /// The operator that is the same, if there is one that EXPLAIN writes between the operands.
    pub(super) fn infix(self) -> Option<&'static str> {
        self.row().operator.filter(|symbol| *symbol == "||")
    }

    /// Type of the result.
    pub fn result_type(self) -> Type {
        self.row().result.into()
    }

    /// Whether some arguments may raise an error.
    pub fn may_fail(self) -> bool {
        matches!(self.row().kernel, Kernel::MayFail(_))
    }

    /// The value for arguments that are not NULL; `None` if they are not as many as the function takes.
    pub(super) fn call(self, args: &[&Datum]) -> Option<Result<Datum>> {
        let row = self.row();
        row.takes_so_many(args.len()).then(|| match row.kernel {
            Kernel::Sure(kernel) => Ok(kernel(args)),
            Kernel::MayFail(kernel) => kernel(args),
        })
    }
}

/// Name and operands, as plans have it: `lpad(text, integer, text)`.
impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |operand: &Operand| match operand {
            Is(scalar) => scalar.name(),
            AnyArray => "anyarray",
        };
        let operands: Vec<&str> = self.row().operands.iter().map(name).collect();
        write!(f, "{}({})", self.name(), operands.join(", "))
    }
}

impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Named {
    fn serialize<S: Serializer>(&self, out: S) -> std::result::Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(input: D) -> std::result::Result<Named, D::Error> {
        let text = String::deserialize(input)?;
        let found = (0..TABLE.len()).map(Named).find(|named| named.to_string() == text);
        found.ok_or_else(|| serde::de::Error::custom(format!("unknown function {text}")))
    }
}

fn text(value: &Datum) -> &str {
    value.as_str().unwrap_or_default()
}

fn int(value: &Datum) -> i32 {
    value.as_i64().unwrap_or_default() as i32
}

/// The second operand of `round` and `trunc`; without it they leave no fraction.
fn scale(args: &[&Datum]) -> i32 {
    args.get(1).map_or(0, |scale| int(scale))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn all() -> impl Iterator<Item = Named> {
        (0..TABLE.len()).map(Named)
    }

    #[test]
    fn rows_are_told_apart_by_names_and_operands() {
        let mut known = BTreeSet::new();
        for row in TABLE {
            for name in row.names {
                for count in row.operands.len() - row.optional..=row.operands.len() {
                    let operands: Vec<Type> = row.operands[..count]
                        .iter()
                        .map(|operand| match operand {
                            Is(scalar) => Type::Scalar(*scalar),
                            AnyArray => Type::Array(Int4),
                        })
                        .collect();
                    assert!(known.insert((*name, operands.clone())), "{name}{operands:?}");
                    let found = Named::function(name, &operands).expect("it is in the table");
                    assert!(std::ptr::eq(found.row(), row), "{name}{operands:?}");
                }
            }
        }
    }

    #[test]
    fn plans_keep_functions_by_name_and_operands() {
        for named in all() {
            let json = serde_json::to_string(&named).unwrap();
            assert_eq!(json, format!("\"{named}\""));
            assert_eq!(serde_json::from_str::<Named>(&json).unwrap(), named);
        }
        assert!(serde_json::from_str::<Named>("\"lower(integer)\"").is_err());
    }

    #[test]
    fn words_begin_where_no_ascii_letter_or_digit_is_before() {
        let initcap = Named::function("initcap", &[Text.into()]).unwrap();
        let of = |text: &str| match initcap.call(&[&Datum::text(text)]) {
            Some(Ok(Datum::Text(text))) => text.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(of("hello wORLD 1abc"), "Hello World 1abc");
        assert_eq!(of("it's a_b-c"), "It'S A_B-C");
        assert_eq!(of("ÉCOLE été"), "ÉCole éTé");
        assert_eq!(of(""), "");
    }
}
