//! What is disturbed: tables whose transactions keep invariants, and views of all kinds over them.

/// Nobody attacks this one: it must not notice the trouble of the others.
pub const WITNESS: &str = "witness";

/// Rows leave it as time passes, so its query is no oracle for it at another instant.
pub const CLOCK: &str = "recent";

/// Sum of all balances, which every transaction keeps.
pub const TOTAL: i64 = 200_000;

/// Functions and tables. `endless` ends for sessions of these tests, so that their own runs of the query do.
pub const TABLES: &str = "
    SET client_min_messages = warning;
    CREATE EXTENSION pg_eddy;
    CREATE ROLE powerless;
    CREATE SCHEMA aside;
    CREATE TABLE witnessed (n bigint NOT NULL);
    CREATE TABLE account (id int PRIMARY KEY, branch int NOT NULL, balance bigint NOT NULL);
    INSERT INTO account SELECT i, i % 10, 1000 FROM generate_series(1, 200) i;
    CREATE TABLE edge (src int NOT NULL, dst int NOT NULL);
    CREATE TABLE counter (n bigint NOT NULL);
    INSERT INTO counter VALUES (1);
    CREATE TABLE numbered (n bigint NOT NULL);
    INSERT INTO numbered VALUES (1);
    CREATE TABLE item (id bigserial PRIMARY KEY, owner int NOT NULL, kind text NOT NULL,
        price int NOT NULL, extra int, note text);
    ALTER TABLE item ALTER COLUMN note SET STORAGE EXTERNAL;
    INSERT INTO item (owner, kind, price)
        SELECT i * 7 % 200 + 1, 'kind ' || i % 6, i * 13 % 100 FROM generate_series(1, 100) i;
    CREATE TABLE tag (item bigint NOT NULL, word text);
    INSERT INTO tag SELECT i % 120, 'word ' || i % 9 FROM generate_series(1, 100) i;
    CREATE TABLE event (n bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
    CREATE TABLE divisor (n int NOT NULL);
    INSERT INTO divisor SELECT generate_series(1, 20);
    CREATE TABLE called (n int NOT NULL);
    INSERT INTO called SELECT generate_series(100, 120);
    CREATE TABLE held (n int);
    CREATE TABLE duty (guard int PRIMARY KEY, is_on boolean NOT NULL);
    INSERT INTO duty VALUES (1, true), (2, true);
    CREATE TABLE ledger (n int NOT NULL, amount int NOT NULL) PARTITION BY RANGE (n);
    CREATE TABLE ledger_low PARTITION OF ledger FOR VALUES FROM (0) TO (50);
    CREATE TABLE ledger_high PARTITION OF ledger FOR VALUES FROM (50) TO (100);
    INSERT INTO ledger SELECT i, i * 7 % 100 FROM generate_series(0, 99) i;
    CREATE FUNCTION picky(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
        $$BEGIN IF n = 13 THEN RAISE 'no %', n USING ERRCODE = 'EDDY1'; END IF; RETURN n + 1; END$$;
    CREATE FUNCTION endless(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
        BEGIN
            IF n = 7 AND current_setting('application_name') NOT LIKE 'chaos%' THEN
                PERFORM pg_sleep(100000);
            END IF;
            RETURN n + 2;
        END$$;
    CREATE FUNCTION busy(n bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS
        $$BEGIN RAISE 'busy' USING ERRCODE = 'EDDY2'; END$$;";

/// A view that is there from the beginning to the end.
pub struct View {
    pub name: &'static str,
    pub query: &'static str,
    /// The tables and views that it reads.
    pub over: &'static [&'static str],
    /// A column that can have an index.
    pub column: &'static str,
}

const fn view(
    name: &'static str,
    over: &'static [&'static str],
    column: &'static str,
    query: &'static str,
) -> View {
    View { name, query, over, column }
}

/// In an order in which they can be created.
pub const VIEWS: [View; 27] = [
    view(WITNESS, &["witnessed"], "n", "SELECT count(*) AS n, sum(n) AS total FROM witnessed"),
    view(
        "total",
        &["account"],
        "total",
        "SELECT sum(balance) AS total, count(*) AS accounts FROM account",
    ),
    view(
        "by_branch",
        &["account"],
        "branch",
        "SELECT branch, sum(balance) AS total, min(balance) AS low, max(balance) AS high \
         FROM account GROUP BY branch",
    ),
    view("branches", &["by_branch"], "total", "SELECT sum(total) AS total FROM by_branch"),
    view(
        "reach",
        &["edge"],
        "a",
        "WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge UNION \
         SELECT r.a, e.dst FROM r JOIN edge e ON e.src = r.b) SELECT a, b FROM r",
    ),
    view("last", &["counter"], "n", "SELECT n FROM counter"),
    view(
        "numbers",
        &["numbered"],
        "highest",
        "SELECT count(*) AS rows, min(n) AS lowest, max(n) AS highest FROM numbered",
    ),
    view(
        "owned",
        &["item", "account"],
        "id",
        "SELECT i.id, i.kind, i.price, a.branch FROM item i JOIN account a ON a.id = i.owner",
    ),
    view(
        "kinds",
        &["item"],
        "kind",
        "SELECT kind, count(DISTINCT owner) AS owners, sum(price) AS total, min(price) AS low, \
         max(price) AS high FROM item GROUP BY kind",
    ),
    view(
        "worded",
        &["item", "tag"],
        "id",
        "SELECT i.id, i.kind, t.word FROM item i LEFT JOIN tag t ON t.item = i.id",
    ),
    view(
        "matched",
        &["item", "tag"],
        "id",
        "SELECT i.id, t.item, t.word FROM item i FULL JOIN tag t ON t.item = i.id",
    ),
    view(
        "tagged",
        &["item", "tag"],
        "id",
        "SELECT id, kind FROM item i WHERE EXISTS (SELECT FROM tag t WHERE t.item = i.id)",
    ),
    view(
        "untagged",
        &["item", "tag"],
        "id",
        "SELECT id, owner FROM item i WHERE NOT EXISTS (SELECT FROM tag t WHERE t.item = i.id)",
    ),
    view("words", &["tag"], "word", "SELECT DISTINCT word FROM tag"),
    view("either", &["item", "edge"], "owner", "SELECT owner FROM item UNION SELECT src FROM edge"),
    view(
        "idle",
        &["item", "account"],
        "id",
        "SELECT id FROM account EXCEPT SELECT owner FROM item",
    ),
    view(
        "ranked",
        &["item"],
        "id",
        "SELECT id, kind, rank() OVER (PARTITION BY kind ORDER BY price) AS place FROM item",
    ),
    view("dearest", &["item"], "id", "SELECT id, price FROM item ORDER BY price DESC, id LIMIT 5"),
    view(
        "best",
        &["item", "account"],
        "id",
        "SELECT a.id, b.id AS item, b.price FROM account a, LATERAL (SELECT i.id, i.price \
         FROM item i WHERE i.owner = a.id ORDER BY i.price DESC, i.id LIMIT 1) b",
    ),
    view(
        "by_kind",
        &["owned"],
        "kind",
        "SELECT kind, branch, count(*) AS n FROM owned GROUP BY kind, branch",
    ),
    view(CLOCK, &["event"], "n", "SELECT n, at FROM event WHERE at > now() - interval '5 seconds'"),
    view("noted", &["item"], "id", "SELECT id, note FROM item WHERE note IS NOT NULL"),
    view(
        "booked",
        &["ledger"],
        "n",
        "SELECT n % 10 AS n, sum(amount) AS amount FROM ledger GROUP BY n % 10",
    ),
    view("on_duty", &["duty"], "n", "SELECT count(*) AS n FROM duty WHERE is_on"),
    view("ratio", &["divisor"], "n", "SELECT n, 100 / n AS share FROM divisor"),
    view("picked", &["called"], "n", "SELECT n, picky(n) AS m FROM called"),
    view("slow", &["called"], "n", "SELECT n, endless(n) AS m FROM called"),
];

/// Those whose rows are in a table, too, and whose changes are kept.
const WITH_TABLES: [&str; 7] = ["by_branch", "reach", "owned", "kinds", "words", "idle", "by_kind"];

impl View {
    /// The statement that creates it if it is not there.
    pub fn creation(&self) -> String {
        let options = match WITH_TABLES.contains(&self.name) {
            true => " WITH (storage = table, changes = '1 hour')",
            false => "",
        };
        let View { name, query, .. } = self;
        format!("CREATE INCREMENTAL VIEW IF NOT EXISTS {name}{options} AS {query}")
    }
}

/// A view by its name.
pub fn named(name: &str) -> Option<&'static View> {
    VIEWS.iter().find(|view| view.name == name)
}

/// The views that read a table or view, directly or not, and the view itself.
pub fn affected_by(relation: &str) -> Vec<&'static str> {
    let mut affected: Vec<&'static str> = Vec::new();
    for view in &VIEWS {
        let is_direct = view.name == relation || view.over.contains(&relation);
        if is_direct || view.over.iter().any(|over| affected.contains(over)) {
            affected.push(view.name);
        }
    }
    affected
}

/// SQL that returns the number of rows of a query and the sum of their hashes: equal for equal multisets of rows.
pub fn digest(query: &str) -> String {
    format!(
        "SELECT count(*), coalesce(sum(hashtextextended(q::text, 0)), 0)::text FROM ({query}) q"
    )
}

/// A view and the views that it reads: an error may name any of them.
pub fn beneath(view: &View) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    let mut open = vec![view.name];
    while let Some(view) = open.pop().and_then(named) {
        names.push(view.name);
        open.extend(view.over);
    }
    names
}
