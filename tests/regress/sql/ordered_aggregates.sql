-- Aggregates of all values in an order: array_agg, string_agg, percentiles, mode, variances. And fields of dates.
SET client_min_messages = warning;
CREATE TABLE m (k int, v int, t text, f float8, d date, n numeric);
INSERT INTO m VALUES (1, 3, 'c', 1.5, '2024-02-29', 1.0), (1, 1, 'a', 2.5, '2024-01-01', 1.00), (1, NULL, NULL, NULL, NULL, NULL),
    (2, 7, 'z', 4, '2023-12-31', 2), (2, 7, 'y', 4, '2020-06-15', 3), (NULL, 5, 'q', 'NaN', 'infinity', 'NaN');

CREATE INCREMENTAL VIEW arrays AS
    SELECT k, array_agg(v ORDER BY v DESC) AS vs, array_agg(t ORDER BY v NULLS FIRST, t) AS ts, array_agg(DISTINCT n) AS ns,
        array_agg(v ORDER BY v) FILTER (WHERE v > 1) AS big FROM m GROUP BY k;
CREATE INCREMENTAL VIEW texts AS
    SELECT k, string_agg(t, ', ' ORDER BY t DESC) AS ts, string_agg(DISTINCT v::text, '-') AS vs, string_agg(t, NULL ORDER BY t) AS glued FROM m GROUP BY k;
CREATE INCREMENTAL VIEW middles AS
    SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY f) AS median, percentile_disc(0.5) WITHIN GROUP (ORDER BY d DESC) AS day,
        percentile_cont(0.25) WITHIN GROUP (ORDER BY v) AS low, mode() WITHIN GROUP (ORDER BY v) AS often, count(*) FROM m GROUP BY k;
CREATE INCREMENTAL VIEW overall AS
    SELECT array_agg(v ORDER BY v, t) AS vs, mode() WITHIN GROUP (ORDER BY t) AS t, stddev(v) AS dev, bit_or(v) AS bits FROM m;
CREATE INCREMENTAL VIEW years AS
    SELECT extract(year FROM d) AS y, extract(quarter FROM d) AS q, count(*) AS n, date_trunc('month', min(d)::timestamp) AS month FROM m GROUP BY 1, 2;
CREATE INCREMENTAL VIEW recent AS SELECT k, v FROM m WHERE d >= date '2024-03-01' - interval '1 month' * 2 AND d < date '2024-01-01' + interval '1 year';
CREATE INCREMENTAL VIEW parts AS SELECT p.k, u.x FROM (SELECT k, array_agg(v ORDER BY v) AS vs FROM m GROUP BY k) p, unnest(p.vs) AS u(x);
CREATE INCREMENTAL VIEW lists AS SELECT k.k, ARRAY(SELECT m.t FROM m WHERE m.k = k.k ORDER BY m.v DESC NULLS LAST, m.t) AS ts, ARRAY(SELECT m.v FROM m WHERE m.v > k.k ORDER BY 1 LIMIT 2) AS vs
    FROM generate_series(1, 3) AS k(k);
CREATE INCREMENTAL VIEW firsts AS SELECT k, vs[1] AS first FROM (SELECT k, array_agg(v ORDER BY v) AS vs FROM m GROUP BY k) q WHERE vs[2] > 0;
CREATE INCREMENTAL VIEW either AS SELECT a.v FROM m a, m b WHERE (a.k = b.k AND a.v < 5 AND b.v > 1) OR (a.k = b.k AND a.v = 7);
CREATE INCREMENTAL VIEW placed AS
    SELECT k, rank(2, 'b') WITHIN GROUP (ORDER BY v DESC NULLS LAST, t) AS rank, cume_dist(3) WITHIN GROUP (ORDER BY v) AS share,
        percentile_cont(k / 10.0) WITHIN GROUP (ORDER BY f) AS own, percentile_disc(ARRAY[0, 0.5, 1]) WITHIN GROUP (ORDER BY v DESC) AS three,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY v * interval '1 hour') AS span, mode() WITHIN GROUP (ORDER BY ARRAY[v]) AS list,
        jsonb_agg(ARRAY[v, k] ORDER BY v) FILTER (WHERE v > 1) AS pairs FROM m GROUP BY k;
CREATE INCREMENTAL VIEW extremes_so_far AS
    SELECT v, array_agg(v) OVER (ORDER BY v, k, t, d, f) AS upto, max(ARRAY[v, k]) OVER (ORDER BY v) AS top FROM m;
CREATE INCREMENTAL VIEW either_list AS VALUES ((SELECT max(v) FROM m), 'max'), ((SELECT count(*) FROM m WHERE k = 1), 'ones'), (7, 'seven');

SELECT * FROM arrays ORDER BY k;
SELECT * FROM texts ORDER BY k;
SELECT * FROM middles ORDER BY k;
SELECT * FROM overall;
SELECT * FROM years ORDER BY y, q;
SELECT * FROM recent ORDER BY v;
SELECT * FROM parts ORDER BY k, x;
SELECT * FROM either ORDER BY v;
SELECT * FROM lists ORDER BY k;
SELECT * FROM firsts ORDER BY k;
SELECT * FROM placed ORDER BY k;
SELECT * FROM extremes_so_far ORDER BY v, upto;
SELECT * FROM either_list ORDER BY 2;

INSERT INTO m VALUES (1, 3, 'c', 9, '2024-02-01', 5), (3, 1, '', 0, '0044-03-15 BC', -1);
UPDATE m SET v = 4, t = 'b' WHERE v = 1 AND k = 1;
DELETE FROM m WHERE t = 'y' OR k IS NULL;
SELECT * FROM arrays ORDER BY k;
SELECT * FROM texts ORDER BY k;
SELECT * FROM middles ORDER BY k;
SELECT * FROM overall;
SELECT * FROM years ORDER BY y, q;
SELECT * FROM recent ORDER BY v;
SELECT * FROM parts ORDER BY k, x;
SELECT * FROM lists ORDER BY k;
SELECT * FROM placed ORDER BY k;
SELECT * FROM extremes_so_far ORDER BY v, upto;
SELECT * FROM either_list ORDER BY 2;
SELECT v.relation, d.missing, d.surplus FROM eddy.views v, eddy.verify_view(v.relation) d
WHERE (d.missing, d.surplus) <> (0, 0);
TRUNCATE m;
SELECT * FROM arrays;
SELECT * FROM overall;
SELECT v.relation, d.missing, d.surplus FROM eddy.views v, eddy.verify_view(v.relation) d
WHERE (d.missing, d.surplus) <> (0, 0);

EXPLAIN CREATE INCREMENTAL VIEW v AS SELECT k, string_agg(t, ',' ORDER BY v DESC, t), percentile_cont(0.9) WITHIN GROUP (ORDER BY f) FROM m GROUP BY k;

-- Refused
-- PostgreSQL's own error where it computes with the constants.
CREATE INCREMENTAL VIEW bad AS SELECT v FROM m WHERE d < date '5874897-12-31' + interval '1000000 years';
\echo :SQLSTATE
-- A percentile beyond the range is an error of data.
CREATE INCREMENTAL VIEW beyond AS SELECT percentile_cont(1.5) WITHIN GROUP (ORDER BY f) FROM m WITH NO DATA;
SELECT * FROM beyond;
\echo :SQLSTATE

DROP TABLE m CASCADE;
