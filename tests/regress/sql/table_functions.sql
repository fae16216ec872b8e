-- Set-returning functions in FROM and in select lists: the views follow the rows they are applied to.
SET client_min_messages = warning;
CREATE TABLE notes (id int PRIMARY KEY, tags text[], low int, high int, line text);
CREATE TABLE wanted (tag text, n bigint);
INSERT INTO notes VALUES (1, '{a,b,NULL}', 1, 3, 'x,y,,z'), (2, '{}', 2, 1, ''), (3, NULL, NULL, 4, NULL), (4, '[3:4]={b,b}', 4, 4, 'x');
INSERT INTO wanted VALUES ('a', 1), ('b', 2), ('c', 9);

-- In FROM
CREATE INCREMENTAL VIEW numbers AS SELECT * FROM generate_series(1, 3) AS g;
CREATE INCREMENTAL VIEW ends AS SELECT * FROM generate_series(9223372036854775806, 9223372036854775807) AS g;
CREATE INCREMENTAL VIEW halves AS SELECT * FROM generate_series(1, 2.9, 0.5) AS g;
CREATE INCREMENTAL VIEW tagged AS SELECT id, tag, place FROM notes, unnest(tags) WITH ORDINALITY AS u(tag, place);
CREATE INCREMENTAL VIEW all_tagged AS SELECT id, tag, place FROM notes LEFT JOIN LATERAL unnest(tags) WITH ORDINALITY AS u(tag, place) ON true;
CREATE INCREMENTAL VIEW some_tagged AS SELECT id, tag FROM notes LEFT JOIN LATERAL unnest(tags) AS tag ON tag > 'a' COLLATE "C";
CREATE INCREMENTAL VIEW spans AS SELECT n.id, g.n FROM notes n, generate_series(n.low, n.high) AS g(n);
CREATE INCREMENTAL VIEW side_by_side AS SELECT id, t, s, g, n FROM notes, ROWS FROM (unnest(tags), generate_subscripts(tags, 1, true), generate_series(1, 2)) WITH ORDINALITY AS u(t, s, g, n);
CREATE INCREMENTAL VIEW two_arrays AS SELECT id, t, n FROM notes, unnest(tags, ARRAY[low, high]) AS u(t, n);
CREATE INCREMENTAL VIEW parts AS SELECT id, p, n FROM notes, string_to_table(line, ',', '') WITH ORDINALITY AS p(p, n);
CREATE INCREMENTAL VIEW one_row AS SELECT id, x, y FROM notes, abs(low - 5) AS x, coalesce(high, x) AS y;
CREATE INCREMENTAL VIEW joined AS SELECT w.tag, w.n, u.place FROM wanted w JOIN (notes CROSS JOIN unnest(tags) WITH ORDINALITY AS u(tag, place)) ON u.tag = w.tag;
CREATE INCREMENTAL VIEW counted AS SELECT tag, count(*) AS n FROM notes, unnest(tags) AS tag GROUP BY tag;
CREATE INCREMENTAL VIEW steps AS WITH RECURSIVE r(x) AS (SELECT low FROM notes UNION SELECT r.x + s FROM r, generate_series(1, 2) AS s WHERE r.x < 6) SELECT x FROM r;

-- In select lists
CREATE INCREMENTAL VIEW lockstep AS SELECT id, unnest(tags) AS tag, generate_series(1, 2) * 10 AS n FROM notes;
CREATE INCREMENTAL VIEW within AS SELECT id, generate_series(1, generate_series(low, high)) AS a, generate_series(1, 2) AS b FROM notes;
CREATE INCREMENTAL VIEW of_groups AS SELECT tags, generate_series(1, count(*)) AS n FROM notes GROUP BY tags HAVING count(*) > 0;
CREATE INCREMENTAL VIEW different AS SELECT DISTINCT unnest(tags) AS tag FROM notes;
CREATE INCREMENTAL VIEW ordered AS SELECT id, unnest(tags) COLLATE "C" AS tag FROM notes ORDER BY 2;

-- In subqueries
CREATE INCREMENTAL VIEW sums AS SELECT id, (SELECT sum(x) FROM generate_series(low, high) AS x) AS total, (SELECT count(*) FROM unnest(tags) AS t WHERE t = 'b') AS bs FROM notes;
CREATE INCREMENTAL VIEW has_wanted AS SELECT id FROM notes WHERE EXISTS (SELECT FROM unnest(tags) AS t JOIN wanted w ON w.tag = t WHERE w.n > notes.low);
CREATE INCREMENTAL VIEW lacks AS SELECT tag FROM wanted w WHERE NOT EXISTS (SELECT FROM notes WHERE w.tag IN (SELECT unnest(tags)));
CREATE INCREMENTAL VIEW members AS SELECT tag, tag IN (SELECT unnest(tags) FROM notes) AS used FROM wanted;

SELECT * FROM numbers ORDER BY g;
SELECT * FROM ends ORDER BY g;
SELECT * FROM halves ORDER BY g;
SELECT * FROM tagged ORDER BY id, place;
SELECT * FROM all_tagged ORDER BY id, place;
SELECT * FROM some_tagged ORDER BY id, tag COLLATE "C";
SELECT * FROM spans ORDER BY id, n;
SELECT * FROM side_by_side ORDER BY id, n;
SELECT * FROM two_arrays ORDER BY id, t COLLATE "C", n;
SELECT * FROM parts ORDER BY id, n;
SELECT * FROM one_row ORDER BY id;
SELECT * FROM joined ORDER BY tag COLLATE "C", n, place;
SELECT * FROM counted ORDER BY tag COLLATE "C";
SELECT * FROM steps ORDER BY x;
SELECT * FROM lockstep ORDER BY id, n, tag COLLATE "C";
SELECT * FROM within ORDER BY id, a, b;
SELECT * FROM of_groups ORDER BY tags COLLATE "C", n;
SELECT * FROM different ORDER BY tag COLLATE "C";
SELECT * FROM ordered ORDER BY id, tag;
SELECT * FROM sums ORDER BY id;
SELECT * FROM has_wanted ORDER BY id;
SELECT * FROM lacks ORDER BY tag COLLATE "C";
SELECT * FROM members ORDER BY tag COLLATE "C";

-- Groups by the results of calls, of which those of one row stand side by side
CREATE INCREMENTAL VIEW tags_used AS SELECT unnest(tags) AS tag, count(*) AS n FROM notes GROUP BY tag;
CREATE INCREMENTAL VIEW pairs_used AS
    SELECT upper(unnest(tags)) || '!' AS tag, generate_series(low, high) AS n, count(*) FROM notes GROUP BY upper(unnest(tags)), generate_series(low, high);
CREATE INCREMENTAL VIEW of_sets AS
    SELECT unnest(tags) AS tag, high > 3 AS high, count(*), GROUPING(high > 3) AS is_total, generate_series(1, 1 + GROUPING(high > 3)) AS copy
    FROM notes GROUP BY ROLLUP (high > 3, unnest(tags)) HAVING count(*) > 1;
CREATE INCREMENTAL VIEW letters_used AS SELECT count(*) AS n, sum(low) FROM notes GROUP BY regexp_split_to_table(line, ',');
SELECT * FROM tags_used ORDER BY tag COLLATE "C";
SELECT * FROM pairs_used ORDER BY tag COLLATE "C", n;
SELECT * FROM of_sets ORDER BY tag COLLATE "C", high, copy;
SELECT * FROM letters_used ORDER BY n, sum;

-- Sorted by a collation
CREATE TABLE words (id int, ws text[] COLLATE "und-x-icu");
CREATE INCREMENTAL VIEW least_words AS SELECT unnest(ws) AS w, upper(unnest(ws)) AS up, count(*) FROM words GROUP BY 1 ORDER BY 1 LIMIT 2;
CREATE INCREMENTAL VIEW ranked_words AS SELECT unnest(ws) AS w, rank() OVER (ORDER BY unnest(ws)) FROM words GROUP BY 1;
CREATE INCREMENTAL VIEW first_words AS SELECT DISTINCT unnest(ws) AS w FROM words ORDER BY 1 LIMIT 2;
INSERT INTO words VALUES (1, '{a,B,é}'), (2, '{A,b}'), (3, '{f,e,a}');
SELECT * FROM least_words ORDER BY w COLLATE "und-x-icu";
SELECT * FROM ranked_words ORDER BY rank;
SELECT * FROM first_words ORDER BY w COLLATE "und-x-icu";

-- Sets of arrays
CREATE INCREMENTAL VIEW matches AS SELECT id, m, m[2] AS second, place FROM notes, regexp_matches(line, '(.),([a-y])?', 'g') WITH ORDINALITY AS r(m, place);
CREATE INCREMENTAL VIEW matches_listed AS SELECT id, (regexp_matches(line, '[y-z]'))[1] AS first FROM notes;
SELECT * FROM matches ORDER BY id, place;
SELECT * FROM matches_listed ORDER BY id;

-- Changes
INSERT INTO notes VALUES (5, '{c,a}', 5, 7, ',');
UPDATE notes SET tags = '{d}', low = 3 WHERE id IN (2, 3);
UPDATE notes SET high = high + 1, tags = tags[1] || tags WHERE id = 1;
DELETE FROM notes WHERE id = 4;
DELETE FROM wanted WHERE tag = 'a';
SELECT v.relation, d.missing, d.surplus FROM eddy.views v, eddy.verify_view(v.relation) d
WHERE (d.missing, d.surplus) <> (0, 0);
SELECT * FROM all_tagged ORDER BY id, place;
SELECT * FROM side_by_side ORDER BY id, n;
SELECT * FROM within ORDER BY id, a, b;
SELECT * FROM sums ORDER BY id;
SELECT * FROM has_wanted ORDER BY id;
SELECT * FROM lacks ORDER BY tag COLLATE "C";
SELECT * FROM tags_used ORDER BY tag COLLATE "C";
SELECT * FROM of_sets ORDER BY tag COLLATE "C", high, copy;
TRUNCATE notes;
SELECT * FROM all_tagged ORDER BY id, place;
SELECT * FROM members ORDER BY tag COLLATE "C";
SELECT v.relation, d.missing, d.surplus FROM eddy.views v, eddy.verify_view(v.relation) d
WHERE (d.missing, d.surplus) <> (0, 0);

-- A step of zero: an error of the data, which goes with the row
CREATE INCREMENTAL VIEW stepped AS SELECT id, g FROM notes, generate_series(1, 5, low) AS g;
INSERT INTO notes VALUES (1, NULL, 2, NULL, NULL), (2, NULL, 0, NULL, NULL);
SELECT * FROM stepped ORDER BY id, g;
\echo :SQLSTATE
DELETE FROM notes WHERE id = 2;
SELECT * FROM stepped ORDER BY id, g;
SELECT * FROM eddy.verify_view('stepped');

-- Single values
CREATE TABLE paper (id int PRIMARY KEY, title text, words text);
INSERT INTO paper VALUES (1, 'a fat cat', 'cat'), (2, 'rats', NULL);
CREATE INCREMENTAL VIEW found AS SELECT p.id, q, n, t FROM paper p, to_tsquery('english', 'cats') AS q, CAST(p.id AS bigint) AS n, coalesce(p.words, 'none') AS t
    WHERE to_tsvector('english', title) @@ q OR to_tsvector('english', title) @@ to_tsquery('english', 'rat');
CREATE INCREMENTAL VIEW lowered AS SELECT id, (SELECT l FROM lower(title) AS l) FROM paper;
UPDATE paper SET title = 'A CAT', words = 'x' WHERE id = 2;
INSERT INTO paper VALUES (3, 'dogs', NULL), (4, 'Cats', NULL);
DELETE FROM paper WHERE id = 1;
SELECT * FROM found ORDER BY id;
SELECT * FROM lowered ORDER BY id;
SELECT * FROM eddy.verify_view('found');
CREATE INCREMENTAL VIEW numbered AS SELECT p.id, c.v, c.place, l.word, l.ordinality FROM paper p, CAST(p.id AS numeric) WITH ORDINALITY AS c(v, place), LATERAL upper(p.title) WITH ORDINALITY AS l(word);
CREATE INCREMENTAL VIEW numbered_rows AS SELECT p.id, r.n, r.t, r.place FROM paper p, ROWS FROM (generate_series(1, 2), CAST(p.id AS text)) WITH ORDINALITY AS r(n, t, place);
CREATE INCREMENTAL VIEW typed AS SELECT id, pg_typeof(title) = 'text'::regtype AS is_text, pg_typeof(id) AS ty FROM paper;
SELECT * FROM numbered ORDER BY id;
SELECT * FROM numbered_rows ORDER BY id, place;
SELECT * FROM typed ORDER BY id;
UPDATE paper SET id = 9, title = NULL WHERE id = 3;
SELECT v.relation, d.missing, d.surplus FROM eddy.views v, eddy.verify_view(v.relation) d WHERE (d.missing, d.surplus) <> (0, 0);
DROP TABLE paper CASCADE;

-- In ORDER BY alone
DROP INCREMENTAL VIEW stepped;
INSERT INTO notes VALUES (3, '{b,NULL,a}', 1, 2, 'x'), (4, '{}', 2, 3, NULL), (5, '{c,a}', 0, 1, 'y');
CREATE INCREMENTAL VIEW repeated AS SELECT id FROM notes ORDER BY unnest(tags);
CREATE INCREMENTAL VIEW first_tags AS SELECT id, line FROM notes ORDER BY unnest(tags) DESC NULLS LAST, id LIMIT 2;
CREATE INCREMENTAL VIEW first_of_each AS SELECT DISTINCT ON (id) id, line FROM notes ORDER BY id, generate_series(1, low), line LIMIT 3;
CREATE INCREMENTAL VIEW with_outputs AS SELECT unnest(tags) AS tag, id FROM notes ORDER BY generate_series(1, 3) + id OFFSET 1;
CREATE INCREMENTAL VIEW of_lows AS SELECT low, count(*) FROM notes GROUP BY low ORDER BY generate_series(1, low), low;
CREATE INCREMENTAL VIEW listed_in_order AS SELECT id, ARRAY(SELECT w.n FROM wanted w ORDER BY w.n, generate_series(1, n.low)) AS ns FROM notes n;
SELECT * FROM repeated ORDER BY id;
SELECT * FROM first_tags ORDER BY id;
SELECT v.relation, d.missing, d.surplus FROM eddy.views v, eddy.verify_view(v.relation) d WHERE (d.missing, d.surplus) <> (0, 0);
UPDATE notes SET tags = tags || '{zz,zz}', low = 2 WHERE id IN (3, 5);
INSERT INTO wanted VALUES ('k', 7), ('l', NULL);
DELETE FROM notes WHERE id = 4;
SELECT * FROM repeated ORDER BY id;
SELECT * FROM first_tags ORDER BY id;
SELECT * FROM listed_in_order ORDER BY id;
SELECT v.relation, d.missing, d.surplus FROM eddy.views v, eddy.verify_view(v.relation) d WHERE (d.missing, d.surplus) <> (0, 0);

-- Refusals
CREATE INCREMENTAL VIEW bad AS SELECT * FROM generate_series(now(), now(), interval '1 hour') AS g;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT * FROM current_date AS d;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT g FROM generate_series(1, (random() * 3)::int) AS g;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT unnest(tags) AS tag, rank() OVER (ORDER BY unnest(tags)) FROM notes;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT id FROM notes ORDER BY generate_series(1, (random() * 3)::int);
\echo :SQLSTATE
DROP TABLE notes, wanted, words CASCADE;
-- a type of rows that gets a column, which the view does not have, and loses it
CREATE TABLE row_type (a int, c int);
CREATE FUNCTION rows_of(int) RETURNS SETOF row_type LANGUAGE sql IMMUTABLE AS 'SELECT $1, 5';
CREATE TABLE row_keys (id int PRIMARY KEY);
INSERT INTO row_keys VALUES (1);
CREATE INCREMENTAL VIEW of_rows AS SELECT k.id, r.* FROM row_keys k, rows_of(k.id) r;
CREATE VIEW plain_of_rows AS SELECT k.id, r.* FROM row_keys k, rows_of(k.id) r;
BEGIN;
ALTER TABLE row_type ADD COLUMN more int;
CREATE OR REPLACE FUNCTION rows_of(int) RETURNS SETOF row_type LANGUAGE sql IMMUTABLE AS 'SELECT $1, 5, 6';
COMMIT;
INSERT INTO row_keys VALUES (9);
SELECT * FROM of_rows ORDER BY id;
CREATE INCREMENTAL VIEW over_plain AS SELECT * FROM plain_of_rows;
SELECT * FROM over_plain ORDER BY id;
BEGIN;
ALTER TABLE row_type DROP COLUMN more;
CREATE OR REPLACE FUNCTION rows_of(int) RETURNS SETOF row_type LANGUAGE sql IMMUTABLE AS 'SELECT $1, 7';
COMMIT;
SELECT * FROM of_rows ORDER BY id;
SELECT * FROM over_plain ORDER BY id;
DROP TABLE row_keys, row_type CASCADE;

DROP MATERIALIZED VIEW numbers, halves, ends;
