-- Aggregates under inserts, updates and deletes.
SET client_min_messages = warning;
CREATE TABLE m (g text, i2 smallint, i4 int, i8 bigint, f4 real, f8 float8, n numeric, b bool, t text, d date, ts timestamptz);
CREATE INCREMENTAL VIEW grouped AS
    SELECT g, count(*) AS rows, count(i4) AS present, sum(i2) AS s2, sum(i4) AS s4, sum(i8) AS s8,
        sum(f4) AS sf4, sum(f8) AS sf8, sum(n) AS sn, bool_and(b) AS every, bool_or(b) AS any
    FROM m GROUP BY g;
CREATE INCREMENTAL VIEW averages AS
    SELECT g, avg(i2) AS a2, avg(i4) AS a4, avg(i8) AS a8, avg(f4) AS af4, avg(f8) AS af8, avg(n) AS an FROM m GROUP BY g;
CREATE INCREMENTAL VIEW extremes AS
    SELECT g, min(i4) AS min4, max(i4) AS max4, min(n) AS minn, max(n) AS maxn, min(f8) AS minf, max(f8) AS maxf,
        min(t) AS mint, max(t) AS maxt, min(d) AS mind, max(d) AS maxd, min(ts) AS mints FROM m GROUP BY g;
CREATE INCREMENTAL VIEW whole AS
    SELECT count(*) AS rows, sum(i4) AS total, avg(n) AS mean, min(t) AS first, max(d) AS last, bool_or(b) AS any FROM m;
CREATE INCREMENTAL VIEW with_having AS
    SELECT g, sum(i4) + 1 AS more FROM m WHERE i4 IS NOT NULL GROUP BY g HAVING count(*) > 1 AND min(i4) < 5;
CREATE INCREMENTAL VIEW by_expression AS
    SELECT i4 % 3 AS rest, length(g) AS width, count(*) AS rows FROM m GROUP BY i4 % 3, length(g);

-- nothing there: no groups, one row without GROUP BY
SELECT * FROM grouped ORDER BY g;
SELECT * FROM whole;
INSERT INTO m VALUES
    ('a', 1, 1, 1, 0.5, 0.25, 1.10, true, 'x', '2024-01-01', '2024-01-01 12:00+00'),
    ('a', 2, 5, 9, 1.5, 0.75, 2.2, false, 'y', '2023-01-01', '2023-01-01 12:00+00'),
    ('a', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    ('bb', 3, 7, 9223372036854775807, 2, 3, 0.001, true, 'é', '2025-01-01', '2025-01-01 12:00+02'),
    ('bb', 3, 2, 9223372036854775807, 2, 3, 5, NULL, 'z', NULL, NULL),
    (NULL, 4, 4, 4, 4, 4, 4, false, 'n', '2020-02-29', 'infinity'),
    ('only null', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SELECT * FROM grouped ORDER BY g;
SELECT * FROM averages ORDER BY g;
SELECT * FROM extremes ORDER BY g;
SELECT * FROM whole;
SELECT * FROM with_having ORDER BY g;
SELECT * FROM by_expression ORDER BY rest, width;
-- the present extreme goes, the numeric with the largest scale goes
DELETE FROM m WHERE i4 IN (1, 7);
SELECT * FROM grouped ORDER BY g;
SELECT * FROM averages ORDER BY g;
SELECT * FROM extremes ORDER BY g;
SELECT * FROM whole;
SELECT * FROM with_having ORDER BY g;
SELECT * FROM by_expression ORDER BY rest, width;
-- a group vanishes, another changes its key
DELETE FROM m WHERE g IS NULL;
UPDATE m SET g = 'c', b = true, f8 = 'NaN', n = 'NaN' WHERE g = 'a' AND i4 IS NOT NULL;
INSERT INTO m (g, f8, f4, n) VALUES ('c', 'Infinity', '-Infinity', 1), ('d', 1e100, 1e30, 1), ('d', -1e100, 1e-30, -1.000), ('d', 1, 0, 0);
SELECT g, rows, sf4, sf8, sn, every, "any" FROM grouped ORDER BY g;
SELECT g, af8, an FROM averages ORDER BY g;
SELECT g, minn, maxn, minf, maxf FROM extremes ORDER BY g;
DELETE FROM m WHERE n = 'NaN' OR f8 = 'Infinity';
SELECT g, rows, sf4, sf8, sn, every, "any" FROM grouped ORDER BY g;
-- floats do not drift: what is added and removed leaves nothing
CREATE TABLE f (v float8);
CREATE INCREMENTAL VIEW fsum AS SELECT sum(v) AS total, count(*) AS rows FROM f;
INSERT INTO f VALUES (0.5);
INSERT INTO f VALUES (1e16);
DELETE FROM f WHERE v = 1e16;
SELECT * FROM fsum;
-- variances, standard deviations, bits and pairs
CREATE TABLE measures (g int, i2 smallint, i4 int, i8 bigint, n numeric, f8 float8);
CREATE INCREMENTAL VIEW spreads AS
    SELECT g, var_pop(i2) AS v2, variance(i4) AS v4, stddev(i8) AS s8, stddev_pop(n) AS sn, var_samp(DISTINCT n) AS dn,
        stddev_samp(f8) FILTER (WHERE i4 > 0) AS sf FROM measures GROUP BY g;
CREATE INCREMENTAL VIEW bits AS
    SELECT g, bit_and(i2) AS and2, bit_or(i4) AS or4, bit_xor(i8) AS xor8, bit_xor(DISTINCT i4) AS dxor4 FROM measures GROUP BY g;
CREATE INCREMENTAL VIEW lines AS
    SELECT g, regr_count(f8, i4) AS pairs, regr_avgx(f8, i4) AS x, regr_slope(f8, i4) AS slope, regr_intercept(f8, i4) AS start,
        regr_r2(f8, i4) AS r2, corr(i2, i4) FILTER (WHERE i8 > 0) AS corr, covar_pop(DISTINCT i2, i4) AS covar FROM measures GROUP BY g;
INSERT INTO measures VALUES
    (1, 7, 12, 9223372036854775807, 1.50, 1), (1, -2, 10, -9223372036854775808, 2.5, 3), (1, 3, 10, 5, 2.500, 5),
    (2, -1, -6, 1, 1e-20, 1), (2, NULL, NULL, NULL, NULL, NULL), (3, NULL, NULL, NULL, 'NaN', 'Infinity');
SELECT * FROM spreads ORDER BY g;
SELECT * FROM bits ORDER BY g;
SELECT * FROM lines ORDER BY g;
DELETE FROM measures WHERE i8 = 5 OR n = 'NaN';
UPDATE measures SET i2 = i2 + 1, i4 = i4 - 3 WHERE g = 1;
INSERT INTO measures VALUES (2, 6, 3, 3, 5, 9), (3, 1, 1, 1, 1, 1), (1, 9, 5, 7, 0, 4);
SELECT * FROM spreads ORDER BY g;
SELECT * FROM bits ORDER BY g;
SELECT * FROM lines ORDER BY g;
DROP TABLE measures CASCADE;
-- of some rows only, and of different values only
CREATE TABLE picks (g int, x int, n numeric, t text);
CREATE INCREMENTAL VIEW distinct_values AS
    SELECT g, count(DISTINCT x) AS x, sum(DISTINCT n) AS n, count(DISTINCT t) AS t, avg(DISTINCT x ORDER BY x) AS mean, count(*) AS rows, sum(x) AS total
    FROM picks GROUP BY g;
CREATE INCREMENTAL VIEW filtered AS
    SELECT count(*) FILTER (WHERE x > 1) AS large, sum(n) FILTER (WHERE t = 'a') AS a, min(x) FILTER (WHERE 1 / g > 0) AS least,
        count(DISTINCT x) FILTER (WHERE t IS NOT NULL) AS named FROM picks WHERE g <> 0;
CREATE INCREMENTAL VIEW distinct_having AS
    SELECT t FROM picks GROUP BY t HAVING count(DISTINCT x) > 1 OR max(DISTINCT x) FILTER (WHERE n > 1) = 2;
SELECT * FROM distinct_values;
SELECT * FROM filtered;
INSERT INTO picks VALUES (1, 1, 1.0, 'a'), (1, 1, 1.00, 'a'), (1, 2, 2, NULL), (2, NULL, 5, 'b'), (NULL, 7, NULL, 'a'), (1, 2, 1, 'b'), (0, 3, 3, 'c');
SELECT * FROM distinct_values ORDER BY g;
SELECT * FROM filtered;
SELECT * FROM distinct_having ORDER BY t;
DELETE FROM picks WHERE n = 2 OR g IS NULL;
UPDATE picks SET x = 1 WHERE x = 2;
INSERT INTO picks VALUES (2, NULL, 5.0, 'B');
SELECT * FROM distinct_values ORDER BY g;
SELECT * FROM filtered;
SELECT * FROM distinct_having ORDER BY t;
SELECT v.relation, d.missing, d.surplus FROM eddy.views v, eddy.verify_view(v.relation) d
WHERE (d.missing, d.surplus) <> (0, 0);
EXPLAIN CREATE INCREMENTAL VIEW v AS SELECT g, count(DISTINCT x), count(*) FROM picks GROUP BY g;
-- several groupings at once
CREATE INCREMENTAL VIEW by_rollup AS
    SELECT g, t, GROUPING(g, t) AS level, sum(x) AS x, count(DISTINCT n) AS n FROM picks GROUP BY ROLLUP (g, t);
CREATE INCREMENTAL VIEW by_cube AS SELECT g, t, count(*) AS rows FROM picks GROUP BY CUBE (g, t) HAVING count(*) > 1;
CREATE INCREMENTAL VIEW by_sets AS
    SELECT g + 1 AS h, t, GROUPING(g + 1) AS no_h, (SELECT count(*) FROM picks q WHERE q.t = p.t) AS same FROM picks p
    GROUP BY GROUPING SETS ((g + 1, t), (t), (), ());
CREATE INCREMENTAL VIEW key_as_argument AS SELECT g, count(DISTINCT t) AS ts, sum(g) AS sum, count(g) AS count, max(g) AS max FROM picks GROUP BY g;
CREATE INCREMENTAL VIEW by_text AS SELECT g::text AS g, t, count(*) FROM picks GROUP BY ROLLUP (1, 2);
CREATE INCREMENTAL VIEW nested_sets AS SELECT g, t, GROUPING(g, t) AS level, count(*) FROM picks GROUP BY GROUPING SETS (ROLLUP (g, (t)), CUBE ((g, t)), GROUPING SETS ((t)));
CREATE INCREMENTAL VIEW bad AS SELECT g AS a, g AS b, count(*) FROM picks GROUP BY CUBE (1, 2);
\echo :SQLSTATE
CREATE INCREMENTAL VIEW mixed AS SELECT g, x, t, min(n) AS n, GROUPING(g) AS zero FROM picks GROUP BY g, ROLLUP (x), GROUPING SETS ((t), ());
CREATE INCREMENTAL VIEW distinct_sets AS
    SELECT g, t, GROUPING(g, t) AS level, count(*) FROM picks GROUP BY DISTINCT ROLLUP (g, t), ROLLUP (t, g);
CREATE INCREMENTAL VIEW all_sets AS SELECT g, count(*) FROM picks GROUP BY ALL ROLLUP (g), CUBE (g);
SELECT * FROM distinct_sets ORDER BY level, g, t;
SELECT g, count, count(*) AS times FROM all_sets GROUP BY g, count ORDER BY g;
SELECT * FROM by_rollup ORDER BY level, g, t;
SELECT * FROM by_cube ORDER BY g, t;
SELECT * FROM by_sets ORDER BY no_h, h, t;
SELECT * FROM mixed ORDER BY g, x, t;
UPDATE picks SET g = NULL WHERE x = 3;
INSERT INTO picks VALUES (1, 9, 9, NULL);
SELECT * FROM by_rollup ORDER BY level, g, t;
SELECT v.relation, d.missing, d.surplus FROM eddy.views v, eddy.verify_view(v.relation) d
WHERE (d.missing, d.surplus) <> (0, 0);
TRUNCATE picks;
SELECT * FROM by_rollup;
SELECT * FROM by_sets;
SELECT * FROM by_cube;
DROP TABLE picks CASCADE;
TRUNCATE m;
SELECT * FROM grouped ORDER BY g;
SELECT * FROM whole;
SELECT * FROM extremes ORDER BY g;
DROP TABLE m, f CASCADE;
