//! Intervals that a query names: months, days and microseconds, which are added one after the other.

use crate::datetime::{civil, days_of_civil, DAY};
use serde::{Deserialize, Serialize};
use std::fmt;

/// An interval, within limits that leave no sum with a timestamp beyond 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Interval {
    pub(crate) months: i32,
    pub(crate) days: i32,
    pub(crate) micros: i64,
}

const MAX_MONTHS: u32 = 1_000_000_000;
const MAX_DAYS: u32 = 2_000_000_000;
const MAX_MICROS: u64 = 8_000_000_000_000_000_000;

impl Interval {
    /// `None` beyond the limits, of which infinite ones are.
    pub fn new(months: i32, days: i32, micros: i64) -> Option<Interval> {
        let is_within = months.unsigned_abs() <= MAX_MONTHS
            && days.unsigned_abs() <= MAX_DAYS
            && micros.unsigned_abs() <= MAX_MICROS;
        is_within.then_some(Interval { months, days, micros })
    }

    /// What subtracting the other adds.
    pub fn negated(self) -> Interval {
        Interval { months: -self.months, days: -self.days, micros: -self.micros }
    }

    /// Reads PostgreSQL's own form: `1 year 2 mons 3 days 04:05:06.7`
    pub fn parse(text: &str) -> Option<Interval> {
        let (mut months, mut days, mut micros) = (0_i32, 0_i32, 0_i64);
        let mut words = text.split_ascii_whitespace();
        while let Some(word) = words.next() {
            if word.contains(':') {
                micros = micros.checked_add(parse_time(word)?)?;
                continue;
            }
            let number: i32 = word.parse().ok()?;
            match words.next()? {
                "year" | "years" => months = months.checked_add(number.checked_mul(12)?)?,
                "mon" | "mons" => months = months.checked_add(number)?,
                "day" | "days" => days = days.checked_add(number)?,
                _ => return None,
            }
        }
        Interval::new(months, days, micros)
    }
}

/// `[+-]HH:MM:SS[.ffffff]` in microseconds.
fn parse_time(text: &str) -> Option<i64> {
    let is_negative = text.starts_with('-');
    let mut parts = text.trim_start_matches(['+', '-']).split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let number = |text: &str| text.parse::<u32>().ok().map(i64::from);
    let fraction = number(&format!("{fraction:0<6}")).filter(|_| fraction.len() <= 6)?;
    let time = (number(hours)? * 60 + number(minutes)?) * 60 + number(seconds)?;
    let micros = time.checked_mul(1_000_000)?.checked_add(fraction)?;
    parts.next().is_none().then_some(if is_negative { -micros } else { micros })
}

/// PostgreSQL's own form.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(self.months / 12, "year"), (self.months % 12, "mon"), (self.days, "day")];
        let mut is_before = false;
        let mut parts = Vec::new();
        for (number, unit) in units.into_iter().filter(|(number, _)| *number != 0) {
            let sign = if is_before && number > 0 { "+" } else { "" };
            let plural = if number == 1 { "" } else { "s" };
            parts.push(format!("{sign}{number} {unit}{plural}"));
            is_before = number < 0;
        }
        if self.micros != 0 || parts.is_empty() {
            let sign = match self.micros {
                ..0 => "-",
                _ if is_before => "+",
                _ => "",
            };
            let (seconds, fraction) =
                (self.micros.unsigned_abs() / 1_000_000, self.micros.unsigned_abs() % 1_000_000);
            let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
            let time = format!("{sign}{hours:02}:{minutes:02}:{:02}", seconds % 60);
            let fraction = format!(".{fraction:06}");
            parts.push(time + fraction.trim_end_matches('0').trim_end_matches('.'));
        }
        f.write_str(&parts.join(" "))
    }
}

/// So many months later; the last day of a month that is too short. `None` beyond 64 bits.
pub(crate) fn plus_months(local: i64, months: i32) -> Option<i64> {
    let (year, month, day) = civil(local.div_euclid(DAY));
    let month = year * 12 + i64::from(month) - 1 + i64::from(months);
    let first_of =
        |month: i64| days_of_civil(month.div_euclid(12), month.rem_euclid(12) as u32 + 1, 1);
    let (first, next) = (first_of(month)?, first_of(month + 1)?);
    let days = (first + i64::from(day) - 1).min(next - 1);
    days.checked_mul(DAY)?.checked_add(local.rem_euclid(DAY))
}

/// So many days later. `None` beyond 64 bits.
pub(crate) fn plus_days(local: i64, days: i32) -> Option<i64> {
    local.checked_add(i64::from(days).checked_mul(DAY)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_as_it_is_written() {
        for text in [
            "00:00:00",
            "1 year",
            "-1 years",
            "1 year 2 mons 3 days 04:05:06.789",
            "-1 years -2 mons +3 days -04:05:06",
            "-1 days +02:03:00",
            "1 day -00:00:00.000001",
            "1000000:00:00",
            "1 mon",
        ] {
            assert_eq!(Interval::parse(text).unwrap().to_string(), text);
        }
        for text in ["infinity", "1 week", "1", "1:2", "2147483647 mons", "1 day 1:2:3:4"] {
            assert_eq!(Interval::parse(text), None, "{text}");
        }
    }

    #[test]
    fn months_end_where_they_end() {
        let at = |year, month, day| days_of_civil(year, month, day).unwrap() * DAY + 5;
        assert_eq!(plus_months(at(2024, 1, 31), 1), Some(at(2024, 2, 29)));
        assert_eq!(plus_months(at(2024, 1, 31), -2), Some(at(2023, 11, 30)));
        assert_eq!(plus_months(at(0, 12, 31), -12), Some(at(-1, 12, 31)));
        assert_eq!(plus_months(at(2024, 2, 29), 12), Some(at(2025, 2, 28)));
        assert_eq!(plus_months(at(2024, 1, 1), 1_000_000_000), None);
    }
}
