-- Creating, changing and dropping incremental views, and what that needs.
\set VERBOSITY terse
CREATE ROLE eddy_owner;
CREATE ROLE eddy_reader;
GRANT CREATE, USAGE ON SCHEMA public TO eddy_owner, eddy_reader;
CREATE TABLE keyed (id int PRIMARY KEY, other int, note text);
CREATE TABLE keyless (src int, dst int);
ALTER TABLE keyed OWNER TO eddy_owner;
ALTER TABLE keyless OWNER TO eddy_owner;

-- Replica identity: nothing to do, set with a NOTICE, or refused with the statement to run
CREATE FUNCTION identity(t regclass) RETURNS "char" LANGUAGE sql
AS 'SELECT relreplident FROM pg_class WHERE oid = t';
SET ROLE eddy_owner;
CREATE INCREMENTAL VIEW ids AS SELECT id FROM keyed;
SELECT identity('keyed');
GRANT SELECT ON keyed, keyless TO eddy_reader;
SET ROLE eddy_reader;
\set VERBOSITY default
CREATE INCREMENTAL VIEW ids2 AS SELECT id, other FROM keyed;
\echo :SQLSTATE
\set VERBOSITY terse
CREATE INCREMENTAL VIEW ids3 AS SELECT id AS x FROM keyed WHERE id > 3;
SET ROLE eddy_owner;
CREATE INCREMENTAL VIEW ids2 AS SELECT id, other FROM keyed;
SELECT identity('keyed');
CREATE INCREMENTAL VIEW counts AS SELECT src, count(*) FROM keyless GROUP BY src;
SELECT identity('keyless');
CREATE INCREMENTAL VIEW counts2 AS SELECT dst, count(*) FROM keyless GROUP BY dst;
RESET ROLE;

-- Partitioned tables and inheritance: each table that stores rows
CREATE TABLE parted (k int, v int) PARTITION BY LIST (k);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 (v int, k int);
ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES IN (2);
CREATE INCREMENTAL VIEW parts AS SELECT k, v FROM parted;
SELECT identity('parted'), identity('parted_1'), identity('parted_2');
CREATE TABLE base (a int PRIMARY KEY);
CREATE TABLE derived (b int, PRIMARY KEY (a)) INHERITS (base);
CREATE INCREMENTAL VIEW basis AS SELECT a FROM base;
SELECT identity('base'), identity('derived');

-- Privileges: as for any view, and of whom a plain view in between reads as
CREATE TABLE secret (a int, b int);
ALTER TABLE secret REPLICA IDENTITY FULL;
SET ROLE eddy_reader;
CREATE INCREMENTAL VIEW stolen AS SELECT a FROM secret;
\echo :SQLSTATE
RESET ROLE;
GRANT SELECT (a) ON secret TO eddy_reader;
SET ROLE eddy_reader;
CREATE INCREMENTAL VIEW allowed AS SELECT a FROM secret;
CREATE INCREMENTAL VIEW stolen AS SELECT a, b FROM secret;
RESET ROLE;
CREATE VIEW through AS SELECT b FROM secret;
GRANT SELECT ON through TO eddy_reader;
SET ROLE eddy_reader;
CREATE INCREMENTAL VIEW passed AS SELECT b FROM through;
RESET ROLE;
CREATE POLICY p ON secret USING (a > 0);
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
SET ROLE eddy_reader;
CREATE INCREMENTAL VIEW stolen AS SELECT a FROM secret;
\echo :SQLSTATE
RESET ROLE;
CREATE INCREMENTAL VIEW bypassed AS SELECT a FROM secret;

-- Verifying keeps writers away: as LOCK TABLE
SET ROLE eddy_reader;
SELECT * FROM eddy.verify_view('ids3');
\echo :SQLSTATE
SELECT * FROM eddy.verify_view('ids');
RESET ROLE;
SELECT * FROM eddy.verify_view('ids3');

-- A view over views
CREATE VIEW plain AS SELECT src AS s, dst FROM keyless WHERE src > 0;
CREATE INCREMENTAL VIEW over_plain AS SELECT s FROM plain;
CREATE INCREMENTAL VIEW over_incremental AS SELECT k, sum(v) FROM parts GROUP BY k;

-- The catalog follows renames, and drops of every kind
ALTER INCREMENTAL VIEW over_plain RENAME TO renamed;
CREATE SCHEMA elsewhere;
ALTER INCREMENTAL VIEW renamed SET SCHEMA elsewhere;
ALTER INCREMENTAL VIEW elsewhere.renamed OWNER TO eddy_owner;
COMMENT ON INCREMENTAL VIEW elsewhere.renamed IS 'somewhere else';
SELECT obj_description('elsewhere.renamed'::regclass), pg_get_userbyid(relowner)
FROM pg_class WHERE oid = 'elsewhere.renamed'::regclass;
SELECT relation, definition FROM eddy.view_catalog ORDER BY relation::text;
DROP TABLE parted;
DROP TABLE parted CASCADE;
ALTER TABLE keyless DROP COLUMN dst;
ALTER TABLE keyless DROP COLUMN dst CASCADE;
ALTER TABLE keyed ALTER COLUMN other TYPE bigint;
BEGIN;
DROP INCREMENTAL VIEW basis;
ROLLBACK;
DROP SCHEMA elsewhere CASCADE;
DROP MATERIALIZED VIEW ids;
DROP OWNED BY eddy_reader;
SELECT relation FROM eddy.view_catalog ORDER BY relation::text;
INSERT INTO ids2 VALUES (1, 2);
\echo :SQLSTATE
DELETE FROM ids2;

-- Names exist once
CREATE INCREMENTAL VIEW ids2 AS SELECT id FROM keyed;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW IF NOT EXISTS ids2 AS SELECT now();
CREATE INCREMENTAL VIEW ids4 (x) AS SELECT id, other FROM keyed;
CREATE INCREMENTAL VIEW ids5 (x, y, z) AS SELECT id, other FROM keyed;
\d ids4

DROP TABLE keyed, keyless, base, secret CASCADE;
DROP FUNCTION identity(regclass);
SELECT count(*) FROM eddy.view_catalog;
REVOKE ALL ON SCHEMA public FROM eddy_owner, eddy_reader;
DROP ROLE eddy_owner, eddy_reader;
