//! Rows as the dataflow stores and moves them: compact, owned, compared as bytes.
//!
//! Two rows are equal as bytes iff all their values are *identical* (same scale of a numeric, same
//! sign of a zero). Where SQL equality is coarser, plans compare key forms (`Func::KeyForm`).
//!
//! Encoding: per value one tag byte, then a number in little endian (integers in as few bytes as hold
//! them), or a varint length and bytes. Every value has exactly one encoding, so equal values give
//! equal bytes.

mod byte_string;

use crate::numeric::{Numeric, Special};
use crate::value::{Array, Datum, Dimension};
use byte_string::ByteString;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Signed multiplicity of a row.
pub type Diff = i64;

/// An encoded sequence of values. The order is total, good for sorting and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Row(ByteString);

impl Row {
    /// Encodes values.
    pub fn pack<'a>(values: impl IntoIterator<Item = &'a Datum>) -> Row {
        let mut bytes = Bytes::new();
        for value in values {
            encode(value, &mut bytes);
        }
        Row(ByteString::new(&bytes))
    }

    /// Decodes all values.
    pub fn unpack(&self) -> Vec<Datum> {
        let mut out = Vec::new();
        self.unpack_into(&mut out);
        out
    }

    /// Decodes one value after the other.
    pub fn iter(&self) -> impl Iterator<Item = Datum> + '_ {
        let mut reader = Reader { bytes: self.as_bytes() };
        std::iter::from_fn(move || (!reader.bytes.is_empty()).then(|| reader.datum()))
    }

    /// Decodes all values, appending them to `out` (which may hold columns of another row already).
    pub fn unpack_into(&self, out: &mut Vec<Datum>) {
        let mut reader = Reader { bytes: self.as_bytes() };
        while !reader.bytes.is_empty() {
            out.push(reader.datum());
        }
    }

    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_slice()
    }

    /// The row whose [`as_bytes`](Row::as_bytes) these bytes are. Bytes of no row make one that must not
    /// be decoded.
    pub fn from_bytes(bytes: &[u8]) -> Row {
        Row(ByteString::new(bytes))
    }

    /// The encodings of the columns, one after the other.
    pub fn encoded(&self) -> impl Iterator<Item = &[u8]> {
        let mut reader = Reader { bytes: self.as_bytes() };
        std::iter::from_fn(move || (!reader.bytes.is_empty()).then(|| reader.encoded()))
    }

    /// How many bytes all rows begin with in common.
    pub fn common_prefix<'a>(mut rows: impl Iterator<Item = &'a Row>) -> usize {
        let Some(first) = rows.next() else { return 0 };
        let first = first.as_bytes();
        rows.fold(first.len(), |common, row| {
            let pairs = first[..common].iter().zip(row.as_bytes());
            pairs.take_while(|(a, b)| a == b).count()
        })
    }

    /// A number that is never less than that of a lesser row, if all begin with the same `skip` bytes. Few have the same one.
    pub fn rank(&self, skip: usize) -> u64 {
        self.0.rank(skip)
    }

    /// Bytes this row takes beside its own `size_of`.
    pub fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }

    /// The columns at `indexes` of the concatenation of `rows`, without decoding them.
    pub fn project(rows: &[&Row], indexes: &[usize]) -> Row {
        let columns = encoded_columns(rows, indexes);
        let mut bytes = Bytes::new();
        for index in indexes {
            bytes.extend_from_slice(columns[*index]);
        }
        Row(ByteString::new(&bytes))
    }

    /// The same, or `None` if one of the columns is NULL.
    pub fn project_not_null(rows: &[&Row], indexes: &[usize]) -> Option<Row> {
        let columns = encoded_columns(rows, indexes);
        let mut bytes = Bytes::new();
        for index in indexes {
            match columns[*index] {
                [tag::NULL] => return None,
                column => bytes.extend_from_slice(column),
            }
        }
        Some(Row(ByteString::new(&bytes)))
    }

    /// Decodes one column.
    ///
    /// # Panics
    /// When the row has no such column.
    pub fn column(&self, index: usize) -> Datum {
        let mut reader = Reader { bytes: self.as_bytes() };
        (0..index).for_each(|_| reader.skip());
        reader.datum()
    }

    /// This row's columns and then `values`.
    pub fn followed_by<'a>(&self, values: impl IntoIterator<Item = &'a Datum>) -> Row {
        let mut bytes = Bytes::new();
        bytes.extend_from_slice(self.as_bytes());
        for value in values {
            encode(value, &mut bytes);
        }
        Row(ByteString::new(&bytes))
    }

    /// The concatenation of rows: the columns of the first, then those of the second, and so on.
    pub fn concat<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Row {
        let mut bytes = Bytes::new();
        for row in rows {
            bytes.extend_from_slice(row.as_bytes());
        }
        Row(ByteString::new(&bytes))
    }
}

impl FromIterator<Datum> for Row {
    fn from_iter<I: IntoIterator<Item = Datum>>(values: I) -> Row {
        let mut bytes = Bytes::new();
        values.into_iter().for_each(|value| encode(&value, &mut bytes));
        Row(ByteString::new(&bytes))
    }
}

/// The encodings of the columns of the concatenation of `rows`, up to the last one that `indexes` need.
fn encoded_columns<'a>(rows: &[&'a Row], indexes: &[usize]) -> SmallVec<[&'a [u8]; 16]> {
    let needed = indexes.iter().max().map_or(0, |last| last + 1);
    let mut columns = SmallVec::new();
    for row in rows {
        let mut reader = Reader { bytes: row.as_bytes() };
        while !reader.bytes.is_empty() && columns.len() < needed {
            columns.push(reader.encoded());
        }
    }
    columns
}

mod tag {
    pub const NULL: u8 = 0;
    pub const FALSE: u8 = 1;
    pub const TRUE: u8 = 2;
    pub const INT2: u8 = 3;
    pub const INT4: u8 = 4;
    pub const INT8: u8 = 5;
    pub const FLOAT4: u8 = 6;
    pub const FLOAT8: u8 = 7;
    pub const NUMERIC_NAN: u8 = 8;
    pub const NUMERIC_POSITIVE_INFINITY: u8 = 9;
    pub const NUMERIC_NEGATIVE_INFINITY: u8 = 10;
    pub const NUMERIC_SMALL: u8 = 11;
    pub const NUMERIC_BIG_POSITIVE: u8 = 12;
    pub const NUMERIC_BIG_NEGATIVE: u8 = 13;
    pub const TEXT: u8 = 14;
    pub const BYTEA: u8 = 15;
    pub const DATE: u8 = 16;
    pub const TIMESTAMP: u8 = 17;
    pub const UUID: u8 = 18;
    pub const ARRAY: u8 = 19;
    pub const INT2_IN_1: u8 = 20;
    pub const INT4_IN_1: u8 = 21;
    pub const INT4_IN_2: u8 = 22;
    pub const INT8_IN_1: u8 = 23;
    pub const INT8_IN_2: u8 = 24;
    pub const INT8_IN_4: u8 = 25;
    pub const ARRAY_OF_SEVERAL: u8 = 26;
}

/// Where a row is encoded: copied when complete, so that rows take no more memory than they need.
type Bytes = SmallVec<[u8; 256]>;

fn encode(value: &Datum, out: &mut Bytes) {
    match value {
        Datum::Null => out.push(tag::NULL),
        Datum::Bool(false) => out.push(tag::FALSE),
        Datum::Bool(true) => out.push(tag::TRUE),
        Datum::Int2(v) => integer([tag::INT2_IN_1, tag::INT2, 0, 0], (*v).into(), out),
        Datum::Int4(v) => integer([tag::INT4_IN_1, tag::INT4_IN_2, tag::INT4, 0], (*v).into(), out),
        Datum::Int8(v) => {
            integer([tag::INT8_IN_1, tag::INT8_IN_2, tag::INT8_IN_4, tag::INT8], *v, out);
        }
        Datum::Float4(v) => fixed(tag::FLOAT4, &v.to_bits().to_le_bytes(), out),
        Datum::Float8(v) => fixed(tag::FLOAT8, &v.to_bits().to_le_bytes(), out),
        Datum::Numeric(v) => encode_numeric(v, out),
        Datum::Text(v) => counted(tag::TEXT, v.as_bytes(), out),
        Datum::Bytea(v) => counted(tag::BYTEA, v, out),
        Datum::Date(v) => fixed(tag::DATE, &v.to_le_bytes(), out),
        Datum::Timestamp(v) => fixed(tag::TIMESTAMP, &v.to_le_bytes(), out),
        Datum::Uuid(v) => fixed(tag::UUID, v, out),
        Datum::Array(array) => {
            let lower_bound = array.lower_bound.to_le_bytes();
            if array.inner.is_empty() {
                fixed(tag::ARRAY, &lower_bound, out);
            } else {
                fixed(tag::ARRAY_OF_SEVERAL, &lower_bound, out);
                varint(array.inner.len() as u64, out);
                for Dimension { length, lower_bound } in &array.inner {
                    out.extend_from_slice(&length.to_le_bytes());
                    out.extend_from_slice(&lower_bound.to_le_bytes());
                }
            }
            varint(array.elements.len() as u64, out);
            for element in &array.elements {
                encode(element, out);
            }
        }
    }
}

fn encode_numeric(value: &Numeric, out: &mut Bytes) {
    let decimal = match value {
        Numeric::Special(Special::NaN) => return out.push(tag::NUMERIC_NAN),
        Numeric::Special(Special::PositiveInfinity) => {
            return out.push(tag::NUMERIC_POSITIVE_INFINITY)
        }
        Numeric::Special(Special::NegativeInfinity) => {
            return out.push(tag::NUMERIC_NEGATIVE_INFINITY)
        }
        Numeric::Finite(decimal) => decimal,
    };
    match decimal.small() {
        Some(small) => {
            out.push(tag::NUMERIC_SMALL);
            varint(u64::from(decimal.scale()), out);
            varint(((small << 1) ^ (small >> 63)) as u64, out);
        }
        None => {
            let (negative, magnitude) = decimal.sign_and_magnitude();
            let tag = if negative { tag::NUMERIC_BIG_NEGATIVE } else { tag::NUMERIC_BIG_POSITIVE };
            out.push(tag);
            varint(u64::from(decimal.scale()), out);
            varint(magnitude.len() as u64, out);
            out.extend_from_slice(&magnitude);
        }
    }
}

/// Encodes an integer in as few bytes as hold it; `tags` are for 1, 2, 4 and 8 bytes.
fn integer(tags: [u8; 4], value: i64, out: &mut Bytes) {
    let bytes = value.to_le_bytes();
    if i64::from(value as i8) == value {
        fixed(tags[0], &bytes[..1], out);
    } else if i64::from(value as i16) == value {
        fixed(tags[1], &bytes[..2], out);
    } else if i64::from(value as i32) == value {
        fixed(tags[2], &bytes[..4], out);
    } else {
        fixed(tags[3], &bytes, out);
    }
}

fn fixed(tag: u8, bytes: &[u8], out: &mut Bytes) {
    out.push(tag);
    out.extend_from_slice(bytes);
}

fn counted(tag: u8, bytes: &[u8], out: &mut Bytes) {
    out.push(tag);
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn varint(mut value: u64, out: &mut Bytes) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Decodes what [`encode`] wrote; a `Row` can only be made by `encode`, so lengths are right.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.bytes.split_at(count);
        self.bytes = rest;
        taken
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N));
        out
    }

    fn varint(&mut self) -> u64 {
        let mut value = 0;
        let mut shift = 0;
        loop {
            let [byte] = self.array::<1>();
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return value;
            }
            shift += 7;
        }
    }

    fn counted(&mut self) -> &'a [u8] {
        let length = self.varint() as usize;
        self.take(length)
    }

    /// Steps over a value and returns its encoding.
    fn encoded(&mut self) -> &'a [u8] {
        let start = self.bytes;
        self.skip();
        &start[..start.len() - self.bytes.len()]
    }

    fn skip(&mut self) {
        let [tag] = self.array::<1>();
        let width = match tag {
            tag::INT2_IN_1 | tag::INT4_IN_1 | tag::INT8_IN_1 => 1,
            tag::INT2 | tag::INT4_IN_2 | tag::INT8_IN_2 => 2,
            tag::INT4 | tag::INT8_IN_4 | tag::FLOAT4 | tag::DATE => 4,
            tag::INT8 | tag::FLOAT8 | tag::TIMESTAMP => 8,
            tag::UUID => 16,
            tag::TEXT | tag::BYTEA => self.varint() as usize,
            tag::NUMERIC_SMALL => {
                self.varint();
                self.varint();
                0
            }
            tag::NUMERIC_BIG_POSITIVE | tag::NUMERIC_BIG_NEGATIVE => {
                self.varint();
                self.varint() as usize
            }
            tag::ARRAY | tag::ARRAY_OF_SEVERAL => {
                self.take(4);
                if tag == tag::ARRAY_OF_SEVERAL {
                    let inner = self.varint() as usize;
                    self.take(8 * inner);
                }
                for _ in 0..self.varint() {
                    self.skip();
                }
                0
            }
            _ => 0,
        };
        self.take(width);
    }

    fn datum(&mut self) -> Datum {
        let [tag] = self.array::<1>();
        match tag {
            tag::NULL => Datum::Null,
            tag::FALSE => Datum::Bool(false),
            tag::TRUE => Datum::Bool(true),
            tag::INT2_IN_1 => Datum::Int2(i8::from_le_bytes(self.array()).into()),
            tag::INT4_IN_1 => Datum::Int4(i8::from_le_bytes(self.array()).into()),
            tag::INT4_IN_2 => Datum::Int4(i16::from_le_bytes(self.array()).into()),
            tag::INT8_IN_1 => Datum::Int8(i8::from_le_bytes(self.array()).into()),
            tag::INT8_IN_2 => Datum::Int8(i16::from_le_bytes(self.array()).into()),
            tag::INT8_IN_4 => Datum::Int8(i32::from_le_bytes(self.array()).into()),
            tag::INT2 => Datum::Int2(i16::from_le_bytes(self.array())),
            tag::INT4 => Datum::Int4(i32::from_le_bytes(self.array())),
            tag::INT8 => Datum::Int8(i64::from_le_bytes(self.array())),
            tag::FLOAT4 => Datum::Float4(f32::from_le_bytes(self.array())),
            tag::FLOAT8 => Datum::Float8(f64::from_le_bytes(self.array())),
            tag::TEXT => {
                let text = std::str::from_utf8(self.counted());
                Datum::Text(text.expect("text was encoded from a str").into())
            }
            tag::BYTEA => Datum::Bytea(self.counted().into()),
            tag::DATE => Datum::Date(i32::from_le_bytes(self.array())),
            tag::TIMESTAMP => Datum::Timestamp(i64::from_le_bytes(self.array())),
            tag::UUID => Datum::Uuid(self.array()),
            tag::ARRAY | tag::ARRAY_OF_SEVERAL => {
                let lower_bound = i32::from_le_bytes(self.array());
                let depth = if tag == tag::ARRAY { 0 } else { self.varint() };
                let inner = (0..depth).map(|_| self.dimension()).collect();
                let length = self.varint() as usize;
                let elements = (0..length).map(|_| self.datum()).collect();
                Array { lower_bound, inner, elements }.into()
            }
            numeric => Datum::Numeric(self.numeric(numeric)),
        }
    }

    fn dimension(&mut self) -> Dimension {
        let [length, lower_bound] = [(); 2].map(|()| i32::from_le_bytes(self.array()));
        Dimension { length, lower_bound }
    }

    fn numeric(&mut self, tag: u8) -> Numeric {
        match tag {
            tag::NUMERIC_NAN => Numeric::NAN,
            tag::NUMERIC_POSITIVE_INFINITY => Numeric::INFINITY,
            tag::NUMERIC_NEGATIVE_INFINITY => Numeric::NEGATIVE_INFINITY,
            tag::NUMERIC_SMALL => {
                let scale = self.varint() as u16;
                let zigzag = self.varint();
                let small = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
                Numeric::from_small(small, scale)
            }
            _ => {
                let scale = self.varint() as u16;
                let negative = tag == tag::NUMERIC_BIG_NEGATIVE;
                Numeric::from_magnitude(negative, self.counted(), scale)
            }
        }
    }
}
