//! Which of several rows comes first in an order, where a loop keeps the first one only.

use super::SortKey;
use crate::compare::cmp_as;
use crate::numeric::Decimal;
use crate::types::Type;
use crate::value::Datum;
use std::cmp::Ordering;

impl SortKey {
    /// The least value, NULL if there is nothing else.
    pub const fn least(column: usize, ty: Type) -> SortKey {
        SortKey::ascending(column, ty)
    }

    /// The greatest value, NULL if there is nothing else.
    pub const fn greatest(column: usize, ty: Type) -> SortKey {
        SortKey { descending: true, ..SortKey::ascending(column, ty) }
    }

    fn compare(&self, a: &Datum, b: &Datum) -> Ordering {
        let is_reversed = match (a.is_null(), b.is_null()) {
            (false, false) => self.descending,
            // NULL is last in the order of every type.
            _ => self.nulls_first,
        };
        let order = cmp_as(self.ty, a, b);
        if is_reversed {
            order.reverse()
        } else {
            order
        }
    }
}

/// Which of two rows is preferred, given the values by which they are sorted: the lesser one is kept. Of numerics that
/// are equal that of lesser scale is: sums keep this order, too, so that a loop comes to rest.
pub fn compare_preferred(order: &[SortKey], a: &[Datum], b: &[Datum]) -> Ordering {
    let values = || order.iter().zip(a.iter().zip(b));
    let by_value = values().map(|(sort, (a, b))| sort.compare(a, b)).find(|order| order.is_ne());
    let by_scale = || values().map(|(_, (a, b))| scale(a).cmp(&scale(b))).find(|o| o.is_ne());
    by_value.or_else(by_scale).unwrap_or(Ordering::Equal)
}

fn scale(value: &Datum) -> u16 {
    match value {
        Datum::Numeric(number) => number.finite().map_or(0, Decimal::scale),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse_literal;
    use crate::types::Scalar;

    const INT4: Type = Type::Scalar(Scalar::Int4);
    const NUMERIC: Type = Type::Scalar(Scalar::Numeric);

    fn first(order: &[SortKey], rows: &[&[Option<&str>]]) -> usize {
        let values = |row: &&[Option<&str>]| -> Vec<Datum> {
            let value = |(text, sort): (&Option<&str>, &SortKey)| {
                text.map_or(Datum::Null, |text| parse_literal(text, sort.ty, -1).expect("a value"))
            };
            row.iter().zip(order).map(value).collect()
        };
        let rows: Vec<Vec<Datum>> = rows.iter().map(values).collect();
        let first = (0..rows.len()).min_by(|a, b| compare_preferred(order, &rows[*a], &rows[*b]));
        first.expect("a row")
    }

    #[test]
    fn null_is_kept_if_there_is_nothing_else() {
        let rows: [&[Option<&str>]; 3] = [&[None], &[Some("2")], &[Some("1")]];
        assert_eq!(first(&[SortKey::least(0, INT4)], &rows), 2);
        assert_eq!(first(&[SortKey::greatest(0, INT4)], &rows), 1);
        let nulls_first = SortKey { nulls_first: true, ..SortKey::greatest(0, INT4) };
        assert_eq!(first(&[nulls_first], &rows), 0);
    }

    #[test]
    fn later_columns_decide_among_equal_values_and_scales_last() {
        let rows: [&[Option<&str>]; 4] = [
            &[Some("1.00"), Some("7")],
            &[Some("1.0"), Some("9")],
            &[Some("1.000"), Some("7")],
            &[Some("2"), Some("1")],
        ];
        let order = [SortKey::least(0, NUMERIC), SortKey::least(1, INT4)];
        assert_eq!(first(&order, &rows), 0);
        let order = [SortKey::least(0, NUMERIC), SortKey::greatest(1, INT4)];
        assert_eq!(first(&order, &rows), 1);
        let order = [SortKey::greatest(0, NUMERIC), SortKey::greatest(1, INT4)];
        assert_eq!(first(&order, &rows), 3);
    }
}
