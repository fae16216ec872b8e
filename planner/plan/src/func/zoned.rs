//! What depends on a time zone: local times of moments and moments of local times, and what is made of them.
//!
//! The names and types are those of PostgreSQL's functions, operators and casts that are stable because they depend on
//! `TimeZone`; here the zone is a part of the function.

use super::{calendar, Comparison, Func};
use crate::datetime::{self, DAY, END_TIMESTAMP, MIN_TIMESTAMP};
use crate::error::DataError;
use crate::interval::{plus_days, plus_months, Interval};
use crate::types::{Scalar, Type};
use crate::value::Datum;
use crate::zone::Zone;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

type Result<T> = std::result::Result<T, DataError>;

/// A function in a time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Zoned {
    pub zone: Zone,
    pub work: ZonedWork,
}

/// What is computed in a time zone. Moments are of type `timestamptz`, local times of type `timestamp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ZonedWork {
    /// `moment::timestamp`, `moment AT TIME ZONE …`
    Local,
    /// `moment::date`
    Date,
    /// `local::timestamptz`, `local AT TIME ZONE …`
    Moment,
    /// `date::timestamptz`
    Midnight,
    /// `extract(field FROM moment)`
    Extract,
    /// `date_part(field, moment)`
    Part,
    /// `date_trunc(field, moment)`
    Truncate,
    /// `moment + interval`
    Plus(Interval),
    /// A comparison of a moment with a local time or a date, or the other way around
    Compare { comparison: Comparison, moment_is_left: bool },
}

impl ZonedWork {
    /// Type of the result.
    pub(super) fn result_type(self) -> Type {
        match self {
            ZonedWork::Local => Scalar::Timestamp,
            ZonedWork::Date => Scalar::Date,
            ZonedWork::Moment | ZonedWork::Midnight => Scalar::Timestamptz,
            ZonedWork::Truncate | ZonedWork::Plus(_) => Scalar::Timestamptz,
            ZonedWork::Extract => Scalar::Numeric,
            ZonedWork::Part => Scalar::Float8,
            ZonedWork::Compare { .. } => Scalar::Bool,
        }
        .into()
    }

    /// Whether some arguments may raise an error.
    pub(super) fn may_fail(self) -> bool {
        !matches!(self, ZonedWork::Date | ZonedWork::Compare { .. })
    }
}

/// The operator of that name in a time zone, for two operands.
pub fn operator(zone: Zone, name: &str, args: &[Type]) -> Option<(Func, Type)> {
    use Scalar::{Date, Timestamp, Timestamptz};
    let comparison = super::lookup::comparison(name)?;
    let [Type::Scalar(left), Type::Scalar(right)] = *args else { return None };
    let moment_is_left = match (left, right) {
        (Timestamptz, Date | Timestamp) => true,
        (Date | Timestamp, Timestamptz) => false,
        _ => return None,
    };
    let work = ZonedWork::Compare { comparison, moment_is_left };
    Some((Func::Zoned(Zoned { zone, work }), work.result_type()))
}

/// The cast between these types in a time zone.
pub fn cast(zone: Zone, from: Type, to: Type) -> Option<Func> {
    use Scalar::{Date, Timestamp, Timestamptz};
    let work = match (from.scalar()?, to.scalar()?) {
        (Timestamptz, Timestamp) => ZonedWork::Local,
        (Timestamptz, Date) => ZonedWork::Date,
        (Timestamp, Timestamptz) => ZonedWork::Moment,
        (Date, Timestamptz) => ZonedWork::Midnight,
        _ => return None,
    };
    Some(Func::Zoned(Zoned { zone, work }))
}

/// The function of that name in a time zone, casts that are called as functions included.
pub fn function(zone: Zone, name: &str, args: &[Type]) -> Option<Func> {
    const TEXT: Type = Type::Scalar(Scalar::Text);
    const MOMENT: Type = Type::Scalar(Scalar::Timestamptz);
    let work = match (name, args) {
        ("extract", [TEXT, MOMENT]) => ZonedWork::Extract,
        ("date_part", [TEXT, MOMENT]) => ZonedWork::Part,
        ("date_trunc", [TEXT, MOMENT]) => ZonedWork::Truncate,
        ("date", [from]) => return cast(zone, *from, Scalar::Date.into()),
        ("timestamp", [from]) => return cast(zone, *from, Scalar::Timestamp.into()),
        ("timestamptz", [from]) => return cast(zone, *from, Scalar::Timestamptz.into()),
        _ => return None,
    };
    Some(Func::Zoned(Zoned { zone, work }))
}

/// `arg AT TIME ZONE zone`
pub fn at_time_zone(zone: Zone, arg: Type) -> Option<Func> {
    match arg.scalar()? {
        Scalar::Timestamptz => cast(zone, arg, Scalar::Timestamp.into()),
        Scalar::Timestamp => cast(zone, arg, Scalar::Timestamptz.into()),
        _ => None,
    }
}

/// A date or timestamp plus an interval: the functions to apply, first to last, and the type of the result. Those with time
/// zone need a zone.
pub fn plus(zone: Option<Zone>, to: Type, interval: Interval) -> Option<(Vec<Func>, Type)> {
    let plus = Func::PlusInterval(interval);
    match to.scalar()? {
        Scalar::Date => {
            let midnight = Func::Cast(Scalar::Date, Scalar::Timestamp);
            Some((vec![midnight, plus], Scalar::Timestamp.into()))
        }
        Scalar::Timestamp => Some((vec![plus], to)),
        Scalar::Timestamptz => {
            let work = ZonedWork::Plus(interval);
            Some((vec![Func::Zoned(Zoned { zone: zone?, work })], to))
        }
        _ => None,
    }
}

/// Whether `extract` and `date_part`, or `date_trunc`, of a timestamp with time zone know a field by that name.
pub fn has_field(function: &str, field: &str) -> bool {
    calendar::has_field(field, function == "date_trunc")
}

/// A timestamp within its range, or infinite.
fn checked(timestamp: i64) -> Result<i64> {
    match timestamp {
        i64::MIN | i64::MAX => Ok(timestamp),
        _ => datetime::checked_timestamp(Some(timestamp)),
    }
}

/// `timestamp + interval`
pub(super) fn plus_interval(local: i64, interval: Interval) -> Result<i64> {
    plus_in(local, interval, &|at| at, &|at| at)
}

/// Adds months, then days, to local times, then microseconds to the moment.
fn plus_in(
    at: i64,
    interval: Interval,
    local: &dyn Fn(i64) -> i64,
    moment: &dyn Fn(i64) -> i64,
) -> Result<i64> {
    if at == i64::MIN || at == i64::MAX {
        return Ok(at);
    }
    let Interval { months, days, micros } = interval;
    let mut at = at;
    if months != 0 {
        let moved = plus_months(local(at), months).map(moment);
        at = datetime::checked_timestamp(moved)?;
    }
    if days != 0 {
        let moved = plus_days(local(at), days).map(moment);
        at = datetime::checked_timestamp(moved)?;
    }
    datetime::checked_timestamp(at.checked_add(micros))
}

impl Zoned {
    /// The value for arguments that are not NULL; `None` if they are not those of the function.
    pub(super) fn call(self, args: &[&Datum]) -> Option<Result<Datum>> {
        let zone = self.zone;
        let result = match (self.work, args) {
            (ZonedWork::Local, [Datum::Timestamp(at)]) => {
                checked(zone.local(*at)).map(Datum::Timestamp)
            }
            (ZonedWork::Date, [Datum::Timestamp(at)]) => {
                Ok(Datum::Date(datetime::date_of_timestamp(zone.local(*at))))
            }
            (ZonedWork::Moment, [Datum::Timestamp(local)]) => {
                checked(zone.moment(*local)).map(Datum::Timestamp)
            }
            (ZonedWork::Midnight, [Datum::Date(date)]) => {
                self.midnight(*date).map(Datum::Timestamp)
            }
            (ZonedWork::Extract, [field, Datum::Timestamp(at)]) => {
                calendar::extract_local(field.as_str()?, zone.local(*at), self.seconds(*at))
            }
            (ZonedWork::Part, [field, Datum::Timestamp(at)]) => {
                calendar::part_local(field.as_str()?, zone.local(*at), self.seconds(*at))
            }
            (ZonedWork::Truncate, [field, Datum::Timestamp(at)]) => {
                self.truncate(field.as_str()?, *at).map(Datum::Timestamp)
            }
            (ZonedWork::Plus(interval), [Datum::Timestamp(at)]) => {
                plus_in(*at, interval, &|at| zone.local(at), &|local| zone.moment(local))
                    .map(Datum::Timestamp)
            }
            (ZonedWork::Compare { comparison, moment_is_left }, [left, right]) => {
                let (moment, local, order): (_, _, fn(Ordering) -> Ordering) = match moment_is_left
                {
                    true => (left, right, Ordering::reverse),
                    false => (right, left, |order| order),
                };
                let Datum::Timestamp(moment) = moment else { return None };
                let order = order(self.compare(local, *moment)?);
                Ok(Datum::Bool(comparison.holds(order)))
            }
            _ => return None,
        };
        Some(result)
    }

    fn seconds(self, moment: i64) -> i64 {
        self.zone.offset(moment) / 1_000_000
    }

    /// `date::timestamptz`
    fn midnight(self, date: i32) -> Result<i64> {
        let local = datetime::timestamp_of_date(date)?;
        checked(self.zone.moment(local)).map_err(|_| datetime::date_out_of_range_for_timestamp())
    }

    /// `date_trunc(field, moment)`
    fn truncate(self, field: &str, moment: i64) -> Result<i64> {
        if moment == i64::MIN || moment == i64::MAX {
            return Ok(moment);
        }
        let offset = self.zone.offset(moment);
        let local = moment.saturating_add(offset);
        let (truncated, may_move) = calendar::truncate_zoned(field, local, offset / 1_000_000)?;
        let truncated = truncated.ok_or_else(datetime::timestamp_out_of_range)?;
        datetime::checked_timestamp(match may_move {
            true => Some(self.zone.moment(truncated)),
            false => truncated.checked_sub(offset),
        })
    }

    /// Compares a date or a local time with a moment. Those of which the moment is beyond what moments can be are beyond all
    /// but the infinite ones.
    fn compare(self, local: &Datum, moment: i64) -> Option<Ordering> {
        let own = match local {
            Datum::Date(i32::MIN) => i64::MIN,
            Datum::Date(i32::MAX) => i64::MAX,
            // Days beyond those of timestamps are beyond their moments.
            Datum::Date(date) => match i64::from(*date).checked_mul(DAY) {
                Some(midnight) if midnight < END_TIMESTAMP => self.zone.moment(midnight),
                _ => END_TIMESTAMP,
            },
            Datum::Timestamp(local) => self.zone.moment(*local),
            _ => return None,
        };
        let own = match own {
            i64::MIN | i64::MAX => own,
            _ => own.clamp(MIN_TIMESTAMP - 1, END_TIMESTAMP),
        };
        Some(own.cmp(&moment))
    }
}
