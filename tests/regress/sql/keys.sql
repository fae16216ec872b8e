-- GROUP BY of a key, with other columns of its table.
SET client_min_messages = warning;
CREATE TABLE customer (id int PRIMARY KEY, name text, region int, notes json);
CREATE TABLE orders (customer int, total int);
INSERT INTO customer VALUES (1, 'ann', 1), (2, 'bob', 1), (3, NULL, 2);
INSERT INTO orders VALUES (1, 10), (1, 20), (2, 5);
CREATE INCREMENTAL VIEW spent AS SELECT c.id, c.name, sum(o.total) FROM customer c LEFT JOIN orders o ON o.customer = c.id GROUP BY c.id;
CREATE INCREMENTAL VIEW computed AS SELECT upper(c.name) || c.region AS label, count(o.total) AS n, (SELECT count(*) FROM customer d WHERE d.region = c.region) AS near
    FROM customer c LEFT JOIN orders o ON o.customer = c.id GROUP BY c.id HAVING c.region < 3 ORDER BY c.name;
CREATE INCREMENTAL VIEW ranked AS SELECT id, name, region, max(o.total) AS most, rank() OVER (PARTITION BY region ORDER BY sum(o.total) DESC NULLS LAST)
    FROM customer c LEFT JOIN orders o ON o.customer = c.id GROUP BY id;
CREATE INCREMENTAL VIEW twice AS SELECT c.id, c.name, d.name AS other, count(*) FROM customer c JOIN customer d ON c.region = d.region GROUP BY c.id, d.id;
CREATE INCREMENTAL VIEW within AS SELECT x.id FROM (SELECT id, name, count(*) AS n FROM customer GROUP BY id) x WHERE x.name > 'a' UNION ALL SELECT region FROM customer GROUP BY id;
SELECT v, x.* FROM unnest(ARRAY['spent', 'computed', 'ranked', 'twice', 'within']) AS v, eddy.verify_view(v::regclass) AS x;
TABLE spent ORDER BY id;
TABLE computed ORDER BY n, label;
UPDATE customer SET name = 'cid', region = 1 WHERE id = 3;
UPDATE customer SET name = NULL WHERE id = 1;
INSERT INTO orders VALUES (3, 7), (3, NULL);
DELETE FROM orders WHERE total = 20;
INSERT INTO customer VALUES (4, 'dora', 2);
SELECT v, x.* FROM unnest(ARRAY['spent', 'computed', 'ranked', 'twice', 'within']) AS v, eddy.verify_view(v::regclass) AS x;
TABLE spent ORDER BY id;
-- The key has to stay.
ALTER TABLE customer DROP CONSTRAINT customer_pkey;
CREATE INCREMENTAL VIEW bad AS SELECT id, notes::text, count(*) FROM customer GROUP BY id;
CREATE INCREMENTAL VIEW bad AS SELECT id, name, region, count(*) FROM customer GROUP BY GROUPING SETS ((id), (id, region));
-- A grouped query within an aggregate of a grouped one.
CREATE TABLE span (n int, r int4range);
INSERT INTO span VALUES (1, '[1,5)'), (2, '[1,5)'), (3, '[4,9)');
CREATE VIEW upper_part AS SELECT r * int4range(3, NULL) AS part, min(n) AS least FROM span GROUP BY 1;
CREATE INCREMENTAL VIEW within_aggregate AS SELECT c.region, count((SELECT sum(-u.least) FROM upper_part u WHERE u.part IS NOT NULL)) AS n FROM customer c GROUP BY c.region;
INSERT INTO customer VALUES (5, 'eve', 7);
DELETE FROM span WHERE n = 1;
SELECT * FROM within_aggregate ORDER BY region;
SELECT * FROM eddy.verify_view('within_aggregate');
-- Rows of children may have the same key.
CREATE TABLE parent (id int PRIMARY KEY, name text);
CREATE INCREMENTAL VIEW named AS SELECT id, name, count(*) FROM parent GROUP BY id;
CREATE TABLE child () INHERITS (parent);
TABLE named;
CREATE INCREMENTAL VIEW bad AS SELECT id, name, count(*) FROM parent GROUP BY id;
DROP TABLE customer, orders, parent, span CASCADE;
