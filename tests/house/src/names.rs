//! Which file a path leads to: the names of every module, and the walk along a path through them.
//!
//! Imports and re-exports are followed to the file that defines the item, so a module that only passes a
//! name on is not what its users depend on.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use syn::ext::IdentExt;
use syn::visit::Visit;
use syn::{ForeignItem, Ident, Item, ItemUse, UseTree, Visibility};

use crate::tree::{only_for_tests, FileId, ModuleId, Tree};

/// What a path leads to. No `Found` at all: the name belongs to another crate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    Item(FileId),
    Module(ModuleId),
}

#[derive(Clone)]
enum Meaning {
    Here(Found),
    /// Another name for what this path leads to; the number is the import's own.
    Import(usize, Vec<String>),
}

#[derive(Clone)]
struct Name {
    meaning: Meaning,
    public: bool,
}

#[derive(Default)]
struct Scope {
    names: BTreeMap<String, Vec<Name>>,
    globs: Vec<Name>,
}

pub struct Names<'a> {
    tree: &'a Tree,
    scopes: Vec<Scope>,
    /// Macros are also found by order in the text, without a path.
    macros: BTreeMap<String, FileId>,
    /// The imports being followed: an import is not looked up by way of itself.
    following: RefCell<BTreeSet<usize>>,
}

impl<'a> Names<'a> {
    pub fn of(tree: &'a Tree) -> Names<'a> {
        let scopes = tree.modules.iter().map(|_| Scope::default()).collect();
        let mut names =
            Names { tree, scopes, macros: BTreeMap::new(), following: RefCell::default() };
        let mut imports = 0;
        for id in (0..tree.modules.len()).map(ModuleId) {
            let module = &tree[id];
            if let Some(parent) = module.parent {
                names.declare(parent, &module.name, Found::Module(id), module.public);
            }
            for item in &module.items {
                names.declare_item(id, item);
                let mut inner = Imports { found: Vec::new() };
                inner.visit_item(item);
                for (import, public) in inner.found {
                    imports += 1;
                    names.import(id, imports, import, public);
                }
            }
        }
        names
    }

    /// Everything `path` may mean when it is written in module `at`.
    pub fn resolve(&self, at: ModuleId, path: &[String]) -> Vec<Found> {
        let mut start = None;
        let mut rest = path;
        while let Some((first, more)) = rest.split_first() {
            let here = start.unwrap_or(at);
            start = match first.as_str() {
                "crate" => Some(self.root(at)),
                "self" => Some(here),
                "super" => Some(self.tree[here].parent.unwrap_or(here)),
                _ => break,
            };
            rest = more;
        }
        match (start, rest.split_first()) {
            (Some(start), _) => self.walk(start, rest, at),
            (None, Some((first, more))) => {
                let found = self.look_up(at, first, at).unwrap_or_default();
                self.follow(found, more, at)
            }
            (None, None) => Vec::new(),
        }
    }

    pub fn macro_file(&self, name: &str) -> Option<FileId> {
        self.macros.get(name).copied()
    }

    fn root(&self, mut at: ModuleId) -> ModuleId {
        while let Some(parent) = self.tree[at].parent {
            at = parent;
        }
        at
    }

    fn walk(&self, module: ModuleId, rest: &[String], from: ModuleId) -> Vec<Found> {
        let Some((first, more)) = rest.split_first() else {
            return vec![Found::Module(module)];
        };
        match self.look_up(module, first, from) {
            Some(found) => self.follow(found, more, from),
            // The path compiles, so a macro of that module made the name.
            None => vec![Found::Item(self.tree[module].file)],
        }
    }

    fn follow(&self, found: Vec<Found>, rest: &[String], from: ModuleId) -> Vec<Found> {
        if rest.is_empty() {
            return found;
        }
        let module = found.iter().find_map(|one| match one {
            Found::Module(module) => Some(*module),
            Found::Item(_) => None,
        });
        match module {
            Some(module) => self.walk(module, rest, from),
            None => found,
        }
    }

    /// `None` when the module does not have the name; empty when it is another crate's.
    fn look_up(&self, module: ModuleId, name: &str, from: ModuleId) -> Option<Vec<Found>> {
        let scope = &self.scopes[module.0];
        let visible = |entry: &&Name| entry.public || self.tree.within(from, module);
        let mut found = Vec::new();
        let mut known = false;
        for entry in scope.names.get(name).into_iter().flatten().filter(visible) {
            if let Some(meant) = self.meant(module, &entry.meaning) {
                known = true;
                found.extend(meant);
            }
        }
        if known {
            return Some(found);
        }
        for glob in scope.globs.iter().filter(visible) {
            match self.meant(module, &glob.meaning) {
                Some(opened) if opened.is_empty() => known = true,
                Some(opened) => {
                    for one in opened {
                        let Found::Module(opened) = one else { continue };
                        let Meaning::Import(number, _) = &glob.meaning else { continue };
                        let more = self.guarded(*number, || self.look_up(opened, name, module));
                        found.extend(more.flatten().unwrap_or_default());
                    }
                }
                None => {}
            }
        }
        (known || !found.is_empty()).then_some(found)
    }

    /// `None` when the import is being followed already.
    fn meant(&self, module: ModuleId, meaning: &Meaning) -> Option<Vec<Found>> {
        match meaning {
            Meaning::Here(found) => Some(vec![*found]),
            Meaning::Import(number, path) => self.guarded(*number, || self.resolve(module, path)),
        }
    }

    fn guarded<T>(&self, number: usize, work: impl FnOnce() -> T) -> Option<T> {
        if !self.following.borrow_mut().insert(number) {
            return None;
        }
        let result = work();
        self.following.borrow_mut().remove(&number);
        Some(result)
    }

    fn declare(&mut self, module: ModuleId, name: &str, found: Found, public: bool) {
        let entry = Name { meaning: Meaning::Here(found), public };
        self.scopes[module.0].names.entry(name.to_string()).or_default().push(entry);
    }

    fn import(&mut self, module: ModuleId, number: usize, import: Leaf, public: bool) {
        let scope = &mut self.scopes[module.0];
        let entry = Name { meaning: Meaning::Import(number, import.path), public };
        match import.name {
            Some(name) => scope.names.entry(name).or_default().push(entry),
            None => scope.globs.push(entry),
        }
    }

    fn declare_item(&mut self, module: ModuleId, item: &Item) {
        let file = self.tree[module].file;
        if let Item::ForeignMod(block) = item {
            for (name, visibility) in block.items.iter().filter_map(foreign_name) {
                self.declare(module, &text(name), Found::Item(file), is_public(visibility));
            }
        } else if let Item::Macro(rules) = item {
            let Some(name) = &rules.ident else { return };
            self.macros.insert(text(name), file);
            self.declare(module, &text(name), Found::Item(file), true);
            if rules.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export")) {
                let root = self.root(module);
                self.declare(root, &text(name), Found::Item(file), true);
            }
        } else if let Some((name, visibility)) = item_name(item) {
            self.declare(module, &text(name), Found::Item(file), is_public(visibility));
        }
    }
}

pub fn is_public(visibility: &Visibility) -> bool {
    !matches!(visibility, Visibility::Inherited)
}

fn text(name: &Ident) -> String {
    name.unraw().to_string()
}

fn item_name(item: &Item) -> Option<(&Ident, &Visibility)> {
    Some(match item {
        Item::Const(item) => (&item.ident, &item.vis),
        Item::Enum(item) => (&item.ident, &item.vis),
        Item::Fn(item) => (&item.sig.ident, &item.vis),
        Item::Static(item) => (&item.ident, &item.vis),
        Item::Struct(item) => (&item.ident, &item.vis),
        Item::Trait(item) => (&item.ident, &item.vis),
        Item::TraitAlias(item) => (&item.ident, &item.vis),
        Item::Type(item) => (&item.ident, &item.vis),
        Item::Union(item) => (&item.ident, &item.vis),
        _ => return None,
    })
}

fn foreign_name(item: &ForeignItem) -> Option<(&Ident, &Visibility)> {
    Some(match item {
        ForeignItem::Fn(item) => (&item.sig.ident, &item.vis),
        ForeignItem::Static(item) => (&item.ident, &item.vis),
        ForeignItem::Type(item) => (&item.ident, &item.vis),
        _ => return None,
    })
}

/// One name of a `use` tree; no name: all the names of the path (`*`).
pub struct Leaf {
    pub name: Option<String>,
    pub path: Vec<String>,
    pub line: usize,
}

/// The names a `use` brings in, in the order written.
pub fn leaves(item: &ItemUse) -> Vec<Leaf> {
    let mut found = Vec::new();
    if item.leading_colon.is_none() {
        gather(&item.tree, &mut Vec::new(), &mut found);
    }
    found
}

fn gather(tree: &UseTree, above: &mut Vec<String>, found: &mut Vec<Leaf>) {
    let mut leaf = |above: &[String], ident: &Ident, name: &Ident| {
        let mut path = above.to_vec();
        let mut name = text(name);
        if ident != "self" {
            path.push(text(ident));
        } else if name == "self" {
            name = path.last().cloned().unwrap_or_default();
        }
        found.push(Leaf { name: Some(name), path, line: ident.span().start().line });
    };
    match tree {
        UseTree::Path(path) => {
            above.push(text(&path.ident));
            gather(&path.tree, above, found);
            above.pop();
        }
        UseTree::Name(name) => leaf(above, &name.ident, &name.ident),
        UseTree::Rename(rename) => leaf(above, &rename.ident, &rename.rename),
        UseTree::Glob(glob) => {
            let line = glob.star_token.spans[0].start().line;
            found.push(Leaf { name: None, path: above.clone(), line });
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                gather(tree, above, found);
            }
        }
    }
}

/// The imports of an item, also those within function bodies, which count as the module's.
struct Imports {
    found: Vec<(Leaf, bool)>,
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !only_for_tests(&item.attrs) {
            let public = is_public(&item.vis);
            self.found.extend(leaves(item).into_iter().map(|leaf| (leaf, public)));
        }
    }
}
