-- The order of joins, by what ANALYZE has found, and how long it stays.
SET client_min_messages = warning;
CREATE TABLE a (x int NOT NULL) WITH (autovacuum_enabled = false);
CREATE TABLE b (x int NOT NULL, y int NOT NULL) WITH (autovacuum_enabled = false);
CREATE TABLE c (y int NOT NULL) WITH (autovacuum_enabled = false);
INSERT INTO a SELECT n FROM generate_series(1, 100) AS n;
INSERT INTO b SELECT n % 10, n % 7 FROM generate_series(1, 100) AS n;
INSERT INTO c SELECT n FROM generate_series(1, 2) AS n;
CREATE TABLE answer AS SELECT a.x, b.y, count(*) AS n FROM a, b, c WHERE a.x = b.x AND b.y = c.y GROUP BY a.x, b.y;
-- nothing is known: as it is written
EXPLAIN CREATE INCREMENTAL VIEW v AS SELECT a.x, b.y, count(*) AS n FROM a, b, c WHERE a.x = b.x AND b.y = c.y GROUP BY a.x, b.y;
CREATE INCREMENTAL VIEW written AS SELECT a.x, b.y, count(*) AS n FROM a, b, c WHERE a.x = b.x AND b.y = c.y GROUP BY a.x, b.y;
ANALYZE a, b, c;
EXPLAIN CREATE INCREMENTAL VIEW v AS SELECT a.x, b.y, count(*) AS n FROM a, b, c WHERE a.x = b.x AND b.y = c.y GROUP BY a.x, b.y;
CREATE INCREMENTAL VIEW v AS SELECT a.x, b.y, count(*) AS n FROM a, b, c WHERE a.x = b.x AND b.y = c.y GROUP BY a.x, b.y;
SELECT 'v' AS view, * FROM (TABLE v EXCEPT ALL TABLE answer) AS more UNION ALL SELECT 'v', * FROM (TABLE answer EXCEPT ALL TABLE v) AS fewer;
SELECT 'written' AS view, * FROM (TABLE written EXCEPT ALL TABLE answer) AS more
UNION ALL SELECT 'written', * FROM (TABLE answer EXCEPT ALL TABLE written) AS fewer;
CREATE VIEW outdated AS SELECT subject, level, message, remedy FROM eddy.check() WHERE subject IN ('v', 'written') AND message LIKE 'its joins %';
-- of one nothing was known
TABLE outdated;
-- ten times as much: the plan stays, and whoever asks is told
CREATE FUNCTION plan_of(regclass) RETURNS text LANGUAGE sql AS 'SELECT md5(eddy.explain_view($1))';
SELECT plan_of('v') AS before \gset
SELECT starts AS starts FROM eddy.views WHERE relation = 'v'::regclass \gset
TRUNCATE a;
INSERT INTO a VALUES (1), (2), (3);
INSERT INTO c SELECT n % 7 FROM generate_series(1, 100) AS n;
ANALYZE a, b, c;
SELECT count(*), sum(n) FROM v;
SELECT count(*), sum(n) FROM written;
SELECT plan_of('v') = :'before' AS same, starts = :starts AS goes_on FROM eddy.views WHERE relation = 'v'::regclass;
TABLE outdated;
REFRESH INCREMENTAL VIEW v;
REFRESH INCREMENTAL VIEW written;
SELECT count(*), sum(n) FROM v;
SELECT count(*), sum(n) FROM written;
SELECT plan_of('v') = :'before' AS same;
TABLE outdated;
INSERT INTO a VALUES (1), (4);
DELETE FROM b WHERE y = 3;
SELECT * FROM eddy.verify_view('v');
SELECT * FROM eddy.verify_view('written');
-- what is on record goes with the view
SELECT count(*) FROM eddy.view_statistics WHERE relation IN ('v'::regclass, 'written'::regclass);
DROP VIEW outdated;
DROP MATERIALIZED VIEW v, written;
SELECT count(*) FROM eddy.view_statistics;
DROP FUNCTION plan_of;
DROP TABLE a, b, c, answer;
-- within the step of a recursion
CREATE TABLE link (a int NOT NULL, b int NOT NULL, kind int NOT NULL, PRIMARY KEY (a, b)) WITH (autovacuum_enabled = false);
CREATE TABLE kind (id int PRIMARY KEY, name text NOT NULL) WITH (autovacuum_enabled = false);
CREATE TABLE open (a int NOT NULL, b int NOT NULL) WITH (autovacuum_enabled = false);
INSERT INTO link SELECT n, n + k, k FROM generate_series(1, 100) AS n, generate_series(1, 5) AS k;
INSERT INTO kind SELECT k, 'k' || k FROM generate_series(1, 5) AS k;
INSERT INTO open SELECT n, n + 5 FROM generate_series(1, 100, 7) AS n;
ANALYZE link, kind, open;
EXPLAIN CREATE INCREMENTAL VIEW reach AS WITH RECURSIVE r(a) AS (SELECT 1 UNION SELECT l.b FROM r, link AS l, kind AS k, open AS o
    WHERE l.a = r.a AND l.kind = k.id AND k.name = 'k5' AND o.a = l.a AND o.b = l.b) SELECT a FROM r;
CREATE INCREMENTAL VIEW reach AS WITH RECURSIVE r(a) AS (SELECT 1 UNION SELECT l.b FROM r, link AS l, kind AS k, open AS o
    WHERE l.a = r.a AND l.kind = k.id AND k.name = 'k5' AND o.a = l.a AND o.b = l.b) SELECT a FROM r;
INSERT INTO open VALUES (6, 11), (11, 16);
SELECT * FROM reach ORDER BY a;
SELECT * FROM eddy.verify_view('reach');
DROP TABLE link, kind, open CASCADE;
