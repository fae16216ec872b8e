-- What transactions, statements and clients do to base tables arrives whole and in order.
SET client_min_messages = warning;
CREATE TABLE account (id int PRIMARY KEY, owner text, balance int);
INSERT INTO account VALUES (1, 'ann', 100), (2, 'bob', 50);
CREATE INCREMENTAL VIEW total AS SELECT count(*) AS accounts, sum(balance) AS balance FROM account;
CREATE INCREMENTAL VIEW rich AS SELECT owner, balance FROM account WHERE balance >= 100;

BEGIN;
UPDATE account SET balance = balance - 30 WHERE id = 1;
UPDATE account SET balance = balance + 30 WHERE id = 2;
-- own changes arrive with the commit
SELECT * FROM total;
COMMIT;
SELECT * FROM total;
SELECT * FROM rich ORDER BY owner;

BEGIN;
INSERT INTO account VALUES (3, 'cid', 1000);
ROLLBACK;
SELECT * FROM total;

BEGIN;
INSERT INTO account VALUES (3, 'cid', 1);
SAVEPOINT a;
INSERT INTO account VALUES (4, 'dan', 10);
SAVEPOINT b;
INSERT INTO account VALUES (5, 'eve', 100);
ROLLBACK TO b;
UPDATE account SET balance = balance + 1 WHERE id = 4;
RELEASE a;
SAVEPOINT c;
DELETE FROM account;
ROLLBACK TO c;
COMMIT;
SELECT * FROM total;
SELECT * FROM rich ORDER BY owner;

-- the same row several times in one transaction
BEGIN;
UPDATE account SET balance = 1000 WHERE id = 1;
UPDATE account SET balance = 2000 WHERE id = 1;
DELETE FROM account WHERE id = 1;
INSERT INTO account VALUES (1, 'ann again', 300);
COMMIT;
SELECT * FROM rich ORDER BY owner;

-- keys move, also onto each other's values
UPDATE account SET id = id + 10;
BEGIN;
UPDATE account SET id = 99 WHERE id = 11;
UPDATE account SET id = 11 WHERE id = 12;
COMMIT;
SELECT * FROM total;

-- several statements in one string, COPY, upsert, data-modifying CTE, DO
INSERT INTO account VALUES (20, 'x', 1)\; UPDATE account SET balance = 7 WHERE id = 20\; SELECT count(*) FROM account;
SELECT * FROM total;
COPY account FROM stdin;
30	copy one	500
31	copy two	\N
\.
SELECT * FROM rich ORDER BY owner;
INSERT INTO account VALUES (30, 'upsert', 600), (32, 'new', 1) ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, balance = excluded.balance;
SELECT * FROM rich ORDER BY owner;
WITH moved AS (DELETE FROM account WHERE id = 30 RETURNING owner, balance) INSERT INTO account SELECT 33, owner, balance FROM moved;
SELECT * FROM rich ORDER BY owner;
DO $$ BEGIN FOR i IN 1..5 LOOP INSERT INTO account VALUES (100 + i, 'do', i); END LOOP; END $$;
SELECT * FROM total;
DO $$ BEGIN INSERT INTO account VALUES (200, 'do', 1); COMMIT; INSERT INTO account VALUES (201, 'do', 1); ROLLBACK; END $$;
SELECT * FROM total;

-- TRUNCATE with what comes before and after it in its transaction
BEGIN;
INSERT INTO account VALUES (300, 'before', 111);
TRUNCATE account;
INSERT INTO account VALUES (301, 'after', 222);
COMMIT;
SELECT * FROM total;
SELECT * FROM rich ORDER BY owner;
BEGIN;
TRUNCATE account;
ROLLBACK;
SELECT * FROM total;

-- prepared statements, cursors, isolation levels
PREPARE fresh AS SELECT * FROM total;
EXECUTE fresh;
INSERT INTO account VALUES (302, 'p', 1);
EXECUTE fresh;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT * FROM total;
SELECT * FROM total;
COMMIT;
INSERT INTO account VALUES (303, 'q', 1);
BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY;
SELECT * FROM total;
COMMIT;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM rich ORDER BY owner;
FETCH ALL FROM c;
COMMIT;
CREATE FUNCTION read_total() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT balance FROM total); END';
INSERT INTO account VALUES (304, 'r', 1000);
SELECT read_total();

-- values stored out of line, unchanged and changed by an update
CREATE TABLE doc (id int PRIMARY KEY, n int, body text);
ALTER TABLE doc ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INCREMENTAL VIEW doc_view AS SELECT id, n, length(body) AS width, substr(body, 1, 3) AS start, body FROM doc;
INSERT INTO doc VALUES (1, 1, repeat('abc', 5000)), (2, 1, 'short');
SELECT id, n, width, start FROM doc_view ORDER BY id;
UPDATE doc SET n = 2;
SELECT id, n, width, start, doc_view.body = doc.body AS same FROM doc_view JOIN doc USING (id, n) ORDER BY id;
UPDATE doc SET body = repeat('xyz', 6000) WHERE id = 1;
SELECT id, n, width, start FROM doc_view ORDER BY id;
UPDATE doc SET id = 5 WHERE id = 1;
SELECT id, n, width, start FROM doc_view ORDER BY id;
DELETE FROM doc WHERE id = 5;
SELECT id, n, width, start FROM doc_view ORDER BY id;
DROP FUNCTION read_total();
DROP TABLE account, doc CASCADE;
-- What a session changes beside a view that it fills is captured, and so is what follows a fill that failed
CREATE TABLE beside (a int PRIMARY KEY, b int NOT NULL);
CREATE INCREMENTAL VIEW counted AS SELECT b, count(*) AS n FROM beside GROUP BY b;
BEGIN;
INSERT INTO beside VALUES (1, 1);
CREATE INCREMENTAL VIEW halves AS SELECT a, 10 / b AS half FROM beside;
INSERT INTO beside VALUES (2, 1);
COMMIT;
SELECT b, n FROM counted;
SELECT a, half FROM halves ORDER BY a;
BEGIN;
INSERT INTO beside VALUES (3, 0);
SAVEPOINT before;
CREATE INCREMENTAL VIEW thirds AS SELECT a, 10 / b AS third FROM beside;
ROLLBACK TO before;
INSERT INTO beside VALUES (4, 4);
COMMIT;
DELETE FROM beside WHERE b = 0;
REFRESH INCREMENTAL VIEW halves;
INSERT INTO beside VALUES (5, 5);
SELECT b, n FROM counted ORDER BY b;
SELECT a, half FROM halves ORDER BY a;
SET eddy.fill = 'query';
CREATE INCREMENTAL VIEW fails AS SELECT 1 / (b - 5) AS n FROM beside;
RESET eddy.fill;
INSERT INTO beside VALUES (6, 4);
SELECT b, n FROM counted ORDER BY b;
DROP TABLE beside CASCADE;
-- A serializable transaction reads views before it changes what is beneath them, and after
CREATE TABLE once (a int PRIMARY KEY);
CREATE INCREMENTAL VIEW once_view AS SELECT count(*) AS n FROM once;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT n FROM once_view;
INSERT INTO once VALUES (1);
SAVEPOINT before;
SELECT n FROM once_view;
ROLLBACK TO before;
SET LOCAL eddy.freshness = 'stale';
SELECT n FROM once_view;
COMMIT AND CHAIN;
SELECT n FROM once_view;
SAVEPOINT before;
INSERT INTO once VALUES (2);
ROLLBACK TO before;
SELECT n FROM once_view;
COMMIT;
-- What a transaction has filled itself it reads as it is
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT n FROM once_view;
INSERT INTO once VALUES (2);
REFRESH INCREMENTAL VIEW once_view;
SELECT n FROM once_view;
COMMIT;
SELECT n FROM once_view;
-- A function that catches errors reads under the snapshot of the statement that calls it
CREATE FUNCTION caught_n() RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE found bigint;
BEGIN
    BEGIN
        SELECT n INTO found FROM once_view;
        RAISE division_by_zero;
    EXCEPTION WHEN division_by_zero THEN
        RETURN found;
    END;
END $$;
INSERT INTO once VALUES (3);
SELECT caught_n(), caught_n() = n AS same FROM (SELECT caught_n() AS n OFFSET 0) s;
INSERT INTO once VALUES (4);
PREPARE caught AS SELECT caught_n() + 0 * a AS n FROM once WHERE a = 1;
EXECUTE caught;
DROP FUNCTION caught_n();
DROP TABLE once CASCADE;
-- A step writes all its views in two transactions, an outer and an inner one, and not in one for each view
CREATE TABLE item (id int);
DO $$ BEGIN
    FOR i IN 1..20 LOOP
        EXECUTE format('CREATE INCREMENTAL VIEW item%s AS SELECT id + %s AS id FROM item', i, i);
    END LOOP;
END $$;
SELECT count(*) FROM item1 JOIN item20 USING (id);
SELECT eddy.wait_for_lsn(pg_current_wal_lsn(), '1 minute');
SELECT pg_current_xact_id()::text::bigint AS before \gset
INSERT INTO item VALUES (1);
SELECT eddy.wait_for_lsn(pg_current_wal_lsn(), '1 minute');
SELECT pg_current_xact_id()::text::bigint - :before < 20 AS few, (SELECT count(*) FROM item20) AS rows;
-- What is in the way of one keeps none of the others back
CREATE UNIQUE INDEX ON item7 ((id / 10));
INSERT INTO item VALUES (2);
SELECT (SELECT count(*) FROM item6) AS sixth, (SELECT count(*) FROM item8) AS eighth;
SELECT count(*) FROM item7;
DROP TABLE item CASCADE;
