//! How many queries of each file were accepted and refused, and what is wrong.

use std::collections::BTreeMap;
use std::fmt;

use super::case::Case;
use super::session::Outcome;

/// So many are listed of queries that are not wrong.
const LISTED: usize = 100;

#[derive(Default)]
pub struct Tally {
    files: BTreeMap<String, Numbers>,
    /// Queries that have the same rows at all steps, or none at any.
    pub idle: Vec<String>,
    /// Queries of which rows were equal to those of the view but written differently.
    pub other_texts: Vec<String>,
}

#[derive(Clone, Copy, Default)]
pub struct Numbers {
    pub accepted: usize,
    pub refused: usize,
    pub wrong: usize,
}

impl Numbers {
    pub fn all(self) -> usize {
        self.accepted + self.refused + self.wrong
    }
}

impl Tally {
    pub fn count(&mut self, case: &Case, outcome: &Outcome) {
        let numbers = self.files.entry(case.place.file.clone()).or_default();
        let listed = || format!("{}: {}", case.place, case.sql);
        match outcome {
            Outcome::Accepted { is_idle, has_other_texts } => {
                numbers.accepted += 1;
                self.idle.extend(is_idle.then(listed));
                self.other_texts.extend(has_other_texts.then(listed));
            }
            Outcome::Refused => numbers.refused += 1,
            Outcome::Wrong(_) => numbers.wrong += 1,
        }
    }

    pub fn total(&self) -> Numbers {
        let add = |sum: Numbers, one: &Numbers| Numbers {
            accepted: sum.accepted + one.accepted,
            refused: sum.refused + one.refused,
            wrong: sum.wrong + one.wrong,
        };
        self.files.values().fold(Numbers::default(), add)
    }
}

/// Queries, a line each.
pub fn list(queries: &[String]) -> String {
    let mut text: String =
        queries.iter().take(LISTED).map(|query| format!("\n    {query}")).collect();
    if queries.len() > LISTED {
        text.push_str(&format!("\n    {} more", queries.len() - LISTED));
    }
    text
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let line = |f: &mut fmt::Formatter, name: &str, numbers: Numbers| {
            let Numbers { accepted, refused, wrong } = numbers;
            writeln!(f, "{name:<18} {accepted:>5} accepted {refused:>4} refused {wrong:>4} wrong")
        };
        for (file, numbers) in &self.files {
            line(f, file, *numbers)?;
        }
        line(f, "all", self.total())?;
        write!(f, "equal but written differently: {}", self.other_texts.len())
    }
}
