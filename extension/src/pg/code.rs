//! Code that PostgreSQL evaluates for plans, in the form in which it travels: a line that says what it is and under which
//! settings it runs, then the text of a node tree.

use pgrx::pg_sys::Oid;
use rules::view_settings::ViewSettings;
use serde_json::{json, Value};
use std::collections::BTreeSet;

/// What code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Expression,
    Query,
    /// A condition over the present time, `$1`: the value is the instant at which it becomes true.
    From,
    /// The same; the value is the instant at which it ceases to be true.
    Until,
}

const KINDS: [(Kind, &str); 4] = [
    (Kind::Expression, "expression"),
    (Kind::Query, "query"),
    (Kind::From, "from"),
    (Kind::Until, "until"),
];

/// How code makes dates and times of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Times {
    /// Of none.
    None,
    /// Of parts of its arguments, as they are there.
    OfArguments,
    /// Of texts that it may have put together.
    OfTexts,
}

const TIMES: [(Times, &str); 3] =
    [(Times::None, "none"), (Times::OfArguments, "arguments"), (Times::OfTexts, "texts")];

/// What is to be known of code before it runs.
#[derive(Debug)]
pub struct Frame {
    pub kind: Kind,
    /// The settings of the view that it is of.
    pub settings: ViewSettings,
    pub times: Times,
    /// Whether it uses a configuration of text search.
    pub searches: bool,
    /// The types of users in it, beneath arrays and domains.
    pub types: Vec<Oid>,
    /// The types of names of objects that it writes.
    pub names: BTreeSet<u32>,
    /// Whether these are names of the tables that its query reads, and no others.
    pub names_tables: bool,
}

/// The code of a node tree.
pub fn write(frame: &Frame, tree: &str) -> String {
    let name = KINDS.iter().find(|(known, _)| *known == frame.kind).map(|(_, name)| name);
    let times = TIMES.iter().find(|(known, _)| *known == frame.times).map(|(_, name)| name);
    let types: Vec<u32> = frame.types.iter().map(|ty| ty.to_u32()).collect();
    let line = json!({
        "kind": name,
        "settings": frame.settings.to_json(),
        "times": times,
        "searches": frame.searches,
        "types": types,
        "names": frame.names,
        "names_tables": frame.names_tables,
    });
    format!("{line}\n{tree}")
}

/// What [`write()`] has written, taken apart; `None` for anything else.
pub fn read(code: &str) -> Option<(Frame, &str)> {
    let (line, tree) = code.split_once('\n')?;
    let line: Value = serde_json::from_str(line).ok()?;
    let name = line.get("kind")?.as_str()?;
    let times = line.get("times")?.as_str()?;
    let number = |ty: &Value| u32::try_from(ty.as_u64()?).ok();
    let types = line.get("types")?.as_array()?.iter().map(|ty| number(ty).map(Oid::from));
    let names = line.get("names")?.as_array()?.iter().map(number);
    let frame = Frame {
        kind: KINDS.into_iter().find(|(_, known)| *known == name)?.0,
        settings: ViewSettings::from_json(line.get("settings")?).ok()?,
        times: TIMES.into_iter().find(|(_, known)| *known == times)?.0,
        searches: line.get("searches")?.as_bool()?,
        types: types.collect::<Option<_>>()?,
        names: names.collect::<Option<_>>()?,
        names_tables: line.get("names_tables")?.as_bool()?,
    };
    Some((frame, tree))
}
