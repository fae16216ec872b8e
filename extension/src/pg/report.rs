//! What pgrx's reports of errors lack. It knows PostgreSQL's own SQLSTATEs only and takes all others for XX000, and its
//! reports have neither position nor context: callbacks of PostgreSQL's error context stack read and write these.

use crate::pg::sqlstate::SqlState;
use pgrx::pg_sys::panic::{CaughtError, ErrorReport, ErrorReportWithLevel};
use pgrx::{pg_sys, PgLogLevel, PgSqlErrorCode};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

// Unguarded: an error in the middle of reporting another one is PostgreSQL's to deal with.
extern "C-unwind" {
    fn errcode(code: c_int) -> c_int;
    fn errcontext_msg(format: *const c_char, ...) -> c_int;
    fn errposition(cursorpos: c_int) -> c_int;
    fn geterrcode() -> c_int;
    fn geterrposition() -> c_int;
    fn pg_mbstrlen_with_len(s: *const c_char, limit: c_int) -> c_int;
    fn CopyErrorData() -> *mut pg_sys::ErrorData;
    fn FreeErrorData(data: *mut pg_sys::ErrorData);
}

/// An SQLSTATE that is none of the others, in PostgreSQL's packed form.
const INTERNAL_ERROR: i32 = PgSqlErrorCode::ERRCODE_INTERNAL_ERROR as i32;

/// Whether pgrx takes a packed SQLSTATE for another one.
fn is_unknown_to_pgrx(code: i32) -> bool {
    code != INTERNAL_ERROR && PgSqlErrorCode::from(code) as i32 == INTERNAL_ERROR
}

// ---- errors that are caught ------------------------------------------------------------------

/// An error whose SQLSTATE pgrx does not know.
struct Raised {
    code: i32,
    texts: Texts,
}

/// Message, detail and hint.
type Texts = [Option<String>; 3];

/// How many such errors are remembered: one that is raised again need not be the last.
const REMEMBERED: usize = 16;

thread_local! {
    static RAISED: RefCell<VecDeque<Raised>> = const { RefCell::new(VecDeque::new()) };
}

/// Runs `work`, which lets no error pass; errors in it are remembered for [`code_of`].
pub fn noting_codes<R>(work: impl FnOnce() -> R) -> R {
    // SAFETY: it takes no argument.
    unsafe { in_frame(note_code, std::ptr::null_mut(), work) }
}

/// Runs `work` within a frame of PostgreSQL's error context stack. An error that jumps over it leaves the frame on the
/// stack, which whoever catches the error resets, as the server does.
///
/// # Safety
/// `callback` can be called with `arg` while `work` runs. If `work` lets errors pass, it has nothing to drop.
unsafe fn in_frame<R>(
    callback: unsafe extern "C-unwind" fn(*mut c_void),
    arg: *mut c_void,
    work: impl FnOnce() -> R,
) -> R {
    // SAFETY: the stack is a plain global of the only thread that uses it; the frame is on it for as long as it lives.
    unsafe {
        let previous = pg_sys::error_context_stack;
        let mut frame = pg_sys::ErrorContextCallback { previous, callback: Some(callback), arg };
        pg_sys::error_context_stack = &mut frame;
        let result = work();
        pg_sys::error_context_stack = previous;
        result
    }
}

/// Called by PostgreSQL while an error, or a notice, is reported.
/// Unguarded: it raises nothing.
///
/// # Safety
/// For PostgreSQL to call, within a frame of its error context stack.
unsafe extern "C-unwind" fn note_code(_: *mut c_void) {
    // SAFETY: within a context callback there is an error to copy, in any context but the error's own.
    unsafe {
        let code = geterrcode();
        if !is_unknown_to_pgrx(code) {
            return;
        }
        let outer = pg_sys::CurrentMemoryContext;
        pg_sys::CurrentMemoryContext = pg_sys::TopMemoryContext;
        let data = CopyErrorData();
        let text = |text: *mut c_char| {
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        };
        let texts = [(*data).message, (*data).detail, (*data).hint].map(text);
        FreeErrorData(data);
        pg_sys::CurrentMemoryContext = outer;
        RAISED.with_borrow_mut(|raised| {
            raised.truncate(REMEMBERED - 1);
            raised.push_front(Raised { code, texts });
        });
    }
}

/// What an error says that was caught.
pub fn of_caught(error: &CaughtError) -> &ErrorReportWithLevel {
    use CaughtError::{ErrorReport, PostgresError, RustPanic};
    match error {
        PostgresError(report) | ErrorReport(report) | RustPanic { ereport: report, .. } => report,
    }
}

/// The packed SQLSTATE of an error that was caught within [`noting_codes`].
pub fn code_of(report: &ErrorReportWithLevel) -> i32 {
    let code = report.sql_error_code() as i32;
    if code != INTERNAL_ERROR {
        return code;
    }
    let texts: Texts = [Some(report.message()), report.detail(), report.hint()]
        .map(|text| text.map(str::to_owned));
    RAISED.with_borrow(|raised| {
        raised.iter().find(|raised| raised.texts == texts).map_or(code, |raised| raised.code)
    })
}

// ---- notices ---------------------------------------------------------------------------------

/// Something that is told to who has sent the statement, once it is given to [`tell`].
pub fn notice(message: impl Into<String>) -> ErrorReport {
    ErrorReport::new(SqlState::SUCCESSFUL_COMPLETION.for_pgrx(), message.into(), "pg_eddy")
}

/// Tells it.
pub fn tell(notice: ErrorReport) {
    notice.report(PgLogLevel::NOTICE);
}

/// Warns of it.
pub fn warn(notice: ErrorReport) {
    notice.report(PgLogLevel::WARNING);
}

// ---- errors that are raised ------------------------------------------------------------------

/// Byte offset in the source text of the error being raised, -1 for none.
static LOCATION: AtomicI64 = AtomicI64::new(-1);

thread_local! {
    /// SQLSTATE and context of the error being raised.
    static ADDED: RefCell<Added> = const { RefCell::new(Added { code: None, context: None }) };
}

#[derive(Default)]
struct Added {
    code: Option<i32>,
    context: Option<CString>,
}

/// The same as PostgreSQL counts, in characters from 1 on, of an error that was caught to be raised again; 0 for none.
static CURSOR: AtomicI32 = AtomicI32::new(0);

/// Runs `work` within [`completing`]: an error of PostgreSQL's that passes through Rust code on its way keeps its position.
pub fn keeping_position<R>(work: impl FnOnce() -> R) -> R {
    /// Takes the frame off the stack when what `work` raises passes by.
    struct Restore(*mut pg_sys::ErrorContextCallback);
    impl Drop for Restore {
        fn drop(&mut self) {
            // SAFETY: the stack as it was when this frame of the program began, which still runs.
            unsafe { pg_sys::error_context_stack = self.0 }
        }
    }
    // SAFETY: reads a plain global of the only thread that uses it. The callback takes no argument; errors come as panics of Rust.
    unsafe {
        let _restore = Restore(pg_sys::error_context_stack);
        in_frame(note_position, std::ptr::null_mut(), work)
    }
}

/// Called by PostgreSQL while an error, or a notice, is reported.
/// Unguarded: it raises nothing.
///
/// # Safety
/// For PostgreSQL to call, within a frame of its error context stack.
unsafe extern "C-unwind" fn note_position(_: *mut c_void) {
    // SAFETY: within a context callback.
    CURSOR.store(unsafe { geterrposition() }, Ordering::Relaxed);
}

/// Remembers where the error about to be raised points to.
pub fn set_location(byte_offset: usize) {
    LOCATION.store(i64::try_from(byte_offset).unwrap_or(-1), Ordering::Relaxed);
}

/// Gives the error about to be raised an SQLSTATE, in its packed form, and a context.
pub fn set_code(code: i32, context: Option<&str>) {
    let context = context.and_then(|context| CString::new(context).ok());
    ADDED.set(Added { code: Some(code), context });
}

/// Context callback for hooks: `arg` is a `*const c_char`, the source text, or null for errors without position.
///
/// # Safety
/// To be called by PostgreSQL while an error is raised, with a valid C string or null as `arg`.
/// Unguarded: it raises nothing.
unsafe extern "C-unwind" fn complete(arg: *mut c_void) {
    // Where the source is not known, another frame may know it.
    let location = if arg.is_null() { -1 } else { LOCATION.swap(-1, Ordering::Relaxed) };
    let added = ADDED.take();
    // SAFETY: all of these may be called in a context callback; the text is longer than the offset, which came from the
    // parser of that very text. The context is copied.
    unsafe {
        if let Some(code) = added.code {
            errcode(code);
        }
        if let Some(context) = &added.context {
            errcontext_msg(c"%s".as_ptr(), context.as_ptr());
        }
        if location >= 0 {
            errposition(pg_mbstrlen_with_len(arg.cast(), location as i32) + 1);
        } else if !arg.is_null() && geterrposition() == 0 {
            // Not on its way into Rust code, but on that out of it.
            errposition(CURSOR.swap(0, Ordering::Relaxed));
        }
    }
}

/// Runs `work`, whose errors get the position and the context that were set for them within it: a position in `source`,
/// or none if that is null.
///
/// # Safety
/// A C string that outlives the call, or null; `work` has nothing to drop, for errors jump over it.
pub unsafe fn completing(source: *const c_char, work: impl FnOnce()) {
    LOCATION.store(-1, Ordering::Relaxed);
    CURSOR.store(0, Ordering::Relaxed);
    ADDED.take();
    // SAFETY: per contract.
    unsafe { in_frame(complete, source.cast_mut().cast(), work) }
}
