-- Joins of ranges and shapes that overlap: PostgreSQL says where they are, rows meet in cells, and PostgreSQL says whether they fit.
SET client_min_messages = warning;
CREATE TABLE booking (id int PRIMARY KEY, room int, during tstzrange, nights daterange, seats int4range, price numrange, often int8multirange);
CREATE TABLE visit (id int PRIMARY KEY, at timestamptz, until timestamptz, day date, seat int, paid numeric, number bigint);
INSERT INTO booking VALUES
    (1, 1, '[2024-01-01Z,2024-01-02Z)', '[2024-01-01,2024-01-05)', '[1,10]', '[1.5,2.5)', '{[1,5],[100,200]}'),
    (2, 1, '(2024-01-02Z,)', '[2024-01-05,2024-01-05]', '(,5)', '(2.5,)', '{(,7)}'),
    (3, 2, '(,)', '(,)', '(,)', '(,)', '{(,)}'),
    (4, 2, 'empty', 'empty', 'empty', 'empty', '{}'),
    (5, 3, NULL, NULL, NULL, NULL, NULL),
    (6, 3, '[2024-01-02Z,2024-01-02Z]', '[2024-01-04,infinity)', '[10,11)', '[NaN,NaN]', '{[5,6),[7,8)}'),
    (7, 3, '[-infinity,infinity]', '[infinity,infinity]', '[-2147483648,2147483647)', '[-Infinity,Infinity]', '{[9223372036854775806,9223372036854775807)}');
INSERT INTO visit VALUES
    (1, '2024-01-01Z', '2024-01-01 12:00Z', '2024-01-01', 1, 1.50, 5),
    (2, '2024-01-02Z', '2024-01-02Z', '2024-01-05', 10, 2.5, 150),
    (3, 'infinity', 'infinity', 'infinity', 2147483647, 'NaN', 9223372036854775807),
    (4, '-infinity', '2024-01-01Z', '-infinity', -2147483648, '-Infinity', 6),
    (5, NULL, NULL, NULL, NULL, NULL, NULL),
    (6, '2024-01-03Z', NULL, '2024-01-04', 11, 2, 7);
CREATE INCREMENTAL VIEW clashes AS
    SELECT a.id, b.id AS other FROM booking a JOIN booking b ON a.during && b.during AND a.id <> b.id;
CREATE INCREMENTAL VIEW nights AS SELECT a.id, b.id AS other FROM booking a LEFT JOIN booking b ON a.nights @> b.nights;
CREATE INCREMENTAL VIEW seats AS SELECT a.id, b.id AS other FROM booking a JOIN booking b ON a.seats <@ b.seats;
CREATE INCREMENTAL VIEW neighbours AS SELECT a.id, b.id AS other FROM booking a JOIN booking b ON a.nights -|- b.nights;
CREATE INCREMENTAL VIEW inside AS SELECT v.id, b.id AS booking FROM visit v LEFT JOIN booking b ON b.during @> v.at;
CREATE INCREMENTAL VIEW days AS SELECT v.id, b.id AS booking FROM visit v JOIN booking b ON v.day <@ b.nights;
CREATE INCREMENTAL VIEW seated AS SELECT v.id, b.id AS booking FROM visit v JOIN booking b ON b.seats @> v.seat;
CREATE INCREMENTAL VIEW paid AS SELECT v.id, b.id AS booking FROM visit v JOIN booking b ON b.price @> v.paid;
CREATE INCREMENTAL VIEW numbered AS SELECT v.id, b.id AS booking FROM visit v JOIN booking b ON b.often @> v.number;
CREATE INCREMENTAL VIEW often AS SELECT a.id, b.id AS other FROM booking a JOIN booking b ON a.often && b.often;
CREATE INCREMENTAL VIEW made AS
    SELECT v.id, b.id AS booking FROM visit v JOIN booking b ON tstzrange(v.at, v.until, '[]') && b.during;
CREATE INCREMENTAL VIEW outside AS
    SELECT v.id FROM visit v WHERE NOT EXISTS (SELECT FROM booking b WHERE b.during @> v.at AND b.id <> 3);

CREATE TABLE place (id int PRIMARY KEY, p point);
CREATE TABLE area (id int PRIMARY KEY, b box, g polygon, c circle);
INSERT INTO place VALUES (1, '(0,0)'), (2, '(1,1)'), (3, '(-1,-1)'), (4, '(1e10,1e10)'), (5, NULL), (6, '(2.0000005,0.5)'), (7, '(Infinity,0)');
INSERT INTO area VALUES
    (1, '(0,0),(1,1)', '((0,0),(0,1),(1,1),(1,0))', '<(0,0),1>'),
    (2, '(-1,-1),(1,1)', '((-1,-1),(-1,1),(1,0))', '<(1,1),0>'),
    (3, '(1e9,1e9),(1e11,1e11)', '((1e9,1e9),(1e11,1e9),(1e11,1e11))', '<(1e10,1e10),3>'),
    (4, NULL, NULL, NULL),
    (5, '(2,0),(2,1)', '((2,0),(2,1),(2,0.5))', '<(2,0.5),0>'),
    (6, '(-Infinity,-1),(Infinity,1)', '((-5,-5),(-5,5),(5,5),(5,-5))', '<(0,0),Infinity>');
CREATE INCREMENTAL VIEW in_boxes AS SELECT p.id, a.id AS area FROM place p JOIN area a ON p.p <@ a.b;
CREATE INCREMENTAL VIEW in_polygons AS SELECT p.id, a.id AS area FROM place p LEFT JOIN area a ON a.g @> p.p;
CREATE INCREMENTAL VIEW in_circles AS SELECT p.id, a.id AS area FROM place p JOIN area a ON a.c @> p.p;
CREATE INCREMENTAL VIEW box_pairs AS SELECT a.id, b.id AS other FROM area a JOIN area b ON a.b && b.b;
CREATE INCREMENTAL VIEW polygons AS SELECT a.id, b.id AS other FROM area a LEFT JOIN area b ON a.g && b.g AND a.id < b.id;
CREATE INCREMENTAL VIEW same_places AS SELECT a.id, b.id AS other FROM place a JOIN place b ON a.p ~= b.p AND a.id <> b.id;
CREATE INCREMENTAL VIEW around AS SELECT a.id, b.id AS other FROM place a JOIN place b ON circle(a.p, 1.5) @> b.p AND a.id <> b.id;

CREATE FUNCTION differing_places() RETURNS TABLE (relation regclass, missing bigint, surplus bigint) LANGUAGE sql AS
    $$SELECT v.relation, d.missing, d.surplus FROM eddy.views v, eddy.verify_view(v.relation) d
      WHERE (d.missing, d.surplus) <> (0, 0)$$;
SELECT * FROM differing_places();
SELECT * FROM clashes ORDER BY id, other;
SELECT * FROM inside ORDER BY id, booking;
SELECT * FROM paid ORDER BY id, booking;
SELECT * FROM in_boxes ORDER BY id, area;
SELECT * FROM in_polygons ORDER BY id, area;
SELECT * FROM in_circles ORDER BY id, area;
EXPLAIN (COSTS OFF) CREATE INCREMENTAL VIEW x AS SELECT v.id, b.id AS booking FROM visit v JOIN booking b ON b.during @> v.at;
EXPLAIN (COSTS OFF) CREATE INCREMENTAL VIEW x AS SELECT p.id, a.id AS area FROM place p JOIN area a ON a.g @> p.p;
-- What says nothing of places.
EXPLAIN (COSTS OFF) CREATE INCREMENTAL VIEW x AS SELECT a.id, b.id AS other FROM booking a JOIN booking b ON a.during << b.during;

INSERT INTO booking SELECT 100 + i, i % 3, tstzrange(timestamptz '2024-01-01Z' + i * interval '5 hours', timestamptz '2024-01-01Z' + i * interval '5 hours' + i * i * interval '1 hour'),
    daterange(date '2024-01-01' + i, date '2024-01-01' + i + i % 5), int4range(i, i * 2), numrange(i / 4.0, i / 2.0, '(]'), int8multirange(int8range(i, i + 3), int8range(i * 10, i * 11))
    FROM generate_series(1, 40) i;
INSERT INTO visit SELECT 100 + i, timestamptz '2024-01-01Z' + i * interval '7 hours', timestamptz '2024-01-01Z' + i * interval '9 hours',
    date '2024-01-01' + i, i, i / 3.0, i * 3 FROM generate_series(1, 60) i;
INSERT INTO place SELECT 100 + i, point(i * 0.7 - 9, (i * 37 % 20) * 0.9 - 9) FROM generate_series(1, 30) i;
INSERT INTO area SELECT 100 + i, box(point(i - 15, i % 7 - 3), point(i - 15 + i % 4, i % 7 - 3 + i % 3)),
    polygon(box(point(i - 15, i % 7 - 3), point(i - 15 + i % 4, i % 7 - 3 + i % 3))), circle(point(i - 15, i % 7 - 3), i % 4 * 1.1) FROM generate_series(1, 30) i;
SELECT * FROM differing_places();
SELECT count(*) FROM clashes;
SELECT count(*) FROM in_polygons WHERE area IS NOT NULL;
UPDATE booking SET during = during * '[2024-01-03Z,2024-01-05Z)', nights = daterange(lower(nights), upper(nights) + 3) WHERE id % 2 = 0;
UPDATE visit SET at = at - interval '1 day', day = NULL WHERE id % 2 = 0;
UPDATE place SET p = point(p[1], p[0]) WHERE id % 2 = 0;
UPDATE area SET b = NULL, c = circle(center(c), 2) WHERE id % 5 = 0;
SELECT * FROM differing_places();
DELETE FROM booking WHERE id > 120;
DELETE FROM area WHERE id > 3;
SELECT * FROM differing_places();
TRUNCATE visit, place;
SELECT * FROM differing_places();

-- A join of all pairs of very many rows says so.
CREATE TABLE many AS SELECT i, i % 100 AS n FROM generate_series(1, 10) i;
ALTER TABLE many REPLICA IDENTITY FULL;
ANALYZE many;
UPDATE pg_class SET reltuples = 12000, relpages = 1 WHERE oid = 'many'::regclass;
SET client_min_messages = notice;
CREATE INCREMENTAL VIEW pairs AS SELECT count(*) FROM many a JOIN many b ON a.n > b.n + 5;
CREATE INCREMENTAL VIEW near AS SELECT count(*) FROM many a JOIN many b ON a.i BETWEEN b.i AND b.i + 2;
SELECT * FROM near;
SET client_min_messages = warning;
DROP TABLE booking, visit, place, area, many CASCADE;
DROP FUNCTION differing_places();
