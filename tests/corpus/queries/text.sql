-- Functions, operators and patterns of text.

-- for {x}: upper(t) | lower(t) | initcap(t) | length(t) | char_length(t) | octet_length(t) | bit_length(t) | reverse(t) | md5(t) | ascii(t) | trim(t) | btrim(t) | ltrim(t) | rtrim(t)
--   | trim(BOTH 'a' FROM t) | trim(LEADING ' ' FROM t) | trim(TRAILING 'e' FROM t) | btrim(t, ' ae') | ltrim(t, 'ab') | rtrim(t, 'le')
--   | left(t, 3) | left(t, -2) | right(t, 3) | right(t, -1) | substr(t, 2) | substr(t, 2, 3) | substring(t FROM 2 FOR 2) | substring(t FROM 3) | substring(t FOR 2)
--   | substring(t FROM '[a-z]+') | substring(t SIMILAR 'a#"_*#"e' ESCAPE '#') | replace(t, 'a', 'xx') | translate(t, 'abc', '12') | overlay(t PLACING '**' FROM 2) | overlay(t PLACING '*' FROM 2 FOR 3)
--   | position('a' IN t) | strpos(t, 'p') | split_part(t, ' ', -1) | lpad(t, 8) | lpad(t, 8, '.-') | rpad(t, 6, 'x') | repeat(t, 2) | concat(t, v, c) | concat_ws('/', t, v, w)
--   | t || v | t || 1 | v || c | quote_ident(t) | quote_literal(t) | quote_nullable(t) | format('%s-%I', t, coalesce(v, 'null')) | format('%L', t) | format('%1$s %2$s %1$s', t, w)
--   | starts_with(t, 'a') | t ^@ 'app' | regexp_replace(t, '[aeiou]', '#') | regexp_replace(t, '[aeiou]', '#', 'g') | regexp_replace(t, '(\w+) (\w+)', '\2 \1') | regexp_match(t, '(.)(p+)')
--   | regexp_split_to_array(t, ',') | string_to_array(t, ',') | string_to_array(t, NULL) | string_to_array(t, ',', 'two') | array_to_string(string_to_array(t, 'a'), 'A') | to_hex(length(t))
--   | encode(convert_to(t, 'UTF8'), 'hex') | normalize(t) | t IS NORMALIZED | unistr('d\0061t' || '\0061') | parse_ident('a.b')
--   | regexp_count(t, 'a') | regexp_instr(t, 'p') | regexp_substr(t, 'p+') | regexp_like(t, '^a') | string_to_array(t, 'n') @> ARRAY['a'] | t COLLATE "C" | hashtext(t)
SELECT id, {x} AS result FROM txt;

-- for {x}: t LIKE 'a%' | t LIKE '%an%' | t LIKE '_pple' | t NOT LIKE '%a%' | t LIKE 'a!_b!%c' ESCAPE '!' | t LIKE w | t ILIKE 'A%' | t NOT ILIKE '%B%' | t ~~ 'b%' | t ~~* 'b%' | t SIMILAR TO '(a|b)%'
--   | t NOT SIMILAR TO '%e' | t ~ '^[a-c]' | t ~* 'banana' | t !~ 'p' | t !~* 'P{2}' | t ~ '[0-9]|o' | t ~ '^\s' | t LIKE ANY (ARRAY['a%', 'T%']) | t LIKE ALL (ARRAY['%a%', '%e']) | t NOT LIKE ALL (ARRAY['%p%']) | t ILIKE ANY (ARRAY['%B%'])
--   | t = 'apple' | t <> 'apple' | t < 'b' | t >= 'apple' | t BETWEEN 'a' AND 'c' | t IN ('apple', '') | t NOT IN ('apple', 'x') | t = '' | t IS NULL OR t > 'n' | length(t) > 5 | t || v = 'appleApple' | upper(t) = 'APPLE' | t = v | lower(v) = t | t > v | t = ANY (ARRAY['apple', 'größe'])
--   | (t, v) = ('apple', 'Apple') | t COLLATE "C" < 'B' COLLATE "C" | starts_with(t, 'one') | position(w IN t) > 0 | t LIKE '%' || w || '%' | t = 'größe' | t > 'größe'
SELECT id, t FROM txt WHERE {x};

-- for {c}: v | c | l | y
-- for {o}: = | <> | < | >=
SELECT a.id, b.id AS other FROM txt a JOIN txt b ON a.{c} {o} b.{c} WHERE a.id <= b.id;

-- Types of text beside one another.
-- for {x}: v = t | c = v | c = 'ab' | c = 'abc' | c::text = 'abc' | v::char(3) = c | l = t | t::varchar(3) = 'app' | c LIKE 'ab%' | t::name = 'apple'
SELECT id FROM txt WHERE {x};

-- for {x}: length(c) | octet_length(c) | c || '|' | upper(c) | c::text | c::varchar || '.' | v::text | v::char(2) | t::varchar(3) | t::char(10) | t::name | left(c, 2) | trim(c) | coalesce(v, t) | coalesce(c, 'none') | greatest(t, v) | least(t, v, 'b') | nullif(t, v)
--   | v || NULL | concat(c, NULL) | substr(v, 2) | initcap(v) | char_length(c)
SELECT id, {x} AS result FROM txt;

-- Bytes.
-- for {x}: length(y) | octet_length(y) | y || '\x00'::bytea | encode(y, 'hex') | encode(y, 'base64') | encode(y, 'escape') | md5(y) | sha256(y) | sha512(y) | substring(y FROM 2) | substr(y, 1, 2) | overlay(y PLACING '\x0000'::bytea FROM 1)
--   | position('\x62'::bytea IN y) | btrim(y, '\x61'::bytea) | y::text | bit_count(y) | left(encode(y, 'hex'), 2) | decode(encode(y, 'base64'), 'base64') | y = '\x616263' | y > '\x61' | y LIKE 'a%'::bytea
SELECT id, {x} AS result FROM txt;

-- for {x}: get_byte(y, 0) | get_bit(y, 3) | set_byte(y, 0, 65)
SELECT id, {x} AS result FROM txt WHERE length(y) > 0;

-- Literals.
-- for {x}: 'it''s' | E'a\tb' | $$dollar$$ | U&'\0061' | '' | 'a'::char(3) || '|' | 'x'::text || NULL | B'101' | X'1F' | '\x41'::bytea
SELECT id, {x} AS result FROM txt WHERE length(t) > 3;

-- for {x}: length(t) | upper(t) | t || t | left(t, 5) | octet_length(t) | md5(t) | t > 'a' | t = ''
SELECT id, {x} AS result FROM extreme;

-- Grouping and sorting by text.
-- for {x}: t | v | c | lower(v) | left(t, 1) | length(t) | t COLLATE "C" | t IS NULL | substr(v, 1, 1) || c | coalesce(t, 'none') | y
SELECT {x} AS key, count(*), min(id) FROM txt GROUP BY 1;

-- for {a}: min(t) | max(t) | min(v) | max(c) | string_agg(t, ',' ORDER BY id) | string_agg(v, '' ORDER BY v, id) | string_agg(DISTINCT v, '+' ORDER BY v) | count(DISTINCT t) | array_agg(t ORDER BY t, id) | string_agg(y, '\x00'::bytea ORDER BY id) | max(length(t)) | min(t COLLATE "C") | string_agg(t, w ORDER BY id) | bool_or(t LIKE 'a%') | max(l)
SELECT {a} AS result FROM txt;

-- for {a}: min(t) | string_agg(t, '/' ORDER BY id DESC) | count(DISTINCT lower(v)) | sum(length(t)) | max(upper(t))
SELECT c, {a} AS result FROM txt GROUP BY c;

-- Nondeterministic and other collations.
-- for {x}: ci = 'hello' | ci IN ('HELLO', 'nobody') | ci < 'm' | ci <> 'world' | upper(ci COLLATE "C") = 'HELLO' | de < 'b' | de > 'Z' | de = 'Apfel' | ci = de COLLATE caseless
SELECT id, ci, de FROM thing WHERE {x};

-- for {x}: ci | de
SELECT count(DISTINCT {x}) AS different, count(*) FROM thing;

SELECT min(lower(ci COLLATE "C")) AS ci, count(*) FROM thing GROUP BY ci;

SELECT de FROM thing ORDER BY de, id LIMIT 3;

SELECT id, rank() OVER (ORDER BY de) FROM thing;

SELECT max(de), min(de) FROM thing;

-- Full text search.
-- for {x}: to_tsvector('english', t) | to_tsvector('simple', t) | to_tsvector(t) | to_tsquery('english', 'fox & quick') | plainto_tsquery('english', coalesce(t, '')) | length(to_tsvector('english', t)) | ts_rank(to_tsvector('english', t), to_tsquery('english', 'quick')) | ts_headline('english', t, to_tsquery('english', 'fox')) | strip(to_tsvector('english', t)) | phraseto_tsquery('english', coalesce(t, '')) | websearch_to_tsquery('english', coalesce(t, ''))
SELECT id, {x} AS result FROM txt;

-- for {x}: to_tsvector('english', t) @@ to_tsquery('english', 'foxes') | to_tsvector('simple', t) @@ 'apple' | t @@ 'apple' | to_tsvector('english', t) @@ plainto_tsquery('english', 'brown foxes')
SELECT id FROM txt WHERE {x};

-- for {x}: word @@ 'cat'::tsquery | word @@ to_tsquery('simple', 'fat|rat') | length(word) > 1 | word @@ (to_tsquery('simple', 'cat') && to_tsquery('simple', 'rat'))
SELECT id, word FROM thing WHERE {x};

-- for {x}: word || 'dog'::tsvector | setweight(word, 'A') | ts_delete(word, 'cat') | tsvector_to_array(word) | numnode(to_tsquery('simple', 'a & b')) | array_to_tsvector(ARRAY['a', 'b']) | querytree(to_tsquery('simple', 'cat'))
SELECT id, {x} AS result FROM thing;
