-- tableoid, and ONLY of tables that have children.
SET client_min_messages = warning;
CREATE TABLE city (id int PRIMARY KEY, name text, people int);
CREATE TABLE capital (country text) INHERITS (city);
CREATE TABLE measure (day date NOT NULL, place int, value numeric) PARTITION BY RANGE (day);
CREATE TABLE measure_old PARTITION OF measure FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE measure_new PARTITION OF measure FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE plain (id int PRIMARY KEY, city int);
CREATE FUNCTION differences() RETURNS TABLE (view text, missing bigint, surplus bigint) LANGUAGE sql AS $$
    SELECT relation::text, d.missing, d.surplus FROM eddy.views, eddy.verify_view(relation) d
    WHERE (d.missing, d.surplus) <> (0, 0) $$;
INSERT INTO city VALUES (1, 'lund', 90), (2, 'york', 200), (3, NULL, NULL);
INSERT INTO capital VALUES (4, 'oslo', 700, 'no'), (5, 'rome', 2800, 'it'), (1, 'lund', 90, 'xx');
INSERT INTO measure VALUES ('2024-05-05', 1, 1.5), ('2025-05-05', 1, 2), ('2025-06-05', 2, 3);
INSERT INTO plain VALUES (1, 1), (2, 4), (3, 9), (4, NULL);

CREATE INCREMENTAL VIEW own AS SELECT id, name FROM ONLY city;
CREATE INCREMENTAL VIEW pairs AS SELECT a.id, b.name FROM ONLY city a JOIN city b ON b.people >= a.people;
CREATE INCREMENTAL VIEW own_of_parted AS SELECT count(*), max(value) FROM ONLY measure;
CREATE INCREMENTAL VIEW own_of_plain AS SELECT count(*) FROM ONLY plain;
CREATE INCREMENTAL VIEW not_own AS SELECT c.id, c.name FROM city c EXCEPT ALL SELECT id, name FROM ONLY city AS c(id, name);
CREATE INCREMENTAL VIEW of_plain AS SELECT tableoid = 'plain'::regclass AS is_it, tableoid::regclass AS name, id FROM plain;
CREATE INCREMENTAL VIEW of_children AS SELECT c.tableoid::regclass AS name, c.id, c.people FROM city c;
CREATE INCREMENTAL VIEW per_partition AS SELECT tableoid::regclass AS name, count(*), sum(value) FROM measure GROUP BY tableoid;
CREATE INCREMENTAL VIEW one_partition AS SELECT day, value FROM measure WHERE tableoid = 'measure_new'::regclass;
CREATE INCREMENTAL VIEW perhaps AS SELECT p.id, c.tableoid::regclass AS name FROM plain p LEFT JOIN city c ON c.id = p.city;
CREATE INCREMENTAL VIEW whole AS SELECT p.id, c.tableoid::regclass AS name, to_json(c)::text AS c FROM plain p LEFT JOIN city c ON c.id = p.city;
CREATE INCREMENTAL VIEW whole_own AS SELECT p.id, c.tableoid::regclass AS name, c::text AS c FROM plain p LEFT JOIN ONLY city c ON c.id = p.city;
CREATE INCREMENTAL VIEW correlated AS SELECT p.id, (SELECT count(*) FROM city c WHERE c.tableoid <> p.tableoid AND c.id <= p.id) AS n FROM plain p;
CREATE INCREMENTAL VIEW of_view AS SELECT tableoid::regclass AS name, id FROM own;
CREATE INCREMENTAL VIEW perhaps_of_view AS SELECT p.id, o.tableoid::regclass AS name, to_json(o)::text AS o FROM plain p LEFT JOIN own o ON o.id = p.city;
CREATE VIEW named AS SELECT tableoid AS tableoid, id FROM ONLY city;
CREATE INCREMENTAL VIEW of_named AS SELECT n.tableoid::regclass AS name, n.id FROM named n;
CREATE INCREMENTAL VIEW joined AS SELECT j.a, j.b, j.c FROM (plain p JOIN ONLY city c USING (id)) AS j(a, b, c);

SELECT * FROM own ORDER BY id;
SELECT * FROM pairs ORDER BY id, name;
SELECT * FROM own_of_parted;
SELECT * FROM not_own ORDER BY id;
SELECT * FROM of_plain ORDER BY id;
SELECT * FROM of_children ORDER BY id, name;
SELECT * FROM per_partition ORDER BY name;
SELECT * FROM perhaps ORDER BY id, name;
SELECT * FROM whole ORDER BY id, name;
SELECT * FROM whole_own ORDER BY id;
SELECT * FROM of_view ORDER BY id;
SELECT * FROM perhaps_of_view ORDER BY id;
SELECT * FROM of_named ORDER BY id;
SELECT * FROM joined ORDER BY a;
SELECT * FROM differences();

UPDATE city SET people = people + 1000 WHERE id IN (2, 4);
UPDATE ONLY city SET name = 'Lund' WHERE id = 1;
INSERT INTO capital VALUES (9, 'bern', 130, 'ch');
DELETE FROM capital WHERE id = 5;
UPDATE measure SET day = day + 365 WHERE day = '2024-05-05';
INSERT INTO measure VALUES ('2024-01-01', 3, 9);
SELECT * FROM own ORDER BY id;
SELECT * FROM per_partition ORDER BY name;
SELECT * FROM differences();
BEGIN;
DELETE FROM ONLY city;
SAVEPOINT s;
INSERT INTO city VALUES (77, 'x', 1);
ROLLBACK TO s;
COMMIT;
SELECT count(*) FROM own;
SELECT * FROM differences();
INSERT INTO city VALUES (1, 'one', 1), (4, 'four', NULL);
TRUNCATE ONLY city;
SELECT count(*) FROM own;
SELECT * FROM differences();
INSERT INTO city VALUES (1, 'one', 1);
TRUNCATE capital;
TRUNCATE measure_old;
SELECT * FROM differences();
TRUNCATE city;
SELECT * FROM differences();

-- Children come and go.
INSERT INTO city VALUES (6, 'bonn', 330);
CREATE TABLE town () INHERITS (plain);
INSERT INTO town VALUES (60, 6), (61, NULL);
SELECT * FROM own_of_plain;
SELECT * FROM of_plain ORDER BY id;
ALTER TABLE measure DETACH PARTITION measure_new;
INSERT INTO measure_new VALUES ('2025-09-09', 4, 4);
SELECT * FROM per_partition ORDER BY name;
SELECT * FROM differences();
ALTER TABLE measure ATTACH PARTITION measure_new FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
SELECT * FROM per_partition ORDER BY name;
DROP TABLE town;
SELECT * FROM differences();

EXPLAIN CREATE INCREMENTAL VIEW v AS SELECT a.id, b.tableoid FROM ONLY city a JOIN city b ON b.id = a.id;
-- The other columns of the system are of rows as they are stored.
CREATE INCREMENTAL VIEW bad AS SELECT ctid FROM city;
\echo :SQLSTATE

DROP FUNCTION differences();
DROP TABLE city, measure, plain CASCADE;
