//! A view that nobody attacks, changed and read by one session: each read sees the change just made, and at once, unless the
//! worker or the server is away.

use std::time::{Duration, Instant};

use harness::dice::Dice;
use harness::timing::burden;
use postgres::{Client, Error};

use super::outcome::judge;
use super::readers::RIGHT;
use super::scene::Scene;
use super::views::WITNESS;
use super::writers::with_session;

/// The check that the trouble of others does not reach a view.
pub const CHECK: &str = "a view that nobody attacks is not away";

/// Longest time for which the witness may be away, on a machine with no more than two processes waiting for each processor.
const AWAY: Duration = Duration::from_secs(1);

/// Longest time until it is back after the worker or the server was away: all views are attached again.
const BACK: Duration = Duration::from_secs(8);

/// Writes and reads until it is over.
pub fn watch(scene: &Scene, seed: u64) {
    let mut dice = Dice::new(seed);
    let mut session = None;
    while !scene.is_over() {
        let Some(client) = with_session(scene, &mut session, "witness") else { continue };
        let from = Instant::now();
        match follow(scene, client, &mut dice) {
            Ok(()) => scene.count_read("witness", RIGHT),
            Err(error) => {
                let outcome = judge(scene, &error, &[WITNESS], from);
                scene.count_read("witness", &outcome.name);
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

/// Changes the table, reads the view, and judges what it shows and how long that took.
fn follow(scene: &Scene, client: &mut Client, dice: &mut Dice) -> Result<(), Error> {
    let began = Instant::now();
    let change = match dice.chance(5) {
        true => "DELETE FROM witnessed".to_owned(),
        false => format!("INSERT INTO witnessed VALUES ({})", dice.range(1, 100)),
    };
    client.batch_execute(&change)?;
    let committed = Instant::now();
    let row = client.query_one(
        "SELECT (SELECT n FROM witness), (SELECT count(*) FROM witnessed), \
         (SELECT total::text FROM witness), (SELECT sum(n)::text FROM witnessed)",
        &[],
    )?;
    let (rows, wanted): (Option<i64>, i64) = (row.get(0), row.get(1));
    let (total, sum): (Option<String>, Option<String>) = (row.get(2), row.get(3));
    if rows != Some(wanted) || total != sum {
        let what = format!("{rows:?} rows, sum {total:?} instead of {wanted}, {sum:?}");
        scene.violation(CHECK, &format!("the witness has {what}"));
    }
    judge_absence(scene, committed, committed - began);
    Ok(())
}

/// A machine that does much else takes its time for the COMMIT, too.
fn judge_absence(scene: &Scene, committed: Instant, commit: Duration) {
    let away = committed.elapsed();
    let burden = burden();
    let Some(back) = scene.settle(committed) else {
        scene.count_read("witness", "right, nobody having been away");
        scene.measure("absence of the witness", away);
        if away > AWAY.mul_f64(burden) + commit {
            scene.violation(CHECK, &format!("the witness was away for {away:?}"));
        }
        return;
    };
    scene.measure("return of the witness after the worker or the server was away", back);
    if back > BACK.mul_f64(burden) + commit {
        scene.violation(CHECK, &format!("the witness came back after {back:?}"));
    }
}
