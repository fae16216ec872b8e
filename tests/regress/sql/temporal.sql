-- Rows that come and go as time passes.
SET client_min_messages = warning;
SET timezone = 'UTC';
CREATE TABLE event (id int PRIMARY KEY, at timestamptz, local timestamp, day date, weight int);
INSERT INTO event VALUES
    (1, now(), localtimestamp, current_date, 1),
    (2, now() - interval '2 hours', localtimestamp - interval '2 hours', current_date - 40, 2),
    (3, now() + interval '2 hours', localtimestamp + interval '2 hours', current_date + 40, 3),
    (4, NULL, NULL, NULL, 4),
    (5, 'infinity', 'infinity', 'infinity', 5),
    (6, '-infinity', '-infinity', '-infinity', 6);
CREATE INCREMENTAL VIEW recent AS SELECT id FROM event WHERE at > now() - interval '1 hour';
CREATE INCREMENTAL VIEW past AS SELECT id FROM event WHERE now() >= at;
CREATE INCREMENTAL VIEW window_of_time AS
    SELECT id FROM event WHERE local BETWEEN localtimestamp - interval '1 hour' AND localtimestamp + interval '1 hour' AND weight < 9;
CREATE INCREMENTAL VIEW this_month AS SELECT count(*), sum(weight) FROM event WHERE day >= date_trunc('month', now())::date - 7 AND day < current_date + 30;
CREATE INCREMENTAL VIEW later AS SELECT id, weight FROM event WHERE local + weight * interval '1 minute' > localtimestamp;
SELECT * FROM recent ORDER BY id;
SELECT * FROM past ORDER BY id;
SELECT * FROM window_of_time ORDER BY id;
SELECT * FROM this_month;
SELECT * FROM later ORDER BY id;
-- What rows are compared by may be anything that is computed from them.
CREATE INCREMENTAL VIEW grace AS SELECT id FROM event WHERE at + weight * interval '1 month' > now() AND at::date >= current_date - 1;
CREATE INCREMENTAL VIEW newest AS SELECT id FROM event WHERE (SELECT max(x.local) FROM event x WHERE coalesce(x.weight, 1) * interval '1 hour' < '5 hours') > localtimestamp;
CREATE INCREMENTAL VIEW ends AS
    SELECT local + weight * interval '90 minutes' AS ends, count(*) FROM event WHERE local + weight * interval '90 minutes' > now()::timestamp(0) AND at > now() - make_interval(days => 2) GROUP BY 1;
SELECT * FROM grace ORDER BY id;
SELECT * FROM newest ORDER BY id;
SELECT count(*) FROM ends;
-- Days begin where the server is, not where the session is.
SET timezone = 'Pacific/Auckland';
SELECT relation::text, v.* FROM eddy.views, eddy.verify_view(relation) v ORDER BY 1;
SET timezone = 'UTC';
-- One that goes, and one that comes.
INSERT INTO event VALUES (7, now() - interval '59 minutes 56 seconds', NULL, NULL, 7), (8, now() + interval '4 seconds', NULL, NULL, 8);
SELECT * FROM recent ORDER BY id;
CREATE PROCEDURE wait_for(query text) LANGUAGE plpgsql AS $$
DECLARE is_true boolean;
BEGIN
    FOR i IN 1..600 LOOP
        EXECUTE query INTO is_true;
        EXIT WHEN is_true;
        COMMIT;
        PERFORM pg_sleep(0.05);
    END LOOP;
    RAISE NOTICE '%', is_true;
END $$;
SET client_min_messages = notice;
CALL wait_for('SELECT NOT EXISTS (SELECT FROM recent WHERE id = 7)');
CALL wait_for('SELECT EXISTS (SELECT FROM past WHERE id = 8)');
SELECT * FROM recent ORDER BY id;
DELETE FROM event WHERE id IN (1, 3, 7);
UPDATE event SET at = now() WHERE id = 2;
SELECT * FROM recent ORDER BY id;
-- A view is compared with its query at the time of the view.
INSERT INTO event SELECT 100 + i, now() - interval '1 hour' + i * interval '100 milliseconds', NULL, NULL, i FROM generate_series(-20, 40) AS i;
SELECT v.* FROM generate_series(1, 5), eddy.verify_view('recent') v, LATERAL (SELECT pg_sleep(0.3)) s;
TRUNCATE event;
SELECT count(*) FROM recent;
EXPLAIN CREATE INCREMENTAL VIEW shown AS SELECT id FROM event WHERE at > now() - interval '1 hour' AND weight > 3;
-- Refused
CREATE INCREMENTAL VIEW bad AS SELECT id FROM event WHERE at > now() OR weight > 3;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT id, now() - at AS age FROM event;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT id FROM event WHERE at = now();
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT id FROM event WHERE at > now() - interval '1 month';
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT id FROM event WHERE at > now() - weight * interval '1 hour';
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS
    WITH RECURSIVE r(id) AS (SELECT id FROM event UNION SELECT e.weight FROM r JOIN event e ON e.id = r.id WHERE e.at > now()) SELECT id FROM r;
\echo :SQLSTATE
DROP TABLE event CASCADE;
DROP PROCEDURE wait_for;
