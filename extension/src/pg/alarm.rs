//! A limit on the time that code of users takes in this process.
//!
//! A thread of its own watches the clock and asks this process to cancel what it does, as a signal would; it asks again
//! for code that catches the cancel and goes on. Code that does not listen at all is ended together with the process:
//! whose it was is marked (see [`super::markers`]). Code in C that never looks for interrupts cannot be stopped.
//!
//! Time in which the whole process stood still (a machine that was moved, a debugger) is nobody's fault and does not count.

use super::process;
use pgrx::pg_sys;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering::*};
use std::sync::OnceLock;
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Time between two requests.
const AGAIN: Duration = Duration::from_millis(500);

/// Requests after which the process is ended.
const PATIENCE: u64 = 10;

/// Longest sleep of the watching thread while code runs, in microseconds.
const NAP: u64 = 100_000;

/// One that took so much longer shows that the process stood still.
const STANDSTILL: u64 = 50_000;

/// When to ask, in microseconds of the process's own clock; 0 for never.
static DEADLINE: AtomicU64 = AtomicU64::new(0);

/// What the work gets anew when it has come a part of its way, in microseconds; 0 for nothing.
static RENEWAL: AtomicU64 = AtomicU64::new(0);

/// When the alarm was set last.
static ARMED: AtomicU64 = AtomicU64::new(0);

/// Microseconds in which the process stood still, which its clock leaves out.
static STOOD_STILL: AtomicU64 = AtomicU64::new(0);

/// Until when the watching thread sleeps, likewise; `u64::MAX` while it sleeps until it is woken.
static ASLEEP_UNTIL: AtomicU64 = AtomicU64::new(0);

/// Requests since the alarm was set.
static REQUESTS: AtomicU64 = AtomicU64::new(0);

/// Whether a cancel of this alarm's has not been looked at.
static FIRED: AtomicBool = AtomicBool::new(false);

static LATCH: AtomicPtr<pg_sys::Latch> = AtomicPtr::new(std::ptr::null_mut());

fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let time = START.get_or_init(Instant::now).elapsed().as_micros() as u64;
    // Never 0, which means never.
    time.saturating_sub(STOOD_STILL.load(SeqCst)) + 1
}

/// Runs `work`, canceled if it takes longer than `limit` (`None` for no limit). Whether an error of it comes from that,
/// [`take_fired`] says.
pub fn within<R>(limit: Option<Duration>, work: impl FnOnce() -> R) -> R {
    struct Disarm;
    impl Drop for Disarm {
        fn drop(&mut self) {
            disarm();
        }
    }
    let Some(limit) = limit else { return work() };
    let _disarm = Disarm;
    arm(limit);
    work()
}

/// The same for work in parts, each of which may take that long: it tells of them by [`renew`].
pub fn within_each<R>(limit: Option<Duration>, work: impl FnOnce() -> R) -> R {
    let renewal = limit.map_or(0, |limit| limit.as_micros() as u64);
    within(limit, || {
        RENEWAL.store(renewal, SeqCst);
        work()
    })
}

/// Whether the last work was canceled because it took too long.
pub fn take_fired() -> bool {
    FIRED.swap(false, SeqCst)
}

/// The work has come a part of its way.
pub fn renew() {
    let renewal = RENEWAL.load(SeqCst);
    if renewal != 0 {
        arm(Duration::from_micros(renewal));
    }
}

fn arm(limit: Duration) {
    let armed = now();
    let deadline = armed + limit.as_micros() as u64;
    ARMED.store(armed, SeqCst);
    REQUESTS.store(0, SeqCst);
    FIRED.store(false, SeqCst);
    DEADLINE.store(deadline, SeqCst);
    let watcher = watcher();
    if ASLEEP_UNTIL.load(SeqCst) > deadline {
        watcher.unpark();
    }
}

fn disarm() {
    RENEWAL.store(0, SeqCst);
    DEADLINE.store(0, SeqCst);
    // Nobody has noticed: the work was done in the same moment.
    if FIRED.load(SeqCst) && process::forget_cancel() {
        FIRED.store(false, SeqCst);
    }
}

fn watcher() -> &'static Thread {
    static THREAD: OnceLock<Thread> = OnceLock::new();
    THREAD.get_or_init(|| {
        // SAFETY: reading the pointer to this process's latch.
        LATCH.store(unsafe { pg_sys::MyLatch }, SeqCst);
        let spawn = || std::thread::Builder::new().name("alarm".into()).spawn(watch);
        match process::with_signals_blocked(spawn) {
            Ok(thread) => thread.thread().clone(),
            // Then there is no limit, which is better than no evaluation.
            Err(_) => std::thread::current(),
        }
    })
}

fn watch() {
    // When this thread should have looked at the clock.
    let mut due = ARMED.load(SeqCst);
    loop {
        let overslept = now().saturating_sub(due);
        if overslept > STANDSTILL {
            STOOD_STILL.fetch_add(overslept, SeqCst);
        }
        let (deadline, time) = (DEADLINE.load(SeqCst), now());
        due = time;
        if deadline != 0 && deadline <= time {
            fire(deadline);
            continue;
        }
        let until = if deadline == 0 { u64::MAX } else { deadline };
        ASLEEP_UNTIL.store(until, SeqCst);
        if DEADLINE.load(SeqCst) == deadline {
            due = sleep(deadline, time);
        }
        ASLEEP_UNTIL.store(0, SeqCst);
    }
}

/// Sleeps until then, or for a while; answers when it should have ended.
fn sleep(deadline: u64, time: u64) -> u64 {
    if deadline == 0 {
        std::thread::park();
        return if DEADLINE.load(SeqCst) == 0 { now() } else { ARMED.load(SeqCst) };
    }
    let wanted = (deadline - time).min(NAP);
    std::thread::park_timeout(Duration::from_micros(wanted));
    time + wanted
}

fn fire(deadline: u64) {
    let next = now() + AGAIN.as_micros() as u64;
    if DEADLINE.compare_exchange(deadline, next, SeqCst, SeqCst).is_err() {
        return;
    }
    FIRED.store(true, SeqCst);
    let is_ignored = REQUESTS.fetch_add(1, SeqCst) >= PATIENCE;
    // SAFETY: what the server's own handlers of signals do, at any moment; the latch lives as long as the process.
    unsafe {
        if is_ignored {
            (&raw mut pg_sys::ProcDiePending).write_volatile(1);
        } else {
            (&raw mut pg_sys::QueryCancelPending).write_volatile(1);
        }
        (&raw mut pg_sys::InterruptPending).write_volatile(1);
        process::raw::SetLatch(LATCH.load(SeqCst));
    }
}
