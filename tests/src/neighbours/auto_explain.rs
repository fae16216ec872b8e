//! `auto_explain`: plans of what users have sent, and of what their functions have where it shall; nothing of ours.

use anyhow::{ensure, Result};
use harness::cluster::Cluster;

use super::scene::{database, entries_since, run_session, IN_FUNCTION, LONG_READ, SESSION};

pub fn check(cluster: &Cluster) -> Result<()> {
    let mut client = database(cluster, "explained")?;
    let before = cluster.log()?.len();
    run_session(cluster, &mut client, "explained")?;
    let is_nested: String =
        client.query_one("SHOW auto_explain.log_nested_statements", &[])?.get(0);
    let entries = entries_since(cluster, before)?;
    let mut seen = Vec::new();
    for entry in entries.iter().filter(|entry| entry.contains("Query Text: ")) {
        let is_session = entry.contains(" client backend explained ");
        let is_worker = entry.contains(" pg_eddy ");
        let Some((_, text)) = entry.split_once("Query Text: ") else { continue };
        let is_in_function = is_nested == "on" && text.starts_with(IN_FUNCTION);
        ensure!(!is_worker || is_in_function, "a worker has explained: {entry}");
        let texts = SESSION.iter().chain([&LONG_READ]);
        let is_users = is_in_function
            || texts.map(|text| &text[..14]).any(|beginning| text.starts_with(beginning))
            || text.starts_with("SELECT pid FROM pg_stat_activity")
            // The check of foreign keys, and the body of eddy.ask_worker, which has no text.
            || is_nested == "on" && (text.starts_with("SELECT 1 FROM ONLY") || text.starts_with('\n'));
        ensure!(is_users || !is_session, "no user has sent: {entry}");
        seen.push(text);
    }
    for part in ["SELECT count(*) FROM shout", "UPDATE word", LONG_READ] {
        ensure!(seen.iter().any(|text| text.starts_with(part)), "{part} is not there");
    }
    Ok(())
}
