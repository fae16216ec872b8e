-- ORDER BY with LIMIT, OFFSET, FETCH, ties; DISTINCT ON.

-- for {o}: id | id DESC | salary DESC, id | salary DESC NULLS LAST, id | salary NULLS FIRST, id | name, id DESC | hired DESC NULLS LAST, name, id | dept NULLS FIRST, salary DESC, id | active DESC, id | grade % 2, id | length(name), name, id | salary IS NULL, salary, id | 2, 1 | lower(name) DESC, id | coalesce(bonus, 0), id | CASE WHEN active THEN 1 ELSE 2 END, id | -salary, id
-- for {l}: LIMIT 3 | LIMIT 4 OFFSET 2
SELECT id, name, salary FROM emp ORDER BY {o} {l};

-- for {l}: LIMIT 1 | LIMIT 100 | LIMIT ALL | OFFSET 3 | LIMIT 2 OFFSET 1 | LIMIT NULL | FETCH FIRST ROW ONLY | FETCH FIRST 3 ROWS ONLY | OFFSET 2 ROWS FETCH NEXT 2 ROWS ONLY | FETCH FIRST 3 ROWS WITH TIES | OFFSET 1 FETCH FIRST 2 ROWS WITH TIES | LIMIT 1 + 1 | OFFSET 0
SELECT salary FROM emp ORDER BY salary DESC {l};

-- unchanged
-- for {l}: LIMIT 0 | OFFSET 100 | FETCH FIRST 0 ROWS ONLY
SELECT salary FROM emp ORDER BY salary DESC {l};

-- for {t} {c}: num ; n | num ; d | num ; b | txt ; t | txt ; v | txt ; y | moment ; d | moment ; tz | moment ; iv | moment ; tm | doc ; b | list ; i | span ; n | thing ; e | thing ; u | thing ; p | thing ; net | thing ; cash | thing ; ci | extreme ; n | extreme ; d | extreme ; t
SELECT {c} FROM {t} ORDER BY {c} FETCH FIRST 4 ROWS WITH TIES;

-- for {l}: LIMIT 2 | FETCH FIRST 2 ROWS WITH TIES | OFFSET 1 LIMIT 1
SELECT d.name, x.name AS best FROM dept d CROSS JOIN LATERAL (SELECT name FROM emp e WHERE e.dept = d.id ORDER BY salary DESC NULLS LAST, id {l}) x;

-- for {l}: LIMIT 2 | OFFSET 1 | FETCH FIRST 1 ROW WITH TIES
SELECT dept, count(*), sum(salary) FROM emp GROUP BY dept ORDER BY count(*) DESC, dept {l};

-- for {k}: dept | active | grade | dept, active | left(name, 1) | hired IS NULL
SELECT DISTINCT ON ({k}) {k}, id, name FROM emp ORDER BY {k}, salary DESC NULLS LAST, id;

SELECT DISTINCT ON (dept) dept, name FROM emp ORDER BY dept DESC NULLS LAST, hired, id LIMIT 3;

SELECT DISTINCT ON (product) product, qty, price FROM sale ORDER BY product, qty DESC NULLS LAST, price DESC NULLS LAST;

SELECT DISTINCT ON (s.emp) s.emp, e.name, s.at FROM sale s JOIN emp e ON e.id = s.emp ORDER BY s.emp, s.at DESC NULLS LAST, e.name;

SELECT * FROM (SELECT DISTINCT ON (dept) dept, salary FROM emp ORDER BY dept, salary DESC NULLS LAST) s WHERE salary > 4000;

SELECT DISTINCT salary FROM emp ORDER BY salary DESC NULLS LAST LIMIT 3;

SELECT DISTINCT dept, active FROM emp ORDER BY dept, active LIMIT 3;

SELECT id FROM emp WHERE salary = (SELECT salary FROM emp ORDER BY salary DESC NULLS LAST OFFSET 1 LIMIT 1);

SELECT name FROM emp WHERE id IN (SELECT emp FROM work ORDER BY hours DESC NULLS LAST, emp, project LIMIT 3);

SELECT avg(salary) FROM (SELECT salary FROM emp ORDER BY salary DESC NULLS LAST LIMIT 3) s;

SELECT count(*) FROM (SELECT id FROM emp ORDER BY id OFFSET 3) s;

SELECT e.name, d.city FROM emp e JOIN dept d ON d.id = e.dept ORDER BY d.city NULLS LAST, e.salary DESC, e.id LIMIT 5;

SELECT product, sum(qty) AS q FROM sale GROUP BY product ORDER BY q DESC NULLS LAST, product LIMIT 2;

SELECT id, rank() OVER (ORDER BY salary) AS r FROM emp ORDER BY r, id LIMIT 3;

SELECT * FROM (SELECT * FROM emp ORDER BY salary DESC NULLS LAST, id LIMIT 5) s ORDER BY id LIMIT 2;

SELECT id FROM num ORDER BY i, s DESC NULLS LAST, n, id LIMIT 5;

SELECT string_agg(name, ',' ORDER BY id) FROM (SELECT id, name FROM emp ORDER BY salary DESC NULLS LAST, id LIMIT 3) s;

SELECT array_agg(name) FROM (SELECT name FROM emp ORDER BY hired NULLS LAST, id) s;

SELECT id, name FROM emp ORDER BY name;

SELECT e.name FROM emp e ORDER BY (e.dept, e.id) LIMIT 2;

SELECT id FROM txt ORDER BY t COLLATE "C" DESC NULLS LAST, id LIMIT 4;

SELECT de FROM thing ORDER BY de COLLATE german, id LIMIT 4;

SELECT x FROM (SELECT i AS x FROM num UNION ALL SELECT s FROM num) u ORDER BY x DESC NULLS LAST LIMIT 4;
