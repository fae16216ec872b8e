//! One session of psql for the blocks of a page, and what each of them printed.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use anyhow::{ensure, Context, Result};

use super::page::Page;
use harness::cluster::Cluster;

/// Printed after each block. No page prints such a line of its own.
const MARK: &str = "-- the block ends here --";

/// Runs all blocks in a fresh database, and gives the output of each.
pub fn run(cluster: &Cluster, page: &Page) -> Result<Vec<String>> {
    cluster.connect("postgres")?.batch_execute("DROP DATABASE IF EXISTS docs WITH (FORCE)")?;
    cluster.connect("postgres")?.batch_execute("CREATE DATABASE docs")?;
    cluster.connect("docs")?.batch_execute("CREATE EXTENSION pg_eddy")?;
    outputs(page, &psql(cluster, &script(page))?)
}

/// What psql is given for all blocks of a page.
pub fn script(page: &Page) -> String {
    page.blocks.iter().map(|block| format!("{}\\echo '{MARK}'\n", page.sql(*block))).collect()
}

/// What each block of a page printed, of what psql printed for [`script`].
pub fn outputs(page: &Page, printed: &str) -> Result<Vec<String>> {
    let mut outputs: Vec<String> = printed.split(&format!("{MARK}\n")).map(trimmed).collect();
    let rest = outputs.pop().unwrap_or_default();
    ensure!(
        rest.is_empty() && outputs.len() == page.blocks.len(),
        "psql ended within a block: {printed}"
    );
    Ok(outputs)
}

/// Standard output and standard error, in the order in which they were written.
fn psql(cluster: &Cluster, script: &str) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let input = folder.path().join("script.sql");
    fs::write(&input, script)?;
    let (mut reader, writer) = std::io::pipe()?;
    let mut command = cluster.client_program(&cluster.installation().program("psql"));
    command
        .args(["--no-psqlrc", "--quiet", "docs"])
        .stdin(Stdio::from(fs::File::open(&input)?))
        .stdout(Stdio::from(writer.try_clone()?))
        .stderr(Stdio::from(writer));
    let mut child = command.spawn()?;
    // It holds the writing ends: without them gone, the reader would wait for ever.
    drop(command);
    let mut text = String::new();
    reader.read_to_string(&mut text).context("psql prints text")?;
    child.wait()?;
    Ok(text)
}

/// Without the spaces at the ends of lines, which editors remove, and without the empty line behind a result.
fn trimmed(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    lines.iter().map(|line| format!("{line}\n")).collect()
}
