-- Text equal and in order as its collation says.
SET client_min_messages = warning;
CREATE COLLATION german (provider = icu, locale = 'de-u-co-phonebk');
CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE names (id int PRIMARY KEY, de text COLLATE german, any_case text COLLATE nocase, plain text COLLATE "C");
INSERT INTO names VALUES (1, 'Ärger', 'Abc', 'Ärger'), (2, 'Affe', 'aBC', 'Affe'), (3, 'Zebra', 'abd', 'Zebra'), (4, 'affe', 'ABD', 'affe'), (5, NULL, NULL, NULL);
CREATE INCREMENTAL VIEW extremes AS SELECT min(de) AS min_de, max(de) AS max_de, min(plain) AS min_c, max(plain) AS max_c, min(plain COLLATE german) AS min_g FROM names;
CREATE INCREMENTAL VIEW first_de AS SELECT de FROM names ORDER BY de LIMIT 2;
CREATE INCREMENTAL VIEW first_c AS SELECT plain FROM names ORDER BY plain LIMIT 2;
CREATE INCREMENTAL VIEW ordered AS SELECT id, row_number() OVER (ORDER BY de) AS de, row_number() OVER (ORDER BY plain) AS c FROM names;
CREATE INCREMENTAL VIEW compared AS SELECT a.id, b.id AS other FROM names a, names b WHERE a.de < b.de AND greatest(a.de, b.de) = b.de;
CREATE INCREMENTAL VIEW cases AS SELECT id, upper(de) AS up, lower(de) AS low, initcap(de) AS init FROM names;
CREATE INCREMENTAL VIEW list AS SELECT string_agg(de, ',' ORDER BY de) AS de, array_agg(DISTINCT plain COLLATE german ORDER BY plain COLLATE german) AS german FROM names;
CREATE INCREMENTAL VIEW list_distinct AS
    SELECT array_agg(DISTINCT de) AS de, string_agg(DISTINCT plain COLLATE german, '<') AS german, string_agg(DISTINCT plain, '<') AS c, json_agg(DISTINCT de) AS json FROM names;
CREATE INCREMENTAL VIEW after_others AS
    SELECT id, de > ALL (SELECT o.de FROM names o WHERE o.id < n.id) AS of_all, (de, id) <= ANY (SELECT o.de, o.id FROM names o WHERE o.id <> n.id) AS row_of_any,
        (de, id) < (SELECT max(o.de), min(o.id) FROM names o) AS than_row FROM names n;
CREATE INCREMENTAL VIEW behind_some AS SELECT id FROM names n WHERE plain COLLATE german > ANY (SELECT o.plain FROM names o WHERE o.id > n.id);
CREATE INCREMENTAL VIEW distinct_first AS SELECT DISTINCT ON (any_case) any_case, id FROM names ORDER BY any_case, id;
CREATE INCREMENTAL VIEW grouped AS SELECT any_case = 'abc' AS is_abc, count(*), count(DISTINCT any_case) AS values FROM names GROUP BY any_case = 'abc';
CREATE INCREMENTAL VIEW by_name AS SELECT any_case, count(*) FROM names GROUP BY any_case;
CREATE INCREMENTAL VIEW same AS SELECT a.id, b.id AS other FROM names a JOIN names b ON a.any_case = b.any_case;
CREATE INCREMENTAL VIEW kinds AS SELECT any_case FROM names EXCEPT SELECT 'ABC' COLLATE nocase;
-- Aggregates and set-returning functions that PostgreSQL computes, under the collation of what they read.
CREATE FUNCTION longer(text, text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT CASE WHEN $1 IS NULL OR $2 > $1 THEN $2 ELSE $1 END';
CREATE AGGREGATE last_of(text) (SFUNC = longer, STYPE = text);
CREATE FUNCTION words_below(words text[], word text) RETURNS SETOF text LANGUAGE sql IMMUTABLE AS 'SELECT w FROM unnest(words) w WHERE w < word';
CREATE INCREMENTAL VIEW last AS SELECT last_of(de) AS de, last_of(plain) AS c, last_of(plain COLLATE german) AS german FROM names;
CREATE INCREMENTAL VIEW below AS SELECT id, w FROM names, words_below('{Oz,Öl,Zz,a}', de) w;
CREATE INCREMENTAL VIEW above AS SELECT id, words_below('{abc,ABC,abd}', any_case) AS w FROM names;
CREATE INCREMENTAL VIEW listed AS SELECT id, any_case NOT IN (SELECT plain COLLATE nocase FROM names o WHERE o.id < n.id) AS is_new FROM names n;
CREATE INCREMENTAL VIEW windows AS
    SELECT id, lag(any_case) OVER (ORDER BY id) AS before, max(de) OVER (ORDER BY id) AS last_de, rank() OVER (ORDER BY any_case) AS place,
        any_case IS DISTINCT FROM first_value(any_case) OVER (ORDER BY id) AS differs FROM names;
CREATE INCREMENTAL VIEW letters AS SELECT w, count(*), count(DISTINCT any_case) AS names FROM names, string_to_table(any_case || '', NULL) w GROUP BY w;
CREATE INCREMENTAL VIEW pieces AS SELECT DISTINCT unnest(ARRAY[any_case, 'ABC', 'q' COLLATE nocase]) AS w FROM names;
CREATE INCREMENTAL VIEW merged AS SELECT 'AbC' COLLATE nocase AS c UNION SELECT any_case FROM names;
CREATE FUNCTION check_views() RETURNS TABLE (view text, missing bigint, surplus bigint) LANGUAGE sql AS $$
    SELECT relation::text, v.* FROM eddy.views, eddy.verify_view(relation) v WHERE v.missing + v.surplus <> 0 $$;
SELECT * FROM check_views();
SELECT * FROM extremes;
SELECT * FROM first_de ORDER BY de;
SELECT * FROM ordered ORDER BY id;
SELECT * FROM list;
SELECT * FROM list_distinct;
SELECT * FROM after_others ORDER BY id;
SELECT * FROM behind_some ORDER BY id;
SELECT * FROM last;
SELECT upper(w), count, names FROM letters ORDER BY 1;
SELECT upper(w) FROM pieces ORDER BY 1;
SELECT * FROM listed ORDER BY id;
SELECT * FROM windows ORDER BY id;
SELECT * FROM below ORDER BY id, w COLLATE "C";
SELECT * FROM above ORDER BY id, w COLLATE "C";
SELECT upper(any_case), count FROM by_name ORDER BY 1;
INSERT INTO names VALUES (6, 'Aeon', 'ABC', 'aeon'), (7, 'zebra', 'abe', 'Zürich');
UPDATE names SET any_case = 'aBE', de = 'öl' WHERE id = 1;
DELETE FROM names WHERE id = 3;
SELECT * FROM check_views();
SELECT * FROM extremes;
SELECT * FROM ordered ORDER BY id;
SELECT * FROM list;
SELECT * FROM list_distinct;
SELECT * FROM after_others ORDER BY id;
SELECT * FROM behind_some ORDER BY id;
SELECT * FROM last;
SELECT upper(w), count, names FROM letters ORDER BY 1;
SELECT upper(w) FROM pieces ORDER BY 1;
SELECT * FROM listed ORDER BY id;
SELECT * FROM windows ORDER BY id;
SELECT * FROM below ORDER BY id, w COLLATE "C";
SELECT * FROM above ORDER BY id, w COLLATE "C";
SELECT upper(any_case), count FROM by_name ORDER BY 1;
SELECT * FROM same ORDER BY id, other;
CREATE INCREMENTAL VIEW bad AS SELECT de FROM names UNION SELECT plain COLLATE german FROM names ORDER BY 1 LIMIT 1;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT 'q' UNION SELECT any_case FROM names;
\echo :SQLSTATE
DROP TABLE names CASCADE;
DROP AGGREGATE last_of(text);
DROP FUNCTION check_views, longer, words_below;
DROP COLLATION german, nocase;
-- under C, letters are those of ASCII, and initcap is computed without PostgreSQL
CREATE TABLE title (id int PRIMARY KEY, t text COLLATE "C");
INSERT INTO title VALUES (1, 'hello wORLD'), (2, '1abc d''ARC x-y_z'), (3, 'éa Éb'), (4, ''), (5, NULL);
CREATE INCREMENTAL VIEW titles AS SELECT id, initcap(t) AS t FROM title;
SELECT id, t FROM titles ORDER BY id;
UPDATE title SET t = t || ' aGAIN' WHERE id < 4;
SELECT id, t FROM titles ORDER BY id;
SELECT * FROM titles EXCEPT ALL SELECT id, initcap(t) FROM title;
SELECT eddy.explain_view('titles') LIKE '%initcap(%' AS computed, eddy.explain_view('titles') LIKE '%host%' AS asked;
DROP TABLE title CASCADE;
