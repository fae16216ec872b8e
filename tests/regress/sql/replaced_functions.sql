-- A view whose query calls functions follows their definitions.
SET client_min_messages = warning;
CREATE TABLE numbers (n int PRIMARY KEY);
INSERT INTO numbers VALUES (1), (2), (3);

CREATE FUNCTION shown(n int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT n * 10';
CREATE FUNCTION inner_of(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN n + 1; END';
CREATE FUNCTION outer_of(n int) RETURNS int LANGUAGE sql IMMUTABLE RETURN inner_of(n) * 2;
CREATE FUNCTION nearly(a int, b int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT abs(a - b) < 1';
CREATE OPERATOR ~~~ (LEFTARG = int, RIGHTARG = int, FUNCTION = nearly);
CREATE FUNCTION step(sum int, n int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT sum + n';
CREATE AGGREGATE total(int) (SFUNC = step, STYPE = int, INITCOND = '0');
CREATE FUNCTION kept(n int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT n > 1';

CREATE INCREMENTAL VIEW by_function AS SELECT n, shown(n) AS x FROM numbers;
CREATE INCREMENTAL VIEW by_body AS SELECT n, outer_of(n) AS x FROM numbers;
CREATE INCREMENTAL VIEW by_operator AS SELECT n FROM numbers WHERE n ~~~ 2;
CREATE INCREMENTAL VIEW by_aggregate AS SELECT total(n) AS x FROM numbers;
CREATE VIEW plain AS SELECT n FROM numbers WHERE kept(n);
CREATE INCREMENTAL VIEW by_view AS SELECT count(*) AS x FROM plain;
CREATE INCREMENTAL VIEW above AS SELECT sum(x) AS x FROM by_function;

CREATE FUNCTION all_views(OUT view text, OUT rows text) RETURNS SETOF record LANGUAGE sql STABLE AS $$
    SELECT 'by_function', string_agg(x::text, ' ' ORDER BY n) FROM by_function
    UNION ALL SELECT 'by_body', string_agg(x::text, ' ' ORDER BY n) FROM by_body
    UNION ALL SELECT 'by_operator', string_agg(n::text, ' ' ORDER BY n) FROM by_operator
    UNION ALL SELECT 'by_aggregate', x::text FROM by_aggregate
    UNION ALL SELECT 'by_view', x::text FROM by_view
    UNION ALL SELECT 'above', x::text FROM above
$$;
SELECT * FROM all_views();

-- Every one of them has a new definition, which rows of before follow as well.
CREATE OR REPLACE FUNCTION shown(n int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT n * 100';
SELECT * FROM by_function ORDER BY n;
TABLE above;
CREATE OR REPLACE FUNCTION inner_of(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN n + 5; END';
SELECT * FROM by_body ORDER BY n;
CREATE OR REPLACE FUNCTION nearly(a int, b int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT abs(a - b) < 2';
SELECT * FROM by_operator ORDER BY n;
CREATE OR REPLACE FUNCTION step(sum int, n int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT sum + n * n';
TABLE by_aggregate;
CREATE OR REPLACE FUNCTION kept(n int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT n > 2';
TABLE by_view;

-- Limits and frames of functions of users are computed as all else is, and so need not come to an end either.
CREATE FUNCTION two() RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 2; END';
CREATE INCREMENTAL VIEW by_limit AS SELECT n FROM numbers ORDER BY n LIMIT two();
CREATE INCREMENTAL VIEW by_frame AS SELECT n, sum(n) OVER (ORDER BY n ROWS two() PRECEDING) AS x FROM numbers;
CREATE INCREMENTAL VIEW by_range AS SELECT n, sum(n) OVER (ORDER BY n RANGE two() PRECEDING) AS x FROM numbers;
TABLE by_limit;
TABLE by_frame;
TABLE by_range;
CREATE OR REPLACE FUNCTION two() RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN LOOP PERFORM 1; END LOOP; END';
INSERT INTO numbers VALUES (9);
TABLE by_view;
DROP INCREMENTAL VIEW by_limit, by_frame, by_range;
DELETE FROM numbers WHERE n = 9;

-- In one transaction with a change of the rows.
BEGIN;
CREATE OR REPLACE FUNCTION shown(n int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT -n';
INSERT INTO numbers VALUES (4);
COMMIT;
SELECT * FROM all_views();

-- A definition that views cannot have is the view's error, until another takes its place.
CREATE OR REPLACE FUNCTION shown(n int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT n * 10';
SELECT * FROM by_function ORDER BY n;
-- Nothing of it runs, be it for ever, while that is found out: others go on.
CREATE FUNCTION endless() RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN LOOP PERFORM 1; END LOOP; END';
CREATE OR REPLACE FUNCTION shown(n int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT n * public.endless()';
SELECT * FROM by_function ORDER BY n;
TABLE by_view;
CREATE OR REPLACE FUNCTION shown(n int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT n / (n - 4)';
SELECT * FROM by_function ORDER BY n;
CREATE OR REPLACE FUNCTION shown(n int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT n + 7';
ALTER FUNCTION shown(int) RENAME TO displayed;
INSERT INTO numbers VALUES (5);
SELECT * FROM all_views();

DROP TABLE numbers CASCADE;
DROP FUNCTION all_views, displayed, outer_of, inner_of, kept;
DROP AGGREGATE total(int);
DROP OPERATOR ~~~ (int, int);
DROP FUNCTION nearly, step;
