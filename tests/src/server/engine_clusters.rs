//! Views spread over several engines: what becomes of them when one is killed, stopped, gone for a while or has another secret.

use std::path::Path;

use anyhow::{ensure, Context, Result};
use harness::cluster::{signal_process, wait_for, Cluster};
use harness::engines::{write_secret, Engines};
use harness::installation::Installation;
use postgres::Client;
use rustix::process::Signal;

use super::check::Record;
use super::engine_processes::{expect_error, expect_right, CHANGES, PATIENCE, TABLES, VIEWS};
use super::indexes::terminate_worker;

/// Engines of a cluster.
const COUNT: usize = 3;

pub fn run(installation: &Installation, folder: &Path, record: Record) {
    record("views are spread over engines that may be lost", spread(installation, folder));
}

fn spread(installation: &Installation, folder: &Path) -> Result<()> {
    let mut engines = Engines::start(installation, folder, COUNT)?;
    let settings = engines.settings();
    let mut settings: Vec<(&str, &str)> =
        settings.iter().map(|(name, value)| (&**name, &**value)).collect();
    settings.push(("fsync", "off"));
    let cluster = Cluster::start_new(installation, folder, "spread", &settings)?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(TABLES)?;
    for (name, options, query) in VIEWS {
        client.batch_execute(&format!("CREATE INCREMENTAL VIEW {name} {options} AS {query}"))?;
    }
    computes(&mut client).context("computing")?;
    limited(&cluster, &mut client).context("a view that is stopped")?;
    killed(&cluster, &mut client, &mut engines).context("killed")?;
    gone(&mut client, &mut engines).context("gone for a while")?;
    stopped(&mut client, &mut engines).context("stopped")?;
    terminate_worker(&mut client)?;
    expect_right(&mut client).context("its worker ended")?;
    another_secret(&cluster, installation, folder, &mut client).context("another secret")?;
    cluster.print_crashes()
}

fn computes(client: &mut Client) -> Result<()> {
    expect_right(client)?;
    for change in CHANGES {
        client.batch_execute(change)?;
        expect_right(client).with_context(|| change.to_owned())?;
    }
    Ok(())
}

/// A view that one engine stops is in error for that engine's reason, and the others go on.
fn limited(cluster: &Cluster, client: &mut Client) -> Result<()> {
    cluster.configure_and_wait(client, "eddy.max_recursion", "100")?;
    client.batch_execute(
        "SET eddy.fill = 'dataflow';
         CREATE INCREMENTAL VIEW counted AS WITH RECURSIVE r(n) AS (SELECT src FROM edge UNION ALL SELECT n + 1 FROM r WHERE n < 1000) SELECT * FROM r",
    )?;
    let error = client.batch_execute("TABLE counted").expect_err("it has too many iterations");
    ensure!(error.as_db_error().is_some_and(|error| error.code().code() == "54001"), "{error}");
    client.batch_execute("DROP INCREMENTAL VIEW counted")?;
    expect_right(client)
}

/// All views start afresh when an engine is lost, whichever it is.
fn killed(cluster: &Cluster, client: &mut Client, engines: &mut Engines) -> Result<()> {
    for (number, change) in (0..COUNT).zip(CHANGES) {
        client.batch_execute(change)?;
        engines.kill(number)?;
        client.batch_execute("INSERT INTO edge VALUES (7, 8)")?;
        engines.restart(number)?;
        expect_right(client).with_context(|| format!("without engine {number}"))?;
    }
    let log = cluster.log()?;
    ensure!(log.contains("the engine of this database has ended (127.0.0.1:"), "{log}");
    Ok(())
}

/// Without one of them, views are in error and say so, until it is there again.
fn gone(client: &mut Client, engines: &mut Engines) -> Result<()> {
    engines.kill(1)?;
    client.batch_execute("INSERT INTO edge VALUES (9, 10)")?;
    let state =
        "SELECT message FROM eddy.views WHERE relation = 'joined'::regclass AND state = 'error'";
    let shown: String = wait_for("the error", PATIENCE, || {
        Ok(client.query_opt(state, &[])?.map(|row| row.get(0)))
    })?;
    let expected = "the engine that computes the view could not be started: 127.0.0.1:";
    ensure!(shown.starts_with(expected), "{shown}");
    expect_error(client, expected)?;
    engines.restart(1)?;
    wait_for("the views", PATIENCE, || Ok(client.batch_execute("TABLE joined").ok()))?;
    expect_right(client)
}

/// One that says nothing any more is given up; views wait for it to come back.
fn stopped(client: &mut Client, engines: &mut Engines) -> Result<()> {
    signal_process(engines.pid(2), Signal::STOP)?;
    client.batch_execute("INSERT INTO edge VALUES (11, 12)")?;
    let state =
        "SELECT state FROM eddy.views WHERE relation = 'joined'::regclass AND state = 'error'";
    let left = wait_for("the views to say so", PATIENCE, || Ok(client.query_opt(state, &[])?));
    signal_process(engines.pid(2), Signal::CONT)?;
    left?;
    wait_for("the views", PATIENCE, || Ok(client.batch_execute("TABLE joined").ok()))?;
    expect_right(client)
}

fn another_secret(
    cluster: &Cluster,
    installation: &Installation,
    folder: &Path,
    client: &mut Client,
) -> Result<()> {
    let right: String = client.query_one("SHOW eddy.engine_secret_file", &[])?.get(0);
    let wrong = write_secret(installation, folder, "wrong.secret", "another sesame, twice")?;
    let cases = [
        (&*wrong.display().to_string(), "does not have the same secret"),
        ("missing.secret", "cannot be opened"),
    ];
    for (file, expected) in cases {
        cluster.configure_and_wait(client, "eddy.engine_secret_file", file)?;
        wait_for("the reason", PATIENCE, || {
            let error = client.batch_execute("TABLE joined").err();
            let message = error.as_ref().and_then(|error| Some(error.as_db_error()?.message()));
            Ok(message.is_some_and(|message| message.contains(expected)).then_some(()))
        })?;
    }
    cluster.configure_and_wait(client, "eddy.engine_secret_file", &right)?;
    wait_for("the views", PATIENCE, || Ok(client.batch_execute("TABLE joined").ok()))?;
    expect_right(client)
}
