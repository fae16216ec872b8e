//! Random queries over subqueries with ORDER BY, whose rows come in that order to an aggregate, LIMIT, DISTINCT ON, a window or
//! ARRAY.
//!
//! The order is total up to rows that are equal in all columns. It begins with what the query around groups, divides or sorts by, so
//! that PostgreSQL has nothing to sort anew, which might change the order of peers.

use super::draws::Draws;
use super::expression::{predicate, Field};
use super::feature::Feature;
use super::from::{source, Source};
use super::relation::{named, Query, Relation};
use super::types::Type;

/// Rows in order, as `q`.
struct Ordered {
    /// What comes before SELECT.
    with: String,
    /// The item of FROM.
    item: String,
    fields: Vec<Field>,
    /// The first columns of the order, and what follows the second one in ORDER BY.
    key: Field,
    second: Field,
    direction: &'static str,
    /// A value that is written in one way only, and the type of an array of such.
    value: Field,
    array: Type,
}

pub fn random_query(dice: &mut Draws, relations: &[Relation]) -> Query {
    let rows = ordered(dice, relations);
    use Feature::*;
    let rules = [
        (3, OrderToAggregate),
        (3, OrderToGroups),
        (2, OrderAmongPeers),
        (2, OrderToLimit),
        (2, OrderToDistinctOn),
        (3, OrderToWindow),
        (2, OrderToArray),
    ];
    let Ordered { with, item, key, value, array, .. } = &rows;
    let (k, x) = (&key.reference, &value.reference);
    let (items, kinds, rest) = match dice.rule(&rules) {
        OrderToAggregate => {
            let (items, kinds) = aggregates(&rows);
            (items, kinds, format!("FROM {item}"))
        }
        OrderToGroups => {
            let (items, kinds) = aggregates(&rows);
            let items = [vec![k.clone()], items].concat();
            (items, [vec![key.kind], kinds].concat(), format!("FROM {item} GROUP BY {k}"))
        }
        OrderAmongPeers => {
            let items = vec![format!("array_agg({x} ORDER BY {k})")];
            (items, vec![*array], format!("FROM {item}"))
        }
        OrderToLimit => {
            let (items, kinds) = columns(&rows);
            let (limit, offset) = (dice.range(0, 6), dice.range(0, 3));
            (items, kinds, format!("FROM {item} LIMIT {limit} OFFSET {offset}"))
        }
        OrderToDistinctOn => {
            let (items, kinds) = columns(&rows);
            let sql = format!("{with}SELECT DISTINCT ON ({k}) {} FROM {item}", named(&items));
            return Query { sql, kinds };
        }
        OrderToWindow => {
            let (items, kinds) = windows(dice, &rows);
            (items, kinds, format!("FROM {item}"))
        }
        _ => {
            let items = vec!["g.a".to_owned(), format!("ARRAY(SELECT {x} FROM {item})")];
            (items, vec![Type::Int4, *array], format!("FROM {} g", relations[0].name))
        }
    };
    Query { sql: format!("{with}SELECT {} {rest}", named(&items)), kinds }
}

/// A subquery with ORDER BY in FROM or in WITH, maybe with LIMIT or below a filter.
fn ordered(dice: &mut Draws, relations: &[Relation]) -> Ordered {
    let Source { text, scope } = source(dice, relations);
    let (mut columns, mut kinds): (Vec<String>, Vec<Type>) =
        scope.iter().map(|field| (field.reference.clone(), field.kind)).unzip();
    columns.push(format!("({} IS NULL)::integer", scope[0].reference));
    kinds.push(Type::Int4);
    let mut left: Vec<usize> = (0..kinds.len()).collect();
    let mut places = Vec::new();
    while !left.is_empty() {
        places.push(left.remove(dice.index(left.len())));
    }
    let directions = ["", " DESC", " ASC NULLS FIRST", " DESC NULLS LAST"];
    let direction = *dice.pick(&directions);
    let sorts = places.iter().enumerate().map(|(i, place)| match i {
        0 => format!("{}", place + 1),
        1 => format!("{}{direction}", place + 1),
        _ => format!("{}{}", place + 1, dice.pick(&directions)),
    });
    let order = sorts.collect::<Vec<_>>().join(", ");
    let mut sql = format!("SELECT {} {text} ORDER BY {order}", named(&columns));
    if dice.takes(20, Feature::OrderBehindLimit) {
        sql.push_str(&format!(" LIMIT {}", dice.range(2, 9)));
    }
    let query = Query { sql: sql.clone(), kinds };
    let relation = Relation::of_query("q", &query);
    if dice.takes(30, Feature::OrderThroughFilter) {
        let condition = predicate(dice, &relation.fields("p"), 1);
        sql = format!("SELECT * FROM ({sql}) p WHERE {condition}");
    }
    let (with, item) = match dice.takes(25, Feature::OrderThroughCte) {
        true => (format!("WITH q AS ({sql}) "), "q".to_owned()),
        false => (String::new(), format!("({sql}) q")),
    };
    let fields = relation.fields("q");
    let fitting = |field: &&Field| matches!(field.kind, Type::Int4 | Type::Text);
    let values: Vec<Field> = fields.iter().filter(fitting).cloned().collect();
    let value = dice.pick(&values).clone();
    let array = if value.kind == Type::Int4 { Type::Int4Array } else { Type::TextArray };
    let (key, second) = (fields[places[0]].clone(), fields[places[1]].clone());
    Ordered { with, item, fields, key, second, direction, value, array }
}

/// All columns but the last.
fn columns(rows: &Ordered) -> (Vec<String>, Vec<Type>) {
    let shown = &rows.fields[..rows.fields.len() - 1];
    shown.iter().map(|field| (field.reference.clone(), field.kind)).unzip()
}

/// Aggregates that show the order of their values.
fn aggregates(rows: &Ordered) -> (Vec<String>, Vec<Type>) {
    let x = &rows.value.reference;
    let items = [
        (format!("array_agg({x})"), rows.array),
        (format!("string_agg(({x})::text, ',')"), Type::Text),
        (format!("jsonb_agg({x})"), Type::Jsonb),
        (format!("joined(({x})::text)"), Type::Text),
        ("count(*)".to_owned(), Type::Int8),
    ];
    items.into_iter().unzip()
}

/// Calls over windows that PostgreSQL finds sorted.
fn windows(dice: &mut Draws, rows: &Ordered) -> (Vec<String>, Vec<Type>) {
    let (k, x) = (&rows.key.reference, &rows.value.reference);
    let partition = dice.pick(&[String::new(), format!("PARTITION BY {k}")]).clone();
    let order = match partition.is_empty() {
        true => format!("ORDER BY {k}"),
        false => format!("{partition} ORDER BY {}{}", rows.second.reference, rows.direction),
    };
    let (mut items, mut kinds) = columns(rows);
    let frame = "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW";
    let calls = [
        (format!("row_number() OVER ({partition})"), Type::Int8),
        (format!("lag({x}) OVER ({partition})"), rows.value.kind),
        (format!("array_agg({x}) OVER ({partition} {frame})"), rows.array),
        (format!("row_number() OVER ({order})"), Type::Int8),
        (format!("rank() OVER ({order})"), Type::Int8),
        (format!("last_value({x}) OVER ({order})"), rows.value.kind),
    ];
    for (call, kind) in calls {
        items.push(call);
        kinds.push(kind);
    }
    (items, kinds)
}
