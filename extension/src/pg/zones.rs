//! PostgreSQL's time zones, as the planner knows them.

use crate::pg::strings::owned;
use pgrx::pg_sys;
use plan::{Around, Rules, Zone};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{c_long, CString};

thread_local! {
    /// Those that have been asked for. PostgreSQL reads each once in a process, too.
    static KNOWN: RefCell<BTreeMap<String, Option<Zone>>> = const { RefCell::new(BTreeMap::new()) };
}

/// That of the setting `TimeZone`; `None` if its rules are such that only PostgreSQL knows them.
pub fn of_settings() -> Option<Zone> {
    // SAFETY: there is always one; it lives as long as the process.
    known(unsafe { pg_sys::session_timezone })
}

/// That of a name as `SET TimeZone` takes it; `None` also if there is none.
pub fn named(name: &str) -> Option<Zone> {
    let name = CString::new(name).ok().filter(|name| name.count_bytes() <= LONGEST_NAME)?;
    // SAFETY: a C string; a name that is unknown is answered with null, any other lives as long as the process.
    let zone = unsafe { pg_sys::pg_tzset(name.as_ptr()) };
    if zone.is_null() {
        return None;
    }
    known(zone)
}

/// What PostgreSQL has room for.
const LONGEST_NAME: usize = pg_sys::TZ_STRLEN_MAX as usize;

/// A zone that is there.
fn known(zone: *mut pg_sys::pg_tz) -> Option<Zone> {
    // SAFETY: the name is copied.
    let name = unsafe { owned(pg_sys::pg_get_timezone_name(zone)) };
    if let Some(known) = KNOWN.with_borrow(|known| known.get(&name).copied()) {
        return known;
    }
    // SAFETY: a zone that is there. One that counts leap seconds has times that no table of offsets tells.
    let is_acceptable = unsafe { pg_sys::pg_tz_acceptable(zone) };
    let rules = is_acceptable.then(|| Rules::explore(&name, |at| around(zone, at))).flatten();
    let found = rules.map(Zone::from);
    KNOWN.with_borrow_mut(|known| known.insert(name, found));
    found
}

/// What holds in a zone that is there at a time, and next.
fn around(zone: *mut pg_sys::pg_tz, at: i64) -> Around {
    let (mut before, mut after, mut next): (c_long, c_long, i64) = (0, 0, 0);
    let (mut is_summer_before, mut is_summer_after) = (0, 0);
    // SAFETY: a zone that is there, and places for the answers, which are not all written.
    let answer = unsafe {
        pg_sys::pg_next_dst_boundary(
            &at,
            &raw mut before,
            &raw mut is_summer_before,
            &raw mut next,
            &raw mut after,
            &raw mut is_summer_after,
            zone,
        )
    };
    // Offsets are less than eight days.
    Around { offset: before as i32, next: (answer == 1).then_some((next, after as i32)) }
}
