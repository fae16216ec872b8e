//! A throwaway database cluster: temporary folder, unix socket only, unprivileged user.

mod replicas;

use std::fs;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context, Result};
use postgres::{Client, Config, NoTls};
use rustix::process::{kill_process, Pid, Signal};

use crate::cleanup;
use crate::installation::Installation;
use crate::user::clear_environment;

const START_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
const PORT: u16 = 5432;

/// Settings on top of what every cluster here gets.
pub type Settings<'a> = &'a [(&'a str, &'a str)];

pub struct Cluster {
    installation: Installation,
    folder: PathBuf,
    postmaster: Option<Child>,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Cluster {
    /// Makes a cluster in `folder/name` and starts it. `settings` override the defaults.
    pub fn start_new(
        installation: &Installation,
        folder: &Path,
        name: &str,
        settings: Settings,
    ) -> Result<Cluster> {
        let folder = folder.join(name);
        fs::create_dir(&folder)?;
        installation.user.own(&folder)?;
        let mut cluster = Cluster {
            installation: installation.clone(),
            folder,
            postmaster: None,
            arguments: Vec::new(),
            environment: Vec::new(),
        };
        cluster.init(settings)?;
        cluster.start()?;
        Ok(cluster)
    }

    fn init(&self, settings: Settings) -> Result<()> {
        let output = self
            .installation
            .user
            .command(&self.installation.program("initdb"))
            .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync"])
            .arg("--locale=C.UTF-8")
            .arg("--pgdata")
            .arg(self.data())
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .output()?;
        ensure!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
        let mut text = String::from("\n");
        let socket = self.socket_folder().display().to_string();
        let defaults = [
            ("listen_addresses", ""),
            ("unix_socket_directories", socket.as_str()),
            ("shared_preload_libraries", "pg_eddy"),
            ("wal_level", "logical"),
            ("max_worker_processes", "32"),
            ("max_replication_slots", "32"),
            ("max_wal_senders", "32"),
            ("log_line_prefix", "%m [%p] %b %d "),
            ("timezone", "UTC"),
        ];
        let general = self.installation.settings.iter();
        let general = general.map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in defaults.into_iter().chain(general).chain(settings.iter().copied()) {
            text.push_str(&format!("{name} = '{value}'\n"));
        }
        let file = self.data().join("postgresql.conf");
        Ok(fs::OpenOptions::new().append(true).open(file)?.write_all(text.as_bytes())?)
    }

    /// Starts the postmaster and returns when it accepts connections.
    pub fn start(&mut self) -> Result<()> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let mut child = self.spawn_postmaster()?;
            let pid = process_id(&child);
            // Immediate shutdown: the data is about to be removed.
            cleanup::remember_process(pid, Signal::QUIT);
            loop {
                if self.connect("postgres").is_ok() {
                    self.postmaster = Some(child);
                    return Ok(());
                }
                if child.try_wait()?.is_some() {
                    cleanup::forget_process(pid);
                    break;
                }
                if Instant::now() > deadline {
                    self.postmaster = Some(child);
                    bail!("the server did not start; its log ends with:\n{}", self.log_tail());
                }
                sleep(POLL);
            }
            // After a kill the next postmaster refuses to start as long as children of the last
            // one hold the shared memory.
            let crashed = self.log_tail().contains("pre-existing shared memory block");
            if !crashed || Instant::now() > deadline {
                bail!("the server did not start; its log ends with:\n{}", self.log_tail());
            }
            sleep(POLL);
        }
    }

    fn spawn_postmaster(&self) -> Result<Child> {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.log_file())?;
        Ok(self
            .installation
            .user
            .command(&self.installation.program("postgres"))
            .arg("-D")
            .arg(self.data())
            .args(&self.arguments)
            .envs(self.environment.iter().cloned())
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Its own group: a ctrl-C at the terminal is for us to handle.
            .process_group(0)
            .spawn()?)
    }

    /// Stops the server and starts it with more arguments.
    pub fn restart_with(&mut self, arguments: &[&str]) -> Result<()> {
        self.stop()?;
        self.arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        self.start()
    }

    /// Stops the server and starts it with a variable in its environment.
    pub fn restart_in_environment(&mut self, name: &str, value: &str) -> Result<()> {
        self.stop()?;
        self.environment.push((name.to_owned(), value.to_owned()));
        self.start()
    }

    /// Changes a setting of the running server as an administrator does who cannot connect.
    pub fn configure(&self, name: &str, value: &str) -> Result<()> {
        let file = self.data().join("postgresql.conf");
        let mut file = fs::OpenOptions::new().append(true).open(file)?;
        writeln!(file, "{name} = '{value}'")?;
        let postmaster = self.postmaster.as_ref().context("the server does not run")?;
        signal_process(process_id(postmaster), Signal::HUP)
    }

    /// What the server has logged so far.
    pub fn log(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&fs::read(self.log_file())?).into_owned())
    }

    /// Fast shutdown: sessions are ended, data is written out.
    pub fn stop(&mut self) -> Result<()> {
        self.stop_with(Signal::INT)
    }

    /// Immediate shutdown, as after a failure: recovery runs at the next start.
    pub fn stop_immediately(&mut self) -> Result<()> {
        self.stop_with(Signal::QUIT)
    }

    fn stop_with(&mut self, signal: Signal) -> Result<()> {
        let Some(mut child) = self.postmaster.take() else { return Ok(()) };
        signal_process(process_id(&child), signal)?;
        let deadline = Instant::now() + STOP_TIMEOUT;
        while child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                signal_process(process_id(&child), Signal::KILL)?;
                child.wait()?;
                cleanup::forget_process(process_id(&child));
                bail!("the server did not stop; its log ends with:\n{}", self.log_tail());
            }
            sleep(POLL);
        }
        cleanup::forget_process(process_id(&child));
        Ok(())
    }

    /// kill -9 of the postmaster.
    pub fn kill(&mut self) -> Result<()> {
        let Some(mut child) = self.postmaster.take() else { return Ok(()) };
        child.kill()?;
        let status = child.wait()?;
        cleanup::forget_process(process_id(&child));
        ensure!(status.signal() == Some(Signal::KILL.as_raw()), "the server ended before the kill");
        Ok(())
    }

    /// A new session as superuser.
    pub fn connect(&self, database: &str) -> Result<Client> {
        Ok(self.config(database).connect(NoTls)?)
    }

    /// Another session in the same database.
    pub fn connect_beside(&self, client: &mut Client) -> Result<Client> {
        let database: String = client.query_one("SELECT current_database()::text", &[])?.get(0);
        self.connect(&database)
    }

    /// Sets a setting, and waits until new sessions and `client` have it.
    pub fn configure_and_wait(&self, client: &mut Client, name: &str, value: &str) -> Result<()> {
        self.configure(name, value)?;
        wait_for(&format!("{name} to be set"), START_TIMEOUT, || {
            let found: String = client.query_one(&format!("SHOW {name}"), &[])?.get(0);
            Ok((found == value).then_some(()))
        })
    }

    /// Connects as soon as the server, busy with recovery, lets us.
    pub fn connect_when_ready(&self, database: &str) -> Result<Client> {
        wait_for("the server to accept connections", START_TIMEOUT, || {
            Ok(self.connect(database).ok())
        })
    }

    pub fn config(&self, database: &str) -> Config {
        let mut config = Config::new();
        config
            .host_path(self.socket_folder())
            .port(PORT)
            .user("postgres")
            .dbname(database)
            .application_name("eddy-tests")
            .connect_timeout(Duration::from_secs(10));
        config
    }

    /// A client program of the installation, set up to connect here as superuser.
    pub fn client_program(&self, path: &Path) -> Command {
        let mut command = Command::new(path);
        clear_environment(&mut command);
        command
            .env("PGHOST", self.socket_folder())
            .env("PGPORT", PORT.to_string())
            .env("PGUSER", "postgres");
        command
    }

    pub fn installation(&self) -> &Installation {
        &self.installation
    }

    pub fn socket_folder(&self) -> &Path {
        &self.folder
    }

    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub fn log_file(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Prints what the log says about processes that died; a failed test rarely tells.
    pub fn print_crashes(&self) -> Result<()> {
        const WORDS: [&str; 4] = ["PANIC", "panicked", "aborting", "was terminated by"];
        let text = fs::read(self.log_file())?;
        for line in String::from_utf8_lossy(&text).lines() {
            if WORDS.iter().any(|word| line.contains(word)) {
                println!("server log: {line}");
            }
        }
        Ok(())
    }

    /// The last lines of the server's log, for error messages.
    pub fn log_tail(&self) -> String {
        let text = fs::read(self.log_file()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Err(error) = self.stop_immediately() {
            eprintln!("{error:#}");
        }
        // Folders may already be gone after an interrupt.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Sends a signal to a process by its id.
pub fn signal_process(pid: i32, signal: Signal) -> Result<()> {
    let target = Pid::from_raw(pid).context("not a process id")?;
    Ok(kill_process(target, signal)?)
}

/// Stops a worker while it waits for something to do: in the middle of something it may hold what others wait for.
pub fn stop_at_rest(client: &mut Client, pid: i32) -> Result<()> {
    let rests =
        "SELECT coalesce(wait_event_type = 'Extension', false) FROM pg_stat_get_activity($1)";
    wait_for("the worker to rest", Duration::from_secs(60), || {
        signal_process(pid, Signal::STOP)?;
        let is_at_rest: bool = client.query_one(rests, &[&pid])?.get(0);
        if !is_at_rest {
            signal_process(pid, Signal::CONT)?;
        }
        Ok(is_at_rest.then_some(()))
    })
}

/// Whether a process has been stopped, and not been let go on.
pub fn is_stopped(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
}

/// Asks again until there is an answer; an error when the time is over.
pub fn wait_for<T>(
    what: &str,
    timeout: Duration,
    mut ask: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        ensure!(Instant::now() < deadline, "waited {} s for {what}", timeout.as_secs());
        sleep(POLL);
    }
}

/// A child's id as signals take it.
pub fn process_id(child: &Child) -> i32 {
    i32::try_from(child.id()).expect("process ids are positive and fit")
}
