//! `pgaudit`: each statement of a user once, and nothing of ours.

use anyhow::{ensure, Result};
use harness::cluster::Cluster;

use super::scene::{database, entries_since, run_session, IN_FUNCTION, LONG_READ, SESSION};

pub fn check(cluster: &Cluster) -> Result<()> {
    let mut client = database(cluster, "audited")?;
    client.batch_execute("CREATE EXTENSION pgaudit")?;
    let before = cluster.log()?.len();
    run_session(cluster, &mut client, "audited")?;
    let entries = entries_since(cluster, before)?;
    let audited = |part: &str| {
        let is_of = |entry: &&String| entry.contains(" AUDIT: ") && entry.contains(part);
        entries.iter().filter(is_of).count()
    };
    for read in ["SELECT count(*) FROM shout", "SELECT sum(pages) FROM shout", LONG_READ] {
        let times = audited(&format!("READ,SELECT,,,{read},"));
        ensure!(times == 1, "{read} is in the audit {times} times");
    }
    for (kind, text) in
        [("REFRESH", "REFRESH INCREMENTAL"), ("CREATE", "CREATE OR REPLACE INCREMENTAL")]
    {
        let found = |kind: &str| {
            let is_of = |entry: &&String| entry.contains(kind) && entry.contains(text);
            entries.iter().filter(is_of).count()
        };
        let times = found(&format!(",DDL,{kind} MATERIALIZED VIEW,"));
        ensure!(times == 1, "{text} is in the audit {times} times");
    }
    for entry in entries.iter().filter(|entry| entry.contains(" AUDIT: ")) {
        let is_in_function = entry.contains(IN_FUNCTION);
        ensure!(!entry.contains(" pg_eddy ") || is_in_function, "a worker is audited: {entry}");
        if entry.contains(" client backend audited ") {
            let texts = SESSION.iter().chain([&LONG_READ]).map(|text| &text[..14]);
            let is_users = texts.chain(["SELECT pid", "SELECT 1 FROM ONLY", "CREATE EXTENSION"]);
            let is_users = is_users.into_iter().any(|text| entry.contains(text));
            // The body of eddy.ask_worker has no text.
            let has_no_text = entry.ends_with(",,<not logged>");
            ensure!(is_users || is_in_function || has_no_text, "no user has sent: {entry}");
        }
    }
    // A statement that fails for lack of rights is refused as ever.
    client.batch_execute("CREATE ROLE nobody_reads; SET ROLE nobody_reads")?;
    let refused = client.batch_execute("SELECT * FROM shout");
    client.batch_execute("RESET ROLE")?;
    let code = refused.err().and_then(|error| error.code().map(|code| code.code().to_owned()));
    ensure!(code.as_deref() == Some("42501"), "a role without rights got {code:?}");
    Ok(())
}
