//! The files at the top of the repository: their links lead to files and folders that exist, and README stays short.

use std::fs;
use std::path::Path;

use anyhow::{ensure, Result};

const FILES: [&str; 5] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"];

/// What a reader takes in at one sitting.
const README_WORDS: usize = 1200;

/// Links to files; the book's own links are MkDocs' to check, those to other hosts nobody's.
pub fn check(project: &Path) -> Result<()> {
    let mut broken = Vec::new();
    for file in FILES {
        let text = fs::read_to_string(project.join(file))?;
        for target in targets(&text) {
            if !project.join(target).exists() {
                broken.push(format!("{file}: {target}"));
            }
        }
    }
    ensure!(broken.is_empty(), "links to what does not exist: {}", broken.join(", "));
    Ok(())
}

pub fn check_length(project: &Path) -> Result<()> {
    let words = fs::read_to_string(project.join("README.md"))?.split_whitespace().count();
    ensure!(words <= README_WORDS, "{words} words are more than {README_WORDS}");
    Ok(())
}

/// What the links and pictures of a page lead to, without other hosts and places within the page.
fn targets(text: &str) -> Vec<&str> {
    let links = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let paths = links.map(|(target, _)| target.split('#').next().unwrap_or_default());
    paths.filter(|path| !path.is_empty() && !path.contains("://")).collect()
}

#[cfg(test)]
mod tests {
    use super::targets;

    #[test]
    fn only_links_within_the_repository_count() {
        let text = "[a](docs/a.md#top) [b](https://example.org) ![c](c.svg) [d](#here)";
        assert_eq!(targets(text), ["docs/a.md", "c.svg"]);
    }
}
