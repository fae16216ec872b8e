//! Random queries whose result depends on an order: LIMIT, DISTINCT ON, window functions.
//!
//! The order is total up to rows that are equal in all columns wherever PostgreSQL would otherwise be free to
//! choose; what only looks at groups of peers may have any order.

use super::aggregate::{self, Call};
use super::draws::Draws;
use super::expression::{expression, Field};
use super::feature::Feature;
use super::functions;
use super::query::{named, source, Query, Relation, Source};
use super::row_order;
use super::types::Type;

pub fn random_query(dice: &mut Draws, relations: &[Relation]) -> Query {
    match dice.index(24) {
        0 | 1 => limited_view(dice, relations),
        2 | 3 => limited_within(dice, relations),
        4..=6 => limited_for_each(dice, relations),
        7 | 8 => first_of_each(dice, relations),
        9 | 10 => ranked(dice, relations),
        11..=14 => collected(dice, relations),
        15..=18 => row_order::random_query(dice, relations),
        _ => windowed(dice, relations),
    }
}

/// An item of an ORDER BY.
fn sort(dice: &mut Draws, field: &Field) -> String {
    let direction = dice.pick(&["", "", " DESC", " ASC NULLS FIRST", " DESC NULLS LAST"]);
    format!("{}{direction}", field.reference)
}

/// Some columns and behind them all others, if the order is to be total.
fn order(dice: &mut Draws, scope: &[Field], is_total: bool) -> String {
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
fn limit(dice: &mut Draws, scope: &[Field]) -> String {
    let count = dice.range(0, 6);
    if dice.takes(25, Feature::WithTies) {
        let order = order(dice, scope, false);
        return format!("ORDER BY {order} FETCH FIRST {count} ROWS WITH TIES");
    }
    let order = order(dice, scope, true);
    let offset = format!(" OFFSET {}", dice.range(0, 4));
    let end =
        match dice.rule(&[(4, Feature::Limit), (2, Feature::Offset), (1, Feature::OffsetAlone)]) {
            Feature::Limit => format!(" LIMIT {count}"),
            Feature::Offset => format!(" LIMIT {count}{offset}"),
            _ => offset,
        };
    format!("ORDER BY {order}{end}")
}

fn columns(dice: &mut Draws, scope: &[Field]) -> (Vec<String>, Vec<Type>) {
    let fields: Vec<Field> = (0..dice.range(1, 3)).map(|_| dice.pick(scope).clone()).collect();
    fields.into_iter().map(|field| (field.reference, field.kind)).unzip()
}

/// LIMIT of the view itself.
fn limited_view(dice: &mut Draws, relations: &[Relation]) -> Query {
    dice.record(Feature::LimitOfView);
    limited(dice, relations)
}

fn limited(dice: &mut Draws, relations: &[Relation]) -> Query {
    let Source { text, scope } = source(dice, relations);
    let (items, kinds) = columns(dice, &scope);
    let limit = limit(dice, &scope);
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
    let limit = limit(dice, &inner);
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

/// DISTINCT ON.
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

/// Aggregates of all values in an order, ARRAY over subqueries, and set-returning functions that take them apart.
fn collected(dice: &mut Draws, relations: &[Relation]) -> Query {
    let relation = Relation::random(dice, relations).clone();
    let scope = relation.fields("i");
    let fitting = |field: &&Field| matches!(field.kind, Type::Int4 | Type::Text);
    let values: Vec<Field> = scope.iter().filter(fitting).cloned().collect();
    if values.is_empty() || dice.chance(30) {
        return functions::random_query(dice, relations);
    }
    let (value, key) = (dice.pick(&values).clone(), dice.pick(&scope).clone());
    let (x, k) = (&value.reference, &key.reference);
    let array = if value.kind == Type::Int4 { Type::Int4Array } else { Type::TextArray };
    let sort = sort(dice, &value);
    let from = format!("FROM {} i", relation.name);
    let grouped =
        format!("SELECT {k} AS k, array_agg({x} ORDER BY {sort}) AS xs {from} GROUP BY {k}");
    use Feature::{ArrayAgg, ArraySubquery, Mode, PercentileDisc, StringAgg};
    use Feature::{HypotheticalRank, JsonbAgg, OwnAggregate, PercentileCont};
    use Feature::{UnnestInFrom, UnnestInGroups, UnnestInList};
    let is_integer = i64::from(value.kind == Type::Int4);
    let rules = [
        (2, ArrayAgg),
        (2, Mode),
        (2 * is_integer, PercentileCont),
        (1, JsonbAgg),
        (1, OwnAggregate),
        (1, HypotheticalRank),
        (2, UnnestInFrom),
        (2, UnnestInList),
        (2, UnnestInGroups),
        (3, ArraySubquery),
    ];
    let (items, rest, kinds) = match dice.rule(&rules) {
        PercentileCont => {
            let fraction = dice.pick(&["0", "0.25", "0.5", "1"]);
            let cont = format!("percentile_cont({fraction}) WITHIN GROUP (ORDER BY {sort})");
            let items = vec![k.clone(), cont];
            (items, format!("{from} GROUP BY {k}"), vec![key.kind, Type::Float8])
        }
        JsonbAgg => {
            let items = vec![k.clone(), format!("jsonb_agg({x} ORDER BY {sort})")];
            (items, format!("{from} GROUP BY {k}"), vec![key.kind, Type::Jsonb])
        }
        HypotheticalRank => {
            let call = format!("rank({}) WITHIN GROUP (ORDER BY {sort})", value.kind.present(dice));
            (vec![k.clone(), call], format!("{from} GROUP BY {k}"), vec![key.kind, Type::Int8])
        }
        OwnAggregate => {
            let own = match value.kind {
                Type::Int4 => format!("xor_of({x})"),
                _ => format!("joined({x} ORDER BY {sort})"),
            };
            (vec![k.clone(), own], format!("{from} GROUP BY {k}"), vec![key.kind, value.kind])
        }
        ArrayAgg => {
            dice.record(StringAgg);
            let plain = format!("string_agg(({x})::text, ',' ORDER BY ({x})::text)");
            let by_collation =
                format!("string_agg(DISTINCT ({x})::text COLLATE \"und-x-icu\", ',')");
            let items = vec![k.clone(), format!("array_agg(DISTINCT {x})"), plain, by_collation];
            let kinds = vec![key.kind, array, Type::Text, Type::Icu];
            (items, format!("{from} GROUP BY {k}"), kinds)
        }
        Mode => {
            dice.record(PercentileDisc);
            let fraction = dice.pick(&["0", "0.3", "0.5", "1"]);
            let disc = format!("percentile_disc({fraction}) WITHIN GROUP (ORDER BY {sort})");
            let items = vec![disc, format!("mode() WITHIN GROUP (ORDER BY {sort})")];
            (items, format!("{from} GROUP BY {k}"), vec![value.kind, value.kind])
        }
        UnnestInFrom => {
            let items = vec!["q.k".to_owned(), "u.x".to_owned(), "u.n".to_owned()];
            let rest = format!("FROM ({grouped}) q, unnest(q.xs) WITH ORDINALITY u(x, n)");
            (items, rest, vec![key.kind, value.kind, Type::Int8])
        }
        UnnestInList => {
            let items = vec!["q.k".to_owned(), "unnest(q.xs)".to_owned(), "q.xs".to_owned()];
            (items, format!("FROM ({grouped}) q"), vec![key.kind, value.kind, array])
        }
        UnnestInGroups => {
            let (call, kind) = match value.kind {
                Type::Text => ("unnest(q.xs) COLLATE \"und-x-icu\"", Type::Icu),
                kind => ("unnest(q.xs)", kind),
            };
            let items = vec!["q.k".to_owned(), call.to_owned(), "count(*)".to_owned()];
            let limit = if dice.chance(50) { " ORDER BY 2 DESC, 1 LIMIT 3" } else { "" };
            let rest = format!("FROM ({grouped}) q GROUP BY q.k, {call}{limit}");
            (items, rest, vec![key.kind, kind, Type::Int8])
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

pub fn lateral_join(dice: &mut Draws) -> &'static str {
    dice.form(&[
        (1, Feature::LateralCross, "CROSS JOIN LATERAL"),
        (1, Feature::LateralLeft, "LEFT JOIN LATERAL"),
    ])
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

/// Window functions over one or two windows, now and then over groups.
fn windowed(dice: &mut Draws, relations: &[Relation]) -> Query {
    let Source { text, scope } = source(dice, relations);
    if dice.takes(20, Feature::WindowOverGroups) {
        return windowed_groups(dice, &text, &scope);
    }
    let (mut items, mut kinds) = columns(dice, &scope);
    let total = format!("{} ORDER BY {}", partition(dice, &scope), order(dice, &scope, true));
    for _ in 0..dice.range(3, 5) {
        let (item, kind) = window_call(dice, &scope, &total);
        items.push(item);
        kinds.push(kind);
    }
    let distinct = if dice.takes(15, Feature::WindowDistinct) { "DISTINCT " } else { "" };
    Query { sql: format!("SELECT {distinct}{} {text}", named(&items)), kinds }
}

fn windowed_groups(dice: &mut Draws, text: &str, scope: &[Field]) -> Query {
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

/// Calls that tell rows from their peers have the window `total` in common: of rows that are equal in all columns
/// PostgreSQL may see another one first in another window, and pair their values in any way.
fn window_call(dice: &mut Draws, scope: &[Field], total: &str) -> (String, Type) {
    let field = dice.pick(scope).clone();
    let value = &field.reference;
    use Feature::*;
    let rule = dice.rule(&[
        (1, RowNumber),
        (1, Rank),
        (1, DenseRank),
        (1, PercentRank),
        (1, CumeDist),
        (1, Ntile),
        (1, Lag),
        (1, Lead),
        (1, FirstValue),
        (1, LastValue),
        (1, NthValue),
        (1, WindowArray),
        (6, WindowAggregate),
    ]);
    let name = rule.name();
    let mut call = match rule {
        RowNumber | Rank | DenseRank => Call::new(format!("{name}()"), Type::Int8),
        PercentRank | CumeDist => Call::fraction(format!("{name}()")),
        Ntile => Call::new(format!("{name}({})", dice.range(1, 4)), Type::Int4),
        Lag | Lead => {
            let default = field.kind.literal(dice);
            let rest = match dice.index(3) {
                0 => String::new(),
                1 => format!(", {}", dice.range(0, 3)),
                _ => format!(", {}, {default}", dice.range(-1, 2)),
            };
            Call::new(format!("{name}({value}{rest})"), field.kind)
        }
        FirstValue | LastValue => Call::new(format!("{name}({value})"), field.kind),
        NthValue => Call::new(format!("{name}({value}, {})", dice.range(1, 3)), field.kind),
        WindowArray => {
            let kind = *dice.pick(&[Type::Int4, Type::Text]);
            let value = expression(dice, scope, kind, 1);
            let array = if kind == Type::Int4 { Type::Int4Array } else { Type::TextArray };
            Call::new(format!("array_agg({value})"), array)
        }
        _ => aggregate::random_call(dice, scope),
    };
    let has_frame =
        matches!(rule, FirstValue | LastValue | NthValue | WindowArray | WindowAggregate);
    let sees_rows = !matches!(rule, Rank | DenseRank | PercentRank | CumeDist | WindowAggregate);
    let frame = if has_frame { frame(dice, scope, sees_rows) } else { None };
    let counts_rows = frame.as_ref().is_some_and(|frame| frame.counts_rows);
    let window = if sees_rows || counts_rows {
        total.to_owned()
    } else {
        let own = frame.as_ref().and_then(|frame| frame.order.clone());
        let order = own.unwrap_or_else(|| order(dice, scope, false));
        format!("{} ORDER BY {order}", partition(dice, scope))
    };
    let frame = frame.map_or(String::new(), |frame| frame.text);
    call.text.push_str(&format!(" OVER ({window} {frame})"));
    call.finish()
}

fn partition(dice: &mut Draws, scope: &[Field]) -> String {
    match dice.rule(&[(1, Feature::WindowOfAll), (2, Feature::WindowPartition)]) {
        Feature::WindowPartition => format!("PARTITION BY {}", dice.pick(scope).reference),
        _ => String::new(),
    }
}

struct Frame {
    text: String,
    /// Whether it does not always end with all peers of a row.
    counts_rows: bool,
    /// The order it needs.
    order: Option<String>,
}

/// `sees_rows`: whether what is computed differs between peers. Of a RANGE over one column, which leaves
/// peers open, such functions and exclusions might see any.
fn frame(dice: &mut Draws, scope: &[Field], sees_rows: bool) -> Option<Frame> {
    use Feature::*;
    let has_distance =
        |kind: Type| kind.is_number() || matches!(kind, Type::Date | Type::Timestamp);
    let numbers: Vec<Field> =
        scope.iter().filter(|field| has_distance(field.kind)).cloned().collect();
    let by_offset = i64::from(!numbers.is_empty() && !sees_rows);
    let units = dice.rule(&[
        (2, DefaultFrame),
        (3, Rows),
        (2, Groups),
        (2, Range),
        (3 * by_offset, RangeOffset),
    ]);
    if units == DefaultFrame {
        return None;
    }
    let mut is_time = false;
    let order = (units == RangeOffset).then(|| {
        let field = dice.pick(&numbers).clone();
        is_time = !field.kind.is_number();
        sort(dice, &field)
    });
    dice.record_if(is_time, RangeOfTimes);
    let spans = ["'0'", "'1 second'", "'1 day 1 second'", "'36:00'"];
    let distance = |dice: &mut Draws| match is_time {
        true => format!("interval {}", dice.pick(&spans)),
        false => dice.range(0, 3).to_string(),
    };
    let offset = i64::from(units != Range);
    let start = dice.rule(&[(1, FromUnbounded), (offset, FromOffset), (1, FromCurrent)]);
    let start = match start {
        FromUnbounded => "UNBOUNDED PRECEDING".to_owned(),
        FromOffset => format!("{} PRECEDING", distance(dice)),
        _ => "CURRENT ROW".to_owned(),
    };
    let end = match dice.rule(&[(1, ToUnbounded), (offset, ToOffset), (1, ToCurrent)]) {
        ToUnbounded => "UNBOUNDED FOLLOWING".to_owned(),
        ToOffset => format!("{} FOLLOWING", distance(dice)),
        _ => "CURRENT ROW".to_owned(),
    };
    let of_rows = i64::from(order.is_none());
    let exclusion = dice.chance(50).then(|| {
        dice.rule(&[(of_rows, ExcludeCurrent), (1, ExcludeGroup), (of_rows, ExcludeTies)])
    });
    let counts_rows = units == Rows || matches!(exclusion, Some(ExcludeCurrent | ExcludeTies));
    let exclusion = exclusion.map_or(String::new(), |rule| format!(" {}", rule.name()));
    let units = if units == RangeOffset { "RANGE" } else { units.name() };
    let text = format!("{units} BETWEEN {start} AND {end}{exclusion}");
    Some(Frame { text, counts_rows, order })
}
