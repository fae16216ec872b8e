//! Servers made of others: standbys, base backups, restored archives, a former primary that comes back.
//!
//! All of them are in folders beside that of their origin, run from the same installation, and differ from it in the
//! folder of their socket. Whatever copies a data directory also copies the configuration in it, so each step ends by saying
//! again where the server's own socket is; the last line of a setting counts.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use anyhow::{ensure, Context, Result};

use super::{Cluster, Settings, PORT};

impl Cluster {
    /// Makes a standby of this server in `folder/name` and starts it.
    pub fn start_standby(&self, folder: &Path, name: &str) -> Result<Cluster> {
        let mut standby = self.back_up(folder, name, &["--write-recovery-conf"])?;
        standby.start()?;
        Ok(standby)
    }

    /// Makes a base backup of this server, as the data directory of another one in `folder/name`, which is not started.
    /// `arguments` are more ones for `pg_basebackup`.
    pub fn back_up(&self, folder: &Path, name: &str, arguments: &[&str]) -> Result<Cluster> {
        let copy = self.prepare_beside(folder, name)?;
        self.back_up_into(&copy.data(), arguments)?;
        copy.set(&[])?;
        Ok(copy)
    }

    /// Makes a base backup of this server in a folder that does not exist yet.
    pub fn back_up_into(&self, folder: &Path, arguments: &[&str]) -> Result<()> {
        let mut all = vec!["--checkpoint=fast", "--no-sync", "--pgdata"];
        let target = folder.to_str().context("folders have names in UTF-8")?;
        all.push(target);
        self.run_as_owner("pg_basebackup", &[&all[..], arguments].concat())
    }

    /// A server in `folder/name` without data, to put a backup into.
    pub fn prepare_beside(&self, folder: &Path, name: &str) -> Result<Cluster> {
        let folder = folder.join(name);
        fs::create_dir(&folder)?;
        self.installation.user.own(&folder)?;
        let installation = self.installation.clone();
        Ok(Cluster {
            installation,
            folder,
            postmaster: None,
            arguments: Vec::new(),
            environment: Vec::new(),
        })
    }

    /// Sets settings of a server that does not run, and its socket's folder.
    pub fn set(&self, settings: Settings) -> Result<()> {
        let mut text = format!("\nunix_socket_directories = '{}'\n", self.folder.display());
        for (name, value) in settings {
            text.push_str(&format!("{name} = '{}'\n", value.replace('\'', "''")));
        }
        let file = self.data().join("postgresql.conf");
        Ok(fs::OpenOptions::new().append(true).open(file)?.write_all(text.as_bytes())?)
    }

    /// Tells a server that does not run to follow another one when it starts.
    pub fn follow(&self, primary: &Cluster) -> Result<()> {
        self.set(&[("primary_conninfo", &primary.connection_text())])?;
        // Lines of this file, written by pg_basebackup, come after those of the other one.
        let automatic = self.data().join("postgresql.auto.conf");
        let text = fs::read_to_string(&automatic)?;
        let kept = text.lines().filter(|line| !line.starts_with("primary_conninfo"));
        fs::write(&automatic, kept.map(|line| format!("{line}\n")).collect::<String>())?;
        self.signal_file("standby.signal")
    }

    /// Writes the file that makes the next start one of recovery.
    pub fn signal_file(&self, name: &str) -> Result<()> {
        let file = self.data().join(name);
        fs::write(&file, "")?;
        self.installation.user.own(&file)
    }

    /// Brings the data of this server, which does not run, to where they and those of `source` parted.
    pub fn rewind(&self, source: &Cluster) -> Result<()> {
        // Until the checkpoint after its promotion the source says that it is still on its former timeline.
        source.connect("postgres")?.batch_execute("CHECKPOINT")?;
        let data = self.data();
        let data = data.to_str().context("folders have names in UTF-8")?;
        let server = format!("--source-server={}", source.connection_text());
        source.run_as_owner("pg_rewind", &["--no-sync", "--target-pgdata", data, &server])?;
        self.set(&[])
    }

    /// Has a standby become a primary; does not wait for it.
    pub fn promote(&self) -> Result<()> {
        let data = self.data();
        let data = data.to_str().context("folders have names in UTF-8")?;
        self.run_as_owner("pg_ctl", &["promote", "--no-wait", "--pgdata", data])
    }

    /// How another server connects to this one.
    pub fn connection_text(&self) -> String {
        format!("host={} port={PORT} user=postgres", self.folder.display())
    }

    /// Runs a program of the installation that writes files of the server, as their owner, connected to this server.
    pub fn run_as_owner(&self, program: &str, arguments: &[&str]) -> Result<()> {
        let output = self
            .installation
            .user
            .command(&self.installation.program(program))
            .env("PGHOST", &self.folder)
            .env("PGPORT", PORT.to_string())
            .env("PGUSER", "postgres")
            .args(arguments)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("running {program}"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{program}: {said}{errors}");
        Ok(())
    }
}
