//! What a check of a server is, and what several of them expect.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{bail, ensure, Context, Result};
use harness::cluster::Cluster;
use harness::installation::Installation;
use postgres::{Client, NoTls};

/// A check in a cluster that others share.
pub type Check = fn(&Cluster) -> Result<()>;

/// Takes down the result of a check.
pub type Record<'a> = &'a mut dyn FnMut(&str, Result<()>);

/// Checks that belong together, in clusters of their own.
pub type Group = fn(&Installation, &Path, Record);

/// The statement fails with 55000 and a hint that contains `word`.
pub fn expect_hint(client: &mut Client, sql: &str, word: &str) -> Result<()> {
    let Err(error) = client.batch_execute(sql) else { bail!("no error") };
    let report = error.as_db_error().context("the session was lost")?;
    ensure!(report.code().code() == "55000", "SQLSTATE {}: {report}", report.code().code());
    let hint = report.hint().unwrap_or_default();
    ensure!(hint.contains(word), "the hint does not name {word}: {hint}");
    Ok(())
}

/// Runs a statement in a session of its own; the hints of what the server said meanwhile.
pub fn hints_of(cluster: &Cluster, sql: &str) -> Result<Vec<String>> {
    let hints = Arc::new(Mutex::new(Vec::new()));
    let collected = hints.clone();
    let mut config = cluster.config("postgres");
    config.notice_callback(move |notice| {
        let hint = notice.hint().map(str::to_owned);
        collected.lock().unwrap_or_else(PoisonError::into_inner).extend(hint);
    });
    config.connect(NoTls)?.batch_execute(sql)?;
    let hints = hints.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(hints.clone())
}
