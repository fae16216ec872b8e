-- Arithmetic, comparison and functions of numbers.

-- Operators of one type.
-- for {o}: + | - | *
-- for {c}: i | s | n | r | d
SELECT id, {c} {o} {c} AS result FROM num;

-- for {c}: i | s | b | n | d
SELECT id, {c} / nullif({c}, 0) AS result, {c} / 4 AS quarter FROM num;

-- for {c}: i | s | b | n
SELECT id, {c} % 3 AS remainder, mod({c}, 5) AS modulus FROM num;

-- for {x} {y}: i ; s | s ; i | b ; i | i ; n | n ; i | r ; d | d ; i | b ; n | i ; d | s ; r
-- for {o}: + | - | *
SELECT id, {x} {o} {y} AS result FROM num;

-- for {x} {y}: i ; b | s ; i | n ; i | i ; d | b ; n | r ; d
-- for {o}: = | <> | < | >=
SELECT id FROM num WHERE {x} {o} {y};

-- for {x} {y}: i ; b | n ; d | s ; n | b ; r
SELECT a.id, b.id AS other FROM num a JOIN num b ON a.{x} = b.{y};

-- for {c}: i | s | b | n | r | d
SELECT id, -{c} AS negative, abs({c}) AS size, @ {c} AS also FROM num;

-- for {f}: ceil | ceiling | floor | round | trunc | sign
-- for {c}: n | d
SELECT id, {f}({c}) AS result FROM num;

-- for {f}: ceil | floor | round | trunc | sign
-- for {c}: n | d
SELECT id, {f}({c}) FROM extreme;

-- for {x}: round(n, 1) | round(n, -1) | trunc(n, 1) | trunc(n, 2) | scale(n) | min_scale(n) | trim_scale(n) | div(n, 7)
--   | mod(n, 7) | power(n, 2) | n ^ 2 | sqrt(abs(n)) | exp(n / 1000) | ln(abs(n) + 1) | log(abs(n) + 1) | log(2, abs(n) + 1) | gcd(i, 12) | lcm(i, 6)
--   | gcd(n, 2.5) | factorial(abs(s) % 10) | width_bucket(n, 0, 100, 5) | width_bucket(d, -10, 10, 4) | greatest(i, s) | least(i, s, 5)
--   | greatest(n, i) | least(d, n) | numeric_inc(n)
SELECT id, {x} AS result FROM num;

-- for {x}: sqrt(abs(d)) | |/ abs(d) | cbrt(d) | ||/ d | d ^ 2 | power(d, 2) | exp(d / 1000) | ln(abs(d) + 1) | log(abs(d) + 1)
--   | sin(d) | cos(d) | tan(d) | atan(d) | atan2(d, 2) | degrees(d) | radians(d) | sinh(d / 1000) | tanh(d) | asinh(d) | cot(d + 0.5) | pi() * d
--   | sind(d) | cosd(d) | atand(d) | asin(d / 2000) | acos(d / 2000) | acosd(d / 2000)
SELECT id, {x} AS result FROM num;

-- for {x}: i & 6 | i|8 | i # 5 | ~i | i << 2 | i >> 1 | b & 255 | b|1 | ~b | b << 3 | b >> 2 | s & 3::smallint | s # 1::smallint
SELECT id, {x} AS result FROM num;

-- for {x}: i + 1 > 5 | i BETWEEN -5 AND 10 | i NOT BETWEEN 0 AND 50 | i BETWEEN SYMMETRIC 10 AND 0 | i IN (1, 7, 42) | i NOT IN (0, 1)
--   | n > 0.5 | n = 12.5 | d > 1e2 | d <> 0 | i % 2 = 0 | i % 2 = 1 AND n > 0 | i > 5 OR d < 0 | NOT (i > 5) | i = ANY (ARRAY[1, 2, 7]) | i > ALL (ARRAY[-5, 3])
--   | (i > 5) IS NOT TRUE | (i > 5) IS UNKNOWN | i IS NOT NULL AND s IS NULL | abs(i) > 10 | i * 2 = 14 | b > i | n::int = i | i::numeric = n
SELECT id, i FROM num WHERE {x};

-- for {x}: i::text | i::bigint | i::numeric | i::double precision | i::real | i::numeric(10,2) | n::int | n::text | n::numeric(8,1) | n::double precision
--   | d::numeric | d::int | d::text | d::real | r::numeric | r::text | r::int | s::int | s::text | b::numeric | b::text | b::double precision
--   | i::boolean | (i > 0)::int | i::varchar(2) | n::bigint | cast(i AS bit(8)) | i::oid | i::money | n::money
SELECT id, {x} AS result FROM num;

-- for {x}: to_char(i, '999') | to_char(i, 'S0999') | to_char(n, '9990.99') | to_char(n, 'FM999,999.0') | to_char(d, '9.99EEEE') | to_char(b, '999G999G999G999')
--   | to_char(i, 'RN') | to_char(i, 'FM000') | to_char(n, 'L999D99') | to_char(i, '999th') | to_char(n, '999PR') | to_hex(i) | to_hex(b)
--   | to_char(s, 'MI99') | i || '' | 'no. ' || i | format('%s/%s', i, n) | concat(i, '-', s) | concat_ws(', ', i, n, d) | quote_literal(i) | quote_nullable(n) | chr(64 + abs(i) % 26)
--   | lpad(i::text, 5, '0') | repeat('x', abs(i) % 5) | num_nulls(i, s, n) | num_nonnulls(i, s, n)
SELECT id, {x} AS result FROM num;

-- for {x}: to_number(i::text, '999') | to_number(to_char(n, '99999.99'), '99999.99') | (n::text)::numeric | (i || '.5')::numeric | ('0' || abs(i))::int | i::text::bigint
SELECT id, {x} AS result FROM num;

-- for {t}: num | extreme
-- for {c}: i | s | b | n | r | d
SELECT min({c}), max({c}), count({c}) FROM {t};

-- for {c}: i | b | n | r | d
-- for {o}: < | > | = | <=
SELECT a.id, b.id AS other FROM extreme a JOIN extreme b ON a.{c} {o} b.{c};

-- for {c}: n | r | d
SELECT id, {c} = 'NaN' AS is_nan, {c} = 'Infinity' AS is_infinite, {c} > 0 AS positive FROM extreme;

-- for {x}: n::text | d::text | r::text | i::text | b::text | d::numeric::text | n::double precision | r::double precision | i::bigint - 1 | s::int + 1
SELECT id, {x} AS result FROM extreme;

-- Literals.
-- for {x}: 1 | 2147483648 | 1.50 | 1e3 | .5 | -7 | '12'::int | int '5' | numeric '1.10' | 1::real / 3 | 2 ^ 10 | 7 / 2 | 7 % -3 | -7 / 2 | 7.0 / 2 | 1 / 3.0 | 0.1 + 0.2 | 5!=4
SELECT id, {x} AS result FROM num WHERE i > 0;

SELECT id, i AS "Quoted Name", s "s", b AS select, n * 1.0 AS n FROM num;

-- Of rows which have the column only as NULL.
-- for {x}: i + NULL | NULL::int | nullif(i, 7) | coalesce(i, s, 0) | coalesce(NULL, i) | i = NULL | i IS DISTINCT FROM NULL | nullif(n, 12.50) | coalesce(n, i)
SELECT id, {x} AS result FROM num;
