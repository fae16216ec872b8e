WITH RECURSIVE acts_as(principal) AS (
    SELECT $1::int
    UNION
    SELECT m.grp
    FROM acts_as a
    JOIN member m ON m.member = a.principal
),
below(folder, allows) AS (
    SELECT r.folder, r.allows
    FROM acts_as a
    JOIN rule r ON r.principal = a.principal
    WHERE r.folder IS NOT NULL
    UNION
    SELECT f.id, b.allows
    FROM below b
    JOIN folder f ON f.parent = b.folder
),
governed(file, allows) AS (
    SELECT r.file, r.allows
    FROM acts_as a
    JOIN rule r ON r.principal = a.principal
    WHERE r.file IS NOT NULL
    UNION ALL
    SELECT f.id, b.allows
    FROM below b
    JOIN file f ON f.folder = b.folder
)
SELECT file FROM governed GROUP BY file HAVING bool_and(allows)
