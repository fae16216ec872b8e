//! Of which transactions the times of updates are: what views are asked for whose changes are kept.

use crate::pg::decoding::Commit;
use crate::pg::xact;
use engine::Time;
use std::collections::BTreeMap;

/// A point of commit order at which a view may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Everything that has happened then is before this position of the WAL.
    pub lsn: u64,
    /// The full number of the transaction that has committed then; none if it is time that has passed, or no single one.
    pub xid: Option<u64>,
    /// As PostgreSQL counts microseconds.
    pub at: i64,
}

impl Moment {
    pub(super) fn of(commit: Commit) -> Moment {
        let Commit { xid, lsn, at } = commit;
        Moment { lsn, xid: Some(xact::full_xid(xid)), at }
    }

    /// That to which everything has been decoded now.
    pub fn now(position: u64) -> Moment {
        Moment { lsn: position, xid: None, at: xact::now() }
    }
}

/// The moments of times, as far as somebody is going to ask.
#[derive(Debug, Default)]
pub struct History {
    /// `None` if nobody asks.
    moments: Option<BTreeMap<Time, Moment>>,
}

impl History {
    /// From now on somebody asks.
    pub fn begin(&mut self) {
        self.moments.get_or_insert_default();
    }

    /// Nobody asks any more for times before this one; `None` for no time.
    pub fn forget_before(&mut self, time: Option<Time>) {
        match (time, &mut self.moments) {
            (Some(time), Some(moments)) => *moments = moments.split_off(&time),
            (None, moments) => *moments = None,
            (Some(_), None) => {}
        }
    }

    pub(super) fn note(&mut self, time: Time, moment: impl FnOnce() -> Moment) {
        if let Some(moments) = &mut self.moments {
            moments.insert(time, moment());
        }
    }

    /// That of a time; `None` if it is not known.
    pub fn at(&self, time: Time) -> Option<Moment> {
        self.moments.as_ref()?.get(&time).copied()
    }
}
