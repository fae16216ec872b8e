//! Transactions: this process's own, and what it may ask about others.

use super::{guc, process};
use crate::pg::report;
use crate::pg::sqlstate::{class, SqlState};
use crate::pg::versions;
use pgrx::pg_sys::{self, panic::CaughtError};
use plan::error::{DataError, More};
use std::ffi::c_void;
use std::time::{Duration, Instant};

/// Moments of this process's top-level transaction that others must know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    PreCommit,
    /// Committed, and visible to others.
    Commit,
    /// Aborted or prepared: not committed now.
    NotCommitted,
}

type Callback = fn(Event);

/// Registers a callback for the life of this process. It must not raise errors.
pub fn register_callback(callback: Callback) {
    // SAFETY: a function pointer fits the argument and is read back as what it is.
    unsafe { pg_sys::RegisterXactCallback(Some(on_event), callback as *mut c_void) }
}

/// # Safety
/// For PostgreSQL to call, as this callback.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn on_event(event: pg_sys::XactEvent::Type, callback: *mut c_void) {
    use pg_sys::XactEvent::*;
    let event = match event {
        XACT_EVENT_PRE_COMMIT => Event::PreCommit,
        XACT_EVENT_COMMIT => Event::Commit,
        XACT_EVENT_ABORT | XACT_EVENT_PREPARE => Event::NotCommitted,
        _ => return,
    };
    // SAFETY: `register_callback` passed a `Callback`.
    let callback = unsafe { std::mem::transmute::<*mut c_void, Callback>(callback) };
    callback(event);
}

/// The end of a subtransaction of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubEvent {
    Commit,
    Abort,
}

/// Called at the end of a subtransaction, with its depth.
type SubCallback = fn(SubEvent, i32);

/// Registers a callback for the life of this process. It must not raise errors.
pub fn register_sub_callback(callback: SubCallback) {
    // SAFETY: a function pointer fits the argument and is read back as what it is.
    unsafe { pg_sys::RegisterSubXactCallback(Some(on_subevent), callback as *mut c_void) }
}

/// # Safety
/// For PostgreSQL to call, as this callback.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn on_subevent(
    event: pg_sys::SubXactEvent::Type,
    _this: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    callback: *mut c_void,
) {
    use pg_sys::SubXactEvent::*;
    let event = match event {
        SUBXACT_EVENT_COMMIT_SUB => SubEvent::Commit,
        SUBXACT_EVENT_ABORT_SUB => SubEvent::Abort,
        _ => return,
    };
    // SAFETY: `register_sub_callback` passed a `SubCallback`.
    let callback = unsafe { std::mem::transmute::<*mut c_void, SubCallback>(callback) };
    callback(event, depth());
}

/// How deep the current (sub)transaction is: 1 for a transaction, 2 for a subtransaction of it.
pub fn depth() -> i32 {
    // SAFETY: reads backend-local state.
    unsafe { pg_sys::GetCurrentTransactionNestLevel() }
}

/// Registers what is to be done whenever a transaction or subtransaction of this process aborts. It
/// must not raise errors.
pub fn at_abort(callback: fn()) {
    // SAFETY: a function pointer fits the argument and is read back as what it is.
    unsafe {
        pg_sys::RegisterXactCallback(Some(on_abort), callback as *mut c_void);
        pg_sys::RegisterSubXactCallback(Some(on_subabort), callback as *mut c_void);
    }
}

/// # Safety
/// For PostgreSQL to call, as this callback.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn on_abort(event: pg_sys::XactEvent::Type, callback: *mut c_void) {
    if event == pg_sys::XactEvent::XACT_EVENT_ABORT {
        // SAFETY: `at_abort` passed such a function.
        unsafe { std::mem::transmute::<*mut c_void, fn()>(callback)() }
    }
}

/// # Safety
/// For PostgreSQL to call, as this callback.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn on_subabort(
    event: pg_sys::SubXactEvent::Type,
    _this: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    callback: *mut c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        // SAFETY: `at_abort` passed such a function.
        unsafe { std::mem::transmute::<*mut c_void, fn()>(callback)() }
    }
}

/// Whether this transaction has an xid, that is, has written something.
pub fn has_xid() -> bool {
    my_xid().is_some()
}

/// The number of this subtransaction, if it has one; of the transaction where there is none within it.
pub fn my_sub_xid() -> Option<u32> {
    // SAFETY: looks at the transaction's state.
    let xid = unsafe { pg_sys::GetCurrentTransactionIdIfAny() }.into_inner();
    (xid != 0).then_some(xid)
}

/// Number of this top-level transaction among those of its session, 0 in none. Two that follow each other differ.
pub fn local_id() -> u32 {
    versions::process::local_transaction_id()
}

/// This top-level transaction's xid, if it has one.
pub fn my_xid() -> Option<u32> {
    // SAFETY: reads backend-local state; allowed at any time in a transaction.
    let xid = unsafe { pg_sys::GetTopTransactionIdIfAny() }.into_inner();
    (xid != 0).then_some(xid)
}

/// This top-level transaction's xid, which it gets if it has none.
pub fn take_xid() -> u32 {
    // SAFETY: in a transaction that may write.
    unsafe { pg_sys::GetTopTransactionId() }.into_inner()
}

/// The number of the next transaction, with the round in its upper half.
pub fn next_full_xid() -> u64 {
    // SAFETY: needs shared memory only.
    unsafe { pg_sys::ReadNextFullTransactionId() }.value
}

/// The full number of a transaction of late.
pub fn full_xid(xid: u32) -> u64 {
    let next = next_full_xid();
    next.saturating_sub(u64::from((next as u32).wrapping_sub(xid)))
}

/// The current time as PostgreSQL counts it: microseconds since 2000.
pub fn now() -> i64 {
    // SAFETY: reads the clock.
    unsafe { pg_sys::GetCurrentTimestamp() }
}

/// When the statement of the client began, as PostgreSQL counts time.
pub fn start_of_statement() -> i64 {
    // SAFETY: reads a global.
    unsafe { pg_sys::GetCurrentStatementStartTimestamp() }
}

/// Whether another transaction has not ended, as snapshots see it.
pub fn is_in_progress(xid: u32) -> bool {
    // SAFETY: needs shared memory only.
    unsafe { pg_sys::TransactionIdIsInProgress(pg_sys::TransactionId::from(xid)) }
}

/// Waits until transactions have ended as snapshots see it, at most so long; answers which have not.
pub fn wait_for_all(mut xids: Vec<u32>, patience: Duration) -> Vec<u32> {
    /// Between the record of a commit and its end is little time, but for one that waits for a standby.
    const USUAL: Duration = Duration::from_micros(200);
    let began = Instant::now();
    loop {
        xids.retain(|xid| is_in_progress(*xid));
        if xids.is_empty() || began.elapsed() >= patience {
            return xids;
        }
        if began.elapsed() < USUAL {
            std::thread::yield_now();
        } else {
            super::process::wait_for_latch(Duration::from_millis(1));
            super::process::wake_myself();
        }
    }
}

/// Waits until a transaction has ended as snapshots see it. Needs a transaction.
pub fn wait_for_end(xid: u32) {
    if is_in_progress(xid) {
        // SAFETY: in a transaction; no relation is needed for the context of errors.
        unsafe {
            pg_sys::XactLockTableWait(
                pg_sys::TransactionId::from(xid),
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                pg_sys::XLTW_Oper::XLTW_None,
            )
        }
    }
}

/// Runs `work` in a transaction of its own with an active snapshot. If it raises an error, the
/// error propagates with the transaction open: see [`abort`].
pub fn run<R>(work: impl FnOnce() -> R) -> R {
    // SAFETY: outside of a transaction, on the main thread; the snapshot is popped before commit.
    unsafe {
        pg_sys::SetCurrentStatementStartTimestamp();
        pg_sys::StartTransactionCommand();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        let result = work();
        pg_sys::PopActiveSnapshot();
        pg_sys::CommitTransactionCommand();
        result
    }
}

/// The same without a snapshot: settings of a transaction cannot be set once it has one.
pub fn run_without_snapshot<R>(work: impl FnOnce() -> R) -> R {
    // SAFETY: outside of a transaction, on the main thread.
    unsafe {
        pg_sys::StartTransactionCommand();
        let result = work();
        pg_sys::CommitTransactionCommand();
        result
    }
}

/// Ends a transaction that raised an error; harmless outside of one.
pub fn abort() {
    // SAFETY: cleans up whatever state the transaction is in.
    unsafe { pg_sys::AbortOutOfAnyTransaction() }
}

/// Runs `work` with a snapshot taken now as the active one. Needs a transaction.
pub fn with_new_snapshot<R>(work: impl FnOnce() -> R) -> R {
    // SAFETY: pushed and popped in pairs; the transaction's abort pops after an error.
    unsafe {
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        let result = work();
        pg_sys::PopActiveSnapshot();
        result
    }
}

/// Which transactions a snapshot sees, kept beyond the snapshot's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotCopy {
    xmin: u32,
    xmax: u32,
    in_progress: Vec<u32>,
}

impl SnapshotCopy {
    /// Of the active snapshot.
    pub fn of_active() -> SnapshotCopy {
        // SAFETY: there is an active snapshot; its arrays have the lengths it says.
        unsafe {
            let snapshot = pg_sys::GetActiveSnapshot();
            let count = (*snapshot).xcnt as usize;
            let mut in_progress = Vec::with_capacity(count);
            for index in 0..count {
                in_progress.push((*(*snapshot).xip.add(index)).into_inner());
            }
            in_progress.sort_unstable();
            SnapshotCopy {
                xmin: (*snapshot).xmin.into_inner(),
                xmax: (*snapshot).xmax.into_inner(),
                in_progress,
            }
        }
    }

    /// Whether it sees a committed top-level transaction.
    pub fn sees(&self, xid: u32) -> bool {
        let precedes = |a: u32, b: u32| (a.wrapping_sub(b) as i32) < 0;
        precedes(xid, self.xmin)
            || precedes(xid, self.xmax) && self.in_progress.binary_search(&xid).is_err()
    }
}

/// Waits until every transaction whose commit record has been written has ended as snapshots see
/// it. Needs a transaction.
pub fn wait_for_committed_to_end() {
    // SAFETY: the list is a palloc'd copy; a commit in progress shows by its backend's delay of
    // checkpoints, which it ends soon without waiting for anything of ours.
    unsafe {
        let mut count = 0;
        let delay = pg_sys::DELAY_CHKPT_START as i32;
        let list = pg_sys::GetVirtualXIDsDelayingChkpt(&mut count, delay);
        while pg_sys::HaveVirtualXIDsDelayingChkpt(list, count, delay) {
            pgrx::check_for_interrupts!();
            std::thread::yield_now();
        }
        pg_sys::pfree(list.cast());
    }
    for xid in with_new_snapshot(SnapshotCopy::of_active).in_progress {
        // SAFETY: looks into the commit log.
        if unsafe { pg_sys::TransactionIdDidCommit(pg_sys::TransactionId::from(xid)) } {
            wait_for_end(xid);
        }
    }
}

/// An error that was caught. Its texts are of limited length.
#[derive(Clone, Debug)]
pub struct Caught {
    pub sqlstate: SqlState,
    pub message: String,
    /// More about what happened.
    pub detail: Option<String>,
    /// What can be done.
    pub hint: Option<String>,
}

impl Caught {
    fn new(error: &CaughtError) -> Caught {
        let report = report::of_caught(error);
        let sqlstate = SqlState::from_packed(report::code_of(report));
        let [detail, hint] = [report.detail(), report.hint()].map(|text| text.map(str::to_owned));
        DataError::new(sqlstate.as_str(), report.message()).with(detail, hint).limited().into()
    }

    /// Whether trying to evaluate an expression again may help. An order to stop is none that passes: it was given to the
    /// expression.
    pub fn may_pass(&self) -> bool {
        self.sqlstate.is_of(&[
            class::TRANSACTION_ROLLBACK,
            class::INSUFFICIENT_RESOURCES,
            class::OBJECT_NOT_IN_PREREQUISITE_STATE,
            class::SYSTEM_ERROR,
        ])
    }

    /// Whether trying again may help: the error comes from other sessions or the machine.
    pub fn is_transient(&self) -> bool {
        let others = [class::OPERATOR_INTERVENTION, class::SNAPSHOT_FAILURE];
        self.may_pass() || self.sqlstate.is_of(&others) || self.is_lost_race()
    }

    /// Whether two sessions have changed a row of a catalog at once: PostgreSQL has no SQLSTATE for that, nor translations.
    fn is_lost_race(&self) -> bool {
        let messages = ["tuple concurrently updated", "tuple concurrently deleted"];
        self.sqlstate == SqlState::INTERNAL_ERROR && messages.contains(&self.message.as_str())
    }
}

impl From<DataError> for Caught {
    fn from(error: DataError) -> Caught {
        let DataError { sqlstate, message, more } = error;
        let More { detail, hint } = more.map(|more| *more).unwrap_or_default();
        let sqlstate = SqlState::parse(&sqlstate).unwrap_or(SqlState::INTERNAL_ERROR);
        Caught { sqlstate, message, detail, hint }
    }
}

impl From<Caught> for DataError {
    fn from(caught: Caught) -> DataError {
        let Caught { sqlstate, message, detail, hint } = caught;
        DataError::new(sqlstate.as_str(), &message).with(detail, hint)
    }
}

/// Runs `work`; what it raises is caught, and the transaction is as the error left it.
fn catch<R>(work: impl FnOnce() -> R) -> Result<R, Caught> {
    report::noting_codes(|| catching(work)).map_err(|error| Caught::new(&error))
}

/// Runs `work` in a subtransaction; an error is caught and undoes it. Needs a transaction.
pub fn in_subtransaction<R>(work: impl FnOnce() -> R) -> Result<R, Caught> {
    subtransaction(|| catch(work), Result::is_ok)
}

/// Runs `work` in a subtransaction that is undone, with the locks that it takes. Needs a transaction.
pub fn undone<R>(work: impl FnOnce() -> R) -> R {
    subtransaction(work, |_| false)
}

fn subtransaction<R>(work: impl FnOnce() -> R, stays: impl FnOnce(&R) -> bool) -> R {
    // SAFETY: the protocol of PL/pgSQL's exception blocks: memory context and resource owner are
    // restored after either end; after an error that is not caught the abort of the transaction does so.
    unsafe {
        let context = pg_sys::CurrentMemoryContext;
        let owner = pg_sys::CurrentResourceOwner;
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::MemoryContextSwitchTo(context);
        let result = work();
        match stays(&result) {
            true => pg_sys::ReleaseCurrentSubTransaction(),
            false => pg_sys::RollbackAndReleaseCurrentSubTransaction(),
        }
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::CurrentResourceOwner = owner;
        result
    }
}

/// Runs `work`; the message of an error is handed to `note`, and the error goes on.
pub fn noting_error<R>(work: impl FnOnce() -> R, note: impl Fn(&str)) -> R {
    catching(work).unwrap_or_else(|error| {
        note(report::of_caught(&error).message());
        error.rethrow()
    })
}

/// Runs `work`; an error is caught, to be raised again, and undoes nothing.
pub fn catching<R>(work: impl FnOnce() -> R) -> Result<R, Box<CaughtError>> {
    let mut work = Some(work);
    let attempt = std::panic::AssertUnwindSafe(move || match work.take() {
        Some(work) => Ok(work()),
        None => unreachable!("runs once"),
    });
    pgrx::PgTryBuilder::new(attempt)
        .catch_others(|error| Err(Box::new(error)))
        .catch_rust_panic(|error| Err(Box::new(error)))
        .execute()
}

/// Runs `work` in a transaction of its own; an error is caught and undoes it.
pub fn try_run<R>(work: impl FnOnce() -> R) -> Result<R, Caught> {
    let result = catch(|| run(work));
    if result.is_err() {
        abort();
    }
    result
}

/// Runs `work` as a user, inside a security-restricted operation: unable to change what the session is or to run
/// further as the caller. Names in it mean what is in `pg_catalog`, whatever the caller's search path is. What it sets is
/// as before afterwards.
pub fn as_user<R>(user: pg_sys::Oid, work: impl FnOnce() -> R) -> R {
    struct Restore(pg_sys::Oid, i32, i32);
    impl Drop for Restore {
        fn drop(&mut self) {
            // SAFETY: undoes settings and sets two globals; an abort would do the same.
            unsafe {
                pg_sys::AtEOXact_GUC(false, self.2);
                pg_sys::SetUserIdAndSecContext(self.0, self.1);
            }
        }
    }
    let (mut former, mut context) = (pg_sys::InvalidOid, 0);
    // SAFETY: reads and sets two globals.
    unsafe {
        pg_sys::GetUserIdAndSecContext(&mut former, &mut context);
        let restricted = context | pg_sys::SECURITY_RESTRICTED_OPERATION as i32;
        let _restore = Restore(former, context, pg_sys::NewGUCNestLevel());
        pg_sys::SetUserIdAndSecContext(user, restricted);
        // It costs as much as writing a row, and in the worker it is so.
        if !guc::has_value(c"search_path", guc::SAFE_SEARCH_PATH) {
            guc::set_for_now(c"search_path", guc::SAFE_SEARCH_PATH);
        }
        work()
    }
}

/// Runs `work`, in which a worker waits for no lock: others go on meanwhile, and it tries again. An error with SQLSTATE
/// 55P03 is raised if there is one. Sessions wait as ever.
pub fn without_waiting<R>(work: impl FnOnce() -> R) -> R {
    if !process::is_ours() {
        return work();
    }
    // SAFETY: settings changed on a nest level are restored at its end, or by the abort.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        // The shortest there is.
        guc::set_for_now(c"lock_timeout", c"1ms");
        let result = work();
        pg_sys::AtEOXact_GUC(true, level);
        result
    }
}

/// Runs `work` as if this transaction and this statement had begun at a time.
pub fn at_time<R>(time: i64, work: impl FnOnce() -> R) -> R {
    struct Restore(i64, i64);
    impl Drop for Restore {
        fn drop(&mut self) {
            // SAFETY: as below.
            unsafe { pg_sys::SetParallelStartTimestamps(self.0, self.1) };
        }
    }
    // SAFETY: reads and sets two globals, which parallel workers are given in the same way.
    unsafe {
        let transaction = pg_sys::GetCurrentTransactionStartTimestamp();
        let _restore = Restore(transaction, pg_sys::GetCurrentStatementStartTimestamp());
        pg_sys::SetParallelStartTimestamps(time, time);
        work()
    }
}

/// Gives back the advisory locks of this session, which has none of its own: functions of views may take them, and an
/// abort does not give them back.
pub fn release_advisory_locks() {
    const ADVISORY: u16 = 2;
    // SAFETY: backend-local and lock table state.
    unsafe { pg_sys::LockReleaseSession(ADVISORY) };
}

/// Whether the transaction goes on after the statement, which a client sent if it is at `top_level`.
pub fn is_in_block(top_level: bool) -> bool {
    // SAFETY: within a transaction.
    unsafe { pg_sys::IsInTransactionBlock(top_level) }
}

/// Whether all statements of this transaction share one snapshot.
pub fn uses_one_snapshot() -> bool {
    // SAFETY: a plain global.
    unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 }
}

/// Whether this transaction is serializable.
pub fn is_serializable() -> bool {
    // SAFETY: a plain global.
    unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_SERIALIZABLE as i32 }
}

/// Whether this transaction has taken a snapshot.
pub fn has_snapshot() -> bool {
    // SAFETY: a plain global.
    unsafe { pg_sys::FirstSnapshotSet }
}

/// Whether this process runs a part of another one's parallel query.
pub fn is_parallel_worker() -> bool {
    // SAFETY: a plain global, -1 in all other processes.
    unsafe { pg_sys::ParallelWorkerNumber >= 0 }
}

/// Seconds and microseconds between two PostgreSQL timestamps, as milliseconds.
pub fn milliseconds_since(then: i64) -> i64 {
    (now() - then).max(0) / 1000
}
