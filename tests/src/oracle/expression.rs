//! Random scalar expressions of a wanted type over the columns in scope.
//!
//! They never raise an error on the data that the round can produce, because PostgreSQL may or may
//! not evaluate an expression whose row is filtered later. `risky` ones do; they are asked for
//! only where the evaluation is certain.

use super::draws::Draws;
use super::feature::Feature;
use super::types::Type;

/// A column that expressions may use.
#[derive(Clone, Debug)]
pub struct Field {
    pub reference: String,
    pub kind: Type,
}

pub type Scope<'a> = &'a [Field];

/// An expression of type `kind`, at most `depth` operators deep.
pub fn expression(dice: &mut Draws, scope: Scope, kind: Type, depth: u32) -> String {
    if depth == 0 || dice.chance(35) {
        return leaf(dice, scope, kind);
    }
    let below = depth - 1;
    if dice.chance(25) {
        return conditional(dice, scope, kind, below);
    }
    let of = |dice: &mut Draws, kind| expression(dice, scope, kind, below);
    match kind {
        Type::Bool => predicate(dice, scope, below),
        Type::Int2 | Type::Int4 | Type::Int8 => integer(dice, scope, kind, below),
        Type::Float4 | Type::Float8 | Type::Numeric => number(dice, scope, kind, below),
        Type::Text => text(dice, scope, below),
        Type::Varchar | Type::Char => {
            dice.record(Feature::TextToCharacters);
            format!("({})::{}", of(dice, Type::Text), kind.name())
        }
        Type::Date | Type::Timestamp | Type::Timestamptz | Type::Time => {
            time(dice, scope, kind, below)
        }
        Type::Jsonb => match dice.rule(&[(2, Feature::JsonField), (1, Feature::JsonOfValues)]) {
            Feature::JsonOfValues => {
                let (at, span) = (of(dice, Type::Timestamptz), of(dice, Type::Interval));
                format!("jsonb_build_array({at}, {span}, {})", of(dice, Type::Mood))
            }
            _ => format!("({} -> 'a')", of(dice, kind)),
        },
        Type::Int4Range => {
            dice.record(Feature::RangeFromBounds);
            format!("({} * int4range({}, NULL))", of(dice, kind), dice.range(-1, 4))
        }
        Type::Int4Array | Type::TextArray => {
            dice.record(Feature::AppendToArray);
            let element = if kind == Type::Int4Array { Type::Int4 } else { Type::Text };
            format!("({} || {})", of(dice, kind), of(dice, element))
        }
        Type::Posix
        | Type::Icu
        | Type::Caseless
        | Type::Uuid
        | Type::Matrix
        | Type::Bytea
        | Type::Mood
        | Type::Interval
        | Type::Inet
        | Type::Small
        | Type::Pair => leaf(dice, scope, kind),
    }
}

/// Of a date or a time, some by the zone of the session that creates the view.
fn time(dice: &mut Draws, scope: Scope, kind: Type, depth: u32) -> String {
    use Feature::*;
    let of = |dice: &mut Draws, kind| expression(dice, scope, kind, depth);
    let rules: &[(i64, Feature)] = match kind {
        Type::Date => &[(2, DateAndDays), (1, TimestamptzToDate), (1, TextToTime)],
        Type::Timestamp => &[(1, DateToTimestamp), (1, AddInterval), (1, TimestamptzToTimestamp)],
        Type::Time => &[(1, TimestamptzToTime)],
        _ => &[
            (2, AddToTimestamptz),
            (1, TruncateTimestamptz),
            (1, TimestampToTimestamptz),
            (1, TextToTime),
        ],
    };
    match dice.rule(rules) {
        DateAndDays => format!("({} + {})", of(dice, kind), dice.range(-3, 3)),
        AddInterval | AddToTimestamptz => {
            format!("({} + {})", of(dice, kind), of(dice, Type::Interval))
        }
        TruncateTimestamptz => {
            let unit = dice.pick(&["day", "hour", "month"]).to_string();
            format!("date_trunc('{unit}', {})", of(dice, kind))
        }
        DateToTimestamp => format!("({})::timestamp", of(dice, Type::Date)),
        TimestampToTimestamptz => format!("({})::timestamptz", of(dice, Type::Timestamp)),
        // Of its own text: no other one is sure to be that of a time.
        TextToTime => format!("({}::text)::{}", of(dice, Type::Date), kind.name()),
        _ => format!("({})::{}", of(dice, Type::Timestamptz), kind.name()),
    }
}

fn number(dice: &mut Draws, scope: Scope, kind: Type, depth: u32) -> String {
    let of = |dice: &mut Draws, kind| expression(dice, scope, kind, depth);
    let operator = dice.pick(&["+", "-"]).to_string();
    use Feature::{AddConstant, IntegerToNumber, Negate};
    match dice.rule(&[(1, AddConstant), (1, Negate), (1, IntegerToNumber)]) {
        AddConstant => format!("({} {operator} {})", of(dice, kind), kind.present(dice)),
        Negate => format!("(- {})", of(dice, kind)),
        _ => format!("({})::{}", of(dice, Type::Int4), kind.name()),
    }
}

/// A condition that never raises an error.
pub fn predicate(dice: &mut Draws, scope: Scope, depth: u32) -> String {
    let of = |dice: &mut Draws, kind| expression(dice, scope, kind, depth.saturating_sub(1));
    let kind = scope[dice.index(scope.len())].kind;
    use Feature::*;
    let deep = i64::from(depth > 0);
    let rules = [
        (deep, And),
        (deep, Or),
        (deep, Not),
        (2, IsNull),
        (2, IsDistinct),
        (2, InList),
        (2, Like),
        (2, EqualAnyOfArray),
        (2, Between),
        (1, JsonContains),
        (1, RangeContains),
        (1, Matches),
        (1, LikeCollated),
        (1, CompareZoned),
        (4, Compare),
    ];
    let negation = dice.pick(&["", "NOT "]).to_string();
    match dice.rule(&rules) {
        rule @ (And | Or) => {
            let left = predicate(dice, scope, depth - 1);
            format!("({left} {} {})", rule.name(), predicate(dice, scope, depth - 1))
        }
        Not => format!("(NOT {})", predicate(dice, scope, depth - 1)),
        IsNull => format!("({} IS {negation}NULL)", of(dice, kind)),
        IsDistinct => {
            format!("({} IS {negation}DISTINCT FROM {})", of(dice, kind), of(dice, kind))
        }
        InList => {
            let items: Vec<String> = (0..dice.range(1, 4)).map(|_| kind.literal(dice)).collect();
            format!("({} {negation}IN ({}))", of(dice, kind), items.join(", "))
        }
        Like => {
            let pattern = dice.pick(&["a%", "%b", "_", "%", "a_b", "A%"]).to_string();
            format!("({} LIKE '{pattern}')", of(dice, Type::Text))
        }
        EqualAnyOfArray => {
            format!("({} = ANY ({}))", of(dice, Type::Int4), of(dice, Type::Int4Array))
        }
        JsonContains => format!("({} @> {})", of(dice, Type::Jsonb), of(dice, Type::Jsonb)),
        RangeContains => format!("({} @> {})", of(dice, Type::Int4Range), of(dice, Type::Int4)),
        Matches => format!("({} ~ '[ab]$')", of(dice, Type::Text)),
        LikeCollated => format!("({} LIKE 'a%')", of(dice, Type::Icu)),
        CompareZoned => {
            let operator = dice.pick(&["=", "<>", "<", "<=", ">", ">="]).to_string();
            let other = *dice.pick(&[Type::Date, Type::Timestamp]);
            format!("({} {operator} {})", of(dice, Type::Timestamptz), of(dice, other))
        }
        Between => {
            format!("({} BETWEEN {} AND {})", of(dice, kind), kind.literal(dice), of(dice, kind))
        }
        _ => {
            let operator = dice.pick(&["=", "<>", "<", "<=", ">", ">="]).to_string();
            format!("({} {operator} {})", of(dice, kind), of(dice, kind))
        }
    }
}

/// An expression over an integer column of `scope`, if there is one, that raises an error on some rows. PostgreSQL
/// computes with constants while it plans, rows or no rows.
pub fn risky(dice: &mut Draws, scope: Scope) -> Option<String> {
    let numbers: Vec<&Field> = scope.iter().filter(|field| field.kind == Type::Int4).collect();
    if numbers.is_empty() {
        return None;
    }
    let number = &dice.pick(&numbers).reference;
    Some(match dice.index(4) {
        0 => format!("(12 / {number})"),
        1 => format!("(12 % ({number} - 1))"),
        2 => format!("({number} * 400000000)"),
        _ => format!("({number} * 9000)::smallint"),
    })
}

fn leaf(dice: &mut Draws, scope: Scope, kind: Type) -> String {
    let fitting: Vec<&Field> = scope.iter().filter(|field| field.kind == kind).collect();
    if fitting.is_empty() || dice.chance(15) {
        dice.record(Feature::Constant);
        return kind.literal(dice);
    }
    dice.record(Feature::ColumnReference);
    dice.pick(&fitting).reference.clone()
}

fn conditional(dice: &mut Draws, scope: Scope, kind: Type, depth: u32) -> String {
    use Feature::{Case, Coalesce, Greatest, Least, Nullif};
    let one = expression(dice, scope, kind, depth);
    let two = expression(dice, scope, kind, depth);
    let ordered = i64::from(kind != Type::Bool);
    let rules = [(1, Coalesce), (1, Nullif), (ordered, Greatest), (ordered, Least), (1, Case)];
    match dice.rule(&rules) {
        Case => format!("CASE WHEN {} THEN {one} ELSE {two} END", predicate(dice, scope, depth)),
        function => format!("{}({one}, {two})", function.name()),
    }
}

fn integer(dice: &mut Draws, scope: Scope, kind: Type, depth: u32) -> String {
    use Feature::*;
    let name = kind.name();
    let one = expression(dice, scope, kind, depth);
    let rules =
        [AddColumns, AddConstant, Multiply, Remainder, LengthOfSubstr, BooleanToInteger, Negate];
    let rules = [&rules[..], &[HourOfTimestamptz]].concat();
    let rules: Vec<(i64, Feature)> = rules.into_iter().map(|rule| (1, rule)).collect();
    match dice.rule(&rules) {
        HourOfTimestamptz => {
            let at = expression(dice, scope, Type::Timestamptz, depth);
            format!("extract(hour FROM {at})::{name}")
        }
        AddColumns => format!("({one} + {})", expression(dice, scope, kind, depth)),
        AddConstant => format!("({one} - {})", kind.present(dice)),
        Multiply => format!("({one} * {}::{name})", dice.range(-2, 3)),
        Remainder => format!("({one} % {}::{name})", dice.range(1, 5)),
        LengthOfSubstr => {
            format!("length(substr({}, 1, 9))::{name}", expression(dice, scope, Type::Text, depth))
        }
        BooleanToInteger => {
            format!("({})::integer::{name}", expression(dice, scope, Type::Bool, depth))
        }
        _ => format!("(- {one})"),
    }
}

fn text(dice: &mut Draws, scope: Scope, depth: u32) -> String {
    use Feature::*;
    let one = expression(dice, scope, Type::Text, depth);
    let rules = [Concatenate, Substr, IntegerToText, RegexpReplace, JsonText, Lower, Upper];
    let by_settings = [TimeToText, EnumToText, ToChar, ConcatValues];
    let rules = [&rules[..], &by_settings].concat();
    let rules: Vec<(i64, Feature)> = rules.into_iter().map(|rule| (1, rule)).collect();
    match dice.rule(&rules) {
        TimeToText => {
            let kinds = [Type::Timestamptz, Type::Timestamp, Type::Date, Type::Interval];
            let kind = *dice.pick(&kinds);
            format!("({})::text", expression(dice, scope, kind, depth))
        }
        EnumToText => format!("({})::text", expression(dice, scope, Type::Mood, depth)),
        ToChar => {
            let at = expression(dice, scope, Type::Timestamptz, depth);
            format!("to_char({at}, 'DD Mon YYYY HH24:MI TZ')")
        }
        ConcatValues => {
            let at = expression(dice, scope, Type::Timestamptz, depth);
            format!("concat({at}, {}, {one})", expression(dice, scope, Type::Float8, depth))
        }
        RegexpReplace => format!("regexp_replace({one}, '[ab]', '*', 'g')"),
        JsonText => format!("({} ->> 'a')", expression(dice, scope, Type::Jsonb, depth)),
        Concatenate => format!("({one} || {})", expression(dice, scope, Type::Text, depth)),
        Substr => format!("substr({one}, {}, {})", dice.range(-1, 3), dice.range(0, 4)),
        IntegerToText => format!("({})::text", expression(dice, scope, Type::Int4, depth)),
        function => format!("{}({one})", function.name()),
    }
}
