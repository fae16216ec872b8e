WITH RECURSIVE acts_as(principal) AS (
    SELECT $1::int
    UNION
    SELECT m.grp
    FROM acts_as a
    JOIN member m ON m.member = a.principal
),
above(folder) AS (
    SELECT folder FROM file WHERE id = $2
    UNION
    SELECT f.parent
    FROM above a
    JOIN folder f ON f.id = a.folder
    WHERE f.parent IS NOT NULL
)
SELECT coalesce(bool_and(r.allows), false)
FROM rule r
WHERE r.principal IN (SELECT principal FROM acts_as)
    AND (r.file = $2 OR r.folder IN (SELECT folder FROM above))
