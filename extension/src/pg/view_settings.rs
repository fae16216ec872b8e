//! The settings of a view, in force in this process.

use crate::pg::guc;
use pgrx::pg_sys;
use rules::view_settings::ViewSettings;
use std::ffi::{c_int, CString};

/// Settings that are in force until [`end`], or until an error.
#[derive(Clone, Copy, Debug)]
pub struct Level(c_int);

/// Begins a level: what is set for now from here on is as before at its end.
pub fn begin() -> Level {
    // SAFETY: counts nested levels.
    Level(unsafe { pg_sys::NewGUCNestLevel() })
}

/// Ends a level, and those within it.
pub fn end(level: Level) {
    // SAFETY: a level that `begin` opened. An abort would end it as well.
    unsafe { pg_sys::AtEOXact_GUC(true, level.0) }
}

/// Those of this session, which a view that is created now will have.
pub fn current() -> ViewSettings {
    ViewSettings::read(|name| match guc::get(&c_string(name)) {
        value if value.is_empty() && name.starts_with("lc_") => locale_of_environment(name),
        value => value,
    })
}

/// What an empty name of a locale stands for, in this process and not for ever.
fn locale_of_environment(name: &str) -> String {
    let variables = ["LC_ALL".to_owned(), name.to_uppercase(), "LANG".to_owned()];
    let mut values = variables.iter().filter_map(|variable| std::env::var(variable).ok());
    values.find(|value| !value.is_empty()).unwrap_or_else(|| "C".to_owned())
}

/// Has those of a view in force, until the level ends. A value that this server does not accept raises an error.
pub fn set_for_now(settings: &ViewSettings) {
    settings.iter().for_each(|(name, value)| set_one_for_now(name, value));
}

/// Has one of them in force, until the level ends.
pub fn set_one_for_now(name: &str, value: &str) {
    let name = c_string(name);
    // Some take their time.
    if guc::get(&name) != value {
        guc::set_for_now(&name, &c_string(value));
    }
}

/// Has one of them in force, until the level ends, if its value is valid.
pub fn try_one_for_now(name: &str, value: &str) {
    guc::try_set_for_now(&c_string(name), &c_string(value));
}

/// Has one of them as this session would have it without SET, until the level ends.
pub fn reset_one_for_now(name: &str) {
    let name = c_string(name);
    guc::set_for_now(&name, &c_string(&guc::get_default(&name)));
}

/// Runs `work` under those of a view.
pub fn with<R>(settings: &ViewSettings, work: impl FnOnce() -> R) -> R {
    let level = begin();
    set_for_now(settings);
    let result = work();
    end(level);
    result
}

/// Settings have no zero bytes.
fn c_string(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}
