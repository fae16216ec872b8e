-- Names of objects as text, which views write as they are now.

-- for {x}: id::regclass::text | (1246 + id)::oid::regclass::text | 'no. ' || (15 + id)::oid::regtype | concat((1241 + id)::oid::regproc) | to_jsonb((10 + id)::oid::regnamespace) | ARRAY[(99 + id)::oid::regcollation]::text | ROW((3763 + id)::oid::regdictionary)::text
SELECT id, {x} AS x FROM num;

-- for {a}: string_agg((15 + id)::oid::regtype::text, ',' ORDER BY id) | json_agg((15 + id)::oid::regtype ORDER BY id)::text | min((1246 + id)::oid::regclass::text)
SELECT s, {a} AS x FROM num GROUP BY s;

SELECT id FROM num WHERE (15 + id)::oid::regtype::text LIKE 'int%';

-- for {x}: t || id | t | t COLLATE "C" | l
SELECT id, collation for ({x}) AS c FROM txt;

SELECT v, collation for (max(l)) AS c FROM txt GROUP BY v;

-- The owner of a view.

-- for {x}: current_user | user || '!' | current_role::text | upper(current_user)
SELECT id, {x} AS x FROM num;

SELECT id FROM emp WHERE name <> current_user;
