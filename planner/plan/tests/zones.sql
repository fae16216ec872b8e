-- PostgreSQL's answers in some time zones, and the rules of these zones as the planner has them: the table that the test
-- `zones` checks the kernels against. In a database with pg_eddy:
--
--     psql -qX -v cases=150 -f planner/plan/tests/zones.sql > planner/plan/tests/zones.tsv

\set QUIET on
SET client_min_messages = warning;
SET timezone = 'UTC';
SET datestyle = 'ISO, YMD';
SET intervalstyle = 'postgres';
SELECT setseed(0.5) \g /dev/null

CREATE FUNCTION pg_temp.answer(zone text, expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    PERFORM set_config('timezone', zone, false);
    EXECUTE 'SELECT ' || expression INTO result;
    PERFORM set_config('timezone', 'UTC', false);
    RETURN result;
EXCEPTION WHEN OTHERS THEN
    PERFORM set_config('timezone', 'UTC', false);
    RETURN 'ERROR ' || SQLSTATE || ' ' || SQLERRM;
END $$;

-- The rules as a plan has them.
CREATE FUNCTION pg_temp.rules(zone text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    PERFORM set_config('timezone', zone, false);
    EXECUTE 'EXPLAIN (FORMAT JSON) CREATE INCREMENTAL VIEW v AS SELECT at::date FROM moments' INTO plan;
    PERFORM set_config('timezone', 'UTC', false);
    RETURN jsonb_path_query_first(plan::jsonb, '$.**.Zoned.zone');
END $$;
CREATE TABLE moments (at timestamptz);

-- The offset in seconds.
CREATE FUNCTION pg_temp.seconds_east(zone text, at timestamptz) RETURNS int LANGUAGE sql AS $$
    SELECT extract(epoch FROM (at AT TIME ZONE zone) - (at AT TIME ZONE 'UTC'))::int
$$;

-- Some change of the offset between two moments; NULL if both have the same.
CREATE FUNCTION pg_temp.change(zone text, early timestamptz, late timestamptz) RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
    low bigint := floor(extract(epoch FROM early));
    high bigint := floor(extract(epoch FROM late));
    middle bigint;
    first int := pg_temp.seconds_east(zone, early);
BEGIN
    IF first = pg_temp.seconds_east(zone, late) THEN
        RETURN NULL;
    END IF;
    WHILE high - low > 1 LOOP
        middle := (low + high) / 2;
        IF pg_temp.seconds_east(zone, to_timestamp(middle)) = first THEN
            low := middle;
        ELSE
            high := middle;
        END IF;
    END LOOP;
    RETURN to_timestamp(high);
END $$;

CREATE FUNCTION pg_temp.at(years float) RETURNS timestamptz LANGUAGE sql AS $$
    SELECT '2000-01-01 00:00+00'::timestamptz + floor(years * 365.2425 * 86400e6) * interval '1 microsecond'
$$;

CREATE TEMP TABLE zones (number serial, zone text);
INSERT INTO zones (zone) VALUES
    ('UTC'), ('Europe/Berlin'), ('Europe/Dublin'), ('America/New_York'), ('America/Sao_Paulo'), ('Australia/Lord_Howe'),
    ('Asia/Kathmandu'), ('Pacific/Apia'), ('Africa/Casablanca'), ('Antarctica/Troll'), ('EST5EDT'),
    ('ABC3DEF,M3.2.0,M11.1.0'), ('<+03>-3'), ('<-11:30>+11:30'), ('<+167>-167');

-- Moments about which to ask: at changes, at the limits, and anywhere.
CREATE TEMP TABLE asked AS
WITH tries AS MATERIALIZED (
    SELECT zone, t.n, pg_temp.at(-200 + random() * 500) AS early, random() * 3 AS years
    FROM zones, generate_series(1, 300) AS t (n)
), changes AS MATERIALIZED (
    SELECT zone, n, pg_temp.change(zone, early, early + years * interval '300 days') AS at FROM tries
), near AS (
    SELECT zone, n, at + (ARRAY['0', '-1 us', '1 us', '-1 s', '1 s', '-1 h', '1 h', '0', '-24 h', '24 h'])[1 + n % 10]::interval
        + CASE WHEN n % 3 = 0 THEN (random() * 200000 - 100000)::int ELSE 0 END * interval '1 s' AS at
    FROM changes WHERE at IS NOT NULL
), limits (at) AS (
    VALUES ('infinity'::timestamptz), ('-infinity'), ('4714-11-24 00:00:00+00 BC'), ('4714-11-24 12:00:00+00 BC'),
        ('4714-11-26 07:00:00+00 BC'), ('294276-12-31 23:59:59.999999+00'), ('294276-12-31 12:00:00+00'), ('294276-12-24 12:00:00+00')
)
SELECT zone, at, row_number() OVER (PARTITION BY zone ORDER BY random()) AS number FROM (
    SELECT zone, at FROM near
    UNION ALL SELECT zone, at FROM zones, limits
    UNION ALL SELECT zone, pg_temp.at(-6600 + random() * 6600) FROM zones, generate_series(1, 40)
    UNION ALL SELECT zone, pg_temp.at(random() * 500) FROM zones, generate_series(1, 40)
    UNION ALL SELECT zone, pg_temp.at(random() * 292000) FROM zones, generate_series(1, 40)
) AS all_moments;

-- Kinds of questions: `%m` is a moment, `%l` a local time near it, `%d` a date near it.
CREATE TEMP TABLE kinds (number serial, kind text, expression text);
INSERT INTO kinds (kind, expression) VALUES
    ('local', '%m::timestamp'), ('date', '%m::date'), ('moment', '%l::timestamptz AT TIME ZONE ''UTC'''),
    ('moment', '%l::timestamptz AT TIME ZONE ''UTC'''), ('moment', '%l::timestamptz AT TIME ZONE ''UTC'''),
    ('midnight', '%d::timestamptz AT TIME ZONE ''UTC''');
INSERT INTO kinds (kind, expression)
SELECT f || ' ' || field, format('%s(''%s'', %%m)', f, field)
FROM unnest(ARRAY['extract', 'date_part']) AS f, unnest(ARRAY['century', 'day', 'decade', 'dow', 'doy', 'epoch', 'hour', 'isodow', 'isoyear',
    'julian', 'microseconds', 'millennium', 'milliseconds', 'minute', 'month', 'quarter', 'second', 'timezone', 'timezone_hour',
    'timezone_minute', 'week', 'year']) AS field;
UPDATE kinds SET expression = replace(expression, 'extract(', 'pg_catalog."extract"(');
INSERT INTO kinds (kind, expression)
SELECT 'date_trunc ' || field, format('date_trunc(''%s'', %%m) AT TIME ZONE ''UTC''', field)
FROM unnest(ARRAY['microseconds', 'milliseconds', 'second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year', 'decade',
    'century', 'millennium']) AS field;
INSERT INTO kinds (kind, expression)
SELECT 'plus ' || span, format('(%%m + ''%s''::interval) AT TIME ZONE ''UTC''', span)
FROM unnest(ARRAY['1 day', '-1 days', '1 mon', '-1 mons', '1 mon -30 days +00:30:00', '1 year', '-4 years', '24:00:00', '-00:00:00.000001',
    '100000 days', '-3000 years']) AS span;
INSERT INTO kinds (kind, expression)
SELECT 'shift ' || span, format('%%l + ''%s''::interval', span)
FROM unnest(ARRAY['1 day', '1 mon', '-13 mons +31 days', '-00:30:00', '300000 years']) AS span;
INSERT INTO kinds (kind, expression)
SELECT format('%s %s %s', l, op, r), format('%%%s %s %%%s', l, op, r)
FROM (VALUES ('m', 'l'), ('l', 'm'), ('m', 'd'), ('d', 'm')) AS sides (l, r), unnest(ARRAY['=', '<>', '<', '<=', '>', '>=']) AS op;

\pset format unaligned
\pset tuples_only on
\pset fieldsep '\t'
\pset null '\\N'
SELECT 'zone', zone, pg_temp.rules(zone) FROM zones ORDER BY number;
WITH questions AS MATERIALIZED (
    SELECT z.number AS zone_number, a.number, z.zone, k.kind, k.expression, a.at AS m,
        CASE WHEN isfinite(a.at) AND a.at BETWEEN '4700-01-01 BC' AND '294270-01-01' THEN a.at AT TIME ZONE z.zone ELSE a.at AT TIME ZONE 'UTC' END
            + CASE WHEN a.at BETWEEN '4700-01-01 BC' AND '294270-01-01' THEN (a.number % 5 - 2) * interval '20 min' ELSE '0' END AS l
    FROM zones AS z JOIN asked AS a USING (zone) JOIN kinds AS k ON k.number = 1 + (a.number * 7 + z.number) % (SELECT count(*) FROM kinds)
    WHERE a.number <= :cases
)
SELECT kind, zone, pg_temp.answer(zone, replace(replace(replace(expression, '%m', format('(%L::timestamptz)', m::text)),
        '%l', format('(%L::timestamp)', l::text)), '%d', format('(%L::date)', l::date::text))),
    m::text, l::text, l::date::text
FROM questions ORDER BY zone_number, number;
