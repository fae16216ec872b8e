//! How many bytes the process holds on the heap, and for whom, counted by the global allocator.
//!
//! The program opts in with `#[global_allocator] static A: CountingAllocator = CountingAllocator;`.
//! Without it [`allocated`] stays 0 and no memory limit takes effect.
//!
//! Every block is on an [`Account`]: that of the dataflow for which the thread works that allocates it, or else the
//! common one. Which, stands behind the block's last byte, so that whoever frees it, on whatever thread, takes it off the
//! same account. Counted is what jemalloc takes for a block, not only what was asked for. It is jemalloc because it can be told to
//! give back what is free, whatever thread had it: the C library's allocator keeps what lies at the end of each of its arenas, and
//! each thread has one.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::{Mutex, PoisonError};
use tikv_jemallocator::Jemalloc;

/// Bytes a thread may allocate or free before it updates the shared counts, so that threads do not
/// contend for one cache line on every allocation.
const GRAIN: isize = 64 * 1024;

/// Bytes a thread may allocate between two looks at the limits.
const LOOK_EVERY: usize = 4 << 20;

/// The number of an account.
type Number = u16;

/// The account of whatever is nobody's.
const COMMON: Number = 0;

/// Bytes for the number of the account, behind each block.
const TAG: usize = size_of::<Number>();

static TOTAL: AtomicIsize = AtomicIsize::new(0);

/// Bytes of each account. Most of it is never touched, and so takes no memory.
static ACCOUNTS: [AtomicIsize; 1 << 16] = [const { AtomicIsize::new(0) }; 1 << 16];

/// Numbers that were given away, and of those the ones whose accounts have been closed.
static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers { given: 0, closed: Vec::new() });

struct Numbers {
    given: Number,
    closed: Vec<Number>,
}

/// Bytes that a thread has not told yet.
struct Pending {
    account: Cell<Number>,
    bytes: Cell<isize>,
}

impl Pending {
    const fn none() -> Pending {
        Pending { account: Cell::new(COMMON), bytes: Cell::new(0) }
    }

    /// Adds bytes of the account.
    #[inline]
    fn add(&self, bytes: isize) {
        let sum = self.bytes.get() + bytes;
        self.bytes.set(sum);
        if sum.abs() >= GRAIN {
            self.tell();
        }
    }

    #[cold]
    fn tell(&self) {
        let bytes = self.bytes.replace(0);
        ACCOUNTS[usize::from(self.account.get())].fetch_add(bytes, Ordering::Relaxed);
        TOTAL.fetch_add(bytes, Ordering::Relaxed);
        if bytes > 0 {
            SINCE_LOOK.set(SINCE_LOOK.get().saturating_add(bytes.unsigned_abs()));
        }
    }

    /// Goes over to an account.
    fn switch(&self, account: Number) {
        if self.account.get() != account {
            self.tell();
            self.account.set(account);
        }
    }
}

thread_local! {
    /// Of the account that this thread allocates on.
    static OWN: Pending = const { Pending::none() };
    /// Of the other account that this thread has freed blocks of last.
    static OTHER: Pending = const { Pending::none() };
    /// Bytes by which this thread's allocations have grown since its last look at the limits.
    static SINCE_LOOK: Cell<usize> = const { Cell::new(0) };
}

/// jemalloc, with a count of bytes in use.
pub struct CountingAllocator;

/// Bytes in use, exact up to 64 kB per thread.
pub fn allocated() -> usize {
    TOTAL.load(Ordering::Relaxed).max(0).unsigned_abs()
}

/// Whether this thread has allocated so much that it should look at the limits again.
#[inline]
pub(crate) fn is_look_due() -> bool {
    SINCE_LOOK.get() >= LOOK_EVERY
}

/// This thread is looking at the limits.
pub(crate) fn note_look() {
    SINCE_LOOK.set(0);
}

/// Gives memory that is free back to the operating system, as far as whole pages are.
pub fn trim() {
    // Stands for all arenas.
    let purge = c"arena.4096.purge";
    let none = std::ptr::null_mut::<std::ffi::c_void>;
    // SAFETY: a name that jemalloc has, of a command without arguments and results; any thread may give it.
    unsafe { tikv_jemalloc_sys::mallctl(purge.as_ptr(), none(), std::ptr::null_mut(), none(), 0) };
}

/// On which somebody's memory is counted. Closed when it is dropped; blocks on it may outlive it.
#[derive(Debug)]
pub struct Account {
    number: Number,
    /// Bytes that were on it when it was opened, of somebody before.
    left: isize,
}

impl Account {
    /// A new account. Beyond 65,535 at one time, the common one.
    pub fn open() -> Account {
        let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        let left = |number: Number| ACCOUNTS[usize::from(number)].load(Ordering::Relaxed);
        // Of what a thread frees while it ends nothing is told.
        let is_empty = |number: &Number| left(*number).abs() < GRAIN;
        if let Some(at) = numbers.closed.iter().position(is_empty) {
            let number = numbers.closed.swap_remove(at);
            return Account { number, left: left(number) };
        }
        match numbers.given.checked_add(1) {
            Some(number) => {
                numbers.given = number;
                Account { number, left: 0 }
            }
            None => Account::common(),
        }
    }

    /// Bytes on it, exact up to 64 kB for each thread that has to do with it.
    pub fn bytes(&self) -> usize {
        let bytes = ACCOUNTS[usize::from(self.number)].load(Ordering::Relaxed) - self.left;
        bytes.max(0).unsigned_abs()
    }

    /// That of whatever is nobody's.
    pub(crate) const fn common() -> Account {
        Account { number: COMMON, left: 0 }
    }

    /// Lets this thread allocate on it as long as what is returned lives.
    pub fn enter(&self) -> Entered {
        let before = OWN.with(|own| own.account.get());
        switch(self.number);
        Entered { before, on_this_thread: PhantomData }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if self.number != COMMON {
            NUMBERS.lock().unwrap_or_else(PoisonError::into_inner).closed.push(self.number);
        }
    }
}

/// As long as it lives its thread allocates on an account.
pub struct Entered {
    before: Number,
    on_this_thread: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        switch(self.before);
        // A thread that ends tells nothing any more.
        OTHER.with(Pending::tell);
    }
}

fn switch(account: Number) {
    OWN.with(|own| own.switch(account));
}

/// Bytes that a block takes: jemalloc has sizes in steps of 16 up to 128, and four between each power of two and the next.
#[inline]
fn footprint(size: usize) -> isize {
    let needed = size + TAG;
    let step = match needed {
        ..=128 => 16,
        _ => 1 << ((needed - 1).ilog2() - 2),
    };
    // A layout never exceeds isize::MAX by more than what is added here.
    ((needed + step - 1) & !(step - 1)) as isize
}

/// The layout of a block with the number behind it.
#[inline]
fn tagged(layout: Layout) -> Option<Layout> {
    Layout::from_size_align(layout.size().checked_add(TAG)?, layout.align()).ok()
}

/// Counts a block that was allocated, and writes behind it for whom.
///
/// # Safety
/// The block has been allocated with `size + TAG` bytes.
#[inline]
unsafe fn open_block(block: *mut u8, size: usize) {
    let account = OWN.with(|own| {
        own.add(footprint(size));
        own.account.get()
    });
    // SAFETY: within the block, by the caller's promise.
    unsafe { block.add(size).cast::<Number>().write_unaligned(account) };
}

/// The account that a block is on.
///
/// # Safety
/// `open_block` was called with the same arguments.
#[inline]
unsafe fn account_of(block: *const u8, size: usize) -> Number {
    // SAFETY: within the block, by the caller's promise, and written.
    unsafe { block.add(size).cast::<Number>().read_unaligned() }
}

/// Counts bytes that are more, or less, on an account.
#[inline]
fn count(account: Number, bytes: isize) {
    let is_own = OWN.with(|own| {
        let is_own = own.account.get() == account;
        if is_own {
            own.add(bytes);
        }
        is_own
    });
    if !is_own {
        OTHER.with(|other| {
            other.switch(account);
            other.add(bytes);
        });
    }
}

// SAFETY: every method hands its arguments to `Jemalloc`, which upholds the contract of `GlobalAlloc`, but for a layout
// that is larger by what is written behind the block; it is the same for each block as long as it lives, because its size
// and alignment are. Counting neither allocates (the thread-locals are const-initialised and have no destructor) nor
// unwinds: `Pending::tell` indexes an array that has a place for every number.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(all) = tagged(layout) else { return std::ptr::null_mut() };
        // SAFETY: the size is not zero, for it is more than that of the number.
        let block = unsafe { Jemalloc.alloc(all) };
        if !block.is_null() {
            // SAFETY: allocated with this layout.
            unsafe { open_block(block, layout.size()) };
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some(all) = tagged(layout) else { return std::ptr::null_mut() };
        // SAFETY: as above.
        let block = unsafe { Jemalloc.alloc_zeroed(all) };
        if !block.is_null() {
            // SAFETY: as above.
            unsafe { open_block(block, layout.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // A block was allocated with this layout, so the sum did not overflow.
        let Some(all) = tagged(layout) else { return };
        // SAFETY: the block came from here with this layout, and is the caller's until `Jemalloc` has it back.
        unsafe {
            count(account_of(block, layout.size()), -footprint(layout.size()));
            Jemalloc.dealloc(block, all);
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let (Some(all), Some(new_all)) = (tagged(layout), new_size.checked_add(TAG)) else {
            return std::ptr::null_mut();
        };
        if new_all > isize::MAX as usize - layout.align() {
            return std::ptr::null_mut();
        }
        // SAFETY: the block came from here with this layout; the new size is no more than a layout may have.
        unsafe {
            let account = account_of(block, layout.size());
            let new = Jemalloc.realloc(block, all, new_all);
            if !new.is_null() {
                new.add(new_size).cast::<Number>().write_unaligned(account);
                count(account, footprint(new_size) - footprint(layout.size()));
            }
            new
        }
    }
}
