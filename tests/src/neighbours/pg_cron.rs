//! pg_cron: jobs that write base tables, call functions of the extension, and refresh views. They run at the next full minute, while
//! other checks do.

use std::time::Duration;

use anyhow::{ensure, Result};
use harness::cluster::{wait_for, Cluster};
use postgres::Client;

use super::scene::expect_right;

const JOBS: [&str; 4] = [
    "INSERT INTO tick SELECT coalesce(max(id), 0) + 1 FROM tick",
    "REFRESH INCREMENTAL VIEW ticks",
    "INSERT INTO verdict SELECT missing, surplus FROM eddy.verify_view('ticks')",
    "INSERT INTO seen SELECT n FROM ticks",
];

/// Schedules the jobs, in the only database that it looks at.
pub fn schedule(cluster: &Cluster) -> Result<Client> {
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(
        "SET client_min_messages = warning;
         CREATE EXTENSION pg_eddy;
         CREATE EXTENSION pg_cron;
         CREATE TABLE tick (id int PRIMARY KEY);
         CREATE TABLE verdict (missing bigint, surplus bigint);
         CREATE TABLE seen (n bigint);
         CREATE INCREMENTAL VIEW ticks AS SELECT count(*) AS n FROM tick",
    )?;
    for job in JOBS {
        client.execute("SELECT cron.schedule('* * * * *', $1)", &[&job])?;
    }
    Ok(client)
}

/// What a job may say that holds a view while another one waits to refresh it; that of the next minute goes through.
const MAY_PASS: &str = "%cannot become current while this transaction is open%";

/// Each job has succeeded once.
pub fn finish(client: &mut Client) -> Result<()> {
    let sql = "SELECT count(DISTINCT jobid) FILTER (WHERE status = 'succeeded'),
                   string_agg(return_message, '; ') FILTER (WHERE status = 'failed' AND return_message NOT LIKE $1)
               FROM cron.job_run_details";
    let failures = wait_for("all jobs to have succeeded", Duration::from_secs(200), || {
        let row = client.query_one(sql, &[&MAY_PASS])?;
        let (jobs, failures): (i64, Option<String>) = (row.get(0), row.get(1));
        Ok((jobs == JOBS.len() as i64 || failures.is_some()).then_some(failures))
    })?;
    client.batch_execute("SELECT cron.unschedule(jobid) FROM cron.job")?;
    ensure!(failures.is_none(), "jobs failed: {failures:?}");
    let row =
        client.query_one("SELECT count(*), sum(missing + surplus)::bigint FROM verdict", &[])?;
    let (verdicts, wrong): (i64, i64) = (row.get(0), row.get(1));
    ensure!(verdicts > 0 && wrong == 0, "{verdicts} comparisons found {wrong} rows");
    expect_right(client, "ticks")
}
