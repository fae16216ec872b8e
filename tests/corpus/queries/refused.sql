-- What is refused. Each construct has a name, the reason, and what to write in its place; the reference has them as a table.

-- Results that change without a change of a table.

-- refused: volatile functions
-- why: their results change without a change of a table
-- instead: a column that is filled when the row is written
-- message: volatile function {m}
-- for {x} {m}: random() ; random() | nextval('ticket') ; nextval(regclass) | clock_timestamp() ; clock_timestamp() | gen_random_uuid() ; gen_random_uuid() | dice() ; dice()
SELECT id, {x} AS x FROM num;

-- refused: volatile functions
-- message: volatile function random()
SELECT id FROM num WHERE random() < 0.5;

-- refused: functions of users that are stable
-- why: they may read what no table of the view has
-- instead: `ALTER FUNCTION … IMMUTABLE` where that is true
-- message: stable function tariff(integer)
SELECT id, tariff(i) AS x FROM num;

-- refused: functions of the session
-- why: they depend on who asks, and from where
-- instead: such a condition in the query that reads the view; `current_user` is the owner of the view
-- message: stable function {m}
-- for {x} {m}: session_user ; session_user | current_schema ; current_schema | current_database() ; current_database() | inet_client_addr() ; inet_client_addr() | current_setting('TimeZone') ; current_setting(text)
SELECT id, {x}::text AS x FROM num;

-- refused: functions of the catalogs
-- why: they depend on more than the tables and the settings of the view
-- instead: the query itself, or a plain view
-- message: stable function {m}
-- for {x} {m}: to_regclass('emp') ; to_regclass(text) | has_table_privilege('emp', 'SELECT') ; has_table_privilege(text,text) | pg_get_viewdef('staff'::regclass) ; pg_get_viewdef(oid) | format_type(23, -1) ; format_type(oid,integer)
SELECT id, {x} AS x FROM num;

-- refused: `age(at)`
-- why: it counts up to the present day
-- instead: `age(day, at)` with a column for the day
-- message: stable function age(timestamp with time zone)
SELECT id, age(tz) AS x FROM moment;

-- Instead.
SELECT id, age(timestamptz '2024-12-31 00:00+01', tz) AS x FROM moment;

-- refused: `timetz` made of a time without its date
-- why: its offset is that of the present day
-- instead: `timetz` made of a `timestamptz`
-- message: stable function {m}
-- for {x} {m}: tm::timetz ; timetz(time without time zone) | tmz AT TIME ZONE 'Europe/Berlin' ; timezone(text,time with time zone)
SELECT id, {x} AS x FROM moment;

-- The present time.

-- refused: the present time outside of conditions
-- why: a row would change with every moment
-- instead: a condition of `WHERE` such as `at > now() - interval '1 hour'`
-- message: stable function {m}
-- for {x} {m}: now() ; now() | current_date ; current_date | current_timestamp ; current_timestamp | now() - tz ; now() | localtimestamp ; localtimestamp
SELECT id, {x} AS x FROM moment;

-- refused: the present time outside of conditions
-- message: stable function {m}
-- for {w} {m}: d = current_date ; current_date | tz > now() OR id = 1 ; now() | NOT tz > now() ; now()
SELECT id FROM moment WHERE {w};

-- refused: the present time in a condition of a join
-- why: rows begin and end to be valid, pairs of them do not
-- instead: the condition in `WHERE`, or in a query in `FROM`
-- message: stable function now()
SELECT e.name, s.product FROM emp e LEFT JOIN sale s ON s.emp = e.id AND s.at < now();

-- Instead.
SELECT e.name, s.product FROM emp e LEFT JOIN (SELECT emp, product FROM sale WHERE at < now()) s ON s.emp = e.id;

-- refused: months before or after the present time
-- why: months differ in length, so what is made of them goes back at times
-- instead: days: `interval '30 days'`
-- message: an interval with months before or after the present time
SELECT id FROM moment WHERE tz > now() - interval '1 month';

-- Instead.
SELECT id FROM moment WHERE tz < now() - interval '31 days';

-- refused: other expressions of the present time
-- why: they may become less as time passes
-- instead: `at > now() - interval '1 day'`: the present time, plus or minus a constant, alone on one side
-- message: a comparison with this expression of the present time
SELECT id FROM moment WHERE extract(hour FROM now()) > id;

-- Instead.
SELECT id FROM moment WHERE tz + interval '1 day' < now();

-- refused: words for the present as text
-- why: they mean another day tomorrow
-- instead: `now()` or `current_date` in a condition
-- message: a date or time made of a text such as 'now' or 'today'
SELECT id, ('to' || 'day')::date AS x, 'today'::text::date AS y FROM num;

-- Tables whose changes cannot be followed.

-- refused: system tables
-- why: their changes cannot be followed
-- instead: a plain view
-- message: system table "{t}"
-- for {t}: pg_class | pg_type
SELECT count(*) FROM {t};

-- refused: unlogged tables
-- why: their changes are not in the WAL
-- instead: `ALTER TABLE … SET LOGGED`
-- message: unlogged table "scratch"
SELECT * FROM scratch;

-- refused: foreign tables
-- why: their changes are not in the WAL of this server
-- instead: a plain view
-- message: foreign table "abroad"
SELECT * FROM abroad;

-- refused: plain materialized views
-- why: they change by `REFRESH`
-- instead: a view, or an incremental view
-- message: materialized view "frozen"
SELECT * FROM frozen;

-- Instead.
WITH frozen AS (SELECT id, name FROM dept) SELECT name, id FROM frozen;

-- refused: sequences
-- why: their changes cannot be followed
-- instead: a plain view
-- message: sequence "ticket"
SELECT last_value FROM ticket;

-- refused: `TABLESAMPLE`
-- why: which rows are drawn depends on where they are stored, with `REPEATABLE`, too: `UPDATE` and `VACUUM FULL` move them
-- instead: a condition on the key, such as `hashint4(id) % 10 = 0`
-- message: TABLESAMPLE ("emp")
-- for {m}: bernoulli (50) | system (50) | bernoulli (50) REPEATABLE (1) | system (50) REPEATABLE (1)
SELECT * FROM emp TABLESAMPLE {m};

-- Instead.
SELECT * FROM emp WHERE hashint4(id) % 2 = 0;

-- refused: system columns
-- why: they are of a row as it is stored
-- instead: columns of the table
-- message: a system column
-- for {c}: ctid | xmin
SELECT {c} FROM emp;

-- Queries that mean nothing for a view.

-- refused: `FOR UPDATE`, `FOR SHARE`
-- why: a view locks no rows of its tables
-- instead: the query without it
-- message: FOR UPDATE or FOR SHARE
-- for {f}: FOR UPDATE | FOR SHARE | FOR NO KEY UPDATE SKIP LOCKED
SELECT id FROM emp {f};

-- Order and limits.

-- refused: an order that a subquery has across a join or the like
-- why: PostgreSQL may keep it or not
-- instead: `ORDER BY` in the aggregate, the window or the query itself
-- message: {m} in the order of {s} across {a}
-- for {q} {m} {s} {a}: SELECT array_agg(x.name) AS x FROM (SELECT name, dept FROM emp ORDER BY id) x JOIN dept d ON d.id = x.dept ; an aggregate ; "x" ; a join
--   | SELECT x.name FROM dept d, (SELECT name FROM emp ORDER BY id) x LIMIT 2 ; LIMIT ; "x" ; a join
--   | SELECT x.name, row_number() OVER () FROM dept d, (SELECT name FROM emp ORDER BY id) x ; a window function ; "x" ; a join
--   | SELECT array_agg(y.name) AS x FROM (SELECT name FROM (SELECT name FROM emp ORDER BY id) x UNION ALL SELECT name FROM dept) y ; an aggregate ; a subquery ; UNION ALL
{q};

-- Instead.
SELECT array_agg(x.name ORDER BY x.id) AS x FROM (SELECT id, name, dept FROM emp) x JOIN dept d ON d.id = x.dept;

-- refused: offsets of `RANGE` that are intervals and no constants
-- why: how long an interval with months or days is depends on the row
-- instead: `ORDER BY extract(epoch FROM at)`, and a number
-- message: an offset of RANGE that is an interval and no constant
SELECT id, count(*) OVER (ORDER BY ts RANGE (SELECT max(iv) FROM moment) PRECEDING) AS n FROM moment;

-- Instead.
SELECT id, count(*) OVER (ORDER BY extract(epoch FROM ts) RANGE (SELECT coalesce(extract(epoch FROM max(iv)), 0) FROM moment) PRECEDING) AS n FROM moment;

-- refused: `ORDER BY … USING` an operator of another order
-- why: not done yet
-- instead: `ASC` or `DESC`
-- message: ORDER BY … USING ~<~
SELECT id FROM txt ORDER BY t USING ~<~ LIMIT 3;

-- Instead.
SELECT id FROM txt ORDER BY t COLLATE "C", id LIMIT 3;

-- refused: the order of a set operation by a collation
-- why: not done yet
-- instead: the set operation as a query in `FROM`
-- message: ORDER BY of a set operation with collation "german"
SELECT de FROM thing UNION SELECT de FROM thing ORDER BY 1 LIMIT 2;

-- Instead.
SELECT de FROM (SELECT de FROM thing UNION SELECT de FROM thing) s ORDER BY 1 LIMIT 2;

-- Groups, aggregates, rows.

-- refused: columns that a key determines, with grouping sets
-- why: not done yet
-- instead: the columns in `GROUP BY`
-- message: a column that is not in GROUP BY
SELECT id, name, count(*) FROM emp GROUP BY GROUPING SETS ((id), (id, dept));

-- Instead.
SELECT id, name, count(*) FROM emp GROUP BY GROUPING SETS ((id, name), (id, name, dept));

-- refused: columns that a key determines, of types without equality
-- why: not done yet
-- instead: the columns from a join with the groups
-- message: a column that is not in GROUP BY
SELECT id, j, count(*) FROM doc GROUP BY id;

-- Instead.
SELECT d.id, d.j, g.n FROM doc d JOIN (SELECT id, count(*) AS n FROM doc GROUP BY id) g USING (id);

-- refused: subqueries that depend on a window function beside them
-- why: not done yet
-- instead: the function in a query in `FROM`
-- message: a subquery that depends on a window function
SELECT id, row_number() OVER (ORDER BY id) IN (SELECT dept FROM emp) AS x FROM emp;

-- Instead.
SELECT id, n IN (SELECT dept FROM emp) AS x FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM emp) s;

-- refused: a key twice in grouping sets
-- why: not done yet
-- instead: the key once, twice in a query around it
-- message: an expression twice in grouping sets
SELECT dept AS a, dept AS b, count(*) FROM emp GROUP BY ROLLUP (1, 2);

-- Instead.
SELECT dept AS a, dept AS b, n FROM (SELECT dept, count(*) AS n FROM emp GROUP BY ROLLUP (dept)) s;

-- refused: set operations of texts of which one has a nondeterministic collation and another has not
-- why: not done yet
-- instead: `COLLATE` at the outputs that have another collation
-- message: a set operation of values with different collations
SELECT 'hello' AS x UNION SELECT ci FROM thing;

-- Instead.
SELECT 'hello' COLLATE caseless AS x UNION SELECT ci FROM thing;

-- refused: whole rows of a join that is a side of an outer join
-- why: not done yet
-- instead: the columns by name
-- message: a whole-row reference to a side of an outer join
SELECT j FROM emp e LEFT JOIN (dept d JOIN project p ON p.dept = d.id) AS j(a, b, c, d, e, f, g, h, i, k, l) ON j.a = e.dept;

-- Instead.
SELECT e.id, d.name, p.title FROM emp e LEFT JOIN (dept d JOIN project p ON p.dept = d.id) ON d.id = e.dept;

-- refused: functions of users that return sets of arrays
-- why: not done yet: arrays of different sizes cannot be passed on together
-- instead: a function that returns texts, which are cast, or rows of elements
-- message: a set-returning function of arrays
SELECT n.id, x FROM num n, chunks(n.s) AS x;

-- refused: columns of `XMLTABLE` with a default, and of `JSON_TABLE`, that are arrays
-- why: not done yet: arrays of different sizes cannot be passed on together
-- instead: a column that is text or JSON, of which the select list makes an array
-- message: a column of a document that is an array
SELECT t.id, r.a FROM thing t, XMLTABLE('/a' PASSING t.x COLUMNS a int[] PATH 'concat("{", ., "}")' DEFAULT '{}') AS r;

-- Instead.
SELECT t.id, coalesce(r.a, '{}')::int[] AS a FROM thing t, XMLTABLE('/a' PASSING t.x COLUMNS a text PATH 'concat("{", ., "}")') AS r;

-- Instead.
SELECT n.id, ARRAY[x, x] AS x FROM num n, upto(n.s) AS x;
