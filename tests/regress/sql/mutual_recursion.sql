-- eddy.recursive('name') refers to any query of WITH RECURSIVE: relations that are defined by one another.
SET client_min_messages = warning;
CREATE TABLE edge (src int, dst int);
INSERT INTO edge VALUES (1, 2), (2, 3), (3, 1), (3, 4), (4, 5);
-- walks of even and of odd length
EXPLAIN CREATE INCREMENTAL VIEW walks AS
    WITH RECURSIVE even(a, b) AS (
        SELECT src, src FROM edge
        UNION
        SELECT o.a, e.dst FROM eddy.recursive('odd') AS o(a int, b int) JOIN edge e ON e.src = o.b
    ), odd(a, b) AS (
        SELECT DISTINCT v.a, e.dst FROM even v JOIN edge e ON e.src = v.b
    )
    SELECT 'even' AS length, a, b FROM even UNION ALL SELECT 'odd', a, b FROM odd;
CREATE INCREMENTAL VIEW walks AS
    WITH RECURSIVE even(a, b) AS (
        SELECT src, src FROM edge
        UNION
        SELECT o.a, e.dst FROM eddy.recursive('odd') AS o(a int, b int) JOIN edge e ON e.src = o.b
    ), odd(a, b) AS (
        SELECT DISTINCT v.a, e.dst FROM even v JOIN edge e ON e.src = v.b
    )
    SELECT 'even' AS length, a, b FROM even UNION ALL SELECT 'odd', a, b FROM odd;
-- the same in PostgreSQL's own terms
CREATE VIEW expected AS
    WITH RECURSIVE walk(a, b, parity) AS (
        SELECT src, src, 0 FROM edge
        UNION
        SELECT w.a, e.dst, 1 - w.parity FROM walk w JOIN edge e ON e.src = w.b
    )
    SELECT CASE parity WHEN 0 THEN 'even' ELSE 'odd' END AS length, a, b FROM walk;
CREATE FUNCTION differences() RETURNS bigint LANGUAGE sql AS $$
    SELECT count(*) FROM ((TABLE walks EXCEPT ALL TABLE expected) UNION ALL (TABLE expected EXCEPT ALL TABLE walks)) d $$;
SELECT * FROM walks WHERE a = 4 ORDER BY length, b;
SELECT count(*), differences() FROM walks;
-- a way of the other parity comes, ways go, a cycle is cut
INSERT INTO edge VALUES (5, 3), (5, 3);
SELECT count(*), differences() FROM walks;
DELETE FROM edge WHERE src = 5;
SELECT count(*), differences() FROM walks;
UPDATE edge SET dst = 2 WHERE src = 3 AND dst = 1;
SELECT count(*), differences() FROM walks;
DELETE FROM edge;
SELECT count(*), differences() FROM walks;
INSERT INTO edge VALUES (1, 2), (2, 3), (3, 1), (3, 4), (4, 5), (NULL, 1), (1, NULL);
SELECT count(*), differences() FROM walks;
-- a recursion that refers to itself twice
CREATE INCREMENTAL VIEW reach AS
    WITH RECURSIVE r(a, b) AS (
        SELECT src, dst FROM edge
        UNION
        SELECT x.a, y.b FROM r x JOIN eddy.recursive('r') AS y(a int, b int) ON y.a = x.b
    )
    SELECT a, b FROM r;
SELECT a, array_agg(b ORDER BY b) FROM reach GROUP BY a ORDER BY a;
DELETE FROM edge WHERE src = 2;
SELECT a, array_agg(b ORDER BY b) FROM reach GROUP BY a ORDER BY a;
-- words of brackets: a grammar, of values whose equal ones may differ in form
CREATE TABLE token (place numeric, mark text);
INSERT INTO token SELECT i, substr('(()[])]', i, 1) FROM generate_series(1, 7) i;
CREATE INCREMENTAL VIEW balanced AS
    WITH RECURSIVE word(start, stop) AS (
        SELECT place, place FROM token
        UNION
        SELECT x.start, y.stop
            FROM eddy.recursive('word') AS x(start numeric, stop numeric), eddy.recursive('word') AS y(start numeric, stop numeric)
            WHERE y.start = x.stop
        UNION
        SELECT o.place, c.place + 1 FROM token o, eddy.recursive('word') AS x(start numeric, stop numeric), token c
            WHERE (o.mark, c.mark) IN (('(', ')'), ('[', ']')) AND x.start = o.place + 1 AND c.place = x.stop
    )
    SELECT start, stop - start AS length FROM word WHERE stop > start;
SELECT * FROM balanced ORDER BY start, length;
UPDATE token SET mark = '(' WHERE place = 4;
SELECT * FROM balanced ORDER BY start, length;
UPDATE token SET mark = ')', place = 5.00 WHERE place = 5;
SELECT * FROM balanced ORDER BY start, length;
-- a forward reference that closes no circle is just that
CREATE INCREMENTAL VIEW forward AS
    WITH RECURSIVE counted(n) AS (SELECT count(*) FROM eddy.recursive('later') AS l(src int)),
        later AS (SELECT src FROM edge WHERE src IS NOT NULL)
    SELECT n FROM counted;
SELECT n FROM forward;
-- definition, dump and restore
SELECT definition LIKE '%eddy.recursive(''r''::text) y(a integer, b integer)%' AS refers FROM eddy.view_catalog WHERE relation = 'reach'::regclass;
CREATE DATABASE eddy_restored ENCODING 'UTF8' TEMPLATE template0;
\! pg_dump eddy_regress | psql -X -q -v ON_ERROR_STOP=1 eddy_restored > /dev/null
\c eddy_restored
SET client_min_messages = warning;
SELECT count(*), differences() FROM walks;
INSERT INTO edge VALUES (2, 3);
SELECT count(*), differences() FROM walks;
SELECT * FROM balanced ORDER BY start, length LIMIT 3;
\c eddy_regress
DROP DATABASE eddy_restored;
SET client_min_messages = warning;
-- what only the dataflow has PostgreSQL cannot compute: neither beside own changes, nor to compare
REFRESH INCREMENTAL VIEW reach;
SELECT count(*) FROM reach;
BEGIN;
INSERT INTO edge VALUES (2, 3);
SELECT count(*) FROM reach;
ROLLBACK;
CREATE INCREMENTAL VIEW above_reach AS SELECT count(*) AS n FROM reach;
BEGIN;
INSERT INTO edge VALUES (2, 3);
SAVEPOINT written;
EXPLAIN SELECT a FROM reach;
\echo :SQLSTATE
ROLLBACK TO written;
EXPLAIN SELECT n FROM above_reach;
\echo :SQLSTATE
ROLLBACK;
EXPLAIN (COSTS OFF) SELECT n FROM above_reach;
DROP INCREMENTAL VIEW above_reach;
SET eddy.own_writes = 'stored';
BEGIN;
INSERT INTO edge VALUES (2, 3);
SELECT count(*) FROM reach;
ROLLBACK;
RESET eddy.own_writes;
CREATE ROLE mutual_reader;
GRANT SELECT, INSERT ON edge TO mutual_reader;
GRANT SELECT ON reach TO mutual_reader;
SET ROLE mutual_reader;
SELECT count(*) FROM reach;
BEGIN;
INSERT INTO edge VALUES (2, 3);
SELECT count(*) FROM reach;
ROLLBACK;
RESET ROLE;
DROP OWNED BY mutual_reader;
DROP ROLE mutual_reader;
SELECT count(*) FROM reach;
SELECT * FROM eddy.verify_view('reach');
CREATE VIEW plain_reach AS
    WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT e.dst FROM edge e, eddy.recursive('r') AS r(n int) WHERE e.src = r.n) SELECT n FROM r;
CREATE INCREMENTAL VIEW over_plain AS SELECT n FROM plain_reach;
SELECT * FROM over_plain ORDER BY n;
SELECT * FROM eddy.verify_view('over_plain');
-- a plain view beneath is replaced by what is no recursion: an error that lasts, whatever others do, until it is put right
CREATE OR REPLACE VIEW plain_reach AS
    WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT e.dst FROM edge e WHERE NOT EXISTS (SELECT FROM eddy.recursive('r') AS r(n int) WHERE e.src = r.n)) SELECT n FROM r;
SELECT n FROM over_plain;
\echo :SQLSTATE
CREATE TABLE seen (state text, sqlstate text, message text, hint text);
DO $$
BEGIN
    FOR i IN 1..100 LOOP
        CREATE TABLE passing ();
        DROP TABLE passing;
        COMMIT;
        INSERT INTO seen SELECT state, sqlstate, message, hint FROM eddy.views WHERE relation = 'over_plain'::regclass;
        INSERT INTO seen SELECT state, sqlstate, message, hint FROM eddy.view_states WHERE relation = 'over_plain'::regclass;
        -- the worker has come to all that
        PERFORM count(*) FROM walks;
    END LOOP;
END $$;
SELECT DISTINCT state, sqlstate, message, hint FROM seen;
SELECT n FROM over_plain;
\echo :SQLSTATE
CREATE OR REPLACE VIEW plain_reach AS
    WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT e.dst FROM edge e, eddy.recursive('r') AS r(n int) WHERE e.src = r.n) SELECT n FROM r;
SELECT * FROM over_plain ORDER BY n;
SELECT state FROM eddy.views WHERE relation = 'over_plain'::regclass;
DROP TABLE seen;
SELECT * FROM eddy.recursive('r') AS r(a int);
-- such views depend on the function, and so on the extension
\set VERBOSITY terse
DROP EXTENSION pg_eddy;
\set VERBOSITY default
-- what is not a least fixpoint, or refers to nothing, is refused
CREATE INCREMENTAL VIEW refused AS
    WITH RECURSIVE win(n) AS (
        SELECT src FROM edge e WHERE NOT EXISTS (SELECT FROM eddy.recursive('win') AS w(n int) WHERE w.n = e.dst)
        UNION SELECT NULL)
    SELECT n FROM win;
CREATE INCREMENTAL VIEW refused AS
    WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT count(*)::int FROM eddy.recursive('r') AS r(n int)) SELECT n FROM r;
CREATE INCREMENTAL VIEW refused AS
    WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM eddy.recursive('r') AS r(n int)) SELECT n FROM r;
CREATE INCREMENTAL VIEW refused AS
    WITH RECURSIVE r(n) AS (SELECT src FROM edge UNION SELECT n FROM eddy.recursive('r') AS r(n int, m int)) SELECT n FROM r;
CREATE INCREMENTAL VIEW refused AS
    WITH RECURSIVE r(n) AS (SELECT src FROM edge UNION SELECT n FROM eddy.recursive('q') AS r(n int)) SELECT n FROM r;
CREATE INCREMENTAL VIEW refused AS
    WITH q(n) AS (SELECT src FROM edge) SELECT r.n FROM q, eddy.recursive('q') AS r(n int);
CREATE INCREMENTAL VIEW refused AS
    WITH RECURSIVE r(n) AS (SELECT src FROM edge UNION SELECT n FROM edge, eddy.recursive(dst::text) AS r(n int)) SELECT n FROM r;
CREATE INCREMENTAL VIEW refused AS
    WITH RECURSIVE r(n) AS (SELECT src FROM edge UNION SELECT n FROM ROWS FROM (eddy.recursive('r') AS (n int)) WITH ORDINALITY AS r(n, o)) SELECT n FROM r;
CREATE INCREMENTAL VIEW refused AS
    WITH RECURSIVE r(n) AS (SELECT inet '::1' FROM edge UNION SELECT n FROM eddy.recursive('r') AS r(n inet)) SELECT n FROM r;
CREATE INCREMENTAL VIEW refused AS SELECT eddy.recursive('r');
-- which of equal values DISTINCT keeps may change when there are more
CREATE INCREMENTAL VIEW refused AS
    WITH RECURSIVE p(s) AS (
        SELECT place::text FROM token
        UNION
        (WITH q AS MATERIALIZED (SELECT DISTINCT y.s::numeric AS n FROM eddy.recursive('p') AS y(s text)) SELECT n::text FROM q))
    SELECT s FROM p;
-- what has no end is that view's error
CREATE TABLE one (n int);
INSERT INTO one VALUES (1);
CREATE INCREMENTAL VIEW endless AS
    WITH RECURSIVE up(n) AS (SELECT n::bigint FROM one UNION SELECT d.n + 1 FROM eddy.recursive('down') AS d(n bigint)),
        down(n) AS (SELECT DISTINCT n + 1 FROM up)
    SELECT count(*) FROM up;
SELECT * FROM endless;
SELECT state, sqlstate FROM eddy.views WHERE relation = 'endless'::regclass;
DROP TABLE one, token CASCADE;
DROP FUNCTION differences;
DROP TABLE edge CASCADE;
