-- Booleans, enums, composites, domains, uuid, networks, bits, money, geometry, XML; casts.

-- for {x}: f | NOT f | f IS TRUE | f IS NOT TRUE | f IS FALSE | f IS UNKNOWN | f AND pct > 10 | f OR pct > 10 | f = true | f::text | f::int | f <> (pct > 10) | coalesce(f, false) | CASE WHEN f THEN 'yes' ELSE 'no' END | f > false | f IN (true, NULL)
SELECT id, {x} AS result FROM thing;

-- for {x}: f | NOT f | f IS NOT FALSE | f = (pct = 50) | true | f AND e = 'sad' | f IS DISTINCT FROM false
SELECT id FROM thing WHERE {x};

-- for {x}: e::text | e > 'sad' | e = 'ok' | e IN ('ok', 'happy') | e <> ALL ('{sad}') | enum_first(e) | enum_last(e) | enum_range(e) | enum_range('ok', e) | 'sad'::mood | coalesce(e, 'ok') | greatest(e, 'ok') | e || '!' | CASE e WHEN 'sad' THEN 1 WHEN 'ok' THEN 2 END | ARRAY[e] | e::text::mood
SELECT id, {x} AS result FROM thing;

-- for {x}: e = 'sad' | e >= 'ok' | e IN ('sad', 'happy') | e BETWEEN 'ok' AND 'happy' | e::text LIKE '%a%' | e = ANY (enum_range('sad'::mood, 'ok'::mood))
SELECT id FROM thing WHERE {x};

-- for {a}: min(e) | max(e) | count(DISTINCT e) | array_agg(e ORDER BY e, id) | mode() WITHIN GROUP (ORDER BY e) | string_agg(e::text, ',' ORDER BY id)
SELECT f, {a} FROM thing GROUP BY f;

-- for {x}: (p).street | (p).zip | (p).zip + 1 | p IS NULL | p IS NOT NULL | p = ROW('Main St', 50667)::place | p::text | ROW(id, f)::text | ROW(code, id)::place | (ROW(code, id)::place).zip | p > ROW('F', 0)::place | row_to_json(p) | coalesce((p).street, 'none') | (p).street IS NULL | ARRAY[p] | p = p
SELECT id, {x} AS result FROM thing;

-- for {x}: (p).zip > 5 | (p).street = 'Main St' | p IS NOT NULL | p = ROW('Main St', 50667)::place | (p).zip IN (1, 9) | p IN (ROW('Main St', 50667)::place, ROW('Oak', 9)::place) | (p).street LIKE 'O%'
SELECT id FROM thing WHERE {x};

SELECT (p).zip AS zip, count(*) FROM thing GROUP BY (p).zip;

SELECT id, (p).* FROM thing;

-- for {x}: pct + 1 | pct * 2 | pct / 3 | pct::text | pct::numeric / 100 | pct > 40 | 50::percentage | coalesce(pct, 0) | code || '!' | length(code) | upper(code) | code::text | code LIKE 'A%' | 'abc'::code | (id % 50)::percentage | nullif(code, '') | pct::percentage
SELECT id, {x} AS result FROM thing;

-- for {a}: sum(pct) | avg(pct) | max(code) | min(pct) | string_agg(code, ',' ORDER BY id) | array_agg(pct ORDER BY id)
SELECT e, {a} FROM thing GROUP BY e;

-- for {x}: u::text | u = '11111111-1111-1111-1111-111111111111' | u < 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' | 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid | coalesce(u, '00000000-0000-0000-0000-000000000000') | u IN ('ffffffff-ffff-ffff-ffff-ffffffffffff') | left(u::text, 4) | u::text::uuid
SELECT id, {x} AS result FROM thing;

-- for {x}: host(net) | network(net) | masklen(net) | netmask(net) | broadcast(net) | family(net) | abbrev(net) | text(net) | set_masklen(net, 16) | net::cidr | cidr::text | net << '192.168.0.0/16' | net <<= cidr | net && cidr | net + 1 | net - 1 | net > '10.0.0.0' | ~net | net & net | inet_same_family(net, cidr) | inet_merge(net, net) | hostmask(net) | trunc(mac) | mac::text | mac > '08:00:2b:01:02:03' | mac & 'ff:ff:ff:00:00:00' | macaddr8_set7bit(mac::macaddr8) | host(cidr) | net = '10.0.0.1'
SELECT id, {x} AS result FROM thing;

-- for {x}: net << '192.168.0.0/16' | net >>= '10.0.0.1' | cidr >> '192.168.1.5' | family(net) = 6 | mac = '08:00:2b:01:02:03' | net BETWEEN '10.0.0.0' AND '172.31.255.255' | net IN ('10.0.0.1', '::1')
SELECT id FROM thing WHERE {x};

-- for {x}: bits & B'1100' | bits|B'0001' | bits # B'1111' | ~bits | bits << 1 | bits >> 2 | bits::int | bits::text | length(vbits) | vbits || B'01' | bit_length(vbits) | substring(bits FROM 2 FOR 2) | get_bit(bits, 0) | set_bit(bits, 1, 1) | bits = B'1010' | bits > B'0101' | vbits::text | position(B'1' IN bits) | overlay(bits PLACING B'11' FROM 2) | bit_count(bits) | 5::bit(4) | bits::bit(2) | octet_length(vbits)
SELECT id, {x} AS result FROM thing;

-- for {x}: cash + '1.50'::money | cash * 2 | cash / 4 | cash / '2'::money | cash::numeric | cash::text | cash > '10'::money | -cash::numeric | cash - cash
SELECT id, {x} AS result FROM thing;

-- for {a}: sum(cash) | max(cash) | min(cash) | bit_and(bits) | bit_or(bits) | bit_xor(bits) | max(net) | min(cidr) | bool_and(f) | bool_or(f) | every(f) | max(u::text) | count(DISTINCT mac) | array_agg(net ORDER BY net, id) | min(net)
SELECT {a} AS result FROM thing;

-- for {x}: pt + point '(1,1)' | pt * point '(2,0)' | pt[0] | pt[1] | pt <-> point '(0,0)' | pt ~= point '(1,2)' | pt <@ bx | bx && box '((0,0),(1,1))' | area(bx) | center(bx) | width(bx) | height(bx) | bx @> pt | circle(pt, 2) | lseg(pt, point '(0,0)') | pt << point '(2,0)' | polygon(bx) | bx::text | diagonal(bx) | box(pt, point '(5,5)') | path(polygon(bx)) | pt::text | area(circle(pt, 1)) | isclosed(path(polygon(bx))) | npoints(polygon(bx)) | bx + point '(1,0)' | pt <-> bx | lseg(bx) ?# lseg '((0,0),(2,2))' | pt |>> point '(0,-2)' | box(circle(pt, 1)) | bx = box '((0,0),(2,2))'
SELECT id, {x} AS result FROM thing;

-- for {x}: pt <@ box '((0,0),(2,2))' | pt <-> point '(0,0)' < 2 | bx && box '((1,1),(5,5))' | pt ~= point '(1,2)' | area(bx) > 1
SELECT id FROM thing WHERE {x};

SELECT a.id, b.id AS other FROM thing a JOIN thing b ON a.bx && b.bx AND a.id < b.id;

SELECT id, pt, bx FROM thing;

-- for {x}: x::text | xpath('/a/text()', x) | xpath_exists('/a', x) | xmlelement(name item, code) | xmlforest(code AS c, id) | xmlconcat(x, '<z/>') | xmlelement(name item, xmlattributes(id AS nr), code) | x IS DOCUMENT | xmlcomment('note') | xmlserialize(CONTENT x AS text) | xmlpi(name php, 'echo') | xmlroot(x, VERSION '1.0')
SELECT id, {x} AS result FROM thing;

-- Casts that say it in other ways.
-- for {x}: CAST(id AS text) | id::text::int | int4(id::numeric) | text 'literal' | date '2024-02-29' | '2024-02-29'::date + id | interval '1 day' * id | CAST(NULL AS int) | '{1,2}'::int[] | '(1,2)'::point | '[1,5)'::int4range | 'true'::boolean | '1.50'::numeric(5,1) | ('a', id)::place IS NULL | id::numeric(6,2) | id::bigint::text | '{"a": 1}'::jsonb -> 'a' | B'101'::int | id::text::varchar(1) | numeric(4,1) '2.25' | 'sad'::mood | '10.0.0.1'::inet | '\x01'::bytea | '12:30'::time | '2024-01-01 10:00+00'::timestamptz | '1 day'::interval | 'a & b'::tsquery | '<a/>'::xml
SELECT id, {x} AS result FROM thing WHERE f;

-- XML of text.
-- for {x}: ('<a>' || id || '</a>')::xml | ('x ' || id)::xml::text | xml(t)
SELECT id, {x} AS x FROM txt WHERE t !~ '[<&]';
