WITH RECURSIVE i(folder, ancestor) AS (
    SELECT id, id FROM folder
    UNION
    SELECT i.folder, f.parent
    FROM i
    JOIN folder f ON f.id = i.ancestor
    WHERE f.parent IS NOT NULL
)
SELECT folder, ancestor FROM i
