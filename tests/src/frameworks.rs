//! Django, SQLAlchemy and Alembic: projects that use views as models, as the guide shows them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{ensure, Context, Result};
use harness::cluster::Cluster;
use harness::installation::Build;
use harness::report::Counts;

/// The projects.
const PROJECTS: &str = "tests/frameworks";

const GUIDE: &str = "docs/src/guides/frameworks.md";

/// A program that works in the folder of a project.
struct Project<'c> {
    cluster: &'c Cluster,
    programs: PathBuf,
    folder: PathBuf,
}

impl Project<'_> {
    fn expect(&self, program: &str, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new(self.programs.join(program));
        command.args(arguments).current_dir(&self.folder);
        command.env("PGHOST", self.cluster.socket_folder()).env("PYTHONDONTWRITEBYTECODE", "1");
        let output = command.output().with_context(|| format!("{program} {arguments:?}"))?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        ensure!(output.status.success(), "{program} {arguments:?}: {text}");
        Ok(())
    }
}

/// One test per framework, and that the guide shows what is tested.
pub fn run(cluster: &Cluster, build: &Build) -> Result<Counts> {
    let programs = std::env::var_os("EDDY_FRAMEWORKS");
    let programs = programs.context("EDDY_FRAMEWORKS is no folder of programs: run make")?;
    let project = |name: &str| Project {
        cluster,
        programs: PathBuf::from(&programs),
        folder: build.project.join(PROJECTS).join(name),
    };
    let mut counts = Counts::default();
    counts.check("the guide shows what is tested", shows_what_is_tested(&build.project));
    counts.check("models of Django are views", django(&project("django")));
    counts.check("so are those of SQLAlchemy, migrated by Alembic", alembic(&project("alembic")));
    cluster.print_crashes()?;
    Ok(counts)
}

fn django(project: &Project<'_>) -> Result<()> {
    project.expect("python", &["manage.py", "makemigrations", "--check", "--dry-run"])?;
    // In a database of its own, by all migrations.
    project.expect("python", &["manage.py", "test", "--noinput"])
}

fn alembic(project: &Project<'_>) -> Result<()> {
    project.expect("alembic", &["upgrade", "head"])?;
    project.expect("alembic", &["check"])?;
    project.expect("python", &["use.py"])?;
    project.expect("alembic", &["downgrade", "base"])?;
    project.expect("alembic", &["upgrade", "head"])
}

fn shows_what_is_tested(project: &Path) -> Result<()> {
    let mut files = Vec::new();
    read_all(&project.join(PROJECTS), &mut files)?;
    let guide = fs::read_to_string(project.join(GUIDE)).context(GUIDE)?;
    let blocks: Vec<&str> = guide.split("```python\n").skip(1).collect();
    ensure!(!blocks.is_empty(), "{GUIDE} shows no Python");
    for block in blocks {
        let (block, _) = block.split_once("```").context("a block has no end")?;
        ensure!(files.iter().any(|file| file.contains(block)), "no project has:\n{block}");
    }
    Ok(())
}

fn read_all(folder: &Path, files: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            read_all(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "py") {
            files.push(fs::read_to_string(path)?);
        }
    }
    Ok(())
}
