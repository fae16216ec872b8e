//! The files: frames with checksums, the parts of one worker of a dataflow one after the other.

use crate::core::column::{take as take_bytes, Column};
use crate::spill::block::{decode, encode, Update};
use crate::spill::checksum;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// What a file begins with; the number is that of its form.
const MAGIC: &[u8; 8] = b"eddyck01";

/// Updates, block by block.
pub(crate) type Blocks<K, V, T, R> = Vec<Vec<Update<K, V, T, R>>>;

/// Updates in a block: about so many are written at a time.
pub(crate) const BLOCK: usize = 1 << 12;

/// Bytes in front of those of a frame: its kind, how many there are, their checksum.
const HEAD: usize = 13;

/// No frame is longer: whatever says so is damaged.
const LONGEST: u32 = 1 << 30;

const HEADER: u8 = 1;
const PART: u8 = 2;
const BLOCK_OF_PART: u8 = 3;
const END: u8 = 4;

/// Whose state a file is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// The release of the engine.
    pub(crate) release: String,
    /// Stands for the plan, and how it is rendered.
    pub(crate) plan: u64,
    /// The worker's number, and how many there are.
    pub(crate) worker: usize,
    pub(crate) workers: usize,
}

impl Header {
    /// That of a worker's share of what is rendered from these bytes.
    pub(crate) fn new(plan: &[u8], worker: usize, workers: usize) -> Header {
        let release = env!("CARGO_PKG_VERSION").to_owned();
        Header { release, plan: checksum(plan), worker, workers }
    }
}

/// A file that is being written.
pub(crate) struct Target {
    file: BufWriter<File>,
    bytes: u64,
}

impl Target {
    /// A new file, in the place of one that is there.
    pub(crate) fn create(path: &Path, header: &Header) -> io::Result<Target> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
        let mut target = Target { file: BufWriter::with_capacity(1 << 18, file), bytes: 0 };
        target.file.write_all(MAGIC)?;
        target.bytes += MAGIC.len() as u64;
        target.frame(HEADER, &bincode::serialize(header).map_err(io::Error::other)?)?;
        Ok(target)
    }

    /// Begins a part.
    pub(crate) fn part(&mut self, name: &str) -> io::Result<()> {
        self.frame(PART, name.as_bytes())
    }

    /// Adds a block of updates to the part.
    pub(crate) fn block<K: Column, V: Column, T: Column, R: Column>(
        &mut self,
        updates: &[Update<K, V, T, R>],
    ) -> io::Result<()> {
        let mut bytes = (updates.len() as u32).to_le_bytes().to_vec();
        bytes.extend(encode(updates));
        self.frame(BLOCK_OF_PART, &bytes)
    }

    fn frame(&mut self, kind: u8, bytes: &[u8]) -> io::Result<()> {
        let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= LONGEST);
        let length = length.ok_or_else(|| io::Error::other("too much state for one block"))?;
        self.file.write_all(&[kind])?;
        self.file.write_all(&length.to_le_bytes())?;
        self.file.write_all(&checksum(bytes).to_le_bytes())?;
        self.file.write_all(bytes)?;
        self.bytes += (HEAD + bytes.len()) as u64;
        Ok(())
    }

    /// The file is whole and on disk; answers how long it is.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        self.frame(END, &[])?;
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        Ok(self.bytes)
    }
}

/// A file that is being read.
pub(crate) struct Origin {
    file: BufReader<File>,
    /// The frame that comes next.
    next: (u8, Vec<u8>),
}

impl Origin {
    /// Opens a file with that header. An error says what is wrong with it.
    pub(crate) fn open(path: &Path, header: &Header) -> Result<Origin, String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let mut file = BufReader::with_capacity(1 << 18, file);
        let mut magic = [0; MAGIC.len()];
        file.read_exact(&mut magic).map_err(|error| error.to_string())?;
        if magic != *MAGIC {
            return Err("it is of another form".into());
        }
        let (kind, bytes) = read_frame(&mut file)?;
        let found: Option<Header> = bincode::deserialize(&bytes).ok().filter(|_| kind == HEADER);
        match found {
            None => return Err(damaged()),
            Some(found) if found.workers != header.workers => {
                return Err(format!("it is of {} threads, not {}", found.workers, header.workers))
            }
            Some(found) if found != *header => return Err("it is of another plan".into()),
            Some(_) => {}
        }
        let next = read_frame(&mut file)?;
        Ok(Origin { file, next })
    }

    /// The updates of the next part, block by block.
    pub(crate) fn part<K: Column, V: Column, T: Column, R: Column>(
        &mut self,
        name: &str,
    ) -> Result<Blocks<K, V, T, R>, String> {
        let (kind, found) = &self.next;
        if *kind != PART || found != name.as_bytes() {
            return Err(format!("part \"{name}\" is not there"));
        }
        let mut blocks = Vec::new();
        loop {
            self.next = read_frame(&mut self.file)?;
            if self.next.0 != BLOCK_OF_PART {
                return Ok(blocks);
            }
            let mut bytes = &self.next.1[..];
            let count = take_bytes(4, &mut bytes).and_then(|count| count.try_into().ok());
            let count = u32::from_le_bytes(count.ok_or_else(damaged)?) as usize;
            blocks.push(decode(count, bytes).ok_or_else(damaged)?);
        }
    }

    /// Whether everything has been taken.
    pub(crate) fn is_at_end(&self) -> bool {
        self.next.0 == END
    }
}

fn damaged() -> String {
    "it is damaged".into()
}

fn read_frame(file: &mut impl Read) -> Result<(u8, Vec<u8>), String> {
    let mut head = [0; HEAD];
    file.read_exact(&mut head).map_err(|_| damaged())?;
    let mut rest = &head[1..];
    let mut number = |bytes: usize| -> u64 {
        let taken = take_bytes(bytes, &mut rest).unwrap_or_default();
        taken.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    };
    let (length, sum) = (number(4) as u32, number(8));
    if length > LONGEST {
        return Err(damaged());
    }
    let mut bytes = Vec::new();
    let read =
        file.take(length.into()).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    // The kind is not in the sum: each is expected where it is.
    match read == length as usize && checksum(&bytes) == sum {
        true => Ok((head[0], bytes)),
        false => Err(damaged()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::diff::Mult;

    fn header() -> Header {
        Header::new(b"a plan", 0, 1)
    }

    fn write(path: &Path) -> io::Result<u64> {
        let mut target = Target::create(path, &header())?;
        target.part("numbers")?;
        let numbers: Vec<_> = (0..40_000_u64).map(|n| ((n, ()), n % 3, Mult(1))).collect();
        for block in numbers.chunks(BLOCK) {
            target.block(block)?;
        }
        target.part("nothing")?;
        target.finish()
    }

    fn read(path: &Path) -> Result<usize, String> {
        let mut origin = Origin::open(path, &header())?;
        let numbers = origin.part::<u64, (), u64, Mult>("numbers")?;
        let numbers: Vec<_> = numbers.into_iter().flatten().collect();
        let are_right = numbers
            .iter()
            .enumerate()
            .all(|(n, update)| *update == ((n as u64, ()), n as u64 % 3, Mult(1)));
        let nothing = origin.part::<u64, (), u64, Mult>("nothing")?;
        (are_right && nothing.is_empty() && origin.is_at_end())
            .then_some(numbers.len())
            .ok_or_else(|| "other updates".into())
    }

    #[test]
    fn updates_come_back_and_damage_is_found() {
        let path = std::env::temp_dir().join(format!("eddy-checkpoint-{}", std::process::id()));
        let length = write(&path).unwrap();
        assert_eq!(read(&path), Ok(40_000));
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(whole.len() as u64, length);
        let others = Header::new(b"another plan", 0, 1);
        assert_eq!(Origin::open(&path, &others).err().unwrap(), "it is of another plan");
        let others = Header::new(b"a plan", 0, 2);
        assert_eq!(Origin::open(&path, &others).err().unwrap(), "it is of 1 threads, not 2");
        for place in (0..whole.len()).step_by(whole.len() / 500).chain(0..200) {
            let mut bytes = whole.clone();
            bytes[place] ^= 1 << (place % 8);
            std::fs::write(&path, &bytes).unwrap();
            assert!(read(&path).is_err(), "byte {place} of {}", whole.len());
            std::fs::write(&path, &whole[..place]).unwrap();
            assert!(read(&path).is_err(), "cut after {place} of {}", whole.len());
        }
        std::fs::remove_file(&path).unwrap();
    }
}
