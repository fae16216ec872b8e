//! Random queries with subqueries in expressions and LATERAL ones, correlated or not, up to three deep.

use super::expression::{expression, predicate, Field};
use super::query::{aggregate, named, Query, Relation};
use super::types::Type;
use crate::dice::Dice;

/// Subqueries within subqueries.
const DEPTH: u32 = 2;

pub fn random_query(dice: &mut Dice, relations: &[Relation]) -> Query {
    match dice.index(6) {
        0 | 1 => filtered(dice, relations),
        2 => values(dice, relations),
        3 => grouped(dice, relations),
        4 => joined(dice, relations),
        _ => lateral(dice, relations),
    }
}

/// In WHERE.
fn filtered(dice: &mut Dice, relations: &[Relation]) -> Query {
    let (from, scope) = outer(dice, relations);
    let conditions = several(dice, |dice| condition(dice, relations, &scope, DEPTH));
    let (items, kinds) = columns(dice, &scope);
    let sql = format!("SELECT {} {from} WHERE {}", named(&items), conditions.join(" AND "));
    Query { sql, kinds }
}

/// In the select list. Now and then a subquery has several rows, which is an error.
fn values(dice: &mut Dice, relations: &[Relation]) -> Query {
    let (from, scope) = outer(dice, relations);
    let (mut items, mut kinds) = columns(dice, &scope);
    for _ in 0..dice.range(1, 2) {
        let (item, kind) = match dice.index(4) {
            0 => (condition(dice, relations, &scope, DEPTH), Type::Bool),
            _ => scalar(dice, relations, &scope, DEPTH),
        };
        items.push(item);
        kinds.push(kind);
    }
    if dice.chance(10) {
        let inner = subquery(dice, relations, &scope, 1);
        let field = dice.pick(&inner.own).clone();
        items.push(format!("(SELECT {} {})", field.reference, inner.text));
        kinds.push(field.kind);
    }
    Query { sql: format!("SELECT {} {from}", named(&items)), kinds }
}

/// In keys, in arguments of aggregates, beside them, and in HAVING.
fn grouped(dice: &mut Dice, relations: &[Relation]) -> Query {
    let (from, scope) = outer(dice, relations);
    let key = dice.pick(&scope).clone();
    let keys = [key.clone()];
    let mut items = vec![key.reference.clone(), "count(*)".to_owned()];
    let mut kinds = vec![key.kind, Type::Int8];
    match dice.index(3) {
        0 => {
            let condition = condition(dice, relations, &scope, 1);
            items.push(format!("bool_or({condition})"));
            kinds.push(Type::Bool);
        }
        1 => {
            let (item, kind) = scalar(dice, relations, &keys, 1);
            items.push(item);
            kinds.push(kind);
        }
        _ => {
            let (item, _) = scalar(dice, relations, &scope, 1);
            items.push(format!("count({item})"));
            kinds.push(Type::Int8);
        }
    }
    let having = match dice.chance(50) {
        true => format!(" HAVING {}", condition(dice, relations, &keys, 1)),
        false => String::new(),
    };
    let sql = format!("SELECT {} {from} GROUP BY {}{having}", named(&items), key.reference);
    Query { sql, kinds }
}

/// In the condition of a join.
fn joined(dice: &mut Dice, relations: &[Relation]) -> Query {
    let (left, right) = (dice.pick(relations).clone(), dice.pick(relations).clone());
    let scope = [left.fields("x1"), right.fields("x2")].concat();
    let condition = condition(dice, relations, &scope, 1);
    let join = dice.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN"]);
    let (items, kinds) = columns(dice, &scope);
    let sql = format!(
        "SELECT {} FROM {} x1 {join} {} x2 ON {} AND {condition}",
        named(&items),
        left.name,
        right.name,
        tie(dice, &left.fields("x1"), &right.fields("x2"), true),
    );
    Query { sql, kinds }
}

fn lateral(dice: &mut Dice, relations: &[Relation]) -> Query {
    let (from, mut scope) = outer(dice, relations);
    let inner = subquery(dice, relations, &scope, 1);
    let all = [scope.clone(), inner.own.clone()].concat();
    let (list, inner_kinds, suffix) = match dice.index(4) {
        0 => {
            // Of columns of the subquery: in FROM there are no aggregates of the query around.
            let (item, kind) = aggregate(dice, &inner.own);
            (vec![format!("count({})", inner.own[0].reference), item], vec![Type::Int8, kind], "")
        }
        1 => {
            let key = dice.pick(&inner.own).clone();
            (vec![key.reference, "count(*)".into()], vec![key.kind, Type::Int8], " GROUP BY 1")
        }
        _ => {
            let kinds: Vec<Type> = (0..2).map(|_| all[dice.index(all.len())].kind).collect();
            let list = kinds.iter().map(|kind| expression(dice, &all, *kind, 1)).collect();
            (list, kinds, "")
        }
    };
    let is_plain = suffix.is_empty() && !list[0].starts_with("count(");
    let distinct = if is_plain && dice.chance(30) { "DISTINCT " } else { "" };
    let text = format!("SELECT {distinct}{} {}{suffix}", named(&list), inner.text);
    let fields = inner_kinds.iter().enumerate();
    let fields: Vec<Field> =
        fields.map(|(i, kind)| Field { reference: format!("l.o{}", i + 1), kind: *kind }).collect();
    let join = if dice.chance(50) {
        format!("CROSS JOIN LATERAL ({text}) l")
    } else {
        let both = [scope.clone(), fields.clone()].concat();
        let on = if dice.chance(50) { "true".into() } else { predicate(dice, &both, 1) };
        format!("LEFT JOIN LATERAL ({text}) l ON {on}")
    };
    scope.extend(fields);
    let (items, kinds) = columns(dice, &scope);
    Query { sql: format!("SELECT {} {from} {join}", named(&items)), kinds }
}

fn outer(dice: &mut Dice, relations: &[Relation]) -> (String, Vec<Field>) {
    let relation = dice.pick(relations);
    (format!("FROM {} x1", relation.name), relation.fields("x1"))
}

fn columns(dice: &mut Dice, scope: &[Field]) -> (Vec<String>, Vec<Type>) {
    let fields: Vec<Field> = (0..dice.range(1, 3)).map(|_| dice.pick(scope).clone()).collect();
    fields.into_iter().map(|field| (field.reference, field.kind)).unzip()
}

fn several(dice: &mut Dice, mut make: impl FnMut(&mut Dice) -> String) -> Vec<String> {
    (0..*dice.pick(&[1, 1, 2])).map(|_| make(dice)).collect()
}

/// FROM and WHERE of a subquery.
struct Inner {
    text: String,
    /// Its own columns.
    own: Vec<Field>,
}

fn subquery(dice: &mut Dice, relations: &[Relation], scope: &[Field], depth: u32) -> Inner {
    let alias = format!("y{depth}");
    let relation = dice.pick(relations);
    let mut own = relation.fields(&alias);
    let mut text = format!("FROM {} {alias}", relation.name);
    let mut conditions = Vec::new();
    if dice.chance(15) {
        let other = dice.pick(relations);
        let fields = other.fields(&format!("z{depth}"));
        let condition = tie(dice, &own, &fields, true);
        let join = dice.pick(&["JOIN", "LEFT JOIN"]);
        text.push_str(&format!(" {join} {} z{depth} ON {condition}", other.name));
        own.extend(fields);
    }
    if dice.chance(75) {
        conditions.push(tie(dice, scope, &own, false));
    }
    let both = [scope, &own].concat();
    match dice.index(6) {
        0 => conditions.push(predicate(dice, &own, 1)),
        1 => conditions.push(predicate(dice, &both, 1)),
        2 if depth > 0 => conditions.push(condition(dice, relations, &both, depth - 1)),
        _ => {}
    }
    if !conditions.is_empty() {
        text.push_str(&format!(" WHERE {}", conditions.join(" AND ")));
    }
    Inner { text, own }
}

/// A comparison of columns of one type, where there are such, mostly for equality.
fn tie(dice: &mut Dice, left: &[Field], right: &[Field], equal: bool) -> String {
    let pairs: Vec<(&Field, &Field)> = left
        .iter()
        .flat_map(|l| right.iter().map(move |r| (l, r)))
        .filter(|(l, r)| l.kind == r.kind)
        .collect();
    if pairs.is_empty() {
        return format!("{} IS NOT NULL", right[0].reference);
    }
    let (l, r) = *dice.pick(&pairs);
    let operators = ["=", "=", "=", "=", "IS NOT DISTINCT FROM", "<", "<>"];
    let operator = if equal { "=" } else { *dice.pick(&operators) };
    format!("{} {operator} {}", r.reference, l.reference)
}

/// A condition with a subquery.
fn condition(dice: &mut Dice, relations: &[Relation], scope: &[Field], depth: u32) -> String {
    let text = comparison(dice, relations, scope, depth);
    match dice.index(8) {
        0 => format!("({text} OR {})", predicate(dice, scope, 1)),
        1 => format!("(NOT {text})"),
        2 => format!("({text} IS NULL)"),
        _ => text,
    }
}

fn comparison(dice: &mut Dice, relations: &[Relation], scope: &[Field], depth: u32) -> String {
    let inner = subquery(dice, relations, scope, depth);
    let negation = dice.pick(&["", "NOT "]).to_string();
    let column = |dice: &mut Dice| dice.pick(&inner.own).clone();
    match dice.index(9) {
        0..=2 => format!("({negation}EXISTS (SELECT 1 {}))", inner.text),
        3 | 4 => {
            let field = column(dice);
            let operand = expression(dice, scope, field.kind, 1);
            format!("({operand} {negation}IN (SELECT {} {}))", field.reference, inner.text)
        }
        5 => {
            let (one, two) = (column(dice), column(dice));
            let operands =
                [&one, &two].map(|field| expression(dice, scope, field.kind, 0)).join(", ");
            let list = format!("{}, {}", one.reference, two.reference);
            format!("(({operands}) {negation}IN (SELECT {list} {}))", inner.text)
        }
        6 => {
            let field = column(dice);
            let operand = expression(dice, scope, field.kind, 1);
            let operator = dice.pick(&["=", "<>", "<", "<=", ">", ">="]).to_string();
            let quantifier = dice.pick(&["ANY", "ALL"]);
            let list = field.reference;
            format!("({operand} {operator} {quantifier} (SELECT {list} {}))", inner.text)
        }
        _ => {
            let (value, kind) = scalar(dice, relations, scope, depth);
            let operator = dice.pick(&["=", "<>", "<", ">="]).to_string();
            format!("({} {operator} {value})", expression(dice, scope, kind, 1))
        }
    }
}

/// A subquery with one value.
fn scalar(dice: &mut Dice, relations: &[Relation], scope: &[Field], depth: u32) -> (String, Type) {
    let inner = subquery(dice, relations, scope, depth);
    let all = [scope, &inner.own].concat();
    // An aggregate of nothing but outer columns would be one of the outer query.
    let fields = if dice.chance(70) { &inner.own } else { &all };
    let (value, kind) = aggregate(dice, fields);
    let value = match value.contains(&format!("y{depth}.")) || value == "count(*)" {
        true => value,
        false => return (format!("(SELECT count(*) {})", inner.text), Type::Int8),
    };
    let having = if dice.chance(15) { " HAVING count(*) > 1" } else { "" };
    (format!("(SELECT {value} {}{having})", inner.text), kind)
}
