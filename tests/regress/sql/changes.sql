-- What changes under a view after it was created: rights, policies, replica identity, definitions.
CREATE ROLE eddy_viewer;
GRANT CREATE ON SCHEMA public TO eddy_viewer;
CREATE TABLE notes (a int, b text, c jsonb);
ALTER TABLE notes REPLICA IDENTITY FULL;
INSERT INTO notes VALUES (1, 'x', '{}');
GRANT SELECT (a, b) ON notes TO eddy_viewer;
SET ROLE eddy_viewer;
CREATE INCREMENTAL VIEW pair AS SELECT a, b FROM notes;
CREATE INCREMENTAL VIEW only_a AS SELECT a FROM notes;
RESET ROLE;
CREATE VIEW between AS SELECT a, b FROM notes;
CREATE INCREMENTAL VIEW through AS SELECT b FROM between;

-- The owner's rights, column by column
REVOKE SELECT (b) ON notes FROM eddy_viewer;
INSERT INTO notes VALUES (2);
SELECT a, b FROM pair;
\echo :SQLSTATE
SELECT a FROM only_a ORDER BY a;
GRANT SELECT (b) ON notes TO eddy_viewer;
SELECT a, b FROM pair ORDER BY a;

-- Row-level security restricts one owner and not the other
ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
SELECT a, b FROM pair;
\echo :SQLSTATE
SELECT b FROM through ORDER BY b;
ALTER TABLE notes DISABLE ROW LEVEL SECURITY;
SELECT count(*) FROM pair;

-- Replica identity
ALTER TABLE notes REPLICA IDENTITY NOTHING;
INSERT INTO notes VALUES (3, 'z');
SELECT a, b FROM pair;
\echo :SQLSTATE
ALTER TABLE notes REPLICA IDENTITY FULL;
SELECT a, b FROM pair ORDER BY a;

-- The plain view in between: not supported, then otherwise defined
CREATE OR REPLACE VIEW between AS SELECT a, (b || session_user) COLLATE "default" AS b FROM notes;
SELECT b FROM through;
\echo :SQLSTATE
CREATE OR REPLACE VIEW between AS SELECT a, b || '!' AS b FROM notes;
SELECT b FROM through ORDER BY b;
SELECT missing, surplus FROM eddy.verify_view('through');

-- Columns and tables by other names, unused columns go, used ones stay as they are
ALTER TABLE notes DROP COLUMN c;
ALTER TABLE notes RENAME COLUMN a TO number;
ALTER TABLE notes RENAME TO remarks;
ALTER TABLE remarks ADD COLUMN d int DEFAULT 5;
INSERT INTO remarks VALUES (4, 'q');
SELECT a, b FROM pair ORDER BY a;
ALTER TABLE remarks ALTER COLUMN number TYPE bigint;
\echo :SQLSTATE
ALTER TABLE remarks DROP COLUMN number;
\echo :SQLSTATE

-- Out of the WAL and back
ALTER TABLE remarks SET UNLOGGED;
SELECT a, b FROM pair;
\echo :SQLSTATE
ALTER TABLE remarks SET LOGGED;
SELECT a, b FROM pair ORDER BY a;
-- Not without a trace
BEGIN;
ALTER TABLE remarks SET UNLOGGED;
INSERT INTO remarks VALUES (6, 'unseen');
ALTER TABLE remarks SET LOGGED;
\echo :SQLSTATE
ROLLBACK;
BEGIN;
SAVEPOINT s;
ALTER TABLE remarks SET UNLOGGED;
ROLLBACK TO s;
ALTER TABLE remarks SET LOGGED;
COMMIT;
CREATE UNLOGGED TABLE loaded (a int);
BEGIN;
ALTER TABLE loaded SET LOGGED;
COMMIT;
DROP TABLE loaded;
SELECT a, b FROM pair ORDER BY a;

-- The view's own heap is rewritten, its names and owner change
VACUUM FULL pair;
INSERT INTO remarks VALUES (5, 'r');
SELECT a, b FROM pair ORDER BY a;
REFRESH INCREMENTAL VIEW pair;
DELETE FROM remarks WHERE number = 5;
ALTER INCREMENTAL VIEW pair RENAME TO pairs;
ALTER INCREMENTAL VIEW pairs RENAME COLUMN a TO n;
ALTER INCREMENTAL VIEW pairs OWNER TO CURRENT_USER;
CREATE INDEX ON pairs (n);
INSERT INTO remarks VALUES (6, 's');
SELECT n, b FROM pairs ORDER BY n;
SELECT missing, surplus FROM eddy.verify_view('pairs');
SELECT relation, state, sqlstate FROM eddy.views ORDER BY relation::text;

DROP TABLE remarks CASCADE;
REVOKE ALL ON SCHEMA public FROM eddy_viewer;
DROP ROLE eddy_viewer;
-- rows that move to another page when they change, in a view with indexes on what changes and what stays
CREATE TABLE crowd (id int PRIMARY KEY, size int NOT NULL);
INSERT INTO crowd SELECT i, i % 10 FROM generate_series(1, 1000) i;
CREATE INCREMENTAL VIEW crowded AS SELECT id, size FROM crowd;
CREATE UNIQUE INDEX ON crowded (id);
CREATE INDEX ON crowded (size);
SELECT count(*) FROM crowded;
UPDATE crowd SET size = 77 WHERE id IN (1, 2, 500);
UPDATE crowd SET size = size + 1 WHERE id = 500;
SET enable_seqscan = off;
SELECT id, size FROM crowded WHERE size > 10 ORDER BY id;
SELECT id, size FROM crowded WHERE id = 500;
RESET enable_seqscan;
SELECT * FROM eddy.verify_view('crowded');
DROP TABLE crowd CASCADE;
