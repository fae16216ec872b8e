//! What an operator sees: `eddy.check()` finds what is wrong with a server, and the files of `docker/monitoring` work with the
//! programs that they are for. The exporter is scraped as Prometheus does it, and Prometheus' own tool takes rules and board.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use harness::cleanup;
use harness::cluster::{process_id, signal_process, stop_at_rest, wait_for, Cluster};
use harness::installation::Installation;
use harness::user::clear_environment;
use postgres::Client;
use rustix::process::Signal;

use super::check::Record;
use crate::graph::{drop_database, expect_alive, expect_rows, graph_database, worker_pid};

const PATIENCE: Duration = Duration::from_secs(60);

pub fn run(installation: &Installation, folder: &Path, record: Record) {
    record("Prometheus takes the alert rules, and they fire when they must", rules_hold());
    match Cluster::start_new(installation, folder, "monitored", &[("fsync", "off")]) {
        Err(error) => record("a server to monitor", Err(error)),
        Ok(mut cluster) => {
            record("a view that is stuck shows within a scrape", stuck_view_shows(&cluster));
            record("the start of a view shows how far it is", start_shows(&cluster));
            record("eddy.check() finds what is wrong with a worker", check_finds_trouble(&cluster));
            record("eddy.check() finds what is wrong with a server", check_finds(&mut cluster));
        }
    }
}

/// The files of this repository for Prometheus.
fn files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docker/monitoring")
}

/// A program of Prometheus or its exporter, where `make setup` has put them, or that is installed.
fn program(name: &str) -> PathBuf {
    let folder = std::env::var_os("EDDY_MONITORING").map(PathBuf::from).unwrap_or_default();
    Some(folder.join(name)).filter(|path| path.is_file()).unwrap_or_else(|| name.into())
}

fn rules_hold() -> Result<()> {
    for arguments in [
        ["check", "config", "prometheus.yaml"],
        ["check", "rules", "alerts.yaml"],
        ["test", "rules", "alerts.test.yaml"],
    ] {
        let output = Command::new(program("promtool"))
            .args(arguments)
            .current_dir(files())
            .output()
            .context("running promtool, which make setup unpacks")?;
        let (text, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success(), "promtool {arguments:?}: {text}{errors}");
    }
    let rules = fs::read_to_string(files().join("alerts.yaml"))?;
    let tests = fs::read_to_string(files().join("alerts.test.yaml"))?;
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        ensure!(tests.contains(&format!("\"{alert}\"")), "no test makes {alert} fire");
    }
    Ok(())
}

/// A running exporter, until it goes out of scope.
struct Exporter {
    child: Child,
    address: SocketAddr,
}

impl Exporter {
    fn start(cluster: &Cluster, database: &str) -> Result<Exporter> {
        // Free a moment ago; whoever takes it meanwhile makes the test fail, not pass.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let socket = cluster.socket_folder().display();
        let source =
            format!("host={socket} port=5432 user=exporter dbname={database} sslmode=disable");
        let mut command = Command::new(program("prometheus-postgres-exporter"));
        clear_environment(&mut command);
        let child = command
            .arg(format!("--web.listen-address={address}"))
            .arg(format!("--extend.query-path={}", files().join("queries.yaml").display()))
            .args(["--disable-default-metrics", "--disable-settings-metrics"])
            .env("DATA_SOURCE_NAME", source)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("starting the exporter, which make setup unpacks")?;
        cleanup::remember_process(process_id(&child), Signal::KILL);
        let exporter = Exporter { child, address };
        wait_for("the exporter", PATIENCE, || Ok(TcpStream::connect(address).ok()))?;
        Ok(exporter)
    }

    /// The metrics of one scrape, by name and labels.
    fn scrape(&self) -> Result<BTreeMap<String, f64>> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let (head, body) = text.split_once("\r\n\r\n").context("no HTTP answer")?;
        ensure!(head.contains("200"), "the exporter answers {head}");
        let lines = body.lines().filter(|line| !line.starts_with('#'));
        let metric = |line: &str| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((without_server(name), value.parse().ok()?))
        };
        Ok(lines.filter_map(metric).collect())
    }
}

/// The exporter adds a label with the server's address, which is a path here.
fn without_server(name: &str) -> String {
    let Some((name, labels)) = name.split_once('{') else { return name.to_owned() };
    let labels: Vec<&str> = labels
        .trim_end_matches('}')
        .split(',')
        .filter(|label| !label.starts_with("server="))
        .collect();
    match labels.is_empty() {
        true => name.to_owned(),
        false => format!("{name}{{{}}}", labels.join(",")),
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let pid = process_id(&self.child);
        let ended = signal_process(pid, Signal::KILL).and_then(|()| Ok(self.child.wait()?));
        if let Err(error) = ended {
            eprintln!("{error:#}");
        }
        cleanup::forget_process(pid);
    }
}

fn expect_metric(metrics: &BTreeMap<String, f64>, name: &str, value: f64) -> Result<()> {
    let found =
        metrics.get(name).with_context(|| format!("{name} is not among {:?}", metrics.keys()))?;
    ensure!(*found == value, "{name} is {found} instead of {value}");
    Ok(())
}

fn stuck_view_shows(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "monitored")?;
    // A user without any rights but to connect.
    client.batch_execute(
        "CREATE ROLE exporter LOGIN; CREATE INCREMENTAL VIEW sources AS SELECT src FROM edge",
    )?;
    expect_alive(&mut client)?;
    expect_rows(&mut client, "sources", 2)?;
    let exporter = Exporter::start(cluster, "monitored")?;
    let metrics = exporter.scrape()?;
    for (name, value) in [
        ("eddy_view_live{view=\"reach\"}", 1.0),
        ("eddy_view_live{view=\"sources\"}", 1.0),
        ("eddy_view_behind{view=\"reach\"}", 0.0),
        ("eddy_view_rows{view=\"reach\"}", 3.0),
        ("eddy_worker_up", 1.0),
        ("eddy_worker_standby", 0.0),
        ("eddy_worker_starts_total", 1.0),
        ("eddy_check_findings{level=\"error\"}", 0.0),
    ] {
        expect_metric(&metrics, name, value)?;
    }
    expect_board(&metrics)?;
    let mut locker = cluster.connect("monitored")?;
    locker.batch_execute("BEGIN; CREATE INDEX ON reach (a)")?;
    client.batch_execute("INSERT INTO edge VALUES (3, 1)")?;
    // The other view has the row, and so has the worker set this one aside.
    expect_rows(&mut client, "sources", 3)?;
    let metrics = exporter.scrape()?;
    expect_metric(&metrics, "eddy_view_behind{view=\"reach\"}", 1.0)?;
    expect_metric(&metrics, "eddy_view_live{view=\"sources\"}", 1.0)?;
    let lag = metrics.get("eddy_view_lag_bytes{view=\"reach\"}").copied().unwrap_or_default();
    ensure!(lag > 0.0, "the view that is stuck has no lag");
    expect_metric(&metrics, "eddy_view_lag_bytes{view=\"sources\"}", 0.0)?;
    let since = |metrics: &BTreeMap<String, f64>| {
        metrics.get("eddy_view_state_seconds{view=\"reach\"}").copied().unwrap_or_default()
    };
    let first = since(&metrics);
    wait_for("the time in its state to rise", PATIENCE, || {
        Ok((since(&exporter.scrape()?) > first).then_some(()))
    })?;
    let found: i64 = client
        .query_one("SELECT count(*) FROM eddy.check(patience => '0 s') WHERE subject = 'reach' AND message LIKE 'it is behind since%lock%'", &[])?
        .get(0);
    ensure!(found == 1, "eddy.check() does not find the view that is stuck");
    locker.batch_execute("ROLLBACK")?;
    expect_rows(&mut client, "reach", 9)?;
    expect_metric(&exporter.scrape()?, "eddy_view_live{view=\"reach\"}", 1.0)
}

/// Each metric that board and rules name is there.
fn expect_board(metrics: &BTreeMap<String, f64>) -> Result<()> {
    let board = fs::read_to_string(files().join("dashboard.json"))?;
    let rules = fs::read_to_string(files().join("alerts.yaml"))?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let text = format!("{board}{rules}");
    let named = text.split(|c| !is_part(c)).filter(|word| word.starts_with("eddy_"));
    for name in named {
        let is_it = |known: &String| known.split('{').next() == Some(name);
        ensure!(metrics.keys().any(is_it), "there is no metric {name}");
    }
    Ok(())
}

/// A view whose table is locked waits; one that reads tells how many rows.
fn start_shows(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "starting")?;
    client.batch_execute("CREATE TABLE many (a int); INSERT INTO many SELECT generate_series(1, 200000); ANALYZE many")?;
    let mut locker = cluster.connect("starting")?;
    client.batch_execute("CREATE INCREMENTAL VIEW counted AS SELECT a % 10 AS g, count(*) AS n FROM many GROUP BY 1 WITH NO DATA")?;
    expect_rows(&mut client, "counted", 10)?;
    locker.batch_execute("BEGIN; LOCK TABLE many IN ACCESS EXCLUSIVE MODE")?;
    // All views start afresh.
    cluster.configure("eddy.max_recursion", "123456")?;
    let sql = "SELECT state, phase, applied_lsn IS NULL FROM eddy.views WHERE relation = 'counted'::regclass";
    let told = wait_for("the view to wait for the lock", PATIENCE, || {
        let row = client.query_one(sql, &[])?;
        let phase: Option<String> = row.get(1);
        Ok(phase.map(|phase| (row.get::<_, String>(0), phase, row.get::<_, bool>(2))))
    })?;
    ensure!(told == ("attaching".into(), "waiting".into(), true), "a view that waits is {told:?}");
    expect_no_waiting(&mut client)?;
    expect_finding(&mut client, "1 ms", "warning counted: it is attaching since ")?;
    locker.batch_execute("ROLLBACK; BEGIN; REINDEX TABLE edge")?;
    expect_no_waiting(&mut client)?;
    locker.batch_execute("ROLLBACK")?;
    let sql = "SELECT phase, rows_read, rows_estimated, rows_per_second, extract(epoch FROM time_left)::float8 \
               FROM eddy.views WHERE relation = 'counted'::regclass";
    let seen = wait_for("the view to be read", PATIENCE, || {
        let row = client.query_one(sql, &[])?;
        let phase: Option<String> = row.get(0);
        if phase.as_deref() == Some("reading") {
            let (read, estimated): (i64, i64) = (row.get(1), row.get(2));
            let (rate, left): (Option<f64>, Option<f64>) = (row.get(3), row.get(4));
            ensure!(estimated > 150_000 && estimated < 250_000, "{estimated} rows are estimated");
            ensure!(
                read <= 200_000
                    && (read == 0) == rate.is_none()
                    && rate.is_some() == left.is_some(),
                "{read} rows are read, {rate:?} a second, {left:?} s are left"
            );
        }
        // It may have been read between two looks.
        Ok((phase.is_none()).then_some(phase))
    });
    seen?;
    expect_rows(&mut client, "counted", 10)?;
    let row = client.query_one(
        "SELECT starts, state FROM eddy.views WHERE relation = 'counted'::regclass",
        &[],
    )?;
    let (starts, state): (i64, String) = (row.get(0), row.get(1));
    ensure!(starts >= 2 && state == "live", "the view is {state} after {starts} starts");
    let pid: i32 = client.query_one("SELECT pid FROM eddy.activity", &[])?.get(0);
    client.batch_execute(&format!("SELECT pg_terminate_backend({pid})"))?;
    wait_for("the next worker", PATIENCE, || {
        Ok(client.query_opt("SELECT FROM eddy.activity WHERE pid <> $1", &[&pid])?)
    })?;
    expect_rows(&mut client, "counted", 10)?;
    let row = client
        .query_one("SELECT starts, last_end, last_end_at IS NOT NULL FROM eddy.activity", &[])?;
    let (starts, end, at): (i64, Option<String>, bool) = (row.get(0), row.get(1), row.get(2));
    ensure!(
        starts == 2 && end.as_deref() == Some("It was asked to end.") && at,
        "the worker: {starts} starts, {end:?}, at {at}"
    );
    Ok(())
}

/// Whoever looks at a server gets an answer, whatever is locked.
fn expect_no_waiting(client: &mut Client) -> Result<()> {
    client.batch_execute("SET lock_timeout = '2s'")?;
    for what in ["eddy.check()", "eddy.views", "eddy.activity", "eddy.metrics"] {
        let sql = format!("SELECT count(*) FROM {what}");
        client.query_one(&sql, &[]).with_context(|| format!("looking at {what}"))?;
    }
    Ok(client.batch_execute("RESET lock_timeout")?)
}

/// What is found, as `level subject`.
fn findings(client: &mut Client) -> Result<Vec<String>> {
    let rows = client.query(
        "SELECT level || ' ' || subject || ': ' || message, remedy FROM eddy.check()",
        &[],
    )?;
    for row in &rows {
        let remedy: Option<String> = row.get(1);
        ensure!(remedy.is_some_and(|remedy| remedy.ends_with('.')), "there is no remedy");
    }
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Waits until something is found, with so much patience.
fn expect_finding(client: &mut Client, patience: &str, start: &str) -> Result<()> {
    let sql = format!(
        "SELECT level || ' ' || subject || ': ' || message FROM eddy.check(patience => '{patience}')"
    );
    let mut last = Vec::new();
    let found = wait_for(&format!("eddy.check() to find {start}"), PATIENCE, || {
        last = client.query(&sql, &[])?.iter().map(|row| row.get::<_, String>(0)).collect();
        Ok(last.iter().any(|line| line.starts_with(start)).then_some(()))
    });
    found.with_context(|| format!("it finds {last:?}"))
}

fn check_finds_trouble(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "troubled")?;
    expect_alive(&mut client)?;
    // A worker that stands still is behind, and holds back WAL: five segments of 16 MB.
    cluster.configure_and_wait(&mut client, "eddy.max_retained_wal", "100MB")?;
    let pid = worker_pid(&mut client)?.context("there is no worker")?;
    stop_at_rest(&mut client, pid)?;
    let found = (0..5)
        .try_for_each(|_| {
            Ok(client.batch_execute("INSERT INTO edge VALUES (9, 9); SELECT pg_switch_wal()")?)
        })
        .and_then(|()| expect_finding(&mut client, "1 ms", "warning worker: it holds back "))
        .and_then(|()| expect_finding(&mut client, "1 ms", "warning worker: it is "));
    signal_process(pid, Signal::CONT)?;
    found?;
    client.batch_execute("DELETE FROM edge WHERE src = 9")?;
    expect_alive(&mut client)?;
    // So much that the next whole megabyte is near.
    client.batch_execute(
        "CREATE TABLE ballast AS SELECT n FROM generate_series(1, 100000) n;
         CREATE INCREMENTAL VIEW weight AS SELECT DISTINCT n FROM ballast; SELECT FROM weight LIMIT 1",
    )?;
    let sql = "SELECT memory_bytes / (1 << 20) + 1 FROM eddy.activity";
    let limit: i64 = client.query_one(sql, &[])?.get(0);
    cluster.configure_and_wait(&mut client, "eddy.memory_limit", &format!("{limit}MB"))?;
    expect_finding(&mut client, "1 minute", "warning worker: it holds ")?;
    cluster.configure_and_wait(&mut client, "eddy.memory_limit", "-1")?;
    client.batch_execute("DROP INCREMENTAL VIEW weight; DROP TABLE ballast")?;
    check_finds_state_on_disk(cluster, &mut client)?;
    // One that ends by errors, again and again.
    cluster.configure_and_wait(&mut client, "eddy.crash_point", "worker_run=error")?;
    client.batch_execute("SELECT pg_terminate_backend(pid) FROM eddy.activity")?;
    let sql = "SELECT FROM eddy.check(patience => '3 s') WHERE level = 'error' AND subject = 'reach' AND message LIKE \
               'it has not been maintained since %: The worker of this database ended by an error%'";
    wait_for("eddy.check() to find a worker that ends again and again", PATIENCE, || {
        Ok(client.query_opt(sql, &[])?)
    })?;
    client.batch_execute("SELECT FROM eddy.check('1000000 years', '1000000 years')")?;
    cluster.configure_and_wait(&mut client, "eddy.crash_point", "")?;
    expect_finding(&mut client, "1 minute", "warning worker: it ended at ")?;
    let sql = "SELECT last_end FROM eddy.activity";
    let last: String = client.query_one(sql, &[])?.get(0);
    ensure!(last.starts_with("It ended by an error: "), "the end before was: {last}");
    expect_alive(&mut client)?;
    drop(client);
    drop_database(cluster, "troubled")
}

fn check_finds_state_on_disk(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE wide AS SELECT g AS a, md5(g::text) AS b FROM generate_series(1, 300000) g",
    )?;
    cluster.configure_and_wait(client, "eddy.memory_limit", "32MB")?;
    client.batch_execute(
        "CREATE INCREMENTAL VIEW pairs AS SELECT x.a, y.b FROM wide x JOIN wide y USING (a)",
    )?;
    // More than memory may hold, so that some of it stays on disk.
    expect_rows(client, "pairs", 300_000)?;
    expect_finding(client, "1 minute", "notice pairs: ")?;
    // What is being written, and merged, would be beyond a limit that is only just kept.
    let sql = "SELECT pg_sleep(2), spilled_bytes FROM eddy.activity";
    let mut before: i64 = 0;
    let on_disk = wait_for("state to come to rest on disk", PATIENCE, || {
        let now = client.query_one(sql, &[])?.get(1);
        let is_at_rest = std::mem::replace(&mut before, now) == now && now > 8 << 20;
        Ok(is_at_rest.then_some(now))
    })?;
    // More than 80 % of it.
    let limit = on_disk / 100 * 115 / (1 << 20);
    cluster.configure_and_wait(client, "eddy.spill_limit", &format!("{limit}MB"))?;
    expect_finding(client, "1 minute", "warning worker: its views have ")?;
    cluster.configure_and_wait(client, "eddy.spill_limit", "-1")?;
    cluster.configure_and_wait(client, "eddy.memory_limit", "-1")?;
    client.batch_execute("DROP TABLE wide CASCADE")?;
    expect_alive(client)
}

/// Settings of servers, and what is found there. Three databases have a worker, and with the launcher and that of logical
/// replication five places are taken.
const SERVERS: [(&[&str], &[&str]); 4] = [
    (
        &["max_slot_wal_keep_size=64MB", "eddy.memory_limit=0", "eddy.max_views=1"],
        &[
            "warning max_slot_wal_keep_size: ",
            "notice eddy.memory_limit: ",
            "warning eddy.max_views: ",
        ],
    ),
    (
        &["max_replication_slots=3", "max_worker_processes=5", "eddy.max_retained_wal=0"],
        &[
            "warning max_replication_slots: ",
            "warning max_worker_processes: ",
            "warning eddy.max_retained_wal: ",
        ],
    ),
    (&["wal_level=replica"], &["error server: wal_level is not logical"]),
    (&["shared_preload_libraries="], &["error server: pg_eddy is not in shared_preload_libraries"]),
];

fn check_finds(cluster: &mut Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "checked")?;
    expect_alive(&mut client)?;
    let found = findings(&mut client)?;
    ensure!(found.is_empty(), "there is something: {found:?}");
    drop(client);
    for (arguments, expected) in SERVERS {
        let arguments: Vec<&str> = arguments.iter().flat_map(|setting| ["-c", setting]).collect();
        cluster.restart_with(&arguments)?;
        let mut client = cluster.connect("checked")?;
        wait_for(&format!("eddy.check() to find {expected:?}"), PATIENCE, || {
            let found = findings(&mut client)?;
            let has = |start: &&str| found.iter().any(|line| line.starts_with(*start));
            Ok(expected.iter().all(has).then_some(()))
        })?;
        client.batch_execute("SELECT FROM eddy.views; SELECT FROM eddy.metrics")?;
    }
    cluster.restart_with(&[])?;
    let mut client = cluster.connect("checked")?;
    expect_alive(&mut client)?;
    let found = findings(&mut client)?;
    ensure!(found.is_empty(), "there is something after all: {found:?}");
    Ok(())
}
