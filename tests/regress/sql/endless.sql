-- A recursion without end must not fill the disk while PostgreSQL fills the view.
CREATE INCREMENTAL VIEW endless AS
    WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r;
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
