//! Which file uses which: every path of a module, resolved.
//!
//! Naming a module is no use of it, naming something in it is: `use crate::a;` counts where `a::b` stands.
//! Passing on a name of a module below (`pub use`) is no use either.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Block, ImplItem, ImplItemFn, Item, ItemFn, ItemUse, Macro, Meta, PatIdent, Path,
    Signature, TraitItemFn, VisRestricted,
};

use crate::names::{is_public, leaves, Found, Names};
use crate::tree::{attributes, only_for_tests, FileId, ModuleId, Tree};

/// One place in the text of file `by` that needs file `of`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Use {
    pub by: FileId,
    pub of: FileId,
    pub line: usize,
    pub path: String,
}

/// All uses of a crate's files of one another, sorted, none twice.
pub fn collect(tree: &Tree) -> BTreeSet<Use> {
    let names = Names::of(tree);
    let mut uses = BTreeSet::new();
    for (number, module) in tree.modules.iter().enumerate() {
        let mut reader = Reader {
            tree,
            names: &names,
            at: ModuleId(number),
            variables: BTreeSet::new(),
            uses: &mut uses,
        };
        module.items.iter().for_each(|item| reader.visit_item(item));
    }
    uses
}

struct Reader<'a> {
    tree: &'a Tree,
    names: &'a Names<'a>,
    at: ModuleId,
    /// Names of the function being read that are variables, not items.
    variables: BTreeSet<String>,
    uses: &'a mut BTreeSet<Use>,
}

impl Reader<'_> {
    fn path(&mut self, path: &[String], line: usize) {
        if !(path.len() == 1 && self.variables.contains(&path[0])) {
            for found in self.names.resolve(self.at, path) {
                self.found(found, path, line);
            }
        }
    }

    fn found(&mut self, found: Found, path: &[String], line: usize) {
        let by = self.tree[self.at].file;
        match found {
            Found::Item(of) if of != by => {
                self.uses.insert(Use { by, of, line, path: path.join("::") });
            }
            _ => {}
        }
    }

    fn is_below(&self, file: FileId) -> bool {
        self.tree.within(self.tree.module_of(file), self.tree.module_of(self.tree[self.at].file))
    }

    /// Reads a function with its own variables.
    fn function(&mut self, signature: &Signature, body: &Block, read: impl FnOnce(&mut Self)) {
        let mut variables = Variables(self.variables.clone());
        variables.visit_signature(signature);
        variables.visit_block(body);
        let outer = std::mem::replace(&mut self.variables, variables.0);
        read(self);
        self.variables = outer;
    }

    /// Paths among tokens that nobody has parsed. A single small word is taken for a path only where it is
    /// called: otherwise it is most often a variable or a field.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut index = 0;
        while index < tokens.len() {
            match &tokens[index] {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(first) if starts_path(&tokens[..index], first) => {
                    let (path, end) = path_at(&tokens, index);
                    let small = path.len() == 1 && !starts_large(&path[0]);
                    if !small || is_called(tokens.get(end)) {
                        self.path(&path, first.span().start().line);
                    }
                    index = end;
                    continue;
                }
                _ => {}
            }
            index += 1;
        }
    }

    /// Paths written as text: `#[serde(with = "crate::a")]`.
    fn literals(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.literals(group.stream()),
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    let text = text.trim_matches('"');
                    if text.starts_with("crate::") || text.starts_with("super::") {
                        let mut path: Vec<String> = text.split("::").map(str::to_string).collect();
                        // The text may name a module whose functions are meant.
                        path.push(String::from("*"));
                        self.path(&path, literal.span().start().line);
                    }
                }
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !only_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes: &[Attribute] = match item {
            ImplItem::Const(item) => &item.attrs,
            ImplItem::Fn(item) => &item.attrs,
            ImplItem::Type(item) => &item.attrs,
            _ => &[],
        };
        if !only_for_tests(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.function(&item.sig, &item.block, |reader| visit::visit_item_fn(reader, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.function(&item.sig, &item.block, |reader| visit::visit_impl_item_fn(reader, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        match &item.default {
            Some(body) => {
                self.function(&item.sig, body, |reader| visit::visit_trait_item_fn(reader, item));
            }
            None => visit::visit_trait_item_fn(self, item),
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        for leaf in leaves(item) {
            for found in self.names.resolve(self.at, &leaf.path) {
                let passed_on = is_public(&item.vis)
                    && matches!(found, Found::Item(file) if self.is_below(file));
                if !passed_on {
                    self.found(found, &leaf.path, leaf.line);
                }
            }
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        if path.leading_colon.is_none() {
            let segments: Vec<String> =
                path.segments.iter().map(|segment| segment.ident.unraw().to_string()).collect();
            if let Some(first) = path.segments.first() {
                self.path(&segments, first.ident.span().start().line);
            }
        }
        visit::visit_path(self, path);
    }

    /// A constant in a pattern looks like a variable.
    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        let name = pattern.ident.unraw().to_string();
        if starts_large(&name) {
            self.path(&[name], pattern.ident.span().start().line);
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        if let Some(name) = call.path.get_ident() {
            let known = self.names.resolve(self.at, &[name.unraw().to_string()]);
            if let (true, Some(file)) = (known.is_empty(), self.names.macro_file(&name.to_string()))
            {
                self.found(Found::Item(file), &[name.to_string()], name.span().start().line);
            }
        }
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.tokens(list.tokens.clone());
            self.literals(list.tokens.clone());
        }
    }

    /// `pub(in path)` says who may see, not what is needed.
    fn visit_vis_restricted(&mut self, _: &'ast VisRestricted) {}
}

/// The variables a function binds anywhere.
struct Variables(BTreeSet<String>);

impl<'ast> Visit<'ast> for Variables {
    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        let name = pattern.ident.unraw().to_string();
        if !starts_large(&name) {
            self.0.insert(name);
        }
        visit::visit_pat_ident(self, pattern);
    }
}

fn starts_large(name: &str) -> bool {
    name.starts_with(char::is_uppercase)
}

/// Not a field, a lifetime, a macro's variable or the middle of another crate's path.
fn starts_path(before: &[TokenTree], first: &Ident) -> bool {
    match before.last() {
        Some(TokenTree::Punct(point)) => match point.as_char() {
            '.' => matches!(before, [.., TokenTree::Punct(dot), _] if dot.as_char() == '.'),
            '\'' => false,
            ':' => !is_colons(before, before.len().saturating_sub(2)),
            '$' => first == "crate",
            _ => true,
        },
        _ => true,
    }
}

/// The longest `a::b::c` at `index`, and where it ends.
fn path_at(tokens: &[TokenTree], mut index: usize) -> (Vec<String>, usize) {
    let mut path = Vec::new();
    while let Some(TokenTree::Ident(segment)) = tokens.get(index) {
        path.push(segment.unraw().to_string());
        index += 1;
        if !is_colons(tokens, index) {
            break;
        }
        match tokens.get(index + 2) {
            Some(TokenTree::Ident(_)) => index += 2,
            // Names out of `{…}` follow: each is one of the module's, which says enough.
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                path.push(String::from("*"));
                break;
            }
            _ => break,
        }
    }
    (path, index)
}

fn is_colons(tokens: &[TokenTree], index: usize) -> bool {
    let colon =
        |at: usize| matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == ':');
    colon(index) && colon(index + 1)
}

fn is_called(next: Option<&TokenTree>) -> bool {
    match next {
        Some(TokenTree::Group(group)) => group.delimiter() == Delimiter::Parenthesis,
        Some(TokenTree::Punct(point)) => point.as_char() == '!',
        _ => false,
    }
}
