-- What is not supported is refused with its SQLSTATE, its name, its position and a hint.
CREATE TABLE e (src int, dst int, w text, v varchar(5), c char(3));
CREATE TABLE k (id int PRIMARY KEY, name text, doc jsonb, n numeric(8,2), d date, ts timestamptz);
CREATE UNLOGGED TABLE u (a int);
CREATE TABLE parent (a int);
CREATE TABLE child () INHERITS (parent);
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
CREATE INCREMENTAL VIEW bad AS SELECT * FROM XMLTABLE('/a' PASSING '<a/>' COLUMNS x int);
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT a FROM ONLY parent;
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
CREATE INCREMENTAL VIEW bad AS SELECT FROM e;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT count(*) FROM (SELECT FROM e) s;
CREATE INCREMENTAL VIEW bad AS SELECT FROM e UNION ALL SELECT;
CREATE INCREMENTAL VIEW bad AS SELECT src FROM e FOR UPDATE;
\echo :SQLSTATE

-- Aggregates
CREATE INCREMENTAL VIEW bad AS SELECT xmlagg(w::xml) FROM e;
\echo :SQLSTATE

-- Expressions
CREATE INCREMENTAL VIEW bad AS SELECT ctid FROM e;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT tableoid FROM e;
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
CREATE INCREMENTAL VIEW bad AS SELECT current_user FROM e;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT my_volatile(src) FROM e;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT my_stable(src) FROM e;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT id::regclass::text FROM k;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT age(ts) FROM k;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT concat(id, id::regclass) FROM k;
CREATE INCREMENTAL VIEW bad AS SELECT jsonb_agg(id::regclass) FROM k;
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
DROP TABLE e, k, u, parent, child, tt CASCADE;
DROP SEQUENCE s;
DROP DOMAIN posint;
DROP AGGREGATE my_sum(int);
DROP FUNCTION my_volatile(int), my_stable(int), my_immutable(int);
DROP COLLATION ci, german;
