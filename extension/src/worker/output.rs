//! What a dataflow has put out and nobody has written yet.
//!
//! Adding up a million rows takes a good part of a second: what comes in large pieces is kept as it came, until a thread
//! that writes it adds it up.

use super::stored::Delta;
use crate::pg::heap::Tid;
use engine::{Time, Updates};
use hashbrown::hash_map::Entry;
use plan::row::Row;
use plan::Diff;

/// Rows that take a moment only to be added up, compared and written.
pub const LARGE: usize = 20_000;

/// Bytes of large rows likewise: PostgreSQL compresses their values at some megabytes a second.
const LARGE_BYTES: usize = 1 << 20;

/// Bytes from which on a row counts as large for that.
const LARGE_ROW: usize = 1 << 16;

/// Large pieces that are kept apart; beyond that they are added up, so that rows that come and go do not pile up.
const MAX_PIECES: usize = 4;

/// A large piece of output.
#[derive(Debug)]
enum Piece {
    Raw(Updates<Row>),
    Summed(Delta),
}

/// Output of a dataflow.
#[derive(Debug, Default)]
pub struct Output {
    /// Most of it, added up.
    delta: Delta,
    /// To be added to that.
    pieces: Vec<Piece>,
}

impl Output {
    /// Takes what the dataflow has put out.
    pub fn push(&mut self, updates: Updates<Row>) {
        if updates.len() <= LARGE {
            add(&mut self.delta, updates);
            return;
        }
        self.pieces.push(Piece::Raw(updates));
        if self.pieces.len() > MAX_PIECES {
            self.add_up();
        }
    }

    /// Takes back what was taken out of it, before whatever came since.
    pub fn put_back(&mut self, delta: Delta) {
        if self.delta.is_empty() {
            self.delta = delta;
        } else {
            self.pieces.push(Piece::Summed(delta));
        }
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.delta.is_empty() && self.pieces.is_empty()
    }

    /// Whether it takes more than a moment to write it.
    pub fn is_large(&self) -> bool {
        let rows =
            || self.delta.values().map(|diff| diff.unsigned_abs()).fold(0, u64::saturating_add);
        let bytes = || {
            let rows = self.delta.keys().map(|row| row.as_bytes().len());
            rows.filter(|bytes| *bytes > LARGE_ROW).fold(0, usize::saturating_add)
        };
        !self.pieces.is_empty()
            || self.delta.len() > LARGE
            || rows() > LARGE as u64
            || bytes() > LARGE_BYTES
    }

    pub fn add_up(&mut self) {
        for piece in std::mem::take(&mut self.pieces) {
            match piece {
                Piece::Raw(updates) => {
                    if self.delta.is_empty() {
                        self.delta.reserve(updates.len());
                    }
                    add(&mut self.delta, updates);
                }
                Piece::Summed(delta) => {
                    let more = delta.into_iter().map(|(row, diff)| (row, 0, diff));
                    add(&mut self.delta, more);
                }
            }
        }
    }

    /// All of it as one delta.
    pub fn into_delta(mut self) -> Delta {
        self.add_up();
        self.delta
    }

    /// What has been added up so far; all of it after [`Output::add_up`].
    pub fn delta(&self) -> &Delta {
        &self.delta
    }
}

fn add(delta: &mut Delta, updates: impl IntoIterator<Item = (Row, Time, Diff)>) {
    for (row, _, diff) in updates {
        match delta.entry(row) {
            Entry::Vacant(entry) => {
                if diff != 0 {
                    entry.insert(diff);
                }
            }
            Entry::Occupied(mut entry) => {
                *entry.get_mut() += diff;
                if *entry.get() == 0 {
                    entry.remove();
                }
            }
        }
    }
}

/// Bytes it takes to write each of the equal rows that a delta holds once.
pub fn bytes_of_copies(delta: &Delta) -> usize {
    let bytes_of = |(row, diff): (&Row, &Diff)| {
        let copies = usize::try_from(diff.saturating_sub(1)).unwrap_or(0);
        let one = size_of::<Row>() + row.as_bytes().len() + size_of::<Tid>();
        copies.saturating_mul(one)
    };
    delta.iter().map(bytes_of).fold(0, usize::saturating_add)
}
