-- Ranges and multiranges.

-- for {c}: i | n | d | tz
-- for {x}: lower({c}) | upper({c}) | isempty({c}) | lower_inc({c}) | upper_inc({c}) | lower_inf({c}) | upper_inf({c}) | {c}::text | {c} * {c} | {c} = (SELECT x.{c} FROM span x WHERE x.id = 6) | range_merge({c}, {c}) | multirange({c}) | {c} IS NULL
SELECT id, {x} AS result FROM span;

-- for {x}: i @> 3 | i @> int4range(2, 3) | i <@ int4range(0, 100) | i && int4range(4, 8) | i << int4range(20, 30) | i >> int4range(-5, 0) | i &< int4range(1, 6) | i &> int4range(2, 3) | i -|- int4range(5, 9) | i = int4range(1, 5) | i < int4range(3, 10) | 3 <@ i | n @> 2.0 | n && numrange(0, 2) | d @> date '2024-01-20' | d && daterange('2024-01-01', '2024-01-05') | d <@ daterange('2023-01-01', NULL) | tz @> timestamptz '2024-01-01 13:00+01' | tz && tstzrange('2024-03-31 00:00+00', NULL) | m @> 6 | m @> int4range(1, 2) | m && int4multirange(int4range(2, 3)) | m <@ '{[0,100)}' | dm @> date '2024-01-02' | dm && d | m -|- int4range(8, 9) | isempty(m) | i IN ('[1,5)', 'empty') | lower(d) > date '2023-12-31' | NOT i @> 3
SELECT id FROM span WHERE {x};

-- for {x}: i * int4range(2, 4) | i + int4range(lower(i), upper(i)) | int4range(1, id + 1) | int4range(0, id, '[]') | numrange(id, id * 1.5) | daterange(lower(d), upper(d), '(]') | upper(i) - lower(i) | upper(d) - lower(d) | upper(tz) - lower(tz) | m + '{[100,200)}' | m - '{[2,3)}' | m * '{[2,7)}' | lower(m) | upper(m) | range_merge(m) | m::text | dm::text | int4multirange(i) | m + int4multirange(i) | lower_inf(dm) | i::text || '!' | coalesce(i, 'empty') | isempty(m) | dm * '{[2024-01-01,2024-02-01)}'
SELECT id, {x} AS result FROM span;

-- for {c}: i | n | d | m
SELECT {c}, count(*), sum(id) FROM span GROUP BY {c};

-- for {c}: i | d | tz | m
SELECT a.id, b.id AS other FROM span a JOIN span b ON a.{c} && b.{c} AND a.id < b.id;

-- for {a}: range_agg(i) | range_agg(d) | range_intersect_agg(i) | count(DISTINCT i) | max(lower(i)) | range_agg(m) | range_intersect_agg(m) | array_agg(i ORDER BY id) | range_agg(i) FILTER (WHERE id > 3)
SELECT {a} AS result FROM span WHERE i IS NOT NULL;

SELECT n.id, s.id AS span FROM num n JOIN span s ON s.i @> n.i;

SELECT m.id, s.id AS span FROM moment m LEFT JOIN span s ON m.tz <@ s.tz;

SELECT p.title, q.title AS other FROM project p JOIN project q ON daterange(p.starts, p.ends, '[]') && daterange(q.starts, q.ends, '[]') AND p.id < q.id;

SELECT id, part FROM span, unnest(m) AS part;

SELECT id, i FROM span ORDER BY i DESC, id LIMIT 3;

SELECT id, generate_series(lower(i), upper(i)) AS x FROM span WHERE NOT lower_inf(i) AND NOT isempty(i);

SELECT d, range_agg(i) AS union_of_all FROM span GROUP BY d;

SELECT id, rank() OVER (ORDER BY i), lag(i) OVER (ORDER BY i, id) FROM span;

SELECT emp, range_agg(tstzrange(at, at + interval '1 day')) FROM sale WHERE at IS NOT NULL GROUP BY emp;
