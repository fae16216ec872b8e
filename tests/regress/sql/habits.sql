-- What tools do that know plain materialized views only.
SET client_min_messages = notice;
CREATE SCHEMA habits;
SET search_path = habits, public;
CREATE TABLE stock (id int PRIMARY KEY, kind int, "Odd Name" text);
ALTER TABLE stock REPLICA IDENTITY FULL;
INSERT INTO stock SELECT g, g % 3, 'x' FROM generate_series(1, 10) g;
-- they cannot say that a view is to be incremental
SET eddy.materialized_views = incremental;
CREATE MATERIALIZED VIEW v AS SELECT kind, count(*) AS n, max("Odd Name") AS "Odd Name" FROM stock GROUP BY kind;
TABLE v ORDER BY kind;
CREATE MATERIALIZED VIEW p WITH (incremental = false) AS SELECT 1 AS one;
CREATE MATERIALIZED VIEW r AS SELECT random();
EXPLAIN (COSTS OFF) CREATE MATERIALIZED VIEW e AS SELECT kind FROM stock;
SET eddy.materialized_views = incremental_or_plain;
CREATE MATERIALIZED VIEW r AS SELECT random() < 2 AS always;
CREATE MATERIALIZED VIEW i WITH (fillfactor = 70) AS SELECT id FROM stock;
EXPLAIN (COSTS OFF) CREATE MATERIALIZED VIEW e AS SELECT random() < 2 AS always;
EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF) CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1;
CREATE MATERIALIZED VIEW e WITH (changes = '1 day') AS SELECT random();
CREATE MATERIALIZED VIEW z WITH (timezone = 'UTC') AS SELECT 1 AS one;
SELECT relname, (SELECT count(*) FROM eddy.views WHERE relation = c.oid) AS incremental
FROM pg_class c WHERE relkind = 'm' AND relnamespace = 'habits'::regnamespace ORDER BY relname;
CREATE MATERIALIZED VIEW v AS SELECT 1;
CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1;
SET eddy.materialized_views = always;
RESET eddy.materialized_views;
CREATE MATERIALIZED VIEW q AS SELECT 1 AS one;
SELECT count(*) FROM eddy.views WHERE relation = 'q'::regclass;
-- they refresh
INSERT INTO stock VALUES (11, 1, 'y');
SELECT pg_relation_filenode('v') AS file \gset
REFRESH MATERIALIZED VIEW v;
REFRESH MATERIALIZED VIEW CONCURRENTLY v;
SELECT pg_relation_filenode('v') = :file AS same_file;
SET eddy.freshness = stale;
INSERT INTO stock VALUES (12, 1, 'z');
REFRESH MATERIALIZED VIEW v;
TABLE v ORDER BY kind;
RESET eddy.freshness;
BEGIN;
INSERT INTO stock VALUES (13, 1, 'zz');
REFRESH MATERIALIZED VIEW v;
TABLE v ORDER BY kind;
COMMIT;
BEGIN;
REFRESH INCREMENTAL VIEW v;
REFRESH MATERIALIZED VIEW CONCURRENTLY v;
COMMIT;
-- so that the worker waits for this session, and the session not for it
BEGIN;
LOCK TABLE stock;
INSERT INTO stock VALUES (14, 1, 'zz');
REFRESH MATERIALIZED VIEW v;
COMMIT;
-- a view that serves goes on doing so
SELECT count(*) FROM v;
REFRESH INCREMENTAL VIEW v;
SELECT pg_relation_filenode('v') = :file AS same_file;
REFRESH MATERIALIZED VIEW r;
REFRESH MATERIALIZED VIEW v WITH NO DATA;
REFRESH MATERIALIZED VIEW v;
TABLE v ORDER BY kind;
CREATE ROLE eddy_habit;
GRANT USAGE ON SCHEMA habits TO eddy_habit;
SET ROLE eddy_habit;
\set VERBOSITY sqlstate
REFRESH MATERIALIZED VIEW v;
REFRESH MATERIALIZED VIEW CONCURRENTLY v;
\set VERBOSITY default
RESET ROLE;
-- a view in error is filled anew
CREATE INCREMENTAL VIEW bad AS SELECT 1 / (kind - 1) AS x FROM stock WHERE id > 100;
SELECT count(*) FROM bad;
INSERT INTO stock VALUES (101, 1, '');
REFRESH MATERIALIZED VIEW bad;
REFRESH MATERIALIZED VIEW CONCURRENTLY bad;
DELETE FROM stock WHERE id = 101;
REFRESH MATERIALIZED VIEW bad;
SELECT count(*) FROM bad;
-- they copy
INSERT INTO stock VALUES (15, 2, 'Q');
COPY v TO STDOUT;
COPY v (n, "Odd Name") TO STDOUT WITH (FORMAT csv, HEADER, FORCE_QUOTE ("Odd Name"));
COPY v (nothing) TO STDOUT;
COPY v (v) TO STDOUT;
COPY stock ("Odd Name") TO STDOUT;
BEGIN;
TRUNCATE stock;
COPY v TO STDOUT;
ROLLBACK;
SET ROLE eddy_habit;
COPY v TO STDOUT;
RESET ROLE;
COPY v FROM STDIN;
\.
SET client_min_messages = warning;
DROP SCHEMA habits CASCADE;
DROP ROLE eddy_habit;
