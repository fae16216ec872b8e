-- Objects of the extension pg_eddy. Written by hand; every object has a comment.

\echo Use "CREATE EXTENSION pg_eddy" to load this file. \quit

-- Of the extension's own: a schema that somebody has made beforehand, and what is in it, is refused. Names here are
-- looked up in pg_catalog alone.
CREATE SCHEMA eddy;
GRANT USAGE ON SCHEMA eddy TO PUBLIC;
COMMENT ON SCHEMA eddy IS 'incremental views: catalog and functions of the extension pg_eddy';

-- A materialized view is incremental by its security label, which pg_dump carries.
CREATE VIEW eddy.view_catalog AS
SELECT
    c.oid::pg_catalog.regclass AS relation,
    CASE WHEN pg_catalog.has_table_privilege(c.oid, 'SELECT') THEN pg_catalog.pg_get_viewdef(c.oid) END AS definition,
    nullif(pg_catalog.substr(l.label, pg_catalog.length('incremental') + 1), '')::pg_catalog.jsonb AS options
FROM pg_catalog.pg_seclabel l JOIN pg_catalog.pg_class c ON c.oid = l.objoid AND c.relkind = 'm'
WHERE l.classoid = 'pg_catalog.pg_class'::pg_catalog.regclass AND l.objsubid = 0 AND l.provider = 'pg_eddy';
COMMENT ON VIEW eddy.view_catalog IS 'the incremental views of this database: the materialized views with a security label FOR pg_eddy';
COMMENT ON COLUMN eddy.view_catalog.relation IS 'the view';
COMMENT ON COLUMN eddy.view_catalog.definition IS 'its query, for those who may read the view';
COMMENT ON COLUMN eddy.view_catalog.options IS 'its options, if it has any';
GRANT SELECT ON eddy.view_catalog TO PUBLIC;

CREATE FUNCTION eddy.explain_view(view regclass) RETURNS text
LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'eddy_explain_view_wrapper';
COMMENT ON FUNCTION eddy.explain_view(regclass) IS 'the plan by which an incremental view is maintained';

CREATE FUNCTION eddy.verify_view(view regclass) RETURNS TABLE (missing bigint, surplus bigint)
LANGUAGE c STRICT ROWS 1 AS 'MODULE_PATHNAME', 'eddy_verify_view_wrapper';
COMMENT ON FUNCTION eddy.verify_view(regclass) IS 'compares an incremental view with its query at one snapshot: rows of the query that the view lacks, rows of the view that the query lacks; blocks writes to the base tables until the end of the transaction';

-- What the worker alone writes is in materialized views: these are never part of a publication, FOR ALL TABLES
-- included, and nobody else can write them. Their queries say what columns they have.
CREATE MATERIALIZED VIEW eddy.progress WITH (fillfactor = 10) AS
SELECT NULL::pg_lsn AS applied_lsn, NULL::timestamptz AS applied_at WHERE false;
COMMENT ON MATERIALIZED VIEW eddy.progress IS 'how far the incremental views of this database have come; written in the transactions that change them';
COMMENT ON COLUMN eddy.progress.applied_lsn IS 'everything committed before this position is in the live views';
COMMENT ON COLUMN eddy.progress.applied_at IS 'when that was written';
GRANT SELECT ON eddy.progress TO PUBLIC;

-- Not for everybody: messages may quote data.
CREATE MATERIALIZED VIEW eddy.view_states AS
SELECT NULL::oid AS relation, NULL::text AS state, NULL::pg_lsn AS applied_lsn, NULL::timestamptz AS since,
    NULL::text AS sqlstate, NULL::text AS message, NULL::text AS detail, NULL::text AS hint
WHERE false;
COMMENT ON MATERIALIZED VIEW eddy.view_states IS 'the incremental views of this database that are not live with the others; written in the transactions that change their state; see eddy.views';
COMMENT ON COLUMN eddy.view_states.relation IS 'the view';
COMMENT ON COLUMN eddy.view_states.state IS 'what it is in, instead of being live';
COMMENT ON COLUMN eddy.view_states.applied_lsn IS 'everything committed before this position is in its rows';
COMMENT ON COLUMN eddy.view_states.since IS 'since when';
COMMENT ON COLUMN eddy.view_states.sqlstate IS 'SQLSTATE of the error';
COMMENT ON COLUMN eddy.view_states.message IS 'message of the error';
COMMENT ON COLUMN eddy.view_states.detail IS 'detail of the error';
COMMENT ON COLUMN eddy.view_states.hint IS 'hint of the error';

CREATE MATERIALIZED VIEW eddy.view_creations AS
SELECT NULL::oid AS relation, NULL::timestamptz AS created_at WHERE false;
COMMENT ON MATERIALIZED VIEW eddy.view_creations IS 'since when the incremental views of this database are incremental; written in the transactions that make them so; see eddy.views';
COMMENT ON COLUMN eddy.view_creations.relation IS 'the view';
COMMENT ON COLUMN eddy.view_creations.created_at IS 'since when it is incremental: when it was created, restored from a dump, or given the label';
GRANT SELECT ON eddy.view_creations TO PUBLIC;

CREATE FUNCTION eddy.list_views() RETURNS TABLE (
    relation regclass, state text, sqlstate text, message text, rows bigint, applied_lsn pg_lsn,
    lag_bytes bigint, lag_ms bigint, transactions bigint, updates bigint, iterations bigint,
    state_bytes bigint, spilled_bytes bigint
)
LANGUAGE c AS 'MODULE_PATHNAME', 'eddy_list_views_wrapper';
COMMENT ON FUNCTION eddy.list_views() IS 'what the worker of this database reports of its views; see eddy.views';

CREATE FUNCTION eddy.show_activity() RETURNS TABLE (
    pid integer, since timestamptz, applied_lsn pg_lsn, steps bigint, transactions bigint, changes bigint,
    decode_ms double precision, attach_ms double precision, engine_ms double precision,
    apply_ms double precision
)
LANGUAGE c ROWS 1 AS 'MODULE_PATHNAME', 'eddy_show_activity_wrapper';
COMMENT ON FUNCTION eddy.show_activity() IS 'what the worker of this database has done since it started; see eddy.activity';

CREATE VIEW eddy.activity AS
SELECT
    pid, since, applied_lsn, steps, transactions, changes, decode_ms, attach_ms, engine_ms, apply_ms
FROM eddy.show_activity();
COMMENT ON VIEW eddy.activity IS 'what the worker of this database has done since it started, and where its time went; no row while it does not run';
COMMENT ON COLUMN eddy.activity.pid IS 'its process ID';
COMMENT ON COLUMN eddy.activity.since IS 'when it started';
COMMENT ON COLUMN eddy.activity.applied_lsn IS 'everything committed before this position is in the live views';
COMMENT ON COLUMN eddy.activity.steps IS 'rounds of work';
COMMENT ON COLUMN eddy.activity.transactions IS 'transactions that changed a base table of a view';
COMMENT ON COLUMN eddy.activity.changes IS 'rows that they inserted, updated and deleted in such tables';
COMMENT ON COLUMN eddy.activity.decode_ms IS 'milliseconds spent reading the WAL';
COMMENT ON COLUMN eddy.activity.attach_ms IS 'milliseconds spent following the catalogs and reading the base tables of new views';
COMMENT ON COLUMN eddy.activity.engine_ms IS 'milliseconds spent waiting for the dataflows';
COMMENT ON COLUMN eddy.activity.apply_ms IS 'milliseconds spent writing the views';
GRANT SELECT ON eddy.activity TO PUBLIC;

-- A function of its own, and not inlined, so that a server that does not preload the library need not have it.
CREATE FUNCTION eddy.ask_worker() RETURNS TABLE (
    relation regclass, state text, sqlstate text, message text, rows bigint, applied_lsn pg_lsn,
    lag_bytes bigint, lag_ms bigint, transactions bigint, updates bigint, iterations bigint,
    state_bytes bigint, spilled_bytes bigint
)
LANGUAGE sql VOLATILE BEGIN ATOMIC
    SELECT c.relation, coalesce(v.state, 'attaching'), v.sqlstate, v.message, v.rows, v.applied_lsn,
        v.lag_bytes, v.lag_ms, v.transactions, v.updates, v.iterations, v.state_bytes, v.spilled_bytes
    FROM eddy.view_catalog c LEFT JOIN eddy.list_views() v ON v.relation OPERATOR(pg_catalog.=) c.relation
    WHERE v.relation IS NOT NULL OR EXISTS (SELECT FROM eddy.show_activity());
END;
COMMENT ON FUNCTION eddy.ask_worker() IS 'what the worker of this database reports of its views, those that it is still to notice, and why they are stopped if it does not run; see eddy.views';

CREATE VIEW eddy.views AS
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
    b.created_at
FROM eddy.view_catalog c
    LEFT JOIN eddy.view_creations b ON b.relation OPERATOR(pg_catalog.=) c.relation
    -- The setting exists where the library was loaded at server start, and only there.
    CROSS JOIN (
        SELECT EXISTS (SELECT FROM pg_catalog.pg_settings WHERE name = 'eddy.max_views') AS preloads
    ) AS server
    LEFT JOIN (
        SELECT * FROM eddy.ask_worker()
        WHERE EXISTS (SELECT FROM pg_catalog.pg_settings WHERE name = 'eddy.max_views')
    ) AS w ON w.relation OPERATOR(pg_catalog.=) c.relation
    LEFT JOIN LATERAL (SELECT w.* WHERE w.state <> 'stopped') AS v ON true
    -- Without a worker, the last words of the former one; on a standby, those of the primary's.
    LEFT JOIN eddy.view_states s ON s.relation OPERATOR(pg_catalog.=) c.relation
    LEFT JOIN (
        SELECT relation, state, sqlstate,
            CASE WHEN pg_catalog.has_table_privilege(relation, 'SELECT') THEN message END AS message
        FROM eddy.view_states
    ) AS e ON server.preloads AND v.state IS NULL AND e.state = 'error' AND e.relation OPERATOR(pg_catalog.=) c.relation
    LEFT JOIN eddy.progress p ON true;
COMMENT ON VIEW eddy.views IS 'the incremental views of this database and how they are';
COMMENT ON COLUMN eddy.views.relation IS 'the view';
COMMENT ON COLUMN eddy.views.state IS 'attaching: not yet joined to the changes of its tables; live: follows them; behind: set aside until it has come to the point of the others; error: cannot be computed, reads raise the error; stopped: no worker maintains it';
COMMENT ON COLUMN eddy.views.sqlstate IS 'SQLSTATE of the error';
COMMENT ON COLUMN eddy.views.message IS 'message of the error, or why the view is not live, for those who may read it; or why it is stopped';
COMMENT ON COLUMN eddy.views.rows IS 'rows stored';
COMMENT ON COLUMN eddy.views.applied_lsn IS 'everything committed before this position is in the view';
COMMENT ON COLUMN eddy.views.lag_bytes IS 'bytes of WAL between that position and the last commit';
COMMENT ON COLUMN eddy.views.lag_ms IS 'milliseconds since the last progress, 0 when there is no lag';
COMMENT ON COLUMN eddy.views.transactions IS 'transactions that changed the view since the worker started';
COMMENT ON COLUMN eddy.views.updates IS 'rows inserted, updated and deleted since the worker started';
COMMENT ON COLUMN eddy.views.iterations IS 'iterations of its recursion in the last round of work';
COMMENT ON COLUMN eddy.views.state_bytes IS 'memory its dataflow holds, and what its state on disk would take in memory';
COMMENT ON COLUMN eddy.views.spilled_bytes IS 'bytes on disk, compressed, of the part of it that is in eddy.spill_directory';
COMMENT ON COLUMN eddy.views.created_at IS 'since when it is incremental: when it was created, restored from a dump, or given the label';
GRANT SELECT ON eddy.views TO PUBLIC;

CREATE FUNCTION eddy.wait_for_lsn(lsn pg_lsn, timeout interval DEFAULT NULL) RETURNS boolean
LANGUAGE c AS 'MODULE_PATHNAME', 'eddy_wait_for_lsn_wrapper';
COMMENT ON FUNCTION eddy.wait_for_lsn(pg_lsn, interval) IS 'waits until the incremental views have everything committed before a WAL position; false if that takes longer than the timeout (by default eddy.read_timeout)';

CREATE FUNCTION eddy.start_worker() RETURNS void
LANGUAGE c AS 'MODULE_PATHNAME', 'eddy_start_worker_wrapper';
COMMENT ON FUNCTION eddy.start_worker() IS 'has the worker of this database started when the transaction commits';
REVOKE EXECUTE ON FUNCTION eddy.start_worker() FROM PUBLIC;

SELECT eddy.start_worker();

-- An extension that is dropped while the library is not loaded leaves labels behind. The views are plain since then.
DELETE FROM pg_catalog.pg_seclabel WHERE provider = 'pg_eddy';

CREATE FUNCTION eddy.host_call(number bigint, VARIADIC arguments "any") RETURNS bigint
LANGUAGE c AS 'MODULE_PATHNAME', 'eddy_host_call_wrapper';
COMMENT ON FUNCTION eddy.host_call(bigint, "any") IS 'stands in canonical SQL for what PostgreSQL evaluates; not to be called';

CREATE FUNCTION eddy.collated(value anyelement, collation_id bigint) RETURNS anyelement
LANGUAGE c AS 'MODULE_PATHNAME', 'eddy_host_call_wrapper';
COMMENT ON FUNCTION eddy.collated(anyelement, bigint) IS 'stands in canonical SQL for an order by a collation; not to be called';

CREATE FUNCTION eddy.slices(arrays anyarray) RETURNS SETOF anyarray
LANGUAGE c AS 'MODULE_PATHNAME', 'eddy_host_call_wrapper';
COMMENT ON FUNCTION eddy.slices(anyarray) IS 'stands in canonical SQL for a function that returns arrays; not to be called';

CREATE FUNCTION eddy.valid_from(bound timestamptz) RETURNS boolean
LANGUAGE c AS 'MODULE_PATHNAME', 'eddy_host_call_wrapper';
COMMENT ON FUNCTION eddy.valid_from(timestamptz) IS 'stands in canonical SQL for a condition on the present time; not to be called';

CREATE FUNCTION eddy.valid_until(bound timestamptz) RETURNS boolean
LANGUAGE c AS 'MODULE_PATHNAME', 'eddy_host_call_wrapper';
COMMENT ON FUNCTION eddy.valid_until(timestamptz) IS 'stands in canonical SQL for a condition on the present time; not to be called';
