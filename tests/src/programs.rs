//! PostgreSQL's own programs, fed and read: what dumps, and what restores.

use std::io::Write;
use std::process::{Output, Stdio};

use anyhow::{ensure, Context, Result};
use harness::cluster::Cluster;

/// Output of a dump program.
pub fn dump(cluster: &Cluster, program: &str, arguments: &[&str]) -> Result<Vec<u8>> {
    let path = cluster.installation().program(program);
    let output = cluster.client_program(&path).args(arguments).output()?;
    ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(output.stdout)
}

/// Hands a dump to a program's standard input.
pub fn feed(cluster: &Cluster, program: &str, arguments: &[&str], input: &[u8]) -> Result<Output> {
    let path = cluster.installation().program(program);
    let mut child = cluster
        .client_program(&path)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().context("standard input is piped")?;
    // What comes after a failure is not read any more.
    let written = stdin.write_all(input);
    drop(stdin);
    let output = child.wait_with_output()?;
    if output.status.success() {
        written?;
    }
    Ok(output)
}

/// Runs a script, up to the first error if it is `strict`.
pub fn restore(cluster: &Cluster, database: &str, script: &[u8], strict: bool) -> Result<()> {
    let stop = if strict { "--set=ON_ERROR_STOP=1" } else { "--set=ON_ERROR_STOP=0" };
    let output = feed(cluster, "psql", &["--no-psqlrc", "--quiet", stop, database], script)?;
    ensure!(output.status.success(), "psql: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
