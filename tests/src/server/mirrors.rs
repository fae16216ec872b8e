//! Tables with the rows of views: they are what the views are at every moment, whatever happens to tables, views, worker and server,
//! and servers that subscribe to them have the same.

use std::path::Path;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use harness::cluster::{wait_for, Cluster};
use harness::dice::Dice;
use harness::installation::Installation;
use postgres::Client;

use super::changes::{change, disturb, rows, TABLES, VIEWS};
use super::check::Record;

const STEPS: usize = 120;

const PATIENCE: Duration = Duration::from_secs(60);

/// Those of the views that have a key, and one of which no column is NULL.
const MIRRORED: [(&str, &str); 3] =
    [VIEWS[0], VIEWS[2], ("people", "SELECT id, name, weight FROM person")];

pub fn run(installation: &Installation, folder: &Path, record: Record) {
    record("mirrors of views are what these are", are_equal(installation, folder));
    record("mirrors of views are replicated like tables", replicate(installation, folder));
    record("large changes of a view come to its mirror", many(installation, folder));
    record("a locked row of a mirror lets its view alone wait", wait(installation, folder));
}

fn create(client: &mut Client) -> Result<()> {
    client.batch_execute(TABLES)?;
    for (view, query) in MIRRORED {
        client.batch_execute(&format!(
            "CREATE INCREMENTAL VIEW {view} WITH (storage = table) AS {query}"
        ))?;
    }
    let (view, query) = VIEWS[1];
    client.batch_execute(&format!("CREATE INCREMENTAL VIEW {view} AS {query}"))?;
    for (view, _) in MIRRORED {
        client.execute(&format!("SELECT count(*) FROM {view}"), &[])?;
    }
    Ok(())
}

/// SQL that counts the rows by which a view and its mirror differ.
fn differences(view: &str) -> String {
    format!(
        "SELECT count(*) FROM ((TABLE {view} EXCEPT ALL TABLE {view}_table) UNION ALL \
         (TABLE {view}_table EXCEPT ALL TABLE {view})) d"
    )
}

/// In one snapshot, at whatever moment, a view and its mirror are the same.
fn compare(client: &mut Client) -> Result<()> {
    let mut transaction = client
        .build_transaction()
        .isolation_level(postgres::IsolationLevel::RepeatableRead)
        .start()?;
    for (view, _) in MIRRORED {
        // Rows of the view as they are stored, and not as a read would wait for them.
        transaction.batch_execute("SET LOCAL eddy.freshness = stale")?;
        let differences: i64 = transaction.query_one(&differences(view), &[])?.get(0);
        ensure!(differences == 0, "{differences} rows of {view} differ from its mirror");
    }
    transaction.commit().map_err(Into::into)
}

fn are_equal(installation: &Installation, folder: &Path) -> Result<()> {
    let mut cluster = Cluster::start_new(installation, folder, "mirrors", &[("fsync", "off")])?;
    let mut client = cluster.connect("postgres")?;
    create(&mut client)?;
    let mut dice = Dice::new(11);
    for step in 0..STEPS {
        change(&mut client, &mut dice)?;
        compare(&mut client).with_context(|| format!("at step {step}"))?;
        if step % 5 == 4 {
            disturb(&mut client, &mut dice)?;
            compare(&mut client).with_context(|| format!("after a disturbance at step {step}"))?;
        }
        if step % 10 == 9 {
            let (view, _) = MIRRORED[dice.index(MIRRORED.len())];
            client.batch_execute(&format!(
                "ALTER INCREMENTAL VIEW {view} RESET (storage); \
                 ALTER INCREMENTAL VIEW {view} SET (storage = table)"
            ))?;
            compare(&mut client)?;
        }
        if step % 40 == 39 {
            change(&mut client, &mut dice)?;
            drop(client);
            cluster.stop_immediately()?;
            cluster.start()?;
            client = cluster.connect("postgres")?;
            compare(&mut client)?;
        }
        for (view, query) in MIRRORED {
            let query = query.replace("FROM paths", &format!("FROM ({}) paths", VIEWS[0].1));
            let expected = rows(&mut client, &query)?;
            ensure!(
                rows(&mut client, &format!("TABLE {view}"))? == expected
                    && rows(&mut client, &format!("TABLE {view}_table"))? == expected,
                "{view} is wrong at step {step}"
            );
        }
    }
    cluster.print_crashes()
}

fn replicate(installation: &Installation, folder: &Path) -> Result<()> {
    let publisher = Cluster::start_new(installation, folder, "original", &[("fsync", "off")])?;
    let mut source = publisher.connect("postgres")?;
    create(&mut source)?;
    let tables: Vec<String> = MIRRORED.iter().map(|(view, _)| format!("{view}_table")).collect();
    source.batch_execute(&format!("CREATE PUBLICATION sent FOR TABLE {}", tables.join(", ")))?;
    let subscriber = Cluster::start_new(installation, folder, "mirrored", &[("fsync", "off")])?;
    let mut target = subscriber.connect("postgres")?;
    target.batch_execute(
        "CREATE TABLE paths_table (a int, b int); CREATE TABLE reached_table (a int, n bigint, most int); \
         CREATE TABLE people_table (id int PRIMARY KEY, name text, weight numeric)",
    )?;
    for table in ["paths_table", "reached_table"] {
        target.batch_execute(&format!("ALTER TABLE {table} REPLICA IDENTITY FULL"))?;
    }
    let address = format!("host={} port=5432", publisher.socket_folder().display());
    // Before 16 there is but one of them.
    let origins: &[&str] = match installation.major {
        ..16 => &[""],
        _ => &[" WITH (origin = none)", " WITH (origin = any)"],
    };
    let mut dice = Dice::new(5);
    for origin in origins {
        target.batch_execute(&format!("TRUNCATE {}", tables.join(", ")))?;
        target.batch_execute(&format!(
            "CREATE SUBSCRIPTION got CONNECTION '{address} user=postgres dbname=postgres' PUBLICATION sent{origin}"
        ))?;
        for step in 0..STEPS {
            change(&mut source, &mut dice)?;
            if step % 30 == 29 {
                disturb(&mut source, &mut dice)?;
            }
        }
        for ((view, _), table) in MIRRORED.iter().zip(&tables) {
            let expected = rows(&mut source, &format!("TABLE {view}"))?;
            wait_for("all rows to be replicated", PATIENCE, || {
                Ok((rows(&mut target, &format!("TABLE {table}"))? == expected).then_some(()))
            })
            .with_context(|| format!("{table} with{origin}"))?;
        }
        target.batch_execute("DROP SUBSCRIPTION got")?;
    }
    subscriber.print_crashes()?;
    publisher.print_crashes()
}

/// A table to which triggers of a mirror carry what becomes of it.
const COPIED: &str = "
    CREATE INCREMENTAL VIEW few WITH (storage = table) AS SELECT id, max(grp) AS grp FROM item WHERE id % 20 = 0 GROUP BY id;
    SELECT count(*) FROM few;
    CREATE TABLE copied AS SELECT * FROM few;
    CREATE INDEX ON copied (id);
    CREATE FUNCTION copy() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF tg_op <> 'INSERT' THEN DELETE FROM public.copied WHERE id = old.id AND grp = old.grp; END IF;
        IF tg_op <> 'DELETE' THEN INSERT INTO public.copied VALUES (new.id, new.grp); END IF;
        RETURN NULL;
    END$$;
    CREATE TRIGGER copying AFTER INSERT OR UPDATE OR DELETE ON few_table FOR EACH ROW EXECUTE FUNCTION copy();
    ALTER TABLE few_table ENABLE ALWAYS TRIGGER copying;
    CREATE INCREMENTAL VIEW over_copied AS SELECT count(*) AS n, sum(grp) AS grp FROM copied";

/// What assistants write, and what is on disk; and what triggers make of it.
fn many(installation: &Installation, folder: &Path) -> Result<()> {
    let settings = &[("fsync", "off"), ("eddy.memory_limit", "64MB")];
    let cluster = Cluster::start_new(installation, folder, "many_mirrored", settings)?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(
        "SET client_min_messages = warning; CREATE EXTENSION pg_eddy;
         CREATE TABLE item (id int NOT NULL, grp int NOT NULL);
         INSERT INTO item SELECT i, i % 100 FROM generate_series(1, 150000) i;
         CREATE INCREMENTAL VIEW pairs WITH (storage = table, changes = '1 hour') AS SELECT DISTINCT id, grp FROM item;
         CREATE INCREMENTAL VIEW groups WITH (storage = table) AS SELECT id, max(grp) AS grp FROM item GROUP BY id",
    )?;
    client.batch_execute(COPIED)?;
    for change in [
        "UPDATE item SET grp = grp + 1 WHERE id % 2 = 0",
        "UPDATE item SET id = id + 1",
        "INSERT INTO item SELECT i, i % 100 FROM generate_series(1, 50000) i",
        "DELETE FROM item WHERE id % 3 = 0",
        "INSERT INTO item VALUES (0, 0)",
    ] {
        client.batch_execute(change)?;
        for view in ["pairs", "groups"] {
            let differences: i64 = client.query_one(&differences(view), &[])?.get(0);
            ensure!(differences == 0, "{differences} rows of {view} differ after {change}");
        }
        ensure!(
            rows(&mut client, "TABLE few")? == rows(&mut client, "TABLE copied")?,
            "triggers have carried something else after {change}"
        );
        let sum = "SELECT count(*) AS n, sum(grp) AS grp FROM copied";
        ensure!(
            rows(&mut client, "TABLE over_copied")? == rows(&mut client, sum)?,
            "a view over what triggers write is wrong after {change}"
        );
    }
    cluster.print_crashes()
}

/// A transaction has a row with a foreign key to a row of a mirror, which is to be deleted.
fn wait(installation: &Installation, folder: &Path) -> Result<()> {
    let cluster = Cluster::start_new(installation, folder, "locked_mirror", &[("fsync", "off")])?;
    let mut client = cluster.connect("postgres")?;
    create(&mut client)?;
    client.batch_execute("CREATE TABLE note (person int REFERENCES people_table)")?;
    let mut other = cluster.connect("postgres")?;
    let mut transaction = other.transaction()?;
    transaction.execute("INSERT INTO note VALUES (1)", &[])?;
    client.batch_execute("UPDATE person SET weight = 77 WHERE id = 1")?;
    client.batch_execute("DELETE FROM person WHERE id = 1; INSERT INTO edge VALUES (50, 51)")?;
    let reached = "SELECT count(*) FROM paths WHERE a = 50";
    ensure!(client.query_one(reached, &[])?.get::<_, i64>(0) == 1, "others wait, too");
    client.batch_execute("SET eddy.read_timeout = '200ms'")?;
    let read = client.query("SELECT count(*) FROM people", &[]);
    ensure!(read.is_err(), "a view is read that could not be written");
    // It is set aside as behind a locked table, and not as one that fails.
    let why = "SELECT coalesce(message, '') FROM eddy.views WHERE relation = 'people'::regclass";
    wait_for("the view to say what it waits for", PATIENCE, || {
        let why: String = client.query_one(why, &[])?.get(0);
        Ok(why.contains("another session holds a lock on it").then_some(()))
    })?;
    transaction.commit()?;
    client.batch_execute("RESET eddy.read_timeout")?;
    let people: i64 = client.query_one("SELECT count(*) FROM people WHERE id = 1", &[])?.get(0);
    ensure!(people == 0, "the row is still there");
    compare(&mut client)?;
    cluster.print_crashes()
}
