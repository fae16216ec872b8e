//! Every snapshot, fresh or stale, shows a state that the base tables had in commit order.
//!
//! Eight writers keep invariants in each transaction: moving value keeps the sum, edges come in both
//! directions, and numbered rows come without gaps. Views read without waiting lag behind, but
//! each snapshot must show all of them at one point of the commit order.

mod held;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{ensure, Result};
use harness::cluster::{wait_for, Cluster};
use harness::load::Load;
use harness::report::Counts;
use postgres::Client;

const SNAPSHOTS: usize = 100;

const SETUP: &str = "
    CREATE EXTENSION pg_eddy;
    CREATE TABLE account (id int PRIMARY KEY, branch int NOT NULL, balance bigint NOT NULL);
    INSERT INTO account SELECT i, i % 10, 1000 FROM generate_series(1, 100) i;
    CREATE TABLE edge (src int, dst int);
    CREATE TABLE counter (n int NOT NULL);
    INSERT INTO counter VALUES (0);
    CREATE TABLE numbered (n int NOT NULL);
    CREATE INCREMENTAL VIEW total AS SELECT sum(balance) AS total FROM account;
    CREATE INCREMENTAL VIEW by_branch AS
        SELECT branch, sum(balance) AS total FROM account GROUP BY branch;
    CREATE INCREMENTAL VIEW reach AS
        WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge UNION
            SELECT r.a, e.dst FROM r JOIN edge e ON e.src = r.b) SELECT a, b FROM r;
    CREATE INCREMENTAL VIEW last AS SELECT n FROM counter;
    CREATE INCREMENTAL VIEW numbers AS
        SELECT count(*) AS rows, max(n) AS highest FROM numbered;";

const MOVE: &str = "\
\\set low random(1, 99)
\\set high random(:low + 1, 100)
\\set moved random(1, 100)
BEGIN;
UPDATE account SET balance = balance - :moved WHERE id = :low;
UPDATE account SET balance = balance + :moved WHERE id = :high;
COMMIT;
";

const LINK: &str = "\
\\set a random(0, 99)
\\set b random(0, 99)
BEGIN;
INSERT INTO edge VALUES (:a, :b), (:b, :a);
COMMIT;
";

const UNLINK: &str = "\
\\set a random(0, 99)
BEGIN;
DELETE FROM edge WHERE src = :a OR dst = :a;
COMMIT;
";

const NUMBER: &str = "\
BEGIN;
UPDATE counter SET n = n + 1;
INSERT INTO numbered SELECT n FROM counter;
COMMIT;
";

/// What must hold in every state of the base tables, asked of the views; the last columns tell
/// states apart, and whether the views that are compared were at one point.
const INVARIANTS: &str = "
    SELECT (SELECT total FROM total) = 100000,
        (SELECT sum(total) FROM by_branch) = 100000,
        NOT EXISTS (SELECT a, b FROM reach EXCEPT SELECT b, a FROM reach),
        (SELECT n FROM last) = (SELECT coalesce(highest, 0) FROM numbers),
        (SELECT n FROM last) = (SELECT rows FROM numbers),
        (SELECT n FROM last),
        NOT EXISTS (SELECT FROM eddy.view_states
            WHERE relation IN ('last'::regclass, 'numbers'::regclass))";

/// The same views against their queries at one snapshot: allowed to lag, not to be torn. A view
/// may only show counter values that the table has reached.
const NOT_AHEAD: &str = "SELECT (SELECT n FROM last) <= (SELECT n FROM counter)";

/// One test per snapshot, one for progress between the snapshots, and those of what is held.
pub fn run(cluster: &Cluster, folder: &Path) -> Result<Counts> {
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(SETUP)?;
    let scripts =
        [("move", MOVE, 6), ("link", LINK, 1), ("unlink", UNLINK, 1), ("number", NUMBER, 3)];
    let mut load = Load::new(folder, "postgres", 8, &scripts)?.start(cluster)?;
    let mut counts = Counts::default();
    let mut seen = Seen::default();
    client.batch_execute("SET eddy.freshness = 'stale'")?;
    for number in 0..SNAPSHOTS {
        let state = next_state(&mut client, seen.states.last().copied())?;
        let broken = check_snapshot(&mut client, &mut seen)?;
        ensure!(load.is_running()?, "pgbench ended early");
        counts.record(broken.is_empty());
        if !broken.is_empty() {
            println!("snapshot {number} after state {state}: {}", broken.join(", "));
        }
    }
    load.stop()?;
    println!("snapshots: {} different states seen", seen.states.len());
    counts.record(seen.states.len() > SNAPSHOTS / 2);
    println!("snapshots: in {} of them the views compared were at one point", seen.together);
    counts.record(seen.together > SNAPSHOTS / 4);
    counts.add(&held::run(cluster, folder)?);
    Ok(counts)
}

/// What the snapshots have shown so far.
#[derive(Default)]
struct Seen {
    states: BTreeSet<i32>,
    /// Snapshots in which none of the views that are compared was set aside.
    together: usize,
}

/// Invariants from here on compare views with one another.
const FIRST_OF_SEVERAL: usize = 3;

/// Waits until the views have moved on since the last snapshot.
fn next_state(client: &mut Client, last: Option<i32>) -> Result<i32> {
    wait_for("the views to move on", Duration::from_secs(60), || {
        let state: i32 = client.query_one("SELECT n FROM last", &[])?.get(0);
        Ok((Some(state) != last).then_some(state))
    })
}

/// Names of the invariants that do not hold.
fn check_snapshot(client: &mut Client, seen: &mut Seen) -> Result<Vec<String>> {
    let names = ["total", "total of branches", "both directions", "highest number", "no gaps"];
    let mut transaction = client
        .build_transaction()
        .isolation_level(postgres::IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()?;
    let row = transaction.query_one(INVARIANTS, &[])?;
    let together: bool = row.get(6);
    seen.together += usize::from(together);
    let mut broken: Vec<String> = names
        .iter()
        .enumerate()
        .filter(|(i, _)| together || *i < FIRST_OF_SEVERAL)
        .filter(|(i, _)| row.get::<_, Option<bool>>(*i) != Some(true))
        .map(|(_, name)| name.to_string())
        .collect();
    let ahead: Option<bool> = transaction.query_one(NOT_AHEAD, &[])?.get(0);
    if ahead != Some(true) {
        broken.push("not ahead of the table".into());
    }
    seen.states.insert(row.get(5));
    transaction.commit()?;
    Ok(broken)
}
