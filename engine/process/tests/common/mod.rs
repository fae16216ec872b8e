//! Programs, and what is computed with them.
#![allow(dead_code)] // Every test file uses its own part of it.

use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A program that listens. Dropping it kills it.
pub struct Listener {
    pub program: Child,
    pub address: String,
}

impl Listener {
    pub fn start(secret: &Path) -> Listener {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pg_eddy_engine"));
        command.args(["--listen", "127.0.0.1:0", "--secret-file"]).arg(secret);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut program = command.spawn().expect("the program is there");
        let mut said = String::new();
        let mut out = BufReader::new(program.stdout.take().expect("its output"));
        out.read_line(&mut said).expect("it says where it listens");
        let address = said.trim().rsplit(' ').next().expect("an address").to_owned();
        Listener { program, address }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// A file with a secret, which is removed at the end.
pub struct SecretFile(pub PathBuf);

impl SecretFile {
    pub fn new(name: &str, secret: &str) -> SecretFile {
        let path = std::env::temp_dir().join(format!("eddy-{name}-{}", std::process::id()));
        std::fs::write(&path, secret).expect("a file");
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("a file of ours");
        SecretFile(path)
    }
}

impl Drop for SecretFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// So many programs that listen, and their addresses.
pub fn listeners(count: usize, secret: &SecretFile) -> (Vec<Listener>, Vec<String>) {
    let listeners: Vec<Listener> = (0..count).map(|_| Listener::start(&secret.0)).collect();
    let addresses = listeners.iter().map(|listener| listener.address.clone()).collect();
    (listeners, addresses)
}
