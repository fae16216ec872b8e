//! Files of queries: each statement with the comments directly above it.
//!
//! A comment that begins with a small letter is a directive, any other one is for people. A directive that is misspelt is an
//! error, and so is one that no query follows.

use anyhow::{bail, ensure, Context, Result};

use super::case::{Case, Expected, Place};
use super::refusals::{Construct, Refusals, Refused};
use super::template::{expand, Loop};

/// The versions that are supported.
const FIRST: u32 = 15;
const LAST: u32 = u32::MAX;

/// Appends the queries of a file.
pub fn read(file: &str, text: &str, cases: &mut Vec<Case>, refusals: &mut Refusals) -> Result<()> {
    let mut reader = Reader {
        file,
        section: None,
        throughout: Vec::new(),
        comments: Comments::default(),
        sql: None,
    };
    for (number, line) in text.lines().enumerate() {
        let at = || format!("{file}:{}", number + 1);
        if let Some(query) = reader.line(number + 1, line).with_context(at)? {
            query.finish(&reader, cases, refusals).with_context(at)?;
        }
    }
    ensure!(reader.sql.is_none(), "{file}: the last query has no end");
    reader.paragraph_ends().with_context(|| file.to_owned())
}

struct Reader<'f> {
    file: &'f str,
    /// Where the reference has the constructs that are introduced from there on.
    section: Option<String>,
    /// Loops of all queries from there on that have their names.
    throughout: Vec<Loop>,
    comments: Comments,
    /// The query that has begun: its line and its text.
    sql: Option<(usize, String)>,
}

/// Directives, with what is behind the first word.
#[derive(Default)]
struct Comments(Vec<(String, String)>);

/// A query with its directives.
struct Query {
    line: usize,
    sql: String,
    comments: Comments,
}

impl Reader<'_> {
    fn line(&mut self, number: usize, line: &str) -> Result<Option<Query>> {
        let trimmed = line.trim();
        if self.sql.is_none() {
            if trimmed.is_empty() {
                self.paragraph_ends()?;
                return Ok(None);
            }
            if let Some(comment) = trimmed.strip_prefix("--") {
                self.comments.add(comment.trim())?;
                return Ok(None);
            }
        }
        let (_, sql) = self.sql.get_or_insert_with(|| (number, String::new()));
        if !sql.is_empty() {
            sql.push('\n');
        }
        sql.push_str(line);
        if !trimmed.ends_with(';') {
            return Ok(None);
        }
        let (line, sql) = self.sql.take().context("a query has begun")?;
        let sql = sql.trim().trim_end_matches(';').to_owned();
        Ok(Some(Query { line, sql, comments: std::mem::take(&mut self.comments) }))
    }

    /// An empty line, or the end: there may be what holds from here on, but nothing else without a query.
    fn paragraph_ends(&mut self) -> Result<()> {
        for (word, text) in std::mem::take(&mut self.comments).0 {
            match word.as_str() {
                "throughout" => self.throughout.push(Loop::parse(&text)?),
                "section" => self.section = Some(text),
                _ => bail!("no query follows the directive \"{word}\""),
            }
        }
        Ok(())
    }
}

impl Comments {
    const KNOWN: [&'static str; 15] = [
        "for",
        "throughout",
        "section",
        "since",
        "until",
        "set",
        "fails",
        "eager",
        "unchanged",
        "rounded",
        "refused",
        "message",
        "state",
        "why",
        "instead",
    ];

    fn add(&mut self, comment: &str) -> Result<()> {
        if comment.starts_with('|') {
            let (_, text) = self.0.last_mut().context("a line of a loop without its beginning")?;
            text.push_str(&format!(" {comment}"));
            return Ok(());
        }
        if !comment.starts_with(|c: char| c.is_ascii_lowercase()) {
            return Ok(());
        }
        let word: String = comment.chars().take_while(char::is_ascii_lowercase).collect();
        ensure!(Self::KNOWN.contains(&word.as_str()), "there is no directive \"{word}\"");
        let text = comment[word.len()..].trim_start_matches(':').trim().to_owned();
        self.0.push((word, text));
        Ok(())
    }

    fn all<'c>(&'c self, word: &'c str) -> impl Iterator<Item = &'c str> {
        self.0.iter().filter(move |(found, _)| found == word).map(|(_, text)| text.as_str())
    }

    fn one<'c>(&'c self, word: &'c str) -> Option<&'c str> {
        self.all(word).next()
    }

    fn expected(&self, section: Option<&str>, refusals: &mut Refusals) -> Result<Expected> {
        let found = ["fails", "eager", "refused"].map(|word| self.one(word).map(str::to_owned));
        let (message, state) = (self.one("message"), self.one("state"));
        ensure!(
            message.is_some() == found[2].is_some() && (state.is_none() || message.is_some()),
            "a query that is refused has a message"
        );
        Ok(match found {
            [None, None, None] => Expected::Rows,
            [Some(state), None, None] => Expected::Failure(state),
            [None, Some(state), None] => Expected::Eager(state),
            [None, None, Some(construct)] => {
                self.introduce(&construct, section, refusals)?;
                let error = Refused::new(state, message.unwrap_or_default());
                Expected::Refusal { construct, error }
            }
            _ => bail!("a query fails, or its view is eager, or is refused"),
        })
    }

    fn introduce(
        &self,
        construct: &str,
        section: Option<&str>,
        refusals: &mut Refusals,
    ) -> Result<()> {
        match (self.one("why"), self.one("instead")) {
            (Some(why), Some(instead)) => refusals.introduce(Construct {
                section: section.context("there is no section above")?.to_owned(),
                name: construct.to_owned(),
                why: why.to_owned(),
                instead: instead.to_owned(),
            }),
            (None, None) => Ok(()),
            _ => bail!("\"{construct}\" is introduced by a why and an instead"),
        }
    }
}

impl Query {
    fn finish(self, reader: &Reader, cases: &mut Vec<Case>, refusals: &mut Refusals) -> Result<()> {
        let Query { line, sql, comments } = self;
        for word in ["throughout", "section"] {
            ensure!(comments.one(word).is_none(), "an empty line follows the directive \"{word}\"");
        }
        let message = comments.one("message").unwrap_or_default();
        let number = |word| comments.one(word).map(str::parse).transpose();
        let mut loops: Vec<Loop> =
            reader.throughout.iter().filter(|found| found.is_used_in(&sql)).cloned().collect();
        for text in comments.all("for") {
            let found = Loop::parse(text)?;
            let mut others = comments.all("for").filter(|other| *other != text);
            let is_used = found.is_used_in(&sql) || others.any(|other| found.is_used_in(other));
            ensure!(is_used, "the query has no name of the loop {text}");
            loops.push(found);
        }
        let case = Case {
            place: Place { file: reader.file.to_owned(), line },
            sql: String::new(),
            expected: comments.expected(reader.section.as_deref(), refusals)?,
            since: number("since")?.unwrap_or(FIRST),
            until: number("until")?.unwrap_or(LAST),
            settings: comments.all("set").map(str::to_owned).collect(),
            is_unchanged: comments.one("unchanged").is_some(),
            is_rounded: comments.one("rounded").is_some(),
        };
        for [sql, of_query] in expand([sql, message.to_owned()], &loops) {
            let mut case = Case { sql, ..case.clone() };
            if let Expected::Refusal { construct, error } = &mut case.expected {
                error.message = of_query;
                refusals.add_example(construct, message, error);
            }
            cases.push(case);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases(text: &str) -> Result<Vec<Case>> {
        let (mut cases, mut refusals) = (Vec::new(), Refusals::default());
        read("f.sql", text, &mut cases, &mut refusals)?;
        refusals.check(&cases)?;
        Ok(cases)
    }

    #[test]
    fn queries_have_the_directives_above_them() {
        let text = "-- Text.\n\n-- since 17\n-- for {x}: a\n--   | b\nSELECT {x}\n  FROM t;\n\nSELECT 1;\n";
        let found = cases(text).unwrap();
        let sql: Vec<&str> = found.iter().map(|case| case.sql.as_str()).collect();
        assert_eq!(sql, ["SELECT a\n  FROM t", "SELECT b\n  FROM t", "SELECT 1"]);
        assert_eq!(found[0].place.to_string(), "f.sql:6");
        assert_eq!(
            found.iter().map(|case| case.is_for(16)).collect::<Vec<_>>(),
            [false, false, true]
        );
    }

    #[test]
    fn loops_throughout_hold_where_their_names_are() {
        let text = "-- throughout {t}: a | b\n\nTABLE {t};\nTABLE c;\n";
        assert_eq!(cases(text).unwrap().len(), 3);
    }

    #[test]
    fn a_refusal_has_a_name_a_reason_and_a_message() {
        let first = "-- section: S\n\n-- refused: x\n-- why: y\n-- instead: z\n-- message: {f} of x\n-- for {f}: a\nSELECT {f};\n";
        let error = |state| Refused::new(state, "a of x");
        let expected = |state| Expected::Refusal { construct: "x".into(), error: error(state) };
        assert_eq!(cases(first).unwrap()[0].expected, expected(None));
        let with_state = first.replace("-- message", "-- state: 54001\n-- message");
        assert_eq!(cases(&with_state).unwrap()[0].expected, expected(Some("54001")));
        assert!(cases(&first.replace("-- section: S\n", "")).is_err());
        let again = "-- refused: x\n-- message: m\nSELECT 2;\n";
        assert_eq!(cases(&format!("{first}{again}")).unwrap().len(), 2);
        assert!(cases(again).is_err());
        assert!(cases("-- refused: x\nSELECT 1;\n").is_err());
    }

    #[test]
    fn what_is_misspelt_or_left_over_is_an_error() {
        assert!(cases("-- sinse 17\nSELECT 1;\n").is_err());
        assert!(cases("-- since 17\n\nSELECT 1;\n").is_err());
        assert!(cases("-- section: S\nSELECT 1;\n").is_err());
        assert!(cases("-- state: 54001\nSELECT 1;\n").is_err());
        assert!(cases("-- for {y}: a\nSELECT {x};\n").is_err());
        assert!(cases("SELECT 1\n").is_err());
    }
}
