//! Two guards, of whom one must be on duty. Each asks a view whether the other one is, and only then leaves, in
//! serializable transactions: if the view hid from PostgreSQL what it is made from, both would leave at once.

use std::time::Instant;

use anyhow::Result;
use postgres::{Client, Error, IsolationLevel};

use super::outcome::judge;
use super::readers::RIGHT;
use super::scene::Scene;
use super::writers::with_session;

/// The check of write skew.
pub const CHECK: &str = "serializable transactions that read views are in some order";

/// The guards; their numbers are in the table `duty`.
pub const GUARDS: [i32; 2] = [1, 2];

/// Leaves and returns until it is over.
pub fn guard(scene: &Scene, number: i32) {
    let mut session = None;
    while !scene.are_writers_over() {
        let from = Instant::now();
        let Some(client) = with_session(scene, &mut session, "guard") else { continue };
        match leave_and_return(client, number) {
            Ok(true) => scene.count_read("guards", RIGHT),
            Ok(false) => scene.violation(CHECK, "nobody is on duty"),
            Err(error) => {
                let outcome = judge(scene, &error, &["on_duty"], from);
                scene.count_read("guards", &outcome.name);
                if let Some(violation) = outcome.violation {
                    scene.violation(CHECK, &violation);
                }
                if outcome.is_lost {
                    session = None;
                }
            }
        }
    }
}

/// Whether somebody was on duty all the while.
fn leave_and_return(client: &mut Client, number: i32) -> Result<bool, Error> {
    let mut transaction =
        client.build_transaction().isolation_level(IsolationLevel::Serializable).start()?;
    let others: i64 = transaction.query_one("SELECT n FROM on_duty", &[])?.get(0);
    if others > 1 {
        transaction.execute("UPDATE duty SET is_on = false WHERE guard = $1", &[&number])?;
    }
    let left = transaction.commit();
    let row = client
        .query_one("SELECT (SELECT n FROM on_duty), (SELECT count(*) FROM duty WHERE is_on)", &[]);
    // Whatever has become of it: the next time there is somebody who can leave.
    client.execute("UPDATE duty SET is_on = true WHERE guard = $1 AND NOT is_on", &[&number])?;
    left?;
    let (shown, stored): (i64, i64) = row.map(|row| (row.get(0), row.get(1)))?;
    Ok(shown >= 1 && stored >= 1)
}
