//! Start: how soon views over large tables can be read again after the server or their worker has started, and for the
//! first time after CREATE.
//!
//! Each view is created by itself, and base rows per second are counted from the end of CREATE, which has filled
//! it, to the end of its first read. Then there are all three, and the server, or the worker alone, is started anew: a
//! session for each view reads it as soon as it can. The same once more where their state has been saved, and where they are computed
//! by a process of its own, which is killed while somebody changes the tables, too.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::scope;
use std::time::{Duration, Instant};

use anyhow::{ensure, Result};
use harness::cluster::{signal_process, wait_for, Cluster, Settings};
use harness::engines::engine_of;
use harness::timing::{median, readable, timed};
use postgres::Client;
use rustix::process::Signal;
use serde_json::{json, Map};

use super::orders;
use super::setting::{verify, Setting};
use super::subject::RECURSIVE;
use crate::record::Recorder;

pub const NAME: &str = "system/start";

const ROWS: u32 = 5_000_000;
const QUICK_ROWS: u32 = 20_000;
/// The state of all views is saved at the latest then.
const SAVED_WITHIN: Duration = Duration::from_secs(120);

/// Orders for each edge of the graph.
const ORDERS_PER_EDGE: u32 = 5;

/// A view: of which kind, and what it is called.
struct View {
    name: &'static str,
    relation: &'static str,
    query: &'static str,
    tables: &'static [&'static str],
}

const VIEWS: [View; 3] = [
    View {
        name: "aggregate",
        relation: "takings",
        query:
            "SELECT status, count(*) AS orders, sum(amount) AS total FROM orders GROUP BY status",
        tables: &["orders"],
    },
    View {
        name: "join",
        relation: "order_names",
        query: "SELECT o.id, o.amount, c.name FROM orders o JOIN customers c ON c.id = o.customer",
        tables: &["orders", "customers"],
    },
    View { name: "recursion", relation: "reached", query: RECURSIVE.query, tables: &["edge"] },
];

/// What the views come back from.
#[derive(Clone, Copy)]
enum Event {
    /// Of the server, counted from before its start.
    Restart,
    /// Of the worker, counted from before it is told to end.
    Termination,
    /// Of the process that computes the views, counted from before it is killed.
    EngineKill,
}

impl Event {
    fn as_str(self) -> &'static str {
        match self {
            Event::Restart => "restart",
            Event::Termination => "termination",
            Event::EngineKill => "engine kill",
        }
    }
}

/// One way from CREATE to the first read.
struct Created {
    creation: Duration,
    attach: Duration,
}

/// Prints tables and records every start.
pub fn measure(setting: &Setting, recorder: &mut Recorder) -> Result<()> {
    let orders = setting.rows(ROWS, QUICK_ROWS);
    println!("{NAME}: views over {orders} orders");
    let ends = [Event::Restart, Event::Termination];
    measure_with(setting, &[], (orders, &ends), recorder)?;
    println!("with checkpoints:");
    let saved = ("eddy.checkpoint_wal", "1GB");
    measure_with(setting, &[saved], (orders, &ends), recorder)?;
    println!("with checkpoints, in a process:");
    let of_process = [Event::Restart, Event::EngineKill];
    let settings = [saved, ("eddy.engine", "process")];
    measure_with(setting, &settings, (orders, &of_process), recorder)?;
    println!();
    Ok(())
}

fn measure_with(
    setting: &Setting,
    settings: Settings,
    (orders, events): (u32, &[Event]),
    recorder: &mut Recorder,
) -> Result<()> {
    setting.with_cluster(settings, |cluster, _| {
        let mut client = connect(cluster)?;
        client.batch_execute("CREATE EXTENSION pg_eddy")?;
        orders::create_tables(&mut client, orders)?;
        RECURSIVE.add_tables(&mut client, (orders / ORDERS_PER_EDGE).max(1))?;
        if settings.is_empty() {
            measure_creation(setting, &mut client, recorder)?;
        }
        for view in &VIEWS {
            create(&mut client, view)?;
            read(&mut client, view)?;
        }
        drop(client);
        let checkpoint = format!(": {} views", VIEWS.len());
        if !settings.is_empty() {
            wait_for("a checkpoint", SAVED_WITHIN, || {
                let log = cluster.log()?;
                let mut checkpoints = log.lines().filter(|line| line.contains("checkpoint at"));
                Ok(checkpoints.any(|line| line.contains(&checkpoint)).then_some(()))
            })?;
        }
        measure_returns(setting, cluster, (orders, settings, events), recorder)?;
        let mut client = connect(cluster)?;
        VIEWS.iter().try_for_each(|view| verify(&mut client, view.relation))
    })
}

fn connect(cluster: &Cluster) -> Result<Client> {
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("SET client_min_messages = warning; SET eddy.read_timeout = '10min'")?;
    Ok(client)
}

// ---- the first time, each view by itself -----------------------------------------------------

fn measure_creation(setting: &Setting, client: &mut Client, recorder: &mut Recorder) -> Result<()> {
    println!(
        "{:<10} {:>9} {:>9} {:>9} {:>9} {:>10} {:>21}",
        "view", "base rows", "CREATE", "attach", "readable", "rows/s", "spread"
    );
    for view in &VIEWS {
        let base_rows = view.base_rows(client)?;
        // Sets the replica identity, and warms the caches.
        create(client, view)?;
        let mut all = Vec::new();
        for run in 0..setting.pairs() {
            client.batch_execute(&format!("DROP MATERIALIZED VIEW {}", view.relation))?;
            let created = create(client, view)?;
            recorder.write(&json!({
                "kind": "start attach", "name": NAME, "view": view.name, "base_rows": base_rows,
                "run": run, "create_seconds": created.creation.as_secs_f64(),
                "attach_seconds": created.attach.as_secs_f64(),
                "seconds": (created.creation + created.attach).as_secs_f64(),
                "rows_per_second": base_rows as f64 / created.attach.as_secs_f64(),
            }))?;
            all.push(created);
        }
        verify(client, view.relation)?;
        client.batch_execute(&format!("DROP MATERIALIZED VIEW {}", view.relation))?;
        print_creation(view, base_rows, &all);
    }
    Ok(())
}

fn create(client: &mut Client, view: &View) -> Result<Created> {
    let View { relation, query, .. } = view;
    let statement = format!("CREATE INCREMENTAL VIEW {relation} AS {query}");
    let creation = timed(|| Ok(client.batch_execute(&statement)?))?.1;
    let attach = timed(|| read(client, view))?.1;
    Ok(Created { creation, attach })
}

/// A fresh read, which waits until the view follows its tables.
fn read(client: &mut Client, view: &View) -> Result<()> {
    let rows = client.execute(&format!("SELECT FROM {} LIMIT 1", view.relation), &[])?;
    ensure!(rows == 1, "{} is empty", view.name);
    Ok(())
}

impl View {
    fn base_rows(&self, client: &mut Client) -> Result<i64> {
        let counts = self.tables.iter().map(|table| format!("(SELECT count(*) FROM {table})"));
        let sum = counts.collect::<Vec<String>>().join(" + ");
        Ok(client.query_one(&format!("SELECT {sum}"), &[])?.get(0))
    }
}

fn print_creation(view: &View, base_rows: i64, all: &[Created]) {
    let times = |time: &dyn Fn(&Created) -> Duration| {
        readable(median(&all.iter().map(time).collect::<Vec<Duration>>()))
    };
    let rate = |created: &Created| base_rows as f64 / created.attach.as_secs_f64();
    let rates: Vec<f64> = all.iter().map(rate).collect();
    println!(
        "{:<10} {base_rows:>9} {:>9} {:>9} {:>9} {:>10.0} {:>9.0} – {:>9.0}",
        view.name,
        times(&|created| created.creation),
        times(&|created| created.attach),
        times(&|created| created.creation + created.attach),
        median(&rates),
        rates.iter().copied().fold(f64::INFINITY, f64::min),
        rates.iter().copied().fold(0.0, f64::max),
    );
}

// ---- all views, once more --------------------------------------------------------------------

fn measure_returns(
    setting: &Setting,
    cluster: &mut Cluster,
    (orders, settings, events): (u32, Settings, &[Event]),
    recorder: &mut Recorder,
) -> Result<()> {
    let [first, second, third] = VIEWS.map(|view| view.name);
    println!(
        "{:<12} {:>9} {first:>9} {second:>9} {third:>9} {:>9}  {:<19}",
        "after", "ready", "all", "spread"
    );
    for event in events.iter().copied() {
        let mut returns = Vec::new();
        for run in 0..setting.pairs() {
            let back = come_back(cluster, event)?;
            let views = VIEWS.iter().zip(&back.views);
            let views = views.map(|(view, time)| (view.name.to_owned(), json!(time.as_secs_f64())));
            recorder.write(&json!({
                "kind": "start", "name": NAME, "after": event.as_str(), "orders": orders,
                "are_saved": !settings.is_empty(), "is_process": settings.len() > 1,
                "run": run, "ready_seconds": back.ready.as_secs_f64(),
                "seconds": views.collect::<Map<_, _>>(), "all_seconds": back.all().as_secs_f64(),
            }))?;
            returns.push(back);
        }
        print_returns(event, &returns);
    }
    println!("(ready: the server takes connections, or the former worker is gone)");
    Ok(())
}

/// Times since the event began.
struct Return {
    ready: Duration,
    /// The end of each view's first read.
    views: [Duration; VIEWS.len()],
}

impl Return {
    fn all(&self) -> Duration {
        self.views.into_iter().max().unwrap_or_default()
    }
}

fn come_back(cluster: &mut Cluster, event: Event) -> Result<Return> {
    let start = match event {
        Event::Restart => {
            cluster.stop()?;
            let start = Instant::now();
            cluster.start()?;
            start
        }
        Event::Termination => terminate_worker(cluster)?,
        Event::EngineKill => kill_engine(cluster)?,
    };
    let ready = start.elapsed();
    let connections = VIEWS.map(|view| (connect(cluster), view));
    let is_over = AtomicBool::new(false);
    let views = scope(|scope| {
        if let Event::EngineKill = event {
            scope.spawn(|| change_until(cluster, &is_over));
        }
        let readers = connections.map(|(client, view)| {
            scope.spawn(move || -> Result<Duration> {
                read(&mut client?, &view)?;
                Ok(start.elapsed())
            })
        });
        let times = readers.map(|reader| reader.join().expect("no reader panics"));
        is_over.store(true, SeqCst);
        times.into_iter().collect::<Result<Vec<Duration>>>()
    })?;
    let views = views.try_into().expect("there is a time for each view");
    Ok(Return { ready, views })
}

/// Ends the worker and waits until it is gone, so that nothing is read that it had before. When it was told to.
fn terminate_worker(cluster: &Cluster) -> Result<Instant> {
    let mut client = connect(cluster)?;
    let pid: i32 = client.query_one("SELECT pid FROM eddy.activity", &[])?.get(0);
    let start = Instant::now();
    let row = client.query_one("SELECT pg_terminate_backend($1, 60000)", &[&pid])?;
    ensure!(row.get::<_, bool>(0), "the worker did not end within a minute");
    Ok(start)
}

/// Changes the tables, and kills the process that computes the views. When it was killed.
fn kill_engine(cluster: &Cluster) -> Result<Instant> {
    let mut client = connect(cluster)?;
    change_some(&mut client)?;
    VIEWS.iter().try_for_each(|view| read(&mut client, view))?;
    let worker: i32 = client.query_one("SELECT pid FROM eddy.activity", &[])?.get(0);
    let engine = wait_for("an engine", SAVED_WITHIN, || engine_of(Some(worker)))?;
    change_some(&mut client)?;
    let start = Instant::now();
    signal_process(engine, Signal::KILL)?;
    // What readers wait for it cannot have computed.
    change_some(&mut client)?;
    Ok(start)
}

/// Transactions that every view sees.
fn change_some(client: &mut Client) -> Result<()> {
    for n in 1..=100 {
        client.batch_execute(&format!(
            "UPDATE orders SET amount = amount + 1 WHERE id = {n} * 7; UPDATE edge SET {} WHERE id = {n} * 5",
            RECURSIVE.assignment
        ))?;
    }
    Ok(())
}

fn change_until(cluster: &Cluster, is_over: &AtomicBool) -> Result<()> {
    let mut client = connect(cluster)?;
    while !is_over.load(SeqCst) {
        change_some(&mut client)?;
    }
    Ok(())
}

fn print_returns(event: Event, returns: &[Return]) {
    let middle = |time: &dyn Fn(&Return) -> Duration| {
        readable(median(&returns.iter().map(time).collect::<Vec<Duration>>()))
    };
    let all = || returns.iter().map(Return::all);
    println!(
        "{:<12} {:>9} {:>9} {:>9} {:>9} {:>9}  {:>8} – {:>8}",
        event.as_str(),
        middle(&|back| back.ready),
        middle(&|back| back.views[0]),
        middle(&|back| back.views[1]),
        middle(&|back| back.views[2]),
        middle(&Return::all),
        readable(all().min().unwrap_or_default()),
        readable(all().max().unwrap_or_default()),
    );
}
