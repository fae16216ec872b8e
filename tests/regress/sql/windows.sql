-- Window functions.
SET client_min_messages = warning;
CREATE TABLE sale (id int PRIMARY KEY, shop text, day int, amount numeric);
INSERT INTO sale SELECT i, (ARRAY['a', 'b', NULL])[1 + i % 3], i / 2, i * 10 % 70 FROM generate_series(1, 14) i;

CREATE INCREMENTAL VIEW ranks AS
    SELECT id, row_number() OVER w AS number, rank() OVER (PARTITION BY shop ORDER BY day) AS rank,
        dense_rank() OVER (ORDER BY amount DESC) AS dense, percent_rank() OVER (ORDER BY amount) AS percent,
        cume_dist() OVER (ORDER BY day), ntile(4) OVER (ORDER BY id) AS tile
    FROM sale WINDOW w AS (PARTITION BY shop ORDER BY day, id);
CREATE INCREMENTAL VIEW neighbours AS
    SELECT id, lag(id) OVER w, lead(id, 2) OVER w AS lead2, lag(amount, 1, -1.0) OVER w AS before, lead(id, day - 3) OVER w AS far,
        first_value(id) OVER w, last_value(id) OVER w, nth_value(id, 2) OVER (w ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING)
    FROM sale WINDOW w AS (PARTITION BY shop ORDER BY id);
CREATE INCREMENTAL VIEW running AS
    SELECT id, sum(amount) OVER (PARTITION BY shop ORDER BY day) AS total, count(*) OVER () AS all_rows,
        avg(amount) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS moving,
        max(amount) OVER (ORDER BY day RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) AS others,
        min(id) OVER (ORDER BY day GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) AS least,
        count(*) FILTER (WHERE amount > 30) OVER (PARTITION BY day) AS big,
        bool_and(amount > 0) OVER (ORDER BY day DESC ROWS UNBOUNDED PRECEDING EXCLUDE GROUP) AS positive
    FROM sale;
CREATE INCREMENTAL VIEW ranges AS
    SELECT id, count(*) OVER (ORDER BY amount RANGE BETWEEN 10 PRECEDING AND 1.5 FOLLOWING) AS near,
        count(*) OVER (ORDER BY amount::float8 RANGE BETWEEN 10.5 PRECEDING AND CURRENT ROW) AS below,
        count(*) OVER (ORDER BY id::real DESC RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS beside,
        sum(id) OVER (ORDER BY day::bigint NULLS FIRST RANGE BETWEEN UNBOUNDED PRECEDING AND 9223372036854775807 FOLLOWING) AS far,
        ntile(nullif(id, 1) - id + 2) OVER (ORDER BY id) AS late
    FROM sale;
CREATE INCREMENTAL VIEW shares AS
    SELECT shop, sum(amount) AS total, sum(sum(amount)) OVER () AS of_all, rank() OVER (ORDER BY sum(amount) DESC, shop COLLATE "C") AS place
    FROM sale GROUP BY shop HAVING count(*) > 1;
CREATE INCREMENTAL VIEW newest AS
    SELECT shop, id FROM (SELECT shop, id, row_number() OVER (PARTITION BY shop ORDER BY day DESC, id DESC) AS n FROM sale) s WHERE n <= 2;
CREATE INCREMENTAL VIEW islands AS
    SELECT shop, min(day) AS first, max(day) AS last FROM (
        SELECT shop, day, day - row_number() OVER (PARTITION BY shop ORDER BY day) AS island FROM (SELECT DISTINCT shop, day FROM sale) d) i
    GROUP BY shop, island;
CREATE INCREMENTAL VIEW sampled AS
    SELECT DISTINCT day % 2 AS odd, count(*) OVER (PARTITION BY day % 2) AS n FROM sale ORDER BY 2, 1 LIMIT 1;
CREATE INCREMENTAL VIEW above_average AS
    SELECT s.id FROM sale s WHERE s.amount > ANY (SELECT avg(o.amount) OVER (PARTITION BY o.day) FROM sale o WHERE o.shop = s.shop);

CREATE INCREMENTAL VIEW days AS
    SELECT id, count(*) OVER (ORDER BY '2024-01-01'::date + day RANGE BETWEEN '1 day' PRECEDING AND CURRENT ROW) AS near,
        sum(amount) OVER (ORDER BY timestamp '2024-01-01' + day * interval '1 hour' DESC RANGE BETWEEN CURRENT ROW AND '90 minutes' FOLLOWING EXCLUDE CURRENT ROW) AS soon
    FROM sale;
CREATE INCREMENTAL VIEW lists AS
    SELECT id, string_agg(shop, ',') OVER (PARTITION BY day ORDER BY id) AS shops,
        array_agg(amount) FILTER (WHERE amount > 2) OVER (ORDER BY id ROWS 2 PRECEDING) AS amounts,
        jsonb_agg(id) OVER (PARTITION BY shop ORDER BY id GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW) AS before,
        max(day * interval '1 hour') OVER (PARTITION BY shop) AS longest
    FROM sale;

SELECT * FROM ranks ORDER BY id;
SELECT * FROM neighbours ORDER BY id;
SELECT id, total, all_rows, round(moving, 3) AS moving, others, least, big, positive FROM running ORDER BY id;
SELECT * FROM ranges ORDER BY id;
SELECT * FROM days ORDER BY id;
SELECT * FROM lists ORDER BY id;
SELECT * FROM shares ORDER BY place;
SELECT * FROM newest ORDER BY shop, id;
SELECT * FROM islands ORDER BY shop, first;
SELECT * FROM sampled;
SELECT * FROM above_average ORDER BY id;

INSERT INTO sale VALUES (20, 'a', 0, 5), (21, 'a', NULL, NULL), (22, NULL, 3, 'NaN');
UPDATE sale SET day = 9, shop = 'b' WHERE id = 3;
UPDATE sale SET amount = amount + 1 WHERE shop = 'a';
DELETE FROM sale WHERE id IN (5, 6);
SELECT * FROM ranks ORDER BY id;
SELECT * FROM neighbours ORDER BY id;
SELECT * FROM days ORDER BY id;
SELECT * FROM lists ORDER BY id;
SELECT id, total, all_rows, round(moving, 3) AS moving, others, least, big, positive FROM running ORDER BY id;
SELECT * FROM shares ORDER BY place;
SELECT * FROM newest ORDER BY shop, id;
SELECT * FROM islands ORDER BY shop, first;
SELECT * FROM sampled;
SELECT v.relation, d.missing, d.surplus FROM eddy.views v, eddy.verify_view(v.relation) d
WHERE (d.missing, d.surplus) <> (0, 0);

-- Errors of data
CREATE TABLE part (n int, id int);
INSERT INTO part VALUES (2, 1), (2, 2), (2, 3);
CREATE INCREMENTAL VIEW tiles AS SELECT id, ntile(n) OVER (PARTITION BY n ORDER BY id) AS tile FROM part;
SELECT * FROM tiles ORDER BY id;
INSERT INTO part VALUES (0, 4);
SELECT * FROM tiles;
\echo :SQLSTATE
UPDATE part SET n = 2 WHERE id = 4;
SELECT * FROM tiles ORDER BY id;
TRUNCATE sale, part;
SELECT count(*) FROM tiles;
SELECT * FROM shares;
SELECT v.relation, d.missing, d.surplus FROM eddy.views v, eddy.verify_view(v.relation) d
WHERE (d.missing, d.surplus) <> (0, 0);

EXPLAIN CREATE INCREMENTAL VIEW v AS
    SELECT id, sum(amount) OVER w, rank() OVER w, lag(id) OVER (ORDER BY id) FROM sale
    WINDOW w AS (PARTITION BY shop ORDER BY day DESC NULLS LAST RANGE BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE TIES);

-- Frames by months and days, over times with and without a zone, dates and intervals; clocks are put forward on 29 March 2026.
SET TimeZone = 'Europe/Berlin';
CREATE TABLE visit (id int PRIMARY KEY, at timestamptz, stamp timestamp, day date, span interval, n int);
INSERT INTO visit SELECT i, timestamptz '2026-03-26 22:00+00' + i * interval '7 hours', timestamp '2026-01-30' + i * interval '8 days', date '2026-01-31' + 9 * i,
    i % 5 * interval '20 days', i FROM generate_series(1, 30) AS i;
INSERT INTO visit (id, n) VALUES (50, 1), (51, 2);
INSERT INTO visit VALUES (60, 'infinity', 'infinity', 'infinity', '1 mon', 1), (61, '-infinity', '-infinity', '-infinity', '-1 mon', 1);
CREATE INCREMENTAL VIEW by_zone AS SELECT id, sum(n) OVER (ORDER BY at RANGE BETWEEN '1 day' PRECEDING AND CURRENT ROW) AS a,
    count(*) OVER (ORDER BY at DESC RANGE BETWEEN '1 day 3 hours' PRECEDING AND '2 days' FOLLOWING) AS b,
    sum(n) OVER (PARTITION BY n % 2 ORDER BY at NULLS FIRST RANGE BETWEEN '2 days' PRECEDING AND '1 day' PRECEDING) AS c FROM visit;
CREATE INCREMENTAL VIEW by_month AS SELECT id, sum(n) OVER (ORDER BY day RANGE BETWEEN '1 month' PRECEDING AND CURRENT ROW) AS a,
    count(*) OVER (ORDER BY day DESC NULLS LAST RANGE BETWEEN '1 month 3 days' PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES) AS b,
    max(n) OVER (ORDER BY stamp RANGE BETWEEN '1 month' PRECEDING AND '1 month' FOLLOWING EXCLUDE CURRENT ROW) AS c, sum(n) OVER (ORDER BY stamp DESC RANGE '1 month' PRECEDING) AS d FROM visit;
CREATE INCREMENTAL VIEW by_interval AS SELECT id, sum(n) OVER (ORDER BY span RANGE BETWEEN '1 month' PRECEDING AND '1 day' FOLLOWING) AS a,
    count(*) OVER (ORDER BY span DESC RANGE '45 days' PRECEDING) AS b FROM visit;
CREATE INCREMENTAL VIEW rolling AS SELECT at::date AS day, sum(sum(n)) OVER (ORDER BY at::date RANGE '7 days' PRECEDING) FROM visit GROUP BY 1;
SELECT v, d.* FROM unnest(ARRAY['by_zone', 'by_month', 'by_interval', 'rolling']) AS v, eddy.verify_view(v::regclass) AS d;
UPDATE visit SET at = at + '5 hours', day = day - 3, stamp = stamp - interval '1 month', span = span * 2 WHERE id % 4 = 0;
DELETE FROM visit WHERE id % 7 = 1;
INSERT INTO visit SELECT id + 100, at + '3 days', stamp, day, span, n FROM visit WHERE id < 20;
SELECT v, d.* FROM unnest(ARRAY['by_zone', 'by_month', 'by_interval', 'rolling']) AS v, eddy.verify_view(v::regclass) AS d;
SELECT * FROM by_zone WHERE id IN (2, 8, 50, 60) ORDER BY id;
EXPLAIN CREATE INCREMENTAL VIEW v AS SELECT sum(n) OVER (ORDER BY at RANGE BETWEEN '1 day' PRECEDING AND CURRENT ROW) FROM visit;

-- Offsets that are computed from constants.
CREATE INCREMENTAL VIEW computed AS SELECT id, sum(n) OVER (ORDER BY id ROWS BETWEEN 1 + 1 PRECEDING AND abs(-1) FOLLOWING) FROM visit;
CREATE INCREMENTAL VIEW first AS SELECT id FROM visit ORDER BY n FETCH FIRST (1 + 2) ROWS WITH TIES;
CREATE INCREMENTAL VIEW few AS SELECT id FROM visit ORDER BY id LIMIT length('abc') OFFSET 2 - 1;
DELETE FROM visit WHERE id < 3;
SELECT v, d.* FROM unnest(ARRAY['computed', 'first', 'few']) AS v, eddy.verify_view(v::regclass) AS d;
DROP TABLE visit CASCADE;

-- Times of day
CREATE TABLE shift (id int PRIMARY KEY, g int, at time, zoned timetz, n int);
INSERT INTO shift VALUES (1, 1, '08:00', '08:00+01', 1), (2, 1, '09:00', '08:00+02', 2), (3, 1, '09:00:00.000001', '07:00+00', 4), (4, 2, '23:30', '23:30-05', 8),
    (5, 2, NULL, NULL, 16), (6, 2, '24:00', '24:00+15:59', 32), (7, 1, '00:00', '00:00-15:59', 64), (8, 1, NULL, NULL, 128);
CREATE INCREMENTAL VIEW hourly AS SELECT id, sum(n) OVER w AS n, count(*) OVER (PARTITION BY g ORDER BY at DESC NULLS LAST RANGE BETWEEN '1 day 30 minutes' PRECEDING AND '1 microsecond' FOLLOWING) AS near,
    rank() OVER w, last_value(id) OVER (ORDER BY at RANGE BETWEEN CURRENT ROW AND '23:00' FOLLOWING EXCLUDE TIES) AS last
    FROM shift WINDOW w AS (ORDER BY at RANGE BETWEEN '1 hour' PRECEDING AND CURRENT ROW);
CREATE INCREMENTAL VIEW hourly_zoned AS SELECT id, sum(n) OVER (ORDER BY zoned RANGE BETWEEN '1 hour' PRECEDING AND '0' FOLLOWING) AS n,
    sum(n) OVER (ORDER BY zoned DESC RANGE BETWEEN '3 hours' PRECEDING AND '20:00' FOLLOWING) AS m, count(*) OVER (w RANGE BETWEEN '0' PRECEDING AND UNBOUNDED FOLLOWING) AS behind
    FROM shift WINDOW w AS (PARTITION BY g ORDER BY zoned);
CREATE INCREMENTAL VIEW hourly_groups AS SELECT at, sum(n), sum(sum(n)) OVER (ORDER BY at RANGE '2 hours' PRECEDING) AS recent FROM shift GROUP BY at;
SELECT * FROM hourly ORDER BY id;
SELECT * FROM hourly_zoned ORDER BY id;
SELECT * FROM hourly_groups ORDER BY at;
UPDATE shift SET at = '10:00', zoned = '09:00+02' WHERE id IN (1, 5);
DELETE FROM shift WHERE id = 2;
INSERT INTO shift VALUES (9, 1, '08:59:59', '07:00+00', 3), (10, NULL, NULL, NULL, NULL);
SELECT * FROM hourly ORDER BY id;
SELECT v, d.* FROM unnest(ARRAY['hourly', 'hourly_zoned', 'hourly_groups']) AS v, eddy.verify_view(v::regclass) AS d;
DROP TABLE shift CASCADE;

-- Frames of as many rows or groups as something says
CREATE TABLE reach (name text PRIMARY KEY, n int);
TRUNCATE sale;
INSERT INTO sale SELECT i, (ARRAY['a', 'b', NULL])[1 + i % 3], i / 2, i * 10 % 70 FROM generate_series(1, 14) i;
INSERT INTO reach VALUES ('before', 1), ('after', 0);
CREATE INCREMENTAL VIEW reaching AS SELECT id,
        sum(amount) OVER (ORDER BY id ROWS BETWEEN (SELECT n FROM reach WHERE name = 'before') PRECEDING AND (SELECT n + 1 FROM reach WHERE name = 'after') FOLLOWING) AS rows,
        count(*) OVER (PARTITION BY shop ORDER BY day GROUPS (SELECT n FROM reach WHERE name = 'before') PRECEDING) AS groups,
        array_agg(id) OVER (ORDER BY id DESC ROWS BETWEEN CURRENT ROW AND (SELECT max(n) FROM reach) FOLLOWING EXCLUDE CURRENT ROW) AS ids FROM sale;
CREATE INCREMENTAL VIEW reaching_far AS SELECT id,
        sum(amount) OVER (ORDER BY day RANGE BETWEEN (SELECT n FROM reach WHERE name = 'before') PRECEDING AND (SELECT abs(n) FROM reach WHERE name = 'after') FOLLOWING) AS days,
        count(*) OVER (ORDER BY amount DESC NULLS FIRST RANGE (SELECT n * 2.5 FROM reach WHERE name = 'before') PRECEDING EXCLUDE GROUP) AS amounts,
        array_agg(id) OVER (PARTITION BY shop ORDER BY id::float8 / 2 RANGE BETWEEN CURRENT ROW AND (SELECT max(n) FROM reach) FOLLOWING) AS ids FROM sale;
CREATE INCREMENTAL VIEW reaching_each AS SELECT r.name, s.id, s.total FROM reach r,
    LATERAL (SELECT id, sum(amount) OVER (ORDER BY id ROWS BETWEEN r.n PRECEDING AND UNBOUNDED FOLLOWING) AS total FROM sale WHERE day < 4) s;
SELECT v, d.* FROM unnest(ARRAY['reaching', 'reaching_far', 'reaching_each']) AS v, eddy.verify_view(v::regclass) AS d;
UPDATE reach SET n = n + 2;
UPDATE sale SET amount = -5, day = 3 WHERE id IN (2, 9);
INSERT INTO reach VALUES ('more', 7);
SELECT v, d.* FROM unnest(ARRAY['reaching', 'reaching_far', 'reaching_each']) AS v, eddy.verify_view(v::regclass) AS d;
UPDATE reach SET n = NULL WHERE name = 'before';
SELECT * FROM reaching;
\echo :SQLSTATE
SELECT * FROM reaching_far;
\echo :SQLSTATE
UPDATE reach SET n = -1 WHERE name = 'before';
SELECT * FROM reaching_each;
\echo :SQLSTATE
SELECT * FROM reaching_far;
\echo :SQLSTATE
UPDATE reach SET n = 0 WHERE name = 'before';
SELECT v, d.* FROM unnest(ARRAY['reaching', 'reaching_far', 'reaching_each']) AS v, eddy.verify_view(v::regclass) AS d;
CREATE INCREMENTAL VIEW bad AS SELECT sum(amount) OVER (ORDER BY date '2026-01-01' + id RANGE (SELECT n * interval '1 day' FROM reach WHERE name = 'after') PRECEDING) FROM sale;
\echo :SQLSTATE
-- an offset that is none is the error that it is in PostgreSQL, whatever it counts and whoever looks at the frame
CREATE TABLE distance (n bigint, f float8);
INSERT INTO distance VALUES (1, 1);
CREATE TABLE framed (number int, query text);
INSERT INTO framed SELECT row_number() OVER (), format('SELECT id, %s OVER (ORDER BY %s ' || bounds || ') AS x FROM sale', call, kind, o)
FROM unnest(ARRAY['sum(amount)', 'array_agg(id)', 'lag(id)', 'nth_value(id, 1)']) AS call,
    (VALUES ('id ROWS', '(SELECT n FROM distance)'), ('id GROUPS', '(SELECT n FROM distance)'), ('id RANGE', '(SELECT n FROM distance)'),
        ('id::float8 DESC RANGE', '(SELECT f FROM distance)')) AS k(kind, o),
    unnest(ARRAY['%s PRECEDING', 'BETWEEN 1 PRECEDING AND %s FOLLOWING']) AS bounds;
CREATE FUNCTION outcome(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE 'SELECT string_agg(shown::text, '' '' ORDER BY shown::text) FROM (' || query || ') AS shown' INTO result;
    RETURN result;
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE || ': ' || SQLERRM;
END $$;
SELECT format('CREATE INCREMENTAL VIEW framed_%s AS %s', number, query) FROM framed \gexec
CREATE VIEW others AS SELECT query, outcome(query), outcome('SELECT * FROM framed_' || number) AS of_view FROM framed;
SELECT * FROM others WHERE of_view IS DISTINCT FROM outcome;
UPDATE distance SET n = -1, f = -1;
SELECT * FROM others WHERE of_view IS DISTINCT FROM outcome;
SELECT DISTINCT of_view FROM others WHERE of_view ~ ':' ORDER BY 1;
UPDATE distance SET n = NULL, f = NULL;
SELECT * FROM others WHERE of_view IS DISTINCT FROM outcome;
SELECT DISTINCT of_view FROM others WHERE of_view ~ ':' ORDER BY 1;
UPDATE distance SET n = 0, f = 'NaN';
SELECT * FROM others WHERE of_view IS DISTINCT FROM outcome;
SELECT DISTINCT of_view FROM others WHERE of_view ~ ':' ORDER BY 1;
DELETE FROM distance;
SELECT * FROM others WHERE of_view IS DISTINCT FROM outcome;
-- where there are no rows there is no frame, and the view has no error: PostgreSQL looks at the offset first
CREATE TABLE kept AS TABLE sale;
TRUNCATE sale;
SELECT DISTINCT outcome, of_view FROM others ORDER BY 1;
INSERT INTO sale TABLE kept;
DROP TABLE kept;
DROP VIEW others;
DROP FUNCTION outcome(text);
DROP TABLE distance, framed CASCADE;
DROP TABLE reach CASCADE;

-- Other names
CREATE FUNCTION place() RETURNS bigint LANGUAGE internal IMMUTABLE WINDOW AS 'window_rank';
CREATE FUNCTION before(anyelement) RETURNS anyelement LANGUAGE internal IMMUTABLE WINDOW AS 'window_lag';
CREATE INCREMENTAL VIEW placed AS SELECT id, place() OVER (ORDER BY day), before(id) OVER (ORDER BY id) FROM sale;
SELECT * FROM eddy.verify_view('placed');
DELETE FROM sale WHERE id = 1;
SELECT * FROM eddy.verify_view('placed');
CREATE FUNCTION wrong() RETURNS int LANGUAGE internal IMMUTABLE WINDOW AS 'window_rank';
CREATE INCREMENTAL VIEW bad AS SELECT id, wrong() OVER (ORDER BY day) FROM sale;
DROP MATERIALIZED VIEW placed;
DROP FUNCTION place(), before(anyelement), wrong();

-- Arrays of arrays
CREATE TABLE pair (id int PRIMARY KEY, g int, two int[], texts text[]);
INSERT INTO pair VALUES (1, 1, '{1,2}', '{a,NULL}'), (2, 1, '{3,NULL}', '{b,c}'), (3, 2, '{5,6}', '{d,e}'), (4, 2, '{7,8}', '{f,g}');
CREATE INCREMENTAL VIEW nested AS SELECT id, array_agg(two) OVER w AS frames, array_agg(texts) FILTER (WHERE id <> 2) OVER (PARTITION BY g ORDER BY id) AS texts
    FROM pair WINDOW w AS (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW);
SELECT * FROM nested ORDER BY id;
UPDATE pair SET two = '{0,0}', g = 2 WHERE id = 2;
DELETE FROM pair WHERE id = 3;
INSERT INTO pair VALUES (9, 1, '{9,9}', '{x,y}');
SELECT * FROM nested ORDER BY id;
SELECT * FROM eddy.verify_view('nested');
-- As in PostgreSQL they must be alike.
UPDATE pair SET two = '{1}' WHERE id = 4;
SELECT * FROM nested;
\echo :SQLSTATE
UPDATE pair SET two = NULL WHERE id = 4;
SELECT * FROM nested;
\echo :SQLSTATE
DELETE FROM pair WHERE id = 4;
SELECT * FROM eddy.verify_view('nested');
DROP TABLE pair CASCADE;

-- Refused
CREATE INCREMENTAL VIEW bad AS SELECT count(*) OVER (ORDER BY '10:00'::time RANGE BETWEEN '-1 hour' PRECEDING AND CURRENT ROW) FROM sale WITH NO DATA;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT count(*) OVER (ORDER BY '2024-01-01'::date + day RANGE BETWEEN '-1 month' PRECEDING AND CURRENT ROW) FROM sale WITH NO DATA;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT row_number() OVER () IN (SELECT day FROM sale) FROM sale;
\echo :SQLSTATE

DROP TABLE sale, part CASCADE;
