-- Queries without recursion, each followed through inserts, updates and deletes.
SET client_min_messages = warning;
CREATE TABLE item (id int PRIMARY KEY, kind text, price numeric, stock int);
CREATE TABLE sale (item int, amount int, day date);
INSERT INTO item VALUES (1, 'pen', 1.50, 10), (2, 'ink', 4, 0), (3, 'pad', 2.25, NULL), (4, NULL, NULL, 7);
INSERT INTO sale VALUES (1, 2, '2024-02-28'), (1, 3, '2024-02-29'), (3, 1, NULL), (NULL, 9, '2024-03-01'), (9, 1, NULL);

CREATE INCREMENTAL VIEW projected AS
    SELECT id, upper(kind COLLATE "C") || '!' AS label, price * 2 AS twice, stock + 1 AS more,
        CASE WHEN stock > 5 THEN 'many' WHEN stock IS NULL THEN 'unknown' ELSE 'few' END AS level,
        coalesce(stock, 0) AS stock0, nullif(kind, 'pen') AS not_pen,
        greatest(stock, 3) AS g, least(stock, 3) AS l, price IS DISTINCT FROM 4 AS differs
    FROM item WHERE id < 100;
CREATE INCREMENTAL VIEW filtered AS
    SELECT id FROM item WHERE (kind LIKE 'p%' OR price > 3) AND NOT stock IN (5, 6) AND id BETWEEN 0 AND 50;
CREATE INCREMENTAL VIEW joined AS
    SELECT i.id, i.kind, s.amount, s.day, i.price * s.amount AS value FROM item i JOIN sale s ON s.item = i.id;
CREATE INCREMENTAL VIEW self_join AS
    SELECT a.id AS a, b.id AS b FROM item a, item b WHERE a.price < b.price;
CREATE INCREMENTAL VIEW crossed AS SELECT i.kind, v.n FROM item i CROSS JOIN (VALUES (1), (NULL)) AS v(n);
CREATE INCREMENTAL VIEW three AS
    SELECT i.kind, s.amount, t.amount AS other
    FROM item i JOIN sale s ON s.item = i.id JOIN sale t ON t.item = s.item AND t.amount <> s.amount;
CREATE INCREMENTAL VIEW null_safe AS
    SELECT i.id, s.amount FROM item i JOIN sale s ON i.stock IS NOT DISTINCT FROM s.item;
CREATE INCREMENTAL VIEW kinds AS SELECT DISTINCT kind, stock > 5 AS many FROM item;
CREATE INCREMENTAL VIEW everything AS
    SELECT kind AS word FROM item UNION ALL SELECT note FROM (SELECT 'never' AS note WHERE false) x
    UNION ALL SELECT 'sale ' || amount::text FROM sale;
CREATE INCREMENTAL VIEW numbers AS SELECT id AS n FROM item UNION SELECT item FROM sale UNION SELECT amount FROM sale;
CREATE INCREMENTAL VIEW through_cte AS
    WITH sold AS (SELECT item, sum(amount) AS amount FROM sale GROUP BY item),
        big AS (SELECT item, amount FROM sold WHERE amount > 1)
    SELECT i.kind, b.amount, s.amount AS again FROM item i JOIN big b ON b.item = i.id JOIN sold s ON s.item = i.id;
CREATE INCREMENTAL VIEW constants AS VALUES (1, 'one'), (2, NULL), (2, NULL);
CREATE INCREMENTAL VIEW no_table AS SELECT 1 + 1 AS two, 'x'::text AS x;

SELECT * FROM projected ORDER BY id;
SELECT * FROM filtered ORDER BY id;
SELECT * FROM joined ORDER BY id, amount;
SELECT * FROM self_join ORDER BY a, b;
SELECT * FROM crossed ORDER BY kind, n;
SELECT * FROM three ORDER BY kind, amount;
SELECT * FROM null_safe ORDER BY id, amount;
SELECT * FROM kinds ORDER BY kind, many;
SELECT * FROM everything ORDER BY word;
SELECT * FROM numbers ORDER BY n;
SELECT * FROM through_cte ORDER BY kind;
SELECT * FROM constants ORDER BY 1;
SELECT * FROM no_table;

INSERT INTO item VALUES (5, 'pen', 1.50, 6), (6, 'cap', 0, 5), (9, 'nib', 10, NULL);
UPDATE item SET price = price + 1, stock = coalesce(stock, 9) WHERE id IN (1, 3);
INSERT INTO sale SELECT item, amount, day FROM sale WHERE item = 1;
UPDATE sale SET item = 2 WHERE item IS NULL;
DELETE FROM sale WHERE item = 3;
DELETE FROM item WHERE id = 4;

SELECT * FROM projected ORDER BY id;
SELECT * FROM filtered ORDER BY id;
SELECT * FROM joined ORDER BY id, amount;
SELECT * FROM self_join ORDER BY a, b;
SELECT * FROM crossed ORDER BY kind, n;
SELECT * FROM three ORDER BY kind, amount;
SELECT * FROM null_safe ORDER BY id, amount;
SELECT * FROM kinds ORDER BY kind, many;
SELECT * FROM everything ORDER BY word;
SELECT * FROM numbers ORDER BY n;
SELECT * FROM through_cte ORDER BY kind;

TRUNCATE sale;
UPDATE item SET id = id + 200;
SELECT * FROM projected ORDER BY id;
SELECT * FROM joined ORDER BY id, amount;
SELECT * FROM self_join ORDER BY a, b;
SELECT * FROM numbers ORDER BY n;
SELECT * FROM through_cte ORDER BY kind;
SELECT * FROM everything ORDER BY word;

-- Rows without columns
INSERT INTO sale VALUES (1, 2, NULL), (3, 0, NULL), (2, 5, NULL);
CREATE INCREMENTAL VIEW bare AS SELECT FROM sale WHERE amount > 1;
CREATE INCREMENTAL VIEW bare_sum AS SELECT count(*) FROM (SELECT FROM item UNION ALL SELECT FROM sale) s;
CREATE INCREMENTAL VIEW bare_union AS SELECT FROM sale UNION SELECT;
CREATE INCREMENTAL VIEW bare_limit AS SELECT FROM item LIMIT 2;
CREATE INCREMENTAL VIEW bare_join AS SELECT i.id FROM item i, LATERAL (SELECT WHERE i.stock > 5) s;
SELECT (SELECT count(*) FROM bare), (SELECT count(*) FROM bare_union), (SELECT count(*) FROM bare_limit), (SELECT count FROM bare_sum);
INSERT INTO sale SELECT item, amount + 1, day FROM sale;
DELETE FROM item WHERE stock > 5;
SELECT v, d.* FROM unnest(ARRAY['bare', 'bare_sum', 'bare_union', 'bare_limit', 'bare_join']) AS v, eddy.verify_view(v::regclass) AS d;
TRUNCATE sale;
SELECT (SELECT count(*) FROM bare), (SELECT count(*) FROM bare_union), (SELECT count FROM bare_sum);

DROP TABLE item, sale CASCADE;
DROP INCREMENTAL VIEW constants, no_table;
