WITH RECURSIVE label(comment, person, label) AS (
    SELECT comment, person, person FROM likes
    UNION
    SELECT l.comment, f.b, l.label
    FROM label l
    JOIN friend f ON f.a = l.person
    JOIN likes k ON k.person = f.b AND k.comment = l.comment
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
