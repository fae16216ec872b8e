-- Base tables of every kind, views on views, and changes of definitions.
SET client_min_messages = warning;

-- Partitions come and go
CREATE TABLE log (day date, host text, hits int) PARTITION BY RANGE (day);
CREATE TABLE log_jan PARTITION OF log FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
CREATE TABLE log_rest PARTITION OF log DEFAULT;
INSERT INTO log VALUES ('2024-01-05', 'a', 1), ('2024-03-05', 'a', 10);
CREATE INCREMENTAL VIEW hits AS SELECT host, sum(hits) AS hits, count(*) AS days FROM log GROUP BY host;
SELECT * FROM hits ORDER BY host;
INSERT INTO log VALUES ('2024-01-06', 'b', 2), ('2025-01-06', 'b', 20);
SELECT * FROM hits ORDER BY host;
-- a row moves to another partition
UPDATE log SET day = '2024-01-31' WHERE day = '2024-03-05';
SELECT * FROM hits ORDER BY host;
CREATE TABLE log_feb (day date, host text, hits int);
INSERT INTO log_feb VALUES ('2024-02-01', 'c', 100);
ALTER TABLE log_feb REPLICA IDENTITY FULL;
ALTER TABLE log ATTACH PARTITION log_feb FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
SELECT * FROM hits ORDER BY host;
INSERT INTO log VALUES ('2024-02-02', 'c', 1);
SELECT * FROM hits ORDER BY host;
ALTER TABLE log DETACH PARTITION log_jan;
SELECT * FROM hits ORDER BY host;
INSERT INTO log_jan VALUES ('2024-01-07', 'a', 5);
TRUNCATE log_feb;
SELECT * FROM hits ORDER BY host;

-- A view on an incremental view, on a plain view, several on the same table
CREATE TABLE t (id int PRIMARY KEY, grp int, val int);
INSERT INTO t SELECT i, i % 3, i FROM generate_series(1, 9) i;
CREATE VIEW plain AS SELECT grp, val * 2 AS twice FROM t WHERE val > 1;
CREATE INCREMENTAL VIEW one AS SELECT grp, sum(val) AS total FROM t GROUP BY grp;
CREATE INCREMENTAL VIEW two AS SELECT count(*) AS groups, sum(total) AS total FROM one;
CREATE INCREMENTAL VIEW three AS SELECT o.grp, o.total, t.id FROM one o JOIN t ON t.grp = o.grp;
CREATE INCREMENTAL VIEW four AS SELECT grp, sum(twice) AS total FROM plain GROUP BY grp;
SELECT * FROM one ORDER BY grp;
SELECT * FROM two;
SELECT * FROM four ORDER BY grp;
UPDATE t SET grp = 7, val = val + 1 WHERE grp = 2;
SELECT * FROM one ORDER BY grp;
SELECT * FROM two;
SELECT * FROM three ORDER BY grp, id;
SELECT * FROM four ORDER BY grp;
SELECT (SELECT sum(total) FROM one) = (SELECT total FROM two) AS equal;

-- Renames, new and dropped columns
ALTER TABLE t RENAME COLUMN val TO value;
ALTER TABLE t RENAME TO renamed;
ALTER TABLE renamed ADD COLUMN extra text DEFAULT 'x';
INSERT INTO renamed VALUES (10, 1, 1000, 'y');
SELECT * FROM one ORDER BY grp;
ALTER TABLE renamed DROP COLUMN extra;
INSERT INTO renamed VALUES (11, 1, 1000);
SELECT * FROM one ORDER BY grp;
CREATE TABLE holes (a int, gone text, b int, PRIMARY KEY (b));
ALTER TABLE holes DROP COLUMN gone;
INSERT INTO holes VALUES (1, 2);
ALTER TABLE holes ADD COLUMN c int DEFAULT 5;
CREATE INCREMENTAL VIEW over_holes AS SELECT c, a, b FROM holes;
INSERT INTO holes VALUES (3, 4, 6);
UPDATE holes SET a = 7 WHERE b = 2;
SELECT * FROM over_holes ORDER BY b;

-- The view's own name, schema, indexes, and a table rewritten
CREATE SCHEMA elsewhere;
ALTER INCREMENTAL VIEW one RENAME TO uno;
ALTER INCREMENTAL VIEW uno SET SCHEMA elsewhere;
CREATE UNIQUE INDEX ON elsewhere.uno (grp);
INSERT INTO renamed VALUES (12, 1, 5);
SELECT * FROM elsewhere.uno ORDER BY grp;
SELECT * FROM two;
VACUUM FULL renamed;
UPDATE renamed SET value = 0 WHERE id = 12;
SELECT * FROM elsewhere.uno ORDER BY grp;
VACUUM FULL elsewhere.uno;
UPDATE renamed SET value = 1 WHERE id = 12;
SELECT * FROM elsewhere.uno ORDER BY grp;
REFRESH INCREMENTAL VIEW elsewhere.uno;
UPDATE renamed SET value = 2 WHERE id = 12;
SELECT * FROM elsewhere.uno ORDER BY grp;

-- created and used in one transaction; WITH NO DATA; IF NOT EXISTS; column list
BEGIN;
CREATE TABLE young (a int);
INSERT INTO young VALUES (1);
CREATE INCREMENTAL VIEW only_young AS SELECT a FROM ONLY young;
CREATE INCREMENTAL VIEW young_view (x) AS SELECT a + 1 FROM young;
SELECT * FROM young_view;
INSERT INTO young VALUES (5);
COMMIT;
SELECT * FROM young_view ORDER BY x;
CREATE INCREMENTAL VIEW late AS SELECT a FROM young WITH NO DATA;
SELECT * FROM late ORDER BY a;
INSERT INTO young VALUES (9);
SELECT * FROM late ORDER BY a;
SELECT * FROM only_young ORDER BY a;
BEGIN;
CREATE INCREMENTAL VIEW never AS SELECT a FROM young;
ROLLBACK;
INSERT INTO young VALUES (10);
SELECT * FROM late ORDER BY a;

-- tables without key, with a key that does not cover the columns
CREATE TABLE keyless (a int, b text);
CREATE INCREMENTAL VIEW over_keyless AS SELECT b, count(*) AS rows FROM keyless GROUP BY b;
INSERT INTO keyless VALUES (1, 'x'), (1, 'x'), (2, 'y');
DELETE FROM keyless WHERE ctid = (SELECT min(ctid) FROM keyless);
SELECT * FROM over_keyless ORDER BY b;
UPDATE keyless SET b = 'z' WHERE a = 1;
SELECT * FROM over_keyless ORDER BY b;
-- a column that is declared NOT NULL, until it is not
CREATE TABLE strict (a int NOT NULL, b int NOT NULL);
INSERT INTO strict VALUES (1, 2);
CREATE INCREMENTAL VIEW over_strict AS SELECT b, count(*) AS rows FROM strict GROUP BY b;
ALTER TABLE strict ALTER b DROP NOT NULL;
INSERT INTO strict VALUES (3, NULL);
SELECT * FROM over_strict ORDER BY b;
UPDATE strict SET b = NULL WHERE a = 1;
SELECT * FROM over_strict ORDER BY b;
-- emptied twice by one transaction
BEGIN;
INSERT INTO strict VALUES (4, 5);
TRUNCATE strict;
INSERT INTO strict VALUES (6, 7), (8, 7);
TRUNCATE strict;
INSERT INTO strict VALUES (9, 10);
COMMIT;
SELECT * FROM over_strict ORDER BY b;
-- generated columns
CREATE TABLE boxes (id int PRIMARY KEY, w int, h int, area int GENERATED ALWAYS AS (w * h) STORED);
INSERT INTO boxes VALUES (1, 2, 3), (2, 4, 5), (3, NULL, 1);
CREATE INCREMENTAL VIEW areas AS SELECT area, count(*) FROM boxes GROUP BY area;
UPDATE boxes SET h = 10 WHERE id = 1;
INSERT INTO boxes VALUES (4, 20, 1);
SELECT * FROM areas ORDER BY area;
DELETE FROM boxes WHERE id = 2;
SELECT * FROM areas ORDER BY area;
DROP TABLE log, log_jan, boxes, renamed, holes, young, keyless, strict CASCADE;
DROP SCHEMA elsewhere;
