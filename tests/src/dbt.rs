//! dbt: the package of `docs/dbt` makes models incremental views, and all that dbt does with models goes on as it does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{bail, ensure, Context, Result};
use harness::cluster::Cluster;
use harness::installation::Build;
use harness::report::Counts;
use postgres::Client;
use serde_json::Value;

/// Where the package is, and the project that is run with it.
const PACKAGE: &str = "docs/dbt";
const PROJECT: &str = "tests/dbt";

const TABLES: &str = "
    SET client_min_messages = warning;
    CREATE EXTENSION pg_eddy;
    CREATE ROLE eddy_reader;
    CREATE TABLE edge (source int NOT NULL, target int NOT NULL);
    INSERT INTO edge VALUES (1, 2), (2, 3), (3, 4), (5, 1);";

/// A dbt that works on the project, in a folder of its own.
struct Dbt {
    program: PathBuf,
    folder: PathBuf,
}

impl Dbt {
    fn install(cluster: &Cluster, folder: &Path, build: &Build) -> Result<Dbt> {
        let program = std::env::var_os("EDDY_DBT").context("EDDY_DBT names no dbt: run make")?;
        let folder = folder.join("dbt");
        copy(&build.project.join(PACKAGE), &folder.join("package"))?;
        copy(&build.project.join(PROJECT), &folder.join("project"))?;
        let profile = format!(
            "eddy:\n  target: test\n  outputs:\n    test:\n      {{type: postgres, host: \"{}\", port: 5432, \
             user: postgres, password: none, dbname: postgres, schema: follow, threads: 2}}\n",
            cluster.socket_folder().display()
        );
        fs::write(folder.join("project/profiles.yml"), profile)?;
        let dbt = Dbt { program: program.into(), folder: folder.join("project") };
        dbt.expect(&["deps"])?;
        Ok(dbt)
    }

    fn run(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.folder);
        command
            .env("DBT_PROFILES_DIR", &self.folder)
            .env("DBT_SEND_ANONYMOUS_USAGE_STATS", "false");
        command.env("DO_NOT_TRACK", "1").env("NO_COLOR", "1");
        command.output().with_context(|| format!("dbt {arguments:?}"))
    }

    fn expect(&self, arguments: &[&str]) -> Result<()> {
        let output = self.run(arguments)?;
        ensure!(output.status.success(), "dbt {arguments:?}: {}", text(&output));
        Ok(())
    }

    /// Runs what is to fail with a text.
    fn expect_failure(&self, arguments: &[&str], expected: &str) -> Result<()> {
        let output = self.run(arguments)?;
        ensure!(!output.status.success(), "dbt {arguments:?} succeeds");
        let text = text(&output);
        ensure!(text.contains(expected), "dbt {arguments:?} does not say \"{expected}\": {text}");
        Ok(())
    }
}

fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

/// Copies a folder with those in it, but for what dbt has left there.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &target)?,
            false => drop(fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}

/// One test per thing that is done with models, each after the one before.
pub fn run(cluster: &Cluster, folder: &Path, build: &Build) -> Result<Counts> {
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(TABLES)?;
    let dbt = Dbt::install(cluster, folder, build)?;
    let mut counts = Counts::default();
    counts.check("models become incremental views", creates(&dbt, &mut client));
    counts.check("another run leaves them as they are", again(&dbt, &mut client));
    counts.check("models are changed in place", changes(&dbt, &mut client));
    counts.check("tests of models find what is wrong with them now", tests(&dbt, &mut client));
    counts.check("a full refresh makes them anew", refreshes(&dbt, &mut client));
    counts.check("something else of the name goes", replaces(&dbt, &mut client));
    counts.check("models are in the catalog of dbt docs", documents(&dbt));
    cluster.print_crashes()?;
    Ok(counts)
}

fn creates(dbt: &Dbt, client: &mut Client) -> Result<()> {
    dbt.expect(&["build"])?;
    ensure!(number(client, "SELECT count(*) FROM follow.reach")? == 10, "reach is not right");
    client.batch_execute("INSERT INTO edge VALUES (4, 6)")?;
    ensure!(number(client, "SELECT count(*) FROM follow.reach")? == 15, "reach is not fresh");
    ensure!(
        number(client, "SELECT n FROM follow.reached WHERE source = 5")? == 5,
        "nor is reached"
    );
    let kept = "SELECT count(*) FROM eddy.views WHERE relation IN ('follow.reach'::regclass, 'follow.reached'::regclass)";
    ensure!(number(client, kept)? == 2, "not both are incremental");
    let options = "SELECT count(*) FROM eddy.views WHERE relation = 'follow.reach'::regclass \
                   AND changes IS NOT NULL AND settings ->> 'TimeZone' = 'UTC'";
    ensure!(number(client, options)? == 1, "parameters are lost");
    let described = "SELECT count(*) FROM pg_description WHERE objoid = 'follow.reach'::regclass";
    ensure!(number(client, described)? == 2, "descriptions are lost");
    let granted = "SELECT has_table_privilege('eddy_reader', 'follow.reached', 'SELECT')::int";
    ensure!(number(client, granted)? == 1, "grants are lost");
    client.batch_execute("DELETE FROM edge WHERE target = 6").map_err(Into::into)
}

fn again(dbt: &Dbt, client: &mut Client) -> Result<()> {
    let before = (identity(client)?, indexes(client)?);
    dbt.expect(&["run"])?;
    ensure!((identity(client)?, indexes(client)?) == before, "they are others");
    Ok(())
}

fn changes(dbt: &Dbt, client: &mut Client) -> Result<()> {
    let (before, former) = (identity(client)?, indexes(client)?);
    dbt.expect(&["run", "--vars", "{with_weight: true}"])?;
    ensure!(identity(client)? == before, "it is another one");
    ensure!(number(client, "SELECT sum(weight) FROM follow.reach")? > 0, "there is no new column");
    ensure!(indexes(client)?.len() == former.len() + 1, "there is no new index");
    dbt.expect_failure(&["run", "--vars", "{without_target: true}"], "cannot drop columns")?;
    ensure!(number(client, "SELECT count(weight) FROM follow.reach")? == 10, "it has changed");
    Ok(())
}

fn tests(dbt: &Dbt, client: &mut Client) -> Result<()> {
    dbt.expect(&["test"])?;
    client.batch_execute("INSERT INTO edge VALUES (4, 6)")?;
    dbt.expect_failure(&["test"], "accepted_values_reached_n")?;
    client.batch_execute("DELETE FROM edge WHERE target = 6")?;
    dbt.expect(&["test"])
}

fn refreshes(dbt: &Dbt, client: &mut Client) -> Result<()> {
    let before = identity(client)?;
    dbt.expect(&["run", "--full-refresh"])?;
    ensure!(identity(client)? != before, "it is the same");
    let columns = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'follow.reach'::regclass AND attnum > 0";
    ensure!(number(client, columns)? == 2, "the former column is there");
    ensure!(number(client, "SELECT count(*) FROM follow.reach")? == 10, "reach is not right");
    Ok(())
}

fn replaces(dbt: &Dbt, client: &mut Client) -> Result<()> {
    for kind in ["TABLE", "VIEW", "MATERIALIZED VIEW"] {
        client.batch_execute(&format!(
            "DROP MATERIALIZED VIEW follow.reach CASCADE; CREATE {kind} follow.reach AS SELECT 1 AS source, 2 AS target"
        ))?;
        dbt.expect(&["run"]).with_context(|| kind.to_owned())?;
        let count = number(client, "SELECT count(*) FROM follow.reach")?;
        ensure!(count == 10, "behind a {kind} there are {count} rows");
    }
    Ok(())
}

fn documents(dbt: &Dbt) -> Result<()> {
    dbt.expect(&["docs", "generate"])?;
    let catalog = fs::read_to_string(dbt.folder.join("target/catalog.json"))?;
    let catalog: Value = serde_json::from_str(&catalog)?;
    let node = &catalog["nodes"]["model.follow.reach"];
    ensure!(node["metadata"]["type"] == "MATERIALIZED VIEW", "it is {node}");
    ensure!(
        node["columns"]["target"]["comment"] == "the node that's reached, \\ or not",
        "it is {node}"
    );
    Ok(())
}

fn number(client: &mut Client, query: &str) -> Result<i64> {
    let row = client.query_one(&format!("SELECT ({query})::int8"), &[]);
    match row.with_context(|| query.to_owned())?.get(0) {
        Some(number) => Ok(number),
        None => bail!("{query} is NULL"),
    }
}

fn identity(client: &mut Client) -> Result<i64> {
    number(client, "SELECT 'follow.reach'::regclass::oid")
}

fn indexes(client: &mut Client) -> Result<Vec<String>> {
    let query = "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = 'follow.reach'::regclass ORDER BY 1";
    Ok(client.query(query, &[])?.iter().map(|row| row.get(0)).collect())
}
