-- From version 0.1.0 to 0.2.0. Views of the schema keep their places, so that grants on them and views of users over them
-- stay; new columns are at the end.

\echo Use "ALTER EXTENSION pg_eddy UPDATE TO '0.2.0'" to load this file. \quit

-- A library of an earlier version lacks the function that this one names, and its error says what to do: the server goes
-- on with the library that it has loaded at its start.
CREATE FUNCTION eddy.library_version() RETURNS text
LANGUAGE c STABLE AS 'MODULE_PATHNAME', 'eddy_0_2_is_loaded_when_the_server_restarts_wrapper';
COMMENT ON FUNCTION eddy.library_version() IS 'version of the library pg_eddy that this session has loaded';

CREATE MATERIALIZED VIEW eddy.view_statistics AS
SELECT NULL::oid AS relation, NULL::text AS statistics, NULL::timestamptz AS noted_at WHERE false;
COMMENT ON MATERIALIZED VIEW eddy.view_statistics IS 'what was known of the tables of the incremental views of this database when these were created or refreshed, by which they are planned';
COMMENT ON COLUMN eddy.view_statistics.relation IS 'the view';
COMMENT ON COLUMN eddy.view_statistics.statistics IS 'rows of its tables, and how different the values of their columns are';
COMMENT ON COLUMN eddy.view_statistics.noted_at IS 'when they were noted: a view that is refreshed gets a new dataflow';

CREATE MATERIALIZED VIEW eddy.view_changes AS
SELECT NULL::oid AS relation, NULL::oid AS changes, NULL::pg_lsn AS since, NULL::timestamptz AS since_at WHERE false;
COMMENT ON MATERIALIZED VIEW eddy.view_changes IS 'the incremental views of this database whose changes are kept, and where';
COMMENT ON COLUMN eddy.view_changes.relation IS 'the view';
COMMENT ON COLUMN eddy.view_changes.changes IS 'the table of its changes';
COMMENT ON COLUMN eddy.view_changes.since IS 'all changes after this position are there';
COMMENT ON COLUMN eddy.view_changes.since_at IS 'when that was';
GRANT SELECT ON eddy.view_changes TO PUBLIC;

CREATE MATERIALIZED VIEW eddy.view_mirrors AS
SELECT NULL::oid AS relation, NULL::oid AS mirror WHERE false;
COMMENT ON MATERIALIZED VIEW eddy.view_mirrors IS 'the incremental views of this database whose rows are in a table, too, and in which';
COMMENT ON COLUMN eddy.view_mirrors.relation IS 'the view';
COMMENT ON COLUMN eddy.view_mirrors.mirror IS 'the table with its rows';
GRANT SELECT ON eddy.view_mirrors TO PUBLIC;

CREATE FUNCTION eddy.refuse_write() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'eddy_refuse_write_wrapper';
COMMENT ON FUNCTION eddy.refuse_write() IS 'keeps others than pg_eddy from writing tables with the rows of incremental views';

CREATE FUNCTION eddy.report_views() RETURNS TABLE (
    relation regclass, state text, sqlstate text, message text, rows bigint, applied_lsn pg_lsn,
    lag_bytes bigint, lag_ms bigint, transactions bigint, updates bigint, iterations bigint,
    state_bytes bigint, spilled_bytes bigint, phase text, rows_read bigint, rows_estimated bigint,
    rows_per_second double precision, seconds_left double precision, hint text, since timestamptz, starts bigint,
    last_error_at timestamptz, last_sqlstate text, last_error text, last_hint text, query_reads bigint
)
LANGUAGE c AS 'MODULE_PATHNAME', 'eddy_report_views_wrapper';
COMMENT ON FUNCTION eddy.report_views() IS 'what the worker of this database reports of its views; see eddy.views';

CREATE FUNCTION eddy.report_activity() RETURNS TABLE (
    pid integer, since timestamptz, applied_lsn pg_lsn, steps bigint, transactions bigint, changes bigint,
    decode_ms double precision, attach_ms double precision, engine_ms double precision,
    apply_ms double precision, lag_bytes bigint, lag_ms bigint, starts bigint, last_end_at timestamptz, last_end text,
    memory_bytes bigint, memory_limit_bytes bigint, state_bytes bigint, spilled_bytes bigint, spill_limit_bytes bigint,
    held_wal_bytes bigint, held_wal_limit_bytes bigint
)
LANGUAGE c ROWS 1 AS 'MODULE_PATHNAME', 'eddy_report_activity_wrapper';
COMMENT ON FUNCTION eddy.report_activity() IS 'what the worker of this database has done since it started; see eddy.activity';

CREATE OR REPLACE VIEW eddy.activity AS
SELECT
    pid, since, applied_lsn, steps, transactions, changes, decode_ms, attach_ms, engine_ms, apply_ms,
    lag_bytes, lag_ms, starts, last_end_at, last_end, memory_bytes, memory_limit_bytes, state_bytes,
    spilled_bytes, spill_limit_bytes, held_wal_bytes, held_wal_limit_bytes
FROM eddy.report_activity();
COMMENT ON COLUMN eddy.activity.lag_bytes IS 'bytes of WAL between that position and the last commit';
COMMENT ON COLUMN eddy.activity.lag_ms IS 'milliseconds since the last progress, 0 when there is no lag';
COMMENT ON COLUMN eddy.activity.starts IS 'workers of this database that have started since the server did';
COMMENT ON COLUMN eddy.activity.last_end_at IS 'when the one before ended';
COMMENT ON COLUMN eddy.activity.last_end IS 'why; the message of an error for superusers';
COMMENT ON COLUMN eddy.activity.memory_bytes IS 'memory that the worker holds';
COMMENT ON COLUMN eddy.activity.memory_limit_bytes IS 'as much as it may, by eddy.memory_limit; null for no limit';
COMMENT ON COLUMN eddy.activity.state_bytes IS 'state_bytes of all views';
COMMENT ON COLUMN eddy.activity.spilled_bytes IS 'spilled_bytes of all views';
COMMENT ON COLUMN eddy.activity.spill_limit_bytes IS 'as much as they may have on disk, by eddy.spill_limit; null for no limit, or where no state goes to disk';
COMMENT ON COLUMN eddy.activity.held_wal_bytes IS 'WAL that the server keeps for the worker';
COMMENT ON COLUMN eddy.activity.held_wal_limit_bytes IS 'as much as it may, by eddy.max_retained_wal and max_slot_wal_keep_size; beyond it all views start afresh; null for no limit';

-- A function of its own, and not inlined, so that a server that does not preload the library need not have it.
CREATE FUNCTION eddy.collect_reports() RETURNS TABLE (
    relation regclass, state text, sqlstate text, message text, rows bigint, applied_lsn pg_lsn,
    lag_bytes bigint, lag_ms bigint, transactions bigint, updates bigint, iterations bigint,
    state_bytes bigint, spilled_bytes bigint, phase text, rows_read bigint, rows_estimated bigint,
    rows_per_second double precision, seconds_left double precision, hint text, since timestamptz, starts bigint,
    last_error_at timestamptz, last_sqlstate text, last_error text, last_hint text, query_reads bigint
)
LANGUAGE sql VOLATILE BEGIN ATOMIC
    SELECT c.relation, coalesce(v.state, 'attaching'), v.sqlstate, v.message, v.rows, v.applied_lsn,
        v.lag_bytes, v.lag_ms, v.transactions, v.updates, v.iterations, v.state_bytes, v.spilled_bytes,
        v.phase, v.rows_read, v.rows_estimated, v.rows_per_second, v.seconds_left, v.hint, v.since, v.starts,
        v.last_error_at, v.last_sqlstate, v.last_error, v.last_hint, v.query_reads
    FROM eddy.view_catalog c LEFT JOIN eddy.report_views() v ON v.relation OPERATOR(pg_catalog.=) c.relation
    WHERE v.relation IS NOT NULL OR EXISTS (SELECT FROM eddy.report_activity());
END;
COMMENT ON FUNCTION eddy.collect_reports() IS 'what the worker of this database reports of its views, those that it is still to notice, and why they are stopped if it does not run; see eddy.views';

CREATE OR REPLACE VIEW eddy.views AS
SELECT
    c.relation,
    coalesce(v.state, e.state, 'stopped') AS state,
    coalesce(v.sqlstate, e.sqlstate) AS sqlstate,
    CASE
        WHEN v.state IS NOT NULL THEN v.message
        WHEN e.state IS NOT NULL THEN e.message
        WHEN NOT server.preloads THEN 'pg_eddy is not in shared_preload_libraries'
        WHEN pg_catalog.pg_is_in_recovery() THEN 'the server is in recovery: the view has what has been replayed'
        WHEN pg_catalog.current_setting('wal_level') <> 'logical' THEN 'wal_level is not logical'
        ELSE coalesce(w.message, 'no worker runs in this database: see the server log')
    END AS message,
    v.rows,
    CASE WHEN v.state IS NOT NULL THEN v.applied_lsn WHEN s.state IS NOT NULL THEN s.applied_lsn ELSE p.applied_lsn END AS applied_lsn,
    v.lag_bytes, v.lag_ms, v.transactions, v.updates, v.iterations, v.state_bytes, v.spilled_bytes,
    b.created_at,
    v.phase, v.rows_read, v.rows_estimated, v.rows_per_second,
    pg_catalog.make_interval(secs => pg_catalog.ceil(v.seconds_left)) AS time_left,
    CASE WHEN v.state IS NOT NULL THEN v.hint ELSE e.hint END AS hint,
    coalesce(v.since, e.since, w.since, greatest(pg_catalog.pg_postmaster_start_time(), b.created_at)) AS since,
    w.starts, w.last_error_at, w.last_sqlstate, w.last_error, w.last_hint,
    c.options OPERATOR(pg_catalog.->) 'settings' AS settings,
    w.query_reads,
    c.options OPERATOR(pg_catalog.->>) 'fallback' AS fallback,
    k.changes::pg_catalog.regclass AS changes,
    (c.options OPERATOR(pg_catalog.->>) 'changes')::pg_catalog.interval AS changes_kept,
    k.since AS changes_since
FROM eddy.view_catalog c
    LEFT JOIN eddy.view_creations b ON b.relation OPERATOR(pg_catalog.=) c.relation
    LEFT JOIN eddy.view_changes k ON k.relation OPERATOR(pg_catalog.=) c.relation
    -- The setting exists where the library was loaded at server start, and only there.
    CROSS JOIN (
        SELECT EXISTS (SELECT FROM pg_catalog.pg_settings WHERE name = 'eddy.max_views') AS preloads
    ) AS server
    LEFT JOIN (
        SELECT * FROM eddy.collect_reports()
        WHERE EXISTS (SELECT FROM pg_catalog.pg_settings WHERE name = 'eddy.max_views')
    ) AS w ON w.relation OPERATOR(pg_catalog.=) c.relation
    LEFT JOIN LATERAL (SELECT w.* WHERE w.state <> 'stopped') AS v ON true
    -- Without a worker, the last words of the former one; on a standby, those of the primary's.
    LEFT JOIN eddy.view_states s ON s.relation OPERATOR(pg_catalog.=) c.relation
    LEFT JOIN (
        SELECT relation, state, sqlstate, since,
            CASE WHEN pg_catalog.has_table_privilege(relation, 'SELECT') THEN message END AS message,
            CASE WHEN pg_catalog.has_table_privilege(relation, 'SELECT') THEN hint END AS hint
        FROM eddy.view_states
    ) AS e ON server.preloads AND v.state IS NULL AND e.state = 'error' AND e.relation OPERATOR(pg_catalog.=) c.relation
    LEFT JOIN eddy.progress p ON true;
COMMENT ON COLUMN eddy.views.applied_lsn IS 'everything committed before this position is in the view; null until its rows have been compared with what they should be';
COMMENT ON COLUMN eddy.views.phase IS 'what is being done to attach it: waiting for its turn or for a lock; reading its base tables; computing; writing its rows; null when it is not attaching';
COMMENT ON COLUMN eddy.views.rows_read IS 'rows of its base tables read so far';
COMMENT ON COLUMN eddy.views.rows_estimated IS 'rows of its base tables by PostgreSQL''s estimate';
COMMENT ON COLUMN eddy.views.rows_per_second IS 'rows read a second';
COMMENT ON COLUMN eddy.views.time_left IS 'until they are read if it goes on like this';
COMMENT ON COLUMN eddy.views.hint IS 'what can be done about the error, for those who may read the view; null if it goes by itself with the data';
COMMENT ON COLUMN eddy.views.since IS 'since when it is in its state';
COMMENT ON COLUMN eddy.views.starts IS 'how often its base tables were begun to be read since the server started';
COMMENT ON COLUMN eddy.views.last_error_at IS 'when its last error came up, be it over or not, since the server started';
COMMENT ON COLUMN eddy.views.last_sqlstate IS 'SQLSTATE of that error';
COMMENT ON COLUMN eddy.views.last_error IS 'its message, for those who may read the view';
COMMENT ON COLUMN eddy.views.last_hint IS 'what can be done about it, for those who may read the view';
COMMENT ON COLUMN eddy.views.settings IS 'the settings that it has of its own, for its query: time zone, formats, locales; null for those of PostgreSQL without a configuration';
COMMENT ON COLUMN eddy.views.query_reads IS 'how often a statement has run its query, because its rows were not what the statement had to see, since the server started';
COMMENT ON COLUMN eddy.views.fallback IS 'what reads do that find it not current, where the session does not say; null for waiting';
COMMENT ON COLUMN eddy.views.changes IS 'the table of its changes; null if they are not kept';
COMMENT ON COLUMN eddy.views.changes_kept IS 'how long they are kept at least';
COMMENT ON COLUMN eddy.views.changes_since IS 'all changes after this position are there';

CREATE FUNCTION eddy.report_arrangements() RETURNS TABLE (
    number integer, kind text, relation regclass, key smallint[], columns smallint[], joined regclass, joined_columns smallint[],
    relations oid[], rows bigint, state_bytes bigint, used_by regclass
)
LANGUAGE c AS 'MODULE_PATHNAME', 'eddy_report_arrangements_wrapper';
COMMENT ON FUNCTION eddy.report_arrangements() IS 'what the worker of this database reports of what views share, for each view that reads them; see eddy.arrangements';

CREATE VIEW eddy.arrangements AS
SELECT a.kind, a.relation, k.names AS key, c.names AS columns, a.joined, j.names AS joined_columns,
    a.relations::pg_catalog.regclass[] AS relations, a.rows, a.state_bytes, a.used_by,
    a.state_bytes / pg_catalog.cardinality(a.used_by) AS share_bytes
FROM (
    SELECT number, kind, relation, key, columns, joined, joined_columns, relations, rows, state_bytes,
        pg_catalog.array_agg(used_by ORDER BY used_by) AS used_by
    FROM eddy.report_arrangements()
    GROUP BY number, kind, relation, key, columns, joined, joined_columns, relations, rows, state_bytes
) AS a
    CROSS JOIN LATERAL (
        SELECT pg_catalog.array_agg(t.attname::text ORDER BY n.place) AS names
        FROM pg_catalog.unnest(a.key) WITH ORDINALITY AS n (number, place)
            JOIN pg_catalog.pg_attribute t ON t.attrelid OPERATOR(pg_catalog.=) a.relation AND t.attnum OPERATOR(pg_catalog.=) n.number
    ) AS k
    CROSS JOIN LATERAL (
        SELECT pg_catalog.array_agg(t.attname::text ORDER BY n.place) AS names
        FROM pg_catalog.unnest(a.columns) WITH ORDINALITY AS n (number, place)
            JOIN pg_catalog.pg_attribute t ON t.attrelid OPERATOR(pg_catalog.=) a.relation AND t.attnum OPERATOR(pg_catalog.=) n.number
    ) AS c
    CROSS JOIN LATERAL (
        SELECT pg_catalog.array_agg(t.attname::text ORDER BY n.place) AS names
        FROM pg_catalog.unnest(a.joined_columns) WITH ORDINALITY AS n (number, place)
            JOIN pg_catalog.pg_attribute t ON t.attrelid OPERATOR(pg_catalog.=) a.joined AND t.attnum OPERATOR(pg_catalog.=) n.number
    ) AS j;
COMMENT ON VIEW eddy.arrangements IS 'what views of this database keep together, in memory: indexes of base tables, and what parts of their plans put out';
COMMENT ON COLUMN eddy.arrangements.kind IS 'what it holds: table, the rows of one; what a join of two tables puts out; or a sub-plan: recursion, groups, distinct, partitions';
COMMENT ON COLUMN eddy.arrangements.relation IS 'the table; NULL for a sub-plan';
COMMENT ON COLUMN eddy.arrangements.joined IS 'the table that it is joined with, if it is what a join puts out; otherwise NULL';
COMMENT ON COLUMN eddy.arrangements.joined_columns IS 'the columns of that table that it has';
COMMENT ON COLUMN eddy.arrangements.relations IS 'all tables of which it is made';
COMMENT ON COLUMN eddy.arrangements.key IS 'the columns by which its rows are looked up';
COMMENT ON COLUMN eddy.arrangements.columns IS 'the columns that it has';
COMMENT ON COLUMN eddy.arrangements.rows IS 'rows that it has, those included that are still to be merged with their deletions';
COMMENT ON COLUMN eddy.arrangements.state_bytes IS 'memory that it takes';
COMMENT ON COLUMN eddy.arrangements.used_by IS 'the views that read it';
COMMENT ON COLUMN eddy.arrangements.share_bytes IS 'what of it is counted as state_bytes of each of them';
GRANT SELECT ON eddy.arrangements TO PUBLIC;
CREATE FUNCTION eddy.list_outdated_plans() RETURNS TABLE (
    relation regclass, base_table regclass, rows_planned double precision, rows_now double precision
)
LANGUAGE c AS 'MODULE_PATHNAME', 'eddy_list_outdated_plans_wrapper';
COMMENT ON FUNCTION eddy.list_outdated_plans() IS 'the incremental views of this database that would be planned in another way by what is known of their tables now, and of each the table whose rows have changed most';

CREATE FUNCTION eddy.list_base_tables() RETURNS TABLE (relation regclass, columns smallint[])
LANGUAGE c AS 'MODULE_PATHNAME', 'eddy_list_base_tables_wrapper';
COMMENT ON FUNCTION eddy.list_base_tables() IS 'the base tables of the incremental views of this database, and the numbers of the columns that these need old values of';

-- Without the library, or without a worker, it says so, and what the catalogs alone tell.
CREATE FUNCTION eddy.check(
    patience interval DEFAULT '1 minute', unused_after interval DEFAULT '7 days'
) RETURNS TABLE (level text, subject text, message text, remedy text)
LANGUAGE sql VOLATILE BEGIN ATOMIC
WITH server AS MATERIALIZED (
    SELECT EXISTS (SELECT FROM pg_catalog.pg_settings WHERE name = 'eddy.max_views') AS preloads,
        pg_catalog.current_setting('wal_level') = 'logical' AS is_logical,
        NOT pg_catalog.pg_is_in_recovery() AS is_primary
), status AS MATERIALIZED (
    SELECT v.*, v.relation::text AS name FROM eddy.views v
), worker AS MATERIALIZED (
    SELECT * FROM eddy.activity WHERE (SELECT preloads FROM server)
), setting AS MATERIALIZED (
    SELECT name, setting::bigint AS value FROM pg_catalog.pg_settings
    WHERE name IN ('max_replication_slots', 'max_worker_processes', 'max_slot_wal_keep_size', 'max_wal_size', 'eddy.max_views',
        'eddy.max_retained_wal', 'eddy.memory_limit')
), processes AS MATERIALIZED (
    SELECT count(*) AS number FROM pg_catalog.pg_stat_activity
    WHERE backend_type NOT IN ('client backend', 'autovacuum launcher', 'autovacuum worker', 'startup', 'checkpointer',
        'background writer', 'walwriter', 'walreceiver', 'walsender', 'archiver', 'slotsync worker', 'walsummarizer', 'io worker',
        'standalone backend')
), found AS (
    SELECT 'error' AS level, 'server' AS subject, 'pg_eddy is not in shared_preload_libraries' AS message,
        'Add it in postgresql.conf and restart the server.' AS remedy
    FROM server WHERE NOT preloads
    UNION ALL
    SELECT 'error', 'server', 'wal_level is not logical', 'Set wal_level = logical in postgresql.conf and restart the server.'
    FROM server WHERE is_primary AND NOT is_logical
    UNION ALL
    SELECT 'warning', 'server', 'wal_level is not logical on this standby: nobody would maintain views after its promotion',
        'Set wal_level = logical in postgresql.conf and restart the server.'
    FROM server WHERE NOT is_primary AND NOT is_logical
    UNION ALL
    SELECT 'warning', 'extension', pg_catalog.format('the SQL objects are of version %s, the library of version %s', e.extversion, l.version),
        'Run ALTER EXTENSION pg_eddy UPDATE; if that says that there is nothing to do, restart the server.'
    FROM pg_catalog.pg_extension e, eddy.library_version() AS l (version)
    WHERE e.extname = 'pg_eddy' AND e.extversion <> l.version
    UNION ALL
    SELECT 'warning', 'max_slot_wal_keep_size',
        pg_catalog.format('workers that hold back more than %s MB of WAL start afresh, less than max_wal_size', k.value),
        'Raise max_slot_wal_keep_size above max_wal_size.'
    FROM setting k, setting w WHERE k.name = 'max_slot_wal_keep_size' AND w.name = 'max_wal_size' AND k.value BETWEEN 0 AND w.value
    UNION ALL
    SELECT 'warning', 'eddy.max_retained_wal', 'a worker that does not get on may hold back WAL until the disk is full',
        'Set a limit, or -1 for half of the free space.'
    FROM setting k, setting w WHERE k.name = 'eddy.max_retained_wal' AND k.value = 0
        AND w.name = 'max_slot_wal_keep_size' AND w.value = -1
    UNION ALL
    SELECT 'notice', 'eddy.memory_limit', 'the memory of incremental views has no limit', 'Set a limit, or -1 for half of the memory.'
    FROM setting WHERE name = 'eddy.memory_limit' AND value = 0
    UNION ALL
    SELECT 'warning', 'max_replication_slots', pg_catalog.format('all %s replication slots are in use', s.value),
        'Raise max_replication_slots: each database with incremental views needs one.'
    FROM setting s WHERE s.name = 'max_replication_slots' AND s.value <= (SELECT count(*) FROM pg_catalog.pg_replication_slots)
    UNION ALL
    SELECT 'warning', 'max_worker_processes', pg_catalog.format('all %s background workers are in use', s.value),
        'Raise max_worker_processes: each database with incremental views needs one, and costly views need some more for a while.'
    FROM setting s, processes p WHERE s.name = 'max_worker_processes' AND s.value <= p.number
    UNION ALL
    SELECT 'warning', 'eddy.max_views', pg_catalog.format('this database has %s incremental views, of %s that all may have', n.number, s.value),
        'Raise eddy.max_views and restart the server.'
    FROM setting s, (SELECT count(*) AS number FROM eddy.view_catalog) AS n
    WHERE s.name = 'eddy.max_views' AND n.number >= 0.9 * s.value
    UNION ALL
    SELECT 'warning', 'worker', pg_catalog.format('it ended at %s: %s', w.last_end_at, w.last_end),
        'See the server log for the reason.'
    FROM worker w WHERE w.last_end_at > pg_catalog.now() - interval '1 day' AND w.last_end NOT LIKE 'It was asked%'
    UNION ALL
    SELECT 'warning', 'worker', pg_catalog.format('it holds %s of at most %s', pg_catalog.pg_size_pretty(w.memory_bytes),
            pg_catalog.pg_size_pretty(w.memory_limit_bytes)),
        'Raise eddy.memory_limit, or set eddy.spill_directory.'
    FROM worker w WHERE w.memory_bytes > 0.8 * w.memory_limit_bytes
    UNION ALL
    SELECT 'warning', 'worker', pg_catalog.format('its views have %s on disk, of at most %s', pg_catalog.pg_size_pretty(w.spilled_bytes),
            pg_catalog.pg_size_pretty(w.spill_limit_bytes)),
        'Raise eddy.memory_limit or eddy.spill_limit.'
    FROM worker w WHERE w.spilled_bytes > 0.8 * w.spill_limit_bytes
    UNION ALL
    SELECT 'warning', 'worker', pg_catalog.format('it holds back %s of WAL, of at most %s', pg_catalog.pg_size_pretty(w.held_wal_bytes),
            pg_catalog.pg_size_pretty(w.held_wal_limit_bytes)),
        'Look for transactions that stay open, and for views that are behind.'
    FROM worker w WHERE w.held_wal_bytes > 0.5 * w.held_wal_limit_bytes
    UNION ALL
    SELECT 'error', v.name, coalesce(v.sqlstate || ': ' || v.message, v.sqlstate), 
        CASE
            WHEN NOT pg_catalog.has_table_privilege(v.relation, 'SELECT') THEN 'A role that may SELECT from the view is told the reason.'
            ELSE coalesce(v.hint, 'It goes with the data that cause it.')
        END
    FROM status v WHERE v.state = 'error'
    UNION ALL
    SELECT 'error', v.name, pg_catalog.format('it has not been maintained since %s: %s', v.since, v.message), 'See the message, and the server log.'
    FROM status v, server WHERE v.state = 'stopped' AND is_primary AND preloads AND is_logical AND pg_catalog.now() - v.since >= patience
    UNION ALL
    SELECT 'warning', v.name, pg_catalog.format('it is %s since %s%s', v.state, v.since, ': ' || v.message),
        CASE v.state WHEN 'attaching' THEN 'Look at phase, rows_read and rows_estimated in eddy.views.' ELSE 'Look for locks on the view.' END
    FROM status v WHERE v.state IN ('attaching', 'behind') AND pg_catalog.now() - v.since >= patience
    UNION ALL
    SELECT 'warning', 'worker', pg_catalog.format('it is %s ms and %s of WAL behind', w.lag_ms, pg_catalog.pg_size_pretty(w.lag_bytes)),
        'Look in eddy.activity where its time goes.'
    FROM worker w WHERE w.lag_ms >= 1 AND pg_catalog.make_interval(secs => w.lag_ms / 1000.0) >= patience
    UNION ALL
    SELECT 'notice', v.name, pg_catalog.format('%s of its state are on disk, where it is slower', pg_catalog.pg_size_pretty(v.spilled_bytes)),
        'Raise eddy.memory_limit.'
    FROM status v WHERE v.spilled_bytes > 0
    UNION ALL
    SELECT 'notice', v.name, pg_catalog.format('nobody has read it since %s, when it was created, or since statistics were reset', v.created_at),
        'Drop it if nobody needs it: it costs what its tables change.'
    FROM status v JOIN pg_catalog.pg_stat_all_tables t ON t.relid OPERATOR(pg_catalog.=) v.relation
    WHERE v.state = 'live' AND pg_catalog.now() - v.created_at >= unused_after
        -- The worker itself reads the rows once at each start.
        AND coalesce(t.seq_scan, 0) <= v.starts AND coalesce(t.idx_scan, 0) = 0
        AND NOT EXISTS (
            SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid AND r.ev_class <> v.relation
            WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.refclassid = 'pg_catalog.pg_class'::regclass
                AND d.refobjid = v.relation)
    UNION ALL
    SELECT 'notice', b.relation::text, 'its updates and deletes write whole old rows to the WAL, though an index has all columns that views need',
        pg_catalog.format('Run ALTER TABLE %s REPLICA IDENTITY USING INDEX %I.', b.relation, i.name)
    FROM eddy.list_base_tables() b
        JOIN pg_catalog.pg_class c ON c.oid = b.relation AND c.relreplident = 'f'
        CROSS JOIN LATERAL (
            SELECT x.relname AS name
            FROM pg_catalog.pg_index k JOIN pg_catalog.pg_class x ON x.oid = k.indexrelid
                -- Without those that an index only includes.
                CROSS JOIN LATERAL (SELECT (k.indkey::smallint[])[0:k.indnkeyatts - 1] AS columns) AS key
            WHERE k.indrelid = b.relation AND k.indisunique AND k.indimmediate AND k.indisvalid
                AND k.indpred IS NULL AND k.indexprs IS NULL AND b.columns <@ key.columns
                AND NOT EXISTS (
                    SELECT FROM pg_catalog.pg_attribute a
                    WHERE a.attrelid = b.relation AND a.attnum = ANY (key.columns) AND NOT a.attnotnull)
            ORDER BY k.indisprimary DESC, k.indnatts, x.relname LIMIT 1
        ) AS i
    WHERE (SELECT preloads FROM server)
    UNION ALL
    SELECT 'notice', o.relation::text,
        CASE
            WHEN o.rows_planned IS NULL THEN pg_catalog.format('its joins are in the order of its text: when they were planned, nothing was known of %s, which has about %s rows', o.base_table, o.rows_now::bigint)
            ELSE pg_catalog.format('its joins are planned for %s rows of %s, which has about %s', o.rows_planned::bigint, o.base_table, o.rows_now::bigint)
        END,
        pg_catalog.format('Run REFRESH INCREMENTAL VIEW %s: that plans them anew.', o.relation)
    FROM eddy.list_outdated_plans() o
    WHERE (SELECT preloads FROM server)
)
SELECT f.level, f.subject, f.message, f.remedy FROM found f
ORDER BY pg_catalog.array_position(ARRAY['error', 'warning', 'notice'], f.level), f.subject, f.message;
END;
COMMENT ON FUNCTION eddy.check(interval, interval) IS 'one row for each thing about this server and the incremental views of this database that could be better, worst first';

-- In the form that collectors of metrics take: a name, what it is about, how it changes, and a value.
CREATE VIEW eddy.metrics AS
SELECT m.name, m.kind, pg_catalog.jsonb_build_object('view', v.relation::text) AS labels, m.value
FROM eddy.views v CROSS JOIN LATERAL (VALUES
    ('eddy_view_live', 'gauge', (v.state = 'live')::integer::double precision),
    ('eddy_view_attaching', 'gauge', (v.state = 'attaching')::integer),
    ('eddy_view_behind', 'gauge', (v.state = 'behind')::integer),
    ('eddy_view_error', 'gauge', (v.state = 'error')::integer),
    ('eddy_view_stopped', 'gauge', (v.state = 'stopped')::integer),
    ('eddy_view_state_seconds', 'gauge', extract(epoch FROM pg_catalog.clock_timestamp() - v.since)),
    ('eddy_view_rows', 'gauge', v.rows),
    ('eddy_view_lag_bytes', 'gauge', v.lag_bytes),
    ('eddy_view_lag_seconds', 'gauge', v.lag_ms / 1000.0),
    ('eddy_view_transactions_total', 'counter', v.transactions),
    ('eddy_view_updates_total', 'counter', v.updates),
    ('eddy_view_starts_total', 'counter', v.starts),
    ('eddy_view_state_bytes', 'gauge', v.state_bytes),
    ('eddy_view_spilled_bytes', 'gauge', v.spilled_bytes),
    ('eddy_view_rows_read', 'gauge', v.rows_read),
    ('eddy_view_rows_estimated', 'gauge', v.rows_estimated)
) AS m (name, kind, value)
WHERE m.value IS NOT NULL
UNION ALL
SELECT m.name, m.kind, '{}', m.value
FROM (SELECT count(*) FILTER (WHERE s.preloads) AS running FROM (
        SELECT EXISTS (SELECT FROM pg_catalog.pg_settings WHERE name = 'eddy.max_views') AS preloads) AS s) AS server
    LEFT JOIN LATERAL (SELECT * FROM eddy.activity WHERE server.running > 0) AS a ON true
    CROSS JOIN LATERAL (VALUES
    ('eddy_worker_up', 'gauge', (a.pid IS NOT NULL)::integer::double precision),
    ('eddy_worker_starts_total', 'counter', a.starts),
    ('eddy_worker_lag_bytes', 'gauge', a.lag_bytes),
    ('eddy_worker_lag_seconds', 'gauge', a.lag_ms / 1000.0),
    ('eddy_worker_steps_total', 'counter', a.steps),
    ('eddy_worker_transactions_total', 'counter', a.transactions),
    ('eddy_worker_changes_total', 'counter', a.changes),
    ('eddy_worker_decode_seconds_total', 'counter', a.decode_ms / 1000),
    ('eddy_worker_attach_seconds_total', 'counter', a.attach_ms / 1000),
    ('eddy_worker_engine_seconds_total', 'counter', a.engine_ms / 1000),
    ('eddy_worker_apply_seconds_total', 'counter', a.apply_ms / 1000),
    ('eddy_worker_memory_bytes', 'gauge', a.memory_bytes),
    ('eddy_worker_memory_limit_bytes', 'gauge', a.memory_limit_bytes),
    ('eddy_worker_state_bytes', 'gauge', a.state_bytes),
    ('eddy_worker_spilled_bytes', 'gauge', a.spilled_bytes),
    ('eddy_worker_spill_limit_bytes', 'gauge', a.spill_limit_bytes),
    ('eddy_worker_held_wal_bytes', 'gauge', a.held_wal_bytes),
    ('eddy_worker_held_wal_limit_bytes', 'gauge', a.held_wal_limit_bytes)
) AS m (name, kind, value)
WHERE m.value IS NOT NULL;
COMMENT ON VIEW eddy.metrics IS 'figures of this database''s worker and views, one a row, under the names and in the units that Prometheus wants';
COMMENT ON COLUMN eddy.metrics.name IS 'name of the metric';
COMMENT ON COLUMN eddy.metrics.kind IS 'gauge: goes up and down; counter: counts up from the start of the worker or the server';
COMMENT ON COLUMN eddy.metrics.labels IS 'the view that it is about, if it is about one';
COMMENT ON COLUMN eddy.metrics.value IS 'its value: seconds, bytes, or a number';
GRANT SELECT ON eddy.metrics TO PUBLIC;

-- What the views read before.
DROP FUNCTION eddy.ask_worker();
DROP FUNCTION eddy.list_views();
DROP FUNCTION eddy.show_activity();

CREATE FUNCTION eddy.recursive(query text) RETURNS SETOF record
LANGUAGE c IMMUTABLE STRICT AS 'MODULE_PATHNAME', 'eddy_recursive_wrapper';
COMMENT ON FUNCTION eddy.recursive(text) IS 'refers to a query of WITH RECURSIVE, wherever it is, in the query of an incremental view';

-- Tables of changes.
CREATE FUNCTION eddy.changes_since(view regclass, since pg_lsn) RETURNS TABLE (
    lsn pg_lsn, xid xid8, committed_at timestamptz, diff bigint, data jsonb
)
LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'eddy_changes_since_wrapper';
COMMENT ON FUNCTION eddy.changes_since(regclass, pg_lsn) IS 'what has changed in an incremental view after a WAL position, in commit order; for views WITH (changes = ...)';

CREATE FUNCTION eddy.as_of(view anyelement, lsn pg_lsn) RETURNS SETOF anyelement
LANGUAGE c AS 'MODULE_PATHNAME', 'eddy_as_of_lsn_wrapper';
COMMENT ON FUNCTION eddy.as_of(anyelement, pg_lsn) IS 'the rows that an incremental view, named by a row of it as in NULL::view, had at a WAL position; for views WITH (changes = ...)';

CREATE FUNCTION eddy.as_of(view anyelement, at timestamptz) RETURNS SETOF anyelement
LANGUAGE c AS 'MODULE_PATHNAME', 'eddy_as_of_time_wrapper';
COMMENT ON FUNCTION eddy.as_of(anyelement, timestamptz) IS 'the rows that an incremental view, named by a row of it as in NULL::view, had at a time; for views WITH (changes = ...)';

CREATE FUNCTION eddy.subscribe(view regclass, from_lsn pg_lsn DEFAULT NULL, timeout interval DEFAULT '1 minute') RETURNS TABLE (
    lsn pg_lsn, xid xid8, committed_at timestamptz, diff bigint, data jsonb
)
LANGUAGE c AS 'MODULE_PATHNAME', 'eddy_subscribe_wrapper';
COMMENT ON FUNCTION eddy.subscribe(regclass, pg_lsn, interval) IS 'the rows of an incremental view, or what has changed after a WAL position as soon as something has; the last row, without data, has the position from which to go on; for views WITH (changes = ...)';

CREATE FUNCTION eddy.with_views_suspended(base_table regclass, statement text) RETURNS bigint
LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'eddy_with_views_suspended_wrapper';
COMMENT ON FUNCTION eddy.with_views_suspended(regclass, text) IS 'runs a statement that alters a table while the incremental views over it do not read it, and gives them their queries again; how many they are';
