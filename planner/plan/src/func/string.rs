//! Kernels of strings. Positions count characters; the database encoding is UTF-8.

use super::Like;
use crate::error::DataError;
use crate::sqlstate;
use crate::value::Datum;

type Result<T> = std::result::Result<T, DataError>;

/// Largest value of a variable-length type.
const MAX_BYTES: usize = 0x3fff_ffff;

fn too_large() -> DataError {
    DataError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, "requested length too large")
}

fn str(value: &Datum) -> &str {
    value.as_str().unwrap_or_default()
}

fn int(value: &Datum) -> i32 {
    value.as_i64().unwrap_or_default() as i32
}

pub(super) fn concat(a: &Datum, b: &Datum) -> Datum {
    match (a, b) {
        (Datum::Bytea(a), Datum::Bytea(b)) => Datum::Bytea([&**a, &**b].concat().into()),
        _ => Datum::text([str(a), str(b)].concat()),
    }
}

pub(super) fn length(text: &str) -> Datum {
    Datum::Int4(text.chars().count() as i32)
}

pub(super) fn octet_length(value: &Datum) -> Datum {
    Datum::Int4(match value {
        Datum::Bytea(bytes) => bytes.len(),
        other => str(other).len(),
    } as i32)
}

/// The byte range of the characters `[from, to)`, 0-based, clipped to the text.
fn characters(text: &str, from: usize, to: usize) -> &str {
    let byte = |index| text.char_indices().nth(index).map_or(text.len(), |(at, _)| at);
    if from >= to {
        return "";
    }
    &text[byte(from)..byte(to)]
}

/// `substr(text, from [, count])`: positions before the text count too.
pub(super) fn substring(args: &[&Datum]) -> Result<Datum> {
    let text = str(args[0]);
    let from = i64::from(int(args[1]));
    let end = match args.get(2) {
        None => i64::MAX,
        Some(count) if int(count) < 0 => {
            return Err(DataError::new(
                sqlstate::SUBSTRING_ERROR,
                "negative substring length not allowed",
            ))
        }
        Some(count) => from + i64::from(int(count)),
    };
    let index = |position: i64| usize::try_from(position - 1).unwrap_or(0);
    Ok(Datum::text(characters(text, index(from), index(end))))
}

/// `left(text, n)`; a negative n drops characters from the right.
pub(super) fn left(text: &str, n: i32) -> Datum {
    Datum::text(characters(text, 0, signed_count(text, n)))
}

/// `right(text, n)`; a negative n drops characters from the left.
pub(super) fn right(text: &str, n: i32) -> Datum {
    let length = text.chars().count();
    Datum::text(characters(text, length.saturating_sub(signed_count(text, n)), length))
}

fn signed_count(text: &str, n: i32) -> usize {
    if n >= 0 {
        return n as usize;
    }
    text.chars().count().saturating_sub(n.unsigned_abs() as usize)
}

/// The characters that are trimmed: blanks if nothing is said.
fn set<'a>(args: &[&'a Datum]) -> impl Fn(char) -> bool + 'a {
    let set = args.get(1).map_or(" ", |set| str(set));
    move |c| set.contains(c)
}

pub(super) fn trim_left(args: &[&Datum]) -> Datum {
    Datum::text(str(args[0]).trim_start_matches(set(args)))
}

pub(super) fn trim_right(args: &[&Datum]) -> Datum {
    Datum::text(str(args[0]).trim_end_matches(set(args)))
}

pub(super) fn trim_both(args: &[&Datum]) -> Datum {
    Datum::text(str(args[0]).trim_matches(set(args)))
}

/// `initcap` in the C collation: words are made of ASCII letters and digits.
pub(super) fn capitalize(text: &str) -> Datum {
    let mut is_within = false;
    let change = |c: char| {
        let changed = if is_within { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() };
        is_within = c.is_ascii_alphanumeric();
        changed
    };
    Datum::text(text.chars().map(change).collect::<String>())
}

pub(super) fn replace(text: &str, from: &str, to: &str) -> Datum {
    if from.is_empty() {
        return Datum::text(text);
    }
    Datum::text(text.replace(from, to))
}

pub(super) fn position(text: &str, part: &str) -> Datum {
    Datum::Int4(match text.find(part) {
        Some(at) => text[..at].chars().count() as i32 + 1,
        None => 0,
    })
}

pub(super) fn repeat(text: &str, n: i32) -> Result<Datum> {
    let n = n.max(0) as usize;
    if text.len().saturating_mul(n) > MAX_BYTES - 4 {
        return Err(too_large());
    }
    Ok(Datum::text(text.repeat(n)))
}

/// `lpad` and `rpad`: fills up to, or cuts at, a number of characters.
pub(super) fn pad(args: &[&Datum], at_left: bool) -> Result<Datum> {
    let text = str(args[0]);
    let width = int(args[1]).max(0) as usize;
    let fill = args.get(2).map_or(" ", |fill| str(fill));
    // Room for the longest characters is asked for.
    if width > (MAX_BYTES - 4) / 4 {
        return Err(too_large());
    }
    let length = text.chars().count();
    if length >= width || fill.is_empty() {
        return Ok(Datum::text(characters(text, 0, width)));
    }
    let padding: String = fill.chars().cycle().take(width - length).collect();
    Ok(Datum::text(if at_left { padding + text } else { text.to_owned() + &padding }))
}

/// `split_part(text, delimiter, n)`; a negative n counts from the end.
pub(super) fn split_part(text: &str, delimiter: &str, n: i32) -> Result<Datum> {
    if n == 0 {
        return Err(DataError::new(
            sqlstate::INVALID_PARAMETER_VALUE,
            "field position must not be zero",
        ));
    }
    let fields: Vec<&str> = match (text, delimiter) {
        ("", _) => Vec::new(),
        (_, "") => vec![text],
        _ => text.split(delimiter).collect(),
    };
    let index = if n > 0 {
        Some(n as usize - 1)
    } else {
        fields.len().checked_sub(n.unsigned_abs() as usize)
    };
    let field = index.and_then(|index| fields.get(index).copied());
    Ok(Datum::text(field.unwrap_or_default()))
}

pub(super) fn ascii(text: &str) -> Datum {
    Datum::Int4(text.chars().next().map_or(0, |c| c as i32))
}

pub(super) fn chr(code: i32) -> Result<Datum> {
    if code == 0 {
        return Err(DataError::new(
            sqlstate::PROGRAM_LIMIT_EXCEEDED,
            "null character not permitted",
        ));
    }
    if code < 0 {
        return Err(DataError::new(
            sqlstate::INVALID_PARAMETER_VALUE,
            "character number must be positive",
        ));
    }
    let too_large = || {
        let message = "requested character too large for encoding: ";
        DataError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, &format!("{message}{}", code as u32))
    };
    let invalid = || {
        let message = "requested character not valid for encoding: ";
        DataError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, &format!("{message}{}", code as u32))
    };
    if code > 0x10_ffff {
        return Err(too_large());
    }
    char::from_u32(code as u32).map(|c| Datum::text(c.to_string())).ok_or_else(invalid)
}

/// Whether the text matches the pattern.
pub(super) fn like(like: Like, text: &str, pattern: &str) -> Result<bool> {
    let folded = |s: &str| s.to_ascii_lowercase();
    let matched = match like {
        Like::Like | Like::NotLike => match_pattern(text, pattern)?,
        Like::ILike | Like::NotILike => match_pattern(&folded(text), &folded(pattern))?,
    };
    let negated = matches!(like, Like::NotLike | Like::NotILike);
    Ok((matched == Match::Yes) != negated)
}

#[derive(PartialEq)]
enum Match {
    Yes,
    No,
    /// The text is too short for the pattern: trying later starts is useless.
    TooShort,
}

fn ends_with_escape() -> DataError {
    DataError::new(
        sqlstate::INVALID_ESCAPE_SEQUENCE,
        "LIKE pattern must not end with escape character",
    )
}

fn first(text: &str) -> Option<(char, &str)> {
    let mut chars = text.chars();
    Some((chars.next()?, chars.as_str()))
}

/// Matches in the order PostgreSQL does: a trailing escape character is an error only when reached.
fn match_pattern(mut text: &str, mut pattern: &str) -> Result<Match> {
    while let (Some((c, text_rest)), Some((p, pattern_rest))) = (first(text), first(pattern)) {
        match p {
            '%' => return match_rest(text, pattern_rest),
            '_' => pattern = pattern_rest,
            '\\' => {
                let (escaped, rest) = first(pattern_rest).ok_or_else(ends_with_escape)?;
                if escaped != c {
                    return Ok(Match::No);
                }
                pattern = rest;
            }
            _ if p != c => return Ok(Match::No),
            _ => pattern = pattern_rest,
        }
        text = text_rest;
    }
    if !text.is_empty() {
        return Ok(Match::No);
    }
    let rest = pattern.trim_start_matches('%');
    Ok(if rest.is_empty() { Match::Yes } else { Match::TooShort })
}

/// Matches what follows a `%`.
fn match_rest(mut text: &str, mut pattern: &str) -> Result<Match> {
    loop {
        match first(pattern) {
            None => return Ok(Match::Yes),
            Some(('%', rest)) => pattern = rest,
            Some(('_', rest)) => match first(text) {
                None => return Ok(Match::TooShort),
                Some((_, text_rest)) => {
                    text = text_rest;
                    pattern = rest;
                }
            },
            Some(_) => break,
        }
    }
    let wanted = match first(pattern) {
        Some(('\\', rest)) => first(rest).ok_or_else(ends_with_escape)?.0,
        Some((p, _)) => p,
        None => return Ok(Match::Yes),
    };
    while let Some((c, rest)) = first(text) {
        if c == wanted {
            let matched = match_pattern(text, pattern)?;
            if matched != Match::No {
                return Ok(matched);
            }
        }
        text = rest;
    }
    Ok(Match::TooShort)
}

/// `like_escape`: rewrites a pattern with another escape character to one with backslashes.
pub(super) fn like_escape(pattern: &str, escape: &str) -> Result<Datum> {
    let Some((escape, rest)) = first(escape) else {
        return Ok(Datum::text(pattern.replace('\\', "\\\\")));
    };
    if !rest.is_empty() {
        return Err(DataError::new(sqlstate::INVALID_ESCAPE_SEQUENCE, "invalid escape string"));
    }
    if escape == '\\' {
        return Ok(Datum::text(pattern));
    }
    let mut out = String::with_capacity(pattern.len());
    let mut after_escape = false;
    for c in pattern.chars() {
        if c == escape && !after_escape {
            out.push('\\');
            after_escape = true;
        } else {
            if c == '\\' && !after_escape {
                out.push('\\');
            }
            out.push(c);
            after_escape = false;
        }
    }
    Ok(Datum::text(out))
}
