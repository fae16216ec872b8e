-- Who may create, read and see incremental views.
SET client_min_messages = warning;
CREATE ROLE eddy_owner;
CREATE ROLE eddy_user;
CREATE SCHEMA shop;
GRANT USAGE, CREATE ON SCHEMA shop TO eddy_owner, eddy_user;
SET ROLE eddy_owner;
CREATE TABLE shop.secret (id int PRIMARY KEY, val int);
CREATE TABLE shop.keyed (a int, b int, PRIMARY KEY (a, b));
INSERT INTO shop.secret VALUES (1, 10);
INSERT INTO shop.keyed VALUES (1, 1);
-- no SELECT right
SET ROLE eddy_user;
CREATE INCREMENTAL VIEW shop.v AS SELECT val FROM shop.secret;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW shop.v AS SELECT val FROM shop.secret WITH NO DATA;
EXPLAIN CREATE INCREMENTAL VIEW shop.v AS SELECT val FROM shop.secret;
SET ROLE eddy_owner;
GRANT SELECT (id) ON shop.secret TO eddy_user;
CREATE VIEW shop.window_on_secret AS SELECT val FROM shop.secret;
SET ROLE eddy_user;
CREATE INCREMENTAL VIEW shop.v AS SELECT id, val FROM shop.secret;
CREATE INCREMENTAL VIEW shop.v AS SELECT val FROM shop.window_on_secret;
CREATE INCREMENTAL VIEW shop.v AS SELECT id FROM shop.secret;
DROP INCREMENTAL VIEW shop.v;
-- SELECT right, but the identity cannot be widened by this user
SET ROLE eddy_owner;
GRANT SELECT ON shop.secret, shop.keyed TO eddy_user;
SET ROLE eddy_user;
CREATE INCREMENTAL VIEW shop.v AS SELECT val FROM shop.secret;
\echo :SQLSTATE
-- the key covers what the view needs
CREATE INCREMENTAL VIEW shop.keys AS SELECT a + b AS c FROM shop.keyed;
CREATE INCREMENTAL VIEW shop.ids AS SELECT id FROM shop.secret;
SET ROLE eddy_owner;
ALTER TABLE shop.secret REPLICA IDENTITY FULL;
SET ROLE eddy_user;
CREATE INCREMENTAL VIEW shop.v AS SELECT val FROM shop.secret;
SET ROLE eddy_owner;
INSERT INTO shop.secret VALUES (2, 20);
INSERT INTO shop.keyed VALUES (2, 2);
SET ROLE eddy_user;
SELECT * FROM shop.v ORDER BY val;
SELECT * FROM shop.keys ORDER BY c;
-- reading somebody else's view needs a right, as for any relation
SET ROLE eddy_owner;
SELECT * FROM shop.v;
\echo :SQLSTATE
SET ROLE eddy_user;
GRANT SELECT ON shop.v TO eddy_owner;
SET ROLE eddy_owner;
SELECT * FROM shop.v ORDER BY val;
CREATE INCREMENTAL VIEW shop.above AS SELECT sum(val) FROM shop.v;
-- the owner of the view loses the right to the table: the view stops, others do not
REVOKE SELECT ON shop.secret FROM eddy_user;
INSERT INTO shop.secret VALUES (3, 30);
SET ROLE eddy_user;
SELECT * FROM shop.v ORDER BY val;
\echo :SQLSTATE
-- and a view above it says whose right is missing
SET ROLE eddy_owner;
SELECT * FROM shop.above;
DROP INCREMENTAL VIEW shop.above;
SET ROLE eddy_user;
SELECT * FROM shop.keys ORDER BY c;
SET ROLE eddy_owner;
GRANT SELECT ON shop.secret TO eddy_user;
SET ROLE eddy_user;
SELECT * FROM shop.v ORDER BY val;
-- the identity is narrowed
SET ROLE eddy_owner;
ALTER TABLE shop.secret REPLICA IDENTITY DEFAULT;
UPDATE shop.secret SET val = 11 WHERE id = 1;
SET ROLE eddy_user;
SELECT * FROM shop.v ORDER BY val;
\echo :SQLSTATE
SELECT * FROM shop.ids ORDER BY id;
SET ROLE eddy_owner;
ALTER TABLE shop.secret REPLICA IDENTITY FULL;
SET ROLE eddy_user;
SELECT * FROM shop.v ORDER BY val;
-- what a function of a view sets or holds ends with its call, whoever calls it; nobody runs it but as the view's owner
SET ROLE eddy_user;
CREATE FUNCTION shop.marked(n int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    PERFORM set_config('search_path', 'shop', false), set_config('eddy_test.mark', n::text, false), pg_advisory_lock_shared(n);
    RETURN current_user;
END $$;
CREATE FUNCTION shop.mark(n int) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$ SELECT current_setting('search_path') || coalesce(current_setting('eddy_test.mark', true), '') $$;
CREATE INCREMENTAL VIEW shop.marks AS SELECT val, shop.marked(val) AS who, shop.mark(val) AS mark FROM shop.secret;
CREATE INCREMENTAL VIEW shop.whos AS SELECT val, shop.marked(val) AS who FROM shop.secret;
SELECT * FROM shop.marks ORDER BY val;
RESET ROLE;
SELECT * FROM eddy.verify_view('shop.whos');
SELECT count(*) AS locks FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid();
SET ROLE eddy_user;
DROP INCREMENTAL VIEW shop.marks, shop.whos;
-- views that are security barriers, and incremental views, show their rows only, whatever is computed of these
SET ROLE eddy_owner;
CREATE TABLE shop.permit (id int PRIMARY KEY, who text NOT NULL);
INSERT INTO shop.permit VALUES (1, 'eddy_user');
CREATE TABLE shop.ban (id int PRIMARY KEY);
INSERT INTO shop.ban VALUES (4);
CREATE VIEW shop.permitted WITH (security_barrier) AS
    SELECT s.id, s.val FROM shop.secret s JOIN shop.permit p ON p.id = s.id AND p.who = 'eddy_user';
CREATE INCREMENTAL VIEW shop.known AS SELECT s.id, s.val FROM shop.secret s WHERE EXISTS (SELECT FROM shop.permit p WHERE p.id = s.id);
CREATE VIEW shop.all_permitted WITH (security_barrier) AS SELECT id, val FROM shop.permitted JOIN shop.permit USING (id) LIMIT ALL;
CREATE VIEW shop.not_banned WITH (security_barrier) AS
    SELECT id, val FROM shop.secret s WHERE NOT EXISTS (SELECT FROM shop.ban b WHERE b.id = s.id);
CREATE INCREMENTAL VIEW shop.never_banned AS
    SELECT s.id, s.val FROM shop.secret s LEFT JOIN shop.ban b ON b.id = s.id WHERE b.id IS NULL;
GRANT SELECT ON shop.permitted, shop.known, shop.all_permitted, shop.not_banned, shop.never_banned TO eddy_user;
ALTER TABLE shop.permit REPLICA IDENTITY FULL;
SET ROLE eddy_user;
CREATE FUNCTION shop.tell(n int) RETURNS bool LANGUAGE plpgsql IMMUTABLE COST 0.0001 AS
    $$ BEGIN IF n <> 11 THEN RAISE EXCEPTION 'there is a %', n; END IF; RETURN true; END $$;
CREATE INCREMENTAL VIEW shop.told AS SELECT id FROM shop.permitted WHERE shop.tell(val) AND val > 0;
CREATE INCREMENTAL VIEW shop.told_again AS SELECT id, v FROM shop.known, LATERAL (SELECT val AS v OFFSET 0) AS x WHERE shop.tell(v);
CREATE INCREMENTAL VIEW shop.divided AS
    SELECT k.id, 100 / (p.val - 20) AS q FROM shop.known k JOIN shop.permitted p ON p.id = k.id AND 100 / (k.val - 20) < 5;
CREATE TABLE shop.mine (k int PRIMARY KEY);
INSERT INTO shop.mine VALUES (1), (2);
CREATE INCREMENTAL VIEW shop.told_each AS
    SELECT k, EXISTS (SELECT FROM shop.known AS i WHERE i.id = m.k AND shop.tell(i.val)) AS known, l.id
    FROM shop.mine m, LATERAL (SELECT p.id FROM shop.all_permitted p WHERE p.id <= m.k AND shop.tell(p.val)) l;
-- a function that tells what it is called with
CREATE TABLE shop.heard (view text, n int);
CREATE FUNCTION shop.write(v text, n int) RETURNS void LANGUAGE sql AS $$ INSERT INTO shop.heard VALUES (v, n) $$;
CREATE FUNCTION shop.note(v text, n int) RETURNS bool LANGUAGE plpgsql IMMUTABLE COST 0.0001 AS
    $$ BEGIN PERFORM shop.write(v, n); RETURN true; END $$;
CREATE INCREMENTAL VIEW shop.noted AS SELECT id FROM shop.not_banned WHERE shop.note('not_banned', val);
CREATE INCREMENTAL VIEW shop.noted_too AS SELECT id, shop.note('never_banned', val) FROM shop.never_banned;
CREATE INCREMENTAL VIEW shop.noted_each AS SELECT p.id FROM shop.permitted p, shop.never_banned n WHERE n.id = p.id AND shop.note('permitted', p.val + n.id);
CREATE INCREMENTAL VIEW shop.noted_twice AS
    SELECT shop.note('twice', val) AS x FROM (WITH c AS (SELECT val FROM shop.not_banned) SELECT val FROM c UNION ALL SELECT val FROM c) q;
CREATE DOMAIN shop.noted_value AS int CHECK (shop.note('domain', VALUE));
CREATE INCREMENTAL VIEW shop.noted_domains AS SELECT x.d FROM shop.not_banned, jsonb_to_record(jsonb_build_object('d', val)) AS x(d shop.noted_value);
SELECT eddy.explain_view('shop.told');
SELECT eddy.explain_view('shop.noted');
SELECT eddy.explain_view('shop.divided');
SET ROLE eddy_owner;
INSERT INTO shop.secret VALUES (4, 20), (5, 50);
INSERT INTO shop.permit VALUES (5, 'nobody');
DELETE FROM shop.permit WHERE id = 5;
BEGIN;
INSERT INTO shop.secret VALUES (6, 60), (7, 70);
INSERT INTO shop.ban VALUES (6);
INSERT INTO shop.secret VALUES (8, 80), (9, 90);
UPDATE shop.secret SET val = 81 WHERE id = 8;
DELETE FROM shop.secret WHERE id = 9;
COMMIT;
SET ROLE eddy_user;
SELECT * FROM shop.told_each;
SELECT * FROM shop.noted ORDER BY id;
SELECT * FROM shop.noted_too ORDER BY id;
SELECT * FROM shop.noted_each ORDER BY id;
SELECT count(*) FROM shop.noted_twice;
SELECT * FROM shop.noted_domains ORDER BY d;
SELECT DISTINCT view, n FROM shop.heard ORDER BY view, n;
SELECT * FROM shop.told;
SELECT * FROM shop.told_again;
SELECT * FROM shop.divided;
-- what they show is told
SET ROLE eddy_owner;
INSERT INTO shop.permit VALUES (2, 'eddy_user');
SET ROLE eddy_user;
SELECT * FROM shop.told;
SELECT * FROM shop.divided;
SET ROLE eddy_owner;
DELETE FROM shop.permit WHERE id = 2;
RESET ROLE;
SELECT v.*, x.* FROM (VALUES ('shop.told'), ('shop.told_again'), ('shop.told_each'), ('shop.divided'), ('shop.noted')) AS v(name), eddy.verify_view(v.name::regclass) AS x;
-- messages of errors may quote data
SET ROLE eddy_user;
SELECT message FROM eddy.view_states;
\echo :SQLSTATE
RESET ROLE;
-- drop, rename, refresh, comment: the owner only
SET ROLE eddy_owner;
DROP INCREMENTAL VIEW shop.v;
REFRESH INCREMENTAL VIEW shop.v;
ALTER INCREMENTAL VIEW shop.v RENAME TO w;
COMMENT ON INCREMENTAL VIEW shop.v IS 'mine';
\echo :SQLSTATE
RESET ROLE;
DROP SCHEMA shop CASCADE;
DROP ROLE eddy_owner, eddy_user;
