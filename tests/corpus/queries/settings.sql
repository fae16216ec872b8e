-- What depends on settings, under settings of the view.

-- set: TimeZone = 'Asia/Tokyo'
-- for {x}: tz::date | tz::text | extract(hour FROM tz) | date_trunc('day', tz) | ts::timestamptz | d::timestamptz | tz + interval '1 day' | to_char(tz, 'HH24 TZ') | tz::time | tz > ts | d = tz
SELECT id, {x} AS result FROM moment;

-- set: TimeZone = 'America/New_York'
SELECT at::date AS day, sum(qty) FROM sale GROUP BY 1;

-- set: TimeZone = 'America/New_York'
SELECT generate_series(tz, tz + interval '2 days', interval '1 day') AS x FROM moment;

-- set: DateStyle = 'SQL, DMY'
-- for {x}: d::text | ts::text | tz::text | concat(d, '!') | '01/02/2024'::date + id | to_jsonb(d)
SELECT id, {x} AS result FROM moment;

-- set: IntervalStyle = 'iso_8601'
-- for {x}: iv::text | iv || '' | to_jsonb(iv)
SELECT id, {x} AS result FROM moment;

-- set: extra_float_digits = 0
-- for {x}: d::text | r::text | (d / 3)::text | to_jsonb(d / 3) | concat(d / 7)
SELECT id, {x} AS result FROM num;

-- set: bytea_output = 'escape'
-- for {x}: y::text | concat(y) | to_jsonb(y)
SELECT id, {x} AS result FROM txt;

-- set: default_text_search_config = 'pg_catalog.english'
-- for {x}: to_tsvector(t) | to_tsvector(t) @@ to_tsquery('foxes') | to_tsvector(t) @@ plainto_tsquery('quickly')
SELECT id, {x} AS result FROM txt;

-- set: xmlbinary = 'hex'
SELECT id, xmlelement(name y, y)::text AS result FROM txt;

-- Casts from text, which depend on settings.
-- for {x}: ('2024-03-' || id + 10)::date | ('2024-01-01 10:00 ' || 'UTC')::timestamptz | (id || ' days')::interval | (id || ':00')::time | to_date('2024-' || id + 10, 'YYYY-DDD') | to_timestamp('2024-' || id + 10, 'YYYY-DDD')
SELECT id, {x} AS result FROM moment WHERE id < 10;
