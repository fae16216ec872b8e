//! Sessions that read views all the time. A read is right, or it is an error that the disturbances explain.
//!
//! What is right while others write follows from what reads promise: views show at least what was committed before
//! the statement began, nothing that the tables do not have, all views of a statement at one point, and under
//! SERIALIZABLE exactly what the tables do.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Instant;

use harness::dice::Dice;
use postgres::{Client, Error, IsolationLevel, Row};

use super::outcome::{judge, SERIALIZATION};
use super::scene::Scene;
use super::standby;
use super::views::{digest, View, CLOCK, TOTAL, VIEWS, WITNESS};
use super::writers::with_session;

/// The check that views show a state that really was, and one that is new enough.
pub const INVARIANTS: &str = "each read shows one state, and none that is old";

/// The check that a view is exactly its query.
pub const EXACT: &str = "a serializable read is exact";

/// The readers of invariants.
pub const STATES: &str = "states";

/// What reads that were right are counted as.
pub const RIGHT: &str = "right";

/// Two views of the same number, one by way of another table; then the table. Sums that every transaction keeps.
const STATE: &str = "
    SELECT (SELECT n FROM last), (SELECT highest FROM numbers),
        (SELECT rows = highest - lowest + 1 FROM numbers),
        (SELECT n FROM counter), (SELECT total::bigint FROM total),
        (SELECT sum(total)::bigint FROM by_branch), (SELECT total::bigint FROM branches),
        NOT EXISTS (SELECT a, b FROM reach EXCEPT SELECT b, a FROM reach),
        (SELECT count(*) FROM tagged) + (SELECT count(*) FROM untagged),
        (SELECT count(*) FROM owned), (SELECT sum(n)::bigint FROM by_kind)";

/// The views that [`STATE`] reads.
const STATE_VIEWS: [&str; 10] = [
    "last",
    "numbers",
    "total",
    "by_branch",
    "branches",
    "reach",
    "tagged",
    "untagged",
    "owned",
    "by_kind",
];

/// Old rows have left long ago, new rows have come. The margins are those of the worker's clock: a second, and two more
/// after which reads wait.
const RECENT: &str = "
    SELECT (SELECT count(*) FROM recent WHERE at < clock_timestamp() - interval '9 seconds')";

/// Checks invariants until it is over, at all isolation levels.
pub fn read_states(scene: &Scene, seed: u64) {
    let mut dice = Dice::new(seed);
    let mut session = None;
    while !scene.is_over() {
        let from = Instant::now();
        let Some(client) = with_session(scene, &mut session, "reader") else { continue };
        let level = *dice.pick(&[
            IsolationLevel::ReadCommitted,
            IsolationLevel::ReadCommitted,
            IsolationLevel::RepeatableRead,
        ]);
        let (views, result) = match dice.range(0, 9) {
            0 => (&[CLOCK][..], read_recent(client)),
            1 => (&standby::VIEWS_READ[..], read_stale(client)),
            _ => (&STATE_VIEWS[..], read_state(scene, client, level)),
        };
        if finish(scene, STATES, INVARIANTS, result, views, from) {
            session = None;
        }
    }
}

/// Counts how a read ended; whether the session is lost.
fn finish(
    scene: &Scene,
    reader: &'static str,
    check: &'static str,
    result: Result<Vec<String>, Error>,
    views: &[&str],
    from: Instant,
) -> bool {
    match result {
        Ok(wrong) if wrong.is_empty() => scene.count_read(reader, RIGHT),
        Ok(_) if scene.was_history_lost(views, from) => {
            scene.count_read(reader, "not to be compared");
        }
        Ok(wrong) => {
            scene.count_read(reader, "wrong");
            scene.violation(check, &wrong.join("; "));
        }
        Err(error) => {
            let outcome = judge(scene, &error, views, from);
            scene.count_read(reader, &outcome.name);
            // Their first statement reads views, so they get the snapshot that they need.
            let is_needless = reader == STATES && outcome.name == SERIALIZATION;
            if let Some(violation) = outcome.violation {
                scene.violation(check, &violation);
            } else if is_needless {
                scene.violation(check, &error.to_string());
            }
            return outcome.is_lost;
        }
    }
    false
}

/// Reads many views in one statement, and says what is wrong.
fn read_state(
    scene: &Scene,
    client: &mut Client,
    level: IsolationLevel,
) -> Result<Vec<String>, Error> {
    let known = scene.number.load(SeqCst);
    let mut transaction = client.build_transaction().isolation_level(level).start()?;
    let row = transaction.query_one(STATE, &[])?;
    transaction.commit()?;
    Ok(wrong_of_state(&row, known))
}

fn wrong_of_state(row: &Row, known: i64) -> Vec<String> {
    let number = |column: usize| row.get::<_, Option<i64>>(column);
    let mut wrong = Vec::new();
    let mut check = |holds: bool, what: String| {
        if !holds {
            wrong.push(what);
        }
    };
    let (last, highest, counter) = (number(0), number(1), number(3));
    check(last >= Some(known), format!("\"last\" shows {last:?}, {known} was committed before"));
    check(last <= counter, format!("\"last\" shows {last:?}, its table {counter:?}"));
    check(last == highest, format!("\"last\" shows {last:?}, \"numbers\" {highest:?}"));
    check(row.get::<_, Option<bool>>(2) == Some(true), "\"numbers\" has a gap".into());
    for (column, view) in [(4, "total"), (5, "by_branch"), (6, "branches")] {
        let total = number(column);
        check(total == Some(TOTAL), format!("\"{view}\" has the sum {total:?}"));
    }
    check(row.get::<_, Option<bool>>(7) == Some(true), "\"reach\" is not symmetric".into());
    let (owned, grouped) = (number(9), number(10));
    check(
        owned == Some(grouped.unwrap_or(0)),
        format!("\"owned\" has {owned:?} rows, \"by_kind\" {grouped:?}"),
    );
    // Each item has an owner, and is tagged or not.
    check(
        number(8) == owned,
        format!("\"tagged\" and \"untagged\" have {:?} items, \"owned\" {owned:?}", number(8)),
    );
    wrong
}

fn read_recent(client: &mut Client) -> Result<Vec<String>, Error> {
    let old: i64 = client.query_one(RECENT, &[])?.get(0);
    Ok(match old {
        0 => Vec::new(),
        _ => vec![format!("\"{CLOCK}\" has {old} rows that should have left it")],
    })
}

/// What is stored, however old, is a state that was.
fn read_stale(client: &mut Client) -> Result<Vec<String>, Error> {
    client.batch_execute("SET eddy.freshness = 'stale'")?;
    let wrong = standby::read_once(client);
    // If this fails the session is lost, or the statement was cancelled, after which nothing keeps it from succeeding.
    client
        .batch_execute("RESET eddy.freshness")
        .or_else(|_| client.batch_execute("RESET eddy.freshness"))?;
    wrong
}

/// Compares views with their queries in serializable transactions until it is over.
pub fn read_exactly(scene: &Scene, seed: u64) {
    let mut dice = Dice::new(seed);
    let mut session = None;
    while !scene.is_over() {
        let from = Instant::now();
        let view = dice.pick(&VIEWS);
        if view.name == CLOCK || view.name == WITNESS {
            continue;
        }
        let Some(client) = with_session(scene, &mut session, "comparer") else { continue };
        let result = compare(client, view);
        let views = super::views::beneath(view);
        if finish(scene, "exact", EXACT, result, &views, from) {
            session = None;
        }
    }
}

/// The view and its query in one serializable transaction.
fn compare(client: &mut Client, view: &View) -> Result<Vec<String>, Error> {
    let mut transaction = client
        .build_transaction()
        .isolation_level(IsolationLevel::Serializable)
        .read_only(true)
        .start()?;
    let stored = transaction.query_one(&digest(&format!("SELECT * FROM {}", view.name)), &[])?;
    let wanted = match transaction.query_one(&digest(view.query), &[]) {
        Ok(row) => row,
        Err(error) if is_of_data(&error) => {
            return Ok(vec![format!("\"{}\" has rows, its query fails: {error}", view.name)]);
        }
        Err(error) => return Err(error),
    };
    let pair = |row: &Row| (row.get::<_, i64>(0), row.get::<_, String>(1));
    let (stored, wanted) = (pair(&stored), pair(&wanted));
    let mut wrong = Vec::new();
    if stored != wanted {
        wrong.push(format!("\"{}\" has {stored:?}, its query {wanted:?}", view.name));
        wrong.push(differences(&mut transaction, view)?);
    }
    transaction.commit()?;
    Ok(wrong)
}

/// Errors that a query raises for its data.
fn is_of_data(error: &Error) -> bool {
    error.code().is_some_and(|code| code.code().starts_with("22") || code.code() == "EDDY1")
}

/// Rows that the view lacks, or has too many.
fn differences(transaction: &mut postgres::Transaction, view: &View) -> Result<String, Error> {
    let sql = format!(
        "WITH q AS MATERIALIZED ({}), v AS MATERIALIZED (SELECT * FROM {}) \
         SELECT coalesce(string_agg(t, ' ') FILTER (WHERE n <= 20), '') FROM (SELECT t, row_number() OVER () AS n FROM ( \
             SELECT '-' || d::text AS t FROM (TABLE q EXCEPT ALL TABLE v) d UNION ALL \
             SELECT '+' || d::text FROM (TABLE v EXCEPT ALL TABLE q) d) e) f",
        view.query, view.name
    );
    Ok(format!("differences: {}", transaction.query_one(&sql, &[])?.get::<_, String>(0)))
}
