//! Runs PostgreSQL's own test drivers: pg_regress for SQL files, pg_isolation_regress for specs.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{ensure, Context, Result};
use harness::cluster::Cluster;
use harness::installation::{Build, Installation};
use harness::report::Counts;
use harness::user::clear_environment;

/// Which driver and which folder of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    Regress,
    Isolation,
}

impl Suite {
    fn program(self) -> &'static str {
        match self {
            Suite::Regress => "regress/pg_regress",
            Suite::Isolation => "isolation/pg_isolation_regress",
        }
    }

    fn folder(self) -> &'static str {
        match self {
            Suite::Regress => "tests/regress",
            Suite::Isolation => "tests/isolation",
        }
    }

    fn database(self) -> &'static str {
        match self {
            Suite::Regress => "eddy_regress",
            Suite::Isolation => "eddy_isolation",
        }
    }
}

/// What of a suite to run and what to do with the outputs.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Selection {
    /// Tests to run in this order instead of the schedule
    pub tests: Vec<String>,
    /// Take the outputs as the expected ones (read them before you commit them)
    #[arg(long)]
    pub accept: bool,
}

/// Runs a suite in a throwaway cluster.
pub fn run(
    suite: Suite,
    build: &Build,
    cluster: &Cluster,
    output: &Path,
    selection: &Selection,
) -> Result<Counts> {
    let installation = cluster.installation();
    let mut command = Command::new(installation.test_program(suite.program())?);
    clear_environment(&mut command);
    command
        .arg(argument("--host=", cluster.socket_folder()))
        .args(["--port=5432", "--user=postgres"]);
    drive(suite, build, installation, command, output, selection)
}

/// Runs the regress suite against the running server of an installation, found as psql finds it.
pub fn run_installed(build: &Build, output: &Path, selection: &Selection) -> Result<Counts> {
    let installation = Installation::query(&build.pg_config)?;
    let suite = Suite::Regress;
    let command = Command::new(installation.test_program(suite.program())?);
    drive(suite, build, &installation, command, output, selection)
}

fn drive(
    suite: Suite,
    build: &Build,
    installation: &Installation,
    mut command: Command,
    output: &Path,
    selection: &Selection,
) -> Result<Counts> {
    let folder = fs::canonicalize(build.project.join(suite.folder()))?;
    let input = output.join("input");
    stage(&folder, &input, installation.major)?;
    command
        .arg(argument("--bindir=", &installation.bin))
        .arg(argument("--inputdir=", &input))
        .arg(argument("--outputdir=", output))
        .arg(format!("--dbname={}", suite.database()))
        .arg("--load-extension=pg_eddy");
    // Tests call pg_dump and psql of the installation under test.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [installation.bin.clone()].into_iter().chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(folders)?);
    if selection.tests.is_empty() {
        for schedule in schedules(&input, installation.major)? {
            command.arg(argument("--schedule=", &schedule));
        }
    }
    command.args(&selection.tests);
    if selection.accept {
        create_missing(&input)?;
    }
    let (counts, success) = count(command)?;
    if suite == Suite::Isolation {
        ensure_parsed(&output.join("results"))?;
    }
    if selection.accept {
        accept(&output.join("results"), &input, &folder, installation.major)?;
    } else if !success {
        let diffs = fs::read(output.join("regression.diffs")).unwrap_or_default();
        println!("{}", String::from_utf8_lossy(&diffs));
    }
    ensure!(success || counts.failed > 0, "{} failed without a failed test", suite.program());
    Ok(counts)
}

/// Passes the driver's lines on and counts verdicts, in the wording of 15 and of 16 and later.
fn count(mut command: Command) -> Result<(Counts, bool)> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().context("standard output is piped")?;
    let mut counts = Counts::default();
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        println!("{line}");
        if let Some(passed) = verdict(&line) {
            counts.record(passed);
            if !passed {
                counts.note(&line);
            }
        }
    }
    Ok((counts, child.wait()?.success()))
}

/// The isolation tester of 15 writes what is wrong with a spec to its output, and goes on as if it had run it.
fn ensure_parsed(results: &Path) -> Result<()> {
    for (name, path) in files_in(results)? {
        let text = fs::read_to_string(path)?;
        let first = text.lines().next().unwrap_or_default();
        ensure!(first.starts_with("Parsed test spec"), "{name} of the isolation tests: {first}");
    }
    Ok(())
}

fn verdict(line: &str) -> Option<bool> {
    if line.starts_with("not ok ") {
        return Some(false);
    }
    if line.starts_with("ok ") {
        return Some(true);
    }
    let (name, rest) = line.split_once(" ... ")?;
    if !(name.starts_with("test ") || name.starts_with("     ")) {
        return None;
    }
    Some(rest.trim_start().starts_with("ok"))
}

/// The driver stops at a test without expected output; an empty one makes it go on.
fn create_missing(input: &Path) -> Result<()> {
    for folder in ["sql", "specs"] {
        let Ok(entries) = fs::read_dir(input.join(folder)) else { continue };
        for entry in entries {
            let name = PathBuf::from(entry?.file_name()).with_extension("out");
            let expected = input.join("expected").join(name);
            fs::OpenOptions::new().create(true).append(true).open(expected)?;
        }
    }
    Ok(())
}

/// The oldest version, whose outputs are in `NAME.out`.
const OLDEST: u32 = 15;

/// Copies a suite to where the driver reads it, with the outputs to be expected from a version: `NAME.17.out` is what 17 and
/// later ones print where 15 prints `NAME.out`.
fn stage(folder: &Path, input: &Path, major: u32) -> Result<()> {
    for part in ["sql", "specs", "expected", "."] {
        let Ok(entries) = fs::read_dir(folder.join(part)) else { continue };
        fs::create_dir_all(input.join(part))?;
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                fs::copy(entry.path(), input.join(part).join(entry.file_name()))?;
            }
        }
    }
    for version in OLDEST + 1..=major {
        let suffix = format!(".{version}.out");
        for (name, path) in files_in(&input.join("expected"))? {
            if let Some(test) = name.strip_suffix(&suffix) {
                fs::copy(path, input.join("expected").join(format!("{test}.out")))?;
            }
        }
    }
    Ok(())
}

/// The schedules for a version: `schedule.17` has what only 17 and later ones can run.
fn schedules(input: &Path, major: u32) -> Result<Vec<PathBuf>> {
    let later = (OLDEST + 1..=major).map(|version| input.join(format!("schedule.{version}")));
    let later = later.filter(|schedule| schedule.is_file());
    Ok([input.join("schedule")].into_iter().chain(later).collect())
}

fn files_in(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let named = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry?;
        Ok((entry.file_name().to_string_lossy().into_owned(), entry.path()))
    };
    fs::read_dir(folder)?.map(named).collect()
}

/// Takes those outputs that are not the expected ones: as those of all versions, or as those from this one on.
fn accept(results: &Path, input: &Path, folder: &Path, major: u32) -> Result<()> {
    let is_of_later = |test: &str| -> Result<bool> {
        let schedules = schedules(input, major)?.into_iter().skip(1);
        let texts: Vec<String> = schedules.map(fs::read_to_string).collect::<Result<_, _>>()?;
        Ok(texts.iter().flat_map(|text| text.split_whitespace()).any(|word| word == test))
    };
    for (name, path) in files_in(results)? {
        let Some(test) = name.strip_suffix(".out") else { continue };
        let expected = input.join("expected").join(&name);
        if fs::read(&path)? == fs::read(&expected).unwrap_or_default() {
            continue;
        }
        let is_common = major == OLDEST || is_of_later(test)?;
        let name = if is_common { name.clone() } else { format!("{test}.{major}.out") };
        fs::copy(&path, folder.join("expected").join(name))?;
    }
    Ok(())
}

fn argument(option: &str, path: &Path) -> OsString {
    let mut argument = OsString::from(option);
    argument.push(PathBuf::from(path));
    argument
}

#[cfg(test)]
mod tests {
    use super::verdict;

    #[test]
    fn verdicts_of_old_and_new_drivers_are_read() {
        assert_eq!(verdict("test statements                   ... ok           12 ms"), Some(true));
        assert_eq!(
            verdict("     types                        ... FAILED       12 ms"),
            Some(false)
        );
        assert_eq!(verdict("ok 1         - statements         12 ms"), Some(true));
        assert_eq!(verdict("not ok 2     - types              12 ms"), Some(false));
        assert_eq!(verdict("============== running regression test queries ========"), None);
        assert_eq!(verdict("# All 4 tests passed."), None);
    }
}
