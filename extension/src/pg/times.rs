//! Times and spans of time as users read and write them.

use pgrx::pg_sys;
use std::ffi::{CStr, CString};
use std::time::Duration;

const MICROS_OF_DAY: i64 = 86_400_000_000;
const DAYS_OF_MONTH: i64 = 30;

/// Microseconds that an interval takes, with days of 24 hours and months of 30 days; as many as can be said if it takes more. What
/// is no interval raises an error.
pub fn micros_of(interval: &str) -> i64 {
    let text = CString::new(interval).unwrap_or_default();
    // SAFETY: the input function of the type takes a C string and answers with a value of the type.
    unsafe {
        let (function, none) = (pg_sys::Oid::from(pg_sys::F_INTERVAL_IN), pg_sys::InvalidOid);
        let value = pg_sys::OidInputFunctionCall(function, text.as_ptr().cast_mut(), none, -1);
        micros(*value.cast_mut_ptr::<pg_sys::Interval>())
    }
}

/// The same of a value of the type.
pub(super) fn micros(pg_sys::Interval { time, day, month }: pg_sys::Interval) -> i64 {
    micros_of_parts(month, day, time)
}

/// The same of its months, days and microseconds.
pub fn micros_of_parts(months: i32, days: i32, micros: i64) -> i64 {
    let days = i64::from(months) * DAYS_OF_MONTH + i64::from(days);
    days.saturating_mul(MICROS_OF_DAY).saturating_add(micros)
}

/// A time to wait; none if it is negative.
pub fn duration(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// A time in microseconds as the session writes it.
pub fn text(at: i64) -> String {
    // SAFETY: a C string in memory that the next call overwrites.
    unsafe { CStr::from_ptr(pg_sys::timestamptz_to_str(at)).to_string_lossy().into_owned() }
}
