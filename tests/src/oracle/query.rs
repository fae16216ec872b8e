//! Random queries without recursion: projections, filters, joins, groups, DISTINCT, set operations, CTEs,
//! subqueries in FROM and VALUES.

use std::collections::BTreeSet;

use super::aggregate::aggregate;
use super::draws::Draws;
use super::expression::{expression, risky, Field};
use super::feature::Feature;
use super::from::{source, Source};
use super::ordered;
use super::recursion;
use super::relation::{named, Query, Relation};
use super::subquery;
use super::types::{Type, ALL};

/// A query over `relations`, of which the first is the graph.
pub fn random_query(dice: &mut Draws, relations: &[Relation]) -> Query {
    match dice.index(27) {
        0 => plain_select(dice, relations),
        1..=3 => grouped(dice, relations),
        4 => distinct(dice, relations),
        5 | 6 => set_operation(dice, relations),
        7 | 8 => nested(dice, relations),
        9 => with_values(dice, relations),
        10..=14 => subquery::random_query(dice, relations),
        15..=20 => ordered::random_query(dice, relations),
        _ => recursion::random_query(dice, relations),
    }
}

/// The query of a plain view: one that no data makes fail.
pub fn plain_view(dice: &mut Draws, relations: &[Relation]) -> Query {
    match dice.index(3) {
        0 => grouped(dice, relations),
        1 => distinct(dice, relations),
        _ => select(dice, relations, None, false),
    }
}

fn plain_select(dice: &mut Draws, relations: &[Relation]) -> Query {
    dice.record(Feature::Select);
    select(dice, relations, None, true)
}

/// A select list of the wanted types, or of random ones.
fn select(
    dice: &mut Draws,
    relations: &[Relation],
    wanted: Option<&[Type]>,
    may_fail: bool,
) -> Query {
    let Source { text, scope } = source(dice, relations);
    let kinds = match wanted {
        Some(kinds) => kinds.to_vec(),
        None => (0..dice.range(1, 4)).map(|_| scope[dice.index(scope.len())].kind).collect(),
    };
    let mut items: Vec<String> =
        kinds.iter().map(|kind| expression(dice, &scope, *kind, 2)).collect();
    let mut kinds = kinds;
    if may_fail && dice.chance(40) {
        if let Some(item) = risky(dice, &scope) {
            dice.record(Feature::ErrorsOfRows);
            items.push(format!("({item})::bigint"));
            kinds.push(Type::Int8);
        }
    }
    Query { sql: format!("SELECT {} {text}", named(&items)), kinds }
}

fn grouped(dice: &mut Draws, relations: &[Relation]) -> Query {
    dice.record(Feature::Grouped);
    let Source { text, scope } = source(dice, relations);
    let mut items = Vec::new();
    let mut kinds = Vec::new();
    let keys = *dice.pick(&[0, 1, 1, 2, 2]);
    for _ in 0..keys {
        let kind = scope[dice.index(scope.len())].kind;
        items.push(expression(dice, &scope, kind, 1));
        kinds.push(kind);
    }
    for _ in 0..dice.range(1, 3) {
        let (item, kind) = aggregate(dice, &scope);
        items.push(item);
        kinds.push(kind);
    }
    if dice.takes(10, Feature::OuterAggregate) {
        let (graph, column) = (&relations[0], &dice.pick(&scope).reference);
        let (first, kind) = &graph.columns[0];
        let condition = match kind {
            Type::Int4 => format!("h.{first} <= count({column})"),
            _ => format!("h.{first} IS NOT NULL AND count({column}) > 1"),
        };
        items.push(format!("(SELECT count(h.{first}) FROM {} h WHERE {condition})", graph.name));
        kinds.push(Type::Int8);
    }
    let grouping = grouping(dice, keys, &scope, &mut items, &mut kinds);
    let mut sql = format!("SELECT {} {text}{grouping}", named(&items));
    if dice.takes(30, Feature::Having) {
        let condition = dice.pick(&["count(*) > 1", "count(*) % 2 = 1", "count(*) <> 3"]);
        sql.push_str(&format!(" HAVING {condition}"));
    }
    Query { sql, kinds }
}

/// GROUP BY the first `keys` items, or sets of them, which may add an item that tells the sets apart.
fn grouping(
    dice: &mut Draws,
    keys: usize,
    scope: &[Field],
    items: &mut Vec<String>,
    kinds: &mut Vec<Type>,
) -> String {
    let numbers: Vec<String> = (1..=keys).map(|n| n.to_string()).collect();
    let numbers = numbers.join(", ");
    let several = i64::from(keys > 0 && are_different(&items[..keys], scope));
    match dice.rule(&[
        (i64::from(keys == 0), Feature::GroupOfAll),
        (3 * i64::from(keys > 0), Feature::PlainKeys),
        (several, Feature::Rollup),
        (several, Feature::Cube),
        (several, Feature::GroupingSets),
        (several, Feature::NestedGroupingSets),
    ]) {
        Feature::GroupOfAll => String::new(),
        Feature::PlainKeys => format!(" GROUP BY {numbers}"),
        sets => {
            if dice.takes(50, Feature::GroupingCall) {
                items.push(format!("GROUPING({})", items[..keys].join(", ")));
                kinds.push(Type::Int4);
            }
            match sets {
                Feature::Rollup => format!(" GROUP BY ROLLUP ({numbers})"),
                Feature::Cube => format!(" GROUP BY CUBE ({numbers})"),
                Feature::GroupingSets => format!(" GROUP BY GROUPING SETS (({numbers}), (1), ())"),
                _ => format!(" GROUP BY GROUPING SETS (ROLLUP ({numbers}), CUBE (1), ({numbers}))"),
            }
        }
    }
}

/// Whether no two keys can be the same expression, which grouping sets refuse: they read different columns.
/// (Two spellings of one constant would be equal, so their texts do not tell.)
fn are_different(keys: &[String], scope: &[Field]) -> bool {
    let columns = |key: &String| -> Vec<bool> {
        scope.iter().map(|field| key.contains(&field.reference)).collect()
    };
    let distinct: BTreeSet<Vec<bool>> = keys.iter().map(columns).collect();
    distinct.len() == keys.len()
}

fn distinct(dice: &mut Draws, relations: &[Relation]) -> Query {
    dice.record(Feature::Distinct);
    let query = select(dice, relations, None, false);
    Query { sql: query.sql.replacen("SELECT", "SELECT DISTINCT", 1), kinds: query.kinds }
}

fn set_operation(dice: &mut Draws, relations: &[Relation]) -> Query {
    use Feature::{Except, ExceptAll, Intersect, IntersectAll, SetOperation, Union, UnionAll};
    dice.record(SetOperation);
    let kinds: Vec<Type> = (0..dice.range(1, 3)).map(|_| *dice.pick(ALL)).collect();
    let branches: Vec<String> = (0..dice.range(2, 3))
        .map(|_| format!("({})", select(dice, relations, Some(&kinds), false).sql))
        .collect();
    let rules = [Intersect, IntersectAll, Except, ExceptAll, Union, UnionAll];
    let operator = dice.rule(&rules.map(|rule| (1, rule))).name();
    Query { sql: branches.join(&format!(" {operator} ")), kinds }
}

/// A query over another query, as a subquery in FROM or as a CTE.
fn nested(dice: &mut Draws, relations: &[Relation]) -> Query {
    let inner = match dice.index(4) {
        0 => grouped(dice, relations),
        1 => distinct(dice, relations),
        2 => set_operation(dice, relations),
        _ => select(dice, relations, None, false),
    };
    let relation = Relation::of_query("q", &inner);
    let with_graph = [relation.clone(), relations[0].clone()];
    let around: &[Relation] = if dice.chance(40) { &with_graph } else { &with_graph[..1] };
    let outer = match dice.index(3) {
        0 => grouped(dice, around),
        1 => distinct(dice, around),
        _ => select(dice, around, None, false),
    };
    let in_from = outer.sql.replacen("FROM q x1", &format!("FROM ({}) x1", inner.sql), 1);
    let is_used_once = in_from != outer.sql && !in_from.contains(" q ");
    if is_used_once && dice.takes(60, Feature::SubqueryInFrom) {
        return Query { sql: in_from, kinds: outer.kinds };
    }
    dice.record(Feature::Cte);
    Query { sql: format!("WITH q AS ({}) {}", inner.sql, outer.sql), kinds: outer.kinds }
}

fn with_values(dice: &mut Draws, relations: &[Relation]) -> Query {
    let graph = &relations[0].name;
    let row = |dice: &mut Draws| {
        let number = match dice.takes(20, Feature::SubqueryInValues) {
            true => format!("(SELECT max(v.a) FROM {graph} v)"),
            false => Type::Int4.literal(dice),
        };
        format!("({number}, {})", Type::Text.literal(dice))
    };
    let rows: Vec<String> = (0..dice.range(1, 4)).map(|_| row(dice)).collect();
    let constants = Relation {
        name: format!("(VALUES {})", rows.join(", ")),
        columns: vec![("column1".into(), Type::Int4), ("column2".into(), Type::Text)],
        feature: Some(Feature::ValuesList),
    };
    let around = [relations[0].clone(), constants];
    // Columns of a single row are constants to PostgreSQL.
    select(dice, &around, None, false)
}
