//! Queries from SQLsmith, a random query generator that is no work of ours.
//!
//! SQLsmith reads the catalogs of a database and writes queries over what it finds there. It is shown a database
//! of its own, in which the base tables are views, so that it writes no INSERT and no TABLESAMPLE, and
//! in which functions and operators are left out that no view could call. The texts fit the tables.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use harness::cluster::{wait_for, Cluster};
use harness::user::clear_environment;

use super::schema::TABLES;

/// Which functions and operators the queries call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vocabulary {
    /// Immutable ones over usual types: nearly all of it is supported.
    Usual,
    /// All but the volatile ones, over all types.
    Everything,
}

impl Vocabulary {
    fn database(self) -> &'static str {
        match self {
            Vocabulary::Usual => "usual",
            Vocabulary::Everything => "everything",
        }
    }

    /// Of a function `p`.
    fn condition(self) -> &'static str {
        match self {
            Vocabulary::Usual => {
                "p.provolatile = 'i' AND p.prorettype IN (SELECT oid FROM information_schema.usual) \
                 AND NOT EXISTS (SELECT FROM unnest(p.proargtypes::oid[]) a \
                     WHERE a NOT IN (SELECT oid FROM information_schema.usual))"
            }
            // Functions of one type with internal ones are not for queries.
            Vocabulary::Everything => {
                "p.provolatile <> 'v' AND NOT 'internal'::regtype = ANY (p.proargtypes::oid[])"
            }
        }
    }
}

/// Longest time that SQLsmith may take for one batch; then there are fewer queries.
const TIME: Duration = Duration::from_secs(60);
/// Longer texts take long to plan and nobody reads them.
const MAX_LENGTH: usize = 4000;

/// Makes the database that SQLsmith is shown.
pub fn prepare(cluster: &Cluster, vocabulary: Vocabulary) -> Result<()> {
    let database = vocabulary.database();
    cluster.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {database}"))?;
    let mut script = String::new();
    for table in TABLES {
        let column = |c: &super::schema::Column| format!("NULL::{} AS {}", c.base, c.name);
        let columns: Vec<String> = table.columns.iter().map(column).collect();
        // DISTINCT: a view into which nothing can be inserted.
        let list = columns.join(", ");
        script.push_str(&format!("CREATE VIEW public.{} AS SELECT DISTINCT {list};\n", table.name));
    }
    // SQLsmith asks for functions without naming their schema, for operators in pg_catalog. Those that compare the
    // types of the catalogs stay, because its own questions need them.
    script.push_str(&format!(
        "CREATE TABLE information_schema.usual AS SELECT oid FROM pg_catalog.pg_type
             WHERE typname IN ('bool', 'int2', 'int4', 'int8', 'float4', 'float8', 'numeric', 'text', 'varchar',
                 'bpchar', 'date', 'timestamp', 'timestamptz', 'interval', 'bytea', 'uuid', 'jsonb', '_int4', '_text');
         CREATE VIEW information_schema.pg_proc AS SELECT p.* FROM pg_catalog.pg_proc p WHERE {};
         DELETE FROM pg_catalog.pg_operator o
             WHERE NOT EXISTS (SELECT FROM information_schema.pg_proc p WHERE p.oid = o.oprcode)
             AND NOT (o.oprleft::regtype::text IN ('oid', 'name', '\"char\"')
                 AND o.oprright::regtype::text IN ('oid', 'name', '\"char\"', 'text'));",
        vocabulary.condition()
    ));
    cluster.connect(database)?.batch_execute(&script).context("the database for SQLsmith")
}

/// About `count` queries: those that are SELECTs and not too long.
pub fn queries(
    cluster: &Cluster,
    folder: &Path,
    vocabulary: Vocabulary,
    seed: u64,
    count: usize,
) -> Result<Vec<String>> {
    let file = folder.join("sqlsmith.sql");
    let target = format!(
        "host={} port=5432 user=postgres dbname={} options='-c search_path=information_schema,pg_catalog'",
        cluster.socket_folder().display(),
        vocabulary.database(),
    );
    let mut command = Command::new("sqlsmith");
    clear_environment(&mut command);
    let mut child = command
        .arg(format!("--target={target}"))
        .args(["--dry-run", "--exclude-catalog"])
        .arg(format!("--max-queries={count}"))
        .arg(format!("--seed={seed}"))
        .stdin(Stdio::null())
        .stdout(File::create(&file)?)
        .stderr(File::create(folder.join("sqlsmith.log"))?)
        .spawn()
        .context("starting sqlsmith, which `make setup` installs")?;
    match wait_for("sqlsmith", TIME, || Ok(child.try_wait()?)) {
        Ok(status) => {
            let log = std::fs::read_to_string(folder.join("sqlsmith.log"))?;
            ensure!(status.success(), "sqlsmith --seed={seed}: {status}\n{log}");
        }
        // Now and then it looks for a query that there is not.
        Err(_) => {
            child.kill()?;
            child.wait()?;
            println!("fuzz: sqlsmith --seed={seed} did not end within {TIME:?}");
        }
    }
    let text = String::from_utf8_lossy(&std::fs::read(&file)?).into_owned();
    // Behind the last semicolon there is at most a part of a query.
    let text = text.rsplit_once(";\n").map_or("", |(whole, _)| whole);
    let is_query = |text: &&str| {
        let first = text.split_whitespace().next().unwrap_or_default();
        ["select", "with"].iter().any(|word| first.eq_ignore_ascii_case(word))
    };
    Ok(text
        .split(";\n")
        .map(str::trim)
        .filter(is_query)
        .filter(|text| text.len() < MAX_LENGTH)
        .map(str::to_owned)
        .collect())
}

/// The query with results that do not hang on the order in which rows are stored: a LIMIT that has no order
/// gets one where it is that of a single column, and goes elsewhere.
pub fn determined(query: &str) -> String {
    let mut result = String::with_capacity(query.len());
    let mut rest = query;
    while let Some(at) = rest.find("limit ") {
        let (before, limit) = rest.split_at(at);
        result.push_str(before);
        let after = limit["limit ".len()..].trim_start_matches(|c: char| c.is_ascii_digit());
        match after.starts_with(" offset ") {
            true => {
                result.push_str("order by 1 ");
                result.push_str(&limit[..limit.len() - after.len()]);
            }
            false => result.truncate(result.trim_end().len()),
        }
        rest = after;
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::determined;

    #[test]
    fn limits_get_an_order_or_go() {
        let query = "select a from (select a, b from t\n  limit 86) as q\n\
                     where a = (select b from t limit 1 offset 5)\n limit 7";
        assert_eq!(
            determined(query),
            "select a from (select a, b from t) as q\n\
             where a = (select b from t order by 1 limit 1 offset 5)"
        );
    }
}
