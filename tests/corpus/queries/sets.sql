-- UNION, INTERSECT, EXCEPT; VALUES.

-- for {o}: UNION | UNION ALL | INTERSECT | INTERSECT ALL | EXCEPT | EXCEPT ALL
-- for {a} {b}: dept FROM emp ; id FROM dept | dept, active FROM emp ; dept, true FROM project | emp, product FROM sale WHERE qty > 1 ; emp, product FROM sale WHERE price < 100 | name FROM emp ; name FROM dept | salary FROM emp ; budget FROM dept | count(*) FROM emp GROUP BY dept ; count(*) FROM project GROUP BY dept | src FROM edge ; dst FROM edge | DISTINCT boss FROM emp ; grade::int FROM emp
SELECT {a} {o} SELECT {b};

-- for {o}: UNION | INTERSECT | EXCEPT ALL
-- for {c} {t}: n ; num | d ; num | v ; txt | y ; txt | tz ; moment | iv ; moment | b ; doc | i ; list | n ; span | e ; thing | p ; thing | net ; thing | ci ; thing
SELECT {c} FROM {t} WHERE id < 6 {o} SELECT {c} FROM {t} WHERE id > 2;

-- Different types.
-- for {a} {b}: i ; n | s ; b | i ; d | n ; d | 1 ; n | '5' ; i | r ; d
-- for {o}: UNION | UNION ALL | EXCEPT
SELECT {a} AS x FROM num {o} SELECT {b} FROM num;

-- for {o}: UNION | UNION ALL
SELECT NULL::int AS x FROM num {o} SELECT i FROM num;

SELECT t FROM txt UNION SELECT v FROM txt UNION SELECT c FROM txt;

-- for {q}: SELECT dept FROM emp UNION SELECT id FROM dept UNION SELECT dept FROM project | SELECT dept FROM emp UNION ALL SELECT id FROM dept EXCEPT SELECT dept FROM project | SELECT dept FROM emp UNION (SELECT id FROM dept INTERSECT SELECT dept FROM project) | (SELECT dept FROM emp UNION ALL SELECT id FROM dept) INTERSECT SELECT dept FROM project | SELECT dept FROM emp EXCEPT (SELECT id FROM dept EXCEPT SELECT dept FROM project) | SELECT dept FROM emp INTERSECT SELECT id FROM dept UNION ALL SELECT dept FROM project | SELECT dept FROM emp EXCEPT ALL SELECT id FROM dept EXCEPT ALL SELECT dept FROM project
-- for {w}: count(*) | max(dept)
SELECT {w} FROM ({q}) s;

-- for {q}: SELECT dept FROM emp UNION SELECT id FROM dept UNION SELECT dept FROM project | SELECT dept FROM emp UNION ALL SELECT id FROM dept EXCEPT SELECT dept FROM project | SELECT dept FROM emp UNION (SELECT id FROM dept INTERSECT SELECT dept FROM project) | (SELECT dept FROM emp UNION ALL SELECT id FROM dept) INTERSECT SELECT dept FROM project
{q} ORDER BY 1 LIMIT 4;

SELECT 'emp' AS kind, id, name FROM emp UNION ALL SELECT 'dept', id, name FROM dept UNION ALL SELECT 'project', id, title FROM project;

SELECT x.kind, count(*) FROM (SELECT 'emp' AS kind FROM emp UNION ALL SELECT 'dept' FROM dept) x GROUP BY x.kind;

SELECT d.name FROM dept d JOIN (SELECT dept FROM emp INTERSECT SELECT dept FROM project) s ON s.dept = d.id;

SELECT d.name FROM dept d WHERE d.id IN (SELECT dept FROM emp UNION SELECT dept FROM project);

SELECT e.id, (SELECT count(*) FROM (SELECT project FROM work w WHERE w.emp = e.id UNION SELECT id FROM project p WHERE p.dept = e.dept) s) AS projects FROM emp e;

(SELECT id, salary FROM emp ORDER BY salary DESC NULLS LAST, id LIMIT 3) UNION ALL (SELECT id, salary FROM emp ORDER BY salary, id LIMIT 2);

SELECT DISTINCT x FROM (SELECT i AS x FROM num UNION ALL SELECT s FROM num) u;

SELECT a, b FROM altered EXCEPT SELECT a, b FROM altered WHERE c > 5;

TABLE altered UNION ALL TABLE altered;

TABLE dept;

SELECT i FROM num UNION SELECT NULL ORDER BY i NULLS FIRST LIMIT 2;

SELECT sum(i) FROM num UNION ALL SELECT count(*) FROM txt UNION ALL SELECT max(id) FROM dept;

SELECT id, rank() OVER (ORDER BY x) FROM (SELECT id, salary AS x FROM emp UNION ALL SELECT id, budget FROM dept) s;

-- unchanged
-- for {v}: VALUES (1, 'a'), (2, 'b'), (3, NULL) | VALUES (1), (1), (NULL) | VALUES (1, 2.5), (2, 3) | VALUES (date '2024-01-01', interval '1 day') | VALUES (ARRAY[1, 2]), (NULL) | SELECT 1 AS one | SELECT 1 AS one, 'two' AS two, 3.0 AS three, NULL::text AS four | SELECT 1 UNION SELECT 2 UNION ALL SELECT 2 | SELECT 1 WHERE false | SELECT count(*) | SELECT * FROM (VALUES (1, 'x'), (2, 'y')) v(a, b) WHERE a > 1 | SELECT sum(a) FROM (VALUES (1), (2), (3)) v(a) | SELECT generate_series(1, 3) AS n | VALUES (1), (2) INTERSECT VALUES (2), (3) | SELECT 2 + 3 AS five, upper('x') AS x
{v};

SELECT v.label, count(*) FROM emp e JOIN (VALUES (1, 9, 'top'), (2, 5, 'mid'), (3, 3, 'low')) v(n, grade, label) ON e.grade >= v.grade GROUP BY v.label;

SELECT e.id, v.x FROM emp e CROSS JOIN LATERAL (VALUES (e.salary), (e.bonus)) v(x);

SELECT n.id, k, x FROM num n, LATERAL (VALUES ('i', n.i::numeric), ('s', n.s), ('n', n.n)) v(k, x) WHERE x IS NOT NULL;

SELECT id FROM emp WHERE (dept, active) IN (VALUES (2, true), (3, false));

SELECT id FROM num WHERE i IN (VALUES (1), (7), (100));

SELECT * FROM dept WHERE id = ANY (VALUES (1), (3));

SELECT id, (SELECT max(x) FROM (VALUES (i), (s), (id)) v(x)) AS largest FROM num;

SELECT e.name, coalesce(v.label, 'other') AS label FROM emp e LEFT JOIN (VALUES (2, 'two'), (3, 'three')) v(dept, label) USING (dept);

SELECT id FROM emp EXCEPT VALUES (1), (2), (3);
