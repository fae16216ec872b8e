//! Measurements read back from the JSON lines of one folder, whichever runs they come from.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use harness::timing::median;
use serde_json::Value;

use crate::compare::Ratio;

/// All lines of all files.
pub struct Results {
    lines: Vec<Value>,
    /// Descriptions of the machine, one per file, with the name of the file.
    pub machines: Vec<(String, Value)>,
}

/// Lines that agree in some keys, all with the same values there.
pub type Group<'a> = Vec<&'a Value>;

impl Results {
    pub fn read(folder: &Path) -> Result<Results> {
        let mut files = Vec::new();
        for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                files.push(path);
            }
        }
        files.sort();
        let mut results = Results { lines: Vec::new(), machines: Vec::new() };
        for file in files {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            for line in fs::read_to_string(&file)?.lines() {
                let line: Value =
                    serde_json::from_str(line).with_context(|| file.display().to_string())?;
                match line["kind"].as_str() {
                    Some("machine") => results.machines.push((stem.clone(), line)),
                    _ => results.lines.push(line),
                }
            }
        }
        Ok(results)
    }

    /// The lines of a kind that `is_wanted`, grouped by the values of `keys`.
    pub fn groups(
        &self,
        kind: &str,
        is_wanted: impl Fn(&Value) -> bool,
        keys: &[&str],
    ) -> BTreeMap<Vec<String>, Group<'_>> {
        let mut groups: BTreeMap<Vec<String>, Group> = BTreeMap::new();
        for line in self.lines.iter().filter(|line| line["kind"] == kind && is_wanted(line)) {
            let values = keys.iter().map(|key| line[*key].to_string()).collect();
            groups.entry(values).or_default().push(line);
        }
        groups
    }
}

/// Numbers of one field, in the order of the lines.
pub fn numbers(lines: &[&Value], field: &str) -> Vec<f64> {
    lines.iter().filter_map(|line| line[field].as_f64()).collect()
}

/// The median of a field; `None` without lines.
pub fn middle(lines: &[&Value], field: &str) -> Option<f64> {
    let numbers = numbers(lines, field);
    (!numbers.is_empty()).then(|| median(&numbers))
}

/// Median ratio of a field of the lines in which `key` is `these` to those in which it is `those`,
/// taken in pairs; `None` if one of them is missing.
pub fn ratio(
    lines: &[&Value],
    field: &str,
    key: &str,
    (these, those): (&Value, &Value),
) -> Option<f64> {
    let of = |value: &Value| {
        let lines: Vec<&Value> = lines.iter().filter(|line| line[key] == *value).copied().collect();
        numbers(&lines, field)
    };
    let (these, those) = (of(these), of(those));
    let is_paired = !these.is_empty() && these.len() == those.len();
    is_paired.then(|| Ratio::of_pairs(&these, &those).median)
}
