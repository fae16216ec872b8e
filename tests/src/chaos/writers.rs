//! Transactions that change the tables all the time, at some pace, and keep invariants. Whatever happens to the views, writers
//! do not notice it.

use std::sync::atomic::Ordering::SeqCst;
use std::thread::sleep;
use std::time::{Duration, Instant};

use harness::dice::Dice;
use postgres::Client;

use super::outcome::{judge, lost};
use super::scene::Scene;

/// The check of what writers get.
pub const CHECK: &str = "writers notice nothing";

/// Draws one transaction, as statements that end with COMMIT or ROLLBACK.
type Draw = fn(&mut Dice) -> String;

/// Writers by name, with their transactions.
pub const WRITERS: [(&str, Draw); 4] =
    [("mover", moving), ("linker", linking), ("keeper", keeping), ("tagger", tagging)];

/// Views that are attacked together with the tables they are made from: names may be missing then, or partitions.
const WRITTEN: [&str; 2] = ["words", "booked"];

/// Pauses between transactions, in milliseconds: some hundred of them come each second.
const PAUSE: (i64, i64) = (2, 25);

/// Writes until it is over.
pub fn write(scene: &Scene, name: &str, draw: Draw, seed: u64) {
    let mut dice = Dice::new(seed);
    let mut session = None;
    while !scene.are_writers_over() {
        let sql = draw(&mut dice);
        let from = Instant::now();
        if let Some(client) = with_session(scene, &mut session, name) {
            let result = client.batch_execute(&sql);
            finish(scene, &mut session, result, from);
        }
        sleep(Duration::from_millis(dice.range(PAUSE.0, PAUSE.1) as u64));
    }
}

/// Counts on, and tells what is committed for sure.
pub fn write_numbers(scene: &Scene, seed: u64) {
    const NEXT: &str = "BEGIN; UPDATE counter SET n = n + 1; \
        INSERT INTO numbered SELECT n FROM counter; \
        DELETE FROM numbered WHERE n < (SELECT n - 50 FROM counter); COMMIT";
    let mut dice = Dice::new(seed);
    let mut session = None;
    while !scene.are_writers_over() {
        let from = Instant::now();
        if let Some(client) = with_session(scene, &mut session, "counter") {
            // Before the COMMIT nobody but this writer can change the number.
            let result = client.batch_execute(NEXT).and_then(|()| {
                let row = client.query_one("SELECT n FROM counter", &[])?;
                scene.number.fetch_max(row.get(0), SeqCst);
                Ok(())
            });
            finish(scene, &mut session, result, from);
        }
        sleep(Duration::from_millis(dice.range(PAUSE.0, PAUSE.1) as u64));
    }
}

/// The session, made anew if it was lost; none while the server is away.
pub fn with_session<'a>(
    scene: &Scene,
    session: &'a mut Option<Client>,
    name: &str,
) -> Option<&'a mut Client> {
    let from = Instant::now();
    if session.is_none() {
        match scene.connect(&format!("chaos {name}")) {
            Ok(client) => *session = Some(client),
            Err(error) => {
                let outcome = lost("no session", scene, &error.to_string(), from);
                if let Some(violation) = outcome.violation {
                    scene.violation(CHECK, &violation);
                }
            }
        }
    }
    session.as_mut()
}

fn finish(
    scene: &Scene,
    session: &mut Option<Client>,
    result: Result<(), postgres::Error>,
    from: Instant,
) {
    let Err(error) = result else { return scene.count_read("writers", "committed") };
    let mut outcome = judge(scene, &error, &WRITTEN, from);
    // The transaction is still open after an error in its middle.
    let client = session.as_mut().filter(|_| !outcome.is_lost);
    outcome.is_lost |= client.is_none_or(|client| client.batch_execute("ROLLBACK").is_err());
    scene.count_read("writers", &outcome.name);
    if let Some(violation) = outcome.violation {
        scene.violation(CHECK, &violation);
    }
    if outcome.is_lost {
        *session = None;
    }
}

fn end(dice: &mut Dice) -> &'static str {
    if dice.chance(15) {
        "ROLLBACK"
    } else {
        "COMMIT"
    }
}

/// Moves value between accounts, some of it only to take it back. In the order of their ids: no deadlocks.
fn moving(dice: &mut Dice) -> String {
    let low = dice.range(1, 199);
    let high = dice.range(low + 1, 200);
    let value = dice.range(1, 100);
    // Visible to others before it is on disk, and lost if the server dies then.
    let commit = match dice.chance(30) {
        true => "SET LOCAL synchronous_commit = off; ",
        false => "",
    };
    let undone = match dice.chance(30) {
        true => format!(
            "SAVEPOINT s; UPDATE account SET balance = balance + {value} WHERE id = {high}; \
             ROLLBACK TO s; "
        ),
        false => String::new(),
    };
    format!(
        "BEGIN; {commit}UPDATE account SET balance = balance - {value} WHERE id = {low}; {undone}\
         UPDATE account SET balance = balance + {value} WHERE id = {high}; {}",
        end(dice)
    )
}

/// Adds and removes edges, always both directions.
fn linking(dice: &mut Dice) -> String {
    let (a, b) = (dice.range(0, 19), dice.range(0, 19));
    match dice.chance(55) {
        true => format!(
            "BEGIN; INSERT INTO edge SELECT {a}, {b} WHERE (SELECT count(*) FROM edge) < 60; \
             INSERT INTO edge SELECT {b}, {a} WHERE (SELECT count(*) FROM edge) < 61; \
             DELETE FROM edge e WHERE NOT EXISTS \
                 (SELECT FROM edge f WHERE f.src = e.dst AND f.dst = e.src); {}",
            end(dice)
        ),
        false => format!("BEGIN; DELETE FROM edge WHERE src = {a} OR dst = {a}; {}", end(dice)),
    }
}

/// Inserts, updates and deletes items.
fn keeping(dice: &mut Dice) -> String {
    let (owner, kind, price) = (dice.range(1, 200), dice.range(0, 6), dice.range(0, 99));
    let change = match dice.index(4) {
        0 => format!("UPDATE item SET price = {price} WHERE owner % 17 = {}", price % 17),
        1 => format!("UPDATE item SET owner = {owner}, kind = 'kind {kind}' WHERE price = {price}"),
        2 => format!("DELETE FROM item WHERE owner = {owner} OR price = {price}"),
        // Values that are stored elsewhere stay where they are, or come anew.
        _ => format!(
            "UPDATE item SET extra = {price} WHERE kind = 'kind {kind}'; \
             UPDATE item SET note = repeat(md5(random()::text), {price} + 1) WHERE id % 50 = {owner} % 50"
        ),
    };
    format!(
        "BEGIN; INSERT INTO item (owner, kind, price) SELECT {owner}, 'kind {kind}', {price} + g \
             FROM generate_series(1, 3) g WHERE (SELECT count(*) FROM item WHERE id < 1000000) < 200; \
         SAVEPOINT s; {change}; RELEASE s; {}",
        end(dice)
    )
}

/// Tags items, and notes events, in one transaction.
fn tagging(dice: &mut Dice) -> String {
    let word = dice.range(0, 12);
    let word = if word == 0 { "NULL".to_owned() } else { format!("'word {word}'") };
    let gone = dice.range(0, 12);
    format!(
        "BEGIN; INSERT INTO tag SELECT id, {word} FROM item WHERE id % 11 = {} AND id < 1000000 LIMIT 4; \
         DELETE FROM tag WHERE word = 'word {gone}' AND item % 3 = {}; \
         DELETE FROM tag WHERE (SELECT count(*) FROM tag) > 300; \
         INSERT INTO event VALUES ({gone}); \
         UPDATE ledger SET n = (n + 37) % 100 WHERE n = {gone} * 7; \
         DELETE FROM event WHERE at < clock_timestamp() - interval '20 seconds'; {}",
        dice.range(0, 10),
        dice.range(0, 2),
        end(dice)
    )
}
