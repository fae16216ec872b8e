-- CASE, COALESCE, NULLIF, GREATEST, LEAST, and the logic of NULL.

-- for {x}: CASE WHEN i > 10 THEN 'high' WHEN i > 0 THEN 'low' ELSE 'none' END | CASE WHEN i > 10 THEN 1 END | CASE i WHEN 7 THEN 'seven' WHEN 42 THEN 'answer' ELSE i::text END | CASE WHEN i IS NULL THEN -1 ELSE i END | CASE WHEN i <> 0 THEN 100 / i END | CASE WHEN i > 0 THEN i ELSE n END | CASE WHEN i > 0 THEN CASE WHEN s > 2 THEN 'a' ELSE 'b' END ELSE 'c' END | CASE n WHEN 12.5 THEN true ELSE false END | CASE i % 2 WHEN 0 THEN 'even' WHEN 1 THEN 'odd' END | CASE WHEN i = 1 OR s = 3 THEN d END | CASE WHEN NOT (i > 5) THEN i END | CASE WHEN i IN (1, 7) THEN 'in' ELSE 'out' END | CASE NULL WHEN NULL THEN 1 ELSE 2 END | CASE i WHEN s THEN 'same' WHEN s + 4 THEN 'four' END | CASE WHEN i BETWEEN 1 AND 50 THEN b END
--   | coalesce(i, 0) | coalesce(i, s, -1) | coalesce(n, 0) + 1 | coalesce(nullif(i, 0), 99) | coalesce(s::text, 'none') | coalesce(d, n) | coalesce(NULL, NULL, i) | nullif(i, s) | nullif(n, 0) | nullif(i::text, '7') | nullif(d, 0) | greatest(i, s, 10) | greatest(n, d) | greatest(i, NULL) | least(i, s) | least(n, 0) | least(b, i) | least(i, 50, n) | greatest(i, 0) - least(i, 0) | greatest(i::text, 'b')
--   | i IS NULL | i IS NOT NULL | i IS DISTINCT FROM s | i IS NOT DISTINCT FROM 7 | (i > 5) IS TRUE | (i > 5) IS NOT FALSE | (i > 5) IS NULL | NOT i > 5 | i > 5 AND s > 2 | i > 5 OR s IS NULL | NOT (i > 5 AND s > 2) | i = 7 AND NULL | i = 7 OR NULL | i > 5 AND (s > 2 OR n > 0) | (i = 1) = (s = 1) | (i > 5) <> (s > 4) | true AND i > 5 | false OR i > 5
SELECT id, {x} AS result FROM num;

-- for {x}: CASE WHEN i > 10 THEN s > 5 ELSE n > 0 END | coalesce(i, 0) = 0 | nullif(i, 7) IS NULL | greatest(i, s) > 10 | least(i, s) < 2 | CASE i WHEN 7 THEN true ELSE NULL END | coalesce(i > 5, true) | CASE WHEN i <> 0 THEN 84 / i > 5 ELSE false END
SELECT id FROM num WHERE {x};

-- for {x}: CASE WHEN i > 5 THEN 'high' ELSE 'low' END | coalesce(i, -1) | nullif(s, 3) | greatest(i, s) | i IS NULL | CASE WHEN n > 0 THEN i END
-- for {a}: count(*) | sum(i) | max(n)
SELECT {x} AS key, {a} FROM num GROUP BY 1;

-- for {a}: sum(CASE WHEN i > 5 THEN 1 ELSE 0 END) | count(CASE WHEN i > 5 THEN 1 END) | sum(coalesce(n, 0)) | avg(nullif(i, 0)) | max(CASE s WHEN 3 THEN d END) | sum(greatest(i, 0)) | coalesce(sum(i), 0) | CASE WHEN count(*) > 3 THEN sum(i) END | nullif(count(*), 0) | sum(i) / nullif(count(s), 0)
SELECT {a} AS result FROM num;

-- for {a}: sum(CASE WHEN active THEN salary ELSE 0 END) | coalesce(max(bonus), 0) | CASE WHEN count(*) > 1 THEN 'team' ELSE 'alone' END | round(100.0 * count(bonus) / count(*), 1) | sum(coalesce(bonus, 0) + coalesce(salary, 0))
SELECT dept, {a} AS result FROM emp GROUP BY dept;

-- for {x}: CASE WHEN t LIKE 'a%' THEN upper(t) ELSE t END | coalesce(t, v, 'none') | nullif(t, '') | CASE t WHEN 'apple' THEN 1 WHEN '' THEN 2 END | greatest(t, v, 'm') | CASE WHEN t IS NULL THEN 'null' WHEN t = '' THEN 'empty' ELSE left(t, 1) END | coalesce(nullif(trim(t), ''), '?') | CASE c WHEN 'ab' THEN t END
SELECT id, {x} AS result FROM txt;

-- for {x}: CASE WHEN d > date '2024-01-01' THEN 'new' ELSE 'old' END | coalesce(d, date '2000-01-01') | nullif(d, date '2024-02-29') | greatest(d, ts::date) | CASE WHEN tz IS NULL THEN zero ELSE iv END | least(tz, timestamptz '2024-01-01 00:00+00') | CASE extract(year FROM d) WHEN 2024 THEN iv END
SELECT id, {x} AS result FROM (SELECT *, interval '0' AS zero FROM moment) m;

SELECT id, CASE WHEN dept IS NULL THEN 'none' ELSE (SELECT name FROM dept d WHERE d.id = e.dept) END AS dept FROM emp e;

SELECT e.name, CASE WHEN e.salary > avg(e.salary) OVER (PARTITION BY e.dept) THEN 'above' ELSE 'below' END AS is FROM emp e;

SELECT d.name, CASE WHEN EXISTS (SELECT FROM emp e WHERE e.dept = d.id) THEN 'staffed' ELSE 'empty' END AS state FROM dept d;

SELECT name FROM emp ORDER BY CASE WHEN active THEN 0 ELSE 1 END, coalesce(salary, 0) DESC, id LIMIT 4;
