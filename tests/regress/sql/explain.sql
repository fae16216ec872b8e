-- The plan of a view, before and after it exists.
CREATE TABLE edges (src int NOT NULL, dst int NOT NULL, PRIMARY KEY (src, dst));
EXPLAIN CREATE INCREMENTAL VIEW reach AS
WITH RECURSIVE r(a, b) AS (
    SELECT src, dst FROM edges
    UNION
    SELECT r.a, e.dst FROM r JOIN edges e ON e.src = r.b
)
SELECT a, b FROM r;
EXPLAIN (COSTS OFF, FORMAT TEXT) CREATE /* ( */ INCREMENTAL VIEW degree AS
SELECT src, count(*) AS degree FROM edges GROUP BY src;
EXPLAIN CREATE INCREMENTAL VIEW walk AS
WITH RECURSIVE r(a, b) AS (
    SELECT src, dst FROM edges WHERE src = 1
    UNION ALL
    SELECT e.src, e.dst FROM r JOIN edges e ON e.src = r.b
) SEARCH BREADTH FIRST BY a, b SET place CYCLE b SET is_cycle USING path
SELECT a, b, is_cycle, rank() OVER (ORDER BY place) FROM r;
EXPLAIN CREATE INCREMENTAL VIEW walk AS
WITH RECURSIVE r(a, b) AS (
    SELECT src, dst FROM edges UNION SELECT e.src, e.dst FROM r JOIN edges e ON e.src = r.b
) SEARCH DEPTH FIRST BY a SET place
SELECT a, b, rank() OVER (ORDER BY place) FROM r;
EXPLAIN CREATE MATERIALIZED VIEW degree WITH (incremental) AS SELECT src FROM edges;
EXPLAIN (COSTS OFF) CREATE MATERIALIZED VIEW degree AS SELECT src FROM edges;
EXPLAIN ANALYZE CREATE INCREMENTAL VIEW degree AS SELECT src FROM edges;
EXPLAIN (FORMAT YAML) CREATE INCREMENTAL VIEW degree AS SELECT src FROM edges;
EXPLAIN (COSTS OFF, BOGUS 1) CREATE INCREMENTAL VIEW degree AS SELECT src FROM edges;
\echo :SQLSTATE
EXPLAIN (BUFFERS maybe) CREATE INCREMENTAL VIEW degree AS SELECT src FROM edges;
EXPLAIN CREATE INCREMENTAL VIEW degree AS SELECT random() FROM edges;
CREATE FUNCTION explain_json() RETURNS json LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) CREATE INCREMENTAL VIEW degree AS SELECT src FROM edges' INTO plan;
    RETURN plan;
END $$;
SELECT json_typeof(explain_json()), explain_json() -> 'columns' -> 0 ->> 'name';
SELECT count(*) FROM pg_class WHERE relname IN ('reach', 'degree');
CREATE INCREMENTAL VIEW degree AS SELECT src, count(*) AS degree FROM edges GROUP BY src;
SELECT eddy.explain_view('degree');
SELECT eddy.explain_view('edges');
SELECT missing, surplus FROM eddy.verify_view('degree');
SELECT missing, surplus FROM eddy.verify_view('edges');
DROP FUNCTION explain_json();
DROP TABLE edges CASCADE;
