//! Random ORDER BY and LIMIT, and the columns beside them.

use super::draws::Draws;
use super::expression::Field;
use super::feature::Feature;
use super::relation::Relation;
use super::types::Type;

/// An item of an ORDER BY.
pub fn sort(dice: &mut Draws, field: &Field) -> String {
    let direction = dice.pick(&["", "", " DESC", " ASC NULLS FIRST", " DESC NULLS LAST"]);
    format!("{}{direction}", field.reference)
}

/// Some columns and behind them all others, if the order is to be total.
pub fn order(dice: &mut Draws, scope: &[Field], is_total: bool) -> String {
    let mut left = scope.to_vec();
    let mut items = Vec::new();
    let count = if is_total { left.len() } else { dice.range(1, 2) as usize };
    while items.len() < count && !left.is_empty() {
        let field = left.remove(dice.index(left.len()));
        items.push(sort(dice, &field));
    }
    items.join(", ")
}

/// Behind a total order any limit, behind another one only all peers of the last row. `outer` is an integer of a row
/// outside, if there is one.
pub fn limit(
    dice: &mut Draws,
    scope: &[Field],
    relations: &[Relation],
    outer: Option<&str>,
) -> String {
    let count = number(dice, 6, relations, outer);
    if dice.takes(25, Feature::WithTies) {
        let order = order(dice, scope, false);
        return format!("ORDER BY {order} FETCH FIRST ({count}) ROWS WITH TIES");
    }
    let order = order(dice, scope, true);
    let offset = format!(" OFFSET {}", number(dice, 4, relations, outer));
    let end =
        match dice.rule(&[(4, Feature::Limit), (2, Feature::Offset), (1, Feature::OffsetAlone)]) {
            Feature::Limit => format!(" LIMIT {count}"),
            Feature::Offset => format!(" LIMIT {count}{offset}"),
            _ => offset,
        };
    format!("ORDER BY {order}{end}")
}

/// A number of rows up to a bound, which something may compute.
fn number(dice: &mut Draws, bound: i64, relations: &[Relation], outer: Option<&str>) -> String {
    let number = dice.range(0, bound);
    if !dice.takes(30, Feature::LimitComputed) {
        return number.to_string();
    }
    match outer {
        Some(outer) if dice.chance(50) => format!("({outer} % 3) * ({outer} % 3) + {number} % 2"),
        _ => {
            let relation = Relation::random(dice, relations);
            format!("(SELECT count(*) % {} FROM {})", number + 1, relation.name)
        }
    }
}

/// A few columns and their types.
pub fn columns(dice: &mut Draws, scope: &[Field]) -> (Vec<String>, Vec<Type>) {
    let fields: Vec<Field> = (0..dice.range(1, 3)).map(|_| dice.pick(scope).clone()).collect();
    fields.into_iter().map(|field| (field.reference, field.kind)).unzip()
}
