-- Ordinary SQL that is seldom written.

-- Spellings.
-- for {q}: SELECT ALL id FROM emp | SELECT count(ALL dept) AS n FROM emp | SELECT sum(ALL salary) AS s FROM emp | ((SELECT id FROM emp)) | SELECT id FROM (emp CROSS JOIN (SELECT 1) x) WHERE ((id)) > (((2))) | SELECT emp.id FROM public.emp AS emp | SELECT e."id" AS "Id" FROM emp "e" | SELECT id /* the key */ FROM emp WHERE id > 1 /* not the first */ | SELECT id as id, name as "na me" FROM emp | SELECT DISTINCT ON (dept, (grade)) dept, grade, id FROM emp ORDER BY dept, grade, id | SELECT id FROM emp WHERE dept NOTNULL | SELECT id FROM emp WHERE dept ISNULL
--   | SELECT id FROM emp WHERE NOT dept IS NULL AND NOT active IS TRUE | SELECT id FROM emp WHERE id != 3 | SELECT id FROM emp WHERE NOT id = 3 | SELECT id FROM emp WHERE id OPERATOR(pg_catalog.<) 4 | SELECT pg_catalog.upper(name) AS name FROM emp | SELECT -(-id) AS x, + id AS y FROM emp | SELECT id, - - salary AS x FROM emp | SELECT id, NOT NOT active AS x FROM emp | SELECT id FROM emp WHERE active | SELECT id FROM emp WHERE active = 't' | SELECT id FROM emp WHERE active IN ('yes', 'off')
{q};

-- Grouping.
-- for {q}: SELECT count(*) FROM emp GROUP BY () | SELECT sum(salary) FROM emp GROUP BY GROUPING SETS (()) | SELECT 'x' AS x, count(*) FROM emp GROUP BY 'x'::text | SELECT dept FROM emp GROUP BY dept, dept | SELECT dept, dept + 1 AS next FROM emp GROUP BY dept | SELECT dept + grade AS x FROM emp GROUP BY dept, grade | SELECT max(salary) FROM emp GROUP BY dept ORDER BY dept LIMIT 3 | SELECT count(*) FROM emp HAVING true | SELECT dept FROM emp GROUP BY dept HAVING count(*) > 1 AND true | SELECT dept, count(*) FILTER (WHERE dept > 2) FROM emp GROUP BY dept | SELECT (dept), (count(*)) FROM emp GROUP BY (dept)
--   | SELECT dept, sum(sum(salary)) OVER () AS s FROM emp GROUP BY dept HAVING sum(salary) IS NOT NULL | SELECT e.dept FROM emp e GROUP BY e.dept HAVING EXISTS (SELECT FROM dept d WHERE d.id = e.dept AND d.budget > sum(e.salary)) | SELECT dept, (SELECT count(*) FROM dept d WHERE d.budget > max(e.salary) * 30) AS n FROM emp e GROUP BY dept | SELECT dept, (SELECT d.name FROM dept d WHERE d.id = max(e.dept)) AS n FROM emp e GROUP BY dept | SELECT dept, ARRAY(SELECT d.id FROM dept d WHERE d.budget > sum(e.salary) ORDER BY 1) AS x FROM emp e GROUP BY dept
{q};

-- Windows.
-- for {q}: SELECT id, row_number() OVER w FROM emp WINDOW w AS (ORDER BY salary DESC NULLS LAST, id) | SELECT id, count(*) OVER w FROM emp WINDOW w AS () | SELECT id, sum(salary) OVER (PARTITION BY dept, active ORDER BY hired NULLS FIRST, id ROWS CURRENT ROW) AS s FROM emp | SELECT id, rank() OVER (PARTITION BY dept IS NULL ORDER BY left(name, 1)) FROM emp | SELECT id, max(salary) OVER (ORDER BY salary GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) AS next FROM emp | SELECT id, sum(1) OVER (ORDER BY hired RANGE BETWEEN '1 year' PRECEDING AND '1 day' PRECEDING) AS n FROM emp | SELECT id, ntile(2) OVER (PARTITION BY dept ORDER BY id) AS half, count(*) OVER (PARTITION BY dept) FROM emp
--   | SELECT id, first_value(salary) OVER (PARTITION BY dept ORDER BY id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS next FROM emp | SELECT id, lag(id, id % 3) OVER (ORDER BY id) AS x FROM emp | SELECT id, lead(name, 2, name) OVER (ORDER BY id) AS x FROM emp | SELECT id, nth_value(id, 1 + id % 2) OVER (PARTITION BY dept ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS x FROM emp | SELECT id FROM emp ORDER BY row_number() OVER (ORDER BY salary, id) DESC LIMIT 2 | SELECT DISTINCT first_value(name) OVER (PARTITION BY dept ORDER BY id) AS first FROM emp | SELECT id, count(*) FILTER (WHERE grade > 4) OVER (ORDER BY id) AS n, count(DISTINCT 1) AS one FROM emp GROUP BY id, grade
--   | SELECT id, sum(salary) OVER (ORDER BY id) - sum(salary) OVER (ORDER BY id DESC) AS x FROM emp | SELECT id, rank() OVER (ORDER BY rank) AS again FROM (SELECT id, rank() OVER (ORDER BY grade) AS rank FROM emp) s | SELECT id, array_agg(name) OVER (PARTITION BY dept ORDER BY id) AS names FROM emp | SELECT id, string_agg(name, '-') OVER (ORDER BY id DESC ROWS 2 PRECEDING) AS names FROM emp | SELECT id, min(hired) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW) AS x FROM emp | SELECT id, bool_and(active) OVER (PARTITION BY dept ORDER BY id) AS x FROM emp | SELECT id, cume_dist() OVER (PARTITION BY dept ORDER BY grade) AS x FROM emp
{q};

-- FROM.
-- for {q}: SELECT * FROM emp e(a, b) WHERE a < 3 | SELECT x FROM (VALUES (1), (2)) AS v(x), emp WHERE emp.id = x | SELECT a.id FROM emp a, emp b, emp c WHERE a.boss = b.id AND b.boss = c.id | SELECT a.id FROM emp a JOIN (dept b CROSS JOIN (VALUES (1), (3)) v(n)) ON a.dept = b.id AND v.n = b.id | SELECT a.id, c.id AS c FROM emp a LEFT JOIN emp b RIGHT JOIN dept c ON b.dept = c.id ON a.id = b.id | SELECT a.id FROM emp a JOIN emp b USING (id) JOIN emp c USING (id) | SELECT id FROM emp a FULL JOIN dept b USING (id) FULL JOIN project c USING (id) | SELECT coalesce(a.id, b.id) AS id FROM emp a FULL JOIN dept b ON a.id = b.id WHERE a.id IS NULL OR b.id IS NULL | SELECT s.* FROM (SELECT e.*, d.name AS dept_name FROM emp e LEFT JOIN dept d ON d.id = e.dept) s WHERE s.dept_name > 'B'
--   | SELECT e.id FROM emp e, (SELECT max(salary) AS m FROM emp) x WHERE e.salary = x.m | SELECT e.id, f FROM emp e, upper(e.name) AS f | SELECT e.id, f FROM emp e LEFT JOIN lower(e.name) AS f ON f > 'c' | SELECT e.id, r.a FROM emp e, LATERAL ROWS FROM (generate_series(1, e.grade), generate_series(e.grade, 1, -1)) AS r(a, b) WHERE a = b | SELECT x.id FROM emp x WHERE x.id IN (SELECT y.id FROM emp y JOIN LATERAL (SELECT 1 FROM work w WHERE w.emp = y.id AND w.hours > x.id) s ON true) | SELECT e.id, s.n FROM emp e NATURAL LEFT JOIN (SELECT id, length(name) AS n FROM dept) s | SELECT 1 AS one FROM emp, dept, project WHERE emp.dept = dept.id AND project.dept = dept.id | SELECT count(*) FROM emp a LEFT JOIN emp b ON false | SELECT a.id, b.name FROM emp a LEFT JOIN dept b ON true WHERE b.id = a.dept | SELECT a.id FROM emp a RIGHT JOIN dept b ON a.dept = b.id AND false
{q};

-- Subqueries.
-- for {q}: SELECT (SELECT (SELECT (SELECT e.id))) AS id FROM emp e | SELECT (SELECT d FROM dept d WHERE d.id = e.dept) AS d FROM emp e | SELECT ((SELECT d FROM dept d WHERE d.id = e.dept)).name FROM emp e | SELECT id FROM emp WHERE (SELECT true) AND id > (SELECT 2) | SELECT id FROM emp WHERE NOT EXISTS (SELECT 1) = active | SELECT id, EXISTS (SELECT FROM work WHERE emp = e.id) AND active AS x FROM emp e | SELECT id FROM emp e WHERE id = ANY (ARRAY(SELECT emp FROM work)) | SELECT (ARRAY(SELECT name FROM emp ORDER BY id))[2] AS second | SELECT id, (SELECT array_agg(x) FROM (SELECT project AS x FROM work WHERE emp = e.id ORDER BY project DESC) s) AS x FROM emp e | SELECT id, (SELECT name FROM dept WHERE id = e.dept) || '!' AS x FROM emp e
--   | SELECT id FROM emp e WHERE (dept, 1) IN (SELECT id, 1 FROM dept WHERE city = 'Bonn') | SELECT id FROM emp e WHERE (SELECT count(*) FROM work) > id | SELECT id FROM emp e WHERE salary > ALL (SELECT salary FROM emp x WHERE x.dept = e.dept AND x.id <> e.id) | SELECT id FROM emp e WHERE salary <= ANY (SELECT salary FROM emp x WHERE x.boss = e.id) | SELECT id FROM emp WHERE id IN (SELECT boss FROM emp) IS NOT TRUE | SELECT id FROM emp WHERE (id IN (SELECT boss FROM emp)) IS NULL | SELECT id, id NOT IN (SELECT boss FROM emp) AS x FROM emp | SELECT id FROM emp WHERE coalesce(id IN (SELECT boss FROM emp), false) | SELECT id, CASE (SELECT count(*) FROM work w WHERE w.emp = e.id) WHEN 0 THEN 'none' WHEN 1 THEN 'one' ELSE 'many' END AS x FROM emp e | SELECT id FROM emp e WHERE EXISTS (SELECT FROM work w WHERE w.emp = e.id HAVING count(*) > 1) | SELECT id FROM emp e WHERE EXISTS (SELECT FROM work w WHERE w.emp = e.id LIMIT 1) | SELECT id FROM emp e WHERE id IN (SELECT emp FROM work w WHERE w.project = e.dept OFFSET 0) | SELECT id, (SELECT sum(hours) FROM work w WHERE w.emp IN (SELECT b.id FROM emp b WHERE b.boss = e.id)) AS x FROM emp e
{q};

-- Expressions.
-- for {x}: '1'::int + i | int '1' + i | CAST('1' AS int) + i | i::text::int::numeric | (i, s)::text | ARRAY[[i, 1], [2, 3]] | (ARRAY[i, s])[1] | (ARRAY[[i, 1], [2, 3]])[2][1] | concat_ws(',', VARIADIC ARRAY[i::text, s::text]) | format('%s', VARIADIC ARRAY[i, s]) | make_interval(hours => i, mins => 2) | i BETWEEN SYMMETRIC s AND 0 | i IN (s, s + 4, NULL) | i = ALL (ARRAY[i, s]) | i NOT IN (1, NULL) | (i = 7) IS DISTINCT FROM (s = 3) | NULL IS DISTINCT FROM i | nullif(i, NULL) | CASE WHEN true THEN i END | CASE WHEN false THEN 1 / 0 ELSE i END | CASE i WHEN NULL THEN 1 ELSE 0 END | coalesce(i) | i::int::int | i || ''::text | i * interval '1 hour' | interval '1' hour * i | interval '1-2' year to month | date '2024-01-31' + i | date 'epoch' + i | timestamp 'epoch' + i * interval '1 second' | time '12:00' + make_interval(mins => i) | B'1010' << (i & 3) | 7 & i | ~ ~ i | i ^ 2 | 2 ^ (s % 5) | @ (-i) | |/ (i * i) | (i % 2 = 1) = true | i > 1 AND (i < 100) IS TRUE | (i > 1) > (s > 1) | -i ^ 2 | - i % 3 | i - -1 | 5 / 2 * i | 1.5 * i / 3 | i::real / 3 | round(i / 3.0, 2) | (i / 3.0)::numeric(6,3) | 10.0 ^ -2 * i | i <> ALL ('{1,2}') | to_jsonb(i) = '7'
SELECT id, {x} AS result FROM num;

-- for {x}: t || NULL || v | t LIKE 'a\%%' | t LIKE 'a%' ESCAPE '' | t LIKE '%\%%' | t ILIKE ANY ('{a%,b%}') | t SIMILAR TO '%(an|pp)%' | t !~~ 'a%' | t ~ ('^' || coalesce(left(t, 1), '')) | substring(t, '(.)$') | substring(t from '#"a#"%' for '#') | left(t, length(t) - 1) | overlay(t placing upper(left(t, 1)) from 1 for 1) | t COLLATE "C" < v COLLATE "C" | (t COLLATE "C") || v | t::varchar(2)::text | v::varchar | c::char(2) || '|' | 'a' || c || 'b' | rpad(c, 8, '*') | length(c::text) | t > ALL (ARRAY['a', 'b']) | (t, v) < (v, t) | t BETWEEN 'a' AND 'm' OR v IS NULL | position('' in t) | repeat(left(t, 1), 3) | trim(both from t) | trim(t, 'ae') | E'\\' || t | U&'\00e4' || t | $q$it's$q$ || t | regexp_replace(t, 'a(.)', '<\1>', 'gi') | string_to_array(t, ' ')::text | (string_to_array(t, ' '))[1] | array_length(string_to_array(t, 'a'), 1)
SELECT id, {x} AS result FROM txt;

-- for {x}: p IS NULL AND f | (p).zip::text || '!' | ROW((p).street, 1)::place = p | p IN (SELECT q.p FROM thing q WHERE q.id < 3) | ARRAY[p, p] @> ARRAY[p] | (ARRAY[p])[1].street | (CASE WHEN f THEN p END).zip | coalesce(p, ROW('x', 0)::place) | nullif(p, ROW('Elm', NULL)::place) | greatest(p, ROW('F', 1)::place) | e = ANY (ARRAY['sad', 'ok']::mood[]) | e::text::mood > 'sad' | ARRAY[e, 'ok'] | array_position(ARRAY['sad', 'ok', 'happy']::mood[], e) | CASE WHEN e > 'sad' THEN e ELSE 'happy' END | nullif(e, 'ok') | u IS DISTINCT FROM NULL | e IS DISTINCT FROM 'ok' | pct::int % 7 | coalesce(pct, 5) | -pct | pct BETWEEN 1 AND 50 | greatest(pct, 10) | code > 'A' | code || code | net << inet '192.168.0.0/16' OR f | bits & bits = bits | cash > 5::money | pt IS NULL | bx IS NOT NULL | coalesce(pt, point '(9,9)') | CASE WHEN f THEN pt END | x IS NULL | coalesce(x, '<n/>') | word IS NULL OR length(word) = 0 | (ci COLLATE "C") || de | coalesce(ci, 'none') | upper(de) | de COLLATE "C" < 'b'
SELECT id, {x} AS result FROM thing;

-- for {x}: d::text::date | d = ts | ts::date = d | d + tm = ts | tz::timestamp = ts | tz - ts::timestamptz | ts::time = tm | (tz AT TIME ZONE 'UTC')::date | (d || ' ' || tm)::timestamp | extract(epoch FROM tz - timestamptz '2024-01-01 00:00+00') | d - (d - 1) | iv / 2 + iv | iv = interval '1 day' OR iv IS NULL | interval '1 month' > iv | d + interval '1 month' - interval '1 month' | date_trunc('month', d) + interval '1 month - 1 day' | extract(day FROM date_trunc('month', d) + interval '1 month' - interval '1 day') | to_char(ts, 'Q') | to_char(d, 'FMRM') | to_char(iv, 'HH24') | date_part('week', d) | extract(isoyear FROM d) | extract(milliseconds FROM tm) | ts BETWEEN d AND d + 1 | least(d, current_is) | make_date(extract(year FROM d)::int, 1, 1) | d::timestamp + tm | tz > d | tz::date - d | greatest(ts, tz::timestamp) | tm - interval '1 hour' < tm | justify_interval(iv * 3) | date_bin(interval '1 week', ts, d) | CASE WHEN extract(dow FROM d) IN (0, 6) THEN 'weekend' ELSE 'week' END
SELECT id, {x} AS result FROM (SELECT *, date '2024-01-01' AS current_is FROM moment) m;

-- Views and incremental views below.
-- for {q}: SELECT * FROM headcount | SELECT d.name, h.people FROM dept d LEFT JOIN headcount h ON h.dept = d.id | SELECT sum(people) AS all FROM headcount | SELECT h.dept FROM headcount h WHERE h.people > 1 EXCEPT SELECT dept FROM project | SELECT a, count(*) FROM reach GROUP BY a | SELECT r.b, d.name FROM reach r JOIN dept d ON d.id = r.b WHERE r.a = 1 | SELECT a FROM reach WHERE a = b | SELECT n.name FROM nested n JOIN headcount h ON h.people = n.people | WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT r.b FROM t JOIN reach r ON r.a = t.n) SELECT * FROM t | SELECT dept, rank() OVER (ORDER BY people DESC) FROM headcount
{q};

-- Rows of tables by kind, documents as tables, limits and frames that something computes.

SELECT * FROM ONLY vehicle;

-- unchanged
SELECT * FROM ONLY reading;

SELECT tableoid AS kind, id FROM emp;

SELECT tableoid AS kind, count(*) FROM vehicle GROUP BY tableoid;

SELECT FROM emp;

SELECT true AS is_there FROM emp;

SELECT t.id, x.c FROM thing t, XMLTABLE('/c' PASSING t.x COLUMNS c text PATH '@x') AS x;

SELECT t.id, (xpath('/c/@x', el))[1]::text AS c FROM thing t, unnest(xpath('/c', t.x)) AS el;

-- since 17
SELECT d.id, x.k FROM doc d, JSON_TABLE(d.b, '$.z[*]' COLUMNS (k int PATH '$.k')) AS x;

SELECT d.id, (e ->> 'k')::int AS k FROM doc d, jsonb_path_query(d.b, '$.z[*]') AS e;

-- since 16
-- for {a}: JSON_ARRAYAGG(i ORDER BY id) | JSON_OBJECTAGG(id VALUE i RETURNING jsonb) | JSON_ARRAYAGG(i ORDER BY id NULL ON NULL RETURNING jsonb)
SELECT {a} AS x FROM num;

SELECT jsonb_agg(i ORDER BY id) FILTER (WHERE i IS NOT NULL) AS list, jsonb_object_agg(id, i) AS object FROM num;

-- for {l}: LIMIT | OFFSET
SELECT id FROM emp ORDER BY id {l} (SELECT count(*) FROM dept);

SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM emp) s WHERE n <= (SELECT count(*) FROM dept);

SELECT id, count(*) OVER (ORDER BY tm RANGE BETWEEN interval '1 hour' PRECEDING AND CURRENT ROW) AS n FROM moment;

SELECT id, count(*) OVER (ORDER BY tm GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM moment;

SELECT id, sum(i) OVER (ORDER BY id ROWS BETWEEN (SELECT count(*) FROM dept) PRECEDING AND CURRENT ROW) AS s FROM num;

SELECT a.id, sum(b.i) AS s FROM num a JOIN num b ON b.id BETWEEN a.id - (SELECT count(*) FROM dept) AND a.id GROUP BY a.id;

SELECT id FROM emp ORDER BY generate_series(1, 2), id LIMIT 3;

SELECT id FROM (SELECT id, generate_series(1, 2) AS n FROM emp) s ORDER BY n, id LIMIT 3;

SELECT id, array_agg(m) OVER (ORDER BY id ROWS CURRENT ROW) AS x FROM list WHERE m <> '{}';

SELECT id, array_agg(m::text) OVER (ORDER BY id ROWS 1 PRECEDING) AS x FROM list WHERE m <> '{}';

SELECT id FROM thing WHERE bx IN (SELECT bx FROM thing WHERE id < 3);

SELECT id FROM thing a WHERE EXISTS (SELECT FROM thing b WHERE b.bx = a.bx AND b.id < 3);

SELECT dept, (SELECT json_agg(e.id ORDER BY e.id)::text || d.name FROM dept d WHERE d.id = 1) AS x FROM emp e GROUP BY dept;

SELECT dept, (SELECT s.ids || d.name FROM dept d WHERE d.id = 1) AS x FROM (SELECT dept, json_agg(id ORDER BY id)::text AS ids FROM emp GROUP BY dept) s;

SELECT id FROM emp WHERE EXISTS (SELECT WHERE active);

SELECT id FROM emp WHERE EXISTS (SELECT 1 WHERE active);
