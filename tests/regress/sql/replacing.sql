-- CREATE OR REPLACE INCREMENTAL VIEW: what stays, what may change, what is refused.
SET client_min_messages = warning;
CREATE SCHEMA replacing;
SET search_path = replacing, public;
CREATE TABLE part (id int PRIMARY KEY, parent int, weight int, name text);
INSERT INTO part SELECT g, g / 2, g % 10, 'part ' || g FROM generate_series(1, 1000) g;
-- a view that is not there is created
CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT id, weight FROM part WHERE weight > 5;
SELECT count(*) FROM v;
-- another query: grants, comments, indexes and what depends on it stay
GRANT SELECT ON v TO public;
COMMENT ON INCREMENTAL VIEW v IS 'heavy parts';
CREATE UNIQUE INDEX v_id ON v (id);
CREATE VIEW total AS SELECT count(*) FROM v;
CREATE INCREMENTAL VIEW stacked AS SELECT max(weight) AS heaviest FROM v;
SELECT 'v'::regclass::oid AS before \gset
CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT id, weight FROM part WHERE weight > 7;
SELECT count(*) FROM v;
TABLE total;
TABLE stacked;
SELECT 'v'::regclass::oid = :before AS same, obj_description('v'::regclass), relacl IS NOT NULL AS granted
FROM pg_class WHERE oid = 'v'::regclass;
SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 'v'::regclass;
INSERT INTO part VALUES (2000, 1, 9, 'new'), (2001, 1, 1, 'light');
SELECT count(*) FROM v;
-- columns are added at the end; one of them needs a TOAST table, which the view had none of
CREATE OR REPLACE INCREMENTAL VIEW v AS
    SELECT id, weight, weight * 2 AS twice, name COLLATE "C" AS name FROM part WHERE weight > 7;
SELECT * FROM v ORDER BY id LIMIT 3;
SELECT attname, atttypid::regtype, attcollation::regcollation FROM pg_attribute
WHERE attrelid = 'v'::regclass AND attnum > 0 ORDER BY attnum;
UPDATE part SET name = string_agg FROM (SELECT string_agg(md5(g::text), '') FROM generate_series(1, 1000) g) s WHERE id = 8;
SELECT length(name) FROM v WHERE id = 8;
TABLE stacked;
-- names of columns behind that of the view
CREATE OR REPLACE INCREMENTAL VIEW v (id, weight, twice, name) AS SELECT parent, id, 1, 'x' COLLATE "C" FROM part WHERE id < 4;
-- an index refuses the rows: until it is gone, or the query is another one again
SELECT * FROM v ORDER BY weight;
\echo :SQLSTATE
CREATE OR REPLACE INCREMENTAL VIEW v (id, weight, twice, name) AS SELECT id, parent, 1, 'x' COLLATE "C" FROM part WHERE id < 4;
SELECT * FROM v ORDER BY weight;
-- what is refused
CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT id FROM part;
\echo :SQLSTATE
CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT id, weight AS heavy, 1 AS twice, name COLLATE "C" FROM part;
CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT id, weight::bigint, 1 AS twice, name COLLATE "C" FROM part;
CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT id, weight, 1 AS twice, name FROM part;
CREATE OR REPLACE INCREMENTAL VIEW v (a, b, c, d, e) AS SELECT id, weight, 1, name COLLATE "C" FROM part;
CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT id, weight, 1 AS twice, name COLLATE "C", 1 AS ctid FROM part;
\echo :SQLSTATE
CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT id, weight, 1 AS twice, name COLLATE "C", 1 AS weight FROM part;
CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT * FROM v;
\echo :SQLSTATE
CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT heaviest AS id, 1 AS weight, 1 AS twice, 'a' COLLATE "C" AS name FROM stacked;
CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT nothing FROM part;
CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT id, weight, random()::int AS twice, name COLLATE "C" FROM part;
CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT $1 FROM part;
CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT id FROM part WITH CHECK OPTION;
CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT id INTO other FROM part;
CREATE OR REPLACE INCREMENTAL VIEW total AS SELECT 1::bigint AS count;
\echo :SQLSTATE
CREATE OR REPLACE INCREMENTAL VIEW part AS SELECT 1 AS id;
CREATE OR REPLACE INCREMENTAL VIEW pg_temp.v AS SELECT 1 AS id;
CREATE OR REPLACE INCREMENTAL VIEW nowhere.v AS SELECT 1 AS id;
CREATE OR REPLACE UNLOGGED VIEW total AS SELECT 1::bigint AS count;
CREATE OR REPLACE UNLOGGED VIEW v WITH (incremental) AS SELECT 1 AS id;
CREATE OR REPLACE TEMP VIEW v WITH (incremental) AS SELECT 1 AS id;
CREATE OR REPLACE INCREMENTAL VIEW v WITH (incremental = false) AS SELECT 1 AS id;
BEGIN READ ONLY;
CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT id, weight, 1 AS twice, name COLLATE "C" FROM part;
ROLLBACK;
BEGIN;
DECLARE reads CURSOR FOR TABLE v;
CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT id, weight, 1 AS twice, name COLLATE "C" FROM part;
ROLLBACK;
SELECT * FROM v ORDER BY weight;
-- in a transaction the view is computed; what is rolled back has not been
BEGIN;
CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT id, weight, 1 AS twice, name COLLATE "C", parent FROM part WHERE id = 7;
SELECT * FROM v;
ROLLBACK;
SELECT * FROM v ORDER BY weight;
BEGIN;
SAVEPOINT s;
CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT id, weight, 2 AS twice, name COLLATE "C" FROM part WHERE id = 5;
ROLLBACK TO s;
CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT id, weight, 3 AS twice, name COLLATE "C" FROM part WHERE id = 6;
COMMIT;
TABLE v;
-- in code
DO $$ BEGIN
    CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT id, weight, 4 AS twice, name COLLATE "C" FROM part WHERE id = 7;
    EXECUTE 'CREATE OR REPLACE INCREMENTAL VIEW v AS SELECT id, weight, 5 AS twice, name COLLATE "C" FROM part WHERE id = 7';
END $$;
TABLE v;
-- options: those that are not named stay
CREATE OR REPLACE INCREMENTAL VIEW o WITH (timezone = 'Asia/Tokyo', fallback = 'query', changes = '1 day', fillfactor = 70) AS
    SELECT id, weight FROM part WHERE id < 3;
-- waits, as reads of it do not
REFRESH MATERIALIZED VIEW o;
CREATE OR REPLACE INCREMENTAL VIEW o WITH (fallback = 'error', fillfactor = 80) AS
    SELECT id, weight, name, name AS "Same Name" FROM part WHERE id < 4;
SELECT reloptions FROM pg_class WHERE oid = 'o'::regclass;
SELECT label::text LIKE '%"TimeZone":"Asia/Tokyo"%' AS zone, label::text LIKE '%"fallback":"error"%' AS fallback
FROM pg_seclabel WHERE objoid = 'o'::regclass;
ALTER INCREMENTAL VIEW o RESET (fallback);
SELECT count(*) FROM o;
SELECT dense_rank() OVER (ORDER BY lsn) AS group, diff, id, weight, name, "Same Name" FROM o_changes ORDER BY lsn, diff, id;
CREATE OR REPLACE INCREMENTAL VIEW o AS SELECT id, weight, name, name AS "Same Name", 1 AS lsn FROM part;
ALTER TABLE o_changes ADD COLUMN note text;
CREATE OR REPLACE INCREMENTAL VIEW o AS SELECT id, weight, name, name AS "Same Name", 1 AS more FROM part;
ALTER TABLE o_changes DROP COLUMN note;
CREATE OR REPLACE INCREMENTAL VIEW o AS SELECT id, weight, name, name AS "Same Name", 1 AS more FROM part;
CREATE OR REPLACE INCREMENTAL VIEW o AS SELECT id, weight, name, 'b' AS "Same Name" FROM part WHERE id = 3;
SELECT count(*) FROM o;
SELECT diff, id, "Same Name" FROM o_changes ORDER BY lsn DESC, diff, id LIMIT 2;
-- a view in error is no more what it was
CREATE INCREMENTAL VIEW e AS SELECT 1 / (weight - 1) AS x FROM part;
SELECT count(*) FROM e;
CREATE OR REPLACE INCREMENTAL VIEW e AS SELECT 1 / (weight - 20) AS x FROM part;
SELECT count(*) FROM e;
-- statements that take stale rows do not find NULL in a column that there was not; statistics are of what it holds
CREATE OR REPLACE INCREMENTAL VIEW e AS SELECT 1 / (weight - 20) AS x, id AS y FROM part;
ANALYZE e;
SELECT null_frac FROM pg_stats WHERE tablename = 'e' AND attname = 'y';
CREATE OR REPLACE INCREMENTAL VIEW e AS SELECT 1 / (weight - 20) AS x, id AS y, weight AS z FROM part;
SET eddy.freshness = stale;
SELECT count(*) FILTER (WHERE e IS NULL OR z IS NULL) FROM e;
RESET eddy.freshness;
-- without the word
CREATE OR REPLACE VIEW w WITH (incremental) AS SELECT id FROM part WHERE weight = 1;
CREATE OR REPLACE VIEW w WITH (incremental = true) AS SELECT id FROM part WHERE weight IN (1, 2);
SELECT count(*) FROM w;
CREATE OR REPLACE VIEW w WITH (incremental = false) AS SELECT id FROM part;
-- recursive, and rewritten as such
CREATE OR REPLACE INCREMENTAL VIEW r AS SELECT 0 AS id;
CREATE OR REPLACE INCREMENTAL VIEW r AS
    WITH RECURSIVE below AS (SELECT 4 AS id UNION SELECT part.id FROM part JOIN below ON part.parent = below.id)
    SELECT id FROM below;
SELECT count(*), max(id) FROM r;
DELETE FROM part WHERE id = 8;
SELECT count(*), max(id) FROM r;
-- only the owner may; rights are those of the owner
CREATE ROLE eddy_replacer;
CREATE ROLE eddy_stranger;
GRANT USAGE, CREATE ON SCHEMA replacing TO eddy_replacer, eddy_stranger;
ALTER INCREMENTAL VIEW w OWNER TO eddy_replacer;
SET ROLE eddy_stranger;
CREATE OR REPLACE INCREMENTAL VIEW w AS SELECT 1 AS id;
\echo :SQLSTATE
SET ROLE eddy_replacer;
CREATE OR REPLACE INCREMENTAL VIEW w AS SELECT id FROM part;
\echo :SQLSTATE
CREATE OR REPLACE INCREMENTAL VIEW w AS SELECT 17 AS id;
RESET ROLE;
TABLE w;
CREATE OR REPLACE INCREMENTAL VIEW w AS SELECT id FROM part;
-- columns of domains: nothing of the owner's is run for them, and they may refuse NULL, which no row has in the end
GRANT CREATE ON SCHEMA replacing TO eddy_replacer;
SET ROLE eddy_replacer;
CREATE FUNCTION seen(int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF current_user <> 'eddy_replacer' THEN RAISE WARNING 'run as %', current_user; END IF;
    RETURN $1 IS NOT NULL;
END $$;
CREATE DOMAIN small AS int CHECK (replacing.seen(VALUE));
CREATE DOMAIN smaller AS small NOT NULL DEFAULT 7;
CREATE DOMAIN code AS varchar(5) COLLATE "C" NOT NULL;
CREATE TABLE own (id int PRIMARY KEY, a smaller, c code);
INSERT INTO own SELECT g, g, 'c' || g FROM generate_series(1, 3) g;
CREATE INCREMENTAL VIEW d WITH (changes = '1 day') AS SELECT id FROM own;
SELECT count(*) FROM d;
CREATE TABLE rows_of_it (r d);
RESET ROLE;
CREATE OR REPLACE INCREMENTAL VIEW d AS SELECT id, a, c FROM own;
TABLE d ORDER BY id;
SET ROLE eddy_replacer;
INSERT INTO own VALUES (4, 4, 'c4');
RESET ROLE;
TABLE d ORDER BY id;
SELECT attrelid::regclass, attname, format_type(atttypid, atttypmod), attcollation::regcollation FROM pg_attribute
WHERE attrelid IN ('d'::regclass, 'd_changes'::regclass) AND attname IN ('a', 'c') ORDER BY 1, 2;
SELECT diff, id, a, c FROM d_changes ORDER BY lsn, diff, id;
DROP DOMAIN smaller;
\echo :SQLSTATE
-- event triggers
CREATE FUNCTION noted() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE WARNING '% of %', tg_tag, (SELECT string_agg(object_identity, ', ') FROM pg_event_trigger_ddl_commands());
END $$;
CREATE EVENT TRIGGER eddy_noted ON ddl_command_end EXECUTE FUNCTION noted();
CREATE OR REPLACE INCREMENTAL VIEW r AS SELECT 1 AS id;
DROP EVENT TRIGGER eddy_noted;
CREATE FUNCTION refused() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no %', tg_tag; END $$;
CREATE EVENT TRIGGER eddy_refused ON ddl_command_start EXECUTE FUNCTION refused();
CREATE OR REPLACE INCREMENTAL VIEW r AS SELECT 2 AS id;
DROP EVENT TRIGGER eddy_refused;
TABLE r;
-- what PostgreSQL refuses because views read a table
CREATE TABLE "Odd table" (id int PRIMARY KEY, "a b" int, c text COLLATE "C");
INSERT INTO "Odd table" VALUES (1, 10, 'x'), (2, 20, 'y');
CREATE INCREMENTAL VIEW "Odd view" WITH (changes = '1 day') AS SELECT "a b" AS "A", c, count(*) AS n FROM "Odd table" GROUP BY 1, 2;
CREATE INCREMENTAL VIEW over_it AS SELECT sum(n) AS n FROM "Odd view";
CREATE INCREMENTAL VIEW other AS SELECT DISTINCT "a b" * 2::bigint AS twice FROM "Odd table";
ALTER TABLE "Odd table" ALTER "a b" TYPE smallint;
SELECT eddy.with_views_suspended('"Odd table"', 'ALTER TABLE "Odd table" ALTER c TYPE text COLLATE "C" USING c || c');
SELECT eddy.with_views_suspended('"Odd table"', 'ALTER TABLE "Odd table" ALTER "a b" TYPE smallint');
\echo :SQLSTATE
\set VERBOSITY sqlstate
SELECT eddy.with_views_suspended('"Odd table"', 'ALTER TABLE "Odd table" DROP "a b"');
\set VERBOSITY default
SELECT eddy.with_views_suspended('"Odd table"', 'ALTER TABLE "Odd table" ADD d int; UPDATE "Odd table" SET d = 5');
SELECT eddy.with_views_suspended('"Odd table"', 'nonsense');
SELECT * FROM "Odd view" ORDER BY 1;
TABLE over_it;
SELECT * FROM other ORDER BY 1;
INSERT INTO "Odd table" VALUES (3, 30, 'z');
SELECT * FROM "Odd view" ORDER BY 1;
SELECT sum(diff) FROM "Odd view_changes";
GRANT ALL ON "Odd table" TO eddy_stranger;
SET ROLE eddy_stranger;
SELECT eddy.with_views_suspended('"Odd table"', 'SELECT 1');
\echo :SQLSTATE
RESET ROLE;
-- the words are words
CREATE FUNCTION incremental(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE OR REPLACE FUNCTION incremental(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 1';
SELECT incremental(1) AS incremental, 1 AS unlogged, 2 AS materialized, 3 AS "replace";
CREATE OR /* or */ REPLACE -- and
    Incremental VIEW r AS SELECT 3 AS id;
TABLE r;
DROP SCHEMA replacing CASCADE;
DROP ROLE eddy_replacer, eddy_stranger;
