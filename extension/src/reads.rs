//! To be written.

/// Set-up at library load.
pub fn install() {}

/// Waits until all views of this database have everything committed before now.
pub fn wait_current() -> Result<(), crate::errors::Error> {
    Ok(())
}
