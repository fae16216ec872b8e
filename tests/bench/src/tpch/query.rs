//! The 22 queries: their texts, with the specification's validation parameters, are in `queries/`.
//!
//! A file opens with the query's title and, as `-- churn TABLE WHERE CONDITION`, the rows whose change
//! is likely to change the result, on as many lines as it takes. Where a LIMIT cuts, ties are broken by all
//! output columns.

use std::fs;

use anyhow::{ensure, Context, Result};
use harness::dice::Dice;
use harness::installation::Build;

const FOLDER: &str = "tests/bench/src/tpch/queries";
pub const COUNT: u8 = 22;

pub struct Query {
    pub number: u8,
    pub title: String,
    pub focuses: Vec<Focus>,
    pub sql: String,
}

/// Rows of a table that matter to a query.
pub struct Focus {
    pub table: String,
    pub condition: String,
}

impl Query {
    pub fn read(build: &Build, number: u8) -> Result<Query> {
        let path = build.project.join(FOLDER).join(format!("q{number:02}.sql"));
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Query::parse(number, &text).with_context(|| path.display().to_string())
    }

    fn parse(number: u8, text: &str) -> Result<Query> {
        let (header, sql): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.starts_with("--"));
        let header: Vec<&str> = header.iter().map(|line| line[2..].trim()).collect();
        let header = header.join(" ");
        let mut parts = header.split(" churn ");
        let title = parts.next().unwrap_or_default().to_owned();
        let focuses = parts.map(Focus::parse).collect::<Result<Vec<Focus>>>()?;
        ensure!(!focuses.is_empty(), "no rows are named for the churn");
        Ok(Query { number, title, focuses, sql: sql.join("\n") })
    }

    /// The same with the tables of each FROM in another order.
    pub fn shuffled(self, dice: &mut Dice) -> Query {
        let lines: Vec<String> = self.sql.lines().map(|line| shuffle_tables(line, dice)).collect();
        Query { sql: lines.join("\n"), ..self }
    }

    /// Name of the view, of its database and of the measurement.
    pub fn name(&self) -> String {
        format!("q{:02}", self.number)
    }
}

/// A line that has all of FROM with nothing but tables; others stay as they are.
fn shuffle_tables(line: &str, dice: &mut Dice) -> String {
    let Some((before, tables)) = line.split_once("FROM ") else { return line.to_owned() };
    let mut tables: Vec<&str> = tables.split(", ").collect();
    let is_table = |text: &&str| text.chars().all(|c| c.is_alphanumeric() || "_ ".contains(c));
    if !before.trim().is_empty() || !tables.iter().all(is_table) {
        return line.to_owned();
    }
    for last in (1..tables.len()).rev() {
        tables.swap(last, dice.index(last + 1));
    }
    format!("{before}FROM {}", tables.join(", "))
}

impl Focus {
    fn parse(text: &str) -> Result<Focus> {
        let parts = text.split_once(" WHERE ");
        let (table, condition) = parts.with_context(|| format!("not understood: {text}"))?;
        Ok(Focus { table: table.to_owned(), condition: condition.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_and_text_are_told_apart() {
        let query =
            Query::parse(3, "-- Title\n-- churn t WHERE a = 1\n--   AND b\nSELECT 1\nFROM t")
                .unwrap();
        assert_eq!((query.title.as_str(), query.sql.as_str()), ("Title", "SELECT 1\nFROM t"));
        assert_eq!(query.focuses[0].condition, "a = 1 AND b");
        assert!(Query::parse(3, "-- Title\nSELECT 1").is_err());
    }

    #[test]
    fn tables_of_from_are_shuffled_and_nothing_else() {
        let mut dice = Dice::new(1);
        for line in
            ["FROM (SELECT a, b", "WHERE a.b IN (SELECT 1, 2", "FROM t", "SELECT x FROM t, u"]
        {
            assert_eq!(shuffle_tables(line, &mut dice), line);
        }
        let mut found: Vec<String> =
            (0..50).map(|_| shuffle_tables("  FROM t, u x, v", &mut dice)).collect();
        found.sort();
        found.dedup();
        assert_eq!(found.len(), 6);
        assert!(found.contains(&"  FROM v, u x, t".to_owned()));
    }
}
