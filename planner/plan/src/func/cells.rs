//! Cells: what joins meet in that are not by equality. A value is taken for its rank, a number that does not fall where
//! values rise; the ranks are divided into cells of several sizes, each size into 16 of the next one. An interval is
//! covered by a few cells of one size, and a value is in one cell of each size. So an interval and a value that is in
//! it have exactly one cell in common, of the size that the interval is covered by.
//!
//! Values of one rank need not be equal, and a cover is larger than its interval. So cells find candidates, and whoever
//! joins tests the condition.

use crate::numeric::Numeric;
use crate::types::{Scalar, Type};
use crate::value::Datum;
use serde::{Deserialize, Serialize};

/// What is computed of ranks and cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CellWork {
    /// `rank(value)`, of a type that [`has_ranks`]
    Rank,
    /// `cell_size(cell)`
    Size,
    /// `cell(rank, size)`
    At,
}

/// Cells that cover an interval, at most.
const COVER: u64 = 4;

/// Bits of a rank that tell cells apart. The last one is not among them: a cell needs a mark of its size.
const BITS: u32 = 63;

/// Bits by which a size differs from the next.
const STEP: u32 = 4;

/// Below this, a float's rank is in proportion to its value; beyond, to its logarithm.
const LINEAR: f64 = (1_u64 << 32) as f64;

/// Ranks between a float and the next integer.
const PER_UNIT: f64 = (1_u64 << 28) as f64;

/// Whether values of a type have ranks. Comparisons must be those of the plan.
pub fn has_ranks(ty: Type) -> bool {
    use Scalar::{Bytea, Date, Float4, Float8, Int2, Int4, Int8, Numeric, Text, Timestamp};
    use Scalar::{Timestamptz, Uuid, Varchar};
    matches!(
        ty,
        Type::Scalar(
            Int2 | Int4
                | Int8
                | Date
                | Timestamp
                | Timestamptz
                | Float4
                | Float8
                | Numeric
                | Text
                | Varchar
                | Uuid
                | Bytea
        )
    )
}

/// The rank of a value; NULL for one that has none.
pub(super) fn rank(value: &Datum) -> Datum {
    match value {
        Datum::Date(days) => Datum::Int8(i64::from(*days)),
        Datum::Timestamp(microseconds) => Datum::Int8(*microseconds),
        Datum::Float4(value) => Datum::Int8(rank_of_float(f64::from(*value))),
        Datum::Float8(value) => Datum::Int8(rank_of_float(*value)),
        Datum::Numeric(value) => Datum::Int8(rank_of_numeric(value)),
        Datum::Text(text) => Datum::Int8(rank_of_bytes(text.as_bytes())),
        Datum::Bytea(bytes) => Datum::Int8(rank_of_bytes(bytes)),
        Datum::Uuid(bytes) => Datum::Int8(rank_of_bytes(bytes)),
        number => number.as_i64().map_or(Datum::Null, Datum::Int8),
    }
}

fn rank_of_float(value: f64) -> i64 {
    if value.is_nan() {
        return i64::MAX;
    }
    let size = value.abs();
    let rank = if size < LINEAR {
        (size * PER_UNIT) as i64
    } else {
        // Positive floats are ordered as their bits are.
        let beyond = size.to_bits() - LINEAR.to_bits();
        (LINEAR * PER_UNIT) as i64 + (beyond >> 2) as i64
    };
    if value < 0.0 {
        -rank
    } else {
        rank
    }
}

fn rank_of_numeric(value: &Numeric) -> i64 {
    let one = Numeric::from_small(1, 0);
    let minus_one = Numeric::from_small(-1, 0);
    rank_of_float(match value.to_f64() {
        Some(float) => float,
        // Beyond the range of floats, or too near to zero for one.
        None if value.sql_cmp(&one).is_gt() => f64::MAX,
        None if value.sql_cmp(&minus_one).is_lt() => f64::MIN,
        None => 0.0,
    })
}

/// Of a text that is the beginning of another, no more than that one's.
fn rank_of_bytes(bytes: &[u8]) -> i64 {
    let mut first = [0; 8];
    let count = bytes.len().min(8);
    first[..count].copy_from_slice(&bytes[..count]);
    signed(u64::from_be_bytes(first))
}

/// Numbers of either sign in the order of those without.
fn unsigned(rank: i64) -> u64 {
    (rank as u64) ^ (1 << 63)
}

fn signed(rank: u64) -> i64 {
    (rank ^ (1 << 63)) as i64
}

/// The sizes of cells, as how many bits of a rank do not tell: the last cell has all ranks.
fn sizes() -> impl Iterator<Item = u32> {
    (0..BITS).step_by(STEP as usize).chain([BITS])
}

/// A cell as a number: the bits that tell, then a one, then zeros for those that do not.
fn cell(number: u64, size: u32) -> i64 {
    ((number << size) << 1 | 1 << size) as i64
}

/// The cell of that size that has the rank.
pub(super) fn cell_at(rank: &Datum, size: &Datum) -> Datum {
    let size = size.as_i64().and_then(|size| u32::try_from(size).ok()).filter(|s| *s <= BITS);
    let Some((rank, size)) = rank.as_i64().zip(size) else { return Datum::Null };
    Datum::Int8(cell((unsigned(rank) >> 1) >> size, size))
}

/// The size of a cell.
pub(super) fn size_of_cell(cell: &Datum) -> Datum {
    cell.as_i64().map_or(Datum::Null, |cell| Datum::Int4(cell.trailing_zeros() as i32))
}

/// The cells, of one size, that have all ranks between two, with them; none, if there are none.
pub(super) fn cover(from: i64, to: i64) -> Vec<Datum> {
    if from > to {
        return Vec::new();
    }
    let (from, to) = (unsigned(from) >> 1, unsigned(to) >> 1);
    let are_few = |size: &u32| (to >> size) - (from >> size) < COVER;
    let size = sizes().find(are_few).unwrap_or(BITS);
    ((from >> size)..=(to >> size)).map(|number| Datum::Int8(cell(number, size))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::sql_cmp;

    fn rank_of(value: &Datum) -> i64 {
        rank(value).as_i64().unwrap()
    }

    fn cells_in(cover: &[Datum], rank: i64) -> usize {
        let holds = |cell: &&Datum| cell_at(&Datum::Int8(rank), &size_of_cell(cell)) == **cell;
        cover.iter().filter(holds).count()
    }

    #[test]
    fn a_rank_is_in_one_cell_of_the_cover_of_an_interval_it_is_in() {
        let limits =
            [i64::MIN, i64::MIN + 1, -1 << 40, -17, -16, -1, 0, 1, 2, 15, 16, 1000, 1 << 50];
        let limits = [limits.as_slice(), &[i64::MAX - 1, i64::MAX]].concat();
        for (&from, &to) in limits.iter().flat_map(|from| limits.iter().map(move |to| (from, to))) {
            let cover = cover(from, to);
            assert!(cover.len() <= COVER as usize);
            assert_eq!(cover.is_empty(), from > to);
            for &rank in &limits {
                let found = cells_in(&cover, rank);
                assert!(found <= 1, "{rank} is in several cells of {from} to {to}");
                assert!(found == 1 || rank < from || rank > to, "{rank} is not in {from} to {to}");
            }
        }
    }

    #[test]
    fn a_cover_is_not_much_larger_than_its_interval() {
        for (from, to) in [(0, 1000), (-500, 500), (1 << 40, (1 << 40) + 99_999)] {
            let cover = cover(from, to);
            let size = size_of_cell(&cover[0]).as_i64().unwrap();
            let covered = cover.len() as i64 * (2 << size);
            assert!(covered <= 22 * (to - from), "{covered} for {}", to - from);
        }
    }

    fn assert_ranked(values: &[Datum]) {
        for (a, b) in values.iter().flat_map(|a| values.iter().map(move |b| (a, b))) {
            let (order, ranks) = (sql_cmp(a, b), rank_of(a).cmp(&rank_of(b)));
            assert!(ranks.is_eq() || ranks == order, "{a:?} {b:?}");
        }
    }

    #[test]
    fn ranks_do_not_fall_where_values_rise() {
        let floats = [0.0, 1e-300, 1e-9, 0.5, 1.0, 1.5, 1e9, LINEAR - 1.0, LINEAR, LINEAR * 2.0];
        let floats = [&floats, [1e15, 1e16, 1e300, f64::MAX, f64::INFINITY].as_slice()].concat();
        let both = floats.iter().flat_map(|value| [*value, -value]).chain([f64::NAN]);
        assert_ranked(&both.clone().map(Datum::Float8).collect::<Vec<_>>());
        assert_ranked(&both.map(|value| Datum::Float4(value as f32)).collect::<Vec<_>>());
        let huge = format!("1{}", "0".repeat(400));
        let tiny = format!("0.{}1", "0".repeat(400));
        let texts = ["0", "0.00", "1", "1.5", "1e20", "Infinity", huge.as_str(), tiny.as_str()];
        let numbers = texts.iter().flat_map(|text| [(*text).to_owned(), format!("-{text}")]);
        let numbers = numbers.chain(["NaN".to_owned()]);
        let numeric = |text: String| Datum::Numeric(Numeric::parse(&text).unwrap());
        assert_ranked(&numbers.map(numeric).collect::<Vec<_>>());
        let texts = ["", "a", "ab", "b", "customer 1", "customer 2", "ä", "\u{10ffff}"];
        assert_ranked(&texts.map(Datum::text));
        assert_ranked(&[i64::MIN, -1, 0, 1, i64::MAX].map(Datum::Timestamp));
        assert_ranked(&[i32::MIN, -1, 0, 1, i32::MAX].map(Datum::Date));
    }
}
