//! Disturbances of processes and of the server as a whole: signals, shutdowns, crash points, settings that make a worker
//! start afresh.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use harness::cluster::{is_stopped, signal_process, wait_for, Cluster};
use harness::dice::Dice;
use harness::engines::engine_of;
use rustix::process::Signal;

use super::attacks::victim;
use super::scene::{Away, Scene};
use crate::graph::{drop_database, expect_alive, graph_database};

/// The check of the server itself.
pub const CHECK: &str = "the server and its worker come back";

const PATIENCE: Duration = Duration::from_secs(60);

/// Milliseconds between two disturbances.
const PAUSE: (i64, i64) = (300, 2500);

const WORKER: &str = "pg_eddy worker";
const LAUNCHER: &str = "pg_eddy launcher";
const ASSISTANT: &str = "pg_eddy assistant";

/// What is done to a process, or to the server as a whole.
#[derive(Clone, Debug)]
enum Disturbance {
    /// A signal to the worker or the launcher.
    Signal(&'static str, Signal),
    /// `pg_terminate_backend` of one of them.
    Terminate(&'static str),
    /// SIGSTOP, and SIGCONT after so many milliseconds.
    Stop(&'static str, u64),
    /// SIGKILL of the process that is the worker's engine.
    KillEngine,
    /// The same with SIGSTOP, and SIGCONT after so many milliseconds.
    StopEngine(u64),
    /// SIGKILL, after which the server restarts all its processes.
    Kill(Victim),
    /// `pg_cancel_backend` of sessions.
    Cancel,
    /// A shutdown and a start.
    Restart(Shutdown),
    /// The replication slot is taken away as soon as its worker ends.
    DropSlot,
    /// A crash point is armed for so many milliseconds, and a view refreshed.
    CrashPoint { setting: String, view: Option<&'static str>, is_crash: bool, hold: u64 },
    /// A setting has another value for so many milliseconds.
    Setting { name: &'static str, value: &'static str, usual: &'static str, hold: u64 },
    /// A database with the extension comes and goes.
    Database,
    /// WAL is switched, or a checkpoint made.
    Wal(&'static str),
}

#[derive(Clone, Copy, Debug)]
enum Victim {
    Worker,
    Session,
}

#[derive(Clone, Copy, Debug)]
enum Shutdown {
    Fast,
    Immediate,
    Kill,
}

impl Disturbance {
    /// Those that restart the server are rare.
    fn draw(dice: &mut Dice, has_engine: bool) -> Disturbance {
        use Disturbance::*;
        match dice.range(0, 99) {
            18..=23 if has_engine => KillEngine,
            24..=28 if has_engine => StopEngine(dice.range(100, 3000) as u64),
            0..=11 => Signal(WORKER, rustix::process::Signal::TERM),
            12..=17 => Terminate(WORKER),
            18..=23 => Signal(LAUNCHER, rustix::process::Signal::TERM),
            24..=35 => Stop(WORKER, dice.range(100, 3000) as u64),
            36..=39 => Stop(LAUNCHER, dice.range(100, 2000) as u64),
            40..=42 => Kill(Victim::Worker),
            43..=44 => Kill(Victim::Session),
            45..=54 => Cancel,
            55..=56 => Restart(Shutdown::Fast),
            57..=59 => Restart(Shutdown::Immediate),
            60 => Restart(Shutdown::Kill),
            61..=64 => DropSlot,
            65..=69 => Signal(WORKER, rustix::process::Signal::INT),
            70..=85 => Disturbance::draw_crash_point(dice),
            86..=92 => Disturbance::draw_setting(dice),
            93..=95 => Database,
            _ => Wal(dice.pick::<&str>(&["CHECKPOINT", "SELECT pg_switch_wal()"])),
        }
    }

    fn draw_crash_point(dice: &mut Dice) -> Disturbance {
        let is_crash = dice.chance(12);
        let action = match is_crash {
            true => *dice.pick(&["abort", "kill"]),
            false => *dice.pick(&["error", "fatal", "terminate", "panic", "stop"]),
        };
        let (place, view) = match dice.chance(70) {
            true => {
                let point = dice.pick(&["attach", "batch", "evaluate", "apply"]);
                let view = victim(dice).name;
                (format!("{point}/public.{view}"), Some(view))
            }
            false => {
                let points =
                    ["worker_connect", "worker_own", "worker_slot", "worker_run", "decode"];
                (dice.pick(&points).to_string(), None)
            }
        };
        let hold = dice.range(200, 1500) as u64;
        Disturbance::CrashPoint { setting: format!("{place}={action}"), view, is_crash, hold }
    }

    fn draw_setting(dice: &mut Dice) -> Disturbance {
        let (name, value, usual) = *dice.pick(&[
            ("eddy.memory_limit", "1MB", "-1"),
            ("eddy.memory_limit", "8MB", "-1"),
            ("eddy.workers", "2", "1"),
            ("eddy.max_recursion", "3", "500"),
            ("eddy.max_retained_wal", "1MB", "-1"),
            ("eddy.spill_directory", "", "base/pgsql_tmp"),
        ]);
        Disturbance::Setting { name, value, usual, hold: dice.range(200, 2500) as u64 }
    }

    fn name(&self) -> String {
        match self {
            Disturbance::Signal(who, signal) => format!("{signal:?} to the {who}"),
            Disturbance::Terminate(who) => format!("{who} terminated"),
            Disturbance::Stop(who, _) => format!("{who} stopped"),
            Disturbance::KillEngine => "engine killed".into(),
            Disturbance::StopEngine(_) => "engine stopped".into(),
            Disturbance::Kill(victim) => format!("{victim:?} killed"),
            Disturbance::Cancel => "statements cancelled".into(),
            Disturbance::Restart(how) => format!("{how:?} shutdown"),
            Disturbance::DropSlot => "slot dropped".into(),
            Disturbance::CrashPoint { .. } => "crash point".into(),
            Disturbance::Setting { name, .. } => format!("{name} changed"),
            Disturbance::Database => "another database".into(),
            Disturbance::Wal(sql) => (*sql).into(),
        }
    }

    /// What may be away meanwhile.
    fn away(&self) -> Vec<Away> {
        use Disturbance::*;
        match self {
            Kill(_) | Restart(_) => vec![Away::Server],
            CrashPoint { view, is_crash, .. } => {
                let first = if *is_crash { Away::Server } else { Away::Worker };
                let second = view.map(|view| Away::Views(vec![view]));
                [Some(first), second].into_iter().flatten().collect()
            }
            Setting { .. } => {
                let all = super::views::VIEWS.iter().map(|view| view.name).collect();
                vec![Away::Worker, Away::Views(all)]
            }
            Cancel
            | Database
            | Wal(_)
            | Signal(LAUNCHER, _)
            | Terminate(LAUNCHER)
            | Stop(LAUNCHER, _) => Vec::new(),
            KillEngine | StopEngine(_) | Signal(..) | Terminate(_) | Stop(..) | DropSlot => {
                vec![Away::Worker]
            }
        }
    }
}

/// Disturbs until it is over. Whatever was stopped goes on, whatever was set is reset.
pub fn disturb(scene: &Scene, cluster: &mut Cluster, end: Instant, seed: u64, only: &str) {
    let mut dice = Dice::new(seed);
    let settings = &cluster.installation().settings;
    let has_engine = settings.iter().any(|(name, kind)| name == "eddy.engine" && kind == "process");
    while Instant::now() < end {
        let mut draws = (0..10_000).map(|_| Disturbance::draw(&mut dice, has_engine));
        let Some(disturbance) = draws.find(|drawn| drawn.name().contains(only)) else { return };
        scene.count_disturbance(&disturbance.name());
        scene.say(&format!("{disturbance:?}"));
        let troubles: Vec<_> =
            disturbance.away().into_iter().map(|away| scene.begin_trouble(away)).collect();
        if let Err(error) = perform(scene, cluster, &disturbance) {
            scene.violation(CHECK, &format!("{disturbance:?}: {error:#}"));
        }
        for trouble in troubles {
            scene.end_trouble(trouble);
        }
        scene.say(&format!("{}: over", disturbance.name()));
        sleep(Duration::from_millis(dice.range(PAUSE.0, PAUSE.1) as u64));
    }
}

fn perform(scene: &Scene, cluster: &mut Cluster, disturbance: &Disturbance) -> Result<()> {
    match disturbance {
        Disturbance::Signal(who, signal) => {
            let signalled = pids(scene, who)?;
            send(&signalled, *signal);
            await_end(scene, &signalled, *signal)
        }
        Disturbance::Terminate(who) => {
            let terminated = pids(scene, who)?;
            for pid in &terminated {
                run(scene, &format!("SELECT pg_terminate_backend({pid})"))?;
            }
            await_end(scene, &terminated, Signal::TERM)
        }
        Disturbance::Stop(who, hold) => {
            let stopped = pids(scene, who)?;
            send(&stopped, Signal::STOP);
            sleep(Duration::from_millis(*hold));
            send(&stopped, Signal::CONT);
            Ok(())
        }
        Disturbance::KillEngine => signal_engine(scene, Signal::KILL),
        Disturbance::StopEngine(hold) => {
            let pid = pid_of_engine(scene)?;
            send(&pid, Signal::STOP);
            sleep(Duration::from_millis(*hold));
            send(&pid, Signal::CONT);
            Ok(())
        }
        Disturbance::Kill(victim) => kill(scene, *victim),
        Disturbance::Cancel => run(
            scene,
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity \
             WHERE application_name LIKE 'chaos%' AND pid <> pg_backend_pid() AND random() < 0.5",
        ),
        Disturbance::Restart(how) => {
            match how {
                Shutdown::Fast => cluster.stop()?,
                Shutdown::Immediate => cluster.stop_immediately()?,
                Shutdown::Kill => cluster.kill()?,
            }
            cluster.start()
        }
        Disturbance::DropSlot => drop_slot(scene),
        Disturbance::CrashPoint { setting, view, hold, .. } => {
            arm_crash_point(scene, cluster, setting, *view, *hold)
        }
        Disturbance::Setting { name, value, usual, hold } => {
            cluster.configure(name, value)?;
            sleep(Duration::from_millis(*hold));
            cluster.configure(name, usual)
        }
        Disturbance::Database => other_database(cluster),
        Disturbance::Wal(sql) => run(scene, sql),
    }
}

/// It needs a worker of its own, which must not be in the way when it is dropped.
fn other_database(cluster: &Cluster) -> Result<()> {
    let mut client = graph_database(cluster, "other")?;
    expect_alive(&mut client)?;
    drop(client);
    drop_database(cluster, "other")
}

fn run(scene: &Scene, sql: &str) -> Result<()> {
    Ok(scene.connect("chaos administrator")?.batch_execute(sql)?)
}

fn pids(scene: &Scene, kind: &str) -> Result<Vec<i32>> {
    let sql = "SELECT pid FROM pg_stat_activity WHERE backend_type = $1 AND coalesce(datname, current_database()) = current_database()";
    let rows = scene.connect("chaos administrator")?.query(sql, &[&kind])?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// To those that are still there.
fn send(pids: &[i32], signal: Signal) {
    for pid in pids {
        // A process that has ended meanwhile needs no signal.
        let _ = signal_process(*pid, signal);
    }
}

/// That of the worker, while there is one.
fn pid_of_engine(scene: &Scene) -> Result<Vec<i32>> {
    Ok(engine_of(pids(scene, WORKER)?.first().copied())?.into_iter().collect())
}

fn signal_engine(scene: &Scene, signal: Signal) -> Result<()> {
    send(&pid_of_engine(scene)?, signal);
    Ok(())
}

fn signal_all(scene: &Scene, kind: &str, signal: Signal) -> Result<()> {
    send(&pids(scene, kind)?, signal);
    Ok(())
}

/// Processes that were asked to end do so.
fn await_end(scene: &Scene, pids: &[i32], signal: Signal) -> Result<()> {
    if signal != Signal::TERM {
        return Ok(());
    }
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY ($1)";
    let mut client = scene.connect("chaos administrator")?;
    wait_for("a process to end", PATIENCE, || {
        let left: i64 = client.query_one(sql, &[&pids])?.get(0);
        Ok((left == 0).then_some(()))
    })
}

/// Kills a process, and returns when the server has restarted all others.
fn kill(scene: &Scene, victim: Victim) -> Result<()> {
    let pid = match victim {
        Victim::Worker => pids(scene, WORKER)?.first().copied(),
        Victim::Session => {
            let sql =
                "SELECT min(pid) FROM pg_stat_activity WHERE application_name = 'chaos reader'";
            scene.connect("chaos administrator")?.query_one(sql, &[])?.get(0)
        }
    };
    let Some(pid) = pid else { return Ok(()) };
    let mut client = scene.connect("chaos administrator")?;
    signal_process(pid, Signal::KILL)?;
    wait_for("the end of all sessions", PATIENCE, || {
        Ok(client.simple_query("").is_err().then_some(()))
    })?;
    await_server(scene)
}

fn await_server(scene: &Scene) -> Result<()> {
    wait_for("the server to accept connections", PATIENCE, || {
        Ok(scene.connect("chaos administrator").ok().map(|_| ()))
    })
}

/// A slot in use cannot be dropped; one whose worker ends just now is gone with it.
fn drop_slot(scene: &Scene) -> Result<()> {
    let mut client = scene.connect("chaos administrator")?;
    client.batch_execute(
        "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_type = 'logical'",
    )?;
    let dropped = client.batch_execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_type = 'logical'",
    );
    match dropped {
        // In use, or already gone.
        Err(error)
            if !["55006", "42704"].contains(&error.code().map_or("", |code| code.code())) =>
        {
            Err(error.into())
        }
        _ => Ok(()),
    }
}

fn arm_crash_point(
    scene: &Scene,
    cluster: &mut Cluster,
    setting: &str,
    view: Option<&'static str>,
    hold: u64,
) -> Result<()> {
    cluster.configure("eddy.crash_point", setting)?;
    match view {
        // Whatever becomes of it: the server may be gone before it says so.
        Some(view) => drop(run(scene, &format!("REFRESH INCREMENTAL VIEW {view}"))),
        None => drop(signal_all(scene, WORKER, Signal::TERM)),
    }
    sleep(Duration::from_millis(hold));
    cluster.configure("eddy.crash_point", "")?;
    // Those that stopped themselves go on, also one that stops just now.
    wait_for("the crash point to be reset", PATIENCE, || {
        let Ok(mut client) = scene.connect("chaos administrator") else { return Ok(None) };
        let row = client.query_one("SHOW eddy.crash_point", &[]).ok();
        Ok(row.is_some_and(|row| row.get::<_, String>(0).is_empty()).then_some(()))
    })?;
    wait_for("the worker to go on", PATIENCE, || {
        let_stopped_go_on(scene);
        Ok(run(scene, "SET eddy.read_timeout = '500ms'; TABLE witness").ok())
    })?;
    let Some(view) = view else { return Ok(()) };
    wait_for("the view to be refreshed", PATIENCE, || {
        let_stopped_go_on(scene);
        Ok(refresh(scene, view).ok())
    })
    .with_context(|| format!("view \"{view}\""))?;
    // One that works for the view of before would stay, and keep a server that is killed from starting again.
    wait_for("assistants to go on", PATIENCE, || {
        let_stopped_go_on(scene);
        Ok(pids(scene, ASSISTANT)?.iter().all(|pid| !is_stopped(*pid)).then_some(()))
    })
}

/// Those that stopped themselves, in any database: a crash point is the whole server's. Others do not mind.
fn let_stopped_go_on(scene: &Scene) {
    let sql = "SELECT pid FROM pg_stat_activity WHERE backend_type = ANY ($1)";
    let Ok(mut client) = scene.connect("chaos administrator") else { return };
    let Ok(rows) = client.query(sql, &[&&[WORKER, ASSISTANT][..]]) else { return };
    let pids: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
    send(&pids, Signal::CONT);
}

/// A view that has ended the worker twice is in error until it is refreshed. That may fail meanwhile: somebody has taken the
/// view away, or its data are such that it has no contents. Both are mended soon.
fn refresh(scene: &Scene, view: &str) -> Result<()> {
    let mut client = scene.connect("chaos administrator")?;
    let sql = format!("SET statement_timeout = '5s'; REFRESH INCREMENTAL VIEW {view}");
    Ok(client.batch_execute(&sql)?)
}
