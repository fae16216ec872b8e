-- Row comparisons, whole rows, composites made of rows.

-- for {x}: (i, s) = (7, 3) | (i, s) <> (7, 3) | (i, s) < (7, 4) | (i, s) >= (1, 1) | (i, n) > (0, 12) | (i, s) IN ((7, 3), (1, 1)) | (i, s) NOT IN ((7, 3), (42, 5)) | ROW(i, s) = ROW(1, 1) | (i, s, n) < (7, 3, 13) | (i, s) IS DISTINCT FROM (7, 3) | (i, s) IS NOT DISTINCT FROM (NULL, NULL) | ROW(i, s) IS NULL | ROW(i, s) IS NOT NULL | NOT (ROW(i, s) IS NULL) | (i, s) = (s, i) | (b, i) <= (255, 100) | ROW(i) = ROW(7) | (i + 1, s) = (8, 3)
SELECT id FROM num WHERE {x};

-- for {x}: (t, v) = ('apple', 'Apple') | (t, v) < ('b', 'a') | (t, c) IN (('apple', 'ab'), ('x', 'y')) | (v, t) > ('a', 'z') | (t, v) IS NOT DISTINCT FROM (NULL, NULL)
SELECT id FROM txt WHERE {x};

-- for {x}: (d, tm) > (date '2024-01-01', time '12:00') | (d, ts) = (date '2024-02-29', timestamp '2024-02-29 12:34:56.789') | (tz, iv) >= (timestamptz '2024-01-01 00:00+01', interval '1 day')
SELECT id FROM moment WHERE {x};

-- Whole rows.
-- for {x}: e IS NULL | e IS NOT NULL | e::text | e = e | to_jsonb(e) ->> 'name' | row_to_json(e) | (e).name | e.name || (e).id | count(e) OVER () | coalesce(e::text, '') | e > (SELECT o FROM emp o WHERE o.id = 3) | ROW(e.*)::text | ROW(e.name, e.id)::place | e IS DISTINCT FROM (SELECT o FROM emp o WHERE o.id = 5)
SELECT e.id, {x} AS result FROM emp e;

SELECT e FROM emp e;

SELECT x.id, x.p FROM (SELECT id, p FROM thing) x WHERE x IS NOT NULL;

SELECT (x.d).name, (x.d).city FROM (SELECT d FROM dept d) x;

SELECT e.id, d FROM emp e JOIN dept d ON d.id = e.dept;

SELECT e.id, d FROM emp e LEFT JOIN dept d ON d.id = e.dept;

SELECT e.id, d IS NULL AS none, d::text AS row FROM emp e LEFT JOIN dept d ON d.id = e.dept;

SELECT count(d), count(*) AS rows FROM emp e LEFT JOIN dept d ON d.id = e.dept;

SELECT e, count(*) FROM altered e GROUP BY e;

SELECT DISTINCT a FROM altered a;

SELECT a::text FROM altered a;

SELECT array_agg(d ORDER BY d) FROM dept d;

SELECT max(d::text) FROM dept d;

SELECT a.id, b.id AS other FROM emp a JOIN emp b ON (a.dept, a.grade) = (b.dept, b.grade) AND a.id < b.id;

SELECT a.id, b.id AS other FROM emp a JOIN emp b ON (a.salary, a.id) < (b.salary, b.id) AND a.dept = b.dept;

SELECT x FROM altered x UNION SELECT y FROM altered y;

SELECT e.name FROM emp e WHERE (e.dept, e.active) IN (SELECT d.id, true FROM dept d);

SELECT row(id, name)::text AS r, (row(name, id)::place).zip FROM dept;

SELECT t.* FROM thing t WHERE f;

SELECT id, ROW(id, NULL) IS NULL AS a, ROW(NULL, NULL) IS NULL AS b FROM dept;

-- Rows whose type has lost a column.

-- for {q}: SELECT n.id, x.* FROM num n, versions(n.s) AS x | SELECT n.id, x.b, x.c FROM num n LEFT JOIN LATERAL versions(n.s) AS x ON x.c > 1 | SELECT n.id, x FROM num n, versions(n.s) AS x | SELECT n.id, to_jsonb(x) AS j FROM num n, versions(n.s) AS x | SELECT n.id, x.p, x.r, x.o FROM num n, versions(n.s) WITH ORDINALITY AS x(p, q, r, o) | SELECT n.id, x.* FROM num n, ROWS FROM (generate_series(1, 2), versions(n.s)) AS x | SELECT n.id, x.c FROM num n, version(n.s) AS x | SELECT id, (versions(s)).* FROM num | SELECT id, (version(s)).b FROM num | SELECT id, version(s) AS v FROM num | SELECT id, total(version(s)) AS t FROM num WHERE s IS NOT NULL | SELECT count(*), max(x.c) FROM num n, versions(n.s) AS x
{q};

-- for {x}: w | to_jsonb(w) | row_to_json(w)::text | total(w) | w::text | (w).c | w.total | w IS NULL | ARRAY[w] | coalesce(w, w) | CASE WHEN w.a > 1 THEN w END
SELECT w.a AS key, {x} AS x FROM altered w;

SELECT array_agg(w ORDER BY w) AS rows, json_agg(w ORDER BY w.a, w.b)::text AS j FROM altered w;

SELECT e.id, to_jsonb(w) AS w, total(w) AS t FROM emp e LEFT JOIN altered w ON w.a = e.id;

-- Composite values and NULL.
-- for {x}: p IS DISTINCT FROM NULL | p IS NOT DISTINCT FROM NULL | NULL IS DISTINCT FROM p
SELECT id, {x} AS x FROM thing;

-- for {w}: p IS DISTINCT FROM NULL | NOT p IS DISTINCT FROM NULL | p IS NOT DISTINCT FROM NULL
SELECT id FROM thing WHERE {w};

-- Rows of a join.

-- for {j}: emp e JOIN dept d ON d.id = e.dept | emp e JOIN work w ON w.emp = e.id JOIN project p ON p.id = w.project
-- for {x}: j::text | to_jsonb(j) | j IS NULL | j = j | count(j) | array_agg(j::text ORDER BY j::text)
SELECT {x} AS x FROM ({j}) AS j;

SELECT j::text AS j FROM (emp e JOIN work w ON w.emp = e.id) AS j(a, b, c, d, e);

SELECT j::text AS j FROM (emp e JOIN (SELECT id, title FROM project) p USING (id)) AS j WHERE (SELECT count(*) FROM work w WHERE j IS NOT NULL AND w.emp = j.id) > 1;

SELECT d.id, (SELECT max(j::text) FROM (emp e JOIN work w ON w.emp = e.id) AS j WHERE j.dept = d.id) AS x FROM dept d;

-- for {x}: count(j.id) | max(j.id) + count(DISTINCT j.dept) | count((SELECT j.id)) | string_agg(j.title, ',' ORDER BY j.id)
SELECT {x} AS x FROM (emp e FULL JOIN (SELECT id, title FROM project) p USING (id)) AS j;

SELECT j.k, count(*) AS n, e.x FROM (emp e FULL JOIN (SELECT id, title FROM project) p USING (id)) AS j(k), (SELECT max(e.id) AS x FROM emp e) e GROUP BY j.k, e.x HAVING count(j.k) > 0;
