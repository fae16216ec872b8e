-- Queries that fail at some rows: the view is in error while they are there, with the SQLSTATE of its query.

-- fails: 22012
-- for {x}: x / y | x % y | x::numeric / y | x::double precision / y | mod(x, y) | 100 / (y - y + y) | div(x::numeric, y) | CASE WHEN x > 5 THEN x / y END | coalesce(x / y, 0) | x / nullif(y, 5)
SELECT id, {x} AS result FROM fault;

-- fails: 22003
-- for {x}: x + 1 | x - 1 | x * 2 | x::smallint | x * x | factorial(abs(x::bigint)) | (x::numeric * 10)::int | abs(x) | twice(x)
SELECT id, {x} AS result FROM fault WHERE x IS NOT NULL;

-- fails: 22P02
-- for {x}: t::int | t::bigint | t::numeric | t::double precision | t::json | t::jsonb | t::smallint | trim(t)::int | nullif(t, '')::int | int4(t::numeric)
SELECT id, {x} AS result FROM fault WHERE t IS NOT NULL;

-- fails: 2201F
-- for {x}: sqrt(f) | sqrt(f::numeric) | f ^ 0.5
SELECT id, {x} AS result FROM fault;

-- fails: 2201E
-- for {x}: ln(f) | log(f) | ln(f::numeric)
SELECT id, {x} AS result FROM fault;

-- fails: 22012
-- for {q}: SELECT id FROM fault WHERE x / y > 1 | SELECT sum(x / y) FROM fault | SELECT x / y AS k, count(*) FROM fault GROUP BY x / y | SELECT a.id, b.id AS other FROM fault a JOIN fault b ON a.x / a.y = b.id | SELECT max(x) / min(abs(y)) FROM fault | SELECT id, rank() OVER (ORDER BY x / y) FROM fault | SELECT DISTINCT x / y FROM fault | SELECT id FROM fault ORDER BY x / y, id LIMIT 2 | SELECT x / y FROM fault UNION SELECT id FROM dept | SELECT id, (SELECT sum(x / y) FROM fault) AS s FROM dept | SELECT id FROM dept WHERE id IN (SELECT x / y FROM fault) | SELECT sum(x) FILTER (WHERE 10 / y > 1) FROM fault | SELECT id, sum(x / y) OVER (ORDER BY id) FROM fault | SELECT string_agg((x / y)::text, ',' ORDER BY id) FROM fault | WITH c AS (SELECT x / y AS q FROM fault) SELECT count(q) FROM c | SELECT sum(x) / sum(CASE WHEN y > 0 THEN 1 ELSE 0 END) / min(y * y) FROM fault | SELECT d.id, f.q FROM dept d LEFT JOIN (SELECT id % 100 + 1 AS id, x / y AS q FROM fault) f USING (id) | SELECT d.id, q FROM dept d, LATERAL (SELECT f.x / f.y AS q FROM fault f WHERE f.id > d.id) s | WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + abs(x / y) + 1 FROM r, fault WHERE n < 20) SELECT n FROM r | VALUES ((SELECT max(x / y) FROM fault))
{q};

-- fails: 21000
-- for {q}: SELECT (SELECT id FROM fault WHERE id >= 200) AS one FROM dept | SELECT id FROM dept WHERE id = (SELECT y FROM fault WHERE x NOT BETWEEN -1000 AND 1000) | SELECT id, (SELECT f.id FROM fault f WHERE f.id > 100 + d.id AND f.id < 300) AS one FROM dept d
{q};

-- fails: 22003
-- for {q}: SELECT sum(x)::int FROM fault WHERE x > 0 | SELECT max(x) + 1 FROM fault | SELECT id, (sum(x) OVER (ORDER BY id))::int FROM fault WHERE x > 0 | SELECT product(x) FROM fault WHERE x > 0
{q};

-- PostgreSQL computes what a join drops, or does not; a view does.
-- eager: 22012
-- for {q}: SELECT d.id, f.q FROM dept d LEFT JOIN (SELECT id, x / y AS q FROM fault) f USING (id) | SELECT d.id, f.q FROM dept d JOIN (SELECT id, x / y AS q FROM fault) f ON f.id = d.id
{q};
