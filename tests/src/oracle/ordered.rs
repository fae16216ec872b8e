//! Random queries whose result depends on an order: LIMIT, DISTINCT ON, window functions.
//!
//! The order is total up to rows that are equal in all columns wherever PostgreSQL would otherwise be free to
//! choose; what only looks at groups of peers may have any order.

use super::expression::Field;
use super::query::{named, plain_aggregate, source, Query, Relation, Source};
use super::types::Type;
use crate::dice::Dice;

pub fn random_query(dice: &mut Dice, relations: &[Relation]) -> Query {
    match dice.index(9) {
        7 | 8 => collected(dice, relations),
        0 => limited(dice, relations),
        1 => limited_within(dice, relations),
        2 => limited_for_each(dice, relations),
        3 => first_of_each(dice, relations),
        4 => ranked(dice, relations),
        _ => windowed(dice, relations),
    }
}

/// An item of an ORDER BY.
fn sort(dice: &mut Dice, field: &Field) -> String {
    let direction = dice.pick(&["", "", " DESC", " ASC NULLS FIRST", " DESC NULLS LAST"]);
    format!("{}{direction}", field.reference)
}

/// Some columns and behind them all others, if the order is to be total.
fn order(dice: &mut Dice, scope: &[Field], is_total: bool) -> String {
    let mut left = scope.to_vec();
    let mut items = Vec::new();
    let count = if is_total { left.len() } else { dice.range(1, 2) as usize };
    while items.len() < count && !left.is_empty() {
        let field = left.remove(dice.index(left.len()));
        items.push(sort(dice, &field));
    }
    items.join(", ")
}

/// Behind a total order any limit, behind another one only all peers of the last row.
fn limit(dice: &mut Dice, scope: &[Field]) -> String {
    let count = dice.range(0, 6);
    if dice.chance(25) {
        let order = order(dice, scope, false);
        return format!("ORDER BY {order} FETCH FIRST {count} ROWS WITH TIES");
    }
    let order = order(dice, scope, true);
    let offset = match dice.index(3) {
        0 => format!(" OFFSET {}", dice.range(0, 4)),
        _ => String::new(),
    };
    let limit = if dice.chance(90) { format!(" LIMIT {count}") } else { String::new() };
    format!("ORDER BY {order}{limit}{offset}")
}

fn columns(dice: &mut Dice, scope: &[Field]) -> (Vec<String>, Vec<Type>) {
    let fields: Vec<Field> = (0..dice.range(1, 3)).map(|_| dice.pick(scope).clone()).collect();
    fields.into_iter().map(|field| (field.reference, field.kind)).unzip()
}

/// LIMIT of the view itself.
fn limited(dice: &mut Dice, relations: &[Relation]) -> Query {
    let Source { text, scope } = source(dice, relations);
    let (items, kinds) = columns(dice, &scope);
    let limit = limit(dice, &scope);
    Query { sql: format!("SELECT {} {text} {limit}", named(&items)), kinds }
}

/// LIMIT of a subquery in FROM, joined and grouped.
fn limited_within(dice: &mut Dice, relations: &[Relation]) -> Query {
    let inner = limited(dice, relations);
    let q = Relation::of_view("q", &inner).fields("q");
    let key = dice.pick(&q).clone();
    let (item, kind) = plain_aggregate(dice, &q);
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
fn limited_for_each(dice: &mut Dice, relations: &[Relation]) -> Query {
    let graph = relations[0].fields("g");
    let relation = dice.pick(relations).clone();
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
    if dice.chance(50) {
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
    items.push("l.x".to_owned());
    let limit = limit(dice, &inner);
    let join = dice.pick(&["CROSS JOIN LATERAL", "LEFT JOIN LATERAL"]).to_string();
    let on = if join.starts_with("LEFT") { " ON true" } else { "" };
    let sql = format!(
        "SELECT {} FROM {} g {join} (SELECT {} AS x {from} {limit}) l{on}",
        named(&items),
        relations[0].name,
        field.reference
    );
    Query { sql, kinds }
}

/// DISTINCT ON.
fn first_of_each(dice: &mut Dice, relations: &[Relation]) -> Query {
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
    if dice.chance(25) {
        sql.push_str(&format!(" LIMIT {}", dice.range(1, 4)));
    }
    Query { sql, kinds }
}

/// Aggregates of all values in an order, ARRAY over subqueries, and set-returning functions that take them apart.
fn collected(dice: &mut Dice, relations: &[Relation]) -> Query {
    let relation = dice.pick(relations).clone();
    let scope = relation.fields("i");
    let fitting = |field: &&Field| matches!(field.kind, Type::Int4 | Type::Text);
    let values: Vec<Field> = scope.iter().filter(fitting).cloned().collect();
    if values.is_empty() || dice.chance(15) {
        return series(dice, relations);
    }
    let (value, key) = (dice.pick(&values).clone(), dice.pick(&scope).clone());
    let (x, k) = (&value.reference, &key.reference);
    let array = if value.kind == Type::Int4 { Type::Int4Array } else { Type::TextArray };
    let sort = sort(dice, &value);
    let from = format!("FROM {} i", relation.name);
    let grouped =
        format!("SELECT {k} AS k, array_agg({x} ORDER BY {sort}) AS xs {from} GROUP BY {k}");
    let (items, rest, kinds) = match dice.index(5) {
        0 => {
            let text = format!("string_agg(({x})::text, ',' ORDER BY ({x})::text)");
            let items = vec![k.clone(), format!("array_agg(DISTINCT {x})"), text];
            (items, format!("{from} GROUP BY {k}"), vec![key.kind, array, Type::Text])
        }
        1 => {
            let fraction = dice.pick(&["0", "0.3", "0.5", "1"]);
            let disc = format!("percentile_disc({fraction}) WITHIN GROUP (ORDER BY {sort})");
            let items = vec![disc, format!("mode() WITHIN GROUP (ORDER BY {sort})")];
            (items, format!("{from} GROUP BY {k}"), vec![value.kind, value.kind])
        }
        2 => {
            let items = vec!["q.k".to_owned(), "u.x".to_owned(), "u.n".to_owned()];
            let rest = format!("FROM ({grouped}) q, unnest(q.xs) WITH ORDINALITY u(x, n)");
            (items, rest, vec![key.kind, value.kind, Type::Int8])
        }
        3 => {
            let items = vec!["q.k".to_owned(), "unnest(q.xs)".to_owned(), "q.xs".to_owned()];
            (items, format!("FROM ({grouped}) q"), vec![key.kind, value.kind, array])
        }
        _ => {
            let condition = match key.kind {
                Type::Int4 => format!("{k} = g.b"),
                _ => format!("{k} IS NOT NULL AND g.a IS NOT NULL"),
            };
            let limit = if dice.chance(40) { " LIMIT 2" } else { "" };
            let array_of =
                format!("ARRAY(SELECT {x} {from} WHERE {condition} ORDER BY {sort}{limit})");
            let items = vec!["g.a".to_owned(), array_of];
            (items, format!("FROM {} g", relations[0].name), vec![Type::Int4, array])
        }
    };
    Query { sql: format!("SELECT {} {rest}", named(&items)), kinds }
}

/// A series for each row.
fn series(dice: &mut Dice, relations: &[Relation]) -> Query {
    let graph = &relations[0].name;
    let join = dice.pick(&["CROSS JOIN", "LEFT JOIN"]).to_string();
    let on = if join.starts_with("LEFT") { " ON true" } else { "" };
    let items = ["g.a".to_owned(), "s.n".to_owned()];
    let sql = format!(
        "SELECT {} FROM {graph} g {join} LATERAL generate_series(g.a, g.b, {}) s(n){on}",
        named(&items),
        dice.pick(&["1", "2", "-1"])
    );
    Query { sql, kinds: vec![Type::Int4, Type::Int4] }
}

/// The rows of each partition up to some rank.
fn ranked(dice: &mut Dice, relations: &[Relation]) -> Query {
    let Source { text, scope } = source(dice, relations);
    let (mut items, mut kinds) = columns(dice, &scope);
    let function = dice.pick(&["row_number", "rank", "dense_rank"]).to_string();
    let order = order(dice, &scope, function == "row_number");
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

/// Window functions over one or two windows, now and then over groups.
fn windowed(dice: &mut Dice, relations: &[Relation]) -> Query {
    let Source { text, scope } = source(dice, relations);
    if dice.chance(20) {
        return windowed_groups(dice, &text, &scope);
    }
    let (mut items, mut kinds) = columns(dice, &scope);
    for _ in 0..dice.range(1, 3) {
        let (item, kind) = window_call(dice, &scope);
        items.push(item);
        kinds.push(kind);
    }
    let distinct = if dice.chance(10) { "DISTINCT " } else { "" };
    Query { sql: format!("SELECT {distinct}{} {text}", named(&items)), kinds }
}

fn windowed_groups(dice: &mut Dice, text: &str, scope: &[Field]) -> Query {
    let key = dice.pick(scope).clone();
    let key_name = &key.reference;
    let items = [
        key_name.clone(),
        format!("sum(count(*)) OVER (ORDER BY {key_name})"),
        format!("rank() OVER (ORDER BY count(*) DESC, {key_name})"),
    ];
    let sql = format!("SELECT {} {text} GROUP BY {key_name}", named(&items));
    Query { sql, kinds: vec![key.kind, Type::Numeric, Type::Int8] }
}

fn window_call(dice: &mut Dice, scope: &[Field]) -> (String, Type) {
    let field = dice.pick(scope).clone();
    let value = &field.reference;
    let (call, kind, has_frame, sees_rows) = match dice.index(13) {
        0 => ("row_number()".to_owned(), Type::Int8, false, true),
        1 => ("rank()".to_owned(), Type::Int8, false, false),
        2 => ("dense_rank()".to_owned(), Type::Int8, false, false),
        3 => ("percent_rank()".to_owned(), Type::Float8, false, false),
        4 => ("cume_dist()".to_owned(), Type::Float8, false, false),
        5 => (format!("ntile({})", dice.range(1, 4)), Type::Int4, false, true),
        6 | 7 => {
            let function = dice.pick(&["lag", "lead"]).to_string();
            let default = field.kind.literal(dice);
            let rest = match dice.index(3) {
                0 => String::new(),
                1 => format!(", {}", dice.range(0, 3)),
                _ => format!(", {}, {default}", dice.range(-1, 2)),
            };
            (format!("{function}({value}{rest})"), field.kind, false, true)
        }
        8 => (format!("first_value({value})"), field.kind, true, true),
        9 => (format!("last_value({value})"), field.kind, true, true),
        10 => (format!("nth_value({value}, {})", dice.range(1, 3)), field.kind, true, true),
        _ => {
            let (call, kind) = plain_aggregate(dice, scope);
            (call, kind, true, false)
        }
    };
    let partition = match dice.index(3) {
        0 => String::new(),
        _ => format!("PARTITION BY {}", dice.pick(scope).reference),
    };
    let frame = if has_frame { frame(dice, scope) } else { None };
    // Of peers it would be open which is the first.
    let frame = frame.filter(|frame| !(sees_rows && frame.order.is_some()));
    let order = match &frame {
        Some(Frame { order: Some(order), .. }) => order.clone(),
        Some(Frame { counts_rows: true, .. }) => order(dice, scope, true),
        _ => order(dice, scope, sees_rows),
    };
    let frame = frame.map_or(String::new(), |frame| frame.text);
    (format!("{call} OVER ({partition} ORDER BY {order} {frame})"), kind)
}

struct Frame {
    text: String,
    /// Whether it does not always end with all peers of a row.
    counts_rows: bool,
    /// The order it needs.
    order: Option<String>,
}

fn frame(dice: &mut Dice, scope: &[Field]) -> Option<Frame> {
    let numbers: Vec<Field> =
        scope.iter().filter(|field| field.kind.is_number()).cloned().collect();
    let (units, order) = match dice.index(5) {
        0 => return None,
        1 | 2 => ("ROWS", None),
        3 => ("GROUPS", None),
        _ if numbers.is_empty() => ("RANGE", None),
        _ => {
            let field = dice.pick(&numbers).clone();
            ("RANGE", Some(sort(dice, &field)))
        }
    };
    let has_offsets = units != "RANGE" || order.is_some();
    let mut bound = |choices: &[&str]| {
        let bound = dice.pick(choices).to_string();
        bound.replace('n', &dice.range(0, 3).to_string())
    };
    let (start, end) = match has_offsets {
        true => (
            bound(&["UNBOUNDED PRECEDING", "n PRECEDING", "CURRENT ROW"]),
            bound(&["UNBOUNDED FOLLOWING", "n FOLLOWING", "CURRENT ROW"]),
        ),
        false => (
            bound(&["UNBOUNDED PRECEDING", "CURRENT ROW"]),
            bound(&["UNBOUNDED FOLLOWING", "CURRENT ROW"]),
        ),
    };
    let exclusion = match dice.index(5) {
        0 => " EXCLUDE CURRENT ROW",
        1 => " EXCLUDE GROUP",
        2 => " EXCLUDE TIES",
        _ => "",
    };
    let counts_rows = units == "ROWS" || exclusion.ends_with("ROW") || exclusion.ends_with("TIES");
    let text = format!("{units} BETWEEN {start} AND {end}{exclusion}");
    // Of the peers that a RANGE over one column leaves open PostgreSQL may see any order.
    if order.is_some() && counts_rows {
        return None;
    }
    Some(Frame { text, counts_rows, order })
}
