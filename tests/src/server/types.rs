//! Types that change while rows are on their way: each row is read as its type was when it was written.

use std::time::Duration;

use anyhow::{ensure, Context, Result};
use harness::cluster::{signal_process, stop_at_rest, wait_for, Cluster};
use harness::comparison::comparison;
use postgres::Client;
use rustix::process::Signal;

use super::check::Check;
use crate::graph::{drop_database, graph_database, worker_pid};

/// Checks that share one cluster.
pub const CHECKS: [(&str, Check); 1] =
    [("types change while rows are on their way", change_on_the_way)];

const SETUP: &str = "
    CREATE TYPE pair AS (a int, b text);
    CREATE TABLE held (id int, p pair, l pair[]);
    INSERT INTO held VALUES (1, (1, 'one'), ARRAY[(1, 'one')::pair]), (2, NULL, NULL);
    CREATE INCREMENTAL VIEW field AS SELECT id, (p).a FROM held;
    CREATE INCREMENTAL VIEW whole AS SELECT p, count(*) AS n FROM held GROUP BY p;
    CREATE INCREMENTAL VIEW listed AS SELECT id, l, (l[1]).b FROM held;
    TABLE field; TABLE whole; TABLE listed";

/// Queries of the views; the rows of composite types as text, which tells their columns.
const VIEWS: [(&str, &str); 3] = [
    ("field", "SELECT id, (p).a FROM held"),
    ("whole", "SELECT p, count(*) AS n FROM held GROUP BY p"),
    ("listed", "SELECT id, l, (l[1]).b FROM held"),
];

/// What happens while the worker stands still, in transactions of their own.
const CHANGES: [&str; 9] = [
    "INSERT INTO held VALUES (3, (3, 'three'), ARRAY[(3, 'three')::pair, NULL])",
    "ALTER TYPE pair ADD ATTRIBUTE c int",
    "INSERT INTO held VALUES (4, (4, 'four', 44), ARRAY[(4, 'four', 44)::pair])",
    "UPDATE held SET p = (1, 'uno', 11) WHERE id = 1",
    "ALTER TYPE pair RENAME ATTRIBUTE c TO d",
    "UPDATE held SET p.d = 5 WHERE id = 3",
    "ALTER TYPE pair DROP ATTRIBUTE d",
    "INSERT INTO held VALUES (5, (1, 'uno'), NULL)",
    "DELETE FROM held WHERE id = 4",
];

/// After each further change that the worker finds at once, and after all of them.
fn change_on_the_way(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "typed")?;
    client.batch_execute(SETUP)?;
    for count in 1..=CHANGES.len() {
        let pid = worker_pid(&mut client)?.context("there is no worker")?;
        stop_without_locks(&mut client, pid)?;
        let changed = CHANGES[..count].iter().try_for_each(|sql| client.batch_execute(sql));
        signal_process(pid, Signal::CONT)?;
        changed?;
        for (view, query) in VIEWS {
            let row = client.query_one(&comparison(view, query), &[])?;
            let wrong: (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
            let after = CHANGES[count - 1];
            ensure!(
                wrong == (0, 0, 0),
                "{view} after {after}: missing, surplus, different: {wrong:?}"
            );
        }
        client.batch_execute(
            "DELETE FROM held WHERE id > 2; UPDATE held SET p = NULL;
             DO $$BEGIN ALTER TYPE pair DROP ATTRIBUTE IF EXISTS c; ALTER TYPE pair DROP ATTRIBUTE IF EXISTS d; END$$;
             UPDATE held SET p = (1, 'one') WHERE id = 1",
        )?;
    }
    drop(client);
    drop_database(cluster, "typed")
}

/// Stops the worker at a moment at which nobody has to wait for it.
fn stop_without_locks(client: &mut Client, pid: i32) -> Result<()> {
    wait_for("the worker to have no locks", Duration::from_secs(60), || {
        stop_at_rest(client, pid)?;
        let locks = "SELECT count(*) FROM pg_locks WHERE pid = $1 AND locktype <> 'virtualxid'";
        let locks: i64 = client.query_one(locks, &[&pid])?.get(0);
        if locks > 0 {
            signal_process(pid, Signal::CONT)?;
        }
        Ok((locks == 0).then_some(()))
    })
}
