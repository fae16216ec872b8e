//! The settings that views have of their own, in statements.
//!
//! ```sql
//! CREATE INCREMENTAL VIEW v WITH (timezone = 'Europe/Berlin') AS …
//! ALTER INCREMENTAL VIEW v SET (timezone = 'UTC')
//! ALTER INCREMENTAL VIEW v RESET (timezone)          -- as the session has it by default
//! ALTER INCREMENTAL VIEW v SET (fallback = 'query')  -- for reads, see `reads`
//! ```

use crate::errors::{Error, ErrorKind, FALLBACKS};
use crate::hooks::options::Taken;
use crate::hooks::statement::{Creation, Target};
use crate::hooks::utility::Call;
use crate::pg::view_settings::{self, Level};
use crate::pg::{catalog, locks, registry};
use pgrx::pg_sys::Oid;
use rules::security_label::{Fallback, Label};
use rules::view_settings::ViewSettings;

/// Has the settings that a creation names in force, until the level ends: what is created has them. Answers also with the fallback
/// that it names.
pub fn enter_creation(
    call: &mut Call,
    creation: &mut Creation,
) -> Result<(Level, Option<Fallback>), Error> {
    let mut taken = call.take_options(creation, is_ours);
    let fallback = take_fallback(&mut taken)?;
    let level = view_settings::begin();
    taken.iter().for_each(enter);
    Ok((level, fallback.flatten()))
}

fn is_ours(name: &str) -> bool {
    ViewSettings::has(name) || is_fallback(name)
}

fn is_fallback(name: &str) -> bool {
    name.eq_ignore_ascii_case("fallback")
}

/// Takes the fallback out of options: the last one counts. `None` if there is none, and within it for one that is to be reset.
fn take_fallback(taken: &mut Vec<Taken>) -> Result<Option<Option<Fallback>>, Error> {
    let read = |option: &Taken| match &option.value {
        None => Ok(None),
        Some(name) => Fallback::of_name(name).map(Some).ok_or_else(|| {
            let message = format!("invalid value for parameter \"fallback\": \"{name}\"");
            Error::new(ErrorKind::InvalidParameter, message).hint(FALLBACKS)
        }),
    };
    let last = taken.iter().rfind(|option| is_fallback(&option.name)).map(read).transpose();
    taken.retain(|option| !is_fallback(&option.name));
    last
}

/// Has the settings of a view in force, until the level ends.
pub fn enter_view(view: Oid) -> Result<Level, Error> {
    let Label { settings, .. } = registry::label(view)?;
    let level = view_settings::begin();
    view_settings::set_for_now(&settings);
    Ok(level)
}

/// Changes those of a view as an `ALTER … SET (…)` or `RESET (…)` says, and leaves the rest of it to PostgreSQL.
pub fn change(call: &mut Call, view: &Target, relid: Oid) -> Result<(), Error> {
    let mut taken = call.take_changed_options(is_ours);
    if taken.is_empty() {
        return Ok(());
    }
    let fallback = take_fallback(&mut taken)?;
    if !catalog::is_owned_by_user(relid) {
        let message = format!("must be owner of materialized view {}", view.name);
        return Err(Error::new(ErrorKind::InsufficientPrivilege, message));
    }
    locks::against_changes(relid);
    let Label { settings: former, fallback: former_fallback } = registry::label(relid)?;
    let level = view_settings::begin();
    // A part of a value leaves the rest of the former one, which need not be valid any more.
    let is_taken = |name: &str| taken.iter().any(|option| option.name.eq_ignore_ascii_case(name));
    for (name, value) in former.iter().filter(|(name, _)| is_taken(name)) {
        view_settings::try_one_for_now(name, value);
    }
    taken.iter().for_each(enter);
    let now = view_settings::current();
    view_settings::end(level);
    let value = |name: &str| {
        let of = if is_taken(name) { &now } else { &former };
        of.iter().find(|(known, _)| *known == name).map_or_else(String::new, |(_, v)| v.to_owned())
    };
    let settings = ViewSettings::read(value);
    let rows_stay = settings == former;
    registry::insert(relid, &Label { settings, fallback: fallback.unwrap_or(former_fallback) });
    if !rows_stay {
        registry::note_changed(relid);
    }
    Ok(())
}

/// A value that the server does not accept raises an error.
fn enter(option: &Taken) {
    match &option.value {
        Some(value) => view_settings::set_one_for_now(&option.name, value),
        None => view_settings::reset_one_for_now(&option.name),
    }
}
