-- What only later versions of PostgreSQL know.

-- since 16
-- for {x}: i IS JSON VALUE | t IS JSON | t IS NOT JSON OBJECT | t IS JSON SCALAR
SELECT id, {x} AS result FROM (SELECT id, t, i::text AS i FROM txt JOIN num USING (id)) s;

-- since 16
-- for {x}: JSON_OBJECT('i' VALUE i, 'n' VALUE n) | JSON_ARRAY(i, s, n) | JSON_OBJECT('i': i ABSENT ON NULL) | JSON_ARRAY(i, s NULL ON NULL) | JSON_OBJECT('k' VALUE i RETURNING jsonb) | JSON_ARRAY(1, i RETURNING jsonb)
SELECT id, {x} AS result FROM num;

-- since 16
-- for {x}: 0x1F + i | 1_000 + i | 0b101 | 0o17 + i | i::text::int + 0xA
SELECT id, {x} AS result FROM num WHERE i IS NOT NULL;

-- since 16
-- for {x}: date_add(tz, interval '1 day', 'Europe/Berlin') | date_subtract(tz, interval '1 day', 'UTC')
SELECT id, {x} AS result FROM moment;

-- since 16
SELECT x.id FROM (SELECT id FROM emp) AS x JOIN (SELECT id FROM dept) USING (id);

-- since 16
SELECT count(*) FROM (SELECT * FROM emp WHERE active);

-- since 16
-- for {x}: any_value(dept) | min(salary) FILTER (WHERE active)
SELECT dept, {x} AS result FROM emp GROUP BY dept;

-- since 17
-- for {x}: JSON_VALUE(b, '$.a') | JSON_QUERY(b, '$.b.c') | JSON_EXISTS(b, '$.t') | JSON_VALUE(b, '$.a' RETURNING numeric NULL ON ERROR) | JSON_QUERY(b, '$.b' WITH WRAPPER) | JSON_VALUE(b, '$.t' DEFAULT 'none' ON EMPTY) | JSON(b::text) | JSON_SERIALIZE(b) | JSON_SCALAR(id)
SELECT id, {x} AS result FROM doc;

-- since 17
-- for {w}: JSON_EXISTS(b, '$.a') | JSON_VALUE(b, '$.a') = '1' | JSON_QUERY(b, '$.b.c') IS NOT NULL
SELECT id FROM doc WHERE {w};

-- since 17
-- for {x}: to_bin(i) | to_oct(i) | to_bin(b)
SELECT id, {x} AS result FROM num;

-- since 17
-- for {x}: jsonb_path_query_first(b, '$.a.number()', silent => true) | jsonb_path_query_first(b, '$.a.string()', silent => true)
SELECT id, {x} AS result FROM doc b;

-- since 17
-- for {x}: iv = 'infinity' | iv + 'infinity' | ts - interval 'infinity'
SELECT id, {x} AS result FROM moment;

-- since 18
-- for {x}: array_sort(i) | array_reverse(i) | array_sort(t, true)
SELECT id, {x} AS result FROM list;

-- since 18
-- for {x}: casefold(t) | crc32(convert_to(t, 'UTF8')) | reverse(y) | md5(t) | y::text::bytea | i::bytea
SELECT txt.id, {x} AS result FROM txt LEFT JOIN num ON num.id = txt.id;

-- since 18
-- for {x}: gamma(abs(d) / 100 + 1) | lgamma(abs(d) + 1)
SELECT id, {x} AS result FROM num;
