//! The statements on incremental views, seen through the utility hook.

/// Installs the hooks.
pub fn install() {}
