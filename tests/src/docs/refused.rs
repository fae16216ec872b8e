//! The table of what is refused, in the reference, is the list that the corpus has beside its queries.

use std::fs;
use std::path::Path;

use anyhow::{ensure, Context, Result};

use crate::corpus::table_of_refusals;

const PAGE: &str = "docs/src/reference/sql-refused.md";

/// What stands around the table on the page.
const BEGIN: &str = "<!-- from tests/corpus -->\n";
const END: &str = "<!-- end -->\n";

/// Compares the table; with `accept` it is written.
pub fn check(project: &Path, accept: bool) -> Result<()> {
    let path = project.join(PAGE);
    let text = fs::read_to_string(&path)?;
    let wanted = with_table(&text, &table_of_refusals(project)?)?;
    if accept {
        fs::write(path, wanted)?;
        return Ok(());
    }
    ensure!(
        text == wanted,
        "{PAGE} has another table than tests/corpus: make docs-sql ARGS=--accept"
    );
    Ok(())
}

fn with_table(page: &str, table: &str) -> Result<String> {
    let (before, rest) = page.split_once(BEGIN).context("the page has no place for the table")?;
    let (_, after) = rest.split_once(END).context("the table has no end")?;
    Ok(format!("{before}{BEGIN}\n{table}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::{with_table, BEGIN, END};

    #[test]
    fn the_table_is_put_in_its_place() {
        let page = |table: &str| format!("above\n\n{BEGIN}\n{table}\n{END}\nbelow\n");
        assert_eq!(with_table(&page("| old |\n"), "| new |\n").unwrap(), page("| new |\n"));
        assert!(with_table("nothing", "").is_err());
    }
}
