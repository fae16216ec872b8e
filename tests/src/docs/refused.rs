//! The tables of what is refused, in the reference, are the list that the corpus has beside its queries.

use std::fs;
use std::path::Path;

use anyhow::{ensure, Context, Result};

use crate::corpus::tables_of_refusals;

const PAGE: &str = "docs/src/reference/sql-refused.md";

/// What stands around the tables on the page.
const BEGIN: &str = "<!-- from tests/corpus -->\n";
const END: &str = "<!-- end -->\n";

/// Compares the tables; with `accept` they are written.
pub fn check(project: &Path, accept: bool) -> Result<()> {
    let path = project.join(PAGE);
    let text = fs::read_to_string(&path)?;
    let wanted = with_tables(&text, &tables_of_refusals(project)?)?;
    if accept {
        fs::write(path, wanted)?;
        return Ok(());
    }
    ensure!(
        text == wanted,
        "{PAGE} has other tables than tests/corpus: make docs-sql ARGS=--accept"
    );
    Ok(())
}

fn with_tables(page: &str, tables: &str) -> Result<String> {
    let (before, rest) = page.split_once(BEGIN).context("the page has no place for the tables")?;
    let (_, after) = rest.split_once(END).context("the tables have no end")?;
    Ok(format!("{before}{BEGIN}\n{tables}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::{with_tables, BEGIN, END};

    #[test]
    fn the_tables_are_put_in_their_place() {
        let page = |table: &str| format!("above\n\n{BEGIN}\n{table}\n{END}\nbelow\n");
        assert_eq!(with_tables(&page("| old |\n"), "| new |\n").unwrap(), page("| new |\n"));
        assert!(with_tables("nothing", "").is_err());
    }
}
