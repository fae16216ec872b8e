//! The files of one crate and who uses whom; circles are its strongly connected components.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::tree::{FileId, Tree};
use crate::uses::{self, Use};
use crate::workspace::Member;

/// More files than this must not depend on one another in a circle.
pub const LARGEST_CIRCLE: usize = 3;

pub type Edge = (FileId, FileId);

pub struct Graph {
    pub name: String,
    /// As messages show them, from the project's folder.
    pub files: Vec<PathBuf>,
    pub edges: BTreeMap<Edge, Vec<Use>>,
}

impl Graph {
    pub fn read(member: &Member) -> Result<Graph> {
        let tree = Tree::read(&member.src).with_context(|| format!("crate {}", member.name))?;
        let mut edges: BTreeMap<Edge, Vec<Use>> = BTreeMap::new();
        for found in uses::collect(&tree) {
            edges.entry((found.by, found.of)).or_default().push(found);
        }
        let files = tree.files.iter().map(|file| member.shown.join(file)).collect();
        Ok(Graph { name: member.name.clone(), files, edges })
    }

    pub fn file(&self, id: FileId) -> &Path {
        &self.files[id.0]
    }

    pub fn folder(&self, id: FileId) -> &Path {
        self.file(id).parent().unwrap_or(Path::new(""))
    }

    /// All circles, each sorted.
    pub fn circles(&self) -> Vec<Vec<FileId>> {
        let edges: BTreeSet<Edge> = self.edges.keys().copied().collect();
        circles(self.files.len(), &edges)
    }

    pub fn is_forbidden(&self, circle: &[FileId]) -> bool {
        let folders: BTreeSet<&Path> = circle.iter().map(|file| self.folder(*file)).collect();
        circle.len() > LARGEST_CIRCLE || folders.len() > 1
    }

    /// The shortest way from a file of the circle round to itself, the first file not repeated.
    pub fn shortest_way_round(&self, circle: &[FileId]) -> Vec<FileId> {
        let ways = circle.iter().filter_map(|start| self.way_round(circle, *start));
        ways.min_by_key(Vec::len).unwrap_or_default()
    }

    fn way_round(&self, circle: &[FileId], start: FileId) -> Option<Vec<FileId>> {
        let mut came_from: BTreeMap<FileId, FileId> = BTreeMap::new();
        let mut next = VecDeque::from([start]);
        while let Some(here) = next.pop_front() {
            for there in self.used_by(here).filter(|there| circle.contains(there)) {
                if there == start {
                    return Some(walked(&came_from, here));
                }
                if let std::collections::btree_map::Entry::Vacant(entry) = came_from.entry(there) {
                    entry.insert(here);
                    next.push_back(there);
                }
            }
        }
        None
    }

    fn used_by(&self, file: FileId) -> impl Iterator<Item = FileId> + '_ {
        self.edges.range((file, FileId(0))..(FileId(file.0 + 1), FileId(0))).map(|(edge, _)| edge.1)
    }
}

fn walked(came_from: &BTreeMap<FileId, FileId>, last: FileId) -> Vec<FileId> {
    let mut way = vec![last];
    let mut here = last;
    while let Some(before) = came_from.get(&here) {
        way.push(*before);
        here = *before;
    }
    way.reverse();
    way
}

/// Tarjan's strongly connected components, those of one file left out.
pub fn circles(files: usize, edges: &BTreeSet<Edge>) -> Vec<Vec<FileId>> {
    let mut search = Search {
        edges,
        index: vec![None; files],
        lowest: vec![0; files],
        open: Vec::new(),
        seen: 0,
        found: Vec::new(),
    };
    for file in 0..files {
        if search.index[file].is_none() {
            search.enter(FileId(file));
        }
    }
    search.found
}

struct Search<'a> {
    edges: &'a BTreeSet<Edge>,
    index: Vec<Option<usize>>,
    /// The earliest open file that can be reached.
    lowest: Vec<usize>,
    /// Files seen whose component is not complete yet.
    open: Vec<FileId>,
    seen: usize,
    found: Vec<Vec<FileId>>,
}

impl Search<'_> {
    fn enter(&mut self, file: FileId) {
        let index = self.seen;
        self.seen += 1;
        self.index[file.0] = Some(index);
        self.lowest[file.0] = index;
        self.open.push(file);
        let edges = self.edges;
        for (_, of) in edges.range((file, FileId(0))..(FileId(file.0 + 1), FileId(0))) {
            match self.index[of.0] {
                None => {
                    self.enter(*of);
                    self.lowest[file.0] = self.lowest[file.0].min(self.lowest[of.0]);
                }
                Some(seen) if self.open.contains(of) => {
                    self.lowest[file.0] = self.lowest[file.0].min(seen);
                }
                Some(_) => {}
            }
        }
        if self.lowest[file.0] == index {
            self.close(file);
        }
    }

    fn close(&mut self, file: FileId) {
        let start = self.open.iter().rposition(|open| *open == file);
        let mut circle = self.open.split_off(start.expect("a file is open until it is closed"));
        if circle.len() > 1 {
            circle.sort();
            self.found.push(circle);
        }
    }
}
