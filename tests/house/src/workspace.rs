//! The crates of the workspace: the members of the root `Cargo.toml`, so that none can be forgotten.
//!
//! Only what this project's own files need is understood of TOML: one array of strings, one `name`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A crate: its package name, its `src`, and how messages call that folder.
pub struct Member {
    pub name: String,
    pub src: PathBuf,
    pub shown: PathBuf,
}

pub fn members(project: &Path) -> Result<Vec<Member>> {
    let root = read(&project.join("Cargo.toml"))?;
    let folders = strings_of_array(&root, "members").context("no `members` in Cargo.toml")?;
    folders.into_iter().map(|folder| member(project, &folder)).collect()
}

fn member(project: &Path, folder: &str) -> Result<Member> {
    let manifest = project.join(folder).join("Cargo.toml");
    let name = package_name(&read(&manifest)?)
        .with_context(|| format!("no package name in {}", manifest.display()))?;
    let shown = Path::new(folder).join("src");
    Ok(Member { name, src: project.join(&shown), shown })
}

fn read(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// The strings of `key = ["a", "b"]`, over as many lines as it takes.
fn strings_of_array(toml: &str, key: &str) -> Option<Vec<String>> {
    let lines: Vec<&str> = toml.lines().map(without_comment).collect();
    let first = lines.iter().position(|line| value_of(line, key).is_some())?;
    let rest = lines[first..].join("\n");
    let (_, array) = rest.split_once('[')?;
    let (array, _) = array.split_once(']')?;
    Some(array.split('"').skip(1).step_by(2).map(str::to_string).collect())
}

fn package_name(toml: &str) -> Option<String> {
    toml.lines()
        .skip_while(|line| line.trim() != "[package]")
        .find_map(|line| value_of(without_comment(line), "name"))
        .map(|value| value.trim_matches('"').to_string())
}

fn value_of<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (name, value) = line.split_once('=')?;
    (name.trim() == key).then(|| value.trim())
}

fn without_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or(line)
}
