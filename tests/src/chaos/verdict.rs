//! When all is quiet again, every view equals its query, nothing is left behind, and the log tells of no end that nobody ordered.

use std::time::Duration;

use anyhow::{ensure, Context, Result};
use harness::cluster::{wait_for, Cluster};
use postgres::Client;

use super::views::View;

/// Compares a view with its query, under locks that keep both as they are.
pub fn expect_right(client: &mut Client, view: &View) -> Result<()> {
    let sql = "SELECT missing, surplus FROM eddy.verify_view($1::text::regclass)";
    let row = client.query_one(sql, &[&view.name]).with_context(|| view.name.to_owned())?;
    let (missing, surplus): (i64, i64) = (row.get(0), row.get(1));
    ensure!(
        (missing, surplus) == (0, 0),
        "\"{}\" misses {missing} rows and has {surplus} surplus rows",
        view.name
    );
    let listed =
        "SELECT state, coalesce(message, '') FROM eddy.views WHERE relation = $1::text::regclass";
    let row = client.query_one(listed, &[&view.name])?;
    let (state, message): (String, String) = (row.get(0), row.get(1));
    ensure!(state == "live", "\"{}\" is {state}: {message}", view.name);
    expect_tables_right(client, view)
}

/// What is beside a view, if something is, comes to its rows.
fn expect_tables_right(client: &mut Client, view: &View) -> Result<()> {
    let name = view.name;
    let tables = format!(
        "SELECT c.relname, c.relname LIKE '%\\_changes' FROM pg_depend d JOIN pg_class c ON c.oid = d.objid \
         WHERE d.refobjid = '{name}'::regclass AND d.deptype = 'i' AND c.relkind = 'r'"
    );
    let columns = format!(
        "SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute \
         WHERE attrelid = '{name}'::regclass AND attnum > 0"
    );
    let columns: String = client.query_one(&columns, &[])?.get(0);
    for row in client.query(&tables, &[])? {
        let (table, has_changes): (String, bool) = (row.get(0), row.get(1));
        let count = if has_changes { "diff" } else { "1" };
        let sql = format!(
            "SELECT count(*) FROM (SELECT FROM (SELECT {columns}, 1 AS times FROM {name} \
             UNION ALL SELECT {columns}, -{count} FROM {table}) q GROUP BY {columns} HAVING sum(times) <> 0) d"
        );
        let differences: i64 = client.query_one(&sql, &[]).with_context(|| sql.clone())?.get(0);
        ensure!(differences == 0, "{table} differs from \"{name}\" in {differences} rows");
    }
    Ok(())
}

/// What there must be one of when all is quiet, or none.
const LEFT: [(&str, &str, i64); 5] = [
    ("workers", "FROM pg_stat_activity WHERE backend_type = 'pg_eddy worker'", 1),
    ("launchers", "FROM pg_stat_activity WHERE backend_type = 'pg_eddy launcher'", 1),
    ("logical slots", "FROM pg_replication_slots WHERE slot_type = 'logical'", 1),
    ("views set aside", "FROM eddy.view_states", 0),
    ("prepared transactions", "FROM pg_prepared_xacts", 0),
];

/// One launcher, one worker, one slot; no view is away.
pub fn expect_nothing_left(client: &mut Client) -> Result<()> {
    for (what, from, wanted) in LEFT {
        let sql = format!("SELECT count(*) {from}");
        wait_for(&format!("{wanted} {what}"), Duration::from_secs(30), || {
            let found: i64 = client.query_one(&sql, &[])?.get(0);
            Ok((found == wanted).then_some(()))
        })?;
    }
    Ok(())
}

/// Words that no disturbance puts into the log: kills send signals 9, crash points 6, and their panics name them.
const ALARMS: [&str; 8] = [
    "PANIC",
    "panicked at",
    "terminated by signal 4",
    "terminated by signal 7",
    "terminated by signal 8",
    "terminated by signal 11",
    " leak",
    "could not find tuple",
];

/// Nothing in the log is our bug.
pub fn expect_quiet_log(cluster: &Cluster) -> Result<()> {
    let log = cluster.log()?;
    let is_alarm = |line: &&str| {
        ALARMS.iter().any(|alarm| line.contains(alarm)) && !line.contains("crash_point")
    };
    let alarms: Vec<&str> = log.lines().filter(is_alarm).take(5).collect();
    ensure!(alarms.is_empty(), "the log has {}", alarms.join("\n"));
    Ok(())
}
