//! The reference has the name of everything that users find in the server: settings, views, their columns, functions.

use std::fs;
use std::path::Path;

use anyhow::{ensure, Result};

use harness::cluster::Cluster;

/// The page that has to have a name, and the query for the names. What the extension keeps to itself is written there, too.
const NAMES: [(&str, &str); 3] = [
    (
        "reference/settings.md",
        "SELECT '`' || name || '`' FROM pg_settings WHERE name LIKE 'eddy.%' AND name <> 'eddy.crash_point'",
    ),
    (
        "reference/functions.md",
        "SELECT DISTINCT 'eddy.' || proname || '(' FROM pg_proc WHERE pronamespace = 'eddy'::regnamespace",
    ),
    (
        "reference/views.md",
        "SELECT 'eddy.' || relname FROM pg_class WHERE relnamespace = 'eddy'::regnamespace
         UNION SELECT '`' || attname || '`' FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid
         WHERE relnamespace = 'eddy'::regnamespace AND attnum > 0",
    ),
];

pub fn check(cluster: &Cluster, folder: &Path) -> Result<()> {
    let mut client = cluster.connect("docs")?;
    let mut missing = Vec::new();
    for (page, query) in NAMES {
        let text = fs::read_to_string(folder.join(page))?;
        for row in client.query(query, &[])? {
            let name: String = row.get(0);
            if !text.contains(&name) {
                missing.push(format!("{page}: {name}"));
            }
        }
    }
    ensure!(missing.is_empty(), "not in the reference: {}", missing.join(", "));
    Ok(())
}
