//! To be written.

/// Set-up at library load.
pub fn request_shmem() {}

/// Fails with 55000 and a hint unless this database's worker runs or can be started.
pub fn require_worker() -> Result<(), crate::errors::Error> {
    Ok(())
}
