//! pgbench with a script of ours, running in the background or to its end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{anyhow, ensure, Context, Result};
use rustix::process::Signal;

use crate::cluster::{signal_process, Cluster};

/// What every run of a load shares.
pub struct Load {
    pub database: String,
    pub clients: u32,
    /// Scripts with their weights.
    scripts: Vec<(PathBuf, u32)>,
}

impl Load {
    pub fn new(
        folder: &Path,
        database: &str,
        clients: u32,
        scripts: &[(&str, &str, u32)],
    ) -> Result<Load> {
        let mut files = Vec::new();
        for (name, text, weight) in scripts {
            let file = folder.join(format!("{name}.pgbench"));
            fs::write(&file, text)?;
            files.push((file, *weight));
        }
        Ok(Load { database: database.into(), clients, scripts: files })
    }

    fn command(&self, cluster: &Cluster, seconds: u32) -> Command {
        let mut command = cluster.client_program(&cluster.installation().program("pgbench"));
        command
            .args(["--no-vacuum", "--protocol=prepared", "--max-tries=100"])
            .arg(format!("--client={}", self.clients))
            .arg("--jobs=2")
            .arg(format!("--time={seconds}"))
            .stdin(Stdio::null());
        for (file, weight) in &self.scripts {
            command.arg(format!("--file={}@{weight}", file.display()));
        }
        command.arg(&self.database);
        command
    }

    /// Runs for `seconds` and returns the transactions per second.
    pub fn run(&self, cluster: &Cluster, seconds: u32) -> Result<f64> {
        let output = self.command(cluster, seconds).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "pgbench: {}", String::from_utf8_lossy(&output.stderr));
        text.lines()
            .find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok())
            .ok_or_else(|| anyhow!("pgbench printed no tps:\n{text}"))
    }

    /// Runs until stopped, or until the server goes away.
    pub fn start(&self, cluster: &Cluster) -> Result<RunningLoad> {
        let mut command = self.command(cluster, 3600);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(RunningLoad(command.spawn().context("starting pgbench")?))
    }
}

/// A pgbench in the background; it ends with this value.
pub struct RunningLoad(Child);

impl RunningLoad {
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.0.try_wait()?.is_none())
    }

    pub fn stop(&mut self) -> Result<()> {
        if self.is_running()? {
            signal_process(i32::try_from(self.0.id())?, Signal::TERM)?;
            self.0.wait()?;
        }
        Ok(())
    }
}

impl Drop for RunningLoad {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("stopping pgbench: {error:#}");
        }
    }
}
