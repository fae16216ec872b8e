//! The text of the security label that makes a materialized view incremental.
//!
//! It is the word `incremental`, which a JSON object with options may follow: its `version` says what they mean. Dumps carry it
//! from one release to another, so what a release does not know it refuses.
//!
//! ```text
//! incremental {"settings": {"TimeZone": "Europe/Berlin", …}, "version": 2}
//! ```

use crate::view_settings::{self, ViewSettings};
use serde_json::{json, Map, Value};

/// With it the label of an incremental view begins, and may end.
pub const INCREMENTAL: &str = "incremental";

/// The latest version of the label's options. Since 2 there are settings.
const VERSION: u64 = 2;

/// What a label says of its view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// The settings it has of its own.
    pub settings: ViewSettings,
}

/// What is wrong with a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is no label of an incremental view.
    Invalid,
    /// Its version is a later one.
    LaterVersion(u64),
    /// Its version has no option of that name.
    UnknownOption(String),
    /// What is wrong with the settings in it.
    Settings(view_settings::Fault),
}

impl Label {
    /// As it is written.
    pub fn text(&self) -> String {
        let options = json!({ "settings": self.settings.to_json(), "version": VERSION });
        format!("{INCREMENTAL} {options}")
    }

    /// Reads what is written.
    pub fn read(label: &str) -> Result<Label, Fault> {
        let options = label.strip_prefix(INCREMENTAL).ok_or(Fault::Invalid)?;
        if options.is_empty() {
            return Ok(Label::default());
        }
        let mut options: Map<String, Value> =
            serde_json::from_str(options).map_err(|_| Fault::Invalid)?;
        let version = options.remove("version").map_or(Some(1), |version| version.as_u64());
        let settings = match version.ok_or(Fault::Invalid)? {
            0 => return Err(Fault::Invalid),
            1 => None,
            2..=VERSION => options.remove("settings"),
            later => return Err(Fault::LaterVersion(later)),
        };
        if let Some(name) = options.keys().next() {
            return Err(Fault::UnknownOption(name.clone()));
        }
        let settings = settings.map_or(Ok(ViewSettings::default()), |written| {
            ViewSettings::from_json(&written).map_err(Fault::Settings)
        });
        Ok(Label { settings: settings? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_and_known_versions_are_accepted() {
        assert_eq!(Label::read("incremental"), Ok(Label::default()));
        assert_eq!(Label::read("incremental{}"), Ok(Label::default()));
        assert_eq!(Label::read(r#"incremental {"version": 1}"#), Ok(Label::default()));
        assert_eq!(Label::read(r#"incremental {"version": 2}"#), Ok(Label::default()));
    }

    #[test]
    fn what_is_written_is_read() {
        let label = Label { settings: ViewSettings::read(|name| format!("\"{name}\"")) };
        assert_eq!(Label::read(&label.text()), Ok(label));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert_eq!(Label::read(""), Err(Fault::Invalid));
        assert_eq!(Label::read("incrementally"), Err(Fault::Invalid));
        assert_eq!(Label::read("incremental[]"), Err(Fault::Invalid));
        assert_eq!(Label::read(r#"incremental{"version": 0}"#), Err(Fault::Invalid));
        assert_eq!(Label::read(r#"incremental{"version": "1"}"#), Err(Fault::Invalid));
        assert_eq!(Label::read(r#"incremental{"version": 3}"#), Err(Fault::LaterVersion(3)));
        let unknown = Fault::UnknownOption("fast".to_owned());
        assert_eq!(Label::read(r#"incremental{"fast": true}"#), Err(unknown));
        let unknown = Fault::UnknownOption("settings".to_owned());
        assert_eq!(Label::read(r#"incremental{"settings": {}}"#), Err(unknown));
        let missing = Fault::Settings(view_settings::Fault::Missing("DateStyle"));
        assert_eq!(Label::read(r#"incremental{"settings": {}, "version": 2}"#), Err(missing));
    }
}
