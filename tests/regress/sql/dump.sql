-- A plain dump, restored by psql into a new database, gives incremental views again. (tests/src/server/dumps.rs has the other forms.)
\set VERBOSITY terse
CREATE SCHEMA "Dump me";
SET search_path = "Dump me";
CREATE TABLE edges (src int, dst int);
INSERT INTO edges VALUES (1, 2), (2, 3), (3, 1), (4, 5);
CREATE INCREMENTAL VIEW reach AS
WITH RECURSIVE r(a, b) AS (
    SELECT src, dst FROM edges UNION SELECT r.a, e.dst FROM r JOIN edges e ON e.src = r.b
)
SELECT a, b FROM r;
CREATE UNIQUE INDEX ON reach (a, b);
CREATE INCREMENTAL VIEW "Counts" AS SELECT a, count(*) AS n FROM reach GROUP BY a;
CREATE MATERIALIZED VIEW plain AS SELECT a FROM reach;
-- on this cycle its query has no end: restoring must not run it
CREATE INCREMENTAL VIEW nearest AS
WITH RECURSIVE d(node, dist) AS (
    SELECT 1, 0 UNION SELECT e.dst, d.dist + 1 FROM d JOIN edges e ON e.src = d.node
)
SELECT node, min(dist) AS dist FROM d GROUP BY node;
CREATE MATERIALIZED VIEW over_nearest AS SELECT max(dist) AS dist FROM nearest;
SELECT relation FROM eddy.view_catalog ORDER BY relation::text;
RESET search_path;
CREATE DATABASE eddy_restored ENCODING 'UTF8' TEMPLATE template0;
\! pg_dump eddy_regress | psql -X -q -v ON_ERROR_STOP=1 eddy_restored > /dev/null
\c eddy_restored
SET search_path = "Dump me";
SELECT relation, definition FROM eddy.view_catalog ORDER BY relation::text;
SELECT a, n FROM "Counts" ORDER BY a;
DELETE FROM edges WHERE src = 3;
INSERT INTO edges VALUES (5, 6);
SELECT a, n FROM "Counts" ORDER BY a;
SELECT missing, surplus FROM eddy.verify_view('reach');
SELECT a FROM plain ORDER BY a;
SELECT node, dist FROM nearest ORDER BY node;
SELECT dist FROM over_nearest;
\c eddy_regress
DROP DATABASE eddy_restored;
SET client_min_messages = warning;
DROP SCHEMA "Dump me" CASCADE;
SELECT count(*) FROM eddy.view_catalog;
