-- Views that read views: each level is computed once, and all are of one point of commit order.
SET client_min_messages = warning;
CREATE TABLE item (id int PRIMARY KEY, kind text, price int);
CREATE TABLE part (whole int, part int, n int);
INSERT INTO item VALUES (1, 'a', 10), (2, 'a', 20), (3, 'b', 5), (4, NULL, 7);
INSERT INTO part VALUES (1, 3, 2), (2, 3, 1), (2, 4, 3);
CREATE INCREMENTAL VIEW used AS SELECT p.whole, i.id, i.kind, i.price * p.n AS cost FROM part p JOIN item i ON i.id = p.part;
CREATE INCREMENTAL VIEW cost AS SELECT whole, sum(cost) AS cost, count(*) AS n FROM used GROUP BY whole;
CREATE INCREMENTAL VIEW margin AS
    SELECT i.id, i.kind, i.price - coalesce(c.cost, 0) AS margin FROM item i LEFT JOIN cost c ON c.whole = i.id;
CREATE INCREMENTAL VIEW best AS SELECT kind, max(margin) AS margin FROM margin GROUP BY kind;
-- a diamond, and one that reads all columns, some in another order
CREATE INCREMENTAL VIEW pair AS
    SELECT m.id, m.margin, b.margin AS best FROM margin m JOIN best b ON b.kind IS NOT DISTINCT FROM m.kind;
CREATE INCREMENTAL VIEW turned AS SELECT cost, kind, id, whole FROM used WHERE cost > 5;
SELECT * FROM pair ORDER BY id;
SELECT eddy.explain_view('pair');
BEGIN;
INSERT INTO item VALUES (5, 'b', 100);
UPDATE item SET price = 6 WHERE id = 3;
DELETE FROM part WHERE part = 4;
COMMIT;
SELECT * FROM pair ORDER BY id;
SELECT * FROM turned ORDER BY 1, 2, 3, 4;
TRUNCATE part;
SELECT * FROM pair ORDER BY id;
SELECT count(*) FROM turned;
INSERT INTO part VALUES (1, 3, 2), (2, 3, 1), (2, 4, 3), (2, 4, 3);
SELECT v, missing, surplus FROM unnest('{used,cost,margin,best,pair,turned}'::regclass[]) v, eddy.verify_view(v) ORDER BY v::text;
-- what a transaction has changed itself is beneath all of them
BEGIN;
UPDATE item SET price = price + 1;
SELECT * FROM pair ORDER BY id;
ROLLBACK;
SELECT * FROM pair ORDER BY id;
-- only tables are listed as those that views read
SELECT relation, columns FROM eddy.list_base_tables() ORDER BY relation::text;

-- an error of a view is one of those above it, and is over with it
CREATE INCREMENTAL VIEW share AS SELECT id, 100 / price AS share FROM item;
CREATE INCREMENTAL VIEW shares AS SELECT count(*) AS n, sum(share) AS total FROM share;
CREATE INCREMENTAL VIEW ids AS SELECT s.id, n FROM share s, shares;
UPDATE item SET price = 0 WHERE id = 4;
SELECT * FROM shares;
SELECT * FROM ids;
SET eddy.fill = 'query';
CREATE INCREMENTAL VIEW late AS SELECT id FROM share;
RESET eddy.fill;
UPDATE item SET price = 7 WHERE id = 4;
SELECT * FROM shares;
SELECT * FROM ids ORDER BY id;
CREATE INCREMENTAL VIEW late AS SELECT id FROM share;
UPDATE item SET price = 0 WHERE id = 1;
SELECT * FROM late;
UPDATE item SET price = 10 WHERE id = 1;
SELECT * FROM late ORDER BY id;

-- so is one that lasts
CREATE ROLE eddy_stacked;
GRANT CREATE ON SCHEMA public TO eddy_stacked;
GRANT SELECT ON item TO eddy_stacked;
SET ROLE eddy_stacked;
CREATE INCREMENTAL VIEW dear AS SELECT id, price FROM item WHERE price > 9;
CREATE INCREMENTAL VIEW dearest AS SELECT max(price) AS price FROM dear;
RESET ROLE;
CREATE INCREMENTAL VIEW dearest_twice AS SELECT price * 2 AS twice FROM dearest;
SELECT * FROM dearest_twice;
REVOKE SELECT ON item FROM eddy_stacked;
SELECT * FROM dear;
SELECT * FROM dearest;
SELECT * FROM dearest_twice;
\echo :SQLSTATE
GRANT SELECT ON item TO eddy_stacked;
INSERT INTO item VALUES (6, 'c', 1000);
SELECT * FROM dearest_twice;

-- views beneath are refreshed, renamed, indexed and dropped
REFRESH INCREMENTAL VIEW used;
INSERT INTO part VALUES (1, 4, 1);
SELECT * FROM cost ORDER BY whole;
REFRESH INCREMENTAL VIEW pair;
SELECT * FROM pair ORDER BY id;
ALTER INCREMENTAL VIEW used RENAME COLUMN cost TO costs;
ALTER INCREMENTAL VIEW used RENAME TO needed;
CREATE UNIQUE INDEX ON cost (whole);
INSERT INTO part VALUES (1, 4, 1);
SELECT * FROM cost ORDER BY whole;
SELECT * FROM turned ORDER BY 1, 2, 3, 4;
SELECT v, missing, surplus FROM unnest('{needed,cost,margin,best,pair,turned,ids,late}'::regclass[]) v, eddy.verify_view(v) ORDER BY v::text;
DROP INCREMENTAL VIEW needed;
DROP INCREMENTAL VIEW needed CASCADE;
INSERT INTO part VALUES (3, 1, 1);
SELECT relation, state FROM eddy.views WHERE state <> 'live';

-- a circle by way of a plain view
CREATE VIEW between AS SELECT id, price FROM item;
CREATE INCREMENTAL VIEW low AS SELECT id, price FROM between;
CREATE INCREMENTAL VIEW high AS SELECT id, price + 1 AS price FROM low;
CREATE OR REPLACE VIEW between AS SELECT id, price FROM high;
\set VERBOSITY sqlstate
SELECT * FROM low;
\set VERBOSITY default
-- which of both says so is left open
SELECT state, bool_or(message ~ 'reads itself') FROM eddy.views WHERE relation IN ('low'::regclass, 'high'::regclass) GROUP BY state;
CREATE OR REPLACE VIEW between AS SELECT id, price FROM item WHERE id < 3;
SELECT * FROM high ORDER BY id;
DROP VIEW between CASCADE;

-- all in one transaction
BEGIN;
CREATE INCREMENTAL VIEW one AS SELECT kind, sum(price) AS total FROM item GROUP BY kind;
CREATE INCREMENTAL VIEW two AS SELECT max(total) AS most FROM one;
CREATE INCREMENTAL VIEW three AS SELECT o.kind FROM one o JOIN two t ON o.total = t.most;
INSERT INTO item VALUES (7, 'd', 5000);
COMMIT;
SELECT * FROM three;
DROP TABLE item, part CASCADE;
REVOKE CREATE ON SCHEMA public FROM eddy_stacked;
DROP ROLE eddy_stacked;
