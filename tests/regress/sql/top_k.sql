-- LIMIT, OFFSET, FETCH FIRST, DISTINCT ON: which rows there are depends on an order.
SET client_min_messages = warning;
CREATE TABLE game (id int PRIMARY KEY, player text, points int, played date);
CREATE TABLE player (name text PRIMARY KEY, team text);
INSERT INTO player VALUES ('ann', 'red'), ('bob', 'red'), ('cas', 'blue'), ('dan', NULL);
INSERT INTO game SELECT i, (ARRAY['ann', 'bob', 'cas'])[1 + i % 3], i * 7 % 10, '2024-01-01'::date + i FROM generate_series(1, 12) i;
INSERT INTO game VALUES (100, 'bob', NULL, NULL), (101, NULL, 9, '2024-03-01');

CREATE INCREMENTAL VIEW best AS SELECT id, points FROM game ORDER BY points DESC, id LIMIT 3;
CREATE INCREMENTAL VIEW best_known AS SELECT id, points FROM game ORDER BY points DESC NULLS LAST, id LIMIT 3 OFFSET 1;
CREATE INCREMENTAL VIEW behind AS SELECT id FROM game ORDER BY id OFFSET 10;
CREATE INCREMENTAL VIEW with_ties AS SELECT id, points FROM game ORDER BY points FETCH FIRST 2 ROWS WITH TIES;
CREATE INCREMENTAL VIEW nothing AS SELECT id FROM game LIMIT 0;
CREATE INCREMENTAL VIEW everything AS SELECT id FROM game ORDER BY id LIMIT ALL OFFSET NULL;
CREATE INCREMENTAL VIEW last_of_each AS
    SELECT DISTINCT ON (player) player, id, points FROM game ORDER BY player, played DESC NULLS LAST, id;
CREATE INCREMENTAL VIEW two_of_each AS
    SELECT p.name, g.id, g.points FROM player p
    CROSS JOIN LATERAL (SELECT id, points FROM game WHERE player = p.name ORDER BY points DESC NULLS LAST, id LIMIT 2) g;
CREATE INCREMENTAL VIEW best_of_each AS
    SELECT p.name, (SELECT g.id FROM game g WHERE g.player = p.name ORDER BY g.points DESC NULLS LAST, g.id LIMIT 1) AS id FROM player p;
CREATE INCREMENTAL VIEW best_teams AS
    SELECT p.team, sum(g.points) AS points FROM player p JOIN game g ON g.player = p.name
    GROUP BY p.team ORDER BY sum(g.points) DESC, 1 LIMIT 1;
CREATE INCREMENTAL VIEW of_union AS
    (SELECT points FROM game UNION SELECT 100) ORDER BY points DESC NULLS LAST LIMIT 2;
CREATE INCREMENTAL VIEW of_best AS
    SELECT count(*), sum(points) FROM (SELECT points FROM game ORDER BY points DESC NULLS LAST, id LIMIT 5) b;
CREATE INCREMENTAL VIEW of_values AS VALUES (1, 2), (3, 4), (2, 9) ORDER BY 2 DESC LIMIT 2;
CREATE INCREMENTAL VIEW distinct_parts AS SELECT DISTINCT unnest(ARRAY[points, id]) AS part FROM game ORDER BY part LIMIT 3;
CREATE INCREMENTAL VIEW distinct_counts AS
    SELECT DISTINCT (SELECT count(*) FROM game g WHERE g.player = p.name) AS games FROM player p ORDER BY games DESC LIMIT 2;
CREATE INCREMENTAL VIEW climbing AS
    WITH RECURSIVE r(id, points) AS (
        SELECT id, points FROM game WHERE id = 1
        UNION ALL
        SELECT n.id, n.points FROM (
            SELECT g.id, g.points FROM r JOIN game g ON g.points > r.points ORDER BY g.points, g.id LIMIT 1) n)
    SELECT * FROM r;

SELECT * FROM best ORDER BY points DESC, id;
SELECT * FROM best_known ORDER BY points DESC, id;
SELECT * FROM behind ORDER BY id;
SELECT * FROM with_ties ORDER BY points, id;
SELECT * FROM nothing;
SELECT count(*) FROM everything;
SELECT * FROM last_of_each ORDER BY player;
SELECT * FROM two_of_each ORDER BY name, points DESC, id;
SELECT * FROM best_of_each ORDER BY name;
SELECT * FROM best_teams;
SELECT * FROM of_union ORDER BY 1;
SELECT * FROM of_best;
SELECT * FROM climbing ORDER BY points, id;
SELECT * FROM of_values ORDER BY 1;
SELECT * FROM distinct_parts ORDER BY part;
SELECT * FROM distinct_counts ORDER BY games;

DELETE FROM game WHERE points >= 9 OR points IS NULL;
UPDATE game SET points = 0 WHERE id = 5;
UPDATE game SET player = 'dan', played = '2025-01-01' WHERE id IN (1, 2);
INSERT INTO game VALUES (200, 'bob', 0, '2024-05-05'), (201, 'bob', 8, '2024-05-05');
SELECT * FROM best ORDER BY points DESC, id;
SELECT * FROM best_known ORDER BY points DESC, id;
SELECT * FROM behind ORDER BY id;
SELECT * FROM with_ties ORDER BY points, id;
SELECT * FROM last_of_each ORDER BY player;
SELECT * FROM two_of_each ORDER BY name, points DESC, id;
SELECT * FROM best_of_each ORDER BY name;
SELECT * FROM best_teams;
SELECT * FROM of_best;
SELECT v.relation, d.missing, d.surplus FROM eddy.views v, eddy.verify_view(v.relation) d
WHERE (d.missing, d.surplus) <> (0, 0);

-- A row that does not get among the first ones changes nothing.
INSERT INTO game VALUES (300, 'ann', 1, '2020-01-01');
SELECT relation, transactions FROM eddy.views WHERE relation::text IN ('best', 'of_best') ORDER BY 1;
TRUNCATE game;
SELECT count(*) FROM best;
SELECT * FROM of_best;
INSERT INTO game VALUES (1, 'ann', 1, '2024-01-01'), (2, 'cas', 1, '2024-01-01');
SELECT * FROM with_ties ORDER BY id;
SELECT v.relation, d.missing, d.surplus FROM eddy.views v, eddy.verify_view(v.relation) d
WHERE (d.missing, d.surplus) <> (0, 0);

EXPLAIN CREATE INCREMENTAL VIEW v AS SELECT id FROM game ORDER BY points DESC, id OFFSET 2 FETCH FIRST 5 ROWS WITH TIES;
EXPLAIN CREATE INCREMENTAL VIEW v AS SELECT DISTINCT ON (player) player, id FROM game ORDER BY player, id;

-- Refused
CREATE INCREMENTAL VIEW bad AS SELECT id FROM game ORDER BY id LIMIT -1;
CREATE INCREMENTAL VIEW bad AS SELECT name AS k, g.player AS name FROM player FULL JOIN (SELECT player AS name, player FROM game) g USING (name) ORDER BY k LIMIT 1;
\echo :SQLSTATE
CREATE COLLATION english (provider = icu, locale = 'en-US');
-- Where the order decides nothing its collation does not matter.
CREATE INCREMENTAL VIEW sorted AS SELECT player FROM game ORDER BY player COLLATE english;
SELECT count(*) FROM sorted;

-- An output with the name of another column is not what a qualified name means, in the plan that CREATE makes neither.
CREATE TABLE offer (id int PRIMARY KEY, price int);
INSERT INTO offer VALUES (1, 9), (2, 3);
CREATE INCREMENTAL VIEW cheapest AS SELECT id AS price FROM offer ORDER BY offer.price LIMIT 1;
SELECT * FROM cheapest;
UPDATE offer SET price = 1 WHERE id = 1;
SELECT * FROM cheapest;

DROP TABLE game, player, offer CASCADE;
DROP MATERIALIZED VIEW of_values;
DROP COLLATION english;
