//! Random window functions: over one or two windows, with frames, over groups.

use super::aggregate::{self, Call};
use super::draws::Draws;
use super::expression::{expression, Field};
use super::feature::Feature;
use super::from::{source, Source};
use super::order::{columns, order, sort};
use super::relation::{named, Query, Relation};
use super::types::Type;

/// Window functions over one or two windows, now and then over groups.
pub fn random_query(dice: &mut Draws, relations: &[Relation]) -> Query {
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
    let has_distance = |kind: Type| {
        let is_time = [Type::Date, Type::Timestamp, Type::Timestamptz, Type::Interval];
        kind.is_number() || is_time.contains(&kind)
    };
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
    let spans = ["'0'", "'1 second'", "'1 day 1 second'", "'36:00'", "'1 mon'", "'1 mon -2 days'"];
    let distance = |dice: &mut Draws| match is_time {
        true => {
            let span = *dice.pick(&spans);
            dice.record_if(span.contains("mon"), RangeOfMonths);
            format!("interval {span}")
        }
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
