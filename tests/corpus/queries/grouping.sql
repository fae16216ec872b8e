-- GROUP BY, HAVING, DISTINCT, grouping sets.

-- for {k}: dept | dept, active | grade % 2 | dept IS NULL | extract(year FROM hired) | left(name, 1) | salary > 4000 | dept, boss, grade | coalesce(dept, 0) | CASE WHEN grade > 4 THEN 'senior' ELSE 'junior' END | upper(name) | date_trunc('year', hired) | salary::int / 1000 | boss = dept
-- for {a}: count(*) | sum(salary), max(hired)
SELECT {k}, {a} FROM emp GROUP BY {k};

-- for {h}: count(*) > 1 | sum(salary) > 8000 | max(hired) > date '2020-01-01' | dept > 2 | dept IS NULL OR count(*) = 1 | avg(bonus) < 60 | bool_or(active) | count(DISTINCT boss) = 1 | min(name) < 'D' | NOT bool_and(active) | count(*) FILTER (WHERE active) > 0 | max(salary) - min(salary) > 100 | sum(salary) BETWEEN 5000 AND 20000 | string_agg(name, '' ORDER BY name) LIKE '%B%' | count(*) % 2 = 0
SELECT dept, count(*) FROM emp GROUP BY dept HAVING {h};

-- for {d}: dept | dept, active | boss, dept | active | salary > 4000 | grade % 3 | left(name, 1), dept | hired | dept IS NULL, active | name
SELECT DISTINCT {d} FROM emp;

-- for {d}: product, price | product | emp, product, qty, price, at | at::date | qty * price | qty > 1, price
SELECT DISTINCT {d} FROM sale;

SELECT DISTINCT e.dept, d.city FROM emp e LEFT JOIN dept d ON d.id = e.dept;

SELECT DISTINCT dept, count(*) FROM emp GROUP BY dept, active;

SELECT DISTINCT count(*) FROM emp GROUP BY dept;

-- for {g}: GROUPING SETS ((dept), (active)) | GROUPING SETS ((dept, active), (dept), ()) | ROLLUP (dept, active) | CUBE (dept, active) | GROUPING SETS (ROLLUP (dept), active) | dept, ROLLUP (active) | DISTINCT ROLLUP (dept, active), ROLLUP (active) | dept, GROUPING SETS ((active), ()) | CUBE (dept), active | ROLLUP ((dept, active)) | GROUPING SETS ((), ()) , dept, active | GROUPING SETS (CUBE (dept, active))
-- for {a}: count(*) | sum(salary) | grouping(dept) AS d, grouping(active) AS a, count(*)
SELECT dept, active, {a} FROM emp GROUP BY {g};

-- for {g}: ROLLUP (product, at::date) | CUBE (product, at::date) | GROUPING SETS ((product), (at::date))
SELECT product, at::date, sum(qty), grouping(product, at::date) FROM sale GROUP BY {g};

-- for {h}: grouping(dept) = 1 | count(*) > 2 | dept IS NOT NULL | grouping(dept, active) < 2
SELECT dept, active, count(*) FROM emp GROUP BY ROLLUP (dept, active) HAVING {h};

SELECT coalesce(dept::text, 'all') AS dept, CASE grouping(active) WHEN 1 THEN 'both' ELSE active::text END AS active, avg(salary) FROM emp GROUP BY CUBE (dept, active);

SELECT d.city, e.active, count(*), sum(e.salary) FROM emp e JOIN dept d ON d.id = e.dept GROUP BY ROLLUP (d.city, e.active);

SELECT extract(year FROM at) AS year, extract(month FROM at) AS month, sum(qty) FROM sale GROUP BY ROLLUP (1, 2);

SELECT sum(n) FROM (SELECT dept, active, count(*) AS n FROM emp GROUP BY CUBE (dept, active)) s;

SELECT dept, active, count(*), rank() OVER (ORDER BY count(*) DESC) FROM emp GROUP BY ROLLUP (dept, active);

-- A key determines the other columns.
SELECT id, name, salary, count(*) FROM emp GROUP BY id;

SELECT d.id, d.name, d.budget, count(e.id), max(e.salary) FROM dept d LEFT JOIN emp e ON e.dept = d.id GROUP BY d.id;

SELECT d.name, upper(d.city) AS city, sum(e.salary) FROM dept d JOIN emp e ON e.dept = d.id GROUP BY d.id HAVING d.budget > 100;

SELECT dept AS d, count(*) FROM emp GROUP BY d;

SELECT left(name, 1) AS initial, count(*) FROM emp GROUP BY initial HAVING count(*) > 1;

SELECT e.dept, sum(w.hours) FROM emp e JOIN work w ON w.emp = e.id GROUP BY e.dept;

SELECT p.dept, e.dept AS other, count(*) FROM work w JOIN emp e ON e.id = w.emp JOIN project p ON p.id = w.project GROUP BY p.dept, e.dept;

-- for {t} {c}: num ; n | num ; d | txt ; c | txt ; y | moment ; tz | moment ; iv | doc ; b | list ; t | span ; n | thing ; e | thing ; p | thing ; net | thing ; bits
SELECT {c}, count(*), min(id), max(id) FROM {t} GROUP BY {c} HAVING count(*) >= 1 AND max(id) > 2;

-- for {t} {c}: num ; n | txt ; t | moment ; d | thing ; e | list ; i | doc ; b
SELECT {c}, id % 2 AS odd, count(*) FROM {t} GROUP BY ROLLUP (id % 2, {c});

-- for {t}: num | txt | moment | list | span | dept | emp | altered | edge | work
SELECT DISTINCT * FROM {t};

SELECT count(*) FROM (SELECT DISTINCT i, s FROM num) s;

SELECT i, s, count(*) FROM num GROUP BY GROUPING SETS ((i, s), (i), (s), ());

SELECT GROUPING(i) AS g, i, sum(s) FROM num GROUP BY CUBE (i) HAVING sum(s) IS NOT NULL;

SELECT a, b, c, count(*) FROM altered GROUP BY a, b, c;
