//! Runs the tests of the crates themselves and counts their verdicts.
//!
//! One cargo call builds all test programs, with the same packages and features as the build of
//! the extension, so that no dependency is compiled twice. The programs are then run one by one.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{anyhow, ensure, Context, Result};
use harness::installation::Build;
use harness::report::Counts;
use serde_json::Value;

/// Builds the test programs of the workspace, as the Makefile builds the rest: `EDDY_CARGO_ARGUMENTS`
/// has its options.
pub fn build(build: &Build) -> Result<Vec<Program>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let options = std::env::var("EDDY_CARGO_ARGUMENTS").unwrap_or("--release --workspace".into());
    let output = Command::new(cargo)
        .args(["test", "--no-run", "--message-format=json-render-diagnostics"])
        .args(options.split_whitespace())
        .current_dir(&build.project)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "cargo could not build the tests");
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().filter_map(program).collect())
}

/// A test program of a crate, which expects to run in the crate's folder.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    krate: String,
    name: String,
    executable: PathBuf,
    folder: PathBuf,
}

/// The test program that one of cargo's messages tells about.
fn program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    Some(Program {
        krate: package_name(message["package_id"].as_str()?)?.into(),
        name: message["target"]["name"].as_str()?.into(),
        executable: message["executable"].as_str()?.into(),
        folder: Path::new(message["manifest_path"].as_str()?).parent()?.into(),
    })
}

/// The name in `path+file:///project/tests#eddy-tests@0.1.0`; in `path+file:///project/engine#0.1.0` it is the
/// folder's.
fn package_name(id: &str) -> Option<&str> {
    let (folder, version) = id.rsplit_once('#')?;
    match version.split_once('@') {
        Some((name, _)) => Some(name),
        None => folder.rsplit('/').next(),
    }
}

/// The crates that have test programs, in the order of their names.
pub fn crates(programs: &[Program]) -> BTreeSet<&str> {
    programs.iter().map(|program| program.krate.as_str()).collect()
}

/// Runs the programs of one crate.
pub fn run(programs: &[Program], krate: &str) -> Result<Counts> {
    let mut counts = Counts::default();
    for program in programs.iter().filter(|program| program.krate == krate) {
        let passed_before = counts.passed;
        run_program(program, &mut counts)?;
        println!("{krate}/{}: {} passed", program.name, counts.passed - passed_before);
    }
    Ok(counts)
}

fn run_program(program: &Program, counts: &mut Counts) -> Result<()> {
    let mut child = Command::new(&program.executable)
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take().context("standard output is piped")?;
    let failed_before = counts.failed;
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        if let Some(suite) = parse_result(&line) {
            counts.add(&suite);
        }
        if line.ends_with("... FAILED") {
            counts.note(&line);
        }
        if !(line.is_empty() || line.ends_with("... ok")) {
            println!("{line}");
        }
    }
    let success = child.wait()?.success();
    if !success && counts.failed == failed_before {
        counts.check(&program.name, Err(anyhow!("the program ended early")));
    }
    Ok(())
}

/// `test result: ok. 3 passed; 0 failed; 0 ignored; …`. An ignored test counts as failed: no test
/// may be skipped.
fn parse_result(line: &str) -> Option<Counts> {
    let rest = line.strip_prefix("test result: ")?;
    let number = |word: &str| -> Option<usize> {
        let (before, _) = rest.split_once(&format!(" {word}"))?;
        before.rsplit(' ').next()?.parse().ok()
    };
    Some(Counts::new(number("passed")?, number("failed")? + number("ignored")?))
}

#[cfg(test)]
mod tests {
    use super::{package_name, parse_result, program};
    use harness::report::Counts;

    #[test]
    fn cargo_verdicts_are_counted_and_ignored_tests_fail() {
        let line = "test result: ok. 3 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out";
        assert_eq!(parse_result(line), Some(Counts::new(3, 3)));
        assert_eq!(parse_result("running 3 tests"), None);
    }

    #[test]
    fn only_test_programs_are_taken_from_cargo_messages() {
        let test = r#"{"reason":"compiler-artifact","manifest_path":"/p/planner/Cargo.toml",
            "package_id":"path+file:///p/planner#0.1.0",
            "target":{"name":"goldens"},"profile":{"test":true},"executable":"/t/goldens-1"}"#;
        let found = program(test).expect("a test program");
        assert_eq!((found.name.as_str(), found.folder.to_str()), ("goldens", Some("/p/planner")));
        assert_eq!(program(&test.replace("true", "false")), None);
        assert_eq!(program("Compiling planner"), None);
    }

    #[test]
    fn a_crate_is_known_by_its_name_or_by_its_folder() {
        assert_eq!(package_name("path+file:///p/planner/plan#0.1.0"), Some("plan"));
        assert_eq!(package_name("path+file:///p/tests#eddy-tests@0.1.0"), Some("eddy-tests"));
        assert_eq!(package_name("plan"), None);
    }
}
