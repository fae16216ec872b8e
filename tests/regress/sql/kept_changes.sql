-- Tables of views' changes: made, altered, dropped; who may do what; what is refused.
SET client_min_messages = warning;
CREATE ROLE eddy_keeper;
CREATE ROLE eddy_reader;
CREATE SCHEMA kept AUTHORIZATION eddy_keeper;
CREATE TABLE kept.item (id int PRIMARY KEY, name text, price numeric(8, 2), tags text[]);
ALTER TABLE kept.item OWNER TO eddy_keeper;
INSERT INTO kept.item VALUES (1, 'a', 1.50, '{x}'), (2, NULL, NULL, NULL);
SET ROLE eddy_keeper;
-- filled by the query, in a transaction
BEGIN;
CREATE INCREMENTAL VIEW kept.v WITH (changes = '1 week', timezone = 'UTC') AS SELECT name, price, tags FROM kept.item;
SELECT xid, diff, name, price, tags FROM kept.v_changes ORDER BY name;
COMMIT;
\d kept.v_changes
-- by the dataflow
CREATE INCREMENTAL VIEW kept.n WITH (changes = '90 min') AS SELECT count(*) AS n FROM kept.item;
TABLE kept.n;
INSERT INTO kept.item VALUES (3, 'c', 2, '{}');
UPDATE kept.item SET price = 3 WHERE id = 1;
BEGIN;
INSERT INTO kept.item VALUES (4, 'd', 2, '{}');
ROLLBACK;
BEGIN;
DELETE FROM kept.item WHERE id = 3;
INSERT INTO kept.item VALUES (3, 'c', 2, '{}');
COMMIT;
DELETE FROM kept.item WHERE id = 2;
TABLE kept.n;
SELECT count(*) FROM kept.v;
SELECT xid IS NOT NULL AS of_transaction, diff, n FROM kept.n_changes ORDER BY lsn, diff;
SELECT dense_rank() OVER (ORDER BY lsn) AS group, diff, name, price, tags FROM kept.v_changes ORDER BY lsn, diff, name;
SELECT relation, changes, changes_kept FROM eddy.views WHERE relation::text LIKE 'kept.%' ORDER BY 1;
-- what is refused
CREATE INCREMENTAL VIEW kept.w WITH (changes = 'often') AS SELECT name FROM kept.item;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW kept.w WITH (changes = '0') AS SELECT name FROM kept.item;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW kept.w WITH (notify = 'often') AS SELECT name FROM kept.item;
CREATE INCREMENTAL VIEW kept.w WITH (changes) AS SELECT name FROM kept.item;
CREATE INCREMENTAL VIEW kept.w WITH (changes = '1 day') AS SELECT name AS lsn FROM kept.item;
\echo :SQLSTATE
CREATE TABLE kept.w_changes ();
CREATE INCREMENTAL VIEW kept.w WITH (changes = '1 day') AS SELECT name FROM kept.item;
\echo :SQLSTATE
DROP TABLE kept.w_changes;
DROP TABLE kept.v_changes;
\echo :SQLSTATE
DELETE FROM kept.v_changes;
\echo :SQLSTATE
TRUNCATE kept.v_changes;
SELECT * FROM eddy.changes_since('kept.item', '0/0');
\echo :SQLSTATE
SELECT * FROM eddy.as_of(NULL::kept.item, '0/0'::pg_lsn);
SELECT * FROM eddy.as_of(1, '0/0'::pg_lsn);
SELECT * FROM eddy.as_of(NULL::kept.v, 'FFFF/0'::pg_lsn);
\echo :SQLSTATE
SELECT * FROM eddy.as_of(NULL::kept.v, 'infinity'::timestamptz);
SELECT * FROM eddy.as_of(NULL::kept.v, NULL::pg_lsn);
SELECT * FROM eddy.changes_since('kept.v', NULL);
-- who may read them
GRANT USAGE ON SCHEMA kept TO eddy_reader;
GRANT SELECT ON kept.v TO eddy_reader;
SET ROLE eddy_reader;
SELECT count(*) FROM eddy.changes_since('kept.v', pg_current_wal_lsn());
\echo :SQLSTATE
SET ROLE eddy_keeper;
GRANT SELECT ON kept.v_changes TO eddy_reader;
SET ROLE eddy_reader;
SELECT count(*) FROM eddy.changes_since('kept.v', pg_current_wal_lsn());
SELECT name, price FROM eddy.as_of(NULL::kept.v, now()) ORDER BY name;
RESET ROLE;
-- columns of others behind those of the view
ALTER TABLE kept.v_changes ADD COLUMN seen boolean;
INSERT INTO kept.item VALUES (5, 'e', 5, NULL);
SELECT name FROM kept.v ORDER BY name;
SELECT diff, name, seen FROM kept.v_changes ORDER BY lsn DESC LIMIT 1;
ALTER TABLE kept.v_changes DROP COLUMN seen;
INSERT INTO kept.item VALUES (6, 'f', 5, NULL);
SELECT name FROM kept.v ORDER BY name;
-- an index of somebody's function
CREATE FUNCTION kept.nobody(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN current_user; END$$;
CREATE INDEX ON kept.v_changes (kept.nobody(name));
INSERT INTO kept.item VALUES (7, 'g', 5, NULL);
SELECT count(*) FROM kept.v;
SELECT DISTINCT kept.nobody(name) FROM kept.v_changes WHERE kept.nobody(name) = 'eddy_keeper';
SET enable_seqscan = off;
SELECT count(*) FROM kept.v_changes WHERE kept.nobody(name) = 'eddy_keeper';
RESET enable_seqscan;
-- names, schema, owner
ALTER INCREMENTAL VIEW kept.v RENAME TO renamed;
ALTER INCREMENTAL VIEW kept.renamed OWNER TO eddy_reader;
GRANT SELECT ON kept.item TO eddy_reader;
SELECT relname, pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'kept.renamed_changes'::regclass;
UPDATE kept.item SET price = 6 WHERE id = 7;
SELECT price FROM kept.renamed WHERE name = 'g';
SELECT diff, price FROM kept.renamed_changes WHERE name = 'g' ORDER BY lsn, diff;
REFRESH INCREMENTAL VIEW kept.renamed;
SELECT count(*) FROM kept.renamed;
SELECT sum(diff) FROM kept.renamed_changes;
-- taken away and given back, and with the view
ALTER INCREMENTAL VIEW kept.renamed RESET (changes);
SELECT to_regclass('kept.renamed_changes');
ALTER INCREMENTAL VIEW kept.renamed SET (changes = '1 day');
SELECT diff, name FROM kept.renamed_changes ORDER BY name;
ALTER INCREMENTAL VIEW kept.renamed SET (changes = '2 days');
SELECT changes, changes_kept FROM eddy.views WHERE relation = 'kept.renamed'::regclass;
BEGIN;
DROP INCREMENTAL VIEW kept.renamed;
SELECT to_regclass('kept.renamed_changes');
ROLLBACK;
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW kept.renamed IS NULL;
SELECT to_regclass('kept.renamed_changes');
DROP SCHEMA kept CASCADE;
SELECT count(*) FROM eddy.view_changes;
DROP ROLE eddy_keeper, eddy_reader;
-- Code of others does not run with the rights of who makes the table.
CREATE ROLE eddy_stranger;
CREATE SCHEMA strange AUTHORIZATION eddy_stranger;
SET ROLE eddy_stranger;
CREATE TABLE strange.t (a int, b int);
INSERT INTO strange.t VALUES (1, 2);
CREATE INCREMENTAL VIEW strange.v AS SELECT a, b FROM strange.t;
CREATE FUNCTION strange.run() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN ALTER ROLE eddy_stranger SUPERUSER; RETURN NULL; END$$;
CREATE TABLE strange.v_changes (lsn pg_lsn, xid xid8, committed_at timestamptz, diff int8, a int, b int);
INSERT INTO strange.v_changes VALUES ('0/1', NULL, '2000-01-01', 1, 7, 7);
CREATE TRIGGER run BEFORE TRUNCATE OR DELETE OR INSERT ON strange.v_changes FOR EACH STATEMENT EXECUTE FUNCTION strange.run();
RESET ROLE;
ALTER INCREMENTAL VIEW strange.v SET (changes = '1 day');
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW strange.v IS 'incremental {"changes": "86400 s", "version": 2}';
REFRESH INCREMENTAL VIEW strange.v;
INSERT INTO strange.t VALUES (3, 4);
SELECT count(*) FROM strange.v;
SELECT rolsuper FROM pg_roles WHERE rolname = 'eddy_stranger';
SELECT a, b, sum(diff) FROM strange.v_changes GROUP BY 1, 2 ORDER BY 1;
ALTER INCREMENTAL VIEW strange.v RESET (changes);
ALTER INCREMENTAL VIEW strange.v SET (changes = '1000 years');
ALTER INCREMENTAL VIEW strange.v SET (changes = '100 years');
SELECT changes_kept FROM eddy.views WHERE relation = 'strange.v'::regclass;
-- Columns are told by their places.
SELECT count(*) FROM strange.v;
SELECT pg_current_wal_insert_lsn() AS before \gset
ALTER INCREMENTAL VIEW strange.v RENAME COLUMN a TO x;
ALTER INCREMENTAL VIEW strange.v RENAME COLUMN b TO a;
ALTER TABLE strange.v_changes RENAME diff TO difference;
ALTER TABLE strange.v_changes RENAME a TO lsn_of_a;
INSERT INTO strange.t VALUES (5, 6);
SELECT diff, data FROM eddy.changes_since('strange.v', :'before');
SELECT * FROM eddy.as_of(NULL::strange.v, :'before'::pg_lsn) ORDER BY x;
SELECT diff, data FROM eddy.subscribe('strange.v', :'before');
-- What only others change is known, too.
CREATE TABLE strange.other AS SELECT n FROM generate_series(1, 1000) n;
SELECT count(*) FROM eddy.as_of(NULL::strange.v, pg_current_wal_insert_lsn());
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM eddy.as_of(NULL::strange.v, pg_current_wal_insert_lsn());
SELECT count(*) FROM eddy.as_of(NULL::strange.v, clock_timestamp());
COMMIT;
-- REFRESH has nothing to say if nothing was wrong.
REFRESH INCREMENTAL VIEW strange.v;
SELECT count(DISTINCT lsn), count(DISTINCT committed_at), sum(difference) FROM strange.v_changes WHERE lsn > :'before' AND xid IS NULL;
-- A table that says less than it should.
ALTER TABLE strange.v_changes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT ON strange.v_changes, strange.v TO eddy_stranger;
SET ROLE eddy_stranger;
SELECT * FROM eddy.as_of(NULL::strange.v, :'before'::pg_lsn);
\echo :SQLSTATE
RESET ROLE;
ALTER TABLE strange.v_changes SET UNLOGGED;
INSERT INTO strange.t VALUES (7, 8);
SELECT count(*) FROM strange.v;
ALTER TABLE strange.v_changes SET LOGGED;
ALTER INCREMENTAL VIEW strange.v RESET (changes);
SELECT count(*) FROM strange.v;
-- It follows its view.
ALTER INCREMENTAL VIEW strange.v SET (changes = '1 day');
CREATE SCHEMA elsewhere;
ALTER INCREMENTAL VIEW strange.v SET SCHEMA elsewhere;
SELECT changes FROM eddy.views WHERE relation = 'elsewhere.v'::regclass;
DROP SCHEMA strange CASCADE;
DROP SCHEMA elsewhere CASCADE;
DROP ROLE eddy_stranger;
