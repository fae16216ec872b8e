//! Dates and timestamps: the proleptic Gregorian calendar, ranges, conversions. Their text is in `text`.

use crate::error::DataError;
use crate::sqlstate;

/// Microseconds of a day.
pub const DAY: i64 = 86_400_000_000;
/// 2000-01-01 as Julian day.
pub const EPOCH_JULIAN: i64 = 2_451_545;
/// Days from 1970-01-01 to 2000-01-01.
pub const UNIX_TO_EPOCH: i64 = 10_957;
pub(crate) const MIN_DATE: i64 = -EPOCH_JULIAN;
pub(crate) const END_DATE: i64 = 2_147_483_494 - EPOCH_JULIAN;
pub(crate) const MIN_TIMESTAMP: i64 = -211_813_488_000_000_000;
pub(crate) const END_TIMESTAMP: i64 = 9_223_371_331_200_000_000;

fn date_out_of_range() -> DataError {
    DataError::new(sqlstate::DATETIME_FIELD_OVERFLOW, "date out of range")
}

pub(crate) fn timestamp_out_of_range() -> DataError {
    DataError::new(sqlstate::DATETIME_FIELD_OVERFLOW, "timestamp out of range")
}

pub(crate) fn date_out_of_range_for_timestamp() -> DataError {
    DataError::new(sqlstate::DATETIME_FIELD_OVERFLOW, "date out of range for timestamp")
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
        return Err(DataError::new(
            sqlstate::DATETIME_FIELD_OVERFLOW,
            "cannot subtract infinite dates",
        ));
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
            .ok_or_else(date_out_of_range_for_timestamp),
    }
}

/// A timestamp that was computed, unless it is out of range (`None` beyond what 64 bits hold).
pub fn checked_timestamp(timestamp: Option<i64>) -> Result<i64, DataError> {
    timestamp
        .filter(|timestamp| (MIN_TIMESTAMP..END_TIMESTAMP).contains(timestamp))
        .ok_or_else(timestamp_out_of_range)
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
