//! Random queries whose result depends on an order: LIMIT, DISTINCT ON, ranks, and what other files draw.
//!
//! The order is total up to rows that are equal in all columns wherever PostgreSQL would otherwise be free to
//! choose; what only looks at groups of peers may have any order.

use super::aggregate;
use super::collected;
use super::draws::Draws;
use super::feature::Feature;
use super::from::{lateral_join, source, Source};
use super::order::{columns, limit, order};
use super::relation::{named, Query, Relation};
use super::row_order;
use super::types::Type;
use super::window;

pub fn random_query(dice: &mut Draws, relations: &[Relation]) -> Query {
    match dice.index(24) {
        0 | 1 => limited_view(dice, relations),
        2 | 3 => limited_within(dice, relations),
        4..=6 => limited_for_each(dice, relations),
        7 | 8 => first_of_each(dice, relations),
        9 | 10 => ranked(dice, relations),
        11..=14 => collected::random_query(dice, relations),
        15..=18 => row_order::random_query(dice, relations),
        _ => window::random_query(dice, relations),
    }
}

/// LIMIT of the view itself.
fn limited_view(dice: &mut Draws, relations: &[Relation]) -> Query {
    dice.record(Feature::LimitOfView);
    limited(dice, relations)
}

fn limited(dice: &mut Draws, relations: &[Relation]) -> Query {
    let Source { text, scope } = source(dice, relations);
    let (items, kinds) = columns(dice, &scope);
    let limit = limit(dice, &scope, relations, None);
    Query { sql: format!("SELECT {} {text} {limit}", named(&items)), kinds }
}

/// LIMIT of a subquery in FROM, joined and grouped.
fn limited_within(dice: &mut Draws, relations: &[Relation]) -> Query {
    dice.record(Feature::LimitInFrom);
    let inner = limited(dice, relations);
    let q = Relation::of_query("q", &inner).fields("q");
    let key = dice.pick(&q).clone();
    let (item, kind) = aggregate::random_call(dice, &q).finish();
    let items = [key.reference.clone(), item];
    let sql = format!(
        "SELECT {} FROM ({}) q{} GROUP BY {}",
        named(&items),
        inner.sql,
        if dice.chance(50) {
            format!(" LEFT JOIN {} z ON true", relations[0].name)
        } else {
            String::new()
        },
        key.reference
    );
    Query { sql, kinds: vec![key.kind, kind] }
}

/// LIMIT of a subquery for each outer row: LATERAL, or a value.
fn limited_for_each(dice: &mut Draws, relations: &[Relation]) -> Query {
    let graph = relations[0].fields("g");
    let relation = Relation::random(dice, relations).clone();
    let inner = relation.fields("i");
    let (outer_key, inner_key) = (dice.pick(&graph).clone(), dice.pick(&inner).clone());
    let condition = match outer_key.kind == inner_key.kind && outer_key.kind != Type::Bool {
        true => format!("{} = {}", inner_key.reference, outer_key.reference),
        false => format!("{} IS NOT NULL", outer_key.reference),
    };
    let field = dice.pick(&inner).clone();
    let from = format!("FROM {} i WHERE {condition}", relation.name);
    let mut items = vec!["g.a".to_owned(), outer_key.reference.clone()];
    let kinds = vec![Type::Int4, outer_key.kind, field.kind];
    if dice.takes(40, Feature::LimitOfValue) {
        let order = order(dice, &inner, true);
        let offset = dice.range(0, 1);
        items.push(format!(
            "(SELECT {} {from} ORDER BY {order} LIMIT 1 OFFSET {offset})",
            field.reference
        ));
        return Query {
            sql: format!("SELECT {} FROM {} g", named(&items), relations[0].name),
            kinds,
        };
    }
    dice.record(Feature::LimitLateral);
    items.push("l.x".to_owned());
    let limit = limit(dice, &inner, relations, Some("g.a"));
    let join = lateral_join(dice);
    let on = if join.starts_with("LEFT") { " ON true" } else { "" };
    let sql = format!(
        "SELECT {} FROM {} g {join} (SELECT {} AS x {from} {limit}) l{on}",
        named(&items),
        relations[0].name,
        field.reference
    );
    Query { sql, kinds }
}

/// DISTINCT ON, which keeps the first row of each key.
fn first_of_each(dice: &mut Draws, relations: &[Relation]) -> Query {
    dice.record(Feature::DistinctOn);
    let Source { text, scope } = source(dice, relations);
    let (items, kinds) = columns(dice, &scope);
    let key = dice.pick(&scope).clone();
    let order = order(dice, &scope, true);
    let direction = dice.pick(&["", " DESC"]);
    let mut sql = format!(
        "SELECT DISTINCT ON ({key}) {} {text} ORDER BY {key}{direction}, {order}",
        named(&items),
        key = key.reference
    );
    if dice.takes(40, Feature::DistinctOnLimit) {
        sql.push_str(&format!(" LIMIT {}", dice.range(1, 4)));
    }
    Query { sql, kinds }
}

/// The rows of each partition up to some rank.
fn ranked(dice: &mut Draws, relations: &[Relation]) -> Query {
    let Source { text, scope } = source(dice, relations);
    let (mut items, mut kinds) = columns(dice, &scope);
    use Feature::{DenseRank, Rank, RowNumber};
    dice.record(Feature::RankBound);
    let rule = dice.rule(&[RowNumber, Rank, DenseRank].map(|rule| (1, rule)));
    let function = rule.name();
    let order = order(dice, &scope, rule == RowNumber);
    let partition = dice.pick(&scope).reference.clone();
    items.push(format!("{function}() OVER (PARTITION BY {partition} ORDER BY {order})"));
    kinds.push(Type::Int8);
    let number = items.len();
    let outputs: Vec<String> = (1..=number).map(|i| format!("r.o{i}")).collect();
    let bound = dice.range(0, 3);
    let comparison = dice.pick(&["<=", "<", "=", ">"]);
    let sql = format!(
        "SELECT {} FROM (SELECT {} {text}) r WHERE r.o{number} {comparison} {bound}",
        named(&outputs),
        named(&items)
    );
    Query { sql, kinds }
}
