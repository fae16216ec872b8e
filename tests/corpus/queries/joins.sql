-- Joins of each kind.

-- for {j}: JOIN | LEFT JOIN | RIGHT JOIN | FULL JOIN
-- for {on}: e.dept = d.id | e.dept = d.id AND e.salary > 4000 | e.dept = d.id AND d.city = 'Bonn' | d.id = e.dept AND d.budget > e.salary * 50 | e.dept = d.parent
SELECT e.name, d.name AS dept FROM emp e {j} dept d ON {on};

-- for {j}: JOIN | LEFT JOIN | RIGHT JOIN
-- for {on}: e.hired > p.starts | e.dept <> d.id | e.salary BETWEEN 3000 AND 5000 | d.name < e.name | true | e.dept = d.id OR e.boss = d.id | e.dept = d.id IS NOT TRUE | coalesce(e.dept, 1) = d.id | e.dept + 1 = d.id
SELECT e.name, d.id, p.title FROM project p JOIN dept d ON p.dept = d.id {j} emp e ON {on};

-- for {j}: LEFT JOIN | RIGHT JOIN | FULL JOIN
-- for {w}: d.id IS NULL OR d.city = 'Köln' | e.id IS NULL OR e.salary > 5000 | d.city = 'Bonn' | e.salary > 4000 OR d.id IS NULL | e.name IS NOT NULL AND d.name IS NOT NULL | d.city IS NULL
SELECT e.id, e.name, d.name AS dept FROM emp e {j} dept d ON e.dept = d.id WHERE {w};

-- for {j}: JOIN | LEFT JOIN | RIGHT JOIN | FULL JOIN
SELECT e.name, b.name AS boss FROM emp e {j} emp b ON e.boss = b.id;

-- for {j}: JOIN | LEFT JOIN | RIGHT JOIN | FULL JOIN
SELECT id, a.s, b.name FROM (SELECT id, salary AS s FROM emp WHERE id > 2) a {j} (SELECT id, name FROM dept) b USING (id);

-- for {j}: NATURAL JOIN | NATURAL LEFT JOIN | NATURAL RIGHT JOIN | NATURAL FULL JOIN
SELECT * FROM (SELECT id, dept FROM emp) a {j} (SELECT dept, title FROM project) b;

-- for {j}: JOIN | LEFT JOIN | RIGHT JOIN | FULL JOIN
SELECT * FROM work w {j} (SELECT emp, project, count(*) AS n FROM work GROUP BY emp, project HAVING sum(hours) > 20) x USING (emp, project);

-- for {a}: JOIN | LEFT JOIN | FULL JOIN
-- for {b}: JOIN | LEFT JOIN | RIGHT JOIN | FULL JOIN
SELECT e.name, w.role, p.title FROM emp e {a} work w ON w.emp = e.id {b} project p ON p.id = w.project;

-- for {a}: JOIN | LEFT JOIN | FULL JOIN
-- for {b}: JOIN | LEFT JOIN
SELECT e.name, w.role, p.title FROM emp e {a} (work w {b} project p ON p.id = w.project) ON w.emp = e.id;

-- for {j}: JOIN | LEFT JOIN | FULL JOIN
-- for {c}: i | s | b | n | d | r
SELECT a.id, b.id AS other FROM num a {j} extreme b ON a.{c} = b.{c};

-- for {j}: JOIN | LEFT JOIN
-- for {t} {c}: txt ; t | txt ; v | moment ; d | moment ; tz | moment ; iv | doc ; b | list ; i | span ; d | thing ; e | thing ; u | thing ; p | thing ; net
SELECT a.id, b.id AS other FROM {t} a {j} {t} b ON a.{c} = b.{c} AND a.id <> b.id;

-- for {c}: id | dept | id, dept
SELECT name, title FROM (SELECT id, dept, name FROM emp) a JOIN (SELECT id, dept, title FROM project) b USING ({c});

SELECT e.name, d.name AS dept FROM emp e, dept d WHERE e.dept = d.id;

SELECT e.name, d.name AS dept, p.title FROM emp e, dept d, project p WHERE e.dept = d.id AND p.dept = d.id AND e.hired < p.starts;

SELECT a.id, b.id AS other FROM dept a CROSS JOIN dept b WHERE a.id < b.id;

SELECT a.id, b.id AS other, c.id AS third FROM dept a, dept b, dept c WHERE a.parent = b.id AND b.parent = c.id;

SELECT count(*) FROM emp CROSS JOIN dept;

SELECT a.src, b.dst, a.len + b.len AS len FROM edge a JOIN edge b ON a.dst = b.src;

SELECT a.src, b.src AS s, c.src AS t FROM edge a, edge b, edge c WHERE a.dst = b.src AND b.dst = c.src AND c.dst = a.src;

SELECT DISTINCT a.src, d.dst FROM edge a JOIN edge b ON a.dst = b.src JOIN edge c ON b.dst = c.src JOIN edge d ON c.dst = d.src;

SELECT s.product, e.name, s.qty FROM sale s LEFT JOIN emp e ON e.id = s.emp AND s.qty > 0;

SELECT s.product, count(e.id), sum(s.qty * s.price) FROM sale s LEFT JOIN emp e ON e.id = s.emp GROUP BY s.product;

SELECT a.product, a.qty, b.qty AS more FROM sale a JOIN sale b ON a.product = b.product AND a.qty < b.qty;

SELECT e.name, x.total FROM emp e LEFT JOIN (SELECT emp, sum(qty * price) AS total FROM sale GROUP BY emp) x ON x.emp = e.id;

SELECT d.name, count(e.id) AS people, coalesce(sum(e.salary), 0) AS cost FROM dept d LEFT JOIN emp e ON e.dept = d.id GROUP BY d.id, d.name;

SELECT d.name, d.city, count(*) FROM dept d JOIN emp e ON e.dept = d.id GROUP BY d.id;

SELECT e.name, m.name AS boss, g.name AS grand FROM emp e LEFT JOIN emp m ON m.id = e.boss LEFT JOIN emp g ON g.id = m.boss;

SELECT e.name, p.title FROM emp e LEFT JOIN work w ON w.emp = e.id LEFT JOIN project p ON p.id = w.project AND p.cost > 1000;

SELECT coalesce(e.name, 'nobody') AS who, coalesce(p.title, 'nothing') AS what FROM emp e FULL JOIN (work w JOIN project p ON p.id = w.project) ON w.emp = e.id;

SELECT x.id, y.id AS other FROM num x JOIN num y ON x.i = y.s OR x.n = y.i;

SELECT x.id, y.id AS other FROM num x JOIN num y ON (x.i, x.s) = (y.i, y.s) AND x.id <> y.id;

SELECT x.id, y.id AS other FROM num x JOIN num y ON x.i IS NOT DISTINCT FROM y.i;

SELECT x.id, y.id AS other FROM num x LEFT JOIN num y ON x.i IS NOT DISTINCT FROM y.s;

SELECT x.id, y.id AS other FROM num x JOIN num y ON abs(x.i) = abs(y.i) AND x.id < y.id;

SELECT x.id, y.id AS other FROM num x JOIN num y ON x.i + y.i = 8;

SELECT x.id, y.id AS other FROM num x JOIN txt y ON x.i::text = left(y.t, 1) OR x.id = length(y.t);

SELECT e.name, d.name AS dept FROM emp e JOIN dept d ON d.id = e.dept AND lower(d.city) LIKE 'b%';

SELECT e.*, d.* FROM emp e JOIN dept d(dept_id, dept_name) ON d.dept_id = e.dept;

SELECT x.* FROM (emp e LEFT JOIN dept d ON d.id = e.dept) AS x(a, b, c, d, e, f, g, h, i, j, k, l, m, n);

SELECT j.id, j.a, j.b FROM ((SELECT id, dept AS a FROM emp) p JOIN (SELECT id, cost AS b FROM project) q USING (id)) AS j;

SELECT y.k, y.a FROM ((SELECT id AS k, i AS a FROM num) x JOIN (SELECT id AS k, t FROM txt) z USING (k) AS u) AS y;

SELECT u.id, a.name, b.name AS dept FROM emp a JOIN dept b USING (id) AS u;

-- Semi- and antijoins, as people write them.
-- for {n}: EXISTS | NOT EXISTS
-- for {q}: SELECT FROM work w WHERE w.emp = e.id | SELECT 1 FROM emp b WHERE b.boss = e.id | SELECT * FROM sale s WHERE s.emp = e.id AND s.qty > 2 | SELECT FROM dept d WHERE d.id = e.dept AND d.city = 'Bonn' | SELECT FROM emp o WHERE o.salary > e.salary AND o.dept = e.dept
SELECT e.id, e.name FROM emp e WHERE {n} ({q});

SELECT e.name FROM emp e LEFT JOIN work w ON w.emp = e.id WHERE w.emp IS NULL;

SELECT d.name FROM dept d LEFT JOIN emp e ON e.dept = d.id AND e.active WHERE e.id IS NULL;

-- A join with a name, by columns that only PostgreSQL compares.
SELECT j.id, j.bx FROM (thing a JOIN (SELECT bx FROM thing) b USING (bx)) AS j;

SELECT j.k, j.id FROM (thing a LEFT JOIN (SELECT bx FROM thing) b USING (bx)) AS j(k, id) WHERE j.k IS NOT NULL;
