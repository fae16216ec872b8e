-- Dates, times, intervals.

-- for {x}: d + 1 | d - 7 | d - date '2024-01-01' | d + interval '1 month' | d - interval '1 day 2 hours' | d + tm | d::timestamp | d::timestamptz | d::text | date_trunc('month', d) | extract(doy FROM d) | extract(isodow FROM d) | extract(week FROM d) | extract(quarter FROM d)
--   | extract(epoch FROM d) | extract(century FROM d) | extract(decade FROM d) | to_char(d, 'YYYY-MM-DD') | to_char(d, 'Day DD Month') | to_char(d, 'IYYY-IW') | make_date(2024, 2, extract(day FROM d)::int % 28 + 1) | d + 1 > date '2024-01-01' | greatest(d, date '2000-01-01') | age(d, date '2000-01-01') | isfinite(d) | d BETWEEN date '2023-01-01' AND date '2024-12-31' | (d, d + 10) OVERLAPS (date '2024-01-01', interval '60 days')
--   | date_bin('7 days', d, timestamp '2024-01-01') | d - ts::date | d::timestamp - ts | coalesce(d, date 'epoch') | extract(julian FROM d) | extract(year FROM d) * 100 + extract(month FROM d)
SELECT id, {x} AS result FROM moment;

-- for {x}: ts + interval '1 month' | ts - interval '90 minutes' | ts - timestamp '2024-01-01' | ts AT TIME ZONE 'UTC' | ts AT TIME ZONE 'America/New_York' | date_trunc('hour', ts) | date_trunc('week', ts) | date_trunc('quarter', ts) | extract(hour FROM ts) | extract(second FROM ts) | extract(microseconds FROM ts) | extract(epoch FROM ts) | extract(dow FROM ts)
--   | to_char(ts, 'YYYY-MM-DD HH24:MI:SS.US') | to_char(ts, 'FMDay, FMDD FMMonth YYYY HH12:MI AM') | age(ts, timestamp '2000-01-01') | date_bin('15 minutes', ts, timestamp '2001-01-01') | ts::timestamp(3) | isfinite(ts) | ts - tz::timestamp | ts + iv | ts - iv | make_timestamp(2024, 1, 1, extract(hour FROM ts)::int, 0, 0) | timezone('UTC', ts)
SELECT id, {x} AS result FROM moment;

-- for {x}: tz + interval '1 month' | tz - interval '1 day' | tz - timestamptz '2024-01-01 00:00+00' | tz AT TIME ZONE 'UTC' | tz AT TIME ZONE 'Asia/Tokyo' | date_trunc('day', tz) | date_trunc('hour', tz)
--   | to_char(tz, 'YYYY-MM-DD HH24:MI:SS TZ') | to_char(tz, 'OF') | to_char(tz AT TIME ZONE 'UTC', 'HH24:MI') | date_bin('1 day', tz, timestamptz '2001-01-01 00:00+00') | tz::timestamptz(0) | tz + iv | tz - iv | isfinite(tz) | tz = ts::timestamptz | tz > ts | make_timestamptz(2024, 3, 31, 1, 30, 0, 'Europe/Berlin') > tz | to_timestamp(extract(epoch FROM tz)::double precision) | tz::timetz | age(tz, timestamptz '2000-01-01 00:00+00') | tz AT TIME ZONE interval '-05:00'
SELECT id, {x} AS result FROM moment;

-- for {x}: tm + interval '1 hour' | tm - interval '30 minutes' | tm - time '06:00' | tm::interval | tm::text | extract(hour FROM tm) | extract(second FROM tm) | extract(epoch FROM tm) | date_trunc('hour', tm) | to_char(tm, 'HH24:MI') | tm > time '12:00' | tm::time(0) | make_time(extract(hour FROM tm)::int, 5, 0) | tmz::text | extract(timezone FROM tmz) | tmz::time | tmz + interval '1 hour' | tmz > '12:00+00'
--   | iv + interval '1 hour' | iv - interval '1 day' | iv * 2 | iv / 3 | -iv | iv * 0.5 | extract(day FROM iv) | extract(epoch FROM iv) | extract(month FROM iv) | date_part('hour', iv) | justify_hours(iv) | justify_days(iv) | justify_interval(iv) | iv::text | iv::time | to_char(iv, 'DD HH24:MI') | iv > interval '1 day' | iv = interval '24 hours' | make_interval(days => extract(day FROM iv)::int) | isfinite(iv) | iv::interval(0) | interval '1' day + iv | abs(extract(epoch FROM iv))
SELECT id, {x} AS result FROM moment;

-- for {x}: d > date '2024-01-01' | d = date '2024-02-29' | ts >= timestamp '2024-01-01 00:00' | tz < timestamptz '2024-01-01 00:00+01' | tm BETWEEN '02:00' AND '13:00' | iv > interval '1 day' | extract(year FROM d) = 2024 | date_trunc('year', ts) = timestamp '2024-01-01' | d IN (date '2024-02-29', date '1999-12-31') | ts::date = d | tz = ts | d < ts | d > tz | d IS NULL OR iv = interval '1 day' | extract(month FROM tz) = 12 | d - 30 > date '2024-01-01' | tz - interval '1 year' < timestamptz '2023-06-01 00:00+02' | to_char(d, 'MM') = '02' | tmz = '12:34:56+02' | (d, iv) OVERLAPS (date '2024-01-01', date '2024-06-01') | age(d, date '2000-01-01') > interval '20 years' | ts <> tz::timestamp
SELECT id FROM moment WHERE {x};

-- for {x}: d | date_trunc('month', ts) | tz::date | extract(year FROM d) | iv | tm | to_char(d, 'Mon') | date_trunc('day', tz) | extract(hour FROM tz) | d >= date '2024-01-01' | date_bin('1 hour', ts, timestamp '2000-01-01')
-- for {a}: count(*) | max(ts) | min(tz)
SELECT {x} AS period, {a} FROM moment GROUP BY 1;

-- for {a}: min(d) | max(ts) | min(tz) | max(tm) | min(iv) | max(iv) | sum(iv) | avg(iv) | sum(tm::interval) | count(DISTINCT d) | max(d) - min(d) | max(tz) - min(tz) | array_agg(d ORDER BY d, id) | string_agg(to_char(ts, 'DDD'), ' ' ORDER BY id) | min(tmz) | max(tz::date) | sum(extract(epoch FROM iv)) | avg(extract(year FROM d)) | range_agg(daterange(d, d + 3)) | percentile_disc(0.5) WITHIN GROUP (ORDER BY ts)
SELECT {a} AS result FROM moment;

-- for {c}: d | ts | tz | tm | iv
-- for {o}: = | < | >=
SELECT a.id, b.id AS other FROM moment a JOIN moment b ON a.{c} {o} b.{c} WHERE a.id < b.id;

-- for {x}: day + 0 | day - date '2000-01-01' | isfinite(day) | isfinite(ts) | day::text | ts::text | iv::text | extract(year FROM day) | day < ts | ts > timestamp '2000-01-01' | justify_days(iv) | iv > interval '1 day' | -iv
SELECT id, {x} AS result FROM extreme WHERE isfinite(day) AND id NOT IN (1, 2);

-- for {x}: isfinite(day) | day = 'infinity' | ts = '-infinity' | day > date '2000-01-01' | ts::text | day::text | extract(epoch FROM day) | iv = interval '30 days' | iv::text
SELECT id, {x} AS result FROM extreme;

-- for {x}: generate_series(d, d + 2, interval '1 day') | generate_series(ts, ts + interval '3 hours', interval '1 hour') | generate_series(tz, tz + interval '2 days', interval '1 day')
SELECT id, {x} AS at FROM moment;

-- Sales by period.
-- for {p}: day | week | month | quarter | year
SELECT date_trunc('{p}', at) AS period, count(*), sum(qty * price) AS total FROM sale GROUP BY 1;

-- for {x}: at::date | extract(isodow FROM at) | to_char(at, 'YYYY-MM') | date_trunc('day', at AT TIME ZONE 'UTC') | extract(hour FROM at) < 12
SELECT {x} AS bucket, product, sum(qty) FROM sale GROUP BY 1, 2;

SELECT e.name, e.hired, age(p.starts::timestamp, e.hired::timestamp) AS seniority
FROM emp e JOIN project p ON p.dept = e.dept AND p.starts > e.hired;

SELECT p.title, e.name FROM project p JOIN emp e ON e.hired <= p.ends AND e.hired + interval '1 year' > p.starts;

SELECT title, coalesce(ends, date '2099-12-31') - starts AS days FROM project WHERE (starts, coalesce(ends, 'infinity')) OVERLAPS (date '2023-01-01', date '2023-12-31');

SELECT extract(year FROM hired) AS year, count(*), avg(salary) FROM emp WHERE hired IS NOT NULL GROUP BY extract(year FROM hired) HAVING count(*) > 1;
