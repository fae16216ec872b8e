-- Window functions, frames, exclusions.

-- for {f}: row_number() | rank() | dense_rank() | percent_rank() | cume_dist() | ntile(3) | lag(salary) | lead(salary) | lag(salary, 2) | lead(salary, 1, 0) | lag(name, 1, 'none') | first_value(name) | last_value(name) | nth_value(salary, 2) | count(*) | sum(salary) | avg(salary) | min(salary) | max(name) | sum(bonus) | count(bonus)
-- for {w}: ORDER BY id | PARTITION BY dept ORDER BY id | PARTITION BY dept ORDER BY salary DESC NULLS LAST, id | PARTITION BY active ORDER BY hired, id
SELECT id, {f} OVER ({w}) AS result FROM emp;

-- for {f}: count(*) | sum(salary) | avg(salary) | max(salary) | min(hired) | bool_or(active)
-- for {w}: PARTITION BY dept | PARTITION BY dept, active
SELECT id, {f} OVER ({w}) AS result FROM emp;

-- for {f}: sum(i) | avg(i) | count(i) | min(i) | max(i) | first_value(i) | last_value(i) | array_agg(i) | sum(n) | string_agg(i::text, ',') | nth_value(i, 2) | max(n)
-- for {w}: ROWS UNBOUNDED PRECEDING | ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING | ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING | ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING | ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING | RANGE BETWEEN 2 PRECEDING AND 2 FOLLOWING | GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW
SELECT id, {f} OVER (ORDER BY id {w}) AS result FROM num;

-- for {x}: EXCLUDE CURRENT ROW | EXCLUDE GROUP | EXCLUDE TIES | EXCLUDE NO OTHERS
-- for {f}: sum(s) | count(*) | max(i) | min(n)
SELECT id, {f} OVER (ORDER BY s ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING {x}) AS result FROM num;

-- for {w}: RANGE BETWEEN 3 PRECEDING AND CURRENT ROW | RANGE BETWEEN 1 FOLLOWING AND 5 FOLLOWING | RANGE BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING | GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING | GROUPS UNBOUNDED PRECEDING | RANGE UNBOUNDED PRECEDING | RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING | GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING EXCLUDE TIES
-- for {c}: i | s | n | d
SELECT id, count(*) OVER (ORDER BY {c} {w}) AS n, sum({c}) OVER (ORDER BY {c} {w}) AS total FROM num;

-- for {c} {o}: d ; interval '1 year' | ts ; interval '30 days' | tz ; interval '1 month' | iv ; interval '1 day'
SELECT id, count(*) OVER (ORDER BY {c} RANGE BETWEEN {o} PRECEDING AND {o} FOLLOWING) AS n FROM moment;

-- for {t} {c}: txt ; t | txt ; y | moment ; d | moment ; tz | moment ; iv | doc ; b | list ; i | span ; i | thing ; e | thing ; u | thing ; p | thing ; net | thing ; cash | extreme ; n | extreme ; d | extreme ; ts
SELECT id, dense_rank() OVER (ORDER BY {c} DESC) AS place, max(id) OVER (PARTITION BY {c}) AS last FROM {t};

-- for {t} {c}: txt ; t | moment ; ts | thing ; e | doc ; b | span ; d | list ; t
SELECT id, lead({c}) OVER w AS next, last_value({c}) OVER (w ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS last FROM {t} WINDOW w AS (ORDER BY id);

-- for {f}: sum(salary) | count(*) | max(name) | array_agg(id) | string_agg(name, ',')
SELECT id, {f} FILTER (WHERE active) OVER (PARTITION BY dept ORDER BY id) AS result FROM emp;

SELECT id, sum(salary) OVER w AS running, avg(salary) OVER w AS mean, rank() OVER w FROM emp WINDOW w AS (PARTITION BY dept ORDER BY hired, id);

SELECT id, sum(salary) OVER (w ROWS 1 PRECEDING), count(*) OVER w2 FROM emp WINDOW w AS (ORDER BY id), w2 AS (w RANGE UNBOUNDED PRECEDING);

SELECT id, salary - avg(salary) OVER (PARTITION BY dept) AS above, round(100 * salary / sum(salary) OVER (), 1) AS share FROM emp;

SELECT id, salary - lag(salary) OVER (ORDER BY id) AS step FROM emp;

SELECT dept, sum(salary) AS total, rank() OVER (ORDER BY sum(salary) DESC NULLS LAST) FROM emp GROUP BY dept;

SELECT dept, count(*), sum(count(*)) OVER (ORDER BY dept) AS running FROM emp GROUP BY dept;

SELECT dept, avg(salary) AS mean, avg(avg(salary)) OVER () AS mean_of_means FROM emp GROUP BY dept;

SELECT DISTINCT dept, count(*) OVER (PARTITION BY dept) AS n FROM emp;

SELECT * FROM (SELECT id, name, dept, row_number() OVER (PARTITION BY dept ORDER BY salary DESC NULLS LAST, id) AS n FROM emp) s WHERE n = 1;

-- for {k}: 1 | 2 | 3
SELECT id, name FROM (SELECT id, name, row_number() OVER (PARTITION BY dept ORDER BY hired, id) AS n FROM emp) s WHERE n <= {k};

-- for {f}: rank | dense_rank
SELECT id, name FROM (SELECT id, name, {f}() OVER (ORDER BY salary DESC NULLS LAST) AS n FROM emp) s WHERE n <= 3;

SELECT id, name, count(*) OVER () AS total FROM emp WHERE active;

SELECT id, ntile(4) OVER (ORDER BY salary, id) AS quarter FROM emp;

SELECT e.id, d.name, rank() OVER (PARTITION BY d.id ORDER BY e.salary DESC) FROM emp e JOIN dept d ON d.id = e.dept;

SELECT id, first_value(name) OVER (PARTITION BY dept ORDER BY salary DESC NULLS LAST, id) AS best, nth_value(name, 2) OVER (PARTITION BY dept ORDER BY salary DESC NULLS LAST, id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS second FROM emp;

SELECT product, at, sum(qty) OVER (PARTITION BY product ORDER BY at RANGE UNBOUNDED PRECEDING) AS running FROM sale WHERE at IS NOT NULL;

SELECT product, at, count(*) OVER (ORDER BY at RANGE BETWEEN interval '30 days' PRECEDING AND CURRENT ROW) AS month FROM sale;

SELECT at::date AS day, sum(sum(qty)) OVER (ORDER BY at::date) AS running FROM sale GROUP BY 1;

SELECT id, i, max(i) OVER (PARTITION BY i % 2 ORDER BY id ROWS 3 PRECEDING) - i AS gap FROM num;

SELECT id, CASE WHEN lag(i) OVER (ORDER BY id) < i THEN 'up' ELSE 'down' END AS direction FROM num;

SELECT min(id) AS first, max(id) AS last, count(*) FROM (SELECT id, id - row_number() OVER (ORDER BY id) AS island FROM emp) s GROUP BY island;

SELECT id, rank() OVER (PARTITION BY dept ORDER BY salary) FROM emp UNION ALL SELECT id, rank() OVER (ORDER BY budget) FROM dept;

SELECT e.id, (SELECT max(r) FROM (SELECT rank() OVER (ORDER BY w.hours) AS r FROM work w WHERE w.emp = e.id) s) AS most FROM emp e;

SELECT id, sum(i) OVER (ORDER BY id ROWS BETWEEN 1 + 1 PRECEDING AND CURRENT ROW) FROM num;

SELECT id, rank() OVER (ORDER BY i) AS a, rank() OVER (ORDER BY n) AS b, rank() OVER (ORDER BY i, n) AS c FROM num;

SELECT id, product(2) OVER (ORDER BY id ROWS 2 PRECEDING) FROM num;

SELECT id, jsonb_agg(i) OVER (ORDER BY id ROWS 1 PRECEDING) FROM num;

SELECT id, percentile_disc(0.5) WITHIN GROUP (ORDER BY i) AS median, count(*) OVER () AS groups FROM num GROUP BY id;

-- rounded
-- for {f}: stddev(salary) | variance(grade) | corr(grade, bonus) | stddev(bonus::double precision)
SELECT id, {f} OVER (PARTITION BY active) AS result FROM emp;

-- for {c}: i | s | b | n | d
SELECT id, count(*) OVER (ORDER BY {c} RANGE BETWEEN (SELECT count(*) FROM dept) PRECEDING AND (SELECT count(*) / 2 FROM emp) FOLLOWING) AS n FROM num;
