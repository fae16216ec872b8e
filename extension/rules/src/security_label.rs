//! The text of the security label that makes a materialized view incremental.
//!
//! It is the word `incremental`, which a JSON object with options may follow: its `version` says what they mean. Dumps carry it
//! from one release to another, so what a release does not know it refuses.
//!
//! ```text
//! incremental {"settings": {"TimeZone": "Europe/Berlin", …}, "fallback": "query", "changes": "86400 s", "notify": true, "storage": "table", "version": 2}
//! ```

use crate::view_settings::{self, ViewSettings};
use serde_json::{json, Map, Value};

/// With it the label of an incremental view begins, and may end.
pub const INCREMENTAL: &str = "incremental";

/// The latest version of the label's options. Since 2 there are any.
const VERSION: u64 = 2;

/// What a label says of its view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// The settings it has of its own.
    pub settings: ViewSettings,
    /// Its other options.
    pub options: Options,
}

/// What a view is asked for beside its settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What reads do that find it not current, where the session does not say.
    pub fallback: Option<Fallback>,
    /// That its changes are written into a table, and how long they stay there.
    pub changes: Option<Retention>,
    /// Whether who listens is notified of its changes.
    pub notify: bool,
    /// Where its rows are kept.
    pub storage: Storage,
}

/// Where the rows of a view are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// In the view.
    #[default]
    View,
    /// In an ordinary table as well.
    Table,
}

impl Storage {
    const ALL: [Storage; 2] = [Storage::View, Storage::Table];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Storage::View => "view",
            Storage::Table => "table",
        }
    }

    /// The one of that name, in any case.
    pub fn of_name(name: &str) -> Option<Storage> {
        Storage::ALL.into_iter().find(|storage| storage.name().eq_ignore_ascii_case(name))
    }
}

/// How long something is kept at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    seconds: u64,
}

impl Retention {
    /// The longest: a century or so.
    const MOST: u64 = 100 * 366 * 86_400;

    /// So many microseconds, in whole seconds; `None` if these are none, or more than a century.
    pub fn of_micros(micros: i64) -> Option<Retention> {
        Retention::of_seconds(u64::try_from(micros).ok()?.div_ceil(1_000_000))
    }

    fn of_seconds(seconds: u64) -> Option<Retention> {
        (1..=Retention::MOST).contains(&seconds).then_some(Retention { seconds })
    }

    /// In microseconds.
    pub fn micros(self) -> i64 {
        i64::try_from(self.seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000)
    }

    /// As PostgreSQL reads an interval.
    pub fn text(self) -> String {
        format!("{} s", self.seconds)
    }

    fn read(text: &str) -> Option<Retention> {
        Retention::of_seconds(text.strip_suffix(" s")?.parse().ok()?)
    }
}

/// What becomes of a statement that reads views which are not current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// It waits.
    Wait,
    /// It runs their queries.
    Query,
    /// It fails.
    Error,
}

impl Fallback {
    const ALL: [Fallback; 3] = [Fallback::Wait, Fallback::Query, Fallback::Error];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Fallback::Wait => "wait",
            Fallback::Query => "query",
            Fallback::Error => "error",
        }
    }

    /// The one of that name, in any case.
    pub fn of_name(name: &str) -> Option<Fallback> {
        Fallback::ALL.into_iter().find(|fallback| fallback.name().eq_ignore_ascii_case(name))
    }
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
    /// There is no such fallback.
    Fallback,
    /// That is no time for which changes can be kept.
    Changes,
    /// Who listens is notified or not.
    Notify,
    /// Rows cannot be kept there.
    Storage,
}

impl Label {
    /// As it is written.
    pub fn text(&self) -> String {
        let mut options = json!({ "settings": self.settings.to_json(), "version": VERSION });
        let Options { fallback, changes, notify, storage } = self.options;
        if let Some(fallback) = fallback {
            options["fallback"] = fallback.name().into();
        }
        if let Some(retention) = changes {
            options["changes"] = retention.text().into();
        }
        if notify {
            options["notify"] = true.into();
        }
        if storage != Storage::default() {
            options["storage"] = storage.name().into();
        }
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
        let mut known = |name: &str| options.remove(name);
        let [settings, fallback, changes, notify, storage] = match version.ok_or(Fault::Invalid)? {
            0 => return Err(Fault::Invalid),
            1 => [const { None }; 5],
            2..=VERSION => ["settings", "fallback", "changes", "notify", "storage"].map(&mut known),
            later => return Err(Fault::LaterVersion(later)),
        };
        if let Some(name) = options.keys().next() {
            return Err(Fault::UnknownOption(name.clone()));
        }
        let settings = settings.map_or(Ok(ViewSettings::default()), |written| {
            ViewSettings::from_json(&written).map_err(Fault::Settings)
        });
        let fallback = read_text(fallback, Fallback::of_name, Fault::Fallback);
        let changes = read_text(changes, Retention::read, Fault::Changes);
        let notify = match notify {
            None => false,
            Some(written) => written.as_bool().ok_or(Fault::Notify)?,
        };
        let storage = read_text(storage, Storage::of_name, Fault::Storage)?.unwrap_or_default();
        let options = Options { fallback: fallback?, changes: changes?, notify, storage };
        Ok(Label { settings: settings?, options })
    }
}

/// What an option says that is a text, if it is there.
fn read_text<T>(
    written: Option<Value>,
    read: impl Fn(&str) -> Option<T>,
    fault: Fault,
) -> Result<Option<T>, Fault> {
    let Some(written) = written else { return Ok(None) };
    written.as_str().and_then(read).map(Some).ok_or(fault)
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
        let settings = ViewSettings::read(|name| format!("\"{name}\""));
        for fallback in [None, Some(Fallback::Wait), Some(Fallback::Query), Some(Fallback::Error)] {
            for changes in
                [None, Retention::of_micros(1), Retention::of_micros(1_000_000_000_000_000)]
            {
                for (notify, storage) in [(false, Storage::Table), (true, Storage::View)] {
                    let options = Options { fallback, changes, notify, storage };
                    let label = Label { settings: settings.clone(), options };
                    assert_eq!(Label::read(&label.text()), Ok(label));
                }
            }
        }
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
        let label = r#"incremental{"fallback": "never", "version": 2}"#;
        assert_eq!(Label::read(label), Err(Fault::Fallback));
        for time in ["", "s", "0 s", "1", "1 day", "-1 s", "9223372036855 s"] {
            let label = format!(r#"incremental{{"changes": "{time}", "version": 2}}"#);
            assert_eq!(Label::read(&label), Err(Fault::Changes), "{time}");
        }
        let label = r#"incremental{"notify": "yes", "version": 2}"#;
        assert_eq!(Label::read(label), Err(Fault::Notify));
        let label = r#"incremental{"storage": "disk", "version": 2}"#;
        assert_eq!(Label::read(label), Err(Fault::Storage));
        let missing = Fault::Settings(view_settings::Fault::Missing("DateStyle"));
        assert_eq!(Label::read(r#"incremental{"settings": {}, "version": 2}"#), Err(missing));
    }
}
