-- What no row decides is tested first: what it excludes raises no error.
SET client_min_messages = warning;
CREATE TABLE row_of (a int, b int);
INSERT INTO row_of VALUES (1, 0), (2, 1);
CREATE TABLE switch (x int);
INSERT INTO switch VALUES (1), (2);
CREATE INCREMENTAL VIEW filtered AS SELECT a FROM row_of WHERE (SELECT max(x) FROM switch) > 5 AND 10 / b > 0;
CREATE INCREMENTAL VIEW joined AS SELECT s.x, r.a FROM switch s LEFT JOIN row_of r
    ON (SELECT max(x) FROM switch) > 5 AND r.a = s.x;
CREATE INCREMENTAL VIEW grouped AS
    SELECT a, sum(10 / b) AS n FROM row_of GROUP BY a HAVING (SELECT max(x) FROM switch) > 5;
CREATE INCREMENTAL VIEW selected AS
    SELECT a, (SELECT max(row_of.b) FROM switch) AS b FROM row_of GROUP BY a HAVING (SELECT max(x) FROM switch) > 5;
CREATE INCREMENTAL VIEW never AS SELECT a FROM row_of WHERE 1 / (b - 1) = 1 AND false;
CREATE INCREMENTAL VIEW unreached AS
    SELECT CASE WHEN 1 = 2 THEN (SELECT 1 / b FROM row_of) ELSE x END AS n FROM switch;
SELECT * FROM filtered;
SELECT * FROM joined ORDER BY x;
SELECT * FROM grouped;
SELECT * FROM selected;
SELECT * FROM never;
SELECT * FROM unreached ORDER BY n;
INSERT INTO switch VALUES (6);
SELECT * FROM filtered;
\echo :SQLSTATE
SELECT * FROM joined ORDER BY x;
\echo :SQLSTATE
SELECT * FROM grouped;
\echo :SQLSTATE
SELECT * FROM selected;
\echo :SQLSTATE
SELECT * FROM never;
UPDATE row_of SET b = 5 WHERE a = 1;
DELETE FROM switch WHERE x < 3;
SELECT * FROM filtered ORDER BY a;
SELECT * FROM joined ORDER BY x;
SELECT * FROM grouped ORDER BY a;
SELECT * FROM selected ORDER BY a;
UPDATE row_of SET b = 0;
DELETE FROM switch;
SELECT * FROM filtered;
SELECT * FROM grouped;
DROP TABLE row_of, switch CASCADE;
