//! Blocks in a file without a name.
//!
//! The file is unlinked as soon as it is created: the operating system takes its space back when the process
//! ends, whichever way it ends. Blocks are written once, read at will, and given back; the space of blocks
//! given back is used again, and what is free at the end is cut off. A block that is not read as it was written, because
//! the disk or somebody else changed it, is an error: its checksum stays in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// What names of files begin with while they have one. PostgreSQL removes such files, too, from the
/// directories it knows.
const PREFIX: &str = "pgsql_tmp_eddy_";

/// Free space at the end of a file from which it is cut off.
const CUT_FROM: u64 = 1 << 20;

/// Where a block is.
#[derive(Debug, PartialEq, Eq)]
pub struct Extent {
    offset: u64,
    length: u32,
    checksum: u64,
}

impl Extent {
    /// Its bytes.
    pub fn length(&self) -> usize {
        self.length as usize
    }
}

/// A file of blocks.
pub struct Store {
    file: File,
    space: Space,
    /// Length of the file, at least that of the space in use.
    length: u64,
}

impl Store {
    /// A new file in a directory, which is created if it is not there.
    pub fn create(directory: &Path) -> io::Result<Store> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        fs::create_dir_all(directory)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("{PREFIX}{}.{number}", std::process::id()));
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        // Another engine may have taken the name for a leftover.
        ignore_missing(fs::remove_file(&path))?;
        Ok(Store { file, space: Space::default(), length: 0 })
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<Extent> {
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let offset = self.space.take(length.into());
        if let Err(error) = self.file.write_all_at(bytes, offset) {
            self.space.give_back(offset, length.into());
            return Err(error);
        }
        self.length = self.length.max(offset + u64::from(length));
        Ok(Extent { offset, length, checksum: checksum(bytes) })
    }

    /// Reads a block, which is an error if it is not what was written.
    pub fn read(&self, extent: &Extent) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; extent.length()];
        self.file.read_exact_at(&mut bytes, extent.offset)?;
        match checksum(&bytes) == extent.checksum {
            true => Ok(bytes),
            false => Err(io::Error::new(io::ErrorKind::InvalidData, "a block is damaged")),
        }
    }

    /// Gives a block back.
    pub fn release(&mut self, extent: Extent) {
        self.space.give_back(extent.offset, extent.length.into());
        if self.space.end + CUT_FROM <= self.length && self.file.set_len(self.space.end).is_ok() {
            self.length = self.space.end;
        }
    }
}

/// A number that any change within eight bytes changes for certain, any other change in all but one of 2^64 cases: each
/// step is a bijection of what came before and of what comes in.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    let step =
        |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let mut words = bytes.chunks_exact(8);
    let mut sum = step(0, bytes.len() as u64);
    for word in words.by_ref() {
        let mut whole = [0; 8];
        whole.copy_from_slice(word);
        sum = step(sum, u64::from_le_bytes(whole));
    }
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    step(sum, u64::from_le_bytes(last))
}

/// Removes what processes that died between creating and unlinking a file have left behind.
pub(crate) fn remove_leftovers(directory: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            ignore_missing(fs::remove_file(entry.path()))?;
        }
    }
    Ok(())
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Which parts of a file are free: the smallest one that is large enough is used first. Neighbours
/// are joined, so that no two free parts touch, and none touches the end.
#[derive(Debug, Default)]
struct Space {
    /// Lengths by offset.
    free: BTreeMap<u64, u64>,
    /// The same as (length, offset).
    by_length: BTreeSet<(u64, u64)>,
    /// Nothing beyond this offset is in use.
    end: u64,
}

impl Space {
    fn take(&mut self, length: u64) -> u64 {
        let Some((found, offset)) = self.by_length.range((length, 0)..).next().copied() else {
            let offset = self.end;
            self.end += length;
            return offset;
        };
        self.remove(offset, found);
        if found > length {
            self.insert(offset + length, found - length);
        }
        offset
    }

    fn give_back(&mut self, mut offset: u64, mut length: u64) {
        if let Some((before, size)) = self.free.range(..offset).next_back() {
            let (before, size) = (*before, *size);
            if before + size == offset {
                self.remove(before, size);
                (offset, length) = (before, size + length);
            }
        }
        if let Some(size) = self.free.get(&(offset + length)).copied() {
            self.remove(offset + length, size);
            length += size;
        }
        if offset + length == self.end {
            self.end = offset;
        } else {
            self.insert(offset, length);
        }
    }

    fn insert(&mut self, offset: u64, length: u64) {
        self.free.insert(offset, length);
        self.by_length.insert((length, offset));
    }

    fn remove(&mut self, offset: u64, length: u64) {
        self.free.remove(&offset);
        self.by_length.remove(&(length, offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_given_back_is_used_again() {
        let mut space = Space::default();
        let offsets: Vec<u64> = [10, 20, 30, 40].into_iter().map(|n| space.take(n)).collect();
        assert_eq!(offsets, [0, 10, 30, 60]);
        space.give_back(10, 20);
        space.give_back(30, 30);
        assert_eq!(space.free, [(10, 50)].into());
        assert_eq!(space.take(50), 10);
        assert_eq!(space.take(1), 100);
        space.give_back(100, 1);
        space.give_back(0, 10);
        assert_eq!((space.take(4), space.take(7)), (0, 100));
        for (offset, length) in [(100, 7), (10, 50), (60, 40), (0, 4)] {
            space.give_back(offset, length);
        }
        assert_eq!((space.end, space.free.len(), space.by_length.len()), (0, 0, 0));
    }

    #[test]
    fn every_flipped_bit_of_a_block_is_an_error() {
        let directory = std::env::temp_dir().join(format!("eddy-damage-{}", std::process::id()));
        let mut store = Store::create(&directory).unwrap();
        for length in [1, 7, 8, 61] {
            let bytes: Vec<u8> = (0..length).map(|n: u8| n.wrapping_mul(37)).collect();
            let extent = store.write(&bytes).unwrap();
            for bit in 0..8 * bytes.len() {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                store.file.write_all_at(&damaged, extent.offset).unwrap();
                assert!(store.read(&extent).is_err(), "bit {bit} of {length} bytes");
            }
            store.file.write_all_at(&bytes, extent.offset).unwrap();
            assert_eq!(store.read(&extent).unwrap(), bytes);
        }
        fs::remove_dir(&directory).unwrap();
    }

    #[test]
    fn blocks_come_back_and_files_have_no_name() {
        let directory = std::env::temp_dir().join(format!("eddy-store-{}", std::process::id()));
        let mut store = Store::create(&directory).unwrap();
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        let mut extents: Vec<Option<Extent>> =
            (0..100).map(|n| Some(store.write(&vec![n; 100_000]).unwrap())).collect();
        for extent in extents.iter_mut().step_by(2) {
            store.release(extent.take().unwrap());
        }
        let again = store.write(&[200; 50_000]).unwrap();
        assert!(again.offset < 10_000_000);
        for (n, extent) in extents.iter().enumerate() {
            if let Some(extent) = extent {
                assert_eq!(store.read(extent).unwrap(), vec![n as u8; 100_000]);
            }
        }
        extents.into_iter().flatten().for_each(|extent| store.release(extent));
        store.release(again);
        assert!(store.file.metadata().unwrap().len() < CUT_FROM);
        fs::write(directory.join(format!("{PREFIX}1.1")), "left").unwrap();
        remove_leftovers(&directory).unwrap();
        fs::remove_dir(&directory).unwrap();
        remove_leftovers(&directory).unwrap();
    }
}
