-- Aggregates: of each type, with DISTINCT, FILTER and ORDER BY, of ordered sets.

-- for {c}: i | s | b | n | r | d
-- for {a}: sum | avg | min | max
SELECT {a}({c}) AS result FROM num;

-- for {c}: i | s | b | n | d
-- for {a}: sum | avg | min
SELECT id % 3 AS part, {a}({c}) AS result, count({c}) FROM num GROUP BY 1;

-- for {c}: i | s | n
-- for {a}: stddev | stddev_samp | stddev_pop | variance | var_samp | var_pop
SELECT {a}({c}) AS result FROM num;

-- Of floats PostgreSQL rounds with each row.
-- rounded
-- for {a}: stddev(d) | variance(d) | stddev_pop(d) | var_pop(r) | avg(d) | corr(d, r) | covar_pop(d, r) | covar_samp(i, s) | regr_slope(d, r) | regr_intercept(d, r) | regr_r2(i, s) | regr_count(d, r) | regr_avgx(d, r) | regr_avgy(d, r) | regr_sxx(d, r) | regr_syy(d, r) | regr_sxy(d, r) | corr(i, n)
SELECT {a} AS result FROM num WHERE i IS NOT NULL;

-- for {c}: i | s | b
-- for {a}: bit_and | bit_or | bit_xor
SELECT {a}({c}) AS result FROM num;

-- for {a}: bool_and(i > 0) | bool_or(i > 50) | every(s IS NOT NULL) | bool_or(n > i) | count(*) | count(i) | count(1) | sum(1) | max(1) | sum(i + s) | avg(i * 1.0) | sum(i) + count(*) | max(i) - min(i) | sum(i)::text || '!' | round(avg(n), 2) | min(-i) | sum(abs(i)) | count(i > 5 OR NULL) | sum(i) % 7 | greatest(max(i), max(s)) | sum(i::bigint * 1000000) | avg(b + 1) | sum(n * d::numeric) | max(least(i, s)) | (sum(i) > 10) | -sum(i) | sum(i) IS NULL
SELECT {a} AS result FROM num;

-- unchanged
-- for {a}: bool_and(NULL::boolean) | count(NULL) | coalesce(sum(i) FILTER (WHERE i > 1000), 0)
SELECT {a} AS result FROM num;

-- Without a row.
-- unchanged
-- for {a}: count(*) | sum(i) | max(t) | bool_and(i > 0) | array_agg(i ORDER BY i) | string_agg(t, ',' ORDER BY t) | coalesce(sum(i), 0) | jsonb_agg(i) | avg(i)
SELECT {a} AS result FROM num JOIN txt USING (id) WHERE i > 1000;

-- for {a}: count(DISTINCT i) | sum(DISTINCT i) | avg(DISTINCT n) | count(DISTINCT (i, s)) | array_agg(DISTINCT s ORDER BY s DESC) | string_agg(DISTINCT s::text, ',' ORDER BY s::text) | max(DISTINCT i) | count(DISTINCT i) FILTER (WHERE i > 0) | sum(DISTINCT i % 3) | count(DISTINCT n > 0) | count(DISTINCT i) - count(DISTINCT s) | bit_xor(DISTINCT i) | sum(DISTINCT d) | var_pop(DISTINCT s)
SELECT {a} AS result FROM num;

-- for {a}: count(*) FILTER (WHERE i > 5) | sum(i) FILTER (WHERE s IS NOT NULL) | max(n) FILTER (WHERE i % 2 = 0) | array_agg(i ORDER BY id) FILTER (WHERE i <> 7) | string_agg(i::text, '' ORDER BY i) FILTER (WHERE n > 0) | avg(d) FILTER (WHERE d < 100) | bool_or(i = 7) FILTER (WHERE id < 8) | count(i) FILTER (WHERE i IS NULL) | min(i) FILTER (WHERE false) | sum(i) FILTER (WHERE i > 0) - sum(i) FILTER (WHERE i < 0) | count(*) FILTER (WHERE NOT (i > 5)) | sum(DISTINCT s) FILTER (WHERE i > 0)
SELECT {a} AS result, count(*) FROM num;

-- for {a}: count(*) FILTER (WHERE active) | sum(salary) FILTER (WHERE grade > 3) | max(hired) FILTER (WHERE boss IS NOT NULL) | string_agg(name, ', ' ORDER BY name, id) FILTER (WHERE active IS NOT FALSE) | array_agg(id ORDER BY salary DESC NULLS LAST, id) FILTER (WHERE bonus > 0) | count(DISTINCT boss) FILTER (WHERE hired > date '2018-01-01')
SELECT dept, {a} AS result FROM emp GROUP BY dept;

-- for {o}: id | i, id | i DESC, id | i NULLS FIRST, id DESC | s DESC NULLS LAST, i, id | abs(i), id | -id | n, d, id | t.t, num.id | i % 2, id | i IS NULL, id | coalesce(i, s, 0) DESC, id
SELECT array_agg(num.id ORDER BY {o}) AS ids, string_agg(num.id::text, '-' ORDER BY {o}) AS text FROM (SELECT id AS k, t FROM txt) t RIGHT JOIN num ON t.k = num.id;

-- for {w}: percentile_cont(0.5) WITHIN GROUP (ORDER BY i) | percentile_disc(0.5) WITHIN GROUP (ORDER BY i) | percentile_cont(0.25) WITHIN GROUP (ORDER BY d) | percentile_disc(0.9) WITHIN GROUP (ORDER BY n) | percentile_disc(ARRAY[0.1, 0.5, 0.9]) WITHIN GROUP (ORDER BY i) | percentile_cont(ARRAY[0, 0.5, 1]) WITHIN GROUP (ORDER BY d) | percentile_disc(0.5) WITHIN GROUP (ORDER BY i DESC) | mode() WITHIN GROUP (ORDER BY i) | mode() WITHIN GROUP (ORDER BY s DESC) | rank(7) WITHIN GROUP (ORDER BY i) | dense_rank(7) WITHIN GROUP (ORDER BY i) | percent_rank(7) WITHIN GROUP (ORDER BY i) | cume_dist(7) WITHIN GROUP (ORDER BY i) | rank(7, 3) WITHIN GROUP (ORDER BY i, s DESC) | percentile_cont(0.5) WITHIN GROUP (ORDER BY i) FILTER (WHERE i > 0) | percentile_disc(0) WITHIN GROUP (ORDER BY n) | mode() WITHIN GROUP (ORDER BY i % 3)
SELECT {w} AS result FROM num;

-- for {w}: percentile_cont(0.5) WITHIN GROUP (ORDER BY salary) | percentile_disc(0.5) WITHIN GROUP (ORDER BY hired) | mode() WITHIN GROUP (ORDER BY name) | rank(4000) WITHIN GROUP (ORDER BY salary) | percentile_disc(0.25) WITHIN GROUP (ORDER BY name DESC) | mode() WITHIN GROUP (ORDER BY active)
SELECT dept, {w} AS result FROM emp GROUP BY dept;

-- for {w}: percentile_disc(0.5) WITHIN GROUP (ORDER BY t) | mode() WITHIN GROUP (ORDER BY v) | percentile_disc(0.5) WITHIN GROUP (ORDER BY y) | rank('b') WITHIN GROUP (ORDER BY t)
SELECT {w} AS result FROM txt;

-- for {w}: percentile_cont(0.5) WITHIN GROUP (ORDER BY iv) | percentile_disc(0.5) WITHIN GROUP (ORDER BY tz) | mode() WITHIN GROUP (ORDER BY d) | percentile_disc(0.75) WITHIN GROUP (ORDER BY tm)
SELECT {w} AS result FROM moment;

-- In expressions and over each other.
SELECT dept, sum(salary) / count(*) AS mean, round(avg(salary), 2) AS average FROM emp GROUP BY dept;

SELECT count(*) AS n, sum(count) AS total FROM (SELECT dept, count(*) FROM emp GROUP BY dept) s;

SELECT upper(max(name)), lower(min(name)), length(string_agg(name, '' ORDER BY id)) FROM emp;

SELECT sum(qty) AS qty, sum(qty * price) AS turnover, avg(price) AS price, count(DISTINCT product) AS products FROM sale;

SELECT product, sum(qty), min(price), max(price), count(*), count(price) AS priced FROM sale GROUP BY product;

SELECT emp, product, sum(qty) FROM sale GROUP BY emp, product HAVING sum(qty) > 1;

SELECT max(x) FROM (SELECT sum(qty) AS x FROM sale GROUP BY product) s;

SELECT product(i) AS result FROM num WHERE i BETWEEN 1 AND 12;

SELECT s, product(i) FROM num WHERE i BETWEEN 1 AND 12 GROUP BY s;

SELECT count(*) FROM emp WHERE dept = 3 HAVING count(*) > 1;

SELECT 1 AS one FROM emp HAVING max(salary) > 8000;

SELECT count(*) FROM emp, dept WHERE emp.dept = dept.id;

SELECT array_agg(DISTINCT role ORDER BY role) AS roles, count(*) FROM work;

SELECT "any".dept, "any".n FROM (SELECT dept, count(*) AS n, max(salary) AS m FROM emp GROUP BY dept) AS "any" WHERE n > 1;

SELECT json_agg(s ORDER BY dept) FROM (SELECT dept, count(*) AS n FROM emp GROUP BY dept) s;

SELECT xmlagg(xmlelement(name n, name) ORDER BY id)::text AS x FROM emp;

SELECT string_agg(name, CASE WHEN id > 5 THEN ';' ELSE ',' END ORDER BY id) FROM emp;

SELECT min(ARRAY[i, s]), max(ROW(i, s)::text) FROM num;

-- since 18
SELECT max(p) > min(p) AS is_wide FROM (SELECT ROW(code, id)::place AS p FROM thing) s;
