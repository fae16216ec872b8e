-- Inheritance, partitions, generated columns, identities, dropped columns.

SELECT * FROM vehicle;

SELECT id, wheels, doors FROM car;

SELECT maker, count(*), sum(wheels) FROM vehicle GROUP BY maker;

SELECT v.id, c.doors, t.load FROM vehicle v LEFT JOIN car c USING (id) LEFT JOIN truck t USING (id);

SELECT id FROM vehicle EXCEPT SELECT id FROM truck;

SELECT v.maker FROM vehicle v WHERE NOT EXISTS (SELECT FROM car c WHERE c.id = v.id);

SELECT v.id, w.id AS other FROM vehicle v JOIN vehicle w ON v.wheels = w.wheels AND v.id < w.id;

SELECT wheels, max(id) FROM vehicle WHERE maker IS NOT NULL GROUP BY wheels ORDER BY wheels DESC LIMIT 2;

SELECT id, rank() OVER (ORDER BY wheels) FROM vehicle;

SELECT * FROM vehicle* WHERE wheels = 4;

SELECT * FROM ONLY truck;

-- for {t}: reading | reading_2024 | reading_old | reading_2024_odd | reading_rest
SELECT * FROM {t};

-- for {t}: reading | reading_2024 | reading_old | reading_2024_odd | reading_rest
SELECT sensor, count(*), sum(value), min(day) FROM {t} GROUP BY sensor;

-- for {w}: day > date '2024-01-01' | sensor = 2 | day = date '2024-06-30' AND sensor IN (1, 3) | value IS NULL | day BETWEEN '2023-12-01' AND '2024-03-01' | sensor = 9 OR value > 4
SELECT * FROM reading WHERE {w};

SELECT sensor, day, value - lag(value) OVER (PARTITION BY sensor ORDER BY day, value) AS step FROM reading;

SELECT extract(year FROM day) AS year, count(*), avg(value) FROM reading GROUP BY 1;

SELECT a.sensor, b.day FROM reading a JOIN reading b ON a.day = b.day AND a.sensor < b.sensor;

SELECT DISTINCT ON (sensor) sensor, day, value FROM reading ORDER BY sensor, day DESC, value NULLS LAST;

SELECT sensor FROM reading_old INTERSECT SELECT sensor FROM reading_2024;

SELECT e.name, r.value FROM emp e LEFT JOIN reading r ON r.sensor = e.id AND r.day > e.hired;

SELECT r::text FROM reading r;

-- for {x}: area | tag | area * 2 | area = w * h | tag || label | coalesce(area, -1) | length(tag)
SELECT id, {x} AS result FROM parcel;

SELECT area, count(*) FROM parcel GROUP BY area;

SELECT a.id, b.id AS other FROM parcel a JOIN parcel b ON a.area = b.area AND a.id < b.id;

SELECT tag FROM parcel ORDER BY area DESC NULLS LAST, id LIMIT 3;

SELECT kind, count(*), max(height), min(id) FROM tree GROUP BY kind;

SELECT id, kind, height FROM tree WHERE kind = 'oak' OR height IS NULL;

-- for {q}: * | b, c | a, count(*) OVER () | c + a AS x
SELECT {q} FROM altered;

SELECT a.b, x.c FROM altered a LEFT JOIN altered x ON x.a = a.a AND x.c > 5;

SELECT b, sum(c) FROM altered GROUP BY b HAVING count(*) > 1;

SELECT dept.* FROM dept WHERE dept.id > 2;

SELECT public.dept.name FROM public.dept;

SELECT "dept"."name" AS "Name", 1 AS "order" FROM dept;

SELECT d.n FROM dept AS d(n) WHERE d.n < 4;

-- Plain views.
-- for {v}: staff | payroll | ranked | guarded | nested | chain
SELECT * FROM {v};

-- for {q}: SELECT s.name, p.total FROM staff s JOIN payroll p USING (dept) | SELECT name FROM ranked WHERE place = 1 | SELECT count(*) FROM guarded WHERE t LIKE 'a%' | SELECT dept, total FROM payroll WHERE people > 1 ORDER BY total DESC NULLS LAST LIMIT 2 | SELECT d.name, p.people FROM dept d LEFT JOIN payroll p ON p.dept = d.id | SELECT max(salary) FROM staff | SELECT id FROM staff EXCEPT SELECT id FROM ranked WHERE place > 1 | SELECT name FROM emp WHERE id NOT IN (SELECT id FROM staff) | SELECT s.name, r.place FROM staff s LEFT JOIN ranked r USING (id) | SELECT upper(t) AS t, count(*) FROM guarded GROUP BY 1 | SELECT n.name, d.name AS dept FROM nested n, dept d WHERE d.id = n.people | SELECT x.people FROM payroll x, payroll y WHERE x.people < y.people | SELECT (SELECT total FROM payroll p WHERE p.dept = d.id) AS total FROM dept d
{q};

-- Arrays of XMLTABLE.
-- for {x}: r.* | r.n, r.a[1] | to_jsonb(r) | r.a || 3, r.t, r.b | cardinality(r.a)
SELECT t.id, {x} FROM thing t, XMLTABLE('/a' PASSING t.x COLUMNS n FOR ORDINALITY, a int[] PATH 'concat("{", ., ",7}")', t text PATH '.', b int[] PATH 'concat("{{", ., "},{5}}")', d text[] PATH '@none') AS r;

SELECT t.id, r.* FROM thing t LEFT JOIN XMLTABLE('/a' PASSING t.x COLUMNS a date[] PATH 'concat("{2024-01-0", ., "}")') AS r ON t.f;
