//! pgbouncer in transaction mode: the next transaction of a client may run in another session, and is fresh all the same.

use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;

use anyhow::{anyhow, ensure, Context, Result};
use harness::cleanup;
use harness::cluster::{process_id, signal_process, wait_for, Cluster};
use postgres::{Client, Config, NoTls};
use rustix::process::Signal;

use super::scene::{database, expect_right, find_program, folder, number, write_file, PATIENCE};

const PORT: u16 = 6432;
const CLIENTS: i32 = 8;
const ROUNDS: i32 = 40;

/// A pooler that ends with this value.
struct Pooler {
    process: Child,
    config: Config,
}

impl Pooler {
    fn start(cluster: &Cluster, database: &str) -> Result<Pooler> {
        let folder = folder(cluster, "pooler")?;
        let file = folder.join("pgbouncer.ini");
        let text = format!(
            "[databases]\n{database} = host={} port=5432 user=postgres\n[pgbouncer]\n\
             unix_socket_dir = {}\nlisten_port = {PORT}\nauth_type = any\npool_mode = transaction\n\
             default_pool_size = 2\nmax_client_conn = 100\n",
            cluster.socket_folder().display(),
            folder.display()
        );
        write_file(cluster, &file, &text)?;
        let log = std::fs::File::create(folder.join("log"))?;
        let program = find_program("pgbouncer").context("there is no pgbouncer")?;
        let process = cluster
            .installation()
            .user
            .command(&program)
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        cleanup::remember_process(process_id(&process), Signal::TERM);
        let mut config = Config::new();
        config.host_path(&folder).port(PORT).user("postgres").dbname(database);
        let pooler = Pooler { process, config };
        wait_for("pgbouncer to accept connections", PATIENCE, || Ok(pooler.connect().ok()))
            .with_context(|| log_of(&folder))?;
        Ok(pooler)
    }

    fn connect(&self) -> Result<Client> {
        Ok(self.config.connect(NoTls)?)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let pid = process_id(&self.process);
        // It ends at once at this signal, whoever is connected.
        let _ = signal_process(pid, Signal::TERM);
        let _ = self.process.wait();
        cleanup::forget_process(pid);
    }
}

fn log_of(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("log")).unwrap_or_default()
}

pub fn check(cluster: &Cluster) -> Result<()> {
    let mut direct = database(cluster, "pooled")?;
    direct.batch_execute(
        "CREATE TABLE visit (client int, round int, PRIMARY KEY (client, round));
         CREATE INCREMENTAL VIEW visits AS SELECT client, count(*) AS n FROM visit GROUP BY client",
    )?;
    let pooler = Pooler::start(cluster, "pooled")?;
    let mut clients = Vec::new();
    for client in 0..CLIENTS {
        let mut session = pooler.connect()?;
        clients.push(thread::spawn(move || read_own_writes(&mut session, client)));
    }
    for client in clients {
        client.join().map_err(|_| anyhow!("a client panicked"))??;
    }
    let sessions = number(
        &mut direct,
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
         AND backend_type = 'client backend' AND pid <> pg_backend_pid()",
    )?;
    ensure!(sessions <= 2, "{CLIENTS} clients had {sessions} sessions of their own");
    settings_of_a_transaction(&mut pooler.connect()?)?;
    prepared_in_a_transaction(&mut pooler.connect()?)?;
    expect_right(&mut direct, "visits")
}

/// A client sees in each transaction what it has committed in the one before, whichever sessions they ran in.
fn read_own_writes(session: &mut Client, client: i32) -> Result<()> {
    for round in 0..ROUNDS {
        session.batch_execute(&format!("INSERT INTO visit VALUES ({client}, {round})"))?;
        let sql = format!("SELECT n FROM visits WHERE client = {client}");
        let n = simple(session, &sql)?;
        ensure!(n == (round + 1).to_string(), "client {client} read {n} after round {round}");
    }
    Ok(())
}

/// The value of a query that is sent as text.
fn simple(session: &mut Client, sql: &str) -> Result<String> {
    use postgres::SimpleQueryMessage::Row;
    let messages = session.simple_query(sql)?;
    let row = messages.iter().find_map(|message| match message {
        Row(row) => row.get(0),
        _ => None,
    });
    Ok(row.context("no row")?.to_owned())
}

/// What is set for a transaction is for no other client of the session.
fn settings_of_a_transaction(session: &mut Client) -> Result<()> {
    session
        .batch_execute("BEGIN; SET LOCAL eddy.freshness = 'stale'; SELECT * FROM visits; COMMIT")?;
    for _ in 0..4 {
        let freshness = simple(session, "SHOW eddy.freshness")?;
        ensure!(freshness == "fresh", "the session was left {freshness}");
    }
    Ok(())
}

/// A plan that is used again in its transaction reads what is there then.
fn prepared_in_a_transaction(session: &mut Client) -> Result<()> {
    let mut transaction = session.transaction()?;
    let statement = transaction.prepare("SELECT count(*) FROM visits WHERE n > $1")?;
    for _ in 0..10 {
        let n: i64 = transaction.query_one(&statement, &[&0_i64])?.get(0);
        ensure!(n == i64::from(CLIENTS), "{n} clients");
    }
    Ok(transaction.commit()?)
}
