-- WITH RECURSIVE.

-- Reachability.
-- for {w}: true | a = 1 | b = 1 | a = b | a < b
WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge UNION SELECT r.a, e.dst FROM r JOIN edge e ON e.src = r.b) SELECT a, b FROM r WHERE {w};

-- for {start}: SELECT 1 | SELECT 1 UNION SELECT 6 | SELECT min(src) FROM edge | SELECT id FROM dept WHERE city = 'Bonn' | VALUES (2), (9)
WITH RECURSIVE r(n) AS (({start}) UNION SELECT e.dst FROM r JOIN edge e ON e.src = r.n) SELECT n FROM r;

-- for {q}: SELECT count(*) FROM r | SELECT n, count(*) FROM r JOIN edge e ON e.dst = n GROUP BY n | SELECT max(n) FROM r | SELECT * FROM r WHERE n NOT IN (SELECT src FROM edge) | SELECT e.src FROM edge e WHERE e.src NOT IN (SELECT n FROM r) | SELECT array_agg(n ORDER BY n) FROM r | SELECT d.name FROM dept d JOIN r ON r.n = d.id | SELECT n FROM r ORDER BY n DESC LIMIT 2 | SELECT a.n, b.n AS m FROM r a JOIN r b ON a.n < b.n | SELECT n, rank() OVER (ORDER BY n DESC) FROM r | SELECT n FROM r EXCEPT SELECT dst FROM edge WHERE len > 3 | SELECT sum(n) FILTER (WHERE n > 2) FROM r
WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT e.dst FROM edge e JOIN r ON e.src = r.n) {q};

-- Depths and distances, bounded.
-- for {u}: UNION | UNION ALL
-- for {q}: SELECT n, depth FROM r | SELECT n, min(depth) AS depth FROM r GROUP BY n | SELECT depth, count(*) FROM r GROUP BY depth | SELECT max(depth) FROM r
WITH RECURSIVE r(n, depth) AS (SELECT 1, 0 {u} SELECT e.dst, depth + 1 FROM r JOIN edge e ON e.src = n WHERE depth < 4) {q};

-- for {u}: UNION | UNION ALL
WITH RECURSIVE r(n, len) AS (SELECT 1, 0 {u} SELECT e.dst, r.len + e.len FROM r JOIN edge e ON e.src = n WHERE r.len + e.len < 18) SELECT n, min(len), count(*) FROM r GROUP BY n;

-- First rows by a value and what decides among equal ones.
-- for {u}: UNION | UNION ALL
-- for {q}: SELECT DISTINCT ON (n) n, len, pred FROM r ORDER BY n, len, pred | SELECT DISTINCT ON (n) n, pred FROM r ORDER BY n, len DESC NULLS LAST, pred DESC | SELECT n, len FROM (SELECT *, row_number() OVER (PARTITION BY n ORDER BY len, pred) AS i FROM r) x WHERE i = 1 | SELECT pred, count(*) FROM (SELECT DISTINCT ON (n) n, pred FROM r ORDER BY n, len, pred) t GROUP BY pred | SELECT * FROM r ORDER BY len DESC, pred, n LIMIT 1 | SELECT d.name, x.len, x.pred FROM dept d JOIN LATERAL (SELECT len, pred FROM r WHERE n = d.id ORDER BY len, pred LIMIT 1) x ON true
WITH RECURSIVE r(n, len, pred) AS (SELECT 1, 0, NULL::int {u} SELECT e.dst, r.len + e.len, r.n FROM r JOIN edge e ON e.src = r.n WHERE r.len < 18) {q};

WITH RECURSIVE r(n, path) AS (SELECT 1, ARRAY[1] UNION ALL SELECT e.dst, path || e.dst FROM r JOIN edge e ON e.src = n WHERE NOT e.dst = ANY (path)) SELECT n, path FROM r;

WITH RECURSIVE r(n, path) AS (SELECT src, src::text FROM edge WHERE src < 3 UNION SELECT e.dst, path || '>' || e.dst FROM r JOIN edge e ON e.src = n WHERE length(path) < 8) SELECT * FROM r;

-- Trees.
-- for {q}: SELECT id, depth FROM r | SELECT depth, count(*) FROM r GROUP BY depth | SELECT e.name, r.depth FROM r JOIN emp e USING (id) | SELECT e.dept, max(depth) FROM r JOIN emp e USING (id) GROUP BY e.dept | SELECT name FROM emp WHERE id NOT IN (SELECT id FROM r)
-- for {u}: UNION | UNION ALL
WITH RECURSIVE r(id, depth) AS (SELECT id, 0 FROM emp WHERE boss IS NULL {u} SELECT e.id, depth + 1 FROM r JOIN emp e ON e.boss = r.id WHERE depth < 10) {q};

WITH RECURSIVE r(id, top) AS (SELECT id, name FROM emp WHERE boss = 1 UNION ALL SELECT e.id, r.top FROM r JOIN emp e ON e.boss = r.id WHERE e.id <> 1) SELECT top, count(*), sum(salary) FROM r JOIN emp USING (id) GROUP BY top;

WITH RECURSIVE up(id, boss, level) AS (SELECT id, boss, 1 FROM emp WHERE id IN (4, 10) UNION ALL SELECT e.id, e.boss, level + 1 FROM up JOIN emp e ON e.id = up.boss WHERE level < 6) SELECT * FROM up;

WITH RECURSIVE t(id, path) AS (SELECT id, name FROM dept WHERE parent IS NULL UNION ALL SELECT d.id, t.path || '/' || d.name FROM t JOIN dept d ON d.parent = t.id) SELECT * FROM t;

-- Bill of materials.
-- for {p}: car | bike | wheel
WITH RECURSIVE b(part, sub, qty) AS (SELECT part, sub, qty FROM part WHERE part = '{p}' UNION ALL SELECT p.part, p.sub, b.qty * p.qty FROM b JOIN part p ON p.part = b.sub) SELECT sub, sum(qty) FROM b GROUP BY sub;

WITH RECURSIVE b AS (SELECT part, sub, qty FROM part UNION ALL SELECT b.part, p.sub, b.qty * p.qty FROM b, part p WHERE p.part = b.sub) SELECT part, sub, sum(qty) AS qty FROM b GROUP BY part, sub HAVING sum(qty) > 2;

WITH RECURSIVE b(part, sub) AS (SELECT part, sub FROM part UNION SELECT b.part, p.sub FROM b JOIN part p ON p.part = b.sub) SELECT part FROM b WHERE sub = 'bolt' EXCEPT SELECT part FROM part WHERE sub = 'bolt';

-- Counters, series.
-- unchanged
-- for {q}: SELECT * FROM r | SELECT sum(n) FROM r | SELECT n FROM r WHERE n % 3 = 0 | SELECT count(*) FROM r
WITH RECURSIVE r(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM r WHERE n < 20) {q};

-- unchanged
WITH RECURSIVE fib(a, b) AS (SELECT 0, 1 UNION ALL SELECT b, a + b FROM fib WHERE b < 1000) SELECT a FROM fib;

-- unchanged
WITH RECURSIVE f(n, fact) AS (SELECT 1, 1::numeric UNION ALL SELECT n + 1, fact * (n + 1) FROM f WHERE n < 15) SELECT * FROM f;

WITH RECURSIVE days(d) AS (SELECT min(hired) FROM emp WHERE hired > date '2022-01-01' UNION ALL SELECT d + 100 FROM days WHERE d < date '2024-12-31') SELECT d, count(e.id) FROM days LEFT JOIN emp e ON e.hired <= d GROUP BY d;

WITH RECURSIVE r(id, rest) AS (SELECT id, greatest(abs(i), 0) FROM num WHERE i < 50 UNION ALL SELECT id, rest / 2 FROM r WHERE rest > 0) SELECT id, count(*) FROM r GROUP BY id;

WITH RECURSIVE r(t) AS (SELECT left(t, 4) FROM txt UNION SELECT substr(t, 2) FROM r WHERE t <> '') SELECT t FROM r;

-- SEARCH and CYCLE.
-- for {s}: SEARCH DEPTH FIRST BY n SET at | SEARCH BREADTH FIRST BY n SET at
WITH RECURSIVE r(n, depth) AS (SELECT 1, 0 UNION ALL SELECT e.dst, depth + 1 FROM r JOIN edge e ON e.src = n WHERE depth < 3) {s} SELECT n, depth FROM r;

-- for {q}: SELECT n FROM r | SELECT n, is_cycle FROM r | SELECT count(*) FROM r WHERE is_cycle | SELECT n, cardinality(path) FROM r WHERE NOT is_cycle
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT e.dst FROM r JOIN edge e ON e.src = n) CYCLE n SET is_cycle USING path {q};

WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT e.dst FROM r JOIN edge e ON e.src = n) CYCLE n SET mark TO 'yes' DEFAULT 'no' USING path SELECT n, mark FROM r;

WITH RECURSIVE t(id, depth) AS (SELECT id, 0 FROM dept WHERE parent IS NULL UNION ALL SELECT d.id, depth + 1 FROM t JOIN dept d ON d.parent = t.id) SEARCH DEPTH FIRST BY id SET at SELECT id, depth, row_number() OVER (ORDER BY at) FROM t;

-- Several, nested, beside other queries.
WITH RECURSIVE a(n) AS (SELECT 1 UNION SELECT e.dst FROM a JOIN edge e ON e.src = n), b(n) AS (SELECT 6 UNION SELECT e.dst FROM b JOIN edge e ON e.src = n) SELECT n FROM a EXCEPT SELECT n FROM b;

WITH RECURSIVE a(n) AS (SELECT 1 UNION SELECT e.dst FROM a JOIN edge e ON e.src = n), b(n) AS (SELECT max(n) FROM a UNION SELECT e.src FROM b JOIN edge e ON e.dst = b.n) SELECT n FROM b;

WITH RECURSIVE big AS (SELECT src, dst FROM edge WHERE len > 1), r(a, b) AS (SELECT src, dst FROM big UNION SELECT r.a, g.dst FROM r JOIN big g ON g.src = r.b) SELECT a, count(*) FROM r GROUP BY a;

SELECT e.id, (WITH RECURSIVE up(id, boss) AS (SELECT e.id, e.boss UNION SELECT m.id, m.boss FROM up JOIN emp m ON m.id = up.boss) SELECT count(*) FROM up) AS height FROM emp e;

SELECT d.id, x.n FROM dept d, LATERAL (WITH RECURSIVE s(n) AS (SELECT d.id UNION SELECT e.dst FROM s JOIN edge e ON e.src = s.n) SELECT n FROM s) x WHERE d.id < 4;

SELECT name FROM emp WHERE id IN (WITH RECURSIVE r(id) AS (SELECT 5 UNION SELECT e.id FROM r JOIN emp e ON e.boss = r.id) SELECT id FROM r);

-- Subqueries, outer joins, DISTINCT in the recursive term.
WITH RECURSIVE r(n, k) AS (SELECT 1, 0 UNION SELECT e.dst, k + 1 FROM edge e, r WHERE e.src = r.n AND k < 3 AND EXISTS (SELECT FROM dept d WHERE d.id = e.dst)) SELECT * FROM r;

WITH RECURSIVE r(n, k) AS (SELECT 1, 0 UNION ALL SELECT coalesce(e.dst, 0), k + 1 FROM r LEFT JOIN edge e ON e.src = r.n WHERE k < 3) SELECT n, k, count(*) FROM r GROUP BY n, k;

WITH RECURSIVE r(n, k) AS (SELECT 1, 0 UNION ALL SELECT DISTINCT e.dst, k + 1 FROM r JOIN edge e ON e.src = r.n WHERE k < 5) SELECT n, k FROM r;

WITH RECURSIVE r(n, k) AS (SELECT 1, 0 UNION ALL SELECT x.dst, k + 1 FROM r JOIN LATERAL (SELECT dst FROM edge e WHERE e.src = r.n ORDER BY len, dst LIMIT 1) x ON k < 6) SELECT n, k FROM r;

SELECT depth, count(*) FROM chain c JOIN emp e USING (id) GROUP BY depth;

WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT e.dst FROM r JOIN edge e ON e.src = r.n) CYCLE n SET is_cycle USING path SELECT n, is_cycle, path::text FROM r;

WITH RECURSIVE r(n, t) AS (SELECT src, 'from ' || src FROM edge WHERE src = 6 UNION ALL SELECT e.dst, 'to ' || e.dst FROM r JOIN edge e ON e.src = r.n) SEARCH DEPTH FIRST BY n, t SET o CYCLE n, t SET is_cycle TO 'y' DEFAULT 'n' USING path SELECT n, o::text AS o, concat(path) AS path, to_json(path)::text AS j FROM r;
