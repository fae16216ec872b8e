WITH RECURSIVE b(person, grp) AS (
    SELECT m.member, m.grp
    FROM principal p
    JOIN member m ON m.member = p.id
    WHERE NOT p.is_group
    UNION
    SELECT b.person, m.grp
    FROM b
    JOIN member m ON m.member = b.grp
)
SELECT person, grp FROM b
