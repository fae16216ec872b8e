//! Random ORDER BY and LIMIT, and the columns beside them.

use super::draws::Draws;
use super::expression::Field;
use super::feature::Feature;
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

/// Behind a total order any limit, behind another one only all peers of the last row.
pub fn limit(dice: &mut Draws, scope: &[Field]) -> String {
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

/// A few columns and their types.
pub fn columns(dice: &mut Draws, scope: &[Field]) -> (Vec<String>, Vec<Type>) {
    let fields: Vec<Field> = (0..dice.range(1, 3)).map(|_| dice.pick(scope).clone()).collect();
    fields.into_iter().map(|field| (field.reference, field.kind)).unzip()
}
