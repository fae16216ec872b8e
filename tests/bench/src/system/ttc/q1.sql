WITH RECURSIVE thread(post, comment) AS (
    SELECT p.id, c.id
    FROM post p
    JOIN comment c ON c.parent = p.id
    UNION ALL
    SELECT t.post, c.id
    FROM thread t
    JOIN comment c ON c.parent = t.comment
),
liked(comment, likes) AS (SELECT comment, count(*) FROM likes GROUP BY comment)
SELECT p.id, coalesce(sum(s.points), 0)::bigint AS score, p.written
FROM post p
LEFT JOIN (
    SELECT t.post, 10 + coalesce(l.likes, 0) AS points
    FROM thread t
    LEFT JOIN liked l ON l.comment = t.comment
) s ON s.post = p.id
GROUP BY p.id, p.written
ORDER BY score DESC, p.written DESC
LIMIT 3
