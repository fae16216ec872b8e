//! `INCREMENTAL` as a second spelling of `MATERIALIZED`: installation, and telling the two apart.

use crate::pg::sqlstate::SqlState;
use crate::settings;
use pgrx::PgLogLevel;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether statements can be written with it.
static HAS_THE_WORD: AtomicBool = AtomicBool::new(false);

/// Whether statements can be written with INCREMENTAL.
pub fn has_the_word() -> bool {
    HAS_THE_WORD.load(Ordering::Relaxed)
}

/// Teaches the server's scanner the word, unless `eddy.keyword` is off. If that is impossible the server starts all the same and
/// `CREATE MATERIALIZED VIEW … WITH (incremental)` works.
pub fn install() {
    if !settings::keyword() {
        return;
    }
    let installed = crate::hooks::keywords::install();
    HAS_THE_WORD.store(installed.is_ok(), Ordering::Relaxed);
    if let Err(reason) = installed {
        pgrx::pg_sys::panic::ErrorReport::new(
            SqlState::WARNING.for_pgrx(),
            format!("CREATE INCREMENTAL VIEW is not available: {reason}"),
            "pg_eddy",
        )
        .set_hint("Use CREATE MATERIALIZED VIEW ... WITH (incremental) instead.")
        .report(PgLogLevel::WARNING);
    }
}

/// Whether the statement at `start` of a source text was written with INCREMENTAL where the grammar
/// has MATERIALIZED.
pub fn written_incremental(source: &[u8], start: usize) -> bool {
    let mut words = Words { text: source, at: start.min(source.len()) };
    let mut word = words.next_word();
    if word.eq_ignore_ascii_case(b"explain") {
        word = words.skip_explain_options();
    }
    if word.eq_ignore_ascii_case(b"comment") {
        words.next_word(); // ON
    }
    let mut word = words.next_word();
    if word.eq_ignore_ascii_case(b"or") {
        words.next_word(); // REPLACE
        word = words.next_word();
    }
    if word.eq_ignore_ascii_case(b"unlogged") {
        word = words.next_word();
    }
    word.eq_ignore_ascii_case(b"incremental")
}

/// Words of SQL text outside of comments.
struct Words<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Words<'a> {
    fn rest(&self) -> &'a [u8] {
        &self.text[self.at..]
    }

    /// The next word, or an empty one before anything else.
    fn next_word(&mut self) -> &'a [u8] {
        self.skip_blanks();
        let rest = self.rest();
        let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        let len = rest.iter().position(|b| !is_word(b)).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    /// Skips `(…)`, ANALYZE and VERBOSE; returns the word behind them.
    fn skip_explain_options(&mut self) -> &'a [u8] {
        loop {
            let word = self.next_word();
            if word.is_empty() && self.rest().starts_with(b"(") {
                self.skip_parentheses();
                continue;
            }
            let is_option = [&b"analyze"[..], b"analyse", b"verbose"]
                .iter()
                .any(|o| word.eq_ignore_ascii_case(o));
            if !is_option {
                return word;
            }
        }
    }

    /// Skips a parenthesis whose contents hold no parentheses but in comments (EXPLAIN's options).
    fn skip_parentheses(&mut self) {
        while self.at < self.text.len() && self.text[self.at] != b')' {
            self.at += 1;
            self.skip_blanks();
        }
        self.at = (self.at + 1).min(self.text.len());
    }

    /// Skips white space, line comments and nested block comments.
    fn skip_blanks(&mut self) {
        loop {
            let before = self.at;
            while self.rest().first().is_some_and(|b| b.is_ascii_whitespace() || *b == 0x0b) {
                self.at += 1;
            }
            if self.rest().starts_with(b"--") {
                let end = self.rest().iter().position(|b| matches!(b, b'\n' | b'\r'));
                self.at += end.unwrap_or(self.rest().len());
            } else if self.rest().starts_with(b"/*") {
                self.skip_block_comment();
            }
            if self.at == before {
                return;
            }
        }
    }

    fn skip_block_comment(&mut self) {
        let mut depth = 0;
        while self.at < self.text.len() {
            if self.rest().starts_with(b"/*") {
                depth += 1;
                self.at += 2;
            } else if self.rest().starts_with(b"*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    return;
                }
            } else {
                self.at += 1;
            }
        }
    }
}
