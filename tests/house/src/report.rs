//! What is printed: forbidden circles with the lines that close them, all circles, the edges of one file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{bail, Result};

use crate::advice;
use crate::graph::{Edge, Graph, LARGEST_CIRCLE};
use crate::tree::FileId;

const HINT: &str = "\
How to break a circle: move what both sides need into a module of its own below them; or let the caller hand in
(as an argument, a trait, a function) what the lower module now fetches from above; or move the one function to
the side that uses it; or, when two files are one thing, make them one file. `--edges FILE` shows every line.
";

pub struct Verdict {
    pub text: String,
    pub forbidden: usize,
}

pub fn circles(graphs: &[Graph], list: bool) -> Verdict {
    let mut text = String::new();
    let (mut forbidden, mut in_small) = (0, 0);
    for graph in graphs {
        for circle in graph.circles() {
            if graph.is_forbidden(&circle) {
                forbidden += 1;
                text += &forbidden_circle(graph, &circle);
            } else {
                in_small += circle.len();
                if list {
                    text += &allowed_circle(graph, &circle);
                }
            }
        }
    }
    let modules: usize = graphs.iter().map(|graph| graph.files.len()).sum();
    let found = if forbidden == 0 { String::from("none") } else { forbidden.to_string() };
    if forbidden > 0 {
        text += HINT;
    }
    text +=
        &format!("{modules} modules, {in_small} in circles of two or three, {found} forbidden\n");
    Verdict { text, forbidden }
}

fn forbidden_circle(graph: &Graph, circle: &[FileId]) -> String {
    let mut folders: BTreeMap<&Path, Vec<String>> = BTreeMap::new();
    for file in circle {
        folders.entry(graph.folder(*file)).or_default().push(file_name(graph, *file));
    }
    let reason = match (folders.len(), circle.len() > LARGEST_CIRCLE) {
        (1, _) => format!("more than {LARGEST_CIRCLE} files"),
        (folders, _) => format!("files of {folders} folders"),
    };
    let mut text =
        format!("FORBIDDEN in {}: a circle of {} modules, {reason}\n", graph.name, circle.len());
    for (folder, files) in &folders {
        text += &format!("  {}/: {}\n", folder.display(), files.join(" "));
    }
    text += "  the shortest way round:\n";
    let way = graph.shortest_way_round(circle);
    for (index, file) in way.iter().enumerate() {
        text += &edge_line(graph, (*file, way[(index + 1) % way.len()]));
    }
    text += "  without these edges nothing forbidden is left of it:\n";
    for edge in advice::cuts(graph, circle) {
        text += &edge_line(graph, edge);
    }
    text + "\n"
}

fn allowed_circle(graph: &Graph, circle: &[FileId]) -> String {
    let files: Vec<String> =
        circle.iter().map(|file| graph.file(*file).display().to_string()).collect();
    format!("allowed in {}: {}\n", graph.name, files.join(" "))
}

/// `a.rs:12 uses b.rs: crate::b::f (and 2 more lines)`.
fn edge_line(graph: &Graph, edge: Edge) -> String {
    let uses = &graph.edges[&edge];
    let more = match uses.len() - 1 {
        0 => String::new(),
        1 => String::from(" (and 1 more)"),
        more => format!(" (and {more} more)"),
    };
    let (by, of) = (graph.file(edge.0).display(), graph.file(edge.1).display());
    format!("    {by}:{} uses {of}: {}{more}\n", uses[0].line, uses[0].path)
}

fn file_name(graph: &Graph, file: FileId) -> String {
    let name = graph.file(file).file_name();
    name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Everything a file uses and everything that uses it, `file` being the end of its path.
pub fn edges(graphs: &[Graph], file: &str) -> Result<String> {
    let mut text = String::new();
    for graph in graphs {
        for id in (0..graph.files.len()).map(FileId) {
            if graph.file(id).ends_with(file) {
                text += &edges_of(graph, id);
            }
        }
    }
    if text.is_empty() {
        bail!("no module {file}");
    }
    Ok(text)
}

fn edges_of(graph: &Graph, file: FileId) -> String {
    let circle = graph.circles().into_iter().find(|circle| circle.contains(&file));
    let in_circle = |other| circle.iter().flatten().any(|one| *one == other);
    let mut text = format!("{}\n", graph.file(file).display());
    for (title, outward) in [("uses", true), ("is used by", false)] {
        _ = writeln!(text, "  {title}");
        for ((by, of), uses) in &graph.edges {
            let (own, other) = if outward { (*by, *of) } else { (*of, *by) };
            if own != file {
                continue;
            }
            let mark = if in_circle(other) { "  (same circle)" } else { "" };
            _ = writeln!(text, "    {}{mark}", graph.file(other).display());
            for found in uses {
                let by = graph.file(found.by).display();
                _ = writeln!(text, "      {by}:{} {}", found.line, found.path);
            }
        }
    }
    text
}
