//! Random queries with subqueries in expressions and LATERAL ones, correlated or not, up to three deep.

use super::aggregate::aggregate;
use super::draws::Draws;
use super::expression::{expression, predicate, Field};
use super::feature::Feature;
use super::relation::{named, Query, Relation};
use super::types::Type;

/// So deep do subqueries stand within subqueries.
const DEPTH: u32 = 2;

pub fn random_query(dice: &mut Draws, relations: &[Relation]) -> Query {
    match dice.index(6) {
        0 | 1 => filtered(dice, relations),
        2 => values(dice, relations),
        3 => grouped(dice, relations),
        4 => joined(dice, relations),
        _ => lateral(dice, relations),
    }
}

/// A subquery in a condition of WHERE.
fn filtered(dice: &mut Draws, relations: &[Relation]) -> Query {
    dice.record(Feature::InWhere);
    let (from, scope) = outer(dice, relations);
    let conditions = several(dice, |dice| condition(dice, relations, &scope, DEPTH));
    let (items, kinds) = columns(dice, &scope);
    let sql = format!("SELECT {} {from} WHERE {}", named(&items), conditions.join(" AND "));
    Query { sql, kinds }
}

/// In the select list. Now and then a subquery has several rows, which is an error.
fn values(dice: &mut Draws, relations: &[Relation]) -> Query {
    dice.record(Feature::InSelectList);
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
    if dice.takes(20, Feature::SeveralRows) {
        let inner = subquery(dice, relations, &scope, 1);
        let field = dice.pick(&inner.own).clone();
        items.push(format!("(SELECT {} {})", field.reference, inner.text));
        kinds.push(field.kind);
    }
    Query { sql: format!("SELECT {} {from}", named(&items)), kinds }
}

/// In keys, in arguments of aggregates, beside them, and in HAVING.
fn grouped(dice: &mut Draws, relations: &[Relation]) -> Query {
    let (from, scope) = outer(dice, relations);
    let key = dice.pick(&scope).clone();
    let keys = [key.clone()];
    let mut items = vec![key.reference.clone(), "count(*)".to_owned()];
    let mut kinds = vec![key.kind, Type::Int8];
    match dice.rule(&[(2, Feature::InAggregate), (1, Feature::BesideAggregate)]) {
        Feature::InAggregate if dice.chance(50) => {
            let condition = condition(dice, relations, &scope, 1);
            items.push(format!("bool_or({condition})"));
            kinds.push(Type::Bool);
        }
        Feature::BesideAggregate => {
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
    let having = match dice.takes(50, Feature::InHaving) {
        true => format!(" HAVING {}", condition(dice, relations, &keys, 1)),
        false => String::new(),
    };
    let sql = format!("SELECT {} {from} GROUP BY {}{having}", named(&items), key.reference);
    Query { sql, kinds }
}

/// In the condition of a join.
fn joined(dice: &mut Draws, relations: &[Relation]) -> Query {
    dice.record(Feature::InJoinCondition);
    let left = Relation::random(dice, relations).clone();
    let right = Relation::random(dice, relations).clone();
    let scope = [left.fields("x1"), right.fields("x2")].concat();
    let condition = condition(dice, relations, &scope, 1);
    let join = dice.form(&[
        (1, Feature::InnerJoin, "JOIN"),
        (1, Feature::LeftJoin, "LEFT JOIN"),
        (1, Feature::RightJoin, "RIGHT JOIN"),
    ]);
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

fn lateral(dice: &mut Draws, relations: &[Relation]) -> Query {
    let (from, mut scope) = outer(dice, relations);
    let inner = subquery(dice, relations, &scope, 1);
    let all = [scope.clone(), inner.own.clone()].concat();
    let rule = dice.rule(&[
        (1, Feature::LateralAggregate),
        (1, Feature::LateralGroup),
        (1, Feature::LateralRows),
        (1, Feature::LateralDistinct),
    ]);
    let (list, inner_kinds, suffix) = match rule {
        Feature::LateralAggregate => {
            // Of columns of the subquery: in FROM there are no aggregates of the query around.
            let (item, kind) = aggregate(dice, &inner.own);
            (vec![format!("count({})", inner.own[0].reference), item], vec![Type::Int8, kind], "")
        }
        Feature::LateralGroup => {
            let key = dice.pick(&inner.own).clone();
            (vec![key.reference, "count(*)".into()], vec![key.kind, Type::Int8], " GROUP BY 1")
        }
        _ => {
            let kinds: Vec<Type> = (0..2).map(|_| all[dice.index(all.len())].kind).collect();
            let list = kinds.iter().map(|kind| expression(dice, &all, *kind, 1)).collect();
            (list, kinds, "")
        }
    };
    let distinct = if rule == Feature::LateralDistinct { "DISTINCT " } else { "" };
    let text = format!("SELECT {distinct}{} {}{suffix}", named(&list), inner.text);
    let fields = inner_kinds.iter().enumerate();
    let fields: Vec<Field> =
        fields.map(|(i, kind)| Field { reference: format!("l.o{}", i + 1), kind: *kind }).collect();
    let join = if dice.takes(50, Feature::LateralCross) {
        format!("CROSS JOIN LATERAL ({text}) l")
    } else {
        dice.record(Feature::LateralLeft);
        let both = [scope.clone(), fields.clone()].concat();
        let on = if dice.chance(50) { "true".into() } else { predicate(dice, &both, 1) };
        format!("LEFT JOIN LATERAL ({text}) l ON {on}")
    };
    scope.extend(fields);
    let (items, kinds) = columns(dice, &scope);
    Query { sql: format!("SELECT {} {from} {join}", named(&items)), kinds }
}

fn outer(dice: &mut Draws, relations: &[Relation]) -> (String, Vec<Field>) {
    let relation = Relation::random(dice, relations);
    (format!("FROM {} x1", relation.name), relation.fields("x1"))
}

fn columns(dice: &mut Draws, scope: &[Field]) -> (Vec<String>, Vec<Type>) {
    let fields: Vec<Field> = (0..dice.range(1, 3)).map(|_| dice.pick(scope).clone()).collect();
    fields.into_iter().map(|field| (field.reference, field.kind)).unzip()
}

fn several(dice: &mut Draws, mut make: impl FnMut(&mut Draws) -> String) -> Vec<String> {
    (0..*dice.pick(&[1, 1, 2])).map(|_| make(dice)).collect()
}

/// FROM and WHERE of a subquery.
struct Inner {
    text: String,
    own: Vec<Field>,
}

fn subquery(dice: &mut Draws, relations: &[Relation], scope: &[Field], depth: u32) -> Inner {
    let alias = format!("y{depth}");
    let relation = Relation::random(dice, relations);
    let mut own = relation.fields(&alias);
    let mut text = format!("FROM {} {alias}", relation.name);
    let mut conditions = Vec::new();
    if dice.takes(15, Feature::SubqueryWithJoin) {
        let other = Relation::random(dice, relations);
        let fields = other.fields(&format!("z{depth}"));
        let condition = tie(dice, &own, &fields, true);
        let join =
            dice.form(&[(1, Feature::InnerJoin, "JOIN"), (1, Feature::LeftJoin, "LEFT JOIN")]);
        text.push_str(&format!(" {join} {} z{depth} ON {condition}", other.name));
        own.extend(fields);
    }
    if dice.takes(75, Feature::Correlated) {
        conditions.push(tie(dice, scope, &own, false));
    }
    let both = [scope, &own].concat();
    match dice.index(6) {
        0 => conditions.push(predicate(dice, &own, 1)),
        1 => {
            dice.record(Feature::SubqueryOverOuter);
            conditions.push(predicate(dice, &both, 1));
        }
        2 if depth > 0 => {
            dice.record(Feature::Nested);
            conditions.push(condition(dice, relations, &both, depth - 1));
        }
        _ => {}
    }
    if !conditions.is_empty() {
        text.push_str(&format!(" WHERE {}", conditions.join(" AND ")));
    }
    Inner { text, own }
}

/// A comparison of columns of one type, where there are such, mostly for equality.
fn tie(dice: &mut Draws, left: &[Field], right: &[Field], equal: bool) -> String {
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
fn condition(dice: &mut Draws, relations: &[Relation], scope: &[Field], depth: u32) -> String {
    let text = comparison(dice, relations, scope, depth);
    if dice.takes(13, Feature::SubqueryOr) {
        format!("({text} OR {})", predicate(dice, scope, 1))
    } else if dice.takes(13, Feature::SubqueryNot) {
        format!("(NOT {text})")
    } else if dice.takes(13, Feature::SubqueryIsNull) {
        format!("({text} IS NULL)")
    } else {
        text
    }
}

fn comparison(dice: &mut Draws, relations: &[Relation], scope: &[Field], depth: u32) -> String {
    let inner = subquery(dice, relations, scope, depth);
    use Feature::*;
    let column = |dice: &mut Draws| dice.pick(&inner.own).clone();
    let rules = [
        (2, Exists),
        (2, NotExists),
        (2, In),
        (2, NotIn),
        (1, RowIn),
        (1, RowNotIn),
        (1, Any),
        (1, All),
        (1, RowOrder),
        (4, Scalar),
    ];
    match dice.rule(&rules) {
        rule @ (Exists | NotExists) => format!("({} (SELECT 1 {}))", rule.name(), inner.text),
        rule @ (In | NotIn) => {
            let field = column(dice);
            let kind = field.kind.comparable(dice);
            let operand = expression(dice, scope, kind, 1);
            format!("({operand} {} (SELECT {} {}))", rule.name(), field.reference, inner.text)
        }
        rule @ (RowIn | RowNotIn) => {
            let negation = if rule == RowNotIn { "NOT " } else { "" };
            let (one, two) = (column(dice), column(dice));
            let operands =
                [&one, &two].map(|field| expression(dice, scope, field.kind, 0)).join(", ");
            let list = format!("{}, {}", one.reference, two.reference);
            format!("(({operands}) {negation}IN (SELECT {list} {}))", inner.text)
        }
        RowOrder => {
            let (one, two) = (column(dice), column(dice));
            let operand = |field: &Field| {
                let kind = field.kind.comparable(dice);
                expression(dice, scope, kind, 0)
            };
            let operands = [&one, &two].map(operand).join(", ");
            let operator = dice.pick(&["<", "<=", ">", ">="]).to_string();
            let quantifier = dice.pick(&["ANY", "ALL"]).to_string();
            let list = format!("{}, {}", one.reference, two.reference);
            format!("(({operands}) {operator} {quantifier} (SELECT {list} {}))", inner.text)
        }
        rule @ (Any | All) => {
            let field = column(dice);
            let kind = field.kind.comparable(dice);
            let operand = expression(dice, scope, kind, 1);
            let operator = dice.pick(&["=", "<>", "<", "<=", ">", ">="]).to_string();
            let quantifier = rule.name();
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
fn scalar(dice: &mut Draws, relations: &[Relation], scope: &[Field], depth: u32) -> (String, Type) {
    let inner = subquery(dice, relations, scope, depth);
    let all = [scope, &inner.own].concat();
    // An aggregate of nothing but outer columns would be one of the outer query.
    let fields = if dice.chance(70) { &inner.own } else { &all };
    let (value, kind) = aggregate(dice, fields);
    let value = match value.contains(&format!("y{depth}.")) || value == "count(*)" {
        true => value,
        false => return (format!("(SELECT count(*) {})", inner.text), Type::Int8),
    };
    let having =
        if dice.takes(15, Feature::ScalarWithHaving) { " HAVING count(*) > 1" } else { "" };
    (format!("(SELECT {value} {}{having})", inner.text), kind)
}
