//! The common part of the corpus: tables, rows and changes, as files in `tests/corpus`.

use std::fs;
use std::path::Path;

use anyhow::{ensure, Context, Result};

/// What begins a step in changes.sql.
const STEP: &str = "-- step: ";

pub struct Script {
    pub schema: String,
    pub data: String,
    pub steps: Vec<Step>,
}

/// Changes, behind which views are compared.
pub struct Step {
    pub name: String,
    pub sql: String,
}

impl Script {
    pub fn read(folder: &Path) -> Result<Script> {
        let read = |file: &str| {
            let path = folder.join(file);
            fs::read_to_string(&path).with_context(|| path.display().to_string())
        };
        let data = read("data.sql")?;
        let mut steps = steps(&read("changes.sql")?)?;
        steps.push(Step { name: "all is as it was".to_owned(), sql: data.clone() });
        Ok(Script { schema: read("schema.sql")?, data, steps })
    }
}

fn steps(text: &str) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix(STEP) {
            steps.push(Step { name: name.to_owned(), sql: String::new() });
        } else if let Some(step) = steps.last_mut() {
            step.sql.push_str(line);
            step.sql.push('\n');
        }
    }
    ensure!(!steps.is_empty(), "changes.sql has no line that begins with \"{STEP}\"");
    Ok(steps)
}
