-- What depends on settings: a view has its own, whoever writes its tables and reads it.
SET client_min_messages = warning;
SET TimeZone = 'Europe/Berlin';
SET DateStyle = 'ISO, DMY';
SET IntervalStyle = 'postgres';
SET extra_float_digits = 1;
SET bytea_output = 'hex';
SET default_text_search_config = 'pg_catalog.english';
CREATE TYPE tone AS ENUM ('low', 'high');
CREATE TYPE note AS (at timestamptz, tone tone);
CREATE TABLE moment (id int PRIMARY KEY, at timestamptz, stamp timestamp, day date, span interval, n numeric, f float8,
    price money, body text, said text, doc jsonb, raw bytea, tone tone, tones tone[], note note, during tstzrange);
-- Clocks are put forward on 29 March 2026 and back on 25 October.
INSERT INTO moment SELECT i, timestamptz '2026-03-28 22:30+00' + i * interval '1 hour', timestamp '2026-10-24 23:30' + i * interval '1 hour',
    date '2026-03-27' + i, i * interval '1 day 1 hour', i * 1234.5, i / 3.0, i * 1.5, 'the cats of ' || i, '0' || i || '.04.2026 1' || i || ':00',
    jsonb_build_object('at', '0' || i || '/04/2026', 'tone', 'high'), decode('0' || i || 'ff', 'hex'), 'low', '{high,low}',
    ROW(timestamptz '2026-03-28 22:30+00' + i * interval '1 hour', 'low'::tone)::note, tstzrange('2026-03-28 23:30+00', NULL)
    FROM generate_series(1, 6) AS i;
INSERT INTO moment (id, at, said) VALUES (7, 'infinity', 'epoch'), (8, NULL, NULL);
CREATE VIEW zone_q AS SELECT id, date_trunc('day', at) AS d, at::date AS date, at::time AS time, at::timestamp AS stamp, at::timetz AS timetz,
    extract(hour FROM at) AS hour, date_part('dow', at) AS dow, at + span AS later, span + at AS later_too, at - interval '1 month' AS earlier,
    stamp::timestamptz AS there, day::timestamptz AS midnight, at = stamp AS is_same, at > day AS is_after, day <= at AS is_before,
    CASE WHEN id < 7 THEN date_trunc('month', at, 'Asia/Tokyo') END AS tokyo, make_timestamptz(2026, 10, 25, 2, id, 0) AS made,
    (at, span) OVERLAPS (stamp::timestamptz, day::timestamptz) AS overlap,
    jsonb_path_query_first_tz(doc, '$.at.datetime("DD/MM/YYYY") < "29/03/2026 10:00 +00".datetime("DD/MM/YYYY HH24:MI TZH")') AS path FROM moment;
CREATE VIEW text_q AS SELECT id, at::text AS at, stamp::text AS stamp, day::text AS day, span::text AS span, f::text AS f, raw::text AS raw,
    price::text AS price, 'x' || at AS x, day || '' AS y, concat(at, day, f, raw, tone) AS concat, format('%s %L', at, day) AS format, tone::text AS tone,
    tones::text AS tones, note::text AS note, during::text AS during, ROW(at, f, raw)::text AS row_text, quote_literal(at) AS literal,
    array_to_string(ARRAY[at, stamp::timestamptz], ', ', '-') AS list, enum_range(tone)::text AS tones_there, enum_last(tone) AS last FROM moment;
CREATE VIEW format_q AS SELECT id, to_char(at, 'TMDay DD TMMonth YYYY HH24:MI TZ') AS at, to_char(stamp, 'IYYY-IW') AS stamp, to_char(span, 'DD HH24') AS span,
    to_char(n, 'L9G999D99') AS n, to_char(f, '9D999') AS f, to_char(id, 'RN') AS roman, to_number(id || '.5', '99D9') AS number,
    to_date(doc ->> 'at', 'DD/MM/YYYY') AS date, to_timestamp(doc ->> 'at', 'DD/MM/YYYY') AS instant, n::money AS money, price::numeric AS price FROM moment;
CREATE VIEW json_q AS SELECT id, json_build_object('at', at, 'day', day)::text AS built, jsonb_build_array(at, span, raw) AS list, to_json(at)::text AS at, to_jsonb(m) AS whole,
    row_to_json(note)::text AS note, to_jsonb(during) AS during, jsonb_populate_record(NULL::note, doc) AS populated FROM moment m;
CREATE VIEW parsed_q AS SELECT id, said::timestamptz AS instant, said::timestamp AS stamp, (doc ->> 'at')::date AS date, (doc ->> 'tone')::tone AS tone,
    (id || ' mons')::interval AS span, ('{' || id || '.5.26}')::date[] AS dates, ('[' || id + 1 || '.5.26,)')::daterange AS range, (id || '.5')::money AS money,
    r.at, r.tone AS also FROM moment LEFT JOIN jsonb_to_record(doc) AS r(at date, tone tone) ON true;
CREATE VIEW search_q AS SELECT id, to_tsvector(body) AS words, body @@ to_tsquery('cat') AS has_cat, body @@ 'cat' AS also, to_tsvector(doc) AS doc,
    plainto_tsquery(body) AS plain, ts_headline(body, to_tsquery('cats')) AS headline FROM moment;
CREATE VIEW series_q AS SELECT m.id, g FROM moment m, generate_series(m.at, m.at + interval '2 days', '1 day') AS g WHERE m.id < 4;
CREATE VIEW xml_q AS SELECT id, xmlelement(name m, xmlattributes(at, raw), at, day, f)::text AS x FROM moment WHERE id < 7;
CREATE VIEW days_q AS WITH RECURSIVE days(id, at) AS (
    SELECT id, date_trunc('day', at) FROM moment WHERE id < 3 UNION SELECT id, at + interval '1 day' FROM days WHERE at < '2026-04-02') SELECT * FROM days;
CREATE VIEW grouped_q AS SELECT at::date AS day, count(*), sum(n), json_agg(at ORDER BY at)::text AS list, string_agg(at::text, ',' ORDER BY id) AS text,
    max(at::time) AS latest FROM moment GROUP BY 1;
CREATE VIEW framed_q AS SELECT id, count(*) OVER (PARTITION BY at::date ORDER BY to_char(at, 'HH24') DESC, id) AS rank FROM moment;
CREATE TABLE kind (name text);
INSERT INTO kind VALUES ('zone'), ('text'), ('format'), ('json'), ('parsed'), ('search'), ('series'), ('xml'), ('days'), ('grouped'), ('framed');
SELECT format('CREATE INCREMENTAL VIEW %I AS SELECT * FROM %I', name || '_v', name || '_q') FROM kind \gexec
CREATE VIEW differences AS SELECT name, missing, surplus FROM kind, eddy.verify_view((name || '_v')::regclass) WHERE missing + surplus > 0;
-- As text, as some columns have no equality.
CREATE FUNCTION differs(name text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format('(SELECT v::text FROM %1$I v EXCEPT ALL SELECT q::text FROM %2$I q) UNION ALL (SELECT q::text FROM %2$I q EXCEPT ALL SELECT v::text FROM %1$I v)',
        name || '_v', name || '_q');
END $$;
SELECT name, d FROM kind, differs(name) AS d;
SELECT * FROM differences;
SELECT id, d, later, there, hour FROM zone_v WHERE id < 5 ORDER BY id;
-- Sessions with other settings write and read.
\c -
SET client_min_messages = warning;
SET TimeZone = 'Asia/Tokyo';
SET DateStyle = 'SQL, MDY';
SET IntervalStyle = 'iso_8601';
SET extra_float_digits = -5;
SET bytea_output = 'escape';
SET default_text_search_config = 'pg_catalog.simple';
INSERT INTO moment SELECT id + 10, at + '1 day', stamp, day, span, n, f, price, body, said, doc, raw, 'high', tones, note, during FROM moment;
UPDATE moment SET at = at + '36 hours', span = -span, f = f / 7, raw = '\x00ff' WHERE id IN (1, 3, 12);
DELETE FROM moment WHERE id IN (2, 15);
SELECT * FROM differences;
SELECT at, stamp, day, span, f, raw FROM text_v WHERE id = 1;
REFRESH INCREMENTAL VIEW text_v;
SELECT at, stamp, day, span, f, raw FROM text_v WHERE id = 1;
\c -
SET client_min_messages = warning;
SET TimeZone = 'Europe/Berlin';
SET DateStyle = 'ISO, DMY';
SET IntervalStyle = 'postgres';
SET default_text_search_config = 'pg_catalog.english';
SELECT name, d FROM kind, differs(name) AS d;
-- Labels of enums are written as they are called now, and columns of rows.
ALTER TYPE tone RENAME VALUE 'low' TO 'deep';
ALTER TYPE tone ADD VALUE 'shrill';
SELECT tone, tones, note, tones_there, last FROM text_v WHERE id = 1;
ALTER TYPE note RENAME ATTRIBUTE at TO instant;
ALTER TABLE moment RENAME COLUMN raw TO bytes;
SELECT name, d FROM kind, differs(name) AS d;
SELECT whole - ARRAY['doc', 'f'] FROM json_v WHERE id = 1;
-- A word that means the present is an error of its row.
INSERT INTO moment (id, said) VALUES (30, 'tomorrow');
SELECT * FROM parsed_v WHERE id = 30;
UPDATE moment SET said = '1.5.2026', doc = '{"know": "now", "at": "2.5.2026"}' WHERE id = 30;
SELECT id, instant, stamp, date, at FROM parsed_v WHERE id = 30;
-- So is one that is put together, and one that is always there is refused.
CREATE INCREMENTAL VIEW made AS SELECT id, ('no' || body)::date AS day FROM moment WHERE id > 20;
INSERT INTO moment (id, body) VALUES (31, 'w');
TABLE made;
DELETE FROM moment WHERE id = 31;
CREATE INCREMENTAL VIEW bad AS SELECT id FROM moment WHERE day > ('today'::text)::date;
-- Casts of users to JSON, and configurations of text search, count as they are now.
CREATE TEXT SEARCH CONFIGURATION mine (COPY = pg_catalog.english);
CREATE INCREMENTAL VIEW searched WITH (default_text_search_config = 'public.mine') AS SELECT id, to_tsvector(body) AS words FROM moment WHERE id = 1;
TABLE searched;
ALTER TEXT SEARCH CONFIGURATION mine ALTER MAPPING FOR asciiword WITH simple;
TABLE searched;
CREATE INCREMENTAL VIEW toned AS SELECT id, to_jsonb(tone) AS tone FROM moment WHERE id = 1;
CREATE FUNCTION tone_json(t tone) RETURNS json LANGUAGE sql IMMUTABLE AS $$SELECT json_build_array(t::text)$$;
CREATE CAST (tone AS json) WITH FUNCTION tone_json(tone);
TABLE toned;
CREATE OR REPLACE FUNCTION tone_json(t tone) RETURNS json LANGUAGE sql IMMUTABLE AS $$SELECT json_build_array(t::text, 2)$$;
TABLE toned;
DROP CAST (tone AS json);
TABLE toned;
DROP FUNCTION tone_json;
ALTER TYPE tone RENAME VALUE 'high' TO 'tmp';
ALTER TYPE tone RENAME VALUE 'deep' TO 'high';
ALTER TYPE tone RENAME VALUE 'tmp' TO 'deep';
SELECT name, d FROM kind, differs(name) AS d;
-- Settings that are not valid any more can be replaced.
ALTER TEXT SEARCH CONFIGURATION mine RENAME TO yours;
ALTER INCREMENTAL VIEW searched SET (default_text_search_config = 'pg_catalog.english');
TABLE searched;
DROP TEXT SEARCH CONFIGURATION yours;
-- Settings are shown, chosen and changed.
CREATE TABLE s (at timestamptz, f float8);
INSERT INTO s VALUES ('2026-03-28 23:30+00', 1.0 / 3);
CREATE INCREMENTAL VIEW chosen WITH (timezone = 'America/New_York', extra_float_digits = 0, fillfactor = 70) AS SELECT at::date AS day, f::text FROM s;
TABLE chosen;
SHOW TimeZone;
SELECT settings ->> 'TimeZone' AS zone, settings ->> 'extra_float_digits' AS digits, settings ->> 'DateStyle' AS style FROM eddy.views WHERE relation = 'chosen'::regclass;
SELECT reloptions FROM pg_class WHERE relname = 'chosen';
ALTER INCREMENTAL VIEW chosen SET (timezone = 'Asia/Tokyo', fillfactor = 80);
TABLE chosen;
ALTER MATERIALIZED VIEW chosen RESET (extra_float_digits), SET (datestyle = german);
TABLE chosen;
SELECT settings ->> 'TimeZone' AS zone, settings ->> 'extra_float_digits' AS digits, settings ->> 'DateStyle' AS style FROM eddy.views WHERE relation = 'chosen'::regclass;
SELECT reloptions FROM pg_class WHERE relname = 'chosen';
BEGIN;
ALTER INCREMENTAL VIEW chosen SET (timezone = 'UTC');
TABLE chosen;
ROLLBACK;
SELECT settings ->> 'TimeZone' AS zone FROM eddy.views WHERE relation = 'chosen'::regclass;
ALTER INCREMENTAL VIEW chosen SET (timezone = 'Mars/Olympus');
ALTER INCREMENTAL VIEW chosen SET (timezone = 'UTC', unknown = 1);
CREATE INCREMENTAL VIEW bad WITH (timezone = 'Mars/Olympus') AS SELECT at::date FROM s;
CREATE MATERIALIZED VIEW bad WITH (timezone = 'UTC') AS SELECT at::date FROM s;
CREATE ROLE regress_stranger;
SET ROLE regress_stranger;
ALTER INCREMENTAL VIEW chosen SET (timezone = 'UTC');
RESET ROLE;
EXPLAIN CREATE INCREMENTAL VIEW shown WITH (timezone = 'UTC') AS SELECT at::date FROM s;
-- A view over one with other settings: each has its own.
CREATE INCREMENTAL VIEW upper WITH (timezone = 'Asia/Tokyo') AS SELECT c.day, c.f, s.at::date AS here FROM chosen c, s;
ALTER INCREMENTAL VIEW chosen SET (timezone = 'America/New_York');
TABLE upper;
SELECT * FROM eddy.verify_view('upper');
-- A label without settings means those that PostgreSQL has without a configuration.
SET TimeZone = 'Asia/Tokyo';
CREATE MATERIALIZED VIEW labelled AS SELECT at::text FROM s;
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW labelled IS 'incremental';
TABLE labelled;
SELECT settings FROM eddy.views WHERE relation = 'labelled'::regclass;
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW labelled IS 'incremental {"version": 2, "settings": {"TimeZone": "UTC"}}';
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW labelled IS 'incremental {"version": 2, "settings": {"work_mem": "1MB"}}';
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW labelled IS 'incremental {"version": 2, "settings": []}';
DO $$ BEGIN
    EXECUTE (SELECT format('SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW labelled IS %L', 'incremental ' || jsonb_build_object('version', 2, 'settings', settings || '{"DateStyle": "DMY"}')::text)
        FROM eddy.views WHERE relation = 'chosen'::regclass);
EXCEPTION WHEN invalid_parameter_value THEN RAISE WARNING '%', SQLERRM;
END $$;
-- What depends on more than settings is refused.
CREATE INCREMENTAL VIEW bad AS SELECT age(at) FROM s;
CREATE INCREMENTAL VIEW bad AS SELECT at::time::timetz FROM s;
CREATE INCREMENTAL VIEW bad AS SELECT timezone('CET', at::timetz) FROM s;
CREATE INCREMENTAL VIEW bad AS SELECT ('10:' || f)::timetz FROM s;
CREATE INCREMENTAL VIEW bad AS SELECT f::text::regclass FROM s;
CREATE INCREMENTAL VIEW bad AS SELECT concat(at, (ARRAY[NULL::aclitem])[1]) FROM s;
DROP TABLE moment, s, kind CASCADE;
DROP FUNCTION differs;
DROP TYPE note, tone;
DROP ROLE regress_stranger;
