-- Conditions on the present time. The rows are far from it, but for those that a condition calls.

-- for {w}: tz > now() - interval '30 days' | tz < now() | tz <= current_timestamp - interval '1 day' | ts > localtimestamp | d < current_date | d >= current_date - 30 | tz BETWEEN now() - interval '10000 days' AND now() | now() > tz | tz + interval '1 year' > now() | tz < now() AND id > 2 | date_trunc('day', tz) < date_trunc('day', now()) | tz::date <= current_date | d::timestamptz < now() | tz + iv < now() | tz < now() AND d > date '2000-01-01' AND ts < now()
SELECT id, tz FROM moment WHERE {w};

-- for {w}: at > now() - interval '100000 days' | at < now() | at < current_date
-- for {q}: count(*) | product, sum(qty)
SELECT {q} FROM sale WHERE {w} GROUP BY product;

SELECT e.name, p.title FROM emp e JOIN project p ON p.dept = e.dept WHERE p.ends < current_date;

SELECT name, (SELECT count(*) FROM sale s WHERE s.emp = e.id AND s.at < now()) AS past FROM emp e;

SELECT product, at FROM sale WHERE at < now() ORDER BY at DESC, product NULLS LAST, qty LIMIT 3;

SELECT id FROM emp WHERE hired < current_date - 365 UNION SELECT id FROM project WHERE starts < current_date;

SELECT id, rank() OVER (ORDER BY d) FROM moment WHERE d < current_date + 1;

SELECT DISTINCT dept FROM emp WHERE hired + 30 < current_date;
