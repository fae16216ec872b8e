//! The place of a row in an order, as bytes that compare as the rows do.

use crate::compare;
use crate::numeric::{Numeric, Special};
use crate::types::{Scalar, Type};
use crate::value::{Array, Datum};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// One column of an ORDER BY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SortKey {
    /// The column of the input.
    pub column: usize,
    /// Its type, which says what its order is.
    pub ty: Type,
    /// Whether greater values come first.
    pub descending: bool,
    /// Whether NULLs come before all values, in either direction.
    pub nulls_first: bool,
    /// Whether rows stay peers that differ in it: it only says which of them comes first.
    pub among_peers: bool,
}

impl SortKey {
    /// Smaller values first, NULLs last.
    pub const fn ascending(column: usize, ty: Type) -> SortKey {
        SortKey { column, ty, descending: false, nulls_first: false, among_peers: false }
    }
}

/// Where a row is in an order: compares as bytes; equal for peers, however their values are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderKey(SmallVec<[u8; 24]>);

impl OrderKey {
    /// The place of a row with these values.
    pub fn of(order: &[SortKey], values: &[Datum]) -> OrderKey {
        let mut key = OrderKey::default();
        for sort in order {
            key.push(sort, &values[sort.column]);
        }
        key
    }

    /// The place of a value among others of its type.
    pub fn of_value(ty: Type, value: &Datum) -> OrderKey {
        let mut key = OrderKey::default();
        key.push(&SortKey::ascending(0, ty), value);
        key
    }

    /// The bytes to compare.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Bytes allocated.
    pub fn heap_bytes(&self) -> usize {
        if self.0.spilled() {
            self.0.capacity()
        } else {
            0
        }
    }

    fn push(&mut self, sort: &SortKey, value: &Datum) {
        self.0.push(u8::from(value.is_null() != sort.nulls_first));
        if value.is_null() {
            return;
        }
        let start = self.0.len();
        self.push_value(value, sort.ty.base() == Scalar::Char);
        if sort.descending {
            self.0[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }

    fn push_value(&mut self, value: &Datum, padded: bool) {
        match value {
            Datum::Null => {}
            Datum::Bool(value) => self.0.push(u8::from(*value)),
            Datum::Int2(value) => self.push_integer(i64::from(*value), 2),
            Datum::Int4(value) | Datum::Date(value) => self.push_integer(i64::from(*value), 4),
            Datum::Int8(value) | Datum::Timestamp(value) => self.push_integer(*value, 8),
            Datum::Float4(value) => self.push_float(f64::from(*value)),
            Datum::Float8(value) => self.push_float(*value),
            Datum::Numeric(value) => self.push_numeric(value),
            Datum::Text(text) => {
                let text = if padded { compare::trim(text) } else { text };
                self.0.extend_from_slice(text.as_bytes());
                // No text has such a byte.
                self.0.push(0);
            }
            Datum::Bytea(bytes) => self.push_bytes(bytes),
            Datum::Uuid(bytes) => self.0.extend_from_slice(bytes),
            Datum::Array(array) => self.push_array(array, padded),
        }
    }

    /// The last `width` bytes of a number, highest first, negative numbers before the others.
    fn push_integer(&mut self, value: i64, width: usize) {
        let start = self.0.len();
        self.0.extend_from_slice(&value.to_be_bytes()[8 - width..]);
        self.0[start] ^= 0x80;
    }

    fn push_float(&mut self, value: f64) {
        // One NaN, above everything; one zero.
        let bits = if value.is_nan() { f64::NAN.to_bits() } else { (value + 0.0).to_bits() };
        let sign = 1 << 63;
        let ordered = if bits & sign == 0 { bits | sign } else { !bits };
        self.0.extend_from_slice(&ordered.to_be_bytes());
    }

    /// The class of the number, then `0.digits · 10^exponent`: exponent and digits.
    fn push_numeric(&mut self, value: &Numeric) {
        let decimal = match value {
            Numeric::Special(Special::NegativeInfinity) => return self.0.push(0),
            Numeric::Special(Special::PositiveInfinity) => return self.0.push(4),
            Numeric::Special(Special::NaN) => return self.0.push(5),
            Numeric::Finite(decimal) => decimal,
        };
        if decimal.is_zero() {
            return self.0.push(2);
        }
        let is_negative = decimal.signum() < 0;
        self.0.push(if is_negative { 1 } else { 3 });
        let start = self.0.len();
        let digits = decimal.coefficient().magnitude().to_string();
        // No number has as many digits as would not fit.
        let exponent = digits.len() as i64 - i64::from(decimal.scale());
        self.push_integer(exponent, 4);
        self.0.extend_from_slice(digits.trim_end_matches('0').as_bytes());
        self.0.push(0);
        if is_negative {
            self.0[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }

    /// A zero is followed by another byte than the end is.
    fn push_bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0.push(*byte);
            if *byte == 0 {
                self.0.push(1);
            }
        }
        self.0.extend_from_slice(&[0, 0]);
    }

    /// Elements, NULLs last; then length; then the lower bound.
    fn push_array(&mut self, array: &Array, padded: bool) {
        for element in &array.elements {
            self.0.push(if element.is_null() { 2 } else { 1 });
            self.push_value(element, padded);
        }
        self.0.push(0);
        // No array has as many dimensions as would not fit.
        self.0.push(array.depth() as u8);
        let dimensions = if array.inner.is_empty() { Vec::new() } else { array.dimensions() };
        for dimension in &dimensions {
            self.push_integer(i64::from(dimension.length), 4);
        }
        self.push_integer(i64::from(array.lower_bound), 4);
        for dimension in &array.inner {
            self.push_integer(i64::from(dimension.lower_bound), 4);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::cmp_as;
    use crate::text::parse_literal;
    use std::cmp::Ordering;

    fn values(ty: Type, texts: &[&str]) -> Vec<Datum> {
        let parsed = texts.iter().map(|text| parse_literal(text, ty, -1).expect("a literal"));
        parsed.chain([Datum::Null]).collect()
    }

    fn agree(ty: Type, texts: &[&str]) {
        let values = values(ty, texts);
        for a in &values {
            for b in &values {
                for (descending, nulls_first) in
                    [(false, false), (false, true), (true, false), (true, true)]
                {
                    let sort = SortKey { descending, nulls_first, ..SortKey::ascending(0, ty) };
                    let key = |value: &Datum| OrderKey::of(&[sort], std::slice::from_ref(value));
                    let nulls = if nulls_first { Ordering::Less } else { Ordering::Greater };
                    let expected = match (a.is_null(), b.is_null()) {
                        (true, true) => Ordering::Equal,
                        (true, false) => nulls,
                        (false, true) => nulls.reverse(),
                        _ if descending => cmp_as(ty, b, a),
                        _ => cmp_as(ty, a, b),
                    };
                    assert_eq!(key(a).cmp(&key(b)), expected, "{a:?} {b:?} {sort:?}");
                }
            }
        }
    }

    #[test]
    fn keys_order_as_values_do() {
        let integers = ["0", "-1", "1", "255", "256", "-256", "32767", "-32768"];
        for scalar in [Scalar::Int2, Scalar::Int4, Scalar::Int8] {
            agree(scalar.into(), &integers);
        }
        let floats = ["0", "-0", "1.5", "-1.5", "1e30", "-1e30", "NaN", "Infinity", "-Infinity"];
        agree(Scalar::Float8.into(), &floats);
        agree(Scalar::Float4.into(), &floats);
        let numerics = [
            "0",
            "0.000",
            "1",
            "1.0",
            "1.01",
            "10",
            "9",
            "99.5",
            "100",
            "-1",
            "-1.00",
            "-1.01",
            "-10",
            "-0.001",
            "0.001",
            "0.01",
            "0.0099",
            "123456789012345678901234567890",
            "-123456789012345678901234567890.5",
            "NaN",
            "Infinity",
            "-Infinity",
        ];
        agree(Scalar::Numeric.into(), &numerics);
        let texts = ["", "a", "ab", "a b", "b", "a ", "é", "z", "Z"];
        agree(Scalar::Text.into(), &texts);
        agree(Scalar::Char.into(), &texts);
        agree(Scalar::Bytea.into(), &["\\x", "\\x00", "\\x0000", "\\x0001", "\\x01", "\\x00ff"]);
        agree(Scalar::Bool.into(), &["true", "false"]);
        agree(Scalar::Date.into(), &["2000-01-01", "1999-12-31", "infinity", "-infinity"]);
        let mut arrays = vec!["{}", "{1}", "{1,2}", "{2}", "{NULL}", "{1,NULL}", "{-1}"];
        arrays.extend([
            "{{1}}",
            "{{1,2}}",
            "{{1},{2}}",
            "[0:0][1:2]={{1,2}}",
            "[1:1][0:1]={{1,2}}",
        ]);
        agree(Type::Array(Scalar::Int4), &arrays);
        agree(Type::Array(Scalar::Text), &["{}", "{a}", "{a,b}", "{\"\"}", "{ab}", "{NULL}"]);
    }

    #[test]
    fn earlier_columns_decide() {
        let sort = |column| SortKey::ascending(column, Scalar::Text.into());
        let key =
            |a: &str, b: &str| OrderKey::of(&[sort(0), sort(1)], &[Datum::text(a), Datum::text(b)]);
        assert!(key("a", "z") < key("ab", "a"));
        assert!(key("a", "b") < key("a", "c"));
    }
}
