WITH acts_as(person, principal) AS (
    SELECT id, id FROM principal WHERE NOT is_group
    UNION ALL
    SELECT person, grp FROM belongs
),
applies(person, file, allows) AS (
    SELECT w.person, w.file, r.allows
    FROM watched w
    JOIN acts_as a ON a.person = w.person
    JOIN rule r ON r.principal = a.principal AND r.file = w.file
    UNION ALL
    SELECT w.person, w.file, r.allows
    FROM watched w
    JOIN file f ON f.id = w.file
    JOIN inside i ON i.folder = f.folder
    JOIN acts_as a ON a.person = w.person
    JOIN rule r ON r.principal = a.principal AND r.folder = i.ancestor
)
SELECT w.person, w.file, coalesce(bool_and(p.allows), false) AS allowed
FROM watched w
LEFT JOIN applies p ON p.person = w.person AND p.file = w.file
GROUP BY w.person, w.file
