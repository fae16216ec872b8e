//! Rows as text: what COPY reads and what literals hold.

use std::fmt::Display;

use plan::datetime::days_of_civil;
use plan::text::format_date;

/// Text of each column; none holds a quote, a backslash or a tab.
pub struct Row(Vec<String>);

impl Row {
    pub fn of(columns: &[&dyn Display]) -> Row {
        Row(columns.iter().map(ToString::to_string).collect())
    }

    /// The line that COPY reads, without its end.
    pub fn copy_line(&self) -> String {
        self.0.join("\t")
    }
}

/// An amount of money, in hundredths, as `numeric(15,2)` is written.
pub fn money(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100)
}

/// A day, as a number that can be reckoned with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(i32);

impl Day {
    pub fn of(year: i64, month: u32, day: u32) -> Day {
        let days = days_of_civil(year, month, day).expect("days are written as the calendar has");
        Day(i32::try_from(days).expect("years have four digits"))
    }

    pub fn plus(self, days: i64) -> Day {
        Day(self.0 + i32::try_from(days).expect("years have four digits"))
    }
}

impl Display for Day {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&format_date(self.0))
    }
}
