//! What a host has of an engine in another process, wherever that runs: commands go to it, events come.

use crate::frame;
use crate::lock::lock;
use crate::message::{Command, Event, Packed, Start, Status};
use crate::outbox::Outbox;
use engine::{
    Checkpoints, Config, DataflowId, DataflowStats, Engine, Evaluation, Form, Index, Question,
    Read, Response, Time, Updates,
};
use plan::host::HostCall;
use plan::row::Row;
use plan::{Diff, SourceId, ViewPlan};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufReader, Read as Input};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A program that takes nothing or says nothing for so long does not work any more.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// How often it is asked whether it does.
const PING_EVERY: Duration = Duration::from_secs(1);

/// Pause between two looks at what tells nothing of itself.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Bytes that wait until the program takes what came before, beyond which there is no room for more, either.
const LATE: usize = 64 << 20;

/// Bytes of updates on their way to the program beyond which there is no room for more while its memory is short.
const ON_THEIR_WAY: usize = 1 << 20;

/// The program at the other end, as far as the host can do something about it.
pub(crate) trait Peer: Send + Sync {
    /// Sees it end to which nothing can be told any more; answers how it has, if that is known.
    fn end(&self) -> Option<String>;

    /// Ends it at once.
    fn kill(&self);
}

/// Both ends of what connects host and program.
pub(crate) struct Line {
    pub(crate) from: Box<dyn Input + Send>,
    pub(crate) to: OwnedFd,
}

/// An engine that is another process.
pub struct Remote {
    outbox: Arc<Mutex<Outbox>>,
    inbox: Arc<Mutex<Inbox>>,
    /// The number of the last event that was polled.
    polled: u64,
    /// Updates that may be on their way: the numbers of their commands, and their bytes.
    on_their_way: VecDeque<(u64, usize)>,
    /// When it was asked to say something, which it has not yet, and when it was asked last.
    asked: Option<Instant>,
    pinged: Instant,
    /// Whether the host knows that it has ended.
    has_told_end: bool,
    peer: Arc<dyn Peer>,
}

/// What has come from it.
#[derive(Default)]
struct Inbox {
    events: VecDeque<Event>,
    status: Status,
    figures: BTreeMap<DataflowId, (DataflowStats, usize)>,
    /// When something came last.
    heard: Option<Instant>,
    /// Why nothing comes any more.
    end: Option<String>,
}

impl Remote {
    /// Has a program start its engine that has said it is of this build.
    ///
    /// # Errors
    /// Where the operating system gives no thread.
    pub(crate) fn start(
        line: Line,
        peer: Arc<dyn Peer>,
        start: Start,
        config: &Config,
    ) -> io::Result<Remote> {
        let Line { from, to } = line;
        let inbox = Arc::new(Mutex::new(Inbox::default()));
        let (waker, thread_start) = (Arc::clone(&config.waker), Arc::clone(&config.thread_start));
        let (events, ended) = (Arc::clone(&inbox), Arc::clone(&peer));
        thread::Builder::new().name("engine".into()).spawn(move || {
            thread_start(DataflowId(0));
            let Err(error) = read_events(from, &events, &*waker);
            let reason = ended.end().unwrap_or_else(|| error.to_string());
            lock(&events).end = Some(reason);
            waker();
        })?;
        let thread_start = Arc::clone(&config.thread_start);
        let outbox = Outbox::start(to, move || thread_start(DataflowId(0)))?;
        let mut remote = Remote {
            outbox: Arc::new(Mutex::new(outbox)),
            inbox,
            polled: 0,
            on_their_way: VecDeque::new(),
            asked: None,
            pinged: Instant::now(),
            has_told_end: false,
            peer,
        };
        remote.send(&Command::Start(start));
        Ok(remote)
    }

    /// Feeds the share of updates that is this one's, where others have shares, and tells it how late any of them are.
    pub(crate) fn update_share(
        &mut self,
        id: DataflowId,
        source: SourceId,
        updates: &[(Row, Time, Diff)],
        latest: Time,
    ) {
        let updates = Packed::pack(updates);
        let bytes = updates.bytes();
        self.send_updates(&Command::UpdateShare { id, source, updates, latest }, bytes);
    }

    /// Tells that updates with times up to `latest` were fed to a dataflow, if not here.
    pub(crate) fn note_fed(&mut self, id: DataflowId, latest: Time) {
        let (source, updates) = (SourceId(0), Packed::default());
        self.send(&Command::UpdateShare { id, source, updates, latest });
    }

    /// Bytes that the other process has allocated.
    pub(crate) fn allocated_there(&self) -> usize {
        lock(&self.inbox).status.allocated
    }

    fn send_updates(&mut self, command: &Command, bytes: usize) {
        let number = self.send(command);
        let handled = lock(&self.inbox).status.handled;
        while self.on_their_way.front().is_some_and(|(number, _)| *number <= handled) {
            self.on_their_way.pop_front();
        }
        self.on_their_way.push_back((number, bytes));
    }

    /// Sends a command that makes a dataflow.
    fn send_new(&mut self, id: DataflowId, command: &Command) {
        lock(&self.inbox).figures.insert(id, Default::default());
        self.send(command);
    }

    /// Answers the number of the command.
    fn send(&mut self, command: &Command) -> u64 {
        lock(&self.outbox).send(command)
    }

    /// Makes sure that it works: one that does not is killed.
    fn watch(&mut self, heard: Option<Instant>) {
        if self.asked.is_some_and(|asked| heard.is_some_and(|heard| heard >= asked)) {
            self.asked = None;
        }
        if self.pinged.elapsed() >= PING_EVERY {
            self.send(&Command::Ping);
            self.pinged = Instant::now();
            self.asked.get_or_insert(self.pinged);
        }
        if self.asked.is_some_and(|asked| asked.elapsed() >= PATIENCE) {
            self.peer.kill();
        }
    }

    fn response(&self, event: Event) -> Option<Response> {
        Some(match event {
            Event::Deltas { dataflow, oks, errs, times } => {
                Response::Deltas { dataflow, oks: oks.unpack(), errs, times }
            }
            Event::Frontier { dataflow, time, .. } => Response::Frontier { dataflow, time },
            Event::Stopped { dataflow, reason } => Response::Stopped { dataflow, reason },
            Event::Saved { dataflow, outcome } => Response::Saved { dataflow, outcome },
            Event::Evaluate { number, dataflow, questions } => {
                Response::Evaluate(self.evaluation(number, dataflow, questions))
            }
            Event::Status(_) | Event::Leaves { .. } => return None,
        })
    }

    fn evaluation(
        &self,
        number: u64,
        dataflow: DataflowId,
        questions: Vec<(HostCall, Vec<Row>)>,
    ) -> Evaluation {
        let question = |(call, rows)| Question { call: Arc::new(call), rows };
        let outbox = Arc::clone(&self.outbox);
        Evaluation::new(dataflow, questions.into_iter().map(question).collect(), move |answers| {
            let row = |answer: engine::Answer| answer.map(|value| Row::pack([&value]));
            let rows = |of_one: Vec<_>| of_one.into_iter().map(row).collect();
            let answers = answers.into_iter().map(rows).collect();
            let mut outbox = lock(&outbox);
            outbox.send(&Command::Answer { number, answers });
            outbox.flush();
        })
    }
}

/// Takes what comes, until nothing does.
fn read_events(
    from: impl Input,
    inbox: &Mutex<Inbox>,
    waker: &dyn Fn(),
) -> io::Result<std::convert::Infallible> {
    let mut from = BufReader::new(from);
    loop {
        let event = frame::decode(&frame::read(&mut from)?)?;
        if let Event::Leaves { reason } = event {
            return Err(io::Error::other(reason));
        }
        let is_news = !matches!(event, Event::Status(_));
        let mut inbox = lock(inbox);
        match &event {
            Event::Status(status) => {
                for (dataflow, stats, rows) in &status.stats {
                    // It may have been dropped meanwhile.
                    if let Some(known) = inbox.figures.get_mut(dataflow) {
                        *known = (*stats, *rows);
                    }
                }
                inbox.status.clone_from(status);
            }
            Event::Frontier { dataflow, stats, .. } => {
                if let Some((known, _)) = inbox.figures.get_mut(dataflow) {
                    *known = *stats;
                }
            }
            _ => {}
        }
        inbox.events.push_back(event);
        inbox.heard = Some(Instant::now());
        drop(inbox);
        if is_news {
            waker();
        }
    }
}

impl Checkpoints for Remote {
    fn create_kept(
        &mut self,
        id: DataflowId,
        (plan, form): (&ViewPlan, Form),
        from: Option<&Path>,
        as_of: Time,
    ) {
        let (plan, from) = (plan.clone(), from.map(Path::to_owned));
        self.send_new(id, &Command::CreateKept { id, plan, form, from, as_of });
    }

    fn save(&mut self, id: DataflowId, path: &Path) {
        self.send(&Command::Save { id, path: path.to_owned() });
    }
}

impl Engine for Remote {
    fn create_reading(
        &mut self,
        id: DataflowId,
        (plan, form): (&ViewPlan, Form),
        reads: &[Read],
        as_of: Time,
    ) {
        let (plan, reads) = (plan.clone(), reads.to_vec());
        self.send_new(id, &Command::CreateReading { id, plan, form, reads, as_of });
    }

    fn create_index(&mut self, id: DataflowId, index: &Index, reads: &[Read], as_of: Time) {
        let (index, reads) = (index.clone(), reads.to_vec());
        self.send_new(id, &Command::CreateIndex { id, index, reads, as_of });
    }

    fn create_spilling_dataflow(&mut self, id: DataflowId, plan: &ViewPlan, as_of: Time) {
        self.send_new(id, &Command::CreateSpilling { id, plan: plan.clone(), as_of });
    }

    fn set_owner(&mut self, id: DataflowId, owner: u32) {
        self.send(&Command::SetOwner { id, owner });
    }

    fn keep_times(&mut self, id: DataflowId) {
        self.send(&Command::KeepTimes { id });
    }

    fn drop_dataflow(&mut self, id: DataflowId) {
        self.send(&Command::Drop { id });
        lock(&self.inbox).figures.remove(&id);
    }

    fn update(&mut self, id: DataflowId, source: SourceId, updates: Updates<Row>) {
        let updates = Packed::pack(&updates);
        let bytes = updates.bytes();
        self.send_updates(&Command::Update { id, source, updates }, bytes);
    }

    fn connect(
        &mut self,
        beneath: DataflowId,
        above: (DataflowId, SourceId),
        columns: Vec<usize>,
        unfed: &Updates<Row>,
    ) {
        let (unfed, polled) = (Packed::pack(unfed), self.polled);
        self.send(&Command::Connect { beneath, above, columns, unfed, polled });
    }

    fn is_memory_short(&self) -> bool {
        lock(&self.inbox).status.is_memory_short || lock(&self.outbox).late() > LATE
    }

    fn wait_for_room(&self, id: DataflowId, timeout: Duration) -> bool {
        let has_room = || {
            let inbox = lock(&self.inbox);
            let Status { handled, is_memory_short, crowded, .. } = &inbox.status;
            let is_behind = lock(&self.outbox).late() > LATE;
            let on_their_way = self.on_their_way.iter().filter(|(number, _)| number > handled);
            let bytes: usize = on_their_way.map(|(_, bytes)| bytes).sum();
            !(*is_memory_short || is_behind)
                || inbox.end.is_some()
                || (bytes < ON_THEIR_WAY && !crowded.contains(&id))
        };
        let until = Instant::now() + timeout;
        while !has_room() {
            if Instant::now() >= until {
                return false;
            }
            thread::sleep(LOOK_EVERY);
        }
        true
    }

    fn truncate(&mut self, id: DataflowId, source: SourceId, time: Time) {
        self.send(&Command::Truncate { id, source, time });
    }

    fn advance_dataflow(&mut self, id: DataflowId, time: Time) {
        self.send(&Command::AdvanceDataflow { id, time });
    }

    fn advance(&mut self, time: Time) {
        self.send(&Command::Advance { time });
    }

    fn flush(&mut self) {
        lock(&self.outbox).flush();
    }

    fn poll(&mut self) -> Vec<Response> {
        self.flush();
        let mut inbox = lock(&self.inbox);
        let events = std::mem::take(&mut inbox.events);
        let end = inbox.end.clone().filter(|_| !self.has_told_end);
        let heard = inbox.heard;
        drop(inbox);
        if end.is_none() && !self.has_told_end {
            self.watch(heard);
        }
        self.polled += events.len() as u64;
        let has_output = events.iter().any(|event| matches!(event, Event::Deltas { .. }));
        let mut responses: Vec<Response> =
            events.into_iter().filter_map(|event| self.response(event)).collect();
        if has_output {
            let number = self.polled;
            self.send(&Command::Polled { number });
        }
        if let Some(reason) = end {
            self.has_told_end = true;
            responses.push(Response::Ended { reason });
        }
        responses
    }

    fn stats(&self, id: DataflowId) -> DataflowStats {
        lock(&self.inbox).figures.get(&id).map(|(stats, _)| *stats).unwrap_or_default()
    }

    fn allocated(&self) -> usize {
        engine::memory::allocated() + self.allocated_there()
    }

    /// Files are the program's: it is on the host's own machine.
    fn checkpoints(&mut self) -> Option<&mut dyn Checkpoints> {
        Some(self)
    }

    fn rows_of_index(&self, id: DataflowId) -> usize {
        lock(&self.inbox).figures.get(&id).map_or(0, |(_, rows)| *rows)
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // The program ends at the end of the stream.
        lock(&self.outbox).cut();
        self.peer.end();
    }
}
