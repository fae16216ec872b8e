//! Fields of dates and timestamps: extract, date_part, date_trunc.

use super::coerce;
use crate::datetime::{civil, days_of_civil, DAY, EPOCH_JULIAN, UNIX_TO_EPOCH};
use crate::error::DataError;
use crate::numeric::Numeric;
use crate::sqlstate;
use crate::types::Scalar;
use crate::value::Datum;

type Result<T> = std::result::Result<T, DataError>;

/// A moment taken apart, as PostgreSQL's `struct pg_tm` has it.
struct Parts {
    /// Days since 2000-01-01.
    days: i64,
    /// Astronomical: 0 is 1 BC.
    year: i64,
    month: i64,
    day: i64,
    /// Microseconds of the day; `None` for a date.
    time: Option<i64>,
}

impl Parts {
    fn of_days(days: i64, time: Option<i64>) -> Parts {
        let (year, month, day) = civil(days);
        Parts { days, year, month: i64::from(month), day: i64::from(day), time }
    }

    fn of_timestamp(timestamp: i64) -> Parts {
        Parts::of_days(timestamp.div_euclid(DAY), Some(timestamp.rem_euclid(DAY)))
    }

    /// 1 is Monday, 7 Sunday.
    fn iso_weekday(&self) -> i64 {
        (self.days + 5).rem_euclid(7) + 1
    }

    fn day_of_year(&self) -> i64 {
        self.days - first_of_year(self.year) + 1
    }

    /// Year and number of the ISO week: that of its Thursday.
    fn iso_week(&self) -> (i64, i64) {
        let thursday = Parts::of_days(self.days - self.iso_weekday() + 4, None);
        (thursday.year, (thursday.day_of_year() - 1) / 7 + 1)
    }

    /// Decades, centuries and millennia are counted from year 1 forwards and from year 0 (1 BC) backwards.
    fn period(&self, length: i64) -> i64 {
        if self.year > 0 {
            (self.year + length - 1) / length
        } else {
            -((length - 1 - (self.year - 1)) / length)
        }
    }

    fn decade(&self) -> i64 {
        if self.year >= 0 {
            self.year / 10
        } else {
            -((8 - (self.year - 1)) / 10)
        }
    }
}

fn first_of_year(year: i64) -> i64 {
    // The first of January is in every calendar.
    days_of_civil(year, 1, 1).unwrap_or_default()
}

/// There is no year 0.
fn without_zero(year: i64) -> i64 {
    if year > 0 {
        year
    } else {
        year - 1
    }
}

/// `extract(field FROM value)` of a date or timestamp: numeric.
pub(super) fn extract(field: &str, value: &Datum) -> Result<Datum> {
    let given = field.to_ascii_lowercase();
    let field = canonical(&given);
    let (parts, ty, infinity) = match value {
        Datum::Date(days) => {
            let infinity = infinity(*days == i32::MIN, *days == i32::MAX);
            (Parts::of_days(i64::from(*days), None), "date", infinity)
        }
        Datum::Timestamp(timestamp) => {
            let infinity = infinity(*timestamp == i64::MIN, *timestamp == i64::MAX);
            (Parts::of_timestamp(*timestamp), "timestamp without time zone", infinity)
        }
        _ => return Ok(Datum::Null),
    };
    let number = match finite_field(field, &parts)? {
        Some(number) => number,
        None if infinity.is_some() && parts.time.is_some() && field.starts_with("timezone") => {
            return Ok(Datum::Null)
        }
        None => return Err(no_field(&given, ty)),
    };
    let is_monotone = matches!(
        field,
        "year" | "decade" | "century" | "millennium" | "julian" | "isoyear" | "epoch"
    );
    match infinity {
        None => Ok(Datum::Numeric(number)),
        Some(infinity) if is_monotone => Ok(Datum::Numeric(infinity)),
        Some(_) => Ok(Datum::Null),
    }
}

fn infinity(is_least: bool, is_greatest: bool) -> Option<Numeric> {
    match (is_least, is_greatest) {
        (true, _) => Some(Numeric::NEGATIVE_INFINITY),
        (_, true) => Some(Numeric::INFINITY),
        _ => None,
    }
}

/// A field that there is of a value that is not infinite.
fn finite_field(field: &str, parts: &Parts) -> Result<Option<Numeric>> {
    if let ("julian", Some(time)) = (field, parts.time) {
        let fraction = Numeric::from(time).divide(&Numeric::from(DAY))?;
        return Numeric::from(parts.days + EPOCH_JULIAN).add(&fraction).map(Some);
    }
    Ok(whole_field(field, parts))
}

/// A field that is not divided further.
fn whole_field(field: &str, parts: &Parts) -> Option<Numeric> {
    let integer = |number: i64| Some(Numeric::from_small(number, 0));
    let of_minute = || Some(parts.time? % 60_000_000);
    match field {
        "year" => integer(without_zero(parts.year)),
        "month" => integer(parts.month),
        "day" => integer(parts.day),
        "quarter" => integer((parts.month - 1) / 3 + 1),
        "decade" => integer(parts.decade()),
        "century" => integer(parts.period(100)),
        "millennium" => integer(parts.period(1000)),
        "isoyear" => integer(without_zero(parts.iso_week().0)),
        "week" => integer(parts.iso_week().1),
        "dow" => integer(parts.iso_weekday() % 7),
        "isodow" => integer(parts.iso_weekday()),
        "doy" => integer(parts.day_of_year()),
        "hour" => integer(parts.time? / 3_600_000_000),
        "minute" => integer(parts.time? / 60_000_000 % 60),
        "second" => Some(Numeric::from_small(of_minute()?, 6)),
        "milliseconds" => Some(Numeric::from_small(of_minute()?, 3)),
        "microseconds" => integer(of_minute()?),
        "julian" => integer(parts.days + EPOCH_JULIAN),
        "epoch" => {
            let seconds = (parts.days + UNIX_TO_EPOCH) * 86_400;
            match parts.time {
                None => integer(seconds),
                Some(time) => Some(Numeric::from_i128_scaled(
                    i128::from(seconds) * 1_000_000 + i128::from(time),
                    6,
                )),
            }
        }
        _ => None,
    }
}

/// The field that one of PostgreSQL's other names for it means; of long names the first ten letters count.
fn canonical(field: &str) -> &str {
    match field.get(..10).unwrap_or(field) {
        "c" | "cent" | "centuries" => "century",
        "d" | "days" => "day",
        "dec" | "decs" | "decades" => "decade",
        "h" | "hours" | "hr" | "hrs" => "hour",
        "m" | "min" | "mins" | "minutes" => "minute",
        "mil" | "mils" | "millennia" | "millennium" => "millennium",
        "mon" | "mons" | "months" => "month",
        "ms" | "msec" | "msecond" | "mseconds" | "msecs" | "millisecon" => "milliseconds",
        "qtr" => "quarter",
        "s" | "sec" | "seconds" | "secs" => "second",
        "us" | "usec" | "usecond" | "useconds" | "usecs" | "microsecon" => "microseconds",
        "w" | "weeks" => "week",
        "y" | "years" | "yr" | "yrs" => "year",
        "j" | "jd" => "julian",
        _ => field,
    }
}

fn no_field(field: &str, ty: &str) -> DataError {
    const OF_OTHERS: [&str; 9] = [
        "hour",
        "minute",
        "second",
        "milliseconds",
        "microseconds",
        "timezone",
        "timezone_h",
        "timezone_hour",
        "timezone_minute",
    ];
    if OF_OTHERS.contains(&canonical(field)) {
        DataError::new(
            sqlstate::FEATURE_NOT_SUPPORTED,
            &format!("unit \"{field}\" not supported for type {ty}"),
        )
    } else {
        DataError::new(
            sqlstate::INVALID_PARAMETER_VALUE,
            &format!("unit \"{field}\" not recognized for type {ty}"),
        )
    }
}

/// `date_part(field, value)`: double precision; of a date it is that of its midnight.
pub(super) fn part(field: &str, value: &Datum) -> Result<Datum> {
    let number = match value {
        Datum::Date(_) => {
            let midnight = coerce::cast(value, Scalar::Date, Scalar::Timestamp)?;
            extract(field, &midnight)?
        }
        _ => extract(field, value)?,
    };
    match number {
        Datum::Null => Ok(Datum::Null),
        number => coerce::cast(&number, Scalar::Numeric, Scalar::Float8),
    }
}

/// `date_trunc(field, timestamp)`
pub(super) fn truncate(field: &str, value: &Datum) -> Result<Datum> {
    let Datum::Timestamp(timestamp) = value else { return Ok(Datum::Null) };
    // Whatever the field.
    if infinity(*timestamp == i64::MIN, *timestamp == i64::MAX).is_some() {
        return Ok(value.clone());
    }
    let given = field.to_ascii_lowercase();
    let parts = Parts::of_timestamp(*timestamp);
    let time = parts.time.unwrap_or_default();
    let to_multiple = |length: i64| Some((parts.days, time - time % length));
    let of = |year: i64, month: i64| Some((days_of_civil(year, month as u32, 1)?, 0));
    let truncated = match canonical(&given) {
        "microseconds" => Some((parts.days, time)),
        "milliseconds" => to_multiple(1000),
        "second" => to_multiple(1_000_000),
        "minute" => to_multiple(60_000_000),
        "hour" => to_multiple(3_600_000_000),
        "day" => Some((parts.days, 0)),
        "week" => Some((parts.days - parts.iso_weekday() + 1, 0)),
        "month" => of(parts.year, parts.month),
        "quarter" => of(parts.year, (parts.month - 1) / 3 * 3 + 1),
        "year" => of(parts.year, 1),
        "decade" => of(parts.decade() * 10, 1),
        "century" => of(first_of_period(&parts, 100), 1),
        "millennium" => of(first_of_period(&parts, 1000), 1),
        _ => return Err(no_field(&given, "timestamp without time zone")),
    };
    let result = truncated.and_then(|(days, time)| days.checked_mul(DAY)?.checked_add(time));
    let out_of_range =
        || DataError::new(sqlstate::DATETIME_FIELD_OVERFLOW, "timestamp out of range");
    result.map(Datum::Timestamp).ok_or_else(out_of_range)
}

/// The first year, astronomical, of a year's century or millennium.
fn first_of_period(parts: &Parts, length: i64) -> i64 {
    if parts.year > 0 {
        parts.period(length) * length - (length - 1)
    } else {
        parts.period(length) * length + 1
    }
}
