//! The settings that views have of their own, in statements.
//!
//! ```sql
//! CREATE INCREMENTAL VIEW v WITH (timezone = 'Europe/Berlin') AS …
//! ALTER INCREMENTAL VIEW v SET (timezone = 'UTC')
//! ALTER INCREMENTAL VIEW v RESET (timezone)          -- as the session has it by default
//! ALTER INCREMENTAL VIEW v SET (fallback = 'query')  -- for reads, see `reads`
//! ALTER INCREMENTAL VIEW v SET (changes = '1 day')   -- see `changes_table`
//! ALTER INCREMENTAL VIEW v SET (notify)              -- whoever has said LISTEN "schema.v"
//! ALTER INCREMENTAL VIEW v SET (storage = table)     -- see `mirror`
//! ```

use super::companion::Origin;
use super::{changes_table, mirror};
use crate::errors::{Error, ErrorKind, FALLBACKS, STORAGES};
use crate::hooks::options::Taken;
use crate::hooks::statement::{Creation, Target};
use crate::hooks::utility::Call;
use crate::pg::view_settings::{self, Level};
use crate::pg::{catalog, guc, locks, registry, times};
use pgrx::pg_sys::Oid;
use rules::security_label::{Fallback, Label, Options, Retention, Storage};
use rules::view_settings::ViewSettings;

/// Has the settings that a creation names in force, until the level ends: what is created has them. Answers also with the other
/// options that it names.
pub fn enter_creation(call: &mut Call, creation: &mut Creation) -> Result<(Level, Options), Error> {
    let (taken, asked) = Asked::take(call.take_options(creation, is_ours))?;
    let level = view_settings::begin();
    taken.iter().for_each(enter);
    Ok((level, asked.over(Options::default())))
}

fn is_ours(name: &str) -> bool {
    ViewSettings::has(name) || OPTIONS.iter().any(|option| is(option, name))
}

/// Whether a creation names one of them.
pub fn are_named(creation: &Creation) -> bool {
    creation.option_names().iter().any(|name| is_ours(name))
}

fn is(option: &str, name: &str) -> bool {
    name.eq_ignore_ascii_case(option)
}

const FALLBACK: &str = "fallback";
const CHANGES: &str = "changes";
const NOTIFY: &str = "notify";
const STORAGE: &str = "storage";

/// Those that are no settings.
const OPTIONS: [&str; 4] = [FALLBACK, CHANGES, NOTIFY, STORAGE];

/// Options that a statement names beside settings; within them `None` for what is to be reset.
struct Asked {
    fallback: Option<Option<Fallback>>,
    changes: Option<Option<Retention>>,
    notify: Option<bool>,
    storage: Option<Storage>,
}

impl Asked {
    /// Takes them out of what a statement names. Of several of a name the last one counts.
    fn take(taken: Vec<Taken>) -> Result<(Vec<Taken>, Asked), Error> {
        let last = |option: &str| taken.iter().rfind(|taken| is(option, &taken.name));
        let asked = Asked {
            fallback: last(FALLBACK).map(read_fallback).transpose()?,
            changes: last(CHANGES).map(read_changes).transpose()?,
            notify: last(NOTIFY).map(read_notify).transpose()?,
            storage: last(STORAGE).map(read_storage).transpose()?,
        };
        let is_setting = |taken: &Taken| !OPTIONS.iter().any(|option| is(option, &taken.name));
        Ok((taken.into_iter().filter(is_setting).collect(), asked))
    }

    /// These, and what there was before of the others.
    fn over(self, former: Options) -> Options {
        Options {
            fallback: self.fallback.unwrap_or(former.fallback),
            changes: self.changes.unwrap_or(former.changes),
            notify: self.notify.unwrap_or(former.notify),
            storage: self.storage.unwrap_or(former.storage),
        }
    }
}

fn read_fallback(option: &Taken) -> Result<Option<Fallback>, Error> {
    let Some(name) = &option.value else { return Ok(None) };
    Fallback::of_name(name).map(Some).ok_or_else(|| {
        let message = format!("invalid value for parameter \"fallback\": \"{name}\"");
        Error::new(ErrorKind::InvalidParameter, message).hint(FALLBACKS)
    })
}

/// What is no interval raises an error.
fn read_changes(option: &Taken) -> Result<Option<Retention>, Error> {
    let Some(interval) = &option.value else { return Ok(None) };
    Retention::of_micros(times::micros_of(interval)).map(Some).ok_or_else(|| {
        let message = format!("invalid value for parameter \"changes\": \"{interval}\"");
        Error::new(ErrorKind::InvalidParameter, message)
            .hint("Changes are kept for more than no time and at most a century; RESET (changes) keeps none.")
    })
}

fn read_notify(option: &Taken) -> Result<bool, Error> {
    let Some(value) = &option.value else { return Ok(false) };
    guc::bool_of(value).ok_or_else(|| {
        let message = format!("invalid value for parameter \"notify\": \"{value}\"");
        Error::new(ErrorKind::InvalidParameter, message).hint("It is true or false.")
    })
}

fn read_storage(option: &Taken) -> Result<Storage, Error> {
    let Some(name) = &option.value else { return Ok(Storage::default()) };
    Storage::of_name(name).ok_or_else(|| {
        let message = format!("invalid value for parameter \"storage\": \"{name}\"");
        Error::new(ErrorKind::InvalidParameter, message).hint(STORAGES)
    })
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
    let taken = call.take_changed_options(is_ours);
    if taken.is_empty() {
        return Ok(());
    }
    let (taken, asked) = Asked::take(taken)?;
    if !catalog::is_owned_by_user(relid) {
        return Err(Error::not_owner("materialized view", &view.name));
    }
    locks::against_changes(relid);
    let Label { settings: former, options: before } = registry::label(relid)?;
    let settings = over(&former, &taken);
    let rows_stay = settings == former;
    let options = asked.over(before);
    changes_table::change(relid, (before.changes, options.changes), Origin::Altered)?;
    mirror::change((relid, &settings), (before.storage, options.storage), Origin::Altered)?;
    registry::insert(relid, &Label { settings, options });
    if !rows_stay {
        registry::note_changed(relid);
    }
    Ok(())
}

/// What a view that is replaced is labelled with, and what was before: what the statement does not name stays.
pub fn of_replacement(
    call: &mut Call,
    creation: &mut Creation,
    view: Oid,
) -> Result<(Label, Label), Error> {
    let (taken, asked) = Asked::take(call.take_options(creation, is_ours))?;
    let before = registry::label(view)?;
    let settings = over(&before.settings, &taken);
    Ok((Label { settings, options: asked.over(before.options) }, before))
}

/// Settings with those that a statement names in the place of the former ones.
fn over(former: &ViewSettings, taken: &[Taken]) -> ViewSettings {
    if taken.is_empty() {
        return former.clone();
    }
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
        let of = if is_taken(name) { &now } else { former };
        of.iter().find(|(known, _)| *known == name).map_or_else(String::new, |(_, v)| v.to_owned())
    };
    ViewSettings::read(value)
}

/// A value that the server does not accept raises an error.
fn enter(option: &Taken) {
    match &option.value {
        Some(value) => view_settings::set_one_for_now(&option.name, value),
        None => view_settings::reset_one_for_now(&option.name),
    }
}
