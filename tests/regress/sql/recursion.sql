-- Recursive views: each SELECT follows a change without any wait.
SET client_min_messages = warning;
CREATE TABLE edge (src int, dst int);
INSERT INTO edge VALUES (1, 2), (2, 3), (3, 1), (3, 4);

-- Transitive closure over a cycle
CREATE INCREMENTAL VIEW reach AS
    WITH RECURSIVE r(a, b) AS (
        SELECT src, dst FROM edge
        UNION
        SELECT r.a, e.dst FROM r JOIN edge e ON e.src = r.b)
    SELECT a, b FROM r;
SELECT * FROM reach ORDER BY a, b;
DELETE FROM edge WHERE src = 3 AND dst = 1;
SELECT * FROM reach ORDER BY a, b;
INSERT INTO edge VALUES (3, 1);
SELECT * FROM reach ORDER BY a, b;
-- a second copy of an edge, then one of the two goes
INSERT INTO edge VALUES (3, 4);
SELECT count(*) FROM reach;
DELETE FROM edge WHERE ctid = (SELECT max(ctid) FROM edge WHERE src = 3 AND dst = 4);
SELECT count(*) FROM reach;
DELETE FROM edge WHERE src = 3 AND dst = 4;
SELECT count(*) FROM reach;
-- self loop, NULL keys
INSERT INTO edge VALUES (5, 5), (NULL, 1), (4, NULL), (NULL, NULL);
SELECT * FROM reach ORDER BY a, b;
UPDATE edge SET dst = 5 WHERE src = 2;
SELECT * FROM reach ORDER BY a, b;
TRUNCATE edge;
SELECT * FROM reach ORDER BY a, b;
INSERT INTO edge VALUES (1, 2), (2, 1);
SELECT * FROM reach ORDER BY a, b;

-- UNION ALL keeps the number of walks
CREATE INCREMENTAL VIEW walks AS
    WITH RECURSIVE r(node, depth) AS (
        SELECT src, 0 FROM edge
        UNION ALL
        SELECT e.dst, r.depth + 1 FROM r JOIN edge e ON e.src = r.node WHERE r.depth < 3)
    SELECT node, depth FROM r;
INSERT INTO edge VALUES (1, 2), (2, 3);
SELECT node, depth, count(*) FROM walks GROUP BY node, depth ORDER BY node, depth;
DELETE FROM edge WHERE dst = 1;
SELECT node, depth, count(*) FROM walks GROUP BY node, depth ORDER BY node, depth;

-- Numbers without a table, and up to a bound from a table
CREATE INCREMENTAL VIEW five AS
    WITH RECURSIVE r(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r;
SELECT * FROM five ORDER BY n;
CREATE TABLE bound (n int);
CREATE INCREMENTAL VIEW up_to AS
    WITH RECURSIVE r(n, bound) AS (
        SELECT 1, n FROM bound WHERE n > 0 UNION ALL SELECT n + 1, bound FROM r WHERE n < bound)
    SELECT bound, count(*) AS numbers, sum(n) AS total FROM r GROUP BY bound;
SELECT * FROM up_to ORDER BY bound;
INSERT INTO bound VALUES (3), (10), (0), (NULL);
SELECT * FROM up_to ORDER BY bound;
UPDATE bound SET n = n + 1;
SELECT * FROM up_to ORDER BY bound;
DELETE FROM bound WHERE n > 5;
SELECT * FROM up_to ORDER BY bound;

-- Paths in an array
CREATE TABLE road (src text, dst text, miles numeric);
INSERT INTO road VALUES ('a', 'b', 1.5), ('b', 'c', 2.5), ('c', 'a', 1.0), ('a', 'c', 9.0), ('c', 'd', 1.0);
CREATE INCREMENTAL VIEW path AS
    WITH RECURSIVE p(src, dst, stops, miles) AS (
        SELECT src, dst, ARRAY[src, dst], miles FROM road
        UNION ALL
        SELECT p.src, r.dst, p.stops || r.dst, p.miles + r.miles
        FROM p JOIN road r ON r.src = p.dst WHERE NOT r.dst = ANY (p.stops))
    SELECT src, dst, stops, miles FROM p;
SELECT * FROM path ORDER BY stops;
-- the shortest of them, a view on a view
CREATE INCREMENTAL VIEW shortest AS SELECT src, dst, min(miles) AS miles FROM path GROUP BY src, dst;
SELECT * FROM shortest ORDER BY src, dst;
UPDATE road SET miles = 3.0 WHERE src = 'a' AND dst = 'c';
SELECT * FROM shortest ORDER BY src, dst;
DELETE FROM road WHERE src = 'c' AND dst = 'a';
SELECT * FROM path ORDER BY stops;
SELECT * FROM shortest ORDER BY src, dst;

-- Distances by a bounded depth
TRUNCATE edge;
INSERT INTO edge VALUES (0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (4, 3);
CREATE INCREMENTAL VIEW distance AS
    WITH RECURSIVE r(node, steps) AS (
        SELECT 0, 0 UNION
        SELECT e.dst, r.steps + 1 FROM r JOIN edge e ON e.src = r.node WHERE r.steps < 10)
    SELECT node, min(steps) AS steps FROM r GROUP BY node;
SELECT * FROM distance ORDER BY node;
DELETE FROM edge WHERE src = 4;
SELECT * FROM distance ORDER BY node;
INSERT INTO edge VALUES (0, 3);
SELECT * FROM distance ORDER BY node;

-- Several recursive CTEs, one over another, an ordinary CTE between them
CREATE INCREMENTAL VIEW layers AS
    WITH RECURSIVE
    forward(n) AS (SELECT 0 UNION SELECT e.dst FROM forward f JOIN edge e ON e.src = f.n),
    backward(n) AS (SELECT 0 UNION SELECT e.src FROM backward b JOIN edge e ON e.dst = b.n),
    both_ways(n) AS (SELECT f.n FROM forward f JOIN backward b ON b.n = f.n),
    inside(a, b) AS (
        SELECT e.src, e.dst FROM edge e JOIN both_ways x ON x.n = e.src
        UNION
        SELECT i.a, e.dst FROM inside i JOIN edge e ON e.src = i.b JOIN both_ways x ON x.n = e.dst)
    SELECT a, count(*) AS members FROM inside GROUP BY a;
SELECT * FROM layers ORDER BY a;
DELETE FROM edge WHERE src = 2;
SELECT * FROM layers ORDER BY a;
INSERT INTO edge VALUES (2, 0), (3, 4);
SELECT * FROM layers ORDER BY a;

-- Recursion inside a subquery, joined with a table
CREATE INCREMENTAL VIEW fan_out AS
    SELECT e.src, c.reached FROM edge e JOIN (
        WITH RECURSIVE r(a, b) AS (
            SELECT src, dst FROM edge UNION SELECT r.a, e.dst FROM edge e, r WHERE e.src = r.b)
        SELECT a, count(*) AS reached FROM r GROUP BY a) c ON c.a = e.dst;
SELECT * FROM fan_out ORDER BY src, reached;
DELETE FROM edge WHERE src = 0 AND dst = 1;
SELECT * FROM fan_out ORDER BY src, reached;

-- A recursion in the step of another: two edges at a time
CREATE INCREMENTAL VIEW jumps AS
    WITH RECURSIVE r(n) AS (
        SELECT min(src) FROM edge
        UNION
        SELECT hop.b FROM r, LATERAL (
            WITH RECURSIVE s(b, d) AS (
                SELECT r.n, 0 UNION SELECT e.dst, s.d + 1 FROM s JOIN edge e ON e.src = s.b WHERE s.d < 4)
            SELECT b FROM s WHERE d = 2) AS hop)
    SELECT n FROM r;
SELECT * FROM jumps ORDER BY n;
INSERT INTO edge VALUES (0, 1), (4, 6), (6, 7);
SELECT * FROM jumps ORDER BY n;
DELETE FROM edge WHERE src IN (0, 6);
SELECT * FROM jumps ORDER BY n;
SELECT * FROM eddy.verify_view('jumps');

-- Recursive terms that are not linear in the working table
CREATE INCREMENTAL VIEW waves AS
    WITH RECURSIVE r(n, d) AS (
        SELECT DISTINCT src, 0 FROM edge
        UNION ALL
        SELECT e.dst, q.d + 1 FROM (SELECT DISTINCT n, d FROM r) q JOIN edge e ON e.src = q.n
        WHERE q.d < 2)
    SELECT n, d FROM r;
SELECT n, d, count(*) FROM waves GROUP BY n, d ORDER BY n, d;
INSERT INTO edge VALUES (4, 2), (4, 2);
SELECT n, d, count(*) FROM waves GROUP BY n, d ORDER BY n, d;
CREATE INCREMENTAL VIEW climb AS
    WITH RECURSIVE r(n, d) AS (
        SELECT src, 0 FROM edge
        UNION
        SELECT q.top + 1, q.d + 1
        FROM (SELECT max(i.n) AS top, i.d FROM (SELECT n, d FROM r) i GROUP BY i.d) q WHERE q.d < 3)
    SELECT n, d FROM r;
SELECT * FROM climb ORDER BY n, d;
DELETE FROM edge WHERE src = 4;
SELECT * FROM climb ORDER BY n, d;
TRUNCATE edge;
SELECT * FROM climb ORDER BY n, d;
SELECT * FROM waves ORDER BY n, d;
SELECT * FROM layers ORDER BY a;
SELECT * FROM distance ORDER BY node;
SELECT * FROM jumps ORDER BY n;

-- The hierarchy with two base tables in both terms
CREATE TABLE employee (id int PRIMARY KEY, name text NOT NULL, team int);
CREATE TABLE manages (boss int, report int, PRIMARY KEY (boss, report));
INSERT INTO employee VALUES (1, 'ann', 1), (2, 'bob', 1), (3, 'cid', 2), (4, 'dan', 2), (5, 'eve', NULL);
INSERT INTO manages VALUES (1, 2), (1, 3), (3, 4), (4, 5);
CREATE INCREMENTAL VIEW chain AS
    WITH RECURSIVE c(top, id, name, level) AS (
        SELECT e.name, m.report, r.name, 1
        FROM employee e JOIN manages m ON m.boss = e.id JOIN employee r ON r.id = m.report
        UNION
        SELECT c.top, m.report, r.name, c.level + 1
        FROM c JOIN manages m ON m.boss = c.id JOIN employee r ON r.id = m.report
        WHERE r.team IS NOT NULL)
    SELECT top, name, level FROM c;
SELECT * FROM chain ORDER BY top, name, level;
UPDATE employee SET team = 3 WHERE name = 'eve';
SELECT * FROM chain ORDER BY top, name, level;
UPDATE employee SET name = 'cleo' WHERE id = 3;
SELECT * FROM chain ORDER BY top, name, level;
UPDATE manages SET boss = 2 WHERE report = 4;
SELECT * FROM chain ORDER BY top, name, level;

DROP TABLE edge, bound, road, employee, manages CASCADE;
DROP INCREMENTAL VIEW five;
-- Rows without a type, of which each process knows its own ones only, beside a function for which an assistant is called
CREATE TABLE edge (src int, dst int);
ALTER TABLE edge REPLICA IDENTITY FULL;
INSERT INTO edge VALUES (1, 2), (2, 3), (3, 1), (3, 4);
CREATE FUNCTION slow(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN PERFORM pg_sleep(0.06); RETURN n; END';
CREATE INCREMENTAL VIEW paths AS
    WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT slow(e.dst) FROM r JOIN edge e ON e.src = r.n) CYCLE n SET is_cycle USING path
    SELECT n, is_cycle, path::text FROM r;
SELECT * FROM paths ORDER BY path COLLATE "C";
INSERT INTO edge VALUES (4, 5), (5, 4);
SELECT * FROM paths ORDER BY path COLLATE "C";
SELECT * FROM eddy.verify_view('paths');
DROP TABLE edge CASCADE;
DROP FUNCTION slow;

