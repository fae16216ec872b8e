//! What must not outlive the run: postmasters, programs of ours, temporary folders.
//!
//! Destructors do this on success and on failure; on ctrl-C and termination no destructor runs,
//! so the signal handler works through this register instead.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use rustix::process::{kill_process, waitpid, Pid, Signal, WaitOptions};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

#[derive(Default)]
struct Register {
    processes: Vec<(i32, Signal)>,
    folders: Vec<PathBuf>,
}

static REGISTER: Mutex<Register> = Mutex::new(Register { processes: vec![], folders: vec![] });
static IS_STOPPING: AtomicBool = AtomicBool::new(false);
static INTERRUPT_IS_FOR_CHILD: AtomicBool = AtomicBool::new(false);

fn register() -> MutexGuard<'static, Register> {
    REGISTER.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn remember_folder(folder: &Path) {
    register().folders.push(folder.to_path_buf());
}

/// A child process, and the signal on which it ends and leaves nothing behind.
pub fn remember_process(pid: i32, signal: Signal) {
    register().processes.push((pid, signal));
}

pub fn forget_process(pid: i32) {
    register().processes.retain(|(known, _)| *known != pid);
}

/// From now on ctrl-C and termination stop the servers and programs and remove the folders.
pub fn install_handler() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if signal != SIGINT || !INTERRUPT_IS_FOR_CHILD.load(Ordering::Relaxed) {
                IS_STOPPING.store(true, Ordering::Relaxed);
                clean();
                std::process::exit(128 + signal);
            }
        }
    });
    Ok(())
}

/// ctrl-C belongs to the interactive program in the foreground, which cancels a query by it.
pub fn leave_interrupts_to_child() {
    INTERRUPT_IS_FOR_CHILD.store(true, Ordering::Relaxed);
}

/// Whether a signal is ending the run: connections that are lost now say nothing of the server.
pub fn is_stopping() -> bool {
    IS_STOPPING.load(Ordering::Relaxed)
}

fn clean() {
    let register = register();
    for (pid, signal) in &register.processes {
        let Some(pid) = Pid::from_raw(*pid) else { continue };
        if kill_process(pid, *signal).is_ok() {
            let _ = waitpid(Some(pid), WaitOptions::empty());
        }
    }
    for folder in &register.folders {
        let _ = std::fs::remove_dir_all(folder);
    }
}
