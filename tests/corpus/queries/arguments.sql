-- The same functions with one argument after the other: fields, lengths, digits, templates, target types.

-- for {c}: d | ts | tz
-- for {f}: century | day | decade | dow | doy | epoch | hour | isodow | isoyear | julian | microseconds | millennium | milliseconds | minute | month | quarter | second | week | year
SELECT id, date_part('{f}', {c}) AS result FROM moment;

-- for {f}: century | day | decade | dow | doy | epoch | hour | isodow | isoyear | julian | microseconds | millennium | milliseconds | minute | month | quarter | second | timezone | timezone_hour | timezone_minute | week | year
SELECT id, extract({f} FROM tz) AS result FROM moment;

-- for {f}: century | day | decade | epoch | hour | microseconds | millennium | milliseconds | minute | month | quarter | second | year
SELECT id, extract({f} FROM iv) AS a, date_trunc('second', iv) AS b, date_part('{f}', iv) AS c FROM moment;

-- for {f}: epoch | hour | microseconds | milliseconds | minute | second
SELECT id, extract({f} FROM tm) AS result, extract({f} FROM tmz) AS zoned FROM moment;

-- for {f}: microseconds | milliseconds | second | minute | hour | day | week | month | quarter | year | decade | century | millennium
SELECT id, date_trunc('{f}', ts) AS a, date_trunc('{f}', tz) AS b, date_trunc('{f}', d) AS c FROM moment;

-- for {f}: microseconds | milliseconds | second | minute | hour | day | month | quarter | year | decade | century | millennium
SELECT id, date_trunc('{f}', iv) AS result FROM moment;

-- for {f}: hour | day | week | month | year
-- for {z}: UTC | Asia/Tokyo | America/New_York | Australia/Lord_Howe
SELECT id, date_trunc('{f}', tz, '{z}') AS result FROM moment;

-- for {z}: UTC | Asia/Kathmandu | America/St_Johns | Pacific/Apia | -03 | EST5EDT | GMT
SELECT id, tz AT TIME ZONE '{z}' AS a, ts AT TIME ZONE '{z}' AS b, d::timestamp AT TIME ZONE '{z}' AS c FROM moment;

-- for {o}: 1 day | 1 month | 1 year -1 day | 1 hour | -36 hours | 2 months 15 days 3.5 seconds | 1 millennium | 0
SELECT id, d + interval '{o}' AS a, ts - interval '{o}' AS b, tz + interval '{o}' AS c, tm + interval '{o}' AS d, iv - interval '{o}' AS e FROM moment;

-- for {m}: YYYY-MM-DD | DD.MM.YY | Day, DD Month YYYY | FMDay FMDDth FMMonth | HH12:MI:SS AM | HH24:MI:SS.MS | IYYY-IW-ID | YYYY-DDD | J | Q CC | "Week" WW | TMMonth | SSSS | Y,YYY | BC | mon-RM
SELECT id, to_char(ts, '{m}') AS a, to_char(tz, '{m}') AS b, to_char(d, '{m}') AS c FROM moment;

-- for {m}: 999 | 0999.99 | FM990.0 | S999 | 999MI | 9,999.9 | L999 | 9.9EEEE | 99V9 | RN | 999D99S | B999 | 999PR | FM0000
SELECT id, to_char(i, '{m}') AS a, to_char(s, '{m}') AS b, to_char(i::numeric, '{m}') AS c FROM num WHERE abs(i) < 100;

-- for {k}: -100 | -2 | -1 | 0 | 1 | 3 | 100
SELECT id, left(t, {k}) AS a, right(t, {k}) AS b, lpad(t, {k}) AS c, rpad(t, {k}, 'xy') AS d, repeat(v, {k}) AS e, substr(t, {k}) AS f FROM txt;

-- for {k}: -3 | 0 | 1 | 2 | 50
-- for {l}: 0 | 1 | 4 | 100
SELECT id, substr(t, {k}, {l}) AS a, substring(v FROM {k} FOR {l}) AS b, substring(y FROM {k} FOR {l}) AS c FROM txt;

-- for {k}: 1 | 2 | 3 | -1 | -2
-- for {s}: a | pp | , | ß
SELECT id, split_part(t, '{s}', {k}) AS result FROM txt;

-- for {k}: -3 | -1 | 0 | 1 | 2 | 5
SELECT id, round(n, {k}) AS a, trunc(n, {k}) AS b, round(i::numeric / 7, {k}) AS c, i * 10 ^ {k} AS d FROM num;

-- for {f}: g | i | gi | n | x | s
SELECT id, regexp_replace(t, 'A .', '<&>', '{f}') AS a, regexp_match(t, '^(.)(.*)$', replace('{f}', 'g', '')) AS b, regexp_split_to_array(t, 'AN?', replace('{f}', 'g', '')) AS c FROM txt;

-- for {p}: ^a | a$ | [[:alpha:]]+ | \m\w{3}\M | (a|b)+ | .{4,} | ^\s*$ | (?i)APP | a.*?e | [^a-z]
SELECT id, t ~ '{p}' AS a, t !~* '{p}' AS b, substring(t FROM '{p}') AS c, regexp_replace(t, '{p}', '.') AS d FROM txt;

-- for {p}: % | _ | %a | a% | %a%e% | _p% | %\_% | % % | größ_ | %ß%
SELECT id, t LIKE '{p}' AS a, v NOT LIKE '{p}' AS b, t ILIKE '{p}' AS c, l LIKE '{p}' AS d FROM txt;

-- for {p}: $ | $.a | $.b.c[*] | $.b.c[last] | $.** | $.a ? (@ > 1) | $.*.type() | $.b.c.size() | $[0] | $.t ? (@ starts with "t") | $.keyvalue().key | strict $.zz | $.b.c[0 to 1] | $.a + 1
SELECT id, jsonb_path_query_array(b, '{p}', '{}', true) AS a, jsonb_path_exists(b, '{p}', '{}', true) AS b, jsonb_path_query_first(b, '{p}', '{}', true) AS c FROM doc;

-- for {t}: int | bigint | smallint | numeric | numeric(8,2) | real | double precision | text | varchar(3) | char(5) | boolean | money | bit(16) | "char" | name
--   | json | jsonb
SELECT id, i::text::{t}::text AS result FROM num WHERE i BETWEEN 0 AND 1;

-- for {t}: int | bigint | smallint | numeric | numeric(6,1) | real | double precision | text | varchar(3)
-- for {c}: i | s | n | r | d
SELECT id, {c}::{t} AS result FROM num WHERE i < 50;

-- for {t}: timestamp | timestamptz | date | time | text | varchar(10) | timestamp(0) | timestamptz(1)
-- for {c}: ts | tz
SELECT id, {c}::{t} AS result FROM moment;

-- for {t}: text | jsonb | varchar
-- for {c}: f | u | e | p | net | cidr | mac | bits | vbits | cash | pct | code | pt | bx | word | ci
SELECT id, to_jsonb({c})::{t} AS a, {c}::text AS b, concat({c}, '.') AS c FROM thing;

-- for {x}: {1,2,3} | {} | {NULL} | {2,2} | {{1,2},{3,4}}
-- for {o}: = | <> | @> | <@ | && | < | >=
SELECT id, i {o} '{x}' AS result FROM list;

-- for {x}: [1,5) | empty | (,) | [3,4] | (,0]
-- for {o}: = | @> | <@ | && | << | >> | &< | &> | -|- | <
SELECT id, i {o} '{x}'::int4range AS result FROM span;

-- for {x}: [1,5) | empty | (,) | [3,4]
SELECT id, i * '{x}'::int4range AS a, m + '{{x}}'::int4multirange AS b, m - int4multirange('{x}'::int4range) AS c, range_merge(i, '{x}') AS d FROM span;

-- for {w}: ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING | ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW | GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING | RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING | RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
-- for {x}: EXCLUDE CURRENT ROW | EXCLUDE GROUP | EXCLUDE TIES
-- for {p}: PARTITION BY active ORDER BY grade | ORDER BY grade DESC
SELECT DISTINCT dept, grade, count(*) OVER ({p} GROUPS CURRENT ROW) AS peers, sum(grade) OVER (PARTITION BY id ORDER BY grade {w} {x}) AS mine, max(salary) OVER (PARTITION BY dept, grade ORDER BY id {w} {x}) AS most FROM emp;
