//! What figures depend on: the machine, the server and the commit.

use std::fs;
use std::path::Path;
use std::process::Command;

use harness::installation::Build;
use serde_json::{json, Value};

/// Described by what the system says; what it does not say is null.
pub fn describe(build: &Build) -> Value {
    let line = |file: &str, key: &str| -> Option<String> {
        let text = fs::read_to_string(file).ok()?;
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let file = |file: &str| fs::read_to_string(file).ok().map(|text| text.trim().to_owned());
    json!({
        "kind": "machine",
        "processor": line("/proc/cpuinfo", "model name"),
        "cores": std::thread::available_parallelism().ok().map(usize::from),
        "memory": line("/proc/meminfo", "MemTotal"),
        "kernel": file("/proc/sys/kernel/osrelease"),
        "load_average": file("/proc/loadavg"),
        "postgresql": output(Command::new(&build.pg_config).arg("--version")),
        "commit": commit(&build.project),
    })
}

/// The commit that is checked out, marked when files differ from it.
fn commit(project: &Path) -> Option<String> {
    output(Command::new("git").arg("-C").arg(project).args([
        "describe",
        "--always",
        "--abbrev=12",
        "--dirty",
        "--exclude=*",
    ]))
}

fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
