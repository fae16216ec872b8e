//! Engines that listen, over which a server can have its views spread.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use anyhow::{ensure, Context, Result};

use crate::installation::{Build, Installation, PrivateInstallation};

/// Some engines on this machine, with a secret of theirs. Dropping them kills them.
pub struct Engines {
    installation: Installation,
    engines: Vec<Engine>,
    secret: PathBuf,
}

struct Engine {
    program: Child,
    address: String,
}

impl Engines {
    /// Starts so many, with their secret in the folder.
    pub fn start(installation: &Installation, folder: &Path, count: usize) -> Result<Engines> {
        let secret = write_secret(installation, folder, "engine.secret", "open sesame, and again")?;
        let mut engines =
            Engines { installation: installation.clone(), engines: Vec::new(), secret };
        for _ in 0..count {
            let engine = engines.spawn("127.0.0.1:0")?;
            engines.engines.push(engine);
        }
        Ok(engines)
    }

    fn spawn(&self, address: &str) -> Result<Engine> {
        let program = self.installation.lib.join("pg_eddy_engine");
        let mut command = self.installation.user.command(&program);
        command.args(["--listen", address, "--secret-file"]).arg(&self.secret);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut program = command.spawn().with_context(|| format!("{}", program.display()))?;
        let mut said = String::new();
        if let Some(out) = program.stdout.take() {
            BufReader::new(out).read_line(&mut said)?;
        }
        let address = said.trim().rsplit(' ').next().unwrap_or_default().to_owned();
        ensure!(address.contains(':'), "an engine says {said:?}");
        Ok(Engine { program, address })
    }

    /// Where they listen.
    pub fn addresses(&self) -> Vec<String> {
        self.engines.iter().map(|engine| engine.address.clone()).collect()
    }

    /// The file with their secret.
    pub fn secret(&self) -> &Path {
        &self.secret
    }

    /// What a server has to be told of them.
    pub fn settings(&self) -> [(String, String); 3] {
        [
            ("eddy.engine".to_owned(), "cluster".to_owned()),
            ("eddy.engine_hosts".to_owned(), self.addresses().join(", ")),
            ("eddy.engine_secret_file".to_owned(), self.secret.display().to_string()),
        ]
    }

    /// The process that is the engine of that number.
    pub fn pid(&self, number: usize) -> i32 {
        crate::cluster::process_id(&self.engines[number].program)
    }

    /// Kills an engine.
    pub fn kill(&mut self, number: usize) -> Result<()> {
        let program = &mut self.engines[number].program;
        program.kill()?;
        program.wait()?;
        Ok(())
    }

    /// Starts it again, at the same address.
    pub fn restart(&mut self, number: usize) -> Result<()> {
        self.engines[number] = self.spawn(&self.engines[number].address)?;
        Ok(())
    }
}

impl Drop for Engines {
    fn drop(&mut self) {
        for Engine { program, .. } in &mut self.engines {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

/// A file with a secret, for the user who runs servers.
pub fn write_secret(
    installation: &Installation,
    folder: &Path,
    name: &str,
    secret: &str,
) -> Result<PathBuf> {
    let path = folder.join(name);
    fs::write(&path, secret)?;
    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    installation.user.own(&path)?;
    Ok(path)
}

/// The process that is the engine of a worker, if there is one.
pub fn engine_of(worker: Option<i32>) -> Result<Option<i32>> {
    let Some(worker) = worker else { return Ok(None) };
    for entry in fs::read_dir("/proc")? {
        let folder = entry?.path();
        // Processes come and go.
        let Ok(stat) = fs::read_to_string(folder.join("stat")) else { continue };
        let Some((pid, rest)) = stat.split_once(" (") else { continue };
        let Some((name, rest)) = rest.rsplit_once(") ") else { continue };
        let fields: Vec<&str> = rest.split(' ').collect();
        let is_running = fields.first().is_some_and(|state| *state != "Z");
        if is_running && name == "pg_eddy_engine" && fields.get(1) == Some(&&*worker.to_string()) {
            return Ok(Some(pid.parse()?));
        }
    }
    Ok(None)
}

/// Runs `body` with a build whose servers have their views spread over so many engines.
pub fn with_engines<T>(
    build: &Build,
    count: usize,
    body: impl FnOnce(&Build) -> Result<T>,
) -> Result<T> {
    let private = PrivateInstallation::create(build)?;
    let engines = Engines::start(&private.installation, private.folder(), count)?;
    let mut build = build.clone();
    build.settings.extend(engines.settings());
    body(&build)
}
