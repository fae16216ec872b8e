-- eddy.check(): what is found of views and tables; what is of the server is in the server layer.
SET client_min_messages = warning;
CREATE TABLE road (a int, b int, PRIMARY KEY (a, b));
CREATE TABLE named (a int NOT NULL, b int NOT NULL, c text);
CREATE UNIQUE INDEX named_key ON named (a, b);
CREATE UNIQUE INDEX named_partial ON named (a) WHERE b > 0;
CREATE TABLE nullable (a int UNIQUE);
CREATE TABLE included (a int NOT NULL, b int NOT NULL, UNIQUE (a) INCLUDE (b));
INSERT INTO road VALUES (1, 2);
INSERT INTO named VALUES (1, 2, 'x');
ALTER TABLE road REPLICA IDENTITY FULL;
CREATE INCREMENTAL VIEW exits AS SELECT a, count(*) AS n FROM road GROUP BY a;
CREATE INCREMENTAL VIEW keys AS SELECT b FROM named;
CREATE INCREMENTAL VIEW open AS SELECT a FROM nullable;
CREATE INCREMENTAL VIEW sums AS SELECT a, sum(b) AS b FROM included GROUP BY a;
SELECT count(*) FROM exits, keys;
CREATE VIEW found AS SELECT level, subject, message, remedy FROM eddy.check() WHERE subject IN ('road', 'named', 'nullable', 'included', 'exits', 'keys', 'broken');
SELECT level, subject, message, remedy FROM found;
-- a column more, and the index does no longer; the remedy is one
CREATE INCREMENTAL VIEW texts AS SELECT c FROM named;
ALTER TABLE road REPLICA IDENTITY USING INDEX road_pkey;
SELECT count(*) FROM exits;
SELECT * FROM found;
-- views in error
CREATE INCREMENTAL VIEW broken AS SELECT 10 / (a - 5) AS q FROM road;
SELECT * FROM broken;
INSERT INTO road VALUES (5, 5);
SELECT * FROM broken;
SELECT * FROM found;
DELETE FROM road;
SELECT * FROM broken;
SELECT * FROM found;
-- views that nobody reads; one that another view reads is used
CREATE INCREMENTAL VIEW inner_one AS SELECT a FROM road;
CREATE INCREMENTAL VIEW outer_one AS SELECT count(*) AS n FROM inner_one;
SELECT eddy.wait_for_lsn(pg_current_wal_lsn());
DO $$ BEGIN
    WHILE (SELECT count(*) FROM eddy.views WHERE state <> 'live' AND relation::text IN ('inner_one', 'outer_one')) > 0 LOOP
        PERFORM pg_sleep(0.02);
    END LOOP;
END $$;
SELECT level, subject, message ~ '^nobody has read it since' AS unread, remedy FROM eddy.check(unused_after => '0 seconds')
WHERE subject IN ('inner_one', 'outer_one');
DO $$ BEGIN
    FOR i IN 1..10 LOOP
        PERFORM n FROM outer_one;
    END LOOP;
END $$;
SELECT FROM pg_stat_force_next_flush();
SELECT level, subject FROM eddy.check(unused_after => '0 seconds') WHERE subject IN ('inner_one', 'outer_one');
-- who may not read a view is told that there is something
CREATE ROLE onlooker;
INSERT INTO road VALUES (5, 1);
SELECT * FROM broken;
SET ROLE onlooker;
SELECT level, subject, message, remedy FROM eddy.check() WHERE subject = 'broken';
SELECT count(*) > 10 AS many FROM eddy.metrics;
RESET ROLE;
DROP ROLE onlooker;
DROP VIEW found;
DROP TABLE road, named, nullable, included CASCADE;
