//! Time zones: which offset from UTC holds when, as the host says it.
//!
//! No rule of any zone is in this crate: [`explore`](Rules::explore) asks the host for them. What it answers is kept as a
//! table of changes, which may go on, behind its end and before its beginning, as the calendar does, in cycles of 400
//! years. So the table is exact for all times.
//!
//! A [`Zone`] is a table that plans name: a value, equal to another one if the tables are, and small, because each
//! table is kept once, as long as the process lives.

mod explore;

pub use explore::Around;

use crate::datetime::UNIX_TO_EPOCH;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{PoisonError, RwLock};

/// Seconds of 400 years, after which the calendar repeats, and with it the rules of a zone.
const CYCLE: i64 = 146_097 * SECONDS_OF_DAY;
const SECONDS_OF_DAY: i64 = 86_400;
const MICROS: i64 = 1_000_000;

/// When which offset from UTC holds. Times are in seconds since 1970 UTC, offsets in seconds east of UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    name: String,
    /// The offset before the first change, unless the changes repeat.
    before: i32,
    /// The times of the changes, increasing. Some change nothing: the host counts them, too, where it looks for the next one.
    changes: Vec<i64>,
    /// The offset from each of them on.
    offsets: Vec<i32>,
    /// Whether what is before the first change is as one or more cycles later.
    repeats_before: bool,
    /// Whether what is behind the last change is as one or more cycles earlier.
    repeats_after: bool,
}

impl Rules {
    /// How many changes there are up to a time, after moving it by whole cycles to where the table tells; and by how much.
    fn find(&self, at: i64) -> (usize, i64) {
        let (Some(first), Some(last)) = (self.changes.first(), self.changes.last()) else {
            return (0, 0);
        };
        let shift = if self.repeats_after && at > *last {
            -((at - last - 1) / CYCLE + 1) * CYCLE
        } else if self.repeats_before && at < *first {
            ((first - at - 1) / CYCLE + 1) * CYCLE
        } else {
            0
        };
        (self.changes.partition_point(|change| *change <= at + shift), shift)
    }

    fn after(&self, changes: usize) -> i32 {
        changes.checked_sub(1).map_or(self.before, |last| self.offsets[last])
    }

    /// The offset at a time.
    fn offset(&self, at: i64) -> i32 {
        self.after(self.find(at).0)
    }

    /// The offset at a time, and the next change.
    fn around(&self, at: i64) -> Around {
        let (known, shift) = self.find(at);
        let next = match (self.changes.get(known), self.changes.last()) {
            (Some(change), _) => Some((change - shift, self.offsets[known])),
            // The cycle begins again.
            (None, Some(last)) if self.repeats_after => {
                let again = self.changes.partition_point(|change| *change <= last - CYCLE);
                Some((self.changes[again] + CYCLE - shift, self.offsets[again]))
            }
            _ => None,
        };
        Around { offset: self.after(known), next }
    }

    /// The offset of a local time, given as the seconds that it would be in UTC. Of one that is skipped it is the offset before
    /// the change, of one that is there twice the offset after it.
    fn offset_of_local(&self, local: i64) -> i32 {
        let Around { offset: before, next } = self.around(local - SECONDS_OF_DAY);
        let Some((change, after)) = next else { return before };
        let (early, late) = (local - i64::from(before), local - i64::from(after));
        if early < change && late < change {
            before
        } else if early > change && late >= change {
            after
        } else if early > late {
            before
        } else {
            after
        }
    }
}

/// Seconds since 1970 of microseconds since 2000.
fn unix_seconds(micros: i64) -> i64 {
    micros.div_euclid(MICROS) + UNIX_TO_EPOCH * SECONDS_OF_DAY
}

/// A time zone. Equal if names and rules are.
#[derive(Clone, Copy)]
pub struct Zone(&'static Rules);

/// The rules of all zones there have been. They are few.
static RULES: RwLock<Vec<&'static Rules>> = RwLock::new(Vec::new());

impl Zone {
    /// As the host calls it.
    pub fn name(self) -> &'static str {
        &self.0.name
    }

    /// The microseconds east of UTC at a moment.
    pub(crate) fn offset(self, moment: i64) -> i64 {
        i64::from(self.0.offset(unix_seconds(moment))) * MICROS
    }

    /// The local time of a moment, infinite if that is. It may be up to some days beyond what timestamps can be.
    pub(crate) fn local(self, moment: i64) -> i64 {
        match moment {
            i64::MIN | i64::MAX => moment,
            _ => moment.saturating_add(self.offset(moment)),
        }
    }

    /// The moment of a local time, infinite if that is. It may be beyond what timestamps can be.
    pub(crate) fn moment(self, local: i64) -> i64 {
        match local {
            i64::MIN | i64::MAX => local,
            _ => {
                let offset = self.0.offset_of_local(unix_seconds(local));
                local.saturating_sub(i64::from(offset) * MICROS)
            }
        }
    }
}

impl From<Rules> for Zone {
    fn from(rules: Rules) -> Zone {
        let find = |known: &[&'static Rules]| known.iter().copied().find(|known| **known == rules);
        let known = find(&RULES.read().unwrap_or_else(PoisonError::into_inner));
        if let Some(known) = known {
            return Zone(known);
        }
        let mut all = RULES.write().unwrap_or_else(PoisonError::into_inner);
        Zone(find(&all).unwrap_or_else(|| {
            let rules: &'static Rules = Box::leak(Box::new(rules));
            all.push(rules);
            rules
        }))
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Zone) -> bool {
        // There are no two of the same rules.
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Zone {}

impl Hash for Zone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name())
    }
}

/// Rules as plans have them.
#[derive(Serialize, Deserialize)]
struct Written {
    name: String,
    before: i32,
    /// `seconds+offset` or `seconds-offset` for each change, a blank between them.
    changes: String,
    repeats_before: bool,
    repeats_after: bool,
}

impl Serialize for Zone {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let Rules { name, before, changes, offsets, repeats_before, repeats_after } = self.0;
        let changes = changes.iter().zip(offsets);
        let changes: Vec<String> = changes.map(|(at, offset)| format!("{at}{offset:+}")).collect();
        let (before, changes) = (*before, changes.join(" "));
        let (repeats_before, repeats_after) = (*repeats_before, *repeats_after);
        Written { name: name.clone(), before, changes, repeats_before, repeats_after }
            .serialize(out)
    }
}

impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Zone, D::Error> {
        let Written { name, before, changes, repeats_before, repeats_after } =
            Written::deserialize(input)?;
        let read = |change: &str| {
            let sign = change.rfind(['+', '-'])?;
            Some((change[..sign].parse::<i64>().ok()?, change[sign..].parse::<i32>().ok()?))
        };
        let parts = changes.split_terminator(' ').map(read).collect::<Option<Vec<_>>>();
        let wrong = || serde::de::Error::custom("changes of a time zone that cannot be read");
        let (changes, offsets): (Vec<i64>, Vec<i32>) = parts.ok_or_else(wrong)?.into_iter().unzip();
        // What the look-ups rely on.
        let increase = changes.windows(2).all(|two| two[0] < two[1]);
        let has_cycle = changes.last().zip(changes.first()).is_some_and(|(l, f)| l - f >= CYCLE);
        if !increase || !has_cycle && (repeats_before || repeats_after) {
            return Err(wrong());
        }
        Ok(Rules { name, before, changes, offsets, repeats_before, repeats_after }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An hour ahead from April to October each year: a rule without a table.
    fn by_rule(from: i64, until: i64) -> impl Fn(i64) -> Around {
        move |at| {
            let year = at.clamp(from, until).div_euclid(31_556_952);
            let changes = (year - 2..year + 3).flat_map(|year| {
                let start = year * 31_556_952;
                [(start + 7_800_000, 7_200), (start + 25_000_000, 3_600)]
            });
            let changes: Vec<_> = changes.filter(|(at, _)| (from..until).contains(at)).collect();
            let before = changes.iter().rfind(|(change, _)| *change <= at);
            let next = changes.iter().find(|(change, _)| *change > at).copied();
            Around { offset: before.map_or(3_600, |(_, offset)| *offset), next }
        }
    }

    fn check(look: impl Fn(i64) -> Around) -> Rules {
        let rules = Rules::explore("Test", &look).expect("it is regular");
        for step in -70_000_i64..=700_000 {
            let at = step * 13_000_017;
            assert_eq!(rules.around(at), look(at), "{at}");
        }
        let zone: Zone = rules.clone().into();
        let json = serde_json::to_string(&zone).unwrap();
        assert_eq!(serde_json::from_str::<Zone>(&json).unwrap(), zone);
        rules
    }

    #[test]
    fn rules_without_beginning_and_end_are_one_cycle() {
        let rules = check(by_rule(i64::MIN, i64::MAX));
        assert!(rules.repeats_before && rules.repeats_after);
        assert_eq!(rules.changes.len(), 801);
    }

    #[test]
    fn changes_before_a_rule_are_kept() {
        let look = by_rule(0, i64::MAX);
        let with_start = move |at: i64| match at {
            ..-1_000_000_000 => Around { offset: 3_208, next: Some((-1_000_000_000, 3_600)) },
            _ => look(at),
        };
        let rules = check(with_start);
        assert!(!rules.repeats_before && rules.repeats_after);
        assert_eq!((rules.before, rules.changes[0]), (3_208, -1_000_000_000));
        assert!(rules.changes.len() < 810);
    }

    #[test]
    fn zones_without_a_rule_end() {
        assert_eq!(check(by_rule(0, 980_000_000)).changes.len(), 62);
        assert!(check(|_| Around { offset: -18_000, next: None }).changes.is_empty());
    }

    #[test]
    fn what_is_irregular_is_no_table() {
        let regular = by_rule(i64::MIN, i64::MAX);
        let look = |at: i64| match at {
            5_000_000_000_000.. => {
                Around { offset: 1, next: regular(at).next.map(|(at, _)| (at, 1)) }
            }
            _ => regular(at),
        };
        assert_eq!(Rules::explore("Test", look), None);
    }

    #[test]
    fn a_table_that_cannot_be_looked_up_is_not_read() {
        let read = |changes: &str, repeats: bool| {
            let json = serde_json::json!({
                "name": "Test", "before": 0, "changes": changes,
                "repeats_before": false, "repeats_after": repeats,
            });
            serde_json::from_value::<Zone>(json).is_ok()
        };
        assert!(read("", false) && read("-5+3600 7-18000", false));
        assert!(!read("7+3600 7-18000", false));
        assert!(!read("7", false));
        assert!(!read("7+3600", true));
    }
}
