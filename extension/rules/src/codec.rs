//! The form of the files in which a worker and its assistants tell each other of a job.
//!
//! A file is a sequence of numbers and of byte strings with their lengths, then a checksum of all that. Only who has found
//! the checksum right takes what was read for what was written; until then nothing is taken apart. Whatever is wrong
//! with a file is an error.

use plan::row::Row;
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// What a file begins with; changes with its form.
const MAGIC: u64 = 0x6564_6479_0000_0001;

/// Bytes that are read, written and added to the checksum at once.
const BLOCK: usize = 256 << 10;

/// Bytes of a checksum.
const CHECKSUM: u64 = 8;

/// A file that is being written.
pub struct Encoder {
    file: File,
    block: Vec<u8>,
    hasher: DefaultHasher,
}

impl Encoder {
    /// A new file in the place of any former one.
    pub fn create(path: PathBuf) -> io::Result<Encoder> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
        let block = Vec::with_capacity(BLOCK);
        let mut encoder = Encoder { file, block, hasher: DefaultHasher::new() };
        encoder.number(MAGIC)?;
        Ok(encoder)
    }

    fn raw(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while self.block.len() + bytes.len() > BLOCK {
            let (fitting, rest) = bytes.split_at(BLOCK - self.block.len());
            self.block.extend_from_slice(fitting);
            self.write_block()?;
            bytes = rest;
        }
        self.block.extend_from_slice(bytes);
        Ok(())
    }

    fn write_block(&mut self) -> io::Result<()> {
        self.hasher.write(&self.block);
        self.file.write_all(&self.block)?;
        self.block.clear();
        Ok(())
    }

    pub fn number(&mut self, number: u64) -> io::Result<()> {
        self.raw(&number.to_le_bytes())
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.number(bytes.len() as u64)?;
        self.raw(bytes)
    }

    pub fn text(&mut self, text: Option<&str>) -> io::Result<()> {
        self.number(text.is_some().into())?;
        self.bytes(text.unwrap_or_default().as_bytes())
    }

    /// The file is complete.
    pub fn finish(mut self) -> io::Result<()> {
        self.write_block()?;
        let checksum = self.hasher.finish();
        self.file.write_all(&checksum.to_le_bytes())
    }
}

/// A file that is being read.
pub struct Decoder {
    file: File,
    /// What was read of it, and how much of that was taken.
    block: Vec<u8>,
    taken: usize,
    hasher: DefaultHasher,
    /// Bytes of the file before the checksum that have not been read.
    unread: u64,
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file is damaged")
}

impl Decoder {
    pub fn open(path: PathBuf) -> io::Result<Decoder> {
        let file = File::open(path)?;
        let unread = file.metadata()?.len().checked_sub(CHECKSUM).ok_or_else(damaged)?;
        let hasher = DefaultHasher::new();
        let mut decoder = Decoder { file, block: Vec::new(), taken: 0, hasher, unread };
        match decoder.number()? == MAGIC {
            true => Ok(decoder),
            false => Err(damaged()),
        }
    }

    /// Bytes that are left: no length that is said is taken for more.
    fn left(&self) -> u64 {
        self.unread + (self.block.len() - self.taken) as u64
    }

    fn raw(&mut self, mut bytes: &mut [u8]) -> io::Result<()> {
        loop {
            let there = &self.block[self.taken..];
            let count = there.len().min(bytes.len());
            let (now, later) = bytes.split_at_mut(count);
            now.copy_from_slice(&there[..count]);
            self.taken += count;
            if later.is_empty() {
                return Ok(());
            }
            bytes = later;
            self.read_block()?;
        }
    }

    fn read_block(&mut self) -> io::Result<()> {
        if self.unread == 0 {
            return Err(damaged());
        }
        let count = self.unread.min(BLOCK as u64);
        self.block.resize(count as usize, 0);
        self.file.read_exact(&mut self.block)?;
        self.hasher.write(&self.block);
        self.unread -= count;
        self.taken = 0;
        Ok(())
    }

    pub fn number(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.raw(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// A number of things that follow, each of which takes a byte at least.
    pub fn count(&mut self) -> io::Result<usize> {
        let count = self.number()?;
        if count > self.left() {
            return Err(damaged());
        }
        usize::try_from(count).map_err(|_| damaged())
    }

    pub fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let len = self.number()?;
        if len > self.left() {
            return Err(damaged());
        }
        let mut bytes = vec![0; usize::try_from(len).map_err(|_| damaged())?];
        self.raw(&mut bytes)?;
        Ok(bytes)
    }

    /// A row, which must not be taken apart before the file was found to be whole.
    pub fn row(&mut self) -> io::Result<Row> {
        Ok(Row::from_bytes(&self.bytes()?))
    }

    pub fn text(&mut self) -> io::Result<Option<String>> {
        let is_some = self.number()? == 1;
        let text = String::from_utf8(self.bytes()?).map_err(|_| damaged())?;
        Ok(is_some.then_some(text))
    }

    /// All was read; an error if it is not what was written.
    pub fn finish(mut self) -> io::Result<()> {
        let mut checksum = [0; CHECKSUM as usize];
        self.file.read_exact(&mut checksum)?;
        match self.left() == 0 && u64::from_le_bytes(checksum) == self.hasher.finish() {
            true => Ok(()),
            false => Err(damaged()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::value::Datum;

    fn path() -> PathBuf {
        std::env::temp_dir().join(format!("eddy-codec-{}", std::process::id()))
    }

    /// One of each kind.
    type Values = (u64, Row, Vec<u8>, Option<String>, Option<String>);

    fn read() -> io::Result<Values> {
        let mut decoder = Decoder::open(path())?;
        let count = decoder.count()? as u64;
        let row = decoder.row()?;
        let read = (count, row, decoder.bytes()?, decoder.text()?, decoder.text()?);
        decoder.finish()?;
        Ok(read)
    }

    #[test]
    fn what_is_longer_than_a_block_is_read() {
        let path = std::env::temp_dir().join(format!("eddy-codec-long-{}", std::process::id()));
        let mut encoder = Encoder::create(path.clone()).expect("the file can be written");
        let long: Vec<u8> = (0..3 * BLOCK + 5).map(|place| place as u8).collect();
        let numbers = 0..BLOCK as u64 / 4;
        encoder.bytes(&long).expect("it can be written");
        numbers.clone().for_each(|number| encoder.number(number).expect("it can be written"));
        encoder.finish().expect("it can be written");
        let mut decoder = Decoder::open(path.clone()).expect("the file is there");
        assert!(decoder.bytes().is_ok_and(|bytes| bytes == long));
        numbers.for_each(|number| assert!(decoder.number().is_ok_and(|read| read == number)));
        assert!(decoder.number().is_err());
        decoder.finish().expect("the file is whole");
        std::fs::remove_file(path).expect("the file is there");
    }

    #[test]
    fn what_was_written_is_read_and_nothing_else() {
        let row = Row::pack([&Datum::Int4(7), &Datum::Null]);
        let mut encoder = Encoder::create(path()).expect("the file can be written");
        let written = (|| {
            encoder.number(3)?;
            encoder.bytes(row.as_bytes())?;
            encoder.bytes(&[1; 40])?;
            encoder.text(Some("message"))?;
            encoder.text(None)?;
            encoder.finish()
        })();
        written.expect("the file can be written");
        let whole = std::fs::read(path()).expect("the file is there");
        let expected = (3, row, vec![1; 40], Some("message".to_owned()), None);
        assert_eq!(read().expect("the file is whole"), expected);
        for len in 0..whole.len() {
            std::fs::write(path(), &whole[..len]).expect("the file can be written");
            assert!(read().is_err(), "cut after {len} bytes");
        }
        for place in 0..whole.len() {
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[place] ^= 1 << bit;
                std::fs::write(path(), &damaged).expect("the file can be written");
                assert!(read().is_err(), "bit {bit} of byte {place}");
            }
        }
        std::fs::remove_file(path()).expect("the file is there");
    }
}
