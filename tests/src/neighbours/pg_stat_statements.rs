//! `pg_stat_statements`: what users have sent, and with `track = all` what their functions have; nothing of ours.

use anyhow::{ensure, Result};
use harness::cluster::Cluster;

use super::scene::{database, run_session, IN_FUNCTION, LONG_READ, SESSION};

/// What the check itself sends, and PostgreSQL for foreign keys.
const OTHERS: [&str; 4] =
    ["SELECT pg_stat_statements_reset()", "SHOW ", "SELECT pid FROM", "SELECT $2 FROM ONLY"];

pub fn check(cluster: &Cluster) -> Result<()> {
    let mut client = database(cluster, "counted")?;
    client.batch_execute("CREATE EXTENSION pg_stat_statements")?;
    client.execute("SELECT pg_stat_statements_reset()", &[])?;
    run_session(cluster, &mut client, "counted")?;
    let tracks: String = client.query_one("SHOW pg_stat_statements.track", &[])?.get(0);
    let sql = "SELECT query FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
               WHERE d.datname = current_database()";
    let seen = client.query(sql, &[])?;
    let seen: Vec<&str> = seen.iter().map(|row| row.get(0)).collect();
    for query in &seen {
        let begins_as = |text: &&str| query.starts_with(*text);
        // Constants are numbered parameters: the beginnings are as they were written.
        let beginnings = SESSION.iter().chain([&LONG_READ]).map(|text| &text[..14]);
        let is_users = beginnings.chain(OTHERS).any(|text| begins_as(&text))
            || tracks == "all" && query.starts_with(IN_FUNCTION);
        ensure!(is_users, "no user has sent: {query}");
    }
    for part in [
        "REFRESH INCREMENTAL",
        "REFRESH MATERIALIZED",
        "EXPLAIN CREATE INCREMENTAL",
        "CREATE OR REPLACE INCREMENTAL",
        "UPDATE word",
        "SELECT sum(pages)",
        LONG_READ,
    ] {
        ensure!(seen.iter().any(|query| query.starts_with(part)), "{part} is not there");
    }
    Ok(())
}
