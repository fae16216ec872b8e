//! What the benchmarks prove of results, as layers of tests: run by `eddy-bench`, a program of its own beside
//! this one, because the demo and a throwaway server need neither dataflows written by hand nor plots.

use std::io::{pipe, BufRead, BufReader};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{ensure, Context, Result};
use harness::cleanup;
use harness::cluster::process_id;
use harness::installation::Build;
use harness::report::Counts;
use rustix::process::Signal;

const PROGRAM: &str = "eddy-bench";

/// Passes on what the program prints, and takes the counts that it ends with.
pub fn run(build: &Build, arguments: &[&str]) -> Result<Counts> {
    let (lines, status) = run_program(build, arguments)?;
    let counts = lines.iter().rev().find_map(|line| Counts::parse(line));
    let error = lines.iter().find_map(|line| line.strip_prefix("eddy-bench: "));
    let counts = counts.with_context(|| match error {
        Some(error) => error.to_owned(),
        None => format!("{PROGRAM} ended with {status} and no counts"),
    })?;
    ensure!(status.success() == counts.is_success(), "{PROGRAM} ended with {status}, {counts}");
    Ok(counts)
}

fn run_program(build: &Build, arguments: &[&str]) -> Result<(Vec<String>, ExitStatus)> {
    let program = std::env::current_exe()?.with_file_name(PROGRAM);
    // One pipe for both, or the reason of a failure would not stand beside what failed.
    let (reader, writer) = pipe()?;
    let mut child = Command::new(&program)
        .arg("--pg-config")
        .arg(&build.pg_config)
        .arg("--library")
        .arg(&build.library)
        .arg("--project")
        .arg(&build.project)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()
        .with_context(|| format!("starting {} (make build makes it)", program.display()))?;
    let pid = process_id(&child);
    cleanup::remember_process(pid, Signal::TERM);
    let mut lines = Vec::new();
    for line in BufReader::new(reader).lines() {
        let line = line?;
        println!("{line}");
        lines.push(line);
    }
    let status = child.wait()?;
    cleanup::forget_process(pid);
    Ok((lines, status))
}
