-- What is not supported is refused with its SQLSTATE, its name, its position and a hint.
CREATE TABLE e (src int, dst int, w text, v varchar(5), c char(3));
CREATE TABLE k (id int PRIMARY KEY, name text, doc jsonb, n numeric(8,2), d date, ts timestamptz);
CREATE UNLOGGED TABLE u (a int);
CREATE MATERIALIZED VIEW plain_mv AS SELECT src FROM e;
CREATE VIEW sampled AS SELECT src FROM e TABLESAMPLE system (50);
CREATE VIEW stable_view AS SELECT src, now() AS at FROM e;
CREATE SEQUENCE s;
CREATE DOMAIN posint AS int CHECK (value > 0);
CREATE FUNCTION my_volatile(int) RETURNS int LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION my_stable(int) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN $1; END';
CREATE FUNCTION my_immutable(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
CREATE AGGREGATE my_sum(int) (SFUNC = int4pl, STYPE = int);
CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION german (provider = icu, locale = 'de');
CREATE FOREIGN DATA WRAPPER nothing;
CREATE SERVER nowhere FOREIGN DATA WRAPPER nothing;
CREATE FOREIGN TABLE f (a int) SERVER nowhere;

-- Joins and FROM
CREATE INCREMENTAL VIEW bad AS SELECT e.src, k.name FROM e LEFT JOIN k ON k.id = e.src AND k.ts < now();
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT src FROM e TABLESAMPLE system (50);
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT src FROM sampled;
\echo :SQLSTATE

-- Base tables
CREATE INCREMENTAL VIEW bad AS SELECT relname FROM pg_class;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT e.src FROM e JOIN pg_catalog.pg_type AS ty ON true;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT x.a FROM u AS x;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT a FROM f;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT src FROM plain_mv;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT last_value FROM s;
\echo :SQLSTATE

-- Clauses
CREATE INCREMENTAL VIEW bad AS SELECT FROM e EXCEPT SELECT;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT src FROM e FOR UPDATE;
\echo :SQLSTATE

-- Aggregates
CREATE INCREMENTAL VIEW bad AS SELECT xmlagg(query_to_xml(w, true, true, '')) FROM e;
\echo :SQLSTATE

-- Expressions
CREATE INCREMENTAL VIEW bad AS SELECT ctid FROM e;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT ROW(src, dst) FROM e;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT nextval('s') FROM e;
\echo :SQLSTATE

-- Functions whose results can change
CREATE INCREMENTAL VIEW bad AS SELECT now(), src FROM e;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT src FROM e WHERE random() < 0.5;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT current_date FROM e;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT session_user FROM e;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT my_volatile(src) FROM e;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT my_stable(src) FROM e;
\echo :SQLSTATE
-- The hint says what to declare, where that may be true.
CREATE SCHEMA own;
CREATE FUNCTION own.added(a int, b numeric DEFAULT 1) RETURNS numeric LANGUAGE sql AS 'SELECT a + round(b, 2)';
CREATE FUNCTION own.of_added(a int) RETURNS numeric LANGUAGE sql STABLE AS 'SELECT own.added(a, 2) * 2';
CREATE FUNCTION own.dated(a int) RETURNS date LANGUAGE sql AS 'SELECT current_date + a';
CREATE FUNCTION own.counted(a int) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM public.e WHERE src = a';
CREATE FUNCTION own.added_to(state int, a int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN state + a; END';
CREATE AGGREGATE own.total(int) (SFUNC = own.added_to, STYPE = int);
CREATE INCREMENTAL VIEW bad AS SELECT own.added(src) FROM e;
CREATE INCREMENTAL VIEW bad AS SELECT own.of_added(src) FROM e;
CREATE INCREMENTAL VIEW bad AS SELECT own.dated(src) FROM e;
CREATE INCREMENTAL VIEW bad AS SELECT own.counted(src) FROM e;
CREATE INCREMENTAL VIEW bad AS SELECT own.total(src) FROM e;
CREATE INCREMENTAL VIEW bad AS SELECT own.total(src) OVER () FROM e;
ALTER FUNCTION own.added(integer,numeric) IMMUTABLE;
ALTER FUNCTION own.added_to(integer,integer) IMMUTABLE;
CREATE INCREMENTAL VIEW good AS SELECT own.added(src), own.total(dst) FROM e GROUP BY src;
DROP INCREMENTAL VIEW good;
-- Bodies whose names are not found where views call them.
SET search_path = public, own;
CREATE FUNCTION own.thrice(a int) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT 3 * added(a)';
CREATE FUNCTION own.parsed(a int) RETURNS numeric LANGUAGE sql IMMUTABLE RETURN added(a);
CREATE INCREMENTAL VIEW bad AS SELECT thrice(src) FROM e WITH NO DATA;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW good AS SELECT parsed(src) FROM e;
ALTER FUNCTION own.thrice(integer) SET search_path = own, pg_temp;
CREATE INCREMENTAL VIEW better AS SELECT thrice(src) FROM e;
SET client_min_messages = warning;
DROP SCHEMA own CASCADE;
RESET client_min_messages;
RESET search_path;
CREATE INCREMENTAL VIEW bad AS SELECT age(ts) FROM k;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT concat(id, (ARRAY[NULL::aclitem])[1]) FROM k;
CREATE INCREMENTAL VIEW bad AS SELECT jsonb_agg((ARRAY[NULL::aclitem])[id]) FROM k;
CREATE INCREMENTAL VIEW bad AS SELECT src FROM stable_view;
\echo :SQLSTATE

-- Functions, operators and casts without a native form

-- Collations

-- Not refused: an order without a limit says nothing about the rows
CREATE INCREMENTAL VIEW ordered AS SELECT src FROM e ORDER BY src;
CREATE INCREMENTAL VIEW c_order AS SELECT max(w COLLATE "C"), min(lower(w COLLATE "C")) FROM e;
DROP INCREMENTAL VIEW ordered, c_order;

-- Temporary tables; nothing was left behind
CREATE TEMP TABLE tt (a int);
CREATE INCREMENTAL VIEW bad AS SELECT a FROM tt;
\echo :SQLSTATE
SELECT count(*) FROM eddy.view_catalog;

\set VERBOSITY terse
SET client_min_messages = warning;
DROP FOREIGN DATA WRAPPER nothing CASCADE;
DROP TABLE e, k, u, tt CASCADE;
DROP SEQUENCE s;
DROP DOMAIN posint;
DROP AGGREGATE my_sum(int);
DROP FUNCTION my_volatile(int), my_stable(int), my_immutable(int);
DROP COLLATION ci, german;
