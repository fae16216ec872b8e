//! What the benchmarks of the whole path maintain: a join, an aggregate and a recursive view, the
//! tables beneath them, and the transactions that change these.

use anyhow::Result;
use postgres::Client;

/// A view with its base tables.
pub struct Subject {
    pub name: &'static str,
    /// The table whose rows change; its key is `id`, from 1 without gaps.
    pub table: &'static str,
    /// Makes the tables; `{rows}` is the size of the one that changes.
    tables: &'static str,
    pub query: &'static str,
    /// The view's key, on which it gets a unique index.
    key: &'static str,
    /// What a transaction does to each of its rows.
    pub assignment: &'static str,
}

/// Name of every subject's view.
pub const VIEW: &str = "subject";

const ITEMS: &str = "
    CREATE TABLE category (id int PRIMARY KEY, name text NOT NULL);
    INSERT INTO category SELECT i, 'category ' || i FROM generate_series(0, 999) i;
    CREATE TABLE item (id int PRIMARY KEY, category int NOT NULL, amount bigint NOT NULL);
    INSERT INTO item SELECT i, i % 1000, i % 77 FROM generate_series(1, {rows}) i;
    VACUUM ANALYZE category, item;";

/// A root and an edge from it to each of many communities of 256 nodes, which are random graphs of
/// twice as many edges as nodes: most of a community's nodes lie on cycles. However large the
/// graph is, what one edge does to it stays in its community.
const COMMUNITIES: &str = "
    CREATE TABLE edge (id int PRIMARY KEY, src int NOT NULL, dst int NOT NULL);
    SELECT setseed(0.5);
    INSERT INTO edge SELECT i, i / 512 * 256 + floor(random() * 256)::int,
        i / 512 * 256 + floor(random() * 256)::int FROM generate_series(1, {rows}) i;
    INSERT INTO edge SELECT -1 - i, -1, i * 256 FROM generate_series(0, {rows} / 512) i;
    CREATE INDEX ON edge (src);
    VACUUM ANALYZE edge;";

/// An edge turns to another node of its community.
const TURN: &str = "dst = dst - dst % 256 + (dst + 37) % 256";

pub const AGGREGATE: Subject = Subject {
    name: "aggregate",
    table: "item",
    tables: ITEMS,
    query: "SELECT category, count(*) AS items, sum(amount) AS total FROM item GROUP BY category",
    key: "category",
    assignment: "amount = amount + 1",
};

pub const JOIN: Subject = Subject {
    name: "join",
    table: "item",
    tables: ITEMS,
    query: "SELECT i.id, i.amount, c.name FROM item i JOIN category c ON c.id = i.category",
    key: "id",
    assignment: "amount = amount + 1",
};

pub const RECURSIVE: Subject = Subject {
    name: "recursive",
    table: "edge",
    tables: COMMUNITIES,
    query: "WITH RECURSIVE r(node) AS (SELECT -1 UNION
        SELECT e.dst FROM r JOIN edge e ON e.src = r.node) SELECT node FROM r",
    key: "node",
    assignment: TURN,
};

pub const ALL: [&Subject; 3] = [&JOIN, &AGGREGATE, &RECURSIVE];

impl Subject {
    /// Makes the tables, of which the changing one gets about that many rows, in a new database.
    pub fn create_tables(&self, client: &mut Client, rows: u32) -> Result<()> {
        client.batch_execute("SET client_min_messages = warning; CREATE EXTENSION pg_eddy;")?;
        self.add_tables(client, rows)
    }

    /// The same in a database that has the extension and other tables.
    pub fn add_tables(&self, client: &mut Client, rows: u32) -> Result<()> {
        run_script(client, &self.tables.replace("{rows}", &rows.to_string()))
    }

    /// Creates the view with an index on its key, and waits until it follows its tables.
    pub fn create_view(&self, client: &mut Client) -> Result<()> {
        client.batch_execute(&format!(
            "CREATE INCREMENTAL VIEW {VIEW} AS {};
             CREATE UNIQUE INDEX ON {VIEW} ({})",
            self.query, self.key
        ))?;
        client.execute(&format!("SELECT FROM {VIEW} LIMIT 1"), &[])?;
        client.batch_execute(&format!("VACUUM ANALYZE {VIEW}"))?;
        Ok(())
    }

    /// Changes the row `$1`; answers the transaction's ID.
    pub fn change_one(&self) -> String {
        format!(
            "UPDATE {} SET {} WHERE id = $1 RETURNING pg_current_xact_id()::text::bigint",
            self.table, self.assignment
        )
    }

    /// Changes the rows from `$1` to `$2`.
    pub fn change_many(&self) -> String {
        format!("UPDATE {} SET {} WHERE id BETWEEN $1 AND $2", self.table, self.assignment)
    }
}

/// Runs statements one at a time: VACUUM allows no others beside it.
pub fn run_script(client: &mut Client, script: &str) -> Result<()> {
    for statement in script.split_inclusive(';') {
        client.batch_execute(statement)?;
    }
    Ok(())
}
