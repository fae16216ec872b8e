//! Tables filled with COPY.

use std::io::Write;

use anyhow::Result;
use postgres::GenericClient;

/// Adds lines in COPY's text format, without their ends, to a table. Answers the number of rows.
pub fn copy(
    client: &mut impl GenericClient,
    table: &str,
    lines: impl IntoIterator<Item = String>,
) -> Result<u64> {
    let mut writer = client.copy_in(&format!("COPY {table} FROM STDIN"))?;
    for line in lines {
        writeln!(writer, "{line}")?;
    }
    Ok(writer.finish()?)
}
