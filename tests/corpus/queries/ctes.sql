-- WITH.

-- for {m}: AS | AS MATERIALIZED | AS NOT MATERIALIZED
-- for {q}: SELECT * FROM c WHERE n > 1 | SELECT a.dept, b.n FROM c a JOIN c b ON a.n = b.n AND a.dept < b.dept | SELECT e.name, c.n FROM emp e LEFT JOIN c ON c.dept = e.dept | SELECT name FROM dept WHERE id IN (SELECT dept FROM c WHERE total > 5000) | SELECT dept FROM c UNION ALL SELECT n FROM c | SELECT max(n), (SELECT sum(total) FROM c) AS total FROM c | SELECT d.name, (SELECT n FROM c WHERE c.dept = d.id) AS n FROM dept d | SELECT dept, rank() OVER (ORDER BY total DESC NULLS LAST) FROM c
WITH c {m} (SELECT dept, count(*) AS n, sum(salary) AS total FROM emp GROUP BY dept) {q};

WITH a AS (SELECT * FROM emp WHERE active), b AS (SELECT dept, max(salary) AS top FROM a GROUP BY dept) SELECT a.name, b.top FROM a JOIN b ON a.dept = b.dept AND a.salary = b.top;

WITH a(x, y) AS (SELECT id, name FROM dept) SELECT x, y FROM a WHERE x > 2;

WITH a AS (SELECT id FROM emp), b AS (SELECT emp FROM work) SELECT * FROM a EXCEPT SELECT * FROM b;

WITH a AS (WITH b AS (SELECT id, i FROM num WHERE i > 0) SELECT id, i * 2 AS j FROM b) SELECT sum(j) FROM a;

WITH v AS (VALUES (1, 'one'), (2, 'two')) SELECT e.name, v.column2 AS word FROM emp e JOIN v ON v.column1 = e.dept;

WITH v(n, word) AS (VALUES (2, 'two'), (3, 'three')) SELECT d.name, v.word FROM dept d LEFT JOIN v ON v.n = d.id;

SELECT d.name, (WITH t AS (SELECT salary FROM emp e WHERE e.dept = d.id) SELECT max(salary) - min(salary) FROM t) AS spread FROM dept d;

SELECT * FROM (WITH t AS (SELECT DISTINCT product FROM sale) SELECT count(*) AS products FROM t) s, (SELECT count(*) AS people FROM emp) p;

WITH emp AS (SELECT id, name FROM dept) SELECT * FROM emp;

WITH unused AS (SELECT * FROM sale) SELECT count(*) FROM dept;

WITH total AS (SELECT sum(salary) AS s FROM emp) SELECT name, round(salary / s, 3) AS share FROM emp, total;

WITH a AS (SELECT 1 AS one) SELECT e.id + a.one AS x FROM emp e, a;

WITH monthly AS (SELECT date_trunc('month', at) AS m, sum(qty) AS q FROM sale GROUP BY 1) SELECT m, q, q - lag(q) OVER (ORDER BY m) AS change FROM monthly;

WITH w AS (SELECT emp, sum(hours) AS h FROM work GROUP BY emp), r AS (SELECT emp, h, rank() OVER (ORDER BY h DESC NULLS LAST) AS place FROM w) SELECT e.name, r.h FROM r JOIN emp e ON e.id = r.emp WHERE place <= 2;

WITH a AS (SELECT id FROM num WHERE i > 5) SELECT count(*) FROM a x, a y WHERE x.id <= y.id;

WITH s AS (SELECT product, price FROM sale ORDER BY price DESC NULLS LAST, product NULLS LAST LIMIT 3) SELECT product, count(*) FROM s GROUP BY product;

WITH a AS (TABLE altered) SELECT a.a, count(*) FROM a GROUP BY a.a;
