//! The modules of one crate as parsed: every file reached from `lib.rs` or `main.rs` by `mod`, in order.
//!
//! What only tests compile is left out here, so that nothing later has to think of it.

use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use syn::ext::IdentExt;
use syn::{Attribute, Expr, ExprLit, Item, ItemMod, Lit, Meta};

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FileId(pub usize);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ModuleId(pub usize);

/// A module in the language's sense; several share a file when some are written inline.
pub struct Module {
    pub parent: Option<ModuleId>,
    pub name: String,
    pub public: bool,
    pub file: FileId,
    /// All but the modules, which have entries of their own.
    pub items: Vec<Item>,
}

/// Files are relative to `src`.
#[derive(Default)]
pub struct Tree {
    pub files: Vec<PathBuf>,
    pub modules: Vec<Module>,
}

/// Where the files of a module's children are looked for.
struct Place {
    file: FileId,
    children: PathBuf,
}

impl Tree {
    pub fn read(src: &Path) -> Result<Tree> {
        let mut tree = Tree::default();
        for root in ["lib.rs", "main.rs"] {
            if src.join(root).exists() {
                tree.read_file(src, Path::new(root), PathBuf::new(), None, ("crate".into(), true))?;
            }
        }
        if tree.files.is_empty() {
            bail!("neither lib.rs nor main.rs in {}", src.display());
        }
        Ok(tree)
    }

    pub fn within(&self, module: ModuleId, ancestor: ModuleId) -> bool {
        let mut at = Some(module);
        while let Some(here) = at {
            if here == ancestor {
                return true;
            }
            at = self[here].parent;
        }
        false
    }

    /// The module a file as a whole is.
    pub fn module_of(&self, file: FileId) -> ModuleId {
        let found = self.modules.iter().position(|module| module.file == file);
        ModuleId(found.expect("every file was read as a module"))
    }

    fn read_file(
        &mut self,
        src: &Path,
        file: &Path,
        children: PathBuf,
        parent: Option<ModuleId>,
        name: (String, bool),
    ) -> Result<()> {
        let path = src.join(file);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let parsed =
            syn::parse_file(&text).with_context(|| format!("cannot parse {}", path.display()))?;
        if only_for_tests(&parsed.attrs) {
            return Ok(());
        }
        self.files.push(file.to_path_buf());
        let place = Place { file: FileId(self.files.len() - 1), children };
        self.add(src, place, parent, name, parsed.items)
    }

    fn add(
        &mut self,
        src: &Path,
        place: Place,
        parent: Option<ModuleId>,
        (name, public): (String, bool),
        all: Vec<Item>,
    ) -> Result<()> {
        let all = all.into_iter().filter(|item| !only_for_tests(attributes(item)));
        let (modules, items): (Vec<Item>, Vec<Item>) =
            all.partition(|item| matches!(item, Item::Mod(_)));
        self.modules.push(Module { parent, name, public, file: place.file, items });
        let id = ModuleId(self.modules.len() - 1);
        for module in modules {
            if let Item::Mod(module) = module {
                self.add_child(src, &place, id, module)?;
            }
        }
        Ok(())
    }

    fn add_child(
        &mut self,
        src: &Path,
        place: &Place,
        parent: ModuleId,
        module: ItemMod,
    ) -> Result<()> {
        let name = module.ident.unraw().to_string();
        let public = !matches!(module.vis, syn::Visibility::Inherited);
        let below = place.children.join(&name);
        if let Some((_, items)) = module.content {
            let inline = Place { file: place.file, children: below };
            return self.add(src, inline, Some(parent), (name, public), items);
        }
        let (file, children) = match path_attribute(&module.attrs) {
            Some(path) => {
                let beside = self.files[place.file.0].parent().unwrap_or(Path::new(""));
                let file = beside.join(path);
                let children = file.parent().unwrap_or(Path::new("")).to_path_buf();
                (file, children)
            }
            None => {
                let flat = place.children.join(format!("{name}.rs"));
                let file = if src.join(&flat).exists() { flat } else { below.join("mod.rs") };
                (file, below)
            }
        };
        self.read_file(src, &file, children, Some(parent), (name, public))
    }
}

impl std::ops::Index<ModuleId> for Tree {
    type Output = Module;

    fn index(&self, id: ModuleId) -> &Module {
        &self.modules[id.0]
    }
}

/// `#[test]`, `#[cfg(test)]`, `#[cfg(all(test, …))]`.
pub fn only_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            let all = condition.starts_with("all") && !condition.contains("not");
            let mut words = condition.split(|letter: char| !letter.is_alphanumeric());
            condition == "test" || all && words.any(|word| word == "test")
        }
        _ => false,
    })
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(path), .. }) => Some(path.value()),
            _ => None,
        },
        _ => None,
    })
}

pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
