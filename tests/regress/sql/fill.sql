-- What fills a view that is created: its query, or its dataflow.
SET client_min_messages = warning;
CREATE TABLE t (id int PRIMARY KEY, num int, den int);
INSERT INTO t VALUES (1, 10, 2), (2, 9, 3);
-- its dataflow: the first read waits for it
SET eddy.fill = 'dataflow';
CREATE INCREMENTAL VIEW ratio AS SELECT id, num / den AS ratio FROM t;
SELECT * FROM ratio ORDER BY id;
SELECT relispopulated FROM pg_class WHERE relname = 'ratio';
SELECT missing, surplus FROM eddy.verify_view('ratio');
CREATE INCREMENTAL VIEW IF NOT EXISTS ratio AS SELECT id FROM t;
CREATE UNIQUE INDEX ON ratio (id);
INSERT INTO t VALUES (3, 8, 2);
SELECT * FROM ratio ORDER BY id;
-- also a view without rows, and one that is computed without tables
CREATE INCREMENTAL VIEW none AS SELECT id FROM t WHERE num < 0;
SELECT * FROM none;
CREATE INCREMENTAL VIEW one AS SELECT 1 AS one;
SELECT * FROM one;
-- what looks at all rows waits for them
CREATE INCREMENTAL VIEW signs AS SELECT num > 0 AS is_positive FROM t;
CREATE UNIQUE INDEX ON signs (is_positive);
CREATE INCREMENTAL VIEW known AS SELECT id FROM t;
ANALYZE known;
SELECT reltuples FROM pg_class WHERE relname = 'known';
CREATE INCREMENTAL VIEW known_too AS SELECT id FROM t;
VACUUM (ANALYZE) known_too, t;
SELECT reltuples FROM pg_class WHERE relname = 'known_too';
-- also in a transaction that begins later, and not in that which creates it
CREATE INCREMENTAL VIEW indexed AS SELECT num > 0 AS is_positive FROM t;
BEGIN;
CREATE UNIQUE INDEX ON indexed (is_positive);
ROLLBACK;
SET eddy.fill = 'dataflow';
BEGIN;
CREATE INCREMENTAL VIEW empty AS SELECT num > 0 AS is_positive FROM t;
CREATE INDEX ON empty (is_positive);
COMMIT;
SELECT * FROM empty;
-- within the transaction it has no rows yet, and is computed
BEGIN;
CREATE INCREMENTAL VIEW later AS SELECT id FROM t;
SELECT * FROM later;
ROLLBACK;
-- its dataflow, where the transaction ends with the statement; otherwise its query
SET eddy.fill = 'auto';
CREATE INCREMENTAL VIEW a AS SELECT count(*) AS n FROM t;
SELECT * FROM a;
BEGIN;
CREATE INCREMENTAL VIEW b AS SELECT sum(num) AS n FROM t;
SELECT relispopulated FROM pg_class WHERE relname = 'b';
SELECT * FROM b;
COMMIT;
SELECT * FROM b;
DO $$
BEGIN
    CREATE INCREMENTAL VIEW c AS SELECT max(num) AS n FROM t;
    IF (SELECT n FROM c) IS DISTINCT FROM 10 THEN RAISE 'not filled'; END IF;
END $$;
SELECT * FROM c;
CREATE INCREMENTAL VIEW d AS SELECT min(num) AS n FROM t\; SELECT * FROM d;
-- a session that does not wait for views does so until there is something to be shown
SET eddy.freshness = 'stale';
CREATE INCREMENTAL VIEW e AS SELECT min(den) AS n FROM t;
SELECT * FROM e;
RESET eddy.freshness;
-- an error of the query is the view's where the dataflow runs it, and the statement's where the query is run
INSERT INTO t VALUES (4, 1, 0);
CREATE INCREMENTAL VIEW broken AS SELECT id, den / num AS ratio, num / den AS more FROM t;
SELECT * FROM broken ORDER BY id;
\echo :SQLSTATE
BEGIN;
CREATE INCREMENTAL VIEW broken_too AS SELECT id, num / den AS ratio FROM t;
\echo :SQLSTATE
ROLLBACK;
SET eddy.fill = 'query';
CREATE INCREMENTAL VIEW broken_too AS SELECT id, num / den AS ratio FROM t;
\echo :SQLSTATE
DELETE FROM t WHERE den = 0;
SELECT * FROM broken ORDER BY id;
CREATE INCREMENTAL VIEW f AS SELECT id, num FROM t;
SELECT relispopulated FROM pg_class WHERE relname = 'f';
SELECT * FROM f ORDER BY id;
-- where its rows would not be what a statement has to see, a view that is not filled yet is computed
SET eddy.fill = 'dataflow';
CREATE MATERIALIZED VIEW plain AS SELECT 1 AS id WITH NO DATA;
CREATE INCREMENTAL VIEW g AS SELECT id, num + den AS sum FROM t;
BEGIN;
UPDATE t SET num = 100 WHERE id = 1;
SELECT * FROM g ORDER BY id;
-- but not one that is no incremental view; which of both is named depends on how far the worker is
\set VERBOSITY sqlstate
SELECT * FROM g JOIN plain USING (id);
\set VERBOSITY default
ROLLBACK;
CREATE INCREMENTAL VIEW h AS SELECT id, sum + 1 AS sum FROM g;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM t;
SELECT * FROM h ORDER BY id;
COMMIT;
CREATE INCREMENTAL VIEW i AS SELECT count(*) AS rows FROM h;
SET eddy.fallback = 'query';
SELECT * FROM i;
RESET eddy.fallback;
DROP MATERIALIZED VIEW plain;
SET eddy.fill = 'never';
DROP TABLE t CASCADE;
DROP INCREMENTAL VIEW one;
