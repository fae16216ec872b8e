-- Subqueries in each clause.

-- In the select list, correlated and not.
-- for {q}: SELECT count(*) FROM work w WHERE w.emp = e.id | SELECT max(w.hours) FROM work w WHERE w.emp = e.id | SELECT sum(s.qty * s.price) FROM sale s WHERE s.emp = e.id | SELECT d.name FROM dept d WHERE d.id = e.dept | SELECT avg(o.salary) FROM emp o WHERE o.dept = e.dept | SELECT count(*) FROM emp o WHERE o.salary > e.salary | SELECT string_agg(p.title, ',' ORDER BY p.id) FROM project p WHERE p.dept = e.dept | SELECT max(salary) FROM emp | SELECT b.name FROM emp b WHERE b.id = e.boss | SELECT count(*) FROM emp o WHERE o.boss = e.id AND o.salary > (SELECT avg(salary) FROM emp) | SELECT w.role FROM work w WHERE w.emp = e.id ORDER BY w.hours DESC NULLS LAST, w.project LIMIT 1 | SELECT e.salary - min(o.salary) FROM emp o WHERE o.dept = e.dept | SELECT count(DISTINCT w.role) FROM work w JOIN project p ON p.id = w.project WHERE p.dept = e.dept | SELECT count(*) FROM dept d WHERE d.budget > e.salary * 30 | SELECT bool_or(w.role = 'lead') FROM work w WHERE w.emp = e.id | SELECT max(x) FROM (SELECT hours AS x FROM work w WHERE w.emp = e.id UNION ALL SELECT e.bonus) s | SELECT name
SELECT e.id, ({q}) AS result FROM emp e;

-- In WHERE.
-- for {w}: e.dept IN (SELECT id FROM dept WHERE city = 'Bonn') | e.dept NOT IN (SELECT id FROM dept WHERE city = 'Bonn') | e.dept NOT IN (SELECT parent FROM dept WHERE id > 1) | e.id IN (SELECT emp FROM work WHERE role = 'lead') | e.id NOT IN (SELECT emp FROM sale WHERE emp IS NOT NULL) | e.salary > (SELECT avg(salary) FROM emp) | e.salary > (SELECT avg(o.salary) FROM emp o WHERE o.dept = e.dept) | e.salary = (SELECT max(o.salary) FROM emp o WHERE o.dept = e.dept) | e.salary >= ALL (SELECT o.salary FROM emp o WHERE o.dept = e.dept) | e.salary > ANY (SELECT o.salary FROM emp o WHERE o.dept = e.dept) | e.salary < SOME (SELECT budget / 50 FROM dept) | e.id = ANY (SELECT boss FROM emp) | e.id <> ALL (SELECT boss FROM emp WHERE boss IS NOT NULL) | (e.dept, e.grade) IN (SELECT dept, max(grade) FROM emp GROUP BY dept) | (e.dept, e.salary) = (SELECT dept, salary FROM emp WHERE id = 5) | (e.dept, e.boss) NOT IN (SELECT dept, boss FROM emp WHERE NOT active) | EXISTS (SELECT FROM emp b WHERE b.boss = e.id AND b.dept <> e.dept) | NOT EXISTS (SELECT FROM work w JOIN project p ON p.id = w.project WHERE w.emp = e.id AND p.cost > 50000) | (SELECT count(*) FROM work w WHERE w.emp = e.id) > 1 | (SELECT city FROM dept d WHERE d.id = e.dept) IS NULL | e.dept IN (SELECT dept FROM project WHERE starts > e.hired) | EXISTS (SELECT FROM sale) | NOT EXISTS (SELECT FROM sale WHERE qty > 100) | e.id IN (SELECT boss FROM emp EXCEPT SELECT emp FROM work) | e.hired = (SELECT min(hired) FROM emp) | e.id IN (SELECT w.emp FROM work w WHERE w.hours > (SELECT avg(hours) FROM work)) | e.dept = (SELECT id FROM dept WHERE name = 'Sales') OR e.boss IS NULL | e.dept IN (SELECT id FROM dept) AND e.id NOT IN (SELECT emp FROM work) | NOT (e.dept IN (SELECT id FROM dept WHERE city IS NULL)) | (e.id IN (SELECT emp FROM work)) = e.active | e.bonus IN (SELECT qty FROM sale UNION SELECT grade FROM emp) | e.salary > (SELECT count(*) * 1000 FROM work w WHERE w.emp = e.id) | row(e.id, 'lead') = ANY (SELECT emp, role FROM work) | (e.dept, e.grade) > (SELECT 3, 4) | e.name LIKE ANY (SELECT left(name, 1) || '%' FROM dept)
SELECT e.id, e.name FROM emp e WHERE {w};

-- In HAVING, GROUP BY and ORDER BY.
-- for {h}: count(*) > (SELECT avg(n) FROM (SELECT count(*) AS n FROM emp GROUP BY dept) s) | sum(salary) > (SELECT max(salary) FROM emp) | dept IN (SELECT id FROM dept) | EXISTS (SELECT FROM project p WHERE p.dept = e.dept) | max(salary) >= ALL (SELECT salary FROM emp WHERE salary IS NOT NULL) | min(hired) < (SELECT min(starts) FROM project)
SELECT dept, count(*), sum(salary) FROM emp e GROUP BY dept HAVING {h};

SELECT (SELECT city FROM dept d WHERE d.id = e.dept) AS city, count(*) FROM emp e GROUP BY 1;

SELECT (SELECT city FROM dept d WHERE d.id = e.dept) AS city, avg(salary) FROM emp e GROUP BY (SELECT city FROM dept d WHERE d.id = e.dept);

SELECT name FROM emp e ORDER BY (SELECT count(*) FROM work w WHERE w.emp = e.id) DESC, id LIMIT 3;

-- In the arguments of aggregates and windows, in FILTER, in CASE.
-- for {a}: sum((SELECT count(*) FROM work w WHERE w.emp = e.id)) | max((SELECT max(hours) FROM work w WHERE w.emp = e.id)) | count(*) FILTER (WHERE id IN (SELECT emp FROM work)) | string_agg(name, ',' ORDER BY (SELECT count(*) FROM work w WHERE w.emp = e.id), id) | count(*) FILTER (WHERE EXISTS (SELECT FROM sale s WHERE s.emp = e.id)) | sum(CASE WHEN id IN (SELECT boss FROM emp) THEN salary ELSE 0 END) | array_agg((SELECT d.name FROM dept d WHERE d.id = e.dept) ORDER BY id)
SELECT {a} AS result FROM emp e;

SELECT id, rank() OVER (ORDER BY (SELECT count(*) FROM work w WHERE w.emp = e.id)) FROM emp e;

SELECT id, sum((SELECT count(*) FROM work w WHERE w.emp = e.id)) OVER (PARTITION BY dept) FROM emp e;

SELECT id, CASE WHEN id IN (SELECT emp FROM work) THEN 'busy' WHEN salary > (SELECT avg(salary) FROM emp) THEN 'rich' ELSE 'free' END AS state FROM emp;

SELECT id, coalesce((SELECT sum(hours) FROM work w WHERE w.emp = e.id), 0) AS hours FROM emp e;

SELECT id, salary BETWEEN (SELECT avg(salary) FROM emp) AND (SELECT max(salary) FROM emp) AS above FROM emp;

-- In join conditions.
-- for {on}: e.dept = d.id AND e.salary > (SELECT avg(salary) FROM emp) | d.id = (SELECT min(dept) FROM emp) | e.dept = d.id AND d.id IN (SELECT dept FROM project) | e.dept = d.id AND EXISTS (SELECT FROM work w WHERE w.emp = e.id)
-- for {j}: JOIN | LEFT JOIN
SELECT e.name, d.name AS dept FROM emp e {j} dept d ON {on};

-- In FROM.
-- for {q}: SELECT dept, count(*) AS n FROM emp GROUP BY dept | SELECT DISTINCT dept, boss FROM emp | SELECT dept, salary FROM emp WHERE active ORDER BY salary DESC NULLS LAST, id LIMIT 4 | SELECT dept, sum(salary) OVER (PARTITION BY dept) AS total FROM emp | SELECT dept, id FROM emp UNION SELECT dept, id FROM project | SELECT e.dept, p.title FROM emp e JOIN project p USING (dept) | SELECT * FROM (SELECT dept FROM emp WHERE dept IS NOT NULL) y | SELECT dept, max(salary) AS top FROM emp GROUP BY dept HAVING count(*) > 1 | SELECT DISTINCT ON (dept) dept, name FROM emp ORDER BY dept, salary DESC NULLS LAST, id
SELECT x.*, d.name AS dept_name FROM ({q}) x JOIN dept d ON d.id = x.dept;

-- for {q}: SELECT dept, count(*) AS n FROM emp GROUP BY dept | SELECT dept, count(*) AS n FROM emp WHERE active GROUP BY dept | SELECT parent, count(*) AS n FROM dept GROUP BY parent
-- for {a}: max(n) | avg(n) | sum(n) | count(*)
SELECT {a} AS result FROM ({q}) s;

SELECT x.dept, x.n, y.total FROM (SELECT dept, count(*) AS n FROM emp GROUP BY dept) x JOIN (SELECT dept, sum(cost) AS total FROM project GROUP BY dept) y ON y.dept = x.dept;

SELECT a.n, count(*) FROM (SELECT dept, count(*) AS n FROM emp GROUP BY dept) a GROUP BY a.n;

SELECT * FROM (SELECT * FROM (SELECT id, i + 1 AS i FROM num WHERE i > 0) a WHERE i < 50) b WHERE i % 2 = 0;

SELECT s.a, s.b FROM (SELECT id, name FROM emp) AS s(a, b) WHERE s.a > 3;

-- Several levels deep.
SELECT d.name FROM dept d WHERE EXISTS (SELECT FROM emp e WHERE e.dept = d.id AND EXISTS (SELECT FROM work w WHERE w.emp = e.id AND w.role = 'lead'));

SELECT d.name FROM dept d WHERE NOT EXISTS (SELECT FROM emp e WHERE e.dept = d.id AND NOT EXISTS (SELECT FROM work w WHERE w.emp = e.id));

SELECT d.name, (SELECT count(*) FROM emp e WHERE e.dept = d.id AND e.salary > (SELECT avg(o.salary) FROM emp o WHERE o.dept = d.id)) AS above FROM dept d;

SELECT d.id, (SELECT max((SELECT count(*) FROM work w WHERE w.emp = e.id)) FROM emp e WHERE e.dept = d.id) AS most FROM dept d;

SELECT e.name FROM emp e WHERE e.dept IN (SELECT d.id FROM dept d WHERE d.parent IN (SELECT p.id FROM dept p WHERE p.city = 'Bonn'));

SELECT e.name, (SELECT d.name || '/' || (SELECT p.name FROM dept p WHERE p.id = d.parent) FROM dept d WHERE d.id = e.dept) AS path FROM emp e;

-- Types in comparisons with subqueries.
-- for {t} {c}: num ; n | num ; d | num ; b | txt ; t | txt ; v | txt ; y | moment ; d | moment ; tz | moment ; iv | doc ; b | list ; i | span ; i | thing ; e | thing ; p | thing ; u | thing ; net
-- for {p}: IN | NOT IN | = ANY | > ALL
SELECT a.id FROM {t} a WHERE a.{c} {p} (SELECT b.{c} FROM {t} b WHERE b.id > 4 AND b.{c} IS NOT NULL);

SELECT a.id FROM num a WHERE a.i IN (SELECT s FROM num);

SELECT a.id FROM num a WHERE a.n IN (SELECT i FROM num) OR a.d IN (SELECT n::double precision FROM num);

SELECT a.id, a.i IN (SELECT b.s FROM num b WHERE b.id <> a.id) AS known FROM num a;

SELECT a.id, a.i > ALL (SELECT b.i FROM num b WHERE b.id < a.id) AS record FROM num a;

SELECT (SELECT count(*) FROM emp) AS people, (SELECT count(*) FROM dept) AS depts, (SELECT max(id) FROM project) AS projects;

SELECT (SELECT e.name FROM emp e ORDER BY e.salary DESC NULLS LAST, e.id LIMIT 1) AS richest, (SELECT min(hired) FROM emp) AS first;

SELECT EXISTS (SELECT FROM sale WHERE product = 'sofa') AS sofas, EXISTS (SELECT FROM sale WHERE qty < 0) AS refunds;
