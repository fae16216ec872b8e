-- Queries as reports, dashboards and feeds have them.

-- Staff.
SELECT d.name AS dept, count(e.id) AS people, round(avg(e.salary), 2) AS mean, max(e.hired) AS newest FROM dept d LEFT JOIN emp e ON e.dept = d.id AND e.active GROUP BY d.name ORDER BY people DESC;

SELECT e.name, e.salary, d.mean, e.salary - d.mean AS above FROM emp e JOIN (SELECT dept, avg(salary) AS mean FROM emp GROUP BY dept) d ON d.dept = e.dept WHERE e.salary > d.mean;

SELECT b.name AS boss, string_agg(e.name, ', ' ORDER BY e.name) AS team, count(*) AS size FROM emp e JOIN emp b ON b.id = e.boss GROUP BY b.id, b.name HAVING count(*) > 1;

SELECT e.name, sum(w.hours) AS hours, count(DISTINCT w.project) AS projects, bool_or(w.role = 'lead') AS leads FROM emp e LEFT JOIN work w ON w.emp = e.id GROUP BY e.id, e.name;

SELECT p.title, e.name AS lead FROM project p LEFT JOIN (work w JOIN emp e ON e.id = w.emp) ON w.project = p.id AND w.role = 'lead';

SELECT d.city, jsonb_object_agg(d.name, d.budget) AS budgets FROM dept d WHERE d.city IS NOT NULL GROUP BY d.city;

SELECT name, salary, CASE ntile(3) OVER (ORDER BY salary DESC NULLS LAST, id) WHEN 1 THEN 'A' WHEN 2 THEN 'B' ELSE 'C' END AS class FROM emp;

SELECT e.id, e.name FROM emp e WHERE e.salary > 1.2 * (SELECT avg(salary) FROM emp o WHERE o.grade <= e.grade);

SELECT extract(year FROM hired) AS year, count(*) AS hired, sum(count(*)) OVER (ORDER BY extract(year FROM hired)) AS staff FROM emp WHERE hired IS NOT NULL GROUP BY 1;

SELECT dept, percentile_cont(0.5) WITHIN GROUP (ORDER BY salary) AS median, stddev_pop(salary) AS deviation FROM emp GROUP BY dept HAVING count(salary) > 1;

SELECT DISTINCT e.name FROM emp e JOIN work w ON w.emp = e.id JOIN project p ON p.id = w.project WHERE p.ends IS NULL OR p.ends > date '2024-01-01';

SELECT a.name, b.name AS colleague FROM emp a JOIN work x ON x.emp = a.id JOIN work y ON y.project = x.project AND y.emp <> x.emp JOIN emp b ON b.id = y.emp;

SELECT name FROM emp WHERE id NOT IN (SELECT emp FROM work WHERE project IN (SELECT id FROM project WHERE dept = emp.dept));

WITH RECURSIVE t AS (SELECT id, name, parent, budget FROM dept UNION ALL SELECT t.id, t.name, d.parent, t.budget FROM t JOIN dept d ON d.id = t.parent) SELECT parent, sum(budget) AS below, count(*) FROM t WHERE parent IS NOT NULL GROUP BY parent;

-- Sales.
SELECT product, sum(qty) AS sold, sum(qty * price) AS turnover, round(sum(qty * price) / nullif(sum(qty), 0), 2) AS mean FROM sale WHERE qty > 0 GROUP BY product;

SELECT date_trunc('month', at)::date AS month, product, sum(qty) AS sold, rank() OVER (PARTITION BY date_trunc('month', at) ORDER BY sum(qty) DESC NULLS LAST) FROM sale WHERE at IS NOT NULL GROUP BY date_trunc('month', at), product;

SELECT e.name, s.product, s.sold FROM emp e JOIN LATERAL (SELECT product, sum(qty) AS sold FROM sale WHERE emp = e.id GROUP BY product ORDER BY sold DESC NULLS LAST, product LIMIT 1) s ON true;

SELECT s.emp, count(*) FILTER (WHERE s.qty > 1) AS large, count(*) FILTER (WHERE s.qty <= 1) AS small, sum(s.price) FILTER (WHERE s.product = 'desk') AS desks FROM sale s GROUP BY s.emp;

SELECT product, sum(CASE WHEN at < timestamptz '2024-02-01 00:00+01' THEN qty ELSE 0 END) AS january, sum(CASE WHEN at >= timestamptz '2024-02-01 00:00+01' THEN qty ELSE 0 END) AS later FROM sale GROUP BY product;

SELECT at::date AS day, sum(sum(qty * price)) OVER (ORDER BY at::date ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS three_days FROM sale WHERE at IS NOT NULL GROUP BY at::date;

SELECT a.product, b.product AS also, count(*) FROM sale a JOIN sale b ON a.emp = b.emp AND a.product < b.product GROUP BY a.product, b.product;

SELECT coalesce(product, 'total') AS product, sum(qty) AS sold FROM sale GROUP BY ROLLUP (product);

SELECT product FROM sale GROUP BY product HAVING sum(qty) > (SELECT avg(q) FROM (SELECT sum(qty) AS q FROM sale GROUP BY product) s);

SELECT emp, at, at - lag(at) OVER (PARTITION BY emp ORDER BY at) AS pause FROM sale WHERE at IS NOT NULL;

SELECT emp, count(*) AS sessions FROM (SELECT emp, at, lag(at) OVER (PARTITION BY emp ORDER BY at) AS before FROM sale WHERE at IS NOT NULL) s WHERE before IS NULL OR at - before > interval '10 days' GROUP BY emp;

SELECT to_char(at, 'IYYY-"W"IW') AS week, count(DISTINCT emp) AS sellers FROM sale WHERE at IS NOT NULL GROUP BY 1;

SELECT product, array_agg(DISTINCT price ORDER BY price) AS prices, max(price) - min(price) AS spread FROM sale GROUP BY product;

SELECT s.*, sum(qty) OVER (PARTITION BY product) AS of_product, round(100.0 * qty / nullif(sum(qty) OVER (PARTITION BY product), 0), 1) AS share FROM sale s;

-- Calendars and gaps.
SELECT m::date AS month, count(p.id) AS running FROM generate_series(timestamp '2024-01-01', timestamp '2024-06-01', interval '1 month') AS m LEFT JOIN project p ON p.starts <= m AND coalesce(p.ends, 'infinity') >= m GROUP BY m;

SELECT g AS missing FROM generate_series(1, 15) AS g WHERE NOT EXISTS (SELECT FROM emp WHERE id = g);

SELECT p.title, e.name FROM project p, emp e WHERE daterange(p.starts, p.ends, '[]') @> e.hired;

SELECT min(day) AS first, max(day) AS last, count(*) FROM (SELECT day, day - (dense_rank() OVER (ORDER BY day))::int AS island FROM reading) s GROUP BY island;

-- Documents and search.
SELECT d.id, k.key, jsonb_typeof(k.value) AS type FROM doc d CROSS JOIN LATERAL jsonb_each(CASE jsonb_typeof(d.b) WHEN 'object' THEN d.b ELSE '{}' END) AS k;

SELECT id, ts_rank(to_tsvector('english', t), q) AS rank FROM txt, to_tsquery('english', 'quick & fox') AS q WHERE to_tsvector('english', t) @@ q;

SELECT word, count(*) FROM txt, regexp_split_to_table(lower(t), '\W+') AS word WHERE word <> '' GROUP BY word;

SELECT jsonb_build_object('dept', d.name, 'people', coalesce(jsonb_agg(jsonb_build_object('name', e.name, 'salary', e.salary) ORDER BY e.id) FILTER (WHERE e.id IS NOT NULL), '[]')) AS document FROM dept d LEFT JOIN emp e ON e.dept = d.id GROUP BY d.id, d.name;

-- Graphs.
SELECT a.src AS x, a.dst AS y, b.dst AS z FROM edge a JOIN edge b ON b.src = a.dst JOIN edge c ON c.src = b.dst AND c.dst = a.src WHERE a.src < a.dst AND a.src < b.dst;

SELECT n, count(*) FILTER (WHERE k = 'out') AS outgoing, count(*) FILTER (WHERE k = 'in') AS incoming FROM (SELECT src AS n, 'out' AS k FROM edge UNION ALL SELECT dst, 'in' FROM edge) s GROUP BY n;

WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge UNION SELECT r.a, e.dst FROM r JOIN edge e ON e.src = r.b) SELECT x.a, min(x.b) AS component FROM r x JOIN r y ON y.a = x.b AND y.b = x.a GROUP BY x.a;

WITH RECURSIVE r(n, hops) AS (SELECT 1, 0 UNION SELECT e.dst, hops + 1 FROM r JOIN edge e ON e.src = n WHERE hops < 6) SELECT d.name, min(hops) AS hops FROM r JOIN dept d ON d.id = n GROUP BY d.name;

-- Checks of data.
SELECT e.id FROM emp e LEFT JOIN dept d ON d.id = e.dept WHERE e.dept IS NOT NULL AND d.id IS NULL;

SELECT emp, product, qty, price, at, count(*) FROM sale GROUP BY emp, product, qty, price, at HAVING count(*) > 1;

SELECT 'emp' AS "table", count(*) AS rows, count(*) FILTER (WHERE emp IS NULL) AS empty FROM emp UNION ALL SELECT 'sale', count(*), count(*) FILTER (WHERE product IS NULL) FROM sale;

SELECT id, array_remove(ARRAY[CASE WHEN dept IS NULL THEN 'dept' END, CASE WHEN salary IS NULL THEN 'salary' END], NULL) AS missing FROM emp WHERE num_nulls(dept, salary) > 0;
