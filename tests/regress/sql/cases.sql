-- CASE x WHEN …, where what x is compared with is of another type than x; constants of type name and of collations.
SET client_min_messages = warning;
CREATE EXTENSION citext;
CREATE TYPE size AS ENUM ('small', 'large');
CREATE DOMAIN code AS varchar(4) CHECK (VALUE <> 'bad');
CREATE DOMAIN inner_code AS code;
CREATE DOMAIN few AS smallint;
CREATE DOMAIN chosen AS size;
CREATE DOMAIN pair AS int[];
CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE item (id int PRIMARY KEY, v varchar(5), t text, c char(3), n name, d code, dd inner_code, f few, e size, de chosen, x citext, i int, b bigint, m numeric, a varchar[], p pair,
    at date, nc text COLLATE caseless, q "char");
CREATE INCREMENTAL VIEW of_text AS
    SELECT id, CASE v WHEN 'x' THEN 1 WHEN 'y' THEN 2 END AS v, CASE v WHEN t THEN 'same' ELSE 'other' END AS vt, CASE t WHEN v THEN 1 ELSE 0 END AS tv,
        CASE c WHEN 'x' THEN 1 WHEN 'y  ' THEN 2 END AS c, CASE c WHEN t THEN 1 ELSE 0 END AS ct, CASE c WHEN v THEN 1 WHEN 'x' THEN 2 END AS cv,
        CASE v WHEN 'x'::name THEN 1 ELSE 0 END AS vn
    FROM item;
CREATE INCREMENTAL VIEW of_names AS
    SELECT id, CASE n WHEN 'x' THEN 1 WHEN t THEN 2 WHEN v THEN 3 ELSE 0 END AS n, CASE n WHEN 'y'::text THEN 1 END AS nt, CASE q WHEN 'x' THEN 1 END AS q, n = t AS eq, n < t AS lt, n::text AS cast, t::name AS back,
        t > 'n'::name::text AS gt, t = 'x'::name AS same, v || 'y'::name AS joined, 'z'::name::text AS z, '{n,x}'::name[]::text[] AS zs, t = ANY ('{n,x}'::name[]::text[]) AS member,
        coalesce(n, 'none'::name) AS known, greatest(t, 'n'::name::text) AS most
    FROM item;
CREATE INCREMENTAL VIEW of_domains AS
    SELECT id, CASE d WHEN 'x' THEN 1 WHEN 'y' THEN 2 END AS d, CASE dd WHEN d THEN 1 ELSE 0 END AS dd, CASE d WHEN 'x'::code THEN 1 ELSE 0 END AS dc, CASE f WHEN 1 THEN 'one' WHEN 2 THEN 'two' END AS f,
        CASE f WHEN 1.5 THEN 'a' WHEN b THEN 'b' WHEN i THEN 'i' ELSE 'none' END AS mixed, CASE e WHEN 'small' THEN 1 WHEN de::size THEN 2 ELSE 0 END AS e, CASE de::size WHEN 'large' THEN 1 ELSE 0 END AS de,
        CASE p WHEN '{1,2}' THEN 1 WHEN ARRAY[i, i] THEN 2 ELSE 0 END AS p
    FROM item;
CREATE INCREMENTAL VIEW of_others AS
    SELECT id, CASE x WHEN 'X' THEN 1 WHEN 'y'::citext THEN 2 ELSE 0 END AS x, CASE x WHEN 'X'::text THEN 1 WHEN t THEN 2 ELSE 0 END AS xt, CASE t WHEN x THEN 1 ELSE 0 END AS tx,
        CASE i WHEN 1.5 THEN 'a' WHEN 2 THEN 'b' WHEN m THEN 'm' WHEN 1e0 THEN 'e' ELSE 'none' END AS i, CASE b WHEN 1.0 THEN 'a' WHEN 2.0 THEN 'b' END AS b, CASE i + 1 WHEN m THEN 'm' WHEN 2.50 THEN 'n' END AS s,
        CASE a WHEN '{x}' THEN 1 WHEN ARRAY[t::varchar] THEN 2 ELSE 0 END AS a, CASE at WHEN '2024-01-01' THEN 1 WHEN timestamp '2024-01-02' THEN 2 ELSE 0 END AS at,
        CASE nc WHEN 'X' THEN 1 WHEN v THEN 2 ELSE 0 END AS nc, CASE NULL WHEN v THEN 1 ELSE 0 END AS nothing, CASE 'x' WHEN v THEN 1 WHEN n THEN 2 ELSE 0 END AS literal
    FROM item;
CREATE INCREMENTAL VIEW nested AS
    SELECT CASE CASE v WHEN 'x' THEN d WHEN t THEN dd END WHEN 'x' THEN 'in' WHEN t THEN 'both' ELSE 'out' END AS place, count(*), max(CASE v WHEN 'x' THEN i END) AS most
    FROM item WHERE CASE v WHEN 'w' THEN false ELSE true END GROUP BY 1 HAVING CASE count(*) WHEN 0.0 THEN false ELSE true END;
INSERT INTO item VALUES
    (1, 'x', 'x', 'x', 'x', 'x', 'x', 1, 'small', 'small', 'x', 1, 1, 1, '{x}', '{1,2}', '2024-01-01', 'x', 'x'), (2, 'y', 'Y', 'y', 'y', 'y', 'x', 2, 'large', 'large', 'Y', 2, 2, 3, '{Y}', '{2,2}', '2024-01-02', 'y', 'y'),
    (3, 'z', 'z', 'z', 'z', 'z', 'z', 3, 'large', 'small', 'Z', 3, 4, 3.0, '{a,b}', '{3,3}', '2024-01-03', 'X', 'z'), (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (5, 'w', 'q', 'w', 'n', 'w', 'w', 5, 'small', 'large', 'x', 4, 1, 1, '{x}', '{1,2}', '2024-01-01', 'W', 'w');
SELECT * FROM of_text ORDER BY id;
SELECT * FROM of_names ORDER BY id;
SELECT * FROM of_domains ORDER BY id;
SELECT * FROM of_others ORDER BY id;
SELECT * FROM nested ORDER BY place COLLATE "C";
UPDATE item SET t = 'y', v = 'y', n = 'x', d = 'x', e = 'large', i = 2, x = 'y' WHERE id IN (1, 3, 4);
DELETE FROM item WHERE id = 2;
SELECT relation::text, d.* FROM eddy.views, eddy.verify_view(relation) d WHERE (missing, surplus) <> (0, 0);
-- The same computed by PostgreSQL.
CREATE VIEW checked AS
    SELECT id, CASE v WHEN 'x' THEN 1 WHEN 'y' THEN 2 END AS v, CASE n WHEN 'x' THEN 1 WHEN t THEN 2 WHEN v THEN 3 ELSE 0 END AS n, CASE f WHEN 1.5 THEN 'a' WHEN b THEN 'b' WHEN i THEN 'i' ELSE 'none' END AS f,
        CASE x WHEN 'X'::text THEN 1 WHEN t THEN 2 ELSE 0 END AS x FROM item;
CREATE INCREMENTAL VIEW checked_too AS SELECT * FROM checked;
SELECT count(*) FROM checked_too;
SELECT * FROM checked EXCEPT ALL SELECT * FROM checked_too;
EXPLAIN CREATE INCREMENTAL VIEW planned AS SELECT CASE v WHEN 'x' THEN 1 WHEN 'y' THEN 2 END AS v, CASE d WHEN 'x' THEN 1 END AS d, CASE i WHEN 1.5 THEN 1 WHEN 2 THEN 2 END AS i FROM item WHERE t > 'n'::name::text;
DROP TABLE item CASCADE;
DROP DOMAIN inner_code, code, few, chosen, pair;
DROP TYPE size;
DROP EXTENSION citext;
DROP COLLATION caseless;
