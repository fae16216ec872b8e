//! The engine of the worker: started when the first view needs it, in its threads, as a process of its own or as several on other
//! machines, which may end at any time.

use super::task::STOPPING;
use crate::errors::Error;
use crate::pg::{crash_point, engine_program, markers, process};
use crate::settings::{EngineKind, EngineSettings};
use crate::worker::naming::relid_of;
use engine::{Config, Embedded, Engine, OutputForm};
use engine_process::{Cluster, Remote, Secret};
use std::io;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between the starts of two processes is so long at least, and longer while they end soon.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(10);

/// An engine that has been there for so long is one that does not end soon.
const WELL_AFTER: Duration = Duration::from_secs(10);

/// How often it is looked whether others have answered.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A thread that waits until the engines of a cluster have answered.
type Connecting = JoinHandle<io::Result<Cluster>>;

/// The engine, if it runs.
pub struct Running {
    engine: Option<Box<dyn Engine>>,
    connecting: Option<(Connecting, EngineSettings)>,
    started: Instant,
    /// How long after one has ended the next one is started.
    delay: Duration,
    not_before: Instant,
}

impl Running {
    pub fn new() -> Running {
        let now = Instant::now();
        Running {
            engine: None,
            connecting: None,
            started: now,
            delay: FIRST_DELAY,
            not_before: now,
        }
    }

    pub fn get(&self) -> Option<&dyn Engine> {
        self.engine.as_deref()
    }

    pub fn get_mut(&mut self) -> Option<&mut (dyn Engine + 'static)> {
        self.engine.as_deref_mut()
    }

    /// Lets it begin with what it was told.
    pub fn flush(&mut self) {
        self.get_mut().into_iter().for_each(Engine::flush);
    }

    /// Ends it, if it runs; answers whether it did.
    pub fn end(&mut self) -> bool {
        self.engine.take().is_some()
    }

    /// Starts it if it does not run. Answers why it does not, if that is news, and when it may be over.
    pub fn require(&mut self, settings: &EngineSettings) -> Result<(), (Option<Error>, Instant)> {
        if self.engine.is_some() {
            return Ok(());
        }
        if Instant::now() < self.not_before {
            return Err((None, self.not_before));
        }
        self.started = Instant::now();
        match self.start(settings) {
            Ok(None) => Err((None, Instant::now() + LOOK_EVERY)),
            Ok(Some(engine)) => {
                self.engine = Some(engine);
                Ok(())
            }
            Err(error) => {
                pgrx::log!("pg_eddy: could not start the engine: {error}");
                let again = self.note_ended();
                Err((Some(Error::no_engine(&error.to_string())), again))
            }
        }
    }

    /// Starts an engine whose threads cannot get in the way of PostgreSQL; answers nothing as long as others have not answered.
    fn start(&mut self, settings: &EngineSettings) -> io::Result<Option<Box<dyn Engine>>> {
        let config = config(settings);
        match settings.kind {
            EngineKind::Embedded => Ok(Some(Box::new(Embedded::start(config)))),
            EngineKind::Process => {
                let (program, socket) = engine_program::start(process::database())?;
                let start = || Remote::of_child(program, socket, &config);
                Ok(Some(Box::new(process::with_signals_blocked(start)?)))
            }
            EngineKind::Cluster => {
                let asked = self.connecting.take().filter(|(_, of)| of == settings);
                let asked =
                    asked.map_or_else(|| connect(settings, config), |(asked, _)| Ok(asked))?;
                if !asked.is_finished() {
                    self.connecting = Some((asked, settings.clone()));
                    return Ok(None);
                }
                let lost = |_| Err(io::Error::other("the thread that connects is lost"));
                Ok(Some(Box::new(asked.join().unwrap_or_else(lost)?)))
            }
        }
    }

    /// It has ended, or could not be started; answers when the next one may be started.
    pub fn note_ended(&mut self) -> Instant {
        self.engine = None;
        self.delay = match self.started.elapsed() >= WELL_AFTER {
            true => FIRST_DELAY,
            false => MAX_DELAY.min(2 * self.delay),
        };
        self.not_before = Instant::now() + self.delay;
        self.not_before
    }
}

/// Has a thread connect to the engines of a cluster: the worker has other things to do meanwhile.
fn connect(settings: &EngineSettings, config: Config) -> io::Result<Connecting> {
    let (hosts, file) = (settings.hosts.clone(), settings.secret_file.clone());
    if hosts.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "eddy.engine_hosts is empty"));
    }
    let connect = move || Cluster::start(&hosts, &Secret::read(&file)?, &config);
    process::with_signals_blocked(|| {
        std::thread::Builder::new().name("connect".into()).spawn(connect)
    })
}

fn config(settings: &EngineSettings) -> Config {
    let wake = process::waker();
    Config {
        workers: settings.workers,
        max_recursion: settings.max_recursion,
        memory_limit: settings.memory_limit,
        spill: settings.spill(),
        // But for some views nobody asks which transaction changed which row.
        output: OutputForm::Net,
        waker: Arc::new(move || {
            if !STOPPING.load(SeqCst) {
                wake();
            }
        }),
        thread_start: Arc::new(|dataflow| {
            process::block_signals();
            markers::set_thread(relid_of(dataflow));
            crash_point::reach_in_thread(relid_of(dataflow));
        }),
    }
}
