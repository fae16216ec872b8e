//! No text makes the planner panic: the queries of the goldens, mutated, are planned or refused.
//!
//! Each run lasts `EDDY_FUZZ_SECONDS` (20 if not set) and takes its seed from `PLANNER_SEED`, or always the same one;
//! a failure prints the text. A stack that overflows ends the process: the text is then the last one in the file that
//! is named at the start of the output.

// Random values are for other tests.
#[allow(dead_code)]
#[path = "../plan/tests/common/mod.rs"]
mod common;

use common::Random;
use plan::explain;
use plan::numeric::Numeric;
use plan::types::TableName;
use planner::catalog::Statistics;
use planner::plan_view;
use planner::sql::DdlCatalog;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a test goes on.
fn time() -> Duration {
    let seconds = std::env::var("EDDY_FUZZ_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(20))
}

/// The queries of the goldens.
fn corpus() -> Vec<String> {
    let mut queries = Vec::new();
    for entry in std::fs::read_dir("tests/goldens").expect("the goldens") {
        let text = std::fs::read_to_string(entry.expect("a file").path()).expect("a golden");
        let query = |case: &str| {
            let (_, rest) = case.split_once('\n')?;
            Some(rest.split_once("----\n")?.0.to_owned())
        };
        queries.extend(text.split("==== ").filter_map(query));
    }
    queries.sort();
    queries
}

/// Words, quoted names and strings, numbers, single marks, and the space between them.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut quote = None;
    for c in text.chars() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let goes_on = match (quote, tokens.last()) {
            (Some(_), Some(_)) => true,
            (None, Some(last)) => is_word(c) && last.chars().all(is_word),
            (_, None) => false,
        };
        match tokens.last_mut() {
            Some(last) if goes_on => last.push(c),
            _ => tokens.push(c.into()),
        }
        quote = match quote {
            Some(open) if open == c => None,
            None if c == '"' || c == '\'' => Some(c),
            quote => quote,
        };
    }
    tokens
}

/// What is at limits, in numbers, names and quotes.
const ODD: [&str; 26] = [
    "0",
    "-1",
    "2147483648",
    "9223372036854775807",
    "99999999999999999999999999",
    "1e400",
    "0.",
    "''",
    "'\\'",
    "'",
    "\"",
    "$1",
    "NULL",
    "(",
    ")",
    ",",
    "ß",
    "\0",
    "\u{fe0f}",
    "::integer",
    "::\"char\"",
    "ARRAY[]",
    "DISTINCT",
    "LATERAL",
    "OVER ()",
    "WITH RECURSIVE",
];

fn mutate(random: &mut Random, tokens: &mut Vec<String>, other: &[String]) {
    if tokens.is_empty() {
        tokens.push(random.pick(&ODD).to_owned());
    }
    let length = tokens.len() as u64;
    let at = random.below(length) as usize;
    let end = (at + 1 + random.below(8) as usize).min(tokens.len());
    // Most mutants should mean something: a name for a name, a number for a number.
    let like: Vec<&String> = other
        .iter()
        .filter(|token| token.chars().next().map(kind) == tokens[at].chars().next().map(kind))
        .collect();
    match random.below(18) {
        0 => drop(tokens.drain(at..end)),
        1 => {
            let copy = tokens[at..end].to_vec();
            let to = random.below(length) as usize;
            tokens.splice(to..to, copy);
        }
        2 => tokens.swap(at, random.below(length) as usize),
        3 | 4 if !other.is_empty() => tokens[at] = random.pick(other),
        5 if !other.is_empty() => {
            let from = random.below(other.len() as u64) as usize;
            let until = (from + 1 + random.below(12) as usize).min(other.len());
            tokens.splice(at..at, other[from..until].to_vec());
        }
        6 => tokens[at] = random.pick(&ODD).to_owned(),
        7 => {
            let mut chars: Vec<char> = tokens[at].chars().collect();
            let changed = random.below(chars.len() as u64) as usize;
            chars[changed] = char::from_u32(random.below(0x300) as u32).unwrap_or('?');
            tokens[at] = chars.into_iter().collect();
        }
        8 => tokens.truncate(at),
        _ if like.is_empty() => {}
        _ => tokens[at] = random.pick(&like).clone(),
    }
}

/// What a token that begins so is, roughly.
fn kind(first: char) -> u8 {
    match first {
        '"' => 0,
        '\'' => 1,
        _ if first.is_ascii_digit() => 2,
        _ if first.is_alphabetic() => 3,
        _ if first.is_whitespace() => 4,
        _ => 5,
    }
}

fn mutated(random: &mut Random, corpus: &[Vec<String>]) -> String {
    let mut tokens = random.pick(corpus);
    let other = random.pick(corpus);
    for _ in 0..=random.below(3) {
        mutate(random, &mut tokens, &other);
    }
    tokens.concat()
}

/// Plans on a stack as large as half of a session's.
fn on_small_stack(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(4 << 20);
        let result = thread.spawn_scoped(scope, test).expect("a thread").join();
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn no_text_makes_the_planner_panic() {
    let mut catalog = DdlCatalog::parse(include_str!("tables.sql")).expect("the tables");
    // So that joins are ordered, too.
    for (table, rows) in [("edges", 1e6), ("nodes", 1e3), ("accounts", 10.0)] {
        let name = TableName { schema: None, name: table.to_owned(), only: false };
        catalog.set_statistics(&name, Some(Statistics { rows, columns: vec![] }));
    }
    let corpus: Vec<Vec<String>> = corpus().iter().map(|query| tokens(query)).collect();
    assert!(corpus.len() > 300, "{} queries", corpus.len());
    let last = std::env::temp_dir().join(format!("eddy-fuzz-{}.sql", std::process::id()));
    eprintln!("the last text is in {}", last.display());
    let mut random = Random::seeded();
    let (mut tried, mut planned) = (0, 0);
    let mut slowest = (Duration::ZERO, String::new());
    let end = Instant::now() + time();
    on_small_stack(|| {
        while Instant::now() < end {
            let sql = mutated(&mut random, &corpus);
            std::fs::write(&last, &sql).expect("a writable file");
            let started = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(|| match plan_view(&sql, &catalog) {
                Ok(plan) => !explain(&plan).is_empty(),
                Err(error) => error.message.is_empty(),
            }));
            let Ok(is_planned) = outcome else { panic!("the planner panicked at:\n{sql}") };
            let elapsed = started.elapsed();
            assert!(elapsed.as_secs() < 30, "{elapsed:?}:\n{sql}");
            if elapsed > slowest.0 {
                slowest = (elapsed, sql);
            }
            tried += 1;
            planned += usize::from(is_planned);
        }
    });
    remove(&last);
    eprintln!("{tried} texts, {planned} planned, the slowest in {:?}:\n{}", slowest.0, slowest.1);
    // Otherwise the mutations are too coarse to get past the parser.
    assert!(planned * 30 > tried, "{planned} of {tried} texts were planned");
}

fn remove(file: &Path) {
    let _ = std::fs::remove_file(file);
}

#[test]
fn no_fields_of_a_stored_numeric_make_its_decoding_panic() {
    let mut random = Random::seeded();
    let end = Instant::now() + time().min(Duration::from_secs(5));
    while Instant::now() < end {
        let digits: Vec<i16> = (0..random.below(12)).map(|_| random.next() as i16).collect();
        let weight = random.next() as i16 >> random.below(16);
        let (sign, scale) = (random.next() as u16, random.next() as u16 >> random.below(16));
        let decoded = catch_unwind(|| {
            let numeric = Numeric::from_pg_digits(sign, weight, scale, &digits);
            drop(numeric.to_pg_digits());
        });
        assert!(decoded.is_ok(), "{sign} {weight} {scale} {digits:?}");
    }
}
