//! Dates and timestamps: the proleptic Gregorian calendar, ISO text, conversions.
//!
//! Only the ISO forms are read: what other forms mean depends on settings, so PostgreSQL does not
//! regard reading them as immutable.

use crate::error::DataError;

/// Microseconds of a day.
pub const DAY: i64 = 86_400_000_000;
/// 2000-01-01 as Julian day.
pub const EPOCH_JULIAN: i64 = 2_451_545;
/// Days from 1970-01-01 to 2000-01-01.
pub const UNIX_TO_EPOCH: i64 = 10_957;
const MIN_DATE: i64 = -EPOCH_JULIAN;
const END_DATE: i64 = 2_147_483_494 - EPOCH_JULIAN;
const MIN_TIMESTAMP: i64 = -211_813_488_000_000_000;
const END_TIMESTAMP: i64 = 9_223_371_331_200_000_000;

fn date_out_of_range() -> DataError {
    DataError::new("22008", "date out of range")
}

/// Whether a date is neither of the infinities.
pub fn is_finite_date(date: i32) -> bool {
    date != i32::MIN && date != i32::MAX
}

/// `date + integer`
pub fn add_days(date: i32, days: i64) -> Result<i32, DataError> {
    if !is_finite_date(date) {
        return Ok(date);
    }
    let sum = i64::from(date) + days;
    if !(MIN_DATE..END_DATE).contains(&sum) {
        return Err(date_out_of_range());
    }
    i32::try_from(sum).map_err(|_| date_out_of_range())
}

/// `date - date`
pub fn days_between(later: i32, earlier: i32) -> Result<i32, DataError> {
    if !is_finite_date(later) || !is_finite_date(earlier) {
        return Err(DataError::new("22008", "cannot subtract infinite dates"));
    }
    // Finite dates are at most 2^31 - 1 - (-2451545) apart; PostgreSQL wraps around there too.
    Ok(later.wrapping_sub(earlier))
}

/// `date::timestamp`
pub fn timestamp_of_date(date: i32) -> Result<i64, DataError> {
    match date {
        i32::MIN => Ok(i64::MIN),
        i32::MAX => Ok(i64::MAX),
        _ => i64::from(date)
            .checked_mul(DAY)
            .filter(|timestamp| *timestamp < END_TIMESTAMP)
            .ok_or_else(|| DataError::new("22008", "date out of range for timestamp")),
    }
}

/// A timestamp that was computed, unless it is out of range (`None` beyond what 64 bits hold).
pub fn checked_timestamp(timestamp: Option<i64>) -> Result<i64, DataError> {
    timestamp
        .filter(|timestamp| (MIN_TIMESTAMP..END_TIMESTAMP).contains(timestamp))
        .ok_or_else(|| DataError::new("22008", "timestamp out of range"))
}

/// `timestamp::date`
pub fn date_of_timestamp(timestamp: i64) -> i32 {
    match timestamp {
        i64::MIN => i32::MIN,
        i64::MAX => i32::MAX,
        _ => timestamp.div_euclid(DAY) as i32,
    }
}

/// Rounds to `timestamp(precision)`, given as type modifier; -1 for none.
pub fn round_timestamp(timestamp: i64, typmod: i32) -> i64 {
    if !(0..6).contains(&typmod) || timestamp == i64::MIN || timestamp == i64::MAX {
        return timestamp;
    }
    let unit = 10i64.pow(6 - typmod as u32);
    let rounded = (timestamp.unsigned_abs() as i64).saturating_add(unit / 2) / unit * unit;
    if timestamp >= 0 {
        rounded
    } else {
        -rounded
    }
}

/// Year (astronomical), month and day of a finite date.
pub fn civil(date: i64) -> (i64, u32, u32) {
    // Count from 0000-03-01, so that leap days end the years.
    let days = date + UNIX_TO_EPOCH + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * shifted_month + 2) / 5 + 1) as u32;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 } as u32;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Days since 2000-01-01 of a day of the calendar; `None` if the calendar has no such day.
pub fn days_of_civil(year: i64, month: u32, day: u32) -> Option<i64> {
    let shifted_year = year - i64::from(month <= 2);
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let shifted_month = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468 - UNIX_TO_EPOCH;
    (civil(days) == (year, month, day)).then_some(days)
}

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
pub fn format_timestamp(timestamp: i64, zone: bool) -> String {
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
pub fn parse_date(text: &str) -> Result<i32, DataError> {
    let invalid = || invalid("date", text);
    match text.trim_matches(crate::text_io::is_space) {
        "infinity" => Ok(i32::MAX),
        "-infinity" => Ok(i32::MIN),
        trimmed => {
            let (trimmed, before_christ) = split_era(trimmed);
            let days = parse_day(trimmed, before_christ, text).ok_or_else(invalid)??;
            if !(MIN_DATE..END_DATE).contains(&days) {
                let message = format!("date out of range: \"{text}\"");
                return Err(DataError::new("22008", &message));
            }
            i32::try_from(days).map_err(|_| invalid())
        }
    }
}

fn invalid(ty: &str, text: &str) -> DataError {
    DataError::new("22007", &format!("invalid input syntax for type {ty}: \"{text}\""))
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
pub fn parse_timestamp(text: &str, zone: bool) -> Result<i64, DataError> {
    let name = if zone { "timestamp with time zone" } else { "timestamp" };
    let invalid = || invalid(name, text);
    match text.trim_matches(crate::text_io::is_space) {
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
                    DataError::new("22008", &message)
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
    DataError::new("22008", &format!("date/time field value out of range: \"{text}\""))
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
        return Some(Err(DataError::new("22009", &message)));
    }
    Some(Ok(sign * ((hour * 60 + minute) * 60 + second) * 1_000_000))
}
