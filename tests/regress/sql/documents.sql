-- XMLTABLE: rows and columns that are made of documents.
SET client_min_messages = warning;
CREATE TABLE doc (id int PRIMARY KEY, body xml, path text);
CREATE DOMAIN score AS int CHECK (value < 100);
CREATE FUNCTION differences() RETURNS TABLE (view text, missing bigint, surplus bigint) LANGUAGE sql AS $$
    SELECT relation::text, d.missing, d.surplus FROM eddy.views, eddy.verify_view(relation) d
    WHERE (d.missing, d.surplus) <> (0, 0) $$;
INSERT INTO doc VALUES
    (1, '<games><game id="1"><player>ann</player><points>7</points><at>2026-03-01 10:00+02</at></game><game id="2"><points>3</points></game></games>', 'player'),
    (2, '<games/>', 'points'), (3, NULL, NULL),
    (4, '<games><game id="3"><player>bob</player><player/><points>1.5</points></game><game id="3"><player>bob</player><points>1.5</points></game></games>', 'none');

CREATE INCREMENTAL VIEW game AS SELECT d.id AS doc, g.* FROM doc d, XMLTABLE('/games/game' PASSING d.body COLUMNS
    number FOR ORDINALITY, id int PATH '@id' NOT NULL, player text PATH 'player[1]' DEFAULT 'nobody', points numeric(5, 2), at timestamptz) g;
CREATE INCREMENTAL VIEW sums AS SELECT g.player, sum(g.points) AS points, count(*) FROM doc,
    XMLTABLE('/games/game' PASSING body COLUMNS player text PATH 'player[1]', points numeric) AS g GROUP BY g.player;
CREATE INCREMENTAL VIEW perhaps AS SELECT d.id, g.player FROM doc d
    LEFT JOIN XMLTABLE('/games/game' PASSING d.body COLUMNS player text PATH 'player[1]') AS g ON g.player IS NOT NULL;
CREATE INCREMENTAL VIEW fragments AS SELECT d.id, g.game::text FROM doc d, XMLTABLE('//game' PASSING body COLUMNS game xml PATH '.') AS g;
CREATE INCREMENTAL VIEW renamed AS SELECT d.id, g.b, g.a FROM doc d,
    LATERAL XMLTABLE('/games/game' PASSING body COLUMNS x text PATH '@id', y text PATH 'points') AS g(a, b);
CREATE INCREMENTAL VIEW of_column AS SELECT d.id, g.v FROM doc d,
    XMLTABLE('/games/game' PASSING d.body COLUMNS v text PATH (d.path || '[1]') DEFAULT d.id::text) AS g;
CREATE INCREMENTAL VIEW of_subquery AS SELECT g.points FROM
    XMLTABLE('/games/game' PASSING (SELECT xmlelement(name games, xmlagg(xmlelement(name game, xmlelement(name points, id)) ORDER BY id)) FROM doc) COLUMNS points int) g;
CREATE INCREMENTAL VIEW spaced AS SELECT d.id, g.v FROM doc d, XMLTABLE(XMLNAMESPACES('urn:x' AS x),
    '/x:games/x:game' PASSING d.body COLUMNS v score PATH '@id') g;
CREATE INCREMENTAL VIEW fixed AS SELECT * FROM XMLTABLE('/r/v' PASSING '<r><v>1</v><v>2</v></r>' COLUMNS v int PATH '.');
CREATE INCREMENTAL VIEW whole AS SELECT d.id, to_json(g)::text AS g FROM doc d
    LEFT JOIN XMLTABLE('/games/game' PASSING d.body COLUMNS player text PATH 'player[1]', id int PATH '@id') AS g ON true;
CREATE INCREMENTAL VIEW correlated AS SELECT d.id, (SELECT max(g.points) FROM
    XMLTABLE('/games/game' PASSING d.body COLUMNS points numeric) g) AS best FROM doc d;

SELECT * FROM game ORDER BY doc, number;
SELECT * FROM sums ORDER BY player;
SELECT * FROM perhaps ORDER BY id, player;
SELECT * FROM of_subquery ORDER BY 1;
SELECT * FROM whole ORDER BY id, g;
SELECT * FROM fixed ORDER BY 1;
SELECT * FROM differences();

UPDATE doc SET body = '<games><game id="9"><player>cas</player><points>99.999</points></game></games>' WHERE id = 2;
UPDATE doc SET path = 'points' WHERE id = 4;
INSERT INTO doc VALUES (5, '<games xmlns="urn:x"><game id="17"/><game/></games>', '@id'), (6, '<games><game id="3"><player>bob</player><points>1.5</points></game></games>', 'points');
SELECT * FROM game ORDER BY doc, number;
SELECT * FROM spaced ORDER BY v;
SELECT * FROM differences();
BEGIN;
DELETE FROM doc;
ROLLBACK;
DELETE FROM doc WHERE id = 1;
UPDATE doc SET body = (SELECT body FROM doc WHERE id = 4), path = '@id' WHERE id = 3;
SELECT * FROM sums ORDER BY player;
SELECT * FROM differences();

-- Errors are those of PostgreSQL, and go with their rows.
INSERT INTO doc VALUES (7, '<games><game><points>1</points></game></games>', 'points');
SELECT * FROM game;
\echo :SQLSTATE
UPDATE doc SET body = '<games><game id="1"><points>many</points></game></games>' WHERE id = 7;
SELECT * FROM sums;
\echo :SQLSTATE
UPDATE doc SET body = '<games xmlns="urn:x"><game id="100"/></games>' WHERE id = 7;
SELECT * FROM spaced;
\echo :SQLSTATE
DELETE FROM doc WHERE id = 7;
SELECT count(*) FROM game;
SELECT * FROM differences();

-- Refused: what the texts of a column become can change, and arrays
CREATE INCREMENTAL VIEW bad AS SELECT g.* FROM doc, XMLTABLE('/games/game' PASSING body COLUMNS t regclass) g;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT g.* FROM doc, XMLTABLE('/games/game' PASSING body COLUMNS t int[] DEFAULT '{1}') g;
\echo :SQLSTATE
CREATE INCREMENTAL VIEW bad AS SELECT g.* FROM doc, XMLTABLE('/games/game' PASSING body COLUMNS t text PATH 'a' DEFAULT now()::text) g;
\echo :SQLSTATE

DROP FUNCTION differences();
DROP TABLE doc CASCADE;
DROP MATERIALIZED VIEW fixed;
DROP DOMAIN score;
