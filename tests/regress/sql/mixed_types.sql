-- Values of different types compared with subqueries: what is cast there is cast as PostgreSQL does it.
SET client_min_messages = warning;
CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION german (provider = icu, locale = 'de');
CREATE DOMAIN name8 AS varchar(8) COLLATE german;
CREATE EXTENSION citext;
CREATE TABLE x (id int PRIMARY KEY, v varchar(8) COLLATE german, any_case varchar COLLATE nocase, t text COLLATE german, c char(4), d name8, day date);
CREATE TABLE y (id int PRIMARY KEY, v varchar(8) COLLATE german, any_case varchar COLLATE nocase, t text COLLATE german, c char(4), d name8, at timestamp);
CREATE INCREMENTAL VIEW ordered AS
    SELECT id, v < ANY (SELECT v FROM y) AS v, v >= ALL (SELECT v FROM y) AS all_v, t < ANY (SELECT v FROM y) AS t, d > ALL (SELECT d FROM y) AS d FROM x;
CREATE INCREMENTAL VIEW members AS
    SELECT id, any_case IN (SELECT any_case FROM y) AS one, (any_case, id) IN (SELECT any_case, id FROM y) AS two,
        any_case NOT IN (SELECT any_case FROM y WHERE y.id <> x.id) AS none, d IN (SELECT d FROM y) AS d FROM x;
CREATE INCREMENTAL VIEW blanks AS SELECT id FROM x WHERE c IN (SELECT v FROM y) OR v < ANY (SELECT c FROM y);
CREATE INCREMENTAL VIEW together AS SELECT c FROM x UNION SELECT v COLLATE "default" FROM y;
CREATE INCREMENTAL VIEW days AS SELECT id FROM x WHERE day IN (SELECT at FROM y) OR (id, day) < (SELECT max(id), max(at) FROM y);
CREATE INCREMENTAL VIEW rows_compared AS
    SELECT id, (v, id) = (SELECT v, id FROM y WHERE y.id = x.id) AS same, (any_case, t) <> ALL (SELECT any_case, t FROM y WHERE y.id > x.id) AS other FROM x;
CREATE INCREMENTAL VIEW nested AS SELECT x.id, (SELECT count(*) FROM y WHERE y.v = ANY (SELECT z.v FROM y z WHERE z.id = x.id)) AS n FROM x;
INSERT INTO x VALUES (1, 'q', 'q', 'q', 'q', 'q', '2024-01-01'), (2, 'z', 'z', 'z', 'z', 'z', '2024-01-02'), (3, 'a', 'a', 'a', 'a', 'a', NULL);
INSERT INTO y VALUES (1, 'p', 'P', 'p', 'p', 'p', '2024-01-01'), (2, 'q', 'Q', 'q', 'q', 'q', '2024-01-01 10:00'), (3, 'b', 'b', 'b', 'b', 'b', NULL);
CREATE TABLE other (id int PRIMARY KEY, t text, e citext, span interval, at time, o oid, class regclass, n int);
CREATE INCREMENTAL VIEW by_host AS
    SELECT id, t IN (SELECT e FROM other) AS t, span IN (SELECT at FROM other) AS span, o IN (SELECT class FROM other) AS o, o IN (SELECT n FROM other) AS n,
        (t, e) IN (SELECT e, t FROM other) AS both FROM other;
INSERT INTO other VALUES (1, 'a', 'A', '01:00', '01:00', 1, 'pg_class', 1), (2, 'B', 'b', '01:00', '02:00', 1259, 'pg_class', 1), (3, NULL, 'x', '3:00', NULL, 5, NULL, 7);
SELECT * FROM ordered ORDER BY id;
SELECT * FROM members ORDER BY id;
SELECT * FROM blanks ORDER BY id;
SELECT * FROM together ORDER BY c COLLATE "C";
SELECT * FROM days ORDER BY id;
SELECT * FROM rows_compared ORDER BY id;
SELECT * FROM by_host ORDER BY id;
UPDATE x SET v = 'c', any_case = 'B' WHERE id = 2;
UPDATE y SET v = 'ä', at = '2024-01-02', c = 'z' WHERE id = 1;
DELETE FROM other WHERE id = 3;
SELECT relation::text, d.* FROM eddy.views, eddy.verify_view(relation) d WHERE (missing, surplus) <> (0, 0);
-- Rows of equal types with columns of different collations are not mixed up.
CREATE TABLE pairs (id int, a text COLLATE "C", b text COLLATE german);
INSERT INTO pairs VALUES (1, 'a', 'a'), (2, 'b', 'b');
CREATE INCREMENTAL VIEW of_a AS SELECT count(DISTINCT (a, id)) FROM pairs;
CREATE INCREMENTAL VIEW of_b AS SELECT count(DISTINCT (b, id)) FROM pairs;
INSERT INTO pairs VALUES (1, 'a', 'a');
SELECT a.count AS a, b.count AS b FROM of_a a, of_b b;
-- Vectors are no arrays to us.
CREATE TABLE vectors (id int, v int2vector, o oidvector);
CREATE INCREMENTAL VIEW of_vectors AS SELECT id, v, o, array_ndims(v) AS n, v[0] AS first, o[0] AS o0, v = v AS same, ARRAY(SELECT q.v FROM vectors q ORDER BY q.id) AS all FROM vectors;
INSERT INTO vectors VALUES (1, '', '1 2'), (2, '3 4', NULL);
SELECT * FROM of_vectors ORDER BY id;
-- Refused, or errors
CREATE DOMAIN numbers AS int[];
CREATE TABLE lists (id int, ns numbers);
CREATE INCREMENTAL VIEW bad AS SELECT ARRAY(SELECT ns FROM lists ORDER BY id) AS all;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT id FROM pairs WHERE a > ANY (SELECT b FROM pairs);
\echo :SQLSTATE
-- USING may compare columns of different types as PostgreSQL does
CREATE INCREMENTAL VIEW merged AS SELECT q FROM (SELECT any_case AS q FROM x) a JOIN (SELECT t COLLATE nocase AS q FROM y) b USING (q);
SELECT q FROM merged ORDER BY q COLLATE "C";
DROP TABLE x, y, other, pairs, vectors, lists CASCADE;
DROP EXTENSION citext;
DROP DOMAIN name8, numbers;
DROP COLLATION nocase, german;
