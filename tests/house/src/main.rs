//! `house circles PROJECT_DIR [--list] [--edges FILE]`: which modules of a crate use each other in a circle.
//!
//! A module is a file. A circle is allowed between two or three files of one folder, nowhere else: a reader
//! then has to hold at most that much in mind at once. `a/mod.rs` and `a/b.rs` are of folder `a`; `a.rs`
//! beside them is of the folder above. What only tests use does not count.
//!
//! What is seen: every path, also within macros, followed through re-exports to the file that defines the
//! item. What is not seen: methods (a value can be passed on and its methods called without naming the
//! type), derives, and names a macro of another crate makes up.

mod advice;
mod graph;
mod names;
mod report;
#[cfg(test)]
mod tests;
mod tree;
mod uses;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{bail, Context, Result};

const USAGE: &str = "usage: house circles PROJECT_DIR [--list] [--edges FILE]";

/// What the command line asks for.
struct Request {
    project: PathBuf,
    list: bool,
    edges_of: Option<String>,
}

fn main() -> ExitCode {
    match request(std::env::args().skip(1)).and_then(run) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("house: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn request(mut arguments: impl Iterator<Item = String>) -> Result<Request> {
    if arguments.next().as_deref() != Some("circles") {
        bail!(USAGE);
    }
    let (mut project, mut list, mut edges_of) = (None, false, None);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--list" => list = true,
            "--edges" => edges_of = Some(arguments.next().context(USAGE)?),
            _ if project.is_none() && !argument.starts_with('-') => {
                project = Some(PathBuf::from(argument));
            }
            _ => bail!(USAGE),
        }
    }
    Ok(Request { project: project.context(USAGE)?, list, edges_of })
}

/// True when nothing forbidden was found.
fn run(request: Request) -> Result<bool> {
    let members = workspace::members(&request.project)?;
    let graphs = members.iter().map(graph::Graph::read).collect::<Result<Vec<_>>>()?;
    match &request.edges_of {
        Some(file) => print!("{}", report::edges(&graphs, file)?),
        None => {
            let verdict = report::circles(&graphs, request.list);
            print!("{}", verdict.text);
            return Ok(verdict.forbidden == 0);
        }
    }
    Ok(true)
}
