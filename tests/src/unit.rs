//! Runs `cargo test` of a crate and counts its verdicts.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{ensure, Context, Result};

use crate::installation::Build;
use crate::report::Counts;

/// Runs all tests of one workspace crate.
pub fn run(build: &Build, package: &str) -> Result<Counts> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut child = Command::new(cargo)
        .args(["test", "--release", "--no-fail-fast", "--locked", "-p", package])
        .current_dir(&build.project)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take().context("standard output is piped")?;
    let mut counts = Counts::default();
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        if let Some(suite) = parse_result(&line) {
            counts.add(&suite);
        }
        if !(line.is_empty() || line.ends_with("... ok")) {
            println!("{line}");
        }
    }
    let success = child.wait()?.success();
    ensure!(success || counts.failed > 0, "cargo test -p {package} failed without a failed test");
    Ok(counts)
}

/// `test result: ok. 3 passed; 0 failed; 0 ignored; …`. An ignored test counts as failed: no test
/// may be skipped.
fn parse_result(line: &str) -> Option<Counts> {
    let rest = line.strip_prefix("test result: ")?;
    let number = |word: &str| -> Option<usize> {
        let (before, _) = rest.split_once(&format!(" {word}"))?;
        before.rsplit(' ').next()?.parse().ok()
    };
    Some(Counts { passed: number("passed")?, failed: number("failed")? + number("ignored")? })
}

#[cfg(test)]
mod tests {
    use super::parse_result;
    use crate::report::Counts;

    #[test]
    fn cargo_verdicts_are_counted_and_ignored_tests_fail() {
        let line = "test result: ok. 3 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out";
        assert_eq!(parse_result(line), Some(Counts { passed: 3, failed: 3 }));
        assert_eq!(parse_result("running 3 tests"), None);
    }
}
