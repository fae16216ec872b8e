-- Triggers of tables that have the rows of views: those that are ENABLE ALWAYS run when pg_eddy writes

CREATE ROLE eddy_owner;
GRANT CREATE ON SCHEMA public TO eddy_owner;
SET ROLE eddy_owner;
CREATE TABLE sale (id int PRIMARY KEY, shop text, amount numeric);
INSERT INTO sale VALUES (1, 'north', 1), (2, 'south', 2);
CREATE INCREMENTAL VIEW total WITH (storage = table) AS SELECT shop, sum(amount) AS amount, count(*) AS n FROM sale GROUP BY shop;
SELECT count(*) FROM total;
CREATE TABLE audit (number int GENERATED ALWAYS AS IDENTITY, trigger text, what text, before text, after text, by text, seen bigint);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SET search_path = public AS $$
BEGIN
    INSERT INTO audit (trigger, what, before, after, by, seen) VALUES
        (tg_name, tg_op, CASE WHEN tg_op <> 'INSERT' THEN old::text END, CASE WHEN tg_op <> 'DELETE' THEN new::text END, current_user, (SELECT count(*) FROM total_table));
    RETURN NULL;
END$$;
CREATE TRIGGER ordinary AFTER INSERT OR UPDATE OR DELETE ON total_table FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER always AFTER INSERT OR UPDATE OR DELETE ON total_table FOR EACH ROW EXECUTE FUNCTION note();
ALTER TABLE total_table ENABLE ALWAYS TRIGGER always;
BEGIN;
INSERT INTO sale VALUES (3, 'south', 3), (4, 'east', 4);
DELETE FROM sale WHERE id = 1;
COMMIT;
SELECT count(*) FROM total;
SELECT trigger, what, before, after, by, seen FROM audit ORDER BY before, after;
TRUNCATE audit;
-- of some columns, on a condition, of a constraint that is looked at later
CREATE TRIGGER by_column AFTER UPDATE OF n ON total_table FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER by_condition AFTER UPDATE ON total_table FOR EACH ROW WHEN (new.amount > old.amount) EXECUTE FUNCTION note();
CREATE CONSTRAINT TRIGGER deferred AFTER DELETE ON total_table DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER before BEFORE INSERT OR UPDATE ON total_table FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER by_statement AFTER INSERT OR UPDATE OR DELETE ON total_table FOR EACH STATEMENT EXECUTE FUNCTION note();
CREATE TRIGGER with_rows AFTER UPDATE ON total_table REFERENCING NEW TABLE AS n FOR EACH ROW EXECUTE FUNCTION note();
ALTER TABLE total_table ENABLE ALWAYS TRIGGER by_column, ENABLE ALWAYS TRIGGER by_condition, ENABLE ALWAYS TRIGGER deferred,
    ENABLE ALWAYS TRIGGER before, ENABLE ALWAYS TRIGGER by_statement, ENABLE ALWAYS TRIGGER with_rows;
UPDATE sale SET amount = amount + CASE shop WHEN 'south' THEN -1 ELSE 1 END;
SELECT count(*) FROM total;
DELETE FROM sale WHERE shop = 'east';
SELECT count(*) FROM total;
SELECT trigger, what, before, after FROM audit ORDER BY what DESC, trigger, before;
TABLE total_table;
-- what a session fills anew nobody else has written
REFRESH INCREMENTAL VIEW total;
SELECT count(*) FROM audit;
TRUNCATE audit;
-- a view over what a trigger writes
CREATE INCREMENTAL VIEW audited AS SELECT what, count(*) FROM audit GROUP BY what;
INSERT INTO sale SELECT i, 'shop ' || i, i FROM generate_series(10, 300) i;
SELECT count(*) FROM total;
SELECT * FROM audited;
-- the error of a trigger is its view's
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF new.amount > 1000 THEN
        RAISE EXCEPTION 'too much for %', new.shop;
    END IF;
    RETURN NULL;
END$$;
CREATE TRIGGER strict AFTER INSERT OR UPDATE ON total_table FOR EACH ROW EXECUTE FUNCTION fail();
ALTER TABLE total_table ENABLE ALWAYS TRIGGER strict;
INSERT INTO sale VALUES (1000, 'south', 2000);
SELECT * FROM total WHERE shop = 'south';
\echo :SQLSTATE
SELECT * FROM audited;
DELETE FROM sale WHERE id = 1000;
ALTER TABLE total_table DISABLE TRIGGER strict;
REFRESH INCREMENTAL VIEW total;
SELECT * FROM total WHERE shop = 'south';
SELECT * FROM total EXCEPT TABLE total_table;
-- what would fail at the end of everybody's transaction fails before it
CREATE TABLE known (shop text PRIMARY KEY);
CREATE TABLE noted (shop text REFERENCES known DEFERRABLE INITIALLY DEFERRED);
CREATE FUNCTION note_shop() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.noted VALUES (new.shop);
    RETURN NULL;
END$$;
CREATE TRIGGER noting AFTER UPDATE ON total_table FOR EACH ROW EXECUTE FUNCTION note_shop();
ALTER TABLE total_table ENABLE ALWAYS TRIGGER noting;
UPDATE sale SET amount = amount + 1 WHERE id = 2;
SELECT * FROM total WHERE shop = 'south';
SELECT * FROM audited;
ALTER TABLE total_table DISABLE TRIGGER noting;
REFRESH INCREMENTAL VIEW total;
SELECT * FROM total WHERE shop = 'south';

-- nothing of it stays with the worker
CREATE FUNCTION lock_something() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_catalog.pg_advisory_lock(42);
    RETURN NULL;
END$$;
CREATE TRIGGER locking AFTER UPDATE ON total_table FOR EACH ROW EXECUTE FUNCTION lock_something();
ALTER TABLE total_table ENABLE ALWAYS TRIGGER locking;
UPDATE sale SET amount = amount + 1 WHERE id = 2;
SELECT * FROM total WHERE shop = 'south';
SELECT pg_try_advisory_xact_lock(42);
DROP TRIGGER locking ON total_table;
-- one that does not end
SET eddy.read_timeout = '1min';
CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    LOOP
        BEGIN
            PERFORM pg_catalog.pg_sleep(100);
        EXCEPTION WHEN query_canceled THEN
            NULL;
        END;
    END LOOP;
END$$;
CREATE TRIGGER waiting AFTER UPDATE ON total_table FOR EACH ROW EXECUTE FUNCTION wait();
ALTER TABLE total_table ENABLE ALWAYS TRIGGER waiting;
UPDATE sale SET amount = amount + 1 WHERE id = 2;
SELECT * FROM audited;
DROP TRIGGER waiting ON total_table;
REFRESH INCREMENTAL VIEW total;
SELECT * FROM total WHERE shop = 'south';

DROP TABLE sale, audit, noted, known CASCADE;
DROP FUNCTION note, fail, note_shop, lock_something, wait;
RESET ROLE;
REVOKE CREATE ON SCHEMA public FROM eddy_owner;
DROP ROLE eddy_owner;
