//! Who runs the server: the caller, or an unprivileged user when the caller is root (PostgreSQL
//! refuses to run as root).

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{anyhow, Context, Result};

/// Numeric identity that server processes take.
#[derive(Clone, Copy, Debug)]
pub struct ServerUser {
    uid: u32,
    gid: u32,
    switch: bool,
}

impl ServerUser {
    /// The caller itself; for root, `postgres` where that user exists, else `nobody`.
    pub fn find() -> Result<ServerUser> {
        let uid = rustix::process::geteuid();
        if !uid.is_root() {
            let gid = rustix::process::getegid().as_raw();
            return Ok(ServerUser { uid: uid.as_raw(), gid, switch: false });
        }
        let passwd = std::fs::read_to_string("/etc/passwd").context("reading /etc/passwd")?;
        ["postgres", "nobody"]
            .iter()
            .find_map(|name| find_entry(&passwd, name))
            .map(|(uid, gid)| ServerUser { uid, gid, switch: true })
            .ok_or_else(|| anyhow!("neither user \"postgres\" nor \"nobody\" exists"))
    }

    /// A command that runs as this user and inherits no PostgreSQL settings of the caller.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        clear_environment(&mut command);
        if self.switch {
            command.uid(self.uid).gid(self.gid);
        }
        command
    }

    /// Hands a file or folder to this user.
    pub fn own(&self, path: &Path) -> Result<()> {
        if self.switch {
            chown(path, Some(self.uid), Some(self.gid))
                .with_context(|| format!("changing the owner of {}", path.display()))?;
        }
        Ok(())
    }
}

/// Settings such as PGHOST would lead a client elsewhere, and RUST_BACKTRACE would add a
/// backtrace to each error of the server.
pub fn clear_environment(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|n| n.starts_with("PG") || n.starts_with("RUST_")) {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C.UTF-8");
}

fn find_entry(passwd: &str, name: &str) -> Option<(u32, u32)> {
    passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        match fields[..] {
            [user, _, uid, gid, ..] if user == name => Some((uid.parse().ok()?, gid.parse().ok()?)),
            _ => None,
        }
    })
}
