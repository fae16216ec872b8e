-- Whose code runs as whom: nothing that a stranger wrote runs as somebody for whom the stranger could not act.
SET client_min_messages = warning;
CREATE ROLE eddy_victim;
CREATE ROLE eddy_mallory;
CREATE SCHEMA shop;
CREATE SCHEMA evil AUTHORIZATION eddy_mallory;
GRANT USAGE, CREATE ON SCHEMA shop TO eddy_victim, eddy_mallory;
GRANT USAGE ON SCHEMA evil TO PUBLIC;
SET ROLE eddy_mallory;
CREATE TABLE evil.log (who text, what text);
GRANT INSERT ON evil.log TO PUBLIC;
CREATE FUNCTION evil.write(what text) RETURNS void LANGUAGE sql AS $$ INSERT INTO evil.log VALUES (current_user, what) $$;
CREATE FUNCTION evil.note(what text) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS
    $$ BEGIN PERFORM evil.write(what); RETURN true; END $$;
SET ROLE eddy_victim;
CREATE TABLE shop.t (id int PRIMARY KEY, n int);
INSERT INTO shop.t VALUES (1, 10), (2, 20);
ALTER TABLE shop.t REPLICA IDENTITY FULL;
GRANT SELECT, UPDATE ON shop.t TO eddy_mallory;
RESET ROLE;

-- Comparing: for who may act as the owner, whatever the search path has and hides.
CREATE TABLE public.t (i int);
INSERT INTO public.t VALUES (1);
CREATE INCREMENTAL VIEW public.v AS SELECT i FROM public.t;
GRANT SELECT ON public.v, public.t TO eddy_mallory;
GRANT UPDATE ON public.t TO eddy_mallory;
CREATE SCHEMA hidden AUTHORIZATION eddy_mallory;
SET ROLE eddy_mallory;
CREATE FUNCTION hidden.f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM evil.note('view'); RETURN 1; END $$;
CREATE VIEW hidden.t AS SELECT hidden.f() AS i;
REVOKE USAGE ON SCHEMA hidden FROM eddy_mallory;
SET search_path = hidden, public;
SELECT * FROM eddy.verify_view('public.v');
\echo :SQLSTATE
-- the owner's session may have any search path and temporary objects of the same names
RESET ROLE;
CREATE VIEW pg_temp.t AS SELECT hidden.f() AS i;
SET search_path = pg_temp, hidden, public;
SELECT * FROM eddy.verify_view('public.v');
RESET search_path;
DROP VIEW pg_temp.t;
SELECT * FROM evil.log;
DROP TABLE public.t CASCADE;
DROP SCHEMA hidden CASCADE;

-- Whatever the session's search path, functions of a view see that of the worker when it is created and refreshed.
SET ROLE eddy_victim;
CREATE FUNCTION shop.path(n int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
    $$ BEGIN RETURN current_user || ': ' || current_setting('search_path'); END $$;
SET search_path = shop, evil;
CREATE INCREMENTAL VIEW pathed AS SELECT id, shop.path(n) AS p FROM t;
SET eddy.freshness = stale;
SELECT * FROM shop.pathed ORDER BY id;
RESET eddy.freshness;
REFRESH INCREMENTAL VIEW pathed;
RESET ROLE;
REFRESH INCREMENTAL VIEW pathed;
RESET search_path;
INSERT INTO shop.t VALUES (3, 30);
SELECT * FROM shop.pathed ORDER BY id;
SELECT * FROM eddy.verify_view('shop.pathed');
DELETE FROM shop.t WHERE id = 3;
DROP MATERIALIZED VIEW shop.pathed;
SET ROLE eddy_victim;

-- Names are looked up once, when the view is made: an overload that fits better does not take the place of a function.
CREATE FUNCTION shop.later(a anyelement, b anyelement) RETURNS anyelement LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN a > b THEN a ELSE b END $$;
CREATE AGGREGATE shop.latest(anyelement) (SFUNC = shop.later, STYPE = anyelement);
CREATE FUNCTION shop.each(a anyarray) RETURNS SETOF anyelement LANGUAGE sql IMMUTABLE AS $$ SELECT * FROM unnest(a) $$;
CREATE FUNCTION shop.both(a anyarray) RETURNS TABLE (x anyelement, y int) LANGUAGE sql IMMUTABLE AS $$ SELECT u, 1 FROM unnest(a) u $$;
CREATE FUNCTION shop.plain(a anyelement) RETURNS anyelement LANGUAGE sql IMMUTABLE AS $$ SELECT a $$;
CREATE INCREMENTAL VIEW shop.aggregated AS SELECT shop.latest(n) AS l, count(*) AS c FROM shop.t;
CREATE INCREMENTAL VIEW shop.framed AS SELECT id, shop.latest(n) OVER (ORDER BY id) AS l FROM shop.t;
CREATE INCREMENTAL VIEW shop.listed AS SELECT id, shop.each(ARRAY[n, id]) AS e FROM shop.t;
CREATE INCREMENTAL VIEW shop.tabled AS SELECT id, b.x, b.y FROM shop.t, shop.both(ARRAY[n, id]) b;
CREATE INCREMENTAL VIEW shop.called AS SELECT id, shop.plain(n) AS p FROM shop.t;
SET ROLE eddy_mallory;
CREATE FUNCTION shop.later(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM evil.note('aggregate'); RETURN -1; END $$;
CREATE AGGREGATE shop.latest(int) (SFUNC = shop.later, STYPE = int);
CREATE FUNCTION shop.each(a int[]) RETURNS SETOF int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM evil.note('set'); RETURN NEXT -1; END $$;
CREATE FUNCTION shop.both(a int[]) RETURNS TABLE (x int, y int) LANGUAGE plpgsql IMMUTABLE AS
    $$ BEGIN PERFORM evil.note('table'); x := -1; y := -1; RETURN NEXT; END $$;
CREATE FUNCTION shop.plain(a int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM evil.note('function'); RETURN -1; END $$;
SET ROLE eddy_victim;
INSERT INTO shop.t VALUES (3, 30);
SELECT * FROM shop.aggregated;
SELECT * FROM shop.framed ORDER BY id;
SELECT * FROM shop.listed ORDER BY id, e;
SELECT * FROM shop.tabled ORDER BY id, x;
SELECT * FROM shop.called ORDER BY id;
SELECT v.*, x.* FROM (VALUES ('shop.aggregated'), ('shop.framed'), ('shop.listed'), ('shop.tabled'), ('shop.called')) AS v(name), eddy.verify_view(v.name::regclass) AS x;
REFRESH INCREMENTAL VIEW shop.aggregated;
SELECT * FROM shop.aggregated;
RESET ROLE;
SELECT DISTINCT who, what FROM evil.log ORDER BY 1, 2;
DROP MATERIALIZED VIEW shop.aggregated, shop.framed, shop.listed, shop.tabled, shop.called;
DROP FUNCTION shop.each(int[]), shop.both(int[]), shop.plain(int);
DROP AGGREGATE shop.latest(int);
DROP FUNCTION shop.later(int, int);

-- Comparison functions run as the owner of the view that compares.
SET ROLE eddy_mallory;
CREATE TYPE evil.amount AS (n int);
CREATE FUNCTION evil.cmp(a evil.amount, b evil.amount) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
    $$ BEGIN PERFORM evil.note('compare'); RETURN sign((a).n - (b).n)::int; END $$;
CREATE FUNCTION evil.lt(a evil.amount, b evil.amount) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS
    $$ BEGIN PERFORM evil.note('compare'); RETURN (a).n < (b).n; END $$;
CREATE FUNCTION evil.eq(a evil.amount, b evil.amount) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS
    $$ BEGIN PERFORM evil.note('compare'); RETURN (a).n = (b).n; END $$;
CREATE FUNCTION evil.same_bytes(o oid) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM evil.note('equal image'); RETURN false; END $$;
CREATE OPERATOR evil.< (LEFTARG = evil.amount, RIGHTARG = evil.amount, FUNCTION = evil.lt);
CREATE OPERATOR evil.= (LEFTARG = evil.amount, RIGHTARG = evil.amount, FUNCTION = evil.eq);
RESET ROLE;
CREATE OPERATOR CLASS evil.amount_ops DEFAULT FOR TYPE evil.amount USING btree AS
    OPERATOR 1 evil.<, OPERATOR 3 evil.=, FUNCTION 1 evil.cmp(evil.amount, evil.amount), FUNCTION 4 evil.same_bytes(oid);
SET ROLE eddy_mallory;
CREATE TABLE evil.amounts (id int PRIMARY KEY, a evil.amount);
INSERT INTO evil.amounts VALUES (1, ROW(1)), (2, ROW(2)), (3, ROW(1));
ALTER TABLE evil.amounts REPLICA IDENTITY FULL;
GRANT SELECT ON evil.amounts TO PUBLIC;
SET ROLE eddy_victim;
CREATE INCREMENTAL VIEW shop.amounts AS SELECT DISTINCT a FROM evil.amounts;
SET ROLE eddy_mallory;
INSERT INTO evil.amounts VALUES (4, ROW(4));
DELETE FROM evil.amounts WHERE id IN (1, 3);
SET ROLE eddy_victim;
SELECT count(*) FROM shop.amounts;
-- neither planning nor showing a plan runs anything
RESET ROLE;
TRUNCATE evil.log;
SELECT eddy.explain_view('shop.amounts') <> '' AS is_explained;
SET ROLE eddy_mallory;
CREATE TABLE evil.parent (id int) PARTITION BY LIST (id);
CREATE TABLE evil.child PARTITION OF evil.parent DEFAULT;
RESET ROLE;
SELECT DISTINCT who, what FROM evil.log ORDER BY 1, 2;
TRUNCATE evil.log;
SET ROLE eddy_mallory;
INSERT INTO evil.amounts VALUES (5, ROW(5));
SET ROLE eddy_victim;
SELECT count(*) FROM shop.amounts;
RESET ROLE;
SELECT DISTINCT who, what FROM evil.log ORDER BY 1, 2;
-- nor does anybody who reads a view of somebody else run its comparisons
DROP MATERIALIZED VIEW shop.amounts;
TRUNCATE evil.log;
SET ROLE eddy_mallory;
CREATE INCREMENTAL VIEW evil.compared AS SELECT a, count(*) AS c FROM evil.amounts GROUP BY a;
GRANT SELECT ON evil.compared TO PUBLIC;
SET ROLE eddy_victim;
CREATE INCREMENTAL VIEW shop.read AS SELECT c FROM evil.compared;
SET ROLE eddy_mallory;
INSERT INTO evil.amounts VALUES (6, ROW(6)), (7, ROW(5));
SET ROLE eddy_victim;
SELECT c, count(*) FROM shop.read GROUP BY c ORDER BY c;
RESET ROLE;
SELECT DISTINCT who, what FROM evil.log ORDER BY 1, 2;
DROP MATERIALIZED VIEW evil.compared CASCADE;
TRUNCATE evil.log;

-- What a view that is read computes runs as its own owner, though the view that reads it computes the same.
SET ROLE eddy_victim;
CREATE FUNCTION shop.who(n int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN current_user; END $$;
CREATE INCREMENTAL VIEW shop.inner AS SELECT id, shop.who(n) AS who FROM shop.t;
GRANT SELECT ON shop.inner TO eddy_mallory;
SET ROLE eddy_mallory;
CREATE INCREMENTAL VIEW shop.outer AS SELECT i.id, i.who, shop.who(t.n) AS mine FROM shop.inner i JOIN shop.t USING (id);
SET ROLE eddy_victim;
INSERT INTO shop.t VALUES (4, 40);
RESET ROLE;
SELECT * FROM shop.inner ORDER BY id;
SELECT * FROM shop.outer ORDER BY id;
DROP MATERIALIZED VIEW shop.inner CASCADE;

-- What functions write while a view is computed or filled, or one of its indexes is maintained, is a change like any other.
SET ROLE eddy_victim;
CREATE TABLE shop.written (what text, n int);
ALTER TABLE shop.written REPLICA IDENTITY FULL;
CREATE FUNCTION shop.write(what text, n int) RETURNS void LANGUAGE sql AS $$ INSERT INTO shop.written VALUES (what, n) $$;
CREATE FUNCTION shop.tell(what text, n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
    $$ BEGIN PERFORM shop.write(what, n); RETURN n; END $$;
CREATE INCREMENTAL VIEW shop.all_written AS SELECT DISTINCT what, n FROM shop.written;
SET eddy.fill = 'query';
CREATE INCREMENTAL VIEW shop.filled AS SELECT id, shop.tell('fill', n) AS n FROM shop.t WHERE id = 1;
RESET eddy.fill;
SELECT * FROM shop.all_written ORDER BY what, n;
CREATE INCREMENTAL VIEW shop.computed AS SELECT id, shop.tell('compute', n) AS n FROM shop.t WHERE id > 100;
CREATE INCREMENTAL VIEW shop.indexed AS SELECT id, n FROM shop.t WHERE id > 100;
CREATE INDEX ON shop.indexed (shop.tell('index', n));
INSERT INTO shop.t VALUES (101, 1), (102, 2);
SELECT * FROM shop.computed ORDER BY id;
SELECT * FROM shop.indexed ORDER BY id;
INSERT INTO shop.written VALUES ('user', 0);
SELECT * FROM shop.all_written ORDER BY what, n;
RESET ROLE;
DROP MATERIALIZED VIEW shop.all_written, shop.filled, shop.computed, shop.indexed;

-- The worker runs functions for all: what the one leaves behind does not decide what names mean in those of the other.
SET ROLE eddy_victim;
CREATE FUNCTION shop.label(n int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ DECLARE x text; BEGIN x := n; RETURN x; END $$;
SET ROLE eddy_mallory;
CREATE DOMAIN evil.text AS pg_catalog.text CHECK (evil.note('domain'));
CREATE FUNCTION evil.first(n int) RETURNS pg_catalog.text LANGUAGE plpgsql IMMUTABLE SET search_path = evil, pg_catalog AS
    $$ BEGIN RETURN shop.label(n); END $$;
CREATE FUNCTION evil.make() RETURNS void LANGUAGE plpgsql AS
    $$ BEGIN EXECUTE 'CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (evil.note(''temporary''))'; END $$;
CREATE FUNCTION evil.second(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM evil.make(); RETURN n; END $$;
CREATE INCREMENTAL VIEW shop.first AS SELECT id, evil.first(n) AS l FROM shop.t WHERE id > 1000;
CREATE INCREMENTAL VIEW shop.second AS SELECT id, evil.second(n) AS l FROM shop.t WHERE id > 1000;
SET ROLE eddy_victim;
INSERT INTO shop.t VALUES (1001, 1);
RESET ROLE;
SELECT * FROM shop.first;
SELECT * FROM shop.second;
SET ROLE eddy_victim;
CREATE INCREMENTAL VIEW shop.labels AS SELECT id, shop.label(n) AS l FROM shop.t;
INSERT INTO shop.t VALUES (1002, 2);
SELECT * FROM shop.labels WHERE id > 1000 ORDER BY id;
RESET ROLE;
SELECT DISTINCT who, what FROM evil.log ORDER BY 1, 2;
DROP MATERIALIZED VIEW shop.first, shop.second, shop.labels;

-- The extension's own queries name what they mean, whatever the session's search path has in the way.
SET ROLE eddy_mallory;
CREATE FUNCTION evil.decoy(pg_catalog.oid, pg_catalog.oid) RETURNS bool LANGUAGE sql AS $$ SELECT evil.note('decoy') $$;
CREATE FUNCTION evil.decoy(name, pg_catalog.text) RETURNS bool LANGUAGE sql AS $$ SELECT evil.note('decoy') $$;
CREATE FUNCTION evil.decoy(pg_catalog.text, pg_catalog.text) RETURNS bool LANGUAGE sql AS $$ SELECT evil.note('decoy') $$;
CREATE FUNCTION evil.decoy(int, int) RETURNS bool LANGUAGE sql AS $$ SELECT evil.note('decoy') $$;
CREATE OPERATOR evil.= (LEFTARG = pg_catalog.oid, RIGHTARG = pg_catalog.oid, FUNCTION = evil.decoy);
CREATE OPERATOR evil.= (LEFTARG = name, RIGHTARG = pg_catalog.text, FUNCTION = evil.decoy);
CREATE OPERATOR evil.= (LEFTARG = pg_catalog.text, RIGHTARG = pg_catalog.text, FUNCTION = evil.decoy);
CREATE OPERATOR evil.= (LEFTARG = int, RIGHTARG = int, FUNCTION = evil.decoy);
CREATE FUNCTION evil.decoy(pg_catalog.regclass, pg_catalog.regclass) RETURNS bool LANGUAGE sql AS $$ SELECT evil.note('decoy') $$;
CREATE OPERATOR evil.= (LEFTARG = pg_catalog.regclass, RIGHTARG = pg_catalog.regclass, FUNCTION = evil.decoy);
CREATE FUNCTION evil.unnest(int[]) RETURNS SETOF int LANGUAGE sql AS $$ SELECT 1 WHERE evil.note('decoy') $$;
CREATE FUNCTION evil.count() RETURNS int LANGUAGE sql AS $$ SELECT 1 WHERE evil.note('decoy') $$;
CREATE VIEW evil.pg_locks AS SELECT evil.note('decoy');
CREATE VIEW evil.pg_proc AS SELECT evil.note('decoy');
RESET ROLE;
TRUNCATE evil.log;
CREATE FUNCTION shop.slow(n int) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT n FROM pg_sleep(0.4) $$;
SET search_path = evil, pg_catalog;
CREATE INCREMENTAL VIEW shop.slow AS SELECT id, shop.slow(n) AS n FROM shop.t WHERE id > 2000;
CREATE INCREMENTAL VIEW shop.ordered AS SELECT max(id::pg_catalog.text COLLATE "C") AS m, shop.latest(n) AS l FROM shop.t;
INSERT INTO shop.t VALUES (2001, 1);
SELECT id FROM shop.slow;
SELECT * FROM eddy.verify_view('shop.ordered');
SELECT eddy.explain_view('shop.ordered') IS NULL AS is_null;
REFRESH INCREMENTAL VIEW shop.ordered;
SELECT l FROM shop.ordered;
CREATE TABLE shop.parent (id int) PARTITION BY LIST (id);
CREATE TABLE shop.child PARTITION OF shop.parent DEFAULT;
SELECT relation, state FROM eddy.views ORDER BY 1;
RESET search_path;
SELECT * FROM evil.log;
DROP MATERIALIZED VIEW shop.slow, shop.ordered;

-- Reading a view runs nothing of it, whoever reads.
SET ROLE eddy_mallory;
CREATE INCREMENTAL VIEW evil.trap AS SELECT id, evil.note('trap') AS n FROM shop.t;
RESET ROLE;
SELECT count(*) > 0 AS has_rows FROM evil.trap WHERE n;
SELECT DISTINCT who FROM evil.log;
DROP MATERIALIZED VIEW evil.trap;

-- Commands on databases: who may not run them does not stop anybody's worker, nor does one that PostgreSQL will refuse.
CREATE INCREMENTAL VIEW shop.watched AS SELECT id FROM shop.t;
SELECT pid AS worker FROM eddy.activity \gset
SET ROLE eddy_mallory;
CREATE DATABASE eddy_copy TEMPLATE eddy_regress;
DROP DATABASE eddy_regress;
ALTER DATABASE eddy_regress RENAME TO eddy_other;
RESET ROLE;
ALTER ROLE eddy_mallory CREATEDB;
SET ROLE eddy_mallory;
CREATE DATABASE eddy_copy TEMPLATE eddy_regress;
RESET ROLE;
BEGIN;
CREATE DATABASE eddy_copy TEMPLATE eddy_regress;
ROLLBACK;
DO $$ BEGIN EXECUTE 'CREATE DATABASE eddy_copy TEMPLATE eddy_regress'; EXCEPTION WHEN OTHERS THEN RAISE WARNING '%', SQLERRM; END $$;
SELECT pid = :worker AS goes_on FROM eddy.activity;
ALTER DATABASE eddy_regress RENAME TO eddy_other;
DROP DATABASE eddy_regress;
SELECT pid = :worker AS goes_on FROM eddy.activity;
DROP MATERIALIZED VIEW shop.watched;
-- what a subtransaction that fails has kept away comes back at once, not at the end of the transaction
CREATE DATABASE eddy_other;
\c eddy_other
CREATE EXTENSION pg_eddy;
CREATE TABLE t (i int);
CREATE INCREMENTAL VIEW v AS SELECT i FROM t;
SELECT * FROM v;
\c eddy_regress
CREATE FUNCTION shop.worker() RETURNS int LANGUAGE plpgsql AS $$
DECLARE deadline timestamptz := clock_timestamp() + interval '20 seconds'; found int;
BEGIN
    LOOP
        PERFORM pg_stat_clear_snapshot();
        SELECT pid INTO found FROM pg_stat_activity WHERE datname = 'eddy_other' AND backend_type LIKE 'pg_eddy%';
        EXIT WHEN found IS NOT NULL OR clock_timestamp() > deadline;
        PERFORM pg_sleep(0.01);
    END LOOP;
    RETURN found;
END $$;
SELECT shop.worker() AS other \gset
BEGIN;
DO $$ BEGIN EXECUTE 'ALTER DATABASE eddy_other RENAME TO postgres'; EXCEPTION WHEN duplicate_database THEN RAISE WARNING '%', SQLERRM; END $$;
SELECT shop.worker() <> :other AS is_back;
COMMIT;

-- The schema of the extension is its own.
CREATE DATABASE eddy_premade TEMPLATE template0;
GRANT CREATE ON DATABASE eddy_premade TO eddy_mallory;
\c eddy_premade
SET ROLE eddy_mallory;
CREATE SCHEMA eddy;
CREATE FUNCTION eddy.is_same(regclass, regclass) RETURNS bool LANGUAGE sql AS $$ SELECT true $$;
CREATE OPERATOR eddy.= (LEFTARG = regclass, RIGHTARG = regclass, FUNCTION = eddy.is_same);
RESET ROLE;
-- without the place in the script, which some versions show
\set SHOW_CONTEXT never
CREATE EXTENSION pg_eddy;
\set SHOW_CONTEXT errors
DROP SCHEMA eddy CASCADE;
CREATE EXTENSION pg_eddy;
DROP EXTENSION pg_eddy;
CREATE EXTENSION pg_eddy;
SELECT d.deptype FROM pg_depend d WHERE d.classid = 'pg_namespace'::regclass AND d.objid = 'eddy'::regnamespace AND d.refclassid = 'pg_extension'::regclass;
\c eddy_regress
-- the error of a view quotes data: it is for those who may read the view, and not for who reads it through something else
SET client_min_messages = warning;
CREATE TABLE pay (k int, who text, s text);
CREATE INCREMENTAL VIEW pays AS SELECT k, who, s::int AS n FROM pay;
CREATE VIEW own_pay WITH (security_barrier) AS SELECT k, n FROM pays WHERE who = current_user;
GRANT SELECT ON own_pay TO eddy_mallory;
GRANT SELECT (k) ON pays TO eddy_mallory;
SET ROLE eddy_mallory;
CREATE INCREMENTAL VIEW evil.keys AS SELECT k FROM pays;
RESET ROLE;
INSERT INTO pay VALUES (1, 'eddy_mallory', '12'), (2, 'eddy_victim', 'secret');
SELECT * FROM own_pay;
SET ROLE eddy_mallory;
SELECT * FROM own_pay;
\echo :SQLSTATE
SELECT k FROM pays;
SELECT * FROM evil.keys;
\echo :SQLSTATE
SELECT sqlstate, message, hint FROM eddy.views WHERE relation = 'evil.keys'::regclass;
RESET ROLE;
DELETE FROM pay WHERE k = 2;
SET ROLE eddy_mallory;
SELECT * FROM own_pay;
SELECT * FROM evil.keys;
RESET ROLE;
CREATE UNIQUE INDEX ON pays (who);
INSERT INTO pay VALUES (3, 'eddy_mallory', '7');
SET ROLE eddy_mallory;
SELECT * FROM evil.keys;
\echo :SQLSTATE
RESET ROLE;
DROP TABLE pay CASCADE;
SET client_min_messages = error;
DROP DATABASE eddy_premade;
DROP DATABASE eddy_other;
DROP SCHEMA evil CASCADE;
DROP SCHEMA shop CASCADE;
DROP ROLE eddy_victim, eddy_mallory;
