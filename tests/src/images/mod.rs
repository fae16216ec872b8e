//! The images of `docker/`, with the package that `make deb` has left: built and run without a registry; and the compose file over
//! them. Needs root, as packages do.

mod compose;

use std::process::Command;

use anyhow::{ensure, Context, Result};
use harness::installation::{Build, Installation};
use harness::report::Counts;

use crate::packages::ReadmeSession;

pub fn run(build: &Build) -> Result<Counts> {
    let mut counts = Counts::default();
    counts.check("the compose file and what it mounts fit together", compose::check(build));
    counts.check("the images are built, run, upgraded and left again", use_images(build));
    Ok(counts)
}

/// The script tells its steps itself.
fn use_images(build: &Build) -> Result<()> {
    let shared = tempfile::Builder::new().prefix("pg_eddy-").tempdir()?;
    harness::cleanup::remember_folder(shared.path());
    let session = ReadmeSession::of(&build.project)?;
    session.hand_to(shared.path())?;
    compose::hand_to(build, shared.path())?;
    let status = Command::new(build.project.join("tests/packages/image.sh"))
        .arg(&build.project)
        .arg(Installation::query(&build.pg_config)?.major.to_string())
        .arg(shared.path())
        .status()
        .context("image.sh")?;
    ensure!(status.success(), "image.sh ends with {status}");
    session.compare(shared.path())
}
