-- Every type of the installation, and what is made of it, in every position: a view is what its query is. What the query
-- cannot do, for want of an operator, no view can do either.
SET client_min_messages = warning;
SET search_path = every, public;
-- So many queries are compiled for longer than they run.
SET jit = off;
SET eddy.read_timeout = '10min';
CREATE SCHEMA every;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE bare AS (doc json, place point);
-- Literals, of which every type accepts some.
CREATE TABLE literal (rank int GENERATED ALWAYS AS IDENTITY, value text);
INSERT INTO literal (value) VALUES
    ('0'), ('1'), ('t'), ('f'), ('$.a'), ('$.b'), ('2024-01-31'), ('2024-02-29'), ('10:00'), ('11:00+02'), ('1 day'), ('24 hours'),
    ('sad'), ('ok'), ('10.0.0.1'), ('10.0.0.2'), ('08:00:2b:01:02:03'), ('08:00:2b:01:02:04'), ('0/1'), ('0/2'),
    ('(0,1)'), ('(0,2)'), ('(1,1),(0,0)'), ('(2,2),(1,1)'), ('<(0,0),1>'), ('<(0,0),2>'), ('{1,2,3}'), ('{1,2,4}'),
    ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12'),
    ('10:20:10,14'), ('10:20:10,15'), ('[1,5)'), ('[2,6)'), ('[2024-01-31,2024-02-29)'), ('[2024-01-31,2024-03-01)'),
    ('{[1,5)}'), ('{[2,6)}'), ('{[2024-01-31,2024-02-29)}'), ('{[2024-01-31,2024-03-01)}'),
    (current_user || '=r/' || current_user), (current_user || '=w/' || current_user), ('("{}","(1,1)")'), ('("[]","(1,1)")');
CREATE FUNCTION samples(type text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE found text[] = '{}'; literal text; value text;
BEGIN
    FOR literal IN SELECT l.value FROM literal l ORDER BY rank LOOP
        BEGIN
            EXECUTE format('SELECT (%L::%s)::text', literal, type) INTO value;
            found = CASE WHEN value = ANY (found) THEN found ELSE found || value END;
            EXIT WHEN cardinality(found) = 2;
        EXCEPTION WHEN OTHERS THEN
            NULL;
        END;
    END LOOP;
    RETURN found;
END $$;
CREATE TABLE type AS
SELECT format_type(t.oid, NULL) AS name, t.typtype AS kind, samples(format_type(t.oid, NULL)) AS samples
FROM pg_type t
WHERE t.typnamespace IN ('pg_catalog'::regnamespace, 'every'::regnamespace) AND (t.typtype IN ('b', 'e', 'r', 'm') OR t.oid = 'bare'::regtype)
    AND NOT EXISTS (SELECT FROM pg_type e WHERE e.typarray = t.oid);
-- these have no values that anybody could write
SELECT name FROM type WHERE samples = '{}' ORDER BY name COLLATE "C";
DELETE FROM type WHERE samples = '{}';

-- What is a column: the type, a domain over it, its arrays, a composite type with it, ranges of it.
CREATE TABLE subject (of text, name text, type text, a text, b text);
CREATE PROCEDURE add_subject(of text, name text, type text, a text, b text, definition text DEFAULT NULL) LANGUAGE plpgsql AS $$
BEGIN
    IF definition IS NOT NULL THEN
        EXECUTE definition;
    END IF;
    EXECUTE format('CREATE TABLE %I (id int PRIMARY KEY, k %s)', 't ' || name, type);
    EXECUTE format('INSERT INTO %I VALUES (1, %s), (2, %s), (3, %s), (4, NULL)', 't ' || name, a, b, a);
    INSERT INTO subject VALUES (of, name, type, a, b);
EXCEPTION WHEN undefined_object OR undefined_function THEN
    -- No ranges without an operator class.
    NULL;
END $$;
DO $$
DECLARE t record; a text; b text; d text; c text; r text; m text;
BEGIN
    FOR t IN SELECT * FROM type LOOP
        a = format('%L::%s', t.samples[1], t.name);
        b = format('%L::%s', t.samples[cardinality(t.samples)], t.name);
        d = quote_ident('d ' || t.name); c = quote_ident('c ' || t.name); r = quote_ident('r ' || t.name); m = quote_ident('m ' || t.name);
        CALL add_subject(t.name, t.name, t.name, a, b);
        CONTINUE WHEN t.kind IN ('r', 'm');
        CALL add_subject(t.name, 'domain ' || t.name, d, a, b, format('CREATE DOMAIN %s AS %s', d, t.name));
        CALL add_subject(t.name, 'array ' || t.name, t.name || '[]', format('ARRAY[%s,%s]', a, b), format('ARRAY[%s]', b));
        CALL add_subject(t.name, 'row ' || t.name, c, format('ROW(%s,1)::%s', a, c), format('ROW(%s,1)::%s', b, c), format('CREATE TYPE %s AS (f %s, n int)', c, t.name));
        CALL add_subject(t.name, 'range ' || t.name, r, format('%s(least(%s,%s),greatest(%s,%s),''[]'')', r, a, b, a, b), format('%s(%s,%s,''[]'')', r, a, a),
            format('CREATE TYPE %s AS RANGE (SUBTYPE = %s, MULTIRANGE_TYPE_NAME = %s)', r, t.name, m));
    END LOOP;
END $$;
SELECT count(*) > 250 AS many FROM subject;

-- Where it stands; @ is the table. Each query has two numbers. What is made of a type stands in fewer places.
CREATE TABLE place (name text, query text);
INSERT INTO place VALUES
    ('join', 'SELECT a.id, b.id FROM @ a JOIN @ b ON a.k = b.k'),
    ('using', 'SELECT a.id, b.id FROM @ a JOIN @ b USING (k)'),
    ('natural', 'SELECT id, m FROM @ NATURAL LEFT JOIN (SELECT id AS m, k FROM @ WHERE id < 3) b'),
    ('outer join', 'SELECT a.id, b.id FROM @ a LEFT JOIN @ b ON a.k = b.k AND a.id < b.id'),
    ('full join', 'SELECT a.id, b.id FROM (SELECT * FROM @ WHERE id > 1) a FULL JOIN (SELECT * FROM @ WHERE id < 3) b ON a.k = b.k'),
    ('condition', 'SELECT a.id, b.id FROM @ a LEFT JOIN @ b ON a.id < b.id AND (a.k IS NULL) = (b.k IS NULL)'),
    ('group', 'SELECT min(id), count(*) FROM @ GROUP BY k'),
    ('sets', 'SELECT min(id), count(k) FROM @ GROUP BY GROUPING SETS ((k), (id), ())'),
    ('distinct', 'SELECT count(*), count(k) FROM (SELECT DISTINCT k FROM @) s'),
    ('distinct on', 'SELECT id, 0 FROM (SELECT DISTINCT ON (k) id, k FROM @ ORDER BY k, id) s'),
    ('count', 'SELECT count(DISTINCT k), count(k) FROM @'),
    ('subquery', 'SELECT id, (SELECT count(*) FROM @ b WHERE b.id < a.id AND a.k IS NOT NULL) FROM @ a'),
    ('equal subquery', 'SELECT id, (SELECT max(b.id) FROM @ b WHERE b.k = a.k) FROM @ a'),
    ('lateral', 'SELECT a.id, l.id FROM @ a, LATERAL (SELECT b.id, a.k FROM @ b WHERE b.id > a.id ORDER BY b.id LIMIT 1) l WHERE l.k IS NOT NULL'),
    ('unnest', 'SELECT id, (SELECT count(u) FROM unnest(ARRAY[a.k]) u) FROM @ a'),
    ('exists', 'SELECT id, 0 FROM @ a WHERE EXISTS (SELECT FROM @ b WHERE b.id > a.id AND (a.k IS NULL OR b.k IS NOT NULL))'),
    ('not exists', 'SELECT id, 0 FROM @ a WHERE NOT EXISTS (SELECT FROM @ b WHERE b.k = a.k AND b.id <> a.id)'),
    ('in', 'SELECT id, 0 FROM @ WHERE k IN (SELECT k FROM @ WHERE id > 2)'),
    ('not in', 'SELECT id, 0 FROM @ WHERE k NOT IN (SELECT k FROM @ WHERE id = 1)'),
    ('limit', 'SELECT id, 0 FROM (SELECT id FROM @ ORDER BY k DESC, id LIMIT 2) s'),
    ('union', 'SELECT count(*), count(k) FROM (SELECT k FROM @ UNION SELECT k FROM @) s'),
    ('union all', 'SELECT count(*), count(k) FROM (SELECT k FROM @ UNION ALL SELECT k FROM @) s'),
    ('intersect', 'SELECT count(*), count(k) FROM (SELECT k FROM @ INTERSECT ALL SELECT k FROM @ WHERE id < 3) s'),
    ('except', 'SELECT count(*), count(k) FROM (SELECT k FROM @ EXCEPT ALL SELECT k FROM @ WHERE id = 1) s'),
    ('partition', 'SELECT id, count(*) OVER (PARTITION BY k) FROM @'),
    ('rank', 'SELECT id, rank() OVER (ORDER BY k) FROM @'),
    ('frame', 'SELECT id, count(k) OVER (ORDER BY id ROWS 1 PRECEDING) FROM @'),
    ('lag', 'SELECT id, (lag(k) OVER (ORDER BY id) IS NULL)::int FROM @'),
    ('least', 'SELECT id, 0 FROM @ WHERE k = (SELECT min(k) FROM @)'),
    ('array', 'SELECT cardinality(array_agg(k ORDER BY id)), 0 FROM @'),
    ('array in order', 'SELECT cardinality(array_agg(DISTINCT k)), 0 FROM @'),
    ('aggregate', 'SELECT json_array_length(json_agg(id ORDER BY id)), count(k) FROM @ GROUP BY k IS NULL'),
    ('recursion', 'WITH RECURSIVE r(id, k, n) AS (SELECT id, k, 1 FROM @ UNION ALL SELECT id, k, n + 1 FROM r WHERE n < 2) SELECT id, n FROM r WHERE k IS NOT NULL'),
    ('distinct recursion', 'WITH RECURSIVE r(k, n) AS (SELECT k, 1 FROM @ UNION SELECT k, n % 2 + 1 FROM r) SELECT count(*), count(k) FROM r'),
    ('case', 'SELECT id, CASE k WHEN k THEN 1 ELSE 0 END FROM @'),
    ('distinct from', 'SELECT a.id, b.id FROM @ a, @ b WHERE a.k IS NOT DISTINCT FROM b.k'),
    ('greatest', 'SELECT id, (greatest(k, k) IS NULL)::int FROM @'),
    ('row', 'SELECT a.id, b.id FROM @ a, @ b WHERE (a.k, a.id) < (b.k, b.id)'),
    ('any', 'SELECT a.id, 0 FROM @ a WHERE k = ANY (ARRAY[k, NULL])'),
    ('grouped row', 'SELECT min(id), count(*) FROM @ GROUP BY ROW(k, 1)');

-- What PostgreSQL can do, and what it cannot.
CREATE TABLE branch (of text, view text, place text, query text);
CREATE TABLE impossible (subject text, place text, sqlstate text);
DO $$
DECLARE s record; p record; branch text; ignored text;
BEGIN
    FOR s IN SELECT *, name = of AS is_type FROM subject LOOP
        FOR p IN SELECT * FROM place
            WHERE s.is_type OR name IN ('using', 'group', 'subquery', 'limit', 'except')
        LOOP
            branch = format('SELECT %L AS place, q.* FROM (%s) q(a, b)', p.name || ' ' || s.name, replace(p.query, '@', quote_ident('t ' || s.name)));
            BEGIN
                EXECUTE branch INTO ignored;
                INSERT INTO branch VALUES (s.of, CASE WHEN s.is_type THEN 'v ' ELSE 'made of ' END || s.of, p.name, branch);
            EXCEPTION WHEN OTHERS THEN
                INSERT INTO impossible VALUES (s.name, p.name, SQLSTATE);
            END;
        END LOOP;
    END LOOP;
END $$;
SELECT subject, count(*), string_agg(place, ', ' ORDER BY place) AS places FROM impossible
WHERE subject IN ('integer', 'json', 'box', 'xid', 'bare', 'mood', 'domain point', 'array xml', 'range date') GROUP BY 1 ORDER BY subject COLLATE "C";
SELECT sqlstate, count(*) > 10 AS many FROM impossible GROUP BY 1 ORDER BY 1;
SELECT count(*) > 2500 AS many FROM branch;

-- One view for each type, and one for what is made of it. Of what is refused each query is tried alone.
CREATE TABLE refused (place text, query text, sqlstate text, message text);
DO $$
DECLARE v record; b record;
BEGIN
    FOR v IN SELECT view, string_agg(query, ' UNION ALL ') AS query FROM branch GROUP BY view LOOP
        BEGIN
            EXECUTE format('CREATE INCREMENTAL VIEW %I AS %s', v.view, v.query);
        EXCEPTION WHEN OTHERS THEN
            FOR b IN SELECT * FROM branch WHERE branch.view = v.view LOOP
                BEGIN
                    EXECUTE format('CREATE INCREMENTAL VIEW "one branch" AS %s', b.query);
                    DROP INCREMENTAL VIEW "one branch";
                EXCEPTION WHEN OTHERS THEN
                    INSERT INTO refused VALUES (b.place, b.query, SQLSTATE, SQLERRM);
                    DELETE FROM branch WHERE query = b.query;
                END;
            END LOOP;
            SELECT string_agg(query, ' UNION ALL ') AS query INTO b FROM branch WHERE branch.view = v.view;
            EXECUTE format('CREATE INCREMENTAL VIEW %I AS %s', v.view, b.query);
        END;
    END LOOP;
END $$;
SELECT place, sqlstate, message, count(*) FROM refused GROUP BY 1, 2, 3 ORDER BY place COLLATE "C", 3;
CREATE FUNCTION check_views() RETURNS TABLE (view text, missing bigint, surplus bigint) LANGUAGE sql AS $$
    SELECT relation::text, v.* FROM eddy.views, eddy.verify_view(relation) v WHERE v.missing + v.surplus <> 0 $$;
CREATE PROCEDURE change_tables(change text) LANGUAGE plpgsql AS $$
DECLARE s record;
BEGIN
    FOR s IN SELECT * FROM subject LOOP
        EXECUTE replace(replace(replace(change, '@', quote_ident('t ' || s.name)), '$a', s.a), '$b', s.b);
    END LOOP;
END $$;
SELECT count(*) > 130 AS many FROM eddy.views;
SELECT * FROM check_views();
CALL change_tables('INSERT INTO @ VALUES (5, $b), (6, NULL)');
CALL change_tables('UPDATE @ SET k = CASE WHEN id = 1 THEN $b WHEN id = 4 THEN $a END WHERE id < 5');
SELECT * FROM check_views();
CALL change_tables('DELETE FROM @ WHERE id <> 1');
SELECT * FROM check_views();
DROP SCHEMA every CASCADE;
RESET search_path;
