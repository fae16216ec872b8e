//! How views are, and whether they are right.

use std::time::Duration;

use anyhow::{ensure, Result};
use harness::cluster::wait_for;
use postgres::Client;

/// A view's state, and the message about it.
pub fn state_of(client: &mut Client, view: &str) -> Result<(String, String)> {
    let sql =
        "SELECT state, coalesce(message, '') FROM eddy.views WHERE relation = $1::text::regclass";
    let row = client.query_one(sql, &[&view])?;
    Ok((row.get(0), row.get(1)))
}

/// A view shows what its query gives.
pub fn expect_right(client: &mut Client, view: &str, query: &str) -> Result<()> {
    let sql = format!(
        "SELECT (SELECT count(*) FROM (({query}) EXCEPT ALL TABLE {view}) x),
             (SELECT count(*) FROM (TABLE {view} EXCEPT ALL ({query})) x)"
    );
    let row = client.query_one(&sql, &[])?;
    let (missing, wrong): (i64, i64) = (row.get(0), row.get(1));
    ensure!(missing == 0 && wrong == 0, "{view} lacks {missing} rows and has {wrong} wrong ones");
    Ok(())
}

/// Waits until a view is in a state; the message about it.
pub fn wait_for_state(client: &mut Client, view: &str, wanted: &str) -> Result<String> {
    wait_for(&format!("{view} to be {wanted}"), Duration::from_secs(60), || {
        let (state, message) = state_of(client, view)?;
        Ok((state == wanted).then_some(message))
    })
}
