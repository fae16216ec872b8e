//! A private copy of a PostgreSQL installation with the extension in it.
//!
//! PostgreSQL's programs find their library and share folders relative to themselves, so a copy
//! under any prefix works as long as the layout stays the same. Nothing of the system is touched.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, ensure, Context, Result};
use tempfile::TempDir;

use crate::user::ServerUser;

/// What to copy and what to install into the copy.
#[derive(Clone, Debug, clap::Args)]
pub struct Build {
    /// pg_config of the installation to copy
    #[arg(long, env = "PG_CONFIG", default_value = "pg_config", global = true)]
    pub pg_config: PathBuf,
    /// Built extension library
    #[arg(long, env = "EDDY_LIBRARY", default_value = "libpg_eddy.so", global = true)]
    pub library: PathBuf,
    /// Top folder of the project
    #[arg(long, env = "EDDY_PROJECT", default_value = ".", global = true)]
    pub project: PathBuf,
    /// A setting of all servers that does not say otherwise
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting, global = true)]
    pub settings: Vec<(String, String)>,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a setting is NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Folders of a PostgreSQL installation.
#[derive(Clone, Debug)]
pub struct Installation {
    pub bin: PathBuf,
    pub lib: PathBuf,
    pub share: PathBuf,
    pub user: ServerUser,
    /// Major version: 15 for 15.20.
    pub major: u32,
    /// Settings of its servers where these do not say otherwise.
    pub settings: Vec<(String, String)>,
}

impl Installation {
    /// The installation that `pg_config` describes, as it is.
    pub fn query(pg_config: &Path) -> Result<Installation> {
        let version = ask(pg_config, "--version")?;
        Ok(Installation {
            bin: ask(pg_config, "--bindir")?.into(),
            lib: ask(pg_config, "--pkglibdir")?.into(),
            share: ask(pg_config, "--sharedir")?.into(),
            user: ServerUser::find()?,
            major: major(&version).with_context(|| format!("no version in \"{version}\""))?,
            settings: Vec::new(),
        })
    }

    /// Copies the installation under `prefix` and installs the extension there.
    fn copy_to(&self, prefix: &Path) -> Result<Installation> {
        let common = common_ancestor(&[&self.bin, &self.lib, &self.share]);
        let relocate = |folder: &Path| -> Result<PathBuf> {
            let target = prefix.join(folder.strip_prefix(&common)?);
            copy_tree(folder, &target)?;
            Ok(target)
        };
        Ok(Installation {
            bin: relocate(&self.bin)?,
            lib: relocate(&self.lib)?,
            share: relocate(&self.share)?,
            user: self.user,
            major: self.major,
            settings: self.settings.clone(),
        })
    }

    /// Installs the library, the program of the engine, which is built beside it, the control file and SQL scripts. The first two
    /// are renamed into place: a file in use must never be written over.
    fn install(&self, build: &Build) -> Result<()> {
        let program = build.library.with_file_name("pg_eddy_engine");
        for (built, name) in [(&program, "pg_eddy_engine"), (&build.library, "pg_eddy.so")] {
            let arriving = self.lib.join(format!("{name}.new"));
            fs::copy(built, &arriving).with_context(|| format!("copying {}", built.display()))?;
            fs::rename(arriving, self.lib.join(name))?;
        }
        let scripts = build.project.join("sql");
        for entry in fs::read_dir(&scripts).with_context(|| scripts.display().to_string())? {
            let path = entry?.path();
            let extension = path.extension().and_then(|e| e.to_str());
            if let (Some("sql" | "control"), Some(name)) = (extension, path.file_name()) {
                fs::copy(&path, self.share.join("extension").join(name))?;
            }
        }
        Ok(())
    }

    /// A program of the installation.
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// A program that PostgreSQL installs for testing extensions, such as `regress/pg_regress`.
    pub fn test_program(&self, name: &str) -> Result<PathBuf> {
        let path = self.lib.join("pgxs/src/test").join(name);
        if !path.is_file() {
            bail!("{} is missing: install PostgreSQL's server development files", path.display());
        }
        Ok(path)
    }
}

/// The major version in what `pg_config --version` prints, such as `PostgreSQL 15.20 (Debian 15.20-0+deb12u1)`, `PostgreSQL 19devel`.
fn major(text: &str) -> Option<u32> {
    let number = text.split_whitespace().nth(1)?;
    let end = number.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(number.len());
    number[..end].parse().ok()
}

/// What a `pg_config` answers.
pub fn ask(pg_config: &Path, what: &str) -> Result<String> {
    let output = Command::new(pg_config)
        .arg(what)
        .output()
        .with_context(|| format!("running {}", pg_config.display()))?;
    ensure!(output.status.success(), "{} {what} failed", pg_config.display());
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}

/// A private copy that vanishes with this value.
pub struct PrivateInstallation {
    pub installation: Installation,
    folder: TempDir,
}

impl PrivateInstallation {
    pub fn create(build: &Build) -> Result<PrivateInstallation> {
        let mut private = PrivateInstallation::create_without_extension(build)?;
        private.installation.install(build)?;
        private.installation.settings.clone_from(&build.settings);
        Ok(private)
    }

    /// A copy of PostgreSQL as it is.
    pub fn create_without_extension(build: &Build) -> Result<PrivateInstallation> {
        let folder = tempfile::Builder::new().prefix("pg_eddy-").tempdir()?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        crate::cleanup::remember_folder(folder.path());
        let installation =
            Installation::query(&build.pg_config)?.copy_to(&folder.path().join("server"))?;
        Ok(PrivateInstallation { installation, folder })
    }

    /// Folder for clusters and outputs.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

fn common_ancestor(paths: &[&Path]) -> PathBuf {
    let first = paths[0];
    first
        .ancestors()
        .find(|ancestor| paths.iter().all(|path| path.starts_with(ancestor)))
        .unwrap_or(Path::new("/"))
        .to_path_buf()
}

/// `cp -a` keeps links and modes; the parent folders are made first.
fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    let status = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status()?;
    ensure!(status.success(), "copying {} failed", from.display());
    Ok(())
}
