-- The security label by which a materialized view is incremental, as dumps set it.
SET client_min_messages = warning;
CREATE ROLE eddy_labeller;
CREATE TABLE t (id int PRIMARY KEY, n int);
INSERT INTO t VALUES (1, 10), (2, 20);
CREATE INCREMENTAL VIEW made AS SELECT n FROM t;
SELECT provider, substr(label, 1, 24) AS label FROM pg_seclabel WHERE objoid = 'made'::regclass;
-- a view with data, which get old before they are labelled
CREATE MATERIALIZED VIEW sums AS SELECT sum(n) AS s, count(*) AS c FROM t;
INSERT INTO t VALUES (3, 30);
SELECT * FROM sums;
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW sums IS 'incremental';
SELECT * FROM sums;
INSERT INTO t VALUES (4, 40);
SELECT * FROM sums;
-- a view without data is filled
CREATE MATERIALIZED VIEW ids AS SELECT id FROM t WITH NO DATA;
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW ids IS 'incremental {"version": 1}';
SELECT count(*) FROM ids;
DELETE FROM t WHERE id = 4;
SELECT count(*) FROM ids;
-- a view over one
CREATE MATERIALIZED VIEW twice AS SELECT s * 2 AS s FROM sums WITH NO DATA;
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW twice IS 'incremental';
SELECT * FROM twice;
SELECT relation, definition, options - 'settings' AS options FROM eddy.view_catalog ORDER BY relation::text;
-- labelled again, nothing changes
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW twice IS 'incremental';
SELECT * FROM twice;
-- the replica identity: at once for a view with data, with REFRESH for one without, which says so until then
CREATE TABLE loose (a int, b int);
CREATE TABLE loose_too (a int, b int);
INSERT INTO loose_too VALUES (1, 2);
CREATE MATERIALIZED VIEW filled AS SELECT a FROM loose;
CREATE MATERIALIZED VIEW empty AS SELECT a FROM loose_too WITH NO DATA;
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW filled IS 'incremental';
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW empty IS 'incremental';
SELECT relname, relreplident FROM pg_class WHERE relname IN ('loose', 'loose_too') ORDER BY 1;
SELECT * FROM empty;
\echo :SQLSTATE
REFRESH INCREMENTAL VIEW empty;
SELECT * FROM empty;
SELECT relreplident FROM pg_class WHERE relname = 'loose_too';
INSERT INTO loose_too VALUES (3, 4);
SELECT * FROM empty ORDER BY a;
-- not by a transaction that rolls back, nor read by the one that labels
CREATE MATERIALIZED VIEW late AS SELECT max(n) AS m FROM t;
BEGIN;
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW late IS 'incremental';
SELECT relation FROM eddy.view_catalog WHERE relation = 'late'::regclass;
SAVEPOINT s;
SELECT * FROM late;
\echo :SQLSTATE
ROLLBACK TO s;
SET LOCAL eddy.freshness = 'stale';
SELECT * FROM late;
ROLLBACK;
INSERT INTO t VALUES (5, 50);
SELECT * FROM late;
SELECT relation FROM eddy.view_catalog WHERE relation = 'late'::regclass;
-- the label is removed: a plain materialized view, which no view can be maintained over
SELECT * FROM sums;
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW sums IS NULL;
INSERT INTO t VALUES (6, 60);
SELECT * FROM sums;
REFRESH INCREMENTAL VIEW sums;
REFRESH MATERIALIZED VIEW sums;
SELECT * FROM sums;
SELECT * FROM made ORDER BY n;
SELECT * FROM twice;
\echo :SQLSTATE
-- what is refused
SECURITY LABEL FOR pg_eddy ON TABLE t IS 'incremental';
\echo :SQLSTATE
SECURITY LABEL FOR pg_eddy ON COLUMN sums.s IS 'incremental';
SECURITY LABEL FOR pg_eddy ON ROLE eddy_labeller IS 'incremental';
SECURITY LABEL FOR pg_eddy ON VIEW eddy.views IS 'incremental';
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW eddy.progress IS 'incremental';
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW late IS 'Incremental';
\echo :SQLSTATE
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW late IS '';
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW late IS 'incremental, really';
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW late IS 'incremental {"version": 0}';
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW late IS 'incremental {"colour": "blue"}';
\echo :SQLSTATE
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW late IS 'incremental {"version": 3, "colour": "blue"}';
\echo :SQLSTATE
CREATE MATERIALIZED VIEW volatile AS SELECT random() AS r FROM t;
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW volatile IS 'incremental';
\echo :SQLSTATE
CREATE MATERIALIZED VIEW over_plain AS SELECT s FROM sums;
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW over_plain IS 'incremental';
SET ROLE eddy_labeller;
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW late IS 'incremental';
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW made IS NULL;
SELECT relation, definition IS NULL AS hidden FROM eddy.view_catalog WHERE relation = 'made'::regclass;
RESET ROLE;
SELECT relation FROM eddy.view_catalog ORDER BY relation::text;
DROP TABLE t, loose, loose_too CASCADE;
DROP ROLE eddy_labeller;
SELECT count(*) FROM pg_seclabel;
