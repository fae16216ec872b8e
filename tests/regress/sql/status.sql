-- eddy.views, eddy.wait_for_lsn, eddy.explain_view, eddy.verify_view.
SET client_min_messages = warning;
CREATE TABLE edge (src int, dst int);
INSERT INTO edge VALUES (1, 2), (2, 3);
CREATE INCREMENTAL VIEW reach AS
    WITH RECURSIVE r(a, b) AS (
        SELECT src, dst FROM edge UNION SELECT r.a, e.dst FROM r JOIN edge e ON e.src = r.b)
    SELECT a, b FROM r;
CREATE INCREMENTAL VIEW degree AS SELECT src, count(*) AS n FROM edge GROUP BY src;
SELECT relation, created_at BETWEEN now() - interval '1 minute' AND now() AS just_created FROM eddy.views ORDER BY relation::text;
-- both are live from the first read on
SELECT count(*) FROM reach;
INSERT INTO edge VALUES (3, 1);
SELECT count(*) FROM reach;
UPDATE edge SET dst = dst + 1 WHERE src = 1;
SELECT count(*) FROM reach;
SELECT count(*) FROM degree;
SELECT relation, state, sqlstate, message, rows, applied_lsn IS NOT NULL AS applied, lag_bytes, lag_ms,
    transactions > 0 AS followed, updates > 0 AS updated, iterations > 1 AS iterated, state_bytes > 0 AS sized
FROM eddy.views ORDER BY relation::text;
-- the worker counts what it does and how long that takes
INSERT INTO edge VALUES (7, 8), (8, 9);
SELECT count(*) FROM degree WHERE src > 6;
CREATE TEMP TABLE before AS SELECT * FROM eddy.activity;
BEGIN;
INSERT INTO edge VALUES (9, 7);
UPDATE edge SET dst = 8 WHERE src = 9;
DELETE FROM edge WHERE src = 8;
COMMIT;
SELECT count(*) FROM degree WHERE src > 6;
SELECT eddy.wait_for_lsn(pg_current_wal_lsn(), interval '1 minute');
SELECT a.pid = b.pid AS same, a.since < now() AS started, a.steps > b.steps AS worked, a.transactions - b.transactions AS transactions,
    a.changes - b.changes AS changes, a.decode_ms > b.decode_ms AS decoded, a.attach_ms > 0 AS attached,
    a.engine_ms > b.engine_ms AS computed, a.apply_ms > b.apply_ms AS applied
FROM eddy.activity a, before b;
SELECT eddy.wait_for_lsn(pg_current_wal_lsn(), interval '1 minute');
SELECT * FROM eddy.verify_view('reach');
SELECT * FROM eddy.verify_view(view => 'degree');
SELECT eddy.wait_for_lsn('FFFFFFFF/0', interval '10 milliseconds');
SELECT eddy.wait_for_lsn(NULL) IS NULL AS nothing;
SELECT eddy.verify_view('edge');
SELECT eddy.verify_view(0);
SELECT eddy.explain_view('pg_class');
-- the worker remembers where its row of eddy.progress is; nobody else writes it
SELECT FROM pg_stat_force_next_flush();
CREATE TEMP TABLE former AS SELECT seq_scan, n_tup_upd FROM pg_stat_all_tables WHERE relid = 'eddy.progress'::regclass;
DO $$ BEGIN
    FOR i IN 1..20 LOOP
        INSERT INTO edge VALUES (100, i);
        COMMIT;
        PERFORM eddy.wait_for_lsn(pg_current_wal_lsn());
    END LOOP;
END $$;
CREATE VIEW pg_temp.written AS
    SELECT now.n_tup_upd - former.n_tup_upd AS writes, now.seq_scan - former.seq_scan AS searches
    FROM former, pg_stat_all_tables now WHERE relid = 'eddy.progress'::regclass;
DO $$ BEGIN
    WHILE (SELECT writes < 20 FROM pg_temp.written) LOOP
        PERFORM pg_sleep(0.02), pg_stat_clear_snapshot();
    END LOOP;
END $$;
SELECT writes >= 20 AS written, searches <= 2 AS remembered FROM pg_temp.written;
VACUUM FULL eddy.progress;
INSERT INTO edge VALUES (100, 21);
SELECT n FROM degree WHERE src = 100;
SELECT count(*), max(applied_lsn) <= pg_current_wal_lsn() AS valid FROM eddy.progress;
DELETE FROM eddy.progress;
SET client_min_messages = notice;
REFRESH MATERIALIZED VIEW eddy.progress;
SET client_min_messages = warning;
SELECT count(*) FROM eddy.progress;
-- who starts afresh is counted, who fails is remembered
CREATE INCREMENTAL VIEW inverse AS SELECT src, 100 / (dst - 77) AS n FROM edge;
SELECT count(*) FROM degree;
SELECT count(*) > 0 AS read FROM inverse;
SELECT relation, state, phase, rows_read, rows_estimated, rows_per_second, time_left, hint, since <= now() AS since, starts > 0 AS started,
    last_error_at <= now() AS failed, last_sqlstate, last_error, last_hint
FROM eddy.views WHERE relation IN ('inverse'::regclass, 'degree'::regclass) ORDER BY relation::text;
DO $$ BEGIN
    INSERT INTO edge VALUES (50, 77);
    COMMIT;
    PERFORM eddy.wait_for_lsn(pg_current_wal_lsn());
    WHILE (SELECT state <> 'error' FROM eddy.views WHERE relation = 'inverse'::regclass) LOOP
        PERFORM pg_sleep(0.02);
    END LOOP;
END $$;
SELECT state, sqlstate, message, hint, last_error_at >= since - interval '1 second' AS failed, last_sqlstate, last_error, last_hint
FROM eddy.views WHERE relation = 'inverse'::regclass;
DELETE FROM edge WHERE src = 50;
SELECT count(*) > 0 AS heals FROM inverse;
SELECT state, sqlstate, message, last_sqlstate, last_error FROM eddy.views WHERE relation = 'inverse'::regclass;
CREATE TEMP TABLE counted AS SELECT starts FROM eddy.views WHERE relation = 'inverse'::regclass;
REFRESH INCREMENTAL VIEW inverse;
SELECT count(*) > 0 AS refreshed FROM inverse;
SELECT v.starts > c.starts AS started FROM eddy.views v, counted c WHERE v.relation = 'inverse'::regclass;
DROP MATERIALIZED VIEW inverse;
SELECT lag_bytes, lag_ms, starts > 0 AS started, memory_bytes > 0 AS has_memory, memory_bytes < memory_limit_bytes AS within_memory,
    state_bytes > 0 AS has_state, spilled_bytes, held_wal_bytes >= 0 AS holds, held_wal_bytes < held_wal_limit_bytes AS within_wal
FROM (SELECT FROM eddy.wait_for_lsn(pg_current_wal_lsn())) AS current, eddy.activity;
SELECT name, kind, labels FROM eddy.metrics WHERE labels = '{}' OR labels ->> 'view' = 'degree' ORDER BY name;
SELECT eddy.library_version() = extversion AS same FROM pg_extension WHERE extname = 'pg_eddy';
-- every object of the extension has a comment
SELECT pg_describe_object(d.classid, d.objid, 0) AS object
FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
WHERE e.extname = 'pg_eddy' AND coalesce(
    obj_description(d.objid, d.classid::regclass::name), shobj_description(d.objid, d.classid::regclass::name)) IS NULL
    AND d.classid <> 'pg_type'::regclass
ORDER BY 1;
SELECT c.oid::regclass AS relation, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relnamespace = 'eddy'::regnamespace AND c.relkind IN ('r', 'v', 'm') AND col_description(c.oid, a.attnum) IS NULL
ORDER BY 1, 2;
SELECT name FROM pg_settings WHERE name LIKE 'eddy.%' AND (short_desc IS NULL OR short_desc = '') ORDER BY name;
-- when a view was created stays, whatever becomes of it
CREATE TEMP TABLE created AS SELECT relation, created_at FROM eddy.views;
REFRESH INCREMENTAL VIEW degree;
ALTER INCREMENTAL VIEW degree RENAME TO degrees;
SELECT count(*) FROM eddy.views v JOIN created c ON c.relation = v.relation AND c.created_at = v.created_at;
-- and goes with it, in the same transaction, known to the worker or not
BEGIN;
SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW degrees IS NULL;
SELECT count(*) FROM eddy.view_creations;
ROLLBACK;
SELECT count(*) FROM eddy.view_creations;
BEGIN;
CREATE INCREMENTAL VIEW brief AS SELECT src FROM edge;
SELECT count(*) FROM eddy.view_creations;
SAVEPOINT s;
DROP MATERIALIZED VIEW brief;
SELECT count(*) FROM eddy.view_creations;
ROLLBACK TO s;
SELECT count(*) FROM eddy.view_creations;
DROP MATERIALIZED VIEW brief;
COMMIT;
SELECT count(*) FROM eddy.view_creations;
CREATE MATERIALIZED VIEW twice AS SELECT src FROM edge;
DO $$ BEGIN
    FOR i IN 1..50 LOOP
        SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW twice IS 'incremental';
        COMMIT;
        SECURITY LABEL FOR pg_eddy ON MATERIALIZED VIEW twice IS NULL;
        COMMIT;
    END LOOP;
END $$;
DROP TABLE edge CASCADE;
SELECT count(*) FROM eddy.views;
SELECT count(*) FROM eddy.view_creations;
