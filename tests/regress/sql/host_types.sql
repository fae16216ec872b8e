-- Types and functions that PostgreSQL itself computes, in its own executor.
SET client_min_messages = warning;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE point3 AS (x int, y numeric, z text);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE FUNCTION double_it(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN n * 2; END';
CREATE FUNCTION inverse(n int) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT 1.0::float8 / n';
CREATE TABLE things (
    id int PRIMARY KEY, feeling mood, doc jsonb, raw json, span interval, nums int4range, net inet,
    place point3, size positive, at time, day date, stamp timestamp, price money, bits bit varying, label text,
    moods mood[]);
INSERT INTO things VALUES
    (1, 'ok', '{"a": 1, "b": [1, 2]}', '{"k":  1}', '1 day', '[1,5)', '10.0.0.1/8', (1, 2.50, 'p'), 3, '10:00', '2024-01-31', '2024-01-31 10:00', 1.50, '101', 'Äpfel', '{ok,sad}'),
    (2, 'sad', '{"a": 1.0}', '[1]', '24 hours', '[1,4]', '10.0.0.2', (1, 2.5, 'p'), 4, '09:30', '2024-02-29', '2024-02-29 00:00', 1.50, '11', 'apfel', '{}'),
    (3, 'happy', '{"a": null}', 'null', '1 mon -1 day', 'empty', '::1', NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, NULL, NULL, NULL, NULL, NULL, NULL, (NULL, NULL, NULL), NULL, '10:00', 'infinity', '-infinity', -3, '', '', '{NULL,happy}');
CREATE INCREMENTAL VIEW everything AS SELECT * FROM things;
CREATE INCREMENTAL VIEW computed AS
    SELECT id, doc ->> 'a' AS a, doc -> 'b' -> 1 AS b1, doc @> '{"a": 1}' AS has_a, day + span AS later, stamp - span AS earlier,
        nums @> 3 AS has_3, upper(nums) AS upper, host(net) AS host, (place).y + 1 AS y, place IS NULL AS nowhere,
        double_it(id) AS twice, size + 1 AS bigger, label ~* '^ä' AS a_umlaut, md5(label) AS md5, label ILIKE 'AP%' AS ap,
        feeling > 'sad' AS fine, CASE feeling WHEN 'ok' THEN 1 WHEN 'sad' THEN 0 END AS mark,
        moods[1] AS first_mood, 'happy' = ANY (moods) AS may_be_happy, to_jsonb(day) AS day, ROW(id, label) > ROW(2, 'a') AS large,
        regexp_replace(label, '[a-m]', '*', 'g') AS starred, EXTRACT(epoch FROM span) AS seconds, length(bits) AS bits
    FROM things;
CREATE INCREMENTAL VIEW by_feeling AS SELECT feeling, count(*), max(span) AS longest, min(at) AS first FROM things GROUP BY feeling;
CREATE INCREMENTAL VIEW by_span AS SELECT span, count(*), sum(price) AS price, array_agg(feeling ORDER BY feeling DESC) AS feelings FROM things GROUP BY span;
CREATE INCREMENTAL VIEW by_a AS SELECT doc -> 'a' AS a, count(*) AS rows, upper(doc ->> 'a') AS up FROM things GROUP BY doc -> 'a', doc ->> 'a' HAVING doc ->> 'a' IS NOT NULL OR count(*) > 1;
CREATE INCREMENTAL VIEW places AS SELECT DISTINCT place FROM things;
CREATE INCREMENTAL VIEW ranges AS SELECT nums FROM things UNION SELECT int4range(1, id) FROM things;
CREATE INCREMENTAL VIEW pairs AS SELECT a.id, b.id AS other FROM things a JOIN things b ON a.feeling < b.feeling AND a.nums && b.nums;
CREATE INCREMENTAL VIEW same_doc AS SELECT a.id, b.id AS other FROM things a JOIN things b ON a.doc -> 'a' = b.doc -> 'a';
CREATE INCREMENTAL VIEW like_mine AS SELECT id FROM things WHERE span IN (SELECT span FROM things WHERE id = 1);
CREATE INCREMENTAL VIEW latest AS SELECT id, span FROM things ORDER BY span DESC NULLS LAST, id LIMIT 2;
CREATE INCREMENTAL VIEW ranked AS SELECT id, rank() OVER (ORDER BY feeling), lag(feeling) OVER (ORDER BY place, id) FROM things;
CREATE INCREMENTAL VIEW documents AS
    SELECT json_agg(id ORDER BY id) AS ids, jsonb_object_agg(id, label) FILTER (WHERE label <> '') AS labels,
        json_agg(DISTINCT size ORDER BY size) AS sizes, sum(span) AS total, avg(span) AS average, range_agg(nums) AS nums
    FROM things;
CREATE INCREMENTAL VIEW unnested AS SELECT id, m FROM things, unnest(moods) WITH ORDINALITY AS u(m, n);
CREATE INCREMENTAL VIEW guarded AS SELECT id, CASE WHEN id <> 7 THEN inverse(id - 7) END AS inverse FROM things;
CREATE FUNCTION parts(n int, OUT half int, OUT rest numeric) RETURNS SETOF record LANGUAGE sql IMMUTABLE AS 'SELECT n / 2, n % 2 UNION ALL SELECT n, 0';
CREATE AGGREGATE product(int) (SFUNC = int4mul, STYPE = int, INITCOND = '1');
CREATE INCREMENTAL VIEW entries AS SELECT id, e.key, e.value FROM things LEFT JOIN LATERAL jsonb_each(doc) AS e ON e.key <> 'b';
CREATE INCREMENTAL VIEW elements AS SELECT id, jsonb_array_elements(doc -> 'b') AS x, generate_series(1, 2) AS n FROM things;
CREATE INCREMENTAL VIEW letters AS SELECT id, l, n FROM things, regexp_split_to_table(label, 'p') WITH ORDINALITY AS s(l, n);
CREATE INCREMENTAL VIEW days AS SELECT id, d FROM things, generate_series(timestamp '2024-01-30', date_trunc('day', stamp), '12 hours') AS d WHERE isfinite(stamp);
CREATE INCREMENTAL VIEW records AS SELECT id, r.a, r.b FROM things, jsonb_to_record(doc) AS r(a text, b jsonb) WHERE r.a IS NOT NULL;
CREATE INCREMENTAL VIEW rows AS SELECT id, to_jsonb(s) AS s, s IS NULL AS no_s, count(*) OVER (PARTITION BY s) AS same FROM (SELECT id, size AS "the size" FROM things) s WHERE s <> ROW(3, 1::positive);
CREATE INCREMENTAL VIEW halves AS SELECT id, p.half, p.rest, n FROM things, ROWS FROM (parts(id), unnest(moods)) WITH ORDINALITY AS p(half, rest, mood, n);
CREATE INCREMENTAL VIEW products AS SELECT id % 2 AS odd, product(id) AS product, product(DISTINCT size) AS sizes FROM things GROUP BY 1;
CREATE INCREMENTAL VIEW spelled AS
    SELECT id, nums::text AS nums, int4multirange(nums)::text AS many, nums::text::int4range AS again, place::text AS place, (place::text::point3).z AS z, ARRAY[place]::text AS places
    FROM things;
CREATE FUNCTION check_views() RETURNS TABLE (view text, missing bigint, surplus bigint) LANGUAGE sql AS $$
    SELECT relation::text, v.* FROM eddy.views, eddy.verify_view(relation) v WHERE v.missing + v.surplus <> 0 $$;
SELECT * FROM check_views();
SELECT * FROM everything ORDER BY id;
SELECT * FROM computed ORDER BY id;
SELECT * FROM spelled ORDER BY id;
SELECT * FROM by_feeling ORDER BY feeling;
SELECT * FROM by_span ORDER BY span;
SELECT * FROM documents;
SELECT * FROM entries ORDER BY id, key;
SELECT * FROM halves ORDER BY id, n;
SELECT * FROM products ORDER BY odd;
UPDATE things SET feeling = 'ok', doc = doc || '{"a": 1}', span = span * 2 WHERE id IN (2, 3);
DELETE FROM things WHERE id = 1;
INSERT INTO things SELECT 10 + id, feeling, doc, raw, span, nums, net, place, size, at, day, stamp, price, bits, label, moods FROM things;
SELECT * FROM check_views();
SELECT * FROM computed ORDER BY id;
SELECT * FROM ranges ORDER BY nums;
SELECT * FROM ranked ORDER BY id;
SELECT * FROM documents;
SELECT * FROM products ORDER BY odd;
-- An error of a function is an error of the view, while the row is there.
CREATE INCREMENTAL VIEW failing AS SELECT id, inverse(id - 5) AS inverse FROM things;
INSERT INTO things (id) VALUES (5);
SELECT count(*) FROM failing;
\echo :SQLSTATE
SELECT count(*) FROM guarded;
DELETE FROM things WHERE id = 5;
SELECT count(*) FROM failing;
-- Depths and paths as PostgreSQL's own clauses track them.
CREATE TABLE link (a int, b int);
INSERT INTO link VALUES (1, 2), (2, 3), (3, 1), (2, 4), (4, 5);
CREATE INCREMENTAL VIEW cyclic AS
    WITH RECURSIVE w(a, b) AS (SELECT a, b FROM link WHERE a = 1 UNION ALL SELECT l.a, l.b FROM w JOIN link l ON l.a = w.b)
    CYCLE a SET is_cycle USING path
    SELECT a, b, is_cycle, cardinality(path) AS steps, rank() OVER (ORDER BY path) AS n FROM w;
CREATE INCREMENTAL VIEW breadth AS
    WITH RECURSIVE w(a, b) AS (SELECT a, b FROM link WHERE a = 1 UNION SELECT l.a, l.b FROM w JOIN link l ON l.a = w.b WHERE l.b <> 1)
    SEARCH BREADTH FIRST BY a, b SET seq
    SELECT a, b, rank() OVER (ORDER BY seq) AS n FROM w;
CREATE INCREMENTAL VIEW depth AS
    WITH RECURSIVE w(a, b) AS (SELECT a, b FROM link WHERE a = 1 UNION ALL SELECT l.a, l.b FROM w JOIN link l ON l.a = w.b WHERE l.b <> 1)
    SEARCH DEPTH FIRST BY a, b SET seq
    SELECT a, b, rank() OVER (ORDER BY seq) AS n FROM w;
SELECT * FROM cyclic ORDER BY n, b;
SELECT * FROM breadth ORDER BY n, b;
SELECT * FROM depth ORDER BY n, b;
UPDATE link SET b = 6 WHERE a = 2 AND b = 3;
INSERT INTO link VALUES (1, 6), (6, 1), (6, 7);
SELECT * FROM cyclic ORDER BY n, b;
SELECT * FROM breadth ORDER BY n, b;
SELECT * FROM depth ORDER BY n, b;
SELECT * FROM check_views();
SELECT * FROM rows ORDER BY id;
-- Two aggregates of the same name, in one view; literals without a type; errors that end nothing but the view.
CREATE INCREMENTAL VIEW sums AS SELECT sum(price) AS price, sum(span) AS span, count(num_nonnulls('a', id, span)) AS n FROM things;
SELECT * FROM sums;
CREATE FUNCTION raising(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN IF n = 91 THEN RAISE 'not in the state for %', n USING ERRCODE = '55000'; END IF; RETURN n; END $$;
CREATE INCREMENTAL VIEW raised AS SELECT raising(id) AS n FROM things;
INSERT INTO things (id) VALUES (91);
SELECT * FROM raised;
\echo :SQLSTATE
SELECT * FROM sums;
DELETE FROM things WHERE id = 91;
SELECT count(*) > 0 AS is_back FROM raised;
-- A value that PostgreSQL computes, compared with the rows of a subquery.
CREATE INCREMENTAL VIEW within AS SELECT id, span * 2 IN (SELECT span FROM things) AS is_twice, doc -> 'a' = ANY (SELECT doc -> 'b' FROM things) AS is_there FROM things;
INSERT INTO things (id, span, doc) VALUES (92, '1 day', '{"a": [1]}'), (93, '2 days', '{"b": [1.0]}');
SELECT * FROM within WHERE id > 90 ORDER BY id;
DELETE FROM things WHERE id = 93;
SELECT * FROM within WHERE id > 90 ORDER BY id;
CREATE TYPE lost AS (a int, b int, c int);
ALTER TYPE lost DROP ATTRIBUTE b;
CREATE FUNCTION losing(n int) RETURNS SETOF lost LANGUAGE sql IMMUTABLE AS 'SELECT n, n';
CREATE INCREMENTAL VIEW lessened AS SELECT t.id, l.*, to_jsonb(l) AS j FROM things t, losing(t.id) WITH ORDINALITY l;
SELECT * FROM check_views();
-- Nothing that may change by itself.
CREATE FUNCTION changing(n int) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN n; END';
CREATE INCREMENTAL VIEW bad AS SELECT changing(id) FROM things;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT span::text || to_json(now())::text FROM things;
CREATE TYPE intspan AS RANGE (subtype = int);
CREATE FUNCTION span_json(r intspan) RETURNS json LANGUAGE sql VOLATILE AS 'SELECT to_json(random() + lower(r))';
CREATE INCREMENTAL VIEW spans AS SELECT id, to_jsonb(intspan(id, NULL)) AS j FROM things;
SELECT count(*) > 0 AS there FROM spans WHERE j IS NOT NULL;
DROP INCREMENTAL VIEW spans;
CREATE CAST (intspan AS json) WITH FUNCTION span_json(intspan);
CREATE INCREMENTAL VIEW bad AS SELECT to_jsonb(intspan(id, NULL)) FROM things;
DROP TYPE intspan CASCADE;
CREATE INCREMENTAL VIEW bad AS SELECT eddy.host_call(1, id) FROM things;
EXPLAIN CREATE INCREMENTAL VIEW shown AS SELECT doc -> 'a' AS a, max(span) FROM things WHERE doc ? 'a' GROUP BY 1;
DROP TABLE things, link CASCADE;

-- a type of an extension, by its own operators
CREATE EXTENSION citext;
CREATE TABLE account (id int PRIMARY KEY, email citext);
CREATE TABLE banned (email citext);
CREATE INCREMENTAL VIEW barred AS SELECT id, b.email FROM account a JOIN banned b ON a.email = b.email;
CREATE INCREMENTAL VIEW barred_using AS SELECT id, email FROM account JOIN banned USING (email);
CREATE INCREMENTAL VIEW allowed AS SELECT id FROM account WHERE email NOT IN (SELECT email FROM banned);
CREATE INCREMENTAL VIEW is_barred AS SELECT id, email IN (SELECT email FROM banned) AS barred, email >= ALL (SELECT email FROM banned) AS last FROM account;
CREATE INCREMENTAL VIEW domains AS SELECT split_part(email, '@', 2) AS domain, count(DISTINCT email), min(email) AS first FROM account GROUP BY 1;
CREATE INCREMENTAL VIEW pairs AS SELECT a.id, b.id AS other FROM account a JOIN account b ON a.email < b.email AND a.email <> 'X@y.z' AND a.email LIKE '%@Y.%';
-- a whole row that may not be there: a column that is never NULL tells
CREATE INCREMENTAL VIEW accounts_of AS
    SELECT b.email, a, to_jsonb(a) AS json, a.id IS NULL AS none, (SELECT count(*) FROM account o WHERE o.id < a.id AND o IS DISTINCT FROM a) AS before FROM banned b LEFT JOIN account a ON a.email = b.email;
INSERT INTO account VALUES (1, 'A@x.y'), (2, 'a@X.Y'), (3, 'b@y.z'), (4, NULL), (5, 'x@Y.z');
INSERT INTO banned VALUES ('a@x.Y'), ('B@B.b');
SELECT * FROM barred ORDER BY id;
SELECT id FROM barred_using ORDER BY id;
SELECT * FROM allowed ORDER BY id;
SELECT * FROM is_barred ORDER BY id;
SELECT lower(domain) AS domain, count FROM domains ORDER BY 1;
SELECT * FROM pairs ORDER BY 1, 2;
SELECT * FROM accounts_of ORDER BY email, json;
UPDATE account SET email = 'C@C.c' WHERE id = 1;
DELETE FROM banned WHERE email = 'b@b.B';
SELECT * FROM is_barred ORDER BY id;
-- Comparing writes nothing: a transaction with a number would be waited for by a worker that starts.
BEGIN;
SELECT relation::text, d.* FROM eddy.views, eddy.verify_view(relation) d WHERE (missing, surplus) <> (0, 0);
SELECT pg_current_xact_id_if_assigned() IS NULL AS has_written_nothing;
COMMIT;
EXPLAIN CREATE INCREMENTAL VIEW barred_too AS SELECT id FROM account a JOIN banned b ON a.email = b.email;
DROP TABLE account, banned CASCADE;
DROP EXTENSION citext;

-- types that other extensions are known for, and rows made of json
CREATE EXTENSION hstore;
CREATE EXTENSION ltree;
CREATE TABLE item (id int PRIMARY KEY, tags hstore, path ltree, doc json);
CREATE INCREMENTAL VIEW by_tags AS SELECT tags, count(*) AS n, max(id) AS last FROM item GROUP BY tags;
CREATE INCREMENTAL VIEW with_tag AS SELECT id, e.key, e.value, tags -> 'color' AS color FROM item, each(tags) AS e WHERE tags ? 'color';
CREATE INCREMENTAL VIEW subtrees AS
    SELECT a.path, count(b.id) AS n, hstore(array_agg(b.id::text ORDER BY b.path) FILTER (WHERE b.id > 0), array_agg(b.path::text ORDER BY b.path) FILTER (WHERE b.id > 0)) AS below
    FROM item a LEFT JOIN item b ON b.path <@ a.path AND b.id <> a.id GROUP BY a.path;
CREATE INCREMENTAL VIEW same_tags AS SELECT a.id, b.id AS other FROM item a JOIN item b ON a.tags = b.tags WHERE a.id < b.id;
CREATE INCREMENTAL VIEW last_paths AS SELECT path, id FROM item ORDER BY path DESC, tags LIMIT 2;
CREATE INCREMENTAL VIEW members AS
    SELECT id, e.* FROM item, json_each(CASE WHEN json_typeof(doc) = 'object' THEN doc END) AS e(k, v) UNION ALL
    SELECT id, n::text, v FROM item, json_array_elements(CASE WHEN json_typeof(doc) = 'array' THEN doc END) WITH ORDINALITY AS e(v, n);
INSERT INTO item VALUES (1, 'color=>red, size=>1', 'a.b', '{"a": 1, "b": [1, 2]}'), (2, 'size=>1, color=>red', 'a.b.c', '[3, {"x": null}]'), (3, NULL, 'b', NULL);
SELECT * FROM same_tags;
INSERT INTO item VALUES (4, 'color=>blue', 'a', '{"a": {"b": 2}}');
UPDATE item SET tags = tags - 'size'::text WHERE id = 2;
DELETE FROM item WHERE id = 1;
SELECT * FROM by_tags ORDER BY last;
SELECT * FROM with_tag ORDER BY id, key;
SELECT * FROM subtrees ORDER BY path;
SELECT * FROM same_tags;
SELECT * FROM last_paths ORDER BY path;
SELECT * FROM members ORDER BY id, k;
SELECT relation::text, d.* FROM eddy.views, eddy.verify_view(relation) d ORDER BY relation::text;
DROP TABLE item CASCADE;
-- arrays of a domain that are made, not read
CREATE TABLE sizes (id int PRIMARY KEY, n int);
CREATE INCREMENTAL VIEW size_arrays AS SELECT id, ARRAY[n]::positive[] AS a, ARRAY[n::positive, NULL] AS b FROM sizes;
CREATE INCREMENTAL VIEW size_lists AS SELECT array_agg(n::positive ORDER BY id) AS a, ARRAY(SELECT n::positive FROM sizes ORDER BY id) AS b FROM sizes;
INSERT INTO sizes VALUES (1, 5), (2, 7);
SELECT id, a, a = ARRAY[n]::positive[] AS same, b, b[1] FROM size_arrays JOIN sizes USING (id) ORDER BY id;
SELECT a, b, a = b AS same FROM size_lists;
SELECT relation::text, d.* FROM eddy.views, eddy.verify_view(relation) d ORDER BY relation::text;
DROP TABLE sizes CASCADE;
DROP EXTENSION hstore, ltree;
DROP FUNCTION check_views, double_it, inverse, changing, parts, raising, losing;
DROP AGGREGATE product(int);
DROP TYPE mood, point3, lost;
DROP DOMAIN positive;
