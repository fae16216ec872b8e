//! Rows of a few words: for columns of fixed width.
//!
//! A column is a field of bits within one word, or two whole words; NULL is a bit of its own, for columns
//! that may be NULL, with the value's bits zero. Rows are copied, compared and hashed as numbers. Words
//! have 32 bits: most keys are as wide, and arrangements of twice the size take twice as long to merge.

use super::tuple::{ColumnType, Layout, Tuple};
use crate::core::collection::Collection;
use crate::core::column::Column;
use plan::error::DataError;
use plan::row::Row;
use plan::sqlstate;
use plan::types::{Scalar, Type};
use plan::value::Datum;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What rows are made of.
type Word = u32;

/// The layout of plans whose rows fit into `ROW` words, keys of arrangements into `KEY` words, and
/// what is left of a row beside its key into `VAL` words.
#[derive(Clone, Copy)]
pub(crate) struct Fixed<const ROW: usize, const KEY: usize, const VAL: usize>;

/// Columns in `N` words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Vec<Word>", into = "Vec<Word>")]
pub(crate) struct Words<const N: usize>([Word; N]);

impl<const N: usize> Default for Words<N> {
    fn default() -> Self {
        Words([0; N])
    }
}

impl<const N: usize> Hash for Words<N> {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.into_iter().for_each(|word| state.write_u32(word));
    }
}

impl<const N: usize> From<Words<N>> for Vec<Word> {
    fn from(words: Words<N>) -> Vec<Word> {
        words.0.to_vec()
    }
}

impl<const N: usize> TryFrom<Vec<Word>> for Words<N> {
    type Error = &'static str;
    fn try_from(words: Vec<Word>) -> Result<Self, Self::Error> {
        words.try_into().map(Words).map_err(|_| "a row of another layout")
    }
}

impl<const N: usize> Column for Words<N> {
    fn write<'a>(values: impl Iterator<Item = &'a Self> + Clone, out: &mut Vec<u8>) {
        (0..N).for_each(|word| Word::write(values.clone().map(|words| &words.0[word]), out));
    }

    fn read(count: usize, input: &mut &[u8]) -> Option<Vec<Self>> {
        let mut tuples = vec![Words::default(); count];
        for word in 0..N {
            let column = Word::read(count, input)?;
            tuples.iter_mut().zip(column).for_each(|(words, value)| words.0[word] = value);
        }
        Some(tuples)
    }
}

/// Some bits of one word or, if there are more of them than it has, two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bits {
    word: usize,
    shift: u32,
    width: u32,
}

impl Bits {
    /// The bits that are set, of one word.
    fn mask(self) -> Word {
        (Word::MAX >> (Word::BITS - self.width)) << self.shift
    }

    fn is_double(self) -> bool {
        self.width > Word::BITS
    }

    /// The same bits, word by word.
    fn parts(self) -> impl Iterator<Item = Bits> {
        let count = if self.is_double() { 2 } else { 1 };
        let width = self.width.min(Word::BITS);
        (0..count).map(move |i| Bits { word: self.word + i, shift: self.shift, width })
    }

    #[inline]
    fn get(self, words: &[Word]) -> u64 {
        if self.is_double() {
            u64::from(words[self.word]) | u64::from(words[self.word + 1]) << Word::BITS
        } else {
            u64::from((words[self.word] & self.mask()) >> self.shift)
        }
    }

    #[inline]
    fn set(self, words: &mut [Word], value: u64) {
        if self.is_double() {
            words[self.word] = value as Word;
            words[self.word + 1] = (value >> Word::BITS) as Word;
        } else {
            words[self.word] |= ((value as Word) << self.shift) & self.mask();
        }
    }
}

/// Where a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    value: Bits,
    null: Option<Bits>,
    scalar: Scalar,
}

/// Bits a value of a type takes; `None` if that varies, or is more than two words.
fn width(scalar: Scalar) -> Option<u32> {
    match scalar {
        Scalar::Bool => Some(1),
        Scalar::Int2 => Some(16),
        Scalar::Int4 | Scalar::Float4 | Scalar::Date => Some(32),
        Scalar::Int8 | Scalar::Float8 | Scalar::Timestamp | Scalar::Timestamptz => Some(64),
        Scalar::Numeric
        | Scalar::Text
        | Scalar::Varchar
        | Scalar::Char
        | Scalar::Uuid
        | Scalar::Bytea
        | Scalar::Host(_) => None,
    }
}

/// Places for a tuple's columns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fields {
    fields: Arc<[Field]>,
    words: usize,
}

impl Fields {
    /// Places for these columns; `None` if one of them has no fixed width.
    pub(crate) fn of(columns: &[ColumnType]) -> Option<Fields> {
        let mut scalars = Vec::with_capacity(columns.len());
        for column in columns {
            let scalar = match column.ty {
                Some(Type::Scalar(scalar)) => scalar,
                Some(Type::Array(_)) => return None,
                // No value has to be told from another one.
                None => Scalar::Bool,
            };
            scalars.push((scalar, width(scalar)?));
        }
        // The wide ones first: each word is filled before the next one is begun.
        let mut places = Places::default();
        let mut values = vec![None; columns.len()];
        let mut order: Vec<usize> = (0..columns.len()).collect();
        order.sort_by_key(|i| std::cmp::Reverse(scalars[*i].1));
        order.into_iter().for_each(|i| values[i] = Some(places.take(scalars[i].1)));
        let fields = columns.iter().zip(scalars).zip(values);
        let fields = fields.filter_map(|((column, (scalar, _)), value)| {
            let null = column.nullable.then(|| places.take(1));
            Some(Field { value: value?, null, scalar })
        });
        let fields = fields.collect();
        Some(Fields { fields, words: places.used.len() })
    }

    /// Number of words the columns take.
    pub(crate) fn words(&self) -> usize {
        self.words
    }
}

/// Words being filled.
#[derive(Default)]
struct Places {
    /// Number of bits taken of each word, from the lowest.
    used: Vec<u32>,
}

impl Places {
    fn take(&mut self, width: u32) -> Bits {
        let free = self.used.iter().position(|used| used + width <= Word::BITS);
        let word = free.unwrap_or_else(|| {
            let word = self.used.len();
            self.used.resize(word + width.div_ceil(Word::BITS) as usize, 0);
            word
        });
        let shift = self.used[word];
        let place = Bits { word, shift, width };
        place.parts().for_each(|part| self.used[part.word] += part.width);
        place
    }
}

/// How columns get from some tuples into another one.
pub(crate) struct Moves {
    moves: SmallVec<[Move; 2]>,
    /// Bits of which none may be set if no column is to be NULL.
    nulls: SmallVec<[(usize, usize, Word); 2]>,
}

/// Some bits of a word of one tuple become bits of a word of another one.
struct Move {
    from: usize,
    word: usize,
    mask: Word,
    rotate: u32,
    to: usize,
}

impl Moves {
    fn add(&mut self, from: usize, source: Bits, target: Bits) {
        for (source, target) in source.parts().zip(target.parts()) {
            let rotate = target.shift.wrapping_sub(source.shift) % Word::BITS;
            let mask = source.mask();
            let same = |m: &&mut Move| {
                (m.from, m.word, m.rotate, m.to) == (from, source.word, rotate, target.word)
            };
            match self.moves.iter_mut().find(same) {
                Some(same) => same.mask |= mask,
                None => {
                    let (word, to) = (source.word, target.word);
                    self.moves.push(Move { from, word, mask, rotate, to });
                }
            }
        }
    }

    #[inline]
    fn project<const N: usize>(&self, from: &[&[Word]]) -> Words<N> {
        let mut words = [0; N];
        for m in &self.moves {
            words[m.to] |= (from[m.from][m.word] & m.mask).rotate_left(m.rotate);
        }
        Words(words)
    }

    #[inline]
    fn has_null(&self, from: &[&[Word]]) -> bool {
        self.nulls.iter().any(|(tuple, word, mask)| from[*tuple][*word] & mask != 0)
    }
}

impl<const ROW: usize, const KEY: usize, const VAL: usize> Layout for Fixed<ROW, KEY, VAL> {
    type Row = Words<ROW>;
    type Key = Words<KEY>;
    type Val = Words<VAL>;
    type View<'a> = &'a [Word];
    type Shape = Fields;
    type Moves = Moves;

    const KEEPS_ROWS: bool = false;
    const HAS_INTEGERS: bool = true;

    fn shape(columns: &[ColumnType]) -> Fields {
        Fields::of(columns).expect("plans with other columns have another layout")
    }

    fn moves_to(from: &[&Fields], columns: &[(usize, usize)], to: &Fields) -> Moves {
        let sources: Vec<(usize, Field)> = from
            .iter()
            .enumerate()
            .flat_map(|(tuple, shape)| shape.fields.iter().map(move |field| (tuple, *field)))
            .collect();
        let mut moves = Moves { moves: SmallVec::new(), nulls: SmallVec::new() };
        for (position, column) in columns {
            let target = to.fields[*position];
            // A constant without rows does not say what columns it has, nor is there anything to move.
            let Some((tuple, source)) = sources.get(*column).copied() else { continue };
            moves.add(tuple, source.value, target.value);
            if let Some(null) = source.null {
                moves.nulls.push((tuple, null.word, null.mask()));
                if let Some(target) = target.null {
                    moves.add(tuple, null, target);
                }
            }
        }
        moves
    }

    fn unpack_into(view: &[Word], shape: &Fields, out: &mut Vec<Datum>) {
        out.extend(shape.fields.iter().map(|field| field.datum(view)));
    }

    #[inline]
    fn column(view: &[Word], shape: &Fields, index: usize) -> Datum {
        shape.fields[index].datum(view)
    }

    #[inline]
    fn integer(view: &[Word], shape: &Fields, index: usize) -> Option<i64> {
        shape.fields[index].integer(view)
    }

    fn followed_by<'a>(
        key: &Words<KEY>,
        moves: &Moves,
        values: impl ExactSizeIterator<Item = &'a Datum>,
        shape: &Fields,
    ) -> Result<Words<ROW>, DataError> {
        let mut row: Words<ROW> = moves.project(&[&key.0]);
        let fields = &shape.fields[shape.fields.len() - values.len()..];
        for (field, value) in fields.iter().zip(values) {
            field.set(&mut row.0, value)?;
        }
        Ok(row)
    }

    fn pack_collection<'s, const LOOPS: usize>(
        rows: Collection<'s, Words<ROW>, LOOPS>,
        shape: &Fields,
    ) -> Collection<'s, Row, LOOPS> {
        let shape = shape.clone();
        rows.map(move |row| Tuple::<Self>::to_row(row, &shape))
    }
}

impl<const ROW: usize, const KEY: usize, const VAL: usize, const N: usize>
    Tuple<Fixed<ROW, KEY, VAL>> for Words<N>
{
    #[inline]
    fn view(&self) -> &[Word] {
        &self.0
    }

    fn pack(shape: &Fields, values: &[&Datum]) -> Result<Self, DataError> {
        let mut words = [0; N];
        for (field, value) in shape.fields.iter().zip(values) {
            field.set(&mut words, value)?;
        }
        Ok(Words(words))
    }

    fn from_row(row: Row, shape: &Fields) -> Result<Self, DataError> {
        let mut words = [0; N];
        for (field, value) in shape.fields.iter().zip(row.iter()) {
            field.set(&mut words, &value)?;
        }
        Ok(Words(words))
    }

    fn to_row(self, shape: &Fields) -> Row {
        shape.fields.iter().map(|field| field.datum(&self.0)).collect()
    }

    #[inline]
    fn project(moves: &Moves, from: &[&[Word]]) -> Self {
        moves.project(from)
    }

    #[inline]
    fn with_integers(
        moves: &Moves,
        from: &[&[Word]],
        integers: &[(usize, Option<i64>)],
        shape: &Fields,
    ) -> Option<Self> {
        let mut words: Words<N> = moves.project(from);
        for (index, value) in integers {
            let field = &shape.fields[*index];
            match (value, field.null) {
                (Some(value), _) => field.value.set(&mut words.0, *value as u64),
                (None, Some(null)) => null.set(&mut words.0, 1),
                (None, None) => return None,
            }
        }
        Some(words)
    }

    #[inline]
    fn project_not_null(moves: &Moves, from: &[&[Word]]) -> Option<Self> {
        (!moves.has_null(from)).then(|| moves.project(from))
    }
}

impl Field {
    #[inline]
    fn integer(&self, words: &[Word]) -> Option<i64> {
        if self.null.is_some_and(|null| null.get(words) != 0) {
            return None;
        }
        let value = self.value.get(words);
        if self.scalar == Scalar::Bool {
            return Some(value as i64);
        }
        // Extends the sign.
        let unused = u64::BITS - self.value.width;
        Some(((value << unused) as i64) >> unused)
    }

    #[inline]
    fn datum(&self, words: &[Word]) -> Datum {
        if self.null.is_some_and(|null| null.get(words) != 0) {
            return Datum::Null;
        }
        let value = self.value.get(words);
        // What is cut off is zero: the field is as wide as the type.
        match self.scalar {
            Scalar::Bool => Datum::Bool(value != 0),
            Scalar::Int2 => Datum::Int2(value as i16),
            Scalar::Int4 => Datum::Int4(value as i32),
            Scalar::Date => Datum::Date(value as i32),
            Scalar::Float4 => Datum::Float4(f32::from_bits(value as u32)),
            Scalar::Float8 => Datum::Float8(f64::from_bits(value)),
            Scalar::Timestamp | Scalar::Timestamptz => Datum::Timestamp(value as i64),
            _ => Datum::Int8(value as i64),
        }
    }

    fn set(&self, words: &mut [Word], value: &Datum) -> Result<(), DataError> {
        let bits = match (self.scalar, value) {
            (_, Datum::Null) => match self.null {
                Some(null) => {
                    null.set(words, 1);
                    return Ok(());
                }
                None => return Err(unexpected("NULL in a column that was declared without")),
            },
            (Scalar::Bool, Datum::Bool(value)) => u64::from(*value),
            (Scalar::Int2, Datum::Int2(value)) => u64::from(*value as u16),
            (Scalar::Int4, Datum::Int4(value)) => u64::from(*value as u32),
            (Scalar::Date, Datum::Date(value)) => u64::from(*value as u32),
            (Scalar::Float4, Datum::Float4(value)) => u64::from(value.to_bits()),
            (Scalar::Float8, Datum::Float8(value)) => value.to_bits(),
            (Scalar::Int8, Datum::Int8(value)) => *value as u64,
            (Scalar::Timestamp | Scalar::Timestamptz, Datum::Timestamp(value)) => *value as u64,
            _ => return Err(unexpected("a value of another type than its column's")),
        };
        self.value.set(words, bits);
        Ok(())
    }
}

fn unexpected(what: &str) -> DataError {
    DataError::new(sqlstate::INTERNAL_ERROR, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Wide = Fixed<8, 4, 6>;

    fn columns() -> Vec<ColumnType> {
        use Scalar::*;
        [Bool, Int2, Int4, Date, Float4, Int8]
            .map(|scalar| ColumnType { ty: Some(scalar.into()), nullable: true })
            .to_vec()
    }

    fn rows() -> Vec<Vec<Datum>> {
        use Datum::*;
        vec![
            vec![Bool(true), Int2(-1), Int4(i32::MIN), Date(-1), Float4(-0.0), Int8(i64::MIN)],
            vec![Bool(false), Int2(i16::MIN), Int4(-1), Date(0), Float4(f32::NAN), Int8(i64::MAX)],
            vec![Bool(false), Int2(0), Int4(0), Date(0), Float4(0.0), Int8(0)],
            vec![Null; 6],
        ]
    }

    fn pack(shape: &Fields, values: &[Datum]) -> Words<8> {
        let values: Vec<&Datum> = values.iter().collect();
        Tuple::<Wide>::pack(shape, &values).unwrap()
    }

    #[test]
    fn values_come_back_as_they_were() {
        let shape = Fields::of(&columns()).unwrap();
        assert!(shape.words() <= 8);
        for values in rows() {
            let words = pack(&shape, &values);
            let row = Tuple::<Wide>::to_row(words, &shape);
            assert_eq!(row.unpack(), values);
            assert_eq!(<Words<8> as Tuple<Wide>>::from_row(row, &shape), Ok(words));
            for (index, value) in values.iter().enumerate().filter(|(_, v)| v.as_i64().is_some()) {
                assert_eq!(Wide::integer(&words.0, &shape, index), value.as_i64());
            }
        }
    }

    #[test]
    fn words_come_back_from_a_column() {
        let shape = Fields::of(&columns()).unwrap();
        let tuples: Vec<Words<8>> = rows().iter().map(|values| pack(&shape, values)).collect();
        let mut bytes = Vec::new();
        Column::write(tuples.iter(), &mut bytes);
        let mut input = &bytes[..];
        assert_eq!(Column::read(tuples.len(), &mut input), Some(tuples));
        assert!(input.is_empty());
    }

    #[test]
    fn moved_columns_are_those_that_were_picked() {
        let (from, picked) = (columns(), [5, 0, 2]);
        let to: Vec<ColumnType> = picked.iter().map(|column| from[*column]).collect();
        let (from, to) = (Fields::of(&from).unwrap(), Fields::of(&to).unwrap());
        let moves = Wide::moves(&[&from], &picked, &to);
        for values in rows() {
            let words = pack(&from, &values);
            let moved: Words<8> = moves.project(&[&words.0]);
            let expected: Vec<Datum> = picked.iter().map(|i| values[*i].clone()).collect();
            assert_eq!(moved, pack(&to, &expected));
            assert_eq!(moves.has_null(&[&words.0]), expected.contains(&Datum::Null));
        }
    }

    #[test]
    fn a_null_without_a_place_is_refused() {
        let column = ColumnType { ty: Some(Scalar::Int4.into()), nullable: false };
        let shape = Fields::of(&[column]).unwrap();
        let packed: Result<Words<1>, _> = Tuple::<Wide>::pack(&shape, &[&Datum::Null]);
        assert!(packed.is_err());
    }
}
