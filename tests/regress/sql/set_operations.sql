-- INTERSECT and EXCEPT: how often a row is on either side decides.
SET client_min_messages = warning;
CREATE TABLE a (x int, n numeric, t text);
CREATE TABLE b (x int, n numeric, t text);
INSERT INTO a VALUES (1, 1.0, 'one'), (1, 1.0, 'one'), (1, 1.0, 'one'), (2, 2, NULL), (NULL, NULL, NULL), (NULL, NULL, NULL), (3, 3, 'c');
INSERT INTO b VALUES (1, 1.0, 'one'), (1, 1.0, 'one'), (2, 2, NULL), (NULL, NULL, NULL), (4, 4, 'd'), (4, 4, 'd');

CREATE INCREMENTAL VIEW both_sides AS SELECT x, t FROM a INTERSECT SELECT x, t FROM b;
CREATE INCREMENTAL VIEW both_all AS SELECT x, t FROM a INTERSECT ALL SELECT x, t FROM b;
CREATE INCREMENTAL VIEW only_left AS SELECT x, t FROM a EXCEPT SELECT x, t FROM b;
CREATE INCREMENTAL VIEW only_left_all AS SELECT x, t FROM a EXCEPT ALL SELECT x, t FROM b;
CREATE INCREMENTAL VIEW mixed_types AS SELECT x FROM a EXCEPT SELECT n FROM b;
CREATE INCREMENTAL VIEW equal_numbers AS SELECT n::text FROM (SELECT n FROM a INTERSECT ALL SELECT n * 1.00 FROM b) q WHERE n IS NULL;
CREATE INCREMENTAL VIEW chained AS
    SELECT x FROM a UNION ALL SELECT x FROM b INTERSECT SELECT 4 EXCEPT ALL (VALUES (1), (1), (NULL));
CREATE INCREMENTAL VIEW counted AS
    SELECT x, count(*) AS n FROM (SELECT x FROM a EXCEPT ALL SELECT x FROM b) d GROUP BY x;
CREATE INCREMENTAL VIEW limited AS
    WITH RECURSIVE allowed AS (SELECT x FROM a EXCEPT SELECT 3), r(x) AS (
        SELECT 1 UNION (SELECT r.x + 1 FROM r JOIN allowed ON allowed.x = r.x + 1))
    SELECT x FROM r;
CREATE INCREMENTAL VIEW stepped AS
    WITH RECURSIVE r(x) AS (
        SELECT 1 UNION (SELECT r.x + 1 FROM r WHERE r.x < 9 EXCEPT (SELECT x + 3 FROM b INTERSECT SELECT x + 3 FROM a)))
    SELECT x FROM r;

SELECT * FROM both_sides ORDER BY x;
SELECT * FROM both_all ORDER BY x;
SELECT * FROM only_left ORDER BY x;
SELECT * FROM only_left_all ORDER BY x;
SELECT * FROM mixed_types ORDER BY x;
SELECT * FROM equal_numbers;
SELECT * FROM chained ORDER BY x;
SELECT * FROM counted ORDER BY x;
SELECT * FROM limited ORDER BY x;
SELECT * FROM stepped ORDER BY x;

INSERT INTO b VALUES (3, 3, 'c'), (1, 1, 'one');
DELETE FROM b WHERE x IS NULL;
UPDATE a SET x = 2, t = NULL WHERE ctid = (SELECT min(ctid) FROM a WHERE x = 1);
INSERT INTO a SELECT * FROM a;
SELECT * FROM both_sides ORDER BY x;
SELECT * FROM both_all ORDER BY x;
SELECT * FROM only_left ORDER BY x;
SELECT * FROM only_left_all ORDER BY x;
SELECT * FROM mixed_types ORDER BY x;
SELECT * FROM chained ORDER BY x;
SELECT * FROM counted ORDER BY x;
SELECT v.relation, d.missing, d.surplus FROM eddy.views v, eddy.verify_view(v.relation) d
WHERE (d.missing, d.surplus) <> (0, 0);

TRUNCATE b;
SELECT * FROM both_all ORDER BY x;
SELECT * FROM only_left_all ORDER BY x;
SELECT v.relation, d.missing, d.surplus FROM eddy.views v, eddy.verify_view(v.relation) d
WHERE (d.missing, d.surplus) <> (0, 0);

EXPLAIN CREATE INCREMENTAL VIEW v AS SELECT x FROM a EXCEPT ALL SELECT x FROM b;
CREATE INCREMENTAL VIEW bad AS SELECT x FROM a EXCEPT SELECT x, t FROM b;
\echo :SQLSTATE

-- of equal values that are written differently DISTINCT keeps one, also where what is above has them all distinct
CREATE TABLE forms (n numeric);
INSERT INTO forms VALUES (1.0), (1.00), (2), (2.0);
CREATE INCREMENTAL VIEW one_form AS SELECT DISTINCT scale(n) >= 0 AS known, n::numeric(9,3)::text AS n FROM (SELECT DISTINCT n FROM forms) q;
CREATE INCREMENTAL VIEW number_of_forms AS SELECT count(*) FROM (SELECT n::text FROM (SELECT n FROM forms UNION SELECT n FROM forms) q UNION SELECT 'none') r;
SELECT * FROM one_form ORDER BY n;
SELECT * FROM number_of_forms;
INSERT INTO forms VALUES (2.00), (3.0);
SELECT * FROM number_of_forms;
DROP TABLE forms CASCADE;

DROP TABLE a, b CASCADE;
