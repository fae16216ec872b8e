//! The ways of the Makefile into a PostgreSQL and out of it: what `make install` copies and `make uninstall` removes, for
//! an ordinary user below DESTDIR and in a PostgreSQL, and that what was installed works.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{ensure, Context, Result};
use harness::cluster::Cluster;
use harness::installation::{ask, Build, Installation, PrivateInstallation};
use harness::report::Counts;
use harness::throwaway::FAST;

use crate::{docs, meta};

/// What of the clone `make install` may read. The test installs from a copy that has nothing else.
const INPUTS: [&str; 7] = [
    "Makefile",
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "LICENSE",
    "sql",
    "extension/packaging",
];

/// The texts among them, which go to the folder of documents.
const TEXTS: [&str; 4] = ["CHANGELOG.md", "LICENSE", "README.md", "SECURITY.md"];

/// Tests of the regress suite that `make installcheck` runs here; the layer `regress` has them all.
const INSTALLCHECK: &str = "syntax recursion dump status";

pub fn run(build: &Build) -> Result<Counts> {
    let private = PrivateInstallation::create_without_extension(build)?;
    let folder = private.folder().join("clone");
    let clone = Clone::copy(build, &private.installation, &folder)?;
    let mut counts = Counts::default();
    let destination = private.folder().join("destination");
    let below_destination = check_destination(build, &clone, &destination);
    counts
        .check("make install and uninstall as an ordinary user, below DESTDIR", below_destination);
    counts.check("the library that is shipped has its symbols apart", check_stripped(&clone));
    counts.check("META.json says what PGXN asks for", meta::check(&build.project));
    let working = check_working(build, &private, &clone, &mut counts);
    counts.check("make install and uninstall in a PostgreSQL", working);
    Ok(counts)
}

/// A copy of what `make install` needs, which the user that runs servers can read.
struct Clone {
    folder: PathBuf,
    product: PathBuf,
    installation: Installation,
}

impl Clone {
    fn copy(build: &Build, installation: &Installation, folder: &Path) -> Result<Clone> {
        let product = PathBuf::from("target/install").join(installation.major.to_string());
        for input in INPUTS.iter().map(Path::new).chain([product.as_path()]) {
            let target = folder.join(input);
            fs::create_dir_all(target.parent().context("it is below the folder")?)?;
            let status = Command::new("cp")
                .arg("-rT")
                .arg(build.project.join(input))
                .arg(target)
                .status()?;
            ensure!(status.success(), "{} cannot be copied", input.display());
        }
        let product = folder.join(product);
        Ok(Clone { folder: folder.to_path_buf(), product, installation: installation.clone() })
    }

    /// Runs `make` in it. There is neither a cargo nor a home.
    fn make(&self, mut command: Command, arguments: &[String]) -> Result<()> {
        command
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("CARGO", "/nonexistent/cargo")
            .current_dir(&self.folder)
            .args(arguments);
        let output = command.output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "make {}: {text}", arguments.join(" "));
        Ok(())
    }
}

/// As the user that runs servers, who owns nothing of the system.
fn check_destination(build: &Build, clone: &Clone, destination: &Path) -> Result<()> {
    let user = clone.installation.user;
    fs::create_dir(destination)?;
    user.own(destination)?;
    let make = |target: &str| {
        let arguments = [
            target.to_owned(),
            format!("PG_CONFIG={}", build.pg_config.display()),
            format!("DESTDIR={}", destination.display()),
        ];
        clone.make(user.command(Path::new("/usr/bin/make")), &arguments)
    };
    make("install")?;
    expect_files(destination, expected_files(clone, &build.pg_config)?)?;
    make("uninstall")?;
    let left = fs::read_dir(destination)?.count();
    ensure!(left == 0, "make uninstall leaves {left} folders");
    Ok(())
}

/// Paths below the root of the file system, without the leading slash.
fn expected_files(clone: &Clone, pg_config: &Path) -> Result<BTreeSet<PathBuf>> {
    let below = |what: &str, rest: &str| -> Result<PathBuf> {
        let folder = ask(pg_config, what)?;
        Ok(Path::new(folder.trim_start_matches('/')).join(rest))
    };
    let built = ["pg_eddy.so", "pg_eddy_engine"];
    let mut files: BTreeSet<PathBuf> =
        built.iter().map(|file| below("--pkglibdir", file)).collect::<Result<_>>()?;
    let extensions = below("--sharedir", "extension")?;
    for entry in fs::read_dir(clone.folder.join("sql"))? {
        files.insert(extensions.join(entry?.file_name()));
    }
    let documents = below("--docdir", "extension/pg_eddy")?;
    files.extend(TEXTS.iter().map(|text| documents.join(text)));
    Ok(files)
}

fn expect_files(folder: &Path, expected: BTreeSet<PathBuf>) -> Result<()> {
    let found = files_below(folder)?;
    let missing: Vec<_> = expected.difference(&found).collect();
    let surplus: Vec<_> = found.difference(&expected).collect();
    ensure!(missing.is_empty() && surplus.is_empty(), "missing {missing:?}, surplus {surplus:?}");
    Ok(())
}

/// All files below a folder, links among them, as paths from there.
fn files_below(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).with_context(|| next.display().to_string())? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else {
                files.insert(entry.path().strip_prefix(folder)?.to_path_buf());
            }
        }
    }
    Ok(files)
}

/// Neither names of functions nor lines are in the library, but where they are.
fn check_stripped(clone: &Clone) -> Result<()> {
    let sections = |file: &str| -> Result<String> {
        let output = Command::new("readelf")
            .args(["--wide", "--section-headers"])
            .arg(clone.product.join(file))
            .output()
            .context("readelf is one of the programs that building needs")?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let library = sections("pg_eddy.so")?;
    ensure!(library.contains(".gnu_debuglink"), "the library does not name its symbols");
    ensure!(!library.contains(".symtab"), "the library has symbols");
    ensure!(!sections("pg_eddy_engine")?.contains(".symtab"), "the program has symbols");
    ensure!(sections("pg_eddy.so.debug")?.contains(".symtab"), "there are no symbols apart");
    Ok(())
}

/// Installs into the private PostgreSQL, uses it there, and takes it out again.
fn check_working(
    build: &Build,
    private: &PrivateInstallation,
    clone: &Clone,
    counts: &mut Counts,
) -> Result<()> {
    let installation = &private.installation;
    let server = private.folder().join("server");
    let before = files_below(&server)?;
    let pg_config = format!("PG_CONFIG={}", installation.program("pg_config").display());
    let make = |targets: &[&str]| {
        let targets = targets.iter().map(|target| (*target).to_owned());
        let arguments: Vec<String> = targets.chain([pg_config.clone()]).collect();
        clone.make(Command::new("/usr/bin/make"), &arguments)
    };
    make(&["install", "install-symbols"])?;
    let cluster = Cluster::start_new(installation, private.folder(), "installed", FAST)?;
    let readme = docs::Selection { words: vec!["README.md".into()], accept: false };
    counts.add(&docs::run(&cluster, build, &readme)?);
    counts.check("make installcheck", installcheck(build, &cluster));
    drop(cluster);
    make(&["uninstall"])?;
    expect_files(&server, before)
}

/// In the clone itself and with cargo, as a developer does, against the server that is running.
fn installcheck(build: &Build, cluster: &Cluster) -> Result<()> {
    let output = cluster
        .client_program(Path::new("make"))
        .args(["installcheck", &format!("ARGS={INSTALLCHECK}")])
        .env("PG_CONFIG", &build.pg_config)
        .current_dir(&build.project)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
