//! Circles in small source trees.

use std::path::Path;

use crate::graph::Graph;
use crate::report::{self, Verdict};
use crate::workspace;

/// The graph of a crate `small` of these files.
fn graph(files: &[(&str, &str)]) -> Vec<Graph> {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "Cargo.toml", "[workspace]\nmembers = [\n  \"small\", # one\n]\n");
    write(folder.path(), "small/Cargo.toml", "[package]\nname = \"small\"\n");
    for (file, text) in files {
        write(folder.path(), &format!("small/src/{file}"), text);
    }
    let members = workspace::members(folder.path()).unwrap();
    members.iter().map(|member| Graph::read(member).unwrap()).collect()
}

fn write(folder: &Path, file: &str, text: &str) {
    let path = folder.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn verdict(files: &[(&str, &str)]) -> Verdict {
    report::circles(&graph(files), true)
}

/// `a.rs>b/c.rs` for every edge.
fn edges(files: &[(&str, &str)]) -> Vec<String> {
    let graph = graph(files).remove(0);
    let shown = |file| graph.file(file).strip_prefix("small/src").unwrap().display().to_string();
    graph.edges.keys().map(|(by, of)| format!("{}>{}", shown(*by), shown(*of))).collect()
}

#[test]
fn a_circle_across_folders_is_forbidden_and_shown_with_its_lines() {
    let verdict = verdict(&[
        ("lib.rs", "mod a; mod b;"),
        ("a/mod.rs", "mod x;\npub use x::f;"),
        ("a/x.rs", "\nuse crate::b::g;\npub fn f() { g() }"),
        ("b.rs", "pub fn g() { crate::a::f() }"),
    ]);
    assert_eq!(verdict.forbidden, 1);
    assert!(verdict.text.contains("small/src/a/x.rs:2 uses small/src/b.rs: crate::b::g"));
    assert!(verdict.text.contains("small/src/b.rs:1 uses small/src/a/x.rs: crate::a::f"));
    assert!(verdict.text.ends_with("4 modules, 0 in circles of two or three, 1 forbidden\n"));
}

#[test]
fn a_pair_in_one_folder_is_allowed_and_four_are_not() {
    let pair = [
        ("lib.rs", "mod a;"),
        ("a/mod.rs", "mod x; pub struct S; fn f() { x::g() }"),
        ("a/x.rs", "use super::S; pub fn g() { let _ = S; }"),
    ];
    let verdict_of_pair = verdict(&pair);
    assert_eq!(verdict_of_pair.forbidden, 0);
    let expected = "allowed in small: small/src/a/mod.rs small/src/a/x.rs\n\
                    3 modules, 2 in circles of two or three, none forbidden\n";
    assert_eq!(verdict_of_pair.text, expected);
    let ring = [
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "pub fn f() { crate::b::f() }"),
        ("b.rs", "pub fn f() { crate::c::f() }"),
        ("c.rs", "pub fn f() { crate::d::f() }"),
        ("d.rs", "pub fn f() { crate::a::f() }"),
    ];
    assert_eq!(verdict(&ring).forbidden, 1);
}

#[test]
fn a_file_beside_its_folder_is_of_the_folder_above() {
    let files = [
        ("lib.rs", "mod a;"),
        ("a.rs", "mod x; pub struct S; fn f() { x::g() }"),
        ("a/x.rs", "pub fn g() -> super::S { super::S }"),
    ];
    assert_eq!(verdict(&files).forbidden, 1);
}

#[test]
fn a_name_passed_on_leads_to_the_file_that_defines_it() {
    let files = [
        ("lib.rs", "mod a; mod user; pub use user::*;"),
        ("a/mod.rs", "mod deep; mod value; pub use deep::*; pub use value::value; use std::fmt;"),
        ("a/deep/mod.rs", "mod low; pub use self::low::{Low as Renamed};"),
        ("a/deep/low.rs", "pub struct Low;"),
        ("a/value.rs", "pub fn value() {}"),
        ("user.rs", "use crate::a::{self, Renamed}; fn f(_: Renamed) { a::value() }"),
    ];
    assert_eq!(edges(&files), ["user.rs>a/deep/low.rs", "user.rs>a/value.rs"]);
}

#[test]
fn what_a_parent_does_with_a_name_it_passes_on_counts() {
    let files = [("lib.rs", "mod a; pub use a::S; fn f() -> S { S }"), ("a.rs", "pub struct S;")];
    assert_eq!(edges(&files), ["lib.rs>a.rs"]);
}

#[test]
fn all_names_of_a_module_count_only_where_they_stand() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; mod outer;"),
        ("a.rs", "pub fn f() {} pub const LIMIT: u8 = 1;"),
        ("b.rs", "use crate::a::*; fn g(f: u8) -> bool { match f { LIMIT => true, _ => f > 1 } }"),
        ("c.rs", "use crate::a::*; fn g(f: u8) -> u8 { f }"),
        ("outer.rs", "use crate::a::f; mod inner { use super::*; fn g() { f() } }"),
    ];
    assert_eq!(edges(&files), ["b.rs>a.rs", "outer.rs>a.rs"]);
}

#[test]
fn what_only_tests_use_does_not_count() {
    let files = [
        ("lib.rs", "mod a; mod b; #[cfg(test)] mod missing;"),
        (
            "a.rs",
            "#[cfg(test)] use crate::b::f; struct S;
             impl S { #[cfg(test)] fn g() { crate::b::f() } }
             #[cfg(all(test, unix))] fn h() { crate::b::f() }
             #[cfg(test)] mod tests { use crate::b::f; #[test] fn t() { f() } }",
        ),
        ("b.rs", "pub fn f() {}"),
    ];
    assert_eq!(edges(&files), Vec::<String>::new());
}

#[test]
fn paths_in_macros_and_attributes_are_seen() {
    let files = [
        ("lib.rs", "#[macro_use] mod rules; mod a; mod b; mod c; mod d; mod e;"),
        ("a.rs", "fn f() -> String { format!(\"{}\", vec![super::b::g(1)][0].d) }"),
        ("b.rs", "pub fn g(n: u8) -> u8 { n }"),
        ("c.rs", "use crate::b; fn f(b: u8) -> bool { matches!(b, x if x == b::g(x)) }"),
        ("d.rs", "#[serde(with = \"crate::b\")] struct S; fn f() { outer!(::b::g) }"),
        ("e.rs", "fn f() -> u8 { one!() }"),
        ("rules.rs", "macro_rules! one { () => { $crate::b::g(1) } }"),
    ];
    let expected = ["rules.rs>b.rs", "a.rs>b.rs", "c.rs>b.rs", "d.rs>b.rs", "e.rs>rules.rs"];
    assert_eq!(edges(&files), expected);
}

#[test]
fn modules_within_a_file_and_files_elsewhere_are_found() {
    let files = [
        ("main.rs", "mod a { pub mod b; pub fn f() {} } #[path = \"odd/place.rs\"] mod c;"),
        ("a/b.rs", "pub fn g() { super::f(); crate::c::h() }"),
        ("odd/place.rs", "pub fn h() {}"),
    ];
    assert_eq!(edges(&files), ["a/b.rs>main.rs", "a/b.rs>odd/place.rs"]);
}

#[test]
fn the_edges_of_a_file_show_every_line_both_ways() {
    let graphs = graph(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub fn f() { crate::b::g() }"),
        ("b.rs", "use crate::a::f;\npub fn g() { f() }"),
    ]);
    let expected = "small/src/a.rs\n  uses\n    small/src/b.rs  (same circle)\n      \
                    small/src/a.rs:1 crate::b::g\n  is used by\n    small/src/b.rs  (same circle)\n      \
                    small/src/b.rs:1 crate::a::f\n      small/src/b.rs:2 f\n";
    assert_eq!(report::edges(&graphs, "a.rs").unwrap(), expected);
    assert!(report::edges(&graphs, "c.rs").is_err());
}
