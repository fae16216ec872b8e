//! From COMMIT to visible: transactions of one row each, due on a schedule whatever the system does.
//!
//! A transaction's latency counts from the moment it was due to the moment its effect on the view was
//! visible; so it includes the COMMIT, and any delay of the clients. What followed the COMMIT's
//! return is shown beside it.
//!
//! When something was visible is watched from outside and for every transaction: one session asks
//! for the position up to which the views have everything (`eddy.activity.applied_lsn`, published when
//! new snapshots see it), five thousand times a second at most. It reads shared memory, takes no
//! lock, and wakes nobody: a session that waited would keep the worker from its naps. Which position
//! a transaction's commit has is read from the WAL afterwards (`pg_walinspect`). The price of the
//! method: up to one poll's interval is added to each latency, and the polls' share of a core is
//! recorded with the figures.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use harness::cluster::Cluster;
use hdrhistogram::Histogram;
use postgres::Client;
use serde_json::{json, Value};

use super::setting::{verify, wait_for_views, Setting};
use super::subject::{Subject, ALL, VIEW};
use crate::compare::nanoseconds;
use crate::plot::{draw, Line, Panel, Series};
use crate::record::{percentiles, Recorder};
use crate::run::new_histogram;

pub const NAME: &str = "system/latency";

const RATES: [u64; 3] = [100, 1_000, 5_000];
const QUICK_RATES: [u64; 2] = [100, 1_000];
const SECONDS: f64 = 10.0;
const QUICK_SECONDS: f64 = 0.5;
const ROWS: u32 = 1_000_000;
const QUICK_ROWS: u32 = 10_000;

/// Sessions that share the schedule, so that a slow COMMIT does not delay the next transaction.
const SESSIONS: usize = 16;
/// Between two looks at how far the views are.
const POLL: Duration = Duration::from_micros(200);
/// Time for all sessions to prepare their statement before the schedule begins.
const LEAD: Duration = Duration::from_millis(100);

/// One transaction as its client saw it.
struct Sent {
    xid: i64,
    due: Instant,
    returned: Instant,
}

/// What the observer saw: at that moment the views had everything up to that position.
struct Seen {
    at: Instant,
    lsn: u64,
}

/// All that was seen, and what looking cost.
struct Observation {
    seen: Vec<Seen>,
    polls: u64,
    polling: Duration,
    elapsed: Duration,
}

/// All transactions of one rate, in nanoseconds.
struct Measured {
    rate: u64,
    /// Transactions per second from the first scheduled moment to the last COMMIT.
    reached: f64,
    /// From the scheduled moment to visible.
    visible: Histogram<u64>,
    /// From the COMMIT's return to visible.
    after_commit: Histogram<u64>,
    /// From the scheduled moment to the COMMIT's return: what there is without any view.
    commit: Histogram<u64>,
    polls_per_second: f64,
    /// Share of a core, at most: the time during which a poll was under way.
    polling: f64,
}

/// Prints a table, records every rate and draws the percentiles.
pub fn measure(setting: &Setting, recorder: &mut Recorder) -> Result<()> {
    println!("{NAME}: single-row transactions on a schedule; median, 99 %, maximum");
    println!(
        "{:<10} {:>6} {:>8}  {:^29}  {:^29}  {:^29}  {:>12}",
        "view",
        "tx/s",
        "reached",
        "due to visible",
        "COMMIT to visible",
        "due to COMMIT",
        "observer"
    );
    let mut panels = Vec::new();
    for subject in ALL {
        let all = setting
            .with_cluster(&[], |cluster, _| measure_subject(setting, cluster, subject, recorder))?;
        panels.push(panel(subject, &all));
    }
    draw(setting.output, NAME, &panels)
}

fn measure_subject(
    setting: &Setting,
    cluster: &Cluster,
    subject: &Subject,
    recorder: &mut Recorder,
) -> Result<Vec<Measured>> {
    let rows = setting.rows(ROWS, QUICK_ROWS);
    let duration = setting.duration(SECONDS, QUICK_SECONDS)?;
    let mut client = cluster.connect("postgres")?;
    client
        .batch_execute("CREATE EXTENSION pg_walinspect")
        .context("the positions of commits are read by pg_walinspect, a part of PostgreSQL")?;
    subject.create_tables(&mut client, rows)?;
    subject.create_view(&mut client)?;
    let rates = setting.rates(&RATES, &QUICK_RATES);
    // A second beforehand warms caches and plans.
    run_rate(cluster, subject, rows, rates[0], duration.min(Duration::from_secs(1)))?;
    let mut all = Vec::new();
    for rate in rates {
        let measured = run_rate(cluster, subject, rows, rate, duration)?;
        println!("{}", measured.line(subject));
        recorder.write(&measured.describe(subject, rows))?;
        all.push(measured);
    }
    verify(&mut client, VIEW)?;
    Ok(all)
}

fn run_rate(
    cluster: &Cluster,
    subject: &Subject,
    rows: u32,
    rate: u64,
    duration: Duration,
) -> Result<Measured> {
    let count = (rate as f64 * duration.as_secs_f64()).max(1.0) as u64;
    let mut control = cluster.connect("postgres")?;
    let begin: String = control.query_one("SELECT pg_current_wal_insert_lsn()::text", &[])?.get(0);
    let mut observer = cluster.connect("postgres")?;
    let mut clients = Vec::new();
    for _ in 0..SESSIONS.min(usize::try_from(count)?) {
        clients.push(cluster.connect("postgres")?);
    }
    let (is_over, next, start) = (AtomicBool::new(false), AtomicU64::new(0), Instant::now() + LEAD);
    let due = |number: u64| start + Duration::from_secs_f64(number as f64 / rate as f64);
    let take_turn = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|turn| *turn < count);
    let (sent, observation) = scope(|scope| {
        let observer = scope.spawn(|| observe(&mut observer, &is_over));
        let start_sending = |client| {
            scope.spawn(|| send(client, subject, rows, || take_turn().map(|n| (n, due(n)))))
        };
        let senders: Vec<_> = clients.iter_mut().map(start_sending).collect();
        let sent: Vec<Result<Vec<Sent>>> = senders
            .into_iter()
            .map(|sender| sender.join().expect("senders do not panic"))
            .collect();
        let waited = wait_for_views(&mut control);
        is_over.store(true, Ordering::Release);
        let observation = observer.join().expect("the observer does not panic");
        waited.and(Ok((sent, observation)))
    })?;
    let sent: Vec<Vec<Sent>> = sent.into_iter().collect::<Result<_>>()?;
    let sent: Vec<Sent> = sent.into_iter().flatten().collect();
    let commits = commit_positions(&mut control, &begin)?;
    evaluate((rate, start), &sent, &observation?, &commits)
}

/// Sends the transactions whose turn it is, each not before it is due.
fn send(
    client: &mut Client,
    subject: &Subject,
    rows: u32,
    take_turn: impl Fn() -> Option<(u64, Instant)>,
) -> Result<Vec<Sent>> {
    let statement = client.prepare(&subject.change_one())?;
    let mut sent = Vec::new();
    while let Some((number, due)) = take_turn() {
        sleep(due.saturating_duration_since(Instant::now()));
        // A fixed stride visits rows all over the table.
        let id = i32::try_from(1 + number * 7919 % u64::from(rows))?;
        let row = client.query_one(&statement, &[&id])?;
        sent.push(Sent { xid: row.get(0), due, returned: Instant::now() });
    }
    Ok(sent)
}

/// Notes each position of the views with the moment it was seen first, until all is over.
fn observe(client: &mut Client, is_over: &AtomicBool) -> Result<Observation> {
    let statement =
        client.prepare("SELECT (applied_lsn - '0/0'::pg_lsn)::bigint FROM eddy.activity")?;
    let began = Instant::now();
    let (mut seen, mut polls, mut polling) = (Vec::<Seen>::new(), 0, Duration::ZERO);
    loop {
        let is_last = is_over.load(Ordering::Acquire);
        let start = Instant::now();
        let lsn: i64 = client.query_one(&statement, &[])?.get(0);
        let (at, lsn) = (Instant::now(), u64::try_from(lsn)?);
        polls += 1;
        polling += at - start;
        if seen.last().is_none_or(|last| last.lsn < lsn) {
            seen.push(Seen { at, lsn });
        }
        if is_last {
            return Ok(Observation { seen, polls, polling, elapsed: began.elapsed() });
        }
        sleep((start + POLL).saturating_duration_since(at));
    }
}

/// The end of each transaction's commit record since a position.
fn commit_positions(client: &mut Client, since: &str) -> Result<HashMap<i64, u64>> {
    let rows = client.query(
        &format!(
            "SELECT xid::text::bigint, (end_lsn - '0/0'::pg_lsn)::bigint
             FROM pg_get_wal_records_info('{since}', pg_current_wal_flush_lsn())
             WHERE resource_manager = 'Transaction' AND record_type = 'COMMIT'"
        ),
        &[],
    )?;
    rows.iter().map(|row| Ok((row.get(0), u64::try_from(row.get::<_, i64>(1))?))).collect()
}

fn evaluate(
    (rate, start): (u64, Instant),
    sent: &[Sent],
    observation: &Observation,
    commits: &HashMap<i64, u64>,
) -> Result<Measured> {
    let [mut visible, mut after_commit, mut commit] =
        [new_histogram(), new_histogram(), new_histogram()];
    let nanoseconds = |from: Instant, to: Instant| {
        u64::try_from(to.saturating_duration_since(from).as_nanos()).unwrap_or(u64::MAX).max(1)
    };
    for transaction in sent {
        // IDs on record have 32 bits.
        let lsn =
            commits.get(&(transaction.xid & 0xffff_ffff)).context("a COMMIT without record")?;
        let first = observation.seen.partition_point(|seen| seen.lsn < *lsn);
        let seen = observation.seen.get(first).context("a change that was never visible")?;
        visible.saturating_record(nanoseconds(transaction.due, seen.at));
        after_commit.saturating_record(nanoseconds(transaction.returned, seen.at));
        commit.saturating_record(nanoseconds(transaction.due, transaction.returned));
    }
    let last = sent.iter().map(|sent| sent.returned).max().context("nothing was sent")?;
    let elapsed = observation.elapsed.as_secs_f64();
    Ok(Measured {
        rate,
        reached: sent.len() as f64 / (last - start).as_secs_f64(),
        visible,
        after_commit,
        commit,
        polls_per_second: observation.polls as f64 / elapsed,
        polling: observation.polling.as_secs_f64() / elapsed,
    })
}

impl Measured {
    fn line(&self, subject: &Subject) -> String {
        let show = |all: &Histogram<u64>| {
            let [p50, p99] = [0.5, 0.99].map(|quantile| all.value_at_quantile(quantile));
            let [p50, p99, max] = [p50, p99, all.max()].map(|value| nanoseconds(value as f64));
            format!("{p50:>9} {p99:>9} {max:>9}")
        };
        format!(
            "{:<10} {:>6} {:>8.0}  {}  {}  {}  {:>6.0} Hz {:>3.0} %",
            subject.name,
            self.rate,
            self.reached,
            show(&self.visible),
            show(&self.after_commit),
            show(&self.commit),
            self.polls_per_second,
            self.polling * 100.0,
        )
    }

    fn describe(&self, subject: &Subject, rows: u32) -> Value {
        json!({
            "kind": "latency", "name": NAME, "view": subject.name, "rows": rows,
            "offered_per_second": self.rate, "reached_per_second": self.reached,
            "transactions": self.visible.len(),
            "visible_ns": percentiles(&self.visible),
            "after_commit_ns": percentiles(&self.after_commit),
            "commit_ns": percentiles(&self.commit),
            "polls_per_second": self.polls_per_second, "share_polling": self.polling,
        })
    }
}

fn panel(subject: &Subject, all: &[Measured]) -> Panel {
    let mut series = Vec::new();
    for (colour, kind) in ["visible", "COMMIT"].into_iter().enumerate() {
        for (line, quantile, label) in [
            (Line::Solid, 0.5, "median"),
            (Line::Dashed, 0.99, "99 %"),
            (Line::Dotted, 1.0, "maximum"),
        ] {
            let point = |measured: &Measured| {
                let latencies = [&measured.visible, &measured.commit][colour];
                (measured.rate as f64, latencies.value_at_quantile(quantile) as f64)
            };
            let points = all.iter().map(point).collect();
            series.push(Series { label: format!("{kind}, {label}"), colour, line, points });
        }
    }
    Panel {
        title: format!("{NAME}, {} view", subject.name),
        x: "transactions per second",
        y: "time since the transaction was due",
        unit: nanoseconds,
        series,
    }
}
