-- What came with PostgreSQL 16.
CREATE TABLE doc (id int PRIMARY KEY, body text, n int);
ALTER TABLE doc REPLICA IDENTITY FULL;
INSERT INTO doc VALUES (1, '{"a": 1}', 1), (2, '[1, 2]', NULL), (3, 'no json', 3);

-- constructors of JSON, and the question whether a text is JSON
CREATE INCREMENTAL VIEW made AS
    SELECT id, JSON_OBJECT('id': id, 'n': n ABSENT ON NULL)::text AS object, JSON_ARRAY(id, n NULL ON NULL)::text AS list FROM doc;
CREATE INCREMENTAL VIEW valid AS SELECT id FROM doc WHERE body IS JSON;
CREATE INCREMENTAL VIEW objects AS SELECT id FROM doc WHERE body IS JSON OBJECT WITH UNIQUE KEYS;
CREATE INCREMENTAL VIEW dated AS SELECT id, JSON_OBJECT('at': to_timestamp(n) RETURNING jsonb) FROM doc;
-- what is no value of SQL may change by itself
CREATE INCREMENTAL VIEW bad AS SELECT JSON_OBJECT('table': NULL::aclitem) FROM doc;
\echo :SQLSTATE
UPDATE doc SET n = 7, body = '{"b": 1, "b": 2}' WHERE id = 2;
DELETE FROM doc WHERE id = 1;
SELECT * FROM made ORDER BY id;
SELECT * FROM valid ORDER BY id;
SELECT * FROM objects ORDER BY id;

-- aggregates of JSON
CREATE TABLE part (id int PRIMARY KEY, g int, k text, v int, j text, at timestamptz);
INSERT INTO part VALUES (1, 1, 'a', 1, '{"x": 1}', '2026-01-01 10:00+01'), (2, 1, 'b', NULL, '[1]', NULL), (3, 2, 'a', 3, 'null', NULL), (4, NULL, 'c', NULL, NULL, NULL);
CREATE INCREMENTAL VIEW arrays AS SELECT g, JSON_ARRAYAGG(v ORDER BY id)::text AS present, JSON_ARRAYAGG(v ORDER BY id DESC NULL ON NULL RETURNING text) AS every,
    JSON_ARRAYAGG(j FORMAT JSON ORDER BY id RETURNING jsonb) AS documents, JSON_ARRAYAGG(k || id ORDER BY k, id RETURNING bytea) FILTER (WHERE v IS NULL) AS bytes FROM part GROUP BY g;
CREATE INCREMENTAL VIEW maps AS SELECT g, JSON_OBJECTAGG(id: v ABSENT ON NULL RETURNING jsonb) AS present, JSON_OBJECTAGG(k VALUE v WITH UNIQUE KEYS RETURNING jsonb) AS every FROM part GROUP BY g;
CREATE INCREMENTAL VIEW over_windows AS SELECT id, JSON_ARRAYAGG(v) OVER (PARTITION BY g ORDER BY id ROWS 1 PRECEDING)::text AS near FROM part;
CREATE INCREMENTAL VIEW made_of AS SELECT JSON_OBJECT('all': JSON_ARRAYAGG(JSON_OBJECT('k': k, 'v': CASE v WHEN 1 THEN 'one' END) ORDER BY id), 'n': count(*))::text AS o FROM part;
CREATE INCREMENTAL VIEW times AS SELECT g, JSON_ARRAYAGG(at ORDER BY id)::text FROM part GROUP BY g;
CREATE INCREMENTAL VIEW named AS SELECT JSON_ARRAYAGG(id::regclass ORDER BY id)::text FROM part;
SELECT * FROM arrays ORDER BY g;
SELECT * FROM maps ORDER BY g;
SELECT * FROM over_windows ORDER BY id;
SELECT * FROM made_of;
UPDATE part SET v = 7, g = 2 WHERE id = 2;
INSERT INTO part VALUES (5, 2, 'd', 9, '"t"', now()), (6, NULL, 'e', 0, '{}', NULL);
DELETE FROM part WHERE id = 1;
SELECT * FROM arrays ORDER BY g;
SELECT * FROM maps ORDER BY g;
-- the same key twice is an error
INSERT INTO part VALUES (7, 2, 'd', 1, '1', NULL);
SELECT * FROM maps;
\echo :SQLSTATE
DELETE FROM part WHERE id = 7;
SELECT count(*) FROM maps;

-- any_value, and numbers with underscores and in other bases
CREATE INCREMENTAL VIEW any_of AS SELECT any_value(n) IS NOT NULL AS has_any FROM doc;
SELECT * FROM any_of;
CREATE INCREMENTAL VIEW literals AS SELECT id + 1_000 AS thousand, id + 0xFF AS hexadecimal, id + 0b11 AS binary FROM doc;
SELECT * FROM literals ORDER BY 1;

-- a subquery in FROM without a name
CREATE INCREMENTAL VIEW unnamed AS SELECT s FROM (SELECT sum(n) AS s FROM doc);
SELECT * FROM unnamed;

-- a table function's columns of an outer join are marked as such in the tree
CREATE TABLE tag (doc int, name text);
ALTER TABLE tag REPLICA IDENTITY FULL;
INSERT INTO tag VALUES (2, 'two');
CREATE INCREMENTAL VIEW tagged AS
    SELECT d.id, t.name, upper(t.name) AS upper, t.name IS NULL AS lacks, row_number() OVER (PARTITION BY t.name ORDER BY d.id) AS r
    FROM doc d LEFT JOIN tag t ON t.doc = d.id;
INSERT INTO tag VALUES (3, NULL);
DELETE FROM tag WHERE doc = 2;
SELECT * FROM tagged ORDER BY id;

SELECT v.relation, d.* FROM eddy.views v, eddy.verify_view(v.relation) d ORDER BY v.relation::text;
DROP TABLE doc, tag, part CASCADE;
