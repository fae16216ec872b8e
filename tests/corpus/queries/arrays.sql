-- Arrays.

-- for {x}: i[1] | t[2] | i[2:3] | i[:2] | i[2:] | i[-1] | i[id] | array_length(i, 1) | cardinality(i) | array_ndims(i) | array_dims(i) | array_lower(i, 1) | array_upper(i, 1) | i || 5 | 5 || i | i || i | t || 'z'::text | array_append(i, 9) | array_prepend(9, i) | array_cat(t, t) | array_remove(i, 1) | array_replace(i, 1, 100) | array_position(i, 2) | array_positions(i, -1) | array_to_string(i, ',') | array_to_string(t, '-', '*') | i <> ARRAY[1, 2] | i < '{2}' | i @> ARRAY[1] | i <@ ARRAY[1, 2, 3, 4] | i && ARRAY[2, 9] | 1 = ANY (i) | 2 = ALL (i) | 5 > ALL (i) | 'a' = ANY (t) | NOT (1 = ANY (i)) | 1 <> ALL (i)
--   | i::text | i::bigint[] | i::text[] | i::numeric[] | n::text[] | n::int[] | t::varchar[] | d::text[] | d[1] + 1 | b[1] | ARRAY[i[1], id] | ARRAY[t[1], 'x'] | ARRAY[i, i] | ARRAY[]::int[] || i | coalesce(i, '{}') | i IS NULL | array_fill(id, ARRAY[2]) | m[1][1] | m[2:2] | m[1][2] IS NULL | array_ndims(m) | cardinality(m) | m || m | m @> ARRAY[1, 2] | m::text | array_length(m, 2) | trim_array(coalesce(i, '{1}') || 1, 1) | string_to_array(t[1], 'a') | n[1] * 2 | i[1] + i[2] | greatest(i[1], i[2]) | i || NULL::int | (i || 7)[1] | CASE WHEN cardinality(i) > 2 THEN i ELSE '{0}' END
SELECT id, {x} AS result FROM list;

-- for {x}: i[1] = 1 | t[1] = 'a' | 2 = ANY (i) | 'b' = ANY (t) | i @> ARRAY[1, 2] | t && ARRAY['c', 'größe'] | i = '{}' | cardinality(i) > 2 | array_length(t, 1) = 3 | i IS NOT NULL AND i <> '{}' | 1 < ALL (i) | 3 >= SOME (i) | id = ANY (i) | NOT (2 = ANY (i)) | t[1] LIKE 'a%' | t[1] ~~ ANY (t) | d[1] > date '2023-12-31' | b[1] | (n[1], i[1]) > (1, 1) | i > '{2}' | array_position(i, 3) IS NOT NULL | m = '{{1,2},{3,4}}' | i && (SELECT array_agg(src) FROM edge)
SELECT id FROM list WHERE {x};

-- for {x}: i | t | n | d | b
SELECT id, x FROM list, unnest({x}) AS x;

-- for {x}: i | t | m
SELECT id, unnest({x}) AS element FROM list;

-- for {x}: i | t | n
SELECT x AS element, count(*), min(id) FROM list, unnest({x}) AS x GROUP BY x;

SELECT id, x, nr FROM list, unnest(i) WITH ORDINALITY AS u(x, nr) WHERE nr < 3;

SELECT id, x, y FROM list, unnest(i, t) AS u(x, y);

SELECT id, x, y FROM list LEFT JOIN LATERAL ROWS FROM (unnest(i), unnest(t)) AS u(x, y) ON x > 1;

SELECT id, generate_subscripts(i, 1) AS at FROM list;

SELECT id, i[s] AS element FROM list, generate_subscripts(i, 1) AS s;

-- for {x}: sum(x) | max(x) | count(*) | array_agg(x ORDER BY x DESC) | avg(x) | bool_and(x > 0) | string_agg(x::text, '/' ORDER BY x)
SELECT id, (SELECT {x} FROM unnest(i) AS x) AS result FROM list;

-- for {x}: ARRAY(SELECT x FROM unnest(i) AS x WHERE x > 1) | ARRAY(SELECT DISTINCT x FROM unnest(i) AS x ORDER BY x) | ARRAY(SELECT x * 2 FROM unnest(i) AS x ORDER BY x DESC LIMIT 2) | ARRAY(SELECT upper(x) FROM unnest(t) AS x ORDER BY 1)
SELECT id, {x} AS result FROM list;

-- for {a}: array_agg(i ORDER BY id) | array_agg(n ORDER BY n DESC NULLS LAST, id) | array_agg(DISTINCT i ORDER BY i) | array_agg(i ORDER BY id) FILTER (WHERE i > 5) | array_agg(d ORDER BY id) | (array_agg(id ORDER BY i DESC NULLS LAST, id))[1] | cardinality(array_agg(i)) | array_agg(CASE WHEN i > 0 THEN i END ORDER BY id) | array_length(array_agg(DISTINCT s), 1) | array_to_string(array_agg(i ORDER BY i), ',')
SELECT {a} AS result FROM num;

-- for {a}: array_agg(name ORDER BY id) | array_agg(salary ORDER BY salary, id) | array_agg(hired ORDER BY id) | array_agg(active ORDER BY id) | array_agg(ROW(id, name)::text ORDER BY id) | array_agg(name || '' ORDER BY name, id) | (array_agg(name ORDER BY salary DESC NULLS LAST, id))[1:2] | array_agg(DISTINCT grade ORDER BY grade)
SELECT dept, {a} AS result FROM emp GROUP BY dept;

SELECT a.id, b.id AS other FROM list a JOIN list b ON a.i && b.i AND a.id < b.id;

SELECT l.id, e.name FROM list l JOIN emp e ON e.id = ANY (l.i);

SELECT e.name FROM emp e WHERE e.id = ANY (SELECT unnest(i) FROM list);

SELECT id, i FROM list ORDER BY i DESC NULLS LAST, id LIMIT 3;

SELECT max(i), min(t), max(n) AS most FROM list;

SELECT e.id, ARRAY(SELECT w.project FROM work w WHERE w.emp = e.id ORDER BY w.project) AS projects FROM emp e;

SELECT d.id, ARRAY(SELECT e.name FROM emp e WHERE e.dept = d.id ORDER BY e.salary DESC NULLS LAST, e.id LIMIT 2) AS top FROM dept d;

SELECT ARRAY[min(i), max(i)] AS ends, ARRAY[sum(n), NULL] AS sums FROM num;

SELECT array_agg(x ORDER BY x) FROM (SELECT DISTINCT unnest(i) AS x FROM list) s;
