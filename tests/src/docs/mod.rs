//! The documentation is true: every block of SQL in the book and in README runs, and prints what the page says.
//!
//! Each page with SQL has a database of its own, with the extension in it, and one session of psql. Beside the pages,
//! links between files of the repository lead somewhere, and the reference has every name that the server has and everything
//! that the corpus knows to be refused.

mod links;
mod names;
pub mod page;
mod refused;
pub mod session;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{ensure, Context, Result};

use harness::cluster::Cluster;
use harness::installation::Build;
use harness::report::Counts;
use page::Page;

/// The pages of the book, below the project.
const PAGES: &str = "docs/src";

/// Which pages to run, and what to do with what they print.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Selection {
    /// Words: the pages whose paths have one of them (all pages without any)
    pub words: Vec<String>,
    /// Write what the blocks print into the pages (read it before you commit it)
    #[arg(long)]
    pub accept: bool,
}

impl Selection {
    fn has(&self, path: &Path) -> bool {
        let path = path.to_string_lossy();
        self.words.is_empty() || self.words.iter().any(|word| path.contains(word.as_str()))
    }
}

/// Runs the pages; without a selection also what looks at all of them together.
pub fn run(cluster: &Cluster, build: &Build, selection: &Selection) -> Result<Counts> {
    let mut counts = Counts::default();
    let folder = build.project.join(PAGES);
    let readme = build.project.join("README.md");
    for path in [readme].into_iter().chain(pages_below(&folder)?) {
        let name = path.strip_prefix(&build.project)?.display().to_string();
        if selection.has(&path) {
            run_page(cluster, &path, &name, selection.accept, &mut counts)?;
        }
    }
    if selection.words.is_empty() {
        counts.check("links", links::check(&build.project));
        counts.check("length of README", links::check_length(&build.project));
        counts.check("names", names::check(cluster, &folder));
        counts.check("tables of what is refused", refused::check(&build.project, selection.accept));
    }
    ensure!(
        counts.passed + counts.failed > 0,
        "no page has SQL and one of these words in its path"
    );
    Ok(counts)
}

/// One test, if the page has SQL.
fn run_page(
    cluster: &Cluster,
    path: &Path,
    name: &str,
    accept: bool,
    counts: &mut Counts,
) -> Result<()> {
    let text = fs::read_to_string(path)?;
    let page = match Page::parse(&text) {
        Ok(page) if page.blocks.is_empty() => return Ok(()),
        Ok(page) => page,
        Err(error) => {
            counts.check(name, Err(error));
            return Ok(());
        }
    };
    let outputs = session::run(cluster, &page).with_context(|| name.to_owned())?;
    if accept {
        fs::write(path, page.with_outputs(&outputs))?;
    }
    counts.check(name, if accept { Ok(()) } else { page.compare(&outputs) });
    Ok(())
}

/// All pages, in the order of their paths.
fn pages_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            pages.extend(pages_below(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(pages)
}
