-- What came with PostgreSQL 18.

-- virtual generated columns are computed when they are read, and are not in the WAL
CREATE TABLE line (id int PRIMARY KEY, gone int, price int, n int,
    total int GENERATED ALWAYS AS (price * n) VIRTUAL,
    label text GENERATED ALWAYS AS ('no. ' || coalesce(n, 0)) STORED);
ALTER TABLE line DROP COLUMN gone;
INSERT INTO line VALUES (1, 10, 2), (2, 5, NULL), (3, 7, 3);
CREATE TABLE part (id int PRIMARY KEY, line int);
INSERT INTO part VALUES (1, 1), (2, 3), (3, 9);
CREATE INCREMENTAL VIEW totals AS SELECT id, total, label FROM line;
CREATE INCREMENTAL VIEW dear AS SELECT count(*) AS n, sum(total) AS sum FROM line WHERE total > 15;
-- NULL where there is no row, not computed from NULLs
CREATE TABLE never_null (id int PRIMARY KEY, v int GENERATED ALWAYS AS (coalesce(id, 0) + 1) VIRTUAL);
INSERT INTO never_null VALUES (1);
CREATE INCREMENTAL VIEW outer_side AS SELECT p.id, x.v, x.v IS NULL AS lacks FROM part p LEFT JOIN never_null x ON x.id = p.id;
CREATE INCREMENTAL VIEW whole AS SELECT line AS row FROM line;
UPDATE line SET n = n + 1 WHERE id = 1;
DELETE FROM line WHERE id = 3;
INSERT INTO line VALUES (4, 100, 1);
INSERT INTO never_null VALUES (3);
SELECT * FROM totals ORDER BY id;
SELECT * FROM dear;
SELECT * FROM outer_side ORDER BY id;
SELECT * FROM whole ORDER BY 1;

-- GROUP BY is an entry of the range table: outputs, HAVING and grouping sets refer to it
CREATE INCREMENTAL VIEW grouped AS SELECT price, price + 1 AS more, count(*) AS n FROM line GROUP BY price HAVING price IS NOT NULL AND EXISTS (SELECT FROM part WHERE part.line <= line.price);
CREATE INCREMENTAL VIEW sets AS SELECT price, n, count(*) AS c, GROUPING(price, n) AS g FROM line GROUP BY ROLLUP (price, n);
CREATE INCREMENTAL VIEW nested AS SELECT odd, (SELECT max(line) FROM part WHERE part.id > odd) AS m FROM (SELECT price % 2 AS odd FROM line GROUP BY 1) g GROUP BY odd;
UPDATE line SET price = price + 1 WHERE id = 2;
SELECT * FROM grouped ORDER BY price;
SELECT * FROM sets ORDER BY price, n, g;
SELECT * FROM nested ORDER BY odd;

-- OLD and NEW in RETURNING
UPDATE line SET n = 9 WHERE id = 4 RETURNING old.n AS was, new.n AS is, new.total;
SELECT id, total FROM totals WHERE id = 4;

-- keys over time, which are replica identities as well
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS btree_gist;
RESET client_min_messages;
CREATE TABLE stay (room int, during daterange, guest text, PRIMARY KEY (room, during WITHOUT OVERLAPS));
INSERT INTO stay VALUES (1, '[2026-01-01, 2026-01-05)', 'a'), (1, '[2026-01-05, 2026-01-07)', 'b'), (2, '[2026-01-01, 2026-02-01)', 'c');
CREATE INCREMENTAL VIEW nights AS SELECT room, sum(upper(during) - lower(during)) AS nights FROM stay GROUP BY room;
CREATE INCREMENTAL VIEW stays AS SELECT room, during FROM stay;
DELETE FROM stay WHERE guest = 'b';
UPDATE stay SET during = '[2026-01-01, 2026-01-15)' WHERE room = 2;
SELECT * FROM nights ORDER BY room;
SELECT * FROM stays ORDER BY room, during;

-- NOT NULL that has not been checked: a NULL may be there
CREATE TABLE late (id int PRIMARY KEY, n int);
INSERT INTO late VALUES (1, NULL), (2, 2);
ALTER TABLE late ADD CONSTRAINT late_n NOT NULL n NOT VALID;
CREATE INCREMENTAL VIEW lacking AS SELECT id FROM late WHERE n IS NULL;
CREATE INCREMENTAL VIEW not_in AS SELECT p.id FROM part p WHERE p.line NOT IN (SELECT n FROM late);
SELECT * FROM lacking;
SELECT * FROM not_in ORDER BY id;
UPDATE late SET n = 1 WHERE id = 1;
SELECT * FROM lacking;
SELECT * FROM not_in ORDER BY id;

-- uuidv7 is volatile; what it made is a value like any other
CREATE INCREMENTAL VIEW bad AS SELECT uuidv7() FROM part;
\echo :SQLSTATE
CREATE TABLE event (id uuid PRIMARY KEY DEFAULT uuidv7(), at int);
INSERT INTO event (at) VALUES (1), (2);
CREATE INCREMENTAL VIEW versions AS SELECT uuid_extract_version(id) AS version, count(*) AS n FROM event GROUP BY 1;
INSERT INTO event (at) VALUES (3);
SELECT * FROM versions;

-- an identity column as replica identity
CREATE TABLE numbered (id bigint GENERATED ALWAYS AS IDENTITY, n int);
ALTER TABLE numbered ADD CONSTRAINT numbered_key UNIQUE (id);
ALTER TABLE numbered REPLICA IDENTITY USING INDEX numbered_key;
INSERT INTO numbered (n) VALUES (1), (2);
CREATE INCREMENTAL VIEW numbers AS SELECT id FROM numbered;
DELETE FROM numbered WHERE n = 1;
SELECT * FROM numbers;

-- case and order of the built-in collation for all of Unicode
CREATE TABLE word (id int PRIMARY KEY, w text COLLATE pg_unicode_fast);
INSERT INTO word VALUES (1, 'straße'), (2, 'ÄB'), (3, 'z');
CREATE INCREMENTAL VIEW cased AS SELECT upper(w) AS u, casefold(w) AS f FROM word;
DELETE FROM word WHERE id = 3;
SELECT * FROM cased ORDER BY 1;

SELECT v.relation, d.* FROM eddy.views v, eddy.verify_view(v.relation) d ORDER BY v.relation::text;
DROP TABLE line, part, never_null, stay, late, event, numbered, word CASCADE;
