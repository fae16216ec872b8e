-- INCREMENTAL is a second spelling of MATERIALIZED in VIEW statements and an ordinary word elsewhere.
\set VERBOSITY terse
CREATE TABLE t (a int, b int, incremental int DEFAULT 7);
INSERT INTO t VALUES (1, 2);

-- Statements and their tags
\set QUIET off
CREATE INCREMENTAL VIEW v1 AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r;
create /*x /* nested */ */ Incremental -- y
  View v2 (x, y) as select a, incremental from t;
CREATE INCREMENTAL VIEW IF NOT EXISTS v1 AS SELECT a FROM t;
CREATE INCREMENTAL VIEW v1 AS SELECT a FROM t;
CREATE MATERIALIZED VIEW v3 AS SELECT incremental, 'CREATE INCREMENTAL VIEW' AS s, $$drop incremental view$$ AS d FROM t;
CREATE MATERIALIZED VIEW v4 WITH (incremental) AS SELECT a FROM t;
CREATE MATERIALIZED VIEW v5 WITH (incremental = true, fillfactor = 70) AS SELECT a FROM t WITH NO DATA;
CREATE MATERIALIZED VIEW v6 WITH (incremental = off) AS SELECT a FROM t;
CREATE INCREMENTAL VIEW v7 WITH (fillfactor = 50) AS SELECT a FROM t WITH DATA;
ALTER INCREMENTAL VIEW v5 RENAME TO v8;
ALTER INCREMENTAL VIEW v8 RENAME COLUMN a TO aa;
ALTER INCREMENTAL VIEW v8 SET (fillfactor = 80);
COMMENT ON INCREMENTAL VIEW v8 IS 'hi';
REFRESH INCREMENTAL VIEW v8;
DROP INCREMENTAL VIEW v8, v7;
DROP INCREMENTAL VIEW IF EXISTS v8;
DROP MATERIALIZED VIEW v4;
\set QUIET on
SELECT relation, definition FROM eddy.view_catalog ORDER BY relation::text;
\d v2

-- Statements for incremental views do not take others
ALTER INCREMENTAL VIEW v6 RENAME TO v9;
ALTER INCREMENTAL VIEW v6 RENAME COLUMN a TO b;
COMMENT ON INCREMENTAL VIEW v6 IS 'hi';
REFRESH INCREMENTAL VIEW v6;
DROP INCREMENTAL VIEW v6;
DROP INCREMENTAL VIEW t;
REFRESH INCREMENTAL VIEW t;
ALTER INCREMENTAL VIEW missing RENAME TO v9;
REFRESH INCREMENTAL VIEW CONCURRENTLY v2;
REFRESH INCREMENTAL VIEW CONCURRENTLY v2;

-- Errors point into the text as written
\set VERBOSITY default
CREATE INCREMENTAL VIEW bad AS SELECT nocol FROM t;
CREATE INCREMENTAL VIEW bad AS SELEC 1;
CREATE INCREMENTAL TABLE bad AS SELECT 1;
CREATE INCREMENTAL bad AS SELECT 1;
CREATE TEMP INCREMENTAL VIEW bad AS SELECT a FROM t;
CREATE UNLOGGED INCREMENTAL VIEW bad AS SELECT a FROM t;
CREATE INCREMENTAL VIEW pg_temp.bad AS SELECT a FROM t;
CREATE INCREMENTAL VIEW bad WITH (nonsense) AS SELECT a FROM t;
CREATE INCREMENTAL VIEW bad WITH (incremental = off) AS SELECT a FROM t;
CREATE MATERIALIZED VIEW bad WITH (incremental = 5) AS SELECT a FROM t;
SELECT 1/0 AS x, nocol FROM t;
\set VERBOSITY terse

-- Several statements in one string, transaction blocks, errors that forget the tag
\set QUIET off
SELECT 1 AS one \; CREATE INCREMENTAL VIEW m1 AS SELECT a FROM t \; /* c */ CREATE MATERIALIZED VIEW m2 AS SELECT a FROM t;
DROP INCREMENTAL VIEW m1 \; DROP MATERIALIZED VIEW m2;
CREATE INCREMENTAL VIEW m3 AS SELECT a FROM missing;
CREATE MATERIALIZED VIEW m4 WITH NO DATA AS SELECT a FROM t;
CREATE MATERIALIZED VIEW m4 AS SELECT a FROM t WITH NO DATA;
BEGIN;
CREATE INCREMENTAL VIEW m5 AS SELECT a FROM t;
SELECT count(*) FROM eddy.view_catalog WHERE relation = 'm5'::regclass;
ROLLBACK;
DROP MATERIALIZED VIEW m4;
\set QUIET on
SELECT count(*) FROM pg_class WHERE relname LIKE 'm_';

-- The extended protocol, twice with the same prepared statement
\! echo 'CREATE INCREMENTAL VIEW x1 AS SELECT a FROM t; REFRESH INCREMENTAL VIEW x1; DROP INCREMENTAL VIEW x1;' | pgbench -n -M extended -t 2 -f - eddy_regress 2>&1 | grep actually
\! echo 'CREATE INCREMENTAL VIEW x1 AS SELECT a FROM t; REFRESH INCREMENTAL VIEW x1; DROP INCREMENTAL VIEW x1;' | pgbench -n -M prepared -t 2 -f - eddy_regress 2>&1 | grep actually

-- Functions and DO
DO $$ BEGIN EXECUTE 'create incremental view p1 as select a from t'; END $$;
DO $$ BEGIN CREATE INCREMENTAL VIEW p2 AS SELECT a FROM t; END $$;
CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$
DECLARE incremental int := 5;
BEGIN
    incremental := incremental + 1;
    RAISE NOTICE 'incremental=%', incremental;
    DROP INCREMENTAL VIEW IF EXISTS p3;
    CREATE INCREMENTAL VIEW p3 AS SELECT a FROM t;
END $$;
SELECT f();
SELECT f();
\set VERBOSITY default
DO $$ BEGIN CREATE INCREMENTAL VIEW p4 AS SELECT now() FROM t; END $$;
\set VERBOSITY terse
SELECT relation FROM eddy.view_catalog WHERE relation::text LIKE 'p_' ORDER BY relation::text;
DROP INCREMENTAL VIEW p1, p2, p3;

-- An ordinary identifier
SELECT incremental, t.incremental AS Incremental, incremental + 1 incremental FROM t;
CREATE TABLE incremental (incremental int);
INSERT INTO incremental (incremental) VALUES (3) RETURNING incremental;
SELECT incremental.incremental FROM incremental;
CREATE FUNCTION incremental(incremental int) RETURNS int LANGUAGE sql AS 'SELECT $1 + 1';
SELECT incremental(1), incremental(incremental => 4);
CREATE TYPE "Incremental" AS (incremental int);
CREATE VIEW ivw AS SELECT incremental FROM incremental;
SELECT pg_get_viewdef('ivw');
SELECT quote_ident('incremental'), quote_ident('materialized'), quote_ident('select');
SELECT word, catcode FROM pg_get_keywords() WHERE word IN ('materialized', 'incremental');
PREPARE p AS SELECT incremental FROM t WHERE incremental = $1;
EXECUTE p(7);
WITH x AS MATERIALIZED (SELECT 1 AS one) SELECT one FROM x;
WITH incremental AS (SELECT 1 AS incremental) SELECT incremental FROM incremental;
SELECT 'x' AS materialized, 1 AS incremental;

DROP VIEW ivw;
DROP TYPE "Incremental";
DROP FUNCTION incremental(int);
DROP FUNCTION f();
DROP TABLE incremental;
DROP MATERIALIZED VIEW v6, v3;
DROP INCREMENTAL VIEW v1, v2;
SELECT count(*) FROM eddy.view_catalog;
DROP TABLE t;
