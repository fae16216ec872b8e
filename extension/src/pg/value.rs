//! Values across the border: PostgreSQL's datums to the planner's and back.

use crate::pg::ids::RelationId;
use crate::pg::sqlstate::SqlState;
use pgrx::pg_sys;
use plan::error::DataError;
use plan::numeric::Numeric;
use plan::types::{Scalar, Type};
use plan::value::{Array, Datum, Dimension};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_char, c_int};

/// OID of a type.
pub fn type_oid(ty: Type) -> u32 {
    match ty {
        Type::Scalar(scalar) => scalar_facts(scalar).oid,
        Type::Array(scalar) => scalar_facts(scalar).array_oid,
    }
    .to_u32()
}

/// Whether values of a type are varlenas.
pub(super) fn is_varlena(ty: Type) -> bool {
    match ty {
        Type::Scalar(scalar) => scalar_facts(scalar).len == -1,
        Type::Array(_) => true,
    }
}

/// Which table a row is in, as a value of the type of OIDs.
pub(super) fn of_table(table: RelationId, ty: Type) -> Result<Datum, DataError> {
    // SAFETY: an OID, which is a value of its own; no column of the system that views read has another type.
    unsafe { read(pg_sys::Datum::from(pg_sys::Oid::from(table)), ty) }
}

/// What PostgreSQL's catalogs say of a type.
#[derive(Clone, Copy)]
struct Facts {
    oid: pg_sys::Oid,
    array_oid: pg_sys::Oid,
    len: c_int,
    by_value: bool,
    align: u8,
}

thread_local! {
    /// What the catalogs say of types that only they know. It never changes.
    static HOST_FACTS: RefCell<HashMap<u32, Facts>> = RefCell::default();
}

fn host_facts(id: u32) -> Facts {
    if let Some(facts) = HOST_FACTS.with(|cell| cell.borrow().get(&id).copied()) {
        return facts;
    }
    let oid = pg_sys::Oid::from(id);
    let (mut len, mut by_value, mut align) = (0, false, 0);
    // SAFETY: look-ups in the system caches.
    let array_oid = unsafe {
        pg_sys::get_typlenbyvalalign(oid, &mut len, &mut by_value, &mut align);
        pg_sys::get_array_type(oid)
    };
    let facts = Facts { oid, array_oid, len: c_int::from(len), by_value, align: align as u8 };
    HOST_FACTS.with(|cell| cell.borrow_mut().insert(id, facts));
    facts
}

fn scalar_facts(scalar: Scalar) -> Facts {
    use pg_sys::*;
    let (oid, array_oid, len, by_value, align) = match scalar {
        Scalar::Bool => (BOOLOID, BOOLARRAYOID, 1, true, b'c'),
        Scalar::Int2 => (INT2OID, INT2ARRAYOID, 2, true, b's'),
        Scalar::Int4 => (INT4OID, INT4ARRAYOID, 4, true, b'i'),
        Scalar::Int8 => (INT8OID, INT8ARRAYOID, 8, true, b'd'),
        Scalar::Float4 => (FLOAT4OID, FLOAT4ARRAYOID, 4, true, b'i'),
        Scalar::Float8 => (FLOAT8OID, FLOAT8ARRAYOID, 8, true, b'd'),
        Scalar::Numeric => (NUMERICOID, NUMERICARRAYOID, -1, false, b'i'),
        Scalar::Text => (TEXTOID, TEXTARRAYOID, -1, false, b'i'),
        Scalar::Varchar => (VARCHAROID, VARCHARARRAYOID, -1, false, b'i'),
        Scalar::Char => (BPCHAROID, BPCHARARRAYOID, -1, false, b'i'),
        Scalar::Date => (DATEOID, DATEARRAYOID, 4, true, b'i'),
        Scalar::Timestamp => (TIMESTAMPOID, TIMESTAMPARRAYOID, 8, true, b'd'),
        Scalar::Timestamptz => (TIMESTAMPTZOID, TIMESTAMPTZARRAYOID, 8, true, b'd'),
        Scalar::Uuid => (UUIDOID, UUIDARRAYOID, 16, false, b'c'),
        Scalar::Bytea => (BYTEAOID, BYTEAARRAYOID, -1, false, b'i'),
        Scalar::Host(ty) => return host_facts(ty.id),
    };
    Facts { oid, array_oid, len, by_value, align }
}

/// Reads a datum that is not NULL.
///
/// # Safety
/// `datum` must be a valid value of the type. Detoasting allocates in the current memory context.
pub(super) unsafe fn read(datum: pg_sys::Datum, ty: Type) -> Result<Datum, DataError> {
    // SAFETY: per contract.
    unsafe {
        match ty {
            Type::Scalar(scalar) => read_scalar(datum, scalar),
            Type::Array(element) => read_array(datum, element),
        }
    }
}

/// The value of a datum that is no array.
///
/// # Safety
/// The datum must be of the type.
unsafe fn read_scalar(datum: pg_sys::Datum, scalar: Scalar) -> Result<Datum, DataError> {
    let bits = datum.value();
    // SAFETY: by-reference types are read through `with_bytes`, whose contract is this one's; a
    // uuid points to 16 bytes.
    let value = unsafe {
        match scalar {
            Scalar::Bool => Datum::Bool(bits & 0xff != 0),
            Scalar::Int2 => Datum::Int2(bits as i16),
            Scalar::Int4 => Datum::Int4(bits as i32),
            Scalar::Int8 => Datum::Int8(bits as i64),
            Scalar::Float4 => Datum::Float4(f32::from_bits(bits as u32)),
            Scalar::Float8 => Datum::Float8(f64::from_bits(bits as u64)),
            Scalar::Date => Datum::Date(bits as i32),
            Scalar::Timestamp | Scalar::Timestamptz => Datum::Timestamp(bits as i64),
            Scalar::Uuid => Datum::Uuid(*datum.cast_mut_ptr::<[u8; 16]>()),
            Scalar::Numeric => Datum::Numeric(with_bytes(datum, read_numeric)),
            Scalar::Bytea => Datum::Bytea(with_bytes(datum, |bytes| bytes.into())),
            Scalar::Host(ty) => Datum::Bytea(read_image(datum, host_facts(ty.id))),
            Scalar::Text | Scalar::Varchar | Scalar::Char => {
                with_bytes(datum, |bytes| match std::str::from_utf8(bytes) {
                    Ok(text) => Ok(Datum::Text(text.into())),
                    Err(_) => {
                        let code = SqlState::CHARACTER_NOT_IN_REPERTOIRE;
                        let message = "invalid byte sequence for encoding \"UTF8\"";
                        Err(DataError::new(code.as_str(), message))
                    }
                })?
            }
        }
    };
    Ok(value)
}

/// The bytes of a value, whatever they mean; a varlena's without its header.
///
/// # Safety
/// The datum must be of a type of which the facts are.
unsafe fn read_image(datum: pg_sys::Datum, facts: Facts) -> Box<[u8]> {
    // SAFETY: the datum is of a type of which the facts are; a value passed by reference has `len` bytes.
    unsafe {
        match usize::try_from(facts.len) {
            Err(_) => with_bytes(datum, |bytes| bytes.into()),
            Ok(len) if facts.by_value => datum.value().to_ne_bytes()[..len].into(),
            Ok(len) => std::slice::from_raw_parts(datum.cast_mut_ptr::<u8>(), len).into(),
        }
    }
}

/// A value from its bytes.
fn write_image(bytes: &[u8], facts: Facts) -> pg_sys::Datum {
    match facts {
        Facts { len: -1, .. } => make_varlena(bytes),
        Facts { by_value: true, .. } => {
            let mut word = [0; size_of::<usize>()];
            word[..bytes.len()].copy_from_slice(bytes);
            let bits = usize::from_ne_bytes(word);
            // As the C functions make them: sign-extended.
            let shift = (size_of::<usize>() - bytes.len()) * 8;
            pg_sys::Datum::from(((bits << shift) as isize >> shift) as usize)
        }
        _ => make_copy(bytes),
    }
}

/// Calls `read` with the bytes of a varlena, which is detoasted if need be.
///
/// # Safety
/// The datum must point to a varlena.
unsafe fn with_bytes<R>(datum: pg_sys::Datum, read: impl FnOnce(&[u8]) -> R) -> R {
    // SAFETY: the datum points to a varlena; a detoasted copy is freed after use.
    unsafe {
        let given = datum.cast_mut_ptr::<pg_sys::varlena>();
        let is_plain = !pgrx::varatt_is_1b_e(given) && !pgrx::varatt_is_4b_c(given);
        let plain = if is_plain { given } else { pg_sys::detoast_attr(given) };
        let bytes = std::slice::from_raw_parts(
            pgrx::vardata_any(plain).cast::<u8>(),
            pgrx::varsize_any_exhdr(plain),
        );
        let result = read(bytes);
        if plain != given {
            pg_sys::pfree(plain.cast());
        }
        result
    }
}

/// Whether a varlena is a reference to TOAST storage, as unchanged columns are in decoded rows.
///
/// # Safety
/// `datum` must be a valid varlena.
pub(super) unsafe fn is_toast_reference(datum: pg_sys::Datum) -> bool {
    const VARTAG_ONDISK: u8 = 18;
    // SAFETY: the tag follows the header byte of an external varlena.
    unsafe {
        let given = datum.cast_mut_ptr::<pg_sys::varlena>();
        pgrx::varatt_is_1b_e(given) && *given.cast::<u8>().add(1) == VARTAG_ONDISK
    }
}

// The stored form of numeric (numeric.c): a header of one or two 16-bit words, then digits.
const NUMERIC_SPECIAL: u16 = 0xc000;
const NUMERIC_SHORT: u16 = 0x8000;
const SHORT_NEGATIVE: u16 = 0x2000;

fn read_numeric(bytes: &[u8]) -> Numeric {
    let word = |index: usize| u16::from_ne_bytes([bytes[index * 2], bytes[index * 2 + 1]]);
    let header = word(0);
    let digits = |from: usize| -> Vec<i16> {
        (from..bytes.len() / 2).map(|index| word(index) as i16).collect()
    };
    if header & NUMERIC_SPECIAL == NUMERIC_SPECIAL {
        return Numeric::from_pg_digits(header & 0xf000, 0, 0, &[]);
    }
    if header & NUMERIC_SHORT != 0 {
        let sign = if header & SHORT_NEGATIVE != 0 { 0x4000 } else { 0 };
        let weight = (header & 0x3f) as i16 | if header & 0x40 != 0 { !0x3f } else { 0 };
        return Numeric::from_pg_digits(sign, weight, (header & 0x1f80) >> 7, &digits(1));
    }
    Numeric::from_pg_digits(header & 0xc000, word(1) as i16, header & 0x3fff, &digits(2))
}

/// The stored bytes of a numeric, in the shortest form, as PostgreSQL makes it.
fn numeric_bytes(value: &Numeric) -> Vec<u8> {
    let parts = value.to_pg_digits();
    let mut words: Vec<u16> = Vec::with_capacity(parts.digits.len() + 2);
    if parts.sign & NUMERIC_SPECIAL == NUMERIC_SPECIAL {
        words.push(parts.sign);
    } else if parts.dscale <= 0x3f && (-64..=63).contains(&parts.weight) {
        let sign = if parts.sign == 0 { 0 } else { SHORT_NEGATIVE };
        words.push(NUMERIC_SHORT | sign | (parts.dscale << 7) | (parts.weight as u16 & 0x7f));
    } else {
        words.push(parts.sign | parts.dscale);
        words.push(parts.weight as u16);
    }
    words.extend(parts.digits.iter().map(|digit| *digit as u16));
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// The value of an array.
///
/// # Safety
/// The datum must be an array of that element type.
unsafe fn read_array(datum: pg_sys::Datum, element: Scalar) -> Result<Datum, DataError> {
    // SAFETY: the datum is an array of the element type; `deconstruct_array` allocates in the
    // current memory context, which the caller resets.
    unsafe {
        let array = pg_sys::pg_detoast_datum(datum.cast_mut_ptr()).cast::<pg_sys::ArrayType>();
        // After the header come the lengths, then the lower bounds, one of each per dimension.
        let depth = usize::try_from((*array).ndim).unwrap_or(0);
        let numbers = std::slice::from_raw_parts(array.add(1).cast::<c_int>(), 2 * depth);
        let (lengths, bounds) = numbers.split_at(depth);
        let dimension = |(length, lower_bound): (&c_int, &c_int)| Dimension {
            length: *length,
            lower_bound: *lower_bound,
        };
        let dimensions: Vec<Dimension> = lengths.iter().zip(bounds).map(dimension).collect();
        let facts = scalar_facts(element);
        let (mut values, mut nulls, mut count) =
            (std::ptr::null_mut(), std::ptr::null_mut(), 0 as c_int);
        pg_sys::deconstruct_array(
            array,
            facts.oid,
            facts.len,
            facts.by_value,
            facts.align as c_char,
            &mut values,
            &mut nulls,
            &mut count,
        );
        let elements = (0..count as usize)
            .map(|index| match *nulls.add(index) {
                true => Ok(Datum::Null),
                false => read_scalar(*values.add(index), element),
            })
            .collect::<Result<_, _>>()?;
        Ok(Array::of(&dimensions, elements).into())
    }
}

/// Makes a datum, in the current memory context; `None` for NULL.
pub(super) fn write(value: &Datum, ty: Type) -> Option<pg_sys::Datum> {
    let bits = match value {
        Datum::Null => return None,
        Datum::Bool(value) => usize::from(*value),
        Datum::Int2(value) => *value as usize,
        Datum::Int4(value) | Datum::Date(value) => *value as usize,
        Datum::Int8(value) | Datum::Timestamp(value) => *value as usize,
        Datum::Float4(value) => value.to_bits() as usize,
        Datum::Float8(value) => value.to_bits() as usize,
        Datum::Numeric(value) => return Some(make_varlena(&numeric_bytes(value))),
        Datum::Text(value) => return Some(make_varlena(value.as_bytes())),
        Datum::Bytea(value) => {
            return Some(match ty.scalar() {
                Some(Scalar::Host(ty)) => write_image(value, host_facts(ty.id)),
                _ => make_varlena(value),
            })
        }
        Datum::Uuid(value) => return Some(make_copy(value)),
        Datum::Array(array) => return Some(make_array(array, ty)),
    };
    Some(pg_sys::Datum::from(bits))
}

fn make_copy(bytes: &[u8]) -> pg_sys::Datum {
    // SAFETY: palloc returns that many bytes.
    unsafe {
        let to = pg_sys::palloc(bytes.len()).cast::<u8>();
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        pg_sys::Datum::from(to)
    }
}

fn make_varlena(bytes: &[u8]) -> pg_sys::Datum {
    // SAFETY: palloc returns that many bytes; the header is the four-byte form.
    unsafe {
        let total = bytes.len() + pg_sys::VARHDRSZ;
        let to = pg_sys::palloc(total).cast::<pg_sys::varlena>();
        pgrx::set_varsize_4b(to, total as i32);
        let data = to.cast::<u8>().add(pg_sys::VARHDRSZ);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len());
        pg_sys::Datum::from(to)
    }
}

fn make_array(array: &Array, ty: Type) -> pg_sys::Datum {
    let (Type::Array(element) | Type::Scalar(element)) = ty;
    let facts = scalar_facts(element);
    let written: Vec<Option<pg_sys::Datum>> =
        array.elements.iter().map(|value| write(value, Type::Scalar(element))).collect();
    let mut nulls: Vec<bool> = written.iter().map(Option::is_none).collect();
    let mut values: Vec<pg_sys::Datum> =
        written.into_iter().map(|value| value.unwrap_or(pg_sys::Datum::from(0))).collect();
    let (mut lengths, bounds): (Vec<c_int>, Vec<c_int>) =
        array.dimensions().into_iter().map(|d| (d.length, d.lower_bound)).unzip();
    // SAFETY: the slices have as many elements of the described type as the dimensions say; behind the header are the
    // lengths, then the lower bounds.
    unsafe {
        let array = pg_sys::construct_md_array(
            values.as_mut_ptr(),
            nulls.as_mut_ptr(),
            lengths.len() as c_int,
            lengths.as_mut_ptr(),
            vec![1; lengths.len()].as_mut_ptr(),
            facts.oid,
            facts.len,
            facts.by_value,
            facts.align as c_char,
        );
        // Not checked: what PostgreSQL's functions make may have a last subscript that its constructor refuses.
        let place = array.add(1).cast::<c_int>().add(lengths.len());
        std::ptr::copy_nonoverlapping(bounds.as_ptr(), place, bounds.len());
        pg_sys::Datum::from(array)
    }
}
