WITH acts_as(person, principal) AS (
    SELECT id, id FROM principal WHERE NOT is_group
    UNION ALL
    SELECT person, grp FROM belongs
),
governed(principal, file, allows) AS (
    SELECT principal, file, allows FROM rule WHERE file IS NOT NULL
    UNION ALL
    SELECT r.principal, f.id, r.allows
    FROM rule r
    JOIN inside i ON i.ancestor = r.folder
    JOIN file f ON f.folder = i.folder
)
SELECT a.person, g.file
FROM acts_as a
JOIN governed g ON g.principal = a.principal
GROUP BY a.person, g.file
HAVING bool_and(g.allows)
