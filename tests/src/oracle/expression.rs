//! Random scalar expressions of a wanted type over the columns in scope.
//!
//! They never raise an error on the data that the round can produce, because PostgreSQL may or may
//! not evaluate an expression whose row is filtered later. `risky` ones do; they are asked for
//! only where the evaluation is certain.

use super::types::Type;
use crate::dice::Dice;

/// A column that expressions may use.
#[derive(Clone, Debug)]
pub struct Field {
    pub reference: String,
    pub kind: Type,
}

pub type Scope<'a> = &'a [Field];

/// An expression of type `kind`, at most `depth` operators deep.
pub fn expression(dice: &mut Dice, scope: Scope, kind: Type, depth: u32) -> String {
    if depth == 0 || dice.chance(35) {
        return leaf(dice, scope, kind);
    }
    let below = depth - 1;
    if dice.chance(25) {
        return conditional(dice, scope, kind, below);
    }
    let of = |dice: &mut Dice, kind| expression(dice, scope, kind, below);
    match kind {
        Type::Bool => predicate(dice, scope, below),
        Type::Int2 | Type::Int4 | Type::Int8 => integer(dice, scope, kind, below),
        Type::Float4 | Type::Float8 | Type::Numeric => {
            let operator = dice.pick(&["+", "-"]).to_string();
            match dice.index(3) {
                0 => format!("({} {operator} {})", of(dice, kind), kind.present(dice)),
                1 => format!("(- {})", of(dice, kind)),
                _ => format!("({})::{}", of(dice, Type::Int4), kind.name()),
            }
        }
        Type::Text => text(dice, scope, below),
        Type::Varchar | Type::Char => format!("({})::{}", of(dice, Type::Text), kind.name()),
        Type::Date => format!("({} + {})", of(dice, kind), dice.range(-3, 3)),
        Type::Timestamp => format!("({})::timestamp", of(dice, Type::Date)),
        Type::Int4Array => format!("({} || {})", of(dice, kind), of(dice, Type::Int4)),
        Type::TextArray => format!("({} || {})", of(dice, kind), of(dice, Type::Text)),
        Type::Timestamptz | Type::Uuid | Type::Bytea => leaf(dice, scope, kind),
    }
}

/// A condition that never raises an error.
pub fn predicate(dice: &mut Dice, scope: Scope, depth: u32) -> String {
    let of = |dice: &mut Dice, kind| expression(dice, scope, kind, depth.saturating_sub(1));
    let kind = scope[dice.index(scope.len())].kind;
    match dice.index(10) {
        0 if depth > 0 => {
            let both = dice.pick(&["AND", "OR"]).to_string();
            let left = predicate(dice, scope, depth - 1);
            format!("({left} {both} {})", predicate(dice, scope, depth - 1))
        }
        1 if depth > 0 => format!("(NOT {})", predicate(dice, scope, depth - 1)),
        2 => format!("({} IS {}NULL)", of(dice, kind), dice.pick(&["", "NOT "])),
        3 => {
            let negation = dice.pick(&["", "NOT "]).to_string();
            format!("({} IS {negation}DISTINCT FROM {})", of(dice, kind), of(dice, kind))
        }
        4 => {
            let items: Vec<String> = (0..dice.range(1, 4)).map(|_| kind.literal(dice)).collect();
            let negation = dice.pick(&["", "NOT "]).to_string();
            format!("({} {negation}IN ({}))", of(dice, kind), items.join(", "))
        }
        5 => {
            let pattern = dice.pick(&["a%", "%b", "_", "%", "a_b", "A%"]).to_string();
            format!("({} LIKE '{pattern}')", of(dice, Type::Text))
        }
        6 => format!("({} = ANY ({}))", of(dice, Type::Int4), of(dice, Type::Int4Array)),
        7 => format!("({} BETWEEN {} AND {})", of(dice, kind), kind.literal(dice), of(dice, kind)),
        _ => {
            let operator = dice.pick(&["=", "<>", "<", "<=", ">", ">="]).to_string();
            format!("({} {operator} {})", of(dice, kind), of(dice, kind))
        }
    }
}

/// An expression over `scope` that raises an error on some rows.
pub fn risky(dice: &mut Dice, scope: Scope) -> String {
    let number = leaf(dice, scope, Type::Int4);
    match dice.index(4) {
        0 => format!("(12 / {number})"),
        1 => format!("(12 % ({number} - 1))"),
        2 => format!("({number} * 400000000)"),
        _ => format!("({number} * 9000)::smallint"),
    }
}

fn leaf(dice: &mut Dice, scope: Scope, kind: Type) -> String {
    let fitting: Vec<&Field> = scope.iter().filter(|field| field.kind == kind).collect();
    if fitting.is_empty() || dice.chance(15) {
        return kind.literal(dice);
    }
    dice.pick(&fitting).reference.clone()
}

fn conditional(dice: &mut Dice, scope: Scope, kind: Type, depth: u32) -> String {
    let one = expression(dice, scope, kind, depth);
    let two = expression(dice, scope, kind, depth);
    match dice.index(5) {
        0 => format!("coalesce({one}, {two})"),
        1 => format!("nullif({one}, {two})"),
        2 if kind != Type::Bool => format!("greatest({one}, {two})"),
        3 if kind != Type::Bool => format!("least({one}, {two})"),
        _ => format!("CASE WHEN {} THEN {one} ELSE {two} END", predicate(dice, scope, depth)),
    }
}

fn integer(dice: &mut Dice, scope: Scope, kind: Type, depth: u32) -> String {
    let name = kind.name();
    let one = expression(dice, scope, kind, depth);
    match dice.index(7) {
        0 => format!("({one} + {})", expression(dice, scope, kind, depth)),
        1 => format!("({one} - {})", kind.present(dice)),
        2 => format!("({one} * {}::{name})", dice.range(-2, 3)),
        3 => format!("({one} % {}::{name})", dice.range(1, 5)),
        4 => {
            format!("length(substr({}, 1, 9))::{name}", expression(dice, scope, Type::Text, depth))
        }
        5 => format!("({})::integer::{name}", expression(dice, scope, Type::Bool, depth)),
        _ => format!("(- {one})"),
    }
}

fn text(dice: &mut Dice, scope: Scope, depth: u32) -> String {
    let one = expression(dice, scope, Type::Text, depth);
    match dice.index(5) {
        0 => format!("({one} || {})", expression(dice, scope, Type::Text, depth)),
        1 => format!("substr({one}, {}, {})", dice.range(-1, 3), dice.range(0, 4)),
        2 => format!("({})::text", expression(dice, scope, Type::Int4, depth)),
        3 => format!("lower({one} COLLATE \"C\") COLLATE \"default\""),
        _ => format!("upper({one} COLLATE \"C\") COLLATE \"default\""),
    }
}
