//! One query of the corpus, and what is to come of it.

use std::fmt;

use super::refusals::Refused;

/// Where a query is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub file: String,
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// What becomes of a query as an incremental view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The view has the rows of its query.
    Rows,
    /// At some steps view and query both end with this SQLSTATE, at others the view has the rows of its query.
    Failure(String),
    /// As [`Expected::Rows`], but the view may end with this SQLSTATE where its query has rows: SQL does not say whether values
    /// are computed that a join drops.
    Eager(String),
    /// CREATE is refused, by the name of a construct in [`super::refusals::Refusals`] and with this error.
    Refusal { construct: String, error: Refused },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    pub place: Place,
    pub sql: String,
    pub expected: Expected,
    /// The first and the last version of PostgreSQL that knows the query.
    pub since: u32,
    pub until: u32,
    /// Settings of the view, as `SET` has them.
    pub settings: Vec<String>,
    /// No change of a table changes the result.
    pub is_unchanged: bool,
    /// The last digits of floats are open.
    pub is_rounded: bool,
}

impl Case {
    pub fn is_for(&self, major: u32) -> bool {
        (self.since..=self.until).contains(&major)
    }

    /// A script in the settings of the view.
    pub fn within_settings(&self, sql: &str) -> String {
        if self.settings.is_empty() {
            return sql.to_owned();
        }
        let settings = self.settings.iter().map(|setting| format!("SET LOCAL {setting}; "));
        format!("BEGIN; {}{sql}; COMMIT", settings.collect::<String>())
    }
}
