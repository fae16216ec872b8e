-- A recursion without end must not fill the disk while PostgreSQL fills the view.
SET eddy.fill = 'query';
CREATE INCREMENTAL VIEW endless AS
    WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r;
RESET eddy.fill;
CREATE TABLE steps (d int);
INSERT INTO steps VALUES (0);
CREATE INCREMENTAL VIEW walk AS
    WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + d FROM r, steps) SELECT n FROM r;
SELECT * FROM walk;
UPDATE steps SET d = 1;
SELECT * FROM walk;
REFRESH INCREMENTAL VIEW walk;
UPDATE steps SET d = 0;
REFRESH INCREMENTAL VIEW walk;
SELECT * FROM walk;
-- Other statements are not limited.
CREATE TABLE plain AS
    WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 20000)
    SELECT count(*) FROM r;
SELECT * FROM plain;
DROP TABLE steps, plain CASCADE;
-- Statements that a trigger runs in between do not lift the limits.
CREATE FUNCTION run_statements() RETURNS event_trigger LANGUAGE plpgsql AS
    $$BEGIN CREATE TEMP TABLE short_lived AS SELECT 1; DROP TABLE short_lived; END$$;
CREATE EVENT TRIGGER run_statements ON ddl_command_start
    WHEN TAG IN ('CREATE MATERIALIZED VIEW') EXECUTE FUNCTION run_statements();
SET eddy.fill = 'query';
CREATE INCREMENTAL VIEW endless AS
    WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 20000) SELECT n FROM r;
RESET eddy.fill;
DROP EVENT TRIGGER run_statements;
DROP FUNCTION run_statements;
-- Nor where its dataflow does.
CREATE INCREMENTAL VIEW endless AS
    WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r;
SELECT * FROM endless;
DROP INCREMENTAL VIEW endless;
