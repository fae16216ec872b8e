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
-- for {q}: SELECT id FROM fault WHERE x / y > 1 | SELECT sum(x / y) FROM fault | SELECT x / y AS k, count(*) FROM fault GROUP BY x / y | SELECT a.id, b.id AS other FROM fault a JOIN fault b ON a.x / a.y = b.id | SELECT max(x) / min(abs(y)) FROM fault | SELECT id, rank() OVER (ORDER BY x / y) FROM fault | SELECT DISTINCT x / y FROM fault | SELECT id FROM fault ORDER BY x / y, id LIMIT 2 | SELECT x / y FROM fault UNION SELECT id FROM dept | SELECT id, (SELECT sum(x / y) FROM fault) AS s FROM dept | SELECT id FROM dept WHERE id IN (SELECT x / y FROM fault) | SELECT sum(x) FILTER (WHERE 10 / y > 1) FROM fault | SELECT id, sum(x / y) OVER (ORDER BY id) FROM fault | SELECT string_agg((x / y)::text, ',' ORDER BY id) FROM fault | WITH c AS (SELECT x / y AS q FROM fault) SELECT count(q) FROM c | SELECT sum(x) / sum(CASE WHEN y > 0 THEN 1 ELSE 0 END) / min(y * y) FROM fault | SELECT d.id, f.q FROM dept d LEFT JOIN (SELECT id % 100 + 1 AS id, x / y AS q FROM fault) f USING (id) | SELECT d.id, q FROM dept d, LATERAL (SELECT f.x / f.y AS q FROM fault f WHERE f.id > d.id) s | WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + abs(x / y) + 1 FROM r, fault WHERE n < 20) SELECT n FROM r | VALUES ((SELECT max(x / y) FROM fault)) | SELECT f.id FROM fault f WHERE f.id IN (SELECT id FROM dept) AND x / y > 1
{q};

-- fails: 21000
-- for {q}: SELECT (SELECT id FROM fault WHERE id >= 200) AS one FROM dept | SELECT id FROM dept WHERE id = (SELECT y FROM fault WHERE x NOT BETWEEN -1000 AND 1000) | SELECT id, (SELECT f.id FROM fault f WHERE f.id > 100 + d.id AND f.id < 300) AS one FROM dept d
{q};

-- fails: 22003
-- for {q}: SELECT sum(x)::int FROM fault WHERE x > 0 | SELECT max(x) + 1 FROM fault | SELECT id, (sum(x) OVER (ORDER BY id))::int FROM fault WHERE x > 0 | SELECT product(x) FROM fault WHERE x > 0
{q};

-- Of each kind of error.
-- fails: 22008
-- for {x}: date '2024-01-01' + x | timestamp '2024-01-01' + x * interval '1 day' | (date '2024-01-01' + x)::text | date '2024-01-01' - x
SELECT id, {x} AS result FROM fault;

-- fails: 22007
-- for {x}: (t || ' days')::interval | to_date(t || '', 'YYYY')
SELECT id, {x} AS result FROM fault WHERE t <> '';

-- fails: 22P02
-- for {x}: ('{' || t || '}')::int[] | ('[' || t || ']')::jsonb | ('[' || t || ',)')::int4range | (jsonb_build_object('k', t) ->> 'k')::int | x = ANY (('{' || t || '}')::int[]) | ('(' || t || ',1)')::point | ('(x,' || t || ')')::place
SELECT id, {x} AS result FROM fault WHERE t NOT LIKE ' %';

-- fails: 22011
-- for {x}: substring('abcdef' FROM 1 FOR x) | substr('abcdef', 2, x)
SELECT id, {x} AS result FROM fault WHERE x < 1000000;

-- fails: 23514
-- for {x}: x::percentage | (x + 0)::percentage | coalesce(x, 5)::percentage
SELECT id, {x} AS result FROM fault;

-- fails: 22000
-- for {x}: int4range(y - 5, x) | numrange(y - 5, x, '[]') | int4multirange(int4range(y - 5, x)) | int8range(y - 5, x) @> 3::bigint
SELECT id, {x} AS result FROM fault;

-- fails: 22003
-- for {x}: x::numeric(4,1) | x::numeric(3,0) * 2 | factorial(greatest(x, 0)) | x::oid::text::int | (x::text || '0')::int | (sum(x) OVER (ORDER BY id))::int
SELECT id, {x} AS result FROM fault WHERE x IS NOT NULL AND x > -1000;

-- fails: 54000
-- for {x}: repeat('abc', x) | lpad('abc', x) | rpad('a', x, 'b')
SELECT id, length({x}) AS result FROM fault;

-- No failure: what goes before keeps it away, or nobody wants the value.
-- for {q}: SELECT id FROM fault WHERE y <> 0 AND x / y > 1 | SELECT id FROM (SELECT * FROM fault WHERE y <> 0) s WHERE x / y > 1 | SELECT id, CASE WHEN y <> 0 THEN x / y END AS q FROM fault | SELECT id, x / nullif(y, 0) AS q FROM fault | SELECT sum(x / y) FILTER (WHERE y <> 0) AS s FROM fault | SELECT id FROM fault WHERE y = 0 OR x / y > 1 | SELECT id, x / y AS q FROM fault WHERE y <> 0 | SELECT y, sum(x / y) FROM fault WHERE y <> 0 GROUP BY y | SELECT x / y AS q FROM fault WHERE y <> 0 ORDER BY id LIMIT 2 | SELECT a.id, d.name FROM fault a JOIN dept d ON d.id = a.id AND a.y <> 0 AND a.x / a.y > 0 | SELECT id, (SELECT x / y) AS q FROM fault WHERE y <> 0
--   | SELECT count(*) FROM (SELECT x / y FROM fault) s | SELECT id FROM (SELECT id, x / y AS q FROM fault) s | SELECT id FROM dept WHERE EXISTS (SELECT x / y FROM fault f WHERE f.id = dept.id) | SELECT id FROM fault WHERE t ~ '^ *[0-9]+ *$' AND t::int > 5 | SELECT id, CASE WHEN t ~ '^ *[0-9]+ *$' THEN t::int END AS n FROM fault | SELECT sum(t::int) FILTER (WHERE t ~ '^ *-?[0-9]+ *$') AS s FROM fault | SELECT id, coalesce(y, 1 / (y - y)) AS q FROM fault WHERE y IS NOT NULL | SELECT id, y <> 0 AND x / y > 1 AS q FROM fault | SELECT id, y = 0 OR x / y > 1 AS q FROM fault | SELECT id, CASE y WHEN 0 THEN 0 ELSE x / y END AS q FROM fault | SELECT id FROM fault WHERE CASE WHEN y = 0 THEN false ELSE x / y > 1 END
--   | SELECT id, sum(CASE WHEN y <> 0 THEN x / y END) OVER (ORDER BY id) AS s FROM fault | SELECT d.id, x / y AS q FROM dept d JOIN fault f ON f.id = d.id | SELECT d.id, (SELECT x / y FROM fault f WHERE f.id = d.id) AS q FROM dept d | SELECT d.id, q FROM dept d, LATERAL (SELECT x / y AS q FROM fault f WHERE f.id = d.id) s | WITH c AS (SELECT id, x / y AS q FROM fault WHERE id < 100) SELECT * FROM c WHERE q > 1 | SELECT id, ln(f) AS l FROM fault WHERE f > 0 | SELECT id, sqrt(f) AS l FROM fault WHERE f >= 0 AND sqrt(f) > 0.6 | SELECT max(x / y) AS m FROM fault WHERE id < 100 | SELECT DISTINCT x / y AS q FROM fault WHERE y IS DISTINCT FROM 0 | SELECT x / y AS q FROM fault WHERE y > 0 UNION SELECT id FROM dept
{q};

-- PostgreSQL computes what a join drops, or does not; a view does.
-- eager: 22012
-- for {q}: SELECT d.id, f.q FROM dept d LEFT JOIN (SELECT id, x / y AS q FROM fault) f USING (id) | SELECT d.id, f.q FROM dept d JOIN (SELECT id, x / y AS q FROM fault) f ON f.id = d.id
{q};

-- Of a window PostgreSQL computes the values of the rows that are looked at.
-- eager: 22003
SELECT id, lag(x + 1) OVER (ORDER BY id) AS result FROM fault WHERE id <> 201;

-- eager: 22003
SELECT id, first_value(x * 2) OVER (ORDER BY id) AS result FROM fault;
