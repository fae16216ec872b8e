//! The settings that a view has of its own.
//!
//! What PostgreSQL's functions make of time zones, formats and locales depends on settings of the session. A view is filled,
//! maintained and compared under those that were in force when it was created, whoever reads it and whatever the server is
//! told later.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The settings that results of PostgreSQL's functions depend on, and the values of a view that has none on record: those
/// of PostgreSQL without a configuration.
const SETTINGS: [(&str, &str); 12] = [
    ("DateStyle", "ISO, MDY"),
    ("IntervalStyle", "postgres"),
    ("TimeZone", "GMT"),
    ("bytea_output", "hex"),
    ("default_text_search_config", "pg_catalog.simple"),
    ("extra_float_digits", "1"),
    ("lc_monetary", "C"),
    ("lc_numeric", "C"),
    ("lc_time", "C"),
    ("timezone_abbreviations", "Default"),
    ("xmlbinary", "base64"),
    ("xmloption", "content"),
];

/// A value for each of the settings that results depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewSettings(BTreeMap<&'static str, String>);

/// What is wrong with settings that are written somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// They are not an object of texts.
    Invalid,
    /// Views have no setting of that name.
    Unknown(String),
    /// One is missing.
    Missing(&'static str),
}

impl Default for ViewSettings {
    fn default() -> ViewSettings {
        ViewSettings(SETTINGS.map(|(name, value)| (name, value.to_owned())).into())
    }
}

impl ViewSettings {
    /// Whether views have a setting of that name, in any case.
    pub fn has(name: &str) -> bool {
        SETTINGS.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
    }

    /// The values that `read` has.
    pub fn read(read: impl Fn(&str) -> String) -> ViewSettings {
        ViewSettings(SETTINGS.map(|(name, _)| (name, read(name))).into())
    }

    /// All of them, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// As they are written into labels and codes.
    pub fn to_json(&self) -> Value {
        let members = self.iter().map(|(name, value)| (name.to_owned(), value.into()));
        Value::Object(members.collect())
    }

    /// What [`ViewSettings::to_json`] has made.
    pub fn from_json(value: &Value) -> Result<ViewSettings, Fault> {
        let written: &Map<String, Value> = value.as_object().ok_or(Fault::Invalid)?;
        let is_known = |name: &String| SETTINGS.iter().any(|(known, _)| known == name);
        if let Some(unknown) = written.keys().find(|name| !is_known(name)) {
            return Err(Fault::Unknown(unknown.clone()));
        }
        let find = |(name, _): (&'static str, _)| {
            let value = written.get(name).ok_or(Fault::Missing(name))?;
            Ok((name, value.as_str().ok_or(Fault::Invalid)?.to_owned()))
        };
        SETTINGS.into_iter().map(find).collect::<Result<_, _>>().map(ViewSettings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_is_read() {
        let settings = ViewSettings::read(|name| format!("\"{name}\""));
        assert_eq!(ViewSettings::from_json(&settings.to_json()), Ok(settings));
    }

    #[test]
    fn names_are_known_in_any_case() {
        assert!(ViewSettings::has("timezone"));
        assert!(!ViewSettings::has("work_mem"));
    }

    #[test]
    fn all_settings_and_no_others_are_wanted() {
        let mut value = ViewSettings::default().to_json();
        value["TimeZone"] = json!(1);
        assert_eq!(ViewSettings::from_json(&value), Err(Fault::Invalid));
        value.as_object_mut().unwrap().remove("TimeZone");
        assert_eq!(ViewSettings::from_json(&value), Err(Fault::Missing("TimeZone")));
        value["work_mem"] = json!("1MB");
        let unknown = Fault::Unknown("work_mem".to_owned());
        assert_eq!(ViewSettings::from_json(&value), Err(unknown));
        assert_eq!(ViewSettings::from_json(&json!([])), Err(Fault::Invalid));
    }
}
