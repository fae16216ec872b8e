//! Which view was at work when a worker died: a small file per database that outlives the process, and a crash of the
//! server, because it is mapped into memory.
//!
//! A view that ends the process would do so again as soon as it is attached again, for ever. So whatever may end
//! the process is marked as long as it lasts. A fatal signal says whose thread it struck, and an error that ends the
//! process whose work it ended: then that view is the culprit. A process that is simply gone (killed, or ended with the
//! whole server) leaves marks of all views that were at work: they are suspects. What each of them means for a view is
//! decided in `worker::suspects`.
//!
//! The marks survive the process, not the machine: after a power failure there may be none. Nor do they hold for a copy of
//! the data directory, such as a base backup or a standby, in which no process has died: a file knows which one it is.

use super::process;
use crate::pg::ids::ViewId;
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::*};

/// Folder in the data directory.
const FOLDER: &str = "pg_eddy";

/// How often the folder is made when it goes at the same time.
const FOLDER_ATTEMPTS: usize = 10;

/// Views that can be marked at the same time; beyond that none is, as the log says.
const SLOTS: usize = 4096;

/// The name of no view, in the slot of one that was dropped. A slot of 0 has never been used, nor has one behind it.
const GONE: u32 = u32::MAX;

/// Tells a file of this layout from any other contents: three letters and the version of the layout.
const MAGIC: u32 = 0x6564_6403;

/// What a view is doing, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Work {
    /// Its tables are read and its dataflow is started.
    Attach = 1,
    /// Its dataflow is at work.
    Batch = 2,
    /// PostgreSQL evaluates an expression of it.
    Evaluate = 4,
    /// Its rows are written.
    Apply = 8,
    /// Its dataflow is fed.
    Feed = 16,
    /// Assistants are at work for it.
    Assist = 32,
}

/// Marks of one view.
#[repr(C)]
struct Slot {
    /// The view; 0 or [`GONE`] for a free slot.
    relid: AtomicU32,
    work: AtomicU32,
    /// Deaths of which it is known to be the cause, and deaths, one after the other, while it was being attached.
    culprit: AtomicU32,
    suspect: AtomicU32,
    /// The file of the view's heap then: REFRESH makes a new one.
    file: AtomicU32,
    /// Its owner, as whom it is written.
    owner: AtomicU32,
}

#[repr(C)]
struct Map {
    magic: AtomicU32,
    /// The view that the process died of, if that is known.
    died_of: AtomicU32,
    /// The number of this very file in its file system: a copy has another one.
    file: AtomicU64,
    /// The start of the machine since which the next figure counts.
    boot: AtomicU64,
    /// Processes that the kernel had killed for want of memory when the worker started.
    killed_for_memory: AtomicU64,
    slots: [Slot; SLOTS],
}

/// What is known of a view from processes that died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub relid: ViewId,
    /// Deaths of which it is known to be the cause.
    pub culprit: u32,
    /// Deaths, one after the other, while it was being attached; 1 if it was at work in another way.
    pub suspect: u32,
    /// The file of its heap at the last of them.
    pub file: u32,
    /// Its owner then.
    pub owner: u32,
}

/// Whether the log says that there is no room.
static IS_FULL: AtomicBool = AtomicBool::new(false);

static MAP: AtomicPtr<Map> = AtomicPtr::new(std::ptr::null_mut());

thread_local! {
    /// The view for which this thread is at work, 0 for none.
    static MINE: Cell<u32> = const { Cell::new(0) };
    /// The view in whose work the last error struck.
    static FAILED: Cell<u32> = const { Cell::new(0) };
}

/// Opens the marks of a database, takes note of how the worker before ended, and says what is known of its views. Where
/// there can be no file nothing is marked.
pub fn open(database: u32) -> Vec<Record> {
    let path = folder().join(database.to_string());
    match map_file(&path) {
        Ok((map, file)) => {
            let records = take_over(map, file);
            MAP.store(std::ptr::from_ref(map).cast_mut(), Release);
            install_handlers();
            records
        }
        Err(error) => {
            pgrx::log!("pg_eddy: no marks of views at work in \"{}\": {error}", path.display());
            Vec::new()
        }
    }
}

/// Lets this process, which works for a view on behalf of the database's worker, say so if a fatal signal strikes it: the
/// worker ends with the whole server and cannot tell.
pub fn join(database: u32, relid: ViewId) {
    let path = folder().join(database.to_string());
    if let Ok((map, _)) = map_file(&path) {
        MAP.store(std::ptr::from_ref(map).cast_mut(), Release);
        install_handlers();
        MINE.set(relid.to_u32());
    }
}

/// Where our files are, in the data directory.
pub fn folder() -> PathBuf {
    PathBuf::from(FOLDER)
}

/// The marks in a file, and the file's number.
fn map_file(path: &PathBuf) -> std::io::Result<(&'static Map, u64)> {
    let file = open_file(path)?;
    file.set_len(size_of::<Map>() as u64)?;
    let number = file.metadata()?.ino();
    // SAFETY: a new mapping of a file of that length, which stays as long as the process. Zeroed memory, and any other
    // contents, are valid values of the atomics it is made of.
    unsafe {
        let place = libc::mmap(
            std::ptr::null_mut(),
            size_of::<Map>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        if place == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        Ok((&*place.cast::<Map>(), number))
    }
}

fn open_file(path: &PathBuf) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let mut outcome = options.open(path);
    // Who takes out another database's marks may take the folder along, as soon as it is there.
    for _ in 0..FOLDER_ATTEMPTS {
        match &outcome {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                std::fs::create_dir_all(folder())?;
                outcome = options.open(path);
            }
            _ => break,
        }
    }
    outcome
}

/// Takes out the marks of a database that is gone or has no views any more, and the folder with the last of them.
pub fn remove(database: u32) {
    if std::fs::remove_file(folder().join(database.to_string())).is_ok() {
        // It stays while other databases have marks.
        let _ = std::fs::remove_dir(folder());
    }
}

/// Makes records of marks.
fn take_over(map: &Map, file: u64) -> Vec<Record> {
    let is_same_boot = map.boot.swap(this_boot(), SeqCst) == this_boot();
    let killed = killed_for_memory();
    let for_memory = map.killed_for_memory.swap(killed, SeqCst) < killed && is_same_boot;
    let found = map.magic.swap(MAGIC, SeqCst);
    if ![0, MAGIC].contains(&found) {
        pgrx::log!(
            "pg_eddy: marks of views at work have another form, {found:08x}, and are ignored"
        );
    }
    if map.file.swap(file, SeqCst) != file || found != MAGIC {
        map.slots.iter().for_each(clear);
        map.died_of.store(0, SeqCst);
        return Vec::new();
    }
    let died_of = map.died_of.swap(0, SeqCst);
    for slot in map.slots.iter().filter(|slot| slot.relid.load(SeqCst) != 0) {
        let work = slot.work.swap(0, SeqCst);
        if died_of != 0 {
            let is_culprit = slot.relid.load(SeqCst) == died_of;
            slot.culprit.fetch_add(u32::from(is_culprit), SeqCst);
        } else {
            blame(slot, work, for_memory);
        }
    }
    let records = known(map);
    // Those of whom nothing is known make room.
    map.slots.iter().skip(records.len()).for_each(clear);
    for (slot, record) in map.slots.iter().zip(&records) {
        clear(slot);
        slot.culprit.store(record.culprit, SeqCst);
        slot.suspect.store(record.suspect, SeqCst);
        slot.file.store(record.file, SeqCst);
        slot.owner.store(record.owner, SeqCst);
        slot.relid.store(record.relid.to_u32(), SeqCst);
    }
    records
}

/// Somebody has died, and nobody knows of what, while a view was at work so.
fn blame(slot: &Slot, work: u32, for_memory: bool) {
    if work != 0 && for_memory {
        // Who takes all memory is at work meanwhile.
        slot.culprit.fetch_add(1, SeqCst);
    } else if work & Work::Attach as u32 != 0 {
        slot.suspect.fetch_add(1, SeqCst);
    } else if work != 0 {
        // It had been attached: what it died of, if it was that, does not come again at once.
        slot.suspect.store(1, SeqCst);
    }
}

/// What is known of views, if something is.
fn known(map: &Map) -> Vec<Record> {
    let is_known = |record: &Record| record.culprit + record.suspect > 0;
    let slots = map.slots.iter().filter(|slot| ![0, GONE].contains(&slot.relid.load(SeqCst)));
    slots.map(record).filter(is_known).collect()
}

/// The process that is the engine has died, which no view need have been the cause of: what is known of views then.
pub fn note_engine_died() -> Vec<Record> {
    const OF_ENGINE: u32 = Work::Attach as u32 | Work::Batch as u32 | Work::Feed as u32;
    let Some(map) = map() else { return Vec::new() };
    let killed = killed_for_memory();
    let for_memory = map.killed_for_memory.swap(killed, SeqCst) < killed;
    for slot in map.slots.iter().filter(|slot| slot.relid.load(SeqCst) != 0) {
        blame(slot, slot.work.fetch_and(!OF_ENGINE, SeqCst) & OF_ENGINE, for_memory);
    }
    known(map)
}

fn record(slot: &Slot) -> Record {
    Record {
        relid: ViewId::new(slot.relid.load(SeqCst)),
        culprit: slot.culprit.load(SeqCst),
        suspect: slot.suspect.load(SeqCst),
        file: slot.file.load(SeqCst),
        owner: slot.owner.load(SeqCst),
    }
}

fn clear(slot: &Slot) {
    let Slot { relid, work, culprit, suspect, file, owner } = slot;
    for field in [relid, work, culprit, suspect, file, owner] {
        field.store(0, SeqCst);
    }
}

/// Tells this start of the machine from others, and from those of other machines.
fn this_boot() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// How many processes of this machine the kernel has killed for want of memory.
fn killed_for_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

fn map() -> Option<&'static Map> {
    // SAFETY: set once, to a mapping that stays.
    unsafe { MAP.load(Acquire).as_ref() }
}

fn slot_of(relid: ViewId) -> Option<&'static Slot> {
    let slots = &map()?.slots;
    let mut free = None;
    for slot in slots {
        match slot.relid.load(Relaxed) {
            found if found == relid.to_u32() => return Some(slot),
            // Only this process's main thread takes slots.
            GONE => free = free.or(Some(slot)),
            0 => return free.or(Some(slot)),
            _ => {}
        }
    }
    if free.is_none() && !IS_FULL.swap(true, Relaxed) {
        pgrx::log!(
            "pg_eddy: more than {SLOTS} views: those beyond are not marked as being at work"
        );
    }
    free
}

/// A view that is no more needs none.
pub fn forget(relid: ViewId) {
    let slot = slot_of(relid).filter(|slot| slot.relid.load(Relaxed) == relid.to_u32());
    if let Some(slot) = slot {
        clear(slot);
        slot.relid.store(GONE, SeqCst);
    }
}

/// A view begins some work.
pub fn begin(relid: ViewId, work: Work) {
    if let Some(slot) = slot_of(relid) {
        slot.relid.store(relid.to_u32(), SeqCst);
        slot.work.fetch_or(work as u32, SeqCst);
    }
}

/// It has ended it.
pub fn end(relid: ViewId, work: Work) {
    if let Some(slot) = slot_of(relid) {
        slot.work.fetch_and(!(work as u32), SeqCst);
    }
}

/// The file of its heap and its owner, for the record.
pub fn note(relid: ViewId, file: u32, owner: u32) {
    if let Some(slot) = slot_of(relid) {
        slot.file.store(file, SeqCst);
        slot.owner.store(owner, SeqCst);
    }
}

/// The view has been attached: if it was but a suspect, it is none any more.
pub fn acquit(relid: ViewId) {
    if let Some(slot) = slot_of(relid) {
        slot.suspect.store(0, SeqCst);
    }
}

/// The view has shown that it can be maintained: what was known of it is forgotten.
pub fn forgive(relid: ViewId) {
    if let Some(slot) = slot_of(relid) {
        slot.culprit.store(0, SeqCst);
        slot.suspect.store(0, SeqCst);
    }
}

/// The worker ends by itself: no mark is left but of the view in whose work an error struck that was not caught.
pub fn close(is_failure: bool) {
    let Some(map) = map() else { return };
    let guilty = MINE.get().max(FAILED.get());
    if is_failure && guilty != 0 {
        map.died_of.store(guilty, SeqCst);
    }
    for slot in &map.slots {
        slot.work.store(0, SeqCst);
    }
}

/// As long as this lives the main thread is at work for a view.
pub struct AtWork(ViewId, Work);

impl AtWork {
    pub fn begin(relid: ViewId, work: Work) -> AtWork {
        begin(relid, work);
        MINE.set(relid.to_u32());
        AtWork(relid, work)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        if std::thread::panicking() {
            FAILED.set(self.0.to_u32());
        }
        MINE.set(0);
        end(self.0, self.1);
    }
}

/// Whatever error struck was caught: the process goes on.
pub fn go_on() {
    FAILED.set(0);
}

/// A thread of a dataflow says whose it is.
pub fn set_thread(relid: ViewId) {
    MINE.set(relid.to_u32());
    process::use_own_signal_stack();
}

fn install_handlers() {
    process::use_own_signal_stack();
    for signal in process::FATAL {
        // SAFETY: the handler only stores to memory that stays; it is reset before it runs, so that the signal does
        // what it would have done as soon as the handler returns or raises it again.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_fatal_signal as *const () as usize;
            action.sa_flags = libc::SA_RESETHAND | libc::SA_NODEFER | libc::SA_ONSTACK;
            libc::sigemptyset(&mut action.sa_mask);
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// Unguarded: the process is at its end.
extern "C" fn on_fatal_signal(signal: i32) {
    if let (Some(map), mine) = (map(), MINE.get()) {
        if mine != 0 {
            map.died_of.store(mine, SeqCst);
        }
    }
    // SAFETY: the default action is in place again.
    unsafe { libc::raise(signal) };
}
