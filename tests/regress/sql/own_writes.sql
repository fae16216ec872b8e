-- Statements that cannot be shown the stored rows run the queries of the views
CREATE TABLE edge (src int, dst int);
INSERT INTO edge VALUES (1, 2), (2, 3), (3, 4);
CREATE INCREMENTAL VIEW reach AS
WITH RECURSIVE r(src, dst) AS (
    SELECT src, dst FROM edge
    UNION
    SELECT r.src, e.dst FROM r JOIN edge e ON r.dst = e.src
) SELECT src, dst FROM r;
CREATE INCREMENTAL VIEW counted AS SELECT src, count(*) AS n FROM reach GROUP BY src;
SELECT count(*) FROM reach;
-- A transaction sees its own changes
BEGIN;
SELECT count(*) FROM reach;
INSERT INTO edge VALUES (4, 5);
SELECT count(*) FROM reach;
SELECT src, n FROM counted ORDER BY src;
SELECT count(*) FROM reach JOIN counted USING (src);
SAVEPOINT before;
DELETE FROM edge WHERE src = 1;
SELECT count(*) FROM reach;
ROLLBACK TO before;
SELECT count(*) FROM reach;
UPDATE edge SET dst = 1 WHERE src = 4;
SELECT count(*) FROM reach;
TRUNCATE edge;
SELECT count(*), count(src) FROM reach;
ROLLBACK;
SELECT count(*) FROM reach;
-- What EXPLAIN shows
BEGIN;
EXPLAIN (COSTS OFF) SELECT src FROM reach WHERE dst = 4 AND src > 1;
INSERT INTO edge VALUES (9, 9);
EXPLAIN (COSTS OFF) SELECT src FROM reach WHERE dst = 4 AND src > 1;
EXPLAIN (COSTS OFF) SELECT n FROM counted;
SELECT src FROM reach WHERE dst = 4 AND src > 1 ORDER BY src;
ROLLBACK;
-- Settings
BEGIN;
INSERT INTO edge VALUES (4, 5);
SET LOCAL eddy.own_writes = 'stored';
SELECT count(*) FROM reach;
SET LOCAL eddy.own_writes = 'query';
SELECT count(*) FROM reach;
SET LOCAL eddy.freshness = 'stale';
SELECT count(*) FROM reach;
RESET eddy.freshness;
SET LOCAL eddy.own_writes = 'error';
SELECT count(*) FROM reach;
\echo :SQLSTATE
ROLLBACK;
SET eddy.own_writes = 'never';
-- Statements of every kind
CREATE TABLE copied (src int, dst int);
CREATE TABLE marked (src int PRIMARY KEY, n bigint);
INSERT INTO marked VALUES (1, 0), (2, 0), (4, 0);
BEGIN;
INSERT INTO edge VALUES (4, 5), (4, 5);
INSERT INTO copied SELECT src, dst FROM reach WHERE dst = 5;
SELECT src, dst FROM copied ORDER BY src;
UPDATE marked SET n = c.n FROM counted c WHERE c.src = marked.src RETURNING marked.src, marked.n;
DELETE FROM marked USING reach r WHERE r.src = marked.src AND r.dst = 5 AND r.src > 2;
SELECT src, n FROM marked ORDER BY src;
MERGE INTO marked m USING counted c ON c.src = m.src
    WHEN MATCHED THEN UPDATE SET n = c.n + 100 WHEN NOT MATCHED THEN INSERT VALUES (c.src, c.n);
SELECT src, n FROM marked ORDER BY src;
UPDATE edge SET dst = 6 FROM counted c WHERE c.src = edge.src AND edge.dst = 5;
SELECT src, dst FROM edge ORDER BY 1, 2;
SELECT m.src FROM marked m, counted c WHERE c.src = m.src ORDER BY 1 FOR UPDATE OF m;
WITH w AS (INSERT INTO edge VALUES (6, 7) RETURNING src) SELECT count(*) FROM reach, w;
SELECT count(*) FROM reach;
CREATE TEMP TABLE kept AS SELECT src, n FROM counted;
SELECT src, n FROM kept ORDER BY src;
DECLARE rows SCROLL CURSOR WITH HOLD FOR SELECT src, n FROM counted ORDER BY src;
FETCH 2 FROM rows;
FETCH BACKWARD 1 FROM rows;
COPY (SELECT src, n FROM counted ORDER BY src) TO STDOUT;
SELECT (SELECT n FROM counted c WHERE c.src = e.src) AS n, e.src FROM edge e ORDER BY 2, 1;
SELECT c.src, (c).n FROM counted c WHERE c IS NOT NULL ORDER BY 1;
SELECT r FROM reach r WHERE r.src = 4 ORDER BY r;
COMMIT;
FETCH ALL FROM rows;
CLOSE rows;
SELECT src, n FROM counted ORDER BY src;
-- Prepared statements and functions, whose plans are kept
PREPARE counts(int) AS SELECT n FROM counted WHERE src = $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE counts(1);
CREATE FUNCTION count_of(int) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT n FROM counted WHERE src = $1); END $$;
CREATE FUNCTION rows_of(int) RETURNS SETOF counted LANGUAGE sql STABLE AS 'SELECT * FROM counted WHERE src = $1';
SELECT count_of(1), (SELECT n FROM rows_of(1));
BEGIN;
DELETE FROM edge WHERE src = 4;
EXECUTE counts(1);
SELECT count_of(1), (SELECT n FROM rows_of(1));
SELECT * FROM rows_of(1);
ROLLBACK;
EXECUTE counts(1);
SELECT count_of(1), (SELECT n FROM rows_of(1));
RESET plan_cache_mode;
-- What computed rows have not
BEGIN;
DELETE FROM edge WHERE src = 4;
SAVEPOINT s;
SELECT ctid FROM counted;
ROLLBACK TO s;
SELECT tableoid FROM counted c;
ROLLBACK TO s;
SELECT src FROM counted TABLESAMPLE SYSTEM (100);
ROLLBACK TO s;
SELECT src FROM counted FOR UPDATE;
ROLLBACK;
-- A unique index of the stored rows says nothing of those that are computed
CREATE TABLE item (id int, name text);
INSERT INTO item VALUES (1, 'a'), (2, 'b');
CREATE INCREMENTAL VIEW items AS SELECT id, name FROM item;
CREATE UNIQUE INDEX ON items (id);
BEGIN;
INSERT INTO item VALUES (1, 'c');
SELECT a.id FROM item a LEFT JOIN items i ON i.id = a.id ORDER BY 1;
SELECT id, name FROM items WHERE id = 1 ORDER BY name;
ROLLBACK;
-- Errors are those of the query, and a transaction may mend them
CREATE TABLE divisor (d int);
INSERT INTO divisor VALUES (1);
CREATE INCREMENTAL VIEW quotients AS SELECT 10 / d AS q FROM divisor;
BEGIN;
INSERT INTO divisor VALUES (0);
SAVEPOINT s;
SELECT q FROM quotients;
ROLLBACK TO s;
DELETE FROM divisor WHERE d = 0;
SELECT q FROM quotients;
ROLLBACK;
INSERT INTO divisor VALUES (0);
SELECT q FROM quotients;
BEGIN;
DELETE FROM divisor WHERE d = 0;
SELECT q FROM quotients;
ROLLBACK;
-- A recursion without end is not run for ever
CREATE TABLE step (a int);
CREATE INCREMENTAL VIEW counting AS
WITH RECURSIVE c(n) AS (SELECT a FROM step UNION ALL SELECT n + 1 FROM c WHERE n > 0) SELECT n FROM c;
BEGIN;
INSERT INTO step VALUES (1);
SELECT count(*) FROM counting;
ROLLBACK;
-- The settings of the view count, and not those of the reader
CREATE TABLE moment (at timestamptz);
SET timezone = 'Asia/Tokyo';
CREATE INCREMENTAL VIEW days AS SELECT at::date AS day, at::text AS text FROM moment;
SET timezone = 'America/New_York';
BEGIN;
INSERT INTO moment VALUES ('2026-01-01 20:00+00');
SELECT day, text FROM days;
COMMIT;
SELECT day, text FROM days;
RESET timezone;
-- Functions of users run as the owner, for those who may act as the owner
CREATE ROLE own_writes_owner;
CREATE ROLE own_writes_reader;
GRANT CREATE ON SCHEMA public TO own_writes_owner;
SET ROLE own_writes_owner;
CREATE TABLE owned (a int);
GRANT INSERT ON owned TO own_writes_reader;
CREATE FUNCTION whoami(int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN current_user || $1; END $$;
CREATE INCREMENTAL VIEW names AS SELECT whoami(a) AS name FROM owned;
CREATE INCREMENTAL VIEW plain AS SELECT a + 1 AS b, a AS secret FROM owned;
GRANT SELECT ON names TO own_writes_reader;
GRANT SELECT (b) ON plain TO own_writes_reader;
SET ROLE own_writes_reader;
BEGIN;
INSERT INTO owned VALUES (1);
SAVEPOINT s;
SELECT b FROM plain;
SELECT secret FROM plain;
ROLLBACK TO s;
SELECT a FROM owned;
ROLLBACK TO s;
SELECT name FROM names;
ROLLBACK;
RESET ROLE;
BEGIN;
INSERT INTO owned VALUES (1);
SELECT name FROM names;
ROLLBACK;
DROP TABLE owned CASCADE;
DROP FUNCTION whoami(int);
REVOKE CREATE ON SCHEMA public FROM own_writes_owner;
DROP ROLE own_writes_owner, own_writes_reader;
-- A view of this very transaction
BEGIN;
CREATE TABLE fresh (a int);
INSERT INTO fresh VALUES (1);
CREATE INCREMENTAL VIEW news AS SELECT a FROM fresh;
SELECT a FROM news;
INSERT INTO fresh VALUES (2);
SELECT a FROM news ORDER BY a;
COMMIT;
SELECT a FROM news ORDER BY a;
-- Views that are not current are waited for, or their queries run
SET eddy.fallback = 'query';
INSERT INTO fresh VALUES (3);
SELECT a FROM news ORDER BY a;
SET eddy.fallback = 'sometimes';
RESET eddy.fallback;
CREATE INCREMENTAL VIEW eager WITH (fallback = query, timezone = 'UTC') AS SELECT a FROM fresh;
SELECT fallback, settings ->> 'TimeZone' AS zone FROM eddy.views WHERE relation = 'eager'::regclass;
INSERT INTO fresh VALUES (0);
SELECT a FROM eager ORDER BY a;
ALTER INCREMENTAL VIEW eager SET (fallback = 'sometimes');
ALTER INCREMENTAL VIEW eager SET (fallback = 'error');
SELECT fallback FROM eddy.views WHERE relation = 'eager'::regclass;
ALTER INCREMENTAL VIEW eager RESET (fallback);
SELECT fallback, settings ->> 'TimeZone' AS zone FROM eddy.views WHERE relation = 'eager'::regclass;
DELETE FROM fresh WHERE a = 0;
SELECT a FROM eager ORDER BY a;
-- Serializable and repeatable read
BEGIN ISOLATION LEVEL SERIALIZABLE;
INSERT INTO fresh VALUES (4);
SELECT a FROM news ORDER BY a;
COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM fresh;
DELETE FROM fresh WHERE a = 4;
SELECT a FROM news ORDER BY a;
COMMIT;
SELECT a FROM news ORDER BY a;
DROP TABLE fresh, moment, step, divisor, item, marked, copied, edge CASCADE;
