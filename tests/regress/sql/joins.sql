-- Outer joins: rows without a partner stay, with NULLs, for as long as they have none.
SET client_min_messages = warning;
CREATE TABLE person (id int PRIMARY KEY, name text, boss int, pay numeric);
CREATE TABLE badge (person int, code text, pay numeric, tags text[]);
INSERT INTO person VALUES (1, 'ann', NULL, 5.0), (2, 'bob', 1, 3), (3, 'cyd', 1, NULL), (4, NULL, 9, 2.50);
INSERT INTO badge VALUES (1, 'a', 5.00, '{x}'), (1, 'a', 5.00, '{x}'), (2, 'b', 4, NULL), (NULL, 'n', 1, '{}'), (7, 'z', NULL, '{NULL}');

CREATE INCREMENTAL VIEW left_joined AS
    SELECT p.id, p.name, b.code FROM person p LEFT JOIN badge b ON b.person = p.id;
CREATE INCREMENTAL VIEW right_joined AS
    SELECT p.id, p.name, b.code FROM person p RIGHT JOIN badge b ON b.person = p.id AND b.code <> 'b';
CREATE INCREMENTAL VIEW full_joined AS
    SELECT p.id, p.pay, b.code, b.pay AS badge_pay FROM person p FULL JOIN badge b ON b.pay = p.pay;
CREATE INCREMENTAL VIEW full_using AS
    SELECT id, p.name, b.code FROM person p FULL JOIN (SELECT person AS id, code FROM badge) b USING (id);
CREATE INCREMENTAL VIEW natural_left AS
    SELECT * FROM person NATURAL LEFT JOIN (SELECT person AS id, code FROM badge) b;
CREATE INCREMENTAL VIEW bosses AS
    SELECT p.id, b.name AS boss, t.name AS top
    FROM person p LEFT JOIN person b ON b.id = p.boss LEFT JOIN person t ON t.id = b.boss;
CREATE INCREMENTAL VIEW poorer AS
    SELECT p.id, q.id AS than FROM person p LEFT JOIN person q ON p.pay < q.pay;
CREATE INCREMENTAL VIEW tested AS
    SELECT p.id, b.code, b.tags FROM person p LEFT JOIN badge b ON p.id = b.person AND p.pay < b.pay AND p.name IS NOT NULL;
CREATE INCREMENTAL VIEW tags AS
    SELECT a.code, b.code AS other FROM badge a LEFT JOIN badge b ON a.tags = b.tags OR (a.tags IS NULL AND b.person IS NULL);
CREATE INCREMENTAL VIEW anything AS SELECT p.id, b.code FROM person p LEFT JOIN badge b ON b.code = 'z';
CREATE INCREMENTAL VIEW whatever AS SELECT p.id FROM person p LEFT JOIN (SELECT 1 AS one FROM badge WHERE code = 'q') b ON true;
CREATE INCREMENTAL VIEW without AS SELECT p.id FROM person p LEFT JOIN badge b ON b.person = p.id WHERE b.person IS NULL;
CREATE INCREMENTAL VIEW counted AS
    SELECT p.id, count(b.code) AS badges, sum(b.pay) AS pay FROM person p LEFT JOIN badge b ON b.person = p.id GROUP BY p.id;
CREATE INCREMENTAL VIEW nested AS
    SELECT p.id, x.code, x.boss FROM person p
        LEFT JOIN (badge b JOIN person q ON q.id = b.person) AS x (person, code, pay, tags, id, name, boss, pay2) ON x.boss = p.id;
CREATE INCREMENTAL VIEW chain AS
    WITH RECURSIVE up(id, boss, name) AS (
        SELECT id, boss, name FROM person WHERE id = 2
        UNION SELECT u.boss, p.boss, p.name FROM up u LEFT JOIN person p ON p.id = u.boss WHERE u.boss IS NOT NULL)
    SELECT id, boss, name FROM up;
CREATE INCREMENTAL VIEW merged AS
    SELECT j.*, j.id + 1 AS next, p.name, b.code, k.id AS again FROM person p FULL JOIN (SELECT person AS id, code FROM badge) b USING (id) AS j
        LEFT JOIN (SELECT boss AS id FROM person) q USING (id) AS k;
CREATE INCREMENTAL VIEW failing AS
    SELECT p.id, b.code FROM person p LEFT JOIN badge b ON b.person = p.id AND 10 / p.id > 1;

CREATE FUNCTION differing() RETURNS TABLE (relation regclass, missing bigint, surplus bigint) LANGUAGE sql AS
    $$SELECT v.relation, d.missing, d.surplus FROM eddy.views v, eddy.verify_view(v.relation) d
      WHERE (d.missing, d.surplus) <> (0, 0)$$;

SELECT * FROM left_joined ORDER BY id, code;
SELECT * FROM right_joined ORDER BY id, code;
SELECT * FROM full_joined ORDER BY id, code;
SELECT * FROM full_using ORDER BY id, code;
SELECT * FROM natural_left ORDER BY id, code;
SELECT * FROM bosses ORDER BY id;
SELECT * FROM poorer ORDER BY id, than;
SELECT * FROM tested ORDER BY id;
SELECT * FROM tags ORDER BY code, other;
SELECT * FROM anything ORDER BY id;
SELECT * FROM whatever ORDER BY id;
SELECT * FROM without ORDER BY id;
SELECT * FROM counted ORDER BY id;
SELECT * FROM merged ORDER BY id, code, name;
SELECT * FROM nested ORDER BY id, code;
SELECT * FROM chain ORDER BY id;
SELECT * FROM differing();

-- A first partner, a last one gone, another key, a NULL for a key.
INSERT INTO badge VALUES (3, 'c', 3, NULL), (4, 'd', 9, NULL);
DELETE FROM badge WHERE person = 2;
UPDATE badge SET person = 2 WHERE person = 7;
UPDATE person SET id = 9, boss = 4 WHERE id = 4;
UPDATE person SET pay = NULL WHERE id = 1;
INSERT INTO person VALUES (7, 'eve', 2, 1.00);
SELECT * FROM left_joined ORDER BY id, code;
SELECT * FROM right_joined ORDER BY id, code;
SELECT * FROM full_joined ORDER BY id, code;
SELECT * FROM full_using ORDER BY id, code;
SELECT * FROM bosses ORDER BY id;
SELECT * FROM poorer ORDER BY id, than;
SELECT * FROM without ORDER BY id;
SELECT * FROM counted ORDER BY id;
SELECT * FROM differing();

-- There and back in one transaction; both sides at once.
BEGIN;
DELETE FROM badge;
INSERT INTO badge VALUES (1, 'a', 5, NULL);
UPDATE person SET id = id + 100;
SAVEPOINT s;
DELETE FROM person;
ROLLBACK TO s;
UPDATE person SET id = id - 100;
COMMIT;
SELECT * FROM full_using ORDER BY id, code;
SELECT * FROM differing();

-- An error in the condition is raised while its row is there.
INSERT INTO badge VALUES (0, 'o', 1, NULL);
INSERT INTO person VALUES (0, 'nil', NULL, NULL);
SELECT * FROM failing;
\echo :SQLSTATE
DELETE FROM person WHERE id = 0;
SELECT * FROM failing ORDER BY id, code;

TRUNCATE badge;
SELECT * FROM full_using ORDER BY id, code;
SELECT * FROM without ORDER BY id;
SELECT * FROM differing();
TRUNCATE person;
SELECT count(*) FROM full_using;
SELECT * FROM differing();

EXPLAIN CREATE INCREMENTAL VIEW x AS SELECT p.id, b.code FROM person p LEFT JOIN badge b ON b.person = p.id;

-- A side that never has rows
CREATE INCREMENTAL VIEW of_nothing AS SELECT p.id + c.n AS sum, count(*) FROM person p JOIN (SELECT x + 1 AS n FROM (VALUES (1)) v(x) WHERE x > 2) c ON p.id < c.n GROUP BY p.id + c.n;
CREATE INCREMENTAL VIEW nothing_joined AS SELECT p.id + c.n AS sum FROM person p JOIN (SELECT abs(x) AS n FROM (VALUES (1)) v(x) WHERE x > 2) c ON p.id = c.n + 1;
CREATE INCREMENTAL VIEW nothing_beside AS SELECT p.id, c.n FROM person p LEFT JOIN (SELECT abs(x) AS n FROM (VALUES (1)) v(x) WHERE x > 2) c ON p.id = c.n + 1;
INSERT INTO person (id) VALUES (1), (2);
SELECT * FROM of_nothing;
SELECT * FROM nothing_joined;
SELECT * FROM nothing_beside ORDER BY id;

-- Under an OR each arm has its own keys; a pair that meets several is there once.
CREATE TABLE pairing (id int, a int, b int, c text);
INSERT INTO pairing SELECT i, i % 7, i % 11, CASE WHEN i % 5 > 0 THEN chr(97 + i % 5) END FROM generate_series(1, 60) i;
INSERT INTO pairing VALUES (61, NULL, NULL, NULL), (61, 3, 4, 'b');
CREATE VIEW either_query AS SELECT x.id, y.id AS other FROM pairing x JOIN pairing y
    ON (x.id = 1 AND y.id = 2) OR (x.a = 3 AND y.b = 4) OR x.id = y.a OR x.c IS NOT DISTINCT FROM y.c AND x.b = y.b;
CREATE INCREMENTAL VIEW either AS SELECT * FROM either_query;
CREATE VIEW either_or_none_query AS SELECT x.id, y.id AS other FROM pairing x LEFT JOIN pairing y
    ON x.id = y.a AND y.c = 'b' OR x.c = 'c' AND y.b = 4 AND 10 / y.id = 0;
CREATE INCREMENTAL VIEW either_or_none AS SELECT * FROM either_or_none_query;
CREATE FUNCTION differing_pairs() RETURNS TABLE (view text, id int, other int) BEGIN ATOMIC
    (SELECT 'either', e.id, e.other FROM either e EXCEPT ALL SELECT 'either', q.id, q.other FROM either_query q)
    UNION ALL (SELECT 'either', q.id, q.other FROM either_query q EXCEPT ALL SELECT 'either', e.id, e.other FROM either e)
    UNION ALL (SELECT 'none', e.id, e.other FROM either_or_none e EXCEPT ALL SELECT 'none', q.id, q.other FROM either_or_none_query q)
    UNION ALL (SELECT 'none', q.id, q.other FROM either_or_none_query q EXCEPT ALL SELECT 'none', e.id, e.other FROM either_or_none e);
END;
SELECT count(*), count(DISTINCT (id, other)) FROM either;
SELECT * FROM differing_pairs();
UPDATE pairing SET b = 4 WHERE id < 30;
UPDATE pairing SET c = 'b', a = 3 WHERE id % 4 = 0;
DELETE FROM pairing WHERE id % 6 = 1;
SELECT * FROM differing_pairs();
EXPLAIN CREATE INCREMENTAL VIEW x AS SELECT x.id, y.id AS other FROM pairing x JOIN pairing y
    ON (x.id = 1 AND y.id = 2) OR (x.a = 3 AND y.b = 4);
DROP TABLE pairing CASCADE;

DROP TABLE person, badge CASCADE;
