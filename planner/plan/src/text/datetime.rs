//! Text of dates and timestamps.
//!
//! Only the ISO forms are read: what other forms mean depends on settings, so PostgreSQL does not
//! regard reading them as immutable.

use super::input::is_space;
use crate::datetime::{
    civil, days_of_civil, DAY, END_DATE, END_TIMESTAMP, MIN_DATE, MIN_TIMESTAMP,
};
use crate::error::DataError;
use crate::sqlstate;

fn year_text(year: i64) -> (String, &'static str) {
    if year > 0 {
        (format!("{year:04}"), "")
    } else {
        (format!("{:04}", 1 - year), " BC")
    }
}

/// ISO text of a date.
pub fn format_date(date: i32) -> String {
    match date {
        i32::MIN => "-infinity".to_owned(),
        i32::MAX => "infinity".to_owned(),
        _ => {
            let (year, month, day) = civil(i64::from(date));
            let (year, era) = year_text(year);
            format!("{year}-{month:02}-{day:02}{era}")
        }
    }
}

/// ISO text of a timestamp; with `zone`, as timestamp with time zone in UTC.
pub(crate) fn format_timestamp(timestamp: i64, zone: bool) -> String {
    match timestamp {
        i64::MIN => return "-infinity".to_owned(),
        i64::MAX => return "infinity".to_owned(),
        _ => {}
    }
    let (year, month, day) = civil(timestamp.div_euclid(DAY));
    let time = timestamp.rem_euclid(DAY);
    let (year, era) = year_text(year);
    let seconds = time / 1_000_000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = match time % 1_000_000 {
        0 => String::new(),
        micros => format!(".{micros:06}").trim_end_matches('0').to_owned(),
    };
    let zone = if zone { "+00" } else { "" };
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{fraction}{zone}{era}")
}

/// Reads an ISO date.
pub(crate) fn parse_date(text: &str) -> Result<i32, DataError> {
    let invalid = || invalid("date", text);
    match text.trim_matches(is_space) {
        "infinity" => Ok(i32::MAX),
        "-infinity" => Ok(i32::MIN),
        trimmed => {
            let (trimmed, before_christ) = split_era(trimmed);
            let days = parse_day(trimmed, before_christ, text).ok_or_else(invalid)??;
            if !(MIN_DATE..END_DATE).contains(&days) {
                let message = format!("date out of range: \"{text}\"");
                return Err(DataError::new(sqlstate::DATETIME_FIELD_OVERFLOW, &message));
            }
            i32::try_from(days).map_err(|_| invalid())
        }
    }
}

fn invalid(ty: &str, text: &str) -> DataError {
    DataError::new(
        sqlstate::INVALID_DATETIME_FORMAT,
        &format!("invalid input syntax for type {ty}: \"{text}\""),
    )
}

fn split_era(text: &str) -> (&str, bool) {
    match text.strip_suffix(" BC") {
        Some(rest) => (rest, true),
        None => (text, false),
    }
}

/// `YYYY-MM-DD`; the outer `None` means another form, the inner error a day that does not exist.
fn parse_day(text: &str, before_christ: bool, whole: &str) -> Option<Result<i64, DataError>> {
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || year.len() < 4 || year.len() > 7 {
        return None;
    }
    let year = i64::from(number(year)?);
    let (month, day) = (number(month)?, number(day)?);
    let out_of_range = || field_out_of_range(whole);
    if year == 0 {
        return Some(Err(out_of_range()));
    }
    let year = if before_christ { 1 - year } else { year };
    let valid = (1..=12).contains(&month) && (1..=31).contains(&day);
    let days = if valid { days_of_civil(year, month, day) } else { None };
    Some(days.ok_or_else(out_of_range))
}

fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits {
        text.parse().ok()
    } else {
        None
    }
}

/// Reads an ISO timestamp; with `zone`, one that states its offset from UTC.
pub(crate) fn parse_timestamp(text: &str, zone: bool) -> Result<i64, DataError> {
    let name = if zone { "timestamp with time zone" } else { "timestamp" };
    let invalid = || invalid(name, text);
    match text.trim_matches(is_space) {
        "infinity" => Ok(i64::MAX),
        "-infinity" => Ok(i64::MIN),
        trimmed => {
            let (trimmed, before_christ) = split_era(trimmed);
            let (day, rest) = trimmed.split_once([' ', 'T']).unwrap_or((trimmed, ""));
            let days = parse_day(day, before_christ, text).ok_or_else(invalid)??;
            let (clock, offset) = split_offset(rest);
            let time = parse_clock(clock, text).ok_or_else(invalid)??;
            let offset = match (zone, offset) {
                (false, _) => 0,
                (true, "") => return Err(invalid()),
                (true, offset) => parse_offset(offset, text).ok_or_else(invalid)??,
            };
            days.checked_mul(DAY)
                .and_then(|start| start.checked_add(time)?.checked_sub(offset))
                .filter(|timestamp| (MIN_TIMESTAMP..END_TIMESTAMP).contains(timestamp))
                .ok_or_else(|| {
                    let message = format!("timestamp out of range: \"{text}\"");
                    DataError::new(sqlstate::DATETIME_FIELD_OVERFLOW, &message)
                })
        }
    }
}

fn split_offset(text: &str) -> (&str, &str) {
    match text.find(['+', '-', 'Z', 'z']) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    }
}

fn field_out_of_range(text: &str) -> DataError {
    DataError::new(
        sqlstate::DATETIME_FIELD_OVERFLOW,
        &format!("date/time field value out of range: \"{text}\""),
    )
}

/// `HH:MM[:SS[.ffffff]]` in microseconds; nothing means midnight. The outer `None` means another form,
/// the inner error a time that does not exist.
fn parse_clock(text: &str, whole: &str) -> Option<Result<i64, DataError>> {
    let text = text.trim_end();
    if text.is_empty() {
        return Some(Ok(0));
    }
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = clock.split(':').map(number);
    let hour = i64::from(parts.next()??);
    let minute = i64::from(parts.next()??);
    let second = i64::from(parts.next().unwrap_or(Some(0))?);
    if parts.next().is_some() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let micros = (format!("0.{fraction}").parse::<f64>().ok()? * 1e6).round_ties_even() as i64;
    let leap = second == 60 && micros > 0;
    if hour > 24 || minute > 59 || second > 60 || leap {
        return Some(Err(field_out_of_range(whole)));
    }
    let time = ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros;
    Some(if time <= DAY { Ok(time) } else { Err(field_out_of_range(whole)) })
}

/// `+HH[:MM[:SS]]` or `Z` in microseconds east of UTC.
fn parse_offset(text: &str, whole: &str) -> Option<Result<i64, DataError>> {
    if text.eq_ignore_ascii_case("z") {
        return Some(Ok(0));
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let mut parts = text.get(1..)?.split(':').map(number);
    let hour = i64::from(parts.next()??);
    let minute = i64::from(parts.next().unwrap_or(Some(0))?);
    let second = i64::from(parts.next().unwrap_or(Some(0))?);
    if parts.next().is_some() {
        return None;
    }
    if hour > 15 || minute > 59 || second > 59 {
        let message = format!("time zone displacement out of range: \"{whole}\"");
        return Some(Err(DataError::new(sqlstate::INVALID_TIME_ZONE_DISPLACEMENT_VALUE, &message)));
    }
    Some(Ok(sign * ((hour * 60 + minute) * 60 + second) * 1_000_000))
}
