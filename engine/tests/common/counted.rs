//! For tests of limits on memory: an allocator that counts, for one test at a time.

use engine::memory::CountingAllocator;
use std::sync::{Mutex, MutexGuard};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The allocator counts for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

pub fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

pub const MB: usize = 1 << 20;
