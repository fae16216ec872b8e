//! Random FROM and WHERE: joins of each kind, and conditions of which the present time may be one.

use super::draws::Draws;
use super::expression::{predicate, Field};
use super::feature::Feature;
use super::relation::Relation;
use super::types::Type;

/// FROM and WHERE with the columns in scope; at most one join that is not an equality. Joins may be outer.
pub struct Source {
    pub text: String,
    pub scope: Vec<Field>,
}

pub fn source(dice: &mut Draws, relations: &[Relation]) -> Source {
    if dice.takes(10, Feature::JoinOfSeveral) {
        return inner_joins(dice, relations);
    }
    let first = Relation::random(dice, relations);
    let mut scope = first.fields("x1");
    let mut text = format!("FROM {} x1", first.name);
    let joins = dice.pick(&[0, 0, 0, 1, 1, 2]);
    let mut conditions = Vec::new();
    for number in 0..*joins {
        let alias = format!("x{}", number + 2);
        let relation = Relation::random(dice, relations);
        dice.record_if(relation.name == first.name, Feature::SelfJoin);
        let fields = relation.fields(&alias);
        let merged = merged_columns(dice, first, relation).filter(|_| number == 0);
        let condition = join_condition(dice, &scope, &fields, *joins == 1);
        if let Some(columns) = merged {
            let join = join_kind(dice, "a = b");
            text.push_str(&match columns {
                Some(column) => format!(" {join} {} {alias} USING ({column})", relation.name),
                None => format!(" NATURAL {join} {} {alias}", relation.name),
            });
        } else if dice.chance(70) {
            let join = join_kind(dice, &condition);
            text.push_str(&format!(" {join} {} {alias} ON {condition}", relation.name));
        } else {
            dice.record(Feature::CrossJoin);
            text.push_str(&format!(" CROSS JOIN {} {alias}", relation.name));
            conditions.push(condition);
        }
        scope.extend(fields);
    }
    if dice.chance(50) {
        conditions.push(predicate(dice, &scope, 2));
    }
    conditions.extend(present_time(dice, &scope));
    if !conditions.is_empty() {
        text.push_str(&format!(" WHERE {}", conditions.join(" AND ")));
    }
    Source { text, scope }
}

/// Three relations or four, each but the first tied to one before it by an equality.
fn inner_joins(dice: &mut Draws, relations: &[Relation]) -> Source {
    let (mut items, mut conditions) = (Vec::new(), Vec::new());
    let mut scopes: Vec<Vec<Field>> = Vec::new();
    for number in 1..=dice.range(3, 4) {
        let relation = Relation::random(dice, relations);
        let alias = format!("x{number}");
        let fields = relation.fields(&alias);
        if !scopes.is_empty() {
            let earlier = dice.pick(&scopes).clone();
            conditions.push(join_condition(dice, &earlier, &fields, false));
        }
        items.push(format!("{} {alias}", relation.name));
        scopes.push(fields);
    }
    let scope = scopes.concat();
    if dice.chance(20) {
        conditions.push(predicate(dice, &scope, 2));
    }
    let text = format!("FROM {} WHERE {}", items.join(", "), conditions.join(" AND "));
    Source { text, scope }
}

/// Now and then a column for USING, or `None` for NATURAL, where two relations have columns of one name and type.
fn merged_columns(dice: &mut Draws, left: &Relation, right: &Relation) -> Option<Option<String>> {
    let named = |name: &String| right.columns.iter().find(|(other, _)| other == name);
    let pairs: Vec<(&String, Type, Type)> = left
        .columns
        .iter()
        .filter_map(|(name, kind)| named(name).map(|(_, other)| (name, *kind, *other)))
        .collect();
    let same: Vec<&String> = pairs.iter().filter(|(_, l, r)| l == r).map(|(n, ..)| *n).collect();
    if same.is_empty() || !dice.chance(15) {
        return None;
    }
    let can_be_natural = i64::from(same.len() == pairs.len() && pairs.len() < 3);
    match dice.rule(&[(2, Feature::JoinUsing), (can_be_natural, Feature::JoinNatural)]) {
        Feature::JoinNatural => Some(None),
        _ => Some(Some(dice.pick(&same).to_string())),
    }
}

/// Now and then a condition that the present time decides: all times of the tables are long ago, or infinite.
fn present_time(dice: &mut Draws, scope: &[Field]) -> Option<String> {
    let present = |kind| match kind {
        Type::Timestamp => Some("localtimestamp"),
        Type::Timestamptz => Some("now()"),
        Type::Date => Some("current_date"),
        _ => None,
    };
    let times: Vec<(&Field, &str)> =
        scope.iter().filter_map(|field| Some((field, present(field.kind)?))).collect();
    if times.is_empty() || !dice.takes(20, Feature::PresentTime) {
        return None;
    }
    let (field, now) = *dice.pick(&times);
    let operator = dice.pick(&["<", "<=", ">", ">="]);
    let span = dice.pick(&["", " - interval '1 hour'", " + interval '3 days'"]);
    Some(match dice.chance(50) {
        true => format!("{} {operator} {now}{span}", field.reference),
        false => format!("{now}{span} {operator} {}", field.reference),
    })
}

/// PostgreSQL computes a FULL JOIN for nothing but equalities.
fn join_kind(dice: &mut Draws, condition: &str) -> &'static str {
    let is_equality = condition.split(' ').nth(1) == Some("=")
        && ![" AND ", " OR "].iter().any(|connective| condition.contains(connective));
    dice.form(&[
        (1, Feature::InnerJoin, "JOIN"),
        (1, Feature::LeftJoin, "LEFT JOIN"),
        (1, Feature::RightJoin, "RIGHT JOIN"),
        (i64::from(is_equality), Feature::FullJoin, "FULL JOIN"),
    ])
}

/// An equality of columns of one type where there is such a pair, else any comparison.
fn join_condition(dice: &mut Draws, left: &[Field], right: &[Field], any: bool) -> String {
    let pairs: Vec<(&Field, &Field)> = left
        .iter()
        .flat_map(|l| right.iter().map(move |r| (l, r)))
        .filter(|(l, r)| l.kind == r.kind && l.kind != Type::Bool)
        .collect();
    if pairs.is_empty() {
        let (l, r) = (&left[0].reference, &right[0].reference);
        dice.record(Feature::JoinOnNull);
        return format!("{l} IS NOT NULL AND {r} IS NULL");
    }
    let (l, r) = *dice.pick(&pairs);
    if any && dice.takes(25, Feature::JoinOnRange) {
        return range_condition(dice, (l, left), (r, right));
    }
    let any = i64::from(any);
    let operator = dice.form(&[
        (3, Feature::JoinOnEqual, "="),
        (any, Feature::JoinOnLess, "<"),
        (any, Feature::JoinOnUnequal, "<>"),
    ]);
    let mut text = format!("{} {operator} {}", l.reference, r.reference);
    if dice.takes(25, Feature::JoinOnNotDistinct) {
        let (l, r) = *dice.pick(&pairs);
        text.push_str(&format!(" AND {} IS NOT DISTINCT FROM {}", l.reference, r.reference));
    }
    if !dice.takes(20, Feature::JoinOnOr) {
        return text;
    }
    // Arms with keys of their own.
    let mut arms = vec![text];
    for _ in 0..dice.range(1, 2) {
        let ((l, r), (x, y)) = (*dice.pick(&pairs), *dice.pick(&pairs));
        let more = match dice.chance(40) {
            true => format!(" AND {} <= {}", x.reference, y.reference),
            false => String::new(),
        };
        arms.push(format!("{} = {}{more}", l.reference, r.reference));
    }
    format!("({})", arms.join(" OR "))
}

/// A value of one side between two of the other, or intervals that overlap, of columns of one type, which need not be
/// in order.
fn range_condition(
    dice: &mut Draws,
    (l, left): (&Field, &[Field]),
    (r, right): (&Field, &[Field]),
) -> String {
    let of_kind = |fields: &[Field]| -> Vec<String> {
        let same = fields.iter().filter(|field| field.kind == l.kind);
        same.map(|field| field.reference.clone()).collect()
    };
    let (l, r) = (&l.reference, &r.reference);
    let (end_l, end_r) = (dice.pick(&of_kind(left)).clone(), dice.pick(&of_kind(right)).clone());
    let (less, more) = (dice.pick(&["<", "<="]), dice.pick(&[">", ">="]));
    match dice.range(0, 4) {
        0 => format!("{l} BETWEEN {r} AND {end_r}"),
        1 => format!("{r} {more} {l} AND {r} {less} {end_l}"),
        2 => format!("{l} {more} {r} AND ({l} {less} {end_r} OR {end_r} IS NULL)"),
        3 => format!("{l} {less} {end_r} AND {r} {less} {end_l}"),
        _ => format!("({l} {less} {end_r} OR {l} IS NULL) AND {end_l} {more} {r}"),
    }
}

/// How an item of FROM that reads the row before it is joined.
pub fn lateral_join(dice: &mut Draws) -> &'static str {
    dice.form(&[
        (1, Feature::LateralCross, "CROSS JOIN LATERAL"),
        (1, Feature::LateralLeft, "LEFT JOIN LATERAL"),
    ])
}
