-- ORDER BY of subqueries, CTEs and plain views: whoever looks at the order of rows gets them in it.
SET client_min_messages = warning;
CREATE COLLATION dutch (provider = icu, locale = 'nl');
CREATE FUNCTION append_text(text, text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT coalesce($1 || ''+'', '''') || $2';
CREATE AGGREGATE chained(text) (SFUNC = append_text, STYPE = text);
CREATE TABLE song (id int PRIMARY KEY, album int, place int, title text, length interval, score numeric);
CREATE TABLE album (id int PRIMARY KEY, name text COLLATE dutch);
CREATE VIEW songs AS SELECT album, title, place FROM song ORDER BY album, place DESC, id;

-- Aggregates: native ones, PostgreSQL's own and those of users; of all rows and of groups.
CREATE INCREMENTAL VIEW listed AS
    SELECT array_agg(title) AS titles, string_agg(title, ',') AS joined, json_agg(title) AS doc, jsonb_object_agg(place, title) AS object, chained(title) AS chained, count(*) AS n, max(title) AS last
    FROM (SELECT title, place FROM song ORDER BY score DESC, id) x;
CREATE INCREMENTAL VIEW listed_by_album AS
    SELECT album, array_agg(title) AS titles, chained(title) FILTER (WHERE place > 1) AS rest, array_agg(id) AS ids FROM (SELECT * FROM song ORDER BY album, score, id DESC) x GROUP BY album;
CREATE INCREMENTAL VIEW listed_by_span AS SELECT string_agg(title, ' ') AS titles FROM (SELECT title FROM song ORDER BY length, id) x;
CREATE INCREMENTAL VIEW listed_by_name AS SELECT array_agg(id) AS ids, json_agg(name) AS names FROM (SELECT id, name FROM album ORDER BY name DESC) x;
CREATE INCREMENTAL VIEW peers AS
    SELECT array_agg(title ORDER BY album) AS titles, chained(title ORDER BY album) AS chained, array_agg(DISTINCT album) AS albums, percentile_disc(0.5) WITHIN GROUP (ORDER BY place) AS middle
    FROM (SELECT title, album, place FROM song ORDER BY album, score, title) x;
-- Through filters, projections, subqueries of subqueries, CTEs, plain views, LIMIT.
CREATE INCREMENTAL VIEW through AS
    SELECT array_agg(z.t) AS titles FROM (SELECT y.title || '!' AS t FROM (SELECT * FROM (SELECT title, album FROM song ORDER BY place, id) x WHERE album > 0) y WHERE title <> 'none') z WHERE t IS NOT NULL;
CREATE INCREMENTAL VIEW through_cte AS
    WITH a AS (SELECT title, album FROM song ORDER BY place DESC, id), b AS (SELECT title FROM a WHERE album = 1)
    SELECT (SELECT array_agg(title) FROM b) AS ones, (SELECT string_agg(title, ',') FROM a) AS all, (SELECT count(*) FROM a) AS n, array_agg(title) AS titles FROM a;
CREATE INCREMENTAL VIEW through_view AS SELECT album, array_agg(title) AS titles FROM songs GROUP BY album;
CREATE INCREMENTAL VIEW behind_limit AS SELECT array_agg(title) AS titles FROM (SELECT title FROM song ORDER BY score DESC, id LIMIT 3) x;
CREATE INCREMENTAL VIEW behind_groups AS SELECT array_agg(album) AS albums FROM (SELECT album, count(*) FROM song GROUP BY album ORDER BY count(*) DESC, album) x;
CREATE INCREMENTAL VIEW behind_union AS SELECT array_agg(n) AS ns FROM (SELECT place AS n FROM song UNION SELECT id FROM album ORDER BY 1 DESC) x;
CREATE INCREMENTAL VIEW behind_exists AS SELECT array_agg(title) AS titles FROM (SELECT title, album FROM song ORDER BY place DESC, id) x WHERE EXISTS (SELECT FROM album a WHERE a.id = x.album) AND x.album IN (SELECT id FROM album);
-- Of each row
CREATE INCREMENTAL VIEW of_each AS
    SELECT a.id, (SELECT string_agg(title, ',') FROM (SELECT title FROM song s WHERE s.album = a.id ORDER BY place DESC, id) x) AS titles, ARRAY(SELECT title FROM (SELECT title FROM song s WHERE s.album = a.id ORDER BY score, id) x) AS list,
        (SELECT title FROM (SELECT title FROM song s WHERE s.album = a.id ORDER BY score DESC, id) x LIMIT 1) AS best, l.ids
    FROM album a LEFT JOIN LATERAL (SELECT array_agg(id) AS ids FROM (SELECT id FROM song s WHERE s.album = a.id ORDER BY place DESC, id) x) l ON true;
-- LIMIT, DISTINCT ON, windows
CREATE INCREMENTAL VIEW first_two AS SELECT title FROM (SELECT title FROM song ORDER BY score DESC, id) x LIMIT 2;
CREATE INCREMENTAL VIEW third AS SELECT * FROM (SELECT title, album FROM song ORDER BY score DESC, id) x WHERE album = 1 OFFSET 1 LIMIT 1;
CREATE INCREMENTAL VIEW tied AS SELECT title, album FROM (SELECT title, album FROM song ORDER BY album, score, id) x ORDER BY album OFFSET 1 FETCH FIRST 1 ROW WITH TIES;
CREATE INCREMENTAL VIEW first_of_each AS SELECT DISTINCT ON (album) album, title FROM (SELECT album, title FROM song ORDER BY album, score DESC, id) x;
CREATE INCREMENTAL VIEW numbered AS
    SELECT title, row_number() OVER () AS n, lag(title) OVER () AS before, array_agg(title) OVER (ROWS 1 PRECEDING) AS pair, rank() OVER () AS r, sum(place) OVER () AS s, chained(title) OVER (ROWS UNBOUNDED PRECEDING) AS chained
    FROM (SELECT title, place FROM song ORDER BY score DESC, id) x;
CREATE INCREMENTAL VIEW numbered_in_albums AS
    SELECT album, title, row_number() OVER w AS n, rank() OVER w AS r, dense_rank() OVER w AS d, last_value(title) OVER w AS last, sum(id) OVER (w ROWS UNBOUNDED PRECEDING) AS s, sum(id) OVER (w GROUPS CURRENT ROW) AS g, row_number() OVER (PARTITION BY album) AS m
    FROM (SELECT album, title, place, id, score FROM song ORDER BY album, score, title) x WINDOW w AS (PARTITION BY album ORDER BY score);
INSERT INTO album VALUES (1, 'zee'), (2, 'ijs'), (3, 'IJ'), (4, 'appel');
INSERT INTO song VALUES (1, 1, 1, 'one', '3 min', 5), (2, 1, 2, 'two', '180 s', 4.0), (3, 1, 3, 'three', '2 min', 4), (4, 2, 1, 'four', '1 hour', 9), (5, 2, 2, 'five', '59 min', 1), (6, 3, 1, 'six', NULL, NULL);
SELECT * FROM listed;
SELECT * FROM listed_by_album ORDER BY album;
SELECT * FROM listed_by_span;
SELECT * FROM listed_by_name;
SELECT * FROM peers;
SELECT * FROM through;
SELECT * FROM through_cte;
SELECT * FROM through_view ORDER BY album;
SELECT a.titles, b.albums, c.ns, d.titles FROM behind_limit a, behind_groups b, behind_union c, behind_exists d;
SELECT * FROM of_each ORDER BY id;
SELECT 'first_two', title FROM first_two UNION ALL SELECT 'third', title FROM third ORDER BY 1, 2;
SELECT * FROM tied ORDER BY title;
SELECT * FROM first_of_each ORDER BY album;
SELECT * FROM numbered ORDER BY n;
SELECT * FROM numbered_in_albums ORDER BY album, n;
SELECT relation::text, d.* FROM eddy.views, eddy.verify_view(relation) d WHERE (missing, surplus) <> (0, 0);
-- Rows come, go and change their places.
INSERT INTO song VALUES (7, 1, 4, 'seven', '4 min', 4), (8, 4, 1, 'eight', '1 min', 9.0), (9, 4, 2, 'nine', NULL, 2);
UPDATE song SET score = 10 - score, place = 5 - place WHERE id < 6;
UPDATE album SET name = 'IJzer' WHERE id = 2;
SELECT relation::text, d.* FROM eddy.views, eddy.verify_view(relation) d WHERE (missing, surplus) <> (0, 0);
DELETE FROM song WHERE id IN (1, 4);
SELECT relation::text, d.* FROM eddy.views, eddy.verify_view(relation) d WHERE (missing, surplus) <> (0, 0);
SELECT * FROM listed;
SELECT * FROM numbered_in_albums ORDER BY album, n;

-- Nobody looks at the order.
CREATE INCREMENTAL VIEW counted AS SELECT count(*), sum(x.place), max(x.title) FROM (SELECT * FROM song ORDER BY place) x JOIN album a ON a.id = x.album;
CREATE INCREMENTAL VIEW joined AS SELECT a.name, x.title FROM (SELECT * FROM song ORDER BY place) x JOIN album a ON a.id = x.album;
CREATE INCREMENTAL VIEW sorted_again AS
    SELECT array_agg(x.title ORDER BY x.id) AS titles, array_agg(DISTINCT x.place) AS places FROM (SELECT * FROM song ORDER BY place) x, album a;
CREATE INCREMENTAL VIEW limited_again AS SELECT x.title, row_number() OVER (ORDER BY x.id, a.id), count(*) OVER (PARTITION BY a.id) FROM (SELECT * FROM song ORDER BY place) x, album a ORDER BY x.id, a.id LIMIT 5;
CREATE INCREMENTAL VIEW of_union AS SELECT array_agg(n) AS ns FROM (SELECT * FROM (SELECT place AS n FROM song ORDER BY id) x UNION SELECT id FROM album) y WHERE n < 2;
CREATE INCREMENTAL VIEW of_any AS SELECT id FROM album WHERE id IN (SELECT album FROM song ORDER BY title) AND (SELECT count(*) FROM (SELECT 1 FROM song ORDER BY title USING ~>~) x) > 0;
SELECT relation::text, d.* FROM eddy.views, eddy.verify_view(relation) d WHERE (missing, surplus) <> (0, 0);

-- An order that is lost on its way is refused.
CREATE INCREMENTAL VIEW bad AS SELECT a.name, string_agg(x.title, ',') FROM (SELECT * FROM song ORDER BY place) x JOIN album a ON a.id = x.album GROUP BY a.name;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT json_agg(v.title) FROM album a LEFT JOIN songs v ON a.id = v.album;
CREATE INCREMENTAL VIEW bad AS SELECT x.title FROM album a, (SELECT title FROM song ORDER BY place) x LIMIT 1;
CREATE INCREMENTAL VIEW bad AS SELECT DISTINCT ON (a.id) a.id, x.title FROM album a CROSS JOIN LATERAL (SELECT title FROM song s WHERE s.album = a.id ORDER BY place) x;
CREATE INCREMENTAL VIEW bad AS WITH w AS (SELECT title FROM song ORDER BY place) SELECT w.title, row_number() OVER () FROM w, album;
CREATE INCREMENTAL VIEW bad AS SELECT array_agg(y.title) FROM (SELECT title FROM (SELECT title FROM song ORDER BY id) x UNION ALL SELECT name FROM album) y;
CREATE INCREMENTAL VIEW bad AS SELECT ARRAY(SELECT y.title FROM (SELECT title, count(*) OVER (PARTITION BY album) FROM (SELECT * FROM song ORDER BY id) x) y) AS titles;
CREATE INCREMENTAL VIEW bad AS SELECT array_agg(y.title) FROM (SELECT DISTINCT ON (album) title FROM (SELECT * FROM song ORDER BY album, id) x) y;
CREATE INCREMENTAL VIEW bad AS SELECT (SELECT array_agg(x.title) FROM album) FROM (SELECT title FROM song ORDER BY id) x;
CREATE INCREMENTAL VIEW bad AS SELECT array_agg(x.title) FROM (SELECT title FROM song ORDER BY title USING ~>~) x;
\echo :SQLSTATE
EXPLAIN CREATE INCREMENTAL VIEW planned AS SELECT album, array_agg(title), count(*) FROM (SELECT title, album FROM song ORDER BY score DESC, title COLLATE dutch) x GROUP BY album;
EXPLAIN CREATE INCREMENTAL VIEW planned AS SELECT title, rank() OVER (ORDER BY album), row_number() OVER (ORDER BY album) FROM (SELECT title, album FROM song ORDER BY score) x;
DROP TABLE song, album CASCADE;
DROP AGGREGATE chained(text);
DROP FUNCTION append_text(text, text);
DROP COLLATION dutch;
