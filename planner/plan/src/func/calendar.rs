//! Fields of dates and timestamps: extract, date_part, date_trunc. Of those with time zone they are fields of the local
//! time, so the kernels take that and the offset of its zone.

use super::coerce;
use crate::datetime::{
    civil, days_of_civil, timestamp_out_of_range, DAY, EPOCH_JULIAN, UNIX_TO_EPOCH,
};
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
    /// Seconds east of UTC, if a time zone is known.
    offset: Option<i64>,
}

impl Parts {
    fn of_days(days: i64, time: Option<i64>) -> Parts {
        let (year, month, day) = civil(days);
        let (month, day) = (i64::from(month), i64::from(day));
        Parts { days, year, month, day, time, offset: None }
    }

    fn of_timestamp(timestamp: i64) -> Parts {
        Parts::of_days(timestamp.div_euclid(DAY), Some(timestamp.rem_euclid(DAY)))
    }

    /// Of a local time and the seconds by which it is east of UTC.
    fn of_local(local: i64, offset: i64) -> Parts {
        Parts { offset: Some(offset), ..Parts::of_timestamp(local) }
    }

    /// The type of what was taken apart.
    fn type_name(&self) -> &'static str {
        match (self.time, self.offset) {
            (None, _) => Scalar::Date.name(),
            (_, None) => Scalar::Timestamp.name(),
            (_, Some(_)) => Scalar::Timestamptz.name(),
        }
    }

    /// Microseconds since 1970 UTC.
    fn epoch(&self, time: i64) -> i128 {
        let seconds = (self.days + UNIX_TO_EPOCH) * 86_400 - self.offset.unwrap_or_default();
        i128::from(seconds) * 1_000_000 + i128::from(time)
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
    match value {
        Datum::Date(days) => {
            let infinity = infinity(*days == i32::MIN, *days == i32::MAX);
            field_of(field, &Parts::of_days(i64::from(*days), None), infinity)
        }
        Datum::Timestamp(timestamp) => {
            field_of(field, &Parts::of_timestamp(*timestamp), infinity_of(*timestamp))
        }
        _ => Ok(Datum::Null),
    }
}

/// The same of a timestamp with time zone: its local time, and the seconds by which that is east of UTC.
pub(super) fn extract_local(field: &str, local: i64, offset: i64) -> Result<Datum> {
    field_of(field, &Parts::of_local(local, offset), infinity_of(local))
}

fn field_of(field: &str, parts: &Parts, infinity: Option<Numeric>) -> Result<Datum> {
    let given = field.to_ascii_lowercase();
    let field = canonical(&given);
    let number = match finite_field(field, parts)? {
        Some(number) => number,
        None if infinity.is_some() && parts.time.is_some() && field.starts_with("timezone") => {
            return Ok(Datum::Null)
        }
        None => return Err(no_field(&given, parts.type_name())),
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

fn infinity_of(timestamp: i64) -> Option<Numeric> {
    infinity(timestamp == i64::MIN, timestamp == i64::MAX)
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
        "epoch" => match parts.time {
            None => integer((parts.days + UNIX_TO_EPOCH) * 86_400),
            Some(time) => Some(Numeric::from_i128_scaled(parts.epoch(time), 6)),
        },
        "timezone" => integer(parts.offset?),
        "timezone_hour" => integer(parts.offset? / 3600),
        "timezone_minute" => integer(parts.offset? / 60 % 60),
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
        "timezone_h" => "timezone_hour",
        "timezone_m" => "timezone_minute",
        _ => field,
    }
}

fn no_field(field: &str, ty: &str) -> DataError {
    const OF_OTHERS: [&str; 8] = [
        "hour",
        "minute",
        "second",
        "milliseconds",
        "microseconds",
        "timezone",
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
    let midnight;
    let value = match value {
        Datum::Date(_) => {
            midnight = coerce::cast(value, Scalar::Date, Scalar::Timestamp)?;
            &midnight
        }
        value => value,
    };
    let exact = extract(field, value)?;
    match value {
        Datum::Timestamp(timestamp) => {
            in_floats(field, exact, infinity_of(*timestamp), &Parts::of_timestamp(*timestamp))
        }
        _ => Ok(exact),
    }
}

/// The same of a timestamp with time zone: its local time, and the seconds by which that is east of UTC.
pub(super) fn part_local(field: &str, local: i64, offset: i64) -> Result<Datum> {
    let exact = extract_local(field, local, offset)?;
    in_floats(field, exact, infinity_of(local), &Parts::of_local(local, offset))
}

/// A field as PostgreSQL computes it in floating point, which is not always the float that is nearest to it.
fn in_floats(field: &str, exact: Datum, infinity: Option<Numeric>, parts: &Parts) -> Result<Datum> {
    let time = parts.time.unwrap_or_default();
    let (seconds, micros) = (time / 1_000_000, (time % 1_000_000) as f64);
    let of_minute = (seconds % 60) as f64;
    let float = match canonical(&field.to_ascii_lowercase()) {
        _ if exact.is_null() || infinity.is_some() => None,
        "second" => Some(of_minute + micros / 1_000_000.0),
        "milliseconds" => Some(of_minute * 1000.0 + micros / 1000.0),
        "julian" => {
            let days = (parts.days + EPOCH_JULIAN) as f64;
            Some(days + (seconds as f64 + micros / 1_000_000.0) / 86_400.0)
        }
        "epoch" => Some(epoch_in_floats(parts.epoch(time))),
        _ => None,
    };
    match (float, exact) {
        (Some(float), _) => Ok(Datum::Float8(float)),
        (None, Datum::Null) => Ok(Datum::Null),
        (None, exact) => coerce::cast(&exact, Scalar::Numeric, Scalar::Float8),
    }
}

/// Seconds since 1970; what is beyond 64 bits is a sum of floats.
fn epoch_in_floats(micros: i128) -> f64 {
    let to_2000 = UNIX_TO_EPOCH * DAY;
    let since_2000 = micros - i128::from(to_2000);
    match i64::try_from(micros) {
        Ok(micros) if since_2000 < i128::from(i64::MAX - to_2000) => micros as f64 / 1_000_000.0,
        _ => (since_2000 as f64 + to_2000 as f64) / 1_000_000.0,
    }
}

/// `date_trunc(field, timestamp)`
pub(super) fn truncate(field: &str, value: &Datum) -> Result<Datum> {
    let Datum::Timestamp(timestamp) = value else { return Ok(Datum::Null) };
    // Whatever the field.
    if infinity_of(*timestamp).is_some() {
        return Ok(value.clone());
    }
    let (truncated, _) = truncate_local(field, &Parts::of_timestamp(*timestamp))?;
    truncated.map(Datum::Timestamp).ok_or_else(timestamp_out_of_range)
}

/// The same of a finite timestamp with time zone: its local time, and the seconds by which that is east of UTC. Answers a local
/// time, `None` beyond 64 bits, and whether that may have another offset.
pub(super) fn truncate_zoned(field: &str, local: i64, offset: i64) -> Result<(Option<i64>, bool)> {
    truncate_local(field, &Parts::of_local(local, offset))
}

fn truncate_local(field: &str, parts: &Parts) -> Result<(Option<i64>, bool)> {
    let given = field.to_ascii_lowercase();
    let time = parts.time.unwrap_or_default();
    let to_multiple = |length: i64| Some((parts.days, time - time % length));
    let of = |year: i64, month: i64| Some((days_of_civil(year, month as u32, 1)?, 0));
    let field = canonical(&given);
    let truncated = match field {
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
        "century" => of(first_of_period(parts, 100), 1),
        "millennium" => of(first_of_period(parts, 1000), 1),
        _ => return Err(no_field(&given, parts.type_name())),
    };
    let keeps_offset =
        matches!(field, "microseconds" | "milliseconds" | "second" | "minute" | "hour");
    let local = truncated.and_then(|(days, time)| days.checked_mul(DAY)?.checked_add(time));
    Ok((local, !keeps_offset))
}

/// Whether timestamps have a field of that name, or can be truncated to it.
pub(super) fn has_field(field: &str, truncates: bool) -> bool {
    let parts = Parts::of_local(0, 0);
    match truncates {
        true => truncate_local(field, &parts).is_ok(),
        false => {
            matches!(finite_field(canonical(&field.to_ascii_lowercase()), &parts), Ok(Some(_)))
        }
    }
}

/// The first year, astronomical, of a year's century or millennium.
fn first_of_period(parts: &Parts, length: i64) -> i64 {
    if parts.year > 0 {
        parts.period(length) * length - (length - 1)
    } else {
        parts.period(length) * length + 1
    }
}
