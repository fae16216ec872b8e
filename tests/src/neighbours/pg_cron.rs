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

/// Each job has succeeded once.
pub fn finish(client: &mut Client) -> Result<()> {
    let sql = "SELECT count(DISTINCT jobid), string_agg(return_message, '; ') FILTER (WHERE status = 'failed')
               FROM cron.job_run_details WHERE status IN ('succeeded', 'failed')";
    let failures = wait_for("all jobs to have run", Duration::from_secs(150), || {
        let row = client.query_one(sql, &[])?;
        let (jobs, failures): (i64, Option<String>) = (row.get(0), row.get(1));
        Ok((jobs == JOBS.len() as i64).then_some(failures))
    })?;
    client.batch_execute("SELECT cron.unschedule(jobid) FROM cron.job")?;
    ensure!(failures.is_none(), "jobs failed: {failures:?}");
    let row =
        client.query_one("SELECT count(*), sum(missing + surplus)::bigint FROM verdict", &[])?;
    let (verdicts, wrong): (i64, i64) = (row.get(0), row.get(1));
    ensure!(verdicts > 0 && wrong == 0, "{verdicts} comparisons found {wrong} rows");
    expect_right(client, "ticks")
}
