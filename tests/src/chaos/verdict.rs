//! When all is quiet again, every view equals its query.

use anyhow::{ensure, Context, Result};
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
    Ok(())
}
