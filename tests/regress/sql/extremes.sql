-- min and max over a recursion are kept inside its loop: views that end where their query does not.
SET client_min_messages = warning;
CREATE TABLE road (src int, dst int, len int);
INSERT INTO road VALUES (0, 1, 4), (1, 2, 1), (2, 0, 1), (0, 2, 9), (2, 3, 2), (3, 3, 1), (4, 5, 1);
EXPLAIN CREATE INCREMENTAL VIEW distance AS
    WITH RECURSIVE d(node, dist) AS (
        SELECT 0, 0 UNION SELECT r.dst, d.dist + r.len FROM d JOIN road r ON r.src = d.node)
    SELECT node, min(dist) AS dist FROM d GROUP BY node;
CREATE INCREMENTAL VIEW distance AS
    WITH RECURSIVE d(node, dist) AS (
        SELECT 0, 0 UNION SELECT r.dst, d.dist + r.len FROM d JOIN road r ON r.src = d.node)
    SELECT node, min(dist) AS dist FROM d GROUP BY node;
SELECT * FROM distance ORDER BY node;
SELECT state FROM eddy.views WHERE relation = 'distance'::regclass;
-- the only short way goes, a long one is left; then none
DELETE FROM road WHERE src = 1 AND dst = 2;
SELECT * FROM distance ORDER BY node;
DELETE FROM road WHERE src = 0 AND dst = 2;
SELECT * FROM distance ORDER BY node;
INSERT INTO road VALUES (1, 2, 100), (1, 2, 100), (0, 4, 1), (5, 1, -2);
SELECT * FROM distance ORDER BY node;
UPDATE road SET len = len + 1 WHERE dst = 1;
SELECT * FROM distance ORDER BY node;
-- a length that is not known is better than no way only
INSERT INTO road VALUES (3, 6, NULL), (6, 7, 1);
SELECT * FROM distance WHERE node > 5 ORDER BY node;
INSERT INTO road VALUES (0, 6, 50);
SELECT * FROM distance WHERE node > 5 ORDER BY node;
DELETE FROM road WHERE src = 0 AND dst = 6;
SELECT * FROM distance WHERE node > 5 ORDER BY node;
DELETE FROM road WHERE len IS NULL;
-- a view over it, and REFRESH: neither runs the query
CREATE INCREMENTAL VIEW farthest AS SELECT max(dist) AS dist, count(*) AS nodes FROM distance;
SELECT * FROM farthest;
REFRESH INCREMENTAL VIEW distance;
SELECT * FROM distance ORDER BY node;
-- the query itself has no end: comparing with it stops at a limit, and only that
SELECT * FROM eddy.verify_view('distance');
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 20000) SELECT count(*) FROM r;
UPDATE road SET src = -src WHERE src > dst OR src = dst;
SELECT * FROM eddy.verify_view('distance');
UPDATE road SET src = -src WHERE src < 0;
SELECT * FROM distance ORDER BY node;
-- as any view without data it cannot be read in the transaction that makes it
BEGIN;
CREATE MATERIALIZED VIEW here WITH (incremental) AS
    WITH RECURSIVE d(node, dist) AS (
        SELECT 0, 0 UNION ALL SELECT r.dst, d.dist + r.len FROM d JOIN road r ON r.src = d.node)
    SELECT min(dist) AS dist FROM d WHERE node = 3;
SELECT * FROM here;
ROLLBACK;
TRUNCATE road;
SELECT * FROM distance;
-- a cycle on which the way becomes shorter for ever
INSERT INTO road VALUES (0, 1, 2), (1, 2, 2), (2, 0, -5);
SELECT * FROM distance;
UPDATE road SET len = -4 WHERE len = -5;
REFRESH INCREMENTAL VIEW distance;
REFRESH INCREMENTAL VIEW farthest;
SELECT * FROM distance ORDER BY node;
SELECT * FROM farthest;
DROP INCREMENTAL VIEW distance, farthest;

-- the widest way, among numbers of different scale; columns that serve nothing; a table beside
CREATE TABLE pipe (src int NOT NULL, dst int NOT NULL, width int NOT NULL, loss numeric(8, 2) NOT NULL);
CREATE TABLE place (id int PRIMARY KEY, name text);
INSERT INTO pipe VALUES (0, 1, 30, 0.5), (1, 2, 20, 0.25), (2, 1, 50, 0), (0, 2, 10, 0.1), (2, 3, 70, 1);
INSERT INTO place SELECT n, 'p' || n FROM generate_series(0, 4) AS n;
CREATE INCREMENTAL VIEW widest AS
    WITH RECURSIVE w(src, dst, width, steps) AS (
        SELECT src, dst, width, 1 FROM pipe
        UNION ALL
        SELECT w.src, p.dst, least(w.width, p.width), w.steps + 1 FROM w JOIN pipe p ON p.src = w.dst)
    SELECT n.name, max(w.width) AS width FROM w JOIN place n ON n.id = w.dst
    WHERE w.src = 0 GROUP BY n.name HAVING max(w.width) > 10;
SELECT eddy.explain_view('widest');
SELECT * FROM widest ORDER BY name;
CREATE INCREMENTAL VIEW losses AS
    WITH RECURSIVE l(node, loss) AS (
        SELECT 0, 0::numeric
        UNION
        SELECT p.dst, l.loss + p.loss FROM l JOIN pipe p ON p.src = l.node WHERE l.loss < 5)
    SELECT node, min(loss) AS loss FROM l GROUP BY node;
SELECT * FROM losses ORDER BY node;
DELETE FROM pipe WHERE src = 0 AND dst = 1;
SELECT * FROM widest ORDER BY name;
SELECT * FROM losses ORDER BY node;
UPDATE pipe SET width = 40, loss = 'NaN' WHERE src = 0;
SELECT * FROM widest ORDER BY name;
SELECT * FROM losses ORDER BY node;
DELETE FROM place WHERE id = 3;
SELECT * FROM widest ORDER BY name;
-- what of the plan depends on it that a column is not NULL
ALTER TABLE pipe ALTER width DROP NOT NULL;
SELECT eddy.explain_view('widest') LIKE '%fixpoint of the greatest width%' AS kept;

-- what is not kept in the loop, and why
EXPLAIN CREATE INCREMENTAL VIEW no AS
    WITH RECURSIVE d(node, dist) AS (
        SELECT 0, 0 UNION SELECT p.dst, d.dist + 1 FROM d JOIN pipe p ON p.src = d.node WHERE d.dist < 5)
    SELECT node, min(dist) AS dist, count(*) FROM d GROUP BY node;
EXPLAIN CREATE INCREMENTAL VIEW no AS
    WITH RECURSIVE d(node, dist) AS (
        SELECT 0, 0.0::float8 UNION SELECT p.dst, d.dist + 1 FROM d JOIN pipe p ON p.src = d.node)
    SELECT node, min(dist) AS dist FROM d GROUP BY node;
DROP TABLE road, pipe, place CASCADE;

-- trees of shortest ways: the first row by distance, then by the node before
CREATE TABLE link (src int NOT NULL, dst int NOT NULL, len int);
INSERT INTO link VALUES (0, 1, 4), (1, 2, 1), (2, 0, 1), (0, 2, 9), (2, 3, 2), (3, 3, 0), (0, 4, 4), (4, 2, 1), (1, 3, 3), (5, 6, 1);
CREATE INCREMENTAL VIEW tree AS
    WITH RECURSIVE d(node, dist, pred) AS (
        SELECT 0, 0, NULL::int UNION SELECT l.dst, d.dist + l.len, d.node FROM d JOIN link l ON l.src = d.node)
    SELECT DISTINCT ON (node) node, dist, pred FROM d ORDER BY node, dist, pred;
SELECT eddy.explain_view('tree');
-- the same found step by step
CREATE TABLE shortest (node int PRIMARY KEY, dist int, pred int);
CREATE PROCEDURE find_shortest() LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM shortest;
    INSERT INTO shortest VALUES (0, 0);
    LOOP
        INSERT INTO shortest AS known
            SELECT l.dst, min(s.dist + l.len) FROM shortest s JOIN link l ON l.src = s.node GROUP BY l.dst
            ON CONFLICT (node) DO UPDATE SET dist = excluded.dist
            WHERE excluded.dist < known.dist OR (known.dist IS NULL AND excluded.dist IS NOT NULL);
        EXIT WHEN NOT FOUND;
    END LOOP;
    UPDATE shortest AS s SET pred = (
        SELECT min(before.node) FROM shortest before JOIN link l ON l.src = before.node
        WHERE l.dst = s.node AND before.dist + l.len IS NOT DISTINCT FROM s.dist);
END $$;
CREATE VIEW difference AS
    (SELECT 'surplus' AS is, * FROM tree EXCEPT ALL SELECT 'surplus', * FROM shortest)
    UNION ALL (SELECT 'missing', * FROM shortest EXCEPT ALL SELECT 'missing', * FROM tree);
-- and a recursion over it in one query: how one gets there
CREATE INCREMENTAL VIEW way AS
    WITH RECURSIVE d(node, dist, pred) AS (
        SELECT 0, 0, NULL::int UNION SELECT l.dst, d.dist + l.len, d.node FROM d JOIN link l ON l.src = d.node),
    t AS (SELECT DISTINCT ON (node) node, dist, pred FROM d ORDER BY node, dist, pred),
    p(node, at, nodes) AS (
        SELECT node, pred, ARRAY[node] FROM t
        UNION ALL
        SELECT p.node, t.pred, p.at || p.nodes FROM p JOIN t ON t.node = p.at WHERE p.at <> ALL (p.nodes))
    SELECT p.node, t.dist, p.nodes FROM p JOIN t USING (node) WHERE p.at IS NULL;
SELECT * FROM tree ORDER BY node;
SELECT * FROM way ORDER BY node;
CALL find_shortest();
SELECT * FROM difference;
-- a transaction that has changed a table runs the query, which has no end
BEGIN;
DELETE FROM link WHERE src = 5;
SELECT * FROM tree;
ROLLBACK;
-- one of two ways of the same length goes, and comes again
DELETE FROM link WHERE src = 1 AND dst = 2;
SELECT * FROM tree ORDER BY node;
CALL find_shortest();
SELECT * FROM difference;
INSERT INTO link VALUES (1, 2, 1), (1, 2, 1), (4, 5, NULL), (6, 0, -3);
SELECT * FROM tree ORDER BY node;
SELECT * FROM way ORDER BY node;
CALL find_shortest();
SELECT * FROM difference;
UPDATE link SET len = CASE WHEN dst = 4 THEN 3 ELSE 7 END WHERE dst IN (4, 5);
SELECT * FROM way ORDER BY node;
CALL find_shortest();
SELECT * FROM difference;
-- a distance does not change, but which node is before
BEGIN;
UPDATE link SET len = len + 1 WHERE dst = 4;
DELETE FROM link WHERE src = 0 AND dst = 1;
COMMIT;
SELECT * FROM way ORDER BY node;
CALL find_shortest();
SELECT * FROM difference;
-- many ways, many of them as long as others
INSERT INTO link SELECT i % 40, (i * 13 + i / 7) % 40, nullif((i * 11) % 6, 5) FROM generate_series(1, 200) AS i;
CALL find_shortest();
SELECT * FROM difference;
SELECT count(*), count(dist), sum(dist), sum(pred) FROM tree;
DELETE FROM link WHERE (src * 3 + dst) % 4 = 1;
CALL find_shortest();
SELECT * FROM difference;
UPDATE link SET len = (src + dst) % 3 WHERE src % 2 = 0;
CALL find_shortest();
SELECT * FROM difference;
SELECT count(*), count(dist), sum(dist), sum(pred) FROM tree;
REFRESH INCREMENTAL VIEW tree;
SELECT * FROM difference;
-- a view over it
CREATE INCREMENTAL VIEW leaves AS SELECT node FROM tree t WHERE NOT EXISTS (SELECT FROM tree b WHERE b.pred = t.node);
SELECT count(*) FROM leaves;
DROP INCREMENTAL VIEW leaves;
-- shorter for ever
INSERT INTO link VALUES (0, 50, 1), (50, 51, 1), (51, 50, -2);
SELECT * FROM tree;
DELETE FROM link WHERE src = 51;
REFRESH INCREMENTAL VIEW tree;
CALL find_shortest();
SELECT * FROM difference;
DROP INCREMENTAL VIEW way;
DROP VIEW difference;
DROP INCREMENTAL VIEW tree;

-- without cycles PostgreSQL comes to an end, and to the same rows: other directions, NULL first, what goes along with a way
TRUNCATE link;
INSERT INTO link SELECT i % 9, i % 9 + 1 + i % 4, nullif((i * 7) % 5, 4) FROM generate_series(1, 40) AS i;
CREATE INCREMENTAL VIEW longest AS
    WITH RECURSIVE d(node, dist, pred, len, root) AS (
        SELECT src, 0, NULL::int, NULL::int, src FROM link WHERE src < 3
        UNION ALL
        SELECT l.dst, d.dist + l.len, d.node, l.len, d.root FROM d JOIN link l ON l.src = d.node)
    SELECT DISTINCT ON (node) node, root, pred, dist FROM d
    ORDER BY node, dist DESC, pred NULLS FIRST, len DESC NULLS LAST, root;
CREATE INCREMENTAL VIEW nearest AS
    WITH RECURSIVE d(node, dist, hops, root, pred) AS (
        SELECT DISTINCT src, 0, 0, src, NULL::int FROM link WHERE src < 3
        UNION
        SELECT l.dst, d.dist + coalesce(l.len, 2), d.hops + 1, d.root, d.node
        FROM d JOIN link l ON l.src = d.node WHERE d.dist < 20)
    SELECT node, dist, hops, root, pred FROM (
        SELECT *, row_number() OVER (PARTITION BY node ORDER BY dist, hops, root DESC, pred) AS place FROM d) x
    WHERE place = 1;
CREATE INCREMENTAL VIEW farthest AS
    WITH RECURSIVE d(root, node, dist, pred) AS (
        SELECT src, src, 0::numeric, NULL::int FROM link WHERE src < 3
        UNION
        SELECT d.root, l.dst, d.dist + l.len, d.node FROM d JOIN link l ON l.src = d.node)
    SELECT DISTINCT ON (root) root, node, dist, pred FROM d WHERE node > 3 ORDER BY root, dist DESC NULLS LAST, node, pred;
SELECT split_part(eddy.explain_view(v::regclass), E'\n', 3) FROM unnest(ARRAY['longest', 'nearest', 'farthest']) AS v;
SELECT * FROM eddy.verify_view('longest');
SELECT * FROM eddy.verify_view('nearest');
SELECT * FROM eddy.verify_view('farthest');
SELECT * FROM nearest ORDER BY node;
DELETE FROM link WHERE (src * 5 + dst) % 3 = 0;
INSERT INTO link VALUES (0, 8, NULL), (1, 8, 1), (2, 8, 1), (2, 8, 0);
SELECT * FROM eddy.verify_view('longest');
SELECT * FROM eddy.verify_view('nearest');
SELECT * FROM eddy.verify_view('farthest');
UPDATE link SET len = coalesce(len, 1) + dst % 2 WHERE src <> 2;
SELECT * FROM eddy.verify_view('longest');
SELECT * FROM eddy.verify_view('nearest');
SELECT * FROM eddy.verify_view('farthest');
SELECT * FROM nearest ORDER BY node;

-- what is not kept in the loop, and why
EXPLAIN CREATE INCREMENTAL VIEW no AS
    WITH RECURSIVE d(node, dist, pred) AS (
        SELECT 0, 0, NULL::int UNION SELECT l.dst, d.dist + l.len, d.node FROM d JOIN link l ON l.src = d.node WHERE d.dist < 5)
    SELECT DISTINCT ON (node) node, dist, pred FROM d ORDER BY node, dist NULLS FIRST, pred;
EXPLAIN CREATE INCREMENTAL VIEW no AS
    WITH RECURSIVE d(node, dist, far) AS (
        SELECT 0, 0, 0 UNION SELECT l.dst, d.dist + 1, d.dist FROM d JOIN link l ON l.src = d.node WHERE d.dist < 5)
    SELECT DISTINCT ON (node) node, dist, far FROM d ORDER BY node, dist, far;
DROP TABLE link, shortest CASCADE;
