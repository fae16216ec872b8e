//! Disturbances by statements: locks, DDL, rows that no function can take, views that cannot be computed. Each attack is mended
//! after a moment, whatever has become of its session meanwhile.

use harness::dice::Dice;

use super::scene::Away;
use super::views::{affected_by, View, VIEWS, WITNESS};

/// What is done to tables or views for a while.
pub struct Attack {
    /// What it is called in the counts.
    pub name: &'static str,
    pub away: Vec<Away>,
    /// Statements of the attack, run as one string.
    pub sql: String,
    /// Milliseconds until it is mended.
    pub hold: u64,
    /// A view that cannot be read meanwhile, and the SQLSTATEs that reads of it may fail with.
    pub fails: Option<(&'static str, &'static [&'static str])>,
    /// Statements that undo it, however far it came; each is tried until it succeeds.
    pub mend: Vec<String>,
}

type Draw = fn(&mut Dice) -> Attack;

const DRAWS: [Draw; 30] = [
    lock_view,
    lock_table,
    add_column,
    change_type,
    index_view,
    index_that_fails,
    index_that_is_unique,
    truncate,
    rename_view,
    rename_column,
    rename_table,
    refresh,
    replace,
    vacuum,
    many_rows,
    poison,
    call_that_raises,
    call_that_does_not_end,
    lose_identity,
    lose_right,
    open_transaction,
    prepared_transaction,
    drop_and_create,
    passing_view,
    detach_partition,
    unlogged,
    other_schema,
    without_label,
    drop_table,
    write_anew,
];

/// An attack whose name has these words.
pub fn draw(dice: &mut Dice, words: &str) -> Option<Attack> {
    let is_meant = |attack: &Attack| attack.name.contains(words);
    // Often enough for each of them to come, if there is one.
    (0..100 * DRAWS.len()).map(|_| dice.pick(&DRAWS)(dice)).find(is_meant)
}

/// A view that may be attacked.
pub fn victim(dice: &mut Dice) -> &'static View {
    loop {
        let view = dice.pick(&VIEWS);
        if view.name != WITNESS {
            return view;
        }
    }
}

fn table(dice: &mut Dice) -> &'static str {
    dice.pick::<&str>(&[
        "account", "edge", "counter", "numbered", "item", "tag", "event", "divisor",
    ])
}

fn attack(
    name: &'static str,
    away: Vec<&'static str>,
    sql: impl Into<String>,
    hold: i64,
    mend: &[&str],
) -> Attack {
    Attack {
        name,
        away: vec![Away::Views(away)],
        sql: sql.into(),
        hold: hold.max(0) as u64,
        fails: None,
        mend: mend.iter().map(|sql| (*sql).to_owned()).collect(),
    }
}

fn lock_view(dice: &mut Dice) -> Attack {
    let view = victim(dice);
    let sql = format!("BEGIN; CREATE INDEX ON {} ({})", view.name, view.column);
    attack("lock on a view", vec![view.name], sql, dice.range(50, 2500), &["ROLLBACK"])
}

fn lock_table(dice: &mut Dice) -> Attack {
    let table = table(dice);
    let mode = dice.pick(&["ACCESS EXCLUSIVE", "SHARE", "EXCLUSIVE"]);
    let sql = format!("BEGIN; LOCK TABLE {table} IN {mode} MODE");
    attack("lock on a table", affected_by(table), sql, dice.range(50, 1500), &["ROLLBACK"])
}

fn add_column(dice: &mut Dice) -> Attack {
    let table = table(dice);
    let value = dice.pick(&["DEFAULT 5", "DEFAULT random()::int", ""]);
    let sql = format!("ALTER TABLE {table} ADD COLUMN more int {value}");
    let mend = format!("ALTER TABLE {table} DROP COLUMN IF EXISTS more");
    let away = affected_by(table);
    let attack = attack("column added and dropped", away, sql, dice.range(0, 800), &[&mend]);
    // A default that is drawn for each row.
    if value.contains("random") {
        losing_history(attack)
    } else {
        attack
    }
}

/// The table is written anew or emptied, which is so for all snapshots at once.
fn losing_history(mut attack: Attack) -> Attack {
    let lost = attack.away.iter().filter_map(|away| match away {
        Away::Views(views) => Some(Away::History(views.clone())),
        _ => None,
    });
    let lost: Vec<Away> = lost.collect();
    attack.away.extend(lost);
    attack
}

fn change_type(dice: &mut Dice) -> Attack {
    let kind = dice.pick(&["bigint", "text", "numeric"]);
    let sql = format!("ALTER TABLE item ALTER COLUMN extra TYPE {kind} USING extra::{kind}");
    let mend = "ALTER TABLE item ALTER COLUMN extra TYPE int USING extra::int";
    let away = affected_by("item");
    losing_history(attack("type of a column changed", away, sql, dice.range(0, 800), &[mend]))
}

fn index_view(dice: &mut Dice) -> Attack {
    let view = victim(dice);
    let sql = format!("CREATE INDEX attacking ON {} ({})", view.name, view.column);
    let mend = "DROP INDEX IF EXISTS attacking";
    attack("index on a view", vec![view.name], sql, dice.range(0, 1500), &[mend])
}

/// Rows of the view cannot be written while it is there.
fn index_that_fails(dice: &mut Dice) -> Attack {
    let sql = "BEGIN; TRUNCATE item; COMMIT; CREATE INDEX attacking ON owned (busy(id))";
    let mend = ["DROP INDEX IF EXISTS attacking", "REFRESH INCREMENTAL VIEW owned"];
    let away = affected_by("item");
    losing_history(attack("index that fails", away, sql, dice.range(300, 2500), &mend))
}

fn index_that_is_unique(dice: &mut Dice) -> Attack {
    let sql = "CREATE UNIQUE INDEX attacking ON tagged (kind)";
    let truncate = "BEGIN; TRUNCATE tag; COMMIT";
    let mend = ["DROP INDEX IF EXISTS attacking", "REFRESH INCREMENTAL VIEW tagged"];
    let sql = format!("{truncate}; {sql}");
    let away = affected_by("tag");
    losing_history(attack("index that is unique", away, sql, dice.range(300, 2500), &mend))
}

fn truncate(dice: &mut Dice) -> Attack {
    let sql = match dice.chance(50) {
        true => "TRUNCATE item, tag",
        false => "BEGIN; TRUNCATE edge; TRUNCATE event; INSERT INTO event VALUES (1); COMMIT",
    };
    let away = ["item", "tag", "edge", "event"].into_iter().flat_map(affected_by).collect();
    losing_history(attack("truncation", away, sql, 0, &[]))
}

fn rename_view(dice: &mut Dice) -> Attack {
    let name = victim(dice).name;
    let sql = format!("ALTER INCREMENTAL VIEW {name} RENAME TO renamed");
    let mend = format!("ALTER MATERIALIZED VIEW IF EXISTS renamed RENAME TO {name}");
    attack("view renamed", vec![name], sql, dice.range(0, 500), &[&mend])
}

fn rename_column(dice: &mut Dice) -> Attack {
    let sql = "ALTER TABLE tag RENAME COLUMN word TO term";
    let mend = "DO $$BEGIN ALTER TABLE tag RENAME COLUMN term TO word; \
        EXCEPTION WHEN undefined_column THEN NULL; END$$";
    let mut attack = attack("column renamed", affected_by("tag"), sql, dice.range(0, 300), &[mend]);
    // What writes to the table fails as well.
    add_view(&mut attack, "words");
    attack
}

fn rename_table(dice: &mut Dice) -> Attack {
    let sql = "ALTER TABLE tag RENAME TO label";
    let mend = "ALTER TABLE IF EXISTS label RENAME TO tag";
    attack("table renamed", affected_by("tag"), sql, dice.range(0, 300), &[mend])
}

fn add_view(attack: &mut Attack, view: &'static str) {
    attack.away.push(Away::Views(vec![view]));
}

fn refresh(dice: &mut Dice) -> Attack {
    let name = victim(dice).name;
    attack("refresh", vec![name], format!("REFRESH INCREMENTAL VIEW {name}"), 0, &[])
}

/// The same rows by another query, computed anew.
fn replace(dice: &mut Dice) -> Attack {
    let View { name, query, .. } = victim(dice);
    let query = match dice.chance(50) {
        true => (*query).to_owned(),
        false => format!("SELECT * FROM ({query}) q"),
    };
    let sql = format!("CREATE OR REPLACE INCREMENTAL VIEW {name} AS {query}");
    attack("view replaced", vec![name], sql, 0, &[])
}

fn vacuum(dice: &mut Dice) -> Attack {
    let table = table(dice);
    let view = victim(dice).name;
    let (sql, away) = match dice.index(5) {
        0 => (format!("VACUUM FULL {table}"), affected_by(table)),
        1 => (format!("VACUUM (ANALYZE, FREEZE) {table}"), affected_by(table)),
        2 => (format!("VACUUM {view}"), vec![view]),
        3 => (format!("VACUUM FULL {view}"), vec![view]),
        _ => ("VACUUM".to_owned(), Vec::new()),
    };
    attack("vacuum", away, sql, 0, &[])
}

fn many_rows(dice: &mut Dice) -> Attack {
    let rows = dice.range(1_000, 8_000);
    let sql = format!(
        "INSERT INTO item (id, owner, kind, price) SELECT 1000000 + i, i % 200 + 1, 'many', i % 100 \
         FROM generate_series(1, {rows}) i"
    );
    let mend = "DELETE FROM item WHERE id >= 1000000";
    attack("many rows", affected_by("item"), sql, dice.range(0, 1000), &[mend])
}

fn poison(dice: &mut Dice) -> Attack {
    let mend = "DELETE FROM divisor WHERE n = 0";
    let sql = "INSERT INTO divisor VALUES (0)";
    let mut attack = attack("division by zero", vec!["ratio"], sql, dice.range(0, 800), &[mend]);
    attack.fails = Some(("ratio", &["22012"]));
    attack
}

fn call_that_raises(dice: &mut Dice) -> Attack {
    let mend = "DELETE FROM called WHERE n = 13";
    let sql = "INSERT INTO called VALUES (13)";
    let mut attack =
        attack("function that raises", vec!["picked"], sql, dice.range(0, 800), &[mend]);
    attack.fails = Some(("picked", &["EDDY1"]));
    attack
}

fn call_that_does_not_end(dice: &mut Dice) -> Attack {
    let mend = "DELETE FROM called WHERE n = 7";
    let sql = "INSERT INTO called VALUES (7)";
    let away = vec!["slow", "picked"];
    let mut attack = attack("function that does not end", away, sql, dice.range(0, 1500), &[mend]);
    attack.fails = Some(("slow", &["57014"]));
    attack
}

fn lose_identity(dice: &mut Dice) -> Attack {
    let sql = "ALTER TABLE tag REPLICA IDENTITY NOTHING";
    let mend = "ALTER TABLE tag REPLICA IDENTITY FULL";
    attack("replica identity lost", affected_by("tag"), sql, dice.range(0, 1500), &[mend])
}

fn lose_right(dice: &mut Dice) -> Attack {
    let name = victim(dice).name;
    let sql = format!("ALTER INCREMENTAL VIEW {name} OWNER TO powerless");
    let mend = format!("ALTER MATERIALIZED VIEW {name} OWNER TO postgres");
    // Views over it read with the rights of its owner.
    attack("right lost", affected_by(name), sql, dice.range(0, 1500), &[&mend])
}

/// Somebody writes and does not commit: a worker that starts has to wait for that.
fn open_transaction(dice: &mut Dice) -> Attack {
    let sql = "BEGIN; INSERT INTO held VALUES (1)";
    let mut attack = attack("open transaction", vec![], sql, dice.range(100, 2000), &["COMMIT"]);
    attack.away.push(Away::Worker);
    attack
}

fn prepared_transaction(dice: &mut Dice) -> Attack {
    let sql = "BEGIN; INSERT INTO divisor VALUES (30); PREPARE TRANSACTION 'attacking'";
    let how = dice.pick(&["COMMIT", "ROLLBACK"]);
    let mend = format!("{how} PREPARED 'attacking'");
    let gone = "DELETE FROM divisor WHERE n = 30";
    let away = affected_by("divisor");
    let mut attack = attack("prepared transaction", away, sql, dice.range(0, 1500), &[&mend, gone]);
    attack.away.push(Away::Worker);
    attack
}

fn drop_and_create(dice: &mut Dice) -> Attack {
    // Not one that another view is made from.
    let view = loop {
        let view = victim(dice);
        if affected_by(view.name).len() == 1 {
            break view;
        }
    };
    let sql = format!("DROP INCREMENTAL VIEW {}", view.name);
    attack(
        "view dropped and created",
        vec![view.name],
        sql,
        dice.range(0, 500),
        &[&view.creation()],
    )
}

/// Rows leave the view, and come again, without a change of a row: for queries of all snapshots at once, as PostgreSQL
/// detaches partitions. Writers may find no partition for theirs.
fn detach_partition(dice: &mut Dice) -> Attack {
    let sql = "ALTER TABLE ledger DETACH PARTITION ledger_high";
    let mend = "DO $$BEGIN \
        ALTER TABLE ledger ATTACH PARTITION ledger_high FOR VALUES FROM (50) TO (100); \
        EXCEPTION WHEN wrong_object_type THEN NULL; END$$";
    let away = affected_by("ledger");
    let name = "partition detached and attached";
    losing_history(attack(name, away, sql, dice.range(0, 800), &[mend]))
}

/// The table is written anew, and its changes are not in the WAL meanwhile.
fn unlogged(dice: &mut Dice) -> Attack {
    let sql = "ALTER TABLE tag SET UNLOGGED";
    let mend = "ALTER TABLE tag SET LOGGED";
    let away = affected_by("tag");
    losing_history(attack("table unlogged", away, sql, dice.range(0, 800), &[mend]))
}

fn other_schema(dice: &mut Dice) -> Attack {
    let name = victim(dice).name;
    let sql = format!("ALTER INCREMENTAL VIEW {name} SET SCHEMA aside");
    let mend = format!("ALTER MATERIALIZED VIEW IF EXISTS aside.{name} SET SCHEMA public");
    attack("view in another schema", vec![name], sql, dice.range(0, 500), &[&mend])
}

/// The view is a plain materialized one meanwhile, and as old as it likes.
fn without_label(dice: &mut Dice) -> Attack {
    let label = "SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW";
    let name = dice.pick(&["words", "either", "idle", "ranked", "noted"]);
    let mend = format!("{label} {name} IS 'incremental'");
    let sql = format!("{label} {name} IS NULL");
    let mut attack = attack("label taken away", vec![name], sql, dice.range(0, 800), &[&mend]);
    attack.away.push(Away::History(vec![name]));
    attack
}

/// The table goes with its view, and both come again.
fn drop_table(dice: &mut Dice) -> Attack {
    let sql = "DROP TABLE divisor CASCADE";
    let mend = [
        "CREATE TABLE IF NOT EXISTS divisor AS SELECT generate_series(1, 20) AS n",
        "CREATE INCREMENTAL VIEW IF NOT EXISTS ratio AS SELECT n, 100 / n AS share FROM divisor",
    ];
    let away = affected_by("divisor");
    losing_history(attack("table dropped and created", away, sql, dice.range(0, 500), &mend))
}

/// A view's rows, or those of a table, are put elsewhere; their order is another one.
fn write_anew(dice: &mut Dice) -> Attack {
    let view = victim(dice);
    let (name, column) = (view.name, view.column);
    let index = format!("CREATE INDEX attacking ON {name} ({column})");
    let sql = match dice.index(3) {
        0 => format!("{index}; CLUSTER {name} USING attacking"),
        1 => format!("{index}; REINDEX TABLE {name}"),
        _ => format!("{index}; ALTER MATERIALIZED VIEW {name} SET (fillfactor = 50)"),
    };
    let mend = "DROP INDEX IF EXISTS attacking";
    attack("view written anew", vec![name], sql, dice.range(0, 500), &[mend])
}

/// Views that come and go and mostly cannot be computed; which of them fail, and how.
const PASSING: [(&str, &[&str]); 7] = [
    ("SELECT 1 / (n - 5) AS q FROM divisor", &["22012"]),
    ("SELECT picky(n + 8) AS q FROM divisor", &["EDDY1"]),
    ("SELECT endless(n + 6) AS q FROM divisor", &["57014"]),
    (
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
        &["54001", "53200"],
    ),
    (
        "WITH RECURSIVE r(a, b) AS (SELECT id, 1 FROM account UNION ALL \
         SELECT r.b, r.a FROM r JOIN account a ON a.branch = r.b) SELECT a, b FROM r",
        &["54001", "53200"],
    ),
    (
        "SELECT count(*) AS n FROM account a, account b, account c, account d \
         WHERE (a.id * b.id) % 1000 <> c.id % 10 AND a.id + b.id + c.id + d.id > -1",
        &[],
    ),
    ("SELECT kind, count(*) AS n FROM item GROUP BY kind", &[]),
];

fn passing_view(dice: &mut Dice) -> Attack {
    let (query, codes) = *dice.pick(&PASSING);
    let sql = format!("CREATE INCREMENTAL VIEW passing AS {query} WITH NO DATA");
    let mend = "DROP INCREMENTAL VIEW IF EXISTS passing";
    let mut attack = attack("view that comes and goes", vec![], sql, dice.range(0, 1500), &[mend]);
    if !codes.is_empty() {
        attack.fails = Some(("passing", codes));
    }
    attack
}
