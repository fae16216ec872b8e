//! Starting the program that is the engine of a worker, where that is a process of its own.
//!
//! It is beside the library, so that both are of one installation. It has a socket to the worker for its input, the server's log for
//! its errors, and nothing else of the server: no other file, no environment, no signals of its process group.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const NAME: &str = "pg_eddy_engine";

/// Starts it for the database; answers what it is and the socket to it.
///
/// # Errors
/// Where it is not there, or cannot be run.
pub fn start(database: u32) -> io::Result<(Child, UnixStream)> {
    let program = beside_library()?;
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new(&program);
    // What it is for is all that its arguments tell.
    command.arg(format!("database {database}")).env_clear().process_group(0);
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
    // SAFETY: system calls alone, between fork and exec.
    unsafe { command.pre_exec(prepare) };
    let named = |error: io::Error| {
        io::Error::new(error.kind(), format!("could not run \"{}\": {error}", program.display()))
    };
    Ok((command.spawn().map_err(named)?, ours))
}

/// Has this process, which becomes another program, close what it has open by then but for its input, its output and its errors; and
/// end with the worker, also where it could not by itself.
fn prepare() -> io::Result<()> {
    const FIRST: u32 = 3;
    // SAFETY: the calls concern this process alone.
    let done = unsafe {
        [
            libc::syscall(libc::SYS_close_range, FIRST, u32::MAX, libc::CLOSE_RANGE_CLOEXEC),
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL).into(),
        ]
    };
    match done {
        [0, 0] => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Where the program is to be.
fn beside_library() -> io::Result<PathBuf> {
    // SAFETY: looks up where code of this library was loaded from; the name lasts as long as that is.
    let library = unsafe {
        let mut found: libc::Dl_info = std::mem::zeroed();
        let here = beside_library as *const () as *const libc::c_void;
        match libc::dladdr(here, &mut found) {
            0 => None,
            _ => Some(CStr::from_ptr(found.dli_fname).to_bytes()),
        }
    };
    let folder = library.map(OsStr::from_bytes).map(Path::new).and_then(Path::parent);
    folder.map(|folder| folder.join(NAME)).ok_or_else(|| io::ErrorKind::NotFound.into())
}
