//! Runs the golden files of `tests/goldens`: cases of a directive line, the query, and the expected text.
//!
//!     ==== plan
//!     SELECT …
//!     ----
//!     expected text
//!
//! A directive is `plan` (EXPLAIN of the whole way), `accept` (just that there is a plan), `bind` (the bound IR),
//! `alone <transform>` (one transform applied to the bound query), `at <transform>` (the pipeline up to and with it),
//! or `refuse` (the error). The queries are what `pg_get_querydef` prints with `quote_all_identifiers`. With
//! `UPDATE_GOLDENS=1` the expected texts are rewritten: read the difference before you commit it.

use plan::explain;
use planner::sql::{bind, DdlCatalog};
use planner::transform::{apply_alone, PIPELINE};
use planner::{error::PlanError, ir, plan_view};
use std::fmt::Write;
use std::path::Path;

const TABLES: &str = include_str!("tables.sql");

fn run(directive: &str, query: &str, catalog: &DdlCatalog) -> Result<String, PlanError> {
    let words: Vec<&str> = directive.split_whitespace().collect();
    match words.as_slice() {
        ["plan"] => Ok(explain(&plan_view(query, catalog)?)),
        ["accept"] => {
            let plan = plan_view(query, catalog)?;
            let json = serde_json::to_string(&plan).expect("a plan is serde");
            assert_eq!(plan, serde_json::from_str(&json).expect("and back"));
            Ok(explain(&plan).lines().next().unwrap_or_default().to_owned())
        }
        ["bind"] => Ok(ir::show(&bind(query, catalog)?)),
        ["alone", name] => {
            let bound = bind(query, catalog)?;
            Ok(ir::show(&apply_alone(name, bound).expect("a known transform")?))
        }
        ["at", name] => {
            let mut query = bind(query, catalog)?;
            for transform in PIPELINE {
                query = apply_alone(transform.name, query).expect("a known transform")?;
                if transform.name == *name {
                    return Ok(ir::show(&query));
                }
            }
            panic!("unknown transform {name}");
        }
        ["refuse"] => match plan_view(query, catalog) {
            Ok(plan) => Ok(format!("NOT REFUSED\n{}", explain(&plan))),
            Err(error) => {
                let hint = error.hint.map_or(String::new(), |hint| format!("\nhint: {hint}"));
                Ok(format!("{:?}: {}{hint}\n", error.kind, error.message))
            }
        },
        _ => panic!("unknown directive {directive}"),
    }
}

fn check_file(path: &Path, catalog: &DdlCatalog) -> (usize, Vec<String>) {
    let text = std::fs::read_to_string(path).expect("a readable golden");
    let mut rewritten = String::new();
    let mut failures = Vec::new();
    let mut cases = 0;
    let mut parts = text.split("==== ");
    rewritten.push_str(parts.next().unwrap_or_default());
    for case in parts {
        let (directive, rest) = case.split_once('\n').expect("a directive line");
        let (query, expected) = rest.split_once("----\n").expect("a query and its result");
        let found = match run(directive, query, catalog) {
            Ok(text) => text,
            Err(error) => format!("ERROR {:?}: {}\n", error.kind, error.message),
        };
        cases += 1;
        if found.trim_end() != expected.trim_end() {
            let name = path.display();
            failures
                .push(format!("{name}: {directive}\n{query}expected\n{expected}found\n{found}"));
        }
        let _ = write!(rewritten, "==== {directive}\n{query}----\n{}\n\n", found.trim_end());
    }
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(path, rewritten.trim_end().to_owned() + "\n").expect("a writable golden");
        return (cases, vec![]);
    }
    (cases, failures)
}

#[test]
fn goldens_are_as_written() {
    let catalog = DdlCatalog::parse(TABLES).expect("the tables");
    // Tests run in the folder of their crate, wherever they were compiled.
    let folder = Path::new("tests/goldens");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the goldens")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    let (mut cases, mut failures) = (0, Vec::new());
    for file in files {
        let (count, failed) = check_file(&file, &catalog);
        cases += count;
        failures.extend(failed);
    }
    assert!(cases > 0, "no goldens found");
    assert!(failures.is_empty(), "{} of {cases} differ\n{}", failures.len(), failures.join("\n"));
}
