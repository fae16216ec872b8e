//! What a host has of several engines over which each dataflow is spread.
//!
//! All are told the same in the same order, but for updates, of which each gets a share by the hash of the row. What they put out, each
//! a share again, is told when it is complete in all.

use crate::dial::{self, Purpose};
use crate::message::{Place, Start};
use crate::remote::{Line, Peer, Remote};
use crate::secret::Secret;
use engine::{
    share_of, Config, DataflowId, DataflowStats, Engine, Form, Gathered, Index, OutputForm, Read,
    Response, StopReason, Time, Updates,
};
use plan::row::Row;
use plan::{SourceId, ViewPlan};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What stops a dataflow in one engine is told by it before so long.
const SAID_BY: Duration = Duration::from_secs(1);

/// Engines that listen at these addresses, as one.
pub struct Cluster {
    members: Vec<Member>,
    /// Workers of each dataflow in each engine.
    workers: usize,
    form: OutputForm,
    outputs: BTreeMap<DataflowId, Output>,
    /// Those of which there may be something to tell.
    news: BTreeSet<DataflowId>,
    /// Those that an engine cannot exchange rows of any more, since when, and why. Mostly the one at the other end has stopped it, for
    /// a reason that is on its way.
    lost: BTreeMap<DataflowId, (Instant, String)>,
    /// The time of the last `advance`.
    advanced: Time,
    has_told_end: bool,
}

struct Member {
    address: String,
    engine: Remote,
}

/// What comes of a dataflow.
struct Output {
    gathered: Gathered,
    /// Times to which it was advanced and that it has not been told yet to have reached.
    due: VecDeque<Time>,
    keeps_times: bool,
}

impl Output {
    fn advance(&mut self, time: Time) {
        if self.due.back().map_or(self.gathered.told(), |last| *last) < time {
            self.due.push_back(time);
        }
    }

    fn tell(&mut self, form: OutputForm) -> Vec<Response> {
        let complete_to = self.gathered.frontier();
        let mut frontier = match form {
            OutputForm::ByTime => complete_to,
            OutputForm::Net => self.gathered.told(),
        };
        // Of net updates none may be torn by a frontier.
        while self.due.front().is_some_and(|time| *time <= complete_to) {
            frontier = self.due.pop_front().map_or(frontier, |time| time.max(frontier));
        }
        self.gathered.tell(frontier, form == OutputForm::Net && !self.keeps_times)
    }
}

impl Cluster {
    /// Connects to the engines at these addresses and has them start.
    ///
    /// # Errors
    /// Where one of them is not there, or of another build, or does not have the secret.
    pub fn start(addresses: &[String], secret: &Secret, config: &Config) -> io::Result<Cluster> {
        let mut names = BTreeSet::new();
        if let Some(twice) = addresses.iter().find(|address| !names.insert(*address)) {
            let message = format!("{twice} is named twice");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let mut cluster = [0; size_of::<u64>()];
        getrandom::fill(&mut cluster).map_err(io::Error::other)?;
        let streams = addresses.iter().map(|address| dial::connect(address, secret, Purpose::Host));
        let streams: Vec<TcpStream> = streams.collect::<io::Result<_>>()?;
        let mut members = Vec::with_capacity(addresses.len());
        for (process, (address, stream)) in addresses.iter().zip(streams).enumerate() {
            let mut start = Start::from(config);
            // The host adds up what it is told, when it is complete in all.
            start.output = OutputForm::ByTime;
            let cluster = u64::from_le_bytes(cluster);
            start.place = Some(Place { cluster, process, addresses: addresses.to_vec() });
            let (line, peer) = ends(stream)?;
            let engine = Remote::start(line, peer, start, config)?;
            members.push(Member { address: address.clone(), engine });
        }
        Ok(Cluster {
            members,
            workers: config.workers.max(1),
            form: config.output,
            outputs: BTreeMap::new(),
            news: BTreeSet::new(),
            lost: BTreeMap::new(),
            advanced: 0,
            has_told_end: false,
        })
    }

    /// All that was polled of all dataflows together is complete before this time.
    pub fn frontier(&self) -> Time {
        let told = self.outputs.values().map(|output| output.gathered.told()).min();
        told.unwrap_or(self.advanced)
    }

    fn note_new(&mut self, id: DataflowId, as_of: Time) {
        let gathered = Gathered::new(id, self.members.len(), as_of);
        let mut output = Output { gathered, due: VecDeque::new(), keeps_times: false };
        output.advance(self.advanced);
        self.outputs.insert(id, output);
    }

    fn engines(&mut self) -> impl Iterator<Item = &mut Remote> {
        self.members.iter_mut().map(|member| &mut member.engine)
    }

    /// Divides updates by the hash of their rows.
    fn shares(&self, updates: Updates<Row>) -> Vec<Updates<Row>> {
        let mut shares: Vec<Updates<Row>> = vec![Vec::new(); self.members.len()];
        let all_workers = self.workers * self.members.len();
        for update in updates {
            shares[share_of(&update.0, all_workers) / self.workers].push(update);
        }
        shares
    }

    /// Takes what one of them has told; answers what is the host's to know at once.
    fn receive(&mut self, process: usize, response: Response) -> Option<Response> {
        match response {
            Response::Deltas { dataflow, oks, errs, times } => {
                let output = self.outputs.get_mut(&dataflow)?;
                output.gathered.receive((oks, errs), times);
                None
            }
            Response::Frontier { dataflow, time } => {
                self.outputs.get_mut(&dataflow)?.gathered.reach(process, time);
                self.news.insert(dataflow);
                None
            }
            Response::Stopped { dataflow, reason: StopReason::NotConnected { ref message } } => {
                if self.outputs.contains_key(&dataflow) {
                    let message = format!("{}: {message}", self.members[process].address);
                    self.lost.entry(dataflow).or_insert((Instant::now(), message));
                }
                None
            }
            Response::Stopped { dataflow, .. } => {
                // The first one says why; the others cannot go on without it.
                let is_first = self.outputs.contains_key(&dataflow);
                is_first.then(|| {
                    self.drop_dataflow(dataflow);
                    response
                })
            }
            Response::Evaluate(_) => Some(response),
            // Each has but a share of the state: none is asked to save it.
            Response::Saved { .. } => None,
            Response::Ended { reason } => {
                let first = !std::mem::replace(&mut self.has_told_end, true);
                let address = &self.members[process].address;
                first.then(|| Response::Ended { reason: format!("{address}: {reason}") })
            }
        }
    }

    /// Dataflows of which an engine has lost the connection to another one, and no other engine has said why in time.
    fn take_lost(&mut self) -> Vec<Response> {
        let is_over =
            |_: &DataflowId, (since, _): &mut (Instant, String)| since.elapsed() >= SAID_BY;
        let over: Vec<_> = self.lost.extract_if(.., is_over).collect();
        let stopped = |(dataflow, (_, message))| {
            self.drop_dataflow(dataflow);
            let reason = StopReason::NotConnected { message };
            Response::Stopped { dataflow, reason }
        };
        over.into_iter().map(stopped).collect()
    }
}

fn ends(stream: TcpStream) -> io::Result<(Line, Arc<dyn Peer>)> {
    let (from, to) = (Box::new(stream.try_clone()?), stream.try_clone()?.into());
    Ok((Line { from, to }, Arc::new(stream)))
}

impl Peer for TcpStream {
    fn end(&self) -> Option<String> {
        self.kill();
        None
    }

    fn kill(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl Engine for Cluster {
    fn create_reading(
        &mut self,
        id: DataflowId,
        (plan, form): (&ViewPlan, Form),
        reads: &[Read],
        as_of: Time,
    ) {
        self.engines().for_each(|engine| engine.create_reading(id, (plan, form), reads, as_of));
        self.note_new(id, as_of);
    }

    fn create_index(&mut self, id: DataflowId, index: &Index, reads: &[Read], as_of: Time) {
        self.engines().for_each(|engine| engine.create_index(id, index, reads, as_of));
        self.note_new(id, as_of);
    }

    fn create_spilling_dataflow(&mut self, id: DataflowId, plan: &ViewPlan, as_of: Time) {
        self.engines().for_each(|engine| engine.create_spilling_dataflow(id, plan, as_of));
        self.note_new(id, as_of);
    }

    fn set_owner(&mut self, id: DataflowId, owner: u32) {
        self.engines().for_each(|engine| engine.set_owner(id, owner));
    }

    fn keep_times(&mut self, id: DataflowId) {
        if let Some(output) = self.outputs.get_mut(&id) {
            output.keeps_times = true;
        }
    }

    fn drop_dataflow(&mut self, id: DataflowId) {
        self.outputs.remove(&id);
        self.lost.remove(&id);
        self.engines().for_each(|engine| engine.drop_dataflow(id));
    }

    fn update(&mut self, id: DataflowId, source: SourceId, updates: Updates<Row>) {
        let Some(latest) = updates.iter().map(|(_, time, _)| *time).max() else { return };
        let shares = self.shares(updates);
        for (engine, share) in self.engines().zip(shares) {
            engine.update_share(id, source, &share, latest);
        }
    }

    fn connect(
        &mut self,
        beneath: DataflowId,
        above: (DataflowId, SourceId),
        columns: Vec<usize>,
        unfed: &Updates<Row>,
    ) {
        let mut unfed = unfed.clone();
        // Each engine adds what it has not told; what it has, waits here for others.
        unfed.extend(self.outputs.get(&beneath).map_or(&[][..], |o| o.gathered.untold()).to_vec());
        let shares = self.shares(unfed);
        let advanced = self.advanced;
        for (engine, share) in self.engines().zip(shares) {
            engine.connect(beneath, above, columns.clone(), &share);
            // There may be something in another one.
            engine.note_fed(above.0, advanced);
        }
    }

    fn is_memory_short(&self) -> bool {
        self.members.iter().any(|member| member.engine.is_memory_short())
    }

    fn wait_for_room(&self, id: DataflowId, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let left = || until.saturating_duration_since(Instant::now());
        self.members.iter().all(|member| member.engine.wait_for_room(id, left()))
    }

    fn truncate(&mut self, id: DataflowId, source: SourceId, time: Time) {
        self.engines().for_each(|engine| engine.truncate(id, source, time));
    }

    fn advance_dataflow(&mut self, id: DataflowId, time: Time) {
        self.engines().for_each(|engine| engine.advance_dataflow(id, time));
        self.outputs.get_mut(&id).into_iter().for_each(|output| output.advance(time));
    }

    fn advance(&mut self, time: Time) {
        self.advanced = self.advanced.max(time);
        self.engines().for_each(|engine| engine.advance(time));
        self.outputs.values_mut().for_each(|output| output.advance(time));
    }

    fn flush(&mut self) {
        self.engines().for_each(Engine::flush);
    }

    fn poll(&mut self) -> Vec<Response> {
        let mut responses = Vec::new();
        for process in 0..self.members.len() {
            for response in self.members[process].engine.poll() {
                responses.extend(self.receive(process, response));
            }
        }
        responses.extend(self.take_lost());
        for id in std::mem::take(&mut self.news) {
            let output = self.outputs.get_mut(&id);
            responses.extend(output.into_iter().flat_map(|output| output.tell(self.form)));
        }
        responses
    }

    fn stats(&self, id: DataflowId) -> DataflowStats {
        let of_each = self.members.iter().map(|member| member.engine.stats(id));
        of_each.fold(DataflowStats::default(), |all, one| DataflowStats {
            state_bytes: all.state_bytes + one.state_bytes,
            spilled_bytes: all.spilled_bytes + one.spilled_bytes,
            iterations: all.iterations.max(one.iterations),
        })
    }

    fn allocated(&self) -> usize {
        let theirs = self.members.iter().map(|member| member.engine.allocated_there());
        engine::memory::allocated() + theirs.sum::<usize>()
    }

    fn rows_of_index(&self, id: DataflowId) -> usize {
        self.members.iter().map(|member| member.engine.rows_of_index(id)).sum()
    }
}
