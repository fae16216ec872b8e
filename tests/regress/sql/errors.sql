-- Views that cannot be computed say so, and heal.
SET client_min_messages = warning;
CREATE TABLE t (id int PRIMARY KEY, num int, den int);
INSERT INTO t VALUES (1, 10, 2), (2, 9, 3);
CREATE INCREMENTAL VIEW ratio AS SELECT id, num / den AS ratio FROM t;
CREATE INCREMENTAL VIEW sound AS SELECT count(*) AS rows FROM t;
SELECT * FROM ratio ORDER BY id;
INSERT INTO t VALUES (3, 1, 0);
SELECT * FROM ratio ORDER BY id;
\echo :SQLSTATE
SELECT * FROM sound;
SELECT relation, state, sqlstate, message FROM eddy.views ORDER BY relation::text;
SET eddy.freshness = 'stale';
SELECT * FROM ratio ORDER BY id;
RESET eddy.freshness;
INSERT INTO t VALUES (4, 8, 2), (5, 1, 0);
DELETE FROM t WHERE id = 3;
SELECT * FROM ratio ORDER BY id;
\echo :SQLSTATE
UPDATE t SET den = 1 WHERE id = 5;
SELECT * FROM ratio ORDER BY id;
SELECT relation, state, sqlstate, message FROM eddy.views ORDER BY relation::text;
-- overflow of an operator, of a cast, of a sum
CREATE INCREMENTAL VIEW bigger AS SELECT num * 1000 AS n FROM t;
CREATE INCREMENTAL VIEW smaller AS SELECT num::smallint AS n FROM t;
CREATE TABLE big (n bigint);
CREATE INCREMENTAL VIEW minimum AS SELECT -n AS n FROM big;
UPDATE t SET num = 3000000 WHERE id = 1;
SELECT * FROM bigger ORDER BY n;
\echo :SQLSTATE
SELECT * FROM smaller ORDER BY n;
\echo :SQLSTATE
INSERT INTO big VALUES (-9223372036854775808);
SELECT * FROM minimum;
\echo :SQLSTATE
UPDATE t SET num = 30000 WHERE id = 1;
TRUNCATE big;
SELECT * FROM bigger ORDER BY n;
SELECT * FROM smaller ORDER BY n;
SELECT * FROM minimum;
-- text that is no number
CREATE TABLE w (word text);
CREATE INCREMENTAL VIEW numbers AS SELECT word::int AS n FROM w;
INSERT INTO w VALUES ('12'), ('x');
SELECT * FROM numbers ORDER BY n;
\echo :SQLSTATE
DELETE FROM w WHERE word = 'x';
SELECT * FROM numbers ORDER BY n;
-- an error inside a recursion, which ends all the same
CREATE TABLE edge (src int, dst int);
INSERT INTO edge VALUES (1, 2), (2, 1);
CREATE INCREMENTAL VIEW inverse AS
    WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT e.dst FROM r JOIN edge e ON e.src = r.n)
    SELECT n, 10 / (n - 3) AS q FROM r;
SELECT * FROM inverse ORDER BY n;
INSERT INTO edge VALUES (2, 3);
SELECT * FROM inverse ORDER BY n;
\echo :SQLSTATE
DELETE FROM edge WHERE dst = 3;
SELECT * FROM inverse ORDER BY n;
-- created WITH NO DATA over data that raise an error, and an error at creation
INSERT INTO t VALUES (6, 1, 0);
SET eddy.fill = 'query';
CREATE INCREMENTAL VIEW at_once AS SELECT num / den AS ratio FROM t;
\echo :SQLSTATE
RESET eddy.fill;
CREATE INCREMENTAL VIEW later AS SELECT id, num / den AS ratio FROM t WITH NO DATA;
SELECT * FROM later ORDER BY id;
\echo :SQLSTATE
DELETE FROM t WHERE id = 6;
SELECT * FROM later ORDER BY id;

-- a value that views do not know, when it comes and when it is there
CREATE CAST (bytea AS text) WITHOUT FUNCTION;
CREATE TABLE raw (id int PRIMARY KEY, t text);
CREATE INCREMENTAL VIEW texts AS SELECT id, t FROM raw;
INSERT INTO raw VALUES (1, 'a'), (2, '\xff'::bytea::text);
SELECT * FROM texts ORDER BY id;
\echo :SQLSTATE
REFRESH INCREMENTAL VIEW texts;
SELECT * FROM texts ORDER BY id;
UPDATE raw SET t = 'b' WHERE id = 2;
REFRESH INCREMENTAL VIEW texts;
SELECT * FROM texts ORDER BY id;
DROP TABLE raw CASCADE;
DROP CAST (bytea AS text);

-- a unique index of the user's that the query does not keep
CREATE INCREMENTAL VIEW dens AS SELECT den FROM t;
DELETE FROM t WHERE id IN (4, 5);
SELECT * FROM dens ORDER BY den;
CREATE UNIQUE INDEX ON dens (den);
INSERT INTO t VALUES (7, 1, 2);
SELECT * FROM dens ORDER BY den;
\echo :SQLSTATE
SELECT * FROM sound;
DELETE FROM t WHERE id = 7;
REFRESH INCREMENTAL VIEW dens;
SELECT * FROM dens ORDER BY den;
-- without the index that refuses them, the rows are written
INSERT INTO t VALUES (7, 1, 2);
SELECT * FROM dens ORDER BY den;
\echo :SQLSTATE
DROP INDEX dens_den_idx;
DO $$
BEGIN
    WHILE (SELECT state = 'error' FROM eddy.views WHERE relation = 'dens'::regclass) LOOP PERFORM pg_sleep(0.01); END LOOP;
END $$;
SELECT * FROM dens ORDER BY den;
DELETE FROM t WHERE id = 7;

-- recursion without end: over data, and over nothing
DROP INCREMENTAL VIEW inverse;
CREATE TABLE tick (start int);
CREATE INCREMENTAL VIEW endless AS
    WITH RECURSIVE r(n) AS (SELECT start FROM tick UNION ALL SELECT -n FROM r) SELECT n FROM r;
SELECT * FROM endless;
INSERT INTO tick VALUES (1);
SELECT * FROM endless;
\echo :SQLSTATE
SELECT * FROM sound;
SELECT relation, state, sqlstate FROM eddy.views WHERE relation = 'endless'::regclass;
SET eddy.freshness = 'stale';
SELECT * FROM endless;
RESET eddy.freshness;
-- a stopped dataflow is started again by REFRESH
TRUNCATE tick;
REFRESH INCREMENTAL VIEW endless;
SELECT * FROM endless;
DROP INCREMENTAL VIEW endless;
-- recursion that explodes; the next worker begins with the lower limit
ALTER SYSTEM SET eddy.memory_limit = '300MB';
ALTER SYSTEM SET eddy.spill_directory = '';
SELECT pg_reload_conf();
SELECT count(pg_terminate_backend(pid)) AS workers FROM pg_stat_activity
WHERE backend_type = 'pg_eddy worker' AND datname = current_database();
SELECT * FROM sound;
INSERT INTO edge SELECT i, j FROM generate_series(1, 10) i, generate_series(1, 10) j;
CREATE INCREMENTAL VIEW explosion AS
    WITH RECURSIVE r(n, path) AS (
        SELECT src, ARRAY[src] FROM edge
        UNION ALL
        SELECT e.dst, r.path || e.dst FROM r JOIN edge e ON e.src = r.n)
    SELECT n FROM r WITH NO DATA;
\set VERBOSITY sqlstate
SELECT count(*) FROM explosion;
\set VERBOSITY default
\echo :SQLSTATE
SELECT * FROM sound;
SELECT state, sqlstate, message ~ 'iteration \d+' AS iteration, message ~ '\d+ bytes' AS bytes
FROM eddy.views WHERE relation = 'explosion'::regclass;
DROP INCREMENTAL VIEW explosion;
-- walks without number, of which the dataflow keeps the multiplicities only
CREATE INCREMENTAL VIEW walks AS
    WITH RECURSIVE r(n) AS (
        SELECT src FROM edge UNION ALL SELECT e.dst FROM r JOIN edge e ON e.src = r.n)
    SELECT n FROM r WITH NO DATA;
\set VERBOSITY sqlstate
SELECT count(*) FROM walks;
\set VERBOSITY default
SELECT state, sqlstate, message ~ '^recursion was stopped at iteration \d+: \d+ copies of one row would take \d+ bytes$' AS message
FROM eddy.views WHERE relation = 'walks'::regclass;
DROP INCREMENTAL VIEW walks;
-- equal rows without number, which take no memory in the dataflow
CREATE TABLE side (i int);
CREATE INCREMENTAL VIEW cube AS SELECT 1 AS one FROM side a, side b, side c;
INSERT INTO side SELECT generate_series(1, 300);
\set VERBOSITY sqlstate
SELECT count(*) FROM cube;
\set VERBOSITY default
SELECT * FROM sound;
DELETE FROM side WHERE i > 2;
REFRESH INCREMENTAL VIEW cube;
SELECT count(*) FROM cube;
DROP TABLE side CASCADE;
ALTER SYSTEM RESET eddy.memory_limit;
ALTER SYSTEM RESET eddy.spill_directory;
SELECT pg_reload_conf();

-- one row in error under many subqueries is one error, however often what they share is used
CREATE TABLE item (id int, unit int);
CREATE TABLE bound (x int);
INSERT INTO item VALUES (1, 1), (2, 5);
INSERT INTO bound VALUES (1), (2);
CREATE INCREMENTAL VIEW marks AS
    SELECT id,
        EXISTS (SELECT FROM bound WHERE x = i.id) AS m1, EXISTS (SELECT FROM bound WHERE x = i.id + 1) AS m2,
        EXISTS (SELECT FROM bound WHERE x < i.id + 2) AS m3, EXISTS (SELECT FROM bound WHERE x < i.id + 3) AS m4,
        EXISTS (SELECT FROM bound WHERE x < i.id + 4) AS m5, EXISTS (SELECT FROM bound WHERE x < i.id + 5) AS m6,
        EXISTS (SELECT FROM bound WHERE x < i.id + 6) AS m7, EXISTS (SELECT FROM bound WHERE x < i.id + 7) AS m8,
        EXISTS (SELECT FROM bound WHERE x < i.id + 8) AS m9, EXISTS (SELECT FROM bound WHERE x < i.id + 9) AS m10,
        EXISTS (SELECT FROM bound WHERE x < i.id + 10) AS m11, EXISTS (SELECT FROM bound WHERE x > i.id) AS m12
    FROM (SELECT id FROM item WHERE 10 / unit > 0) i;
SELECT id, m1, m2, m12 FROM marks ORDER BY id;
INSERT INTO item VALUES (3, 0);
SELECT id, m1, m2, m12 FROM marks ORDER BY id;
DELETE FROM item WHERE unit = 0;
SELECT id, m1, m2, m12 FROM marks ORDER BY id;
DROP TABLE item, bound CASCADE;
-- what base tables and views refuse
INSERT INTO sound VALUES (1);
\echo :SQLSTATE
UPDATE sound SET rows = 1;
DELETE FROM sound;
TRUNCATE sound;
DROP TABLE t;
ALTER TABLE t DROP COLUMN den;
\echo :SQLSTATE
ALTER TABLE t ALTER COLUMN num TYPE bigint;
\echo :SQLSTATE
ALTER TABLE t DROP COLUMN den CASCADE;
SELECT relation FROM eddy.views ORDER BY relation::text;
INSERT INTO t VALUES (8, 8);
SELECT * FROM sound;
DROP TABLE t, big, w, edge, tick CASCADE;
SELECT count(*) FROM eddy.views;
SELECT count(*) FROM eddy.view_catalog;
