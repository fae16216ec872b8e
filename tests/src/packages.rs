//! The Debian package: made, looked at by lintian, and installed, used, upgraded and removed in a fresh Debian.
//!
//! Needs root, for the fresh Debian is a folder that is entered by chroot. Its processes are in a namespace of their own and
//! end with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{ensure, Context, Result};
use harness::installation::{Build, Installation};
use harness::report::Counts;
use tempfile::TempDir;

use crate::docs::{page::Page, session};

pub fn run(build: &Build) -> Result<Counts> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "the layer packages enters a fresh Debian by chroot: run it as root"
    );
    let packaging = Packaging::new(build)?;
    let mut counts = Counts::default();
    let packages = packaging.make("1").and_then(|first| Ok((first, packaging.make("2")?)));
    let (first, second) = packages.context("making the packages")?;
    counts.check("lintian finds no errors", lintian(&first));
    let used = packaging.use_in_fresh_debian(&first, &second);
    counts.check("the package is installed, used, upgraded and removed in a fresh Debian", used);
    Ok(counts)
}

/// What is common to all packages of a run.
struct Packaging<'a> {
    build: &'a Build,
    major: String,
    folder: TempDir,
}

/// A package and the one with its symbols.
struct Packages {
    main: PathBuf,
    symbols: PathBuf,
}

impl<'a> Packaging<'a> {
    fn new(build: &'a Build) -> Result<Packaging<'a>> {
        let folder = tempfile::Builder::new().prefix("pg_eddy-").tempdir()?;
        harness::cleanup::remember_folder(folder.path());
        Ok(Packaging {
            build,
            major: Installation::query(&build.pg_config)?.major.to_string(),
            folder,
        })
    }

    /// With that revision, and without much compression: nobody downloads them.
    fn make(&self, revision: &str) -> Result<Packages> {
        let output = self.folder.path().join(revision);
        run_quietly(
            Command::new("make")
                .arg("deb")
                .arg(format!("PG_CONFIG={}", self.build.pg_config.display()))
                .arg(format!("DEB_OUTPUT={}", output.display()))
                .env("DEB_REVISION", revision)
                .env("DPKG_DEB_COMPRESSOR_LEVEL", "1")
                .current_dir(&self.build.project),
        )?;
        let is_symbols = |path: &PathBuf| path.to_string_lossy().contains("-dbgsym_");
        let files: std::io::Result<Vec<_>> =
            fs::read_dir(&output)?.map(|entry| Ok(entry?.path())).collect();
        let (symbols, main): (Vec<_>, Vec<_>) = files?.into_iter().partition(is_symbols);
        match (&main[..], &symbols[..]) {
            ([main], [symbols]) => Ok(Packages { main: main.clone(), symbols: symbols.clone() }),
            _ => anyhow::bail!("make deb leaves {main:?} and {symbols:?}"),
        }
    }

    /// In a copy of the root that is kept for that.
    fn use_in_fresh_debian(&self, first: &Packages, second: &Packages) -> Result<()> {
        let root = self.folder.path().join("root");
        let scripts = self.build.project.join("tests/packages");
        let kept = run_quietly(Command::new(scripts.join("root.sh")).arg(&self.major))?;
        run_quietly(Command::new("cp").args(["-a", "--reflink=auto", kept.trim()]).arg(&root))?;
        let shared = root.join("packages");
        fs::create_dir(&shared)?;
        let mut names = Vec::new();
        for package in [&first.main, &second.main, &second.symbols] {
            let name = package.file_name().context("a package is a file")?;
            fs::copy(package, shared.join(name))?;
            names.push(name);
        }
        for script in ["inside.sh", "life.sh"] {
            fs::copy(scripts.join(script), shared.join(script))?;
        }
        let session = ReadmeSession::of(&self.build.project)?;
        session.hand_to(&shared)?;
        let entered = run_quietly(
            Command::new("unshare")
                .args(["--mount", "--pid", "--fork", "--kill-child"])
                .arg(option("--mount-proc=", &root.join("proc")))
                .arg("chroot")
                .arg(&root)
                .arg("/packages/inside.sh")
                .arg(&self.major)
                .args(names),
        );
        print!("{}", entered?);
        session.compare(&shared)
    }
}

/// The session of README, for scripts that know nothing of pages: they have psql run it in databases with the newest and with
/// the oldest SQL objects.
pub struct ReadmeSession {
    text: String,
}

impl ReadmeSession {
    const DATABASES: [&str; 2] = ["session", "former"];

    pub fn of(project: &Path) -> Result<ReadmeSession> {
        Ok(ReadmeSession { text: fs::read_to_string(project.join("README.md"))? })
    }

    pub fn hand_to(&self, folder: &Path) -> Result<()> {
        let page = Page::parse(&self.text)?;
        Ok(fs::write(folder.join("session.sql"), session::script(&page))?)
    }

    /// What psql has printed is what README says.
    pub fn compare(&self, folder: &Path) -> Result<()> {
        let page = Page::parse(&self.text)?;
        for database in Self::DATABASES {
            let printed = fs::read_to_string(folder.join(format!("{database}.out")))
                .with_context(|| format!("the session in database {database}"))?;
            page.compare(&session::outputs(&page, &printed)?)?;
        }
        Ok(())
    }
}

/// Errors end with another status than 0; warnings are told.
fn lintian(packages: &Packages) -> Result<()> {
    let mut command = Command::new("lintian");
    command.args(["--fail-on", "error", "--allow-root"]).arg(&packages.main).arg(&packages.symbols);
    print!("{}", run_quietly(&mut command)?);
    Ok(())
}

fn option(name: &str, path: &Path) -> std::ffi::OsString {
    let mut option = std::ffi::OsString::from(name);
    option.push(path);
    option
}

/// Standard output; an error has all that the program wrote.
fn run_quietly(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| name.clone())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} ends with {}:\n{text}{errors}", output.status);
    Ok(text)
}
