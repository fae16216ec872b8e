-- Whatever a function raises is the error of its row: with its own SQLSTATE, message, detail and hint.
SET client_min_messages = warning;
CREATE TABLE t (code text);
CREATE TABLE n (i int);
INSERT INTO n VALUES (1);
CREATE FUNCTION fail(code text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF code <> '' THEN
        RAISE EXCEPTION 'no %', code USING ERRCODE = code, DETAIL = 'Detail of ' || code || '.', HINT = 'Hint of ' || code || '.';
    END IF;
    RETURN 0;
END $$;
CREATE INCREMENTAL VIEW failing AS SELECT fail(code) AS value, count(*) FROM t GROUP BY 1;
CREATE INCREMENTAL VIEW sound AS SELECT sum(i) FROM n;
TABLE failing;
-- codes of users, of cancels and shutdowns, of what may pass when tried again, of internal errors
INSERT INTO t VALUES ('ZZ005');
TABLE failing;
\echo :SQLSTATE
TABLE sound;
SELECT relation, state, sqlstate, message FROM eddy.views ORDER BY relation::text;
UPDATE t SET code = '57014';
TABLE failing;
\echo :SQLSTATE
TABLE sound;
UPDATE t SET code = '57P01';
TABLE failing;
\echo :SQLSTATE
UPDATE t SET code = '40001';
TABLE failing;
\echo :SQLSTATE
UPDATE t SET code = '53200';
TABLE failing;
\echo :SQLSTATE
UPDATE t SET code = '55P03';
TABLE failing;
\echo :SQLSTATE
UPDATE t SET code = '58030';
TABLE failing;
\echo :SQLSTATE
UPDATE t SET code = 'XX000';
TABLE failing;
\echo :SQLSTATE
UPDATE t SET code = 'P0001';
TABLE failing;
\echo :SQLSTATE
UPDATE t SET code = '42P01';
TABLE failing;
\echo :SQLSTATE
TABLE sound;
-- of several errors one is shown, and the next when that has gone
INSERT INTO t VALUES ('AB123'), ('YY999');
TABLE failing;
\echo :SQLSTATE
DELETE FROM t WHERE code IN ('42P01', 'AB123');
TABLE failing;
\echo :SQLSTATE
SET eddy.freshness = 'stale';
TABLE failing;
\echo :SQLSTATE
RESET eddy.freshness;
DELETE FROM t;
INSERT INTO t VALUES ('');
TABLE failing;
-- the session sees in its own handlers what it would see of the query
INSERT INTO t VALUES ('ZZ006');
DO $$
DECLARE state text; message text; detail text; hint text;
BEGIN
    PERFORM FROM failing;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
        detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RAISE WARNING '% | % | % | %', state, message, detail, hint;
END $$;

-- errors that pass through handlers: raised again, replaced, and others in between
CREATE TABLE how (what text);
CREATE FUNCTION fail_deeply(what text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF what = 'assert' THEN
        ASSERT false, 'this cannot be';
    ELSIF what = 'long' THEN
        RAISE EXCEPTION '%', repeat('é', 1000000) USING ERRCODE = 'ZZ100', DETAIL = repeat('d', 1000000);
    ELSIF what = 'bytes' THEN
        RAISE EXCEPTION '<%>', '\xc328'::bytea::text USING ERRCODE = 'ZZ101';
    ELSIF what = 'no message' THEN
        RAISE SQLSTATE 'ZZ102';
    ELSIF what = 'caught' THEN
        BEGIN
            PERFORM public.fail('ZZ103');
        EXCEPTION WHEN OTHERS THEN
            RETURN 103;
        END;
    ELSIF what <> '' THEN
        BEGIN
            PERFORM public.fail('ZZ104');
        EXCEPTION WHEN OTHERS THEN
            BEGIN
                PERFORM public.fail('ZZ105');
            EXCEPTION WHEN OTHERS THEN
                NULL;
            END;
            RAISE LOG USING ERRCODE = 'ZZ106', MESSAGE = 'no ZZ104';
            IF what = 'replaced' THEN
                RAISE EXCEPTION 'no ZZ104' USING ERRCODE = 'ZZ107';
            END IF;
            RAISE;
        END;
    END IF;
    RETURN 0;
END $$;
CREATE CAST (bytea AS text) WITHOUT FUNCTION;
CREATE FUNCTION fail_more_deeply(what text) RETURNS int IMMUTABLE LANGUAGE sql AS $$ SELECT public.fail_deeply(what) + length(what) $$;
CREATE INCREMENTAL VIEW deep AS SELECT what, fail_more_deeply(what) AS value FROM how;
INSERT INTO how VALUES ('assert');
TABLE deep;
\echo :SQLSTATE
UPDATE how SET what = 'bytes';
TABLE deep;
\echo :SQLSTATE
UPDATE how SET what = 'no message';
TABLE deep;
\echo :SQLSTATE
UPDATE how SET what = 'again';
TABLE deep;
\echo :SQLSTATE
UPDATE how SET what = 'replaced';
TABLE deep;
\echo :SQLSTATE
UPDATE how SET what = 'caught';
TABLE deep;
-- a text has an end
UPDATE how SET what = 'long';
\set VERBOSITY sqlstate
TABLE deep;
\set VERBOSITY default
SELECT octet_length(message) AS length, left(message, 3) AS first, right(message, 5) AS last
FROM eddy.views WHERE relation = 'deep'::regclass;
DROP TABLE how CASCADE;
DROP CAST (bytea AS text);

-- functions that compare values
CREATE TYPE size AS (name text);
CREATE FUNCTION compare_sizes(a size, b size) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF a.name = 'unknown' OR b.name = 'unknown' THEN
        RAISE EXCEPTION 'size is not known' USING ERRCODE = 'ZZ200', HINT = 'Measure it.';
    END IF;
    RETURN length(a.name) - length(b.name);
END $$;
CREATE FUNCTION is_less(a size, b size) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT public.compare_sizes(a, b) < 0';
CREATE FUNCTION is_equal(a size, b size) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT public.compare_sizes(a, b) = 0';
CREATE OPERATOR < (LEFTARG = size, RIGHTARG = size, PROCEDURE = is_less, COMMUTATOR = >);
CREATE OPERATOR > (LEFTARG = size, RIGHTARG = size, PROCEDURE = is_less, COMMUTATOR = <);
CREATE OPERATOR = (LEFTARG = size, RIGHTARG = size, PROCEDURE = is_equal, COMMUTATOR = =);
CREATE OPERATOR CLASS sizes DEFAULT FOR TYPE size USING btree AS
    OPERATOR 1 <, OPERATOR 3 =, OPERATOR 5 >, FUNCTION 1 compare_sizes(size, size);
CREATE TABLE box (id int, size size);
INSERT INTO box VALUES (1, ROW('big')), (2, ROW('small')), (3, ROW('red'));
CREATE INCREMENTAL VIEW sizes AS SELECT size, count(*) FROM box GROUP BY size;
SELECT count, length((size).name) FROM sizes ORDER BY 1;
INSERT INTO box VALUES (4, ROW('unknown'));
TABLE sizes;
\echo :SQLSTATE
DELETE FROM box WHERE id = 4;
SELECT count, length((size).name) FROM sizes ORDER BY 1;
DROP TABLE box CASCADE;
DROP TYPE size CASCADE;

-- functions of indexes on the view
CREATE INCREMENTAL VIEW indexed AS SELECT code FROM t;
TRUNCATE t;
TABLE indexed;
CREATE INDEX ON indexed (fail(code));
INSERT INTO t VALUES ('ZZ300');
TABLE indexed;
\echo :SQLSTATE
TABLE sound;
DROP INCREMENTAL VIEW indexed;
TRUNCATE t;

-- who cancels the worker itself cancels no row
CREATE FUNCTION slow(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF i = 7 THEN
        PERFORM pg_sleep(2);
    END IF;
    RETURN i;
END $$;
CREATE INCREMENTAL VIEW slowly AS SELECT slow(i) FROM n;
TABLE slowly;
INSERT INTO n VALUES (7);
DO $$
DECLARE worker int;
BEGIN
    FOR round IN 1..1000 LOOP
        SELECT pid INTO worker FROM pg_stat_activity
        WHERE backend_type LIKE 'pg_eddy %' AND datname = current_database() AND wait_event = 'PgSleep';
        EXIT WHEN worker IS NOT NULL;
        PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
    END LOOP;
    ASSERT pg_cancel_backend(worker), 'nothing was canceled';
END $$;
TABLE slowly;
SELECT relation, state, sqlstate, message FROM eddy.views ORDER BY relation::text;
DROP TABLE t, n CASCADE;
DROP FUNCTION fail, fail_deeply, fail_more_deeply, slow;
