-- Objects of the extension pg_eddy. Written by hand; every object has a comment.

\echo Use "CREATE EXTENSION pg_eddy" to load this file. \quit

GRANT USAGE ON SCHEMA eddy TO PUBLIC;
COMMENT ON SCHEMA eddy IS 'incremental views: catalog and functions of the extension pg_eddy';

-- The rows are dumped and restored by pg_dump: a restored materialized view is incremental again.
CREATE TABLE eddy.view_catalog (
    relation regclass PRIMARY KEY,
    definition text NOT NULL
);
COMMENT ON TABLE eddy.view_catalog IS 'the incremental views of this database; maintained by CREATE and DROP INCREMENTAL VIEW';
COMMENT ON COLUMN eddy.view_catalog.relation IS 'the view';
COMMENT ON COLUMN eddy.view_catalog.definition IS 'its query when it was created, with plain views expanded; for people';
GRANT SELECT ON eddy.view_catalog TO PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('eddy.view_catalog', '');

CREATE FUNCTION eddy.announce_catalog_change() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'eddy_announce_catalog_change_wrapper';
COMMENT ON FUNCTION eddy.announce_catalog_change() IS 'makes sessions and workers read eddy.view_catalog again; trigger function';
REVOKE EXECUTE ON FUNCTION eddy.announce_catalog_change() FROM PUBLIC;

CREATE TRIGGER announce_change AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON eddy.view_catalog
FOR EACH STATEMENT EXECUTE FUNCTION eddy.announce_catalog_change();
COMMENT ON TRIGGER announce_change ON eddy.view_catalog IS 'rows that a restore copies in must be noticed';

CREATE FUNCTION eddy.explain_view(view regclass) RETURNS text
LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'eddy_explain_view_wrapper';
COMMENT ON FUNCTION eddy.explain_view(regclass) IS 'the plan by which an incremental view is maintained';

CREATE FUNCTION eddy.verify_view(view regclass) RETURNS TABLE (missing bigint, surplus bigint)
LANGUAGE c STRICT ROWS 1 AS 'MODULE_PATHNAME', 'eddy_verify_view_wrapper';
COMMENT ON FUNCTION eddy.verify_view(regclass) IS 'compares an incremental view with its query at one snapshot: rows of the query that the view lacks, rows of the view that the query lacks; blocks writes to the base tables until the end of the transaction';
