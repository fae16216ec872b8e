//! The session that attacks by statements, one attack after the other, and mends what it has done.

use std::thread::sleep;
use std::time::{Duration, Instant};

use harness::dice::Dice;
use postgres::Client;

use super::attacks::{self, Attack};
use super::outcome::{full_text, judge};
use super::scene::Scene;
use super::writers::with_session;

/// The check of what statements on tables and views end with.
pub const CHECK: &str = "statements of disturbances end as they should";

/// Longest time until an attack is mended, restarts included.
const MENDING: Duration = Duration::from_secs(60);

/// Milliseconds between two attacks.
const PAUSE: (i64, i64) = (50, 600);

/// What attacks may fail with: they wait for locks, are cancelled, and what they try may be impossible.
const EXPECTED: [&str; 12] = [
    "40001", "40P01", "55P03", "57014", "22012", "23505", "EDDY1", "EDDY2", "54001", "53200",
    "42704", "55000",
];

/// Attacks until it is over. The last attack is mended, too.
pub fn attack(scene: &Scene, end: Instant, seed: u64, only: &str) {
    let mut dice = Dice::new(seed);
    let mut session = None;
    while Instant::now() < end {
        let Some(attack) = attacks::draw(&mut dice, only) else { return };
        perform(scene, &mut session, &attack);
        sleep(Duration::from_millis(dice.range(PAUSE.0, PAUSE.1) as u64));
    }
}

fn perform(scene: &Scene, session: &mut Option<Client>, attack: &Attack) {
    scene.count_disturbance(attack.name);
    scene.say(&format!("{}: {}", attack.name, attack.sql));
    let troubles: Vec<_> =
        attack.away.iter().map(|away| scene.begin_trouble(away.clone())).collect();
    let began = try_statement(scene, session, &attack.sql);
    if began {
        expect_failure(scene, session, attack);
        sleep(Duration::from_millis(attack.hold));
    }
    for sql in &attack.mend {
        mend(scene, session, sql);
    }
    for trouble in troubles {
        scene.end_trouble(trouble);
    }
    if began && !attack.mend.is_empty() {
        scene.say(&format!("{}: mended", attack.name));
    }
}

/// Whether a statement succeeded.
fn try_statement(scene: &Scene, session: &mut Option<Client>, sql: &str) -> bool {
    let from = Instant::now();
    let Some(client) = with_session(scene, session, "attacker") else { return false };
    let Err(error) = client.batch_execute(sql) else { return true };
    let report = error.as_db_error();
    let is_expected = report.is_some_and(|report| EXPECTED.contains(&report.code().code()));
    if !is_expected {
        let outcome = judge(scene, &error, &[], from);
        if let Some(violation) = outcome.violation {
            scene.violation(CHECK, &format!("{sql}: {violation}"));
        }
        if outcome.is_lost {
            *session = None;
            return false;
        }
    }
    if client.batch_execute("ROLLBACK").is_err() {
        *session = None;
    }
    false
}

/// A view that cannot be computed says so.
fn expect_failure(scene: &Scene, session: &mut Option<Client>, attack: &Attack) {
    let Some((view, codes)) = &attack.fails else { return };
    let from = Instant::now();
    let Some(client) = with_session(scene, session, "attacker") else { return };
    let what = match client.query(&format!("SELECT * FROM {view}"), &[]) {
        Ok(rows) => format!("{} rows in place of an error", rows.len()),
        Err(error) => {
            let report = error.as_db_error();
            if report.is_some_and(|report| codes.contains(&report.code().code())) {
                return scene.count_read("failing", "refused");
            }
            let text = report.map_or(error.to_string(), full_text);
            let outcome = judge(scene, &error, &[view], from);
            if outcome.is_lost {
                *session = None;
            }
            match outcome.violation {
                Some(_) => text,
                None => return scene.count_read("failing", &outcome.name),
            }
        }
    };
    scene.violation(CHECK, &format!("{}: {view} gave {what}", attack.sql));
}

/// Undoes something, in as many sessions as it takes.
fn mend(scene: &Scene, session: &mut Option<Client>, sql: &str) {
    let from = Instant::now();
    loop {
        if let Some(client) = with_session(scene, session, "attacker") {
            let Err(error) = client.batch_execute(sql) else { return };
            let report = error.as_db_error();
            // A prepared transaction that was never prepared.
            if report.is_some_and(|report| report.code().code() == "42704") {
                return;
            }
            let is_expected = report.is_some_and(|report| EXPECTED.contains(&report.code().code()));
            if !is_expected {
                let outcome = judge(scene, &error, &[], from);
                if let Some(violation) = outcome.violation {
                    scene.violation(CHECK, &format!("{sql}: {violation}"));
                }
                *session = None;
            }
            if from.elapsed() > MENDING {
                return scene.violation(CHECK, &format!("{sql} did not succeed: {error}"));
            }
        }
        sleep(Duration::from_millis(20));
    }
}
