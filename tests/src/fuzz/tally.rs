//! What became of the queries of a run.

use std::collections::BTreeMap;
use std::fmt;

#[derive(Default)]
pub struct Tally {
    pub made: usize,
    /// Views that were created.
    pub accepted: usize,
    /// By SQLSTATE and the first words of the message.
    refused: BTreeMap<String, usize>,
    pub comparisons: usize,
    pub equal_but_digits: usize,
    /// By the SQLSTATEs of view and query.
    both_fail: BTreeMap<String, usize>,
    skipped: BTreeMap<String, usize>,
    /// Comparisons in which one of the two came to an error that the other one did not come to.
    pub other_errors: usize,
    pub wrong: usize,
    pub crashes: usize,
}

/// As many words of a message as name the construct, but not its names.
const WORDS: usize = 7;

impl Tally {
    pub fn refuse(&mut self, state: &str, message: &str) {
        let words: Vec<&str> = message.split_whitespace().take(WORDS).collect();
        *self.refused.entry(format!("{state} {}", words.join(" "))).or_default() += 1;
    }

    pub fn fail_both(&mut self, of_view: &str, of_query: &str) {
        let states = match of_view == of_query {
            true => of_view.to_owned(),
            false => format!("{of_view}, the query {of_query}"),
        };
        *self.both_fail.entry(states).or_default() += 1;
    }

    pub fn skip(&mut self, reason: &str) {
        *self.skipped.entry(reason.to_owned()).or_default() += 1;
    }

    /// Percentage of the queries that are views, of those that PostgreSQL accepts.
    pub fn accepted_share(&self) -> usize {
        let invalid: usize = self
            .skipped
            .iter()
            .filter(|(reason, _)| reason.starts_with(INVALID))
            .map(|(_, count)| count)
            .sum();
        self.accepted * 100 / self.made.saturating_sub(invalid).max(1)
    }
}

/// The reason of queries that PostgreSQL does not accept either.
pub const INVALID: &str = "no valid query";

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(
            f,
            "fuzz: {} queries, {} accepted as views ({} % of the valid ones)",
            self.made,
            self.accepted,
            self.accepted_share()
        )?;
        let equal = self.comparisons;
        writeln!(f, "fuzz: {equal} times equal, {} but for digits", self.equal_but_digits)?;
        show(f, "both fail", &self.both_fail)?;
        show(f, "skipped", &self.skipped)?;
        show(f, "refused", &self.refused)?;
        write!(f, "fuzz: {} differences, {} crashes", self.wrong, self.crashes)
    }
}

/// The most frequent first.
fn show(f: &mut fmt::Formatter, title: &str, counts: &BTreeMap<String, usize>) -> fmt::Result {
    let mut lines: Vec<(&String, &usize)> = counts.iter().collect();
    lines.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    lines.iter().try_for_each(|(what, count)| writeln!(f, "fuzz: {title} {count:>5}  {what}"))
}
