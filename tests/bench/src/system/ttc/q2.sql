WITH RECURSIVE tie(comment, a, b) AS (
    SELECT k.comment, f.a, f.b
    FROM likes k
    JOIN friend f ON f.a = k.person
    JOIN likes l ON l.person = f.b AND l.comment = k.comment
),
label(comment, person, label) AS (
    SELECT comment, person, person FROM likes
    UNION
    SELECT l.comment, t.b, l.label
    FROM label l
    JOIN tie t ON t.comment = l.comment AND t.a = l.person
),
member(comment, person, label) AS (
    SELECT comment, person, min(label) FROM label GROUP BY comment, person
),
component(comment, size) AS (SELECT comment, count(*) FROM member GROUP BY comment, label)
SELECT c.id, coalesce(sum(s.size * s.size), 0)::bigint AS score, c.written
FROM comment c
LEFT JOIN component s ON s.comment = c.id
GROUP BY c.id, c.written
ORDER BY score DESC, c.written DESC
LIMIT 3
