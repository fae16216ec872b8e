-- LIMIT, OFFSET and FETCH FIRST by numbers that subqueries and queries around compute.
SET client_min_messages = warning;
CREATE TABLE game (id int PRIMARY KEY, player text, points int);
CREATE TABLE player (name text PRIMARY KEY, best int, skipped int);
CREATE TABLE setting (name text PRIMARY KEY, value int);
INSERT INTO player VALUES ('ann', 2, 0), ('bob', NULL, 1), ('cas', 0, NULL), ('dan', 9, 2);
INSERT INTO setting VALUES ('shown', 3), ('skipped', 1), ('unset', NULL);
INSERT INTO game SELECT i, (ARRAY['ann', 'bob', 'cas', 'dan'])[1 + i % 4], i * 7 % 5 FROM generate_series(1, 16) i;
CREATE FUNCTION differences() RETURNS TABLE (view text, missing bigint, surplus bigint) LANGUAGE sql AS $$
    SELECT relation::text, d.missing, d.surplus FROM eddy.views, eddy.verify_view(relation) d
    WHERE (d.missing, d.surplus) <> (0, 0) $$;

CREATE INCREMENTAL VIEW of_subquery AS
    SELECT id, points FROM game ORDER BY points DESC, id LIMIT (SELECT value FROM setting WHERE name = 'shown');
CREATE INCREMENTAL VIEW behind AS
    SELECT id FROM game ORDER BY id OFFSET (SELECT value FROM setting WHERE name = 'skipped');
CREATE INCREMENTAL VIEW two AS SELECT id FROM game ORDER BY points, id
    LIMIT (SELECT value FROM setting WHERE name = 'shown') * 2 OFFSET (SELECT value FROM setting WHERE name = 'skipped') + 1;
CREATE INCREMENTAL VIEW mixed AS SELECT id FROM game ORDER BY id LIMIT 4 OFFSET (SELECT value FROM setting WHERE name = 'skipped');
CREATE INCREMENTAL VIEW with_ties AS SELECT id, points FROM game ORDER BY points
    FETCH FIRST (SELECT value FROM setting WHERE name = 'shown') ROWS WITH TIES;
CREATE INCREMENTAL VIEW with_ties_behind AS SELECT points FROM game ORDER BY points DESC
    OFFSET (SELECT value FROM setting WHERE name = 'skipped') ROWS
    FETCH NEXT (SELECT max(value) FROM setting) ROWS WITH TIES;
-- None that is set is none.
CREATE INCREMENTAL VIEW all_rows AS SELECT id FROM game
    LIMIT (SELECT value FROM setting WHERE name = 'unset') OFFSET (SELECT value FROM setting WHERE name = 'nowhere');
CREATE INCREMENTAL VIEW of_each AS SELECT p.name, g.id, g.points FROM player p
    CROSS JOIN LATERAL (SELECT id, points FROM game WHERE player = p.name ORDER BY points DESC, id LIMIT p.best OFFSET p.skipped) g;
CREATE INCREMENTAL VIEW of_each_or_none AS SELECT p.name, g.id FROM player p
    LEFT JOIN LATERAL (SELECT id FROM game WHERE player = p.name ORDER BY points, id LIMIT p.best) g ON true;
CREATE INCREMENTAL VIEW ties_of_each AS SELECT p.name, g.id, g.points FROM player p
    CROSS JOIN LATERAL (SELECT id, points FROM game WHERE player = p.name ORDER BY points FETCH FIRST (p.best) ROWS WITH TIES) g;
CREATE INCREMENTAL VIEW whole_table_of_each AS SELECT p.name, g.id FROM player p
    CROSS JOIN LATERAL (SELECT id FROM game ORDER BY id LIMIT p.best + 1) g;
CREATE INCREMENTAL VIEW listed AS SELECT p.name, ARRAY(
    SELECT g.id FROM game g WHERE g.player = p.name ORDER BY g.points DESC, g.id
    LIMIT (SELECT count(*) FROM setting s WHERE s.value <= p.best)) AS ids FROM player p;
CREATE INCREMENTAL VIEW sums AS SELECT sum(points), count(*) FROM (
    SELECT points FROM game ORDER BY points DESC LIMIT (SELECT count(*) / 2 FROM game)) b;
CREATE INCREMENTAL VIEW of_union AS (SELECT points FROM game UNION SELECT 100) ORDER BY points DESC LIMIT (SELECT min(value) FROM setting);
CREATE INCREMENTAL VIEW of_distinct AS SELECT DISTINCT points FROM game ORDER BY points LIMIT (SELECT min(value) + 1 FROM setting);
CREATE INCREMENTAL VIEW of_groups AS SELECT player, sum(points) AS points FROM game GROUP BY player
    HAVING count(*) > 0 ORDER BY sum(points) DESC, player LIMIT (SELECT min(best) FROM player WHERE best > 0);
CREATE INCREMENTAL VIEW from_with AS WITH shown AS (SELECT value FROM setting WHERE name = 'shown')
    SELECT id FROM game ORDER BY id DESC LIMIT (SELECT value FROM shown);
CREATE INCREMENTAL VIEW within AS SELECT id FROM game ORDER BY id
    LIMIT (SELECT value FROM setting ORDER BY value DESC NULLS LAST LIMIT (SELECT count(*) / 1000 + 1 FROM setting));
CREATE INCREMENTAL VIEW exists_some AS SELECT name FROM player p WHERE EXISTS (
    SELECT FROM game g WHERE g.player = p.name LIMIT p.best OFFSET p.skipped);
CREATE INCREMENTAL VIEW evaluated AS SELECT id FROM game ORDER BY id
    LIMIT (SELECT jsonb_array_length(to_jsonb(array_agg(value))) FROM setting);
CREATE INCREMENTAL VIEW numbered AS
    SELECT n.id, row_number() OVER (ORDER BY n.id) FROM (SELECT id FROM game ORDER BY id LIMIT (SELECT value FROM setting WHERE name = 'shown')) n;
CREATE INCREMENTAL VIEW of_parameter AS SELECT name, (SELECT g.id FROM game g ORDER BY g.id LIMIT 1 OFFSET p.best) AS id FROM player p;

SELECT * FROM of_subquery ORDER BY points DESC, id;
SELECT * FROM of_each ORDER BY name, points DESC, id;
SELECT * FROM with_ties ORDER BY points, id;
SELECT * FROM listed ORDER BY name;
SELECT * FROM differences();

UPDATE setting SET value = 2 WHERE name = 'shown';
UPDATE player SET best = best + 1, skipped = NULL WHERE name <> 'bob';
SELECT * FROM of_subquery ORDER BY points DESC, id;
SELECT * FROM differences();
INSERT INTO game VALUES (100, 'ann', 9), (101, 'bob', 0), (102, NULL, NULL), (103, 'cas', 0);
UPDATE setting SET value = 4 WHERE name = 'unset';
DELETE FROM setting WHERE name = 'skipped';
SELECT * FROM differences();
BEGIN;
DELETE FROM game WHERE id < 100;
UPDATE setting SET value = 0;
SELECT count(*) FROM of_subquery;
ROLLBACK;
SELECT * FROM differences();
UPDATE setting SET value = 0;
DELETE FROM game WHERE points = 0;
INSERT INTO setting VALUES ('skipped', 5), ('nowhere', 2);
SELECT count(*) FROM of_subquery;
SELECT * FROM differences();
TRUNCATE game;
SELECT * FROM differences();
INSERT INTO game SELECT i, (ARRAY['ann', 'bob', 'cas', 'dan'])[1 + i % 4], i % 3 FROM generate_series(1, 16) i;
UPDATE setting SET value = 1000000000 WHERE name = 'shown';
SELECT * FROM differences();

-- As in PostgreSQL a negative number is an error, and more than one is.
UPDATE setting SET value = -1 WHERE name = 'shown';
SELECT * FROM of_subquery ORDER BY points DESC, id;
\echo :SQLSTATE
UPDATE setting SET value = -1 WHERE name = 'skipped';
SELECT * FROM behind ORDER BY id;
\echo :SQLSTATE
UPDATE player SET best = -3 WHERE name = 'dan';
SELECT * FROM of_each;
\echo :SQLSTATE
TRUNCATE game;
SELECT * FROM of_subquery ORDER BY points DESC, id;
\echo :SQLSTATE
UPDATE setting SET value = 2 WHERE value < 0;
UPDATE player SET best = 3 WHERE best < 0;
INSERT INTO game SELECT i, (ARRAY['ann', 'bob', 'cas', 'dan'])[1 + i % 4], i % 3 FROM generate_series(1, 16) i;
SELECT * FROM of_subquery ORDER BY points DESC, id;
SELECT * FROM differences();
CREATE INCREMENTAL VIEW several AS SELECT id FROM game LIMIT (SELECT value FROM setting);
SELECT * FROM several;
\echo :SQLSTATE
DROP INCREMENTAL VIEW several;

-- A change looks at no more rows than are left out and taken.
EXPLAIN CREATE INCREMENTAL VIEW v AS
    SELECT id FROM game ORDER BY points DESC, id LIMIT (SELECT value FROM setting WHERE name = 'shown') OFFSET 2;

-- Refused as anywhere
CREATE INCREMENTAL VIEW bad AS SELECT id FROM game ORDER BY id LIMIT (SELECT count(*) FROM pg_class);
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT id FROM game ORDER BY id LIMIT extract(day FROM now());
\echo :SQLSTATE

DROP FUNCTION differences();
DROP TABLE game, player, setting CASCADE;
