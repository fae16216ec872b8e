//! Records of the WAL.

use pgrx::pg_sys;

/// The number of the file that the record at hand is about in the first place.
///
/// # Safety
/// A reader that has read a record.
pub unsafe fn file_of_record(reader: *mut pg_sys::XLogReaderState) -> Option<u32> {
    let (mut fork, mut block) = (0, 0);
    let none = std::ptr::null_mut();
    // SAFETY: per contract.
    unsafe {
        #[cfg(feature = "pg15")]
        let mut file = pg_sys::RelFileNode::default();
        #[cfg(not(feature = "pg15"))]
        let mut file = pg_sys::RelFileLocator::default();
        let is_there =
            pg_sys::XLogRecGetBlockTagExtended(reader, 0, &mut file, &mut fork, &mut block, none);
        #[cfg(feature = "pg15")]
        let number = file.relNode;
        #[cfg(not(feature = "pg15"))]
        let number = file.relNumber;
        is_there.then(|| number.to_u32())
    }
}
