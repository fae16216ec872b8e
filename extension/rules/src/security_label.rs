//! The text of the security label that makes a materialized view incremental.
//!
//! It is the word `incremental`, which a JSON object with options may follow: its `version` says what they mean. Dumps carry it
//! from one release to another, so what a release does not know it refuses.

use serde_json::{Map, Value};

/// The label of an incremental view without options.
pub const INCREMENTAL: &str = "incremental";

/// The latest version of the label's options.
const VERSION: u64 = 1;

/// What is wrong with a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is no label of an incremental view.
    Invalid,
    /// Its version is a later one.
    LaterVersion(u64),
    /// Its version has no option of that name.
    UnknownOption(String),
}

/// Checks the text of a label.
pub fn check(label: &str) -> Result<(), Fault> {
    let options = label.strip_prefix(INCREMENTAL).ok_or(Fault::Invalid)?;
    if options.is_empty() {
        return Ok(());
    }
    let mut options: Map<String, Value> =
        serde_json::from_str(options).map_err(|_| Fault::Invalid)?;
    let version = options.remove("version").map_or(Some(VERSION), |version| version.as_u64());
    match version.ok_or(Fault::Invalid)? {
        0 => return Err(Fault::Invalid),
        1..=VERSION => {}
        later => return Err(Fault::LaterVersion(later)),
    }
    match options.keys().next() {
        Some(name) => Err(Fault::UnknownOption(name.clone())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_and_known_versions_are_accepted() {
        assert_eq!(check("incremental"), Ok(()));
        assert_eq!(check("incremental{}"), Ok(()));
        assert_eq!(check(r#"incremental {"version": 1}"#), Ok(()));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert_eq!(check(""), Err(Fault::Invalid));
        assert_eq!(check("incrementally"), Err(Fault::Invalid));
        assert_eq!(check("incremental[]"), Err(Fault::Invalid));
        assert_eq!(check(r#"incremental{"version": 0}"#), Err(Fault::Invalid));
        assert_eq!(check(r#"incremental{"version": "1"}"#), Err(Fault::Invalid));
        assert_eq!(check(r#"incremental{"version": 2}"#), Err(Fault::LaterVersion(2)));
        let unknown = Fault::UnknownOption("fast".to_owned());
        assert_eq!(check(r#"incremental{"fast": true}"#), Err(unknown));
    }
}
