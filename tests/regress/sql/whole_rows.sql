-- Rows as a whole: of tables, of subqueries, and of sides of outer joins, where there may be none.
SET client_min_messages = warning;
CREATE TABLE person (id int PRIMARY KEY, name text);
CREATE TABLE pet (owner int, name text, data json);
CREATE TABLE gone (a int, b text, c int);
ALTER TABLE gone DROP COLUMN b;
INSERT INTO person VALUES (1, 'ann'), (2, 'bob'), (3, 'cid');
INSERT INTO pet VALUES (1, 'rex', '{"age": 3}'), (1, NULL, NULL), (NULL, NULL, NULL), (9, 'tom', '1');
INSERT INTO gone VALUES (1, 10), (NULL, NULL);
CREATE VIEW sides_q AS SELECT p.id, to_jsonb(t) AS pet, t::text AS text, t IS NULL AS none, t IS NOT NULL AS whole, to_jsonb(p) AS person FROM person p LEFT JOIN pet t ON t.owner = p.id;
CREATE VIEW listed_q AS SELECT p.id, json_agg(t ORDER BY t.name)::text AS all, coalesce(jsonb_agg(t ORDER BY t.name) FILTER (WHERE t.owner IS NOT NULL), '[]') AS pets, count(t) AS n, count(t.*) AS m, count(*) AS rows
    FROM person p LEFT JOIN pet t ON t.owner = p.id GROUP BY p.id;
CREATE VIEW both_q AS SELECT row_to_json(x)::text AS x, row_to_json(y)::text AS y FROM (SELECT owner, count(*) FROM pet GROUP BY owner) x FULL JOIN (VALUES (1, 'one'), (2, 'two')) y(n, t) ON x.owner = y.n;
CREATE VIEW dropped_q AS SELECT p.id, to_jsonb(g) AS g, g.c FROM person p LEFT JOIN gone g ON g.a = p.id;
CREATE VIEW several_q AS WITH w AS (SELECT owner, max(name) AS most FROM pet GROUP BY owner)
    SELECT p.id, to_jsonb(w) AS w, to_jsonb(l) AS l, to_jsonb(s) AS s FROM person p LEFT JOIN w ON w.owner = p.id
    LEFT JOIN LATERAL (SELECT p.name || t.name AS both FROM pet t WHERE t.owner = p.id) l ON l.both > 'b' LEFT JOIN LATERAL generate_series(2, p.id) AS s(n) ON s.n < 3;
CREATE VIEW nested_q AS SELECT p.id, (SELECT jsonb_agg(to_jsonb(t) || to_jsonb(q) ORDER BY q.name) FROM pet q WHERE q.owner = p.id) AS pairs FROM person p LEFT JOIN (pet t JOIN gone g ON g.a = t.owner) ON t.owner = p.id;
CREATE VIEW itself_q AS SELECT p.id, t AS pet FROM person p LEFT JOIN pet t ON t.owner = p.id;
CREATE TABLE kind (name text);
INSERT INTO kind VALUES ('sides'), ('listed'), ('both'), ('dropped'), ('several'), ('nested'), ('itself');
SELECT format('CREATE INCREMENTAL VIEW %I AS SELECT * FROM %I', name || '_v', name || '_q') FROM kind \gexec
CREATE FUNCTION differs(name text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format('(SELECT v::text FROM %1$I v EXCEPT ALL SELECT q::text FROM %2$I q) UNION ALL (SELECT q::text FROM %2$I q EXCEPT ALL SELECT v::text FROM %1$I v)',
        name || '_v', name || '_q');
END $$;
SELECT name, d FROM kind, differs(name) AS d;
TABLE sides_v ORDER BY id, text;
TABLE listed_v ORDER BY id;
TABLE dropped_v ORDER BY id;
INSERT INTO pet VALUES (2, NULL, NULL), (3, 'zoe', '[]'), (3, 'zoe', '[]');
INSERT INTO gone VALUES (3, NULL), (1, 11);
UPDATE pet SET owner = 2 WHERE name = 'rex';
DELETE FROM person WHERE id = 1;
INSERT INTO person VALUES (5, NULL);
SELECT name, d FROM kind, differs(name) AS d;
TABLE sides_v ORDER BY id, text;
DELETE FROM pet WHERE owner = 2;
TRUNCATE gone;
SELECT name, d FROM kind, differs(name) AS d;
-- A row of a join itself.
CREATE INCREMENTAL VIEW bad AS SELECT j FROM person p LEFT JOIN (pet t JOIN gone g ON g.a = t.owner) AS j ON j.owner = p.id;
DROP TABLE person, pet, gone, kind CASCADE;
DROP FUNCTION differs;
