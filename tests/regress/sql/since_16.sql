-- What came with PostgreSQL 16.
CREATE TABLE doc (id int PRIMARY KEY, body text, n int);
ALTER TABLE doc REPLICA IDENTITY FULL;
INSERT INTO doc VALUES (1, '{"a": 1}', 1), (2, '[1, 2]', NULL), (3, 'no json', 3);

-- constructors of JSON, and the question whether a text is JSON
CREATE INCREMENTAL VIEW made AS
    SELECT id, JSON_OBJECT('id': id, 'n': n ABSENT ON NULL)::text AS object, JSON_ARRAY(id, n NULL ON NULL)::text AS list FROM doc;
CREATE INCREMENTAL VIEW valid AS SELECT id FROM doc WHERE body IS JSON;
CREATE INCREMENTAL VIEW objects AS SELECT id FROM doc WHERE body IS JSON OBJECT WITH UNIQUE KEYS;
CREATE INCREMENTAL VIEW bad AS SELECT JSON_OBJECTAGG(id: n ABSENT ON NULL)::text AS object FROM doc;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW dated AS SELECT id, JSON_OBJECT('at': to_timestamp(n) RETURNING jsonb) FROM doc;
-- what is no value of SQL may change by itself
CREATE INCREMENTAL VIEW bad AS SELECT JSON_OBJECT('table': id::regclass) FROM doc;
\echo :SQLSTATE
UPDATE doc SET n = 7, body = '{"b": 1, "b": 2}' WHERE id = 2;
DELETE FROM doc WHERE id = 1;
SELECT * FROM made ORDER BY id;
SELECT * FROM valid ORDER BY id;
SELECT * FROM objects ORDER BY id;

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
DROP TABLE doc, tag CASCADE;
