-- What happens to the base tables while the views of a batch are there. Each view is compared with its query after each step.
-- data.sql comes once more behind the last one.

-- step: rows come, among them NULLs and duplicates
INSERT INTO dept VALUES (7, 'Press', 'Köln', 10.10, 2), (8, 'Attic', NULL, NULL, NULL);
INSERT INTO emp VALUES
    (12, 'Kim', 3, 5, 7000, NULL, '2024-12-24', 7, false), (13, 'Labs', 7, 1, 10.10, 3, '2012-12-12', NULL, true),
    (14, 'Ada', 4, 4, 2800, 5, NULL, 2, NULL);
INSERT INTO project VALUES (7, 'Golf', 2, '2025-01-01', '2025-06-30', 7000), (8, 'Hotel', 3, NULL, '2024-12-24', 150000);
INSERT INTO work VALUES (12, 3, 25, 'dev'), (13, 7, 0, 'lead'), (2, 7, 5, 'test');
INSERT INTO sale VALUES
    (2, 'lamp', 3, 19.99, '2024-01-05 10:00+01'), (13, 'desk', 2, 239.90, '2025-02-01 12:00+01'),
    (NULL, NULL, NULL, NULL, NULL), (11, 'sofa', 2, 950, '2024-12-31 23:59:59.5+01');
INSERT INTO edge VALUES (5, 1, 2), (8, 9, 1), (10, 10, 1);
INSERT INTO part VALUES ('saddle', 'bolt', 3), ('boat', 'engine', 2);
INSERT INTO num SELECT id + 100, i + 1, s - 1, b + 3, n + 0.25, r + 0.5, d * 2 FROM num WHERE id IN (2, 4, 6, 9);
INSERT INTO txt SELECT id + 100, t || 'x', v, c, w, upper(l COLLATE "C"), y || '\x00' FROM txt WHERE id IN (1, 4, 9, 11);
INSERT INTO moment SELECT id + 100, d + 1, ts + interval '1 hour', tz + interval '1 hour', tm, tmz, iv * 2 FROM moment WHERE id IN (2, 3, 5, 8);
INSERT INTO doc VALUES (101, '{"a": 3}', '{"a": 3}'), (102, '{"a": 1, "b": {"c": []}}', '{"a": 1, "b": {"c": []}}'), (103, NULL, NULL), (104, '[[1]]', '[[1]]');
INSERT INTO list VALUES (101, '{9,1}', '{c,d}', '{2.5}', '{2024-12-24}', '{t,NULL}', '{{1,2},{3,4}}'), (102, NULL, '{a}', NULL, NULL, NULL, NULL);
INSERT INTO span VALUES (101, '[2,4]', '[0,3)', '[2024-01-31,2024-03-01)', '[2024-01-01 06:00+01,2024-01-01 18:00+01]', '{[2,4)}', '{[2024-01-31,2024-02-02)}'), (102, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO thing SELECT id + 100, NOT f, u, e, p, net, cidr, mac, bits, vbits, cash + '1'::money, pct, 'n' || id, pt, bx, word, x, upper(ci), de FROM thing WHERE id IN (1, 3, 5);
INSERT INTO extreme VALUES (101, -2147483648, 32767, -9223372036854775808, 'NaN', '-0', '-0', 'ÿ', 'infinity', '-infinity', '-1 month 30 days'), (102, 0, 0, 0, 0, 0, 0, '', '2000-01-01', '2000-01-01', '24:00:00'), (103, 1, 1, 1, 1e-30, 1e-37, 5e-324, '😀', '2000-02-29', '2000-02-29', '1 day');
INSERT INTO vehicle VALUES (3, 3, 'Tuk');
INSERT INTO car VALUES (13, 4, 'Audi', 3);
INSERT INTO truck VALUES (22, 6, 'MAN', NULL);
INSERT INTO reading VALUES (5, '2022-01-01', 0), (3, '2024-12-31', 1), (2, '2024-02-29', NULL), (9, '2026-01-01', -1);
INSERT INTO parcel (id, w, h, label) VALUES (5, 0, 9, 'flat'), (6, 2, 3, 'small');
INSERT INTO tree (kind, height) VALUES ('elm', 7), ('yew', 0);
INSERT INTO altered VALUES (3, 'x', 5), (NULL, 'y', NULL);
INSERT INTO fault VALUES (101, -8, 4, ' -3', 9);

-- step: values change, keys too
UPDATE dept SET budget = budget * 2, city = 'Essen' WHERE id IN (2, 5);
UPDATE emp SET salary = salary + 150.25, grade = coalesce(grade, 1) + 1 WHERE id % 2 = 0;
UPDATE emp SET dept = 3, boss = 1, active = NOT active WHERE id IN (3, 7, 11);
UPDATE project SET ends = date '2025-03-31', cost = coalesce(cost, 5) + 1 WHERE id IN (2, 3, 6);
UPDATE work SET hours = hours + 7, role = coalesce(role, 'none') WHERE project IN (2, 3);
UPDATE work SET emp = 4 WHERE emp = 99;
UPDATE sale SET qty = qty + 1, at = at + interval '3 days' WHERE product = 'lamp';
UPDATE edge SET len = len + 5 WHERE src = 1;
UPDATE edge SET dst = 6 WHERE src = 4 AND dst = 5;
UPDATE part SET qty = qty + 1 WHERE sub = 'bolt';
UPDATE num SET i = i + 2, s = s + 1, b = b - 5, n = n + 1.125, r = r * 2, d = d + 0.5 WHERE id IN (1, 3, 7, 104);
UPDATE num SET (i, s, b, n, r, d) = (SELECT i, s, b, n, r, d FROM num WHERE id = 8) WHERE id IN (6, 10);
UPDATE txt SET t = replace(t, 'a', 'A'), v = reverse(v), c = 'zz', w = 'A', l = l || '!', y = '\xff'::bytea || y WHERE id IN (1, 2, 7, 101);
UPDATE txt SET (t, v, c, w, l, y) = (SELECT t, v, c, w, l, y FROM txt WHERE id = 11) WHERE id IN (4, 8);
UPDATE moment SET d = d - 400, ts = ts + interval '1 month', tz = tz - interval '12 hours', tm = tm + interval '90 minutes', tmz = tmz - interval '1 hour', iv = iv + interval '2 hours' WHERE id IN (1, 4, 7, 102);
UPDATE moment SET (d, ts, tz, tm, tmz, iv) = (SELECT d, ts, tz, tm, tmz, iv FROM moment WHERE id = 3) WHERE id = 5;
UPDATE doc SET b = b || '{"new": [1.0]}', j = '{"new": [1.0], "a": 9}' WHERE id IN (1, 3, 10, 101);
UPDATE doc SET b = '{"a": 7, "b": {"c": [3]}, "t": "u"}', j = '{"a": 7, "b": {"c": [3]}, "t": "u"}' WHERE id IN (4, 5);
UPDATE list SET i = i || 9, t = array_append(t, 'z'), n = n || 0.5, d = d || date '2024-05-05', b = b || true WHERE id IN (1, 2, 4, 101);
UPDATE list SET (i, t, n, d, b, m) = (SELECT i, t, n, d, b, m FROM list WHERE id = 6) WHERE id = 3;
UPDATE span SET i = i * '[2,100]', n = n * '[2,150]', d = d * '[2024-01-10,2024-12-31]', tz = tz * '[2023-01-01 00:00+00,2024-06-01 00:00+00]', m = m + '{[20,30)}', dm = dm - '{[2024-01-02,2024-01-20)}' WHERE id IN (1, 4, 5);
UPDATE span SET (i, n, d, tz, m, dm) = (SELECT i, n, d, tz, m, dm FROM span WHERE id = 6) WHERE id = 3;
UPDATE thing SET f = NOT f, e = 'ok', p = ROW('Oak', 9), cash = cash * 2, pct = 100 - pct, code = 'u' || id, bits = ~bits, pt = pt + point '(1,1)', de = 'Ähre' WHERE id IN (1, 2, 101);
UPDATE thing SET (f, u, e, p, net, cidr, mac, bits, vbits, cash, pct, code, pt, bx, word, x, ci, de) = (SELECT f, u, e, p, net, cidr, mac, bits, vbits, cash, pct, code, pt, bx, word, x, ci, de FROM thing WHERE id = 6) WHERE id = 3;
UPDATE extreme SET i = -1 - i, s = -1 - s, b = -1 - b, n = -n, r = -r, d = -d, t = t || 'z' WHERE id IN (1, 2, 3, 4, 101);
UPDATE vehicle SET wheels = coalesce(wheels, 1) + 1 WHERE id IN (1, 2, 11, 20);
UPDATE car SET maker = 'Opel', doors = 2 WHERE id = 12;
UPDATE reading SET day = day + 366 WHERE sensor = 1;
UPDATE reading SET value = coalesce(value, 0) + 1 WHERE sensor IN (2, 9);
UPDATE parcel SET w = coalesce(w, 1) + 1, label = 'moved' WHERE id IN (1, 3);
UPDATE tree SET height = height + 1 WHERE kind = 'oak';
UPDATE altered SET c = coalesce(c, 0) + 1, b = 'z' WHERE a IS DISTINCT FROM 2;
UPDATE fault SET x = x + 5, f = f * 4, t = '77' WHERE id IN (1, 4);
UPDATE fault SET x = 30, y = 4, t = '9', f = 2 WHERE id = 3;

-- step: rows go; what queries fail at comes
DELETE FROM dept WHERE id IN (4, 7);
DELETE FROM emp WHERE id IN (2, 9, 14);
DELETE FROM project WHERE dept IS NULL OR id = 1;
DELETE FROM work WHERE hours > 100 OR hours IS NULL;
DELETE FROM sale WHERE product = 'lamp' AND qty < 6;
DELETE FROM edge WHERE src = 3 AND dst = 1 OR src = 6;
DELETE FROM part WHERE part = 'wheel';
DELETE FROM num WHERE id IN (4, 5, 101);
DELETE FROM txt WHERE id IN (1, 5, 12, 104);
DELETE FROM moment WHERE id IN (2, 6, 103);
DELETE FROM doc WHERE id IN (1, 2, 104);
DELETE FROM list WHERE id IN (1, 5, 8);
DELETE FROM span WHERE id IN (1, 7, 102);
DELETE FROM thing WHERE id IN (1, 5, 103);
DELETE FROM extreme WHERE id IN (1, 2, 5, 103);
DELETE FROM vehicle WHERE id IN (1, 10, 20);
DELETE FROM reading WHERE value > 4 OR sensor = 3;
DELETE FROM parcel WHERE id IN (2, 4);
DELETE FROM tree WHERE height < 8;
DELETE FROM altered WHERE b IS NULL;
DELETE FROM fault WHERE id = 5;
INSERT INTO fault VALUES (200, 2147483647, 0, 'abc', -1), (201, -2147483648, 3, '', 0);

-- step: what is rolled back never was, what is behind a savepoint neither
BEGIN;
DELETE FROM emp;
UPDATE num SET i = 0, n = 0, d = 0;
TRUNCATE txt, sale;
INSERT INTO dept VALUES (99, 'Nowhere', NULL, NULL, NULL);
ROLLBACK;
BEGIN;
INSERT INTO dept VALUES (7, 'Press', 'Bonn', 5, 1);
SAVEPOINT a;
DELETE FROM dept;
DELETE FROM moment;
INSERT INTO edge VALUES (4, 6, 1);
ROLLBACK TO a;
INSERT INTO emp VALUES (2, 'Bob', 7, 3, 4100, 50, '2020-02-29', 4, true);
SAVEPOINT b;
UPDATE sale SET qty = qty * 2 WHERE qty > 0;
RELEASE b;
INSERT INTO num VALUES (5, 5, 5, 5, 5.5, 5.5, 5.5);
COMMIT;

-- step: a transaction with much in it, some of which cancels out; what was deleted comes back; nothing to fail at is left
BEGIN;
DELETE FROM fault WHERE id >= 200;
INSERT INTO emp VALUES (9, 'Ivo', 3, 1, 3300, NULL, '2022-05-20', 3, NULL), (50, 'Tmp', 3, 3, 1, 1, '2024-01-01', 1, true);
UPDATE emp SET salary = 99999.99 WHERE id = 50;
DELETE FROM emp WHERE id = 50;
UPDATE emp SET salary = salary + 1;
UPDATE emp SET salary = salary - 1 WHERE id < 8;
UPDATE dept SET name = upper(name) WHERE city = 'Bonn';
INSERT INTO project VALUES (1, 'Apollo', 3, '2022-01-01', '2023-12-31', 150000), (9, 'India', 7, '2024-06-01', NULL, 2.5);
INSERT INTO work VALUES (2, 2, 120, 'lead'), (2, 1, 12, 'dev'), (9, 1, 33, NULL), (9, 9, 1, 'lead');
INSERT INTO sale SELECT emp, product, qty, price, at FROM sale WHERE product IN ('desk', 'sofa');
INSERT INTO edge VALUES (3, 1, 1), (6, 7, 2), (4, 1, 1);
DELETE FROM edge WHERE src = 5;
INSERT INTO part VALUES ('wheel', 'spoke', 36), ('wheel', 'tyre', 1);
INSERT INTO num VALUES (4, 7, 3, 10000000000, 12.50, 1.5, 2.25), (11, 42, 4, 255, 99.990, 0.25, -0.125);
UPDATE num SET i = i * 2, n = -n WHERE id > 100;
INSERT INTO txt VALUES (1, 'apple', 'Apple', 'ab', 'a', 'apple', '\x616263'), (13, 'pear tree', 'Pear', 'pear', 'r', 'Pear', '\x70');
UPDATE txt SET t = initcap(t) WHERE id IN (9, 11);
INSERT INTO moment VALUES (2, '2024-02-29', '2024-02-29 12:34:56.789', '2024-02-29 12:34:56.789+01', '12:34:56.789', '12:34:56+02', '1 day'), (10, '2100-01-01', '2100-01-01 06:00', '2100-01-01 06:00+00', '06:00', '06:00+00', '1 week');
INSERT INTO doc VALUES (1, '{"a": 1, "b": {"c": [1, 2, 3]}, "t": "text"}', '{"a": 1, "b": {"c": [1, 2, 3]}, "t": "text"}'), (11, '{"a": [1, {"x": "y"}]}', '{"a": [1, {"x": "y"}]}');
INSERT INTO list VALUES (1, '{1,2,3}', '{a,b,c}', '{1.5,2.50}', '{2024-01-01,2024-02-29}', '{t,f}', '{{1,2},{3,4}}'), (9, '{2,4,6,8}', '{z,y}', '{9}', '{2025-01-01}', '{t,t}', '{{2}}');
INSERT INTO span VALUES (1, '[1,5)', '[1.5,2.5]', '[2024-01-01,2024-02-01)', '[2024-01-01 00:00+01,2024-01-02 00:00+01)', '{[1,3),[5,8)}', '{[2024-01-01,2024-01-03)}'), (8, '[10,20)', '[10,20)', '[2025-01-01,2026-01-01)', '[2025-01-01 00:00+01,2026-01-01 00:00+01)', '{[10,20)}', '{[2025-01-01,2026-01-01)}');
INSERT INTO thing (id, f, u, e, p, net, cidr, mac, bits, vbits, cash, pct, code, pt, bx, word, x, ci, de)
    SELECT 7, f, u, 'happy', ROW('Birch', 4)::place, '172.16.0.1', cidr, mac, '0110', '0', 5, 33, 'A1', pt, bx, 'cat', x, 'hELLO', 'Hello' FROM thing WHERE id = 6;
INSERT INTO extreme VALUES (1, 2147483647, 32767, 9223372036854775807, 1e40, 'Infinity', 'Infinity', repeat('x', 3000), 'infinity', 'infinity', '178000000 years');
INSERT INTO car VALUES (10, 4, 'Audi', 5), (14, 4, 'Opel', 2);
INSERT INTO reading VALUES (1, '2024-01-01', 3), (3, '2024-06-30', 4.25);
UPDATE reading SET sensor = 3 WHERE sensor = 2;
INSERT INTO parcel (id, w, h, label) VALUES (2, 10, 10, 'Big'), (7, 1, 1, NULL);
INSERT INTO tree (kind, height) VALUES ('elm', 7);
INSERT INTO altered VALUES (2, NULL, 6), (5, 'v', 1);
COMMIT;

-- step: tables are emptied
TRUNCATE sale, num, reading_2024, car;
BEGIN;
TRUNCATE edge, list;
INSERT INTO edge VALUES (1, 2, 1), (2, 4, 8), (4, 5, 1);
INSERT INTO list VALUES (1, '{1}', '{one}', '{1}', '{2024-01-01}', '{t}', '{{1}}'), (2, NULL, NULL, NULL, NULL, NULL, NULL);
COMMIT;
DELETE FROM txt;
DELETE FROM work;
DELETE FROM emp;
DELETE FROM project;
DELETE FROM dept WHERE parent IS NULL OR id IN (2, 5);
DELETE FROM moment;
DELETE FROM doc;
DELETE FROM span;
DELETE FROM thing;
TRUNCATE extreme, tree;

-- step: tables are filled again
INSERT INTO sale VALUES (2, 'lamp', 3, 19.99, '2024-01-05 10:00+01'), (3, 'desk', 1, 250, NULL), (3, 'desk', 1, 250, NULL);
INSERT INTO num VALUES (1, 3, 3, 3, 3.0, 3, 3), (2, 3, 1, 3000000000, 3.00, 0.5, 0.25), (6, NULL, NULL, NULL, NULL, NULL, NULL), (3, 100, 30, 255, 1234.5678, 256, 1024.5);
INSERT INTO txt VALUES (1, 'apple', 'Apple', 'ab', 'a', 'apple', '\x616263'), (4, NULL, NULL, NULL, NULL, NULL, NULL), (2, 'banana', 'Nut', 'nut', 'n', 'Nut', '\x6e');
INSERT INTO edge VALUES (2, 1, 1);
INSERT INTO emp VALUES (1, 'Ada', 3, NULL, 9000, 100, '2015-01-01', 9, true), (5, 'Eve', 3, 1, 7000, 0, '2016-07-01', 7, true);
INSERT INTO project VALUES (3, 'Comet', 3, '2024-02-29', '2024-12-24', NULL), (9, 'India', 3, '2024-06-01', NULL, 2.5);
INSERT INTO dept VALUES (1, 'Board', 'Bonn', 900000, NULL);
INSERT INTO moment VALUES (1, '2024-01-01', '2024-01-01 00:00', '2024-01-01 00:00+01', '00:00', '00:00+01', '0');
INSERT INTO doc VALUES (1, '{"a": 1}', '{"a": 1}'), (2, '["x"]', '["x"]');
INSERT INTO span VALUES (1, '[1,5)', '[1.5,2.5]', '[2024-01-01,2024-02-01)', '[2024-01-01 00:00+01,2024-01-02 00:00+01)', '{[1,3),[5,8)}', '{[2024-01-01,2024-01-03)}');
INSERT INTO thing (id, f, e, pct, ci) VALUES (1, false, 'sad', 3, 'x');
INSERT INTO extreme (id, i, b, n, d) VALUES (1, 1, 1, 'Infinity', '-0'), (2, 1, 1, 'NaN', 0);
INSERT INTO work VALUES (1, 1, 1, 'lead'), (3, 2, 8, NULL), (5, 3, 44, 'dev');
INSERT INTO reading VALUES (1, '2024-03-03', 7), (8, '2024-03-03', 8);
INSERT INTO car VALUES (10, 4, 'Skoda', 5);
