//! Type modifiers: `numeric(p,s)`, `varchar(n)`, `char(n)`, `timestamp(p)`.

use super::Datum;
use crate::datetime;
use crate::error::DataError;
use crate::sqlstate;
use crate::types::Scalar;

/// Bytes of PostgreSQL's varlena header, which type modifiers of strings count in.
const HEADER: i32 = 4;

/// Whether a type modifier changes values of the type.
pub(crate) fn has_effect(ty: Scalar, typmod: i32) -> bool {
    match ty {
        Scalar::Numeric | Scalar::Varchar | Scalar::Char => typmod >= HEADER,
        Scalar::Timestamp | Scalar::Timestamptz => (0..6).contains(&typmod),
        _ => false,
    }
}

/// Coerces a value of the type to a type modifier.
pub(crate) fn apply(
    value: &Datum,
    ty: Scalar,
    typmod: i32,
    explicit: bool,
) -> Result<Datum, DataError> {
    match value {
        _ if !has_effect(ty, typmod) => Ok(value.clone()),
        Datum::Numeric(number) => number.apply_typmod(typmod).map(Datum::Numeric),
        Datum::Timestamp(timestamp) => {
            Ok(Datum::Timestamp(datetime::round_timestamp(*timestamp, typmod)))
        }
        Datum::Text(text) => {
            fit_string(text, ty, (typmod - HEADER) as usize, explicit).map(Datum::text)
        }
        other => Ok(other.clone()),
    }
}

fn fit_string(text: &str, ty: Scalar, length: usize, explicit: bool) -> Result<String, DataError> {
    let padded = ty == Scalar::Char;
    match text.char_indices().nth(length) {
        None if padded => Ok(format!("{text:<length$}")),
        None => Ok(text.to_owned()),
        Some((cut, _)) => {
            let (kept, lost) = text.split_at(cut);
            if !explicit && lost.contains(|c| c != ' ') {
                let name = ty.name();
                let message = format!("value too long for type {name}({length})");
                return Err(DataError::new(sqlstate::STRING_DATA_RIGHT_TRUNCATION, &message));
            }
            Ok(kept.to_owned())
        }
    }
}
