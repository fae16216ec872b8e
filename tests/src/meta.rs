//! META.json, by which PGXN knows the extension: it has what the specification asks for (<https://pgxn.org/spec/>, 1.0.0), and
//! says what is so.

use std::fs;
use std::path::Path;

use anyhow::{ensure, Context, Result};
use serde_json::Value;

/// What must be there, and some that may. A name of ours that begins with `X_` would be one more.
const KEYS: [&str; 13] = [
    "name",
    "version",
    "abstract",
    "maintainer",
    "license",
    "provides",
    "meta-spec",
    "description",
    "generated_by",
    "prereqs",
    "release_status",
    "resources",
    "tags",
];

/// How many of them the specification requires.
const REQUIRED: usize = 7;

pub fn check(project: &Path) -> Result<()> {
    let text = fs::read_to_string(project.join("META.json"))?;
    let meta: Value = serde_json::from_str(&text).context("META.json")?;
    let keys = meta.as_object().context("it is an object")?;
    for key in &KEYS[..REQUIRED] {
        ensure!(keys.contains_key(*key), "{key} is missing");
    }
    let unknown: Vec<_> = keys.keys().filter(|key| !KEYS.contains(&key.as_str())).collect();
    ensure!(unknown.is_empty(), "the specification has no {unknown:?}");
    expect(&meta, "/meta-spec/version", "1.0.0")?;
    expect(&meta, "/license", "postgresql")?;
    expect(&meta, "/name", "pg_eddy")?;
    let version = version(project)?;
    for pointer in ["/version", "/provides/pg_eddy/version"] {
        expect(&meta, pointer, &version)?;
    }
    let status = text_at(&meta, "/release_status")?;
    ensure!(["stable", "testing", "unstable"].contains(&status), "release_status is {status}");
    let script = format!("sql/pg_eddy--{version}.sql");
    expect(&meta, "/provides/pg_eddy/file", &script)?;
    for file in [&script, text_at(&meta, "/provides/pg_eddy/docfile")?] {
        ensure!(project.join(file).is_file(), "there is no file {file}");
    }
    let maintainers = meta["maintainer"].as_array().context("maintainer is an array")?;
    ensure!(!maintainers.is_empty() && maintainers.iter().all(Value::is_string), "maintainer");
    Ok(())
}

/// That of the control file, which is the library's, too.
fn version(project: &Path) -> Result<String> {
    let control = fs::read_to_string(project.join("sql/pg_eddy.control"))?;
    let version = control.lines().find_map(|line| line.strip_prefix("default_version = '"));
    let version = version.and_then(|rest| rest.strip_suffix('\'')).context("default_version")?;
    let line = format!("version = \"{version}\"");
    let mut crates =
        ["extension/Cargo.toml", "Cargo.toml"].into_iter().map(|file| project.join(file));
    let is_the_librarys = crates.any(|file| {
        fs::read_to_string(file).is_ok_and(|text| text.lines().any(|found| found == line))
    });
    ensure!(is_the_librarys, "the library is not of version {version}");
    Ok(version.to_owned())
}

fn text_at<'a>(meta: &'a Value, pointer: &str) -> Result<&'a str> {
    let text = meta.pointer(pointer).and_then(Value::as_str);
    text.with_context(|| format!("{pointer} is no text"))
}

fn expect(meta: &Value, pointer: &str, expected: &str) -> Result<()> {
    let found = text_at(meta, pointer)?;
    ensure!(found == expected, "{pointer} is {found}, not {expected}");
    Ok(())
}
