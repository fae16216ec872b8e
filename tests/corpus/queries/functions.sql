-- Set-returning functions, LATERAL, functions of users.

-- for {f}: generate_series(1, 3) | generate_series(1, e.grade) | generate_series(10, 1, -4) | generate_series(e.id, 5) | generate_series(1, e.id, 3) | unnest(ARRAY[e.id, e.dept]) | unnest(ARRAY['a', e.name]) | regexp_split_to_table(e.name, '[aeiou]') | string_to_table(e.name, 'a') | regexp_matches(e.name, '[a-z]', 'g') | upto(e.grade) | generate_series(1.0, 2.0, 0.5) | generate_series(e.hired, e.hired + 60, interval '1 month')
SELECT e.id, x FROM emp e, {f} AS x;

-- for {f}: generate_series(1, e.grade) | unnest(ARRAY[e.id, e.dept]) | upto(e.grade) | string_to_table(e.name, 'a') | regexp_matches(e.name, 'z') | generate_series(1, 0)
SELECT e.id, x.n FROM emp e LEFT JOIN LATERAL {f} AS x(n) ON true;

-- for {f}: generate_series(1, grade) | unnest(ARRAY[id, dept]) | regexp_split_to_table(name, '') | upto(grade) | generate_series(1, 2), generate_series(1, 3) | unnest(ARRAY[1, 2]), name | generate_series(1, grade) * 2 | string_to_table(name, 'a') || '!'
SELECT id, {f} AS x FROM emp WHERE active;

-- for {f}: generate_series(1, e.grade) | unnest(ARRAY[e.id, e.dept]) | upto(e.grade) | string_to_table(e.name, 'o')
SELECT e.id, x.n, x.v FROM emp e, {f} WITH ORDINALITY AS x(v, n) WHERE n < 4;

SELECT e.id, x.* FROM emp e, ROWS FROM (generate_series(1, 2), unnest(ARRAY[e.name, e.dept::text, 'x'])) AS x(a, b);

SELECT e.id, x.* FROM emp e, ROWS FROM (upto(e.grade), generate_series(1, 2)) WITH ORDINALITY AS x(a, b, c);

SELECT x, count(e.id) FROM generate_series(1, 10) AS x LEFT JOIN emp e ON e.grade = x GROUP BY x;

SELECT d::date AS day, count(s.emp) FROM generate_series(timestamp '2024-01-01', '2024-01-08', '1 day') AS d LEFT JOIN sale s ON s.at::date = d::date GROUP BY 1;

SELECT generate_series(1, 3) AS n, count(*) FROM emp GROUP BY 1;

SELECT unnest(ARRAY[dept, grade]) AS x, count(*) FROM emp GROUP BY x;

SELECT DISTINCT unnest(ARRAY[dept, boss]) AS x FROM emp;

SELECT x FROM (SELECT unnest(ARRAY[dept, boss]) AS x FROM emp) s WHERE x > 2;

SELECT id, (SELECT sum(x) FROM generate_series(1, grade) AS x) AS total FROM emp;

SELECT id FROM emp WHERE grade IN (SELECT generate_series(1, 4));

SELECT id FROM emp e WHERE EXISTS (SELECT FROM generate_series(1, e.grade) x WHERE x = e.dept);

SELECT sum(x) FROM emp, generate_series(1, grade) AS x;

SELECT e.id, y FROM emp e, generate_series(1, e.grade) AS x, generate_series(x, 3) AS y WHERE e.id < 6;

-- LATERAL.
-- for {q}: SELECT count(*) AS r FROM work w WHERE w.emp = e.id | SELECT max(hours) AS r FROM work w WHERE w.emp = e.id | SELECT w.role AS r FROM work w WHERE w.emp = e.id | SELECT e.salary * 2 AS r | SELECT p.title AS r FROM project p WHERE p.dept = e.dept AND p.cost > e.salary | SELECT DISTINCT w.role AS r FROM work w WHERE w.emp = e.id | SELECT w.role AS r FROM work w WHERE w.emp = e.id UNION SELECT p.title FROM project p WHERE p.dept = e.dept | SELECT o.name AS r FROM emp o WHERE o.dept = e.dept AND o.id <> e.id ORDER BY o.salary NULLS LAST, o.id LIMIT 1 | SELECT row_number() OVER (ORDER BY w.hours, w.project) AS r FROM work w WHERE w.emp = e.id | SELECT w.role AS r FROM work w WHERE w.emp = e.id GROUP BY w.role HAVING sum(w.hours) > 20
-- for {j} {on}: JOIN ; true | LEFT JOIN ; true | LEFT JOIN ; x.r IS NOT NULL
SELECT e.id, x.r FROM emp e {j} LATERAL ({q}) x ON {on};

SELECT e.id, x.a, y.b FROM emp e, LATERAL (SELECT e.salary * 2 AS a) x, LATERAL (SELECT x.a + 1 AS b) y;

SELECT d.name, x.n, y.total FROM dept d LEFT JOIN LATERAL (SELECT count(*) AS n FROM emp e WHERE e.dept = d.id) x ON true LEFT JOIN LATERAL (SELECT sum(cost) AS total FROM project p WHERE p.dept = d.id) y ON true;

SELECT a.id, b.id AS other FROM num a JOIN LATERAL (SELECT id FROM num c WHERE c.i > a.i ORDER BY c.i, c.id LIMIT 1) b ON true;

SELECT d.id, s.k FROM dept d, LATERAL (SELECT e.dept AS k FROM emp e WHERE e.boss = d.id OFFSET 0) s WHERE s.k > 1;

-- Functions of users.
-- for {x}: twice(i) | twice(twice(s::int)) | twice(i) + 1 | add(i) | add(i, s::int) | add(y => 3, x => i) | widest(i, s::int, 5) | widest(VARIADIC ARRAY[i, 3]) | i <~> 3 | shout(i::text) | coalesce(twice(i), 0) | (divided(abs(i), 3)).quotient | CASE WHEN i > 0 THEN twice(i) END
SELECT id, {x} AS result FROM num;

-- for {x}: twice(i) > 20 | shout(i::text) = '7!' | add(i) = 8 | i <~> 7 = 0 | widest(i, 10) > 10
SELECT id FROM num WHERE {x};

SELECT twice(i) AS k, count(*), sum(twice(s::int)) FROM num GROUP BY twice(i);

SELECT id, shout(t) AS result FROM txt ORDER BY shout(t) DESC NULLS LAST, id LIMIT 3;

SELECT id, (divided(abs(i), 4)).* FROM num;

SELECT n.id, d.quotient, d.remainder FROM num n, divided(n.i, 5) d;

SELECT n.id, p.low, p.high FROM num n, pairs(n.s) p;

SELECT n.id, p::text FROM num n CROSS JOIN LATERAL pairs(n.s) p WHERE p.low > 1;

SELECT id, upto(s) AS x FROM num;

SELECT a.id, b.id AS other FROM num a JOIN num b ON twice(a.i) = twice(b.i) AND a.id < b.id;

SELECT id, max(twice(i)) OVER (ORDER BY id) FROM num;

-- Of the system, that depend on their arguments alone.
-- for {x}: pg_size_pretty(b) | pg_size_bytes('1 kB') | hashint4(i) | num_nonnulls(i, s) | quote_ident('a' || i) | bit_length(i::text) | inet '10.0.0.1' + i | array_fill(i, ARRAY[1]) | md5(i::text) | width_bucket(i, ARRAY[0, 10, 50]) | encode(int4send(i), 'hex') | sha256(i::text::bytea) | isfinite(date '2024-01-01' + i) | make_interval(days => i) | ('x' || i)::name | hash_array(ARRAY[i])
SELECT id, {x} AS result FROM num;
