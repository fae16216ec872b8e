//! How many bytes the process holds on the heap, counted by the global allocator.
//!
//! The host opts in with `#[global_allocator] static A: CountingAllocator = CountingAllocator;`.
//! Without it [`allocated`] stays 0 and no memory limit takes effect.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering};

/// Bytes a thread may allocate or free before it updates the shared count, so that threads do not
/// contend for one cache line on every allocation.
const GRAIN: isize = 64 * 1024;

static TOTAL: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    static PENDING: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, with a count of bytes in use.
pub struct CountingAllocator;

/// Bytes in use, exact up to 64 kB per thread.
pub fn allocated() -> usize {
    TOTAL.load(Ordering::Relaxed).max(0).unsigned_abs()
}

fn count(bytes: isize) {
    // During the destruction of a thread its counter may be gone: count directly then.
    let counted = PENDING.try_with(|pending| {
        let sum = pending.get() + bytes;
        if sum.abs() >= GRAIN {
            TOTAL.fetch_add(sum, Ordering::Relaxed);
            pending.set(0);
        } else {
            pending.set(sum);
        }
    });
    if counted.is_err() {
        TOTAL.fetch_add(bytes, Ordering::Relaxed);
    }
}

fn signed(size: usize) -> isize {
    // A layout never exceeds isize::MAX.
    size as isize
}

// SAFETY: every method hands its arguments unchanged to `System`, which upholds the contract of
// `GlobalAlloc`; counting neither allocates (the thread-local is const-initialised and has no
// destructor) nor unwinds.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: the caller's promises are those `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(-signed(layout.size()));
        // SAFETY: as above; `ptr` came from `System` with this layout.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(signed(new_size) - signed(layout.size()));
        // SAFETY: as above.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}
