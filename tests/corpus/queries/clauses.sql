-- A value of each type in each clause.

-- throughout {e} {t}: i ; num | s ; num | b ; num | n ; num | d ; num
--   | t ; txt | v ; txt | l ; txt | y ; txt
--   | d ; moment | ts ; moment | tz ; moment | tm ; moment | iv ; moment
--   | b ; doc | i ; list | t ; list | i ; span | n ; span | tz ; span | m ; span
--   | f ; thing | u ; thing | e ; thing | p ; thing | net ; thing | cash ; thing | pct ; thing | code ; thing | ci ; thing | bits ; thing
--   | n ; extreme | d ; extreme | day ; extreme

SELECT id, {e} AS value FROM {t};

SELECT DISTINCT {e} FROM {t};

SELECT id FROM {t} WHERE {e} IS NULL;

SELECT id FROM {t} WHERE {e} = (SELECT {e} FROM {t} WHERE id = 1);

SELECT {e}, count(*) FROM {t} GROUP BY {e};

SELECT count({e}), count(DISTINCT {e}) AS different FROM {t};

SELECT {e} FROM {t} ORDER BY {e} DESC NULLS LAST, id LIMIT 3;

SELECT id, {e}, rank() OVER (ORDER BY {e}) FROM {t};

SELECT id, lag({e}) OVER (ORDER BY id), first_value({e}) OVER (ORDER BY id ROWS 2 PRECEDING) FROM {t};

SELECT a.id, b.id AS other FROM {t} a JOIN {t} b ON a.{e} = b.{e} AND a.id < b.id;

SELECT a.id, b.{e} FROM {t} a LEFT JOIN {t} b ON b.{e} = a.{e} AND b.id <> a.id;

SELECT id FROM {t} WHERE {e} IN (SELECT {e} FROM {t} WHERE id % 2 = 0);

SELECT id FROM {t} a WHERE NOT EXISTS (SELECT FROM {t} b WHERE b.{e} = a.{e} AND b.id > a.id);

SELECT {e} FROM {t} WHERE id < 5 UNION SELECT {e} FROM {t} WHERE id > 3;

SELECT {e} FROM {t} EXCEPT ALL SELECT {e} FROM {t} WHERE id IN (1, 2);

SELECT DISTINCT ON ({e}) {e}, id FROM {t} ORDER BY {e}, id;

SELECT id, coalesce({e}, (SELECT x.{e} FROM {t} x WHERE x.id = 1)) FROM {t};

SELECT id, CASE WHEN id % 2 = 0 THEN {e} END FROM {t};

SELECT array_agg({e}::text ORDER BY id) FROM {t};

SELECT {e} FROM {t} GROUP BY {e} HAVING count(*) > 1;

SELECT id, {e} IS DISTINCT FROM lead({e}) OVER (ORDER BY id) AS changes FROM {t};

SELECT a.id, (SELECT count(*) FROM {t} b WHERE b.{e} IS NOT DISTINCT FROM a.{e}) FROM {t} a;

SELECT {e} FROM {t} INTERSECT SELECT {e} FROM {t} WHERE id > 2;

SELECT (id % 3) AS part, min(id) FILTER (WHERE {e} IS NOT NULL) FROM {t} GROUP BY 1;
