-- Documents: json and jsonb.

-- for {c}: j | b
-- for {x}: -> 'a' | ->> 'a' | -> 'b' -> 'c' | -> 'b' -> 'c' ->> 0 | #> '{b,c}' | #>> '{b,c,1}' | -> 0 | ->> -1 | #>> '{}' | -> 'missing' | ->> 't'
SELECT id, {c} {x} AS result FROM doc;

-- for {x}: b = '{}' | b @> '{"a": 1}' | b <@ '{"a": 1, "b": {"c": [1, 2, 3]}, "t": "text", "x": 1}' | b ? 'a' | b ?| ARRAY['a', 'z'] | b ?& ARRAY['a', 'b'] | b @? '$.a' | b @@ '$.a == 1' | b ->> 'a' = '1' | b -> 'a' = '1' | jsonb_typeof(b) = 'object' | b -> 'b' ? 'c' | (b ->> 't') LIKE 't%' | b > '[]' | b IN ('{}', '[]') | b @> '[1]' | j ->> 't' = 'text' | json_typeof(j) = 'array' | (b -> 'a')::text = '1' | b #>> '{b,c,0}' = '1' | b -> 'nested' -> 'deep' IS NOT NULL | b ? 'new' OR b ? 't'
SELECT id FROM doc WHERE {x};

-- for {x}: b || '{"x": true}' | b - 'a' | b #- '{b,c,0}' | b - ARRAY['a', 't'] | jsonb_set(b, '{b}', '1') | jsonb_set(b, '{q}', '"new"', true)
SELECT id, {x} AS result FROM doc WHERE jsonb_typeof(b) = 'object';

-- for {x}: jsonb_insert(b, '{0}', '"first"') | jsonb_array_length(b) | json_array_length(j) | b - 0 | b - -1 | b || '[9]' | b -> 1
SELECT id, {x} AS result FROM doc WHERE jsonb_typeof(b) = 'array' AND json_typeof(j) = 'array';

-- for {x}: jsonb_typeof(b) | json_typeof(j) | jsonb_strip_nulls(b) | json_strip_nulls(j) | jsonb_pretty(b) | b::text | j::text | j::jsonb | b::json | jsonb_path_query_first(b, '$.b.c[*]') | jsonb_path_query_array(b, '$.**.k') | jsonb_path_exists(b, '$.a ? (@ > 1)') | jsonb_extract_path(b, 'b', 'c') | jsonb_extract_path_text(b, 'a') | json_extract_path_text(j, 'b', 'c') | to_jsonb(b) | jsonb_build_array(id, b) | jsonb_build_object('id', id, 'b', b) | json_build_object('id', id, 'j', j) | b['a'] | b['b']['c'][0] | coalesce(b ->> 'a', 'none') | (b ->> 'a') || '!' | jsonb_path_match(b, 'exists($.a)') | jsonb_set_lax(coalesce(b, '{}'), '{}', NULL, true, 'return_target')
SELECT id, {x} AS result FROM doc;

-- for {x}: to_json(i) | to_jsonb(n) | to_jsonb(d) | json_build_array(i, n, NULL) | jsonb_build_object('i', i, 'list', ARRAY[i, s]) | row_to_json(num) | to_jsonb(num) | to_jsonb(num) - 'id' | to_jsonb(num) ->> 'i' | row_to_json(ROW(i, n)) | json_build_object(id, i) | jsonb_build_object('x', CASE WHEN i > 5 THEN 'many' END) | (to_jsonb(i) #>> '{}')::int | to_jsonb(ARRAY[i, s]) | to_jsonb(i > 0)
SELECT id, {x} AS result FROM num;

-- for {x}: to_json(t) | to_jsonb(t) | jsonb_build_array(t, v, c) | json_object(ARRAY['t', 'v'], ARRAY[t, v]) | jsonb_object(ARRAY[id::text, t]) | to_jsonb(txt) | json_build_object('t', t, 'y', y)
SELECT id, {x} AS result FROM txt;

-- for {x}: to_jsonb(d) | to_jsonb(ts) | to_jsonb(tz) | to_json(iv) | jsonb_build_object('d', d, 'tz', tz) | row_to_json(moment) | to_jsonb(tm)
SELECT id, {x} AS result FROM moment;

-- for {x}: to_jsonb(f) | to_jsonb(e) | to_jsonb(p) | to_jsonb(u) | to_jsonb(net) | to_jsonb(cash) | to_json(pt) | to_jsonb(code) | jsonb_build_object('e', e, 'p', p) | to_jsonb(bits)
SELECT id, {x} AS result FROM thing;

-- for {x}: to_jsonb(i) | array_to_json(i) | to_jsonb(t) | array_to_json(m) | to_jsonb(list) | jsonb_build_object('t', t)
SELECT id, {x} AS result FROM list;

-- for {a}: jsonb_agg(i ORDER BY id) | json_agg(i ORDER BY id) | jsonb_agg(n ORDER BY n, id) | jsonb_object_agg(id, i) | json_object_agg(id, s ORDER BY id) | jsonb_agg(num ORDER BY id) | jsonb_agg(jsonb_build_object('i', i, 'n', n) ORDER BY id) | jsonb_agg(DISTINCT i) | jsonb_agg(i ORDER BY id) FILTER (WHERE i > 0) | json_agg(num ORDER BY id) | jsonb_agg(to_jsonb(num) - 'id' ORDER BY id)
SELECT {a} AS result FROM num;

-- for {a}: jsonb_agg(name ORDER BY id) | json_agg(row_to_json(emp) ORDER BY id) | jsonb_object_agg(name || id, salary) | jsonb_agg(jsonb_build_object('name', name, 'hired', hired) ORDER BY name, id) | to_jsonb(array_agg(name ORDER BY id)) | jsonb_agg(salary ORDER BY salary DESC, id)
SELECT dept, {a} AS result FROM emp GROUP BY dept;

-- Elements of a document.
-- for {f}: jsonb_each(b) | jsonb_each_text(b) | jsonb_object_keys(b)
SELECT id, x.* FROM doc, {f} AS x WHERE jsonb_typeof(b) = 'object';

-- for {f}: jsonb_array_elements(b) | jsonb_array_elements_text(b) | json_array_elements(j)
SELECT id, x.* FROM doc, {f} AS x WHERE jsonb_typeof(b) = 'array' AND json_typeof(j) = 'array';

-- for {f}: jsonb_path_query(b, '$.b.c[*]') | jsonb_array_elements(CASE jsonb_typeof(b) WHEN 'array' THEN b END) | jsonb_object_keys(CASE jsonb_typeof(b) WHEN 'object' THEN b END)
SELECT id, {f} AS element FROM doc;

SELECT key, count(*) FROM doc, jsonb_each(b) WHERE jsonb_typeof(b) = 'object' GROUP BY key;

SELECT d.id, r.a, r.t FROM doc d, jsonb_to_record(d.b) AS r(a text, t text) WHERE jsonb_typeof(d.b) = 'object';

SELECT d.id, r.k FROM doc d, jsonb_to_recordset(d.b -> 'z') AS r(k int) WHERE d.b ? 'z';

SELECT d.id, e.value ->> 'k' AS k FROM doc d CROSS JOIN LATERAL jsonb_array_elements(d.b -> 'z') AS e WHERE jsonb_typeof(d.b -> 'z') = 'array';

SELECT d.id, e.n, e.value FROM doc d LEFT JOIN LATERAL jsonb_array_elements(CASE jsonb_typeof(d.b) WHEN 'array' THEN d.b END) WITH ORDINALITY AS e(value, n) ON true;

SELECT id, (SELECT sum(x::int) FROM jsonb_array_elements_text(b #> '{b,c}') AS x) AS total FROM doc WHERE jsonb_typeof(b #> '{b,c}') = 'array';

SELECT id, (jsonb_populate_record(NULL::place, jsonb_build_object('street', t, 'zip', id))).* FROM txt;

SELECT id, jsonb_populate_record(ROW('x', 1)::place, '{"zip": 7}') AS place FROM doc WHERE b ? 'a';

SELECT b ->> 'a' AS a, count(*), jsonb_agg(id ORDER BY id) FROM doc GROUP BY b ->> 'a';

SELECT DISTINCT jsonb_typeof(b), b -> 'a' FROM doc;

SELECT a.id, b.id AS other FROM doc a JOIN doc b ON a.b @> b.b AND a.id <> b.id;

SELECT e.name, d.b ->> 't' AS t FROM emp e LEFT JOIN doc d ON (d.b ->> 'a') = e.id::text;

SELECT id, b FROM doc ORDER BY b, id LIMIT 4;

SELECT id, rank() OVER (ORDER BY b) FROM doc;

SELECT max(b ->> 'a'), min(b ->> 't'), count(b -> 'b') AS n FROM doc;

SELECT sum((b ->> 'a')::numeric) FROM doc WHERE b ->> 'a' ~ '^[0-9.]+$';
