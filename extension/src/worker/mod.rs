//! To be written.

/// Set-up at library load.
pub fn register() {}
