//! A file that is being written while its dataflow goes on.

use super::file::{Header, Target, BLOCK};
use crate::core::column::Column;
use crate::spill::block::Update;
use std::collections::VecDeque;
use std::io;
use std::path::Path;

/// What an operator kept when it was frozen, as far as it is not written.
pub(crate) trait Frozen {
    /// Writes some of it; answers whether that may not have been all.
    fn write(&mut self, target: &mut Target) -> io::Result<bool>;
}

/// What an operator kept, as updates.
pub(crate) fn frozen<K: Column, V: Column, T: Column, R: Column>(
    updates: Vec<Update<K, V, T, R>>,
) -> Box<dyn Frozen> {
    Box::new(updates.into_iter())
}

impl<K: Column, V: Column, T: Column, R: Column> Frozen for std::vec::IntoIter<Update<K, V, T, R>> {
    fn write(&mut self, target: &mut Target) -> io::Result<bool> {
        let some: Vec<_> = self.take(BLOCK).collect();
        if !some.is_empty() {
            target.block(&some)?;
        }
        Ok(!some.is_empty())
    }
}

/// The parts of a dataflow at one time, on their way into a file.
pub(crate) struct Saving {
    target: Target,
    left: VecDeque<(String, Box<dyn Frozen>)>,
    /// Whether the first of them has been written in part.
    has_begun: bool,
}

impl Saving {
    pub(crate) fn begin(
        path: &Path,
        header: &Header,
        parts: VecDeque<(String, Box<dyn Frozen>)>,
    ) -> io::Result<Saving> {
        let target = Target::create(path, header)?;
        Ok(Saving { target, left: parts, has_begun: false })
    }

    /// Writes some more; answers whether there is more.
    pub(crate) fn go_on(&mut self) -> io::Result<bool> {
        let Some((name, part)) = self.left.front_mut() else { return Ok(false) };
        if !self.has_begun {
            self.target.part(name)?;
        }
        self.has_begun = part.write(&mut self.target)?;
        if !self.has_begun {
            self.left.pop_front();
        }
        Ok(!self.left.is_empty())
    }

    /// The file, which has everything but its end.
    pub(crate) fn into_target(self) -> Target {
        self.target
    }
}
