//! What the threads of a run share: what is disturbed at the moment, what has been seen, what was wrong.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use harness::cluster::Cluster;
use harness::timing::readable;
use postgres::{Client, Config, NoTls};

/// What is away while a disturbance lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Away {
    /// The server: sessions are lost, and the worker is.
    Server,
    /// The worker, or what it needs to start.
    Worker,
    /// Some views, by name.
    Views(Vec<&'static str>),
    /// Rows of the tables of some views, for snapshots from before: PostgreSQL's TRUNCATE, and what writes a table anew, show
    /// them an empty table.
    History(Vec<&'static str>),
}

impl Away {
    fn is_worker(&self) -> bool {
        matches!(self, Away::Server | Away::Worker)
    }
}

/// A disturbance that is going on, or has been.
struct Trouble {
    away: Away,
    over: Option<Instant>,
    /// Whether the witness has been read afterwards.
    is_settled: bool,
}

/// Names a trouble until it is over.
#[derive(Clone, Copy)]
pub struct TroubleId(usize);

/// What is remembered of the last disturbances, to be printed beside a violation.
const REMEMBERED: usize = 30;

/// Violations of a check that come so soon after another one have the same reason, and are printed without what came before.
const SAME_REASON: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Notes {
    recent: VecDeque<String>,
    disturbances: BTreeMap<String, usize>,
    /// By reader and outcome.
    reads: BTreeMap<(&'static str, String), usize>,
    violations: Vec<(&'static str, String)>,
    /// When the last one came.
    last_violation: Option<Instant>,
    /// By what is measured.
    longest: BTreeMap<&'static str, Duration>,
}

pub struct Scene {
    config: Config,
    log: std::path::PathBuf,
    pub began: Instant,
    is_over: AtomicBool,
    are_writers_over: AtomicBool,
    /// The number that was committed last, as the writer knows.
    pub number: AtomicI64,
    troubles: Mutex<Vec<Trouble>>,
    notes: Mutex<Notes>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Scene {
    pub fn new(config: Config, log: std::path::PathBuf) -> Scene {
        Scene {
            config,
            log,
            began: Instant::now(),
            is_over: AtomicBool::new(false),
            are_writers_over: AtomicBool::new(false),
            number: AtomicI64::new(1),
            troubles: Mutex::default(),
            notes: Mutex::default(),
        }
    }

    /// A session of its own name.
    pub fn connect(&self, name: &str) -> Result<Client, postgres::Error> {
        let mut client = self.config.clone().application_name(name).connect(NoTls)?;
        client.batch_execute("SET client_min_messages = warning; SET eddy.read_timeout = '10s'")?;
        Ok(client)
    }

    /// Readers and writers go on until this is true.
    pub fn is_over(&self) -> bool {
        self.is_over.load(SeqCst)
    }

    pub fn end(&self) {
        self.is_over.store(true, SeqCst);
    }

    pub fn are_writers_over(&self) -> bool {
        self.are_writers_over.load(SeqCst)
    }

    pub fn end_writers(&self) {
        self.are_writers_over.store(true, SeqCst);
    }

    /// Prints what happens, with the time since the start.
    pub fn say(&self, what: &str) {
        let line = format!("{:8.3} {what}", self.began.elapsed().as_secs_f64());
        println!("chaos: {line}");
        let mut notes = lock(&self.notes);
        notes.recent.push_back(line);
        if notes.recent.len() > REMEMBERED {
            notes.recent.pop_front();
        }
    }

    pub fn count_disturbance(&self, name: &str) {
        *lock(&self.notes).disturbances.entry(name.to_owned()).or_default() += 1;
    }

    pub fn count_read(&self, reader: &'static str, outcome: &str) {
        *lock(&self.notes).reads.entry((reader, outcome.to_owned())).or_default() += 1;
    }

    pub fn measure(&self, what: &'static str, duration: Duration) {
        let mut notes = lock(&self.notes);
        let longest = notes.longest.entry(what).or_default();
        *longest = duration.max(*longest);
    }

    pub fn begin_trouble(&self, away: Away) -> TroubleId {
        let mut troubles = lock(&self.troubles);
        troubles.push(Trouble { away, over: None, is_settled: false });
        TroubleId(troubles.len() - 1)
    }

    pub fn end_trouble(&self, id: TroubleId) {
        if let Some(trouble) = lock(&self.troubles).get_mut(id.0) {
            trouble.over = Some(Instant::now());
        }
    }

    /// Whether a trouble that satisfies a condition was there at some time since `from`, or until shortly before.
    fn was(&self, from: Instant, grace: Duration, is_meant: impl Fn(&Away) -> bool) -> bool {
        lock(&self.troubles)
            .iter()
            .rev()
            .filter(|trouble| is_meant(&trouble.away))
            .any(|trouble| trouble.over.is_none_or(|over| over + grace >= from))
    }

    /// Whether anything was the matter.
    pub fn was_disturbed(&self, from: Instant, grace: Duration) -> bool {
        self.was(from, grace, |_| true)
    }

    /// Whether sessions could be lost.
    pub fn was_server_away(&self, from: Instant, grace: Duration) -> bool {
        self.was(from, grace, |away| *away == Away::Server)
    }

    pub fn was_worker_away(&self, from: Instant, grace: Duration) -> bool {
        self.was(from, grace, Away::is_worker)
    }

    /// Whether one of these views was attacked.
    pub fn was_attacked(&self, views: &[&str], from: Instant, grace: Duration) -> bool {
        let is_one = |name: &&str| views.contains(name);
        self.was(
            from,
            grace,
            |away| matches!(away, Away::Views(names) if names.iter().any(&is_one)),
        )
    }

    /// Whether rows of tables could be invisible for snapshots that show them.
    pub fn was_history_lost(&self, views: &[&str], from: Instant) -> bool {
        let is_one = |name: &&str| views.contains(name);
        self.was(
            from,
            Duration::ZERO,
            |away| matches!(away, Away::History(names) if names.iter().any(&is_one)),
        )
    }

    /// The witness was read, by a session that waited since `from`. Answers how long it took after the last trouble that
    /// kept the worker or the server away, if the witness had not been read since then; zero if the trouble goes on.
    pub fn settle(&self, from: Instant) -> Option<Duration> {
        let now = Instant::now();
        let mut back: Option<Duration> = None;
        let mut troubles = lock(&self.troubles);
        for trouble in troubles.iter_mut().filter(|t| t.away.is_worker() && !t.is_settled) {
            let since = trouble.over.map_or(Duration::ZERO, |over| now - over.max(from));
            back = Some(back.map_or(since, |back| back.min(since)));
            trouble.is_settled = trouble.over.is_some_and(|over| over <= from);
        }
        back
    }

    /// Notes and prints that something is wrong, with what had happened before.
    pub fn violation(&self, check: &'static str, what: &str) {
        let at = self.began.elapsed().as_secs_f64();
        let text = format!("at {at:.3} s: {what}");
        let mut notes = lock(&self.notes);
        notes.violations.push((check, text.clone()));
        println!("chaos: VIOLATION of \"{check}\" {text}");
        let last = notes.last_violation.replace(Instant::now());
        if last.is_some_and(|last| last.elapsed() < SAME_REASON) {
            return;
        }
        println!("  disturbances before:");
        for line in &notes.recent {
            println!("    {line}");
        }
        println!("  the server's log ends with:\n    {}", self.log_tail().replace('\n', "\n    "));
    }

    fn log_tail(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// Keeps a server's log if it is needed.
    pub fn keep_log(&self, server: &Cluster, file: &std::path::Path) {
        if lock(&self.notes).violations.is_empty() {
            return;
        }
        match std::fs::copy(server.log_file(), file) {
            Ok(_) => println!("chaos: a server's log is in {}", file.display()),
            Err(error) => println!("chaos: a server's log is lost: {error}"),
        }
    }

    /// Violations of a check, the first one in words.
    pub fn violations_of(&self, check: &str) -> Vec<String> {
        let notes = lock(&self.notes);
        let meant = notes.violations.iter().filter(|(of, _)| *of == check);
        meant.map(|(_, text)| text.clone()).collect()
    }

    /// Reads of a reader that ended with an outcome.
    pub fn reads(&self, reader: &str, outcome: &str) -> usize {
        let notes = lock(&self.notes);
        let found = notes.reads.iter().find(|((of, how), _)| *of == reader && how == outcome);
        found.map_or(0, |(_, count)| *count)
    }

    /// What happened, in numbers.
    pub fn print_summary(&self) {
        let notes = lock(&self.notes);
        let counts: Vec<String> =
            notes.disturbances.iter().map(|(name, count)| format!("{name} {count}")).collect();
        println!("chaos: disturbances: {}", counts.join(", "));
        let mut reader = "";
        let mut line = String::new();
        for ((of, outcome), count) in &notes.reads {
            if *of != reader {
                print_unless_empty(&line);
                reader = of;
                line = format!("chaos: {of}: ");
            } else {
                line.push_str(", ");
            }
            line.push_str(&format!("{outcome} {count}"));
        }
        print_unless_empty(&line);
        for (what, longest) in &notes.longest {
            println!("chaos: longest {what}: {}", readable(*longest));
        }
        println!("chaos: {} violations", notes.violations.len());
    }
}

fn print_unless_empty(line: &str) {
    if !line.is_empty() {
        println!("{line}");
    }
}
