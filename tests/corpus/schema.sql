-- What the queries of the corpus read: types, base tables, functions, plain views. The rows are in data.sql.
--
-- It runs once in each session of the corpus, and what it sets stays set, as a view takes its settings from the session that
-- creates it.

SET TimeZone = 'Europe/Berlin';

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE place AS (street text, zip int);
CREATE DOMAIN percentage AS int CHECK (VALUE BETWEEN 0 AND 100);
CREATE DOMAIN code AS text CHECK (length(VALUE) < 20);
CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION german (provider = icu, locale = 'de');

-- A company. Not every department has people, not everyone a department or a boss, and some departments do not exist.
CREATE TABLE dept (
    id int PRIMARY KEY, name text NOT NULL, city text, budget numeric(12,2), parent int);
CREATE TABLE emp (
    id int PRIMARY KEY, name text NOT NULL, dept int, boss int, salary numeric(10,2), bonus int, hired date,
    grade smallint, active boolean);
CREATE TABLE project (
    id int PRIMARY KEY, title text NOT NULL, dept int, starts date, ends date, cost numeric(12,2));
CREATE TABLE work (emp int, project int, hours int, role text, PRIMARY KEY (emp, project));
-- Without a key: rows may be there several times.
CREATE TABLE sale (emp int, product text, qty int, price numeric(8,2), at timestamptz);

-- Graphs: one with cycles, one without.
CREATE TABLE edge (src int NOT NULL, dst int NOT NULL, len int NOT NULL);
CREATE TABLE part (part text NOT NULL, sub text NOT NULL, qty int NOT NULL);

-- A table for each kind of type.
CREATE TABLE num (
    id int PRIMARY KEY, i int, s smallint, b bigint, n numeric, r real, d double precision);
CREATE TABLE txt (
    id int PRIMARY KEY, t text, v varchar(20), c char(6), w text, l text COLLATE "C", y bytea);
CREATE TABLE moment (
    id int PRIMARY KEY, d date, ts timestamp, tz timestamptz, tm time, tmz timetz, iv interval);
CREATE TABLE doc (id int PRIMARY KEY, j json, b jsonb);
CREATE TABLE list (id int PRIMARY KEY, i int[], t text[], n numeric[], d date[], b boolean[], m int[]);
CREATE TABLE span (
    id int PRIMARY KEY, i int4range, n numrange, d daterange, tz tstzrange, m int4multirange, dm datemultirange);
CREATE TABLE thing (
    id int PRIMARY KEY, f boolean, u uuid, e mood, p place, net inet, cidr cidr, mac macaddr, bits bit(4),
    vbits varbit, cash money, pct percentage, code code, pt point, bx box, word tsvector, x xml,
    ci text COLLATE caseless, de text COLLATE german);
-- The ends of types. Functions that would overflow have no business here.
CREATE TABLE extreme (
    id int PRIMARY KEY, i int, s smallint, b bigint, n numeric, r real, d double precision, t text, day date,
    ts timestamp, iv interval);

-- Rows at which queries fail come here, and go again.
CREATE TABLE fault (id int PRIMARY KEY, x int, y int, t text, f double precision);

-- Children, partitions, columns that are computed.
CREATE TABLE vehicle (id int PRIMARY KEY, wheels int, maker text);
CREATE TABLE car (doors int) INHERITS (vehicle);
CREATE TABLE truck (load numeric) INHERITS (vehicle);
CREATE TABLE reading (sensor int NOT NULL, day date NOT NULL, value numeric) PARTITION BY RANGE (day);
CREATE TABLE reading_old PARTITION OF reading FOR VALUES FROM (MINVALUE) TO ('2024-01-01');
CREATE TABLE reading_2024 PARTITION OF reading FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')
    PARTITION BY LIST (sensor);
CREATE TABLE reading_2024_odd PARTITION OF reading_2024 FOR VALUES IN (1, 3);
CREATE TABLE reading_2024_rest PARTITION OF reading_2024 DEFAULT;
CREATE TABLE reading_rest PARTITION OF reading DEFAULT;
CREATE TABLE parcel (
    id int PRIMARY KEY, w int, h int, label text, area int GENERATED ALWAYS AS (w * h) STORED,
    tag text GENERATED ALWAYS AS (upper(label)) STORED);
CREATE TABLE tree (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind text DEFAULT 'oak', height int);
-- A column was dropped, one was added.
CREATE TABLE altered (a int, gone text, b text);
ALTER TABLE altered DROP COLUMN gone;
ALTER TABLE altered ADD COLUMN c int DEFAULT 5;

CREATE FUNCTION twice(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 2 * x';
CREATE FUNCTION shout(t text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN upper(t) || ''!''; END';
CREATE FUNCTION add(x int, y int DEFAULT 1) RETURNS int LANGUAGE sql IMMUTABLE STRICT RETURN x + y;
CREATE FUNCTION widest(VARIADIC x int[]) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT max(e) FROM unnest(x) e';
CREATE FUNCTION upto(x int) RETURNS SETOF int LANGUAGE sql IMMUTABLE AS 'SELECT generate_series(1, x)';
CREATE FUNCTION divided(x int, y int, OUT quotient int, OUT remainder int) LANGUAGE sql IMMUTABLE
    AS 'SELECT x / y, x % y';
CREATE FUNCTION pairs(x int) RETURNS TABLE (low int, high int) LANGUAGE sql IMMUTABLE
    AS 'SELECT e, x - e FROM generate_series(1, x / 2) e';
CREATE FUNCTION chunks(x int) RETURNS SETOF int[] LANGUAGE sql IMMUTABLE
    AS 'SELECT ARRAY[e, e] FROM generate_series(1, x) e';
CREATE FUNCTION versions(x int) RETURNS SETOF altered LANGUAGE sql IMMUTABLE
    AS 'SELECT x, ''v'' || e, e FROM generate_series(1, x) e';
CREATE FUNCTION version(x int) RETURNS altered LANGUAGE sql IMMUTABLE AS 'SELECT x, ''v'', x';
CREATE FUNCTION total(x altered) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT x.a + x.c';
CREATE FUNCTION dice() RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 4';
CREATE FUNCTION tariff(x int) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN x; END';
CREATE AGGREGATE product(int) (SFUNC = int4mul, STYPE = int, INITCOND = '1');
CREATE OPERATOR <~> (LEFTARG = int, RIGHTARG = int, FUNCTION = int4mi);
CREATE SEQUENCE ticket;
-- An order by the last digit, which brings an equality of its own.
CREATE FUNCTION digits(a int, b int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT a % 10 - b % 10';
CREATE FUNCTION less_digit(a int, b int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT a % 10 < b % 10';
CREATE FUNCTION same_digit(a int, b int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT a % 10 = b % 10';
CREATE OPERATOR <% (LEFTARG = int, RIGHTARG = int, FUNCTION = less_digit);
CREATE OPERATOR =% (LEFTARG = int, RIGHTARG = int, FUNCTION = same_digit);
CREATE OPERATOR CLASS digit_ops FOR TYPE int USING btree
    AS OPERATOR 1 <%, OPERATOR 3 =%, FUNCTION 1 digits(int, int);

CREATE VIEW staff AS SELECT id, name, dept, salary FROM emp WHERE active;
CREATE VIEW payroll AS SELECT dept, count(*) AS people, sum(salary) AS total FROM emp GROUP BY dept;
CREATE VIEW ranked AS SELECT id, name, dept, rank() OVER (PARTITION BY dept ORDER BY salary DESC) AS place FROM emp;
CREATE VIEW guarded WITH (security_barrier) AS SELECT id, t FROM txt WHERE t IS NOT NULL;
CREATE VIEW chain AS WITH RECURSIVE c(id, depth) AS (
    SELECT id, 0 FROM emp WHERE boss IS NULL
    UNION ALL SELECT e.id, c.depth + 1 FROM emp e JOIN c ON e.boss = c.id AND c.depth < 20)
    SELECT id, depth FROM c;
CREATE VIEW nested AS SELECT s.name, p.people FROM staff s JOIN payroll p USING (dept);

CREATE INCREMENTAL VIEW headcount AS SELECT dept, count(*) AS people FROM emp GROUP BY dept;
CREATE INCREMENTAL VIEW reach AS WITH RECURSIVE r(a, b) AS (
    SELECT src, dst FROM edge UNION SELECT r.a, e.dst FROM r JOIN edge e ON e.src = r.b)
    SELECT a, b FROM r;

-- What views cannot read or call.
CREATE TEMPORARY TABLE fleeting (id int PRIMARY KEY);
CREATE UNLOGGED TABLE scratch (id int PRIMARY KEY, i int);
CREATE MATERIALIZED VIEW frozen AS SELECT id, name FROM dept;
CREATE FOREIGN DATA WRAPPER nothing;
CREATE SERVER nowhere FOREIGN DATA WRAPPER nothing;
CREATE FOREIGN TABLE abroad (id int) SERVER nowhere;
CREATE DOMAIN numbers AS int[];
CREATE TYPE bare AS (gone int);
CREATE FUNCTION bare(x int) RETURNS SETOF bare LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN NEXT NULL; END';
ALTER TYPE bare DROP ATTRIBUTE gone;
CREATE FUNCTION nodes(x int) RETURNS SETOF pg_node_tree LANGUAGE sql IMMUTABLE
    AS 'SELECT adbin FROM pg_attrdef WHERE adnum = x';
CREATE FUNCTION thrice(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT x + twice(x)';
-- With the right type it would be PostgreSQL's own by another name.
CREATE FUNCTION standing() RETURNS int LANGUAGE internal WINDOW IMMUTABLE AS 'window_rank';
CREATE FUNCTION later(state int, x int) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN x; END';
CREATE AGGREGATE latest(int) (SFUNC = later, STYPE = int);
-- What is near, for RANGE.
CREATE FUNCTION is_near(a text, b text, "offset" int, is_before boolean, is_start boolean) RETURNS boolean
    LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION is_near(a inet, b inet, "offset" inet, is_before boolean, is_start boolean) RETURNS boolean
    LANGUAGE sql IMMUTABLE AS 'SELECT true';
ALTER OPERATOR FAMILY text_ops USING btree ADD FUNCTION 3 (text, int) is_near(text, text, int, boolean, boolean);
ALTER OPERATOR FAMILY network_ops USING btree ADD FUNCTION 3 (inet, inet) is_near(inet, inet, inet, boolean, boolean);

-- Roles are of all databases, in which this runs at the same time.
DO $$
BEGIN
    CREATE ROLE clerk;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
END $$;
GRANT CREATE ON SCHEMA public TO clerk;
GRANT SELECT ON tree TO clerk;
ALTER TABLE tree ENABLE ROW LEVEL SECURITY;
CREATE POLICY tall ON tree USING (height > 3);
-- A type that functions of clerk compare, and a view of clerk over it.
CREATE TYPE mark AS (points int);
CREATE FUNCTION marks(a mark, b mark) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT a.points - b.points';
CREATE FUNCTION less(a mark, b mark) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT a.points < b.points';
CREATE FUNCTION same(a mark, b mark) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT a.points = b.points';
ALTER FUNCTION marks(mark, mark) OWNER TO clerk;
CREATE OPERATOR < (LEFTARG = mark, RIGHTARG = mark, FUNCTION = less);
CREATE OPERATOR = (LEFTARG = mark, RIGHTARG = mark, FUNCTION = same);
CREATE OPERATOR CLASS mark_ops DEFAULT FOR TYPE mark USING btree
    AS OPERATOR 1 <, OPERATOR 3 =, FUNCTION 1 marks(mark, mark);
CREATE TABLE exam (id int PRIMARY KEY, mark mark);
ALTER TABLE exam OWNER TO clerk;
SET ROLE clerk;
CREATE INCREMENTAL VIEW results AS SELECT mark, count(*) AS people FROM exam GROUP BY mark;
RESET ROLE;

DO $$
DECLARE
    base regclass;
BEGIN
    FOR base IN SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relpersistence = 'p' LOOP
        EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', base);
    END LOOP;
END $$;
