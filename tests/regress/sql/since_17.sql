-- What came with PostgreSQL 17.

-- MAINTAIN: somebody else may refresh a view
CREATE TABLE t (id int PRIMARY KEY, body jsonb);
INSERT INTO t VALUES (1, '{"a": [1, 2], "b": "x"}'), (2, '{"a": []}');
CREATE INCREMENTAL VIEW ids AS SELECT id FROM t;
CREATE ROLE eddy_keeper;
SET ROLE eddy_keeper;
REFRESH INCREMENTAL VIEW ids;
RESET ROLE;
GRANT MAINTAIN ON ids TO eddy_keeper;
SET ROLE eddy_keeper;
REFRESH INCREMENTAL VIEW ids;
DROP INCREMENTAL VIEW ids;
RESET ROLE;
INSERT INTO t VALUES (3, '{"a": [3], "b": 3}');
SELECT * FROM ids ORDER BY id;

-- functions of JSON paths
CREATE INCREMENTAL VIEW paths AS
    SELECT id, JSON_VALUE(body, '$.b') AS b, JSON_QUERY(body, '$.a')::text AS a, JSON_EXISTS(body, '$.a[0]') AS has FROM t;
CREATE INCREMENTAL VIEW dated AS SELECT id, JSON_VALUE(body, '$.at' RETURNING timestamptz) AS at, JSON_VALUE(body, '$.at' RETURNING date ERROR ON ERROR) AS day FROM t;
UPDATE t SET body = '{"at": "2026-03-29 05:00+00", "know": 1}' WHERE id = 1;
SELECT at, day FROM dated WHERE at IS NOT NULL;
UPDATE t SET body = '{"a": [9]}' WHERE id = 2;
SELECT * FROM paths ORDER BY id;

-- rows of JSON
CREATE INCREMENTAL VIEW elements AS SELECT id, j.* FROM t,
    JSON_TABLE(body, '$.a[*]' COLUMNS (n FOR ORDINALITY, v int PATH '$', t text PATH '$' DEFAULT '?' ON EMPTY, big boolean EXISTS PATH '$ ? (@ > 1)')) j;
CREATE INCREMENTAL VIEW nested AS SELECT t.id, j.k, j.v, j.w::text FROM t LEFT JOIN JSON_TABLE(body, '$' PASSING id AS id COLUMNS (
    k text PATH '$.b', w jsonb PATH '$.a' WITH WRAPPER,
    NESTED PATH '$.a[*] ? (@ > $id)' COLUMNS (v numeric PATH '$'),
    NESTED PATH '$.c[*]' COLUMNS (c text PATH '$'))) j ON true;
CREATE INCREMENTAL VIEW strict AS SELECT j.v FROM t, JSON_TABLE(body, '$.a[*]' COLUMNS (v int PATH '$' ERROR ON ERROR) ERROR ON ERROR) j;
SELECT * FROM elements ORDER BY id, n;
UPDATE t SET body = '{"a": [1, 5, 7], "b": "y", "c": ["p", "q"]}' WHERE id = 2;
INSERT INTO t VALUES (7, '{"a": ["x", null, 2]}'), (8, NULL), (9, '[]');
SELECT * FROM elements ORDER BY id, n;
SELECT * FROM nested ORDER BY id, v, k;
SELECT * FROM strict;
\echo :SQLSTATE
DELETE FROM t WHERE id > 5;
SELECT v FROM strict ORDER BY v;
CREATE INCREMENTAL VIEW bad AS SELECT j.v FROM t, JSON_TABLE(body, '$.a[*]' COLUMNS (v regclass PATH '$')) j;
\echo :SQLSTATE
UPDATE t SET body = '{"a": [9]}' WHERE id = 2;

-- what MERGE and COPY ON_ERROR write arrives like any other change
MERGE INTO t USING (VALUES (1), (4)) s(id) ON t.id = s.id
    WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, '{}')
    WHEN NOT MATCHED BY SOURCE THEN UPDATE SET body = '{"b": "kept"}';
SELECT * FROM paths ORDER BY id;

-- the built-in collations
CREATE TABLE word (id int PRIMARY KEY, w text COLLATE pg_c_utf8);
INSERT INTO word VALUES (1, 'b'), (2, 'Ä'), (3, 'a'), (4, NULL);
CREATE INCREMENTAL VIEW words AS SELECT min(w) AS first, max(w) AS last, count(DISTINCT upper(w)) AS n FROM word;
CREATE INCREMENTAL VIEW lowered AS SELECT lower(w) AS w, upper(w) AS u, initcap(w) AS i FROM word WHERE w > 'B';
INSERT INTO word VALUES (5, 'ä');
DELETE FROM word WHERE id = 3;
SELECT * FROM words;
SELECT * FROM lowered ORDER BY 1;

SELECT v.relation, d.* FROM eddy.views v, eddy.verify_view(v.relation) d ORDER BY v.relation::text;
DROP TABLE t, word CASCADE;
DROP ROLE eddy_keeper;
