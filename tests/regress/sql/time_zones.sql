-- What depends on a time zone and is computed without PostgreSQL: days, fields and sums of timestamps, in zones of all kinds.
SET client_min_messages = warning;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE SCHEMA zones;
SET search_path = zones;
CREATE TABLE moment (id int PRIMARY KEY, at timestamptz, stamp timestamp, day date);
INSERT INTO moment SELECT i, at, at::timestamp + (i % 7) * interval '17 min', at::date
    FROM generate_series(1, 700) AS i, LATERAL (SELECT timestamptz '1845-01-01 00:00+00' + i * interval '101 days 05:07:11.000001' AS at) AS a;
-- Where some zones change: 2 in Berlin, Lord Howe (half an hour), New York, Casablanca (back in summer), Apia (a day is skipped).
INSERT INTO moment SELECT 1000 + 20 * n + i, at, at::timestamp, at::date FROM unnest(ARRAY['2026-03-29 01:00+00', '2026-10-25 01:00+00', '2026-10-03 15:30+00',
        '2026-04-04 15:00+00', '2026-03-08 07:00+00', '2026-11-01 06:00+00', '2026-02-15 02:00+00', '2026-03-22 02:00+00', '2011-12-30 10:00+00']::timestamptz[])
        WITH ORDINALITY AS c (change, n), generate_series(0, 16) AS i, LATERAL (SELECT change + CASE WHEN i < 5 THEN (i - 2) * interval '1 us' ELSE (i - 10) * interval '40 min' END AS at) AS a;
INSERT INTO moment SELECT 2000 + i, at, stamp, day FROM (VALUES (1, 'infinity'::timestamptz, 'infinity'::timestamp, 'infinity'::date), (2, '-infinity', '-infinity', '-infinity'),
        (3, NULL, NULL, NULL), (4, '4600-01-02 BC', '4600-01-02 BC', '4600-01-02 BC'), (5, '0001-12-31 23:30+00 BC', '0001-12-31 BC', '0001-01-01'),
        (6, '294275-12-30 12:00+00', '294275-07-01', '294275-07-01'), (7, '2500-07-01', '2500-07-01', '2500-07-01')) AS v (i, at, stamp, day);
CREATE VIEW zoned AS SELECT id, at::date AS day, at::timestamp AS local, date(at) AS also, stamp::timestamptz AS moment, day::timestamptz AS midnight,
    timestamptz(day) AS again, date_trunc('hour', at) AS hour, date_trunc('day', at) AS start, date_trunc('week', at) AS week, date_trunc('quarter', at) AS quarter,
    date_trunc('century', at) AS century, date_trunc('month', at, 'Pacific/Apia') AS month_there, extract(hour FROM at) AS h, extract(epoch FROM at) AS epoch,
    extract(julian FROM at) AS julian, extract(timezone FROM at) AS east, extract(timezone_hour FROM at) AS hours_east, extract(timezone_minute FROM at) AS minutes_east,
    extract(isoyear FROM at) AS isoyear, date_part('second', at) AS second, date_part('dow', at) AS dow, date_part('epoch', at) AS seconds
    FROM moment;
CREATE VIEW summed AS SELECT id, at + interval '1 day' AS tomorrow, interval '1 month' + at AS next, at - interval '1 year 2 days 03:00' AS before, at + interval '36:00' AS hours,
    stamp + interval '1 month' AS stamp, day - interval '1 month' AS day, day + interval '90 min' AS minutes, at AT TIME ZONE 'America/New_York' AS there,
    timezone('UTC', at) AS utc, stamp AT TIME ZONE 'Australia/Lord_Howe' AS here, stamp AT TIME ZONE '<+03>-3' AS fixed FROM moment;
CREATE VIEW compared AS SELECT m.id, at = stamp AS eq, at <> day AS ne, at < stamp AS lt, stamp < at AS gt, day <= at AS le, at >= day AS ge, count(n.id) AS others
    FROM moment AS m LEFT JOIN (SELECT id, day AS that FROM moment WHERE id < 50) AS n ON date_trunc('day', m.at) = n.that GROUP BY m.id;
-- The expressions that PostgreSQL would have to evaluate.
CREATE FUNCTION left_to_postgresql(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN CREATE INCREMENTAL VIEW v AS ' || query LOOP
        RETURN QUERY SELECT h[1] FROM regexp_matches(line, 'host\[(.*?)\]\(', 'g') AS h;
    END LOOP;
END $$;
SELECT q, left_to_postgresql(format('SELECT * FROM %I', q)) FROM unnest(ARRAY['zoned', 'summed', 'compared']) AS q;
SET TimeZone = 'Europe/Berlin';
\pset format unaligned
EXPLAIN CREATE INCREMENTAL VIEW v AS SELECT at::date AS d, at::timestamp AS l, stamp::timestamptz AS m, day::timestamptz AS n, date_trunc('day', at) AS t, extract(hour FROM at) AS e,
    at - interval '1 day' AS s, day + interval '1 mon -2 days' AS u, at AT TIME ZONE 'Asia/Tokyo' AS a FROM moment WHERE at > stamp AND day = at;
\pset format aligned
-- What only PostgreSQL knows, or what other settings decide.
SELECT left_to_postgresql(q) FROM unnest(ARRAY['SELECT at::time FROM moment', 'SELECT at::text FROM moment', 'SELECT at + make_interval(days => id) FROM moment', 'SELECT at AT TIME ZONE ''EST'' FROM moment',
    'SELECT date_part(''nothing'', at) FROM moment', 'SELECT date_part(id::text, at) FROM moment', 'SELECT id FROM moment WHERE at IS DISTINCT FROM day', 'SELECT id FROM moment WHERE at = ANY (ARRAY[day, day])',
    'SELECT id FROM moment WHERE at IN (SELECT day FROM moment)', 'SELECT at + interval ''1'' day FROM moment', 'SELECT a.id FROM moment AS a JOIN (SELECT id, day AS at FROM moment) AS b USING (id, at)']) AS q;
CREATE TABLE zone (number serial, name text);
INSERT INTO zone (name) VALUES ('UTC'), ('Europe/Berlin'), ('America/New_York'), ('America/Sao_Paulo'), ('Australia/Lord_Howe'), ('Asia/Kathmandu'), ('Pacific/Apia'), ('Africa/Casablanca'),
    ('Europe/Dublin'), ('Antarctica/Troll'), ('EST5EDT'), ('ABC3DEF,M3.2.0,M11.1.0'), ('<+03>-3'), ('-7.5');
SELECT format('CREATE INCREMENTAL VIEW %I WITH (timezone = %L) AS SELECT * FROM %I', q || number, name, q) FROM zone, unnest(ARRAY['zoned', 'summed', 'compared']) AS q ORDER BY 1 \gexec
CREATE VIEW differences AS SELECT q, name, missing, surplus FROM zone, unnest(ARRAY['zoned', 'summed', 'compared']) AS q, eddy.verify_view((q || number)::regclass) WHERE missing + surplus > 0;
TABLE differences;
UPDATE moment SET at = at + interval '11:00', stamp = stamp - interval '30 min' WHERE id % 5 = 0;
DELETE FROM moment WHERE id % 7 = 0;
TABLE differences;
-- Not only as the worker's PostgreSQL has it.
SET TimeZone = 'Pacific/Apia';
(TABLE zoned EXCEPT ALL TABLE zoned7) UNION ALL (TABLE zoned7 EXCEPT ALL TABLE zoned);
SELECT day, count(*) FROM zoned7 WHERE day BETWEEN '2011-12-28' AND '2012-01-01' GROUP BY 1 ORDER BY 1;
-- A view of another zone that is read stays in its own.
CREATE INCREMENTAL VIEW upper WITH (timezone = 'Asia/Kathmandu') AS SELECT z.id, z.day, m.at::date AS here FROM zoned3 AS z JOIN moment AS m USING (id);
SELECT count(*) FILTER (WHERE u.day = (m.at AT TIME ZONE 'America/New_York')::date) AS there, count(*) FILTER (WHERE u.here = (m.at AT TIME ZONE 'Asia/Kathmandu')::date) AS here, count(*)
    FROM upper AS u JOIN moment AS m USING (id) WHERE isfinite(at);
-- Another zone is another plan.
ALTER INCREMENTAL VIEW zoned1 SET (timezone = 'Asia/Tokyo');
SET TimeZone = 'Asia/Tokyo';
(TABLE zoned EXCEPT ALL TABLE zoned1) UNION ALL (TABLE zoned1 EXCEPT ALL TABLE zoned);
-- Errors are PostgreSQL's.
SET TimeZone = 'Europe/Berlin';
CREATE TABLE late (at timestamptz, day date, stamp timestamp);
CREATE INCREMENTAL VIEW l1 AS SELECT at::date, extract(year FROM at) AS year FROM late;
CREATE INCREMENTAL VIEW l2 AS SELECT at::timestamp FROM late;
CREATE INCREMENTAL VIEW l3 AS SELECT at + interval '1 month' FROM late;
CREATE INCREMENTAL VIEW l4 AS SELECT day::timestamptz FROM late;
CREATE INCREMENTAL VIEW l5 AS SELECT stamp + interval '1 day' FROM late;
CREATE INCREMENTAL VIEW l6 AS SELECT count(*) FROM late WHERE day > at OR stamp < at;
INSERT INTO late VALUES ('294276-12-31 23:30+00', '294277-01-01', '294276-12-31');
TABLE l1;
TABLE l2;
SELECT at::timestamp FROM late;
TABLE l3;
SELECT at + interval '1 month' FROM late;
TABLE l4;
SELECT day::timestamptz FROM late;
TABLE l5;
SELECT stamp + interval '1 day' FROM late;
TABLE l6;
DROP SCHEMA zones CASCADE;
