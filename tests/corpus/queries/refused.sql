-- What is refused. Each construct has a name, the reason, and what to write in its place; the reference has them as tables.
-- "…" at the end of a message stands for "is not supported in an incremental view".

-- section: Results that change without a change of a table

-- refused: volatile functions
-- why: their results change without a change of a table
-- instead: a column that is filled when the row is written
-- message: volatile function {m} …
-- for {x} {m}: random() ; random() | nextval('ticket') ; nextval(regclass) | clock_timestamp() ; clock_timestamp() | gen_random_uuid() ; gen_random_uuid() | dice() ; dice()
SELECT id, {x} AS x FROM num;

-- refused: volatile functions
-- message: volatile function random() …
SELECT id FROM num WHERE random() < 0.5;

-- refused: functions of users that are stable
-- why: they may read what no table of the view has
-- instead: `ALTER FUNCTION … IMMUTABLE` where that is true
-- message: stable function tariff(integer) …
SELECT id, tariff(i) AS x FROM num;

-- refused: functions of users that are stable
-- message: aggregate latest(integer) with stable function later(integer,integer) …
SELECT latest(i) AS x FROM num;

-- refused: functions of the session
-- why: they depend on who asks, and from where
-- instead: such a condition in the query that reads the view; `current_user` is the owner of the view
-- message: stable function {m} …
-- for {x} {m}: session_user ; session_user | current_schema ; current_schema | current_database() ; current_database() | inet_client_addr() ; inet_client_addr() | current_setting('TimeZone') ; current_setting(text)
SELECT id, {x}::text AS x FROM num;

-- refused: functions of the catalogs
-- why: they depend on more than the tables and the settings of the view
-- instead: the query itself, or a plain view
-- message: stable function {m} …
-- for {x} {m}: to_regclass('emp') ; to_regclass(text) | has_table_privilege('emp', 'SELECT') ; has_table_privilege(text,text) | pg_get_viewdef('staff'::regclass) ; pg_get_viewdef(oid) | format_type(23, -1) ; format_type(oid,integer) | id::text::regclass ; regclass(text) | concat(id, (ARRAY[NULL::aclitem])[1]) ; concat("any")
SELECT id, {x} AS x FROM num;

-- refused: `age(at)`
-- why: it counts up to the present day
-- instead: `age(day, at)` with a column for the day
-- message: stable function age(timestamp with time zone) …
SELECT id, age(tz) AS x FROM moment;

-- Instead.
SELECT id, age(timestamptz '2024-12-31 00:00+01', tz) AS x FROM moment;

-- refused: `timetz` made of a time without its date
-- why: its offset is that of the present day
-- instead: `timetz` made of a `timestamptz`
-- message: stable function {m} …
-- for {x} {m}: tm::timetz ; timetz(time without time zone) | tmz AT TIME ZONE 'Europe/Berlin' ; timezone(text,time with time zone)
SELECT id, {x} AS x FROM moment;

-- section: The present time

-- refused: the present time outside of conditions
-- why: a row would change with every moment
-- instead: a condition of `WHERE` such as `at > now() - interval '1 hour'`
-- message: stable function {m} …
-- for {x} {m}: now() ; now() | current_date ; current_date | current_timestamp ; current_timestamp | now() - tz ; now() | localtimestamp ; localtimestamp
SELECT id, {x} AS x FROM moment;

-- refused: the present time outside of conditions
-- message: stable function {m} …
-- for {w} {m}: d = current_date ; current_date | tz > now() OR id = 1 ; now() | NOT tz > now() ; now()
SELECT id FROM moment WHERE {w};

-- refused: the present time in a condition of a join
-- why: rows begin and end to be valid, pairs of them do not
-- instead: the condition in `WHERE`, or in a query in `FROM`
-- message: stable function now() …
SELECT e.name, s.product FROM emp e LEFT JOIN sale s ON s.emp = e.id AND s.at < now();

-- Instead.
SELECT e.name, s.product FROM emp e LEFT JOIN (SELECT emp, product FROM sale WHERE at < now()) s ON s.emp = e.id;

-- refused: months before or after the present time
-- why: months differ in length, so what is made of them goes back at times
-- instead: days: `interval '30 days'`
-- message: an interval with months before or after the present time …
SELECT id FROM moment WHERE tz > now() - interval '1 month';

-- Instead.
SELECT id FROM moment WHERE tz < now() - interval '31 days';

-- refused: other expressions of the present time
-- why: they may become less as time passes
-- instead: `at > now() - interval '1 day'`: the present time, plus or minus a constant, alone on one side
-- message: a comparison with this expression of the present time …
SELECT id FROM moment WHERE extract(hour FROM now()) > id;

-- Instead.
SELECT id FROM moment WHERE tz + interval '1 day' < now();

-- refused: the present time in the recursive term of a query
-- why: rows of a loop do not begin and end to be valid
-- instead: the condition in a query of `WITH` to which the recursive term refers
-- message: a condition on the present time in the recursive term of a query …
WITH RECURSIVE r(id) AS (SELECT id FROM emp WHERE boss IS NULL UNION SELECT e.id FROM r JOIN emp e ON e.boss = r.id WHERE e.hired < current_date) SELECT id FROM r;

-- Instead.
WITH RECURSIVE h AS (SELECT id, boss FROM emp WHERE hired < current_date), r(id) AS (SELECT id FROM emp WHERE boss IS NULL UNION SELECT h.id FROM r JOIN h ON h.boss = r.id) SELECT id FROM r;

-- refused: words for the present as text
-- why: they mean another day tomorrow
-- instead: `now()` or `current_date` in a condition
-- message: a date or time made of a text such as 'now' or 'today' …
SELECT id, ('to' || 'day')::date AS x, 'today'::text::date AS y FROM num;

-- section: Tables and views

-- refused: system tables
-- why: their changes cannot be followed
-- instead: a plain view
-- message: system table "{t}" …
-- for {t}: pg_class | pg_type
SELECT count(*) FROM {t};

-- refused: temporary tables
-- why: their changes are not in the WAL, and only their session has them
-- instead: a table, or the query itself
-- message: materialized views must not use temporary tables or views
SELECT * FROM fleeting;

-- refused: tables whose row-level security restricts the owner of the view
-- why: not everyone may see the same rows
-- instead: a view whose owner the policies do not restrict
-- set: role = 'clerk'
-- message: row-level security of table "tree" …
SELECT id, kind FROM tree;

-- refused: unlogged tables
-- why: their changes are not in the WAL
-- instead: `ALTER TABLE … SET LOGGED`
-- message: unlogged table "scratch" …
SELECT * FROM scratch;

-- refused: foreign tables
-- why: their changes are not in the WAL of this server
-- instead: a plain view
-- message: foreign table "abroad" …
SELECT * FROM abroad;

-- refused: plain materialized views
-- why: they change by `REFRESH`
-- instead: a view, or an incremental view
-- message: materialized view "frozen" …
SELECT * FROM frozen;

-- Instead.
WITH frozen AS (SELECT id, name FROM dept) SELECT name, id FROM frozen;

-- refused: sequences
-- why: their changes cannot be followed
-- instead: a plain view
-- message: sequence "ticket" …
SELECT last_value FROM ticket;

-- refused: `TABLESAMPLE`
-- why: which rows are drawn depends on where they are stored, with `REPEATABLE`, too: `UPDATE` and `VACUUM FULL` move them
-- instead: a condition on the key, such as `hashint4(id) % 10 = 0`
-- message: TABLESAMPLE ("emp") …
-- for {m}: bernoulli (50) | system (50) | bernoulli (50) REPEATABLE (1) | system (50) REPEATABLE (1)
SELECT * FROM emp TABLESAMPLE {m};

-- Instead.
SELECT * FROM emp WHERE hashint4(id) % 2 = 0;

-- section: What means nothing for a view

-- refused: `FOR UPDATE`, `FOR SHARE`
-- why: a view locks no rows of its tables
-- instead: the query without it
-- message: FOR UPDATE or FOR SHARE …
-- for {f}: FOR UPDATE | FOR SHARE | FOR NO KEY UPDATE SKIP LOCKED
SELECT id FROM emp {f};

-- refused: system columns, but for `tableoid`
-- why: they are of a row as it is stored
-- instead: columns of the table
-- message: a system column …
-- for {c}: ctid | xmin | cmax
SELECT {c} FROM emp;

-- refused: negative constants in `LIMIT` and `OFFSET`, and as offsets of frames
-- why: PostgreSQL fails as soon as it runs such a query
-- instead: in a frame the other direction, `FOLLOWING` for `PRECEDING`
-- message: a negative {m} …
-- for {c} {m}: LIMIT -1 ; LIMIT | OFFSET -1 ; OFFSET
SELECT id FROM emp ORDER BY id {c};

-- refused: negative constants in `LIMIT` and `OFFSET`, and as offsets of frames
-- message: a negative frame offset …
SELECT id, count(*) OVER (ORDER BY tz RANGE '-1 month' PRECEDING) AS n FROM moment;

-- refused: `INTERSECT` and `EXCEPT` of rows without columns
-- why: such rows do not differ
-- instead: a column, or `EXISTS`
-- message: INTERSECT or EXCEPT without columns …
-- for {o}: EXCEPT | INTERSECT ALL
SELECT FROM emp {o} SELECT FROM dept;

-- refused: statements that change data in `WITH`
-- why: a view changes no tables
-- instead: the statement by itself
-- message: materialized views must not use data-modifying statements in WITH
WITH d AS (DELETE FROM emp RETURNING id) SELECT id FROM d;

-- section: Order and frames

-- refused: the order of a subquery, where nothing else says one, across a join, a `UNION ALL`, windows or a `DISTINCT ON`
-- why: PostgreSQL may keep it or not
-- instead: `ORDER BY` in the aggregate, the window or the query that looks at the order
-- message: {m} in the order of {s} across {a} …
-- for {q} {m} {s} {a}: SELECT array_agg(x.name) AS x FROM (SELECT name, dept FROM emp ORDER BY id) x JOIN dept d ON d.id = x.dept ; an aggregate ; "x" ; a join
--   | SELECT x.name FROM dept d, (SELECT name FROM emp ORDER BY id) x LIMIT 2 ; LIMIT ; "x" ; a join
--   | SELECT x.name, row_number() OVER () FROM dept d, (SELECT name FROM emp ORDER BY id) x ; a window function ; "x" ; a join
--   | SELECT array_agg(y.name) AS x FROM (SELECT name FROM (SELECT name FROM emp ORDER BY id) x UNION ALL SELECT name FROM dept) y ; an aggregate ; a subquery ; UNION ALL
--   | SELECT DISTINCT ON (d.id) d.id, x.name FROM dept d, (SELECT name FROM emp ORDER BY id) x ; DISTINCT ON ; "x" ; a join
--   | SELECT ARRAY(SELECT x.name FROM (SELECT id, name FROM emp ORDER BY id) x JOIN dept d ON d.id = x.id) AS x ; ARRAY ; "x" ; a join
--   | SELECT array_agg(y.name) AS x FROM (SELECT DISTINCT ON (dept) name, dept FROM (SELECT name, dept FROM emp ORDER BY id) x) y ; an aggregate ; "x" ; DISTINCT ON
--   | SELECT array_agg(y.name) AS x FROM (SELECT name, rank() OVER (ORDER BY salary) FROM (SELECT name, salary FROM emp ORDER BY id) x) y ; an aggregate ; "x" ; windows
{q};

-- Instead.
SELECT array_agg(x.name ORDER BY x.id) AS x FROM (SELECT id, name, dept FROM emp) x JOIN dept d ON d.id = x.dept;

-- refused: offsets of `RANGE` that are intervals and no constants
-- why: how long an interval with months or days is depends on the row
-- instead: `ORDER BY extract(epoch FROM at)`, and a number
-- message: an offset of RANGE that is an interval and no constant …
SELECT id, count(*) OVER (ORDER BY ts RANGE (SELECT max(iv) FROM moment) PRECEDING) AS n FROM moment;

-- refused: offsets of `RANGE` that are intervals and no constants
-- message: a frame offset of type interval …
-- for {c}: tm | iv
SELECT id, count(*) OVER (ORDER BY {c} RANGE (SELECT max(iv) FROM moment) PRECEDING) AS n FROM moment;

-- Instead.
SELECT id, count(*) OVER (ORDER BY extract(epoch FROM ts) RANGE (SELECT coalesce(extract(epoch FROM max(iv)), 0) FROM moment) PRECEDING) AS n FROM moment;

-- refused: offsets of `RANGE` over types that are no numbers, dates, times or intervals
-- why: what is near there only a function of a user knows (`in_range` in an operator class)
-- instead: `ROWS` or `GROUPS`
-- message: RANGE with an offset over type text …
SELECT id, count(*) OVER (ORDER BY t RANGE 1 PRECEDING) AS n FROM txt;

-- refused: offsets of `RANGE` over types that are no numbers, dates, times or intervals
-- message: a frame offset of type inet …
SELECT id, count(*) OVER (ORDER BY net RANGE '::1'::inet PRECEDING) AS n FROM thing;

-- Instead.
SELECT id, count(*) OVER (ORDER BY net GROUPS 1 PRECEDING) AS n FROM thing;

-- refused: `ORDER BY … USING` an operator of another order
-- why: not done yet
-- instead: `ASC` or `DESC`
-- message: ORDER BY … USING ~<~ …
SELECT id FROM txt ORDER BY t USING ~<~ LIMIT 3;

-- refused: `ORDER BY … USING` an operator of another order
-- message: another equality than that of type integer itself …
SELECT DISTINCT i FROM num ORDER BY i USING <%;

-- Instead.
SELECT id FROM txt ORDER BY t COLLATE "C", id LIMIT 3;

-- refused: the order of a set operation by a collation
-- why: not done yet
-- instead: the set operation as a query in `FROM`
-- message: ORDER BY of a set operation with collation "german" …
SELECT de FROM thing UNION SELECT de FROM thing ORDER BY 1 LIMIT 2;

-- Instead.
SELECT de FROM (SELECT de FROM thing UNION SELECT de FROM thing) s ORDER BY 1 LIMIT 2;

-- refused: `ORDER BY` a merged column whose name another output has
-- why: not done yet
-- instead: another name for the output
-- message: ORDER BY a merged column whose name another output has …
SELECT name AS k, p.title AS name FROM dept FULL JOIN (SELECT title AS name, title FROM project) p USING (name) ORDER BY k LIMIT 100;

-- Instead.
SELECT name AS k, p.title FROM dept FULL JOIN (SELECT title AS name, title FROM project) p USING (name) ORDER BY k LIMIT 100;

-- section: Groups, aggregates, windows

-- refused: columns that a key determines, with grouping sets
-- why: not done yet
-- instead: the columns in `GROUP BY`
-- message: a column that is not in GROUP BY …
SELECT id, name, count(*) FROM emp GROUP BY GROUPING SETS ((id), (id, dept));

-- Instead.
SELECT id, name, count(*) FROM emp GROUP BY GROUPING SETS ((id, name), (id, name, dept));

-- refused: columns that a key determines, of types without equality
-- why: not done yet
-- instead: the columns from a join with the groups
-- message: a column that is not in GROUP BY …
SELECT id, j, count(*) FROM doc GROUP BY id;

-- Instead.
SELECT d.id, d.j, g.n FROM doc d JOIN (SELECT id, count(*) AS n FROM doc GROUP BY id) g USING (id);

-- refused: columns that a key determines, of tables with inheritance children
-- why: rows of children may have the same key
-- instead: the columns in `GROUP BY`, or `ONLY` of the table
-- message: a column that is not in GROUP BY …
SELECT id, maker, count(*) FROM vehicle GROUP BY id;

-- Instead.
SELECT id, maker, count(*) FROM vehicle GROUP BY id, maker;

-- refused: a key twice in grouping sets
-- why: not done yet
-- instead: the key once, twice in a query around it
-- message: an expression twice in grouping sets …
SELECT dept AS a, dept AS b, count(*) FROM emp GROUP BY ROLLUP (1, 2);

-- Instead.
SELECT dept AS a, dept AS b, n FROM (SELECT dept, count(*) AS n FROM emp GROUP BY ROLLUP (dept)) s;

-- refused: aggregates in a subquery whose arguments, once constants are computed, are of the query around alone
-- why: not done yet
-- instead: the argument in a query in `FROM`
-- message: aggregate sum of an outer query in a subquery here …
SELECT d.id, (SELECT (SELECT sum(CASE WHEN true THEN d.id ELSE e.id END)) FROM emp e WHERE e.id = 1) AS x FROM dept d;

-- Instead.
SELECT d.id, (SELECT sum(x) FROM (SELECT d.id AS x FROM emp e WHERE e.id = 1) s) AS x FROM dept d;

-- refused: subqueries that depend on a window function beside them
-- why: not done yet
-- instead: the function in a query in `FROM`
-- message: a subquery that depends on a window function …
SELECT id, row_number() OVER (ORDER BY id) IN (SELECT dept FROM emp) AS x FROM emp;

-- Instead.
SELECT id, n IN (SELECT dept FROM emp) AS x FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM emp) s;

-- refused: windows over set-returning functions of the select list
-- why: not done yet
-- instead: the function in `FROM`
-- message: a window over a set-returning function …
-- for {w}: rank() OVER (ORDER BY generate_series(1, s)) | count(*) OVER (PARTITION BY generate_series(1, s))
SELECT id, {w} AS x FROM num;

-- Instead.
SELECT n.id, rank() OVER (ORDER BY x) AS x FROM num n, generate_series(1, n.s) AS x;

-- section: Types, columns and rows

-- refused: set operations and `VALUES` of texts of which one has a nondeterministic collation and another has not
-- why: not done yet
-- instead: `COLLATE` at each that has another collation, literals and `NULL` included
-- message: a set operation of values with different collations …
-- for {q}: SELECT 'hello' AS x UNION SELECT ci FROM thing | SELECT NULL AS x UNION ALL SELECT ci FROM thing
--   | WITH RECURSIVE r(x) AS (SELECT 'a' COLLATE caseless UNION SELECT t FROM r, txt WHERE length(x) < 5) SELECT x FROM r
{q};

-- refused: set operations and `VALUES` of texts of which one has a nondeterministic collation and another has not
-- message: matching text with text …
SELECT t.id, v.x FROM thing t, LATERAL (VALUES (t.ci), ('x'), (NULL)) AS v(x);

-- Instead.
SELECT t.id, v.x FROM thing t, LATERAL (VALUES (t.ci), ('x' COLLATE caseless), (NULL COLLATE caseless)) AS v(x);

-- Instead.
SELECT 'hello' COLLATE caseless AS x UNION SELECT ci FROM thing;

-- refused: `FULL JOIN … USING` of columns that only PostgreSQL compares
-- why: not done yet: the merged column is none of either side
-- instead: `ON`, and `coalesce(a.x, b.x)`
-- message: USING of columns of type {t} …
-- for {a} {b} {t}: ci FROM thing ; t FROM txt ; text | d FROM moment ; tz FROM moment ; date | net FROM thing ; cidr FROM thing ; inet
SELECT x, a.id FROM (SELECT id, x FROM (SELECT id, {a}) s(id, x)) a FULL JOIN (SELECT {b}) b(x) USING (x);

-- Instead.
SELECT coalesce(a.ci, b.t) AS x, a.id FROM thing a FULL JOIN txt b ON a.ci = b.t;

-- Instead.
SELECT j.id, j.bx FROM (SELECT a.id, a.bx FROM thing a JOIN thing b ON a.bx = b.bx) AS j;

-- refused: whole rows of a join that is a side of an outer join
-- why: not done yet
-- instead: the columns by name
-- message: a whole-row reference to a side of an outer join …
SELECT j FROM emp e LEFT JOIN (dept d JOIN project p ON p.dept = d.id) AS j(a, b, c, d, e, f, g, h, i, k, l) ON j.a = e.dept;

-- Instead.
SELECT e.id, d.name, p.title FROM emp e LEFT JOIN (dept d JOIN project p ON p.dept = d.id) ON d.id = e.dept;

-- refused: columns of `XMLTABLE` with a default, and of `JSON_TABLE`, that are arrays
-- why: not done yet: arrays of different sizes cannot be passed on together
-- instead: a column that is text or JSON, of which the select list makes an array
-- message: a column of a document that is an array …
SELECT t.id, r.a FROM thing t, XMLTABLE('/a' PASSING t.x COLUMNS a int[] PATH 'concat("{", ., "}")' DEFAULT '{}') AS r;

-- Instead.
SELECT t.id, coalesce(r.a, '{}')::int[] AS a FROM thing t, XMLTABLE('/a' PASSING t.x COLUMNS a text PATH 'concat("{", ., "}")') AS r;

-- refused: `ARRAY(SELECT …)` of a domain over arrays
-- why: not done yet
-- instead: an array of texts, or a cast to the array where all have one size
-- message: ARRAY of values of type numbers …
SELECT ARRAY(SELECT i::numbers FROM list ORDER BY id) AS x;

-- Instead.
SELECT ARRAY(SELECT i::numbers::text FROM list ORDER BY id) AS x;

-- section: Functions of users

-- refused: functions of users that return sets of arrays
-- why: not done yet: arrays of different sizes cannot be passed on together
-- instead: a function that returns texts, which are cast, or rows of elements
-- message: a set-returning function of arrays …
SELECT n.id, x FROM num n, chunks(n.s) AS x;

-- Instead.
SELECT n.id, ARRAY[x, x] AS x FROM num n, upto(n.s) AS x;

-- refused: functions of users that return sets of a type without arrays
-- why: their results could not be passed on
-- instead: a function that returns texts
-- message: a set-returning function of type pg_node_tree …
SELECT id, nodes(id)::text AS x FROM num;

-- refused: functions in `FROM` of rows whose type has lost all its columns
-- why: there is nothing that could be passed on
-- instead: a type that has columns
-- message: a function of rows whose type has lost all its columns …
SELECT n.id FROM num n, bare(n.s) AS x;

-- refused: functions in SQL whose bodies name what is not found where views call them
-- why: there, `search_path` is `pg_catalog, pg_temp`
-- instead: names with their schemas, or `ALTER FUNCTION … SET search_path`
-- message: function thrice(integer) does not find what its body names
SELECT id, thrice(i) AS x FROM num;

-- refused: window functions that are not PostgreSQL's own
-- why: only PostgreSQL can call them, and that over a whole partition
-- instead: aggregates of users as window functions
-- message: window function "standing" …
SELECT id, standing() OVER (ORDER BY id) AS x FROM num;

-- Instead.
SELECT id, product(s) OVER (ORDER BY id ROWS 1 PRECEDING) AS x FROM num WHERE s < 1000;

-- section: eddy.recursive()

-- refused: what takes rows away as others come, over a query that is defined by itself
-- why: there would be no least set of rows
-- instead: the aggregate, window, `LIMIT`, `EXCEPT`, `NOT EXISTS` or outer join in a query over the recursion
-- message: GROUP BY, an aggregate, EXCEPT or INTERSECT over a recursive reference to r …
-- for {q}: SELECT y.a, count(*)::int FROM eddy.recursive('r') AS y(a int, b int) GROUP BY y.a | (SELECT dst, src FROM edge EXCEPT SELECT y.a, y.b FROM eddy.recursive('r') AS y(a int, b int))
WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge UNION {q}) SELECT a, b FROM r;

-- refused: what takes rows away as others come, over a query that is defined by itself
-- message: LIMIT, DISTINCT ON or a window function over a recursive reference to r …
-- for {q}: (SELECT y.a, y.b FROM eddy.recursive('r') AS y(a int, b int) ORDER BY 1, 2 LIMIT 5) | SELECT y.a, (row_number() OVER ())::int FROM eddy.recursive('r') AS y(a int, b int)
WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge UNION {q}) SELECT a, b FROM r;

-- refused: what takes rows away as others come, over a query that is defined by itself
-- message: NOT EXISTS or the like over a recursive reference to win …
WITH RECURSIVE win(a) AS (SELECT DISTINCT src FROM edge e WHERE NOT EXISTS (SELECT FROM eddy.recursive('win') AS w(a int) WHERE w.a = e.dst)) SELECT a FROM win;

-- Instead.
WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge UNION SELECT r.a, e.dst FROM r JOIN edge e ON e.src = r.b) SELECT a, count(*) AS n FROM r GROUP BY a;

-- refused: a query that is defined by itself without `UNION` or `SELECT DISTINCT`
-- why: the rows of a least fixpoint are a set
-- instead: `UNION`
-- message: query "r", which refers to itself, without UNION …
WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge UNION ALL SELECT x.a, y.b FROM r x JOIN eddy.recursive('r') AS y(a int, b int) ON y.a = x.b) SELECT a, b FROM r;

-- refused: duplicates dropped within such a query among values that may be equal and written differently
-- why: which of them stays may depend on the order of the rows
-- instead: the value in one form, such as text
-- message: DISTINCT or UNION, of values that may be equal and written differently, over a recursive reference to r …
WITH RECURSIVE r(s) AS (SELECT t FROM txt UNION (WITH q AS MATERIALIZED (SELECT DISTINCT length(y.s)::numeric AS n FROM eddy.recursive('r') AS y(s text)) SELECT n::text FROM q)) SELECT s FROM r;

-- refused: columns of other types than numbers, `boolean`, text, dates, timestamps, `uuid`, `bytea` and arrays of these
-- why: not done yet
-- instead: the value as text
-- message: eddy.recursive() with a column of type inet …
WITH RECURSIVE r(a) AS (SELECT net FROM thing UNION SELECT y.a FROM eddy.recursive('r') AS y(a inet)) SELECT a FROM r;

-- refused: `COLLATE` in the columns of `eddy.recursive()`
-- why: they have the collations of the query
-- instead: `COLLATE` where the column is used
-- message: eddy.recursive() with COLLATE …
WITH RECURSIVE r(a) AS (SELECT t FROM txt UNION SELECT y.a FROM eddy.recursive('r') AS y(a text COLLATE "C")) SELECT a FROM r;

-- refused: `eddy.recursive()` in `ROWS FROM` with others, or `WITH ORDINALITY`
-- why: its rows have no order
-- instead: an item of `FROM` of its own
-- message: eddy.recursive() beside other functions, or WITH ORDINALITY, …
WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM edge UNION SELECT y.a, y.b FROM ROWS FROM (eddy.recursive('r') AS (a int, b int), generate_series(1, 2)) AS y(a, b, c)) SELECT a, b FROM r;

-- section: Too much in one query

-- refused: more than eight recursions within one another
-- why: each level is a counter in the time of each row
-- instead: recursions beside one another, of which one reads the result of another
-- message: recursive queries nested more than 8 deep …
WITH RECURSIVE r1(a, b) AS (SELECT src, dst FROM edge UNION (
WITH RECURSIVE r2(a, b) AS (SELECT a, b FROM r1 UNION (
WITH RECURSIVE r3(a, b) AS (SELECT a, b FROM r2 UNION (
WITH RECURSIVE r4(a, b) AS (SELECT a, b FROM r3 UNION (
WITH RECURSIVE r5(a, b) AS (SELECT a, b FROM r4 UNION (
WITH RECURSIVE r6(a, b) AS (SELECT a, b FROM r5 UNION (
WITH RECURSIVE r7(a, b) AS (SELECT a, b FROM r6 UNION (
WITH RECURSIVE r8(a, b) AS (SELECT a, b FROM r7 UNION (
WITH RECURSIVE r9(a, b) AS (SELECT a, b FROM r8 UNION SELECT r9.a, e.dst FROM r9 JOIN edge e ON e.src = r9.b) SELECT a, b FROM r9
)) SELECT a, b FROM r8 )) SELECT a, b FROM r7 )) SELECT a, b FROM r6 )) SELECT a, b FROM r5 )) SELECT a, b FROM r4 )) SELECT a, b FROM r3 )) SELECT a, b FROM r2 )) SELECT a, b FROM r1;

-- Instead.
WITH RECURSIVE r1(a, b) AS (SELECT src, dst FROM edge UNION SELECT r1.a, e.dst FROM r1 JOIN edge e ON e.src = r1.b),
    r2(a, b) AS (SELECT a, b FROM r1 UNION SELECT r2.a, r1.b FROM r2 JOIN r1 ON r1.a = r2.b) SELECT a, b FROM r2;

-- refused: more than 200 subqueries in expressions
-- why: each is a level of the plan
-- instead: a join with groups that has the results of many
-- message: more than 200 subqueries …
-- for {a}: (SELECT count(*) FROM emp WHERE dept = d.id)
-- for {b}: {a} + {a} + {a} + {a} + {a} + {a}
-- for {c}: {b} + {b} + {b} + {b} + {b} + {b}
-- for {x}: {c} + {c} + {c} + {c} + {c} + {c}
SELECT d.id, {x} AS n FROM dept d;

-- Instead.
SELECT d.id, 216 * coalesce(e.n, 0) AS n FROM dept d LEFT JOIN (SELECT dept, count(*) AS n FROM emp GROUP BY dept) e ON e.dept = d.id;

-- refused: what nests too deeply for any stack
-- why: who walks down a tree needs a stack as deep
-- instead: `= ANY (ARRAY[…])` for tests against many values, `VALUES` for what is added up, several views for one query
-- state: 54001
-- message: query has more than 600 levels of nested expressions and queries
-- for {a}: + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1
-- for {b}: {a} {a} {a} {a} {a} {a} {a} {a} {a}
-- for {x}: {b} {b} {b} {b} {b} {b} {b} {b}
SELECT id {x} AS x FROM dept;

-- refused: what nests too deeply for any stack
-- state: 54001
-- message: query has more than 5000 conditions or queries in a chain
-- for {a}: OR id = 1 OR id = 2 OR id = 3 OR id = 4 OR id = 5 OR id = 6 OR id = 7 OR id = 8 OR id = 9
-- for {b}: {a} {a} {a} {a} {a} {a} {a} {a} {a}
-- for {c}: {b} {b} {b} {b} {b} {b} {b} {b} {b}
-- for {x}: {c} {c} {c} {c} {c} {c} {c} {c} {c}
SELECT id FROM dept WHERE id = 0 {x};

-- Instead.
SELECT id FROM dept WHERE id = ANY (ARRAY[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
