-- Views whose rows are in an ordinary table, too: WITH (storage = table)

CREATE ROLE eddy_mirrored;
CREATE ROLE eddy_reader;
GRANT CREATE ON SCHEMA public TO eddy_mirrored;
SET ROLE eddy_mirrored;
CREATE TABLE sale (id int PRIMARY KEY, shop text, amount numeric);
INSERT INTO sale VALUES (1, 'north', 1.5), (2, 'north', 2), (3, 'south', 4), (4, NULL, 8);
CREATE INCREMENTAL VIEW big WITH (storage = table) AS SELECT id, shop, amount FROM sale WHERE amount > 1.5;
CREATE INCREMENTAL VIEW total WITH (storage = 'table') AS SELECT shop, sum(amount) AS amount, count(*) AS n FROM sale GROUP BY shop;
CREATE INCREMENTAL VIEW whole WITH (storage = table) AS SELECT count(*) AS n, max(shop) AS last FROM sale;
CREATE INCREMENTAL VIEW shops WITH (storage = table) AS SELECT DISTINCT shop, amount > 3 AS much FROM sale;
SELECT count(*) FROM big, total, whole, shops;
TABLE big_table ORDER BY id;
TABLE total_table ORDER BY shop;
TABLE whole_table;
TABLE shops_table ORDER BY 1, 2;
-- the key, and what tells a subscriber the rows apart
SELECT c.relname, c.relreplident, i.indisprimary, i.indnullsnotdistinct, pg_get_indexdef(i.indexrelid)
FROM pg_class c LEFT JOIN pg_index i ON i.indrelid = c.oid WHERE c.relname LIKE '%\_table' AND c.relnamespace = 'public'::regnamespace ORDER BY 1;
\d big_table

-- they change together
INSERT INTO sale VALUES (5, 'east', 3), (6, 'south', 5);
UPDATE sale SET amount = amount + 1, shop = nullif(shop, 'south') WHERE id < 4;
DELETE FROM sale WHERE id = 4;
SELECT count(*) FROM big, total, whole, shops;
TABLE big_table ORDER BY id;
TABLE total_table ORDER BY shop;
TABLE whole_table;
TABLE shops_table ORDER BY 1, 2;
-- keys that pass from row to row
UPDATE sale SET id = 100 - id;
UPDATE sale SET id = CASE id WHEN 99 THEN 98 WHEN 98 THEN 99 ELSE id END, shop = shop || '!';
SELECT count(*) FROM big;
SELECT * FROM big EXCEPT TABLE big_table;
SELECT * FROM big_table EXCEPT TABLE big;
TRUNCATE sale;
SELECT count(*) FROM big, total, whole, shops;
TABLE big_table;
TABLE whole_table;
INSERT INTO sale VALUES (1, 'north', 2), (2, 'west', 7);
SELECT count(*) FROM big, total;
TABLE big_table ORDER BY id;

-- nobody else writes them
INSERT INTO big_table VALUES (7, 'mine', 1);
UPDATE big_table SET shop = 'mine';
DELETE FROM big_table;
TRUNCATE big_table;
COPY big_table FROM stdin;
\.
MERGE INTO big_table b USING sale s ON s.id = b.id WHEN MATCHED THEN DELETE;
SELECT eddy.refuse_write();
DROP TABLE big_table;
CREATE INDEX ON big_table (shop);
-- rights are the table's own, and so are policies
GRANT SELECT ON total_table TO eddy_reader;
ALTER TABLE total_table ENABLE ROW LEVEL SECURITY;
CREATE POLICY western ON total_table TO eddy_reader USING (shop = 'west');
SET ROLE eddy_reader;
TABLE total_table;
TABLE big_table;
SET ROLE eddy_mirrored;
-- foreign keys to them
CREATE TABLE note (of int REFERENCES big_table, body text);
INSERT INTO note VALUES (1, 'yes');
INSERT INTO note VALUES (9, 'no');
UPDATE sale SET shop = 'changed' WHERE id = 1;
DELETE FROM sale WHERE id = 1;
SELECT count(*) FROM big;
TABLE big_table;
-- goes with the view
DROP INCREMENTAL VIEW big;
ALTER INCREMENTAL VIEW big RESET (storage);
DROP TABLE note;
ALTER INCREMENTAL VIEW big RESET (storage);
TABLE big_table;
ALTER INCREMENTAL VIEW big SET (storage = 'table');
TABLE big_table;
INSERT INTO sale VALUES (3, 'back', 3);
SELECT count(*) FROM big;
TABLE big_table ORDER BY id;
ALTER INCREMENTAL VIEW big RENAME TO large;
ALTER INCREMENTAL VIEW large SET (storage = view);
ALTER INCREMENTAL VIEW large SET (storage = table);
TABLE large_table ORDER BY id;
REFRESH INCREMENTAL VIEW large;
TABLE large_table ORDER BY id;
REFRESH INCREMENTAL VIEW large WITH NO DATA;
TABLE large_table;
REFRESH INCREMENTAL VIEW large;
INSERT INTO sale VALUES (4, 'later', 3);
SELECT count(*) FROM large;
TABLE large_table ORDER BY id;
-- another query: columns are added, the key stays
CREATE OR REPLACE INCREMENTAL VIEW large AS SELECT id, shop, amount, amount * 2 AS twice FROM sale WHERE amount > 1;
UPDATE sale SET amount = 5 WHERE id = 3;
SELECT count(*) FROM large;
TABLE large_table ORDER BY id;
CREATE OR REPLACE INCREMENTAL VIEW large AS SELECT min(id) AS id, shop, max(amount) AS amount, sum(amount) * 2 AS twice FROM sale GROUP BY shop;
ALTER INCREMENTAL VIEW large SET (storage = view);
CREATE OR REPLACE INCREMENTAL VIEW large WITH (storage = table) AS SELECT min(id) AS id, shop, max(amount) AS amount, sum(amount) * 2 AS twice FROM sale GROUP BY shop;
CREATE OR REPLACE INCREMENTAL VIEW large AS SELECT min(id) AS id, shop, max(amount) AS amount, sum(amount) * 2 AS twice FROM sale GROUP BY shop;
ALTER INCREMENTAL VIEW large SET (storage = table);
SELECT count(*) FROM large;
TABLE large_table ORDER BY id;
-- what has been altered
ALTER TABLE large_table ADD COLUMN mine text;
INSERT INTO sale VALUES (5, 'again', 3);
SELECT count(*) FROM large;
TABLE large_table ORDER BY id;
ALTER TABLE large_table DROP CONSTRAINT large_table_shop_key;
SELECT * FROM large;
\echo :SQLSTATE
CREATE UNIQUE INDEX again ON large_table (shop);
SELECT count(*) FROM large;
ALTER TABLE large_table DISABLE TRIGGER eddy_refuses_writes;
DELETE FROM large_table WHERE id = 5;
ALTER TABLE large_table ENABLE TRIGGER eddy_refuses_writes;
SELECT * FROM eddy.verify_view('large');
DELETE FROM sale WHERE id = 5;
SELECT count(*) FROM large;
\echo :SQLSTATE
REFRESH INCREMENTAL VIEW large;
SELECT count(*) FROM large;
SELECT * FROM large EXCEPT SELECT id, shop, amount, twice FROM large_table;
SELECT count(*) FROM large_table;

-- a table that is none any more, a part of another one, computed columns, keys that are too long
CREATE TABLE few (id int PRIMARY KEY, body text);
CREATE INCREMENTAL VIEW fewer WITH (storage = table) AS SELECT id, body FROM few;
SELECT count(*) FROM fewer;
ALTER TABLE fewer_table DROP CONSTRAINT fewer_table_pkey, ALTER id DROP NOT NULL;
DROP TRIGGER eddy_refuses_writes ON fewer_table;
VACUUM fewer_table;
SET client_min_messages = error;
DO $$
BEGIN
    -- What became a view up to 15.
    CREATE RULE "_RETURN" AS ON SELECT TO fewer_table DO INSTEAD SELECT 1 AS id, 'a'::text AS body;
EXCEPTION WHEN OTHERS THEN
    DROP TABLE few CASCADE;
END $$;
DO $$
BEGIN
    EXECUTE 'REFRESH MATERIALIZED VIEW fewer';
EXCEPTION WHEN OTHERS THEN
    DROP TABLE IF EXISTS few CASCADE;
END $$;
SELECT to_regclass('few'), to_regclass('fewer_table');
RESET client_min_messages;
ALTER INCREMENTAL VIEW large RESET (storage);
ALTER INCREMENTAL VIEW large SET (storage = table);
CREATE TABLE parent (id int, shop text, amount numeric, twice numeric) PARTITION BY LIST (shop);
ALTER TABLE parent ATTACH PARTITION large_table DEFAULT;
UPDATE sale SET amount = amount + 1;
SELECT * FROM large;
ALTER TABLE parent DETACH PARTITION large_table;
REFRESH INCREMENTAL VIEW large;
SELECT * FROM large EXCEPT TABLE large_table;
ALTER TABLE large_table ADD COLUMN computed numeric GENERATED ALWAYS AS (amount * 3) STORED;
UPDATE sale SET amount = amount + 1;
SELECT * FROM large;
ALTER INCREMENTAL VIEW large RESET (storage);
ALTER INCREMENTAL VIEW large SET (storage = table);
SELECT * FROM large EXCEPT TABLE large_table;
CREATE INCREMENTAL VIEW joined WITH (storage = table) AS SELECT string_agg(shop, ',' ORDER BY id) AS shops, count(*) AS n FROM sale;
SELECT count(*) FROM joined;
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'joined_table'::regclass;
-- published in a way by which subscribers would not know what goes
RESET ROLE;
SET client_min_messages = error;
CREATE INCREMENTAL VIEW sent WITH (storage = table) AS SELECT id, amount FROM sale;
SELECT count(*) FROM sent;
CREATE PUBLICATION large_ones FOR TABLE sent_table WHERE (amount > 3);
RESET client_min_messages;
UPDATE sale SET amount = 1;
SELECT * FROM sent;
\echo :SQLSTATE
ALTER TABLE sent_table REPLICA IDENTITY FULL;
REFRESH INCREMENTAL VIEW sent;
UPDATE sale SET amount = 2;
SELECT count(*) FROM sent WHERE amount = 2;
SELECT * FROM sent EXCEPT TABLE sent_table;
DROP PUBLICATION large_ones;
DROP INCREMENTAL VIEW sent;
SET ROLE eddy_mirrored;
-- tables of others are not taken for mirrors
CREATE TABLE mine_table (id int PRIMARY KEY);
INSERT INTO mine_table VALUES (7);
CREATE MATERIALIZED VIEW mine AS SELECT id FROM sale;
\set VERBOSITY terse
DO $$ BEGIN EXECUTE format('SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW mine IS %L',
    (SELECT label FROM pg_seclabel WHERE objoid = 'large'::regclass)); END $$;
\set VERBOSITY default
TABLE mine_table;
DROP MATERIALIZED VIEW mine;
DROP TABLE mine_table, parent;
CREATE INCREMENTAL VIEW wide WITH (storage = table) AS SELECT DISTINCT g AS a1, g a2, g a3, g a4, g a5, g a6, g a7, g a8, g a9, g a10, g a11, g a12, g a13, g a14, g a15, g a16, g a17, g a18,
    g a19, g a20, g a21, g a22, g a23, g a24, g a25, g a26, g a27, g a28, g a29, g a30, g a31, g a32, g + 1 a33 FROM (SELECT amount AS g FROM sale) s;

-- what cannot be
CREATE INCREMENTAL VIEW keyless WITH (storage = table) AS SELECT shop FROM sale;
CREATE INCREMENTAL VIEW odd WITH (storage = heap) AS SELECT id FROM sale;
CREATE INCREMENTAL VIEW odd WITH (storage) AS SELECT id FROM sale;
CREATE TABLE taken_table ();
CREATE INCREMENTAL VIEW taken WITH (storage = table) AS SELECT id FROM sale;
-- another owner, another schema
RESET ROLE;
CREATE SCHEMA elsewhere;
GRANT USAGE ON SCHEMA elsewhere TO eddy_reader;
GRANT CREATE ON SCHEMA elsewhere TO eddy_reader;
GRANT SELECT ON sale TO eddy_reader;
ALTER INCREMENTAL VIEW large OWNER TO eddy_reader;
ALTER INCREMENTAL VIEW large SET SCHEMA elsewhere;
SELECT relnamespace::regnamespace, relowner::regrole FROM pg_class WHERE relname = 'large_table';
INSERT INTO sale VALUES (6, 'elsewhere', 3);
SELECT count(*) FROM elsewhere.large;
SELECT count(*) FROM elsewhere.large_table;
SELECT count(*) FROM eddy.view_mirrors;
-- a chain of links, in a table for who cannot recurse
CREATE TABLE link (a int, b int, PRIMARY KEY (a, b));
INSERT INTO link VALUES (1, 2), (2, 3);
CREATE INCREMENTAL VIEW reach WITH (storage = table, changes = '1 hour') AS
    WITH RECURSIVE r(a, b) AS (SELECT a, b FROM link UNION SELECT r.a, l.b FROM r JOIN link l ON l.a = r.b) SELECT * FROM r;
INSERT INTO link VALUES (3, 1);
SELECT count(*) FROM reach;
SELECT count(*) FROM reach_table;
DELETE FROM link WHERE a = 2;
SELECT count(*) FROM reach;
TABLE reach_table ORDER BY a, b;
SELECT sum(diff) FROM reach_changes;

DROP TABLE sale, link CASCADE;
SELECT count(*) FROM pg_class WHERE relname LIKE '%\_table' AND relname <> 'taken_table' AND relnamespace <> 'pg_catalog'::regnamespace;
SELECT count(*) FROM eddy.view_mirrors;
DROP TABLE taken_table;
DROP SCHEMA elsewhere;
REVOKE CREATE ON SCHEMA public FROM eddy_mirrored;
DROP ROLE eddy_mirrored, eddy_reader;
