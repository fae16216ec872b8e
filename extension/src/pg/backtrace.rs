//! Backtraces of bugs: for the server's log, never for clients.
//!
//! Where the environment asks for backtraces (`RUST_BACKTRACE`), pgrx puts one into the detail of every error, whoever raised
//! it. So the standard library of this library captures none by itself; a panic, which is a bug, writes where it was
//! to the log, and the backtrace if the environment asks for it. Errors that are raised are no panics to us.

use std::backtrace::Backtrace;
use std::panic::PanicHookInfo;

/// What the standard library looks at first, before [`FOR_PANICS`].
const FOR_CAPTURES: &str = "RUST_LIB_BACKTRACE";
const FOR_PANICS: &str = "RUST_BACKTRACE";

/// Called when the library is loaded, once pgrx has its own hook for panics.
pub fn keep_from_clients() {
    let is_wanted = [FOR_CAPTURES, FOR_PANICS].iter().find_map(std::env::var_os);
    let is_wanted = is_wanted.is_some_and(|value| value != "0");
    disable_captures();
    let of_pgrx = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        of_pgrx(panic);
        if is_bug(panic) && is_main_thread() {
            write_to_log(panic, is_wanted);
        }
    }));
}

/// The standard library asks for the variable once, at the first capture, and remembers the answer: so the variable is as
/// it was when other libraries, and programs that the server starts, look at it. Nobody else does meanwhile: a server
/// that loads a library has one thread.
fn disable_captures() {
    let former = std::env::var_os(FOR_CAPTURES);
    std::env::set_var(FOR_CAPTURES, "0");
    let _nothing = Backtrace::capture();
    match former {
        Some(value) => std::env::set_var(FOR_CAPTURES, value),
        None => std::env::remove_var(FOR_CAPTURES),
    }
}

/// Errors of PostgreSQL and of ours travel as panics with other contents.
fn is_bug(panic: &PanicHookInfo) -> bool {
    panic.payload_as_str().is_some()
}

/// Of panics of other threads pgrx writes to the log.
fn is_main_thread() -> bool {
    // SAFETY: neither has preconditions.
    unsafe { libc::gettid() == libc::getpid() }
}

/// To standard error, as the postmaster does before it has a log: what raises errors cannot be called in a panic.
fn write_to_log(panic: &PanicHookInfo, with_backtrace: bool) {
    let place = panic.location().map_or_else(String::new, |place| format!(" at {place}"));
    let message = panic.payload_as_str().unwrap_or_default();
    if with_backtrace {
        let backtrace = Backtrace::force_capture();
        eprintln!("pg_eddy: a bug{place}: {message}\n{backtrace}");
    } else {
        eprintln!("pg_eddy: a bug{place}: {message}");
    }
}
