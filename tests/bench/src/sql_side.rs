//! The SQL side: the query's text through planner and engine, as the extension uses them.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail, ensure, Context, Result};
use engine::{
    as_computed, Config, DataflowId, Embedded, Engine, Form, OutputForm, Response, Updates,
};
use plan::row::Row;
use plan::value::Datum;
use plan::{SourceId, ViewPlan};
use planner::plan_view;
use planner::sql::DdlCatalog;

use crate::checksum::{Checksums, RowHash};
use crate::signal::Signal;
use crate::workload::{Base, History, Side, Time, Workload, FIRST_SWAP, LOAD_TIME};

const VIEW: DataflowId = DataflowId(1);

/// The extension's default.
const MAX_RECURSION: u64 = 10_000;

/// Longest wait for one batch.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// An engine with one view.
pub struct SqlSide<W> {
    workload: Arc<W>,
    /// Per table of the workload, where its rows go.
    sources: Vec<Option<Source>>,
    engine: Box<dyn Engine>,
    signal: Signal,
    ready: Vec<Updates<Row>>,
    frontier: Time,
    output: Updates<Row>,
}

/// A source of the plan: only the columns that the query needs.
struct Source {
    id: SourceId,
    columns: Vec<usize>,
}

/// The plan of a query over tables.
pub fn plan(definitions: &str, query: &str) -> Result<ViewPlan> {
    let catalog = DdlCatalog::parse(definitions).map_err(|error| anyhow!("{error}"))?;
    plan_view(query, &catalog).map_err(|error| anyhow!("{query}: {error}"))
}

impl<W: Workload> SqlSide<W> {
    /// On so many threads of this process.
    pub fn start(workload: Arc<W>, workers: usize) -> Result<SqlSide<W>> {
        SqlSide::start_on(workload, workers, &|config| Ok(Box::new(Embedded::start(config))))
    }

    /// On so many threads of an engine that is started so.
    pub fn start_on(
        workload: Arc<W>,
        workers: usize,
        start: &dyn Fn(Config) -> Result<Box<dyn Engine>>,
    ) -> Result<SqlSide<W>> {
        let plan = plan(W::History::DEFINITIONS, &workload.query())?;
        let source = |table: &&str| {
            let position = plan.sources.iter().position(|source| source.table.name == *table)?;
            let columns = plan.sources[position].columns.clone();
            Some(Source { id: SourceId(position), columns })
        };
        let sources: Vec<_> = W::History::TABLES.iter().map(source).collect();
        let known = sources.iter().flatten().count();
        ensure!(known == plan.sources.len(), "the query reads tables that nobody feeds");
        let signal = Signal::default();
        let waker = signal.clone();
        let mut engine = start(Config {
            workers,
            max_recursion: MAX_RECURSION,
            memory_limit: 0,
            spill: None,
            output: OutputForm::ByTime,
            waker: Arc::new(move || waker.raise()),
            thread_start: Arc::new(|_| ()),
        })?;
        let plan = as_computed(&plan, workers, true);
        engine.create_reading(VIEW, (&plan, Form::of(&plan)), &[], LOAD_TIME);
        let ready = sources.iter().map(|_| Vec::new()).collect();
        Ok(SqlSide { workload, sources, engine, signal, ready, frontier: 0, output: Vec::new() })
    }

    fn prepare(&mut self, base: &Base<W>, time: Time, diff: i64) {
        let (table, values) = W::History::row(base);
        if let Some(source) = &self.sources[table] {
            let row = pack(&values, &source.columns);
            self.ready[table].push((row, time, diff));
        }
    }

    fn poll(&mut self) -> Result<()> {
        for response in self.engine.poll() {
            match response {
                Response::Deltas { oks, errs, .. } => {
                    if let Some((error, time, _)) = errs.first() {
                        bail!("the query raised an error at time {time}: {error:?}");
                    }
                    self.output.extend(oks);
                }
                Response::Frontier { time, .. } => self.frontier = time,
                Response::Stopped { reason, .. } => bail!("the view was stopped: {reason:?}"),
                Response::Saved { .. } => bail!("nobody has asked for that"),
                Response::Evaluate(_) => bail!("a query of the benchmarks asks its host"),
                Response::Ended { reason } => bail!("the engine has ended: {reason}"),
            }
        }
        Ok(())
    }
}

fn pack(values: &[Datum], columns: &[usize]) -> Row {
    Row::pack(columns.iter().map(|column| &values[*column]))
}

impl<W: Workload> Side for SqlSide<W> {
    fn prepare_load(&mut self, rows: Range<u64>) {
        for index in rows {
            let base = self.workload.history().loaded(index);
            self.prepare(&base, LOAD_TIME, 1);
        }
    }

    fn prepare_swaps(&mut self, swaps: Range<u64>) {
        for k in swaps {
            let (removed, inserted) = self.workload.history().swap(k);
            self.prepare(&removed, FIRST_SWAP + k, -1);
            self.prepare(&inserted, FIRST_SWAP + k, 1);
        }
    }

    fn feed(&mut self) {
        for (source, ready) in self.sources.iter().zip(&mut self.ready) {
            if let Some(source) = source {
                self.engine.update(VIEW, source.id, std::mem::take(ready));
            }
        }
    }

    fn advance(&mut self, time: Time) {
        self.engine.advance(time);
    }

    fn wait(&mut self, time: Time) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.poll()?;
            if self.frontier >= time {
                return Ok(());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            ensure!(self.signal.wait(left), "no output at frontier {}", self.frontier);
        }
    }

    fn collect(&mut self, checksums: &mut Checksums) -> Result<()> {
        for (row, time, diff) in self.output.drain(..) {
            let hash = RowHash::of_row(&row).context("a value of a type that is not hashed")?;
            checksums.add(hash, time, diff);
        }
        Ok(())
    }
}
