//! How the rules of a zone are asked for.

use super::{unix_seconds, Rules, CYCLE, SECONDS_OF_DAY};
use crate::datetime::MIN_TIMESTAMP;

/// What the host says of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around {
    /// The offset at the time.
    pub offset: i32,
    /// The first change after it, and the offset from then on; none if there is no such change.
    pub next: Option<(i64, i32)>,
}

/// The tables of a host have no end but these: a cycle that is repeated begins in the years of the first few ...
const CYCLES_BEFORE: i64 = 16;
/// ... and all else is over by then, ...
const CYCLES_WITH_CHANGES: i64 = 20;
/// ... while this many are all that timestamps can be in.
const CYCLES: i64 = 747;

/// More changes than any zone has.
const MAX_CHANGES: usize = 8_000;

impl Rules {
    /// The rules of a zone by what `look` says of times; `None` if they are not such that a table can tell them.
    ///
    /// That they repeat is seen at both ends of time, and where the table ends.
    pub fn explore(name: &str, look: impl Fn(i64) -> Around) -> Option<Rules> {
        // Of the last change of its table the host may say that there is none after it.
        let next = |at: i64| look(at).next.or_else(|| look(at + 1).next);
        // A week before the first local time in any zone.
        let start = unix_seconds(MIN_TIMESTAMP) - 14 * SECONDS_OF_DAY;
        let cycle = |number: i64| start + number * CYCLE;
        let repeats_after = next(cycle(CYCLES + 1)).is_some();
        let repeats_before = next(start).is_some_and(|(at, _)| at < start + CYCLE);
        let from = if repeats_before { cycle(CYCLES_BEFORE) } else { start };
        let until = if repeats_after { cycle(CYCLES_WITH_CHANGES) } else { i64::MAX };
        let within = |from: i64, until: i64| changes(&next, from, until);
        let found = within(from, until)?;
        let one = |number: i64| -> Option<Vec<(i64, i32)>> {
            let changes = within(cycle(number), cycle(number + 1))?;
            Some(changes.iter().map(|(at, offset)| (at - cycle(number), *offset)).collect())
        };
        let (changes, offsets) = found.into_iter().unzip();
        let name = name.to_owned();
        let before = look(from).offset;
        let rules = Rules { name, before, changes, offsets, repeats_before, repeats_after };
        if repeats_before && (!repeats_after || one(0)? != one(CYCLES_BEFORE)?) {
            return None;
        }
        if !repeats_after {
            return Some(rules);
        }
        let last = one(CYCLES_WITH_CHANGES - 1)?;
        if last != one(CYCLES_WITH_CHANGES)? || last != one(CYCLES)? {
            return None;
        }
        rules.without_repetition(last.len())
    }

    /// The rules without what the last cycle, of so many changes, repeats of the one before.
    fn without_repetition(mut self, cycle: usize) -> Option<Rules> {
        let repeats = |index: &usize| {
            let earlier = index.checked_sub(cycle);
            earlier.is_some_and(|earlier| {
                self.changes[*index] - CYCLE == self.changes[earlier]
                    && self.offsets[*index] == self.offsets[earlier]
            })
        };
        let repeated = (0..self.changes.len()).rev().take_while(repeats).count();
        // A whole cycle is seen to be repeated.
        if cycle == 0 || repeated < cycle {
            return None;
        }
        let kept = self.changes.len() - repeated + 1;
        self.changes.truncate(kept);
        self.offsets.truncate(kept);
        Some(self)
    }
}

/// The changes after a time and up to another one.
fn changes(
    next: &impl Fn(i64) -> Option<(i64, i32)>,
    from: i64,
    until: i64,
) -> Option<Vec<(i64, i32)>> {
    let mut changes = Vec::new();
    let mut at = from;
    while let Some((change, offset)) = next(at).filter(|(change, _)| *change <= until) {
        if change <= at || changes.len() == MAX_CHANGES {
            return None;
        }
        changes.push((change, offset));
        at = change;
    }
    Some(changes)
}
