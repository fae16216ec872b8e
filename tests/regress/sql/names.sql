-- Names of objects as text: as they are called now, with their schemas.
SET client_min_messages = warning;
CREATE TABLE vehicle (id int PRIMARY KEY, maker text);
CREATE TABLE car (doors int) INHERITS (vehicle);
CREATE TABLE known (id int PRIMARY KEY, c regclass, t regtype, p regproc, s regprocedure, o regoperator, n regnamespace, r regrole, l regcollation, d regdictionary, g regconfig);
CREATE SCHEMA side;
CREATE TABLE side.object (a int);
CREATE TYPE side.tone AS ENUM ('low');
CREATE FUNCTION side.turn(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE OPERATOR side.<~> (LEFTARG = int, RIGHTARG = int, FUNCTION = int4mi);
CREATE COLLATION side.plain (LOCALE = 'C');
CREATE TEXT SEARCH DICTIONARY side.words (TEMPLATE = simple);
CREATE TEXT SEARCH CONFIGURATION side.search (COPY = simple);
CREATE ROLE eddy_named;
INSERT INTO vehicle VALUES (1, 'Fiat');
INSERT INTO car VALUES (2, 'Audi', 5);
INSERT INTO known VALUES (1, 'side.object', 'side.tone', 'side.turn', 'side.turn(int)', 'side.<~>(int, int)', 'side', 'eddy_named', 'side.plain', 'side.words', 'side.search'),
    (2, 'pg_class', 'int[]', 'now', 'abs(int)', '+(int, int)', 'pg_catalog', 'pg_monitor', '"C"', 'simple', 'english'), (3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
INSERT INTO known VALUES (4);
CREATE VIEW kinds_q AS SELECT tableoid::regclass::text AS kind, count(*), min('a ' || tableoid::regclass) AS words FROM vehicle GROUP BY 1;
CREATE VIEW texts_q AS SELECT id, c::text, t::text, p::text, s::text, o::text, n::text, r::text, l::text, d::text, g::text FROM known;
CREATE VIEW parts_q AS SELECT id, 'no. ' || c AS c, concat(t, ' ', n) AS tn, to_jsonb(k) AS k, ARRAY[c]::text AS list, ROW(p, r)::text AS pair, format('%s', s) AS s FROM known k;
CREATE VIEW aggregated_q AS SELECT json_agg(c ORDER BY id)::text AS c, string_agg(t::text, ', ' ORDER BY id) AS t FROM known;
CREATE VIEW said_q AS SELECT id, collation for (maker) AS c, collation for (maker COLLATE side.plain) AS p FROM vehicle;
CREATE TABLE kind (name text);
INSERT INTO kind VALUES ('kinds'), ('texts'), ('parts'), ('aggregated'), ('said');
SELECT format('CREATE INCREMENTAL VIEW %I AS SELECT * FROM %I', name || '_v', name || '_q') FROM kind \gexec
CREATE VIEW differences AS SELECT name, missing, surplus FROM kind, eddy.verify_view((name || '_v')::regclass) WHERE missing + surplus > 0;
TABLE kinds_v ORDER BY 1;
\x
TABLE texts_v ORDER BY id;
\x
TABLE differences;
-- changes of the tables
INSERT INTO vehicle VALUES (3, 'Ford');
UPDATE known SET c = 'vehicle', t = 'vehicle' WHERE id = 4;
DELETE FROM car;
TABLE differences;
INSERT INTO car VALUES (2, 'Audi', 5);
-- changes of the names, one after the other
ALTER TABLE car RENAME TO auto;
TABLE kinds_v ORDER BY 1;
ALTER TABLE auto SET SCHEMA side;
TABLE kinds_v ORDER BY 1;
ALTER TABLE side.object RENAME TO thing;
SELECT c FROM texts_v WHERE id = 1;
ALTER TYPE side.tone RENAME TO sound;
SELECT t FROM texts_v WHERE id = 1;
ALTER FUNCTION side.turn RENAME TO return;
SELECT p, s FROM texts_v WHERE id = 1;
CREATE FUNCTION side.return(text) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
ALTER COLLATION side.plain RENAME TO simple;
SELECT l FROM texts_v WHERE id = 1;
SELECT p FROM said_v WHERE id = 1;
ALTER TEXT SEARCH DICTIONARY side.words RENAME TO vocabulary;
ALTER TEXT SEARCH CONFIGURATION side.search RENAME TO quest;
SELECT d, g FROM texts_v WHERE id = 1;
TABLE differences;
ALTER SCHEMA side RENAME TO aside;
\x
SELECT * FROM texts_v WHERE id = 1;
TABLE kinds_v ORDER BY 1;
\x
TABLE differences;
-- what is gone is its number
DROP TABLE aside.thing;
DROP OPERATOR aside.<~> (int, int);
SELECT k.c::oid::text = v.c AS c, k.o::oid::text = v.o AS o FROM texts_v v JOIN known k USING (id) WHERE id = 1;
TABLE differences;
-- what comes has a name
CREATE TABLE soon (a int);
INSERT INTO known (id, c) SELECT 5, 'soon';
SELECT c FROM texts_v WHERE id = 5;
DROP TABLE soon;
SELECT c ~ '^\d+$' AS is_number FROM texts_v WHERE id = 5;
TABLE differences;
-- other tables come and go beside views that write the names of their own ones
CREATE TABLE other (a int);
ALTER TABLE other RENAME TO another;
DROP TABLE another;
INSERT INTO vehicle VALUES (4, 'Opel');
TABLE kinds_v ORDER BY 1;
-- a name that is read is refused: which object it is depends on who looks
CREATE INCREMENTAL VIEW bad AS SELECT id, maker::regclass AS c FROM vehicle;
\echo :SQLSTATE

-- The owner
CREATE ROLE eddy_first;
CREATE ROLE eddy_second;
GRANT CREATE ON SCHEMA public TO eddy_first, eddy_second;
CREATE TABLE own (who text, n int);
INSERT INTO own VALUES ('eddy_first', 1), ('eddy_second', 2), ('eddy_third', 3);
ALTER TABLE own REPLICA IDENTITY FULL;
GRANT SELECT ON own TO PUBLIC;
SET ROLE eddy_first;
CREATE INCREMENTAL VIEW mine AS SELECT n, current_user AS c, user AS u, current_role || '!' AS r FROM own WHERE who = current_user;
TABLE mine;
RESET ROLE;
TABLE mine;
SELECT missing, surplus FROM eddy.verify_view('mine');
INSERT INTO own VALUES ('eddy_first', 4), (current_user, 5);
TABLE mine ORDER BY n;
ALTER MATERIALIZED VIEW mine OWNER TO eddy_second;
TABLE mine ORDER BY n;
SELECT missing, surplus FROM eddy.verify_view('mine');
ALTER ROLE eddy_second RENAME TO eddy_third;
TABLE mine ORDER BY n;
SELECT missing, surplus FROM eddy.verify_view('mine');
BEGIN;
INSERT INTO own VALUES ('eddy_third', 6);
TABLE mine ORDER BY n;
ROLLBACK;
CREATE INCREMENTAL VIEW bad AS SELECT n FROM own WHERE who = session_user;
\echo :SQLSTATE
ALTER ROLE eddy_named RENAME TO eddy_renamed;
SELECT r FROM texts_v WHERE id = 1;
TABLE differences;
-- however many changes of roles there are, the next read sees each
CREATE ROLE eddy_turn0;
INSERT INTO known (id, r) VALUES (6, 'eddy_turn0');
CREATE INCREMENTAL VIEW whose AS SELECT n, current_user AS c FROM own;
ALTER MATERIALIZED VIEW whose OWNER TO eddy_turn0;
CREATE TABLE stale (shown text, role text);
SELECT format('ALTER ROLE eddy_turn%s RENAME TO eddy_turn%s', i - 1, i),
    format('INSERT INTO stale SELECT r, %L FROM texts_v WHERE id = 6 AND r <> %1$L', 'eddy_turn' || i),
    format('INSERT INTO stale SELECT DISTINCT c, %L FROM whose WHERE c <> %1$L', 'eddy_turn' || i)
FROM generate_series(1, 25) AS i \gexec
TABLE stale;
SELECT DISTINCT c FROM whose;
CREATE ROLE eddy_passing;
INSERT INTO known (id, r) VALUES (7, 'eddy_passing');
SELECT r FROM texts_v WHERE id = 7;
DROP ROLE eddy_passing;
SELECT r ~ '^\d+$' AS is_number FROM texts_v WHERE id = 7;
TABLE differences;

DROP MATERIALIZED VIEW mine, whose;
DROP TABLE stale;
DROP TABLE own, known, vehicle CASCADE;
DROP TABLE kind CASCADE;
DROP SCHEMA aside CASCADE;
REVOKE CREATE ON SCHEMA public FROM eddy_first, eddy_third;
DROP ROLE eddy_first, eddy_third, eddy_renamed, eddy_turn25;
