//! The settings that views have of their own, in statements.
//!
//! ```sql
//! CREATE INCREMENTAL VIEW v WITH (timezone = 'Europe/Berlin') AS …
//! ALTER INCREMENTAL VIEW v SET (timezone = 'UTC')
//! ALTER INCREMENTAL VIEW v RESET (timezone)          -- as the session has it by default
//! ```

use crate::errors::{Error, ErrorKind};
use crate::hooks::options::Taken;
use crate::hooks::statement::{Creation, Target};
use crate::hooks::utility::Call;
use crate::pg::view_settings::{self, Level};
use crate::pg::{catalog, locks, registry};
use pgrx::pg_sys::Oid;
use rules::security_label::Label;
use rules::view_settings::ViewSettings;

/// Has the settings that a creation names in force, until the level ends: what is created has them.
pub fn enter_creation(call: &mut Call, creation: &mut Creation) -> Level {
    let level = view_settings::begin();
    let taken = call.take_options(creation, ViewSettings::has);
    taken.iter().for_each(enter);
    level
}

/// Has the settings of a view in force, until the level ends.
pub fn enter_view(view: Oid) -> Result<Level, Error> {
    let Label { settings } = registry::label(view)?;
    let level = view_settings::begin();
    view_settings::set_for_now(&settings);
    Ok(level)
}

/// Changes those of a view as an `ALTER … SET (…)` or `RESET (…)` says, and leaves the rest of it to PostgreSQL.
pub fn change(call: &mut Call, view: &Target, relid: Oid) -> Result<(), Error> {
    let taken = call.take_changed_options(ViewSettings::has);
    if taken.is_empty() {
        return Ok(());
    }
    if !catalog::is_owned_by_user(relid) {
        let message = format!("must be owner of materialized view {}", view.name);
        return Err(Error::new(ErrorKind::InsufficientPrivilege, message));
    }
    locks::against_changes(relid);
    let Label { settings: former } = registry::label(relid)?;
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
    registry::insert(relid, &Label { settings: ViewSettings::read(value) });
    registry::note_changed(relid);
    Ok(())
}

/// A value that the server does not accept raises an error.
fn enter(option: &Taken) {
    match &option.value {
        Some(value) => view_settings::set_one_for_now(&option.name, value),
        None => view_settings::reset_one_for_now(&option.name),
    }
}
