-- The order of joins, by what ANALYZE has found, and how long it stays.
SET client_min_messages = warning;
CREATE TABLE a (x int NOT NULL) WITH (autovacuum_enabled = false);
CREATE TABLE b (x int NOT NULL, y int NOT NULL) WITH (autovacuum_enabled = false);
CREATE TABLE c (y int NOT NULL) WITH (autovacuum_enabled = false);
INSERT INTO a SELECT n FROM generate_series(1, 100) AS n;
INSERT INTO b SELECT n % 10, n % 7 FROM generate_series(1, 100) AS n;
INSERT INTO c SELECT n FROM generate_series(1, 2) AS n;
CREATE TABLE answer AS SELECT a.x, b.y, count(*) AS n FROM a, b, c WHERE a.x = b.x AND b.y = c.y GROUP BY a.x, b.y;
-- nothing is known: as it is written
EXPLAIN CREATE INCREMENTAL VIEW v AS SELECT a.x, b.y, count(*) AS n FROM a, b, c WHERE a.x = b.x AND b.y = c.y GROUP BY a.x, b.y;
CREATE INCREMENTAL VIEW written AS SELECT a.x, b.y, count(*) AS n FROM a, b, c WHERE a.x = b.x AND b.y = c.y GROUP BY a.x, b.y;
ANALYZE a, b, c;
EXPLAIN CREATE INCREMENTAL VIEW v AS SELECT a.x, b.y, count(*) AS n FROM a, b, c WHERE a.x = b.x AND b.y = c.y GROUP BY a.x, b.y;
CREATE INCREMENTAL VIEW v AS SELECT a.x, b.y, count(*) AS n FROM a, b, c WHERE a.x = b.x AND b.y = c.y GROUP BY a.x, b.y;
SELECT 'v' AS view, * FROM (TABLE v EXCEPT ALL TABLE answer) AS more UNION ALL SELECT 'v', * FROM (TABLE answer EXCEPT ALL TABLE v) AS fewer;
SELECT 'written' AS view, * FROM (TABLE written EXCEPT ALL TABLE answer) AS more
UNION ALL SELECT 'written', * FROM (TABLE answer EXCEPT ALL TABLE written) AS fewer;
CREATE VIEW outdated AS SELECT subject, level, message, remedy FROM eddy.check() WHERE subject IN ('v', 'written') AND message LIKE 'its joins %';
-- of one nothing was known
TABLE outdated;
-- ten times as much: the plan stays, and whoever asks is told
CREATE FUNCTION plan_of(regclass) RETURNS text LANGUAGE sql AS 'SELECT md5(eddy.explain_view($1))';
SELECT plan_of('v') AS before \gset
SELECT starts AS starts FROM eddy.views WHERE relation = 'v'::regclass \gset
TRUNCATE a;
INSERT INTO a VALUES (1), (2), (3);
INSERT INTO c SELECT n % 7 FROM generate_series(1, 100) AS n;
ANALYZE a, b, c;
SELECT count(*), sum(n) FROM v;
SELECT count(*), sum(n) FROM written;
SELECT plan_of('v') = :'before' AS same, starts = :starts AS goes_on FROM eddy.views WHERE relation = 'v'::regclass;
TABLE outdated;
REFRESH INCREMENTAL VIEW v;
REFRESH INCREMENTAL VIEW written;
SELECT count(*), sum(n) FROM v;
SELECT count(*), sum(n) FROM written;
SELECT plan_of('v') = :'before' AS same;
TABLE outdated;
INSERT INTO a VALUES (1), (4);
DELETE FROM b WHERE y = 3;
SELECT * FROM eddy.verify_view('v');
SELECT * FROM eddy.verify_view('written');
-- what is on record goes with the view
SELECT count(*) FROM eddy.view_statistics WHERE relation IN ('v'::regclass, 'written'::regclass);
DROP VIEW outdated;
DROP MATERIALIZED VIEW v, written;
SELECT count(*) FROM eddy.view_statistics;
DROP FUNCTION plan_of;
DROP TABLE a, b, c, answer;
-- all at once, where partial results would take more than further indexes
CREATE TABLE brand (id int PRIMARY KEY, name text NOT NULL) WITH (autovacuum_enabled = false);
CREATE TABLE product (id int PRIMARY KEY, brand int, name text NOT NULL) WITH (autovacuum_enabled = false);
CREATE TABLE customer (id int PRIMARY KEY, name text NOT NULL, since date NOT NULL) WITH (autovacuum_enabled = false);
CREATE TABLE orders (id int PRIMARY KEY, customer int, product int) WITH (autovacuum_enabled = false);
INSERT INTO brand SELECT n, 'brand ' || n FROM generate_series(1, 3) AS n;
INSERT INTO product SELECT n, CASE WHEN n < 10 THEN 1 + n % 3 END, 'product ' || n FROM generate_series(1, 10) AS n;
INSERT INTO customer SELECT n, 'customer ' || n, DATE '2020-01-01' + n FROM generate_series(1, 20) AS n;
INSERT INTO orders SELECT n, nullif(n % 21, 0), 1 + n % 9 FROM generate_series(1, 1000) AS n;
ANALYZE brand, product, customer, orders;
EXPLAIN CREATE INCREMENTAL VIEW sold AS SELECT o.id, c.name AS customer, c.since, p.name AS product, b.name AS brand FROM orders AS o, customer AS c, product AS p, brand AS b
    WHERE o.customer = c.id AND o.product = p.id AND p.brand = b.id;
CREATE INCREMENTAL VIEW sold AS SELECT o.id, c.name AS customer, c.since, p.name AS product, b.name AS brand FROM orders AS o, customer AS c, product AS p, brand AS b
    WHERE o.customer = c.id AND o.product = p.id AND p.brand = b.id;
SELECT count(*), count(DISTINCT (customer, brand)) FROM sold;
-- it has its indexes together with another view
CREATE INCREMENTAL VIEW by_brand AS SELECT b.name, count(*) AS n, max(c.since) AS last FROM orders AS o, customer AS c, product AS p, brand AS b
    WHERE o.customer = c.id AND o.product = p.id AND p.brand = b.id GROUP BY b.name;
SELECT * FROM by_brand ORDER BY name;
SELECT relation, key, used_by FROM eddy.arrangements ORDER BY relation::text, key;
-- what changes together meets once
BEGIN;
INSERT INTO brand VALUES (4, 'brand 4');
INSERT INTO product VALUES (11, 4, 'product 11'), (12, 4, 'product 12'), (13, NULL, 'product 13');
INSERT INTO customer VALUES (21, 'customer 21', '2021-01-01'), (22, 'customer 22', '2021-01-01');
INSERT INTO orders VALUES (1001, 21, 11), (1002, 21, 12), (1003, 22, 11), (1004, 22, 13), (1005, NULL, 11);
UPDATE brand SET name = 'brand one' WHERE id = 1;
UPDATE orders SET customer = 21 WHERE id % 100 = 7;
DELETE FROM customer WHERE id = 5;
DELETE FROM product WHERE id = 5;
COMMIT;
SELECT * FROM sold WHERE id > 1000 ORDER BY id;
SELECT * FROM by_brand ORDER BY name;
SELECT * FROM eddy.verify_view('sold');
INSERT INTO customer VALUES (5, 'customer 5', '2022-01-01');
UPDATE product SET brand = 2 WHERE brand IS NULL;
DELETE FROM brand WHERE id = 3;
SELECT count(*), count(DISTINCT (customer, brand)) FROM sold;
SELECT * FROM eddy.verify_view('sold');
TRUNCATE customer;
SELECT count(*) FROM sold;
INSERT INTO customer SELECT n, 'new customer ' || n, DATE '2023-01-01' FROM generate_series(1, 3) AS n;
SELECT count(*), count(DISTINCT (customer, brand)) FROM sold;
SELECT * FROM by_brand ORDER BY name;
SELECT * FROM eddy.verify_view('sold');
SELECT * FROM eddy.verify_view('by_brand');
DROP TABLE brand, product, customer, orders CASCADE;
-- within the step of a recursion
CREATE TABLE link (a int NOT NULL, b int NOT NULL, kind int NOT NULL, PRIMARY KEY (a, b)) WITH (autovacuum_enabled = false);
CREATE TABLE kind (id int PRIMARY KEY, name text NOT NULL) WITH (autovacuum_enabled = false);
CREATE TABLE open (a int NOT NULL, b int NOT NULL) WITH (autovacuum_enabled = false);
INSERT INTO link SELECT n, n + k, k FROM generate_series(1, 100) AS n, generate_series(1, 5) AS k;
INSERT INTO kind SELECT k, 'k' || k FROM generate_series(1, 5) AS k;
INSERT INTO open SELECT n, n + 5 FROM generate_series(1, 100, 7) AS n;
ANALYZE link, kind, open;
EXPLAIN CREATE INCREMENTAL VIEW reach AS WITH RECURSIVE r(a) AS (SELECT 1 UNION SELECT l.b FROM r, link AS l, kind AS k, open AS o
    WHERE l.a = r.a AND l.kind = k.id AND k.name = 'k5' AND o.a = l.a AND o.b = l.b) SELECT a FROM r;
CREATE INCREMENTAL VIEW reach AS WITH RECURSIVE r(a) AS (SELECT 1 UNION SELECT l.b FROM r, link AS l, kind AS k, open AS o
    WHERE l.a = r.a AND l.kind = k.id AND k.name = 'k5' AND o.a = l.a AND o.b = l.b) SELECT a FROM r;
INSERT INTO open VALUES (6, 11), (11, 16);
SELECT * FROM reach ORDER BY a;
SELECT * FROM eddy.verify_view('reach');
DROP TABLE link, kind, open CASCADE;
