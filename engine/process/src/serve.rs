//! The program: an engine that does what comes over a socket, until that is closed.

use crate::frame;
use crate::lock::lock;
use crate::message::{Command, Event, Packed, Start};
use crate::status::Reporting;
use engine::{Answer, Checkpoints, Config, DataflowId, Embedded, Engine, Evaluation, Response};
use plan::error::DataError;
use plan::row::Row;
use plan::value::Datum;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::io::{self, BufReader, Read, Write};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread;

/// Serves one host: carries out in this thread what it says, and tells it in another one what comes of that.
///
/// # Errors
/// Where the host says something else than a host of this build, or nothing any more: mostly it has ended.
pub fn serve(mut from: impl Read, mut out: impl Write + Send + 'static) -> io::Result<Infallible> {
    frame::greet(&mut out)?;
    frame::require_greeting(&mut from)?;
    serve_known(from, out, |_, config| Embedded::start(config), || None)
}

/// The same for a host that is known to be of this build, with an engine that is started so. It is told at the end if the program
/// leaves it for a reason.
pub(crate) fn serve_known(
    from: impl Read,
    out: impl Write + Send + 'static,
    engine: impl FnOnce(&Start, Config) -> Embedded,
    leaves: impl FnOnce() -> Option<String>,
) -> io::Result<Infallible> {
    let mut from = BufReader::new(from);
    let first = frame::read(&mut from)?;
    let Command::Start(start) = frame::decode(&first)? else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the first command is another one"));
    };
    let (waker, wakes) = sync_channel(1);
    let known = Arc::new(OnceLock::<Weak<Mutex<Server<_>>>>::new());
    let (to_tell, later) = (Arc::clone(&known), waker.clone());
    let engine = engine(&start, config(&start, move || tell_at_once(&to_tell, &later)));
    let server = Arc::new(Mutex::new(Server {
        engine,
        out,
        number: 0,
        unpolled: VecDeque::new(),
        evaluations: BTreeMap::new(),
        asked: 0,
        reporting: Reporting::default(),
        is_over: false,
    }));
    // Nobody else sets it.
    let _ = known.set(Arc::downgrade(&server));
    let telling = Arc::clone(&server);
    // Where nothing can be told any more, nothing comes any more either.
    thread::spawn(move || tell_all(&telling, &wakes));
    let mut carry_out_next = || {
        let command = frame::decode(&frame::read(&mut from)?)?;
        lock(&server).carry_out(command)
    };
    let ended = loop {
        match carry_out_next() {
            Ok(false) => {}
            Ok(true) => drop(waker.try_send(())),
            Err(error) => break error,
        }
    };
    // The engine ends with the last who has it.
    let mut over = lock(&server);
    over.is_over = true;
    if let Some(reason) = leaves() {
        let _ = over.tell(&Event::Leaves { reason }).and_then(|_| over.out.flush());
    }
    drop(over);
    let _ = waker.try_send(());
    Err(ended)
}

fn config(start: &Start, waker: impl Fn() + Send + Sync + 'static) -> Config {
    let Start { workers, max_recursion, memory_limit, output, .. } = *start;
    let spill = start.spill.clone();
    Config {
        workers,
        max_recursion,
        memory_limit,
        spill,
        output,
        waker: Arc::new(waker),
        thread_start: Arc::new(|_| {}),
    }
}

/// Tells what is new in the thread that has it, which saves the way to another one; that one does if somebody is at it already.
fn tell_at_once(server: &OnceLock<Weak<Mutex<Server<impl Write>>>>, later: &SyncSender<()>) {
    let server = server.get().and_then(Weak::upgrade);
    let is_told = server.is_some_and(|server| {
        let mut server = server.try_lock().ok();
        server.as_mut().is_some_and(|server| !server.is_over && server.tell_news().is_ok())
    });
    if !is_told {
        // One that is on its way is enough.
        let _ = later.try_send(());
    }
}

fn tell_all(server: &Mutex<Server<impl Write>>, wakes: &Receiver<()>) -> io::Result<Infallible> {
    loop {
        let due_in = lock(server).reporting.due_in();
        match due_in {
            Some(time) => drop(wakes.recv_timeout(time)),
            None => drop(wakes.recv()),
        }
        let mut server = lock(server);
        if server.is_over {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        server.tell_news()?;
    }
}

struct Server<W> {
    engine: Embedded,
    out: W,
    /// Of the last event.
    number: u64,
    /// Events with output that the host has not polled yet, as far as is known.
    unpolled: VecDeque<(u64, DataflowId, Vec<u8>)>,
    /// What is to be answered.
    evaluations: BTreeMap<u64, Evaluation>,
    asked: u64,
    reporting: Reporting,
    /// Whether the host is gone.
    is_over: bool,
}

impl<W: Write> Server<W> {
    /// Tells what has come of the commands.
    fn tell_news(&mut self) -> io::Result<()> {
        for response in self.engine.poll() {
            self.tell_response(response)?;
        }
        if let Some(status) = self.reporting.status(&self.engine) {
            self.tell(&Event::Status(status))?;
        }
        self.out.flush()
    }

    /// Answers whether a report may be due.
    fn carry_out(&mut self, command: Command) -> io::Result<bool> {
        let is_due = self.reporting.note(&command);
        let engine = &mut self.engine;
        match command {
            Command::Start(_) | Command::Ping => {}
            Command::CreateReading { id, plan, form, reads, as_of } => {
                engine.create_reading(id, (&plan, form), &reads, as_of);
            }
            Command::CreateKept { id, plan, form, from, as_of } => {
                engine.create_kept(id, (&plan, form), from.as_deref(), as_of);
            }
            Command::Save { id, path } => engine.save(id, &path),
            Command::CreateIndex { id, index, reads, as_of } => {
                engine.create_index(id, &index, &reads, as_of);
            }
            Command::CreateSpilling { id, plan, as_of } => {
                engine.create_spilling_dataflow(id, &plan, as_of);
            }
            Command::SetOwner { id, owner } => engine.set_owner(id, owner),
            Command::KeepTimes { id } => engine.keep_times(id),
            Command::Drop { id } => {
                engine.drop_dataflow(id);
                self.forget_asked_by(id);
            }
            Command::Update { id, source, updates } => engine.update(id, source, updates.unpack()),
            Command::UpdateShare { id, source, updates, latest } => {
                engine.note_fed(id, latest);
                engine.update(id, source, updates.unpack());
            }
            Command::Connect { beneath, above, columns, unfed, polled } => {
                self.note_polled(polled);
                let mut unfed = unfed.unpack();
                for (_, _, frame) in self.unpolled.iter().filter(|(_, of, _)| *of == beneath) {
                    if let Event::Deltas { oks, .. } = frame::decode(frame)? {
                        unfed.extend(oks.unpack());
                    }
                }
                self.engine.connect(beneath, above, columns, &unfed);
            }
            Command::Truncate { id, source, time } => engine.truncate(id, source, time),
            Command::AdvanceDataflow { id, time } => engine.advance_dataflow(id, time),
            Command::Advance { time } => engine.advance(time),
            Command::Polled { number } => self.note_polled(number),
            Command::Answer { number, answers } => {
                if let Some(evaluation) = self.evaluations.remove(&number) {
                    let values = |of_one: Vec<_>| of_one.into_iter().map(value).collect();
                    evaluation.answer(answers.into_iter().map(values).collect());
                }
            }
        }
        Ok(is_due)
    }

    /// Nobody wants to know any more what a dataflow has asked.
    fn forget_asked_by(&mut self, id: DataflowId) {
        self.evaluations.retain(|_, evaluation| evaluation.dataflow != id);
    }

    fn note_polled(&mut self, number: u64) {
        while self.unpolled.front().is_some_and(|(of, ..)| *of <= number) {
            self.unpolled.pop_front();
        }
    }

    fn tell_response(&mut self, response: Response) -> io::Result<()> {
        match response {
            Response::Deltas { dataflow, oks, errs, times } => {
                let oks = Packed::pack(&oks);
                let frame = self.tell(&Event::Deltas { dataflow, oks, errs, times })?;
                self.unpolled.push_back((self.number, dataflow, frame));
            }
            Response::Frontier { dataflow, time } => {
                let stats = self.engine.stats(dataflow);
                self.tell(&Event::Frontier { dataflow, time, stats })?;
            }
            Response::Stopped { dataflow, reason } => {
                self.forget_asked_by(dataflow);
                self.tell(&Event::Stopped { dataflow, reason })?;
            }
            Response::Evaluate(evaluation) => {
                self.asked += 1;
                let (number, dataflow) = (self.asked, evaluation.dataflow);
                let questions = evaluation.questions.iter();
                let questions = questions.map(|q| ((*q.call).clone(), q.rows.clone())).collect();
                self.tell(&Event::Evaluate { number, dataflow, questions })?;
                self.evaluations.insert(number, evaluation);
            }
            Response::Saved { dataflow, outcome } => {
                self.tell(&Event::Saved { dataflow, outcome })?;
            }
            // The host finds that out by itself.
            Response::Ended { .. } => {}
        }
        Ok(())
    }

    /// Answers the frame that was sent.
    fn tell(&mut self, event: &Event) -> io::Result<Vec<u8>> {
        let frame = frame::encode(event)?;
        self.out.write_all(&frame)?;
        self.number += 1;
        Ok(frame)
    }
}

/// What a host has answered: a row of one value.
fn value(answer: Result<Row, DataError>) -> Answer {
    answer.map(|row| row.unpack().pop().unwrap_or(Datum::Null))
}
