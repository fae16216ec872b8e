-- Every supported type: as column, as key, in DISTINCT, with NULL and at its edges.
SET client_min_messages = warning;
SET timezone = 'UTC';
CREATE TABLE v (
    id int PRIMARY KEY, b bool, i2 smallint, i4 int, i8 bigint, f4 real, f8 float8, n numeric, n2 numeric(8, 2),
    t text, vc varchar(9), c char(4), d date, ts timestamp, tz timestamptz, u uuid, y bytea, ai int[], at text[], an numeric[]);
INSERT INTO v VALUES
    (1, true, 32767, 2147483647, 9223372036854775807, 1.5, 1e300, 12345678901234567890.123, 1.5, 'täxt', 'vc', 'ab', '2024-02-29',
     '2024-02-29 12:34:56.789', '2024-02-29 12:34:56.789+02', '00000000-0000-0000-0000-000000000001', '\x00ff', '{1,2,NULL}', '{a,"b c",NULL}', '{1.0,2}'),
    (2, false, -32768, -2147483648, -9223372036854775808, '-0', 'NaN', 'NaN', -0.01, '', '', '', '-infinity', 'infinity',
     '-infinity', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '\x', '{}', '{}', '{}'),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, true, 0, 0, 0, 0, '-0', 0.000, 0, 'täxt', 'vc ', 'ab  ', '0044-03-15 BC', '4713-01-01 00:00:00 BC', '294276-12-31 23:59:59+00',
     '00000000-0000-0000-0000-000000000001', '\x00', '{1,2,NULL}', '{a}', '{1,2.00}');
CREATE INCREMENTAL VIEW copied AS SELECT * FROM v;
SELECT * FROM copied ORDER BY id;
UPDATE v SET id = id + 10, i8 = i8 / 2, t = t || 'x', ai = ai || 7, at = at || 'z'::text WHERE id < 10;
SELECT * FROM copied ORDER BY id;
SELECT (SELECT count(*) FROM (TABLE copied EXCEPT ALL TABLE v) d) AS surplus, (SELECT count(*) FROM (TABLE v EXCEPT ALL TABLE copied) d) AS missing;

-- keys: equal values that are written differently are one
CREATE TABLE k (n numeric, f float8, c char(4), a numeric[], vc varchar);
CREATE INCREMENTAL VIEW k_n AS SELECT n, count(*) AS rows FROM k GROUP BY n;
CREATE INCREMENTAL VIEW k_f AS SELECT f, count(*) AS rows FROM k GROUP BY f;
CREATE INCREMENTAL VIEW k_c AS SELECT c, count(*) AS rows FROM k GROUP BY c;
CREATE INCREMENTAL VIEW k_a AS SELECT a, count(*) AS rows FROM k GROUP BY a;
CREATE INCREMENTAL VIEW k_d AS SELECT DISTINCT vc, f = 0 AS zero FROM k;
CREATE INCREMENTAL VIEW k_j AS SELECT x.vc AS x, y.vc AS y FROM k x JOIN k y ON x.n = y.n AND x.f = y.f AND x.c = y.c;
INSERT INTO k VALUES (1, 0, 'a', '{1}', 'p'), (1.0, '-0', 'a ', '{1.0}', 'q'), (1.00, 'NaN', 'b', '{NaN}', 'r'),
    ('NaN', 'NaN', '', NULL, 's'), ('NaN', 'Infinity', NULL, '{}', NULL);
SELECT n = 1 AS one, rows FROM k_n ORDER BY n;
SELECT f = 0 AS zero, rows FROM k_f ORDER BY f;
SELECT c, rows FROM k_c ORDER BY c;
SELECT a = '{1}' AS one, rows FROM k_a ORDER BY a;
SELECT * FROM k_d ORDER BY vc;
SELECT * FROM k_j ORDER BY x, y;
DELETE FROM k WHERE vc IN ('p', 's');
SELECT n = 1 AS one, rows FROM k_n ORDER BY n;
SELECT f, rows FROM k_f ORDER BY f;
SELECT c, rows FROM k_c ORDER BY c;
SELECT a, rows FROM k_a ORDER BY a;
SELECT * FROM k_j ORDER BY x, y;

-- casts and operators
CREATE TABLE o (id int, i int, n numeric, f float8, t text, d date, ai int[]);
CREATE INCREMENTAL VIEW casts AS
    SELECT id, i::bigint AS i8, i::numeric AS n0, i::float8 AS f0, i::text AS t0, i::bool AS b0, n::int AS ni, n::float8 AS nf, n::text AS nt,
        f::int AS fi, f::numeric AS fn, t::varchar(2) AS v2, t::char(3) AS c3, d::timestamp AS dts, n::numeric(6, 1) AS n61, i::smallint AS i2
    FROM o;
CREATE INCREMENTAL VIEW operators AS
    SELECT id, i + 1 AS a, i - 2 AS s, i * 3 AS m, i / 2 AS q, i % 2 AS r, -i AS neg, n + i AS ni, n / 3 AS n3, n * n AS nn, n % 2 AS nr,
        f / 4 AS f4, f * i AS fi, t || '-' || i::text AS ti, length(t) AS len, substr(t, 2, 2) AS sub, d + i AS later, d - DATE '2024-01-01' AS days,
        i = ANY (ai) AS member, ai || i AS appended, i || ai AS prepended, ARRAY[i, 1] AS made, t LIKE '_é%' AS likes, i IN (1, 2, NULL) AS listed
    FROM o;
INSERT INTO o VALUES (1, 1, 2.50, 2.5, 'aéb', '2024-02-28', '{1,2}'), (2, -7, -2.5, -3.5, '', '2023-12-31', '{}'), (3, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, 2, 1e-5, 0.1, 'a long word', '2000-02-29', '{NULL,3}');
SELECT * FROM casts ORDER BY id;
SELECT * FROM operators ORDER BY id;
UPDATE o SET i = i + 1, n = n * 10, t = reverse(t);
SELECT * FROM operators ORDER BY id;
DROP TABLE v, k, o CASCADE;

-- arrays of several dimensions
CREATE TABLE matrix (id int PRIMARY KEY, m int[], t text[], n int);
INSERT INTO matrix VALUES
    (1, '{{1,2},{3,4}}', '{{a,"b c"},{NULL,"{}"}}', 1), (2, '[0:1][2:3]={{1,2},{3,4}}', '{{NULL}}', 2), (3, '{1,2,3,4}', '{x}', 3), (4, '{}', '{}', 4),
    (5, NULL, NULL, 5), (6, '{{{1,2}},{{3,4}}}', '[-1:0][1:1]={{é},{z}}', 6), (7, '{{1,NULL,4}}', '{{""}}', 7), (8, '{{1,2,3,4}}', '{y}', 8);
CREATE INCREMENTAL VIEW cells AS
    SELECT id, m, t, array_ndims(m) AS ndims, array_length(m, 2) AS width, array_lower(m, 2) AS low, array_upper(m, 1) AS high, cardinality(m) AS cells,
        m[1] AS one, m[1][2] AS two, m || m AS twice, ARRAY[m] AS made, 3 = ANY (m) AS has, m @> '{4,1}' AS both, m = '{{1,2},{3,4}}' AS same, t::varchar[] AS v
    FROM matrix;
CREATE INCREMENTAL VIEW cells_ordered AS SELECT id, row_number() OVER (ORDER BY m NULLS FIRST, id) AS place, m < '{{1,2},{3,4}}' AS before FROM matrix;
CREATE INCREMENTAL VIEW cells_grouped AS SELECT m, count(*), max(id) FROM matrix GROUP BY m;
CREATE INCREMENTAL VIEW cells_listed AS SELECT id, c, place FROM matrix, unnest(m) WITH ORDINALITY AS u(c, place);
CREATE INCREMENTAL VIEW columns_listed AS SELECT id, generate_subscripts(m, 2) AS y FROM matrix;
CREATE INCREMENTAL VIEW stacked AS
    SELECT n % 2 AS odd, array_agg(ARRAY[n, id] ORDER BY id DESC) AS pairs, array_agg(DISTINCT ARRAY[n % 4, 1]) AS ns, array_agg(m) FILTER (WHERE id IN (1, 2)) AS ms FROM matrix GROUP BY n % 2;
CREATE INCREMENTAL VIEW stacked_for_each AS SELECT id, ARRAY(SELECT ARRAY[o.n, x.n] FROM matrix o WHERE o.id < x.id ORDER BY o.id DESC) AS ns FROM matrix x;
CREATE INCREMENTAL VIEW cut AS SELECT id, t::varchar(1)[] AS v, t::char(3)[] AS c, ARRAY[n / 3.0]::numeric(5, 2)[] AS d, '{abc}'::varchar(2)[] AS k, m::text AS written, m::text::int[] AS read FROM matrix;
CREATE INCREMENTAL VIEW grown AS SELECT id, m || n AS more FROM matrix WITH NO DATA;
CREATE INCREMENTAL VIEW joined_on AS SELECT id, m || ARRAY[[n, n, n, n]] AS more FROM matrix WITH NO DATA;
CREATE INCREMENTAL VIEW searched AS SELECT id, array_position(m, 3) AS at FROM matrix WITH NO DATA;
CREATE INCREMENTAL VIEW cleared AS SELECT id, array_remove(m, 3) AS rest FROM matrix WITH NO DATA;
CREATE INCREMENTAL VIEW piled AS SELECT array_agg(m) AS ms FROM matrix WITH NO DATA;
SELECT * FROM cells ORDER BY id;
SELECT * FROM cells_ordered ORDER BY place;
SELECT * FROM cut ORDER BY id;
SELECT * FROM columns_listed ORDER BY id, y;
SELECT * FROM stacked ORDER BY odd;
SELECT * FROM stacked_for_each ORDER BY id;
SELECT * FROM grown;
\echo :SQLSTATE
SELECT * FROM joined_on;
\echo :SQLSTATE
SELECT * FROM searched;
\echo :SQLSTATE
SELECT * FROM cleared;
\echo :SQLSTATE
SELECT * FROM piled;
\echo :SQLSTATE
UPDATE matrix SET m = m || m WHERE id IN (1, 2, 7);
UPDATE matrix SET m = '{{5}}' WHERE id = 4;
SELECT relation::text, d.* FROM eddy.views, eddy.verify_view(relation) d WHERE state <> 'error' AND (missing, surplus) <> (0, 0);
DELETE FROM matrix WHERE id NOT IN (3, 5);
SELECT id, more FROM grown ORDER BY id;
SELECT id, more FROM joined_on ORDER BY id;
SELECT id, at FROM searched ORDER BY id;
SELECT id, rest FROM cleared ORDER BY id;
DELETE FROM matrix WHERE id = 5;
SELECT * FROM piled;
SELECT relation::text, d.* FROM eddy.views, eddy.verify_view(relation) d WHERE (missing, surplus) <> (0, 0);
DROP TABLE matrix CASCADE;
